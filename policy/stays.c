/* stays.c: see stays.h. */
#include "policy/stays.h"

#include "policy/campaign.h"
#include "policy/engine_state.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/op/ready.h"

static bool is_here(const struct slot *s) { return s->state == SLOT_RESIDENT; }

/* Pins all live slots. A pinned slot never leaves again, so its copy on the host, and whether it was written, matter no more. In two rounds: first the slots in
 * memory, so that no slot in memory is evicted for one that is not. Returns the bytes that find no room. */
static uint64_t keep_all(struct device *d)
{
    uint64_t left_bytes = 0;
    for (int here = 1; here >= 0; here--)
        for (uint32_t i = 0; i < d->mem.n_slots; i++) {
            struct slot *s = &d->mem.slots[i];
            if (!s->live || s->kind == SLOT_FOREIGN || is_here(s) != (here == 1))
                continue;
            if ((!s->pins || !is_here(s)) && ready_pin(d, s))
                left_bytes += mem_pages(d, s->bytes) << d->mem.shift;
        }
    return left_bytes;
}

static int stay_drv(struct device *d, const char *why)
{
    struct engine_visit v = engine_visit(d);
    d->stays = true;
    campaign_stop(d, why);
    const uint64_t left_bytes = keep_all(d);
    engine_return(v);
    if (!left_bytes)
        return CUDA_SUCCESS;
    if (d->broken)
        return d->broken;
    log_say(SAY_ERROR, "out of memory: all memory must stay on the device from now on (%s), and %s of it find no room; the limit is %s; --limit %lluK would do", why,
            rt_size(left_bytes).text, rt_size(d->mem.limit_bytes).text, (unsigned long long)ready_least_kib(room_fixed_bytes(d) + left_bytes));
    return CUDA_ERROR_OUT_OF_MEMORY;
}

int eng_memory_stays(const char *why)
{
    int r = CUDA_SUCCESS;
    engine_lock();
    if (!process.stays)
        process.stays = why;
    for (unsigned i = 0; i < process.n_dev; i++) {
        struct device *d = process.dev[i];
        const int one = d->ready && !d->gone ? stay_drv(d, why) : CUDA_SUCCESS;
        r = r ? r : one;
    }
    engine_unlock();
    return r;
}

void stays_begin(struct device *d)
{
    if (!process.stays)
        return;
    d->stays = true;
    campaign_stop(d, process.stays);
}
