/* provider.h: the libraries that the real entry points come from: CUDA's driver, NVML, NCCL.
 *
 * Threads: any. Errors: none; a missing library or symbol is false or NULL.
 */
#ifndef REMAT_PRELOAD_PROVIDER_H
#define REMAT_PRELOAD_PROVIDER_H

#include <stdbool.h>

#include "preload/rows.h"

/* True when the provider's library is in the process. No allocation. */
bool provider_loaded(enum door_provider p);
/* Fills door_real's entries of this provider once its library is loaded; false while it is not. */
bool provider_resolve(enum door_provider p);
/* A symbol of the provider's library, past the doors; NULL: it has no such symbol. */
void *provider_symbol(enum door_provider p, const char *name);
/* provider_symbol() of the driver. */
void *provider_driver_symbol(const char *name);
/* True when `address` lies in the library the provider's calls come from. */
bool provider_has_address(enum door_provider p, const void *address);

#endif
