/* device.c: see device.h. */
#include "policy/device.h"

const char *device_code_name(struct device *d, int code)
{
    const char *name = NULL;
    if (d->drv->cuGetErrorName)
        d->drv->cuGetErrorName((CUresult)code, &name);
    return name ? name : "unknown error";
}

const char *device_mode_name(const struct device *d, enum rt_mode m)
{
    static const char *const names[] = {"observe", "probe", "plan", "rehearse", "enforce", "swap"};
    return m == MODE_OBSERVE && d->cfg->policy == POLICY_SWAP ? "swap" : names[m];
}

uint64_t device_physical_bytes(const struct device *d)
{
    return ((uint64_t)(d->mem.n_chunks - d->mem.n_gone) << d->mem.shift) + d->mem.foreign_bytes + d->mem.own_bytes;
}
