/* current.c: see current.h. */
#include "policy/current.h"

#include "policy/process/log.h"

_Thread_local struct current current;
_Atomic uint64_t current_era = 1;

void current_asks_always(void) { atomic_store(&current_era, CURRENT_ASKED); }

void current_era_ends(void)
{
    uint64_t era = atomic_load(&current_era);
    while (era != CURRENT_ASKED && !atomic_compare_exchange_weak(&current_era, &era, era + 1)) {
    }
}

static void know(CUcontext ctx)
{
    const uint64_t era = atomic_load_explicit(&current_era, memory_order_acquire);
    if (ctx != current.ctx || current.era != era)
        current.dev = -1;
    current.ctx = ctx;
    current.era = era == CURRENT_ASKED ? CURRENT_UNKNOWN : era;
}

void current_is(CUcontext ctx)
{
    if (ctx)
        know(ctx);
    else
        current.era = CURRENT_UNKNOWN;
}

bool current_ask(const struct drv *drv, CUcontext *ctx)
{
    const bool knew = current.era != CURRENT_UNKNOWN && current.era == atomic_load_explicit(&current_era, memory_order_acquire);
    if (drv->cuCtxGetCurrent(ctx) != CUDA_SUCCESS) {
        current.era = CURRENT_UNKNOWN;
        return false;
    }
    if (knew && current.ctx != *ctx) {
        log_once(SAY_INFO, "a context has come to be current by a call that has no door: the driver is asked at each call from now on");
        current_asks_always();
    } else if (knew && current.agreed < CURRENT_PROVEN)
        current.agreed++;
    know(*ctx);
    return true;
}

int current_device_drv(const struct drv *drv, CUdevice *dev)
{
    CUcontext ctx;
    if (current_is_known() && current.ctx && current.dev >= 0) {
        *dev = current.dev;
        return CUDA_SUCCESS;
    }
    const int r = (int)drv->cuCtxGetDevice(dev);
    if (r == CUDA_SUCCESS && current_context(drv, &ctx) && ctx && current.era != CURRENT_UNKNOWN)
        current.dev = *dev;
    return r;
}

bool current_set(const struct drv *drv, CUcontext ctx)
{
    if (drv->cuCtxSetCurrent(ctx) != CUDA_SUCCESS)
        return false;
    current_is(ctx);
    return true;
}

void current_compare(void) { current.agreed -= current.agreed == CURRENT_PROVEN; }
