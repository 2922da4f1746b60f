/* answers.c: see answers.h. */
#include "policy/answers.h"

#include "policy/active.h"
#include "policy/campaign.h"
#include "policy/engine_here.h"
#include "policy/engine_state.h"
#include "policy/memory/foreign.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/process/limits.h"
#include "policy/query.h"
#include "policy/share/share.h"
#include "tracer/pyframe.h"

/* The total of every answer: the limit, though a script may have taken a fraction of it. */
static uint64_t told_bytes(const struct device *d) { return d->mem.whole_bytes ? d->mem.whole_bytes : d->mem.limit_bytes; }

/* With the lock held: `real_free` bytes are free on the device. */
static void view(struct device *d, uint64_t real_free, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uint64_t used = ((uint64_t)(d->mem.n_chunks - d->mem.n_gone - d->mem.n_free_chunks) << d->mem.shift) + d->mem.foreign_bytes;
    uint64_t avail = d->mem.limit_bytes > used ? d->mem.limit_bytes - used : 0;
    uint64_t could = real_free + ((uint64_t)d->mem.n_free_chunks << d->mem.shift);
    if (avail > could)
        avail = could;
    uint64_t ceiling = share_ceiling(d); /* other processes of the group may hold the rest */
    if (avail > (ceiling > used ? ceiling - used : 0))
        avail = ceiling > used ? ceiling - used : 0;
    *free_bytes = avail;
    *total_bytes = told_bytes(d);
}

/* ---- a fraction of memory, as PyTorch keeps it ---------------------------------------------------------------------------- */

/* torch.cuda.set_per_process_memory_fraction() asks how much memory there is, and from then on PyTorch itself refuses an allocation with which the program
 * would hold more than that fraction, evicted tensors included. So PyTorch is told of more memory than any program fills, and the fraction is kept here:
 * as much may lie on the device as that fraction of the limit. Asking for the fraction, PyTorch divides by the total again. */
enum { NO_FRACTION_BITS = 60 };

static bool keep_fraction(struct device *d, double fraction)
{
    const uint64_t whole = told_bytes(d), want = (uint64_t)(fraction * (double)whole);
    if (d->cfg->group[0] || campaign_follows_plan(d)) { /* a group's ledger says how much; a plan fits one limit */
        log_say(SAY_WARN, "set_per_process_memory_fraction(%.3g): left to the limit of %s", fraction, rt_size(d->mem.limit_bytes).text);
    } else {
        struct engine_visit v = engine_visit(d);
        const uint64_t now = device_physical_bytes(d);
        if (now > want)
            room_give(d, now - want);
        engine_return(v);
        const uint64_t left = device_physical_bytes(d);
        d->mem.limit_bytes = d->mem.ceiling_bytes = d->mem.plan_limit_bytes = left > want ? left : want;
        log_say(SAY_INFO, "set_per_process_memory_fraction(%.3g): %s of %s are used from now on; evicted tensors do not count", fraction,
                rt_size(d->mem.limit_bytes).text, rt_size(whole).text);
        if (d->status)
            status_store(&d->status->limit_bytes, d->mem.limit_bytes);
    }
    d->mem.whole_bytes = whole;
    return true;
}

/* Which of PyTorch's two functions asks, if any, and the fraction that is set. Python is looked at without a lock (tracer/loader.h). */
enum asker { ASKS_OTHER, ASKS_TO_SET, ASKS_TO_GET };
static enum asker who_asks(double *fraction)
{
    return pyframe_argument("set_per_process_memory_fraction", fraction)   ? ASKS_TO_SET
           : pyframe_argument("get_per_process_memory_fraction", fraction) ? ASKS_TO_GET
                                                                           : ASKS_OTHER;
}

/* With the lock held. True: the total in the answer is to be more than any program fills. */
static bool fraction_asked(struct device *d, enum asker by, double fraction)
{
    if (by == ASKS_TO_SET && (d->mem.limit_bytes < d->mem.device_bytes || d->mem.whole_bytes))
        return keep_fraction(d, fraction);
    return by == ASKS_TO_GET && d->mem.whole_bytes; /* where nothing is ever evicted PyTorch counts rightly */
}

int eng_mem_info(size_t *free_bytes, size_t *total_bytes)
{
    double fraction;
    const enum asker by = who_asks(&fraction);
    engine_lock();
    struct device *d = engine_here();
    if (!d) {
        engine_unlock();
        return process.drv->cuMemGetInfo_v2(free_bytes, total_bytes);
    }
    size_t real_free = 0, real_total = 0;
    uint64_t free_b, total_b;
    foreign_look(d);
    int r = d->drv->cuMemGetInfo_v2(&real_free, &real_total);
    view(d, real_free, &free_b, &total_b);
    if (free_bytes)
        *free_bytes = free_b;
    if (total_bytes)
        *total_bytes = fraction_asked(d, by, fraction) ? (size_t)1 << NO_FRACTION_BITS : total_b;
    engine_unlock();
    return r;
}

bool eng_device_memory(int dev, struct eng_memory *m)
{
    static bool read; /* the configuration has been read, before eng_start() does */
    if (process.started && !eng_active()) /* remat stands aside; or this is a forked child, where a thread that held the mutex does not exist */
        return false;
    if (!process.started)
        limits_start();
    engine_lock();
    bool stands_aside = process.started && !eng_active();
    if (!process.started && !read) {
        char err[256];
        stands_aside = config_read(&process.cfg, err, sizeof err) && !limits_bind();
        read = true;
    }
    stands_aside |= process.cfg.policy == POLICY_OFF && !limits_bind();
    m->is_set_up = false;
    if (!stands_aside && dev >= 0 && eng_active())
        engine_here(); /* the caller's own device is set up by the question, as by cuMemGetInfo */
    for (unsigned i = 0; !stands_aside && i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        if (d->dev != dev || !d->ready || d->gone)
            continue;
        view(d, m->free_bytes, &m->free_bytes, &m->total_bytes);
        m->held_bytes = d->mem.live_bytes + d->mem.foreign_bytes;
        if (m->held_bytes > m->total_bytes)
            m->held_bytes = m->total_bytes;
        m->is_set_up = true;
    }
    if (!stands_aside && !m->is_set_up) {
        uint64_t limit = limits_of_bytes(&process.cfg, m->total_bytes);
        stands_aside = limit >= m->total_bytes;
        m->total_bytes = limit;
        if (m->free_bytes > limit)
            m->free_bytes = limit;
    }
    engine_unlock();
    return !stands_aside;
}

/* The address one past a slot's end is the slot's in slot_lookup(), but not in an answer. */
static struct slot *slot_of(struct device *d, CUdeviceptr ptr)
{
    struct slot *s = slot_lookup(d, ptr);
    return s && ptr - s->va < s->bytes ? s : NULL;
}

int eng_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr, int *res)
{
    struct device *d = engine_holder(ptr);
    if (!d)
        return 0;
    engine_lock();
    struct slot *s = slot_of(d, ptr);
    *res = s ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    if (s && base)
        *base = s->va;
    if (s && bytes)
        *bytes = s->bytes;
    engine_unlock();
    return 1;
}

int eng_pointer_attribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr, int *res)
{
    struct device *d = engine_holder(ptr);
    if (!d)
        return 0;
    engine_lock();
    struct slot *s = slot_of(d, ptr);
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    int answered = s && data ? query_attribute(d, data, attr, ptr, s, &r) : 1;
    engine_unlock();
    *res = r;
    return answered;
}
