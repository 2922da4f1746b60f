#include "policy/learn/probe.h"
#include "policy/learn/facts.h"
#include "policy/learn/hashing.h"
#include "policy/learn/learn.h"
#include "policy/learn/parts.h"
#include "policy/learn/points.h"
#include "policy/learn/probing.h"
#include "policy/learn/trial.h"
#include "policy/learn/words.h"
#include "policy/iteration.h"
#include "policy/memory/aside.h"
#include "policy/memory/decoy.h"
#include "policy/memory/foreign.h"
#include "policy/memory/in_place.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "policy/op/ready.h"
#include "policy/op/texture.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SIDE_MAX_BYTES = 64ull << 20;

struct func_effect {
    uint32_t offset;
    uint32_t launches, changes;
};

int probe_init(struct device *d)
{
    if (!hashing_is_loaded(d))
        return -EAGAIN;
    if (!d->probe && !(d->probe = calloc(1, sizeof *d->probe)))
        return -ENOMEM;
    struct probe *p = d->probe;
    if (p->tried)
        return p->usable ? 0 : -ENOTSUP;
    p->tried = true;
    p->usable = !hashing_init(d) && pace_init(d) && d->drv->cuEventCreate(&p->t0, 0) == CUDA_SUCCESS &&
                d->drv->cuEventCreate(&p->t1, 0) == CUDA_SUCCESS;
    return p->usable ? 0 : -ENOTSUP;
}

void probe_clock(struct device *d, CUstream stream)
{
    if (pace_is_due(d) && !probe_init(d))
        pace_note(d, stream);
}

/* ---- the iteration ---------------------------------------------------------------------------------------------- */

void probe_begin(struct device *d, uint64_t period, bool checked)
{
    d->probe->checked = checked;
    rows_begin(d);
    pace_begin(d, period);
    d->probe->stuck = false;
    if (!trial_settle(d, true))
        pace_expect(d, period);
}

void probe_end(struct device *d)
{
    if (!d->probe)
        return;
    pace_say(d);
    d->st.learning_ns += d->probe->pace.extra_ns;
    d->probe->pace.extra_ns = 0;
    rows_end(d);
    decoy_end(d);
    aside_clear(d, true);
}

/* ---- what is known of a kernel ------------------------------------------------------------------------------ */

static struct func_effect *effect_of(struct func *f, uint32_t offset, bool make)
{
    for (uint32_t i = 0; i < f->n_effects; i++)
        if (f->effects[i].offset == offset)
            return &f->effects[i];
    if (!make)
        return NULL;
    if (!grow_room(&f->effects, f->n_effects, &f->cap_effects, 8))
        return NULL;
    f->effects[f->n_effects] = (struct func_effect){.offset = offset};
    return &f->effects[f->n_effects++];
}

bool probe_offset_changes(const struct func *f, uint32_t offset)
{
    for (uint32_t i = 0; i < f->n_effects; i++)
        if (f->effects[i].offset == offset)
            return f->effects[i].changes > 0;
    return false;
}

/* ---- one op ------------------------------------------------------------------------------------------------- */

static void set_mode(struct rt_op *op, const struct slot *s, enum rec_mode m)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].slot == s)
            op->operands[i].mode = (uint8_t)m;
}

/* The hash of `bytes` bytes of a poison; NULL: not known yet. */
static const uint64_t *hash_of_fill(const struct probe *p, unsigned char poison, uint64_t bytes)
{
    for (uint32_t i = 0; i < PROBE_FILLS; i++)
        if (p->fills[i].bytes == bytes && p->fills[i].poison == poison)
            return p->fills[i].hash;
    return NULL;
}

static void note_fill(struct probe *p, unsigned char poison, uint64_t bytes, const uint64_t hash[2])
{
    struct probe_fill *f = &p->fills[p->next_fill++ % PROBE_FILLS];
    *f = (struct probe_fill){.poison = poison, .bytes = bytes, .hash = {hash[0], hash[1]}};
}

/* Did the latest run leave the buffer full of the second poison (now[])? */
static bool holds_second_poison(struct device *d, const struct touched *u)
{
    struct probe *p = d->probe;
    const uint64_t *known = hash_of_fill(p, POISON_SECOND, u->slot->bytes);
    if (known)
        return hashing_same(known, u->now);
    uint64_t h[2];
    struct hash_range r = {u->slot->va, u->slot->bytes};
    if (d->drv->cuMemsetD8Async(r.ptr, POISON_SECOND, r.bytes, d->stream[STREAM_IN]) != CUDA_SUCCESS || hashing_now(d, &r, 1, h))
        return false;
    note_fill(p, POISON_SECOND, r.bytes, h);
    return hashing_same(h, u->now);
}

/* The op has written the buffer, though its content has not changed: the bytes that it wrote are those of the poison. */
static void wrote_poison(struct trial *t, struct touched *u)
{
    if (!u->changed)
        set_mode(t->op, u->slot, u->blank ? REC_WRITE : REC_RMW);
    u->changed = true;
}

/* Runs the op from the old state with the second poison, and with the first again: bytes that differ were not written, or were made of unwritten bytes. NULL: the op repeats;
 * `left` and `partial` say which bytes of each buffer are blank after it. */
static const char *two_poisons(struct trial *t)
{
    struct device *d = t->d;
    const char *why = NULL;
    struct parts *parts = calloc(t->n + 1, sizeof *parts);
    if (!parts || trial_again(t, NULL, POISON_SECOND)) {
        free(parts);
        return "failed when it ran again";
    }
    bool differs = false;
    for (uint32_t i = 0; i < t->n; i++)
        differs |= !hashing_same(t->u[i].now, t->u[i].after);
    for (uint32_t i = 0; i < t->n && !why; i++) {
        struct touched *u = &t->u[i];
        if (u->row && !u->row->scattered && hashing_same(u->now, u->after))
            wrote_poison(t, u);
        if (hashing_same(u->now, u->after) || (u->blank && !u->changed && holds_second_poison(d, u)))
            continue;
        if (u->row && u->row->scattered)
            why = "works on a buffer that is written in scattered parts";
        else if (parts_second(d, u->slot, POISON_SECOND, &parts[i]))
            why = "writes a part of a buffer that is too large to look at";
    }
    if (!differs)
        goto out; /* no byte was blank, or all blank bytes were overwritten */
    if (trial_again(t, NULL, POISON_FIRST))
        why = "failed when it ran again";
    else if (!trial_equal(t))
        why = facts_differs;
    for (uint32_t i = 0; i < t->n && !why; i++) {
        struct touched *u = &t->u[i];
        struct blank b;
        if (!parts[i].bytes)
            continue;
        int r = parts_first(d, u->slot, &parts[i]);
        r = r ? r : parts_difference(d, u->slot, POISON_FIRST, POISON_SECOND, &parts[i], &b);
        struct blank_row *row = r && r != -E2BIG ? NULL : rows_make(d, u->slot);
        if (!row)
            why = "host memory is short";
        else if (r) {
            row->scattered = true;
            why = "writes scattered parts of a buffer";
        } else {
            t->left[i] = b, t->partial[i] = true;
            if (u->row && (b.n != u->row->b.n || memcmp(b.r, u->row->b.r, b.n * sizeof *b.r)))
                wrote_poison(t, u);
        }
    }
out:
    for (uint32_t i = 0; i < t->n; i++)
        parts_free(d, &parts[i]);
    free(parts);
    return why;
}

/* The buffer is reached through a tensor map: a replay cannot be given scratch in its place. */
static bool has_map(const struct rt_op *op, const struct slot *s)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].slot == s && op->operands[i].map)
            return true;
    return false;
}

/* Do the in-place outputs influence the others? The op runs once more. The in-place buffers hold what its first run left, but for a part that was filled right before the
 * launch, which is filled again as before a replay; the other outputs are made anew, and must be the same. Such a run is unlike any before: it may change a buffer that the op
 * had only read, so all are set aside first. */
static int try_side(struct trial *t)
{
    uint64_t in_place = 0;
    uint32_t others = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->u[i].changed && !t->u[i].blank)
            in_place += t->u[i].slot->bytes;
        others += t->u[i].changed && t->u[i].blank;
    }
    if (!in_place || !others || in_place > SIDE_MAX_BYTES)
        return 0;
    if (!pace_left_ns(t->d) || trial_save_all(t)) {
        t->cut = true;
        return 0;
    }
    for (uint32_t i = 0; i < t->n; i++)
        t->u[i].keep = t->u[i].changed && !t->u[i].blank;
    int r = trial_again(t, NULL, POISON_FIRST);
    bool side = !r;
    for (uint32_t i = 0; i < t->n; i++) {
        if (!t->u[i].keep && !hashing_same(t->u[i].now, t->u[i].after))
            side = false;
        t->u[i].keep = false;
    }
    if (!r)
        r = trial_again(t, NULL, POISON_FIRST);
    if (!r && !trial_equal(t))
        r = -EIO;
    for (uint32_t i = 0; i < t->n && side && !r; i++)
        if (t->u[i].changed && !t->u[i].blank && !has_map(t->op, t->u[i].slot))
            set_mode(t->op, t->u[i].slot, REC_SIDE);
    return r;
}

/* The launch may follow addresses: one more run would change the memory behind them again, which nobody has set aside. */
static bool follows_addresses(const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].slot->points)
            return true;
    return op->odd;
}

const char *probe_runs_once(const struct rt_op *op, bool reaches_elsewhere)
{
    if (op->textures)
        return "may use a texture or a surface";
    if (!op_repeatable(op))
        return "cooperative launch";
    if (reaches_elsewhere)
        return "reaches memory of the host, or of another device";
    return follows_addresses(op) ? "follows addresses that lie in memory" : NULL;
}

/* A blank buffer that the op left alone: any content of it is right, unless an earlier op of the iteration has it, too (rec_buf), and writes it another time. */
static void settle_untouched(struct trial *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->u[i].blank && !t->u[i].changed)
            set_mode(t->op, t->u[i].slot, t->u[i].slot->rec_buf < 0 ? REC_WRITE : REC_RMW);
}

/* After the program's run: sets the operands' modes (read, overwritten, changed in place). Returns why the op is opaque; NULL: it repeats. */
static const char *classify(struct trial *t, struct probe_result *out)
{
    bool all_old = true, unsaved = false, any = false;
    const char *why = NULL;
    for (uint32_t i = 0; i < t->n; i++) {
        struct touched *u = &t->u[i];
        set_mode(t->op, u->slot, u->changed ? (u->blank ? REC_WRITE : REC_RMW) : REC_READ);
        if (u->changed) {
            any = true;
            all_old &= u->old_life;
            unsaved |= !u->blank && !u->saved;
        }
    }
    if ((why = probe_runs_once(t->op, out->reaches_host)))
        return why;
    if (!any)
        return NULL;
    if (unsaved)
        return "changed memory that was not set aside";
    if (!pace_left_ns(t->d))
        return "there was no time to try it again";
    if (all_old) {
        if (trial_again(t, NULL, POISON_FIRST))
            return "failed when it ran again";
        if (trial_equal(t) && words_try(t, NULL, out->idle, &out->n_idle))
            return "failed when it ran again";
        return facts_updates;
    }
    why = two_poisons(t);
    if (why)
        return why;
    settle_untouched(t);
    return words_try(t, NULL, out->idle, &out->n_idle) || try_side(t) ? "failed when it ran again" : NULL;
}

/* Updates the buffers' rows: which bytes are blank after the op. Where the op did not run with another poison (`untried`) it may have written bytes equal to the first one. */
static void note_rows(struct trial *t, bool untried)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct touched *u = &t->u[i];
        struct blank_row *row = t->partial[i] ? rows_make(t->d, u->slot) : rows_of(t->d, u->slot, false);
        if (!row || row->scattered)
            continue;
        if (t->partial[i])
            row->b = t->left[i];
        else if (u->changed || (untried && row->b.n)) {
            row->b.n = 0;
            u->slot->written = true;
            if (!u->changed && t->op->n_operands <= LEARN_FEW) /* longer lists are left to learn.c (updates_only) */
                set_mode(t->op, u->slot, REC_RMW);
        }
    }
}

/* Managed memory: the host may write it at any time. */
static bool is_managed(struct device *d, const struct slot *s)
{
    unsigned what = 0;
    return s->kind == SLOT_FOREIGN && d->drv->cuPointerGetAttribute(&what, CU_POINTER_ATTRIBUTE_IS_MANAGED, s->va) == CUDA_SUCCESS && what;
}

bool probe_reaches_elsewhere(struct device *d, const struct rt_op *op, const uint32_t *but, uint32_t n_but)
{
    for (uint32_t i = 0; i < op_pieces(op); i++) {
        uint32_t to, from = op_piece(op, i, &to);
        for (uint32_t at = (from + 7) & ~7u; at + 8 <= to; at += 8) {
            CUdeviceptr p;
            unsigned what = 0;
            bool hidden = false;
            for (uint32_t k = 0; k < n_but && !hidden; k++)
                hidden = but[k] == at;
            memcpy(&p, op->args + at, sizeof p);
            if (hidden || !mem_may_be_address(p) || mem_is_ours(d, p))
                continue;
            bool ours = foreign_lookup(d, p) != NULL;
            if (d->drv->cuPointerGetAttribute(&what, ours ? CU_POINTER_ATTRIBUTE_IS_MANAGED : CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) == CUDA_SUCCESS && what)
                return true;
        }
    }
    return false;
}

static int by_offset(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Adds words that point where memory was, but is no more, to out->idle. Such words are stale: a launch that used one would be an error in the program. A small number
 * and unfilled bytes beside it in one word may look like a stale address. */
static void add_dangling(struct device *d, const struct rt_op *op, struct probe_result *out)
{
    const struct func *f = op->func;
    for (uint32_t i = 0; i < f->n_params && f->known && !op->packed; i++)
        for (uint32_t at = (f->offset[i] + 7) & ~7u; func_is_struct(f, i) && at + 8 <= f->offset[i] + f->size[i]; at += 8) {
            CUdeviceptr p;
            memcpy(&p, op->args + at, sizeof p);
            if (p - d->mem.base < d->mem.top_page << d->mem.shift && !slot_lookup(d, p) && out->n_idle < OP_MAX_OPERANDS)
                out->idle[out->n_idle++] = words_idle_part(at, p);
        }
    qsort(out->idle, out->n_idle, sizeof *out->idle, by_offset);
}

/* Runs the op once, unless it is `issued` already. Nobody waits for it or measures its effects: every operand counts as changed in place. */
static int alone_drv(struct device *d, struct rt_op *op, struct probe_result *out, bool issued)
{
    int r = issued ? CUDA_SUCCESS : op_issue_drv(d, op);
    d->probe->stuck = true;
    out->why_opaque = "did not finish when it was waited for";
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct slot *s = op->operands[i].slot;
        struct blank_row *row = rows_of(d, s, false);
        op->operands[i].mode = REC_RMW;
        s->written = true;
        s->watched = false;
        if (row)
            row->b.n = 0, row->scattered = false;
    }
    return r;
}

/* Like alone_drv(), where measuring the op failed, not the op. */
static int unseen_drv(struct device *d, struct rt_op *op, struct probe_result *out, bool issued)
{
    int r = alone_drv(d, op, out, issued);
    d->probe->stuck = false;
    out->why_opaque = "could not be looked at";
    return r;
}

/* Updates the destination's row: which bytes are blank after a memset or copy. */
static void plain_rows(struct device *d, const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct rt_operand *w = &op->operands[i];
        struct blank_row *row = w->mode == REC_READ ? NULL : rows_of(d, w->slot, false);
        if (!row)
            continue;
        int r = 0;
        if (op->kind == OP_MEMSET)
            for (size_t y = 0; y < op->set.height && !r; y++) {
                uint64_t from = w->delta + y * op->set.pitch_bytes;
                r = blank_remove(&row->b, from, from + op->set.width * op->set.elem_bytes);
            }
        else if (op->kind == OP_COPY)
            r = blank_remove(&row->b, w->delta, w->delta + op->copy.bytes);
        else
            row->b.n = 0;
        row->scattered |= r != 0;
    }
    if (op->kind != OP_COPY || op->copy.kind != ENG_DTOD || op->n_operands < 2)
        return;
    const struct rt_operand *to = &op->operands[0], *from = &op->operands[1];
    const struct blank_row *source = rows_of(d, from->slot, false);
    struct blank_row *row = source ? rows_make(d, to->slot) : NULL;
    for (uint32_t k = 0; row && k < source->b.n && !source->scattered; k++) {
        uint64_t a = source->b.r[k].from > from->delta ? source->b.r[k].from - from->delta : 0;
        uint64_t b = source->b.r[k].to > from->delta ? source->b.r[k].to - from->delta : 0;
        if (b > op->copy.bytes)
            b = op->copy.bytes;
        if (a < b)
            row->scattered |= blank_add(&row->b, to->delta + a, to->delta + b) != 0;
    }
    if (row)
        row->scattered |= source->scattered;
}

/* A copy on the device from memory that changes unseen: memory of the host, or the program's own that no allocation shows. */
static bool copies_from_elsewhere(struct device *d, const struct rt_op *op)
{
    const struct slot *from = NULL;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].offset == OPERAND_SRC)
            from = op->operands[i].slot;
    return op->kind == OP_COPY && op->copy.kind == ENG_DTOD && (!from || is_managed(d, from));
}

/* Memsets, copies and other calls say what they do; only their time is measured. */
static int plain_op_drv(struct device *d, struct rt_op *op, struct probe_result *out)
{
    struct trial t; /* trial_open() fills blank buffers with the poison */
    if (trial_open(d, op, &t))
        return CUDA_ERROR_OUT_OF_MEMORY;
    trial_close(&t);
    if (op->kind == OP_OTHER)
        out->why_opaque = "a call that remat does not repeat";
    else if (op->kind == OP_COPY && op->copy.kind != ENG_DTOD)
        out->why_opaque = op->copy.kind == ENG_HTOD ? "copies from host memory" : "copies to host memory";
    else if (copies_from_elsewhere(d, op))
        out->why_opaque = "copies from memory that changes unseen";
    if (trial_settle(d, true))
        return alone_drv(d, op, out, false);
    bool timed = pace_op_begins(d, op->stream, d->probe->t0);
    int r = op_issue_drv(d, op);
    timed &= d->drv->cuEventRecord(d->probe->t1, op->stream) == CUDA_SUCCESS;
    if (r != CUDA_SUCCESS)
        return r;
    if (trial_settle(d, true))
        return alone_drv(d, op, out, true);
    out->ns = timed ? pace_op_ns(d, d->probe->t0, d->probe->t1) : 0;
    plain_rows(d, op);
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].mode != REC_READ) {
            struct blank_row *row = rows_of(d, op->operands[i].slot, false);
            op->operands[i].slot->written = true;
            op->operands[i].slot->watched = false;
            if (row && row->scattered && !out->why_opaque)
                out->why_opaque = "writes scattered parts of a buffer";
        }
    return r;
}

/* A watched buffer whose hash has changed was written by no known op: it is pinned, and stays where it is. */
static void check_watched(const struct touched *u, struct probe_result *out)
{
    struct slot *s = u->slot;
    if (!s->watched || hashing_same(s->hash, u->before))
        return;
    s->pins++;
    if (out->unannounced < 0 || s->watched_at < out->unannounced)
        out->unannounced = s->watched_at;
}

/* Hashes the buffers before the op. Blank ones were filled right before (trial_open), and the hash of such a fill is known after the first one of that size. */
static int hash_before(struct trial *t)
{
    struct probe *p = t->d->probe;
    for (uint32_t k = 0; k < t->n; k++) {
        struct touched *u = &t->u[k];
        const uint64_t *filled = u->blank ? hash_of_fill(p, POISON_FIRST, u->slot->bytes) : NULL;
        u->skipped = filled != NULL;
        if (filled)
            memcpy(u->now, filled, sizeof u->now);
    }
    const int r = trial_hash_before(t);
    for (uint32_t k = 0; k < t->n && !r; k++)
        if (t->u[k].blank && !hash_of_fill(p, POISON_FIRST, t->u[k].slot->bytes))
            note_fill(p, POISON_FIRST, t->u[k].slot->bytes, t->u[k].before);
    return r;
}

/* Before the op runs: hashes, and copies of the buffers that it may change. A buffer behind a pointer through which no launch of the kernel has ever written needs no copy. */
static int prepare(struct trial *t, int32_t nth, struct probe_result *out)
{
    struct device *d = t->d;
    const struct rt_op *op = t->op;
    int r = hash_before(t);
    if (!r)
        points_look_older(t);
    for (uint32_t k = 0; k < t->n && !r; k++) {
        struct touched *u = &t->u[k];
        struct slot *s = u->slot;
        bool want = false;
        uint32_t places = 0;
        check_watched(u, out);
        for (uint32_t i = 0; i < op->n_operands; i++) {
            if (op->operands[i].slot != s)
                continue;
            struct func_effect *e = effect_of(op->func, op->operands[i].offset, true);
            want |= !e || !e->launches || e->changes || ++places > 1;
        }
        if (want && !u->blank && !out->reaches_host && op_repeatable(op))
            (void)trial_save(t, u, pace_left_ns(d));
    }
    (void)nth;
    return r ? r : trial_settle_copies(t);
}

static void learn_effects(const struct trial *t)
{
    const struct rt_op *op = t->op;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        uint32_t places = 0, k = 0;
        for (uint32_t j = 0; j < op->n_operands && places < 2; j++)
            places += op->operands[j].slot == op->operands[i].slot;
        while (k < t->n && t->u[k].slot != op->operands[i].slot)
            k++;
        struct func_effect *e = effect_of(op->func, op->operands[i].offset, true);
        if (e && places == 1 && k < t->n) { /* if several words lead to the buffer, nothing shows through which one it was changed */
            e->launches++;
            e->changes += t->u[k].changed;
        }
    }
}

/* The program's own run of the op, which the host waits for. *seen false: the op failed, or is left alone; nothing more is to be done with it. */
static int own_run_drv(struct trial *t, struct probe_result *out, bool *seen)
{
    struct device *d = t->d;
    *seen = false;
    bool timed = pace_op_begins(d, t->op->stream, d->probe->t0);
    int r = op_issue_drv(d, t->op);
    timed &= d->drv->cuEventRecord(d->probe->t1, t->op->stream) == CUDA_SUCCESS;
    if (r != CUDA_SUCCESS)
        return r;
    r = trial_settle(d, true);
    if (r == -ETIMEDOUT)
        return alone_drv(d, t->op, out, true);
    if (r) /* an error of the program's own is told by its next call */
        return unseen_drv(d, t->op, out, true);
    out->ns = timed ? pace_op_ns(d, d->probe->t0, d->probe->t1) : 0;
    d->probe->pace.own_ns += out->ns;
    *seen = true;
    return CUDA_SUCCESS;
}

/* The trial's result is a fact of the launch's code, and the trial was not cut short. */
static bool is_fact(const struct trial *t, const char *why) { return !t->cut && (!why || why == facts_differs || why == facts_updates); }

static void note_one(const struct trial *t, const struct touched *u, int32_t nth, bool looked)
{
    struct slot *s = u->slot;
    s->written |= u->changed;
    if (!looked) {
        s->watched &= !u->changed;
        return;
    }
    s->watched = !is_managed(t->d, s);
    s->watched_at = nth;
    memcpy(s->hash, u->after, sizeof s->hash);
}

/* After the op: notes what it changed, and, where the buffers were hashed (`looked`), each one's hash for the next op to compare with. */
static void note_touched(struct trial *t, int32_t nth, bool looked)
{
    if (looked)
        points_look_changed(t);
    for (uint32_t k = 0; k < t->n; k++)
        note_one(t, &t->u[k], nth, looked);
}

static int kernel_drv(struct trial *t, struct facts *x, int32_t nth, struct probe_result *out)
{
    struct device *d = t->d;
    struct rt_op *op = t->op;
    int r = prepare(t, nth, out);
    if (r == -EIO && trial_settle(d, true)) /* fills of new memory (trial_open) may still be under way */
        return CUDA_ERROR_LAUNCH_FAILED;
    if (r)
        return r == -ETIMEDOUT ? alone_drv(d, op, out, false) : unseen_drv(d, op, out, false);
    bool seen;
    r = own_run_drv(t, out, &seen);
    if (!seen)
        return r;
    if (trial_hash(t))
        return unseen_drv(d, op, out, true);
    for (uint32_t i = 0; i < t->n; i++) {
        memcpy(t->u[i].after, t->u[i].now, sizeof t->u[i].after);
        t->u[i].changed = !hashing_same(t->u[i].before, t->u[i].after);
    }
    out->why_opaque = classify(t, out);
    if (trial_mend(t))
        return CUDA_ERROR_LAUNCH_FAILED;
    add_dangling(d, op, out);
    learn_effects(t);
    if (out->why_opaque && !trial_hash(t)) /* a repeat may have left other content, just as right */
        for (uint32_t i = 0; i < t->n; i++)
            memcpy(t->u[i].after, t->u[i].now, sizeof t->u[i].after);
    bool any = false;
    for (uint32_t i = 0; i < t->n; i++)
        any |= t->u[i].changed;
    note_rows(t, !any || out->why_opaque);
    if (is_fact(t, out->why_opaque))
        facts_enter(x, t, out->why_opaque, out->idle, out->n_idle, out->ns);
    note_touched(t, nth, true);
    return CUDA_SUCCESS;
}

static const char SURPRISED[] = "changed memory that it was known to read";

/* Compares what a known launch left with its facts: a buffer that it only reads must have the hash from before the launch. If not, this launch has changed the buffer, or
 * somebody unseen has since that hash was taken, and both are taken to be so. */
static void check_known(struct trial *t, struct facts *x, struct probe_result *out)
{
    for (uint32_t k = 0; k < t->n; k++) {
        struct touched *u = &t->u[k];
        memcpy(u->after, u->now, sizeof u->after);
        if (!u->changed && !hashing_same(u->before, u->after)) {
            facts_surprise(x, t, k);
            u->changed = true;
            u->slot->pins++;
            out->why_opaque = SURPRISED;
            if (u->slot->watched && (out->unannounced < 0 || u->slot->watched_at < out->unannounced))
                out->unannounced = u->slot->watched_at;
        }
        set_mode(t->op, u->slot, !u->changed ? REC_READ : u->blank ? REC_WRITE : facts_use(x, k) == KNOWN_SIDE ? REC_SIDE : REC_RMW);
    }
}

/* Before a known launch: a watched buffer that the launch only reads has its hash from the op before; one that it changes is hashed, to see whether anybody else has written
 * there. */
static int look_before_known(struct trial *t, struct probe_result *out)
{
    for (uint32_t k = 0; k < t->n; k++) {
        struct touched *u = &t->u[k];
        u->skipped = u->blank ? u->changed : u->changed != u->slot->watched;
        memcpy(u->now, u->slot->hash, sizeof u->now);
    }
    const int r = trial_hash_before(t);
    if (!r)
        points_look_older(t);
    for (uint32_t k = 0; k < t->n && !r; k++)
        if (t->u[k].changed && !t->u[k].blank)
            check_watched(&t->u[k], out);
    return r;
}

/* A launch of which all is known (facts_suffice) runs once, as it is; what it is known to change is taken to be changed. Where an earlier run has looked at the very same
 * iteration (`checked`), and the facts are those of the kernel's image, nothing is hashed: the facts are believed. */
static int known_drv(struct trial *t, struct facts *x, int32_t nth, struct probe_result *out)
{
    struct device *d = t->d;
    const bool looks = !d->probe->checked || !x->of_image;
    bool seen;
    for (uint32_t k = 0; k < t->n; k++)
        t->u[k].changed = facts_use(x, k) > KNOWN_READ;
    int r = looks ? look_before_known(t, out) : 0;
    if (r)
        return r == -ETIMEDOUT ? alone_drv(d, t->op, out, false) : unseen_drv(d, t->op, out, false);
    if (trial_settle_copies(t)) /* fills of new memory (trial_open) may still be under way */
        return CUDA_ERROR_LAUNCH_FAILED;
    r = own_run_drv(t, out, &seen);
    if (!seen)
        return r;
    if (looks && trial_hash(t))
        return unseen_drv(d, t->op, out, true);
    out->why_opaque = x->why;
    check_known(t, x, out);
    if (!out->why_opaque)
        settle_untouched(t);
    if (out->why_opaque != facts_differs && out->why_opaque != SURPRISED && words_try(t, x->taken, out->idle, &out->n_idle))
        out->why_opaque = "host memory is short";
    add_dangling(d, t->op, out);
    learn_effects(t);
    for (uint32_t k = 0; k < t->n; k++) {
        facts_left(x, k, &t->left[k]);
        t->partial[k] = t->u[k].changed && (t->u[k].row || t->left[k].n) && out->why_opaque != SURPRISED;
    }
    note_rows(t, out->why_opaque);
    note_touched(t, nth, looks);
    d->st.facts_taken++;
    return CUDA_SUCCESS;
}

static void find_fills(struct trial *t)
{
    const struct recording *r = &t->d->ex->learnt;
    for (uint32_t k = 0; k < t->n; k++) {
        const int32_t b = t->u[k].slot->rec_buf, at = b < 0 ? -1 : r->rec.bufs[b].filled_by;
        t->u[k].filled = at < 0 ? NULL : &r->caps[at];
    }
}

int probe_op_drv(struct device *d, struct rt_op *op, int32_t nth, struct probe_result *out)
{
    struct probe *p = d->probe;
    *out = (struct probe_result){.unannounced = -1, .idle = p->idle};
    int r = trial_settle(d, !p->stuck);
    p->stuck = r != 0;
    if (r)
        return alone_drv(d, op, out, false);
    if (op->kind != OP_KERNEL)
        return plain_op_drv(d, op, out);
    struct trial t;
    pace_trial_begins(d);
    out->reaches_host = probe_reaches_elsewhere(d, op, NULL, 0);
    r = trial_open(d, op, &t) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    if (r == CUDA_SUCCESS) {
        struct facts x;
        find_fills(&t);
        facts_open(&x, &t);
        const bool known = !probe_runs_once(op, out->reaches_host) && facts_suffice(&x, &t, p->checked);
        r = known ? known_drv(&t, &x, nth, out) : kernel_drv(&t, &x, nth, out);
        facts_close(&x);
    }
    pace_trial_ends(d, out->ns, !p->stuck);
    trial_close(&t);
    aside_clear(d, false);
    return r;
}

int32_t probe_census(struct device *d)
{
    int32_t found = -1;
    if (trial_settle(d, !d->probe->stuck))
        return 0; /* work that still runs may change anything */
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        struct slot *s = &d->mem.slots[i];
        struct hash_range range = {s->va, s->bytes};
        uint64_t h[2];
        if (!s->live || !s->watched || (s->kind == SLOT_LARGE && s->state != SLOT_RESIDENT))
            continue;
        if (!hashing_now(d, &range, 1, h) && !hashing_same(h, s->hash)) {
            s->pins++;
            if (found < 0 || s->watched_at < found)
                found = s->watched_at;
        }
        s->watched = false;
    }
    return found;
}
