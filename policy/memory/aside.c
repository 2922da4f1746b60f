/* aside.c: see aside.h. */
#include "policy/memory/aside.h"

#include "policy/device.h"
#include "policy/memory/chunk.h"
#include "policy/memory/page.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Assumed speed of a copy to the host; alignment of what is set aside, in bytes. */
static const uint64_t HOST_BYTES_PER_US = 10000, ALIGN = 512;

struct piece {
    CUdeviceptr at;
    uint64_t bytes;
    uint64_t from; /* offset in the slot of the bytes that lie at `at` */
};

struct aside_room {
    CUdeviceptr va;
    uint64_t reserved, mapped, used; /* bytes */
    uint64_t for_good;               /* bytes of `used` that stay in use for good (aside_keep()) */
    CUmemGenericAllocationHandle *handles;
    uint32_t n_handles, cap_handles;
    struct piece *pieces; /* in borrowed chunks */
    uint32_t n_pieces, cap_pieces;
    int32_t borrowed;     /* list of the borrowed chunks, the latest first; -1: none */
    uint64_t chunk_used;  /* bytes used of the latest borrowed chunk */
    uint64_t windows, windows_for_good; /* pages at the end of the reservation, for borrowed chunks that were mapped nowhere else */
};

static struct aside_room *room_of(struct device *d)
{
    if (!d->mem.aside && (d->mem.aside = calloc(1, sizeof *d->mem.aside))) {
        d->mem.aside->borrowed = -1;
        uint64_t want = (d->mem.limit_bytes + d->mem.gran - 1) >> d->mem.shift << d->mem.shift;
        if (d->drv->cuMemAddressReserve(&d->mem.aside->va, want, d->mem.gran, 0, 0) == CUDA_SUCCESS)
            d->mem.aside->reserved = want;
        d->mem.own[OWN_ASIDE] = (struct own_range){d->mem.aside->va, d->mem.aside->reserved};
    }
    return d->mem.aside;
}

/* The reservation has an address for one more page, of its own or of a borrowed chunk. */
static bool has_room(const struct device *d, const struct aside_room *r) { return r->mapped + ((r->windows + 1) << d->mem.shift) <= r->reserved; }

/* Makes one more page, where the limit has room for it without evicting. */
static int room_grow(struct device *d, struct aside_room *r)
{
    if (device_physical_bytes(d) + d->mem.gran > d->mem.limit_bytes || !has_room(d, r))
        return -ENOMEM;
    if (!grow_room(&r->handles, r->n_handles, &r->cap_handles, 64))
        return -ENOMEM;
    if (page_of_own(d, &r->handles[r->n_handles]))
        return -ENOMEM;
    if (page_of_own_map(d, r->va + r->mapped, 1, r->handles[r->n_handles])) {
        page_of_own_gone(d, r->handles[r->n_handles]);
        return -ENOMEM;
    }
    r->n_handles++;
    r->mapped += d->mem.gran;
    return 0;
}

/* ---- in chunks that are free ------------------------------------------------------------------------------------------ */

static CUdeviceptr window_at(const struct device *d, const struct aside_room *r, uint64_t k) { return r->va + r->reserved - ((k + 1) << d->mem.shift); }

/* Borrows a free chunk that is mapped somewhere, or maps one in a window. -1: there is none. */
static int32_t borrow(struct device *d, struct aside_room *r)
{
    int32_t c = chunk_borrow(d);
    if (c >= 0)
        return c;
    c = d->mem.free_head;
    if (c < 0 || !has_room(d, r) || page_of_own_map(d, window_at(d, r, r->windows), 1, d->mem.chunks[c].handle))
        return -1;
    d->mem.chunks[c].at = window_at(d, r, r->windows++);
    return chunk_borrow(d);
}

/* The next piece, `bytes` at most: from what the latest borrowed chunk has left, or from another chunk. 0 or a negative errno. */
static int piece_room(struct device *d, struct aside_room *r, uint64_t bytes, struct piece *out)
{
    if (r->borrowed < 0 || r->chunk_used == d->mem.gran) {
        const int32_t c = borrow(d, r);
        if (c < 0)
            return -ENOMEM;
        d->mem.chunks[c].next = r->borrowed;
        r->borrowed = c;
        r->chunk_used = 0;
        if (fence_wait(d, STREAM_IN, &d->mem.chunks[c].ready))
            return -EIO;
    }
    const uint64_t left = d->mem.gran - r->chunk_used;
    *out = (struct piece){.at = d->mem.chunks[r->borrowed].at + r->chunk_used, .bytes = bytes < left ? bytes : left};
    r->chunk_used += (out->bytes + ALIGN - 1) / ALIGN * ALIGN;
    return 0;
}

static uint64_t bytes_of(const struct rec_range *parts, uint32_t n)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += parts[i].to - parts[i].from;
    return all;
}

static int piece_add(struct aside_room *r, struct piece p)
{
    if (!grow_room(&r->pieces, r->n_pieces, &r->cap_pieces, 64))
        return -ENOMEM;
    r->pieces[r->n_pieces++] = p;
    return 0;
}

/* Queues the copy of one part of the slot. */
static int take_part(struct device *d, struct aside_room *r, const struct slot *s, const struct rec_range *part)
{
    for (uint64_t at = part->from; at < part->to; at += r->pieces[r->n_pieces - 1].bytes) {
        struct piece p;
        int e = piece_room(d, r, part->to - at, &p);
        p.from = at;
        if (!e)
            e = piece_add(r, p);
        if (e)
            return e;
        if (d->drv->cuMemcpyDtoDAsync_v2(p.at, s->va + at, p.bytes, d->stream[STREAM_IN]) != CUDA_SUCCESS)
            return -EIO;
    }
    return 0;
}

/* Queues the copies of all parts. After an error the room taken for them lies idle until the chunks go back. */
static int take_pieces(struct device *d, struct aside_room *r, const struct slot *s, const struct rec_range *parts, uint32_t n, struct aside *out)
{
    const uint32_t first = r->n_pieces;
    if (bytes_of(parts, n) > d->mem.gran - r->chunk_used + d->mem.n_free_chunks * d->mem.gran)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const int e = take_part(d, r, s, &parts[i]);
        if (e) {
            r->n_pieces = first;
            return e;
        }
    }
    *out = (struct aside){.first = first, .pieces = r->n_pieces - first};
    return 0;
}

static int pieces_back(struct device *d, const struct aside *a, const struct slot *s)
{
    for (const struct piece *p = d->mem.aside->pieces + a->first, *end = p + a->pieces; p < end; p++)
        if (d->drv->cuMemcpyDtoDAsync_v2(s->va + p->from, p->at, p->bytes, d->stream[STREAM_IN]) != CUDA_SUCCESS)
            return -EIO;
    return 0;
}

/* The copies have ended: trial_close() waits for them. */
static void give_chunks_back(struct device *d, struct aside_room *r)
{
    r->n_pieces = 0;
    while (r->borrowed >= 0) {
        const int32_t c = r->borrowed;
        r->borrowed = d->mem.chunks[c].next;
        if (d->mem.chunks[c].at - r->va < r->reserved)
            d->mem.chunks[c].at = 0;
        chunk_returned(d, c);
    }
    if (r->windows > r->windows_for_good)
        page_of_own_unmap(d, window_at(d, r, r->windows - 1), r->windows - r->windows_for_good);
    r->windows = r->windows_for_good;
}

/* ------------------------------------------------------------------------------------------------------------------- */

int aside_take(struct device *d, struct slot *s, const struct rec_range *parts, uint32_t n, struct aside *out)
{
    struct aside_room *r = room_of(d);
    uint64_t need = (s->bytes + ALIGN - 1) / ALIGN * ALIGN;
    *out = (struct aside){0};
    const int in_chunks = r ? take_pieces(d, r, s, parts, n, out) : -ENOMEM;
    if (in_chunks != -ENOMEM)
        return in_chunks;
    while (r && r->used + need > r->mapped && !room_grow(d, r))
        ;
    if (!r || r->used + need > r->mapped)
        return -ENOMEM;
    if (d->drv->cuMemcpyDtoDAsync_v2(r->va + r->used, s->va, s->bytes, d->stream[STREAM_IN]) != CUDA_SUCCESS)
        return -EIO;
    out->dev = r->va + r->used;
    r->used += need;
    return 0;
}

uint64_t aside_host_ns(const struct slot *s) { return s->bytes / HOST_BYTES_PER_US * 1000; }

uint64_t aside_chunks(const struct device *d, const struct rec_range *parts, uint32_t n) { return (bytes_of(parts, n) >> d->mem.shift) + n + 1; }

int aside_take_to_host(struct device *d, struct slot *s, struct aside *out)
{
    *out = (struct aside){.host = pinned_get(d, s->bytes)};
    if (!out->host)
        return -ENOMEM;
    if (!pinned_wait(d, out->host) && d->drv->cuMemcpyDtoHAsync_v2(out->host->p, s->va, s->bytes, d->stream[STREAM_IN]) == CUDA_SUCCESS) {
        d->st.bytes_out += s->bytes;
        return 0;
    }
    aside_drop(d, out);
    return -EIO;
}

int aside_back(struct device *d, const struct aside *a, struct slot *s)
{
    if (a->pieces)
        return pieces_back(d, a, s);
    CUresult r = a->dev    ? d->drv->cuMemcpyDtoDAsync_v2(s->va, a->dev, s->bytes, d->stream[STREAM_IN])
                 : a->host ? d->drv->cuMemcpyHtoDAsync_v2(s->va, a->host->p, s->bytes, d->stream[STREAM_IN])
                           : CUDA_ERROR_INVALID_VALUE;
    d->st.bytes_in += r == CUDA_SUCCESS && !a->dev ? s->bytes : 0;
    return r == CUDA_SUCCESS ? 0 : -EIO;
}

void aside_drop(struct device *d, struct aside *a)
{
    pinned_put(d, a->host);
    if (a->pieces)
        give_chunks_back(d, d->mem.aside);
    *a = (struct aside){0};
}

void aside_keep(struct device *d)
{
    if (!d->mem.aside)
        return;
    d->mem.aside->for_good = d->mem.aside->used;
    d->mem.aside->windows_for_good = d->mem.aside->windows;
    d->mem.aside->borrowed = -1;
    d->mem.aside->n_pieces = 0;
}

bool aside_give(struct device *d)
{
    struct aside_room *r = d->mem.aside;
    if (!r || r->used + d->mem.gran > r->mapped)
        return false;
    r->mapped -= d->mem.gran;
    page_of_own_unmap(d, r->va + r->mapped, 1);
    page_of_own_gone(d, r->handles[--r->n_handles]);
    return true;
}

void aside_clear(struct device *d, bool all)
{
    if (!d->mem.aside)
        return;
    d->mem.aside->used = d->mem.aside->for_good;
    give_chunks_back(d, d->mem.aside);
    if (!all && device_physical_bytes(d) <= d->mem.limit_bytes - d->mem.limit_bytes / 8)
        return;
    while (aside_give(d))
        ;
}

void aside_end(struct device *d)
{
    struct aside_room *r = d->mem.aside;
    if (!r)
        return;
    page_of_own_unmap(d, r->va, r->mapped >> d->mem.shift);
    if (r->windows)
        page_of_own_unmap(d, window_at(d, r, r->windows - 1), r->windows);
    while (r->n_handles)
        page_of_own_gone(d, r->handles[--r->n_handles]);
    if (r->reserved)
        d->drv->cuMemAddressFree(r->va, r->reserved);
    free(r->handles);
    free(r->pieces);
    free(r);
    d->mem.aside = NULL;
    d->mem.own[OWN_ASIDE] = (struct own_range){0};
}
