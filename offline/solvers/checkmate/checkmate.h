/* checkmate.h: rematerialization in the model of Checkmate (Jain et al. 2020), for `checkmate-v1` instances.
 *
 * Nodes 0..n-1 stand in topological order; node i costs cost[i] and its result takes mem[i]. The schedule is
 * frontier-advancing: n stages, in stage t node t is computed for the first time. R[t][i]: node i is computed
 * in stage t; S[t][i]: its result is held from stage t-1 into stage t (section 4.2). Memory U[t][k], just
 * after slot k of stage t, follows the paper's recurrence (section 4.4): a result leaves after its last use
 * in a stage unless the next stage holds it.
 *
 * Threads: none. Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_CHECKMATE_H
#define REMAT_OFFLINE_CHECKMATE_H

#include <stddef.h>
#include <stdint.h>

#include "offline/model/json_read.h"

struct checkmate {
    int n;
    int64_t *cost, *mem; /* n each */
    int64_t budget;      /* limit on every U[t][k] */
    int64_t fixed;       /* held always: constant overhead */
    int *dep_at, *dep;   /* deps of i: dep[dep_at[i] .. dep_at[i+1]), rising */
    int *user_at, *user; /* users of i, rising */
};

/* Checks and copies a parsed document; the caller frees c with checkmate_free. */
int checkmate_read(const struct json_doc *doc, struct checkmate *c, char *err, size_t err_len);
void checkmate_free(struct checkmate *c);

/* A schedule: R and S are n x n, row t, column i, bytes 0 or 1. */
struct checkmate_plan {
    unsigned char *R, *S;
};
int checkmate_plan_new(const struct checkmate *c, struct checkmate_plan *p);
void checkmate_plan_free(struct checkmate_plan *p);

/* Replays R and S in the model: every computation must find its inputs, every held result must exist.
 * 0 and the cost and the exact peak, or -EINVAL. */
int checkmate_replay(const struct checkmate *c, const struct checkmate_plan *p, int64_t *cost, int64_t *peak);

/* The cheapest R for the given S (section 5.2, phase two): a stage computes the results it needs and does not hold.
 * S may be any matrix; holds that are never used are left as they are. */
void checkmate_complete(const struct checkmate *c, struct checkmate_plan *p);

/* Drops holds and computations that nothing uses. Never raises cost or peak. */
void checkmate_prune(const struct checkmate *c, struct checkmate_plan *p);

/* A schedule as a sequence: nodes in the order they are computed, any number of times each. A result is in memory from
 * where it is made to its last reader before it is made again. Exact cost and peak (c->fixed included), or -EINVAL if a
 * reader lacks an input or a node is never computed, -EOVERFLOW past 2^63. */
int checkmate_sequence(const struct checkmate *c, const int32_t *order, int32_t n, int64_t *cost, int64_t *peak);
/* 1: R and S can express the sequence: first computations rise, and nodes computed between two of them rise too. */
int checkmate_staged(const struct checkmate *c, const int32_t *order, int32_t n);
/* Writes R as a sequence into order[n * (n + 1) / 2]; returns its length. */
int32_t checkmate_order(const struct checkmate *c, const struct checkmate_plan *p, int32_t *order);

/* The document `remat solve -o` writes: {"format": "checkmate-schedule-1", "order": [...], "cost", "peak", "budget"}. A new
 * reference; NULL: no memory. */
json_t *checkmate_schedule_json(const struct checkmate *c, const int32_t *order, int32_t n, int64_t cost, int64_t peak);

struct checkmate_answer {
    int found, proved_optimal, proved_infeasible;
    int64_t cost, peak;
    double bound; /* proved lower bound on the cost */
};

#endif
