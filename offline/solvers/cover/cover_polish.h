/* cover_polish.h: a plan made cheaper by the annealer. Threads and errors: as cover.h says. */
#ifndef REMAT_OFFLINE_COVER_POLISH_H
#define REMAT_OFFLINE_COVER_POLISH_H

#include "offline/solvers/cover/cover.h"

/* Plans of online policies (dtr.h) for the limit, into *p and *r if one is better. Takes hardly any time. */
int cover_online(struct cover *c, int64_t limit_bytes, struct plan *p, struct sim_result *r);

/* Let units of more ops than ANNEAL_UNIT_OPS_MAX be replayed from this call on, for limits at which no plan is found without them.
 * 0: the graph has no such units. */
int cover_any_length(struct cover *c);

/* Anneal from the plan (or, if it has no steps, from the program as it is and from online policies' schedules) for a counted
 * number of mutations and keep a better plan; thorough: many more mutations where the bound is far. r: judgement of *p, ok only if within the limit. */
int cover_polish(struct cover *c, int64_t limit_bytes, double bound_ns, int thorough, struct plan *p, struct sim_result *r);

#endif
