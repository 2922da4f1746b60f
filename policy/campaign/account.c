/* account.c: see account.h. */
#include "policy/campaign/account.h"

#include "policy/campaign/modes.h"
#include "policy/iteration.h"
#include "policy/memory/swap.h"

enum {
    TICK_OPS = 64,
    SAMPLE_PART = 8,     /* one in so many ops of a signature is timed alone: the second, the tenth, .. A first launch may wait for its code */
    KIND_TRIES = 8,
    SAMPLES_LEAST = 32,  /* samples before their mean says something */
    PLAN_PART = 4,       /* a plan and its overhead may cost a quarter of the ops' time: where waits for copies cost less, a plan wins nothing */
    LESSON_TIMES = 8,    /* device time of a lesson, in iterations that copy nothing */
    AHEAD = 4,           /* a program is expected to go on for so many times as long as it has run */
    SHORT_OPS = 64,      /* ops of an iteration below which its lesson costs too little to be weighed */
    SHARE_PART = 20,   /* a twentieth */
    GRANT_PART = 4,
    WHOLE_LEAST = 4,   /* iterations before a plan's price is known */
    DEARER_PART = 4    /* a quarter more than foretold */
};
static const uint64_t GRANT_MOST_NS = 2000000000, SLOW_LINK = 1000000000 /* bytes a second, where no copy was long enough to tell */;

static struct account *of(struct device *d) { return &d->campaign->account; }

static bool is_bounded(const struct device *d) { return d->cfg->policy == POLICY_AUTO; }

static bool make(struct device *d, struct account_edge *e)
{
    if (!e->made && d->drv->cuEventElapsedTime && d->drv->cuEventCreate(&e->at, 0) == CUDA_SUCCESS)
        e->made = true;
    return e->made;
}

static bool record(struct device *d, struct account_edge *e, CUstream stream)
{
    return make(d, e) && d->drv->cuEventRecord(e->at, stream) == CUDA_SUCCESS;
}

static uint64_t between_ns(struct device *d, const struct account_edge *from, const struct account_edge *to)
{
    float ms = 0;
    return d->drv->cuEventElapsedTime(&ms, from->at, to->at) == CUDA_SUCCESS && ms > 0 ? (uint64_t)(ms * 1e6) : 0;
}

/* Bytes copied either way: a copy in must wait for the copy out that makes room for it. */
static uint64_t copied_bytes(const struct device *d) { return d->st.bytes_in + d->st.bytes_out; }

/* Nanoseconds that copies of so many bytes take, at the speed of the copies so far. */
static double copies_ns(struct device *d, double bytes)
{
    const uint64_t link = swap_bytes_per_s(d);
    return bytes / (double)(link ? link : SLOW_LINK) * 1e9;
}

static bool has_passed(struct device *d, const struct account_edge *e) { return d->drv->cuEventQuery(e->at) == CUDA_SUCCESS; }

static void settle(struct device *d)
{
    struct account *a = of(d);
    if (a->awaited && has_passed(d, &a->latest)) {
        const uint64_t ns = between_ns(d, &a->base, &a->latest);
        a->total_ns = ns > a->total_ns ? ns : a->total_ns;
        a->total_ops = a->ticked_op - a->base_op;
        a->total_bytes = a->ticked_bytes - a->base_bytes;
        a->awaited = false;
    }
}

static void tick(struct device *d, CUstream stream)
{
    struct account *a = of(d);
    settle(d);
    if (a->awaited)
        return;
    a->ticked_op = d->op_count;
    a->ticked_bytes = copied_bytes(d);
    if (!a->base.made) {
        if (record(d, &a->base, stream)) {
            a->base_op = d->op_count;
            a->base_bytes = copied_bytes(d);
        }
    } else {
        a->awaited = record(d, &a->latest, stream);
    }
}

/* Samples that have ended, the oldest first. */
static void settle_samples(struct device *d)
{
    struct account *a = of(d);
    for (; a->oldest_sample != a->latest_sample; a->oldest_sample++) {
        struct account_sample *s = &a->sample[a->oldest_sample % ACCOUNT_SAMPLES];
        if (s->awaited && !has_passed(d, &s->to))
            return;
        if (s->awaited) { /* not awaited: the op was refused */
            a->kind[s->kind].timed_ns += between_ns(d, &s->from, &s->to);
            a->kind[s->kind].n_timed++;
            a->n_sampled++;
        }
        s->awaited = false;
    }
}

static uint32_t kind_of(struct account *a, uint64_t sig)
{
    const uint64_t hash = sig * 0x9e3779b97f4a7c15u >> 32;
    for (uint32_t i = 0; i < KIND_TRIES; i++) {
        struct account_kind *k = &a->kind[(hash + i) % ACCOUNT_KINDS];
        if (!k->n_ops)
            k->sig = sig;
        if (k->sig == sig)
            return (uint32_t)(k - a->kind);
    }
    return ACCOUNT_KINDS;
}

/* A few ops take most of an iteration's time (an update of all weights by one launch), so a mean over ops drawn by chance may be half of the true one, or twice as much. Ops of one
 * signature take about equally long. */
double account_op_ns(const struct device *d)
{
    const struct account *a = &d->campaign->account;
    double ns = 0, timed_ns = 0, ops = 0, unknown = 0;
    for (uint32_t i = 0; i <= ACCOUNT_KINDS; i++) {
        const struct account_kind *k = &a->kind[i];
        ops += (double)k->n_ops;
        timed_ns += (double)k->timed_ns;
        if (k->n_timed)
            ns += (double)k->timed_ns / (double)k->n_timed * (double)k->n_ops;
        else
            unknown += (double)k->n_ops;
    }
    return a->n_sampled ? (ns + timed_ns / (double)a->n_sampled * unknown) / ops : 0;
}

struct account_sample *account_sample(struct device *d, uint64_t sig)
{
    struct account *a = of(d);
    if (!d->mem.pressed || d->mode != MODE_OBSERVE || a->lesson_ns || d->capturing || !is_bounded(d))
        return NULL;
    const uint32_t kind = kind_of(a, sig);
    struct account_kind *k = &a->kind[kind];
    if (!k->n_ops++ || k->n_begun * SAMPLE_PART + 1 >= k->n_ops)
        return NULL;
    settle_samples(d);
    struct account_sample *s = &a->sample[a->latest_sample % ACCOUNT_SAMPLES];
    if (a->latest_sample - a->oldest_sample == ACCOUNT_SAMPLES || !make(d, &s->from) || !make(d, &s->to))
        return NULL;
    a->latest_sample++;
    s->kind = kind;
    k->n_begun++;
    return s;
}

/* ---- learning ------------------------------------------------------------------------------------------------------- */

bool account_may_learn(struct device *d)
{
    const struct account *a = of(d);
    const uint64_t latest = d->st.learning_ns - a->learnt_before_ns, lesson = latest > a->lesson_ns ? latest : a->lesson_ns;
    if (!is_bounded(d) || !lesson)
        return true;
    const uint64_t part = a->total_ns / GRANT_PART, grant = a->in_force ? 0 : part < GRANT_MOST_NS ? part : GRANT_MOST_NS;
    return (int64_t)(d->st.learning_ns + lesson) <= (int64_t)(a->total_ns / SHARE_PART + grant) + a->balance_ns;
}

bool account_is_worth_it(struct device *d, uint64_t period)
{
    const struct account *a = of(d);
    if (!is_bounded(d) || a->lesson_ns || d->st.learning_ns)
        return true;
    if (period < SHORT_OPS)
        return period > 0;
    settle(d);
    settle_samples(d);
    if (!a->total_ops || a->n_sampled < SAMPLES_LEAST)
        return !a->base.made; /* without events nothing is known, ever */
    const double op_ns = account_op_ns(d), own_ns = op_ns * (double)a->total_ops, copying_ns = copies_ns(d, (double)a->total_bytes);
    const double beyond_ns = (double)a->total_ns - own_ns, waits_ns = beyond_ns < copying_ns ? beyond_ns : copying_ns;
    return (waits_ns - own_ns / PLAN_PART) * AHEAD >= op_ns * (double)period * LESSON_TIMES;
}

void account_learns(struct device *d, uint64_t period, CUstream stream)
{
    struct account *a = of(d);
    const uint64_t latest = d->st.learning_ns - a->learnt_before_ns, ops = d->op_count - a->swap_from_op;
    a->lesson_ns = latest > a->lesson_ns ? latest : a->lesson_ns;
    a->learnt_before_ns = d->st.learning_ns;
    if (a->swaps && ops >= period && record(d, &a->swap_to, stream) && d->drv->cuEventSynchronize(a->swap_to.at) == CUDA_SUCCESS) {
        a->swap_ns = between_ns(d, &a->swap_from, &a->swap_to);
        a->swap_ops = a->swap_ns ? ops : 0;
        a->swap_bytes = copied_bytes(d) - a->swap_from_bytes;
    }
    a->swaps = false;
}

void account_foretold(struct device *d, uint64_t swap_ns, uint64_t swap_ops)
{
    struct account *a = of(d);
    if (a->swap_ops || !swap_ns)
        return;
    a->swap_ns = swap_ns;
    a->swap_ops = swap_ops;
}

/* ---- plans ---------------------------------------------------------------------------------------------------------- */

void account_new_plan(struct device *d)
{
    struct account *a = of(d);
    a->plan_balance_ns = 0;
    a->whole_ns = a->n_whole = 0;
    for (unsigned i = 0; i < ACCOUNT_STRETCHES; i++)
        a->stretch[i].is = STRETCH_NONE;
}

static void book(struct device *d, const struct account_stretch *s, uint64_t ns)
{
    struct account *a = of(d);
    const double part = (double)s->ops / (double)a->swap_ops; /* the stretch's ops, as a part of the ops measured while memory was held by swapping */
    const int64_t saved = !s->apart       ? (int64_t)((double)a->swap_ns * part) - (int64_t)ns
                          : a->swap_bytes ? (int64_t)copies_ns(d, (double)a->swap_bytes * part - (double)s->bytes)
                                          : 0;
    a->balance_ns += saved;
    a->plan_balance_ns += s->proved ? saved : 0;
    if (s->whole) {
        a->whole_ns += ns;
        a->n_whole++;
        a->in_force = true;
    }
}

/* Books the stretches whose end the device has passed. */
static void look(struct device *d)
{
    struct account *a = of(d);
    for (unsigned i = 0; i < ACCOUNT_STRETCHES; i++) {
        struct account_stretch *s = &a->stretch[i];
        if (s->is != STRETCH_AWAITED || !has_passed(d, &s->to))
            continue;
        s->is = STRETCH_NONE;
        if (a->swap_ops)
            book(d, s, between_ns(d, &s->from, &s->to));
    }
}

static void close_stretch(struct device *d, CUstream stream, bool whole)
{
    struct account *a = of(d);
    struct account_stretch *s = &a->stretch[a->next];
    if (s->is != STRETCH_OPEN)
        return;
    s->ops = d->op_count - s->begun_op;
    s->bytes = copied_bytes(d) - s->begun_bytes;
    s->whole = s->whole && whole;
    s->is = record(d, &s->to, stream) ? STRETCH_AWAITED : STRETCH_NONE;
    a->next = (a->next + 1) % ACCOUNT_STRETCHES;
}

/* NULL: the stretch is not measured, as where the device is iterations behind the host. */
static struct account_stretch *open_stretch(struct device *d, CUstream stream)
{
    struct account *a = of(d);
    struct account_stretch *s = &a->stretch[a->next];
    if (s->is != STRETCH_NONE || !record(d, &s->from, stream))
        return NULL;
    s->is = STRETCH_OPEN;
    s->begun_op = d->op_count;
    s->begun_bytes = copied_bytes(d);
    s->whole = s->left = s->apart = false;
    return s;
}

void account_iteration(struct device *d, unsigned t)
{
    if (!is_bounded(d))
        return;
    of(d)->swaps = false;
    close_stretch(d, d->stream[t], true);
    look(d);
    struct account_stretch *s = open_stretch(d, d->stream[t]);
    if (s)
        s->whole = s->proved = d->mode == MODE_ENFORCE;
    if (d->op_count - of(d)->ticked_op >= TICK_OPS)
        tick(d, d->stream[t]);
}

void account_left(struct device *d, unsigned t)
{
    struct account *a = of(d);
    if (!is_bounded(d))
        return;
    const bool proved = a->stretch[a->next].is == STRETCH_OPEN && a->stretch[a->next].proved;
    close_stretch(d, d->stream[t], false);
    struct account_stretch *s = open_stretch(d, d->stream[t]);
    if (s) {
        s->apart = !d->ex->now.left_at;
        s->left = true;
        s->proved = proved;
    }
}

static void swap_begins(struct device *d, struct account *a)
{
    a->swap_from_op = a->swap_mid_op = d->op_count;
    a->swap_from_bytes = a->swap_mid_bytes = copied_bytes(d);
}

static void swap_goes_on(struct device *d, struct account *a, CUstream stream, uint64_t period)
{
    if (!a->swaps && (a->swaps = record(d, &a->swap_from, stream) && record(d, &a->swap_mid, stream)))
        swap_begins(d, a);
    if (!a->swaps || !period || d->op_count - a->swap_mid_op < period || !record(d, &a->swap_from, stream))
        return;
    const struct account_edge now = a->swap_from;
    a->swap_from = a->swap_mid;
    a->swap_from_op = a->swap_mid_op;
    a->swap_from_bytes = a->swap_mid_bytes;
    a->swap_mid_bytes = copied_bytes(d);
    a->swap_mid = now;
    a->swap_mid_op = d->op_count;
}

void account_tick(struct device *d, CUstream stream, uint64_t period)
{
    struct account *a = of(d);
    if (!is_bounded(d))
        return;
    swap_goes_on(d, a, stream, period);
    const struct account_stretch *s = &a->stretch[a->next];
    if (s->is == STRETCH_OPEN && s->left && d->op_count - s->begun_op >= d->ex->learnt.rec.period)
        close_stretch(d, stream, false);
    if (d->op_count - a->ticked_op >= TICK_OPS)
        tick(d, stream);
}

const char *account_verdict(struct device *d, uint64_t foretold_ns)
{
    struct account *a = of(d);
    if (!is_bounded(d) || !a->swap_ops)
        return NULL;
    look(d);
    const double mean = a->n_whole ? (double)a->whole_ns / a->n_whole : 0, swapped = (double)a->swap_ns / (double)a->swap_ops * d->ex->learnt.rec.period;
    if (a->n_whole >= WHOLE_LEAST && mean > (double)foretold_ns + (double)foretold_ns / DEARER_PART && mean > swapped)
        return "its iterations take a quarter more than foretold, and longer than swapping took";
    /* early in a run one departure costs more than a twentieth of the time, which says nothing of the plan */
    if (a->plan_balance_ns < -(int64_t)(a->total_ns / SHARE_PART) && (double)a->plan_balance_ns < -swapped)
        return "it has cost more time than swapping";
    return NULL;
}
