/* remat solve INSTANCE: a literature instance in its own model, by the solver registered for its format.
 * Exit 0: solved; 1: the solver failed; 2: bad file or unknown solver; 3: infeasible. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/model/json_read.h"
#include "offline/solvers/milp/milp.h"
#include "offline/solvers/solver.h"
#include "tracer/output.h"

static json_t *solve_number(double v, int integral)
{
    if (!isfinite(v))
        return json_null();
    return integral && v == floor(v) && fabs(v) < 9e15 ? json_integer((json_int_t)v) : json_real(v);
}

static int solve_write(const struct instance_solver *s, const struct instance_result *r, const char *out)
{
    struct output o;
    char err[512];

    if (!r->schedule)
        return cli_bad("solve: %s gives no schedule to write; leave out -o", s->name);
    if (output_open(&o, out, 0, err, sizeof(err)))
        return cli_fail("solve: %s", err);
    if (json_dumpf(r->schedule, o.f, 0) || fputc('\n', o.f) == EOF) {
        output_abandon(&o);
        return cli_fail("solve: %s: cannot write the schedule", out);
    }
    return output_commit(&o, err, sizeof(err)) ? cli_fail("solve: %s", err) : CLI_OK;
}

static int solve_print(const char *solver, const struct instance_result *r, int json, const char *out)
{
    json_t *o;
    char *text;

    if (!json) {
        if (!r->feasible) {
            printf("%s: infeasible%s%s\n", solver, r->message[0] ? ": " : "", r->message);
            return CLI_INFEASIBLE;
        }
        if (out && !strcmp(out, "-"))
            return CLI_OK; /* standard output has the schedule */
        printf("%s: value %.*f", solver, r->integral ? 0 : 6, r->value);
        if (r->peak >= 0)
            printf(", peak %.*f", r->integral ? 0 : 3, r->peak);
        if (isfinite(r->bound))
            printf(", bound %.*f", r->integral ? 0 : 6, r->bound);
        printf("%s, %.3f s\n", r->proved_optimal ? ", proved optimal" : "", r->solve_seconds);
        return CLI_OK;
    }
    o = json_pack("{s:s, s:o, s:o, s:b, s:b, s:o, s:f}", "solver", solver, "value",
                  r->feasible ? solve_number(r->value, r->integral) : json_null(), "peak",
                  r->feasible && r->peak >= 0 ? solve_number(r->peak, r->integral) : json_null(), "feasible", r->feasible,
                  "proved_optimal", r->proved_optimal, "bound", solve_number(r->bound, r->integral), "solve_seconds",
                  r->solve_seconds);
    if (o && r->extra)
        json_object_update_missing(o, r->extra);
    text = o ? json_dumps(o, JSON_REAL_PRECISION(15)) : NULL;
    json_decref(o);
    if (!text)
        return cli_fail("solve: not enough memory");
    puts(text);
    free(text);
    return r->feasible ? CLI_OK : CLI_INFEASIBLE;
}

static int solve_pick(const struct json_doc *doc, const char *name, const struct instance_solver **out)
{
    const struct instance_solver *s;
    const char *format = NULL;
    char err[512];
    size_t i;
    int known = 0;

    if (!json_is_object(doc->root)) {
        json_fault(doc, NULL, 0, err, sizeof(err), "an instance is a JSON object");
        return cli_bad("%s", err);
    }
    if (!json_object_get(doc->root, "format") && json_object_get(doc->root, "ops"))
        return cli_bad("solve: %s is a trace: use `remat plan`; what `solve` reads are the instances of papers", doc->name);
    if (json_get_string(doc, doc->root, NULL, 0, "format", 1, &format, err, sizeof(err)))
        return cli_bad("%s", err);
    *out = solver_instance_find(format, name);
    if (*out)
        return CLI_OK;
    for (i = 0; (s = solver_instance_at(i)); i++)
        known |= !strcmp(s->format, format);
    if (!known) {
        struct json_step at = {"format", 0};

        json_fault(doc, &at, 1, err, sizeof(err), "no solver here reads \"%.40s\"", format);
        return cli_bad("%s", err);
    }
    return cli_bad("solve: no solver \"%s\" for %s instances", name, format);
}

int cmd_solve(int argc, char **argv)
{
    const char *file = NULL, *name = NULL, *slots = NULL, *time_limit = NULL, *seed = NULL, *out = NULL;
    int json = 0, reorder = 0, rc;
    const struct option_bind binds[] = {
        {"solver", &name},
        {"slots", &slots},
        {"time-limit", &time_limit},
        {"seed", &seed},
        {"reorder", &reorder},
        {"output", &out},
        {"json", &json},
        {0}};
    const struct instance_solver *s = NULL;
    struct instance_result r = {0};
    struct solver_opts o = {.seed = 1};
    struct json_doc doc;
    char err[512];
    double start;
    int64_t v = 0, seed_n = 1;
    size_t n = 0;

    rc = options_parse(argc, argv, binds, &file, 1, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    if (n != 1)
        return cli_bad("solve: give an instance file (remat solve --help)");
    if (slots && cli_long(slots, 1, 1000000, &v))
        return cli_bad("solve: --slots \"%s\" is no whole number from 1 to 1000000", slots);
    if (time_limit && cli_real(time_limit, 0, 1e9, &o.time_limit_s))
        return cli_bad("solve: --time-limit \"%s\" is no number of seconds", time_limit);
    if (seed && cli_long(seed, 0, INT64_MAX, &seed_n))
        return cli_bad("solve: --seed \"%s\" is no whole number from 0 up", seed);
    if (json && out && !strcmp(out, "-"))
        return cli_bad("solve: --json and -o - both want standard output");
    o.slots = (int)v;
    o.seed = (uint64_t)seed_n;
    o.reorder = reorder;
    o.progress = !json && cli_is_terminal();
    if (json_doc_load(file, &doc, err, sizeof(err)))
        return cli_bad("%s", err);
    rc = solve_pick(&doc, name, &s);
    if (rc) {
        json_doc_close(&doc);
        return rc;
    }
    start = solver_now_s();
    rc = s->solve(&doc, &o, &r);
    r.solve_seconds = solver_now_s() - start;
    cli_progress_end();
    if (rc == -EINVAL)
        rc = cli_bad("%s", r.message);
    else if (rc && rc != -ENOSPC)
        rc = cli_fail("solve: %s failed: %s", s->name, r.message[0] ? r.message : milp_error(rc));
    else if (!out || !r.feasible || !(rc = solve_write(s, &r, out)))
        rc = solve_print(s->name, &r, json, out);
    json_decref(r.schedule);
    json_decref(r.extra);
    json_doc_close(&doc);
    return rc;
}
