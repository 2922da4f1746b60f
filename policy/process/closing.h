/* closing.h: the one line on stderr at the end of a run: what it took, what that cost, and what it came from. The same figures as the statistics'
 * (summary.h).
 *
 * Threads: under the engine's mutex, or in a signal handler: no allocation. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_CLOSING_H
#define REMAT_POLICY_PROCESS_CLOSING_H

#include "policy/process/summary.h"

enum { CLOSING_TEXT = 900 };

/* The line's text. */
void closing_text(const struct config *cfg, const struct summary *s, char to[CLOSING_TEXT]);
/* Says it, but for `--quiet`, `remat trace`, and where no device was used. */
void closing_say(const struct config *cfg, struct device *const *devs, unsigned n);

#endif
