/* loader.h: the dynamic loader, and the locks of ours that nobody may hold who asks it.
 *
 * A thread that loads a library holds the loader's lock while the library's constructors run, and a constructor may make any driver call, which
 * takes the engine's mutex: libcudart does under CUDA_MODULE_LOADING=EAGER, and so does an extension module with a global tensor. So nobody asks
 * the loader anything (dlopen, dlsym, dladdr, dl_iterate_phdr, a walk up the stack, a module that the driver has to load) while a lock of ours is
 * held: whoever has to, asks before, or gives the lock back first.
 *
 * Two halves hold that. All locks of ours are taken by loader_lock(), which counts them by thread, and all questions go through loader_open() and its
 * kin, or begin with loader_asks(): with a lock held they say so in a line with "a check of remat's own failed", which fails every test, and go
 * on. And no other file names those functions (tests/system/test_rooms.py).
 *
 * Threads: any. Errors: as of the functions that are asked.
 */
#ifndef REMAT_TRACER_LOADER_H
#define REMAT_TRACER_LOADER_H

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>

/* Locks of ours that this thread holds. */
extern _Thread_local int loader_locks_held __attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline void loader_lock(pthread_mutex_t *m)
{
    pthread_mutex_lock(m);
    loader_locks_held++;
}
static inline bool loader_trylock(pthread_mutex_t *m)
{
    const bool taken = pthread_mutex_trylock(m) == 0;
    loader_locks_held += taken;
    return taken;
}
static inline void loader_unlock(pthread_mutex_t *m)
{
    loader_locks_held--;
    pthread_mutex_unlock(m);
}

/* Not called by name. */
__attribute__((cold)) void loader_asked_with_lock(const char *what);
/* The loader is about to be asked: `what` names the question. False: a lock of ours is held, and that has been said. */
static inline bool loader_asks(const char *what)
{
    if (__builtin_expect(loader_locks_held == 0, true))
        return true;
    loader_asked_with_lock(what);
    return false;
}

void *loader_open(const char *file, int flags);
void loader_close(void *handle);
/* With the caller's name for it: RTLD_NEXT is not for here. */
void *loader_symbol(void *handle, const char *name);
const char *loader_error(void);
bool loader_address(const void *address, Dl_info *info);
int loader_walk(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg);

#endif
