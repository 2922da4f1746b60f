/* engine_turn.h: what every op and allocation goes through: the campaign's turn before it, the wait with the mutex free, and the op itself.
 *
 * Threads: under engine_lock(), which some of these release for a while. Errors: *_drv return the driver's code.
 */
#ifndef REMAT_POLICY_ENGINE_TURN_H
#define REMAT_POLICY_ENGINE_TURN_H

#include "policy/engine_state.h"

struct rt_op;

/* Before an op is built: the campaign's turn, which may release the mutex for a while. */
void engine_turn(struct device *d);
/* Ends the putting off that fence_put_off() (memory/fence.h) began; rc: the result of the work in between. True: a wait was in the work's way, and the
 * host has waited, with the mutex free meanwhile: the caller begins again. */
bool engine_begins_again(struct device *d, int rc);
/* Brings all that a built op touches into memory, if nothing else has to come before the op. True: the host had to wait, and the mutex was
 * free meanwhile; the op must be built again. */
bool engine_waited(struct device *d, struct rt_op *op);
/* The op runs, whatever the mode. */
int engine_op_drv(struct device *d, struct rt_op *op);
/* True: p lies in the reservation, and the bytes in no single live slot. The driver, which knows the reservation alone, would report such an
 * access too late. */
bool engine_nobodys(struct device *d, CUdeviceptr p, uint64_t bytes);

#endif
