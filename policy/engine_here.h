/* engine_here.h: the device that the calling thread is on: set up by the first call that needs it, ended with its context, begun anew in the next one.
 *
 * Threads: under engine_lock(). Errors: NULL: remat stands aside.
 */
#ifndef REMAT_POLICY_ENGINE_HERE_H
#define REMAT_POLICY_ENGINE_HERE_H

#include "policy/engine_state.h"

/* The device of the calling thread's context, set up; NULL where remat stands aside. */
struct device *engine_here_asked(void);
/* This thread has had a context on the only device there is: any later context is on that device too, so the driver is not asked again. */
extern _Thread_local bool engine_here_is_only __attribute__((visibility("hidden"), tls_model("initial-exec")));
static inline struct device *engine_here(void)
{
    if (engine_here_is_only && process.dev[0]->ready && !process.dev[0]->gone)
        return process.dev[0]; /* nearly always */
    return engine_here_asked();
}
/* The device of the stream's context; for a default stream the calling thread's device. */
struct device *engine_of_stream(CUstream stream);
/* After engine_here() has answered NULL: the device could not be set up, and therefore may allocate nothing. */
bool engine_barred_here(void);
/* Of a device that has ended: memory that belongs to no context goes back to the driver. d->ready: that is yet to be done. */
void engine_end_here(struct device *d);

#endif
