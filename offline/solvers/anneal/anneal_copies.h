/* anneal_copies.h: cells that stay on the host for a while, and the clocks of the two copy engines.
 *
 * Threads: the schedule's. Errors: 0 or negative errno. */
#ifndef REMAT_OFFLINE_ANNEAL_COPIES_H
#define REMAT_OFFLINE_ANNEAL_COPIES_H

#include "offline/solvers/anneal/anneal.h"

/* ---- stays on the host ---- */

/* The stay of cell c that ends with its use in slot use. -EINVAL if the event before it leaves no room. After any
 * change that sets copies.dirty, anneal_retime must run before the profile is looked at. */
int anneal_copy_add(struct anneal *a, int32_t c, int32_t use, struct anneal_wait wait);
/* May a stay of cell c be fetched in this slot: the cell is there before it, and its next use after it. */
int anneal_copy_may_put(const struct anneal *a, int32_t c, int32_t fetch);
/* Put back a stay that anneal_copy_remove took away, with the fetch slot that it had. */
int anneal_copy_put(struct anneal *a, int32_t c, int32_t fetch, struct anneal_wait wait);
void anneal_copy_remove(struct anneal *a, int32_t k);
int32_t anneal_copy_find(const struct anneal *a, int32_t c, int32_t use); /* -1: none ends with that use */
/* Time all copies anew. -EBUSY and no change at all if one of them cannot be done with the waits that it pays for. */
int anneal_retime(struct anneal *a);
/* Put the fetches back to where they were before the last anneal_retime, for somebody who takes back the changes made before it:
 * a use that is put back must find the fetch on the side of it where it was. Then anneal_retime must run again. */
void anneal_retime_back(struct anneal *a);
/* Read the compute clock off the slots, then retime; stays that cannot be timed any more wait on both sides if they may
 * (copies.may_wait), or go, one by one. */
int anneal_clock(struct anneal *a);
/* Where nothing stands still for any stay, none is waited for from now on: a copy that a later change makes late holds memory for longer instead. */
int anneal_copies_hide(struct anneal *a);
void anneal_copies_free(struct anneal *a);

#endif
