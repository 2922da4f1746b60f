#include "policy/learn/aside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a copy to the host is expected to take before one has been timed; and how many bytes an iteration may move at least. */
static const uint64_t HOST_BYTES_PER_US = 10000, ALIGN = 512;

struct aside_room {
    CUdeviceptr va;
    uint64_t reserved, mapped, used; /* bytes */
    uint64_t kept;                   /* of them in use for good */
    CUmemGenericAllocationHandle *handles;
    uint32_t n_handles, cap_handles;
};

static struct aside_room *room_of(struct device *d)
{
    if (!d->aside && (d->aside = calloc(1, sizeof *d->aside))) {
        uint64_t want = (d->limit_bytes + d->gran - 1) >> d->shift << d->shift;
        if (d->drv->cuMemAddressReserve(&d->aside->va, want, d->gran, 0, 0) == CUDA_SUCCESS)
            d->aside->reserved = want;
    }
    return d->aside;
}

/* One more page, if that takes nothing from anybody. */
static int room_grow(struct device *d, struct aside_room *r)
{
    if (mem_physical_bytes(d) + d->gran > d->limit_bytes || r->mapped + d->gran > r->reserved)
        return -ENOMEM;
    if (r->n_handles == r->cap_handles) {
        uint32_t cap = r->cap_handles ? r->cap_handles * 2 : 64;
        CUmemGenericAllocationHandle *h = realloc(r->handles, cap * sizeof *h);
        if (!h)
            return -ENOMEM;
        r->handles = h;
        r->cap_handles = cap;
    }
    if (mem_page_of_own(d, &r->handles[r->n_handles]))
        return -ENOMEM;
    if (mem_page_map(d, r->va + r->mapped, 1, r->handles[r->n_handles])) {
        mem_page_gone(d, r->handles[r->n_handles]);
        return -ENOMEM;
    }
    r->n_handles++;
    r->mapped += d->gran;
    return 0;
}

int aside_take(struct device *d, struct slot *s, uint64_t left_ns, struct aside *out)
{
    struct aside_room *r = room_of(d);
    uint64_t need = (s->bytes + ALIGN - 1) / ALIGN * ALIGN;
    *out = (struct aside){0};
    while (r && r->used + need > r->mapped && !room_grow(d, r))
        ;
    if (r && r->used + need <= r->mapped) {
        if (d->drv->cuMemcpyDtoDAsync_v2(r->va + r->used, s->va, s->bytes, d->stream[STREAM_IN]) != CUDA_SUCCESS)
            return -EIO;
        out->dev = r->va + r->used;
        r->used += need;
        return 0;
    }
    if (s->bytes / HOST_BYTES_PER_US * 1000 > left_ns || !(out->host = swap_host_get(d, s->bytes)))
        return -ENOMEM;
    if (!swap_host_wait(d, out->host) && d->drv->cuMemcpyDtoHAsync_v2(out->host->p, s->va, s->bytes, d->stream[STREAM_IN]) == CUDA_SUCCESS)
        return 0;
    aside_drop(d, out);
    return -EIO;
}

int aside_back(struct device *d, const struct aside *a, struct slot *s)
{
    CUresult r = a->dev    ? d->drv->cuMemcpyDtoDAsync_v2(s->va, a->dev, s->bytes, d->stream[STREAM_IN])
                 : a->host ? d->drv->cuMemcpyHtoDAsync_v2(s->va, a->host->p, s->bytes, d->stream[STREAM_IN])
                           : CUDA_ERROR_INVALID_VALUE;
    return r == CUDA_SUCCESS ? 0 : -EIO;
}

void aside_drop(struct device *d, struct aside *a)
{
    swap_host_put(d, a->host);
    *a = (struct aside){0};
}

void aside_keep(struct device *d)
{
    if (d->aside)
        d->aside->kept = d->aside->used;
}

bool aside_give(struct device *d)
{
    struct aside_room *r = d->aside;
    if (!r || r->used + d->gran > r->mapped)
        return false;
    r->mapped -= d->gran;
    mem_page_unmap(d, r->va + r->mapped, 1);
    mem_page_gone(d, r->handles[--r->n_handles]);
    return true;
}

void aside_clear(struct device *d, bool all)
{
    if (!d->aside)
        return;
    d->aside->used = d->aside->kept;
    if (!all && mem_physical_bytes(d) <= d->limit_bytes - d->limit_bytes / 8)
        return;
    while (aside_give(d))
        ;
}
