/* as_run.h: what memory a run takes for a tensor, and how much of a limit is left to plan with.
 *
 * The runtime backs a large tensor with whole pages of the device, packs small ones into shared pages that never move, and keeps scratch for
 * replays (tracer/reserve.h has the rule, and what a trace tells of it). `remat plan`, `sweep` and `advise` plan with the same sizes, so that what
 * they promise is what `remat run` does. For what remat recorded of a large model before traces told that, it is estimated here, by the same rules.
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_AS_RUN_H
#define REMAT_OFFLINE_AS_RUN_H

#include <stdint.h>

struct graph;
struct plan;

/* A trace as a run sees it. */
struct as_run {
    struct graph *g;       /* owned: the same iteration, large tensors in whole pages, small ones of no size: they are in reserve_bytes; with holds (held.h) */
    int32_t *op_of;        /* owned: what the ops of g are in the trace (held.h) */
    int64_t page_bytes;    /* 0: no device ran it, so g has the sizes of the trace, and reserve_bytes is what `fixed` buffers take */
    int64_t reserve_bytes; /* of a limit: no plan can have it */
    int estimated;         /* the trace does not tell the reserve */
    int is_limits;         /* a limit is one of a run; else it is what is left already, as a run asks its own planner */
};

int as_run_make(const struct graph *exact, struct as_run *out);
void as_run_free(struct as_run *a);

/* A plan of a->g becomes one of the trace. The op of the trace that op `op` of a->g is, or stands before; -1 stays. */
int as_run_plan(const struct as_run *a, const struct graph *exact, struct plan *p);
int32_t as_run_op(const struct as_run *a, int32_t op);

/* What of a limit is left for a plan of a->g, in whole pages; 0: nothing. And the least limit that leaves so much. */
int64_t as_run_room(const struct as_run *a, int64_t limit_bytes);
int64_t as_run_limit(const struct as_run *a, int64_t room_bytes);

#endif
