/* Learning: find the iteration, probe one, keep its record.
 *
 *   watch --period found--> (until its boundary) --> begin: one iteration is probed, op by op --> finish: the record is sealed
 *
 * What comes of it is campaign.c's.
 */
#include "policy/learn/learn.h"
#include "policy/learn/call_site.h"
#include "policy/learn/facts.h"
#include "policy/learn/foretold.h"
#include "policy/learn/probe.h"
#include "policy/learn/rows.h"
#include "policy/iteration.h"
#include "policy/memory/arena.h"
#include "policy/memory/slot.h"
#include "policy/memory/swap.h"
#include "policy/op/ready.h"
#include "policy/process/nvtx.h"
#include "policy/process/stats.h"
#include "policy/process/summary.h"
#include "policy/process/story.h"
#include "tracer/grow.h"
#include "tracer/iter.h"
#include "tracer/trace_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FITS_ITERATIONS = 8 /* without a limit felt, before it is told */ };
/* A lesson goes on where a few ops are others than in the iteration before (a batch that is mixed in one of two ways): it is back when so many in a row are, again,
 * those that were expected further on. */
enum { LESSON_SURE = 4, LESSON_OTHERS_MOST = 32, LESSON_OTHERS_PART = 8, LESSON_SHORT = 32 /* ops: every other one counts */, LESSON_LOOK_AHEAD = 64 };
enum { SOON_PART = 4 /* a lesson that was over after so small a part of the iteration has cost little */, IN_VAIN_MOST = 5 };
enum { MAX_PERIOD = 200000, SURE_PERIODS = 32 /* in a row: batches that are accumulated for a step look like iterations until that comes */ };
/* Side operands larger than this together are not set aside in a replay: the op is left alone. */
static const uint64_t SIDE_SCRATCH_MAX = 64ull << 20;

struct learn {
    struct iter *finder;
    uint64_t period, until;   /* ops in an iteration; ops left of the current one before probing begins */
    uint64_t *expected;       /* [period] signatures */
    uint64_t probed;          /* ops of the iteration before, but for copies to the host, that have come in the probed one, or were passed: no iteration is told by those copies */
    uint64_t others, passed;  /* ops that have come in the probed iteration alone; ops of the one before that have not come */
    bool strict;              /* the next lesson is over where an op is another one */
    unsigned in_vain;         /* lessons in a row that came to nothing and were not over soon: the next iteration must have come twice as often for each */
    uint32_t n_trail;         /* of others, since the latest op that was expected */
    int32_t suspect;          /* an unannounced write happened since this op, -1 none */
    int recorded_iterations;
    uint64_t asked;           /* ops of the iteration that the trace is of, while it is not known whether it comes again (a sort's passes, say, end some time); else 0 */
    uint64_t came_again;      /* .. those that have */
    uint64_t too_short;       /* ops of an iteration that did not: the trace is to be of a longer one */
    uint64_t in_a_row;        /* iterations that were counted, one right after another */
    uint64_t unfed;           /* ops since the period is only counted: the finder has not seen them */
    bool reset_pending, counted_before;
    uint64_t shortest; /* ops of what was counted as an iteration; 0: nothing was */
    struct foretold foretold;
    int gone_by;              /* of the earlier runs' iterations, the one that has ended with the latest op; -1 none */
    int lesson_of;            /* .. the one that this lesson is of; -1: the finder's own */
    bool at_once;             /* .. and it is compared with that as it goes: none has gone by whole */
    uint64_t *lasting;        /* [period] foretold_signature() of the lesson's ops so far */
    uint64_t *irregular;      /* [n_irregular] .. and which of their words were irregular, as sequence_word() says it */
    uint32_t n_irregular, cap_irregular;
    uint64_t contradicted;    /* facts, before the lesson */
    bool checked, needs_past; /* of the recorded iteration: see sequence.h */
    struct iter_operand operands[OP_MAX_OPERANDS]; /* of the op at hand, as the finder takes them */
};

static bool any_recorded; /* by whichever device, also if its context has gone since */

bool learn_any_recorded(void) { return any_recorded; }

int learn_init(struct device *d)
{
    d->learn = calloc(1, sizeof *d->learn);
    d->ex = calloc(1, sizeof *d->ex);
    if (!d->learn || !d->ex)
        return -ENOMEM;
    d->learn->finder = iter_new();
    d->learn->suspect = d->learn->gone_by = d->learn->lesson_of = -1;
    return d->learn->finder ? 0 : -ENOMEM;
}

void learn_reset(struct device *d)
{
    d->learn->reset_pending = true;
    d->learn->period = d->learn->until = 0;
}

bool learn_wants_trace(const struct device *d)
{
    return d->primary && d->cfg->trace_out[0] && d->learn->recorded_iterations < (d->cfg->trace_iterations > 0 ? d->cfg->trace_iterations : 1);
}

/* ---- the probed iteration ------------------------------------------------------------------------------------------ */

int learn_prepare(struct device *d)
{
    const uint64_t period = d->learn->period;
    const int r = probe_init(d);
    if (r == -EAGAIN)
        return r;
    if (r) {
        log_once(SAY_WARN, "learning is not possible on this device (its own kernels do not load); memory is held by swapping");
        return -ENOTSUP;
    }
    if (d->learn->at_once)
        return 0;
    uint64_t *e = realloc(d->learn->expected, period * sizeof *e);
    if (!e)
        return -ENOMEM;
    d->learn->expected = e;
    for (uint64_t i = 0; i < period; i++)
        d->learn->expected[i] = iter_expected_sig(d->learn->finder, period, i);
    return 0;
}

int learn_begin(struct device *d)
{
    const uint64_t period = d->learn->period;
    for (uint32_t i = 0; i < d->mem.n_slots; i++) {
        d->mem.slots[i].rec_buf = -1;
        d->mem.slots[i].watched = false;
    }
    d->ex->learnt.caps = calloc(period, sizeof *d->ex->learnt.caps);
    if (!d->ex->learnt.caps)
        return -ENOMEM;
    d->ex->learnt.n_caps = (uint32_t)period;
    d->ex->learnt.rec.period = period;
    d->learn->probed = d->learn->others = d->learn->passed = d->learn->n_trail = 0;
    d->learn->suspect = -1;
    uint64_t *lasting = realloc(d->learn->lasting, period * sizeof *lasting);
    if (!lasting)
        return -ENOMEM;
    d->learn->lasting = lasting;
    d->learn->n_irregular = 0;
    d->learn->contradicted = d->st.facts_contradicted;
    d->learn->counted_before = true;
    probe_begin(d, period, d->learn->lesson_of >= 0 && foretold_about(&d->learn->foretold, d->learn->lesson_of)->checked);
    facts_lesson();
    d->learnings++;
    log_say(SAY_INFO, "an iteration is %llu ops; learning what each of them reads and writes", (unsigned long long)period);
    return 0;
}

static void give_up(struct device *d, const char *why)
{
    log_say(SAY_INFO, "learning starts over: %s", why);
    probe_end(d);
    d->learn->in_vain += d->learn->in_vain < IN_VAIN_MOST && d->learn->probed * SOON_PART >= d->learn->period;
    d->learn->strict = false;
    d->learn->period = d->learn->until = 0;
    d->learn->foretold.failed += d->learn->at_once;
    d->learn->at_once = false;
    d->learn->lesson_of = -1;
}

void learn_abandon(struct device *d, const char *why)
{
    give_up(d, why);
    learn_reset(d);
}

static int64_t feed(struct device *d, const struct rt_op *op)
{
    struct iter_operand *operands = d->learn->operands;
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = (struct iter_operand){.serial = op->operands[i].slot->serial,
                                            .birth_op = op->operands[i].slot->birth_op,
                                            .delta = op->operands[i].delta,
                                            .offset = op->operands[i].offset};
    bool from_host = op->kind == OP_COPY && op->copy.kind == ENG_HTOD;
    d->learn->gone_by = foretold_feed(&d->learn->foretold, d, op);
    return iter_feed(d->learn->finder, op->sig, operands, op->n_operands, d->mem.live_bytes, from_host);
}

/* The record's buffer for a slot; allocations of this iteration are known by -2 - ordinal until they are touched. */
static int32_t buf_of(struct device *d, struct slot *s)
{
    if (s->rec_buf >= 0)
        return s->rec_buf;
    int32_t ord = s->rec_buf <= -2 ? -2 - s->rec_buf : -1;
    int b = record_buf(&d->ex->learnt.rec, s->bytes, s->id, s->serial, ord);
    if (b < 0)
        return b;
    d->ex->learnt.rec.bufs[b].birth_op = s->birth_op;
    d->ex->learnt.rec.bufs[b].small = s->kind == SLOT_SMALL;
    d->ex->learnt.rec.bufs[b].foreign = s->kind == SLOT_FOREIGN;
    return s->rec_buf = b;
}

static int note_irregular(struct learn *l, uint32_t offset)
{
    if (!grow_room(&l->irregular, l->n_irregular, &l->cap_irregular, 256))
        return -ENOMEM;
    l->irregular[l->n_irregular++] = sequence_word(l->probed, offset);
    return 0;
}

static int room_for_capture(struct device *d)
{
    struct exec *ex = d->ex;
    if (ex->learnt.rec.n_ops < ex->learnt.n_caps)
        return 0;
    struct rt_op *more = realloc(ex->learnt.caps, (size_t)ex->learnt.n_caps * 2 * sizeof *more);
    if (!more)
        return -ENOMEM;
    memset(more + ex->learnt.n_caps, 0, ex->learnt.n_caps * sizeof *more);
    ex->learnt.caps = more;
    ex->learnt.n_caps *= 2;
    return 0;
}

/* Which words point at the buffer they pointed at one and two iterations ago, or at the one that took its place. */
static int mark_regular(struct device *d, struct rt_op *op, bool expected)
{
    struct learn *l = d->learn;
    const uint64_t more = l->others - l->passed; /* ops in this iteration so far than in the one before; may be less than nothing, modulo 2^64 */
    int r = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct rt_operand *w = &op->operands[i];
        if (!expected) {
            w->regular = w->recurs = true;
            continue;
        }
        w->regular = l->lesson_of < 0 || !foretold_is_irregular(&l->foretold, l->lesson_of, l->probed, w->offset);
        uint64_t ago = l->period + more;
        for (uint64_t back = 1; back <= 2 && !l->at_once; back++) {
            bool known;
            const struct iter_operand *then = iter_expected_operand(l->finder, ago, w->offset, &known);
            const bool as_old = then && (then->birth_op + back * l->period == w->slot->birth_op || then->birth_op + ago == w->slot->birth_op);
            if (back == 1 && known && then) {
                w->remains = then->serial == w->serial;
                w->moved_on = !w->remains && as_old;
            }
            w->regular &= !known || (then && (then->serial == w->serial || as_old));
            const uint64_t before = iter_apart(l->finder, ago);
            ago += before ? before : l->period;
        }
        w->recurs = op->n_operands > LEARN_FEW
            && (l->at_once || (!w->remains && iter_expected_again(l->finder, l->period + more, l->period - l->probed - 1, w->offset, LEARN_FEW)));
        r = r || w->regular ? r : note_irregular(l, w->offset);
    }
    return r;
}

static int probe_record(struct device *d, const struct rt_op *op, const struct probe_result *res, uint64_t live)
{
    struct rec_range defined[BLANK_MAX + 1];
    if (room_for_capture(d))
        return -ENOMEM;
    int i = record_op(&d->ex->learnt.rec, op->sig, op_name(op), res->why_opaque, live);
    if (i < 0)
        return i;
    d->ex->learnt.rec.ops[i].ns = res->ns;
    d->ex->learnt.rec.ops[i].to_host = op_reads_for_host(op);
    call_site_owe(d, (uint32_t)i);
    uint64_t side_bytes = 0;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        const struct rt_operand *w = &op->operands[k];
        int32_t b = buf_of(d, w->slot);
        int at = b < 0 ? b : record_operand(&d->ex->learnt.rec, b, w->offset, w->delta, (enum rec_mode)w->mode);
        if (at < 0)
            return -ENOMEM;
        d->ex->learnt.rec.operands[at].map = w->map;
        int parts = w->mode == REC_READ ? -1 : rows_defined(d, w->slot, defined);
        if (parts >= 0 && record_defined(&d->ex->learnt.rec, defined, (uint32_t)parts))
            return -ENOMEM;
        if (op->kind == OP_COPY && op->copy.kind == ENG_HTOD)
            d->ex->learnt.rec.bufs[b].host_written = true;
        d->ex->learnt.rec.bufs[b].filled_by = op_fills_part(op, w) ? i : -1;
        d->ex->learnt.rec.bufs[b].pinned |= w->slot->pins > 0;
        d->ex->learnt.rec.bufs[b].points |= w->slot->points;
        d->ex->learnt.rec.bufs[b].named |= w->slot->named;
        d->ex->learnt.rec.bufs[b].moves_on |= w->moved_on;
        d->ex->learnt.rec.bufs[b].remains |= w->remains;
        if (op->kind == OP_KERNEL && w->slot->points && !d->ex->learnt.rec.ops[i].why_opaque)
            d->ex->learnt.rec.ops[i].why_opaque = "follows addresses that lie in memory";
        side_bytes += w->mode == REC_SIDE ? w->slot->bytes : 0;
    }
    if (side_bytes > SIDE_SCRATCH_MAX && !d->ex->learnt.rec.ops[i].why_opaque)
        d->ex->learnt.rec.ops[i].why_opaque = "its in-place state is too large to set aside";
    for (uint32_t k = 0; k < res->n_idle; k++)
        if (record_idle_word(&d->ex->learnt.rec, res->idle[k]))
            return -ENOMEM;
    return op_capture(&d->ex->learnt.caps[i], op);
}

/* Another op has come than the expected one. True: it is expected further on, and so, right before it, were the latest other ops: the lesson goes on from there. False:
 * this iteration alone has the op. */
static bool is_back(struct learn *l, const struct rt_op *op)
{
    const uint64_t fed = l->probed - l->passed + l->others; /* ops of the probed iteration */
    for (uint64_t at = l->probed + LESSON_SURE - 1; l->n_trail >= LESSON_SURE - 1 && at < l->period && at < l->probed + LESSON_LOOK_AHEAD; at++) {
        bool same = l->expected[at] == op->sig;
        for (uint32_t ago = 1; ago < LESSON_SURE && same; ago++)
            same = iter_correspond(l->finder, ago, l->period + fed - at);
        if (!same)
            continue;
        l->passed += at - l->probed;
        l->probed = at;
        return true;
    }
    return false;
}

/* What is recorded to be looked at shall be an iteration that comes again. */
static bool may_go_on(const struct device *d)
{
    const struct learn *l = d->learn;
    const uint64_t part = l->period < LESSON_SHORT ? 0 : l->period / LESSON_OTHERS_PART + LESSON_SURE - 1; /* these show that the lesson is back */
    return !learn_wants_trace(d) && !l->strict && !l->at_once && l->lesson_of < 0 && l->probed && l->others < (part < LESSON_OTHERS_MOST ? part : LESSON_OTHERS_MOST);
}

static bool is_expected(struct device *d, const struct rt_op *op)
{
    const struct learn *l = d->learn;
    return l->at_once ? foretold_is(&l->foretold, d, l->lesson_of, l->probed, op) : op->sig == l->expected[l->probed];
}

int learn_op_drv(struct device *d, struct rt_op *op, enum learn_step *step)
{
    struct learn *l = d->learn;
    const bool counts = !op_reads_for_host(op), expected = !counts || is_expected(d, op) || (may_go_on(d) && is_back(l, op));
    *step = LEARN_ON;
    if (!expected && !may_go_on(d)) {
        /* A loop within the iteration (a gradient summed over a few batches) was taken for it. What has been seen is kept: this very op may
         * be the one that shows the iteration. */
        give_up(d, "the iteration was not like the one before");
        *step = LEARN_NOT_RUN;
        return CUDA_SUCCESS;
    }
    uint32_t lost = 0;
    if (ready_op(d, op, &lost))
        return ready_refused_drv(d, op);
    if (!counts && !d->learn->probed) { /* it follows the iteration before: this one begins with an op that comes every time */
        int r = op_issue_drv(d, op);
        ready_done(d, op, false);
        return r;
    }
    struct probe_result res;
    uint64_t live = d->mem.live_bytes;
    if (counts) {
        l->lasting[l->probed] = foretold_signature(d, op);
        if (mark_regular(d, op, expected)) {
            learn_abandon(d, "host memory is exhausted");
            *step = LEARN_NOT_RUN;
            return CUDA_SUCCESS;
        }
        feed(d, op);
    }
    int r = probe_op_drv(d, op, (int32_t)d->ex->learnt.rec.n_ops, &res);
    ready_done(d, op, false);
    if (r != CUDA_SUCCESS) {
        learn_abandon(d, "a launch failed");
        *step = LEARN_STOPPED;
        return r;
    }
    if (res.unannounced >= 0 && (d->learn->suspect < 0 || res.unannounced < d->learn->suspect))
        d->learn->suspect = res.unannounced;
    if (probe_record(d, op, &res, live)) {
        learn_abandon(d, "host memory is exhausted");
        *step = LEARN_STOPPED;
    } else if (!expected) {
        d->ex->learnt.rec.ops[d->ex->learnt.rec.n_ops - 1].why_opaque = "does not come in every iteration";
        l->n_trail++;
        l->others++;
    } else if (counts) {
        l->probed++;
        l->n_trail = 0;
    }
    return r;
}

bool learn_complete(const struct device *d) { return d->learn->probed == d->learn->period; }

bool learn_keeps_side(struct device *d, uint64_t bytes)
{
    static const uint64_t MOST = 32768; /* running statistics of 8,192 channels, counters */
    return bytes <= MOST && arena_is_for(d, bytes);
}

/* A launch over a list, never replayed, that changes nothing but what is older than the iteration: an update. A word in memory may let it
 * through for some buffers and not for others (a gradient that is not finite, a group without members): those that it only read, or seemed to,
 * it may change another time. So it counts as changing all that it touches: no replay takes what is there after it for what was there before.
 * That costs little: what an update reads is seldom made again later. Of few operands each has its part, and replays may begin from what it reads. */
static bool updates_only(const struct device *d, const struct rec_op *o)
{
    const struct record *r = &d->ex->learnt.rec;
    bool only = o->why_opaque && o->n > LEARN_FEW;
    for (uint32_t k = o->first; k < o->first + o->n && only; k++)
        only = r->operands[k].mode == REC_READ || r->bufs[r->operands[k].buf].alloc_ord < 0;
    return only;
}

static const char CHANGED_NOTHING[] = "changed nothing while it was learnt";

/* A pointer at this place was written through by another launch of the kernel: here it may be, another time. */
static void merge_effects(struct device *d)
{
    for (uint32_t i = 0; i < d->ex->learnt.rec.n_ops; i++) {
        struct rec_op *o = &d->ex->learnt.rec.ops[i];
        const struct rt_op *op = &d->ex->learnt.caps[i];
        if (op->kind != OP_KERNEL)
            continue;
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (d->ex->learnt.rec.operands[k].mode == REC_READ && probe_offset_changes(op->func, d->ex->learnt.rec.operands[k].offset)) {
                d->ex->learnt.rec.operands[k].mode = REC_RMW;
                o->why_opaque = "writes through this pointer in other launches";
            }
        /* A kernel that changed nothing at all may well do so another time (negative numbers become zero, but there were
         * none): it counts as changing all that it touches. */
        bool changes = false;
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            changes |= d->ex->learnt.rec.operands[k].mode != REC_READ;
        for (uint32_t k = o->first; k < o->first + o->n && !changes; k++) {
            d->ex->learnt.rec.operands[k].mode = REC_RMW;
            o->why_opaque = CHANGED_NOTHING;
        }
        if (updates_only(d, o))
            for (uint32_t k = o->first; k < o->first + o->n; k++)
                if (d->ex->learnt.rec.operands[k].mode == REC_READ)
                    d->ex->learnt.rec.operands[k].mode = REC_RMW;
    }
}

/* Memory that is reached in ways that no argument shows may change unseen, and no replay relies on it: what is pinned, and where something
 * unconfined runs (a graph, say, that writes a table of cuMemAlloc) all memory of the program's own. */
static void leave_pinned_alone(struct device *d)
{
    struct record *r = &d->ex->learnt.rec;
    for (uint32_t b = 0; b < r->n_bufs && d->unconfined; b++)
        r->bufs[b].pinned |= r->bufs[b].foreign;
    for (uint32_t i = 0; i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            if (r->bufs[r->operands[k].buf].pinned && !r->ops[i].why_opaque)
                r->ops[i].why_opaque = "works on memory that is reached unseen";
}

/* Something that op i makes may be wanted again there, or later. */
static bool may_be_made_again_at(const struct record *r, uint32_t i, uint32_t at)
{
    for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++) {
        const int32_t dies = r->bufs[r->operands[k].buf].dies;
        if (rec_makes(&r->operands[k]) && (dies < 0 || dies >= (int32_t)at))
            return true;
    }
    return false;
}

static bool any_named(const struct device *d)
{
    bool any = false;
    for (uint32_t i = 0; i < d->mem.n_slots && !any; i++)
        any = d->mem.slots[i].live && d->mem.slots[i].named;
    return any;
}

/* A kernel that changed nothing of what it was given may have changed what it knows by name (`named`: there is such memory): why else was it launched? */
static bool changes_named(const struct exec *ex, uint32_t i, bool named)
{
    const struct record *r = &ex->learnt.rec;
    if (named && ex->learnt.caps[i].kind == OP_KERNEL && (!r->ops[i].n || r->ops[i].why_opaque == CHANGED_NOTHING))
        return true;
    for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
        if (r->operands[k].mode != REC_READ && r->bufs[r->operands[k].buf].named)
            return true;
    return false;
}

/* Variables of modules are operands of no launch: any kernel may read them, and buffers whose addresses lie in them. So none is run again after
 * these are written (recording.named_writes, or by an op): from `at` on, which is n_ops + 1 where they are not. That it was right in rehearsal says
 * nothing of another iteration: what is written may have been what was there. */
static void leave_alone_what_may_read_by_name(struct device *d)
{
    const struct exec *ex = d->ex;
    const struct record *r = &ex->learnt.rec;
    const bool named = any_named(d);
    uint32_t k = ex->learnt.n_named_writes, at = r->n_ops + 1;
    for (uint32_t i = r->n_ops; i-- > 0;) {
        if (i + 1 < r->n_ops && changes_named(ex, i + 1, named))
            at = i + 2;
        for (; k > 0 && ex->learnt.named_writes[k - 1] > i; k--) /* in order */
            at = ex->learnt.named_writes[k - 1] < at ? ex->learnt.named_writes[k - 1] : at;
        if (ex->learnt.caps[i].kind == OP_KERNEL && !r->ops[i].why_opaque && at <= r->n_ops && may_be_made_again_at(r, i, at))
            r->ops[i].why_opaque = "memory that kernels know by name is written before what it makes is freed";
    }
}

static char *command_line(void)
{
    char text[256];
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    for (size_t i = 0; i + 1 < n; i++)
        if (!text[i] || (unsigned char)text[i] < 32)
            text[i] = ' ';
    text[n] = 0;
    return strdup(n ? text : "program");
}

/* See record_insert_holds; the captured calls move with their ops. */
static int hold_buffers(struct device *d)
{
    uint32_t n = d->ex->learnt.rec.n_ops;
    uint32_t *to = calloc(n + 1, sizeof *to);
    if (!to || record_insert_holds(&d->ex->learnt.rec, to)) {
        free(to);
        return -ENOMEM;
    }
    struct rt_op *caps = calloc(d->ex->learnt.rec.n_ops + 1, sizeof *caps);
    for (uint32_t i = 0; caps && i < n; i++)
        caps[to[i]] = d->ex->learnt.caps[i];
    free(d->ex->learnt.op_of_trace);
    d->ex->learnt.op_of_trace = to;
    d->ex->learnt.n_trace_ops = n;
    if (!caps)
        return -ENOMEM;
    free(d->ex->learnt.caps);
    d->ex->learnt.caps = caps;
    d->ex->learnt.n_caps = d->ex->learnt.rec.n_ops;
    return 0;
}

static void note_live(struct exec *ex)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < ex->learnt.rec.n_ops; i++) {
        least = ex->learnt.rec.ops[i].live_bytes < least ? ex->learnt.rec.ops[i].live_bytes : least;
        most = ex->learnt.rec.ops[i].live_bytes > most ? ex->learnt.rec.ops[i].live_bytes : most;
    }
    ex->learnt.boundary_live_bytes = ex->learnt.rec.n_ops ? ex->learnt.rec.ops[0].live_bytes : 0;
    ex->learnt.swing_bytes = most > least ? most - least : 0;
}

/* In-place state too large to be kept before every launch is, for a replay, what it is then: it must be content that no op looks at. That is
 * believed of a workspace alone, in which several ops leave what they like. Of all else the one trial (try_side()) says too little: a second
 * ReLU in place makes the same mask. */
static int believe_workspaces(struct device *d)
{
    struct record *r = &d->ex->learnt.rec;
    int32_t *first = malloc((r->n_bufs + 1) * sizeof *first); /* op that leaves something in the buffer; or: */
    enum { NONE = -1, SEVERAL = -2, LOOKED_AT = -3 };
    if (!first)
        return -ENOMEM;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        first[b] = NONE;
    for (uint32_t i = 0; i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++) {
            int32_t *f = &first[r->operands[k].buf];
            if (r->operands[k].mode != REC_SIDE && r->operands[k].mode != REC_WRITE && d->ex->learnt.caps[i].kind != OP_MEMSET)
                *f = LOOKED_AT; /* a memset of a part of it looks at nothing */
            else if (r->operands[k].mode == REC_SIDE && *f != LOOKED_AT)
                *f = *f == NONE || *f == (int32_t)i ? (int32_t)i : SEVERAL; /* an op may have several words of it */
        }
    for (uint32_t k = 0; k < r->n_operands; k++) {
        struct rec_operand *w = &r->operands[k];
        if (w->mode == REC_SIDE && first[w->buf] != SEVERAL && !learn_keeps_side(d, r->bufs[w->buf].bytes))
            w->mode = REC_RMW;
    }
    free(first);
    return 0;
}

/* Notes what decides whether a later run may learn by the iteration's sequence: each effect was checked, no op needs the iteration before (sequence.h). */
static void note_for_later_runs(struct device *d)
{
    struct learn *l = d->learn;
    const struct recording *r = &d->ex->learnt;
    bool points = false;
    l->needs_past = false;
    for (uint32_t b = 0; b < r->rec.n_bufs; b++) {
        points |= r->rec.bufs[b].points;
        l->needs_past |= r->rec.bufs[b].handed_on;
    }
    l->checked = l->suspect < 0 && !points && l->contradicted == d->st.facts_contradicted;
    if (!l->checked)
        foretold_doubt(d, l->lasting, r->rec.period);
}

/* An iteration is of `period` ops. What was counted as iterations before, and was much shorter, was a part of one: the passes of a sort, batches that are
 * accumulated. */
static void count_anew(struct device *d, uint64_t period)
{
    struct learn *l = d->learn;
    const uint64_t so_far = (d->op_count + 1) / period;
    if (l->shortest && 2 * l->shortest <= period && so_far < d->st.iterations)
        d->st.iterations = so_far;
    l->shortest = !l->shortest || 2 * l->shortest <= period || period < l->shortest ? period : l->shortest;
}

int learn_finish(struct device *d, uint64_t (*reserve)(struct device *))
{
    struct exec *ex = d->ex;
    int32_t s = probe_census(d);
    probe_end(d);
    facts_settle(d);
    if (s >= 0 && (d->learn->suspect < 0 || s < d->learn->suspect))
        d->learn->suspect = s;
    for (uint32_t i = d->learn->suspect < 0 ? ex->learnt.rec.n_ops : (uint32_t)d->learn->suspect; i < ex->learnt.rec.n_ops; i++)
        if (!ex->learnt.rec.ops[i].why_opaque)
            ex->learnt.rec.ops[i].why_opaque = "memory changed that nobody had announced";
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].live && d->mem.slots[i].pins && d->mem.slots[i].rec_buf >= 0) {
            ex->learnt.rec.bufs[d->mem.slots[i].rec_buf].pinned = true;
            ex->learnt.rec.bufs[d->mem.slots[i].rec_buf].named |= d->mem.slots[i].named;
        }
    merge_effects(d);
    leave_pinned_alone(d);
    leave_alone_what_may_read_by_name(d);
    if (believe_workspaces(d))
        return -ENOMEM;
    record_seal(&ex->learnt.rec);
    note_for_later_runs(d);
    for (uint32_t i = 0; i < ex->learnt.rec.n_ops; i++)
        if (ex->learnt.rec.ops[i].why_opaque)
            log_say(SAY_DEBUG, "op %u (%s) is never replayed: %s", i, ex->learnt.rec.ops[i].name, ex->learnt.rec.ops[i].why_opaque);
    d->learn->in_vain = 0;
    d->st.iterations += d->learn->at_once ? 2 : 1; /* and the one before, which was not known to be one */
    count_anew(d, ex->learnt.rec.period);
    d->learn->asked = d->learn->at_once || !learn_wants_trace(d) ? 0 : ex->learnt.rec.period;
    d->learn->came_again = 0;
    d->learn->at_once = false;
    d->st.native_ns = 0;
    for (uint32_t i = 0; i < ex->learnt.rec.n_ops; i++)
        d->st.native_ns += ex->learnt.rec.ops[i].ns;
    note_live(ex);
    ex->learnt.rec.model = command_line();
    if (learn_wants_trace(d)) {
        swap_measure(d);
        ex->learnt.rec.host_bytes_per_s = swap_bytes_per_s(d);
        ex->learnt.rec.page_bytes = d->mem.gran;
        ex->learnt.rec.reserve_bytes = reserve(d);
        int r = record_write(&ex->learnt.rec, d->cfg->trace_out, 1);
        if (r)
            log_say(SAY_WARN, "cannot write the trace %s: %s", d->cfg->trace_out, strerror(-r));
        d->learn->recorded_iterations++;
        any_recorded = true;
    }
    return hold_buffers(d);
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

void learn_alloc(struct device *d, struct slot *s)
{
    if (d->mode != MODE_PROBE)
        return;
    int k = record_alloc(&d->ex->learnt.rec, s->bytes);
    s->rec_buf = k < 0 ? -1 : -2 - k;
}

void learn_free(struct device *d, struct slot *s)
{
    if (d->mode != MODE_PROBE)
        return;
    int32_t b = s->rec_buf <= -2 ? -1 : buf_of(d, s); /* one that is older and untouched counts too: it had memory until now */
    if (b >= 0) {
        d->ex->learnt.rec.bufs[b].pinned |= s->pins > 0;
        record_free(&d->ex->learnt.rec, b);
    }
}

void learn_count_iteration(struct device *d, unsigned t)
{
    d->st.iterations++;
    d->whole_mode = d->mode;
    stats_boundary(d, t, true);
    if (!d->mem.pressed && d->st.iterations >= FITS_ITERATIONS)
        story_is(d, STORY_FITS, "the limit is not felt: %s of %s at most so far", rt_size(d->st.peak_physical_bytes).text, rt_size(d->mem.limit_bytes).text);
    story_goes_on(d);
    nvtx_iteration(d->st.iterations, device_mode_name(d, d->mode));
    summary_publish(d);
}

/* An iteration has ended that the next one may be like. If the next one is of another shape, what it is learnt as would not come again at once. */
static bool may_begin(struct device *d)
{
    struct learn *l = d->learn;
    if (!l->period || l->until)
        return false;
    if (learn_wants_trace(d) && l->period <= l->too_short) {
        l->period = 0;
        return false;
    }
    if (l->in_vain && iter_has_come(l->finder, l->period) < 2u << l->in_vain) {
        log_say(SAY_DEBUG, "an iteration of %llu ops is not learnt yet, since %u lessons in a row came to nothing", (unsigned long long)l->period, l->in_vain);
        l->period = 0;
        return false;
    }
    if (iter_is_settled(l->finder, l->period))
        return true;
    log_say(SAY_DEBUG, "an iteration of %llu ops held other amounts than the one before: shapes may take turns", (unsigned long long)l->period);
    l->period = 0;
    return false;
}

/* The trace stays as it is where the program ends before this is known. */
static void ask_again(struct device *d, const struct rt_op *op)
{
    struct learn *l = d->learn;
    if (!l->asked)
        return;
    if (op->sig == l->expected[l->came_again]) {
        l->asked = ++l->came_again == l->asked ? 0 : l->asked;
        return;
    }
    l->recorded_iterations--;
    l->too_short = l->asked;
    l->asked = 0;
    log_say(SAY_DEBUG, "the iteration of %llu ops that was recorded did not come again: the trace is to be of a longer one", (unsigned long long)l->too_short);
}

/* Where the limit is not felt a period that is sure is only counted: its ops come again, each with its signature. The finder, which
 * looks up every operand and remembers every op, sees none of these; it begins anew when an op is another, or when there is something to learn. */
static bool goes_on(struct device *d, const struct rt_op *op)
{
    struct learn *l = d->learn;
    if (l->in_a_row < SURE_PERIODS || !l->until || op->sig != iter_expected_sig(l->finder, l->period, l->unfed))
        return false;
    l->unfed++;
    if (!--l->until) {
        learn_count_iteration(d, op->t);
        l->until = l->period;
    }
    return true;
}

/* With the latest op an iteration that an earlier run has learnt has ended, or may have. */
static bool has_gone_by(struct device *d)
{
    struct learn *l = d->learn;
    if (d->mode != MODE_OBSERVE)
        return false;
    const bool whole = l->gone_by >= 0 && iter_remembers(l->finder, foretold_about(&l->foretold, l->gone_by)->ops);
    l->lesson_of = whole ? l->gone_by : foretold_guess(&l->foretold);
    l->at_once = !whole && l->lesson_of >= 0;
    if (l->lesson_of < 0)
        return false;
    l->period = foretold_about(&l->foretold, l->lesson_of)->ops;
    l->until = 0;
    return true;
}

bool learn_guesses(const struct device *d) { return d->learn->at_once; }

void learn_lesson_swaps(const struct device *d, uint64_t *ns, uint64_t *ops)
{
    const struct sequence_about *a = d->learn->lesson_of < 0 ? NULL : foretold_about(&d->learn->foretold, d->learn->lesson_of);
    *ns = a ? a->swap_ns : 0;
    *ops = a ? a->swap_ops : 0;
}

void learn_keep(struct device *d, uint64_t swap_ns, uint64_t swap_ops)
{
    if (learn_had_others(d))
        return; /* it was like no other */
    foretold_keep(d, (struct sequence_about){.ops = d->ex->learnt.rec.period, .swap_ns = swap_ns, .swap_ops = swap_ops, .checked = d->learn->checked, .needs_past = d->learn->needs_past,
                                             .n_irregular = d->learn->n_irregular},
                  d->learn->lasting, d->learn->irregular);
}

bool learn_watch(struct device *d, const struct rt_op *op, bool wanted)
{
    ask_again(d, op);
    if (!wanted && !d->mem.pressed && !d->learn->reset_pending && goes_on(d, op))
        return false;
    if (d->learn->unfed)
        learn_reset(d);
    if (d->learn->reset_pending) {
        iter_reset(d->learn->finder, d->op_count);
        foretold_break(&d->learn->foretold);
    }
    d->learn->reset_pending = false;
    d->learn->unfed = 0;
    int64_t p = feed(d, op);
    bool counting = !wanted;
    if (wanted)
        probe_clock(d, op->stream);
    d->learn->lesson_of = -1;
    d->learn->at_once = false;
    if (wanted && has_gone_by(d))
        return true;
    if (d->learn->period && d->learn->until) { /* on the way to the boundary */
        d->learn->until--;
        if (!d->learn->until && counting) {
            learn_count_iteration(d, op->t);
            d->learn->in_a_row++;
            d->learn->until = d->learn->period;
        }
        if (p <= 0 && (counting || iter_is_astray(d->learn->finder))) /* where the iteration ends may be some ops further on, or nearer */
            d->learn->period = d->learn->until = 0;
        return wanted && may_begin(d);
    }
    if (p > 0 && p <= MAX_PERIOD) {
        d->learn->period = (uint64_t)p;
        d->learn->in_a_row = 0;
        d->learn->until = iter_until_boundary(d->learn->finder, d->learn->period);
        if (!d->learn->counted_before && (d->op_count + 1) / d->learn->period > 1)
            d->st.iterations += (d->op_count + 1) / d->learn->period - 1;
        d->learn->counted_before = true;
        count_anew(d, d->learn->period);
        if (!d->learn->until && counting)
            d->learn->until = d->learn->period;
    }
    return wanted && may_begin(d);
}

bool learn_had_others(const struct device *d) { return d->learn->others || d->learn->passed; }

void learn_strictly(struct device *d) { d->learn->strict = true; }

void learn_lets_go(struct device *d) { d->learn->period = d->learn->until = 0; }

uint64_t learn_candidate(const struct device *d) { return iter_candidate(d->learn->finder); }

uint64_t learn_period(const struct device *d) { return d->learn->period; }
