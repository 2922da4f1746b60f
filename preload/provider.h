/* provider.h: the libraries that the real entry points come from: CUDA's driver, NVML, NCCL.
 *
 * Threads: any. Errors: none; what is not there is false or NULL.
 */
#ifndef REMAT_PRELOAD_PROVIDER_H
#define REMAT_PRELOAD_PROVIDER_H

#include <stdbool.h>

#include "preload/rows.h"

/* True when the provider's library is in the process. No allocation. */
bool provider_loaded(enum door_provider p);
/* Fills door_real's entries of this provider once its library is loaded; false while it is not. */
bool provider_resolve(enum door_provider p);
/* Any symbol of a provider's, past the doors; NULL when there is none. */
void *provider_symbol(enum door_provider p, const char *name);
/* The driver's. */
void *provider_driver_symbol(const char *name);
/* True when `address` lies in the library the provider's calls come from. */
bool provider_has_address(enum door_provider p, const void *address);

#endif
