/* cover_polish.h: a plan made cheaper by the annealer. Threads and errors: as cover.h says. */
#ifndef REMAT_OFFLINE_COVER_POLISH_H
#define REMAT_OFFLINE_COVER_POLISH_H

#include "offline/solvers/cover/cover.h"

/* What online policies (dtr.h) come to under the limit, if that is better than *p: done in no time. */
int cover_online(struct cover *c, int64_t limit_bytes, struct plan *p, struct sim_result *r);

/* From now on, where there are any, units of more ops than ANNEAL_UNIT_OPS_MAX are replayed too: for limits at which nothing is found
 * without. Whether there are. */
int cover_any_length(struct cover *c);

/* Anneal from the plan (or, if it has no steps, from the program as it is and from what online policies do) for a counted
 * number of mutations and keep what is better; thorough: many more of them where the bound is far. r: judgement of *p, ok only if within the limit. */
int cover_polish(struct cover *c, int64_t limit_bytes, double bound_ns, int thorough, struct plan *p, struct sim_result *r);

#endif
