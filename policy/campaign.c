/* The way to a plan in force: which mode follows which, when to learn, when to plan, when to give up. */
#include "policy/campaign.h"
#include "policy/learn/hashing.h"
#include "policy/learn/learn.h"
#include "policy/memory/arena.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/supply.h"
#include "policy/memory/swap.h"
#include "policy/op/ready.h"
#include "policy/memory/decoy.h"
#include "policy/learn/recording.h"
#include "policy/plan/cursor.h"
#include "policy/plan/exec.h"
#include "policy/plan/install.h"
#include "policy/plan/leave.h"
#include "policy/plan/steady.h"
#include "policy/plan/verify.h"
#include "policy/plan/unmapped.h"
#include "policy/process/nvtx.h"
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/share/share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TRIES = 5,          /* plans whose static map lacks chunks, before the best of them is taken; likewise with copies */
    DEAR_PART = 2,          /* a plan by recomputing alone that adds more than this part of the iteration is weighed against one with copies */
    GAP_NS = 500000,        /* some calls of tens of microseconds, and some more until the device has nothing to do with the chunk */
    PATIENCE_MOST = 8,      /* times its usual seconds, for a planner that found nothing in them */
    PLAN_WAIT_MS = 60000,   /* --policy plan: for each answer, with the mutex released */
    PAUSE_MS = 100,         /* else: how long the program stands still at one place for an answer that may be near; after that it moves on */
    PAUSES_MOST_MS = 2000,  /* and for all answers to one record: what a program of some seconds can spare for a plan */
    FIRST_BACKOFF = 32,     /* iterations */
    STARTS_MOST = 12,       /* of learning in a row, each given up since the iteration went another way */
    LEFT_TOO_OFTEN = 8,     /* times in a row, without one whole iteration in between */
    LEFT_UNTRIED = 4,       /* then a launch that no trial can tell anything of is in the way */
    UNTRIED_MOST = 3,       /* plans made anew for that, of one record: each of them takes a planner's time */
    LEFT_SUSPECT = 2,       /* then the plan is taken up only where an iteration like the recorded one has gone before */
    GROW_ITERATIONS = 8,    /* in force, before a plan is made anew because a group has more to give now; doubles each time */
    GROW_PART = 8,          /* and only for as much more as this part of what the plan has */
    TRY_AGAIN_OPS = 256,    /* between two attempts to give where nothing could move */
    LOOP_WITHIN = 4,        /* an iteration so many times longer than the last one is another */
    SPARE_PART = 32,        /* of what can be planned with, at most, is spared */
    MOVES_MAX = 4,          /* static maps made anew for one record; then iterations that map memory are lived with */
    RELEARN_PERIODS = 20    /* a new period must last this long before it takes a plan's place: it may be an evaluation */
};

struct campaign {
    int tries;
    uint64_t budget_bytes;
    uint64_t reserved_bytes;   /* not to be planned with: what has come to hold memory beside a plan may hold more */
    uint64_t beside_bytes;  /* not to be planned with: what any map takes beside what the planner counts (install.c) */
    struct {                /* of the plans that the planner has given for this record, the one to fall back on */
        char path[640];     /* "": none */
        int lacking;        /* chunks that its map lacks */
        int64_t planned_ns;
    } best;
    bool with_copies;       /* recompute alone cannot meet the limit: copies to the host take part */
    unsigned patience;      /* times the planner's usual seconds */
    bool wait;              /* the planner has just been started */
    bool beside;            /* the best plan so far is in force while a better one is asked for */
    uint64_t boundary_op;   /* device.op_count at which the latest iteration like the recorded one ended, or its plan was asked for */
    uint64_t looked_op;     /* of the latest look at the planner */
    uint64_t paused_op, paused_here_ns, paused_ns, pause_began_ns; /* the latest pause for an answer: at which device.op_count; how long there; of all for
                                                                      this record together; when its latest part began */
    uint64_t quiet_until;   /* device.op_count before which nothing is learnt */
    uint64_t quiet_period;  /* ops of the iteration that came to nothing last */
    uint64_t backoff;       /* iterations of quiet after the next failure; doubles */
    uint64_t left_op;       /* device.op_count when the plan was last left */
    uint32_t left_in_a_row; /* times without one whole iteration in between */
    uint32_t untried;       /* plans made anew for want of a trial, of this record */
    uint32_t outdated;      /* questions dropped in a row since the program has moved on from what was recorded */
    bool followed;          /* a whole iteration has followed a plan since the last one was recorded */
    uint32_t starts;        /* of learning that came to nothing, in a row */
    uint64_t last_sig;      /* of the last op outside a plan */
    uint64_t grow_at, grow_wait; /* device.st.iterations; iterations between two growths */
    uint64_t gave_nothing_at;    /* device.op_count at which a neighbour asked and nothing could move */
    uint32_t moves;         /* static maps made anew for this record */
    bool stopped;           /* see campaign_stop() */
};

/* ---- modes ------------------------------------------------------------------------------------------------------ */

#define TO(m) (1u << MODE_##m)
static const unsigned may_follow[] = {
    [MODE_OBSERVE] = TO(PROBE),
    [MODE_PROBE] = TO(OBSERVE) | TO(PLAN),
    [MODE_PLAN] = TO(OBSERVE) | TO(REHEARSE) | TO(STANDBY),
    [MODE_REHEARSE] = TO(ENFORCE) | TO(STANDBY) | TO(PLAN) | TO(OBSERVE),
    [MODE_ENFORCE] = TO(STANDBY) | TO(OBSERVE) | TO(PLAN),
    [MODE_STANDBY] = TO(REHEARSE) | TO(ENFORCE) | TO(OBSERVE) | TO(PROBE) | TO(PLAN),
};
#undef TO

static void go(struct device *d, enum rt_mode to)
{
    if (d->mode != to && !(may_follow[d->mode] >> to & 1))
        log_say(SAY_ERROR, "mode %d follows mode %d, which it must not: please report this", (int)to, (int)d->mode);
    d->mode = to;
    if (d->status)
        status_set_mode(d->status, device_mode_name(d, d->mode));
    nvtx_mode(device_mode_name(d, d->mode));
}

int campaign_init(struct device *d)
{
    d->campaign = calloc(1, sizeof *d->campaign);
    if (!d->campaign)
        return -ENOMEM;
    d->campaign->backoff = FIRST_BACKOFF;
    d->campaign->grow_wait = GROW_ITERATIONS;
    return 0;
}

/* A plan is worth its while where memory has been short: the limit was met by evicting something. */
static bool wants_plan(const struct device *d)
{
    const struct config *c = d->cfg;
    return (c->policy == POLICY_AUTO || c->policy == POLICY_PLAN || c->policy == POLICY_DTR) && !c->trace_mode &&
           (d->mem.pressed || c->plan_path[0]) && d->op_count >= d->campaign->quiet_until;
}

/* Nothing is learnt for a while, and for twice as long the next time. */
static void be_quiet_after(struct device *d, uint64_t period)
{
    struct campaign *c = d->campaign;
    if (period > LOOP_WITHIN * c->quiet_period)
        c->backoff = FIRST_BACKOFF; /* what was learnt before was a loop within this iteration: it says nothing of this one */
    c->quiet_period = period;
    c->quiet_until = d->op_count + c->backoff * period;
    if (c->backoff < UINT32_MAX)
        c->backoff *= 2;
}

static void be_quiet(struct device *d)
{
    be_quiet_after(d, learn_period(d) ? learn_period(d) : d->ex->learnt.rec.n_ops ? d->ex->learnt.rec.n_ops : 1000);
}

/* `--policy plan` asks for plans and nothing else: the program stands still until they are there. */
static bool waits_for_plans(const struct device *d) { return d->cfg->policy == POLICY_PLAN; }

/* Nobody waits any more for what the planner was asked: it ends, and its files go. */
static void forget_question(struct device *d)
{
    struct campaign *c = d->campaign;
    if (c->best.path[0])
        remove(c->best.path);
    c->best.path[0] = 0;
    planner_stop(d);
    c->wait = c->beside = false;
}

/* What was learnt is of no use, or was not learnt to its end. */
static void observe(struct device *d)
{
    if (d->campaign->beside)
        forget_question(d);
    exec_clear(d);
    go(d, MODE_OBSERVE);
}

static void observe_again(struct device *d)
{
    observe(d);
    learn_reset(d);
}

static void forget_iteration(struct device *d)
{
    if (d->mode == MODE_PLAN)
        forget_question(d);
    if (d->mode != MODE_OBSERVE)
        observe_again(d);
}

static void no_plan(struct device *d)
{
    be_quiet(d);
    observe_again(d);
}

/* To the neighbours of the group. No plan is installed, and nothing is being learnt. */
static void give(struct device *d, uint64_t bytes)
{
    bool blocked;
    uint64_t given = room_give(d, bytes);
    d->st.gave_back_bytes += given;
    d->campaign->gave_nothing_at = given ? 0 : d->op_count;
    log_say(SAY_INFO, "%s given back to the group, of %s that are owed", rt_size(given).text, rt_size(bytes).text);
    share_owed(d, &blocked); /* whether some of it is left */
}

/* What the recorded iteration takes with nothing evicted, and a sixteenth for what the colouring wastes. */
static uint64_t could_use(struct device *d)
{
    uint64_t pages = recording_peak_pages(d, &d->ex->learnt.rec, false) + recording_peak_pages(d, &d->ex->learnt.rec, true) + arena_chunks(d);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].kind == SLOT_LARGE && d->mem.slots[i].pins && d->mem.slots[i].live && d->mem.slots[i].rec_buf < 0)
            pages += d->mem.slots[i].n_pages;
    return ((pages + pages / 16 + 1) << d->mem.shift) + d->mem.foreign_bytes + d->mem.own_bytes;
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static uint64_t budget_now(struct device *d)
{
    arena_trim(d);
    uint64_t all = supply_max_chunks(d), gone = arena_chunks(d);
    for (uint32_t i = 0; i < d->mem.n_slots; i++)
        if (d->mem.slots[i].kind == SLOT_LARGE && d->mem.slots[i].pins && d->mem.slots[i].live && d->mem.slots[i].rec_buf < 0)
            gone += d->mem.slots[i].n_pages;
    gone += recording_peak_pages(d, &d->ex->learnt.rec, true);
    return (all > gone ? all - gone : 0) << d->mem.shift;
}

static void put_in_force(struct device *d)
{
    const struct plan *p = &d->ex->plan->as_read;
    log_say(SAY_INFO, "plan installed: %zu steps, %.1f%% more device time expected, peak %s", p->n_steps,
            p->baseline_ns ? 100.0 * (double)(p->planned_ns - p->baseline_ns) / (double)p->baseline_ns : 0.0,
            rt_size((uint64_t)p->peak_bytes).text);
    go(d, MODE_STANDBY);
}

/* The program moves on meanwhile: by swapping, or, where a plan is in force, under that. */
static void start_planner(struct device *d)
{
    struct campaign *c = d->campaign;
    const bool beside = d->mode != MODE_PLAN;
    d->ex->learnt.rec.host_bytes_per_s = swap_bytes_per_s(d);
    log_say(SAY_DEBUG, "a plan for %s is asked for%s", rt_size(c->budget_bytes).text, c->with_copies ? ", with copies to the host" : "");
    int r = planner_start(d, &d->ex->learnt.rec, c->budget_bytes, c->with_copies, c->patience);
    if (r && beside)
        log_say(SAY_DEBUG, "cannot start `remat plan` for a better plan (%s)", strerror(-r));
    else if (r) {
        log_say(SAY_WARN, "cannot start `remat plan` (%s): memory is held by swapping", strerror(-r));
        no_plan(d);
    }
    c->wait = !r && !beside;
    c->beside = !r && beside;
}

/* Budget = plannable memory - reserved - beside. */
static void take_budget(struct device *d)
{
    const uint64_t all = budget_now(d), not = d->campaign->reserved_bytes + d->campaign->beside_bytes;
    d->campaign->budget_bytes = all > not ? all - not : 0;
}

static void leave_for_map(struct device *d)
{
    const uint64_t all = budget_now(d); /* first: empty arena pages go, and are not counted as room */
    d->campaign->beside_bytes = install_pages_beside(d) << d->mem.shift;
    if (d->campaign->beside_bytes > all / 2)
        d->campaign->beside_bytes = 0;
}

/* Another question, for all that it may be. */
static void ask_for_all(struct device *d)
{
    take_budget(d);
    start_planner(d);
}

static bool may_copy(const struct device *d) { return d->cfg->policy != POLICY_DTR && !d->campaign->with_copies; }

/* With copies a plan for more may have no gap where recomputing alone had: `gaps` begins with all there is again. */
static void ask_with_copies(struct device *d, bool gaps)
{
    d->campaign->with_copies = true;
    d->campaign->tries = 0;
    if (gaps)
        ask_for_all(d);
    else
        start_planner(d);
}

/* What a plan adds, and what its gaps do: each lacking chunk is mapped and unmapped in every iteration, which the host waits for. */
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
    if (rename(planner_path(d), c->best.path))
        c->best.path[0] = 0;
}

/* Recomputing alone may be possible and cost more than copies do, beside the arithmetic. */
static bool is_dear(const struct device *d)
{
    const struct plan *p = &d->ex->plan->as_read;
    return p->planned_ns - p->baseline_ns > p->baseline_ns / DEAR_PART;
}

static void take_plan(struct device *d, const char *path);

/* By how much less the next plan is to do with than the last one: what any map of that would have lacked, or, where it was the colouring
 * that did not come out, ever more. */
static uint64_t shortened_by(const struct device *d, uint64_t arenas_grown)
{
    uint64_t chunks = 1ull << (d->campaign->tries - 1);
    chunks = chunks > arenas_grown ? chunks : arenas_grown;
    return (chunks > d->ex->map.beyond_chunks ? chunks : d->ex->map.beyond_chunks) << d->mem.shift;
}

/* The best plan so far takes the place of the one that is installed. True: it cannot. */
static bool follow_best(struct device *d)
{
    const int lacking = exec_load_plan(d, d->campaign->best.path, true), r = lacking ? lacking : install_plan(d);
    if (r < 0) {
        log_say(SAY_WARN, "the plan could not be installed (%s): memory is held by swapping", strerror(-r));
        no_plan(d);
    }
    return r < 0;
}

/* The plan that the planner has just given is installed; its map lacks so many chunks. */
static void weigh_plan(struct device *d, int lacking, uint64_t arenas_grown)
{
    struct campaign *c = d->campaign;
    const uint64_t peak = (uint64_t)d->ex->plan->as_read.peak_bytes; /* for a little less than the budget there might be the same plan */
    const uint64_t most = peak < c->budget_bytes ? peak : c->budget_bytes;
    c->tries += lacking > 0;
    const uint64_t less = lacking ? shortened_by(d, arenas_grown) : 0;
    const bool for_less = lacking && c->tries < MAX_TRIES && less < most;
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
    if (!waits_for_plans(d)) { /* the best so far is followed while a better one is thought of */
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

/* A plan is there: map it. If its colouring lacks chunks, ask again for less, and take the best in the end. */
static void take_plan(struct device *d, const char *path)
{
    struct campaign *c = d->campaign;
    share_limit_for_plan(d, could_use(d)); /* what a group can give may have changed meanwhile */
    uint64_t arenas = arena_chunks(d);
    bool users = path == d->cfg->plan_path;
    int lacking = exec_load_plan(d, path, !users);
    if (!lacking)
        lacking = install_plan(d);
    if (lacking < 0) {
        log_say(SAY_WARN, "the plan could not be installed (%s): memory is held by swapping", strerror(-lacking));
        no_plan(d);
        return;
    }
    /* What the arenas took for the plan's small buffers is lacking already where the plan used all that it was given. */
    const uint64_t grown = arena_chunks(d) - arenas;
    if (lacking)
        log_say(SAY_DEBUG, "plan of %s lacks %d chunks, %llu of them whatever the map", rt_size(c->budget_bytes).text, lacking,
                (unsigned long long)d->ex->map.beyond_chunks);
    if (users && (uint64_t)d->ex->plan->as_read.peak_bytes > c->budget_bytes) {
        log_say(SAY_WARN, "%s needs %s where %s can be planned with (limit %s): it is not used; raise --limit, or make "
                "a plan for less; memory is held by swapping", path, rt_size((uint64_t)d->ex->plan->as_read.peak_bytes).text, rt_size(c->budget_bytes).text,
                rt_size(d->mem.limit_bytes).text);
        no_plan(d);
        return;
    }
    if (path == planner_path(d))
        weigh_plan(d, lacking, grown);
    else
        put_in_force(d);
}

/* What is asked once no plan has come of the last question. False: nothing more. */
static bool ask_otherwise(struct device *d)
{
    struct campaign *c = d->campaign;
    if (planner_is_late(d))
        return false;
    if (may_copy(d) && (!c->best.path[0] || c->best.lacking)) { /* recompute alone does not reach it, or not with less than a map that lacks chunks */
        ask_with_copies(d, true);
        return true;
    }
    if (c->best.path[0])
        return false;
    if (c->reserved_bytes || c->beside_bytes) { /* every chunk is needed, then, though a map of all of them may lack some */
        c->reserved_bytes = c->beside_bytes = 0;
        ask_for_all(d);
        return true;
    }
    if (c->patience == PATIENCE_MOST)
        return false;
    /* On a busy machine the usual seconds may end before one schedule is whole. A limit that cannot be met is told at once
     * however many there are. */
    c->patience = PATIENCE_MOST;
    c->with_copies = false;
    leave_for_map(d);
    ask_for_all(d);
    return true;
}

/* The program has moved on from what a plan was asked for. The first time it is learnt anew at once. */
static void drop_question(struct device *d, const char *why)
{
    log_say(SAY_INFO, "%s: learning anew", why);
    if (d->campaign->outdated++)
        be_quiet(d);
    forget_question(d);
    observe_again(d);
}

/* Only between two iterations: what is installed in the middle of one finds memory that it counts on in use. */
static void take_answer(struct device *d)
{
    struct campaign *c = d->campaign;
    const bool beside = c->beside;
    const enum planner_state state = planner_poll(d);
    if (state != PLANNER_DONE && state != PLANNER_FAILED)
        return;
    c->beside = false;
    if (state == PLANNER_DONE && !leave_can_be_followed(d)) {
        drop_question(d, "a plan has come for tensors that are no more");
        return;
    }
    if (state == PLANNER_DONE) {
        if (beside) {
            install_drop(d);
            go(d, MODE_PLAN);
        }
        take_plan(d, planner_path(d));
    } else if (!ask_otherwise(d) && !beside) {
        if (c->best.path[0]) /* whose map lacks some chunks, perhaps: better than none */
            take_plan(d, c->best.path);
        else {
            planner_say_why(d);
            no_plan(d);
        }
    }
    if (d->mode != MODE_PLAN && !c->beside)
        forget_question(d);
}

static void plan_now(struct device *d)
{
    if (d->campaign->beside)
        forget_question(d);
    d->campaign->boundary_op = d->op_count;
    go(d, MODE_PLAN);
    d->campaign->tries = 0;
    d->campaign->with_copies = false;
    d->campaign->patience = 1;
    if (install_scratch(d)) { /* before the budget: it stays */
        log_say(SAY_WARN, "no memory to set in-place state aside: memory is held by swapping");
        no_plan(d);
        return;
    }
    if (recording_has_structs(&d->ex->learnt))
        (void)room_for_decoys(d); /* likewise */
    share_limit_for_plan(d, could_use(d));
    if (d->campaign->reserved_bytes > budget_now(d) / SPARE_PART)
        d->campaign->reserved_bytes = 0;
    leave_for_map(d);
    take_budget(d);
    d->campaign->grow_at = d->st.iterations + d->campaign->grow_wait;
    if (d->cfg->plan_path[0])
        take_plan(d, d->cfg->plan_path);
    else
        start_planner(d);
}

int campaign_wait_ms(struct device *d)
{
    struct campaign *c = d->campaign;
    if (d->mode != MODE_PLAN || !planner_child(d))
        return 0;
    if (waits_for_plans(d)) {
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

static void learnt(struct device *d)
{
    if (learn_finish(d) || exec_index(d)) {
        log_say(SAY_WARN, "host memory is exhausted: memory is held by swapping");
        no_plan(d);
        return;
    }
    d->campaign->moves = 0;
    d->campaign->followed = false;
    d->campaign->untried = 0;
    d->campaign->reserved_bytes = 0;
    d->campaign->starts = 0;
    d->campaign->paused_here_ns = d->campaign->paused_ns = 0;
    uint64_t peak = recording_peak_pages(d, &d->ex->learnt.rec, false) << d->mem.shift;
    bool blocked;
    uint64_t owed = share_called(d) ? share_owed(d, &blocked) : 0;
    if (owed)
        give(d, owed);
    share_limit_for_plan(d, could_use(d));
    if (wants_plan(d) && (peak > budget_now(d) || d->cfg->plan_path[0])) {
        plan_now(d);
        return;
    }
    no_plan(d); /* the iteration fits: it is looked at again, ever more rarely */
}

/* ---- a plan in force --------------------------------------------------------------------------------------------- */

static void follow(struct device *d)
{
    go(d, d->ex->now.proved ? MODE_ENFORCE : MODE_REHEARSE);
    const unsigned t = stream_alive(d, d->ex->learnt.caps[0].t);
    stats_boundary(d, t, d->mode == MODE_ENFORCE);
    nvtx_iteration(d->st.iterations, device_mode_name(d, d->mode));
    if (d->mode == MODE_ENFORCE && verify_begin(d, t))
        d->ex->now.code = device_failure(d);
}

/* The installed plan goes, for one that fits what this process may hold now; the recorded iteration stays. */
static void plan_anew(struct device *d, const char *why)
{
    log_say(SAY_INFO, "the plan is made anew: %s", why);
    install_drop(d);
    plan_now(d);
}

/* The plan has been left (plan/leave.c): everything the program holds is readable again. */
static void has_left(struct device *d)
{
    struct campaign *c = d->campaign;
    c->left_op = d->op_count;
    go(d, MODE_STANDBY);
    learn_reset(d);
    if (d->ex->now.code)
        return;
    c->left_in_a_row++;
    if (c->followed && c->left_in_a_row > LEFT_SUSPECT && !leave_can_be_followed(d)) {
        log_say(SAY_INFO, "tensors that every iteration works on are others now: learning anew");
        c->followed = false;
        c->left_in_a_row = 0;
        observe_again(d);
        return;
    }
    if (c->left_in_a_row >= LEFT_UNTRIED && d->ex->now.left_untried && !d->cfg->plan_path[0] && c->untried < UNTRIED_MOST &&
        leave_trust_no_more(d)) {
        c->untried++;
        c->left_in_a_row = 0;
        plan_anew(d, "no trial can tell whether a launch still does what it did: it is not to be replayed");
        return;
    }
    if (c->left_in_a_row < LEFT_TOO_OFTEN)
        return;
    c->left_in_a_row = 0;
    log_say(SAY_INFO, "the plan was left %d times without one whole iteration: it is given up, memory is held by swapping; learning "
            "anew in %llu iterations", LEFT_TOO_OFTEN, (unsigned long long)c->backoff);
    no_plan(d);
}

/* ---- sharing ------------------------------------------------------------------------------------------------------- */

void campaign_give(struct device *d)
{
    bool blocked, planned = d->mode == MODE_STANDBY && d->ex->map.done;
    uint64_t owed = share_owed(d, &blocked), tried = d->campaign->gave_nothing_at;
    if (!owed || d->capturing || (tried && d->op_count - tried < TRY_AGAIN_OPS))
        return;
    if ((campaign_follows_plan(d) || d->mode == MODE_PROBE) && !blocked)
        return; /* at the iteration's end */
    if (campaign_follows_plan(d) || d->mode == MODE_PROBE) {
        planned = campaign_follows_plan(d);
        campaign_leave(d, "a neighbour cannot go on without its share");
    }
    if (planned && d->mode == MODE_STANDBY)
        install_drop(d);
    give(d, owed);
    if (planned && d->mode == MODE_STANDBY)
        plan_now(d);
}

/* At the end of an iteration under a plan: memory is given where it is owed, and taken where there is enough more of it. True:
 * another plan is on its way. */
static bool share_anew(struct device *d)
{
    struct campaign *c = d->campaign;
    bool blocked;
    uint64_t owed = share_called(d) ? share_owed(d, &blocked) : 0;
    if (owed) {
        install_drop(d);
        give(d, owed);
        plan_anew(d, "a neighbour has asked for its share");
        return true;
    }
    if (!d->share || d->st.iterations < c->grow_at || d->ex->plan->as_read.planned_ns <= d->ex->plan->as_read.baseline_ns)
        return false;
    uint64_t ceiling = share_ceiling(d), most = could_use(d);
    if ((ceiling < most ? ceiling : most) < d->mem.plan_limit_bytes + d->mem.plan_limit_bytes / GROW_PART)
        return false;
    c->grow_wait *= 2;
    plan_anew(d, "the group has more to give");
    return true;
}

/* The static map counted on chunks that something else has now: a tensor that was swapped while the plan was left, small memory that
 * has grown. What the plan may use is the rest; if that is too little for it, another is made. */
static void map_anew(struct device *d)
{
    if (d->campaign->moves++ == MOVES_MAX)
        log_say(SAY_DEBUG, "the map of the plan was made anew %d times; now its iterations map memory", MOVES_MAX);
    if (d->campaign->moves > MOVES_MAX)
        return;
    int lacking = install_plan(d);
    log_say(SAY_DEBUG, "the map of the plan is made anew; it lacks %d chunks", lacking);
    if (lacking < 0) {
        log_say(SAY_WARN, "the plan could not be installed (%s): memory is held by swapping", strerror(-lacking));
        no_plan(d);
    } else if (lacking && !d->cfg->plan_path[0]) {
        d->campaign->reserved_bytes += 2 * ((uint64_t)lacking << d->mem.shift);
        plan_anew(d, "something else has come to hold memory that it counted on");
    }
}

static void end_iteration(struct device *d)
{
    enum exec_end end = exec_end_iteration(d);
    d->campaign->left_in_a_row = d->campaign->outdated = 0;
    d->campaign->followed = true;
    if (end == EXEC_END_BANNED) { /* once more, without the op whose replay differed */
        install_drop(d);
        plan_now(d);
    } else if (end == EXEC_END_MOVED)
        map_anew(d);
    else if (end == EXEC_END_UNPROVABLE) {
        log_say(SAY_WARN, "the plan could not be proved (its replays could not all be compared): memory is held by swapping");
        no_plan(d);
    } else if (end == EXEC_END_WHOLE && d->share && share_anew(d))
        return;
    else if (end == EXEC_END_WHOLE && d->campaign->beside)
        take_answer(d);
    if (d->mode == MODE_STANDBY || campaign_follows_plan(d)) {
        cursor_begin(d);
        follow(d);
    }
}

void campaign_leave(struct device *d, const char *why)
{
    if (campaign_follows_plan(d)) {
        leave_plan(d, why, NULL);
        has_left(d);
    } else if (d->mode == MODE_PROBE) {
        learn_abandon(d, why);
        observe(d);
    }
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
    forget_iteration(d);
    d->campaign->stopped = true;
    log_say(SAY_INFO, "no plan is made any more (%s): memory is held by swapping", why);
}

void campaign_distrusts(struct device *d, const char *why)
{
    if (d->mode == MODE_OBSERVE || d->mode == MODE_PROBE) /* what is pinned when a record is finished is known to it */
        return;
    const bool followed = campaign_follows_plan(d);
    campaign_leave(d, why);
    if (followed && d->drv->cuCtxSynchronize() != CUDA_SUCCESS) /* replays that read it as it is yet */
        log_say(SAY_DEBUG, "the device failed before memory changed that replays read");
    forget_iteration(d);
}

void campaign_unloads(struct device *d, CUmodule module, CUlibrary library)
{
    bool launches = d->mode == MODE_PROBE; /* it may */
    for (uint32_t i = 0; i < d->ex->learnt.rec.n_ops && i < d->ex->learnt.n_caps && !launches; i++)
        launches = d->ex->learnt.caps[i].kind == OP_KERNEL && d->ex->learnt.caps[i].func && func_is_of(d->ex->learnt.caps[i].func, module, library);
    if (!launches)
        return;
    const bool followed = campaign_follows_plan(d);
    campaign_leave(d, "code that the recorded iteration launches is unloaded");
    if (followed && d->drv->cuCtxSynchronize() != CUDA_SUCCESS)
        log_say(SAY_DEBUG, "the device failed before code was unloaded");
    forget_iteration(d);
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

/* A plan is awaited, and none is followed. */
static void await(struct device *d)
{
    struct campaign *c = d->campaign;
    if (c->boundary_op == d->op_count && c->looked_op != d->op_count) {
        c->looked_op = d->op_count;
        take_answer(d);
    } else if (d->op_count - c->boundary_op > RELEARN_PERIODS * (uint64_t)d->ex->learnt.rec.n_ops)
        drop_question(d, "the program does something else than what a plan was asked for");
}

void campaign_turn(struct device *d)
{
    if (d->capturing)
        return;
    if (campaign_follows_plan(d) && d->ex->now.ended)
        end_iteration(d);
    else if (d->mode == MODE_PROBE && learn_complete(d))
        learnt(d);
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
    if (!waits_for_plans(d) && d->op_count != op_count)
        return;
    take_answer(d);
    if (d->mode == MODE_STANDBY && d->ex->map.done && d->op_count == op_count) { /* still at the boundary: go on at once */
        cursor_begin(d);
        follow(d);
    }
}

/* With a plan at hand a new period must have gone on for long before it is learnt instead. */
static bool may_learn(const struct device *d)
{
    if (d->mode == MODE_OBSERVE)
        return true;
    uint64_t n = d->ex->learnt.rec.n_ops > learn_period(d) ? d->ex->learnt.rec.n_ops : learn_period(d);
    return d->mode == MODE_STANDBY && d->op_count - d->campaign->left_op > RELEARN_PERIODS * n;
}

bool campaign_wants_code(const struct device *d)
{
    return !hashing_is_loaded(d) && !d->capturing && !d->campaign->stopped && (wants_plan(d) || learn_wants_trace(d));
}

static int outside_drv(struct device *d, struct rt_op *op)
{
    int r = run_plain_drv(d, op);
    if (op_reads_for_host(op) || d->campaign->stopped)
        return r;
    d->campaign->last_sig = op->sig;
    bool wanted = wants_plan(d) || learn_wants_trace(d);
    if (!learn_watch(d, op, wanted))
        return r;
    if (d->mode != MODE_OBSERVE && learn_period(d) == d->ex->learnt.rec.period && op->sig == recording_last_sig(&d->ex->learnt.rec)) {
        d->campaign->boundary_op = d->op_count + 1;
        if (d->mode == MODE_PLAN)
            learn_count_iteration(d, op->t);
    }
    if (!may_learn(d) || !hashing_is_loaded(d)) /* without it: at the next iteration's end */
        return r;
    learn_count_iteration(d, op->t);
    int e = learn_prepare(d);
    if (!e) {
        if (d->campaign->beside)
            forget_question(d);
        exec_clear(d);
        e = learn_begin(d);
        go(d, e ? MODE_OBSERVE : MODE_PROBE);
    } else if (e == -ENOTSUP)
        d->campaign->quiet_until = UINT64_MAX; /* this device cannot learn */
    if (e)
        learn_reset(d);
    return r;
}

/* The recorded iteration is no longer what the program does with its memory. */
static bool is_overtaken(struct device *d, const struct rt_op *op)
{
    return d->mode == MODE_STANDBY && exec_may_resume(d, op) && exec_reached_since(d);
}

/* The batches of an evaluation begin like an iteration, each of them. */
static bool may_take_up(struct device *d, const struct rt_op *op)
{
    const struct campaign *c = d->campaign;
    return d->mode == MODE_STANDBY && exec_may_resume(d, op) && !exec_reached_since(d) &&
           (c->left_in_a_row < LEFT_SUSPECT || c->last_sig == recording_last_sig(&d->ex->learnt.rec));
}

bool campaign_runs_plainly(struct device *d, const struct rt_op *op)
{
    return !d->capturing && !d->ex->now.code && !d->broken && !campaign_follows_plan(d) && !may_take_up(d, op);
}

static int decide_drv(struct device *d, struct rt_op *op)
{
    if (d->ex->now.code)
        return d->ex->now.code;
    if (is_overtaken(d, op)) {
        log_say(SAY_INFO, "learning starts over: memory holds addresses, or can be reached through them, that did not before");
        forget_iteration(d);
    } else if (may_take_up(d, op)) {
        exec_resume(d);
        follow(d);
    }
    if (campaign_follows_plan(d)) {
        enum exec_left left;
        int r = exec_op_drv(d, op, &left);
        if (left == EXEC_STAYED)
            return r;
        has_left(d);
        return left == EXEC_LEFT_AFTER ? r : d->ex->now.code ? d->ex->now.code : outside_drv(d, op);
    }
    if (d->mode == MODE_PROBE) {
        enum learn_step step;
        const uint64_t period = learn_period(d);
        int r = learn_op_drv(d, op, &step);
        if (step != LEARN_ON)
            observe(d);
        if (step == LEARN_NOT_RUN && ++d->campaign->starts == STARTS_MOST) {
            d->campaign->starts = 0;
            be_quiet_after(d, period);
        }
        return step == LEARN_NOT_RUN ? outside_drv(d, op) : r;
    }
    return outside_drv(d, op);
}

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
        has_left(d);
    return s == STEADY_RAN || s == STEADY_REFUSED;
}
