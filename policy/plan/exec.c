/* The plan in force. The program's ops are compared with the recorded iteration one by one; between two of them the
 * plan's steps are taken (steps.c). Where the program does something else, leave_plan() leaves the plan.
 *
 * A launch is decided in exec_op_drv(): match, steps, ready, capture, issue.
 */
#include "policy/plan/exec.h"
#include "policy/learn/facts.h"
#include "policy/memory/alloc.h"
#include "policy/memory/slot.h"
#include "policy/op/ready.h"
#include "policy/plan/args.h"
#include "policy/plan/compare.h"
#include "policy/plan/compile.h"
#include "policy/plan/cursor.h"
#include "policy/plan/detour.h"
#include "policy/plan/install.h"
#include "policy/plan/leave.h"
#include "policy/plan/match.h"
#include "policy/plan/proof.h"
#include "policy/plan/rebuild.h"
#include "policy/plan/replay.h"
#include "policy/plan/steady.h"
#include "policy/plan/steps.h"
#include "policy/plan/verify.h"
#include "policy/process/check.h"
#include "policy/process/stats.h"
#include "policy/process/summary.h"
#include "tracer/iter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the program's events ------------------------------------------------------------------------------------------ */

bool exec_reached_since(const struct device *d)
{
    const struct record *r = &d->ex->learnt.rec;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        const struct slot *s = &d->mem.slots[x->slot_id];
        if (x->alloc_ord < 0 && x->dies < 0 && s->live && s->serial == x->serial && cursor_reached_since(x, s))
            return true;
    }
    return false;
}

static void replan_without_banned(struct device *d)
{
    for (uint32_t i = 0; i < d->ex->learnt.rec.n_ops; i++)
        if (d->ex->now.op_banned[i] && !d->ex->learnt.rec.ops[i].why_opaque) {
            d->ex->learnt.rec.ops[i].why_opaque = "its replay differed";
            facts_distrust(d, d->ex->learnt.caps[i].func);
        }
    d->ex->now.have_plan = false;
}

/* What has taken the place of buffers that outlive iterations is the recorded one from now on: the map gives it chunks of its own. */
static void take_successors(struct device *d)
{
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
        struct rec_buf *x = &d->ex->learnt.rec.bufs[b];
        struct slot *s = cursor_is_replaced(d, x) ? cursor_slot(d, (int32_t)b) : NULL;
        if (!s || !s->live)
            continue;
        x->slot_id = s->id;
        x->serial = s->serial;
        s->rec_buf = (int32_t)b;
    }
}

/* A plan that cannot be proved in so many iterations never will be: its values do not fit beside each other on the host. */
enum { REHEARSALS_MAX = 4 };

enum exec_end exec_end_iteration(struct device *d)
{
    struct exec *ex = d->ex;
    unsigned t = stream_alive(d, ex->learnt.caps[0].t);
    bool lost = steps_pass(d, ex->learnt.rec.n_ops, t) != 0;
    stream_look(d);
    for (uint32_t b = 0; b < ex->learnt.rec.n_bufs && !lost; b++) {
        struct slot *s = cursor_slot(d, (int32_t)b);
        lost = s && s->live && s->state == SLOT_LOST;
    }
    if (lost)
        leave_rebuild_or_stop(d, t);
    ex->learnt.boundary_live_bytes = ex->now.began_live_bytes; /* of a whole iteration: an evaluation may begin like one, and holds gradients */
    d->st.iterations++;
    d->whole_mode = d->mode;
    if (ex->now.tried)
        log_say(SAY_DEBUG, "iteration %llu: %u launches ran as trials", (unsigned long long)d->st.iterations, ex->now.tried);
    if (d->mode == MODE_ENFORCE) {
        d->st.iterations_enforced++;
        const bool steady = !ex->now.tried && !ex->now.n_beside && !ex->now.detour_to;
        d->st.iterations_steady += steady;
        if (steady || !d->st.iterations_steady) { /* where no iteration was steady, one with trials, without the calls that its trials made */
            d->st.mem_calls_enforced = d->st.mem_calls - ex->now.mem_calls_before - (ex->now.tried ? ex->now.proof_calls : 0);
            d->st.swaps_enforced = d->st.swaps_in + d->st.swaps_out - ex->now.swaps_before;
        }
    }
    summary_publish(d);
    if (verify_end(d))
        ex->now.code = device_failure(d);
    bool remapped = d->st.mem_calls != ex->now.mem_calls_before;
    take_successors(d);
    saved_clear(d);
    cursor_unbind_all(d);
    enum exec_end end = EXEC_END_WHOLE;
    if (ex->now.bans) {
        replan_without_banned(d);
        ex->now.bans = 0;
        end = EXEC_END_BANNED;
    } else if (d->mode == MODE_REHEARSE && !lost && ex->now.compared_now == ex->now.rebuilt_now) {
        ex->now.proved = true;
        stats_steady_from_here(d);
    } else if (d->mode == MODE_REHEARSE && ++ex->now.unproved_rounds == REHEARSALS_MAX)
        end = EXEC_END_UNPROVABLE;
    if (remapped && end == EXEC_END_WHOLE) {
        install_repair(d);
        if (d->mode == MODE_ENFORCE && !ex->map.lacks_chunks && !ex->now.proof_calls && !ex->map.not_in_turn && !ex->now.detour_to)
            end = EXEC_END_MOVED;
    }
    ex->map.not_in_turn -= ex->map.not_in_turn > 0;
    return end;
}

/* The fixed slot at this place; NULL: none, or it is still used by the buffer that had it before, whose free has not come yet. */
static struct slot *unused_slot(struct device *d, int32_t place, uint64_t bytes)
{
    struct slot *s = place >= 0 && d->ex->map.alloc_slot[place] >= 0 ? &d->mem.slots[d->ex->map.alloc_slot[place]] : NULL;
    if (!s || s->live || s->owed || s->plan_buf >= 0)
        return NULL;
    return rt_check_plan(d, s->kind != SLOT_LARGE || (uint64_t)s->n_pages << d->mem.shift >= bytes) ? s : NULL;
}

struct slot *exec_alloc(struct device *d, uint64_t bytes)
{
    const struct record *r = &d->ex->learnt.rec;
    if (d->ex->now.alloc_k >= r->n_allocs || r->allocs[d->ex->now.alloc_k].bytes != bytes ||
        r->allocs[d->ex->now.alloc_k].before_op < (int32_t)d->ex->now.pos)
        return NULL;
    uint32_t k = d->ex->now.alloc_k;
    if (d->ex->now.detour_to && r->allocs[k].buf >= 0 && d->ex->now.bind[r->allocs[k].buf] >= 0)
        return NULL; /* an op of a detour had it from elsewhere */
    d->ex->now.alloc_k++;
    int32_t b = r->allocs[k].buf;
    struct slot *s = NULL;
    for (int32_t place = (int32_t)k; place >= 0 && !s; place = d->ex->map.twin[place])
        s = unused_slot(d, place, bytes);
    if (s)
        slot_revive(d, s, bytes);
    else if (alloc_new(d, bytes, &s))
        return NULL;
    if (b >= 0)
        cursor_bind(d, b, s);
    return s;
}

bool exec_free(struct device *d, struct slot *s)
{
    int32_t b = s->plan_buf;
    if (b < 0 || d->ex->now.bind[b] != (int32_t)s->id)
        return false;
    if (d->ex->plan->last_ref[b] < (int32_t)d->ex->now.pos || (d->ex->plan->last_ref[b] == (int32_t)d->ex->now.pos && !d->ex->plan->keep[b] && !d->ex->plan->rebuilt[b])) {
        cursor_unbind(d, b);
        d->ex->now.cur[b] = d->ex->now.res[b] = -1;
        if (s->fixed_ord == ORD_OWED)
            s->fixed_ord = ORD_NONE;
        return false;
    }
    /* the plan still needs it: its memory, its content, or at least its address */
    d->mem.live_bytes -= s->bytes;
    s->live = false;
    if (s->fixed_ord == ORD_NONE)
        s->fixed_ord = ORD_OWED;
    bool now = d->ex->learnt.rec.bufs[b].dies >= 0 && d->ex->learnt.rec.bufs[b].dies <= (int32_t)d->ex->now.pos;
    s->owed = true;
    if (now && steps_die(d, b, stream_alive(d, d->ex->learnt.caps[d->ex->now.pos ? d->ex->now.pos - 1 : 0].t)))
        log_say(SAY_DEBUG, "buffer %d outlives its plan: it could not be set aside", b);
    return true;
}

/* Recorded modes for the operands at hand, so that ready_done knows what was written. What a kernel was not seen to change it may change
 * another time (an output that is written for certain data only): a copy on the host is old after every launch, and a release makes
 * another. */
static void note_modes(struct device *d, struct rt_op *op, const struct rec_op *o)
{
    uint32_t k = o->first, end = o->first + o->n;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        while (k < end && d->ex->learnt.rec.operands[k].offset < op->operands[i].offset)
            k++;
        op->operands[i].mode = k < end && d->ex->learnt.rec.operands[k].offset == op->operands[i].offset ? d->ex->learnt.rec.operands[k].mode : REC_UNKNOWN;
        if (op->kind == OP_KERNEL && op->operands[i].mode == REC_READ)
            op->operands[i].mode = REC_UNKNOWN;
    }
}

static void may_do_anything(struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        op->operands[i].mode = REC_UNKNOWN;
}

/* An operand that was not recorded may be in memory in an older version, which a replay needed; the program must not read that. */
static bool is_given_an_older_version(struct device *d, const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct rt_operand *a = &op->operands[i];
        if (!a->regular && a->slot->plan_buf >= 0 && a->slot->state != SLOT_LOST && rebuild_owed(d, a->slot->plan_buf))
            return true;
    }
    return false;
}

/* Where a copy to the host stands in the record, if it is the next one there or one of those that follow each other; n_ops: nowhere. */
static uint32_t recorded_read(const struct device *d, const struct rt_op *op)
{
    const struct record *r = &d->ex->learnt.rec;
    for (uint32_t i = d->ex->now.pos; i < r->n_ops && recording_is_optional(&r->ops[i]); i++)
        if (r->ops[i].to_host && r->ops[i].sig == op->sig && op->n_operands && r->operands[r->ops[i].first].buf == op->operands[0].slot->plan_buf)
            return i;
    return r->n_ops;
}

/* A copy to the host, recorded or not: it asks for nothing but that what it reads is there, as the program left it. */
static int read_drv(struct device *d, struct rt_op *op, enum exec_left *left)
{
    const uint32_t at = recorded_read(d, op), n_ops = d->ex->learnt.rec.n_ops;
    const char *why = at < n_ops && steps_pass(d, at, op->t) ? leave_step_failed : NULL;
    for (uint32_t i = 0; i < op->n_operands && !why; i++)
        if (op->operands[i].slot->plan_buf >= 0 && rebuild_owed(d, op->operands[i].slot->plan_buf))
            why = "a copy to the host asks for what the plan holds evicted";
    if (!why)
        why = steps_make_ready(d, op);
    if (why) {
        leave_plan(d, why, op);
        d->ex->now.left_op = UINT64_MAX; /* the next op has the number of this one */
        *left = EXEC_LEFT_BEFORE;
        return d->ex->now.code;
    }
    *left = EXEC_STAYED;
    int r = op_issue_drv(d, op);
    ready_done(d, op, false);
    if (at < n_ops)
        cursor_op_done(d);
    return r;
}

/* An op that the recorded iteration has not, beside the plan. */
static int beside_drv(struct device *d, struct rt_op *op, enum exec_left *left)
{
    detour_begin(d);
    may_do_anything(op);
    const char *why = steps_make_ready(d, op);
    if (why) {
        leave_plan(d, why, op);
        *left = EXEC_LEFT_BEFORE;
        return d->ex->now.code;
    }
    const int r = op_issue_drv(d, op);
    ready_done(d, op, true);
    if (r == CUDA_SUCCESS) {
        detour_ran(d, op);
        *left = EXEC_STAYED;
        return r;
    }
    leave_plan(d, leave_was_refused, op);
    *left = EXEC_LEFT_AFTER;
    return d->ex->now.code ? d->ex->now.code : r;
}

/* The op at hand is of the next iteration, or of none: the one in progress has ended where the cursor stands. NULL, or why that could not be. */
static const char *end_here(struct device *d, unsigned t)
{
    const uint32_t n_ops = d->ex->learnt.rec.n_ops;
    log_say(SAY_DEBUG, "the iteration ends at op %u of %u", d->ex->now.pos, n_ops);
    if (detour_pass(d, n_ops, t))
        return leave_step_failed;
    d->ex->now.ended = true;
    return NULL;
}

/* The op is not the recorded one at the cursor. True: it may run beside the plan; else *why the plan is left, if that is not NULL: the cursor stands at the
 * recorded op that it is, then. *left_for: as in progress.h. */
static bool takes_a_detour(struct device *d, struct rt_op *op, const char **why, uint32_t *left_for)
{
    const uint32_t n_ops = d->ex->learnt.rec.n_ops, back = detour_rejoins_at(d, op), to = back < n_ops ? back : detour_skips_to(d, op);
    if (to == n_ops && exec_may_resume(d, op, true) && detour_is_past_the_end(d, true)) {
        *why = end_here(d, op->t);
        return false;
    }
    if (to < n_ops && detour_may_pass(d, to)) {
        log_say(SAY_DEBUG, "the program is back at op %u after %u other ops; %u recorded ones did not come", to, d->ex->now.n_trail, to - d->ex->now.pos);
        *why = detour_pass(d, to, op->t) ? leave_step_failed : NULL;
        return false;
    }
    if (to < n_ops) {
        *why = "recorded ops that the plan runs again did not come";
        *left_for = to;
        return false;
    }
    if (!exec_may_resume(d, op, false) && detour_may_run(d, op))
        return true;
    if (detour_is_past_the_end(d, false))
        *why = end_here(d, op->t);
    return false;
}

int exec_op_drv(struct device *d, struct rt_op *op, enum exec_left *left)
{
    struct proof proof;
    enum args_mattered mattered = ARGS_UNTRIED;
    if (op_reads_for_host(op))
        return read_drv(d, op, left);
    const char *why = NULL, *why_after = NULL;
    bool not_tried = false;
    const uint32_t from = d->ex->now.pos, at = steady_next(d); /* holds, and copies to the host that do not come this time, are passed on the way */
    const struct rec_op *o = &d->ex->learnt.rec.ops[at];
    struct reading x = {.is = CORRESPONDS};
    int r = CUDA_SUCCESS;
    proof_none(&proof);
    *left = EXEC_STAYED;
    d->ex->now.left_out->n = 0;
    d->ex->now.pos = at; /* looked at before any step is taken: where another op has come, the plan is left as it was after the last one */
    x = match_op(d, op, NULL);
    if (x.is == WANTS_PROOF && match_free_stale_words(d, op, o))
        x = match_op(d, op, NULL);
    if (x.is == WANTS_PROOF && d->ex->now.left_out->n) {
        match_take_idle_back(d, op);
        x = match_op(d, op, &x);
    }
    d->ex->now.pos = from;
    why = x.is == CORRESPONDS_NOT ? x.why : NULL;
    uint32_t left_for = 0;
    if (why && takes_a_detour(d, op, &why, &left_for))
        return beside_drv(d, op, left);
    if (x.is == CORRESPONDS_NOT && !why) { /* the cursor is not where it was */
        if (!d->ex->now.ended)
            return exec_op_drv(d, op, left);
        *left = EXEC_ENDED;
        return CUDA_SUCCESS;
    }
    const bool proves = x.is == WANTS_PROOF;
    if (!why && (steps_pass(d, at, op->t) || (steady_sets_aside(d, at) && compare_set_op_aside(d, at, op->t))))
        why = leave_step_failed;
    if (!why && is_given_an_older_version(d, op))
        why = "a tensor that the plan holds in an older version";
    const uint64_t calls_before = d->st.mem_calls;
    const bool unproved = !why && proves && proof_is_needless(d, op, &x);
    if (!why) {
        note_modes(d, op, o);
        if (proves)
            steady_may_write_less(d, at);
        if (unproved)
            may_do_anything(op);
        else if (proves)
            proof_open(d, op, &x, &proof);
        why = steps_make_ready(d, op);
        if (!why && (compare_fill_before(d, at, op->t) || replay_keep_sides(d, at, op->t)))
            why = leave_step_failed;
    }
    if (!why && unproved) {
        r = op_issue_drv(d, op);
        ready_done(d, op, true);
        args_unproved(d, op);
    } else if (!why && proves) {
        enum proof_says says = proof_run_drv(d, op, &proof, &mattered, &r);
        not_tried = says == PROOF_NOT_RUN;
        why = not_tried ? x.why : NULL;
        why_after = says == PROOF_OTHER ? "it did something else than it had done" : NULL;
        if (!why)
            ready_done(d, op, says == PROOF_OTHER);
    }
    proof_close(d, &proof);
    if (proves && !unproved)
        d->ex->now.proof_calls += d->st.mem_calls - calls_before;
    if (!why && r != CUDA_SUCCESS) /* it has made nothing: what its buffers held is still the program's */
        why_after = leave_was_refused;
    if (!why && !why_after && !unproved && (proves || !x.same))
        args_accept(d, op, mattered);
    if (!why && !why_after && op_capture(&d->ex->learnt.caps[d->ex->now.pos], op))
        *(proves ? &why_after : &why) = "host memory was short";
    if (why) {
        leave_plan(d, why, op);
        d->ex->now.left_untried = not_tried;
        d->ex->now.left_for = left_for;
        if (x.is == CORRESPONDS_NOT && !left_for)
            detour_looks_back(d);
        *left = EXEC_LEFT_BEFORE;
        return d->ex->now.code;
    }
    if (!proves) {
        r = op_issue_drv(d, op);
        ready_done(d, op, false);
        if (r != CUDA_SUCCESS)
            why_after = leave_was_refused;
    }
    if (!why_after)
        steady_note(d, d->ex->now.pos, op, !proves && x.same);
    if (why_after != leave_was_refused)
        cursor_op_done(d);
    if (why_after) {
        leave_plan(d, why_after, op);
        *left = EXEC_LEFT_AFTER;
        return d->ex->now.code ? d->ex->now.code : r;
    }
    return r;
}

void exec_resume(struct device *d)
{
    while (d->ex->now.alloc_k < d->ex->learnt.rec.n_allocs && d->ex->learnt.rec.allocs[d->ex->now.alloc_k].before_op == 0)
        d->ex->now.alloc_k++;
}

static bool holds_as_much(const struct device *d) { return iter_holds_as_much(d->ex->learnt.boundary_live_bytes, d->mem.live_bytes, d->ex->learnt.swing_bytes); }

bool exec_holds_less(const struct device *d) { return d->mem.live_bytes < d->ex->learnt.boundary_live_bytes && !holds_as_much(d); }

bool exec_may_resume(struct device *d, const struct rt_op *op, bool after_its_like)
{
    if (!d->ex->now.have_plan || !d->ex->map.done || d->ex->now.code || op->sig != d->ex->learnt.rec.ops[0].sig)
        return false;
    if (d->ex->now.left_op == d->op_count && d->ex->now.left_at == 0)
        return false; /* this very op was not it */
    if (!after_its_like && !holds_as_much(d) && !exec_holds_less(d))
        return false;
    uint32_t i = 0; /* and it works on the same long-lived buffers */
    for (uint32_t k = d->ex->learnt.rec.ops[0].first; k < d->ex->learnt.rec.ops[0].first + d->ex->learnt.rec.ops[0].n; k++) {
        const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
        const struct rec_buf *x = &d->ex->learnt.rec.bufs[w->buf];
        while (i < op->n_operands && op->operands[i].offset < w->offset)
            i++;
        if (i == op->n_operands || op->operands[i].offset != w->offset)
            return false;
        const struct slot *s = op->operands[i].slot;
        if (s->bytes != x->bytes || (x->alloc_ord < 0 && x->dies < 0 && !cursor_is_replaced(d, x) && (s->id != x->slot_id || s->serial != x->serial)))
            return false;
    }
    return true;
}

/* ---- what is made for a record, and for a plan --------------------------------------------------------------------- */

int exec_index(struct device *d)
{
    struct exec *ex = d->ex;
    int r = compile_index(&ex->learnt.rec, &ex->plan);
    if (!r)
        r = cursor_make(d);
    if (!r)
        r = install_index(d);
    return r ? r : args_index(d);
}

int exec_load_plan(struct device *d, const char *path, bool own)
{
    struct exec *ex = d->ex;
    int r = compile_plan(ex->plan, &ex->learnt, path, own);
    if (r)
        return r;
    compile_fills(ex->plan, &ex->learnt.rec, ex->map.filled_by);
    memcpy(ex->now.partial, ex->plan->partial, ex->learnt.rec.n_bufs * sizeof *ex->now.partial);
    verify_init(d);
    if (steady_plan(d))
        return -ENOMEM;
    ex->now.have_plan = true;
    ex->now.proved = false;
    ex->now.unproved_rounds = 0;
    return 0;
}

void exec_clear(struct device *d)
{
    verify_clear(d);
    install_drop(d);
    install_give_scratch(d);
    saved_clear(d);
    args_clear(d);
    cursor_clear(d);
    install_clear(d);
    compile_free(d->ex->plan);
    recording_clear(&d->ex->learnt);
    memset(d->ex, 0, sizeof *d->ex);
}
