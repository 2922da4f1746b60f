/* Schedules out of decisions: turns "keep, drop or offload each value over each gap between its uses" into a
 * plan that obeys every rule, and polishes plans.
 *
 * A *gap* of value v lies between two neighbouring uses of it by the program (the producer counts as the first
 * use; for a value that must survive, the end of the iteration is the last). The *tail* of v comes after its last
 * use. Gaps are numbered value by value, in time order, the tail last: gaps of v are
 * gap_at[v] .. gap_at[v+1]-1, of which the last is the tail.
 *
 * sched_realize walks the program's ops in order. Before op i it rebuilds, recursively and version-correctly,
 * whatever op i consumes and is missing; a buffer that the program freed is rebuilt in its own place and
 * dropped again. What nothing can rebuild is kept, whatever the decision says. A value that is missing comes back
 * earlier than it is used where an op on the way there changes what it is rebuilt from. The result is deterministic.
 *
 * Threads: a struct sched belongs to one thread.
 * Errors: 0 or negative errno: -ENOMEM; -EDEADLK where the decisions cannot be met (two versions of one buffer
 * wanted at once: reported with the op in sched->stuck_op), -E2BIG when more than max_replays replays result, or a value
 * hangs on a chain of several thousand that would all have to be rebuilt at once.
 */
#ifndef REMAT_OFFLINE_SCHED_H
#define REMAT_OFFLINE_SCHED_H

#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sim.h"

enum sched_choice {
    SCHED_KEEP,    /* resident over the whole gap. Tail: until the last replay that wants it */
    SCHED_DROP,    /* leaves right after the use that opens the gap; if a replay rebuilds it on the way to something
                      else it stays from then to the end of the gap (tail: to the last replay that wants it) */
    SCHED_SHUN,    /* like DROP, but leaves again after every replay that did not want it for the op at hand */
    SCHED_OFFLOAD  /* copied to the host at the start of the gap, released once copied, fetched back ahead of the
                      use that closes the gap. Not for tails (there it means SCHED_DROP) */
};

struct sched_gap {
    int32_t val;
    int32_t from, to; /* op indices: [from] is the use (or producer, or -1: before op 0) that opens the gap, [to] the
                         one that closes it (n_ops: the end of the iteration); tails: to = n_ops + 1 */
    uint8_t tail;
    uint8_t forced;   /* only KEEP and OFFLOAD make sense: nothing rebuilds the value in time for `to` */
};

struct sched {
    const struct graph *g;
    struct sched_gap *gaps;
    int32_t n_gaps;
    int32_t *gap_at;       /* [n_vals + 1] */
    int32_t stuck_op;      /* op at which the last call gave up; -1 */
    int32_t stuck_val;
    int64_t max_replays;   /* default 20 * n_ops + 1000 */
    struct sim_ws *sim;    /* for callers' use too */
    struct sched_priv *p;
};

struct sched *sched_new(const struct graph *g); /* NULL: no memory */
void sched_free(struct sched *s);

/* Default decisions: KEEP for every gap, SHUN for every tail. choice has room for n_gaps. */
void sched_default(const struct sched *s, uint8_t *choice);

/* Build a plan for the decisions choice[n_gaps] (enum sched_choice). out is emptied first and keeps its memory.
 * If r is not NULL the finished plan is judged (sim_run_ws) into it; peak and time are then r's.
 * Tails of KEEP and DROP end at the last replay that wants them. No allocation in a warmed-up struct.
 * Cost: O(operands + replays); about a millisecond for 3,000 ops. */
int sched_realize(struct sched *s, const uint8_t *choice, struct plan *out, struct sim_result *r);

/* Orders given along the way, for solvers that think in passes rather than gaps. Just before op `op` is launched (n_ops:
 * after the last), in the order given: SCHED_HOLD keeps the value in memory whenever it is there, over whatever gaps
 * (holds nest; one may come before the value exists), SCHED_UNHOLD ends that and drops the value if its gap's choice is
 * not KEEP, SCHED_NEED rebuilds or fetches it now. */
enum sched_order { SCHED_HOLD, SCHED_UNHOLD, SCHED_NEED };

struct sched_act {
    int32_t op;
    int32_t order; /* enum sched_order */
    int32_t val;
};

/* sched_realize with orders; acts are sorted by op. A SCHED_NEED of a value that nothing can rebuild any more, or that
 * holds nothing, is passed over. */
int sched_realize_acts(struct sched *s, const uint8_t *choice, const struct sched_act *acts, size_t n_acts, struct plan *out,
                       struct sim_result *r);

/* The no-eviction plan. */
int sched_baseline(const struct graph *g, struct plan *out);

#endif
