/* The floating dynamic program: weakly persistent schedules, where a stored input may be given up before the backward of
 * its stage and an earlier or later input takes its place (Rotor paper, section on non-persistent schedules, Algorithm 1).
 *
 * G(s, t, l, M): least time to run the backwards of stages l, l-1, .., t (s < t <= l) given a^s and delta^l, in M slots
 * that include a^s. Either s = t - 1 and stage t starts with F_all:
 *     u_f^t + u_b^t + G(t, t+1, l, M - a^(t-1) - abar^t + a^t)                            (nothing after it if t = l)
 * or forwards go from a^s to a^s', leaving a^r behind in place of a^s (s <= r < t), a^s' serves the backwards of l..t',
 * and then a^r those of t'-1..t:
 *     P(s') - P(s) + G(s', t', l, M - a^r) + G(r, t, t'-1, M)          r < s' < t', t < t' <= l
 * With R = G + P(s) the least over s' is a running minimum (K below), and so is the least over r, so a state costs
 * O(l - t) vector operations over M: O(n^4 slots / 24) in all where the recurrence read literally costs O(n^6 slots).
 * Moving the source forward without a split (r > s, then F_all) is allowed as well: a small a^r may stand in for a^(t-1).
 *
 * Times are integers below 2^53 in doubles, so sums and comparisons are exact. */
#include "offline/solvers/chain/chain_float.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_vec.h"

struct chain_float {
    struct chain c;
    int64_t max;
    size_t width;    /* max + 1 */
    chain_vec_relax *relax;
    double *prefix;
    double *r;       /* R(s, t, l, M); rows by l, t, s */
    double *k;       /* for the present l: K(x, t, M) = least R(s', t, l, M) over s' >= x */
};

static size_t chain_float_index(int32_t s, int32_t t, int32_t l)
{
    size_t a = (size_t)l - 1, b = (size_t)t - 1;

    return a * (a + 1) * (a + 2) / 6 + b * (b + 1) / 2 + (size_t)s; /* rows of smaller l: sums of l(l+1)/2; then of smaller t */
}

static double *chain_float_row(const struct chain_float *d, int32_t s, int32_t t, int32_t l)
{
    return d->r + chain_float_index(s, t, l) * d->width;
}

static double *chain_float_best(const struct chain_float *d, int32_t x, int32_t t)
{
    return d->k + ((size_t)(t - 1) * (size_t)t / 2 + (size_t)x) * d->width;
}

static int64_t chain_float_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Memory for F_all of t while delta^l waits, and for B^t later; a^(t-1) included. */
static int64_t chain_float_all(const struct chain *c, int32_t t, int32_t l)
{
    return c->a[t - 1] + chain_float_max(c->delta[l] + c->abar[t] + c->of[t],
                                         c->delta[t] + c->delta[t - 1] + c->abar[t] + c->ob[t]);
}

/* Memory for a forward step from a^j that gives a^j up. */
static int64_t chain_float_step(const struct chain *c, int32_t j, int32_t l)
{
    return c->delta[l] + c->a[j] + c->a[j + 1] + c->on[j + 1];
}

/* Memory for forwards from a^r towards l that keep a^r; r + 1 < l. */
static int64_t chain_float_keep(const struct chain *c, int32_t r, int32_t l)
{
    int64_t need = c->a[r + 1] + c->on[r + 1];
    int32_t k;

    for (k = r + 2; k < l; k++)
        need = chain_float_max(need, c->a[k - 1] + c->a[k] + c->on[k]);
    return c->delta[l] + c->a[r] + need;
}

/* H(r, t, l, .) into e: a^r stays, or stage t = r + 1 starts with F_all. P(r) is added, as in R. */
static void chain_float_from(const struct chain_float *d, int32_t r, int32_t t, int32_t l, double *e)
{
    const struct chain *c = &d->c;
    int64_t m, from;
    int32_t tp;

    for (m = 0; m <= d->max; m++)
        e[m] = HUGE_VAL;
    if (r == t - 1) {
        int64_t less = c->a[t - 1] + c->abar[t] - c->a[t];
        double cost = (double)(c->uf[t] + c->ub[t]) + d->prefix[r];

        from = chain_float_all(c, t, l);
        if (t == l) {
            for (m = from; m <= d->max; m++)
                e[m] = cost;
        } else {
            const double *sub = chain_float_row(d, t, t + 1, l);

            for (m = chain_float_max(from, less); m <= d->max; m++)
                if (m - less <= d->max)
                    e[m] = cost + sub[m - less] - d->prefix[t];
        }
    }
    if (t == l)
        return;
    from = chain_float_max(chain_float_keep(c, r, l), c->a[r]);
    for (tp = t + 1; tp <= l && from <= d->max; tp++)
        d->relax(e + from, chain_float_best(d, r + 1, tp) + (from - c->a[r]), chain_float_row(d, r, t, tp - 1) + from,
                 -d->prefix[r], d->max + 1 - from);
}

/* Fills all states with this t and l, s falling. */
static void chain_float_fill(const struct chain_float *d, int32_t t, int32_t l)
{
    int32_t s;
    int64_t m;

    for (s = t - 1; s >= 0; s--) {
        double *e = chain_float_row(d, s, t, l), *best = chain_float_best(d, s, t);

        chain_float_from(d, s, t, l, e);
        if (s < t - 1) {
            const double *moved = chain_float_row(d, s + 1, t, l), *later = chain_float_best(d, s + 1, t);

            for (m = chain_float_step(&d->c, s, l); m <= d->max; m++)
                e[m] = moved[m] < e[m] ? moved[m] : e[m];
            for (m = 0; m <= d->max; m++)
                best[m] = later[m] < e[m] ? later[m] : e[m];
        } else {
            memcpy(best, e, d->width * sizeof(*e));
        }
    }
}

int chain_float_solve(const struct chain *c, int64_t max_slots, int64_t max_bytes, struct chain_float **out)
{
    struct chain_float *d = calloc(1, sizeof(*d));
    size_t rows = chain_float_index(0, 1, c->n + 1), pairs = (size_t)c->n * ((size_t)c->n + 1) / 2;
    int32_t l, t;
    int rc = -ENOMEM;

    if (!d || chain_scale(c, 1, 0, &d->c))
        goto fail;
    d->max = max_slots;
    d->width = (size_t)max_slots + 1;
    d->relax = chain_vec_pick();
    if ((double)(rows + pairs) * (double)d->width * sizeof(double) > (double)max_bytes) {
        rc = -E2BIG;
        goto fail;
    }
    d->prefix = calloc((size_t)c->n + 1, sizeof(*d->prefix));
    d->r = malloc(rows * d->width * sizeof(*d->r));
    d->k = malloc(pairs * d->width * sizeof(*d->k));
    if (!d->prefix || !d->r || !d->k)
        goto fail;
    for (l = 1; l <= c->n; l++)
        d->prefix[l] = d->prefix[l - 1] + (double)c->uf[l];
    for (l = 1; l <= c->n; l++)
        for (t = l; t >= 1; t--)
            chain_float_fill(d, t, l);
    *out = d;
    return 0;
fail:
    chain_float_free(d);
    return rc;
}

void chain_float_free(struct chain_float *d)
{
    if (!d)
        return;
    chain_free(&d->c);
    free(d->prefix);
    free(d->r);
    free(d->k);
    free(d);
}

int64_t chain_float_time(const struct chain_float *d, int64_t budget)
{
    int64_t m = budget < d->max ? budget : d->max;
    double v = m < 0 ? HUGE_VAL : chain_float_row(d, 0, 1, d->c.n)[m];

    return v == HUGE_VAL ? -1 : (int64_t)v;
}

static int chain_float_emit(const struct chain_float *d, int32_t s, int32_t t, int32_t l, int64_t m, struct chain_schedule *out);

/* Finds the split of H(r, t, l, m) that attains `want`; 0 if none does. */
static int chain_float_split(const struct chain_float *d, int32_t r, int32_t t, int32_t l, int64_t m, double want, int32_t *tp,
                             int32_t *sp)
{
    if (t == l || m < chain_float_keep(&d->c, r, l) || m < d->c.a[r])
        return 0;
    for (*tp = t + 1; *tp <= l; ++*tp)
        for (*sp = r + 1; *sp < *tp; ++*sp)
            if (chain_float_row(d, *sp, *tp, l)[m - d->c.a[r]] + chain_float_row(d, r, t, *tp - 1)[m] - d->prefix[r] == want)
                return 1;
    return 0;
}

/* Emits a split: forwards from a^r, which stays, to a^s', the backwards l..t' from a^s', then the backwards t'-1..t. */
static int chain_float_emit_split(const struct chain_float *d, int32_t r, int32_t t, int32_t l, int64_t m, int32_t tp,
                                  int32_t sp, struct chain_schedule *out)
{
    int rc = chain_push(out, CHAIN_FCK, r + 1);
    int32_t j;

    for (j = r + 2; j <= sp && !rc; j++)
        rc = chain_push(out, CHAIN_FNONE, j);
    if (!rc)
        rc = chain_float_emit(d, sp, tp, l, m - d->c.a[r], out);
    /* By then the source has moved from a^s' to a^(t'-1), held on its own. */
    if (!rc)
        rc = chain_push(out, CHAIN_DROP, tp - 1);
    return rc ? rc : chain_float_emit(d, r, t, tp - 1, m, out);
}

static int chain_float_emit(const struct chain_float *d, int32_t s, int32_t t, int32_t l, int64_t m, struct chain_schedule *out)
{
    const struct chain *c = &d->c;
    double want = chain_float_row(d, s, t, l)[m];
    int32_t r, tp, sp;
    int rc = 0;

    for (r = s; r < t && !rc; r++) {
        if (chain_float_split(d, r, t, l, m, want, &tp, &sp))
            return chain_float_emit_split(d, r, t, l, m, tp, sp, out);
        if (r == t - 1)
            break;
        if (m < chain_float_step(c, r, l) || chain_float_row(d, r + 1, t, l)[m] != want)
            return -EFAULT;
        rc = chain_push(out, CHAIN_FNONE, r + 1);
    }
    if (rc)
        return rc;
    rc = chain_push(out, CHAIN_FALL, t);
    if (!rc && t < l)
        rc = chain_float_emit(d, t, t + 1, l, m - (c->a[t - 1] + c->abar[t] - c->a[t]), out);
    return rc ? rc : chain_push(out, CHAIN_BWD, t);
}

int chain_float_schedule(const struct chain_float *d, int64_t budget, struct chain_schedule *s)
{
    if (chain_float_time(d, budget) < 0)
        return -ENOSPC;
    return chain_float_emit(d, 0, 1, d->c.n, budget < d->max ? budget : d->max, s);
}
