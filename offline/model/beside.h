/* beside.h: this executable, and the files that came along with it: in its folder (build/), in ../lib or in ../lib/remat (installed).
 *
 * Threads: any. Errors: 0 or a negative errno; -ENAMETOOLONG: `room` is too small.
 */
#ifndef REMAT_OFFLINE_BESIDE_H
#define REMAT_OFFLINE_BESIDE_H

#include <stddef.h>

int beside_self(char *out, size_t room);
/* FILE's path without links. -ENOENT: it is in none of the three. */
int beside_find(const char *file, char *out, size_t room);

#endif
