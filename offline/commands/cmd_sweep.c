/* remat sweep TRACE: the whole trade-off, limits times solvers, as one table. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/commands/sweep_plot.h"
#include "offline/model/graph.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/cover/cover.h"
#include "offline/solvers/cover/cover_bound.h"
#include "offline/solvers/milp/milp.h"
#include "offline/solvers/price.h"
#include "offline/solvers/solver.h"

enum { SWEEP_MAX = 256, SWEEP_EACH_S = 3, SWEEP_ALL_S = 18 /* of the twenty that are promised */ };
static const double SWEEP_LEAST_S = 0.02;

struct sweep_request {
    const char *trace, *limits, *solvers, *time_limit, *seed, *plot;
    int offload, no_offload, csv, json;
};

struct sweep {
    const struct graph *g;
    struct as_run run; /* the same as a run has it */
    int64_t limit[SWEEP_MAX];
    const struct solver *solver[SWEEP_MAX];
    size_t n_limits, n_solvers;
    struct solver_opts opts;
    double others_s;              /* time for each plan of a solver that does not count its work; */
    double until_s;               /* no --time-limit, no --solvers: all is done by then (solver_now_s clock); 0: no such */
    double auto_s;                /* auto counts its work: no limit unless one is given */
    struct solver_memo memo[SWEEP_MAX]; /* [n_solvers] */
    const char *plot;
    double *overhead;             /* [n_limits * n_solvers] of the plot, solver by solver; NAN: no plan */
    double bound[SWEEP_MAX];      /* [n_limits]; NAN: none known */
    int csv, json;
    int rows;
};

/* Split text at commas; each part, a limit or a solver, is handed to take. */
static int sweep_each(const char *text, const char *what, struct sweep *s, int (*take)(struct sweep *, const char *))
{
    char part[4096];
    while (*text) {
        const size_t n = strcspn(text, ",");
        if (n >= sizeof part)
            return cli_bad("sweep: \"%.40s...\" is too long", text);
        memcpy(part, text, n);
        part[n] = 0;
        if (!n)
            return cli_bad("sweep: empty %s: a list has nothing between two commas, or after the last one", what);
        const int rc = take(s, part);
        if (rc)
            return rc;
        text += n;
        if (*text == ',' && !*++text)
            return cli_bad("sweep: empty %s: a list has nothing between two commas, or after the last one", what);
    }
    return 0;
}

static int sweep_limit(struct sweep *s, const char *text)
{
    int64_t bytes;
    if (cli_size(text, s->g->baseline_peak_bytes, &bytes) || bytes <= 0)
        return cli_bad("sweep: --limits: \"%s\" is no size or percentage over zero, such as 12G or 50%%", text);
    if (s->n_limits == SWEEP_MAX)
        return cli_bad("sweep: --limits: more than %d", SWEEP_MAX);
    s->limit[s->n_limits++] = bytes;
    return 0;
}

static int sweep_solver(struct sweep *s, const char *text)
{
    const struct solver *solver = solver_find(text);
    char hint[128];
    if (!solver)
        return cli_bad(solver_known(text) ? "sweep: this build has no solver \"%s\"%s" : "sweep: no solver \"%s\"%s", text,
                       options_hint(text, options_values("plan", "solver"), hint, sizeof hint));
    if (s->n_solvers == SWEEP_MAX)
        return cli_bad("sweep: --solvers: more than %d", SWEEP_MAX);
    s->solver[s->n_solvers++] = solver;
    return 0;
}

static void sweep_head(const struct sweep *s)
{
    if (s->json)
        printf("{\"baseline_peak_bytes\": %lld, \"baseline_ns\": %lld, \"floor_bytes\": %lld, \"rows\": [",
               (long long)s->g->baseline_peak_bytes, (long long)s->g->total_ns,
               (long long)price_floor(&s->run, s->opts.offload, NULL));
    else if (s->csv)
        printf("limit_bytes,limit_percent,solver,feasible,peak_bytes,overhead,replays,offloads,solve_seconds\n");
    else
        printf("%12s %7s  %-12s %12s %10s %8s %8s %8s\n", "limit", "", "solver", "peak", "overhead", "replays", "copies",
               "seconds");
}

/* A field of a table of comma-separated values: quoted where a reader needs it. */
static void sweep_csv(const char *s)
{
    if (!strpbrk(s, "\",\n")) {
        fputs(s, stdout);
        return;
    }
    putchar('"');
    for (; *s; s++)
        printf(*s == '"' ? "\"\"" : "%c", *s);
    putchar('"');
}

static void sweep_row(struct sweep *s, int64_t limit, const struct solver *solver, int rc, const struct solver_report *r)
{
    const double percent = 100.0 * (double)limit / (double)(s->g->baseline_peak_bytes ? s->g->baseline_peak_bytes : 1);
    const double overhead = s->g->total_ns ? (double)r->planned_ns / (double)s->g->total_ns - 1 : 0;
    char a[32], b[32];
    if (s->json) {
        printf("%s\n  {\"limit_bytes\": %lld, \"limit_percent\": %.2f, \"solver\": ", s->rows ? "," : "", (long long)limit, percent);
        cli_json(solver->name);
        printf(", \"feasible\": %s, ", rc ? "false" : "true");
        if (rc)
            printf("\"peak_bytes\": null, \"overhead\": null, \"replays\": null, \"offloads\": null, ");
        else
            printf("\"peak_bytes\": %lld, \"overhead\": %.6f, \"replays\": %lld, \"offloads\": %lld, ", (long long)r->peak_bytes,
                   overhead, (long long)r->replays, (long long)r->offloads);
        printf("\"solve_seconds\": %.6f}", r->solve_seconds);
    } else if (s->csv) {
        printf("%lld,%.2f,", (long long)limit, percent);
        sweep_csv(solver->name);
        printf(",%d,", !rc);
        if (rc)
            printf(",,,,%.6f\n", r->solve_seconds);
        else
            printf("%lld,%.6f,%lld,%lld,%.6f\n", (long long)r->peak_bytes, overhead, (long long)r->replays,
                   (long long)r->offloads, r->solve_seconds);
    } else {
        printf("%12s %6.1f%%  %-12s ", cli_bytes(limit, a, sizeof a), percent, solver->name);
        if (rc)
            printf("%12s %10s %8s %8s %8.2f\n", rc == -ETIME ? "no time" : "no plan", "-", "-", "-", r->solve_seconds);
        else
            printf("%12s %9.2f%% %8lld %8lld %8.2f\n", cli_bytes(r->peak_bytes, b, sizeof b), 100 * overhead,
                   (long long)r->replays, (long long)r->offloads, r->solve_seconds);
    }
    fflush(stdout);
    s->rows++;
}

/* For the plot. */
static void sweep_note(struct sweep *s, size_t l, size_t k, int rc, const struct solver_report *r)
{
    const double total = (double)s->g->total_ns;
    if (!s->plot || total <= 0)
        return;
    if (!rc)
        s->overhead[k * s->n_limits + l] = (double)r->planned_ns / total - 1;
    if (!rc && r->bound_ns > 0 && !(s->bound[l] > r->bound_ns / total - 1))
        s->bound[l] = r->bound_ns / total - 1;
}

static int sweep_prepare_plot(struct sweep *s)
{
    if (!s->plot)
        return 0;
    s->overhead = malloc((s->n_limits * s->n_solvers + 1) * sizeof *s->overhead);
    struct cover *c = s->overhead && !s->opts.offload ? cover_new(s->run.g) : NULL;
    if (!s->overhead || (!c && !s->opts.offload))
        return cli_fail("sweep: not enough memory");
    for (size_t i = 0; i < s->n_limits * s->n_solvers; i++)
        s->overhead[i] = NAN;
    int rc = 0;
    for (size_t l = 0; l < s->n_limits && !rc; l++) {
        struct cover_bound b;
        s->bound[l] = NAN;
        rc = c ? cover_bound(c, as_run_room(&s->run, s->limit[l]), &b) : 0;
        if (!rc && c && !b.impossible && s->g->total_ns)
            s->bound[l] = b.ns / (double)s->g->total_ns;
    }
    cover_free(c);
    return rc ? cli_fail("sweep: %s", strerror(-rc)) : 0;
}

static int sweep_draw(const struct sweep *s)
{
    const char *names[SWEEP_MAX];
    char err[512];
    for (size_t k = 0; k < s->n_solvers; k++)
        names[k] = s->solver[k]->name;
    const struct sweep_plot p = {.model = s->g->model, .offload = s->opts.offload, .peak_bytes = s->g->baseline_peak_bytes,
                                 .floor_bytes = price_floor(&s->run, s->opts.offload, NULL),
                                 .n_limits = s->n_limits, .n_solvers = s->n_solvers, .limit = s->limit, .solver = names,
                                 .overhead = s->overhead, .bound = s->bound};
    return s->plot && sweep_plot_write(&p, s->plot, err, sizeof err) ? cli_fail("%s", err) : CLI_OK;
}

static int sweep_is_auto(const struct sweep *s, size_t k) { return !strcmp(s->solver[k]->name, "auto") || !strcmp(s->solver[k]->name, "best"); }

/* Where all solvers share a time they get parts of what is left of it, the good ones more; what one does not use is the others'. */
static double sweep_seconds(const struct sweep *s, size_t l, size_t k)
{
    enum { MORE = 6 };
    double part = 0;

    if (s->until_s <= 0)
        return strcmp(s->solver[k]->name, "auto") || s->opts.offload ? s->others_s : s->auto_s;
    for (size_t i = k; i < s->n_solvers; i++)
        part += sweep_is_auto(s, i) ? MORE : 1;
    for (size_t i = 0; i < s->n_solvers; i++)
        part += (double)(s->n_limits - 1 - l) * (sweep_is_auto(s, i) ? MORE : 1);
    return fmax(SWEEP_LEAST_S, (s->until_s - solver_now_s()) * (sweep_is_auto(s, k) ? MORE : 1) / part);
}

/* A solver that fails for another reason than the limit or the clock fails the sweep. */
static int sweep_run(struct sweep *s)
{
    struct plan p = {0};
    int bad = CLI_OK;
    const bool rows = !s->plot || strcmp(s->plot, "-"); /* a drawing on standard output stands alone */
    if (rows)
        sweep_head(s);
    for (size_t l = 0; l < s->n_limits && bad == CLI_OK; l++)
        for (size_t k = 0; k < s->n_solvers && bad == CLI_OK; k++) {
            struct solver_report r;
            s->opts.limit_bytes = s->limit[l];
            s->opts.memo = &s->memo[k];
            s->opts.time_limit_s = sweep_seconds(s, l, k);
            cli_progress("sweep: %zu of %zu, %s", l * s->n_solvers + k + 1, s->n_limits * s->n_solvers, s->solver[k]->name);
            const int rc = price_run(s->solver[k], s->g, &s->run, &s->opts, &p, &r);
            cli_progress_end();
            if (rc && rc != -ENOSPC && rc != -ETIME)
                bad = cli_fail("sweep: solver %s at %lld bytes: %s", s->solver[k]->name, (long long)s->limit[l],
                               r.message[0] ? r.message : milp_error(rc));
            else {
                if (rows)
                    sweep_row(s, s->limit[l], s->solver[k], rc, &r);
                sweep_note(s, l, k, rc, &r);
            }
        }
    if (s->json)
        printf("\n]}\n");
    plan_free(&p);
    return bad;
}

static int sweep_fill(const struct sweep_request *q, struct sweep *s)
{
    double seconds;
    int64_t seed = 1;
    if (cli_seconds(q->time_limit, &seconds))
        return cli_bad("sweep: --time-limit \"%s\" is no number of seconds", q->time_limit);
    if (q->seed && cli_long(q->seed, 0, INT64_MAX, &seed))
        return cli_bad("sweep: --seed \"%s\" is no whole number from 0 up", q->seed);
    s->opts = (struct solver_opts){.seed = (uint64_t)seed, .offload = !q->no_offload};
    s->others_s = q->time_limit ? seconds : SWEEP_EACH_S;
    s->auto_s = seconds;
    s->until_s = q->time_limit || q->solvers ? 0 : solver_now_s() + SWEEP_ALL_S;
    s->plot = q->plot;
    s->csv = q->csv;
    s->json = q->json;
    int rc = sweep_each(q->limits, "limit", s, sweep_limit);
    if (!rc && q->solvers)
        rc = sweep_each(q->solvers, "solver", s, sweep_solver);
    for (size_t i = 0; !rc && !q->solvers && solver_at(i); i++)
        if (strcmp(solver_at(i)->name, "none"))
            rc = sweep_solver(s, solver_at(i)->name);
    if (!rc && (!s->n_limits || !s->n_solvers))
        rc = cli_bad("sweep: nothing to do: no limits or no solvers");
    return rc;
}

int cmd_sweep(int argc, char **argv)
{
    struct sweep_request q = {.limits = "100%,90%,80%,70%,60%,50%,40%,30%"};
    const struct option_bind binds[] = {
        {"limits", &q.limits},
        {"solvers", &q.solvers},
        {"time-limit", &q.time_limit},
        {"seed", &q.seed},
        {"offload", &q.offload},
        {"no-offload", &q.no_offload},
        {"csv", &q.csv},
        {"json", &q.json},
        {"plot", &q.plot},
        {0}};
    struct graph *g = NULL;
    char err[512];
    size_t n = 0;
    int rc = options_parse(argc, argv, binds, &q.trace, 1, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (n != 1)
        return cli_bad("sweep: give a trace (remat sweep --help)");
    if (q.csv && q.json)
        return cli_bad("sweep: --csv or --json, not both");
    if ((q.csv || q.json) && q.plot && !strcmp(q.plot, "-"))
        return cli_bad("sweep: %s and --plot - both want standard output", q.csv ? "--csv" : "--json");
    if (trace_read(q.trace, &g, err, sizeof err))
        return cli_bad("%s", err);
    struct sweep s = {.g = g};
    rc = as_run_make(g, &s.run) ? cli_fail("sweep: not enough memory") : sweep_fill(&q, &s);
    if (!rc)
        rc = sweep_prepare_plot(&s);
    if (!rc)
        rc = sweep_run(&s);
    if (!rc)
        rc = sweep_draw(&s);
    for (size_t k = 0; k < s.n_solvers; k++)
        solver_memo_free(&s.memo[k]);
    free(s.overhead);
    as_run_free(&s.run);
    graph_free(g);
    return rc;
}
