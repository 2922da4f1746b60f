/* target.h: the program that `remat run` is to start: why it cannot be started, and whether the loader will leave remat's library out of it.
 *
 * Threads: any. Errors: what cannot be read is passed over, since execvp() says the rest.
 */
#ifndef REMAT_OFFLINE_TARGET_H
#define REMAT_OFFLINE_TARGET_H

#include <stdbool.h>
#include <stddef.h>

/* Why execvp(command) has failed with `why` (an errno), in a line. */
void target_refused(const char *command, int why, char *line, size_t room);

/* Whether the command (or the interpreter that its first line names) is linked statically or changes the user: then no library is loaded in front
 * of its own, and it is held to no limit. `line` says so. */
bool target_unheld(const char *command, char *line, size_t room);

#endif
