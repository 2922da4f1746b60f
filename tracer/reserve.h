/* reserve.h: the part of a limit that no plan can use. One rule for both sides: `remat plan` subtracts the reserve from its limit, `remat run` keeps it free.
 *
 *     limit  >=  use + reserve       at every instant
 *     use      bytes of the buffers that may move (no `fixed` in the trace), each in whole pages of meta.page_bytes
 *     reserve  meta.reserve_bytes: memory that the process holds beside them, in pages: the program's own and remat's, pages of small
 *              tensors, tensors that never move, scratch for replays, second places for tensors that two iterations hold at once
 *
 * A trace with neither field was recorded elsewhere: nothing is rounded, and the reserve is the most that its `fixed` buffers take at once.
 */
#ifndef REMAT_TRACER_RESERVE_H
#define REMAT_TRACER_RESERVE_H

#include <stdint.h>

/* Bytes of a limit that a buffer takes; page_bytes 0 or 1: no pages are known. */
static inline uint64_t reserve_rounded_bytes(uint64_t bytes, uint64_t page_bytes)
{
    return page_bytes > 1 ? (bytes + page_bytes - 1) / page_bytes * page_bytes : bytes;
}

/* Bytes that a plan may use under a limit; 0: none. */
static inline uint64_t reserve_budget_bytes(uint64_t limit_bytes, uint64_t reserve_bytes)
{
    return limit_bytes > reserve_bytes ? limit_bytes - reserve_bytes : 0;
}

/* The `remat run --limit` under which a plan of this use can be followed. */
static inline uint64_t reserve_limit_bytes(uint64_t use_bytes, uint64_t reserve_bytes) { return use_bytes + reserve_bytes; }

#endif
