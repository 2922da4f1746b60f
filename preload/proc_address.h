/* proc_address.h: from the driver's answer to cuGetProcAddress to ours. Any thread; no errors. */
#ifndef REMAT_PRELOAD_PROC_ADDRESS_H
#define REMAT_PRELOAD_PROC_ADDRESS_H

#include "preload/door.h"

/* `fn`: what the driver answered for (name, version, flags). Returns the hook of that exact variant, or fn. */
void *proc_address_swap(const char *name, void *fn, int version, cuuint64_t flags);

#endif
