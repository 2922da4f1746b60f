/* door.c: the state behind door.h: finding the real entry points, starting and ending the engine, counters.
 *
 * Loading the library does next to nothing: it reads three environment variables. No thread, no driver, no output.
 */
#include "preload/door.h"

#include "policy/process/log.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct door_row door_rows[HOOK_COUNT] = {
#define H(sym, base, since, mode, body, params, args)                                                                  \
    [HOOK_##sym] = {#sym, base, since, MODE_##mode, DOOR_CUDA, (void *)hook_##sym, (void **)&door_real.sym},
    HOOKS_CUDA(H)
#undef H
#define N(sym, params, args) {#sym, NULL, 0, MODE_PLAIN, DOOR_NVML, (void *)hook_##sym, (void **)&door_real.sym},
    HOOKS_NVML(N)
#undef N
#define N(sym, params, args) {#sym, NULL, 0, MODE_PLAIN, DOOR_NCCL, (void *)hook_##sym, (void **)&door_real.sym},
    HOOKS_NCCL(N)
#undef N
};

/* ---- before the real library is found, and for what it lacks ---------------------------------------------------------- */

static int no_driver(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}
static int not_in_driver(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}
static int not_in_nvml(void)
{
    return 13; /* NVML_ERROR_FUNCTION_NOT_FOUND */
}
static int not_in_nccl(void)
{
    return 2; /* ncclSystemError */
}

struct door_real door_real = {
#define H(sym, ...) .sym = (__typeof__(&sym))(void *)no_driver,
    HOOKS_CUDA(H)
#undef H
#define H(sym, ...) .sym = (__typeof__(&sym))(void *)not_in_nvml,
    HOOKS_NVML(H)
#undef H
#define H(sym, ...) .sym = (__typeof__(&sym))(void *)not_in_nccl,
    HOOKS_NCCL(H)
#undef H
};

_Thread_local int door_depth;

/* ---- the program's stack ------------------------------------------------------------------------------------------------ */

/* How much of a small stack is left alone: what is interrupted there needs room too. */
enum { SPARED = 8 << 10, LINE = 64 };

static _Thread_local uintptr_t stack_low, stack_high; /* of this thread; high 0: not asked yet */

static void find_stack(void)
{
    pthread_attr_t a;
    void *low = NULL;
    size_t bytes = 0;
    stack_low = stack_high = 1; /* unknown: no address lies between the two */
    if (pthread_getattr_np(pthread_self(), &a))
        return;
    if (!pthread_attr_getstack(&a, &low, &bytes)) {
        stack_low = (uintptr_t)low;
        stack_high = stack_low + bytes;
    }
    pthread_attr_destroy(&a);
}

/* No library function: a sanitizer would note every byte of what is not alive. */
__attribute__((no_sanitize("address", "thread"))) static inline void clear(char *p, size_t n)
{
#ifdef __x86_64__
    __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0) : "memory");
#else
    for (size_t i = 0; i < n; i += LINE) {
        __builtin_memset(p + i, 0, LINE);
        __asm__ volatile("" : : "r"(p) : "memory"); /* it is read by nobody here */
    }
#endif
}

__attribute__((noinline, no_sanitize("address", "thread"))) void door_sweep_stack(size_t most)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!stack_high)
        find_stack();
    if (here < stack_low + SPARED || here >= stack_high)
        return; /* or a coroutine's stack, the end of which nobody knows */
    const size_t room = here - stack_low - SPARED, n = (room < most ? room : most) & ~(size_t)(LINE - 1);
    clear(__builtin_alloca(n + LINE), n);
}

/* ---- is there anything to do? ------------------------------------------------------------------------------------------- */

atomic_uint door_watch = WATCH_UNRESOLVED | WATCH_UNSTARTED;

bool door_disabled(void)
{
    static atomic_int known; /* 0: not read yet, 1: open, 2: disabled */
    int k = atomic_load_explicit(&known, memory_order_relaxed);
    if (k == 0) {
        const char *v = getenv("REMAT_DISABLE");
        /* where the system sets maxima, the engine decides whether anybody may be left alone */
        k = v && *v && strcmp(v, "0") != 0 && !eng_may_hold() ? 2 : 1;
        atomic_store_explicit(&known, k, memory_order_relaxed);
    }
    return k == 2;
}

/* ---- the real libraries ------------------------------------------------------------------------------------------------- */

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

bool door_provider_loaded(enum door_provider p)
{
    static atomic_bool seen[DOOR_PROVIDERS];
    if (atomic_load_explicit(&seen[p], memory_order_relaxed))
        return true;
    struct provider_search s = {p, NULL};
    if (!dl_iterate_phdr(search_one, &s))
        return false;
    atomic_store_explicit(&seen[p], true, memory_order_relaxed);
    return true;
}

bool door_is_provider_address(enum door_provider p, const void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_fname && is_provider_file(p, info.dli_fname);
}

static pthread_mutex_t resolve_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(void *) provider_handle[DOOR_PROVIDERS];

bool door_resolve(enum door_provider p)
{
    if (atomic_load_explicit(&provider_handle[p], memory_order_acquire))
        return true;
    struct provider_search s = {p, NULL};
    dl_iterate_phdr(search_one, &s);
    if (!s.path)
        return false;
    /* Already in the process: this takes a reference, so that the pointers below stay good, and loads nothing. */
    void *h = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD);
    if (!h)
        return false;
    pthread_mutex_lock(&resolve_lock);
    if (!atomic_load_explicit(&provider_handle[p], memory_order_relaxed)) {
        for (int i = 0; i < HOOK_COUNT; i++) {
            if (door_rows[i].provider != p)
                continue;
            void *real = door_real_dlsym(h, door_rows[i].symbol);
            if (!real && p == DOOR_CUDA)
                real = (void *)not_in_driver;
            if (real)
                __atomic_store_n(door_rows[i].real, real, __ATOMIC_RELAXED);
        }
        atomic_store_explicit(&provider_handle[p], h, memory_order_release);
        if (p == DOOR_CUDA)
            atomic_fetch_and_explicit(&door_watch, ~(unsigned)WATCH_UNRESOLVED, memory_order_release);
    }
    pthread_mutex_unlock(&resolve_lock);
    return true;
}

void *door_driver_symbol(const char *name)
{
    return door_resolve(DOOR_CUDA) ? door_real_dlsym(atomic_load(&provider_handle[DOOR_CUDA]), name) : NULL;
}

/* ---- counters (REMAT_LOG=doors) -------------------------------------------------------------------------------------------- */

static atomic_ullong called[HOOK_COUNT], given[DOOR_ROUTES][HOOK_COUNT], asked[DOOR_ROUTES];

static bool counting(void)
{
    return atomic_load_explicit(&door_watch, memory_order_relaxed) & WATCH_COUNT;
}

void door_note_given(enum hook_id id, enum door_route route)
{
    if (counting())
        atomic_fetch_add_explicit(&given[route][id], 1, memory_order_relaxed);
}

void door_note_asked(enum door_route route)
{
    if (counting())
        atomic_fetch_add_explicit(&asked[route], 1, memory_order_relaxed);
}

static void print_counters(void)
{
    for (int i = 0; i < HOOK_COUNT; i++) {
        unsigned long long n = called[i], d = given[ROUTE_DLSYM][i], g = given[ROUTE_PROC_ADDRESS][i];
        if (n || d || g)
            log_line(0, 1, "door %s: %llu calls, given %llu times by dlsym, %llu by cuGetProcAddress",
                     door_rows[i].symbol, n, d, g);
    }
    log_line(0, 1, "doors: dlsym was asked %llu times for a name of ours, cuGetProcAddress %llu times for any name",
             (unsigned long long)asked[ROUTE_DLSYM], (unsigned long long)asked[ROUTE_PROC_ADDRESS]);
}

/* ---- life --------------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct drv driver; /* the engine keeps a pointer to it */
static pid_t started_in;  /* the process whose engine it is; 0: none. A forked child must not finish its parent's */

/* A forked child has no device: the driver refuses all that it asks. Yet it lets go of what its parent had on one: an interpreter's collector
 * finds tensors in a loader's worker. PyTorch's own allocator answers that without the driver; of a stream-ordered one, which `remat run` has it use,
 * a refused free comes as an exception out of a destructor and ends the child. So a child's free succeeds, and nothing is done. */
static CUresult freed_in_child(CUdeviceptr p, CUstream s)
{
    (void)p, (void)s;
    return CUDA_SUCCESS;
}

static void child_frees(void)
{
    __atomic_store_n(&door_real.cuMemFreeAsync, freed_in_child, __ATOMIC_RELAXED);
    __atomic_store_n(&door_real.cuMemFreeAsync_ptsz, freed_in_child, __ATOMIC_RELAXED);
}

static void child_passes_through(void)
{
    eng_after_fork_child();
}

static void finish(void)
{
    if (started_in != getpid())
        return;
    int depth = door_depth;
    door_depth = DOOR_SHUT;
    eng_finish();
    door_depth = depth;
}

/* os._exit() and the like run no destructor. exit() itself does not come this way. What was in front of the C library's function
 * before this library was is called on: the loader's order is kept. */
static __typeof__(&_exit) next_exit;

DOOR_PUBLIC void _exit(int status)
{
    if (started_in && started_in == getpid())
        eng_finish_now();
    if (next_exit)
        next_exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

DOOR_PUBLIC void _Exit(int status)
{
    _exit(status);
}

static void fill_driver_table(void)
{
#define D(name) driver.name = (__typeof__(driver.name))door_driver_symbol(#name);
    DRV_REQUIRED(D)
    DRV_OPTIONAL(D)
#undef D
    driver.nvml_limits = door_nvml_limits;
}

void door_start(void)
{
    if (door_disabled() || !door_resolve(DOOR_CUDA))
        return;
    pthread_mutex_lock(&start_lock);
    if (atomic_load_explicit(&door_watch, memory_order_relaxed) & WATCH_UNSTARTED) {
        int depth = door_depth;
        door_depth = DOOR_SHUT;
        fill_driver_table();
        pthread_atfork(NULL, NULL, child_frees); /* whatever the policy: the allocator is chosen in any case */
        const char *missing;
        if (!drv_complete(&driver, &missing)) {
            log_once(SAY_WARN, "this driver has no %s: calls pass through", missing);
        } else if (eng_start(&driver) == 0) {
            started_in = getpid();
            pthread_atfork(NULL, NULL, child_passes_through);
            /* Registered after the driver's own handlers, hence run before them: the driver still answers. */
            atexit(finish);
            at_quick_exit(finish);
        }
        door_depth = depth;
        atomic_fetch_and_explicit(&door_watch, ~(unsigned)WATCH_UNSTARTED, memory_order_release);
    }
    pthread_mutex_unlock(&start_lock);
}

/* A program may have the driver initialised by a route that passes no door. */
static void start_if_initialised(void)
{
    __typeof__(&cuCtxGetCurrent) get = (__typeof__(get))door_driver_symbol("cuCtxGetCurrent");
    CUcontext ctx;
    if (get && get(&ctx) == CUDA_SUCCESS && ctx)
        door_start();
}

/* Some programs bring their own cu* functions, which open the driver at their first call. Our exports come before theirs,
 * so the call arrives here and opening falls to us. Once: without a driver, calls answer CUDA_ERROR_NOT_INITIALIZED. */
static void load_driver(void)
{
    static atomic_bool tried;
    if (!atomic_exchange(&tried, true) && dlopen("libcuda.so.1", RTLD_LAZY))
        door_resolve(DOOR_CUDA);
}

void door_slow(enum hook_id id)
{
    unsigned watch = atomic_load_explicit(&door_watch, memory_order_relaxed);
    if (watch & WATCH_COUNT)
        atomic_fetch_add_explicit(&called[id], 1, memory_order_relaxed);
    enum door_provider p = door_rows[id].provider;
    if (p == DOOR_CUDA && (watch & WATCH_UNRESOLVED) && !door_resolve(p))
        load_driver();
    if (p == DOOR_CUDA && (watch & WATCH_UNSTARTED) && door_depth == DOOR_OPEN && !door_disabled())
        start_if_initialised();
}

__attribute__((constructor)) static void on_load(void)
{
    const char *spec = getenv("REMAT_LOG");
    next_exit = (__typeof__(next_exit))door_real_dlsym(RTLD_NEXT, "_exit");
    eng_loaded();
    if (log_init(spec))
        log_line(0, 1, "REMAT_LOG='%s': unknown words ignored; it takes error, warn, info or debug, and doors", spec);
    if (door_disabled())
        atomic_fetch_and(&door_watch, ~(unsigned)WATCH_UNSTARTED);
    if (log_topics & LOG_TOPIC_DOORS)
        atomic_fetch_or(&door_watch, WATCH_COUNT);
}

__attribute__((destructor)) static void on_unload(void)
{
    finish();
    if (atomic_load_explicit(&door_watch, memory_order_relaxed) & WATCH_UNSTARTED)
        eng_unused();
    if (counting())
        print_counters();
}
