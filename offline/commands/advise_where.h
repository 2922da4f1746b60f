/* advise_where.h: where the memory of an iteration is at its peak, and what would make it less.
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_ADVISE_WHERE_H
#define REMAT_OFFLINE_ADVISE_WHERE_H

#include "offline/model/graph.h"

enum { WHERE_GROUPS = 6, WHERE_NAME = 120, WHERE_KINDS = 5, WHERE_HINTS = 4 };

struct where_group { /* tensors alive at the peak that one line, or one module, made */
    char name[WHERE_NAME];
    int64_t bytes;
};

struct where {
    const struct graph *g;
    int64_t kinds[WHERE_KINDS];  /* by enum graph_kind */
    struct where_group *lines, *modules; /* owned, the largest first */
    int n_lines, n_modules;
    struct {
        char text[200];
        int64_t bytes; /* what it would save of the peak */
    } hint[WHERE_HINTS];
    int n_hints;
};

int where_find(const struct graph *g, struct where *w); /* where_free() in any case */
void where_free(struct where *w);
void where_text(const struct where *w);
void where_json(const struct where *w); /* members of an object */

#endif
