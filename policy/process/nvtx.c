#include "policy/process/nvtx.h"
#include "policy/process/log.h"
#include "tracer/loader.h"
#include "tracer/plain.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

bool nvtx_wanted;

/* Functions of NVTX's reference. Push and pop make a thread's range; start and end make the process's, which has a number. */
static int (*push)(const char *text);
static int (*pop)(void);
static uint64_t (*start)(const char *text);
static void (*end)(uint64_t range);
static struct {
    uint64_t range;
    bool open;
} mode, iteration;

static atomic_bool loaded; /* the four functions have been found */

static bool ready(void) { return atomic_load_explicit(&loaded, memory_order_acquire); }

void nvtx_load(void)
{
    static const char *const files[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1", "libnvtx3interop.so"};
    static atomic_bool tried;
    void *h = NULL;
    if (atomic_exchange(&tried, true))
        return;
    for (size_t i = 0; i < sizeof files / sizeof *files && !h; i++)
        h = loader_open(files[i], RTLD_LAZY | RTLD_LOCAL);
    if (h) {
        *(void **)&push = loader_symbol(h, "nvtxRangePushA");
        *(void **)&pop = loader_symbol(h, "nvtxRangePop");
        *(void **)&start = loader_symbol(h, "nvtxRangeStartA");
        *(void **)&end = loader_symbol(h, "nvtxRangeEnd");
    }
    if (!push || !pop || !start || !end) {
        log_say(SAY_WARN, "--nvtx: no library of NVTX is found (libnvtx3interop.so.1, libnvToolsExt.so.1): no ranges are made");
        return;
    }
    void (*initialize)(const void *);
    *(void **)&initialize = loader_symbol(h, "nvtxInitialize");
    if (initialize)
        initialize(NULL); /* loads the profiler's own library here; else the first range, made under the mutex, would load it */
    atomic_store_explicit(&loaded, true, memory_order_release);
}

void nvtx_push_now(const char *verb, const char *name, uint64_t bytes)
{
    char text[160];
    if (!ready())
        return;
    int n = snprintf(text, sizeof text, "remat %s %s", verb, plain_name(name, (char[100]){0}, 100));
    if (bytes && n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, " (%.1f MiB)", (double)bytes / 1048576.0);
    push(text);
}

void nvtx_pop_now(void)
{
    if (ready())
        pop();
}

void nvtx_mode_is(const char *name)
{
    char text[64];
    if (!ready())
        return;
    if (mode.open)
        end(mode.range);
    snprintf(text, sizeof text, "remat mode %s", name);
    mode.range = start(text);
    mode.open = true;
}

void nvtx_iteration_is(uint64_t n, const char *name)
{
    char text[96];
    if (!ready())
        return;
    if (iteration.open)
        end(iteration.range);
    snprintf(text, sizeof text, "remat iteration %llu (%s)", (unsigned long long)n, name);
    iteration.range = start(text);
    iteration.open = true;
}
