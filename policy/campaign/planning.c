/* planning.c: see planning.h. */
#include "policy/campaign/planning.h"

#include "policy/campaign/budget.h"
#include "policy/campaign/earlier_plan.h"
#include "policy/campaign/modes.h"
#include "policy/learn/learn.h"
#include "policy/memory/arena.h"
#include "policy/memory/room.h"
#include "policy/memory/supply.h"
#include "policy/memory/swap.h"
#include "policy/plan/exec.h"
#include "policy/plan/install.h"
#include "policy/plan/leave.h"
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/process/story.h"
#include "policy/share/share.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_TRIES = 5,          /* plans whose static map lacks chunks before the best is taken; as many again with copies */
    DEAR_PART = 2,          /* a plan by recomputing alone that adds more than this part of the iteration is weighed against one with copies */
    GAP_NS = 500000,        /* price of a gap: some calls of tens of microseconds, and the wait until the device is done with the chunk */
    PATIENCE_MOST = 8,      /* multiple of the usual seconds, for a planner that found nothing in these */
    BETTER_PART = 64,       /* a plan replaces the one in force if it saves this part of an iteration: proving a plan costs about two iterations */
    PLAN_WAIT_MS = 60000,   /* --policy plan: for each answer, with the mutex released */
    PAUSE_MS = 100,         /* other policies: how long the program stands still at one op for an answer that may be near, before it moves on */
    PAUSES_MOST_MS = 2000,  /* sum of such pauses: time that a program of some seconds can spare for plans */
    SPARE_PART = 32         /* at most this part of the plannable memory is reserved */
};

static void put_in_force(struct device *d)
{
    const struct plan *p = &d->ex->plan->as_read;
    log_say(SAY_INFO, "plan installed: %zu steps, %.1f%% more device time expected, peak %s", p->n_steps,
            p->baseline_ns ? 100.0 * (double)(p->planned_ns - p->baseline_ns) / (double)p->baseline_ns : 0.0,
            rt_size((uint64_t)p->peak_bytes).text);
    account_new_plan(d);
    d->st.plans++;
    d->st.baseline_ns = (uint64_t)p->baseline_ns;
    if (!p->bound_ns) /* no bound is proved for a plan with copies, nor for every other one */
        d->st.bound_ns = 0;
    modes_go(d, MODE_STANDBY);
}

/* Starts the planner. The program moves on meanwhile: by swapping, or under the plan in force. */
static void start_planner(struct device *d)
{
    struct campaign *c = d->campaign;
    const bool beside = d->mode != MODE_PLAN;
    d->ex->learnt.rec.host_bytes_per_s = swap_bytes_per_s(d);
    log_say(SAY_DEBUG, "a plan for %s is asked for%s", rt_size(c->budget_bytes).text, c->with_copies ? ", with copies to the host" : "");
    int r = planner_start(d, &d->ex->learnt.rec, c->budget_bytes, c->with_copies || c->first, c->first ? PLANNER_AT_ONCE : c->patience);
    if (r && beside)
        log_say(SAY_DEBUG, "cannot start `remat plan` for a better plan (%s)", strerror(-r));
    else if (r) {
        story_warns(d, STORY_SWAPPING, "cannot start `remat plan` (%s): memory is held by swapping", strerror(-r));
        modes_no_plan(d);
    } else if (!beside)
        story_is(d, STORY_PLANNING, "planning for %s; %s", rt_size(d->mem.limit_bytes).text, modes_wait_for_plans(d) ? "the program waits" : "swapping meanwhile");
    c->wait = !r && !beside;
    c->beside = !r && beside;
}

/* A plan is asked for anew, with all memory that the limit leaves for one. */
static void ask_for_all(struct device *d)
{
    budget_take(d);
    start_planner(d);
}

static bool may_copy(const struct device *d) { return d->cfg->policy != POLICY_DTR && !d->campaign->with_copies; }

/* With copies, a plan for more memory may have no gap where recomputing alone had: with `gaps` the budget is all plannable memory again. */
static void ask_with_copies(struct device *d, bool gaps)
{
    d->campaign->with_copies = true;
    d->campaign->tries = 0;
    if (gaps)
        ask_for_all(d);
    else
        start_planner(d);
}

/* A plan's time with that of its gaps: each lacking chunk is mapped and unmapped in every iteration, while the host waits. */
static int64_t priced_ns(int64_t planned_ns, int lacking) { return planned_ns + (int64_t)lacking * GAP_NS; }

static bool better_than_best(const struct device *d, int lacking)
{
    const struct campaign *c = d->campaign;
    return !c->best.path[0] || priced_ns(d->ex->plan->as_read.planned_ns, lacking) < priced_ns(c->best.planned_ns, c->best.lacking);
}

static void keep_as_best(struct device *d, int lacking)
{
    struct campaign *c = d->campaign;
    snprintf(c->best.path, sizeof c->best.path, "%s.best", planner_path(d));
    c->best.lacking = lacking;
    c->best.planned_ns = d->ex->plan->as_read.planned_ns;
    c->best.copies = false;
    for (size_t i = 0; i < d->ex->plan->as_read.n_steps && !c->best.copies; i++)
        c->best.copies = d->ex->plan->as_read.steps[i].kind == PLAN_OFFLOAD;
    if (rename(planner_path(d), c->best.path))
        c->best.path[0] = 0;
}

/* The plan, by recomputing alone, costs so much that copies, which run beside the arithmetic, may cost less. */
static bool is_dear(const struct device *d)
{
    const struct plan *p = &d->ex->plan->as_read;
    return p->planned_ns - p->baseline_ns > p->baseline_ns / DEAR_PART;
}

/* Where this map has many gaps, recomputing alone for a little less memory seldom has a map without any, and a plan with copies may have one at once. A program
 * that waits for its plans has the time for both questions; a program that goes on meanwhile pays for these gaps in each iteration. */
static bool copies_first(const struct device *d, int lacking)
{
    return !modes_wait_for_plans(d) && may_copy(d) && lacking * (int64_t)GAP_NS > d->ex->plan->as_read.baseline_ns / DEAR_PART;
}

static void take_plan(struct device *d, const char *path);

/* Bytes by which the next plan's budget is smaller: the chunks that no map of the last plan could have had, or, where the colouring
 * failed to place the plan, ever more. */
static uint64_t shortened_by(const struct device *d, uint64_t arenas_grown)
{
    uint64_t chunks = 1ull << (d->campaign->tries - 1);
    chunks = chunks > arenas_grown ? chunks : arenas_grown;
    return (chunks > d->ex->map.beyond_chunks ? chunks : d->ex->map.beyond_chunks) << d->mem.shift;
}

/* The best plan so far takes the place of the installed one. True: it could not be installed. */
static bool follow_best(struct device *d)
{
    const int lacking = exec_load_plan(d, d->campaign->best.path, true), r = lacking ? lacking : install_plan(d);
    if (r >= 0)
        earlier_plan_note(d, d->campaign->best.path, r);
    if (r < 0) {
        story_warns(d, STORY_SWAPPING, "the plan could not be installed (%s): memory is held by swapping", strerror(-r));
        modes_no_plan(d);
    }
    return r < 0;
}

/* Asks for a good plan. The first plan, made in a moment, serves for the time that a good one takes; or none was found in a moment.
 * Where the first plan has copies, the good one may have some. */
static void ask_in_earnest(struct device *d)
{
    d->campaign->first = false;
    d->campaign->with_copies = d->campaign->best.path[0] && d->campaign->best.copies;
    d->campaign->tries = 0;
    start_planner(d);
}

/* The plan in force stays: the planner's last answer, for the whole time that it gets, saves too little. Copies are still to be tried where
 * the plan in force has some, or has gaps. */
static void keep_plan(struct device *d)
{
    const struct campaign *c = d->campaign;
    log_say(SAY_DEBUG, "the planner's answer is no better than the plan in force");
    if (may_copy(d) && (c->best.lacking || c->best.copies || is_dear(d)))
        ask_with_copies(d, c->best.lacking > 0);
}

/* The answer to a question asked beside a plan in force takes its place only where it is cheaper by more than proving it costs. */
static bool is_worth_it(struct device *d)
{
    const struct campaign *c = d->campaign;
    struct plan p;
    char err[160];
    if (!c->best.path[0] || plan_read(planner_path(d), &p, err, sizeof err))
        return true;
    const int64_t margin = c->best.lacking ? 0 : p.baseline_ns / BETTER_PART;
    const bool worth = p.planned_ns + margin < priced_ns(c->best.planned_ns, c->best.lacking);
    plan_free(&p);
    return worth;
}

/* The plan that the planner has just given is installed; its map lacks `lacking` chunks. Decides whether to follow it and whether to ask for another. */
static void weigh_plan(struct device *d, int lacking, uint64_t arenas_grown)
{
    struct campaign *c = d->campaign;
    if (c->first) {
        keep_as_best(d, lacking);
        put_in_force(d);
        ask_in_earnest(d);
        return;
    }
    const uint64_t peak = (uint64_t)d->ex->plan->as_read.peak_bytes; /* a budget above the peak might give the same plan again */
    const uint64_t most = peak < c->budget_bytes ? peak : c->budget_bytes;
    c->tries += lacking > 0;
    const uint64_t less = lacking ? shortened_by(d, arenas_grown) : 0;
    const bool for_less = lacking && c->tries < MAX_TRIES && less < most && !copies_first(d, lacking);
    const bool with_copies = !for_less && may_copy(d) && (lacking || is_dear(d));
    const bool better = better_than_best(d, lacking);
    if (!for_less && !with_copies) {
        if (better)
            put_in_force(d);
        else
            take_plan(d, c->best.path);
        return;
    }
    if (better)
        keep_as_best(d, lacking);
    if (!modes_wait_for_plans(d)) { /* the best plan so far is followed while a better one is made */
        if (!better && follow_best(d))
            return;
        put_in_force(d);
    }
    if (with_copies) {
        ask_with_copies(d, lacking > 0);
        return;
    }
    c->budget_bytes = most - less;
    start_planner(d);
}

/* Bytes of the record's buffers that no plan may move: a plan from outside counts them in its peak, the budget leaves them out. */
static uint64_t never_moved_bytes(const struct record *r)
{
    uint64_t bytes = 0;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        bytes += rec_may_move(&r->bufs[b]) ? 0 : r->bufs[b].bytes;
    return bytes;
}

/* --plan names a plan that cannot be followed: another is made, as without --plan. With --plan-only the program ends: it would go on for hours in a way
 * that the user has not asked for. */
static void refuse_given(struct device *d, const char *why)
{
    if (d->cfg->plan_only) {
        story_warns(d, STORY_SWAPPING, "%s cannot be followed: %s; --plan-only: the program ends here, with status 125", d->cfg->plan_path, why);
        _exit(125);
    }
    d->campaign->refused_given = true;
    install_drop(d);
    if (!d->mem.pressed) {
        story_warns(d, STORY_FITS, "%s cannot be followed: %s; nothing is planned, since the program fits the limit, or has none: --limit sets one", d->cfg->plan_path, why);
        modes_no_plan(d);
        return;
    }
    story_warns(d, STORY_PLANNING, "%s cannot be followed: %s; another plan is made", d->cfg->plan_path, why);
    planning_begin(d);
}

/* Takes the plan in the file `path`: installs it. If its map lacks chunks, asks again for less memory, and takes the best plan in the end. */
static void take_plan(struct device *d, const char *path)
{
    struct campaign *c = d->campaign;
    share_limit_for_plan(d, budget_could_use(d)); /* a group may have more to give, or less, than when the planner was asked */
    if (install_scratch(d)) {
        log_say(SAY_WARN, "no memory to set in-place state aside: memory is held by swapping");
        modes_no_plan(d);
        return;
    }
    uint64_t arenas = arena_chunks(d);
    bool users = path == d->cfg->plan_path;
    int lacking = exec_load_plan(d, path, !users);
    if (lacking && users) {
        refuse_given(d, lacking == -EINVAL ? "it was made for another program, or for other shapes" : strerror(-lacking));
        return;
    }
    if (!lacking)
        lacking = install_plan(d);
    if (lacking >= 0)
        earlier_plan_note(d, path, lacking);
    const uint64_t peak = (uint64_t)d->ex->plan->as_read.peak_bytes;
    if (lacking >= 0 && users && peak > c->budget_bytes + never_moved_bytes(&d->ex->learnt.rec)) {
        char why[160];
        snprintf(why, sizeof why, "it needs %s where %s can be planned with (limit %s)", rt_size(peak).text, rt_size(c->budget_bytes).text,
                 rt_size(d->mem.limit_bytes).text);
        refuse_given(d, why);
        return;
    }
    if (lacking < 0 && c->first) {
        ask_in_earnest(d);
        return;
    }
    if (lacking < 0) {
        story_warns(d, STORY_SWAPPING, "the plan could not be installed (%s): memory is held by swapping", strerror(-lacking));
        modes_no_plan(d);
        return;
    }
    const bool applies = !users || (uint64_t)d->ex->plan->as_read.limit_bytes >= c->budget_bytes;
    const uint64_t bound = applies ? (uint64_t)d->ex->plan->as_read.bound_ns : 0;
    d->st.bound_ns = bound && (!d->st.bound_ns || bound < d->st.bound_ns) ? bound : d->st.bound_ns; /* the smallest bound, proved for the most memory, holds for all there is */
    /* Chunks that the arenas took for the plan's small buffers: where the plan used its whole budget, its map lacks them already. */
    const uint64_t grown = arena_chunks(d) - arenas;
    if (lacking)
        log_say(SAY_DEBUG, "plan of %s lacks %d chunks, %llu of them whatever the map", rt_size(c->budget_bytes).text, lacking,
                (unsigned long long)d->ex->map.beyond_chunks);
    if (path == planner_path(d))
        weigh_plan(d, lacking, grown);
    else
        put_in_force(d);
}

/* Asks another question after one of which no plan came. False: no question is left. */
static bool ask_otherwise(struct device *d)
{
    struct campaign *c = d->campaign;
    if (planner_is_late(d))
        return false;
    if (c->first) {
        ask_in_earnest(d);
        return true;
    }
    if (may_copy(d) && (!c->best.path[0] || c->best.lacking || c->best.copies)) { /* recomputing alone does not meet the limit, or only with a map that lacks chunks */
        ask_with_copies(d, true);
        return true;
    }
    if (c->best.path[0])
        return false;
    if (c->reserved_bytes || c->beside_bytes) { /* the plan needs every chunk, then, though its map may lack some */
        c->reserved_bytes = c->beside_bytes = 0;
        ask_for_all(d);
        return true;
    }
    if (c->patience == PATIENCE_MOST)
        return false;
    /* On a busy machine the usual seconds may end before one schedule is whole. A limit that cannot be met is told at once,
     * however many seconds the planner has. */
    c->patience = PATIENCE_MOST;
    c->with_copies = false;
    budget_leave_for_map(d);
    ask_for_all(d);
    return true;
}

/* The program has moved on from the iteration that the planner was asked about. The first time learning begins anew at once. */
void planning_drop_question(struct device *d, const char *why)
{
    log_say(SAY_INFO, "%s: learning anew", why);
    story_is(d, STORY_SWAPPING, "%s: learning anew", why);
    if (d->campaign->outdated++)
        modes_quiet(d);
    modes_forget_question(d);
    modes_observe_again(d);
}

/* Only between two iterations: a plan installed in the middle of one finds memory that it counts on in use. */
void planning_take_answer(struct device *d)
{
    struct campaign *c = d->campaign;
    const bool beside = c->beside;
    const enum planner_state state = planner_poll(d);
    if (state != PLANNER_DONE && state != PLANNER_FAILED)
        return;
    c->beside = false;
    if (state == PLANNER_DONE && !leave_can_be_followed(d)) {
        planning_drop_question(d, "a plan has come for tensors that are no more");
        return;
    }
    if (state == PLANNER_DONE && beside && !is_worth_it(d))
        keep_plan(d);
    else if (state == PLANNER_DONE) {
        if (beside) {
            install_drop(d);
            modes_go(d, MODE_PLAN);
        }
        take_plan(d, planner_path(d));
    } else if (!ask_otherwise(d) && !beside) {
        if (c->best.path[0]) /* the best plan's map may lack some chunks: better than no plan */
            take_plan(d, c->best.path);
        else {
            planner_say_why(d);
            modes_no_plan(d);
        }
    }
    if (d->mode != MODE_PLAN && !c->beside)
        modes_forget_question(d);
}

/* Installs a plan that an earlier run has found for such a record and this limit. True: the plan is installed. */
static bool take_earlier(struct device *d)
{
    int then, lacking = -ENOENT;
    if (planner_folder(d) || !earlier_plan_find(d, planner_path(d), &then))
        return false;
    if (!install_scratch(d) && !exec_load_plan(d, planner_path(d), true) && (uint64_t)d->ex->plan->as_read.peak_bytes <= d->campaign->budget_bytes)
        lacking = install_plan(d);
    if (lacking >= 0 && lacking <= then) {
        d->st.plans_earlier++;
        log_say(SAY_INFO, "an earlier run has found a plan for this iteration");
        d->st.bound_ns = (uint64_t)d->ex->plan->as_read.bound_ns;
        put_in_force(d);
        modes_forget_question(d);
        return true;
    }
    install_drop(d);
    d->ex->now.have_plan = false;
    log_say(SAY_DEBUG, "the plan of an earlier run does not fit the memory there is now");
    return false;
}

void planning_begin(struct device *d)
{
    if (d->campaign->beside)
        modes_forget_question(d);
    d->campaign->boundary_op = d->op_count;
    modes_go(d, MODE_PLAN);
    d->campaign->tries = 0;
    d->campaign->with_copies = false;
    d->campaign->patience = 1;
    d->campaign->first = false;
    if (recording_has_structs(&d->ex->learnt))
        (void)room_for_decoys(d); /* before the budget is taken: the decoys' memory stays */
    if (d->mem.refused_at_bytes)
        (void)supply_chunk(d); /* whatever else held the device's memory may be gone */
    share_limit_for_plan(d, budget_could_use(d));
    if (d->campaign->reserved_bytes > budget_now(d) / SPARE_PART)
        d->campaign->reserved_bytes = 0;
    budget_leave_for_map(d);
    budget_take(d);
    d->campaign->grow_at = d->st.iterations + d->campaign->grow_wait;
    if (modes_have_given_plan(d))
        take_plan(d, d->cfg->plan_path);
    else if (!take_earlier(d)) {
        d->campaign->first = planner_is_slow(d, &d->ex->learnt.rec);
        start_planner(d);
    }
}

int planning_wait_ms(struct device *d)
{
    struct campaign *c = d->campaign;
    if (d->mode != MODE_PLAN || !planner_child(d))
        return 0;
    if (modes_wait_for_plans(d)) {
        const bool wait = c->wait;
        c->wait = false;
        return wait ? PLAN_WAIT_MS : 0;
    }
    if (c->boundary_op != d->op_count)
        return 0;
    const uint64_t most = PAUSE_MS * 1000000ull;
    c->paused_here_ns = c->paused_op == d->op_count ? c->paused_here_ns : 0;
    c->paused_op = d->op_count;
    c->pause_began_ns = stats_now_ns();
    return c->paused_here_ns < most && c->paused_ns < PAUSES_MOST_MS * 1000000ull ? (int)((most - c->paused_here_ns + 999999) / 1000000) : 0;
}
