/* earlier.h: facts of earlier runs, from the cache (tracer/known/cache.h), and for later ones into it.
 *
 * The facts of an image come when one of its kernels is first asked about in this process, and go when a lesson has come to its end, or when something that was
 * believed has turned out wrong. An entry is read again before it is written, so that what another process has found meanwhile stays.
 *
 * Threads: under the engine's mutex. Errors: none: without a cache, or where it cannot be written, each run learns for itself.
 */
#ifndef REMAT_POLICY_EARLIER_H
#define REMAT_POLICY_EARLIER_H

#include "policy/device.h"
#include "tracer/known/store.h"

/* A kernel of this code is about to be asked about. */
void earlier_facts(struct device *d, struct known *table, struct known_code code, struct known_whys whys);
/* Something was found out of it. */
void earlier_changed(struct known_code code);
/* What has changed is written. */
void earlier_keep(struct device *d, const struct known *table, struct known_whys whys);

#endif
