/* engine_turn.h: what every op and allocation goes through: the campaign's turn before it, the wait with the mutex free, and the op itself.
 *
 * Threads: under engine_lock(), which some of these release for a while. Errors: *_drv return the driver's code.
 */
#ifndef REMAT_POLICY_ENGINE_TURN_H
#define REMAT_POLICY_ENGINE_TURN_H

#include "policy/engine_state.h"

struct rt_op;

/* Before an op is built: the campaign's turn. It may release the mutex for a while. */
void engine_turn(struct device *d);
/* After fence_put_off() (memory/fence.h) and something that answered rc: ends the putting off. True: a wait was in its way, and the host has
 * waited, with the mutex free meanwhile: the caller begins again. */
bool engine_begins_again(struct device *d, int rc);
/* What a built op touches is brought into memory, if nothing but that is to come before it. True: the host had to wait, and the mutex was
 * free meanwhile; the op must be built again. */
bool engine_waited(struct device *d, struct rt_op *op);
/* The op runs, whatever the mode. */
int engine_op_drv(struct device *d, struct rt_op *op);
/* Addresses of ours that nobody holds now, or that reach beyond what is held: the driver, which knows the reservation, would only say so
 * when it is too late. */
bool engine_nobodys(struct device *d, CUdeviceptr p, uint64_t bytes);

#endif
