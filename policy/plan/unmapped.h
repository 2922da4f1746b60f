/* unmapped.h: `--rehearse unmapped`: until a plan is in force, evicted memory is unmapped as well, and every op is awaited.
 *
 * Otherwise an evicted tensor's address keeps an old mapping (memory/slot.c), and a kernel that reads it in a way which no argument
 * shows gets another tensor's data. Here it faults, as the driver knows it: the context is lost. The kernel is named, and the program
 * gets the driver's own code from that launch on. Slow: for finding out, not for training.
 *
 * Threads: under the engine's mutex. Errors: the driver's code.
 */
#ifndef REMAT_POLICY_UNMAPPED_H
#define REMAT_POLICY_UNMAPPED_H

#include "policy/op/op.h"

/* Evicted memory is unmapped now. */
static inline bool unmapped_on(const struct device *d) { return d->cfg->rehearse_unmapped && d->mode != MODE_ENFORCE; }
/* Waits for op `name`, issued on `stream`. CUDA_SUCCESS, or the driver's error. */
int unmapped_look_drv(struct device *d, const char *name, CUstream stream);

#endif
