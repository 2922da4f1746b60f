/* engine_own.h: the process, for the files that answer the doors: engine.c, answers.c, and no other.
 *
 * Threads: everything under engine_lock(), but for engine_holder(). Errors: none.
 */
#ifndef REMAT_POLICY_ENGINE_OWN_H
#define REMAT_POLICY_ENGINE_OWN_H

#include "policy/device.h"

/* Devices are set up by the first call that needs one, and stay. */
enum { MAX_DEVICES = 64 };
struct process {
    const struct drv *drv;
    struct config cfg;
    struct status_page *status;
    struct device *dev[MAX_DEVICES]; /* in the order in which they were first used; [0] is the one that traces and reports */
    unsigned n_dev;
    int n_visible;         /* devices that the driver shows */
    bool started;          /* eng_start() has been called */
    bool blocking_streams; /* see stream_acts() */
    bool finished;         /* eng_finish has been called: the driver may go any moment */
};
extern struct process process;

void engine_lock(void);
void engine_unlock(void);
/* The device of the calling thread's context, set up; NULL where remat stands aside. */
struct device *engine_here(void);
/* The device whose managed memory holds the address, or NULL. The reservations never move: no lock is needed. */
struct device *engine_holder(CUdeviceptr ptr);
/* query.c: 1 where it is answered here. */
int eng_query_attribute(struct device *d, void *data, CUpointer_attribute attr, CUdeviceptr ptr, const struct slot *s, CUresult *res);

#endif
