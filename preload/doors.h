/* doors.h: the rows of doors.def as data: calls that have no row in hooks.def, and whether they may do harm.
 *
 * Threads: any; constant. No allocation and no lock, since dlsym calls this. Errors: none.
 */
#ifndef REMAT_PRELOAD_DOORS_H
#define REMAT_PRELOAD_DOORS_H

#include "preload/doors.def"

enum doors_kind {
    DOORS_ARE_HOOKED,   /* a row of hooks.def */
    DOORS_ARE_HARMLESS, /* a row of doors.def says that the call does no harm */
    DOORS_MAKE_STAY,    /* a row of doors.def says that memory stays from the first use of the call on; *why: the reason */
    DOORS_ARE_UNKNOWN   /* no row: the call is newer than both tables */
};

/* The kind of an exported name of the driver's or of NCCL's. *why is NULL but for DOORS_MAKE_STAY. */
enum doors_kind doors_kind_of(const char *symbol, const char **why);
/* The kind of a name without a suffix, as cuGetProcAddress is asked for it: that of any variant of the name without a door of its own. */
enum doors_kind doors_kind_of_base(const char *base, const char **why);

#endif
