/* sweep_plot.h: the trade-off as a picture: memory limit against overhead, one line a solver, the proved bound under them.
 *
 * A standalone SVG file, no script, that follows the reader's light or dark colours. A limit for which a solver has no plan
 * ends its line there.
 *
 * Threads: the main thread only. Errors: 0 or a negative errno; nothing is left behind on error.
 */
#ifndef REMAT_OFFLINE_SWEEP_PLOT_H
#define REMAT_OFFLINE_SWEEP_PLOT_H

#include <stddef.h>
#include <stdint.h>

struct sweep_plot {
    const char *model;
    int offload;
    int64_t peak_bytes, floor_bytes; /* of the trace, unconstrained; below the floor nothing fits */
    size_t n_limits, n_solvers;
    const int64_t *limit;            /* [n_limits] in any order */
    const char *const *solver;       /* [n_solvers] */
    const double *overhead;          /* [n_limits * n_solvers], solver by solver; 0.07 = 7 %; NAN: no plan */
    const double *bound;             /* [n_limits]; NAN: none known */
};

int sweep_plot_write(const struct sweep_plot *p, const char *path, char *err, size_t err_len);

#endif
