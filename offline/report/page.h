/* page.h: one iteration and its plans as a self-contained page of HTML.
 *
 * The tables stand in the page as they are; charts and groups are drawn by page.js, page_chart.js and page_groups.js from one block of JSON (page_data.h),
 * styled by page.css; all four are linked into the program (page_parts.c) and written into the page. Nothing is fetched.
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM; failed writes show in the stream.
 */
#ifndef REMAT_OFFLINE_PAGE_H
#define REMAT_OFFLINE_PAGE_H

#include <stdio.h>

#include "offline/model/graph.h"
#include "offline/report/page_data.h"

/* lines[0] is the program as it is; n >= 1. `curve`: what less memory costs; NULL: nobody has asked. */
int page_write(FILE *f, const struct graph *g, const struct page_line *lines, int n, const struct curve *curve);

#endif
