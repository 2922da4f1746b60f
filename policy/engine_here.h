/* engine_here.h: the device that the calling thread is on: set up by the first call that needs it, ended with its context, begun anew in the next one.
 *
 * Threads: under engine_lock(). Errors: NULL: remat stands aside.
 */
#ifndef REMAT_POLICY_ENGINE_HERE_H
#define REMAT_POLICY_ENGINE_HERE_H

#include "policy/engine_state.h"

/* The device of the calling thread's context, set up; NULL where remat stands aside. */
struct device *engine_here_asked(void);
/* This thread has had a context on the only device there is: it is not asked about again, for whatever context it has later is on that device. */
extern _Thread_local bool engine_here_is_only __attribute__((visibility("hidden"), tls_model("initial-exec")));
static inline struct device *engine_here(void)
{
    if (engine_here_is_only && process.dev[0]->ready && !process.dev[0]->gone)
        return process.dev[0]; /* nearly always */
    return engine_here_asked();
}
/* The device of the context that the stream is of; for a default stream the calling thread's. */
struct device *engine_of_stream(CUstream stream);
/* After that: the device could not be set up, and may give nothing because of that. */
bool engine_barred_here(void);
/* Of a device that has ended: what is no context's goes back to the driver. `ready` says that it has yet to. */
void engine_end_here(struct device *d);

#endif
