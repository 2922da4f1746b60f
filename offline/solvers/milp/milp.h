/* milp.h: a mixed-integer linear program, built row by row and solved by CBC without a word on the terminal.
 *
 * CBC runs in a child process: it may break down or overrun its time without taking the caller along, and its
 * output goes nowhere. A child that gets no work done, since it inherited a lock that another thread held, is replaced.
 *
 * Threads: none inside; one program belongs to one caller. Errors: 0 or a negative errno;
 * builders remember the first error and milp_solve returns it.
 */
#ifndef REMAT_OFFLINE_MILP_H
#define REMAT_OFFLINE_MILP_H

#include <stddef.h>

struct milp;

struct milp *milp_new(void); /* NULL: no memory */
void milp_free(struct milp *m);

/* Adds a column with bounds [lo, hi] and cost in the (minimised) objective; returns its index, or a negative errno. */
int milp_col(struct milp *m, double lo, double hi, double cost, int integer);

/* A row: milp_row opens it, milp_term adds coef * column, the next milp_row (or the solve) closes it. Terms
 * of one column in one row are summed. lo <= row <= hi; MILP_NONE for no bound. */
#define MILP_NONE 1e30
int milp_row(struct milp *m, double lo, double hi);
int milp_term(struct milp *m, int col, double coef);

int milp_n_cols(const struct milp *m);
int milp_n_rows(const struct milp *m);

/* Sets a column's bounds for the next solve. */
void milp_bounds(struct milp *m, int col, double lo, double hi);

enum milp_status {
    MILP_OPTIMAL,    /* x is an optimum, proved */
    MILP_FEASIBLE,   /* x is the best found within the time */
    MILP_INFEASIBLE, /* proved to have no solution */
    MILP_UNKNOWN     /* time ran out without a solution or a proof */
};

struct milp_result {
    enum milp_status status;
    double value;     /* objective of x */
    double bound;     /* proved lower bound on the optimum; -MILP_NONE: none */
    double *x;        /* milp_n_cols values; owned, freed by milp_result_free; NULL without a solution */
};
void milp_result_free(struct milp_result *r);

struct milp_opts {
    double time_limit_s;  /* wall clock, kept to the second; 0: none, and every machine finds the same solution */
    int relaxed;          /* drop the integrality */
    const double *start;  /* n_cols values, of which the integer columns are a feasible start; NULL: none */
    double cost_step;     /* every integral solution's value is a multiple of this; 0: not known */
    double cutoff;        /* only solutions below this matter; 0: no cutoff */
    int max_nodes;        /* nodes of the search; 0: no limit. Unlike time, equal on every machine */
    double ratio_gap;     /* a solution this near the bound, relatively, is good enough; 0: CBC's own */
};

/* Loads CBC, as milp_solve() does. -ELIBACC: its shared object cannot be found or loaded; -ELIBBAD: it is of another version of remat. */
int milp_load(void);
/* Text for an error of milp_solve: the loader's own for -ELIBACC and -ELIBBAD, else strerror(). */
const char *milp_error(int err);

int milp_solve(struct milp *m, const struct milp_opts *o, struct milp_result *r);

#endif
