/* Time of the persistent chain program on the longest published chain (L = 339, 500 slots), against the plain loop over
 * the recurrence that anyone would write first. One JSON line; exit 77 without the instance, 1 on a wrong result. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_dp.h"

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* C_BP of section 4.4 as it stands: every (s, t, m), every split. cost[(s * w + t) * (max + 1) + m]. */
static int64_t plain(const struct chain *c, int64_t max)
{
    size_t w = (size_t)c->n + 2, row = (size_t)max + 1;
    int64_t *cost = malloc(w * w * row * sizeof(*cost)), *sum = calloc(w, sizeof(*sum)), best;
    int32_t s, t, k;
    int64_t m;

    if (!cost || !sum)
        return -1;
    for (t = 1; t <= c->n; t++)
        sum[t] = sum[t - 1] + c->uf[t];
    for (s = c->n; s >= 1; s--)
        for (t = s; t <= c->n; t++) {
            int64_t all = larger(c->delta[t] + c->abar[s] + c->of[s], c->delta[s] + c->delta[s - 1] + c->abar[s] + c->ob[s]);
            int64_t none = c->a[s] + c->on[s];
            int64_t *to = cost + ((size_t)s * w + (size_t)t) * row;

            for (k = s + 1; k < t; k++)
                none = larger(none, c->a[k - 1] + c->a[k] + c->on[k]);
            none += c->delta[t];
            for (m = 0; m <= max; m++) {
                int64_t v = INT64_MAX / 4;

                if (m >= all && (s == t || m >= c->abar[s]))
                    v = c->uf[s] + c->ub[s] + (s == t ? 0 : cost[((size_t)(s + 1) * w + (size_t)t) * row + (size_t)(m - c->abar[s])]);
                if (m >= none)
                    for (k = s + 1; k <= t && m >= c->a[k - 1]; k++) {
                        int64_t x = sum[k - 1] - sum[s - 1] +
                                    cost[((size_t)k * w + (size_t)t) * row + (size_t)(m - c->a[k - 1])] +
                                    cost[((size_t)s * w + (size_t)(k - 1)) * row + (size_t)m];

                        v = x < v ? x : v;
                    }
                to[m] = v < INT64_MAX / 4 ? v : INT64_MAX / 4;
            }
        }
    best = cost[(w + (size_t)c->n) * row + (size_t)max];
    free(cost);
    free(sum);
    return best;
}

int main(void)
{
    const char *shared = getenv("REMAT_SHARED");
    char path[4096], err[512];
    struct json_doc doc;
    struct chain c, scaled;
    struct chain_dp *dp = NULL;
    int64_t budget, slots, got = 0, want;
    double best = 1e30, base, began;
    int unit, k;

    snprintf(path, sizeof(path), "%s/anchors/rotor/chain_L339_s1.json", shared ? shared : "");
    if (json_doc_load(path, &doc, err, sizeof(err)))
        return 77;
    if (chain_read(&doc, &c, &budget, &slots, &unit, err, sizeof(err)) || chain_scale(&c, budget / slots, 0, &scaled)) {
        fprintf(stderr, "bench_chain: %s\n", err);
        return 1;
    }
    json_doc_close(&doc);
    for (k = 0; k < 3; k++) {
        began = now_s();
        if (chain_dp_solve(&scaled, slots, &dp))
            return 1;
        got = chain_dp_time(dp, slots);
        best = now_s() - began < best ? now_s() - began : best;
        chain_dp_free(dp);
    }
    began = now_s();
    want = plain(&scaled, slots - scaled.a[0]);
    base = now_s() - began;
    if (got != want) {
        fprintf(stderr, "bench_chain: %lld, plain loop %lld\n", (long long)got, (long long)want);
        return 1;
    }
    printf("{\"chain_L339_s500\": {\"value\": %.3f, \"unit\": \"s\", \"baseline\": %.3f, \"ratio\": %.3f}}\n", best, base,
           best / base);
    chain_free(&c);
    chain_free(&scaled);
    return 0;
}
