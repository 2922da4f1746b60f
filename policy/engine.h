/* engine.h: the runtime behind the doors. `preload` translates a driver call into one of these calls; the engine
 * answers it in full, makes the real driver calls itself, and returns what the program is to see.
 *
 * Threads: any thread may call; one mutex per process is held inside (uncontended in ordinary training). No engine
 * function calls back into a hook: it only uses the table of eng_start().
 * Errors: functions of type `int` return the driver's result code for the program (0: CUDA_SUCCESS), because what they
 * answer is a driver call. Where the engine itself fails it turns pass-through (eng_active() becomes false), says so
 * once on stderr, and every later call goes to the driver.
 * Streams: the doors hand over explicit handles: CU_STREAM_LEGACY (0x1) or CU_STREAM_PER_THREAD (0x2) for a NULL
 * stream, by the variant that was called.
 */
#ifndef REMAT_POLICY_ENGINE_H
#define REMAT_POLICY_ENGINE_H

#include "policy/call.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- life ---------------------------------------------------------------------------------------------- */

/* From the library's constructor: what the environment says now binds later. No allocation. */
void eng_loaded(void);
/* From the library's destructor, where nothing has asked for eng_start(): whoever asked for a trace is told that there is none, once in a run, by
 * the process that `remat` became. Not where one that it started has written it. */
void eng_unused(void);
/* True where the system may have set maxima for this user: then REMAT_DISABLE is eng_start()'s to judge. One system call at most, no
 * lock, no allocation: dlsym asks. */
bool eng_may_hold(void);
/* Reads the configuration (environment set by `remat run`, see policy/process/config.h) and keeps `d` (which must outlive the
 * process). Called once by the doors, after cuInit has succeeded for the first time. 0, or a negative errno: then the
 * doors pass everything through. */
int eng_start(const struct drv *d);

/* False: the door must forward the call untouched. About two loads. */
bool eng_active(void);

/* What the calls of this thread have left on the stack below their door since the door set this to LITTLE: the driver's own call, and a few frames
 * around it, or everything from searches to files. */
enum eng_stack { ENG_STACK_LITTLE, ENG_STACK_MUCH };
extern _Thread_local enum eng_stack eng_stack_used __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* Whether that matters: false as long as no iteration can be learnt, since memory has never been short and no trace is asked for. */
extern atomic_bool eng_stack_matters __attribute__((visibility("hidden")));

/* The process is about to exit (destructor / atexit): writes the statistics, stops helper threads. Idempotent. */
void eng_finish(void);

/* The same before _exit(), which a signal handler may call: the statistics alone, without a lock or an allocation. */
void eng_finish_now(void);

/* In the child of a fork: the child passes everything through; touches no driver state. */
void eng_after_fork_child(void);

/* ---- stream-ordered memory: managed ------------------------------------------------------------------------ */

/* cuMemAllocAsync (pool NULL) and cuMemAllocFromPoolAsync. `pool_dev`: the device that the pool lies on, -1: unknown, or none is named;
 * it matters where eng_has_devices() is true. */
int eng_alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, int pool_dev, CUstream stream);
bool eng_has_devices(void);
/* cuMemFreeAsync. Memory that is not managed goes to the driver. */
int eng_free_async(CUdeviceptr ptr, CUstream stream);

/* cuMemPoolGetAttribute / SetAttribute / TrimTo for managed memory. Return 1 when answered (result in *res), 0 when
 * the door must ask the driver. */
int eng_pool_get(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res);
int eng_pool_set(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res);
int eng_pool_trim(CUmemoryPool pool, size_t keep_bytes, int *res);
/* A pool of the program's own; most_bytes: what it may hold, 0: no maximum. */
void eng_pool_made(CUmemoryPool pool, size_t most_bytes);
void eng_pool_destroyed(CUmemoryPool pool);
/* The program chose other pools for allocations that name none. */
void eng_pool_chosen(void);

/* ---- all other device memory: counted against the limit, never evicted ---------------------------------------- */

/* Makes room for `bytes` (evicting managed memory if needed) and counts them. 0, or CUDA_ERROR_OUT_OF_MEMORY after one
 * explaining line. After a success call exactly one of commit (the driver call succeeded) or cancel. */
enum { ENG_HERE = -1 }; /* for `dev`: the device of the current context; so too where nothing is known of the one that is named */
int eng_foreign_reserve(int dev, size_t bytes);
/* `key`: a device pointer (is_range: the bytes at it are addressable there: cuMemAlloc, managed) or any handle
 * (cuMemCreate handle, array). */
void eng_foreign_commit(int dev, uint64_t key, size_t bytes, bool is_range);
void eng_foreign_cancel(int dev, size_t bytes);
/* The program gave `key` back; unknown keys are ignored. */
void eng_foreign_free(uint64_t key);
/* cuMemFree_v2: frees managed memory (synchronises, as the driver does) or a counted range. */
int eng_free(CUdeviceptr ptr);

/* ---- work ----------------------------------------------------------------------------------------------------- */

int eng_launch(const struct eng_kernel *k);

int eng_memset(const struct eng_memset *m);

int eng_copy(const struct eng_copy *c);
/* Before a call by which the driver keeps the host until `stream` has come to it: a copy that is synchronous, or that goes to host memory
 * which is not pinned (dst_host; NULL: it does not go to the host). The host waits here, with the mutex free: what the stream waits for
 * may be another thread's next call. */
void eng_before_host_copy(CUstream stream, const void *dst_host, bool sync);
/* cuMemcpy, cuMemcpyAsync (unified addresses): tells whether ptr is device memory. Managed and counted ranges are known
 * without asking the driver. */
bool eng_is_device_pointer(CUdeviceptr ptr);
/* The address lies where managed memory is, or will be: nobody's mappings but ours. */
bool eng_is_managed(CUdeviceptr ptr);
/* These bytes of host memory are about to be written at dst by a call that is no eng_copy(): addresses among them keep what they point at
 * in memory. As for eng_pin(), a refusal is the door's answer. */
int eng_note_host_data(CUdeviceptr dst, const void *src, size_t bytes);

/* Any other call that touches device memory (2D/3D copies, stream memory operations, graph launches, host functions,
 * collectives). The engine makes what it touches resident, calls issue(ctx), and records an op that is never
 * replayed. `touch` may be empty. */
int eng_other(const char *name, CUstream stream, struct eng_touch *touch, unsigned n_touch, int (*issue)(void *ctx), void *ctx);

/* ---- questions: answered as they would be without remat ---------------------------------------------------- */

int eng_mem_info(size_t *free_bytes, size_t *total_bytes);
/* A device's memory as this process may know it. In: what the machine says of total and free. */
enum { ENG_DEVICE_UNKNOWN = -2 }; /* no context yet: any device, by what was asked for */
struct eng_memory {
    uint64_t total_bytes, free_bytes;
    uint64_t held_bytes; /* out, where is_set_up: by the program, evicted tensors included */
    bool is_set_up;
};
/* False: the machine's own answer stands. The engine need not be active. */
bool eng_device_memory(int dev, struct eng_memory *m);
/* 1: answered, result code in *res; 0: not managed, ask the driver. */
int eng_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr, int *res);
int eng_pointer_attribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr, int *res);

/* ---- notes from the doors -------------------------------------------------------------------------------------- */

/* `k` came from cuLibraryGetKernel or its kin: parameter questions go to cuKernelGetParamInfo. */
void eng_note_kernel(CUkernel k);
/* A module or library was unloaded: handles may be reused for other functions. */
void eng_note_unload(void);
/* Before cuModuleUnload of `module`, or cuLibraryUnload of `library` (the other one is NULL): what remat could make again only with its
 * kernels is made now. */
void eng_before_unload(CUmodule module, CUlibrary library);
/* Memory that something outside our sight may use from now on (IPC, export, peer access, textures, NCCL
 * buffers): made resident and never evicted again. `bytes` 0: the whole allocation. Where no room can be made for it, the
 * driver's out-of-memory code: the door must give that answer and not make its call. */
int eng_pin(CUdeviceptr ptr, size_t bytes, const char *why);
/* The program has pinned or registered host memory, or been given managed memory: kernels may find addresses there, which the host writes
 * without a call. eng_forget_in_place(): it is about to go; its bytes, 0: it was not known. */
void eng_note_in_place(CUdeviceptr p, size_t bytes);
size_t eng_forget_in_place(CUdeviceptr p);
/* A tensor map was made at `map` for the memory at ptr; `shape` (NULL: unknown) is one for another place that is like it in all else.
 * A launch that is given a copy of it uses that memory from then on. Where the map lies in memory that a device can read, or cannot
 * be remembered, the memory is pinned instead: as for eng_pin(). */
int eng_note_tensor_map(const CUtensorMap *map, CUdeviceptr ptr, const CUtensorMap *shape);
/* The place that a map was noted for; 0: it is not known. */
CUdeviceptr eng_tensor_map_at(const CUtensorMap *map);
/* A stream was created with these flags. */
void eng_note_stream(unsigned flags);
/* Before cuStreamDestroy of `stream`. */
void eng_stream_destroyed(CUstream stream);
/* Everything live becomes unevictable. As for eng_pin(), a refusal is the door's answer. */
int eng_pin_everything(void);
/* Before cuStreamBeginCapture: the same, since the graph may run at any time; and nothing moves until the capture ends. */
int eng_capture_begins(CUstream stream);
void eng_capture_ends(CUstream stream);
/* What is queued there now becomes a part of a graph. */
bool eng_is_captured(CUstream stream);
/* After a graph was launched or uploaded: the memory of its allocation nodes may have been made now, and counts. */
void eng_graph_issued(void);
/* The program makes a context of its own: there may be several on a device from now on. */
void eng_note_context(CUcontext ctx, CUdevice dev);
/* This context is about to be destroyed, and has been destroyed (primary context reset or last release, context destroy). A device that
 * was set up in it, and has no other, ends, and begins anew with the next one. */
void eng_context_ends(CUcontext ctx);
void eng_context_gone(CUcontext ctx, bool was_primary);

#endif
