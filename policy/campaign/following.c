/* following.c: see following.h. */
#include "policy/campaign/following.h"

#include "policy/campaign/budget.h"
#include "policy/campaign/earlier_plan.h"
#include "policy/campaign/modes.h"
#include "policy/campaign/planning.h"
#include "policy/learn/learn.h"
#include "policy/plan/cursor.h"
#include "policy/plan/detour.h"
#include "policy/plan/exec.h"
#include "policy/plan/install.h"
#include "policy/plan/leave.h"
#include "policy/plan/reserve.h"
#include "policy/plan/verify.h"
#include "policy/process/nvtx.h"
#include "policy/process/stats.h"
#include "policy/process/story.h"
#include "policy/share/share.h"

#include <string.h>

enum {
    LEFT_SUSPECT = 2,       /* times in a row after which tensors that every iteration works on may be others */
    LEFT_SOON = 32,         /* times in a row, a few ops each */
    LEFT_OTHERS = 3,        /* times, not before the first op, where the recorded iteration had ops that others have not, .. */
    WHOLE_BETWEEN = 4,      /* .. and fewer whole iterations than this came between two such times */
    LEFT_TOO_OFTEN = 8,     /* times in a row, without one whole iteration in between */
    LEFT_UNTRIED = 4,       /* times at one launch of which no trial can tell anything, whole iterations in between or not: that launch is in the way */
    UNTRIED_MOST = 3,       /* plans made anew for one record, since a launch cannot be tried or recorded ops did not come: each takes a planner's time */
    GROW_PART = 8,          /* a plan is made anew because a group has more to give only if the plan gains this part of its memory */
    MOVES_MAX = 4           /* static maps made anew for one record; after that, iterations may map memory */
};

void following_learnt(struct device *d)
{
    if (learn_finish(d, reserve_of_record_bytes) || exec_index(d)) {
        story_warns(d, STORY_SWAPPING, "host memory is exhausted: memory is held by swapping");
        modes_no_plan(d);
        return;
    }
    earlier_plan_for_record(d);
    d->campaign->moves = 0;
    d->campaign->followed = d->campaign->holds_less = false;
    d->campaign->less_in_vain = 0;
    d->campaign->untried = d->campaign->left_untried = d->campaign->left_with_others = 0;
    d->campaign->reserved_bytes = 0;
    d->campaign->starts = 0;
    d->campaign->paused_here_ns = 0;
    d->st.bound_ns = d->st.baseline_ns = 0;
    uint64_t peak = recording_peak_pages(d, &d->ex->learnt.rec, false) << d->mem.shift;
    bool blocked;
    uint64_t owed = share_called(d) ? share_owed(d, &blocked) : 0;
    if (owed)
        budget_give(d, owed);
    share_limit_for_plan(d, budget_could_use(d));
    if (modes_wants_plan(d) && (peak > budget_now(d) || modes_have_given_plan(d))) {
        planning_begin(d);
        return;
    }
    if (d->mem.pressed)
        story_is(d, STORY_FITS, STORY_LEARNT_FITS);
    modes_no_plan(d); /* the iteration fits, and is learnt again ever more rarely */
}

void following_begin(struct device *d)
{
    d->campaign->follows_next = true;
    modes_go(d, d->ex->now.proved ? MODE_ENFORCE : MODE_REHEARSE);
    const unsigned t = stream_alive(d, d->ex->learnt.caps[0].t);
    stats_boundary(d, t, d->mode == MODE_ENFORCE);
    nvtx_iteration(d->st.iterations, device_mode_name(d, d->mode));
    account_iteration(d, t);
    if (d->mode == MODE_ENFORCE && verify_begin(d, t))
        d->ex->now.code = device_failure(d);
}

/* The installed plan goes, and the planner is asked for another; the recorded iteration stays. */
static void plan_anew(struct device *d, const char *why)
{
    log_say(SAY_INFO, "the plan is made anew: %s", why);
    install_drop(d);
    planning_begin(d);
}

/* True: the plan that is installed costs more than it saves, and is given up. */
static bool is_given_up(struct device *d)
{
    const char *why = account_verdict(d, (uint64_t)d->ex->plan->as_read.planned_ns);
    if (!why)
        return false;
    log_say(SAY_INFO, "the plan is given up: %s; memory is held by swapping, learning anew in %llu iterations", why, (unsigned long long)d->campaign->backoff);
    modes_no_plan(d);
    return true;
}

/* True: no trial can tell anything of the launch at which the plan has just been left, and the plan was left at this launch often. Iterations in between,
 * in which the launch had another stale address, may have been whole. */
static bool is_in_the_way(struct device *d)
{
    struct campaign *c = d->campaign;
    if (!d->ex->now.left_untried)
        return false;
    if (c->left_untried_at != d->ex->now.left_at)
        c->left_untried = 0;
    c->left_untried_at = d->ex->now.left_at;
    return ++c->left_untried >= LEFT_UNTRIED;
}

/* All departures in a row together followed no more ops than an iteration has: the plan was left soon each time, as by the batches of an evaluation, which begin
 * like an iteration. */
static bool left_soon(const struct device *d) { return d->campaign->left_ops <= d->ex->learnt.rec.n_ops && d->campaign->left_in_a_row <= LEFT_SOON; }

bool following_is_worth_it(const struct device *d)
{
    return d->campaign->left_in_a_row < LEFT_SUSPECT || (left_soon(d) && d->campaign->left_in_a_row < LEFT_SOON);
}

/* Some recorded ops that the plan replays did not come. True: another plan is on its way. */
static bool some_do_not_come(struct device *d)
{
    struct campaign *c = d->campaign;
    if (!d->ex->now.left_for || modes_have_given_plan(d) || c->untried >= UNTRIED_MOST || !detour_is_known(d))
        return false;
    c->untried++;
    c->left_in_a_row = 0;
    plan_anew(d, "some of the recorded ops do not come in every iteration: they are not to be replayed");
    return true;
}

void following_looks_on(struct device *d, const struct rt_op *op)
{
    if (d->mode == MODE_STANDBY && detour_comes_back(d, op))
        some_do_not_come(d);
}

/* The plan has been left (plan/leave.c): everything the program holds is readable again. */
void following_has_left(struct device *d)
{
    struct campaign *c = d->campaign;
    const bool first = !c->left_in_a_row;
    c->left_ops = (first ? 0 : c->left_ops) + d->ex->now.left_at;
    c->left_next = (first ? 0 : c->left_next) + c->follows_next;
    c->less_in_vain += c->holds_less;
    c->holds_less = false;
    if (first || !left_soon(d)) /* otherwise left_op stays: a new period, if there is one, goes on across soon departures */
        c->left_op = d->op_count;
    modes_go(d, MODE_STANDBY);
    learn_reset(d);
    if (d->ex->now.code)
        return;
    account_left(d, stream_alive(d, STREAM_FIRST_PROGRAM));
    if (!d->cfg->plan_path[0] && is_given_up(d))
        return;
    c->left_in_a_row++;
    if (c->followed && c->left_in_a_row > LEFT_SUSPECT && !leave_can_be_followed(d)) {
        log_say(SAY_INFO, "tensors that every iteration works on are others now: learning anew");
        story_is(d, STORY_SWAPPING, "tensors that every iteration works on are others now: learning anew");
        c->followed = false;
        c->left_in_a_row = 0;
        modes_observe_again(d);
        return;
    }
    if (some_do_not_come(d))
        return;
    if (d->ex->now.left_at) {
        c->left_with_others = c->whole_since < WHOLE_BETWEEN ? c->left_with_others + 1 : 1;
        c->whole_since = 0;
    }
    if (learn_had_others(d) && d->ex->now.left_at && c->left_with_others >= LEFT_OTHERS && !modes_have_given_plan(d)) {
        log_say(SAY_INFO, "the plan is left again and again, and the iteration that was learnt had ops that others have not: learning anew");
        c->left_in_a_row = c->left_with_others = 0;
        learn_strictly(d);
        modes_observe_again(d);
        return;
    }
    if (is_in_the_way(d) && !modes_have_given_plan(d) && c->untried < UNTRIED_MOST && leave_trust_no_more(d)) {
        c->untried++;
        c->left_in_a_row = c->left_untried = 0;
        plan_anew(d, "no trial can tell whether a launch still does what it did: it is not to be replayed");
        return;
    }
    if ((left_soon(d) ? c->left_next : c->left_in_a_row) < (d->ex->now.left_untried ? LEFT_UNTRIED : LEFT_TOO_OFTEN))
        return;
    const uint32_t times = c->left_in_a_row;
    c->left_in_a_row = 0;
    const bool at_once = !c->given_up; /* a new record shows iterations as they are by now: a pointer, say, that nobody has set since the old record */
    c->given_up = true;
    char text[STORY_TEXT], when[48] = "";
    if (!at_once)
        snprintf(when, sizeof when, " in %llu iterations", (unsigned long long)c->backoff);
    snprintf(text, sizeof text, "the plan was left %u times without one whole iteration, the latest at launch %u of %u (%s): given up; learning anew%s", times,
             d->ex->now.left_at, d->ex->learnt.rec.n_ops, d->ex->now.left_why, when);
    log_say(SAY_INFO, "%s", text);
    story_is(d, STORY_SWAPPING, "%s", text);
    if (at_once)
        modes_observe_again(d);
    else
        modes_no_plan(d);
}

/* ---- sharing ------------------------------------------------------------------------------------------------------- */

/* At the end of an iteration under a plan: memory that is owed to the group is given, and more is taken where the group has enough more. True:
 * another plan is on its way. */
static bool share_anew(struct device *d)
{
    struct campaign *c = d->campaign;
    bool blocked;
    uint64_t owed = share_called(d) ? share_owed(d, &blocked) : 0;
    if (owed) {
        install_drop(d);
        budget_give(d, owed);
        plan_anew(d, "a neighbour has asked for its share");
        return true;
    }
    if (!d->share || d->st.iterations < c->grow_at || d->ex->plan->as_read.planned_ns <= d->ex->plan->as_read.baseline_ns)
        return false;
    uint64_t ceiling = share_ceiling(d), most = budget_could_use(d);
    if ((ceiling < most ? ceiling : most) < d->mem.plan_limit_bytes + d->mem.plan_limit_bytes / GROW_PART)
        return false;
    c->grow_wait *= 2;
    plan_anew(d, "the group has more to give");
    return true;
}

/* Something else has chunks that the static map counted on: a tensor that was swapped while the plan was left, small memory that
 * has grown. A new map is made of the other chunks; if they are too few for the plan, another plan is made. */
static void map_anew(struct device *d)
{
    if (d->campaign->moves++ == MOVES_MAX)
        log_say(SAY_DEBUG, "the map of the plan was made anew %d times; now its iterations map memory", MOVES_MAX);
    if (d->campaign->moves > MOVES_MAX)
        return;
    int lacking = install_plan(d);
    log_say(SAY_DEBUG, "the map of the plan is made anew; it lacks %d chunks", lacking);
    if (lacking < 0) {
        story_warns(d, STORY_SWAPPING, "the plan could not be installed (%s): memory is held by swapping", strerror(-lacking));
        modes_no_plan(d);
    } else if (lacking && !modes_have_given_plan(d)) {
        d->campaign->reserved_bytes += 2 * ((uint64_t)lacking << d->mem.shift);
        plan_anew(d, "something else has come to hold memory that it counted on");
    }
}

void following_end_iteration(struct device *d)
{
    enum exec_end end = exec_end_iteration(d);
    d->campaign->left_in_a_row = d->campaign->outdated = 0;
    d->campaign->followed = true;
    if (d->campaign->holds_less)
        d->campaign->less_in_vain = 0;
    d->campaign->holds_less = false;
    d->campaign->whole_since++;
    d->campaign->whole_op = d->op_count;
    story_goes_on(d);
    if (end == EXEC_END_WHOLE && d->mode == MODE_ENFORCE && !d->campaign->beside)
        earlier_plan_keep(d);
    if (end == EXEC_END_BANNED) { /* once more, without the op whose replay differed */
        install_drop(d);
        planning_begin(d);
    } else if (end == EXEC_END_MOVED)
        map_anew(d);
    else if (end == EXEC_END_UNPROVABLE) {
        story_warns(d, STORY_SWAPPING, "the plan could not be proved (its replays could not all be compared): memory is held by swapping");
        modes_no_plan(d);
    } else if (end == EXEC_END_WHOLE && d->share && share_anew(d))
        return;
    else if (end == EXEC_END_WHOLE && d->campaign->beside)
        planning_take_answer(d);
    if (modes_follow_plan(d) && !d->cfg->plan_path[0] && is_given_up(d))
        return;
    if (d->mode == MODE_STANDBY || modes_follow_plan(d)) {
        cursor_begin(d);
        following_begin(d);
    }
}
