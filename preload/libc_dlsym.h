/* libc_dlsym.h: the C library's own dlsym, past ours (dlsym.c).
 *
 * Threads: any. No allocation and no lock: programs call dlsym from inside malloc, and before main.
 */
#ifndef REMAT_PRELOAD_LIBC_DLSYM_H
#define REMAT_PRELOAD_LIBC_DLSYM_H

#include <dlfcn.h>

/* Address of the C library's dlsym; NULL until libc_dlsym_find() has been called. The assembly in dlsym.c jumps to it. */
extern _Atomic(void *) libc_dlsym_found __attribute__((visibility("hidden")));
/* Returns the C library's dlsym; NULL: not found. */
__typeof__(&dlsym) libc_dlsym_find(void);
void *libc_dlsym(void *handle, const char *name);

#endif
