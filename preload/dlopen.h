/* dlopen.h: the program's dlopen passes here, as its dlsym does: a few instructions, then a jump to glibc's dlopen, which sees the program's return address.
 * The loader is not asked anything here, and no thread waits: the bit WATCH_LOADED says that bypass_look() has to look for new libraries (bypass.h).
 *
 * Threads: any. No allocation and no lock. Errors: none.
 */
#ifndef REMAT_PRELOAD_DLOPEN_H
#define REMAT_PRELOAD_DLOPEN_H

#include <stdatomic.h>
#include <stdbool.h>

/* True from the start of this thread's dlopen until dlopen_is_over(): the library may not be in the loader's list yet. */
extern _Thread_local bool dlopen_under_way __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* dlopen_threads: threads with dlopen_under_way set; dlopen_begun: calls of dlopen by the program so far. */
extern atomic_int dlopen_threads __attribute__((visibility("hidden")));
extern atomic_ullong dlopen_begun __attribute__((visibility("hidden")));
/* For a thread that is back from dlopen, or in a constructor of the library: the library is in the loader's list. */
static inline void dlopen_is_over(void)
{
    if (__builtin_expect(dlopen_under_way, 0)) {
        dlopen_under_way = false;
        atomic_fetch_sub_explicit(&dlopen_threads, 1, memory_order_release);
    }
}

#endif
