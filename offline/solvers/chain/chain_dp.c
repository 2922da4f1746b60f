/* The persistent dynamic program (Rotor paper, section 4.4) over extra time.
 *
 * C_BP(s, t, m): least time to process stages s..t, a^(s-1) and delta^t given, in m slots besides a^(s-1):
 *   C_all  = u_f^s + C_BP(s+1, t, m - abar^s) + u_b^s                                     if m >= m_all(s, t)
 *   C_ck   = min over s < s' <= t of  u_f^s + .. + u_f^(s'-1) + C_BP(s', t, m - a^(s'-1)) + C_BP(s, s'-1, m)
 *                                                                                          if m >= m_none(s, t)
 * The tables hold E = C - (the time without recomputation): E_all = E(s+1, t, m - abar^s), and a split costs the forwards it
 * repeats, P(s'-1) - P(s-1), plus the two parts' E. Times are integers below 2^53 held in doubles: sums are exact, and
 * doubles have a vector minimum.
 *
 * E falls with m: infinite below lo(s, t), zero from hi(s, t), where everything fits. So only [lo, hi) is stored, and
 * a split is not looked at where its repeated forwards alone cost as much as the best choice so far: past the first m with
 * E(m) <= cost it cannot improve E. Both savings are exact. Decisions are found again when a schedule is read out. */
#include "offline/solvers/chain/chain_dp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_vec.h"

#define CHAIN_DP_BLOCK 16 /* stages s worked on together; 8 to 32 measured equal, 1 twice as slow */

struct chain_dp_row {
    int64_t lo, hi; /* slots; lo > max: nowhere feasible */
    double *e;      /* e[m - lo] for lo <= m < min(hi, max + 1) */
};

struct chain_dp {
    struct chain c;          /* own copy, in slots */
    int64_t max;             /* largest m (budget - a^0) answered */
    double *prefix;          /* P(l) = u_f^1 + .. + u_f^l */
    struct chain_dp_row *row; /* (s, t), 1 <= s <= t <= n */
    double ideal;
    chain_vec_relax *relax;
};

static struct chain_dp_row *chain_dp_row(const struct chain_dp *d, int32_t s, int32_t t)
{
    return &d->row[(size_t)(s - 1) * (size_t)d->c.n + (size_t)(t - 1)];
}

static int64_t chain_dp_max(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t chain_dp_min(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t chain_dp_all(const struct chain *c, int32_t s, int32_t t)
{
    return chain_dp_max(c->delta[t] + c->abar[s] + c->of[s], c->delta[s] + c->delta[s - 1] + c->abar[s] + c->ob[s]);
}

/* m_none(s, t): memory that a pass of forwards from s towards t needs, a^(s-1) not counted. Call for one s with rising t. */
static int64_t chain_dp_none(const struct chain *c, int32_t s, int32_t t, int64_t *inner)
{
    if (t - 1 > s)
        *inner = chain_dp_max(*inner, c->a[t - 2] + c->a[t - 1] + c->on[t - 1]);
    return c->delta[t] + chain_dp_max(c->a[s] + c->on[s], *inner);
}

/* E(s, t, m): infinite, stored, or zero. */
static double chain_dp_at(const struct chain_dp *d, int32_t s, int32_t t, int64_t m)
{
    const struct chain_dp_row *r = chain_dp_row(d, s, t);

    return m < r->lo ? HUGE_VAL : m >= r->hi ? 0 : r->e[m - r->lo];
}

/* First m in [from, to) with E(m) <= cost; E falls with m. */
static int64_t chain_dp_cut(const struct chain_dp_row *r, int64_t from, int64_t to, double cost)
{
    while (from < to) {
        int64_t mid = from + (to - from) / 2;

        if (r->e[mid - r->lo] <= cost)
            to = mid;
        else
            from = mid + 1;
    }
    return from;
}

static void chain_dp_split(const struct chain_dp *d, struct chain_dp_row *r, const struct chain_dp_row *right,
                           const struct chain_dp_row *left, int64_t w, int64_t m, int64_t end, double cost)
{
    end = chain_dp_cut(r, m, end, cost);
    while (m < end) {
        /* Up to the next m where one of the two parts becomes zero. */
        int rz = m - w >= right->hi, lz = m >= left->hi;
        int64_t stop = end;

        if (!rz)
            stop = chain_dp_min(stop, right->hi + w);
        if (!lz)
            stop = chain_dp_min(stop, left->hi);
        d->relax(r->e + (m - r->lo), rz ? NULL : right->e + (m - w - right->lo), lz ? NULL : left->e + (m - left->lo), cost,
                 stop - m);
        m = stop;
    }
}

static int chain_dp_fill(struct chain_dp *d, int32_t s, int32_t t, int64_t none)
{
    const struct chain *c = &d->c;
    struct chain_dp_row *r = chain_dp_row(d, s, t), *next = s < t ? chain_dp_row(d, s + 1, t) : NULL;
    int64_t all = chain_dp_all(c, s, t), lo, end, m, i;
    int32_t k;

    r->lo = d->max + 1;
    r->hi = next ? chain_dp_max(all, c->abar[s] + next->hi) : all;
    if (!next) {
        r->lo = chain_dp_min(all, d->max + 1);
        return 0;
    }
    if (next->lo <= d->max)
        r->lo = chain_dp_min(r->lo, chain_dp_max(all, c->abar[s] + next->lo));
    for (k = s + 1; k <= t; k++) {
        const struct chain_dp_row *right = chain_dp_row(d, k, t), *left = chain_dp_row(d, s, k - 1);

        if (right->lo <= d->max && left->lo <= d->max)
            r->lo = chain_dp_min(r->lo, chain_dp_max(none, chain_dp_max(right->lo + c->a[k - 1], left->lo)));
    }
    lo = r->lo;
    end = chain_dp_min(r->hi, d->max + 1);
    if (lo >= end)
        return 0;
    r->e = malloc((size_t)(end - lo) * sizeof(*r->e));
    if (!r->e)
        return -ENOMEM;
    for (i = 0; i < end - lo; i++)
        r->e[i] = HUGE_VAL;
    m = chain_dp_max(all, c->abar[s] + next->lo);
    if (next->lo <= d->max && m < end) /* E_all, from the first m at which it is finite */
        for (; m < end; m++)
            r->e[m - lo] = chain_dp_at(d, s + 1, t, m - c->abar[s]);
    for (k = s + 1; k <= t; k++) {
        const struct chain_dp_row *right = chain_dp_row(d, k, t), *left = chain_dp_row(d, s, k - 1);
        double cost = d->prefix[k - 1] - d->prefix[s - 1];

        if (right->lo > d->max || left->lo > d->max)
            continue;
        m = chain_dp_max(none, chain_dp_max(right->lo + c->a[k - 1], left->lo));
        if (r->e[0] <= cost)
            break; /* later splits repeat at least as much */
        chain_dp_split(d, r, right, left, c->a[k - 1], m, end, cost);
    }
    return 0;
}

static int chain_dp_setup(struct chain_dp *d, const struct chain *c)
{
    int32_t l;

    if (chain_scale(c, 1, 0, &d->c))
        return -ENOMEM;
    d->prefix = calloc((size_t)c->n + 1, sizeof(*d->prefix));
    d->row = calloc((size_t)c->n * (size_t)c->n, sizeof(*d->row));
    if (!d->prefix || !d->row)
        return -ENOMEM;
    for (l = 1; l <= c->n; l++)
        d->prefix[l] = d->prefix[l - 1] + (double)c->uf[l];
    d->ideal = (double)chain_ideal_time(c);
    d->relax = chain_vec_pick();
    return 0;
}

int chain_dp_solve(const struct chain *c, int64_t max_slots, struct chain_dp **out)
{
    struct chain_dp *d = calloc(1, sizeof(*d));
    int32_t top, s, t;
    int rc = -ENOMEM;

    if (!d || chain_dp_setup(d, c))
        goto fail;
    d->max = max_slots - c->a[0];
    /* For one s at a time every row (k, t) with k > s would come from memory again; a block of s shares a column's rows while
     * they are in the cache. Within a column s falls, so that (k, t) is filled before (s, t) reads it. */
    for (top = c->n; top >= 1 && d->max >= 0; top -= CHAIN_DP_BLOCK) {
        int32_t bottom = top >= CHAIN_DP_BLOCK ? top - CHAIN_DP_BLOCK + 1 : 1;
        int64_t inner[CHAIN_DP_BLOCK] = {0};

        for (t = bottom; t <= c->n; t++)
            for (s = t < top ? t : top; s >= bottom; s--)
                if (chain_dp_fill(d, s, t, chain_dp_none(c, s, t, &inner[s - bottom])))
                    goto fail;
    }
    *out = d;
    return 0;
fail:
    chain_dp_free(d);
    return rc;
}

void chain_dp_free(struct chain_dp *d)
{
    size_t i;

    if (!d)
        return;
    for (i = 0; d->row && i < (size_t)d->c.n * (size_t)d->c.n; i++)
        free(d->row[i].e);
    free(d->row);
    free(d->prefix);
    chain_free(&d->c);
    free(d);
}

int64_t chain_dp_time(const struct chain_dp *d, int64_t budget)
{
    int64_t m = chain_dp_min(budget - d->c.a[0], d->max);
    double e;

    if (m < 0)
        return -1;
    e = chain_dp_at(d, 1, d->c.n, m);
    return e == HUGE_VAL ? -1 : (int64_t)(d->ideal + e);
}

/* The decision that attains E(s, t, m): 0 for F_all, otherwise s' of the split; -1: none does. */
static int32_t chain_dp_choice(const struct chain_dp *d, int32_t s, int32_t t, int64_t m)
{
    const struct chain *c = &d->c;
    double want = chain_dp_at(d, s, t, m);
    int64_t inner = 0, none = 0;
    int32_t k;

    if (s == t || (m >= chain_dp_all(c, s, t) && chain_dp_at(d, s + 1, t, m - c->abar[s]) == want))
        return 0;
    for (k = s; k <= t; k++)
        none = chain_dp_none(c, s, k, &inner);
    for (k = s + 1; k <= t; k++)
        if (m >= none && d->prefix[k - 1] - d->prefix[s - 1] + chain_dp_at(d, k, t, m - c->a[k - 1]) +
                                 chain_dp_at(d, s, k - 1, m) == want)
            return k;
    return -1;
}

/* Depth of recursion is at most n; the left part of a split and the tail after F_all are loops. */
static int chain_dp_emit(const struct chain_dp *d, int32_t s, int32_t t, int64_t m, struct chain_schedule *out)
{
    int rc = 0;
    int32_t j, k = chain_dp_choice(d, s, t, m);

    if (k < 0)
        return -EFAULT;
    if (k == 0) {
        rc = chain_push(out, CHAIN_FALL, s);
        if (!rc && s < t)
            rc = chain_dp_emit(d, s + 1, t, m - d->c.abar[s], out);
        return rc ? rc : chain_push(out, CHAIN_BWD, s);
    }
    rc = chain_push(out, CHAIN_FCK, s);
    for (j = s + 1; j < k && !rc; j++)
        rc = chain_push(out, CHAIN_FNONE, j);
    if (!rc)
        rc = chain_dp_emit(d, k, t, m - d->c.a[k - 1], out);
    /* B^k has left a^(k-1) in memory, which no later step reads */
    if (!rc)
        rc = chain_push(out, CHAIN_DROP, k - 1);
    return rc ? rc : chain_dp_emit(d, s, k - 1, m, out);
}

int chain_dp_schedule(const struct chain_dp *d, int64_t budget, struct chain_schedule *s)
{
    int64_t m = chain_dp_min(budget - d->c.a[0], d->max);

    if (chain_dp_time(d, budget) < 0)
        return -ENOSPC;
    return chain_dp_emit(d, 1, d->c.n, m, s);
}
