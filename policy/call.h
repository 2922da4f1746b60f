/* call.h: the program's calls, as the doors hand them over. Pointers are the program's own, and valid during the call. */
#ifndef REMAT_POLICY_CALL_H
#define REMAT_POLICY_CALL_H

#include "policy/driver.h"

#include <stdbool.h>
#include <stddef.h>

struct eng_kernel {
    CUfunction func; /* a CUfunction or a CUkernel cast to one */
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    CUstream stream;
    void **params; /* as given to the driver: one pointer a parameter, or NULL */
    void **extra;  /* CU_LAUNCH_PARAM_* list, or NULL */
    const CUlaunchAttribute *attrs;
    unsigned n_attrs;
    bool cooperative; /* came through cuLaunchCooperativeKernel */
};

struct eng_memset {
    CUdeviceptr dst;
    size_t pitch_bytes; /* 0: one row */
    unsigned value;
    unsigned elem_bytes; /* 1, 2, 4 */
    size_t width, height; /* in elements; height 1 for the plain calls */
    CUstream stream;
    bool sync; /* the non-Async call */
};

enum eng_copy_kind { ENG_HTOD, ENG_DTOH, ENG_DTOD };
struct eng_copy {
    enum eng_copy_kind kind;
    CUdeviceptr dst_dev, src_dev; /* the device sides */
    void *dst_host;
    const void *src_host;
    size_t bytes;
    CUstream stream;
    bool sync; /* the non-Async call */
};

/* Memory that any other call touches. ENG_WAITS: the stream stands still at the call until a word has the awaited value, or a host function returns,
 * which the host may bring about in a later call. ENG_EXACT: the driver refuses the call unless these bytes lie in one allocation.
 * ENG_EARLY: the driver may read these bytes out of stream order, before or while the call is made. Before issue() is called the engine adds ENG_IN_ORDER
 * where the bytes come back in stream order (an evicted source of a batch of copies): issue() must then have the driver read them in stream order. */
enum { ENG_READ = 1, ENG_WRITE = 2, ENG_WAITS = 4, ENG_EXACT = 8, ENG_EARLY = 16, ENG_IN_ORDER = 32 };
struct eng_touch {
    CUdeviceptr ptr; /* 0: no memory */
    size_t bytes;    /* 0: to the end of its allocation */
    unsigned mode;
};

/* The program's own memory has a key: a device pointer, or a handle. */
#define FOREIGN_IS_BLOCK(key) ((key) >> 63) /* the top bit marks keys of cuMemCreate's blocks: no address is that high */

#endif
