/* Simulated annealing over schedules of replays: FastSA's search, with moves that take chains at once.
 *
 * After "A fast heuristic to optimize time-space tradeoff for large models" (Imanishi et al., NeurIPS 2023): nodes
 * are grouped, a mutation adds, takes away or moves a replay, its effect on the peak is read off a range-add tree,
 * and the Metropolis rule decides whether it stays. Stage 1 lowers memory towards the limit with the smooth (log-add-exp) peak,
 * stage 2 lowers time under the exact peak. Energy, in nanoseconds:
 *
 *   stage 1   sum of replay times + K exp((LAE - limit) / unit)      unit: the temperature of the log-add-exp
 *   stage 2   sum of replay times + lambda max(0, peak - limit)
 *
 * With offload, mutations also send cells to the host over a gap and bring them back (anneal_copies.c); such stays cost
 * nothing as long as the copy engines keep up, otherwise the time the computation waits for them; so one energy decides between
 * keeping, recomputing and copying.
 *
 * A stage at prices may come before stage 1: memory at each op has a price per byte, which rises where a round ended
 * over the limit and falls where a round ended below (a subgradient method on the Lagrangian dual of "peak <= limit"), so that
 * many small replays can win against one that frees much at once but dearly.
 *
 *   stage 0   sum of replay times + sum over ops of price x memory
 *
 * Additions to the paper: a mutation may add a replay together with the replays that bring its inputs back, take
 * away a replay together with replays that only fed it, and trade one replay for another, each judged as a whole.
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
    int32_t slot; /* slot of the replay; for an added stay of the use that ends it, for a removed stay of its fetch */
    uint8_t added, copy;
    struct anneal_wait wait; /* waits of the stay */
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
    int waits;               /* the present run does make stays that the computation waits for */
    int64_t small_bytes; /* smaller cells are not worth a move of their own */
    double lambda;       /* ns per byte over the limit */
    double scale_ns;     /* average cost of a replay: the unit of temperatures */
    double soft_k;
    double copy_ns_per_byte; /* cost of a stay in the energy: see anneal_search_charge */
    double time_ns;          /* time of the iteration, or all its copies' charges if more: the unit of penalties and prices */
    double *price, *op_peak; /* [n_ops] ns a byte; bytes */
    double price_step;
    double cap_ns;       /* energy up to which the dice let the present mutation pass; INFINITY at prices */
    int retimed;         /* anneal_retime has run since the present mutation's changes were made */
    int hopeless;        /* the present mutation's replays alone cost more than cap_ns */
    struct anneal_change journal[ANNEAL_MOVE_CHANGES];
    int32_t n_journal;
    double best_ns;         /* least cost of replays and copies so far */
    /* If set: the real cost of the schedule, asked for each new least cost_ns; best is then the schedule that judge calls cheapest. */
    double (*judge)(struct anneal_search *s, void *arg);
    void *judge_arg;
    double best_judged;
    struct anneal_pool *pool; /* borrowed; NULL: the search is alone and uses its whole time. If set, judge is set too */
    struct anneal_seq best; /* the cheapest schedule within the limit; n == 0: none yet */
    const struct anneal_seq *starts; /* borrowed: rows to start from while no schedule within the limit is known */
    int n_starts;
    int afresh;          /* the first run of anneal_runs() starts without replays, even if a plan is known */
    int64_t mutations;
};

/* How one run goes. Temperatures are in nanoseconds, falling geometrically over the run. */
struct anneal_run {
    int64_t mutations;
    double hot_ns, cold_ns;
    double price_share;         /* part of the run spent at prices, at its beginning */
    double soft_share;          /* part of the rest spent in stage 1 */
    double soft_hot, soft_cold; /* unit of the soft peak, as parts of the limit */
    double deadline_s;          /* solver_now_s clock; the run ends there */
};

/* offload: stays on the host are among the moves (the model must have been made with offload, too). */
struct anneal_search *anneal_search_new(const struct anneal_model *m, int64_t limit_bytes, uint64_t seed, int offload);
void anneal_search_free(struct anneal_search *s);

/* Let each byte of a stay on the host cost ns_per_byte; temperatures and penalties follow. */
void anneal_search_charge(struct anneal_search *s, double ns_per_byte);

/* Let the computation wait for copies, at the cost of the time it waits. With such waits a schedule exists for every limit that
 * holds each op's own working set plus the cells too small to be copied. */
void anneal_search_let_wait(struct anneal_search *s);

/* Set where the next run starts: without replays (clear), or from a row (seed; see anneal_seq_of_plan). A schedule within
 * the limit also counts as found. */
int anneal_search_clear(struct anneal_search *s);
int anneal_search_seed(struct anneal_search *s, const struct anneal_seq *seq);
/* Make the present schedule the best, if it is within the limit and the cheapest so far. */
int anneal_search_note(struct anneal_search *s);

int anneal_search_run(struct anneal_search *s, const struct anneal_run *run);

/* 1: the search must end: the deadline has passed, or the pool has had enough. */
int anneal_search_had_enough(struct anneal_search *s, double deadline_s);

/* Single changes, for callers that choose them (anneal_first.c): begin, make some (each returns whether it did), time the copies
 * (0, or -EBUSY), look; then leave the changes or undo them. A chain also replays each input with probability `deep`. */
void anneal_move_begin(struct anneal_search *s);
int anneal_move_add_chain(struct anneal_search *s, int32_t u, int32_t slot, double deep);
int anneal_move_add_copy(struct anneal_search *s, int32_t c, int32_t use, struct anneal_wait wait);
int anneal_move_turn_copy(struct anneal_search *s, int32_t k, int32_t use, struct anneal_wait wait); /* give stay k these waits */
int anneal_move_time(struct anneal_search *s);
void anneal_move_undo(struct anneal_search *s);
double anneal_search_cost_ns(const struct anneal_search *s); /* replays, waits and charges */

/* One mutation, kept or undone by the Metropolis rule (temperature 0: kept if it does not raise the energy). For the benchmark. */
int anneal_search_step(struct anneal_search *s, double temperature_ns);

#endif
