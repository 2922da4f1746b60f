/* export_viz.h: what the exporters share: an iteration under a plan, judged, and where it is written.
 *
 * Threads: one export belongs to one thread. Errors: 0 or -ENOMEM; failed writes show in the stream.
 */
#ifndef REMAT_OFFLINE_EXPORT_VIZ_H
#define REMAT_OFFLINE_EXPORT_VIZ_H

#include <stdbool.h>
#include <stdio.h>

#include "offline/model/graph.h"
#include "offline/model/plan.h"

struct export {
    const struct graph *g;
    const struct plan *plan;
    int64_t *use_bytes;  /* [n_steps] */
    double *clock_ns;    /* [n_steps] compute clock at the end of each step */
    const char *out;
    FILE *f;
};

/* A JSON string, quotes included. in_page: without "<", which could end the script element that the string stands in. */
void export_string(FILE *f, const char *s, bool in_page);

/* A memory snapshot as PyTorch's viewer reads it: a pickle, or JSON if x->out ends in .json. */
int export_memory_viz(struct export *x);

#endif
