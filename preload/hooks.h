/* hooks.h: the hook of each row of hooks.def, for the code that hands hooks out.
 *
 * Threads: any; constant.
 */
#ifndef REMAT_PRELOAD_HOOKS_H
#define REMAT_PRELOAD_HOOKS_H

#include "preload/door.h"

extern void *const hooks[HOOK_COUNT];

#endif
