/* closing.h: the one line on stderr at the end of a run: peak memory, iterations, the time of one and its overhead, learning and planning, copies. The figures are
 * those of the statistics (summary.h).
 *
 * Threads: under the engine's mutex, or in a signal handler: no allocation. Errors: none.
 */
#ifndef REMAT_POLICY_PROCESS_CLOSING_H
#define REMAT_POLICY_PROCESS_CLOSING_H

#include "policy/process/summary.h"

enum { CLOSING_TEXT = 900 };

/* The line's text. */
void closing_text(const struct config *cfg, const struct summary *s, char to[CLOSING_TEXT]);
/* Writes the line to stderr; nothing with `--quiet`, under `remat trace`, below log level `warn`, or where no device was used. */
void closing_say(const struct config *cfg, struct device *const *devs, unsigned n);

#endif
