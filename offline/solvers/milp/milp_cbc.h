/* milp_cbc.h: CBC, and the program it is handed. CBC and its libraries (C++, LAPACK, Fortran) make 23,000 of the 24,500 relocations that a start of
 * `remat` with them takes, ten milliseconds; one command in a hundred solves an integer program. So milp_cbc.c is no part of the executable: it is a
 * shared object, remat-milp.so, which milp.c loads when the first program is solved. Executables that link milp_cbc.c (unit tests) use their own.
 *
 * Threads: any, each with a program of its own; CBC itself runs in a process of its own (milp.h). Errors: 0 or a negative errno.
 */
#ifndef REMAT_OFFLINE_MILP_CBC_H
#define REMAT_OFFLINE_MILP_CBC_H

#include "offline/solvers/milp/milp.h"

#define MILP_CBC_FILE "remat-milp.so"

/* A program by rows: the terms of row i are term[row_first[i] .. row_first[i + 1]), in column term_col[k] for term[k]. */
struct milp {
    int n_cols, cols_room, n_rows, rows_room, err;
    double *lo, *hi, *cost;
    char *integer;
    double *row_lo, *row_hi;
    int *row_first; /* n_rows + 1 */
    int n_terms, terms_room;
    int *term_col;
    double *term;
};

struct milp_cbc {
    const char *version; /* version of remat: a shared object of another version may know another struct milp */
    /* Solves in this process. seconds: 0: no limit. plain: without CBC's preprocessing. r->x is the caller's to free. */
    int (*solve)(const struct milp *m, const struct milp_opts *o, double seconds, int plain, struct milp_result *r);
};

extern const struct milp_cbc milp_cbc __attribute__((weak, visibility("default")));

#endif
