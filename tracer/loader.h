/* loader.h: calls of the dynamic loader. No thread may make one while it holds a lock of remat's.
 *
 * A thread that loads a library holds the loader's lock while the library's constructors run, and a constructor may make any driver call, which
 * takes the engine's mutex: libcudart does under CUDA_MODULE_LOADING=EAGER, and so does an extension module with a global tensor. To prevent a deadlock
 * no question to the loader (dlopen, dlsym, dladdr, dl_iterate_phdr, a walk up the stack, a module that the driver has to load) is asked while a lock of
 * remat's is held: the question comes before the lock, or the lock is given back first.
 *
 * Two checks enforce the rule. All of remat's locks are taken by loader_lock(), which counts them by thread, and all questions go through loader_open()
 * and its kin, or begin with loader_asks(): with a lock held these write a line with "a check of remat's own failed", which fails every test, and go
 * on. And no other file names the loader's functions (tests/system/test_rooms.py).
 *
 * Threads: any. Errors: those of the loader's functions.
 */
#ifndef REMAT_TRACER_LOADER_H
#define REMAT_TRACER_LOADER_H

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>

/* Number of remat's locks that this thread holds. */
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

/* For loader_asks() and its kin alone. */
__attribute__((cold)) void loader_asked_with_lock(const char *what);
/* Call before asking the loader: `what` names the question. False: a lock of remat's is held, and a line on stderr has said so. */
static inline bool loader_asks(const char *what)
{
    if (__builtin_expect(loader_locks_held == 0, true))
        return true;
    loader_asked_with_lock(what);
    return false;
}

void *loader_open(const char *file, int flags);
void loader_close(void *handle);
/* dlsym(); not for RTLD_NEXT. */
void *loader_symbol(void *handle, const char *name);
const char *loader_error(void);
bool loader_address(const void *address, Dl_info *info);
int loader_walk(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg);

#endif
