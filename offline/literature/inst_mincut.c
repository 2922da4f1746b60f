/* inst_mincut: `remat solve` for mincut-v1 documents. The value is the cut; the model has no peak. */
#include "offline/solvers/mincut/maxflow.h"
#include "offline/literature/mincut_inst.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static int solve(const struct json_doc *doc, const struct solver_opts *opts, struct instance_result *out)
{
    (void)opts;
    struct mincut_inst g;
    int r = mincut_inst_read(doc, &g, out->message, sizeof out->message);
    if (r)
        return r;
    double start = solver_now_s();
    struct maxflow *f = maxflow_new(g.n_vertices);
    r = f ? 0 : -ENOMEM;
    for (int i = 0; !r && i < g.n_edges; i++)
        r = maxflow_arc(f, g.u[i], g.v[i], g.cap[i]);
    int64_t cut = 0;
    if (!r)
        r = maxflow_solve(f, 0, 1, &cut);
    out->solve_seconds = solver_now_s() - start;
    out->integral = 1;
    out->peak = -1;
    if (!r) {
        out->value = out->bound = (double)cut;
        out->feasible = out->proved_optimal = 1;
        out->extra = json_pack("{s:I}", "cut", (json_int_t)cut);
        if (g.cut >= 0 && g.cut != cut)
            snprintf(out->message, sizeof out->message, "the file's own cut is %lld", (long long)g.cut);
    } else if (r == -ERANGE) {
        out->bound = NAN;
        snprintf(out->message, sizeof out->message, "every cut is infinite: infinite edges join the source to the sink");
    } else if (r == -EOVERFLOW) {
        const struct json_step at = { "edges", 0 };
        r = json_fault(doc, &at, 1, out->message, sizeof out->message, "finite capacities sum to 2^62 or more");
    }
    maxflow_free(f);
    mincut_inst_free(&g);
    return r == -ERANGE ? 0 : r;
}

const struct instance_solver instance_mincut = { "mincut-v1", "mincut", 1, solve };
