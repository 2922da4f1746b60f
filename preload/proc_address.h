/* proc_address.h: which variant of a call the driver answered cuGetProcAddress with. Any thread; no errors. */
#ifndef REMAT_PRELOAD_PROC_ADDRESS_H
#define REMAT_PRELOAD_PROC_ADDRESS_H

#include "preload/rows.h"

/* `fn`: what the driver answered for (name, version, flags). HOOK_COUNT: a variant that has no row. provider_resolve() has been called. */
enum hook_id proc_address_row(const char *name, const void *fn, int version, cuuint64_t flags);

#endif
