/* capture_mode.h: the thread's capture mode: which calls a stream capture forbids it. A capture of the mode `global` (torch.cuda.graph's) forbids every thread of
 * the process the calls that the driver calls unsafe (cuMemAlloc, cuEventQuery, synchronous copies..), on any device; a `thread local` one forbids them to its own
 * thread alone. A forbidden call is refused, and the capture is invalid from then on. Each thread has a mode of its own, which says which of these rules it
 * heeds; the program's mode is the one that the program set, `global` at first.
 *
 * Remat's own calls beside a capture (copies of evicted buffers, waits for events) put nothing into a captured stream. The thread's mode is therefore
 * `relaxed` while the engine's mutex is held with a capture under way: none of remat's calls is refused, and none invalidates the capture. The
 * program's own calls are made in the program's mode, and are refused as without remat.
 *
 * Threads: any; the state is the thread's. Errors: none: a driver without cuThreadExchangeStreamCaptureMode (before CUDA 10.1) has no modes.
 */
#ifndef REMAT_POLICY_CAPTURE_MODE_H
#define REMAT_POLICY_CAPTURE_MODE_H

#include "policy/driver.h"

struct capture_mode {
    bool ours;                    /* the thread's mode is `relaxed`, set by capture_mode_ours() */
    CUstreamCaptureMode programs; /* the program's mode, to set again */
};
extern _Thread_local struct capture_mode capture_mode __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Driver calls of remat's own follow; driver calls of the program's follow. Neither does anything where the mode is right already. */
void capture_mode_ours(const struct drv *drv);
void capture_mode_programs(const struct drv *drv);

/* A call of the program's among remat's own. */
static inline bool capture_mode_call_begins(const struct drv *drv)
{
    const bool ours = capture_mode.ours;
    if (__builtin_expect(ours, false))
        capture_mode_programs(drv);
    return ours;
}
static inline void capture_mode_call_ended(const struct drv *drv, bool ours)
{
    if (__builtin_expect(ours, false))
        capture_mode_ours(drv);
}

/* The driver refused the call because of a capture: nothing of the device is broken. */
static inline bool capture_mode_refused(CUresult r) { return r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD; }

#endif
