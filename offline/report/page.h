/* page.h: one iteration and its plans as a self-contained page of HTML.
 *
 * The tables stand in the page as they are; the chart is drawn by page.js from one block of JSON, styled by page.css; both
 * are linked into the program (page_parts.c) and written into the page. Nothing is fetched.
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM; failed writes show in the stream.
 */
#ifndef REMAT_OFFLINE_PAGE_H
#define REMAT_OFFLINE_PAGE_H

#include <stdio.h>

#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sim.h"

struct page_line {
    const char *name; /* borrowed: file name, or "native" */
    struct plan plan;
    struct sim_result r;
    int64_t *use_bytes; /* [n_steps], owned, as sim_profile gives them */
    double *clock_ns;
};

/* lines[0] is the program as it is; n >= 1. */
int page_write(FILE *f, const struct graph *g, const struct page_line *lines, int n);

#endif
