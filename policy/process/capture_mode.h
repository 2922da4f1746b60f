/* capture_mode.h: whose calls a stream capture forbids. A capture of the mode `global` (torch.cuda.graph has that) forbids every thread of the process the
 * calls that the driver calls unsafe (cuMemAlloc, cuEventQuery, synchronous copies..), on whichever device; `thread local` forbids them its own
 * thread. Who makes one is refused, and the capture is invalid from then on. Each thread has a mode of its own, which says how much of that it
 * heeds; the program's is what it set, `global` at first.
 *
 * What remat does beside a capture (copies of what is evicted, waits for events) is its own affair: nothing of it is put into a captured stream. So
 * while the engine's mutex is held with a capture under way the thread's mode is `relaxed`, and none of our calls is refused or does any harm. The
 * program's own calls are made in the program's mode, and are refused as without remat.
 *
 * Threads: any; the state is the thread's. Errors: none: a driver without cuThreadExchangeStreamCaptureMode (before CUDA 10.1) has no modes.
 */
#ifndef REMAT_POLICY_CAPTURE_MODE_H
#define REMAT_POLICY_CAPTURE_MODE_H

#include "policy/driver.h"

struct capture_mode {
    bool ours;                    /* the thread's mode is `relaxed`, by capture_mode_ours() */
    CUstreamCaptureMode programs; /* and was this */
};
extern _Thread_local struct capture_mode capture_mode __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Our calls from here on, the program's again from there on. Each does nothing where the mode is that already. */
void capture_mode_ours(const struct drv *drv);
void capture_mode_programs(const struct drv *drv);

/* A call of the program's in the midst of ours. */
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

/* What the driver answers where it is a capture that forbids a call: nothing of the device is broken by that. */
static inline bool capture_mode_refused(CUresult r) { return r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD; }

#endif
