/* cover_bound.h: the least cost of a limit, from cuts at single instants. Threads and errors: as cover.h says. */
#ifndef REMAT_OFFLINE_COVER_BOUND_H
#define REMAT_OFFLINE_COVER_BOUND_H

#include "offline/solvers/cover/cover.h"

struct cover *cover_new(const struct graph *g);
void cover_free(struct cover *c);

int cover_bound(struct cover *c, int64_t limit_bytes, struct cover_bound *b);

#endif
