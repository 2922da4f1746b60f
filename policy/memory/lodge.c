/* lodge.c: see lodge.h. */
#include "policy/memory/lodge.h"

#include "policy/memory/page.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/memory/swap.h"

#include <errno.h>

/* Gives the host pages of slots that are no longer lodged back to the driver. -ENOMEM: there are none. */
static int make_room(struct device *d)
{
    bool any = false;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        if (!s->host_pages || s->lodged)
            continue;
        const int r = page_of_host_unmap(d, s);
        if (r)
            return r;
        any = true;
    }
    return any ? 0 : -ENOMEM;
}

int lodge_take(struct device *d, struct slot *s)
{
    int r = s->host_pages ? 0 : page_of_host_map(d, s);
    if (r == -ENOMEM && !(r = make_room(d)))
        r = page_of_host_map(d, s);
    if (r)
        return r;
    const bool has_content = s->state == SLOT_HOST;
    s->lodged = true;
    s->state = SLOT_RESIDENT;
    d->mem.n_lodged++;
    fence_merge(d, &s->ready, &s->stale); /* the latest users of these host pages */
    return has_content ? swap_queue_in(d, s) : 0;
}

void lodge_leave(struct device *d, struct slot *s)
{
    if (!s->lodged || s->pins)
        return;
    if (s->host) /* nothing has written the slot since its content was copied in */
        slot_unback(d, s, SLOT_HOST);
    else if (swap_out(d, s))
        log_once(SAY_DEBUG, "what lies in host memory at its own address stays there");
}

int lodge_leave_all(struct device *d)
{
    bool stays = false;
    for (uint32_t i = 0; i < d->mem.n_slots && d->mem.n_lodged; i++) {
        lodge_leave(d, &d->mem.slots[i]);
        stays |= d->mem.slots[i].lodged && !d->mem.slots[i].pins;
    }
    return stays ? -ENOMEM : 0;
}
