/* libc_dlsym.c: see libc_dlsym.h. Never instrumented (preload.mk): a sanitizer's runtime asks for libc's functions before it is set up. */
#include "preload/libc_dlsym.h"

#include <stdatomic.h>
#include <stddef.h>

_Atomic(void *) libc_dlsym_found;

__typeof__(&dlsym) libc_dlsym_find(void)
{
    void *f = atomic_load_explicit(&libc_dlsym_found, memory_order_acquire);
    if (!f) {
        /* glibc's oldest version is 2.2.5 on x86-64, 2.17 on aarch64. */
        static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
        for (size_t i = 0; !f && i < sizeof versions / sizeof versions[0]; i++)
            f = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        atomic_store_explicit(&libc_dlsym_found, f, memory_order_release);
    }
    return (__typeof__(&dlsym))f;
}

void *libc_dlsym(void *handle, const char *name)
{
    __typeof__(&dlsym) f = libc_dlsym_find();
    return f ? f(handle, name) : NULL;
}
