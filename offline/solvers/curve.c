#include "offline/solvers/curve.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double KNEE_SLOPE = 1, LEAST_S = 0.05; /* points of time per point of memory; seconds for one price at least */

static void curve_knee(struct curve *c)
{
    for (int i = 1; i < c->n && !isnan(c->overhead[i]); i++) {
        const double memory = (double)(c->limit[c->knee] - c->limit[i]) / (double)c->limit[0];
        if (c->overhead[i] - c->overhead[c->knee] > KNEE_SLOPE * memory)
            break;
        c->knee = i;
    }
}

int curve_find(const struct graph *exact, const struct as_run *run, double seconds, void (*step)(int k, int n), struct curve *c)
{
    const struct solver *s = solver_find("auto");
    const double until_s = solver_now_s() + seconds;
    struct plan p = {0};
    struct solver_report r;
    int rc = 0;
    memset(c, 0, sizeof *c);
    c->floor_bytes = price_floor(run, 1, &c->floor_op);
    c->limit[0] = as_run_limit(run, run->g->baseline_peak_bytes);
    c->n = 1;
    for (int k = 0; !rc && k < CURVE_LIMITS; k++) {
        struct solver_opts o = {.limit_bytes = c->limit[0] / 100 * (CURVE_HIGHEST - k * CURVE_STEP), .offload = 1, .seed = 1,
                                .time_limit_s = fmax(LEAST_S, (until_s - solver_now_s()) / (CURVE_LIMITS - k))};
        if (o.limit_bytes < c->floor_bytes || solver_now_s() > until_s + seconds + 1) /* a graph of 20,000 ops takes a solver longer than it is given */
            break;
        if (step)
            step(k, CURVE_LIMITS);
        rc = price_run(s, exact, run, &o, &p, &r);
        if (step)
            step(-1, CURVE_LIMITS);
        const int none = rc == -ENOSPC || rc == -ETIME;
        if (rc && !none) {
            snprintf(c->message, sizeof c->message, "%.200s", r.message);
            break;
        }
        c->limit[c->n] = o.limit_bytes;
        c->overhead[c->n++] = none ? NAN : exact->total_ns ? (double)r.planned_ns / (double)exact->total_ns - 1 : 0;
        rc = 0;
    }
    for (int k = c->n - 1; k > 1; k--) /* a plan for a limit also fits every larger limit */
        if (isnan(c->overhead[k - 1]) || c->overhead[k] < c->overhead[k - 1])
            c->overhead[k - 1] = c->overhead[k];
    plan_free(&p);
    curve_knee(c);
    return rc;
}
