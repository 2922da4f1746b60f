/* proc_address.h: finds the variant of a call that the driver answered cuGetProcAddress with. Any thread; no errors. */
#ifndef REMAT_PRELOAD_PROC_ADDRESS_H
#define REMAT_PRELOAD_PROC_ADDRESS_H

#include "preload/rows.h"

#include <stdbool.h>

/* The row of `fn`, the driver's answer for (name, version, flags). HOOK_COUNT: `fn` is a variant that has no row. provider_resolve() must have been called. */
enum hook_id proc_address_row(const char *name, const void *fn, int version, cuuint64_t flags);
/* The exported name of `fn`; NULL: some drivers answer with functions that have none. */
const char *proc_address_symbol(const void *fn);
/* True if `fn` is newer than the tables: asked for `name` at the newest version that they know, the driver does not answer with `fn`. */
bool proc_address_is_newer(const char *name, const void *fn, int version, cuuint64_t flags);

#endif
