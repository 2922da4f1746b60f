#include "policy/plan/compare.h"
#include "policy/learn/hashing.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/plan/verify.h"
#include "tracer/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rebuilt values are compared with a copy on the host: all of them in rehearsal and under --verify always. In between, device
 * hashes compare values in turn (verify.c). */
static bool must_save(struct device *d, int32_t b, int32_t v)
{
    return d->ex->plan->remade[d->ex->plan->first_val[b] + v] && (d->mode == MODE_REHEARSE || d->cfg->verify == VERIFY_ALWAYS);
}

/* b's value in s is about to go, and is set aside, or hashed, if it must be compared. A value that memory was too short to set aside is not dropped. */
int compare_set_aside(struct device *d, int32_t b, struct slot *s, unsigned t)
{
    if (d->ex->now.res[b] < 0 || s->state != SLOT_RESIDENT)
        return 0;
    if (d->mode == MODE_ENFORCE && d->cfg->verify == VERIFY_SAMPLE)
        return verify_before(d, b, d->ex->now.res[b], s, t);
    int r = must_save(d, b, d->ex->now.res[b]) ? saved_put(d, b, d->ex->now.res[b], s) : 0;
    if (r)
        log_once(SAY_WARN, "a value of %s could not be set aside for comparison (%s): it is not dropped, the plan waits; more host "
                 "memory (--host-swap) helps", rt_size(s->bytes).text, strerror(-r));
    return r;
}

int compare_set_op_aside(struct device *d, uint32_t at, unsigned t)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[at];
    int r = 0;
    for (uint32_t k = o->first; k < o->first + o->n && !r; k++) {
        int32_t b = d->ex->learnt.rec.operands[k].buf;
        struct slot *s = cursor_slot(d, b);
        if (s && d->ex->learnt.rec.operands[k].mode != REC_READ)
            r = compare_set_aside(d, b, s, t);
    }
    return r ? r : verify_flush(d);
}

/* Some value of buffer b is compared in this iteration. */
static bool is_compared(const struct device *d, int32_t b)
{
    bool any = d->mode == MODE_REHEARSE || d->cfg->verify == VERIFY_ALWAYS;
    for (int32_t value = d->ex->plan->first_val[b]; value < d->ex->plan->first_val[b + 1] && !any; value++)
        any = d->ex->plan->remade[value] && verify_has_turn(d, value);
    return any;
}

static bool begins_compared(const struct device *d, uint32_t at, const struct rec_operand *w)
{
    return w->mode == REC_WRITE && d->ex->now.partial[w->buf] && d->ex->learnt.rec.bufs[w->buf].born == (int32_t)at && is_compared(d, w->buf);
}

bool compare_begins(const struct device *d, uint32_t at)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[at];
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (begins_compared(d, at, &d->ex->learnt.rec.operands[k]))
            return true;
    return false;
}

int compare_fill_before(struct device *d, uint32_t at, unsigned t)
{
    enum { ANYTHING = 0x3c }; /* a finite number in every format */
    const struct rec_op *o = &d->ex->learnt.rec.ops[at];
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct slot *s = begins_compared(d, at, &d->ex->learnt.rec.operands[k]) ? cursor_slot(d, d->ex->learnt.rec.operands[k].buf) : NULL;
        if (s && s->state == SLOT_RESIDENT && d->drv->cuMemsetD8Async(s->va, ANYTHING, s->bytes, d->stream[t]) != CUDA_SUCCESS)
            return -EIO;
    }
    return 0;
}

/* Only defined bytes count: no op has written the rest. */
static bool equal_where_defined(const struct record *r, const struct rec_operand *w, const unsigned char *x, const unsigned char *y)
{
    struct rec_range whole;
    uint32_t n;
    const struct rec_range *range = record_comparable(r, w, &n, &whole);
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(x + range[i].from, y + range[i].from, range[i].to - range[i].from))
            return false;
    return true;
}

/* The slot holds, byte for byte, the value that was set aside. False: perhaps not, or it differs in unwritten bytes only. Only then is the whole
 * slot copied to the host (equal_on_host()), which takes a hundred times as long. */
static bool equal_by_hash(struct device *d, const struct saved_value *want, const struct slot *s)
{
    const struct hash_range all = {s->va, s->bytes};
    uint64_t h[2];
    return want->hashed && !hashing_now(d, &all, 1, h) && hashing_same(h, want->hash);
}

static bool equal_on_host(struct device *d, const struct rec_operand *w, const struct saved_value *want, const struct slot *s, bool *read)
{
    void *got = malloc(s->bytes);
    *read = got && d->drv->cuMemcpyDtoH_v2(got, s->va, s->bytes) == CUDA_SUCCESS;
    const bool same = *read && equal_where_defined(&d->ex->learnt.rec, w, got, want->block->p);
    free(got);
    return same;
}

/* The value that the replay of `op` made is compared with the one set aside; where it cannot be compared, or differs, the old value
 * comes back and the new one never counts. */
int compare_rebuilt(struct device *d, uint32_t op, const struct rec_operand *w, int32_t v, struct slot *s)
{
    int32_t b = w->buf;
    struct saved_value *want = saved_find(d, b, v);
    d->ex->now.rebuilt_now++;
    if (!want) {
        log_say(SAY_DEBUG, "op %u (%s): version %d of buffer %d was rebuilt with nothing to compare it with", op, d->ex->learnt.rec.ops[op].name, v, b);
        return 0;
    }
    bool read = !fence_sync_queued(d, true);
    const bool same = read && (equal_by_hash(d, want, s) || equal_on_host(d, w, want, s, &read));
    d->st.verify_checked += read;
    d->ex->now.compared_now += read;
    if (same)
        return 0;
    if (read) {
        d->st.verify_failed++;
        if (d->status)
            status_store(&d->status->differed, d->st.verify_failed);
        log_say(d->mode == MODE_REHEARSE ? SAY_INFO : SAY_ERROR,
                "the replay of op %u (%s) differed from the original; its value is restored and it will not be replayed again",
                op, PLAIN_IN_LINE(d->ex->learnt.rec.ops[op].name));
        if (!d->ex->now.op_banned[op]) {
            d->ex->now.op_banned[op] = 1;
            d->ex->now.bans++;
        }
    }
    return saved_restore(d, want, s);
}

bool compare_must(struct device *d) { return d->mode == MODE_REHEARSE || d->cfg->verify == VERIFY_ALWAYS || d->ex->now.saved; }
