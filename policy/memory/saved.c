/* Values set aside on the host: what rebuilt ones must equal, and what must come back after a rebuild. */
#include "policy/run.h"

#include <errno.h>
#include <stdlib.h>

struct saved_value *saved_find(int32_t b, int32_t v)
{
    struct saved_value *s = ex.saved;
    while (s && (s->buf != b || s->version != v))
        s = s->next;
    return s;
}

int saved_put(int32_t b, int32_t v, struct slot *s)
{
    if (saved_find(b, v))
        return 0;
    struct saved_value *n = calloc(1, sizeof *n);
    struct host_block *h = swap_host_get(s->bytes);
    if (!n || !h) {
        free(n);
        swap_host_put(h);
        return -ENOMEM;
    }
    swap_host_wait(h);
    stream_sync(s->uses_mask);
    if (s->avail_seq)
        stream_sync(1ull << s->avail_stream);
    if (rt.drv->cuMemcpyDtoH_v2(h->p, s->va, s->bytes) != CUDA_SUCCESS) {
        free(n);
        swap_host_put(h);
        return -EIO;
    }
    *n = (struct saved_value){.buf = b, .version = v, .block = h, .next = ex.saved};
    ex.saved = n;
    return 0;
}

int saved_restore(const struct saved_value *v, struct slot *s)
{
    stream_sync(s->uses_mask);
    return rt.drv->cuMemcpyHtoD_v2(s->va, v->block->p, s->bytes) == CUDA_SUCCESS ? 0 : -EIO;
}

void saved_clear(void)
{
    while (ex.saved) {
        struct saved_value *n = ex.saved->next;
        swap_host_put(ex.saved->block);
        free(ex.saved);
        ex.saved = n;
    }
}
