/* summary.c: see summary.h. */
#include "policy/process/summary.h"

#include "policy/process/stats.h"
#include "policy/process/status.h"
#include "policy/process/story.h"

#include <stdio.h>
#include <string.h>

static const uint64_t PS = 1000; /* picoseconds in a nanosecond */

static bool is_limited(const struct device *d) { return d->mem.device_bytes && d->mem.limit_bytes < d->mem.device_bytes; }

/* A plan was followed: says which iterations ran without it. */
static void why_some(const struct device *d, char to[SUMMARY_WHY])
{
    const struct stats *s = &d->st;
    const uint64_t rest = s->iterations - s->iterations_enforced;
    const uint64_t before = s->first_enforced_iteration < rest ? s->first_enforced_iteration : rest, later = rest - before;
    int at = 0;
    if (before)
        at = snprintf(to, SUMMARY_WHY, "the first %llu ran before the plan was there", (unsigned long long)before);
    if (later)
        at += snprintf(to + at, SUMMARY_WHY - (size_t)at, "%s%llu %s", at ? ", " : "", (unsigned long long)later, at ? "later without it" : "ran without the plan");
    if (later && d->story && d->story->why[0])
        snprintf(to + at, SUMMARY_WHY - (size_t)at, " (the last time since %s)", d->story->why);
}

static void why_not_more(const struct device *d, char to[SUMMARY_WHY])
{
    const char *text = NULL;
    to[0] = 0;
    if (d->cfg->policy == POLICY_SWAP)
        text = "--policy swap makes no plan";
    else if (d->cfg->policy == POLICY_OFF)
        text = "--policy off makes no plan";
    else if (d->st.iterations_enforced)
        why_some(d, to);
    else if (d->story && d->story->now == STORY_SWAPPING)
        text = d->story->text;
    else if (d->st.plans)
        text = "the program ended before its plan was proved";
    else if (d->story && d->story->now == STORY_PLANNING)
        text = "the program ended while its plan was being made";
    else if (d->story && d->story->now == STORY_LEARNING)
        text = "the program ended while its iteration was being learnt";
    else if (d->story && d->story->now == STORY_FITS && d->mem.pressed)
        text = d->st.native_ns ? "the iteration that was learnt fits the limit" : d->story->text;
    else if (!is_limited(d))
        text = "there was no limit";
    else if (!d->mem.pressed)
        text = "the limit was never felt";
    else if (!d->st.iterations)
        text = "no iteration that comes again was recognised";
    else
        text = "the program ended before its iteration was learnt";
    if (text)
        snprintf(to, SUMMARY_WHY, "%s", text);
}

/* The device that `why_not` tells of: the first whose limit was felt, else the first. NULL: no device. */
static const struct device *spokesman(struct device *const *devs, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (devs[i]->mem.pressed)
            return devs[i];
    return n ? devs[0] : NULL;
}

static int64_t ppm_over(double a, double b) { return (int64_t)((a / b - 1) * 1e6 + (a >= b ? 0.5 : -0.5)); }

/* Fills in times: means over the devices that know theirs. */
static void times(struct device *const *devs, unsigned n, struct summary *out)
{
    double native = 0, bound = 0;
    unsigned n_native = 0, n_bound = 0;
    struct stats *t = &out->t;
    const bool undisturbed = t->iter_ns_count; /* launches that run twice, as trials do, are no native time */
    if (!undisturbed) { /* every measured iteration had a trial: their times, rather than none */
        t->iter_ns_sum = t->tried_ns_sum;
        t->iter_ns_count = t->tried_ns_count;
    }
    out->iteration_ps = t->iter_ns_count ? (uint64_t)(t->iter_ns_sum * (double)PS / (double)t->iter_ns_count) : 0;
    for (unsigned i = 0; i < n; i++) {
        const struct stats *s = &devs[i]->st;
        native += (double)s->native_ns;
        n_native += s->native_ns > 0;
        if (s->bound_ns && s->baseline_ns) {
            bound += (double)s->bound_ns / (double)s->baseline_ns;
            n_bound++;
        }
        if (s->first_enforced_ns && (!out->first_enforced_ns || s->first_enforced_ns < out->first_enforced_ns))
            out->first_enforced_ns = s->first_enforced_ns;
    }
    out->native_is_measured = undisturbed && !out->pressed && !t->iterations_enforced && out->iteration_ps;
    out->native_ps = out->native_is_measured ? out->iteration_ps : n_native ? (uint64_t)(native * (double)PS / n_native) : 0;
    out->has_overhead = out->native_ps && out->iteration_ps;
    out->overhead_ppm = out->has_overhead ? ppm_over((double)out->iteration_ps, (double)out->native_ps) : 0;
    out->has_bound = n_bound > 0;
    out->bound_ppm = n_bound ? ppm_over(bound, n_bound) : 0;
}

void summary_publish(struct device *d)
{
    struct status_device *to = d->status;
    if (!to)
        return;
    struct summary s = {.t = d->st, .pressed = d->mem.pressed};
    times(&d, 1, &s);
    status_iteration(to, s.t.iterations);
    status_store(&to->iterations_planned, s.t.iterations_enforced);
    status_store(&to->replays, s.t.replays);
    status_store(&to->swaps_out, s.t.swaps_out);
    status_store(&to->swaps_in, s.t.swaps_in);
    status_store(&to->departures, s.t.divergences);
    status_store(&to->compared, s.t.verify_checked);
    status_store(&to->differed, s.t.verify_failed);
    atomic_store_explicit(&to->price_ppm, s.has_overhead ? s.overhead_ppm : STATUS_NO_PRICE, memory_order_relaxed);
}

void summary_make(struct device *const *devs, unsigned n, struct summary *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < n; i++) {
        const struct stats *s = &devs[i]->st;
        out->limit_bytes += devs[i]->mem.limit_bytes;
        out->limited |= is_limited(devs[i]);
        out->pressed |= devs[i]->mem.pressed;
        for (size_t k = 0; k < STATS_COUNTERS; k++)
            ((uint64_t *)&out->t)[k] += ((const uint64_t *)s)[k];
        out->t.lessons_ns += s->lesson_since_ns ? stats_now_ns() - s->lesson_since_ns : 0;
        out->t.planning_ns += s->planning_since_ns ? stats_now_ns() - s->planning_since_ns : 0;
        out->t.iter_ns_sum += s->iter_ns_sum;
        out->t.tried_ns_sum += s->tried_ns_sum;
    }
    times(devs, n, out);
    const struct device *d = spokesman(devs, n);
    if (!d)
        snprintf(out->why_not, sizeof out->why_not, "the program used no GPU");
    if (d && out->t.iterations_enforced < out->t.iterations + !out->t.iterations)
        why_not_more(d, out->why_not);
}
