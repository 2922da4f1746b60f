#include "offline/solvers/milp/milp_cbc.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coin/Cbc_C_Interface.h>

/* CBC wants the matrix by columns. */
static int load(const struct milp *m, Cbc_Model *cbc)
{
    size_t nc = (size_t)m->n_cols, nz = (size_t)m->n_terms;
    CoinBigIndex *start = calloc(nc + 2, sizeof *start);
    int *row = malloc((nz + 1) * sizeof *row);
    double *val = malloc((nz + 1) * sizeof *val);
    int r = -ENOMEM;
    if (!start || !row || !val)
        goto out;
    for (size_t k = 0; k < nz; k++)
        start[m->term_col[k] + 2]++;
    for (size_t c = 0; c < nc; c++)
        start[c + 2] += start[c + 1];
    for (int i = 0; i < m->n_rows; i++)
        for (int k = m->row_first[i]; k < m->row_first[i + 1]; k++) {
            CoinBigIndex at = start[m->term_col[k] + 1]++;
            row[at] = i;
            val[at] = m->term[k];
        }
    Cbc_loadProblem(cbc, m->n_cols, m->n_rows, start, row, val, m->lo, m->hi, m->cost, m->row_lo, m->row_hi);
    r = 0;
out:
    free(start);
    free(row);
    free(val);
    return r;
}

static int warm_start(const struct milp *m, Cbc_Model *cbc, const double *x)
{
    int *idx = malloc(((size_t)m->n_cols + 1) * sizeof *idx), n = 0;
    double *val = malloc(((size_t)m->n_cols + 1) * sizeof *val);
    for (int c = 0; idx && val && c < m->n_cols; c++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", c);
        Cbc_setColName(cbc, c, name); /* CBC finds the start's columns by name */
        if (m->integer[c]) {
            idx[n] = c;
            val[n++] = x[c];
        }
    }
    int r = idx && val ? 0 : -ENOMEM;
    if (!r)
        Cbc_setMIPStartI(cbc, n, idx, val);
    free(idx);
    free(val);
    return r;
}

static void set_real(Cbc_Model *cbc, const char *name, double x)
{
    char text[40];
    snprintf(text, sizeof text, "%.9g", x);
    Cbc_setParameter(cbc, name, text);
}

static int take_solution(const struct milp *m, const double *x, struct milp_result *r)
{
    if (!x)
        return 0;
    r->x = malloc(((size_t)m->n_cols + 1) * sizeof *r->x);
    if (!r->x)
        return -ENOMEM;
    memcpy(r->x, x, (size_t)m->n_cols * sizeof *r->x);
    r->value = 0;
    for (int c = 0; c < m->n_cols; c++)
        r->value += m->cost[c] * x[c];
    return 0;
}

static int solve_here(const struct milp *m, const struct milp_opts *o, double seconds, int plain, struct milp_result *r)
{
    Cbc_Model *cbc = Cbc_newModel();
    int e = cbc ? load(m, cbc) : -ENOMEM;
    if (e)
        return e;
    Cbc_setLogLevel(cbc, 0);
    Cbc_setParameter(cbc, "logLevel", "0");
    Cbc_setParameter(cbc, "timeMode", "elapsed");
    if (plain) {
        Cbc_setParameter(cbc, "preprocess", "off");
        Cbc_setParameter(cbc, "presolve", "off");
    }
    if (!o->relaxed)
        for (int c = 0; c < m->n_cols; c++)
            if (m->integer[c])
                Cbc_setInteger(cbc, c);
    if (seconds > 0)
        set_real(cbc, "seconds", seconds);
    if (o->cost_step > 0)
        set_real(cbc, "allowableGap", 0.999 * o->cost_step);
    if (o->cutoff > 0)
        set_real(cbc, "cutoff", o->cutoff);
    if (o->max_nodes > 0)
        set_real(cbc, "maxNodes", o->max_nodes);
    if (o->ratio_gap > 0)
        set_real(cbc, "ratioGap", o->ratio_gap);
    if (o->start && !o->relaxed)
        e = warm_start(m, cbc, o->start);
    if (e)
        return e;
    Cbc_solve(cbc);
    if (o->relaxed) {
        if (Cbc_isProvenOptimal(cbc)) {
            e = take_solution(m, Cbc_getColSolution(cbc), r);
            r->status = MILP_OPTIMAL;
            r->bound = r->value;
        } else if (Cbc_isProvenInfeasible(cbc)) {
            r->status = MILP_INFEASIBLE;
        }
        return e;
    }
    e = take_solution(m, Cbc_bestSolution(cbc), r);
    /* with a start as good as the optimum CBC calls the root "infeasible" (nothing is below the start), so look for a solution first */
    if (!r->x && (Cbc_isProvenInfeasible(cbc) || Cbc_isInitialSolveProvenPrimalInfeasible(cbc))) {
        r->status = MILP_INFEASIBLE;
        return e;
    }
    if (r->x && Cbc_isProvenOptimal(cbc) && o->ratio_gap == 0) {
        r->status = MILP_OPTIMAL;
        r->bound = r->value;
    } else {
        double b = Cbc_getBestPossibleObjValue(cbc);
        r->status = r->x ? MILP_FEASIBLE : MILP_UNKNOWN;
        if (isfinite(b) && fabs(b) < MILP_NONE)
            r->bound = b;
        if (r->x && r->bound > r->value)
            r->bound = r->value;
    }
    return e;
}

const struct milp_cbc milp_cbc = { REMAT_VERSION, solve_here };
