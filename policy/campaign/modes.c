/* modes.c: see modes.h. */
#include "policy/campaign/modes.h"

#include "policy/learn/learn.h"
#include "policy/memory/decoy.h"
#include "policy/memory/supply.h"
#include "policy/plan/exec.h"
#include "policy/process/nvtx.h"
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/process/story.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FIRST_BACKOFF = 32, /* iterations */
    GROW_ITERATIONS = 8, /* iterations in force before a plan is made anew because a group has more to give; doubles each time */
    LOOP_WITHIN = 4     /* an iteration with more than so many times the ops of quiet_period is another one */
};

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

static void tell_plan(struct device *d)
{
    const struct plan *p = &d->ex->plan->as_read;
    const int64_t more = p->planned_ns - p->baseline_ns;
    const uint64_t tenths = p->baseline_ns > 0 && more > 0 ? (uint64_t)(1000 * (double)more / (double)p->baseline_ns + 0.5) : 0;
    story_is_which(d, STORY_IN_FORCE, tenths, "plan in force from iteration %llu on: %llu.%llu %% more device time expected, %s instead of %s", (unsigned long long)d->st.iterations + 1,
             (unsigned long long)tenths / 10, (unsigned long long)tenths % 10, rt_size(supply_for_plan_bytes(d)).text, rt_size(d->st.native_peak_bytes).text);
}

void modes_go(struct device *d, enum rt_mode to)
{
    if (d->mode != to && !(may_follow[d->mode] >> to & 1))
        log_say(SAY_ERROR, "mode %d follows mode %d, which it must not: please report this", (int)to, (int)d->mode);
    if (d->mode == MODE_PROBE && to != d->mode && d->st.lesson_since_ns) {
        d->st.lessons_ns += stats_now_ns() - d->st.lesson_since_ns;
        d->st.lesson_since_ns = 0;
    }
    if (to == MODE_PROBE && d->mode != to) {
        d->st.lesson_since_ns = stats_now_ns();
        stats_not_steady(d); /* a lesson takes longer than other iterations */
        story_is(d, STORY_LEARNING, "learning what the %llu launches of an iteration read and write: over when they have run once more",
                 (unsigned long long)learn_period(d));
    }
    if (to == MODE_ENFORCE && d->mode != to) {
        if (!d->st.first_enforced_ns) {
            d->st.first_enforced_ns = stats_now_ns() - d->st.first_op_ns;
            d->st.first_enforced_iteration = d->st.iterations;
        }
        tell_plan(d);
    }
    d->mode = to;
    if (d->status)
        status_set_mode(d->status, device_mode_name(d, d->mode));
    nvtx_mode(device_mode_name(d, d->mode));
}

/* A plan is wanted where memory has been short: the limit was met by evicting something. */
bool modes_wants_plan(const struct device *d)
{
    const struct config *c = d->cfg;
    return (c->policy == POLICY_AUTO || c->policy == POLICY_PLAN || c->policy == POLICY_DTR) && !c->trace_mode &&
           (d->mem.pressed || modes_have_given_plan(d)) && d->op_count >= d->campaign->quiet_until;
}

/* Nothing is learnt for a while, and for twice as long the next time. */
void modes_quiet_after(struct device *d, uint64_t period)
{
    struct campaign *c = d->campaign;
    if (period > LOOP_WITHIN * c->quiet_period)
        c->backoff = FIRST_BACKOFF; /* the iteration learnt before was a loop within this one, of which it says nothing */
    c->quiet_period = period;
    c->quiet_until = d->op_count + c->backoff * period;
    if (c->backoff < UINT32_MAX)
        c->backoff *= 2;
}

void modes_quiet(struct device *d)
{
    modes_quiet_after(d, learn_period(d) ? learn_period(d) : d->ex->learnt.rec.n_ops ? d->ex->learnt.rec.n_ops : 1000);
}

/* `--policy plan` asks for plans and nothing else: the program stands still until the planner has answered. */
bool modes_wait_for_plans(const struct device *d) { return d->cfg->policy == POLICY_PLAN; }

/* The question to the planner is dropped: the planner ends, and its files go. */
void modes_forget_question(struct device *d)
{
    struct campaign *c = d->campaign;
    if (c->best.path[0])
        remove(c->best.path);
    c->best.path[0] = 0;
    planner_stop(d);
    c->wait = c->beside = false;
}

/* Back to MODE_OBSERVE: the lesson is of no use, or did not come to its end. */
void modes_observe(struct device *d)
{
    if (d->campaign->beside)
        modes_forget_question(d);
    exec_clear(d);
    (void)decoy_give(d); /* the decoy page goes too: swapping may need every page */
    modes_go(d, MODE_OBSERVE);
}

void modes_observe_again(struct device *d)
{
    modes_observe(d);
    learn_reset(d);
}

void modes_forget_iteration(struct device *d)
{
    if (d->mode == MODE_PLAN)
        modes_forget_question(d);
    if (d->mode != MODE_OBSERVE)
        modes_observe_again(d);
}

void modes_no_plan(struct device *d)
{
    modes_quiet(d);
    modes_observe_again(d);
}

int modes_init(struct device *d)
{
    d->campaign = calloc(1, sizeof *d->campaign);
    if (!d->campaign)
        return -ENOMEM;
    d->campaign->backoff = FIRST_BACKOFF;
    d->campaign->grow_wait = GROW_ITERATIONS;
    d->campaign->lesson_is_near = account_is_worth_it(d, 0);
    return 0;
}
