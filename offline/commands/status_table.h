/* status_table.h: `remat status` for people: a row a process and device, a line a group, in as many columns as the terminal has (80 where there is none).
 *
 * Threads: the main thread. Errors: none; what cannot be written shows when standard output is closed.
 */
#ifndef REMAT_OFFLINE_STATUS_TABLE_H
#define REMAT_OFFLINE_STATUS_TABLE_H

#include "offline/commands/jobs.h"

#include <stdbool.h>

/* `wide`: with group, peak and iterations, exact sizes and whole command lines, however long a line gets. */
void status_table(const struct jobs *j, bool wide);

#endif
