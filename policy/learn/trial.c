#include "policy/learn/trial.h"
#include "policy/learn/pace.h"
#include "policy/memory/evict.h"
#include "policy/memory/slot.h"
#include "policy/process/stats.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long the host waits for the streams. MOMENT_NS: while something that may wait for a later call is under way, for each op after it, which may be queued behind it.
 * STANDING_NS: a stream stands still for the host: a function of the host's is over by then, the program's next call will not come. Else as long as the queued work may take,
 * since the host runs ahead by an iteration, or a few: PATIENCE_NS and ITERATIONS_AHEAD iterations, PATIENCE_MOST_NS at most. */
static const uint64_t PATIENCE_NS = 2000000000, PATIENCE_MOST_NS = 60000000000, STANDING_NS = 200000000, MOMENT_NS = 50000000;
enum { ITERATIONS_AHEAD = 4 };

/* Queries stream t until it is idle, at most until `until_ns`: with nothing in between at first, soon with pauses. */
static int wait_stream(struct device *d, unsigned t, uint64_t until_ns)
{
    enum { REFUSALS = 3 }; /* one refused query says nothing of the stream: work queued there must not be left unordered */
    for (unsigned asked = 0, refused = 0;; asked++) {
        int r = stream_query_drv(d, t);
        if (r == CUDA_SUCCESS)
            return 0;
        if (r != CUDA_ERROR_NOT_READY && ++refused == REFUSALS)
            return -EIO;
        if (stats_now_ns() > until_ns)
            return -ETIMEDOUT;
        if (asked > 200)
            nanosleep(&(struct timespec){.tv_nsec = asked > 2000 ? 1000000 : 20000}, NULL);
        else if (asked > 8)
            sched_yield();
    }
}

int trial_settle(struct device *d, bool patient)
{
    uint64_t wait = PATIENCE_NS + ITERATIONS_AHEAD * pace_iteration_wall_ns(d);
    uint64_t until = stats_now_ns() + (!patient ? MOMENT_NS : stream_any_stands(d) ? STANDING_NS : wait < PATIENCE_MOST_NS ? wait : PATIENCE_MOST_NS);
    for (unsigned t = 0; t < stream_count(d); t++) {
        int r = wait_stream(d, t, until);
        if (r)
            return r;
    }
    return 0;
}

/* STREAM_IN waits for nothing but its own work, which ends, though on a slow link not within the patience that an op is given. */
static int settle_own(struct device *d) { return wait_stream(d, STREAM_IN, stats_now_ns() + PATIENCE_MOST_NS); }

int trial_settle_copies(struct trial *t)
{
    int r = settle_own(t->d);
    return r ? r : trial_settle(t->d, true);
}

static int fill(struct device *d, const struct slot *s, const struct blank *b, unsigned char poison)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (d->drv->cuMemsetD8Async(s->va + b->r[i].from, poison, b->r[i].to - b->r[i].from, d->stream[STREAM_IN]) != CUDA_SUCCESS)
            return -EIO;
    return 0;
}

int trial_open(struct device *d, struct rt_op *op, struct trial *t)
{
    *t = (struct trial){.d = d, .op = op};
    d->trying = true;
    t->u = calloc(op->n_operands + 1, sizeof *t->u);
    t->ranges = calloc(op->n_operands + 1, sizeof *t->ranges);
    t->h = calloc(op->n_operands + 1, 2 * sizeof *t->h);
    t->left = calloc(op->n_operands + 1, sizeof *t->left);
    t->partial = calloc(op->n_operands + 1, sizeof *t->partial);
    t->word = malloc(op->n_operands + 1);
    if (!t->u || !t->ranges || !t->h || !t->left || !t->partial || !t->word) {
        trial_close(t);
        return -ENOMEM;
    }
    memset(t->word, KNOWN_UNTRIED, op->n_operands);
    const uint64_t walk = ++d->mem.walk, number = ++d->mem.op_at_hand;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct slot *s = op->operands[i].slot;
        if (s->visited_in == walk)
            continue;
        s->visited_in = walk;
        s->needed_by = number;
        struct touched *u = &t->u[t->n++];
        u->slot = s;
        u->row = rows_of(d, s, !s->written);
        u->unwritten = u->row && !u->row->scattered ? &u->row->b : NULL;
        u->blank = u->unwritten && blank_is_all(u->unwritten, s->bytes);
        u->old_life = !u->row && !rows_is_new(d, s);
        /* a blank buffer is filled before each op: its memory may have been taken away and given back meanwhile */
        if (u->blank && fill(d, s, u->unwritten, POISON_FIRST)) {
            trial_close(t);
            return -EIO;
        }
    }
    return 0;
}

/* Work that was queued before a failure may still be under way: a copy to the host must not end in a block that swap has by then, nor a fill or a copy back in a buffer that
 * the program goes on with, nor any of them at a page that was unmapped. STREAM_IN was idle when the trial began and waits for nothing but its own work, so the wait is no
 * longer than that work. */
void trial_close(struct trial *t)
{
    bool ended = !t->n || !settle_own(t->d);
    for (uint32_t i = 0; i < t->n && ended; i++)
        aside_drop(t->d, &t->u[i].old);
    if (!ended)
        aside_keep(t->d);
    free(t->u);
    free(t->ranges);
    free(t->h);
    free(t->left);
    free(t->partial);
    free(t->word);
    free(t->hidden_args);
    if (t->d)
        t->d->trying = !ended; /* decoys stay mapped while a run may still use them */
    *t = (struct trial){0};
}

int trial_hash(struct trial *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (!t->u[i].skipped)
            t->ranges[n++] = (struct hash_range){t->u[i].slot->va, t->u[i].slot->bytes};
    int r = n ? hashing_now(t->d, t->ranges, n, t->h) : 0;
    n = 0;
    for (uint32_t i = 0; i < t->n && !r; i++)
        if (!t->u[i].skipped)
            memcpy(t->u[i].now, t->h + 2 * n++, sizeof t->u[i].now);
    return r;
}

int trial_hash_before(struct trial *t)
{
    const int r = trial_hash(t);
    for (uint32_t i = 0; i < t->n && !r; i++) {
        memcpy(t->u[i].before, t->u[i].now, sizeof t->u[i].before);
        t->u[i].skipped = false;
    }
    return r;
}

static int run_again(struct trial *t, unsigned char *args, unsigned char poison)
{
    struct device *d = t->d;
    for (uint32_t i = 0; i < t->n; i++) {
        struct touched *u = &t->u[i];
        /* after a run that failed now[] says nothing of the buffer */
        bool dirty = !hashing_same(u->now, u->before) || (t->spoiled && u->saved);
        if (u->keep) {
            if (u->filled && op_fill_elsewhere_drv(d, u->filled, u->slot->va, u->slot->va, STREAM_IN) != CUDA_SUCCESS)
                return -EIO;
            continue;
        }
        /* a buffer that is unchanged and not set aside needs no copy back: at most its blank bytes were filled anew, and are again */
        int r = dirty && u->saved ? aside_back(d, &u->old, u->slot) : dirty && !u->row && !u->made ? -EIO : 0;
        if (!r && u->unwritten)
            r = fill(d, u->slot, u->unwritten, poison);
        if (r)
            return r;
    }
    int r = trial_settle_copies(t);
    if (!r && op_replay_drv(d, t->op, args ? args : (unsigned char *)t->args) != CUDA_SUCCESS)
        r = -EIO;
    if (!r)
        r = trial_settle(d, true);
    return r ? r : trial_hash(t);
}

int trial_again(struct trial *t, unsigned char *args, unsigned char poison)
{
    int r = run_again(t, args, poison);
    t->spoiled = r != 0;
    return r;
}

int trial_mend(struct trial *t)
{
    enum { ATTEMPTS = 3 };
    for (int i = 0; i < ATTEMPTS && t->spoiled; i++)
        if (trial_again(t, NULL, POISON_FIRST) == -ETIMEDOUT)
            break;
    return t->spoiled ? -EIO : 0;
}

bool trial_equal(const struct trial *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (!hashing_same(t->u[i].now, t->u[i].after))
            return false;
    return true;
}

/* Where the device has no room, other slots are evicted in a lesson: memory is short then, so most of them would leave soon anyway, and the chunks that they leave serve the
 * next allocations. Else the content goes to the host, if that takes no longer than there is time. */
int trial_save(struct trial *t, struct touched *u, uint64_t left_ns)
{
    struct device *d = t->d;
    struct rec_range all = {0, u->slot->bytes}, some[BLANK_MAX + 1];
    const struct rec_range *parts = u->unwritten ? some : &all;
    const uint32_t n = u->unwritten ? blank_defined(u->unwritten, u->slot->bytes, some) : 1;
    int r = aside_take(d, u->slot, parts, n, &u->old);
    if (r == -ENOMEM && aside_host_ns(u->slot) <= left_ns) {
        if (d->mode == MODE_PROBE) {
            evict_what_may_go(d, aside_chunks(d, parts, n));
            r = aside_take(d, u->slot, parts, n, &u->old);
        }
        r = r == -ENOMEM ? aside_take_to_host(d, u->slot, &u->old) : r;
    }
    u->saved = !r;
    return r;
}

int trial_save_all(struct trial *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct touched *u = &t->u[i];
        if (u->saved || u->blank || u->spared)
            continue;
        if (u->changed) /* the old content is gone */
            return -ENOMEM;
        int r = trial_save(t, u, pace_left_ns(t->d));
        if (r)
            return r;
    }
    return 0;
}
