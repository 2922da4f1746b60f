/* reserve.h: what of a limit no plan can use. One rule for both sides: `remat plan` takes it off the limit that it is given, `remat run` keeps it.
 *
 *     limit  >=  use + reserve       at every instant
 *     use      of the buffers that may move (no `fixed` in the trace), each in whole pages of meta.page_bytes
 *     reserve  meta.reserve_bytes: what the process holds beside them, in pages: memory of the program's own and of remat's, pages of small
 *              tensors, tensors that never move, scratch for replays, second places for tensors that two iterations hold at once
 *
 * A trace that tells neither was recorded elsewhere: nothing is rounded, and what its `fixed` buffers take at once is kept.
 */
#ifndef REMAT_TRACER_RESERVE_H
#define REMAT_TRACER_RESERVE_H

#include <stdint.h>

/* What a buffer takes of a limit; page_bytes 0 or 1: no pages are known. */
static inline uint64_t reserve_rounded_bytes(uint64_t bytes, uint64_t page_bytes)
{
    return page_bytes > 1 ? (bytes + page_bytes - 1) / page_bytes * page_bytes : bytes;
}

/* What a plan may use under a limit; 0: nothing. */
static inline uint64_t reserve_budget_bytes(uint64_t limit_bytes, uint64_t reserve_bytes)
{
    return limit_bytes > reserve_bytes ? limit_bytes - reserve_bytes : 0;
}

/* The `remat run --limit` under which a plan of this use can be followed. */
static inline uint64_t reserve_limit_bytes(uint64_t use_bytes, uint64_t reserve_bytes) { return use_bytes + reserve_bytes; }

#endif
