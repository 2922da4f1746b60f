/* slot.c: see slot.h. */
#include "policy/memory/slot.h"

#include "policy/device.h"
#include "policy/memory/arena.h"
#include "policy/memory/chunk.h"
#include "policy/memory/page.h"
#include "policy/memory/space.h"
#include "policy/process/check.h"

#include <errno.h>
#include <stdlib.h>

struct slot *slot_create(struct device *d, enum slot_kind kind)
{
    if (d->mem.n_slots == MAX_SLOTS)
        return NULL;
    struct slot *s = &d->mem.slots[d->mem.n_slots];
    s->id = d->mem.n_slots++;
    s->kind = (uint8_t)kind;
    s->plan_buf = s->rec_buf = s->next_free = -1;
    s->fixed_ord = ORD_NONE;
    return s;
}

/* Head of the list of free slots of n_pages pages; list 0 has all slots of MAX_LIST_PAGES pages or more. */
static int32_t *list_of(struct device *d, uint32_t n_pages) { return &d->mem.free_slots[n_pages < MAX_LIST_PAGES ? n_pages : 0]; }

void slot_list_add(struct device *d, struct slot *s)
{
    int32_t *head = list_of(d, s->n_pages);
    s->next_free = *head;
    s->next_back = -1;
    if (*head >= 0)
        d->mem.slots[*head].next_back = (int32_t)s->id;
    *head = (int32_t)s->id;
    s->listed = true;
    d->mem.listed_pages += s->n_pages;
}

static void list_take(struct device *d, struct slot *s)
{
    if (s->next_back >= 0)
        d->mem.slots[s->next_back].next_free = s->next_free;
    else
        *list_of(d, s->n_pages) = s->next_free;
    if (s->next_free >= 0)
        d->mem.slots[s->next_free].next_back = s->next_back;
    s->listed = false;
    d->mem.listed_pages -= s->n_pages;
}

/* A slot that is in no list gives its address up, after stale mappings there are removed. Where that fails the address is lost, which is harmless. */
static void slot_dissolve(struct device *d, struct slot *s)
{
    const int r = page_unmap_row(d, s);
    if (r == -EAGAIN) /* the host would have to wait: dissolved another time */
        slot_list_add(d, s);
    if (r)
        return;
    if (space_give(d, (s->va - d->mem.base) >> d->mem.shift, s->n_pages + 1ull))
        return;
    free(s->map);
    s->map = NULL;
    s->n_pages = 0;
    s->va = 0;
    s->next_free = d->mem.large_structs;
    d->mem.large_structs = (int32_t)s->id;
    d->mem.address_changes++;
}

static int older(const void *a, const void *b)
{
    const struct slot *x = *(struct slot *const *)a, *y = *(struct slot *const *)b;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Dissolves free slots (of sizes that do not come back), those with the oldest last allocation first, until free slots have `most` pages left. */
static void dissolve_listed(struct device *d, uint64_t most)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        n += d->mem.slots[i].listed;
    struct slot **idle = malloc((n + 1) * sizeof(struct slot *));
    if (!idle)
        return;
    n = 0;
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].listed)
            idle[n++] = &d->mem.slots[i];
    qsort(idle, n, sizeof(struct slot *), older);
    for (uint32_t i = 0; i < n && d->mem.listed_pages > most; i++) {
        list_take(d, idle[i]);
        slot_dissolve(d, idle[i]);
    }
    free(idle);
}

/* Most pages that free slots may have: four times the device's memory, or a quarter of the reservation if that is less. A program with the
 * same sizes in every iteration never has so many. */
static uint64_t listed_most(const struct device *d)
{
    uint64_t most = d->mem.device_bytes >> d->mem.shift << 2, quarter = d->mem.n_va_pages / 4;
    return most < quarter ? most : quarter;
}

int slot_space(struct device *d, uint64_t n, uint64_t *first)
{
    if (d->mem.listed_pages > listed_most(d))
        dissolve_listed(d, listed_most(d) / 2);
    if (!space_take(d, n, first))
        return 0;
    dissolve_listed(d, 0);
    return space_take(d, n, first);
}

static int slot_create_large(struct device *d, uint32_t n_pages, struct slot **out)
{
    uint64_t first;
    if (slot_space(d, n_pages + 1ull, &first))
        return -ENOMEM;
    int32_t *map = malloc(n_pages * sizeof *map);
    struct slot *s = NULL;
    if (map && d->mem.large_structs >= 0) {
        s = &d->mem.slots[d->mem.large_structs];
        d->mem.large_structs = s->next_free;
    } else if (map)
        s = slot_create(d, SLOT_LARGE);
    if (!s) {
        free(map);
        space_give(d, first, n_pages + 1ull);
        return -ENOMEM;
    }
    s->map = map;
    s->n_pages = n_pages;
    s->va = d->mem.base + (first << d->mem.shift);
    s->state = SLOT_EMPTY;
    s->ready = s->unseen = s->users = s->stale = (struct fence){0}; /* no use of the struct's earlier address is left to wait for */
    for (uint32_t p = 0; p < n_pages; p++)
        map[p] = -1;
    /* the page after the last is the slot's too: a pointer one past the end still names this slot */
    for (uint32_t p = 0; p <= n_pages; p++)
        d->mem.page_slot[first + p] = s->id + 1;
    *out = s;
    return 0;
}

void slot_revive(struct device *d, struct slot *s, uint64_t bytes)
{
    s->bytes = bytes;
    s->serial = ++d->mem.serial;
    s->birth_op = d->op_count;
    s->live = true;
    s->written = false;
    s->owed = false;
    s->watched = s->points = s->named = s->waits = s->unmade = s->early = false;
    s->looked_tick = 0;
    s->pins = 0;
    s->pool = NULL;
    s->plan_buf = s->rec_buf = -1;
    /* a fixed slot is still resident: its new buffer's uses come after the earlier buffer's */
    fence_merge(d, &s->ready, &s->unseen);
    fence_merge(d, &s->ready, &s->users);
    s->unseen = s->users = (struct fence){0};
    d->mem.live_bytes += bytes;
}

struct slot *slot_foreign(struct device *d, CUdeviceptr va, uint64_t bytes)
{
    struct slot *s;
    if (d->mem.foreign_structs >= 0) {
        s = &d->mem.slots[d->mem.foreign_structs];
        d->mem.foreign_structs = s->next_free;
    } else if (!(s = slot_create(d, SLOT_FOREIGN)))
        return NULL;
    s->va = va;
    slot_revive(d, s, bytes);
    d->mem.live_bytes -= bytes; /* counted as foreign_bytes */
    s->state = SLOT_RESIDENT;
    s->written = true;
    s->ready = s->unseen = s->users = s->stale = (struct fence){0};
    return s;
}

void slot_foreign_gone(struct device *d, struct slot *s)
{
    s->live = false;
    s->next_free = d->mem.foreign_structs;
    d->mem.foreign_structs = (int32_t)s->id;
}

void slot_fences(struct device *d, const struct slot *s, struct fence *into)
{
    fence_merge(d, into, &s->ready);
    fence_merge(d, into, &s->unseen);
    fence_merge(d, into, &s->users);
}

static bool slot_all_cached(struct device *d, const struct slot *s)
{
    for (uint32_t p = 0; p < s->n_pages; p++)
        if (s->map[p] < 0 || d->mem.chunks[s->map[p]].owner != CHUNK_FREE)
            return false;
    return true;
}

/* The slot's earlier uses, those on stream t aside, may stand still for the host until the program has made a later call. */
static bool stands(struct device *d, const struct slot *s, unsigned t)
{
    struct fence all = {0};
    slot_fences(d, s, &all);
    fence_merge(d, &all, &s->stale);
    return fence_stands_beside(d, &all, t);
}

/* Prefers a slot whose old chunks are all still free: such a slot comes back without a driver call. Skips slots whose earlier uses on other streams stand still for the host. */
int slot_take_large(struct device *d, uint32_t n_pages, unsigned t, struct slot **out)
{
    struct slot *best = NULL;
    unsigned seen = 0;
    if (stream_gated(d))
        stream_looks_anew(d);
    for (int32_t at = *list_of(d, n_pages); at >= 0 && seen < 16; at = d->mem.slots[at].next_free, seen++) {
        if (d->mem.slots[at].n_pages != n_pages || (stream_gated(d) && stands(d, &d->mem.slots[at], t)))
            continue;
        best = &d->mem.slots[at];
        if (slot_all_cached(d, best))
            break;
    }
    if (!best)
        return slot_create_large(d, n_pages, out);
    rt_check(d, best->listed && !best->live && best->state == SLOT_EMPTY);
    list_take(d, best);
    *out = best;
    return 0;
}

void slot_freed_on(struct device *d, struct slot *s, unsigned t)
{
    stream_issued(d, t);
    s->users = (struct fence){0};
    fence_add(d, &s->users, t);
}

struct slot *slot_range_of(struct device *d, CUdeviceptr ptr)
{
    uint64_t off = ptr - d->mem.base;
    if (off >= d->mem.reserve_bytes)
        return NULL;
    uint32_t id = d->mem.page_slot[off >> d->mem.shift];
    if (!id)
        return NULL;
    if (id & PAGE_ARENA) {
        const struct arena *a = &d->mem.arenas[(id & ~PAGE_ARENA) - 1];
        uint32_t held = a->unit_slot[(off & (d->mem.gran - 1)) / UNIT_BYTES];
        return held ? &d->mem.slots[held - 1] : NULL;
    }
    return &d->mem.slots[id - 1];
}

struct slot *slot_lookup(struct device *d, CUdeviceptr ptr)
{
    struct slot *s = slot_range_of(d, ptr);
    return s && s->live && ptr - s->va <= s->bytes ? s : NULL;
}

uint64_t slot_room(const struct device *d, const struct slot *s)
{
    return s->kind == SLOT_LARGE ? (uint64_t)s->n_pages << d->mem.shift : s->kind == SLOT_SMALL ? (uint64_t)s->n_pages * UNIT_BYTES : s->bytes;
}

void slot_unback(struct device *d, struct slot *s, enum slot_state state)
{
    if (s->kind != SLOT_LARGE)
        return;
    if (s->state == SLOT_RESIDENT) {
        struct fence next = {0};
        slot_fences(d, s, &next);
        if (s->lodged)
            d->mem.n_lodged--;
        else
            chunk_list_add_row(d, s->map, s->n_pages, s->id, &next);
        s->lodged = false;
        fence_merge(d, &s->stale, &next);
        s->ready = s->unseen = s->users = (struct fence){0};
        if (d->cfg->rehearse_unmapped && d->mode != MODE_ENFORCE && s->live && state != SLOT_EMPTY) /* no page of an evicted slot stays mapped (plan/unmapped.h) */
            d->mem.left_mapped |= page_unmap_row(d, s) == -EAGAIN;
    }
    s->state = (uint8_t)state;
}

struct slot *slot_largest(struct device *d, uint64_t least_bytes, uint64_t most_bytes)
{
    struct slot *best = NULL;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        if (s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT && s->live && s->bytes >= least_bytes && s->bytes <= most_bytes && (!best || s->bytes > best->bytes))
            best = s;
    }
    return best;
}

int slot_unmap_evicted(struct device *d)
{
    for (uint32_t i = 0; i < d->mem.n_slots && d->mem.left_mapped; i++) {
        struct slot *s = &d->mem.slots[i];
        if (s->kind == SLOT_LARGE && s->live && (s->state == SLOT_HOST || s->state == SLOT_LOST) && page_unmap_row(d, s) == -EAGAIN)
            return -EAGAIN;
    }
    d->mem.left_mapped = false;
    return 0;
}
