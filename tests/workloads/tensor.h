/*
 * The device as a training program sees it: tensors that are one stream-ordered allocation each, kernel
 * launches, copies. The calls are the CUDA driver's alone.
 *
 * Threads: one. Errors: whatever the driver refuses is reported with the call, its code and the place, and the
 * program exits with status 1; no call here returns an error.
 *
 * Streams: work goes to the current stream (dev_use); MAIN is the driver's default stream, SIDE one of its own.
 */
#ifndef WORKLOADS_TENSOR_H
#define WORKLOADS_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dev_route { ROUTE_LINKED, ROUTE_DLSYM, ROUTE_PROCADDR };
enum dev_stream { MAIN, SIDE };

typedef struct {
    enum dev_route route;   /* how the driver's entry points are found */
    bool kernel_handles;    /* load a library and launch its CUkernel, instead of a module's CUfunction */
    bool extra;             /* parameters through the `extra` buffer */
} dev_options;

/* device memory; counted, freed when nobody holds it any more */
typedef struct {
    void *p;                /* device address, for kernels only */
    size_t bytes;
    int refs;
    enum dev_stream home;   /* the stream it was allocated on and will be freed on */
} tensor;

/* one kernel parameter */
typedef struct {
    const void *value;
    size_t bytes;
} dev_arg;

void dev_open(const dev_options *options);
void dev_close(void);
void dev_synchronize(void);

/* The current stream from here on. */
void dev_use(enum dev_stream stream);
/* The current stream waits for all that `other` has been given so far. */
void dev_wait(enum dev_stream other);

/* Marks the current stream's progress; dev_mark_wait blocks the host until a mark (0..7) made earlier passed. */
void dev_mark(int mark);
void dev_mark_wait(int mark);

/* cuProfilerStart, cuProfilerStop. */
void dev_profile(bool on);

/* A point in time on the current stream, numbered from 0; milliseconds between two, once both have passed. */
int dev_time_stamp(void);
float dev_time_between(int from, int to);

/* While on, every third tensor that is let go is freed only some launches later. */
void dev_late_free(bool on);
/* While on, such a tensor is read whole before it is freed; what was read so far, hashed. */
void dev_late_read(bool on);
uint64_t dev_late_seen(void);

/* A new tensor on the current stream, contents undefined, one reference; bytes > 0. */
tensor *tensor_new(size_t bytes);
tensor *tensor_ref(tensor *t);
/* Lets go of one reference; the last one frees on the tensor's home stream. NULL is allowed. */
void tensor_drop(tensor *t);

void tensor_upload(tensor *t, const void *host);                /* returns when done; all of t */
void tensor_download(void *host, const tensor *t);
/* FNV-1a, 64 bits, going on from h; NULL: h itself. */
uint64_t tensor_hash(uint64_t h, const tensor *t);
void tensor_upload_async(tensor *t, const void *pinned);        /* in stream order */
void tensor_download_async(void *pinned, const tensor *t);
void tensor_clear(tensor *t);                                   /* to zero bytes, in stream order */

/* Pinned host memory; freed by dev_close. */
void *dev_pinned(size_t bytes);

/* Asks for `bytes` of device memory and returns the name of the driver's answer; a granted request is freed. */
const char *dev_try_alloc(size_t bytes);

/* Launches kernel number `kernel` of kernels.def over `items` threads on the current stream. The parameters
   are copied before the call returns. Use the typed launchers of launch.h. */
void dev_launch(int kernel, int items, const dev_arg *args, int n_args);

#endif
