/* bypass.h: libraries that work on device memory past the driver: no driver call shows what they read or write, and when. Memory stays where it is as soon
 * as such a library may do so (policy/stays.h), and one line says so.
 *
 *   in the process    libraries of video engines and ray tracing count once loaded: a program that loads libnvidia-encode.so.1 encodes
 *   called            libraries that many programs load and few use count at a call: PyTorch needs libcufile.so.0 and libnvshmem_host.so.3, NCCL opens
 *                     libibverbs.so.1 wherever it is installed. Their functions that are given device memory are exported here, as stubs (net.h): cuFileRead,
 *                     ibv_reg_mr (where the address is one of device memory), ...
 *
 * Threads: any. bypass_look() asks the loader, and must not be called with the engine's mutex held. Errors: none.
 */
#ifndef REMAT_PRELOAD_BYPASS_H
#define REMAT_PRELOAD_BYPASS_H

#include <stdbool.h>

#include "preload/net.h"

/* Looks for libraries that have come since the last look: one walk through the loader's list, comparing names. Clears WATCH_LOADED unless a library may still be on its way. */
void bypass_look(void);

/* True if `n` may be the name of a function exported here: a few instructions, for dlsym. */
static inline bool bypass_may_be(const char *n)
{
    switch (n[0]) {
    case 'g':
        return n[1] == 'd' && n[2] == 'r' && n[3] == '_';
    case 'i':
        return n[1] == 'b' && n[2] == 'v' && n[3] == '_';
    case 'm':
        return n[1] == 'l' && n[2] == 'x' && n[3] == '5';
    case 'n':
        return n[1] == 'v' && n[2] == 's' && n[3] == 'h';
    default:
        return false;
    }
}
/* The export named `symbol`; NULL: none. */
const struct net_export *bypass_export_of(const char *symbol);
/* bypass_loaded(): the library that has the function `symbol` is in the process. bypass_has_address(): `address` lies in that library. Both: `symbol` has an export. */
bool bypass_loaded(const char *symbol);
bool bypass_has_address(const char *symbol, const void *address);

#endif
