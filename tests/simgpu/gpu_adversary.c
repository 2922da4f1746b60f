/*
 * SIMGPU_CHAOS=adversary: of all the orders that a program's own calls allow, one of the worst.
 *
 * The workers of gpu_exec.c run nothing on their own here: one operation at a time is granted to one of them.
 * An operation may be granted when it is the first of its stream and all it depends on is done; it is granted
 * only when it is wanted:
 *
 *   demanded   the host waits for it, or for something that is promised to come after it (synchronisation,
 *              blocking calls, freeing memory, a query that is repeated with nothing else in between);
 *   early      the seed made it a racer: it runs as soon as it can, and driver calls wait until it has run.
 *
 * What nobody wants stays where it is, however long ago it was enqueued. Of several that are wanted the one that
 * was enqueued last goes first (some seeds: by a fixed order of the streams, or the oldest first), so two
 * operations that no promise orders run in the opposite order of the calls. Without a seed nothing is early.
 *
 * A program that would go on on a real device must go on here, so all that is queued becomes demanded when the
 * host makes no driver call for IDLE_NS (it may be spinning on a word in memory), when an operation has been held
 * for HELD_NS, when a stream's queue is as long as a real one can be, and while a demanded wait for a word in
 * memory is not satisfied. An operation that runs for STALL_NS no longer keeps others from running: it may be
 * waiting for them.
 *
 * Everything here is under gpu_lock.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/simgpu/gpu.h"

#define IDLE_NS 100000000u
#define HELD_NS 500000000u
#define STALL_NS 20000000u
#define LOOK_MOST_NS (2 * STALL_NS)
enum { QUEUE_MOST = 1024, QUERIES = 4 };

static CUstream busy;          /* streams with something queued, by next_busy */
static unsigned running;       /* granted, not finished, not set aside */
static uint64_t last_order;    /* of the operations, over all streams */
static uint64_t last_call_ns;  /* patience_ns() of the host's last driver call */

/* Real time, of which no pause counts for more than LOOK_MOST_NS: the workers look more often than that, so in a longer one
   the whole process stood still, and its host thread has not been idle. */
static uint64_t patience_ns(void)
{
    static uint64_t seen, counted;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, pause = now - seen;
    counted += pause < LOOK_MOST_NS ? pause : LOOK_MOST_NS;
    seen = now;
    return counted;
}

static uint64_t hash(uint64_t a, uint64_t b)
{
    uint64_t z = gpu_cfg.chaos_seed * 0x9E3779B97F4A7C15ull + a * 0xBF58476D1CE4E5B9ull + b * 0x94D049BB133111EBull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/* ---- who is who --------------------------------------------------------------------------------------------- */

/* A seed has one of four characters: racers are whole streams; kinds of operations (kernels, copies in, copies out,
   the rest); short stretches of a stream; nobody. */
static bool is_early(CUstream s, const gpu_op *op)
{
    if (!gpu_cfg.chaos_seed)
        return false;
    switch (gpu_cfg.chaos_seed & 3) {
    case 1: return hash(s->id, 1) & 1;
    case 2: return hash((uint64_t)op->engine, 2) & 1;
    case 3: return hash(s->id, 3 + op->seq / 4) & 1;
    default: return false;
    }
}

/* True if a's first operation goes before b's. */
static bool goes_before(CUstream a, CUstream b)
{
    uint64_t how = gpu_cfg.chaos_seed ? hash(0, 7) % 3 : 0;
    if (how == 1 && hash(a->id, 5) != hash(b->id, 5))
        return hash(a->id, 5) < hash(b->id, 5);
    return how == 2 ? a->head->order < b->head->order : a->head->order > b->head->order;
}

/* ---- granting ------------------------------------------------------------------------------------------------ */

static bool is_ready(CUstream s, const gpu_op *op)
{
    for (unsigned i = 0; i < op->n_deps; i++)
        if (op->deps[i].stream->done < op->deps[i].seq)
            return s->ctx->sticky != CUDA_SUCCESS;
    return true;
}

static bool is_wanted(CUstream s, const gpu_op *op)
{
    return op->seq <= s->demanded || s->ctx->sticky || is_early(s, op);
}

void gpu_adversary_choose(void)
{
    if (!gpu_cfg.adversary || running || gpu_exiting)
        return;
    CUstream best = NULL;
    for (CUstream s = busy; s; s = s->next_busy)
        if (!s->granted && is_wanted(s, s->head) && is_ready(s, s->head) && (!best || goes_before(s, best)))
            best = s;
    if (!best)
        return;
    best->granted = true;
    best->set_aside = false;
    best->granted_ns = patience_ns();
    running++;
    pthread_cond_signal(&best->work);
}

void gpu_adversary_set_aside(CUstream s)
{
    if (!gpu_cfg.adversary || !s->granted || s->set_aside)
        return;
    s->set_aside = true;
    running--;
    gpu_exec_progress(); /* chooses again */
}

void gpu_adversary_finished(CUstream s)
{
    if (!s->set_aside)
        running--;
    s->granted = s->set_aside = false;
    if (s->head)
        return;
    CUstream *p = &busy;
    while (*p != s)
        p = &(*p)->next_busy;
    *p = s->next_busy;
    s->is_busy = false;
}

/* ---- demanding ----------------------------------------------------------------------------------------------- */

/* Whatever comes before something demanded is demanded too. */
static void spread(void)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (CUstream s = busy; s; s = s->next_busy) {
            if (s->demanded <= s->spread)
                continue;
            for (gpu_op *op = s->head; op && op->seq <= s->demanded; op = op->next)
                for (unsigned i = 0; op->seq > s->spread && i < op->n_deps; i++)
                    if (op->deps[i].stream->demanded < op->deps[i].seq)
                        op->deps[i].stream->demanded = op->deps[i].seq;
            s->spread = s->demanded;
            changed = true;
        }
    }
    gpu_adversary_choose();
}

void gpu_adversary_demand(CUstream s, uint64_t seq)
{
    if (!gpu_cfg.adversary || s->done >= seq)
        return;
    if (s->demanded < seq)
        s->demanded = seq;
    spread();
}

void gpu_adversary_demand_all(void)
{
    if (!gpu_cfg.adversary)
        return;
    for (CUstream s = busy; s; s = s->next_busy)
        s->demanded = s->enqueued;
    spread();
}

bool gpu_adversary_is_demanded(CUstream s)
{
    return s->head && s->head->seq <= s->demanded;
}

bool gpu_adversary_asked(gpu_asked *a)
{
    if (!gpu_cfg.adversary)
        return false;
    if (a->order != last_order) {
        a->order = last_order;
        a->times = 0;
    }
    return ++a->times >= QUERIES;
}

/* ---- the program's side ---------------------------------------------------------------------------------------- */

void gpu_adversary_enqueued(CUstream s, gpu_op *op, enum gpu_engine engine)
{
    op->engine = engine;
    op->order = ++last_order;
    op->since_ns = patience_ns();
    if (!s->is_busy) {
        s->is_busy = true;
        s->next_busy = busy;
        busy = s;
    }
    if (s->enqueued - s->done > QUEUE_MOST)
        gpu_adversary_demand(s, s->enqueued - QUEUE_MOST / 2);
    gpu_adversary_choose();
}

/* Sets aside what runs for too long, and lets all go that must not be held any longer. */
static void look_at_clock(void)
{
    uint64_t now = patience_ns();
    bool all = now > last_call_ns + IDLE_NS;
    for (CUstream s = busy; s; s = s->next_busy) {
        if (s->granted && now > s->granted_ns + STALL_NS)
            gpu_adversary_set_aside(s);
        all |= now > s->head->since_ns + HELD_NS;
    }
    if (all)
        gpu_adversary_demand_all();
}

void gpu_adversary_await_grant(CUstream s)
{
    while (!s->granted) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        t.tv_nsec += STALL_NS;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&s->work, &gpu_mutex, &t))
            look_at_clock();
    }
}

void gpu_adversary_settle(void)
{
    gpu_lock();
    last_call_ns = patience_ns();
    while (running && !gpu_exiting) {
        gpu_exec_wait_a_moment(STALL_NS / 4);
        look_at_clock();
        last_call_ns = patience_ns();
    }
    gpu_unlock();
}
