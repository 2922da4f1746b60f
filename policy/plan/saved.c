/* Values set aside on the host: rebuilt values must equal them, or they come back after a rebuild. */
#include "policy/plan/saved.h"
#include "policy/learn/hashing.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"

#include <errno.h>
#include <stdlib.h>

struct saved_value *saved_find(struct device *d, int32_t b, int32_t v)
{
    struct saved_value *s = d->ex->now.saved;
    while (s && (s->buf != b || s->version != v))
        s = s->next;
    return s;
}

struct host_block *saved_take(struct device *d, int32_t b, int32_t v)
{
    for (struct saved_value **at = &d->ex->now.saved; *at; at = &(*at)->next) {
        struct saved_value *s = *at;
        if (s->buf != b || s->version != v)
            continue;
        struct host_block *h = s->block;
        *at = s->next;
        free(s);
        return h;
    }
    return NULL;
}

int saved_put(struct device *d, int32_t b, int32_t v, struct slot *s)
{
    if (saved_find(d, b, v))
        return 0;
    struct saved_value *n = calloc(1, sizeof *n);
    struct host_block *h = pinned_get(d, s->bytes);
    if (!n || !h) {
        free(n);
        pinned_put(d, h);
        return -ENOMEM;
    }
    if (pinned_wait(d, h) || fence_sync(d, &s->ready) || fence_sync(d, &s->users) ||
        d->drv->cuMemcpyDtoH_v2(h->p, s->va, s->bytes) != CUDA_SUCCESS) {
        free(n);
        pinned_put(d, h);
        return -EIO;
    }
    d->st.bytes_out += s->bytes;
    *n = (struct saved_value){.buf = b, .version = v, .block = h, .next = d->ex->now.saved};
    const struct hash_range all = {s->va, s->bytes};
    n->hashed = !hashing_init(d) && !hashing_now(d, &all, 1, n->hash);
    d->ex->now.saved = n;
    return 0;
}

int saved_restore(struct device *d, const struct saved_value *v, struct slot *s)
{
    int r;
    if ((r = fence_sync(d, &s->ready)) || (r = fence_sync(d, &s->unseen)) || (r = fence_sync(d, &s->users)))
        return r;
    if (d->drv->cuMemcpyHtoD_v2(s->va, v->block->p, s->bytes) != CUDA_SUCCESS)
        return -EIO;
    d->st.bytes_in += s->bytes;
    return 0;
}

void saved_clear(struct device *d)
{
    while (d->ex->now.saved) {
        struct saved_value *n = d->ex->now.saved->next;
        pinned_put(d, d->ex->now.saved->block);
        free(d->ex->now.saved);
        d->ex->now.saved = n;
    }
}
