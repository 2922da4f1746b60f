/* budget.c: see budget.h. */
#include "policy/campaign/budget.h"

#include "policy/campaign/modes.h"
#include "policy/memory/arena.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/supply.h"
#include "policy/plan/exec.h"
#include "policy/plan/install.h"
#include "policy/plan/reserve.h"
#include "policy/share/share.h"

/* Gives up to `bytes` to the neighbours of the group. No plan is installed, and nothing is being learnt. */
void budget_give(struct device *d, uint64_t bytes)
{
    bool blocked;
    uint64_t given = room_give(d, bytes);
    d->st.gave_back_bytes += given;
    d->campaign->gave_nothing_at = given ? 0 : d->op_count;
    log_say(SAY_INFO, "%s given back to the group, of %s that are owed", rt_size(given).text, rt_size(bytes).text);
    share_owed(d, &blocked); /* notes whether some is still owed */
}

/* Bytes that the recorded iteration takes with nothing evicted, and a sixteenth more for the colouring's waste. */
uint64_t budget_could_use(struct device *d)
{
    uint64_t pages = recording_peak_pages(d, &d->ex->learnt.rec, false) + recording_peak_pages(d, &d->ex->learnt.rec, true) + arena_chunks(d);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].kind == SLOT_LARGE && d->mem.slots[i].pins && d->mem.slots[i].live && d->mem.slots[i].rec_buf < 0)
            pages += d->mem.slots[i].n_pages;
    return ((pages + pages / 16 + 1) << d->mem.shift) + d->mem.foreign_bytes + d->mem.own_bytes;
}

uint64_t budget_now(struct device *d)
{
    arena_trim(d);
    uint64_t all = supply_max_chunks(d), gone = arena_chunks(d);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].kind == SLOT_LARGE && d->mem.slots[i].pins && d->mem.slots[i].live && d->mem.slots[i].rec_buf < 0)
            gone += d->mem.slots[i].n_pages;
    gone += recording_peak_pages(d, &d->ex->learnt.rec, true) + reserve_scratch_pages(d);
    return (all > gone ? all - gone : 0) << d->mem.shift;
}

/* Budget = plannable memory - reserved - beside. */
void budget_take(struct device *d)
{
    const uint64_t all = budget_now(d), not = d->campaign->reserved_bytes + d->campaign->beside_bytes;
    d->campaign->budget_bytes = all > not ? all - not : 0;
}

void budget_leave_for_map(struct device *d)
{
    const uint64_t all = budget_now(d); /* first: empty arena pages go, and are not counted as room */
    d->campaign->beside_bytes = install_pages_beside(d) << d->mem.shift;
    if (d->campaign->beside_bytes > all / 2)
        d->campaign->beside_bytes = 0;
}
