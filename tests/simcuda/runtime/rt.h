/*
 * Inside the simulated CUDA runtime: what its files share.
 *
 * A thin layer: each call makes sure that the calling thread's device is current, then asks the driver. The driver is
 * reached as NVIDIA's runtime reaches it (dlopen of libcuda.so.1, then cuGetProcAddress for each name), so whoever stands in
 * front of the driver sees the same doors used.
 *
 * Threads: any thread may call anything. Per thread: the current device, the last error, the stack of call configurations.
 * Errors: cudaError_t as int (rt_abi.h). Every exported call ends in rt_done or rt_result, which remember the error for
 * cudaGetLastError; inner functions do not.
 */
#ifndef SIMCUDA_RT_H
#define SIMCUDA_RT_H

#include <stdbool.h>

#include "tests/simcuda/runtime/rt_abi.h"

#define RT_EXPORT __attribute__((visibility("default")))
#define RT_VERSION 13000

/* ---- the driver (rt_driver.c) -------------------------------------------------------------------------------------- */

/* Every driver call used, under the symbol whose prototype it has; filled by rt_init, constant afterwards. */
struct rt_driver {
#define RT_CALL(symbol, name, version) __typeof__(symbol) *symbol;
#include "tests/simcuda/runtime/rt_driver.def"
};
extern struct rt_driver rt_drv;

/* Loads and initialises the driver, once. RT_INSUFFICIENT_DRIVER: there is none, or it lacks a call; else what cuInit said. */
int rt_init(void);
/* As rt_init, and makes the thread's device current (its primary context is retained by the first who needs it). */
int rt_use(void);
/* The primary context of a device, retained. */
int rt_context(int device, CUcontext *out);
int rt_device_count(void);      /* after rt_init */
int rt_set_device(int device);  /* for this thread */
int rt_current_device(void);
void rt_forget_contexts(void);  /* after a reset: every thread asks again */
/* True once exit() runs: the driver may be taking itself apart. */
bool rt_exiting(void);

/* ---- errors (rt_error.c) --------------------------------------------------------------------------------------------- */

/* Remembers the error for cudaGetLastError (but not "not ready", which is an answer) and returns it. */
int rt_done(int error);
int rt_result(CUresult r);

/* rt_use, then the driver call, then its error remembered. */
#define RT_DO(call)                                             \
    do {                                                        \
        int used_ = rt_use();                                   \
        return used_ ? rt_done(used_) : rt_result(rt_drv.call); \
    } while (0)

/* ---- modules (rt_module.c) ------------------------------------------------------------------------------------------- */

/* The kernel behind a host function (or behind a cudaKernel_t passed as one); loads its library at first need.
   RT_INVALID_DEVICE_FUNCTION: nobody registered it. */
int rt_kernel(const void *host, CUkernel *out);

#endif
