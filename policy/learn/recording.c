#include "policy/learn/recording.h"
#include "policy/memory/space.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void recording_clear(struct recording *r)
{
    for (uint32_t i = 0; i < r->n_caps; i++)
        op_capture_free(&r->caps[i]);
    free(r->caps);
    record_clear(&r->rec);
    free(r->op_of_trace);
    free(r->named_writes);
    memset(r, 0, sizeof *r);
}

int recording_note_named_write(struct recording *r)
{
    if (!grow_room(&r->named_writes, r->n_named_writes, &r->cap_named_writes, 8))
        return -ENOMEM;
    r->named_writes[r->n_named_writes++] = r->rec.n_ops;
    return 0;
}

bool recording_has_structs(const struct recording *r)
{
    for (uint32_t i = 0; i < r->n_caps; i++) {
        const struct rt_op *op = &r->caps[i];
        for (uint32_t p = 0; op->func && op->kind == OP_KERNEL && op->func->known && p < op->func->n_params; p++)
            if (func_is_struct(op->func, p))
                return true;
    }
    return false;
}

uint32_t recording_idle_from(const struct record *r, const struct rec_op *o, uint32_t word)
{
    uint32_t a = o->idle, b = o->idle + o->n_idle;
    while (a < b) {
        uint32_t m = (a + b) / 2;
        if (r->idle_words[m] < word)
            a = m + 1;
        else
            b = m;
    }
    return a < o->idle + o->n_idle && rec_idle_word(r->idle_words[a]) == word ? r->idle_words[a] : word + 8;
}

uint64_t recording_last_sig(const struct record *r)
{
    for (uint32_t i = r->n_ops; i-- > 0;)
        if (!recording_is_optional(&r->ops[i]))
            return r->ops[i].sig;
    return 0;
}

uint64_t recording_peak_pages(struct device *d, const struct record *r, bool pinned)
{
    int64_t *delta = calloc(r->n_ops + 2, sizeof *delta), now = 0, peak = 0;
    if (!delta)
        return UINT64_MAX >> 20;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        if (x->small || x->foreign || x->pinned != pinned)
            continue;
        delta[x->born < 0 ? 0 : x->born] += (int64_t)mem_pages(d, x->bytes);
        delta[x->dies < 0 ? (int32_t)r->n_ops : x->dies] -= (int64_t)mem_pages(d, x->bytes);
    }
    for (uint32_t i = 0; i < r->n_ops; i++) {
        now += delta[i];
        if (now > peak)
            peak = now;
    }
    free(delta);
    return (uint64_t)peak;
}
