/* chunk.c: see chunk.h. */
#include "policy/memory/chunk.h"

#include "policy/device.h"
#include "policy/process/check.h"

void chunk_list_add(struct device *d, int32_t c)
{
    struct chunk *k = &d->mem.chunks[c];
    if (!rt_check(d, k->owner != CHUNK_FREE))
        return; /* the chunk is in the list already */
    k->owner = CHUNK_FREE;
    k->next = -1;
    k->prev = d->mem.free_tail;
    if (d->mem.free_tail >= 0)
        d->mem.chunks[d->mem.free_tail].next = c;
    else
        d->mem.free_head = c;
    d->mem.free_tail = c;
    d->mem.n_free_chunks++;
}

void chunk_list_take(struct device *d, int32_t c)
{
    struct chunk *k = &d->mem.chunks[c];
    if (!rt_check(d, k->owner == CHUNK_FREE))
        return;
    if (k->prev >= 0)
        d->mem.chunks[k->prev].next = k->next;
    else
        d->mem.free_head = k->next;
    if (k->next >= 0)
        d->mem.chunks[k->next].prev = k->prev;
    else
        d->mem.free_tail = k->prev;
    d->mem.n_free_chunks--;
}

void chunk_list_add_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner, const struct fence *ready)
{
    for (uint32_t i = 0; i < n; i++)
        if (!rt_check(d, chunk_is_of(d, row[i], owner, i)))
            return; /* the chunk's owner would lose it: no chunk of the row becomes free */
    for (uint32_t i = 0; i < n; i++) {
        struct chunk *k = &d->mem.chunks[row[i]];
        k->ready = *ready;
        k->owner = CHUNK_FREE;
        k->prev = i ? row[i - 1] : d->mem.free_tail;
        k->next = i + 1 < n ? row[i + 1] : -1;
    }
    if (!n)
        return;
    if (d->mem.free_tail >= 0)
        d->mem.chunks[d->mem.free_tail].next = row[0];
    else
        d->mem.free_head = row[0];
    d->mem.free_tail = row[n - 1];
    d->mem.n_free_chunks += n;
}

bool chunk_list_take_row(struct device *d, const int32_t *row, uint32_t n, uint32_t owner)
{
    if (!n || row[0] < 0 || d->mem.chunks[row[0]].owner != CHUNK_FREE)
        return false;
    for (uint32_t i = 1; i < n; i++)
        if (row[i] < 0 || d->mem.chunks[row[i - 1]].next != row[i] || !rt_check(d, d->mem.chunks[row[i]].owner == CHUNK_FREE))
            return false;
    const int32_t before = d->mem.chunks[row[0]].prev, after = d->mem.chunks[row[n - 1]].next;
    if (before >= 0)
        d->mem.chunks[before].next = after;
    else
        d->mem.free_head = after;
    if (after >= 0)
        d->mem.chunks[after].prev = before;
    else
        d->mem.free_tail = before;
    d->mem.n_free_chunks -= n;
    for (uint32_t i = 0; i < n; i++) {
        d->mem.chunks[row[i]].owner = (int32_t)owner;
        d->mem.chunks[row[i]].page = i;
    }
    return true;
}

int32_t chunk_list_first(struct device *d)
{
    int32_t c = d->mem.free_head;
    if (c < 0 || !rt_check(d, d->mem.chunks[c].owner == CHUNK_FREE))
        return -1;
    if (!fence_stands(d, &d->mem.chunks[c].ready))
        return c; /* nearly always */
    stream_looks_anew(d);
    while (c >= 0 && fence_stands(d, &d->mem.chunks[c].ready))
        c = d->mem.chunks[c].next;
    return c >= 0 && rt_check(d, d->mem.chunks[c].owner == CHUNK_FREE) ? c : d->mem.free_head;
}

int32_t chunk_borrow(struct device *d)
{
    int32_t c = d->mem.free_head;
    while (c >= 0 && !d->mem.chunks[c].at)
        c = d->mem.chunks[c].next;
    if (c >= 0 && !rt_check(d, d->mem.chunks[c].owner == CHUNK_FREE))
        return -1;
    if (c >= 0) {
        chunk_list_take(d, c);
        d->mem.chunks[c].owner = CHUNK_BORROWED;
    }
    return c;
}

void chunk_returned(struct device *d, int32_t c) { chunk_list_add(d, c); }
