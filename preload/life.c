/* life.c: see life.h.
 *
 * Loading the library does next to nothing: it reads a few environment variables, and mends those of PyTorch's allocator. No thread, no driver, no output.
 */
#include "preload/bypass.h"
#include "preload/door.h"
#include "preload/libc_dlsym.h"
#include "preload/net.h"
#include "preload/nvml_limits.h"
#include "preload/torch_env.h"
#include "tracer/loader.h"

#include "policy/life.h"
#include "policy/process/log.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock; /* held while the engine starts */
    struct drv driver;    /* the engine keeps a pointer to this table */
    pid_t started_in;     /* the process that started the engine; 0: none. A forked child must not finish its parent's */
    pid_t refused_in;     /* the process in which eng_start() has refused */
} life = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A forked child has no device: the driver refuses all its calls. Yet a child frees device memory of its parent: Python's garbage collector finds tensors in a data loader's
 * worker. PyTorch's own allocator frees without the driver; with a stream-ordered one, which `remat run` has it use, a refused free comes as an exception out of a destructor
 * and ends the child. So a child's free succeeds, and does nothing. */
static CUresult freed_in_child(CUdeviceptr p, CUstream s)
{
    (void)p, (void)s;
    return CUDA_SUCCESS;
}

/* PyTorch's own allocator without its cache (--allocator each) frees by a driver call, too. */
static CUresult freed_at_once_in_child(CUdeviceptr p)
{
    (void)p;
    return CUDA_SUCCESS;
}

static void child_frees(void)
{
    __atomic_store_n(&door_real.cuMemFreeAsync, freed_in_child, __ATOMIC_RELAXED);
    __atomic_store_n(&door_real.cuMemFreeAsync_ptsz, freed_in_child, __ATOMIC_RELAXED);
    if (torch_env_allocator() == ALLOC_CONF_EACH)
        __atomic_store_n(&door_real.cuMemFree_v2, freed_at_once_in_child, __ATOMIC_RELAXED);
}

static void child_passes_through(void)
{
    eng_after_fork_child();
}

static void finish(void)
{
    if (life.started_in != getpid())
        return;
    int depth = door_depth;
    door_depth = DOOR_SHUT;
    eng_finish();
    door_depth = depth;
}

/* os._exit() and the like run no destructor; exit() itself does not come this way. next_exit is the function behind this one in the loader's order, the C library's or another
 * interposer's. */
static __typeof__(&_exit) next_exit;

DOOR_PUBLIC void _exit(int status)
{
    if (life.started_in && life.started_in == getpid())
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

static void fill_driver_table(struct drv *driver)
{
#define D(name) driver->name = (__typeof__(driver->name))provider_driver_symbol(#name);
    DRV_REQUIRED(D)
    DRV_OPTIONAL(D)
#undef D
    driver->nvml_limits = nvml_limits;
}

void life_start(void)
{
    if (door_disabled() || !provider_resolve(DOOR_CUDA))
        return;
    struct drv driver;
    fill_driver_table(&driver); /* before the lock, by each thread that comes: see loader.h */
    eng_before_start();
    loader_lock(&life.lock);
    if (atomic_load_explicit(&door_watch, memory_order_relaxed) & WATCH_UNSTARTED) {
        int depth = door_depth;
        door_depth = DOOR_SHUT;
        life.driver = driver;
        torch_env_tell();
        pthread_atfork(NULL, NULL, child_frees); /* whatever the policy: PyTorch's allocator is chosen in any case */
        const char *missing;
        if (!drv_complete(&life.driver, &missing)) {
            log_once(SAY_WARN, "this driver has no %s: calls pass through", missing);
        } else if (eng_start(&life.driver) == 0) {
            life.started_in = getpid();
            pthread_atfork(NULL, NULL, child_passes_through);
            /* Registered after the driver's own handlers, hence run before them: the driver still answers. */
            atexit(finish);
            at_quick_exit(finish);
        } else {
            life.refused_in = getpid();
        }
        door_depth = depth;
        atomic_fetch_and_explicit(&door_watch, ~(unsigned)WATCH_UNSTARTED, memory_order_release);
    }
    loader_unlock(&life.lock);
    eng_after_start();
    if (eng_active() && door_depth == DOOR_OPEN) {
        net_begins();
        bypass_look();
    }
}

/* A program may have the driver initialised by a route that passes no door. */
static void start_if_initialised(void)
{
    __typeof__(&cuCtxGetCurrent) get = (__typeof__(get))provider_driver_symbol("cuCtxGetCurrent");
    CUcontext ctx;
    if (get && get(&ctx) == CUDA_SUCCESS && ctx)
        life_start();
}

/* Some programs bring their own cu* functions, which open the driver at their first call. The exports here come before theirs, so the call arrives here, and this function
 * opens the driver, once: without a driver, calls answer CUDA_ERROR_NOT_INITIALIZED. */
static void load_driver(void)
{
    static atomic_bool tried;
    if (!atomic_exchange(&tried, true) && loader_open("libcuda.so.1", RTLD_LAZY))
        provider_resolve(DOOR_CUDA);
}

void life_slow(enum hook_id id)
{
    unsigned watch = atomic_load_explicit(&door_watch, memory_order_relaxed);
    door_note_called(id);
    enum door_provider p = door_rows[id].provider;
    if (p == DOOR_CUDA && (watch & WATCH_UNRESOLVED) && !provider_resolve(p))
        load_driver();
    if (p == DOOR_CUDA && (watch & WATCH_UNSTARTED) && door_depth == DOOR_OPEN && !door_disabled())
        start_if_initialised();
    if ((watch & WATCH_LOADED) && door_depth == DOOR_OPEN && eng_active())
        bypass_look();
}

__attribute__((constructor)) static void on_load(void)
{
    const char *spec = getenv("REMAT_LOG");
    next_exit = (__typeof__(next_exit))libc_dlsym(RTLD_NEXT, "_exit");
    eng_loaded();
    if (log_init(spec))
        log_line(0, 1, "REMAT_LOG='%s': unknown words ignored; it takes error, warn, info or debug, and doors", spec);
    if (door_disabled())
        atomic_fetch_and(&door_watch, ~(unsigned)WATCH_UNSTARTED);
    else
        torch_env_at_load();
    if (log_topics & LOG_TOPIC_DOORS)
        atomic_fetch_or(&door_watch, WATCH_COUNT);
}

__attribute__((destructor)) static void on_unload(void)
{
    finish();
    if (atomic_load_explicit(&door_watch, memory_order_relaxed) & WATCH_UNSTARTED)
        eng_unused();
    else if (life.refused_in == getpid())
        eng_stood_aside();
    door_print_counters();
}
