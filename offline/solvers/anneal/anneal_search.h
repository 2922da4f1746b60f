/* Simulated annealing over schedules of replays: FastSA's search, with moves that take chains at once.
 *
 * After "A fast heuristic to optimize time-space tradeoff for large models" (Imanishi et al., NeurIPS 2023): nodes
 * are grouped, a mutation adds, takes away or moves a replay, its effect on the peak is read off a range-add tree,
 * and it stays by the Metropolis rule. Stage 1 lowers memory towards the limit with the smooth (log-add-exp) peak,
 * stage 2 lowers time under the exact peak. Energy, in nanoseconds:
 *
 *   stage 1   sum of replay times + K exp((LAE - limit) / unit)      unit: the temperature of the log-add-exp
 *   stage 2   sum of replay times + lambda max(0, peak - limit)
 *
 * With offload, mutations also send cells to the host over a gap and bring them back (anneal_copies.c); such stays cost
 * nothing as long as the copy engines keep up, and what they are waited for otherwise; so the choice between keeping, recomputing and
 * copying falls out of the same energy.
 *
 * Before them may come a stage at prices: memory at each op costs so much a byte, the prices rise where a round ended
 * over the limit and fall where it ended below (a subgradient method on the Lagrangian dual of "peak <= limit"), so that
 * many small replays can win against one that frees much at once but dearly.
 *
 *   stage 0   sum of replay times + sum over ops of price x memory
 *
 * Additions to the paper: a mutation may add a replay together with the replays that bring its inputs back, take
 * away a replay together with those that only fed it, and trade one for another, each judged as a whole.
 *
 * Threads: one search belongs to one thread. Same model, seed and runs: same result, as long as no deadline strikes.
 * Errors: 0 or negative errno.
 */
#ifndef REMAT_OFFLINE_ANNEAL_SEARCH_H
#define REMAT_OFFLINE_ANNEAL_SEARCH_H

#include <stdint.h>

#include "offline/solvers/anneal/anneal.h"
#include "offline/solvers/anneal/anneal_pool.h"

enum { ANNEAL_MOVE_CHANGES = 64 }; /* replays one mutation may add and remove */

struct anneal_change {
    int32_t what; /* unit of a replay, cell of a stay on the host */
    int32_t slot; /* of the replay; of an added stay the use that ends it, of a removed one the fetch */
    uint8_t added, copy;
    struct anneal_wait wait; /* of a stay */
};

struct anneal_search {
    const struct anneal_model *m;
    struct anneal *a;
    int64_t limit_bytes;
    uint64_t rng;
    int32_t *cand; /* cells worth bringing back later */
    int32_t n_cand;
    int32_t *copy_cand; /* cells worth a stay on the host; none unless copies are allowed */
    int32_t n_copy_cand;
    int may_wait;            /* see anneal_search_let_wait */
    int waits;               /* ... and the present run does make stays that are waited for */
    int64_t small_bytes; /* cells below are not worth a move of their own */
    double lambda;       /* ns per byte over the limit */
    double scale_ns;     /* what a replay costs on average: the measure of temperatures */
    double soft_k;
    double copy_ns_per_byte; /* what a stay costs in the energy: see anneal_search_charge */
    double time_ns;          /* what the iteration costs: the measure of penalties and prices */
    double *price, *op_peak; /* [n_ops] ns a byte; bytes */
    double price_step;
    double cap_ns;       /* energy up to which the dice let the present mutation pass; INFINITY at prices */
    int retimed;         /* anneal_retime has run since its changes were made */
    int hopeless;        /* its replays alone cost more */
    struct anneal_change journal[ANNEAL_MOVE_CHANGES];
    int32_t n_journal;
    double best_ns;         /* least replays and copies so far */
    /* If set: what the schedule really costs, asked of each new least; the best is then the one it calls cheapest. */
    double (*judge)(struct anneal_search *s, void *arg);
    void *judge_arg;
    double best_judged;
    struct anneal_pool *pool; /* borrowed; NULL: it searches alone, for as long as it may. Set: judge is set too */
    struct anneal_seq best; /* the cheapest schedule within the limit; n == 0: none yet */
    const struct anneal_seq *starts; /* borrowed: rows to start from while nothing within the limit is known */
    int n_starts;
    int afresh;          /* anneal_runs() begins with a run that starts from nothing, whatever is known */
    int64_t mutations;
};

/* How one run goes. Temperatures are in nanoseconds, falling geometrically over the run. */
struct anneal_run {
    int64_t mutations;
    double hot_ns, cold_ns;
    double price_share;         /* part of the run spent at prices, first of all */
    double soft_share;          /* part of the rest spent in stage 1 */
    double soft_hot, soft_cold; /* unit of the soft peak, as parts of the limit */
    double deadline_s;          /* solver_now_s clock; the run ends there */
};

/* offload: stays on the host are among the moves (the model must have been made for that). */
struct anneal_search *anneal_search_new(const struct anneal_model *m, int64_t limit_bytes, uint64_t seed, int offload);
void anneal_search_free(struct anneal_search *s);

/* Let a stay on the host cost this much a byte; temperatures and penalties follow. */
void anneal_search_charge(struct anneal_search *s, double ns_per_byte);

/* Let the computation wait for copies, which costs what it takes. With that there is a schedule for every limit that holds each op's
 * own working set and what is too small to be copied. */
void anneal_search_let_wait(struct anneal_search *s);

/* Where the next run starts: no replays; a row (anneal_seq_of_plan); or the best so far. A row within the limit also
 * counts as found. */
int anneal_search_clear(struct anneal_search *s);
int anneal_search_seed(struct anneal_search *s, const struct anneal_seq *seq);
/* Count the schedule as it stands as found, if it is within the limit and the cheapest so far. */
int anneal_search_note(struct anneal_search *s);

int anneal_search_run(struct anneal_search *s, const struct anneal_run *run);

/* Nothing more is to be looked for: the deadline, or the pool's end. */
int anneal_search_had_enough(struct anneal_search *s, double deadline_s);

/* Single changes, for those who choose them (anneal_first.c): begin, make some (each returns whether it did), time the copies
 * (0, or -EBUSY), look; then leave it so, or undo. Chains bring an input along with probability `deep` each. */
void anneal_move_begin(struct anneal_search *s);
int anneal_move_add_chain(struct anneal_search *s, int32_t u, int32_t slot, double deep);
int anneal_move_add_copy(struct anneal_search *s, int32_t c, int32_t use, struct anneal_wait wait);
int anneal_move_turn_copy(struct anneal_search *s, int32_t k, int32_t use, struct anneal_wait wait); /* stay k waits so */
int anneal_move_time(struct anneal_search *s);
void anneal_move_undo(struct anneal_search *s);
double anneal_search_cost_ns(const struct anneal_search *s); /* replays, waits and charges */

/* One mutation, kept if it does not raise the energy at temperature 0, as the benchmark counts them. */
int anneal_search_step(struct anneal_search *s, double temperature_ns);

#endif
