/* bypass.c: see bypass.h. */
#include "preload/bypass.h"

#include "preload/dlopen.h"
#include "preload/door.h"
#include "preload/libc_dlsym.h"
#include "preload/linked.h"
#include "tracer/loader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- in the process ------------------------------------------------------------------------------------------------------ */

/* Libraries that count once they are in the process; `file`: the beginning of a file's name. */
static const struct engine {
    const char *file, *what;
} engines[] = {
    {"libnvoptix.so", "OptiX"},
    {"libnvidia-encode.so", "the video encoder"},
    {"libnvcuvid.so", "the video decoder"},
    {"libnvidia-opticalflow.so", "the optical flow engine"},
    {"libnvidia-fbc.so", "the frame grabber"},
};
enum { ENGINES = sizeof engines / sizeof engines[0] };

static bool is_file(const char *path, const char *begins)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    return strncmp(base, begins, strlen(begins)) == 0;
}

struct look {
    unsigned long long seen, now; /* libraries loaded so far, as the loader counts: at the last look, and at this one */
    const struct engine *found;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct look *l = arg;
    (void)size;
    l->now = info->dlpi_adds;
    if (l->now == l->seen)
        return 1;
    for (int i = 0; i < ENGINES && info->dlpi_name; i++)
        if (is_file(info->dlpi_name, engines[i].file))
            l->found = &engines[i];
    return l->found != NULL;
}

static atomic_bool told;

static void tell(const struct engine *e)
{
    char line[160];
    if (atomic_exchange(&told, true))
        return;
    snprintf(line, sizeof line, "%s is in the process (%s), which works on device memory past the driver", e->file, e->what);
    net_stay("a library that works on device memory past the driver", line);
}

void bypass_look(void)
{
    static atomic_ullong seen;
    dlopen_is_over();
    const unsigned long long begun = atomic_load_explicit(&dlopen_begun, memory_order_acquire);
    bool under_way = atomic_load_explicit(&dlopen_threads, memory_order_acquire) > 0;
    atomic_fetch_and_explicit(&door_watch, ~(unsigned)WATCH_LOADED, memory_order_acq_rel); /* before the walk: a library that comes meanwhile sets the bit again */
    if (atomic_load_explicit(&told, memory_order_relaxed))
        return;
    struct look l = {.seen = atomic_load_explicit(&seen, memory_order_relaxed)};
    loader_walk(look_at, &l);
    if (l.now != l.seen && linked_look())
        atomic_store_explicit(&seen, l.now, memory_order_relaxed);
    else
        under_way |= l.now != l.seen;
    if (l.found)
        tell(l.found);
    under_way |= atomic_load_explicit(&dlopen_threads, memory_order_acquire) > 0 || atomic_load_explicit(&dlopen_begun, memory_order_acquire) != begun;
    if (under_way)
        atomic_fetch_or_explicit(&door_watch, WATCH_LOADED, memory_order_release);
}

/* ---- called -------------------------------------------------------------------------------------------------------------- */

#define CUFILE "cuFile reads and writes files past the driver"
#define RDMA "a network card reaches device memory"
#define NVSHMEM "other processes reach device memory"
#define GDRCOPY "the host reaches device memory"

/* C(library, symbol, why, function called where there is no room, number of the argument that must be a device address; 0: none) */
#define CALLS(C)                                                                                                       \
    C("libcufile.so", cuFileBufRegister, CUFILE, minus_one, 0)                                                         \
    C("libcufile.so", cuFileRead, CUFILE, minus_one, 0)                                                                \
    C("libcufile.so", cuFileWrite, CUFILE, minus_one, 0)                                                               \
    C("libcufile.so", cuFileReadAsync, CUFILE, minus_one, 0)                                                           \
    C("libcufile.so", cuFileWriteAsync, CUFILE, minus_one, 0)                                                          \
    C("libcufile.so", cuFileBatchIOSubmit, CUFILE, minus_one, 0)                                                       \
    C("libnvshmem_host.so", nvshmemid_hostlib_init_attr, NVSHMEM, minus_one, 0)                                        \
    C("libnvshmem_host.so", nvshmemx_hostlib_init_attr, NVSHMEM, minus_one, 0)                                         \
    C("libnvshmem_host.so", nvshmemi_init_thread, NVSHMEM, minus_one, 0)                                               \
    C("libibverbs.so", ibv_reg_mr, RDMA, null, 2)                                                                      \
    C("libibverbs.so", ibv_reg_mr_iova, RDMA, null, 2)                                                                 \
    C("libibverbs.so", ibv_reg_mr_iova2, RDMA, null, 2)                                                                \
    C("libibverbs.so", ibv_rereg_mr, RDMA, minus_one, 4)                                                               \
    C("libmlx5.so", mlx5dv_devx_umem_reg, RDMA, null, 2)                                                               \
    C("libgdrapi.so", gdr_pin_buffer, GDRCOPY, no_memory, 2)                                                           \
    C("libgdrapi.so", gdr_pin_buffer_v2, GDRCOPY, no_memory, 2)

static long minus_one(void)
{
    errno = ENOMEM;
    return -1;
}
static void *null(void)
{
    errno = ENOMEM;
    return NULL;
}
static int no_memory(void) { return ENOMEM; }

static void *real_of(const char *symbol);
#define C(library, symbol, why, refusal, address) NET_EXPORT(symbol, why, real_of, refusal, address)
CALLS(C)
#undef C

static const struct call {
    struct net_export x;
    const char *library;
} calls[] = {
#define C(library, symbol, why, refusal, address) {{#symbol, net_stub_##symbol}, library},
    CALLS(C)
#undef C
};

static const struct call *call_of(const char *symbol)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (!strcmp(calls[i].x.symbol, symbol))
            return &calls[i];
    return NULL;
}

const struct net_export *bypass_export_of(const char *symbol)
{
    const struct call *c = call_of(symbol);
    return c ? &c->x : NULL;
}

struct search {
    const char *file;
    const char *path; /* owned by the loader */
};

static int search_one(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *s = arg;
    (void)size;
    if (!info->dlpi_name || !is_file(info->dlpi_name, s->file))
        return 0;
    s->path = info->dlpi_name;
    return 1;
}

bool bypass_loaded(const char *symbol)
{
    struct search s = {.file = call_of(symbol)->library};
    return loader_walk(search_one, &s) != 0;
}

bool bypass_has_address(const char *symbol, const void *address)
{
    Dl_info info;
    return loader_address(address, &info) && info.dli_fname && is_file(info.dli_fname, call_of(symbol)->library);
}

/* The library's own function, past the stub. The library is in the process: loader_open() takes a reference, and loads nothing. */
static void *real_of(const char *symbol)
{
    struct search s = {.file = call_of(symbol)->library};
    loader_walk(search_one, &s);
    void *h = s.path ? loader_open(s.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return h ? libc_dlsym(h, symbol) : NULL;
}
