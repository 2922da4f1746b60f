/* anneal_copies.h: cells that stay on the host for a while, and the clocks of the two copy engines.
 *
 * Threads: the schedule's. Errors: 0 or negative errno. */
#ifndef REMAT_OFFLINE_ANNEAL_COPIES_H
#define REMAT_OFFLINE_ANNEAL_COPIES_H

#include "offline/solvers/anneal/anneal.h"

/* ---- stays on the host ---- */

/* Add the stay of cell c that ends with its use in slot `use`. -EINVAL if the cell's event before this use leaves no room. After
 * any change that sets copies.dirty, anneal_retime must run before the profile is looked at. */
int anneal_copy_add(struct anneal *a, int32_t c, int32_t use, struct anneal_wait wait);
/* May a stay of cell c be fetched in slot `fetch`: the cell was made or used before this slot, and is used next after it. */
int anneal_copy_may_put(const struct anneal *a, int32_t c, int32_t fetch);
/* Put back a stay that anneal_copy_remove took away, with its old fetch slot. */
int anneal_copy_put(struct anneal *a, int32_t c, int32_t fetch, struct anneal_wait wait);
void anneal_copy_remove(struct anneal *a, int32_t k);
int32_t anneal_copy_find(const struct anneal *a, int32_t c, int32_t use); /* index of the stay that ends with this use; -1: none */
/* Time all copies anew. -EBUSY and no change at all if one copy cannot be done with the waits that its stay pays for. */
int anneal_retime(struct anneal *a);
/* Undo the fetch moves of the last anneal_retime, for a caller that takes back the changes made before it: a use that
 * is put back must find the fetch on its old side. After the changes are taken back, anneal_retime must run again. */
void anneal_retime_back(struct anneal *a);
/* Read the compute clock off the slots, then retime. Stays that cannot be timed any more are made to wait on both sides
 * (if copies.may_wait), or removed, one by one. */
int anneal_clock(struct anneal *a);
/* If the computation stands still for no stay, clear the waits of all: a copy that a later change makes late then holds memory for longer instead. */
int anneal_copies_hide(struct anneal *a);
void anneal_copies_free(struct anneal *a);

#endif
