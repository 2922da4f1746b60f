/* The classic schedules on a chain: sublinear segments (Chen, Xu, Zhang, Guestrin 2016) and revolve (Griewank and Walther
 * 2000). Both use the order of stages and, in the greedy form, sizes; never times. */
#include "offline/solvers/chain/chain_classic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "offline/solvers/chain/chain.h"

/* Forwards over stages first..last; a^(first-1) stays in memory, the a between do not. */
static int classic_run(struct chain_schedule *s, int32_t first, int32_t last)
{
    int32_t l;
    int rc = 0;

    for (l = first; l <= last && !rc; l++)
        rc = chain_push(s, l == first ? CHAIN_FCK : CHAIN_FNONE, l);
    return rc;
}

static int classic_back(struct chain_schedule *s, int32_t first, int32_t last)
{
    int32_t l;
    int rc = 0;

    for (l = first; l <= last && !rc; l++)
        rc = chain_push(s, CHAIN_FALL, l);
    for (l = last; l >= first && !rc; l--)
        rc = chain_push(s, CHAIN_BWD, l);
    return rc;
}

int chain_segments(const struct chain *c, const int32_t *cut, int32_t n_cut, struct chain_schedule *s)
{
    int32_t k;
    int rc = 0;

    for (k = 0; k < n_cut && !rc; k++)
        rc = classic_run(s, k ? cut[k - 1] : 1, cut[k] - 1);
    for (k = n_cut; k >= 0 && !rc; k--) {
        rc = classic_back(s, k ? cut[k - 1] : 1, k < n_cut ? cut[k] - 1 : c->n);
        if (!rc && k)
            rc = chain_push(s, CHAIN_DROP, cut[k - 1] - 1);
    }
    return rc;
}

int chain_chen_sqrt(const struct chain *c, struct chain_schedule *s)
{
    int32_t k = (int32_t)lround(sqrt((double)c->n)), i, n = 0;
    int32_t *cut = calloc((size_t)k + 1, sizeof(*cut));
    int rc;

    if (!cut)
        return -ENOMEM;
    for (i = 1; i < k; i++)
        cut[n++] = (int32_t)((int64_t)i * c->n / k) + 1;
    rc = chain_segments(c, cut, n, s);
    free(cut);
    return rc;
}

int chain_chen_greedy(const struct chain *c, int64_t segment_bytes, struct chain_schedule *s)
{
    int32_t *cut = calloc((size_t)c->n + 1, sizeof(*cut));
    int64_t held = 0;
    int32_t l, n = 0;
    int rc;

    if (!cut)
        return -ENOMEM;
    for (l = 1; l <= c->n; l++) {
        if (l > 1 && held + c->abar[l] > segment_bytes) {
            cut[n++] = l;
            held = 0;
        }
        held += c->abar[l];
    }
    rc = chain_segments(c, cut, n, s);
    free(cut);
    return rc;
}

/* ---- revolve --------------------------------------------------------------------------------------------------------- */

/* steps[k * (n + 1) + len]: least number of forwards, beyond those that feed a backward, to reverse len stages whose first
 * input is stored, with k more checkpoints; at[]: number of stages to run before the first of these checkpoints is set. */
struct classic_revolve {
    int32_t n, k;
    int64_t *steps;
    int32_t *at;
};

static int classic_revolve_fill(struct classic_revolve *v)
{
    size_t w = (size_t)v->n + 1;
    int32_t k, len, j;

    v->steps = calloc(w * ((size_t)v->k + 1), sizeof(*v->steps));
    v->at = calloc(w * ((size_t)v->k + 1), sizeof(*v->at));
    if (!v->steps || !v->at)
        return -ENOMEM;
    for (len = 2; len <= v->n; len++)
        v->steps[len] = (int64_t)len * (len - 1) / 2;
    for (k = 1; k <= v->k; k++) {
        int64_t *now = v->steps + (size_t)k * w, *less = now - w;
        int32_t *at = v->at + (size_t)k * w;

        for (len = 2; len <= v->n; len++) {
            /* The best place moves right by at most one as the chain grows by one stage. */
            int32_t from = at[len - 1] > 1 ? at[len - 1] : 1;

            at[len] = from;
            now[len] = from + less[len - from] + now[from];
            for (j = from + 1; j < len && j <= from + 1; j++)
                if (j + less[len - j] + now[j] < now[len]) {
                    now[len] = j + less[len - j] + now[j];
                    at[len] = j;
                }
        }
    }
    return 0;
}

static int classic_revolve_emit(const struct classic_revolve *v, int32_t first, int32_t len, int32_t k, struct chain_schedule *s)
{
    int32_t at, l;
    int rc = 0;

    if (len == 1)
        return classic_back(s, first, first);
    if (k == 0) {
        for (l = first + len - 1; l > first && !rc; l--) {
            rc = classic_run(s, first, l - 1);
            if (!rc)
                rc = classic_back(s, l, l);
            if (!rc)
                rc = chain_push(s, CHAIN_DROP, l - 1);
        }
        return rc ? rc : classic_back(s, first, first);
    }
    at = v->at[(size_t)k * ((size_t)v->n + 1) + (size_t)len];
    rc = classic_run(s, first, first + at - 1);
    if (!rc)
        rc = classic_revolve_emit(v, first + at, len - at, k - 1, s);
    if (!rc)
        rc = chain_push(s, CHAIN_DROP, first + at - 1);
    return rc ? rc : classic_revolve_emit(v, first, at, k, s);
}

int chain_revolve(const struct chain *c, int32_t checkpoints, struct chain_schedule *s)
{
    struct classic_revolve v = {c->n, checkpoints < c->n - 1 ? checkpoints : c->n - 1, NULL, NULL};
    int rc = classic_revolve_fill(&v);

    if (!rc)
        rc = classic_revolve_emit(&v, 1, c->n, v.k, s);
    free(v.steps);
    free(v.at);
    return rc;
}
