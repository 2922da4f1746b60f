/*
 * Execution: a worker thread per stream, taking one operation after the other.
 *
 * An operation starts when it is at the head of its queue and every (stream, sequence number) it depends on
 * is done. Order between streams comes from those pairs alone, so everything the driver leaves open really
 * is open; with SIMGPU_CHAOS the workers make use of it: they hold operations back, now for a moment, now
 * until another stream has moved or somebody waits. SIMGPU_CHAOS=adversary chooses what runs when
 * (gpu_adversary.c).
 *
 * A fault makes the context's error stick. What is still queued is then retired without being executed,
 * except stream callbacks, which the driver promises to call with the error.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "tests/simgpu/gpu_graph.h"

static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static unsigned progress_waiters;
static unsigned host_waiters; /* host threads in gpu_exec_wait: chaos lets go then */
static unsigned running;      /* operations being executed right now */
static __thread bool inside;

bool gpu_exec_inside(void)
{
    return inside;
}

/* A thread that waits for one operation, and is woken by that operation alone. */
struct waiter {
    CUstream of; /* a reference is held */
    uint64_t seq;
    bool host; /* else a worker, for what its operation depends on: a failure of `failing` is enough */
    CUcontext failing;
    pthread_cond_t over;
    struct waiter *next;
};
static struct waiter *waiters;

static bool is_over(const struct waiter *w)
{
    return w->of->done >= w->seq || (w->host ? !w->of->has_worker || gpu_exiting : w->failing->sticky != CUDA_SUCCESS);
}

static void wait_for(struct waiter *w)
{
    if (is_over(w))
        return;
    pthread_cond_init(&w->over, NULL);
    w->next = waiters;
    waiters = w;
    while (!is_over(w))
        pthread_cond_wait(&w->over, &gpu_mutex);
    struct waiter **p = &waiters;
    while (*p != w)
        p = &(*p)->next;
    *p = w->next;
    pthread_cond_destroy(&w->over);
}

void gpu_exec_progress(void)
{
    if (progress_waiters)
        pthread_cond_broadcast(&progress);
    for (struct waiter *w = waiters; w; w = w->next)
        if (is_over(w))
            pthread_cond_signal(&w->over);
    gpu_adversary_choose();
}

static void wait_for_progress(void)
{
    progress_waiters++;
    pthread_cond_wait(&progress, &gpu_mutex);
    progress_waiters--;
}

/* True if something happened, false after the given time. */
static bool wait_for_progress_at_most(uint64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(ns % 1000000000u);
    t.tv_sec += (time_t)(ns / 1000000000u) + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    progress_waiters++;
    int r = pthread_cond_timedwait(&progress, &gpu_mutex, &t);
    progress_waiters--;
    return r != ETIMEDOUT;
}

void gpu_exec_wait_a_moment(uint64_t ns)
{
    wait_for_progress_at_most(ns);
}

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

/* A legal delay before an operation whose dependencies are met: 5 in 8 none, 2 in 8 until another stream
   has got one step further (0.26 ms at most), 1 in 8 until a host thread waits (1 ms at most). The longer a
   stream lives the shorter its delays, so that long programs end. */
static void be_unkind(CUstream s)
{
    uint64_t dice = random_next(&s->chaos), age = 1 + s->done / 1000;
    if ((dice & 7) < 5)
        return;
    if ((dice & 7) < 7) {
        wait_for_progress_at_most((dice >> 8 & 0x3ffff) / age);
        return;
    }
    for (int i = 0; i < 10 && !host_waiters && !gpu_exiting; i++)
        wait_for_progress_at_most(100000 / age);
}

static void *worker(void *arg)
{
    CUstream s = arg;
    gpu_fault_name_thread();
    gpu_lock();
    for (;;) {
        while (!s->head && !s->closing)
            pthread_cond_wait(&s->work, &gpu_mutex);
        gpu_op *op = s->head;
        if (!op)
            break;
        if (gpu_cfg.adversary)
            gpu_adversary_await_grant(s);
        for (unsigned i = 0; i < op->n_deps; i++)
            wait_for(&(struct waiter){.of = op->deps[i].stream, .seq = op->deps[i].seq, .failing = s->ctx});
        if (gpu_cfg.chaos && !gpu_cfg.adversary && op->exec && !s->ctx->sticky)
            be_unkind(s);
        while (gpu_exiting) /* the process ends under our feet: start nothing more */
            wait_for_progress();
        if (op->exec && (!s->ctx->sticky || op->runs_when_failed)) {
            running++;
            gpu_unlock();
            inside = true;
            CUresult why = CUDA_SUCCESS;
            if (op->touches_memory) {
                gpu_phys_open(op->reaches ? op->reaches : gpu_exec_reaches(op, s));
                why = gpu_fault_run(op);
                gpu_phys_close();
            } else
                op->exec(op);
            inside = false;
            gpu_lock();
            running--;
            if (why) {
                gpu_stats.faults++;
                gpu_ctx_fail(s->ctx, why);
            }
        } else
            op->skipped = true;
        s->head = op->next;
        if (!s->head)
            s->tail = NULL;
        s->done = op->seq;
        for (unsigned i = 0; i < op->n_deps; i++)
            gpu_stream_unref(op->deps[i].stream);
        free(op->deps);
        if (op->retire)
            op->retire(op);
        else
            free(op);
        if (gpu_cfg.adversary)
            gpu_adversary_finished(s);
        gpu_exec_progress();
    }
    s->has_worker = false;
    gpu_exec_progress();
    gpu_stream_unref(s);
    gpu_unlock();
    return NULL;
}

/* Starts the worker of s. Asynchronous signals stay with the program's own threads. */
static bool start_worker(CUstream s)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    sigdelset(&all, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int r = pthread_create(&thread, &attr, worker, s);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r)
        return false;
    s->has_worker = true;
    gpu_stream_ref(s);
    return true;
}

void *gpu_exec_op(size_t bytes)
{
    return calloc(1, bytes);
}

CUresult gpu_exec_depend(gpu_op *op, CUstream s, uint64_t seq)
{
    if (s->done >= seq)
        return CUDA_SUCCESS;
    if ((op->n_deps & (op->n_deps - 1)) == 0) { /* 0, 1, 2, 4, 8: full */
        gpu_dep *more = realloc(op->deps, (op->n_deps ? op->n_deps * 2 : 1) * sizeof *more);
        if (!more)
            return CUDA_ERROR_OUT_OF_MEMORY;
        op->deps = more;
    }
    gpu_stream_ref(s);
    op->deps[op->n_deps++] = (gpu_dep){ s, seq };
    return CUDA_SUCCESS;
}

unsigned gpu_exec_reaches(const gpu_op *op, CUstream s)
{
    return op->node_type == CU_GRAPH_NODE_TYPE_KERNEL ? 1u << s->ctx->device | gpu_ctx_owner(s->ctx)->peers : GPU_EVERY_DEVICE;
}

uint64_t gpu_exec_enqueue(CUstream s, gpu_op *op, enum gpu_engine engine, uint64_t ns)
{
    if (s->capture) { /* recorded, not run */
        gpu_capture_enqueue(s, op, engine, ns);
        return s->enqueued;
    }
    uint64_t ready = s->end_ns;
    CUresult failed = CUDA_SUCCESS;
    if (gpu_clock_host_now() > ready)
        ready = gpu_clock_host_now();
    if (s->is_legacy) {
        for (CUstream o = s->ctx->streams; o; o = o->next_in_ctx)
            if (o->blocking) {
                failed |= gpu_exec_depend(op, o, o->enqueued);
                if (o->end_ns > ready)
                    ready = o->end_ns;
            }
    } else if (s->blocking) {
        failed |= gpu_exec_depend(op, s->ctx->legacy, s->ctx->legacy->enqueued);
        if (s->ctx->legacy->end_ns > ready)
            ready = s->ctx->legacy->end_ns;
    }
    s->end_ns = gpu_clock_place(s->ctx->device, engine, ready, ns);
    if (s->end_ns > gpu_stats.device_ns)
        gpu_stats.device_ns = s->end_ns;
    op->seq = ++s->enqueued;
    op->next = NULL;
    if (s->tail)
        s->tail->next = op;
    else
        s->head = op;
    s->tail = op;
    if (failed)
        gpu_ctx_fail(s->ctx, failed);
    if (!s->has_worker && !start_worker(s)) {
        /* no thread to be had: the context cannot go on, and says so */
        gpu_ctx_fail(s->ctx, CUDA_ERROR_OPERATING_SYSTEM);
        return op->seq;
    }
    if (s->head == op) /* else its worker is at work, or waits for leave to be */
        pthread_cond_signal(&s->work);
    uint64_t seq = op->seq; /* the adversary may let it run and end while this call sleeps */
    if (gpu_cfg.adversary)
        gpu_adversary_enqueued(s, op, engine);
    return seq;
}

void gpu_exec_wait_for_room(CUstream s)
{
    if (!gpu_cfg.queue || s->capture)
        return;
    gpu_stream_ref(s);
    while (s->enqueued - s->done >= gpu_cfg.queue && s->has_worker && !gpu_exiting) {
        gpu_adversary_demand(s, s->done + 1);
        wait_for_progress();
    }
    gpu_stream_unref(s);
}

CUresult gpu_exec_wait(CUstream s, uint64_t seq)
{
    CUcontext ctx = s->ctx;
    gpu_stream_ref(s);
    host_waiters++;
    if (gpu_cfg.chaos && s->done < seq)
        gpu_exec_progress(); /* once: workers that hold back look at host_waiters */
    gpu_adversary_demand(s, seq);
    /* after a failure too: until nothing touches the caller's memory */
    wait_for(&(struct waiter){.of = s, .seq = seq, .host = true});
    host_waiters--;
    CUresult r = s->done < seq && gpu_exiting ? CUDA_ERROR_DEINITIALIZED : ctx->sticky;
    gpu_stream_unref(s);
    return r;
}

void gpu_exec_drain(CUcontext ctx)
{
    for (CUstream s = ctx->streams; s;) {
        if (s->done == s->enqueued || !s->has_worker) {
            s = s->next_in_ctx;
            continue;
        }
        gpu_adversary_demand(s, s->enqueued);
        wait_for_progress();
        s = ctx->streams; /* the list may have changed meanwhile */
    }
}

void gpu_exec_stop_for_exit(void)
{
    gpu_lock();
    gpu_exiting = 1;
    gpu_exec_progress();
    for (int i = 0; i < 200 && running > inside; i++)
        wait_for_progress_at_most(10000000);
    gpu_unlock();
}
