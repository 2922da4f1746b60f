/* dlopen.h: libraries come. The program's dlopen passes here, as its dlsym does: a few instructions, then glibc's own with the caller's return address. Nothing is
 * asked of the loader here, and nobody waits: a bit says that somebody has to look (WATCH_LOADED, bypass.h).
 *
 * Threads: any. No allocation and no lock. Errors: none.
 */
#ifndef REMAT_PRELOAD_DLOPEN_H
#define REMAT_PRELOAD_DLOPEN_H

#include <stdatomic.h>
#include <stdbool.h>

/* This thread has begun to load something, and not come here since: then what is loaded may not be in the loader's list yet. */
extern _Thread_local bool dlopen_under_way __attribute__((visibility("hidden"), tls_model("initial-exec")));
/* How many threads have; and how often one has begun, ever. */
extern atomic_int dlopen_threads __attribute__((visibility("hidden")));
extern atomic_ullong dlopen_begun __attribute__((visibility("hidden")));
/* This thread is back, or in a constructor of what is loaded: that is in the list. */
static inline void dlopen_is_over(void)
{
    if (__builtin_expect(dlopen_under_way, 0)) {
        dlopen_under_way = false;
        atomic_fetch_sub_explicit(&dlopen_threads, 1, memory_order_release);
    }
}

#endif
