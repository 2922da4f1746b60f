/* engine_here.c: see engine_here.h. */
#include "policy/engine_here.h"

#include "policy/campaign.h"
#include "policy/current.h"
#include "policy/engine_pools.h"
#include "policy/learn/learn.h"
#include "policy/memory/aside.h"
#include "policy/memory/decoy.h"
#include "policy/memory/foreign.h"
#include "policy/memory/pinned.h"
#include "policy/memory/swap.h"
#include "policy/process/limits.h"
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/process/story.h"
#include "policy/share/share.h"
#include "policy/stays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Called on the helper thread of share.c, since the program may be between two of its driver calls for long. False: a context may be ending, ask again. */
static bool neighbour_asked(void)
{
    CUcontext before = NULL;
    engine_lock();
    const bool may = !process.endings;
    for (unsigned i = 0; i < process.n_dev && may && !process.finished; i++) {
        struct device *d = process.dev[i];
        if (!d->ready || d->gone || !share_called(d) || !current_context(process.drv, &before) ||
            !current_set(process.drv, d->ctx))
            continue;
        campaign_give(d);
        current_set(process.drv, before);
    }
    engine_unlock();
    return may;
}

/* Sets d->ctx to the current context; where a green one is current, to the device's primary one, which outlives the green ones and owns memory. */
static int find_context(struct device *d)
{
    CUcontext primary = NULL;
    CUgreenCtx green = NULL;
    if (!current_context(d->drv, &d->ctx))
        return -EIO;
    if (d->drv->cuStreamGetCtx_v2 && d->drv->cuStreamGetCtx_v2(CU_STREAM_LEGACY, &primary, &green) == CUDA_SUCCESS && green)
        d->ctx = primary;
    return 0;
}

static int init_all(struct device *d, const struct limits_machine *machine)
{
    size_t total = 0;
    if (d->drv->cuDeviceTotalMem_v2(&total, d->dev) != CUDA_SUCCESS)
        return -EIO;
    d->mem.device_bytes = total;
    struct limits l;
    limits_decide(machine, d->cfg, d->dev, total, &l);
    d->mem.limit_bytes = d->cfg->group[0] ? l.ceiling_bytes : l.limit_bytes; /* in a group the ledger sets the limit, up to this ceiling */
    d->mem.ceiling_bytes = l.ceiling_bytes;
    int r = 0;
    if ((r = op_init(d)) || (r = campaign_init(d)) || (r = learn_init(d)) || (r = foreign_init(d)) || (r = planner_init(d)) || (r = stats_init(d)) || (r = story_init(d)) ||
        (r = memory_init(d)) || (r = stream_init(d)) || (r = pinned_init(d)) || (r = swap_init(d)) || (r = share_init(d, neighbour_asked)))
        return r;
    d->mem.plan_limit_bytes = d->mem.limit_bytes;
    if (d->cfg->group[0])
        d->mem.ceiling_bytes = d->mem.limit_bytes;
    d->ready = true;
    char pci[STATUS_PCI] = "";
    if (d->drv->cuDeviceGetPCIBusId)
        d->drv->cuDeviceGetPCIBusId(pci, sizeof pci, d->dev);
    CUuuid uuid; /* the whole GPU's, which other tools use (NVML's users, DCGM): _v2 would tell a MIG instance's */
    const bool has_uuid = d->drv->cuDeviceGetUuid && d->drv->cuDeviceGetUuid(&uuid, d->dev) == CUDA_SUCCESS;
    if (!d->status)
        d->status = status_add_device(process.status, d->dev, pci, has_uuid ? (const uint8_t *)uuid.bytes : NULL, d->mem.device_bytes);
    if (d->status) {
        status_store(&d->status->limit_bytes, d->mem.limit_bytes);
        status_set_mode(d->status, device_mode_name(d, d->mode));
    }
    return 0;
}

void engine_end_here(struct device *d)
{
    planner_stop(d);
    pool_device_ends(d);
    decoy_context_gone(d);
    aside_end(d);
    pinned_end(d);
    const uint64_t kept_bytes = memory_end(d);
    foreign_context_gone(d);
    if (kept_bytes) { /* bytes that the driver did not take back: no slot has them, and they still count */
        d->mem.foreign_bytes += kept_bytes;
        foreign_add(d, 1ull << 63 | ++d->mem.serial, &(struct foreign_block){.bytes = kept_bytes});
    }
    d->ready = d->capturing = false;
    share_settle(d);
}

/* A device that has ended begins anew, in the current context: its statistics, its group and the program's own blocks stay.
 * Returns the new device, still to be set up; NULL: no memory. */
static struct device *begin_anew(struct device *old)
{
    struct device *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->drv = old->drv;
    d->cfg = old->cfg;
    d->dev = old->dev;
    d->primary = old->primary;
    d->mem.serial = old->mem.serial;
    d->mem.foreign = old->mem.foreign;
    d->mem.foreign_bytes = old->mem.foreign_bytes;
    d->mem.graph_bytes = old->mem.graph_bytes;
    d->mem.pooled = old->mem.pooled;
    d->share = old->share;
    d->status = old->status;
    d->st = old->st;
    d->story = old->story;
    old->story = NULL;
    d->op_scratch = old->op_scratch;
    old->op_scratch = NULL;
    old->share = NULL;
    old->mem.foreign = NULL;
    old->mem.pooled = NULL;
    return d;
}

static struct device *set_up(struct device *d, const struct limits_machine *machine)
{
    const CUdevice dev = d->dev;
    d->blocking_streams = process.blocking_streams;
    d->unconfined = process.unconfined;
    int r = find_context(d);
    if (!r) {
        struct engine_visit v = engine_visit(d);
        r = init_all(d, machine);
        engine_return(v);
    }
    if (r) {
        d->barred = limits_bind();
        if (d->barred)
            log_say(SAY_ERROR, "setting up device %d failed (%s): a maximum holds (%s), so the program gets no memory there", (int)dev,
                    strerror(-r), limits_holder());
        else
            log_say(SAY_WARN, "setting up device %d failed (%s): remat stands aside there, the program runs as without it", (int)dev,
                    strerror(-r));
        return NULL;
    }
    stays_begin(d);
    return d;
}

_Thread_local bool engine_here_is_only;

/* The struct for this device, ended or not; NULL: the device has never been used. */
static struct device *known(CUdevice dev)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->dev == dev)
            return process.dev[i];
    return NULL;
}

/* A struct in process.dev for the device to be set up: a new one, or one in the place of a device that has ended. NULL: no memory. */
static struct device *place_for(CUdevice dev)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->dev == dev) {
            if (process.dev[i]->ready)
                engine_end_here(process.dev[i]);
            struct device *d = begin_anew(process.dev[i]);
            return d ? process.dev[i] = d : NULL;
        }
    struct device *d = process.n_dev < MAX_DEVICES ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return NULL;
    d->drv = process.drv;
    d->cfg = &process.cfg;
    d->dev = dev;
    d->primary = process.n_dev == 0;
    return process.dev[process.n_dev++] = d;
}

struct device *engine_here_asked(void)
{
    CUdevice dev;
    if (current_device_drv(process.drv, &dev) != CUDA_SUCCESS)
        return NULL; /* no context yet, but a later call will have one */
    struct device *d = known(dev);
    if (!d || d->ended) {
        engine_unlock(); /* the machine's limits are asked of libraries that may have to be loaded */
        const struct limits_machine machine = limits_ask_machine(process.drv, dev);
        engine_lock();
        d = known(dev); /* another thread may have set the device up meanwhile */
        if (!d || d->ended)
            return (d = place_for(dev)) ? set_up(d, &machine) : NULL;
    }
    engine_here_is_only = process.n_visible == 1;
    return d->ready && !d->gone ? d : NULL;
}

struct device *engine_of_stream(CUstream stream)
{
    CUcontext before = NULL, of = NULL;
    if (process.n_visible == 1 || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || !process.drv->cuStreamGetCtx ||
        process.drv->cuStreamGetCtx(stream, &of) != CUDA_SUCCESS || !current_context(process.drv, &before) || of == before ||
        !current_set(process.drv, of))
        return engine_here();
    struct device *d = engine_here();
    current_set(process.drv, before);
    return d;
}

/* After engine_here() has answered NULL: the device could not be set up, and therefore may allocate nothing. */
bool engine_barred_here(void)
{
    CUdevice dev;
    if (current_device_drv(process.drv, &dev) == CUDA_SUCCESS)
        for (unsigned i = 0; i < process.n_dev; i++)
            if (process.dev[i]->dev == dev)
                return process.dev[i]->barred;
    return false;
}
