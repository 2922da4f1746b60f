/* Learning: find the iteration, probe one, have it planned, put the plan in force.
 *
 *   observe --period found--> (until its boundary) --> probe one iteration --> plan --> rehearse (exec.c) --> enforce
 *                                                                            \--> stay with swapping, and say why
 * Out of the plan (fallback) ops run plainly until one begins an iteration that the plan knows; a new period that never
 * resumes the plan is learnt in its stead.
 */
#include "policy/learn/probe.h"
#include "policy/run.h"
#include "tracer/iter.h"
#include "tracer/site.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAN_WAIT_MS = 15000, MAX_TRIES = 5, MAX_PERIOD = 200000 };
/* Side operands larger than this together are not set aside in a replay: the op is left alone. */
static const uint64_t SIDE_SCRATCH_MAX = 64ull << 20;

static struct iter *finder;
static uint64_t period, until;   /* ops in an iteration; ops left of the current one before probing begins */
static uint64_t *expected;       /* [period] signatures */
static uint64_t probed;          /* ops of the probed iteration so far */
static int32_t suspect;          /* an unannounced write happened since this op, -1 none */
static bool given_up;            /* nothing more to learn: no pressure, or no plan possible */
static int tries, recorded_iterations;
static uint64_t budget_bytes;
static char best_path[128];
static int best_lacking;
static bool with_copies; /* recompute alone cannot meet the limit: copies to the host take part */
static bool reset_pending, counted_before;
static uint64_t quiet_until, quiet_periods = 32; /* an iteration that needs no plan is looked at again, ever more rarely */

bool learn_trace_missing(void) { return rt.cfg.trace_out[0] && !recorded_iterations; }

int learn_init(void)
{
    finder = iter_new();
    suspect = -1;
    return finder ? 0 : -ENOMEM;
}

void learn_reset(void)
{
    reset_pending = true;
    period = until = 0;
}

static bool wants_plan(void)
{
    return (rt.cfg.policy == POLICY_AUTO || rt.cfg.policy == POLICY_PLAN || rt.cfg.policy == POLICY_DTR) && !rt.cfg.trace_mode && !given_up && rt.op_count >= quiet_until;
}

static bool wants_trace(void)
{
    return rt.cfg.trace_out[0] && recorded_iterations < (rt.cfg.trace_iterations > 0 ? rt.cfg.trace_iterations : 1);
}

/* ---- the probed iteration ------------------------------------------------------------------------------------------ */

static void begin_probe(void)
{
    if (probe_init()) {
        log_once(SAY_WARN, "learning is not possible on this device (its own kernels do not load); memory is held by swapping");
        given_up = true;
        return;
    }
    uint64_t *e = realloc(expected, period * sizeof *e);
    if (!e)
        return;
    expected = e;
    for (uint64_t i = 0; i < period; i++)
        expected[i] = iter_expected_sig(finder, period, i);
    exec_clear();
    for (uint32_t i = 0; i < rt.n_slots; i++) {
        rt.slots[i].rec_buf = -1;
        rt.slots[i].watched = false;
    }
    ex.caps = calloc(period, sizeof *ex.caps);
    if (!ex.caps)
        return;
    ex.n_caps = (uint32_t)period;
    probed = 0;
    suspect = -1;
    probe_begin();
    rt.mode = MODE_PROBE;
    log_say(SAY_INFO, "an iteration is %llu ops; learning what each of them reads and writes", (unsigned long long)period);
}

static void abandon_probe(const char *why)
{
    log_say(SAY_INFO, "learning starts over: %s", why);
    exec_clear();
    rt.mode = MODE_OBSERVE;
    learn_reset();
}

/* The record's buffer for a slot; allocations of this iteration are known by -2 - ordinal until they are touched. */
static int32_t buf_of(struct slot *s)
{
    if (s->rec_buf >= 0)
        return s->rec_buf;
    int32_t ord = s->rec_buf <= -2 ? -2 - s->rec_buf : -1;
    int b = record_buf(&ex.rec, s->bytes, s->id, s->serial, ord);
    if (b < 0)
        return b;
    ex.rec.bufs[b].small = s->kind == SLOT_SMALL;
    ex.rec.bufs[b].foreign = s->kind == SLOT_FOREIGN;
    return s->rec_buf = b;
}

static const char *name_of(const struct rt_op *op)
{
    switch (op->kind) {
    case OP_KERNEL:
        return op->func->name;
    case OP_MEMSET:
        return "memset";
    case OP_COPY:
        return op->copy.kind == ENG_HTOD ? "copy_htod" : op->copy.kind == ENG_DTOH ? "copy_dtoh" : "copy_dtod";
    default:
        return op->other_name;
    }
}

static int probe_record(const struct rt_op *op, const struct probe_result *res, uint64_t live)
{
    int i = record_op(&ex.rec, op->sig, name_of(op), res->why_opaque, live);
    if (i < 0)
        return i;
    ex.rec.ops[i].ns = res->ns;
    ex.rec.ops[i].site = site_here();
    uint64_t side_bytes = 0;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        const struct rt_operand *w = &op->operands[k];
        int32_t b = buf_of(w->slot);
        if (b < 0 || record_operand(&ex.rec, b, w->offset, w->delta, (enum rec_mode)w->mode) < 0)
            return -ENOMEM;
        if (op->kind == OP_COPY && op->copy.kind == ENG_HTOD)
            ex.rec.bufs[b].host_written = true;
        ex.rec.bufs[b].pinned |= w->slot->pins > 0;
        if (op->kind == OP_KERNEL && w->slot->points && !ex.rec.ops[i].why_opaque)
            ex.rec.ops[i].why_opaque = "follows addresses that lie in memory";
        side_bytes += w->mode == REC_SIDE ? w->slot->bytes : 0;
    }
    if (side_bytes > SIDE_SCRATCH_MAX && !ex.rec.ops[i].why_opaque)
        ex.rec.ops[i].why_opaque = "its in-place state is too large to set aside";
    return op_capture(&ex.caps[i], op);
}

static int probe_op(struct rt_op *op)
{
    if (op->sig != expected[probed]) {
        abandon_probe("the iteration was not like the one before");
        return learn_op_drv(op);
    }
    uint32_t lost = 0;
    if (ready_op(op, &lost))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct probe_result res;
    uint64_t live = rt.live_bytes;
    int r = probe_op_drv(op, (int32_t)probed, &res);
    ready_done(op, false);
    if (r != CUDA_SUCCESS) {
        abandon_probe("a launch failed");
        return r;
    }
    if (res.unannounced >= 0 && (suspect < 0 || res.unannounced < suspect))
        suspect = res.unannounced;
    if (probe_record(op, &res, live))
        abandon_probe("host memory is exhausted");
    else
        probed++;
    return r;
}

/* A pointer at this place was written through by another launch of the kernel: here it may be, another time. */
static void merge_effects(void)
{
    for (uint32_t i = 0; i < ex.rec.n_ops; i++) {
        struct rec_op *o = &ex.rec.ops[i];
        const struct rt_op *op = &ex.caps[i];
        if (op->kind != OP_KERNEL)
            continue;
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (ex.rec.operands[k].mode == REC_READ && probe_offset_changes(op->func, ex.rec.operands[k].offset)) {
                ex.rec.operands[k].mode = REC_RMW;
                o->why_opaque = "writes through this pointer in other launches";
            }
        /* A kernel that changed nothing at all may well do so another time (negative numbers become zero, but there were
         * none): it counts as changing all that it touches. */
        bool changes = false;
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            changes |= ex.rec.operands[k].mode != REC_READ;
        for (uint32_t k = o->first; k < o->first + o->n && !changes; k++) {
            ex.rec.operands[k].mode = REC_RMW;
            o->why_opaque = "changed nothing while it was learnt";
        }
    }
}

/* What is reached in ways that no argument shows may change unseen: no replay relies on it. */
static void leave_pinned_alone(void)
{
    for (uint32_t i = 0; i < ex.rec.n_ops; i++)
        for (uint32_t k = ex.rec.ops[i].first; k < ex.rec.ops[i].first + ex.rec.ops[i].n; k++)
            if (ex.rec.bufs[ex.rec.operands[k].buf].pinned && !ex.rec.ops[i].why_opaque)
                ex.rec.ops[i].why_opaque = "works on memory that is reached unseen";
}

static char *command_line(void)
{
    static char text[256];
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

/* Plain peak of the recorded iteration, in chunks: of what a plan may move, or of what it may not. */
static uint64_t recorded_peak_pages(bool pinned)
{
    int64_t *d = calloc(ex.rec.n_ops + 2, sizeof *d), now = 0, peak = 0;
    if (!d)
        return UINT64_MAX >> 20;
    for (uint32_t b = 0; b < ex.rec.n_bufs; b++) {
        const struct rec_buf *x = &ex.rec.bufs[b];
        if (x->small || x->foreign || x->pinned != pinned)
            continue;
        d[x->born < 0 ? 0 : x->born] += (int64_t)mem_pages(x->bytes);
        d[x->dies < 0 ? (int32_t)ex.rec.n_ops : x->dies] -= (int64_t)mem_pages(x->bytes);
    }
    for (uint32_t i = 0; i < ex.rec.n_ops; i++) {
        now += d[i];
        if (now > peak)
            peak = now;
    }
    free(d);
    return (uint64_t)peak;
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static uint64_t budget_now(void)
{
    mem_arena_trim();
    uint64_t all = mem_max_chunks(), gone = mem_arena_chunks();
    for (uint32_t i = 0; i < rt.n_slots; i++)
        if (rt.slots[i].kind == SLOT_LARGE && rt.slots[i].pins && rt.slots[i].live && rt.slots[i].rec_buf < 0)
            gone += rt.slots[i].n_pages;
    gone += recorded_peak_pages(true);
    return (all > gone ? all - gone : 0) << rt.shift;
}

static void no_plan(void)
{
    if (wants_plan())
        log_say(SAY_INFO, "without a plan: memory is held by swapping");
    given_up = true;
    exec_clear();
    rt.mode = MODE_OBSERVE;
    learn_reset();
}

static void put_in_force(void)
{
    tries = 0;
    log_say(SAY_INFO, "plan installed: %zu steps, %.1f%% more device time expected, peak %llu MiB",
            ex.plan.n_steps, ex.plan.baseline_ns ? 100.0 * (double)(ex.plan.planned_ns - ex.plan.baseline_ns) / (double)ex.plan.baseline_ns : 0.0,
            rt_mib((uint64_t)ex.plan.peak_bytes));
    rt.mode = MODE_FALLBACK;
}

static void start_planner(void)
{
    int r = planner_start(budget_bytes, with_copies);
    if (r) {
        log_say(SAY_WARN, "cannot start `remat plan` (%s): memory is held by swapping", strerror(-r));
        no_plan();
        return;
    }
    rt.mode = MODE_PLAN;
}

/* A plan is there: map it. If its colouring lacks chunks, ask again for a little less, and take the best in the end. */
static void take_plan(const char *path)
{
    uint64_t arenas = mem_arena_chunks();
    int lacking = exec_load_plan(path, path != rt.cfg.plan_path);
    if (!lacking)
        lacking = install_plan();
    if (lacking < 0) {
        log_say(SAY_WARN, "the plan could not be installed (%s)", strerror(-lacking));
        no_plan();
        return;
    }
    uint64_t grown = mem_arena_chunks() - arenas, short_by = ((uint64_t)lacking + grown) << rt.shift;
    log_say(SAY_DEBUG, "plan of %llu MiB lacks %d chunks", rt_mib(budget_bytes), lacking);
    if (!lacking || path != planner_path() || ++tries >= MAX_TRIES || short_by >= budget_bytes) {
        put_in_force();
        return;
    }
    if (!best_path[0] || lacking < best_lacking) {
        snprintf(best_path, sizeof best_path, "%s.best", planner_path());
        best_lacking = lacking;
        if (rename(planner_path(), best_path))
            best_path[0] = 0;
    }
    budget_bytes -= short_by;
    start_planner();
}

static void poll_planner(int wait_ms)
{
    switch (planner_poll(wait_ms)) {
    case PLANNER_DONE:
        take_plan(planner_path());
        break;
    case PLANNER_FAILED:
        if (best_path[0]) { /* an earlier one, whose map lacks some chunks, is better than none */
            tries = MAX_TRIES;
            take_plan(best_path);
        } else if (rt.cfg.policy == POLICY_AUTO && !with_copies) {
            with_copies = true;
            budget_bytes = budget_now();
            start_planner();
        } else {
            planner_say_why();
            no_plan();
        }
        break;
    default:
        break;
    }
    if (rt.mode != MODE_PLAN && best_path[0]) {
        remove(best_path);
        best_path[0] = 0;
    }
    if (rt.mode != MODE_PLAN)
        planner_tidy();
}

static void plan_now(void)
{
    rt.mode = MODE_PLAN;
    tries = 0;
    with_copies = false;
    if (install_scratch()) { /* before the budget: it stays */
        log_say(SAY_WARN, "no memory to set in-place state aside: memory is held by swapping");
        no_plan();
        return;
    }
    budget_bytes = budget_now();
    if (rt.cfg.plan_path[0])
        take_plan(rt.cfg.plan_path);
    else
        start_planner();
    /* Short iterations: waiting a moment costs less than running on without a plan. */
    for (int i = 0; i < 2 * MAX_TRIES && rt.mode == MODE_PLAN; i++)
        poll_planner(PLAN_WAIT_MS);
    if (rt.mode == MODE_FALLBACK && ex.installed) /* this is a boundary: go on at once */
        exec_begin(), rt.mode = MODE_REHEARSE;
}

/* See record_insert_holds; the captured calls move with their ops. */
static int hold_buffers(void)
{
    uint32_t n = ex.rec.n_ops;
    uint32_t *to = calloc(n + 1, sizeof *to);
    if (!to || record_insert_holds(&ex.rec, to)) {
        free(to);
        return -ENOMEM;
    }
    struct rt_op *caps = calloc(ex.rec.n_ops + 1, sizeof *caps);
    for (uint32_t i = 0; caps && i < n; i++)
        caps[to[i]] = ex.caps[i];
    free(ex.op_of_trace);
    ex.op_of_trace = to;
    ex.n_trace_ops = n;
    if (!caps)
        return -ENOMEM;
    free(ex.caps);
    ex.caps = caps;
    ex.n_caps = ex.rec.n_ops;
    return 0;
}

static void finish_probe(void)
{
    int32_t s = probe_census();
    if (s >= 0 && (suspect < 0 || s < suspect))
        suspect = s;
    for (uint32_t i = suspect < 0 ? ex.rec.n_ops : (uint32_t)suspect; i < ex.rec.n_ops; i++)
        if (!ex.rec.ops[i].why_opaque)
            ex.rec.ops[i].why_opaque = "memory changed that nobody had announced";
    for (uint32_t i = 0; i < rt.n_slots; i++)
        if (rt.slots[i].live && rt.slots[i].pins && rt.slots[i].rec_buf >= 0)
            ex.rec.bufs[rt.slots[i].rec_buf].pinned = true;
    merge_effects();
    leave_pinned_alone();
    record_seal(&ex.rec);
    rt.st.iterations++;
    ex.boundary_live_bytes = ex.rec.n_ops ? ex.rec.ops[0].live_bytes : 0;
    ex.rec.model = command_line();
    if (wants_trace()) {
        int r = record_write(&ex.rec, rt.cfg.trace_out, 1);
        if (r)
            log_say(SAY_WARN, "cannot write the trace %s: %s", rt.cfg.trace_out, strerror(-r));
        recorded_iterations++;
    }
    uint64_t peak = recorded_peak_pages(false) << rt.shift;
    if (hold_buffers() || exec_index()) {
        no_plan();
        return;
    }
    if (wants_plan() && (peak > budget_now() || rt.cfg.plan_path[0])) {
        plan_now();
        return;
    }
    quiet_until = rt.op_count + quiet_periods * period;
    quiet_periods *= 2;
    exec_clear();
    rt.mode = MODE_OBSERVE;
    learn_reset();
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

void learn_alloc(struct slot *s)
{
    if (rt.mode != MODE_PROBE)
        return;
    int k = record_alloc(&ex.rec, s->bytes);
    s->rec_buf = k < 0 ? -1 : -2 - k;
    if (s->state == SLOT_RESIDENT)
        probe_poison(s);
}

void learn_free(struct slot *s)
{
    if (rt.mode != MODE_PROBE)
        return;
    int32_t b = s->rec_buf <= -2 ? -1 : buf_of(s); /* one that is older and untouched counts too: it had memory until now */
    if (b >= 0) {
        ex.rec.bufs[b].pinned |= s->pins > 0;
        record_free(&ex.rec, b);
    }
}

void learn_turn(void)
{
    if (rt.mode == MODE_PROBE && probed == period)
        finish_probe();
    else if (rt.mode == MODE_PLAN && !ex.have_plan && ex.rec.n_ops && planner_path()[0] && budget_bytes) {
        if (ex.installed) { /* rehearsal banned an op: once more */
            install_drop();
            plan_now();
        } else
            poll_planner(0);
    }
}

static void count_iteration(unsigned t)
{
    rt.st.iterations++;
    stats_boundary(t, true);
    if (rt.status)
        status_store(&rt.status->iterations, rt.st.iterations);
}

static void feed(const struct rt_op *op)
{
    static struct iter_operand operands[OP_MAX_OPERANDS];
    if (reset_pending)
        iter_reset(finder, rt.op_count);
    reset_pending = false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = (struct iter_operand){.serial = op->operands[i].slot->serial,
                                            .birth_op = op->operands[i].slot->birth_op,
                                            .offset = op->operands[i].offset};
    bool from_host = op->kind == OP_COPY && op->copy.kind == ENG_HTOD;
    int64_t p = iter_feed(finder, op->sig, operands, op->n_operands, rt.live_bytes, from_host);
    bool counting = !(wants_plan() || wants_trace());
    if (period && until) { /* on the way to the boundary */
        until--;
        if (!until && counting) {
            count_iteration(op->t);
            until = period;
        }
        if (counting && p <= 0)
            period = until = 0;
        return;
    }
    if (p > 0 && p <= MAX_PERIOD) {
        period = (uint64_t)p;
        until = iter_until_boundary(finder, period);
        if (!counted_before && (rt.op_count + 1) / period > 1)
            rt.st.iterations += (rt.op_count + 1) / period - 1;
        counted_before = true;
        if (!until && counting)
            until = period;
    }
}

/* With a plan at hand a new period must have gone on for long before it is learnt instead: it may be an evaluation. */
static bool may_relearn(void)
{
    if (rt.mode == MODE_OBSERVE)
        return true;
    uint64_t n = ex.rec.n_ops > period ? ex.rec.n_ops : period;
    return rt.mode == MODE_FALLBACK && rt.op_count - ex.left_op > 20 * n;
}

int learn_op_drv(struct rt_op *op)
{
    if (rt.mode == MODE_PROBE)
        return probe_op(op);
    if (rt.mode == MODE_FALLBACK && exec_may_resume(op)) {
        exec_resume();
        return exec_op_drv(op);
    }
    int r = run_plain_drv(op);
    feed(op);
    if (period && !until && (wants_plan() || wants_trace()) && may_relearn()) {
        count_iteration(op->t);
        begin_probe();
        if (rt.mode != MODE_PROBE)
            learn_reset();
    }
    return r;
}
