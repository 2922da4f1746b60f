#include "policy/process/nvtx.h"
#include "policy/process/log.h"
#include "tracer/plain.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

bool nvtx_wanted;

/* As NVTX's reference tells them; a range across threads has a number. */
static int (*push)(const char *text);
static int (*pop)(void);
static uint64_t (*start)(const char *text);
static void (*end)(uint64_t range);
static struct {
    uint64_t range;
    bool open;
} mode, iteration;

static bool ready(void)
{
    static const char *const files[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1", "libnvtx3interop.so"};
    static bool tried;
    void *h = NULL;
    if (tried)
        return push != NULL;
    tried = true;
    for (size_t i = 0; i < sizeof files / sizeof *files && !h; i++)
        h = dlopen(files[i], RTLD_LAZY | RTLD_LOCAL);
    if (h) {
        *(void **)&push = dlsym(h, "nvtxRangePushA");
        *(void **)&pop = dlsym(h, "nvtxRangePop");
        *(void **)&start = dlsym(h, "nvtxRangeStartA");
        *(void **)&end = dlsym(h, "nvtxRangeEnd");
    }
    if (!push || !pop || !start || !end) {
        push = NULL;
        log_say(SAY_WARN, "--nvtx: no library of NVTX is found (libnvtx3interop.so.1, libnvToolsExt.so.1): no ranges are made");
    }
    return push != NULL;
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
