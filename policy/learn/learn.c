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

struct learn {
    struct iter *finder;
    uint64_t period, until;   /* ops in an iteration; ops left of the current one before probing begins */
    uint64_t *expected;       /* [period] signatures */
    uint64_t probed;          /* ops of the probed iteration so far */
    int32_t suspect;          /* an unannounced write happened since this op, -1 none */
    bool given_up;            /* nothing more to learn: no pressure, or no plan possible */
    int tries, recorded_iterations;
    uint64_t budget_bytes;
    char best_path[128];
    int best_lacking;
    bool with_copies; /* recompute alone cannot meet the limit: copies to the host take part */
    bool reset_pending, counted_before;
    uint64_t quiet_until, quiet_periods; /* an iteration that needs no plan is looked at again, ever more rarely */
};

bool learn_trace_missing(struct device *d) { return d->cfg->trace_out[0] && !d->learn->recorded_iterations; }

int learn_init(struct device *d)
{
    d->learn = calloc(1, sizeof *d->learn);
    d->ex = calloc(1, sizeof *d->ex);
    if (!d->learn || !d->ex)
        return -ENOMEM;
    d->learn->quiet_periods = 32; /* an iteration that needs no plan is looked at again, ever more rarely */
    d->learn->finder = iter_new();
    d->learn->suspect = -1;
    return d->learn->finder ? 0 : -ENOMEM;
}

void learn_reset(struct device *d)
{
    d->learn->reset_pending = true;
    d->learn->period = d->learn->until = 0;
}

static bool wants_plan(struct device *d)
{
    return (d->cfg->policy == POLICY_AUTO || d->cfg->policy == POLICY_PLAN || d->cfg->policy == POLICY_DTR) && !d->cfg->trace_mode && !d->learn->given_up && d->op_count >= d->learn->quiet_until;
}

static bool wants_trace(struct device *d)
{
    return d->primary && d->cfg->trace_out[0] && d->learn->recorded_iterations < (d->cfg->trace_iterations > 0 ? d->cfg->trace_iterations : 1);
}

/* ---- the probed iteration ------------------------------------------------------------------------------------------ */

static void begin_probe(struct device *d)
{
    if (probe_init(d)) {
        log_once(SAY_WARN, "learning is not possible on this device (its own kernels do not load); memory is held by swapping");
        d->learn->given_up = true;
        return;
    }
    uint64_t *e = realloc(d->learn->expected, d->learn->period * sizeof *e);
    if (!e)
        return;
    d->learn->expected = e;
    for (uint64_t i = 0; i < d->learn->period; i++)
        d->learn->expected[i] = iter_expected_sig(d->learn->finder, d->learn->period, i);
    exec_clear(d);
    for (uint32_t i = 0; i < d->n_slots; i++) {
        d->slots[i].rec_buf = -1;
        d->slots[i].watched = false;
    }
    d->ex->caps = calloc(d->learn->period, sizeof *d->ex->caps);
    if (!d->ex->caps)
        return;
    d->ex->n_caps = (uint32_t)d->learn->period;
    d->learn->probed = 0;
    d->learn->suspect = -1;
    probe_begin(d);
    d->mode = MODE_PROBE;
    log_say(SAY_INFO, "an iteration is %llu ops; learning what each of them reads and writes", (unsigned long long)d->learn->period);
}

static void abandon_probe(struct device *d, const char *why)
{
    log_say(SAY_INFO, "learning starts over: %s", why);
    exec_clear(d);
    d->mode = MODE_OBSERVE;
    learn_reset(d);
}

/* The record's buffer for a slot; allocations of this iteration are known by -2 - ordinal until they are touched. */
static int32_t buf_of(struct device *d, struct slot *s)
{
    if (s->rec_buf >= 0)
        return s->rec_buf;
    int32_t ord = s->rec_buf <= -2 ? -2 - s->rec_buf : -1;
    int b = record_buf(&d->ex->rec, s->bytes, s->id, s->serial, ord);
    if (b < 0)
        return b;
    d->ex->rec.bufs[b].small = s->kind == SLOT_SMALL;
    d->ex->rec.bufs[b].foreign = s->kind == SLOT_FOREIGN;
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

static int probe_record(struct device *d, const struct rt_op *op, const struct probe_result *res, uint64_t live)
{
    int i = record_op(&d->ex->rec, op->sig, name_of(op), res->why_opaque, live);
    if (i < 0)
        return i;
    d->ex->rec.ops[i].ns = res->ns;
    d->ex->rec.ops[i].site = site_here();
    uint64_t side_bytes = 0;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        const struct rt_operand *w = &op->operands[k];
        int32_t b = buf_of(d, w->slot);
        if (b < 0 || record_operand(&d->ex->rec, b, w->offset, w->delta, (enum rec_mode)w->mode) < 0)
            return -ENOMEM;
        if (op->kind == OP_COPY && op->copy.kind == ENG_HTOD)
            d->ex->rec.bufs[b].host_written = true;
        d->ex->rec.bufs[b].pinned |= w->slot->pins > 0;
        if (op->kind == OP_KERNEL && w->slot->points && !d->ex->rec.ops[i].why_opaque)
            d->ex->rec.ops[i].why_opaque = "follows addresses that lie in memory";
        side_bytes += w->mode == REC_SIDE ? w->slot->bytes : 0;
    }
    if (side_bytes > SIDE_SCRATCH_MAX && !d->ex->rec.ops[i].why_opaque)
        d->ex->rec.ops[i].why_opaque = "its in-place state is too large to set aside";
    return op_capture(&d->ex->caps[i], op);
}

static int probe_op(struct device *d, struct rt_op *op)
{
    if (op->sig != d->learn->expected[d->learn->probed]) {
        abandon_probe(d, "the iteration was not like the one before");
        return learn_op_drv(d, op);
    }
    uint32_t lost = 0;
    if (ready_op(d, op, &lost))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct probe_result res;
    uint64_t live = d->live_bytes;
    int r = probe_op_drv(d, op, (int32_t)d->learn->probed, &res);
    ready_done(d, op, false);
    if (r != CUDA_SUCCESS) {
        abandon_probe(d, "a launch failed");
        return r;
    }
    if (res.unannounced >= 0 && (d->learn->suspect < 0 || res.unannounced < d->learn->suspect))
        d->learn->suspect = res.unannounced;
    if (probe_record(d, op, &res, live))
        abandon_probe(d, "host memory is exhausted");
    else
        d->learn->probed++;
    return r;
}

/* A pointer at this place was written through by another launch of the kernel: here it may be, another time. */
static void merge_effects(struct device *d)
{
    for (uint32_t i = 0; i < d->ex->rec.n_ops; i++) {
        struct rec_op *o = &d->ex->rec.ops[i];
        const struct rt_op *op = &d->ex->caps[i];
        if (op->kind != OP_KERNEL)
            continue;
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (d->ex->rec.operands[k].mode == REC_READ && probe_offset_changes(op->func, d->ex->rec.operands[k].offset)) {
                d->ex->rec.operands[k].mode = REC_RMW;
                o->why_opaque = "writes through this pointer in other launches";
            }
        /* A kernel that changed nothing at all may well do so another time (negative numbers become zero, but there were
         * none): it counts as changing all that it touches. */
        bool changes = false;
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            changes |= d->ex->rec.operands[k].mode != REC_READ;
        for (uint32_t k = o->first; k < o->first + o->n && !changes; k++) {
            d->ex->rec.operands[k].mode = REC_RMW;
            o->why_opaque = "changed nothing while it was learnt";
        }
    }
}

/* What is reached in ways that no argument shows may change unseen: no replay relies on it. */
static void leave_pinned_alone(struct device *d)
{
    for (uint32_t i = 0; i < d->ex->rec.n_ops; i++)
        for (uint32_t k = d->ex->rec.ops[i].first; k < d->ex->rec.ops[i].first + d->ex->rec.ops[i].n; k++)
            if (d->ex->rec.bufs[d->ex->rec.operands[k].buf].pinned && !d->ex->rec.ops[i].why_opaque)
                d->ex->rec.ops[i].why_opaque = "works on memory that is reached unseen";
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
static uint64_t recorded_peak_pages(struct device *d, bool pinned)
{
    int64_t *delta = calloc(d->ex->rec.n_ops + 2, sizeof *delta), now = 0, peak = 0;
    if (!delta)
        return UINT64_MAX >> 20;
    for (uint32_t b = 0; b < d->ex->rec.n_bufs; b++) {
        const struct rec_buf *x = &d->ex->rec.bufs[b];
        if (x->small || x->foreign || x->pinned != pinned)
            continue;
        delta[x->born < 0 ? 0 : x->born] += (int64_t)mem_pages(d, x->bytes);
        delta[x->dies < 0 ? (int32_t)d->ex->rec.n_ops : x->dies] -= (int64_t)mem_pages(d, x->bytes);
    }
    for (uint32_t i = 0; i < d->ex->rec.n_ops; i++) {
        now += delta[i];
        if (now > peak)
            peak = now;
    }
    free(delta);
    return (uint64_t)peak;
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static uint64_t budget_now(struct device *d)
{
    mem_arena_trim(d);
    uint64_t all = mem_max_chunks(d), gone = mem_arena_chunks(d);
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slots[i].kind == SLOT_LARGE && d->slots[i].pins && d->slots[i].live && d->slots[i].rec_buf < 0)
            gone += d->slots[i].n_pages;
    gone += recorded_peak_pages(d, true);
    return (all > gone ? all - gone : 0) << d->shift;
}

static void no_plan(struct device *d)
{
    if (wants_plan(d))
        log_say(SAY_INFO, "without a plan: memory is held by swapping");
    d->learn->given_up = true;
    exec_clear(d);
    d->mode = MODE_OBSERVE;
    learn_reset(d);
}

static void put_in_force(struct device *d)
{
    d->learn->tries = 0;
    log_say(SAY_INFO, "plan installed: %zu steps, %.1f%% more device time expected, peak %llu MiB",
            d->ex->plan.n_steps, d->ex->plan.baseline_ns ? 100.0 * (double)(d->ex->plan.planned_ns - d->ex->plan.baseline_ns) / (double)d->ex->plan.baseline_ns : 0.0,
            rt_mib((uint64_t)d->ex->plan.peak_bytes));
    d->mode = MODE_FALLBACK;
}

static void start_planner(struct device *d)
{
    int r = planner_start(d, d->learn->budget_bytes, d->learn->with_copies);
    if (r) {
        log_say(SAY_WARN, "cannot start `remat plan` (%s): memory is held by swapping", strerror(-r));
        no_plan(d);
        return;
    }
    d->mode = MODE_PLAN;
}

/* A plan is there: map it. If its colouring lacks chunks, ask again for a little less, and take the best in the end. */
static void take_plan(struct device *d, const char *path)
{
    uint64_t arenas = mem_arena_chunks(d);
    int lacking = exec_load_plan(d, path, path != d->cfg->plan_path);
    if (!lacking)
        lacking = install_plan(d);
    if (lacking < 0) {
        log_say(SAY_WARN, "the plan could not be installed (%s)", strerror(-lacking));
        no_plan(d);
        return;
    }
    uint64_t grown = mem_arena_chunks(d) - arenas, short_by = ((uint64_t)lacking + grown) << d->shift;
    log_say(SAY_DEBUG, "plan of %llu MiB lacks %d chunks", rt_mib(d->learn->budget_bytes), lacking);
    if (!lacking || path != planner_path(d) || ++d->learn->tries >= MAX_TRIES || short_by >= d->learn->budget_bytes) {
        put_in_force(d);
        return;
    }
    if (!d->learn->best_path[0] || lacking < d->learn->best_lacking) {
        snprintf(d->learn->best_path, sizeof d->learn->best_path, "%s.best", planner_path(d));
        d->learn->best_lacking = lacking;
        if (rename(planner_path(d), d->learn->best_path))
            d->learn->best_path[0] = 0;
    }
    d->learn->budget_bytes -= short_by;
    start_planner(d);
}

static void poll_planner(struct device *d, int wait_ms)
{
    switch (planner_poll(d, wait_ms)) {
    case PLANNER_DONE:
        take_plan(d, planner_path(d));
        break;
    case PLANNER_FAILED:
        if (d->learn->best_path[0]) { /* an earlier one, whose map lacks some chunks, is better than none */
            d->learn->tries = MAX_TRIES;
            take_plan(d, d->learn->best_path);
        } else if (d->cfg->policy == POLICY_AUTO && !d->learn->with_copies) {
            d->learn->with_copies = true;
            d->learn->budget_bytes = budget_now(d);
            start_planner(d);
        } else {
            planner_say_why(d);
            no_plan(d);
        }
        break;
    default:
        break;
    }
    if (d->mode != MODE_PLAN && d->learn->best_path[0]) {
        remove(d->learn->best_path);
        d->learn->best_path[0] = 0;
    }
    if (d->mode != MODE_PLAN)
        planner_tidy(d);
}

static void plan_now(struct device *d)
{
    d->mode = MODE_PLAN;
    d->learn->tries = 0;
    d->learn->with_copies = false;
    if (install_scratch(d)) { /* before the budget: it stays */
        log_say(SAY_WARN, "no memory to set in-place state aside: memory is held by swapping");
        no_plan(d);
        return;
    }
    d->learn->budget_bytes = budget_now(d);
    if (d->cfg->plan_path[0])
        take_plan(d, d->cfg->plan_path);
    else
        start_planner(d);
    /* Short iterations: waiting a moment costs less than running on without a plan. */
    for (int i = 0; i < 2 * MAX_TRIES && d->mode == MODE_PLAN; i++)
        poll_planner(d, PLAN_WAIT_MS);
    if (d->mode == MODE_FALLBACK && d->ex->installed) /* this is a boundary: go on at once */
        exec_begin(d), d->mode = MODE_REHEARSE;
}

/* See record_insert_holds; the captured calls move with their ops. */
static int hold_buffers(struct device *d)
{
    uint32_t n = d->ex->rec.n_ops;
    uint32_t *to = calloc(n + 1, sizeof *to);
    if (!to || record_insert_holds(&d->ex->rec, to)) {
        free(to);
        return -ENOMEM;
    }
    struct rt_op *caps = calloc(d->ex->rec.n_ops + 1, sizeof *caps);
    for (uint32_t i = 0; caps && i < n; i++)
        caps[to[i]] = d->ex->caps[i];
    free(d->ex->op_of_trace);
    d->ex->op_of_trace = to;
    d->ex->n_trace_ops = n;
    if (!caps)
        return -ENOMEM;
    free(d->ex->caps);
    d->ex->caps = caps;
    d->ex->n_caps = d->ex->rec.n_ops;
    return 0;
}

static void finish_probe(struct device *d)
{
    int32_t s = probe_census(d);
    if (s >= 0 && (d->learn->suspect < 0 || s < d->learn->suspect))
        d->learn->suspect = s;
    for (uint32_t i = d->learn->suspect < 0 ? d->ex->rec.n_ops : (uint32_t)d->learn->suspect; i < d->ex->rec.n_ops; i++)
        if (!d->ex->rec.ops[i].why_opaque)
            d->ex->rec.ops[i].why_opaque = "memory changed that nobody had announced";
    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slots[i].live && d->slots[i].pins && d->slots[i].rec_buf >= 0)
            d->ex->rec.bufs[d->slots[i].rec_buf].pinned = true;
    merge_effects(d);
    leave_pinned_alone(d);
    record_seal(&d->ex->rec);
    d->st.iterations++;
    d->ex->boundary_live_bytes = d->ex->rec.n_ops ? d->ex->rec.ops[0].live_bytes : 0;
    d->ex->rec.model = command_line();
    if (wants_trace(d)) {
        int r = record_write(&d->ex->rec, d->cfg->trace_out, 1);
        if (r)
            log_say(SAY_WARN, "cannot write the trace %s: %s", d->cfg->trace_out, strerror(-r));
        d->learn->recorded_iterations++;
    }
    uint64_t peak = recorded_peak_pages(d, false) << d->shift;
    if (hold_buffers(d) || exec_index(d)) {
        no_plan(d);
        return;
    }
    if (wants_plan(d) && (peak > budget_now(d) || d->cfg->plan_path[0])) {
        plan_now(d);
        return;
    }
    d->learn->quiet_until = d->op_count + d->learn->quiet_periods * d->learn->period;
    d->learn->quiet_periods *= 2;
    exec_clear(d);
    d->mode = MODE_OBSERVE;
    learn_reset(d);
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

void learn_alloc(struct device *d, struct slot *s)
{
    if (d->mode != MODE_PROBE)
        return;
    int k = record_alloc(&d->ex->rec, s->bytes);
    s->rec_buf = k < 0 ? -1 : -2 - k;
    if (s->state == SLOT_RESIDENT)
        probe_poison(d, s);
}

void learn_free(struct device *d, struct slot *s)
{
    if (d->mode != MODE_PROBE)
        return;
    int32_t b = s->rec_buf <= -2 ? -1 : buf_of(d, s); /* one that is older and untouched counts too: it had memory until now */
    if (b >= 0) {
        d->ex->rec.bufs[b].pinned |= s->pins > 0;
        record_free(&d->ex->rec, b);
    }
}

void learn_turn(struct device *d)
{
    if (d->mode == MODE_PROBE && d->learn->probed == d->learn->period)
        finish_probe(d);
    else if (d->mode == MODE_PLAN && !d->ex->have_plan && d->ex->rec.n_ops && planner_path(d)[0] && d->learn->budget_bytes) {
        if (d->ex->installed) { /* rehearsal banned an op: once more */
            install_drop(d);
            plan_now(d);
        } else
            poll_planner(d, 0);
    }
}

static void count_iteration(struct device *d, unsigned t)
{
    d->st.iterations++;
    stats_boundary(d, t, true);
    if (d->status)
        status_store(&d->status->iterations, d->st.iterations);
}

static void feed(struct device *d, const struct rt_op *op)
{
    static struct iter_operand operands[OP_MAX_OPERANDS];
    if (d->learn->reset_pending)
        iter_reset(d->learn->finder, d->op_count);
    d->learn->reset_pending = false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = (struct iter_operand){.serial = op->operands[i].slot->serial,
                                            .birth_op = op->operands[i].slot->birth_op,
                                            .offset = op->operands[i].offset};
    bool from_host = op->kind == OP_COPY && op->copy.kind == ENG_HTOD;
    int64_t p = iter_feed(d->learn->finder, op->sig, operands, op->n_operands, d->live_bytes, from_host);
    bool counting = !(wants_plan(d) || wants_trace(d));
    if (d->learn->period && d->learn->until) { /* on the way to the boundary */
        d->learn->until--;
        if (!d->learn->until && counting) {
            count_iteration(d, op->t);
            d->learn->until = d->learn->period;
        }
        if (counting && p <= 0)
            d->learn->period = d->learn->until = 0;
        return;
    }
    if (p > 0 && p <= MAX_PERIOD) {
        d->learn->period = (uint64_t)p;
        d->learn->until = iter_until_boundary(d->learn->finder, d->learn->period);
        if (!d->learn->counted_before && (d->op_count + 1) / d->learn->period > 1)
            d->st.iterations += (d->op_count + 1) / d->learn->period - 1;
        d->learn->counted_before = true;
        if (!d->learn->until && counting)
            d->learn->until = d->learn->period;
    }
}

/* With a plan at hand a new period must have gone on for long before it is learnt instead: it may be an evaluation. */
static bool may_relearn(struct device *d)
{
    if (d->mode == MODE_OBSERVE)
        return true;
    uint64_t n = d->ex->rec.n_ops > d->learn->period ? d->ex->rec.n_ops : d->learn->period;
    return d->mode == MODE_FALLBACK && d->op_count - d->ex->left_op > 20 * n;
}

int learn_op_drv(struct device *d, struct rt_op *op)
{
    if (d->mode == MODE_PROBE)
        return probe_op(d, op);
    if (d->mode == MODE_FALLBACK && exec_may_resume(d, op)) {
        exec_resume(d);
        return exec_op_drv(d, op);
    }
    int r = run_plain_drv(d, op);
    feed(d, op);
    if (d->learn->period && !d->learn->until && (wants_plan(d) || wants_trace(d)) && may_relearn(d)) {
        count_iteration(d, op->t);
        begin_probe(d);
        if (d->mode != MODE_PROBE)
            learn_reset(d);
    }
    return r;
}
