/* installed.h: the map of memory of a plan: which slot each allocation of the iteration gets, and which chunks lie behind that.
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
    bool done;               /* the tables are there */
    int32_t *alloc_slot;     /* [n_places] fixed slot of each allocation, -1 none; then of twins */
    int32_t *twin;           /* [n_places] second slot for allocation k, used in turn (double-buffered batches): its place; -1 none */
    uint32_t n_places;       /* n_allocs and the twins */
    int32_t **home;          /* [n_places] chunk of each page by the static map, -1 none; NULL for small ones */
    bool lacks_chunks;       /* the static map does: steady iterations map memory */
    uint64_t beyond_chunks;  /* of these, what no colouring could have given */
    uint32_t not_in_turn;    /* iterations until what is handed on lies in slots of the static map: those before map memory */
    CUdeviceptr *side_scratch; /* [n_operands] where a replay's side operand goes, or one that is read from a copy; 0 elsewhere */
    CUdeviceptr *side_saved; /* [n_operands] small in-place state as the op found it when it ran last; 0: not kept */
    int32_t *filled_by;      /* [n_operands] the memset of a part of a side operand right before its op: done again in the scratch; -1: there is none */
};

#endif
