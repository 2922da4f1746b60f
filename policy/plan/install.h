/* install.h: the map of memory of a plan: a slot for every allocation, chunks for every slot, scratch for replays.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_INSTALL_H
#define REMAT_POLICY_INSTALL_H

#include "policy/plan/cursor.h"

/* Slots for all allocations, chunks by interval colouring, mapped. The number of chunks that the static map
 * lacks (0: a steady iteration makes no memory call), or a negative errno. */
int install_plan(struct device *d);
/* Pages that had to take another chunk get theirs again. */
void install_repair(struct device *d);
void install_drop(struct device *d);
/* A record is whole: room to say where its side operands go; until install_clear(). 0 or -ENOMEM. */
int install_index(struct device *d);
void install_clear(struct device *d);
/* Scratch for the side operands of replays, as the record needs it. 0 or -ENOMEM. */
int install_scratch(struct device *d);
/* The record is about to be forgotten, and nothing of it is replayed any more: the region for large side operands (cuBLAS's workspace) is given back. */
void install_give_scratch(struct device *d);
/* Pages that the map of any plan takes beside what the record tells the planner. Where an allocation is made while the buffer that the
 * iteration before made there is still in memory, each of them needs a slot of its own, and both slots are the iteration's from end to end,
 * since they take turns. And the entries of small allocations, which are theirs alone, may want more arena pages than there are; where a
 * plan is still to be made one page more is left for them, since some live longer in a plan, and what is free lies in pieces (without it every
 * third first plan lacked one chunk). A plan that is given (`--plan`) is held against what there is. */
uint64_t install_pages_beside(struct device *d);

#endif
