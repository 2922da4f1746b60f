/* campaign.c: see campaign.h. What the program's calls mean for the plan in force; campaign/ makes and follows plans. */
#include "policy/campaign.h"
#include "policy/campaign/budget.h"
#include "policy/campaign/following.h"
#include "policy/campaign/modes.h"
#include "policy/campaign/planning.h"
#include "policy/learn/hashing.h"
#include "policy/learn/learn.h"
#include "policy/learn/recording.h"
#include "policy/op/ready.h"
#include "policy/plan/cursor.h"
#include "policy/plan/exec.h"
#include "policy/plan/install.h"
#include "policy/plan/leave.h"
#include "policy/plan/steady.h"
#include "policy/plan/unmapped.h"
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/process/story.h"
#include "policy/share/share.h"

#include <errno.h>

enum {
    STARTS_MOST = 12,       /* lessons begun in a row, each given up since the iteration went another way */
    LOOK_OPS = 1024,        /* without a plan: between two looks for something to tell the user */
    NEAR_OPS = 32,          /* between two looks at whether a lesson is near */
    TRY_AGAIN_OPS = 256,    /* between two attempts to give memory where nothing could move */
    LESS_IN_VAIN = 2,       /* iterations in a row that were left, taken up though the program held less than at the recorded one's begin */
    RELEARN_PERIODS = 20    /* a new period must last this long before it takes a plan's place: the period may be an evaluation's */
};

int campaign_init(struct device *d) { return modes_init(d); }

void campaign_leave(struct device *d, const char *why)
{
    if (campaign_follows_plan(d)) {
        leave_plan(d, why, NULL);
        following_has_left(d);
    } else if (d->mode == MODE_PROBE) {
        learn_abandon(d, why);
        modes_observe(d);
    }
}

void campaign_give(struct device *d)
{
    bool blocked, planned = d->mode == MODE_STANDBY && d->ex->map.done;
    uint64_t owed = share_owed(d, &blocked), tried = d->campaign->gave_nothing_at;
    if (!owed || d->capturing || (tried && d->op_count - tried < TRY_AGAIN_OPS))
        return;
    if ((campaign_follows_plan(d) || d->mode == MODE_PROBE) && !blocked)
        return; /* the memory is given at the iteration's end */
    if (campaign_follows_plan(d) || d->mode == MODE_PROBE) {
        planned = campaign_follows_plan(d);
        campaign_leave(d, "a neighbour cannot go on without its share");
    }
    if (planned && d->mode == MODE_STANDBY)
        install_drop(d);
    budget_give(d, owed);
    if (planned && d->mode == MODE_STANDBY)
        planning_begin(d);
}

void campaign_writes_elsewhere(struct device *d)
{
    if (d->mode == MODE_PROBE ? recording_note_named_write(&d->ex->learnt) : campaign_follows_plan(d) && !cursor_knows_named_write(d))
        campaign_leave(d, "memory is written that kernels may know by name");
}

void campaign_stop(struct device *d, const char *why)
{
    if (d->campaign->stopped)
        return;
    campaign_leave(d, why);
    modes_forget_iteration(d);
    d->campaign->stopped = true;
    log_say(SAY_INFO, "no plan is made any more (%s): memory is held by swapping", why);
    story_becomes(d, STORY_SWAPPING, "no plan is made any more: %s", why);
}

/* The host waits for replays, of which the program knows nothing, that read memory as it was. Not for work of the program's own, which may stand still. */
static int replays_end(struct device *d)
{
    int r = 0;
    for (uint32_t i = 0; i < d->mem.n_slots && !r; i++)
        r = fence_sync(d, &d->mem.slots[i].unseen);
    return r;
}

void campaign_distrusts(struct device *d, const char *why)
{
    if (d->mode == MODE_OBSERVE || d->mode == MODE_PROBE) /* a record knows the memory that is pinned when the record is finished */
        return;
    const bool followed = campaign_follows_plan(d);
    campaign_leave(d, why);
    if (followed && replays_end(d))
        log_say(SAY_DEBUG, "the device failed before memory changed that replays read");
    modes_forget_iteration(d);
}

void campaign_unloads(struct device *d, CUmodule module, CUlibrary library)
{
    bool launches = d->mode == MODE_PROBE; /* a lesson may have launched the code */
    for (uint32_t i = 0; i < d->ex->learnt.rec.n_ops && i < d->ex->learnt.n_caps && !launches; i++)
        launches = d->ex->learnt.caps[i].kind == OP_KERNEL && d->ex->learnt.caps[i].func && func_is_of(d->ex->learnt.caps[i].func, module, library);
    if (!launches)
        return;
    const bool followed = campaign_follows_plan(d);
    campaign_leave(d, "code that the recorded iteration launches is unloaded");
    if (followed && fence_sync_queued(d, false))
        log_say(SAY_DEBUG, "the device failed before code was unloaded");
    modes_forget_iteration(d);
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

/* A plan is awaited, and none is being followed. */
static void await(struct device *d)
{
    struct campaign *c = d->campaign;
    const uint64_t latest = c->boundary_op > c->whole_op ? c->boundary_op : c->whole_op;
    if (c->boundary_op == d->op_count && c->looked_op != d->op_count) {
        c->looked_op = d->op_count;
        planning_take_answer(d);
    } else if (d->op_count - latest > RELEARN_PERIODS * (uint64_t)d->ex->learnt.rec.n_ops)
        planning_drop_question(d, "the program does something else than what a plan was asked for");
}

void campaign_turn(struct device *d)
{
    if (d->capturing)
        return;
    if (campaign_follows_plan(d) && d->ex->now.ended)
        following_end_iteration(d);
    else if (d->mode == MODE_PROBE && learn_complete(d))
        following_learnt(d);
    else if (d->mode == MODE_PLAN || (d->mode == MODE_STANDBY && d->campaign->beside))
        await(d);
    if (share_called(d))
        campaign_give(d);
}

void campaign_answered(struct device *d, uint64_t op_count)
{
    struct campaign *c = d->campaign;
    if (d->mode != MODE_PLAN)
        return;
    const uint64_t ns = stats_now_ns() - c->pause_began_ns;
    c->paused_here_ns += ns;
    c->paused_ns += ns;
    if (!modes_wait_for_plans(d) && d->op_count != op_count)
        return;
    planning_take_answer(d);
    if (d->mode == MODE_STANDBY && d->ex->map.done && d->op_count == op_count) { /* still between two iterations: go on under the plan at once */
        cursor_begin(d);
        following_begin(d);
    }
}

/* While a plan is installed, a new period must have gone on for long before it is learnt instead. */
static bool may_learn(const struct device *d)
{
    if (d->mode == MODE_OBSERVE)
        return true;
    uint64_t n = d->ex->learnt.rec.n_ops > learn_period(d) ? d->ex->learnt.rec.n_ops : learn_period(d);
    return d->mode == MODE_STANDBY && d->op_count - d->campaign->left_op > RELEARN_PERIODS * n;
}

/* The device code and its tables take memory, which a program that only swaps had rather for itself. */
bool campaign_wants_code(struct device *d)
{
    if (hashing_is_loaded(d) || d->capturing || d->campaign->stopped)
        return false;
    return learn_wants_trace(d) ||
           (modes_wants_plan(d) && (d->mode != MODE_OBSERVE || learn_guesses(d) || modes_have_given_plan(d) || d->campaign->lesson_is_near));
}

/* Tells the user where memory is short and no iteration is known that a plan could be made for. */
static void tell_swapping(struct device *d)
{
    if (d->mem.pressed && d->mode == MODE_OBSERVE && d->story && (d->story->now == STORY_NONE || d->story->now == STORY_FITS)) {
        if (d->cfg->policy == POLICY_SWAP)
            story_is(d, STORY_SWAPPING, "--policy swap makes no plan");
        else if (d->st.native_ns) /* an iteration was learnt, and the user was told what came of it */
            story_is(d, STORY_FITS, STORY_LEARNT_FITS);
        else if (stats_now_ns() - d->st.first_op_ns > STORY_PAUSE_NS)
            story_is(d, STORY_SWAPPING, "no iteration that comes again is known after %llu launches", (unsigned long long)d->op_count);
    }
    story_goes_on(d);
}

/* An iteration has gone by, and a lesson of the next one is not worth its time. Nothing had to leave for the iteration (sentences of three lengths, say, of which
 * only the longest do not fit: an iteration of long ones is learnt); or so little that copies cost next to nothing. */
static bool is_left_to_swapping(struct device *d)
{
    if (d->mode != MODE_OBSERVE || learn_guesses(d) || learn_wants_trace(d) || modes_have_given_plan(d))
        return false;
    const uint64_t period = learn_period(d);
    d->campaign->lesson_is_near = account_is_worth_it(d, (period + 1) / 2);
    if (d->op_count - d->mem.evicted_op > period)
        story_is(d, STORY_FITS, "an iteration that comes again fits the limit: what does not at other times is swapped");
    else if (!account_is_worth_it(d, period))
        story_is(d, STORY_SWAPPING, "copies have taken little time so far, less than it takes to learn an iteration");
    else
        return false;
    return true;
}

static void begin_lesson(struct device *d, CUstream stream)
{
    int e = learn_prepare(d);
    if (!e) {
        uint64_t swap_ns, swap_ops;
        if (d->campaign->beside)
            modes_forget_question(d);
        exec_clear(d);
        e = learn_begin(d);
        if (!e)
            account_learns(d, learn_period(d), stream);
        learn_lesson_swaps(d, &swap_ns, &swap_ops);
        account_foretold(d, swap_ns, swap_ops);
        modes_go(d, e ? MODE_OBSERVE : MODE_PROBE);
    } else if (e == -ENOTSUP)
        d->campaign->quiet_until = UINT64_MAX; /* this device cannot learn */
    if (e)
        learn_reset(d);
}

/* Device code for a lesson is loaded while a possible iteration comes again, if a lesson of it would soon be worth its time: the lesson need not wait for one more iteration. */
static void look_whether_lesson_is_near(struct device *d)
{
    const uint64_t ops = d->mode == MODE_OBSERVE && !d->campaign->lesson_is_near && modes_wants_plan(d) ? learn_candidate(d) : 0;
    if (ops)
        d->campaign->lesson_is_near = account_is_worth_it(d, (ops + 1) / 2);
}

static int outside_drv(struct device *d, struct rt_op *op)
{
    struct account_sample *sample = account_sample(d, op->sig);
    int r = sample ? ready_run_timed_drv(d, op, sample->from.at, sample->to.at, &sample->awaited) : run_plain_drv(d, op);
    if (!d->st.first_op_ns)
        d->st.first_op_ns = stats_now_ns();
    if (d->op_count % LOOK_OPS == LOOK_OPS - 1)
        tell_swapping(d);
    if (op_reads_for_host(op) || d->campaign->stopped)
        return r;
    d->campaign->last_sig = op->sig;
    following_looks_on(d, op);
    if (d->mem.pressed)
        account_tick(d, op->stream, learn_candidate(d));
    const bool allowed = account_may_learn(d);
    bool wanted = (modes_wants_plan(d) && (allowed || d->mode != MODE_OBSERVE)) || learn_wants_trace(d); /* not wanted: the ends of iterations are found all the same */
    const bool found = learn_watch(d, op, wanted);
    if (d->op_count % NEAR_OPS == NEAR_OPS - 1)
        look_whether_lesson_is_near(d);
    if (!found)
        return r;
    if (d->mode != MODE_OBSERVE && learn_period(d) == d->ex->learnt.rec.period && op->sig == recording_last_sig(&d->ex->learnt.rec)) {
        d->campaign->boundary_op = d->op_count + 1;
        if (d->mode == MODE_PLAN)
            learn_count_iteration(d, op->t);
    }
    if (!may_learn(d) || (!allowed && !learn_wants_trace(d)))
        return r;
    if (!learn_guesses(d))
        learn_count_iteration(d, op->t);
    if (is_left_to_swapping(d))
        learn_lets_go(d);
    else if (hashing_is_loaded(d)) /* not loaded yet: the lesson begins at the next iteration's end */
        begin_lesson(d, op->stream);
    return r;
}

/* The op seems to be the first of an iteration like the recorded one. Where the program has just ended such an iteration, outside the plan, the program may
 * hold more for good: a copy of the best weights so far. */
static bool may_resume(struct device *d, const struct rt_op *op)
{
    const struct campaign *c = d->campaign;
    return exec_may_resume(d, op, c->boundary_op == d->op_count) && (c->less_in_vain < LESS_IN_VAIN || !exec_holds_less(d));
}

/* An iteration like the recorded one begins, but memory is reached in ways that the record does not know. */
static bool is_overtaken(struct device *d, const struct rt_op *op)
{
    return d->mode == MODE_STANDBY && may_resume(d, op) && exec_reached_since(d);
}

/* True: the op begins an iteration that the plan may be taken up for. Each batch of an evaluation begins like an iteration too. */
static bool may_take_up(struct device *d, const struct rt_op *op)
{
    const struct campaign *c = d->campaign;
    return d->mode == MODE_STANDBY && may_resume(d, op) && !exec_reached_since(d) &&
           (following_is_worth_it(d) || c->last_sig == recording_last_sig(&d->ex->learnt.rec));
}

bool campaign_runs_plainly(struct device *d, const struct rt_op *op)
{
    return !d->capturing && !d->ex->now.code && !d->broken && !campaign_follows_plan(d) && !may_take_up(d, op);
}

/* The op, which has yet to run, is the first of an iteration under the plan. */
static void take_up(struct device *d)
{
    cursor_begin(d);
    exec_resume(d);
    following_begin(d);
    d->campaign->holds_less = exec_holds_less(d);
    d->campaign->follows_next = d->campaign->last_sig == recording_last_sig(&d->ex->learnt.rec);
}

static int decide_drv(struct device *d, struct rt_op *op)
{
    if (d->ex->now.code)
        return d->ex->now.code;
    if (is_overtaken(d, op)) {
        log_say(SAY_INFO, "learning starts over: memory holds addresses, or can be reached through them, that did not before");
        modes_forget_iteration(d);
    } else if (may_take_up(d, op))
        take_up(d);
    for (int i = 0; campaign_follows_plan(d); i++) {
        enum exec_left left;
        int r = exec_op_drv(d, op, &left);
        if (left == EXEC_STAYED)
            return r;
        if (left == EXEC_ENDED) {
            following_end_iteration(d);
            if (campaign_follows_plan(d))
                exec_resume(d);
            continue;
        }
        following_has_left(d);
        if (left == EXEC_LEFT_BEFORE && !i && !d->ex->now.code && may_take_up(d, op)) { /* the op begins the next iteration, and the end of the one at hand did not come */
            take_up(d);
            continue;
        }
        return left == EXEC_LEFT_AFTER ? r : d->ex->now.code ? d->ex->now.code : outside_drv(d, op);
    }
    if (d->mode == MODE_PROBE) {
        enum learn_step step;
        const uint64_t period = learn_period(d);
        int r = learn_op_drv(d, op, &step);
        if (step != LEARN_ON)
            modes_observe(d);
        if (step == LEARN_NOT_RUN && ++d->campaign->starts == STARTS_MOST) {
            d->campaign->starts = 0;
            modes_quiet_after(d, period);
        }
        return step == LEARN_NOT_RUN ? outside_drv(d, op) : r;
    }
    return outside_drv(d, op);
}

int campaign_wait_ms(struct device *d) { return planning_wait_ms(d); }

int campaign_op_drv(struct device *d, struct rt_op *op)
{
    if (d->capturing) /* trials and steps of a plan would become a part of the graph */
        return d->ex->now.code ? d->ex->now.code : run_plain_drv(d, op);
    int r = decide_drv(d, op);
    if (unmapped_on(d) && r == CUDA_SUCCESS)
        r = unmapped_look_drv(d, op_name(op), op->stream);
    return r;
}

bool campaign_launch_drv(struct device *d, const struct eng_kernel *k, int *r)
{
    if (d->mode != MODE_ENFORCE || d->ex->now.ended || d->ex->now.code || share_called(d) || unmapped_on(d))
        return false;
    enum steady s = steady_launch_drv(d, k, r);
    if (s == STEADY_LEFT || s == STEADY_REFUSED)
        following_has_left(d);
    return s == STEADY_RAN || s == STEADY_REFUSED;
}
