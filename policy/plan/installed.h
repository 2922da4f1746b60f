/* installed.h: a plan's map of memory: the slot of each allocation of the iteration, and the chunks behind that slot.
 *
 * Invariants: a chunk has one tenant at a time: the lives of two slots with the same chunk in home[] never overlap, but for those of an
 * allocation and its twins, which take turns; alloc_slot[k] is a slot whose fixed_ord is k (or that of the small allocation whose entry it shares).
 *
 * Written by install.c.
 */
#ifndef REMAT_POLICY_INSTALLED_H
#define REMAT_POLICY_INSTALLED_H

#include "policy/driver.h"

#include <stdbool.h>
#include <stdint.h>

struct installed {
    bool done;               /* the plan is installed: the tables below are whole */
    int32_t *alloc_slot;     /* [n_places] fixed slot of each allocation, then of each twin; -1: none */
    int32_t *twin;           /* [n_places] place of a further slot for the same allocation, used in turn (double-buffered batches); -1: none */
    uint32_t n_places;       /* allocations plus twins */
    int32_t **home;          /* [n_places] chunk of each page of the slot by the static map, -1: none; NULL: no slot, or a small one */
    bool lacks_chunks;       /* the static map lacks chunks: steady iterations map memory */
    uint64_t beyond_chunks;  /* lacking chunks that no colouring could have given */
    uint32_t not_in_turn;    /* iterations until buffers handed on (a batch fetched ahead) lie in slots of the static map; these iterations map memory */
    CUdeviceptr *side_scratch; /* [n_operands] scratch address for a replay's side operand, or for one that is read from a copy; 0: none */
    CUdeviceptr *side_saved; /* [n_operands] address of a copy of small in-place state (BatchNorm's running statistics), as the op's latest run found it; 0: not kept */
    int32_t *filled_by;      /* [n_operands] memset op that fills a part of the side operand right before its op, and is done again in the scratch; -1: none */
};

#endif
