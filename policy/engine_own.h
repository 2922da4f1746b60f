/* engine_own.h: the process, for the files that answer the doors: life.c, engine.c, allocations.c, reach.c, answers.c, and no other.
 *
 * Threads: everything under engine_lock(), but for engine_holder(). Errors: none.
 */
#ifndef REMAT_POLICY_ENGINE_OWN_H
#define REMAT_POLICY_ENGINE_OWN_H

#include "policy/device.h"
#include "policy/engine.h"

#include <pthread.h>

/* Devices are set up by the first call that needs one, and stay. */
enum { MAX_DEVICES = 64 };
struct process {
    const struct drv *drv;
    struct config cfg;
    struct status_page *status;
    struct device *dev[MAX_DEVICES]; /* in the order in which they were first used; [0] is the one that traces and reports */
    unsigned n_dev;
    int n_visible;         /* devices that the driver shows */
    atomic_bool started;   /* eng_start() has been called */
    bool blocking_streams; /* see stream_acts() */
    bool contexts;         /* the program has made contexts of its own: one that is current may not be its device's (engine_elsewhere) */
    bool finished;         /* eng_finish has been called: the driver may go any moment */
};
extern struct process process;

extern pthread_mutex_t engine_mutex;
static inline void engine_lock(void)
{
    pthread_mutex_lock(&engine_mutex);
    eng_stack_used = ENG_STACK_MUCH;
}
static inline void engine_unlock(void) { pthread_mutex_unlock(&engine_mutex); }

/* life.c: for the first call on a device. 0, or a negative errno: remat stands aside there. */
int engine_set_up(struct device *d);
/* life.c: of a device that has ended: what is no context's goes back to the driver. `ready` says that it has yet to. */
void engine_end(struct device *d);
/* life.c: a device that has ended begins anew, in the context that is current: what its statistics, its group and the program's own blocks
 * were stays. NULL: no memory. It is to be set up. */
struct device *engine_begin_anew(struct device *d);
/* allocations.c: nothing of it is held from a pool any more. */
void engine_pools_end(struct device *d);
/* The device of the calling thread's context, set up; NULL where remat stands aside. */
struct device *engine_here(void);
/* After that: the device could not be set up, and may give nothing because of that. */
bool engine_barred_here(void);
/* Before an op is built: the campaign's turn. It may release the mutex for a while. */
void engine_turn(struct device *d);
/* After fence_put_off() (memory/fence.h) and something that answered rc: ends the putting off. True: a wait was in its way, and the host has
 * waited, with the mutex free meanwhile: the caller begins again. */
bool engine_begins_again(struct device *d, int rc);
/* What a built op touches is brought into memory, if nothing but that is to come before it. True: the host had to wait, and the mutex was
 * free meanwhile; the op must be built again. */
struct rt_op;
bool engine_waited(struct device *d, struct rt_op *op);
/* reach.c: a launch is given memory that the host writes, or addresses that are no operands: what these, and those there, point at stays in
 * memory from now on. A refusal is the launch's answer. */
int engine_follow_drv(struct device *d, const struct rt_op *op);
/* The op runs, whatever the mode. */
int engine_op_drv(struct device *d, struct rt_op *op);
/* Addresses of ours that nobody holds now, or that reach beyond what is held: the driver, which knows the reservation, would only say so
 * when it is too late. */
bool engine_nobodys(struct device *d, CUdeviceptr p, uint64_t bytes);
/* The context that is current is not the one in which the device was set up: our streams and events are not of it, and its legacy stream
 * is another one. */
bool engine_elsewhere(struct device *d);
/* The device's own context is current until engine_return(). */
struct engine_visit {
    CUcontext before;
    bool away;
};
struct engine_visit engine_visit(struct device *d);
void engine_return(struct engine_visit v);
/* reach.c: where another device holds this memory it stays in memory from now on: what is queued here is not in its fences. */
int engine_keep_others_drv(struct device *d, CUdeviceptr ptr, bool writes);
/* reach.c: the host can look there: no memory of a device, or managed. Device memory may be given where a call is named for host memory, and
 * the other way round. */
bool engine_host_reads(CUdeviceptr at);
/* reach.c: a fill or a copy is about to write at `at`, in a buffer that we know or not. */
void engine_writes_unknown(struct device *d, CUdeviceptr at);
/* reach.c: everything that is live stays in memory from now on. */
int engine_pin_all_drv(struct device *d);
/* reach.c: memory just allocated stays in memory where an address that was copied to the device earlier points into it. */
int engine_reached_drv(struct device *d, struct slot *s);
/* The device whose managed memory holds the address, or NULL. The reservations never move: no lock is needed. */
struct device *engine_holder(CUdeviceptr ptr);
/* query.c: 1 where it is answered here. */
int eng_query_attribute(struct device *d, void *data, CUpointer_attribute attr, CUdeviceptr ptr, const struct slot *s, CUresult *res);

#endif
