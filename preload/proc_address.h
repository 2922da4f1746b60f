/* proc_address.h: which variant of a call the driver answered cuGetProcAddress with. Any thread; no errors. */
#ifndef REMAT_PRELOAD_PROC_ADDRESS_H
#define REMAT_PRELOAD_PROC_ADDRESS_H

#include "preload/rows.h"

#include <stdbool.h>

/* `fn`: what the driver answered for (name, version, flags). HOOK_COUNT: a variant that has no row. provider_resolve() has been called. */
enum hook_id proc_address_row(const char *name, const void *fn, int version, cuuint64_t flags);
/* The exported name of `fn`; NULL: it has none, as some drivers answer. */
const char *proc_address_symbol(const void *fn);
/* The driver answers something else to who asks for this name at the newest version that the tables know. */
bool proc_address_is_newer(const char *name, const void *fn, int version, cuuint64_t flags);

#endif
