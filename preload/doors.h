/* doors.h: what is known of the calls that have no row in hooks.def: the rows of doors.def as data.
 *
 * Threads: any; constant. No allocation and no lock: dlsym asks. Errors: none.
 */
#ifndef REMAT_PRELOAD_DOORS_H
#define REMAT_PRELOAD_DOORS_H

#include "preload/doors.def"

enum doors_kind {
    DOORS_ARE_HOOKED,   /* a row of hooks.def */
    DOORS_ARE_HARMLESS, /* a row of doors.def says so */
    DOORS_MAKE_STAY,    /* a row of doors.def says that memory stays from its first call on: *why */
    DOORS_ARE_UNKNOWN   /* no row at all: newer than both tables */
};

/* Of an exported name of the driver's or of NCCL's. */
enum doors_kind doors_kind_of(const char *symbol, const char **why);
/* Of a name without its variant, as cuGetProcAddress is asked for it: any variant of it that has no door of its own. */
enum doors_kind doors_kind_of_base(const char *base, const char **why);

#endif
