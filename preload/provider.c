/* provider.c: see provider.h. */
#include "preload/door.h"
#include "preload/libc_dlsym.h"
#include "tracer/loader.h"

#include <string.h>

static const char *const provider_file[DOOR_PROVIDERS] = {"libcuda.so", "libnvidia-ml.so", "libnccl.so"};

static bool is_provider_file(enum door_provider p, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    return strncmp(base, provider_file[p], strlen(provider_file[p])) == 0;
}

struct provider_search {
    enum door_provider provider;
    const char *path; /* owned by the loader */
};

static int search_one(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct provider_search *s = arg;
    (void)size;
    if (!info->dlpi_name || !is_provider_file(s->provider, info->dlpi_name))
        return 0;
    s->path = info->dlpi_name;
    return 1;
}

bool provider_loaded(enum door_provider p)
{
    static atomic_bool seen[DOOR_PROVIDERS];
    if (atomic_load_explicit(&seen[p], memory_order_relaxed))
        return true;
    struct provider_search s = {p, NULL};
    if (!loader_walk(search_one, &s))
        return false;
    atomic_store_explicit(&seen[p], true, memory_order_relaxed);
    return true;
}

bool provider_has_address(enum door_provider p, const void *address)
{
    Dl_info info;
    return loader_address(address, &info) && info.dli_fname && is_provider_file(p, info.dli_fname);
}

static pthread_mutex_t resolve_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(void *) provider_handle[DOOR_PROVIDERS];

bool provider_resolve(enum door_provider p)
{
    if (atomic_load_explicit(&provider_handle[p], memory_order_acquire))
        return true;
    struct provider_search s = {p, NULL};
    loader_walk(search_one, &s);
    if (!s.path)
        return false;
    /* The library is in the process already: loader_open() takes a reference, so that the pointers below stay good, and loads nothing. */
    void *h = loader_open(s.path, RTLD_LAZY | RTLD_NOLOAD);
    if (!h)
        return false;
    void *real[HOOK_COUNT] = {0};
    for (int i = 0; i < HOOK_COUNT; i++) {
        if (door_rows[i].provider != p)
            continue;
        real[i] = libc_dlsym(h, door_rows[i].symbol);
        if (!real[i] && p == DOOR_CUDA)
            real[i] = (void *)rows_not_in_driver;
    }
    loader_lock(&resolve_lock);
    if (!atomic_load_explicit(&provider_handle[p], memory_order_relaxed)) {
        for (int i = 0; i < HOOK_COUNT; i++)
            if (real[i])
                __atomic_store_n(door_rows[i].real, real[i], __ATOMIC_RELAXED);
        atomic_store_explicit(&provider_handle[p], h, memory_order_release);
        if (p == DOOR_CUDA)
            atomic_fetch_and_explicit(&door_watch, ~(unsigned)WATCH_UNRESOLVED, memory_order_release);
    }
    loader_unlock(&resolve_lock);
    return true;
}

void *provider_symbol(enum door_provider p, const char *name)
{
    return provider_resolve(p) && (loader_asks(name), true) ? libc_dlsym(atomic_load(&provider_handle[p]), name) : NULL;
}

void *provider_driver_symbol(const char *name) { return provider_symbol(DOOR_CUDA, name); }
