/* page_data.h: what a page is made of, the block of JSON that its scripts draw from, and how text and figures are written.
 *
 * The block is one object:
 *
 *   uses    [enum walk_use] names
 *   names   [..] what kernels are called; sites [..] call sites; each once
 *   ops     [n_ops] [name, phase, ns, site or -1, forward op that a backward op belongs to or -1]
 *   bufs    [n_bufs] [bytes, use, born, dies]
 *   price   {at: [[limit of a run, overhead or null]..], floor, op: what sets the floor, knee: its place in `at`}, or null
 *   lines   a schedule each: name, limit, peak, ns (as judged), and
 *     run     ops and replays in order: [1: a replay, op, end on the compute clock in ns, bytes in memory while it runs]
 *     mem     between them, what is allocated (2 b) and freed (2 b + 1) of buffer b; -1 stands for the next run
 *     drops   [buffer, ns, runs before it, run that makes it anew or -1: copied back, or not needed again]
 *     copies  [buffer, from ns, to ns, 1: to the host]
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_PAGE_DATA_H
#define REMAT_OFFLINE_PAGE_DATA_H

#include <stdio.h>

#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sim.h"
#include "offline/solvers/curve.h"

struct page_line {
    const char *name; /* borrowed: file name, or "native" */
    struct plan plan;
    struct sim_result r;
    int64_t *use_bytes; /* [n_steps], owned, as sim_profile gives them */
    double *clock_ns;
};

struct page {
    FILE *f;
    const struct graph *g;
    const struct page_line *line;
    int n;
    const struct curve *curve; /* NULL: unknown */
    uint8_t *use, *phase;      /* as walk_uses gives them */
    int32_t *tied;             /* as tied_ops gives them */
};

int page_data_write(struct page *p);

/* Text of HTML. */
void page_data_text(FILE *f, const char *s);
void page_data_kernel(FILE *f, const char *symbol); /* what the kernel is called; of a long name the start, the whole on hover */

/* Three figures in the unit that fits: 4.00 MiB, 9.31 ms. */
const char *page_data_bytes(int64_t bytes, char *to, size_t room);
const char *page_data_ns(double ns, char *to, size_t room);

#endif
