/* install.h: the map of memory of a plan: a slot for every allocation, chunks for every slot, scratch for replays.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_INSTALL_H
#define REMAT_POLICY_INSTALL_H

#include "policy/plan/cursor.h"

/* Gives all allocations slots, and the slots chunks by interval colouring, and maps them. Returns the number of chunks that the static map
 * lacks (0: a steady iteration makes no memory call), or a negative errno. */
int install_plan(struct device *d);
/* Pages that had to take another chunk get the chunk of the static map again. */
void install_repair(struct device *d);
void install_drop(struct device *d);
/* Makes the tables for the side operands of a record that is whole; they last until install_clear(). 0 or -ENOMEM. */
int install_index(struct device *d);
void install_clear(struct device *d);
/* Scratch for the side operands of replays, as the record needs it. 0 or -ENOMEM. */
int install_scratch(struct device *d);
/* Gives back the region for large side operands (cuBLAS's workspace): the record is about to be forgotten, and no op of it is replayed any more. */
void install_give_scratch(struct device *d);
/* Pages that the map of any plan takes beside those that the record tells the planner. An allocation that is made while its buffer of the
 * iteration before is still in memory needs two slots, and both take memory in the whole iteration, since they take turns. Small
 * allocations have arena entries of their own, which may need more arena pages than there are. Where a plan is still to be made one page more
 * is left for them, since some entries live longer under a plan and free units lie in pieces (without that page every third first plan lacked
 * one chunk); a plan given with `--plan` gets no such page. */
uint64_t install_pages_beside(struct device *d);

#endif
