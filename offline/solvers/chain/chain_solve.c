/* One entry for all chain methods: slots, rounding, and the exact replay that judges the result. */
#include "offline/solvers/chain/chain_solve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_classic.h"
#include "offline/solvers/chain/chain_dp.h"
#include "offline/solvers/chain/chain_float.h"

#define CHAIN_FLOAT_BYTES ((int64_t)1 << 30)
#define CHAIN_FLOAT_SLOTS 60 /* with fewer slots rounding costs more than floating gains */

/* Keep the schedule s as the answer if its replay fits the budget and it is better. Takes s over. Returns 1 if it fits. */
static int chain_offer(const struct chain *c, int64_t budget, struct chain_schedule *s, struct chain_answer *best)
{
    struct chain_result r;
    int fits = !chain_replay(c, s, &r) && r.peak <= budget;

    if (fits && (!best->schedule.n || r.time < best->replayed.time ||
                 (r.time == best->replayed.time && r.peak < best->replayed.peak))) {
        chain_schedule_free(&best->schedule);
        best->schedule = *s;
        best->replayed = r;
        memset(s, 0, sizeof(*s));
    }
    chain_schedule_free(s);
    return fits;
}

/* The table of either program; the other pointer is NULL. */
struct chain_table {
    struct chain_dp *dp;
    struct chain_float *fl;
};

static int chain_table_make(struct chain_table *t, const struct chain *slots, int64_t max, int floating)
{
    memset(t, 0, sizeof(*t));
    return floating ? chain_float_solve(slots, max, CHAIN_FLOAT_BYTES, &t->fl) : chain_dp_solve(slots, max, &t->dp);
}

static int64_t chain_table_time(const struct chain_table *t, int64_t m)
{
    return t->fl ? chain_float_time(t->fl, m) : chain_dp_time(t->dp, m);
}

static int chain_table_schedule(const struct chain_table *t, int64_t m, struct chain_schedule *s)
{
    return t->fl ? chain_float_schedule(t->fl, m, s) : chain_dp_schedule(t->dp, m, s);
}

/* Solve in units of `unit`, then read out schedules from the largest number of slots down: a bigger budget never costs
 * time, so the first schedule whose exact replay fits is the best of this table. from = to: one budget alone. */
static int chain_try(const struct chain *c, int64_t budget, int64_t unit, int nearest, int64_t from, int64_t to, int floating,
                     struct chain_answer *best)
{
    struct chain slots;
    struct chain_table t;
    int64_t m, last = -1;
    int rc = chain_scale(c, unit, nearest, &slots);

    if (rc)
        return rc;
    rc = chain_table_make(&t, &slots, to, floating);
    for (m = to; m >= from && !rc; m--) {
        struct chain_schedule s = {0};
        int64_t time = chain_table_time(&t, m);

        if (time < 0)
            break;
        if (time == last && m > from)
            continue; /* this makespan was tried with more slots already */
        last = time;
        if (best->schedule.n && time >= best->replayed.time)
            break;
        rc = chain_table_schedule(&t, m, &s);
        if (rc) {
            chain_schedule_free(&s);
            break;
        }
        if (chain_offer(c, budget, &s, best))
            break;
    }
    chain_dp_free(t.dp);
    chain_float_free(t.fl);
    chain_free(&slots);
    return rc;
}

/* Number of slots that keeps the tables within about a second and half a gigabyte. */
static int64_t chain_default_slots(const struct chain *c, int floating)
{
    double n = (double)c->n, most = 4e10 / (n * n * n);

    if (floating) {
        double room = 0.7 * (double)CHAIN_FLOAT_BYTES / 8 / (n * n * n / 6 + n * n);

        most = 2.4e10 / (n * n * n * n);
        most = most < room ? most : room;
    }
    return most > 4000 ? 4000 : most < 8 ? 8 : (int64_t)most;
}

static int chain_solve_dp(const struct chain *c, int64_t budget, int floating, int64_t slots, struct chain_answer *out)
{
    int64_t n = slots > 0 ? slots : chain_default_slots(c, floating), unit;
    int rc;

    if (floating && slots <= 0 && n < CHAIN_FLOAT_SLOTS)
        return -E2BIG;
    unit = budget / n;
    if (unit <= 1 || (slots <= 0 && floating == 0 && c->n < 64 && budget <= 20000)) {
        out->exact = 1;
        out->slots_used = budget;
        return chain_try(c, budget, 1, 0, budget, budget, floating, out);
    }
    out->slots_used = n;
    if (slots > 0)
        return chain_try(c, budget, unit, 0, n, n, floating, out);
    /* With sizes rounded up, schedules of budgets somewhat over the limit may replay within it; with sizes rounded to nearest, the best budget may be on either side. */
    rc = chain_try(c, budget, unit, 1, n - n / 10, n + n / 25, floating, out);
    if (!rc && (!out->schedule.n || c->n <= 200))
        rc = chain_try(c, budget, unit, 0, n, n + n / 8, floating, out);
    return rc;
}

static int chain_solve_revolve(const struct chain *c, int64_t budget, struct chain_answer *out)
{
    int32_t k;
    int rc = 0;

    /* More checkpoints never cost time: the largest number that fits wins. */
    for (k = c->n - 1; k >= 0 && !rc && !out->schedule.n; k--) {
        struct chain_schedule s = {0};

        rc = chain_revolve(c, k, &s);
        if (rc)
            chain_schedule_free(&s);
        else
            chain_offer(c, budget, &s, out);
    }
    return rc;
}

static int chain_solve_greedy(const struct chain *c, int64_t budget, struct chain_answer *out)
{
    int64_t low = 0, high = 0;
    int32_t l, i;
    int rc = 0;

    for (l = 1; l <= c->n; l++) {
        low = c->abar[l] > low ? c->abar[l] : low;
        high += c->abar[l];
    }
    for (i = 0; i <= 200 && !rc; i++) {
        struct chain_schedule s = {0};

        rc = chain_chen_greedy(c, low + (int64_t)((double)(high - low) * i / 200 * i / 200), &s);
        if (rc)
            chain_schedule_free(&s);
        else
            chain_offer(c, budget, &s, out);
    }
    return rc;
}

int chain_solve(const struct chain *c, int64_t budget, enum chain_method method, int64_t slots, struct chain_answer *out)
{
    struct chain_schedule s = {0};
    int rc = 0;

    memset(out, 0, sizeof(*out));
    switch (method) {
    case CHAIN_FLOATING: {
        int exact;

        /* Every persistent schedule is a floating one, and the persistent program affords finer slots: the floating program
         * only has to improve on its answer. On chains too long for the floating program the persistent answer stands. */
        rc = chain_solve_dp(c, budget, 0, slots, out);
        exact = out->exact;
        if (!rc)
            rc = chain_solve_dp(c, budget, 1, slots, out);
        out->exact &= exact && !rc;
        if (rc == -E2BIG)
            rc = 0;
        break;
    }
    case CHAIN_PERSISTENT:
        rc = chain_solve_dp(c, budget, 0, slots, out);
        break;
    case CHAIN_REVOLVE:
        rc = chain_solve_revolve(c, budget, out);
        break;
    case CHAIN_CHEN_SQRT:
        rc = chain_chen_sqrt(c, &s);
        if (!rc)
            chain_offer(c, budget, &s, out);
        else
            chain_schedule_free(&s);
        break;
    case CHAIN_CHEN_GREEDY:
        rc = chain_solve_greedy(c, budget, out);
        break;
    }
    if (!rc && !out->schedule.n)
        rc = -ENOSPC;
    if (rc)
        chain_schedule_free(&out->schedule);
    return rc;
}
