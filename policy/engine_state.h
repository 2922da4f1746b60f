/* engine_state.h: the process, for the files that answer the doors: its devices, the mutex, and in which context a thread is.
 *
 * Threads: everything under engine_lock(), but for engine_holder(). Errors: none.
 */
#ifndef REMAT_POLICY_ENGINE_STATE_H
#define REMAT_POLICY_ENGINE_STATE_H

#include "policy/active.h"
#include "policy/current.h"
#include "policy/device.h"
#include "policy/learn/call_site.h"
#include "policy/process/capture_mode.h"
#include "tracer/loader.h"

#include <stdatomic.h>

struct capture;
struct context;
struct pool;

/* Devices are set up by the first call that needs one, and stay. */
enum { MAX_DEVICES = 64 };
struct process {
    const struct drv *drv;
    struct config cfg;
    struct status_page *status;
    struct device *dev[MAX_DEVICES]; /* in the order of first use; [0] traces and reports */
    unsigned n_dev;
    int n_visible;         /* devices that the driver shows */
    atomic_bool started;   /* eng_start() has been called */
    bool unconfined;       /* see eng_unconfined(), reach.h */
    const char *stays;     /* why memory stays where it is, see stays.h; NULL: memory may move */
    bool blocking_streams; /* see stream_acts() */
    bool finished;         /* eng_finish has been called: the driver may go any moment */
    struct capture *captures; /* captures under way (capture.c) */
    uint32_t n_captures, cap_captures;
    bool context_ended;    /* some context has ended: host memory that was pinned in it is pinned no more, though no call said so */
    unsigned endings;      /* calls under way that may end a context: the helper threads of groups keep out of it */
    struct context *own_contexts; /* contexts of the program's making (engine.c) */
    struct pool *pools;    /* pools used or asked about so far (engine_pools.c) */
    uint32_t n_pools, cap_pools;
};
extern struct process process;

extern pthread_mutex_t engine_mutex;
static inline void engine_lock(void)
{
    loader_lock(&engine_mutex);
    if (__builtin_expect(process.n_captures != 0, false))
        capture_mode_ours(process.drv);
    eng_stack_used = ENG_STACK_MUCH;
}
/* Asks the loader, with the mutex free, for the call site of an op that a call has learnt (learn/call_site.h). */
void engine_name_call_site(void);
static inline void engine_unlock(void)
{
    if (__builtin_expect(capture_mode.ours, false))
        capture_mode_programs(process.drv);
    loader_unlock(&engine_mutex);
    if (__builtin_expect(call_site_is_owed(), false))
        engine_name_call_site();
}

/* The current context is not the one in which the device was set up: remat's streams and events are not of the current one, whose legacy stream
 * is another one too. */
static inline bool engine_elsewhere(const struct device *d)
{
    CUcontext here = NULL;
    return current_context(process.drv, &here) && here && here != d->ctx; /* without one the driver refuses the call */
}
/* The device's own context is current until engine_return(). */
struct engine_visit {
    CUcontext before;
    bool away;
};
struct engine_visit engine_visit(struct device *d);
void engine_return(struct engine_visit v);
/* The stream takes part in a capture, or the driver does not say. */
bool engine_is_captured(CUstream stream);
/* The device whose managed memory holds the address, or NULL. The reservations never move: no lock is needed. */
struct device *engine_holder(CUdeviceptr ptr);

#endif
