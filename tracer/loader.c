/* loader.c: see loader.h. */
#include "tracer/loader.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

_Thread_local int loader_locks_held;

void loader_asked_with_lock(const char *what)
{
    static atomic_bool said;
    char line[200];
    if (atomic_exchange(&said, true))
        return;
    const int n = snprintf(line, sizeof line, "remat[%ld]: a check of remat's own failed: the loader is asked with a lock held (%s); please report this\n",
                           (long)getpid(), what);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* stderr is closed */
}

void *loader_open(const char *file, int flags)
{
    (void)loader_asks(file);
    return dlopen(file, flags);
}

void loader_close(void *handle)
{
    (void)loader_asks("dlclose");
    dlclose(handle);
}

void *loader_symbol(void *handle, const char *name)
{
    (void)loader_asks(name);
    return dlsym(handle, name);
}

const char *loader_error(void) { return dlerror(); }

bool loader_address(const void *address, Dl_info *info)
{
    (void)loader_asks("dladdr");
    return dladdr(address, info) != 0;
}

int loader_walk(int (*each)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    (void)loader_asks("dl_iterate_phdr");
    return dl_iterate_phdr(each, arg);
}
