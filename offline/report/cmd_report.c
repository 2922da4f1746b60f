/* remat report TRACE [PLAN...] -o OUT.html: one self-contained page; see page.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/model/sched.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/curve.h"
#include "offline/report/page.h"
#include "tracer/output.h"

enum { REPORT_PLANS = 12 };
static const double PRICES_S = 3; /* for all prices of the curve together */

struct report {
    const struct graph *g;
    struct page_line line[REPORT_PLANS + 1];
    int n;
    struct as_run run;
    struct curve curve;
};

static int line_fill(struct report *p, const char *path)
{
    struct page_line *l = &p->line[p->n++];
    char err[512];
    const char *slash = path ? strrchr(path, '/') : NULL;
    l->name = !path ? "native" : !strcmp(path, "-") ? "standard input" : slash ? slash + 1 : path;
    if (path ? plan_read(path, &l->plan, err, sizeof err) : sched_baseline(p->g, &l->plan))
        return path ? cli_bad("%s", err) : cli_fail("report: out of memory");
    l->use_bytes = calloc(l->plan.n_steps + 1, sizeof *l->use_bytes);
    l->clock_ns = calloc(l->plan.n_steps + 1, sizeof *l->clock_ns);
    if (!l->use_bytes || !l->clock_ns || sim_profile(p->g, &l->plan, l->use_bytes, l->clock_ns, &l->r))
        return cli_fail("report: out of memory");
    if (!l->r.ok && l->r.error_step >= 0)
        return cli_bad("report: %s is no plan for this trace: %s", path ? path : "the program", l->r.error);
    return 0;
}

static int report_write(struct report *p, const char *out)
{
    struct output o;
    char err[512];
    if (output_open(&o, out, 0, err, sizeof err))
        return cli_fail("report: %s", err);
    const int rc = page_write(o.f, p->g, p->line, p->n, p->curve.n ? &p->curve : NULL);
    if (rc) {
        output_abandon(&o);
        return cli_fail("report: %s", strerror(-rc));
    }
    return output_commit(&o, err, sizeof err) ? cli_fail("report: %s", err) : CLI_OK;
}

static void report_step(int k, int n)
{
    if (k < 0)
        cli_progress_end();
    else
        cli_progress("report: price %d of %d", k + 1, n);
}

static int report_prices(struct report *p, const char *time_limit)
{
    double seconds = PRICES_S;
    if (time_limit && cli_real(time_limit, 0, 1e9, &seconds))
        return cli_bad("report: --time-limit \"%s\" is no number of seconds", time_limit);
    if (!seconds)
        return 0;
    if (as_run_make(p->g, &p->run))
        return cli_fail("report: out of memory");
    const int rc = curve_find(p->g, &p->run, seconds, report_step, &p->curve);
    return rc ? cli_fail("report: %s", p->curve.message[0] ? p->curve.message : strerror(-rc)) : 0;
}

int cmd_report(int argc, char **argv)
{
    const char *operand[REPORT_PLANS + 1] = {0}, *out = NULL, *time_limit = NULL;
    const struct option_bind binds[] = {{"output", &out}, {"time-limit", &time_limit}, {0}};
    struct graph *g = NULL;
    char err[512];
    size_t n = 0;
    int rc = options_parse(argc, argv, binds, operand, REPORT_PLANS + 1, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (n < 1 || !out)
        return cli_bad("report: give a trace and -o (remat report --help)");
    for (size_t k = 0; k < n; k++)
        if (cli_same_file(out, operand[k]))
            return cli_bad("report: -o %s is one of the inputs, which the page would replace", out);
    if (trace_read(operand[0], &g, err, sizeof err))
        return cli_bad("%s", err);
    struct report p = {.g = g};
    rc = line_fill(&p, NULL);
    for (size_t k = 1; !rc && k < n; k++)
        rc = line_fill(&p, operand[k]);
    if (!rc)
        rc = report_prices(&p, time_limit);
    if (!rc)
        rc = report_write(&p, out);
    for (int k = 0; k < p.n; k++) {
        plan_free(&p.line[k].plan);
        free(p.line[k].use_bytes);
        free(p.line[k].clock_ns);
    }
    as_run_free(&p.run);
    graph_free(g);
    return rc;
}
