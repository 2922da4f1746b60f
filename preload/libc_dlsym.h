/* libc_dlsym.h: the C library's own dlsym, past ours (dlsym.c).
 *
 * Threads: any. No allocation and no lock: programs call dlsym from inside malloc, and before main.
 */
#ifndef REMAT_PRELOAD_LIBC_DLSYM_H
#define REMAT_PRELOAD_LIBC_DLSYM_H

#include <dlfcn.h>

/* Its address; NULL until libc_dlsym_find() has been called. The assembly in dlsym.c jumps there. */
extern _Atomic(void *) libc_dlsym_found __attribute__((visibility("hidden")));
/* NULL: there is none. */
__typeof__(&dlsym) libc_dlsym_find(void);
void *libc_dlsym(void *handle, const char *name);

#endif
