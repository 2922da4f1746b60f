/* Running a drawn program: each step is the call (or the few calls) that its name says. */
#include "tests/programs/api/run.h"

#include <pthread.h>

enum { PER_KIND = 4 };
struct functions run_functions[2];
CUcontext run_contexts[CONTEXTS];
CUmemoryPool run_pool;
static CUstream streams_free[SIDES][PER_KIND], streams_blocking[SIDES][PER_KIND];
static uint32_t *pinned[SIDES][MAX_HOSTS];

void run_use(int context)
{
    static __thread int now = -1;
    if (context == now)
        return;
    if (context == CONTEXT_PEER && !run_contexts[context])
        run_kinds_second_device();
    MUST(cuCtxSetCurrent(run_contexts[context]));
    now = context;
}

void run_load(struct functions *f)
{
    CUmodule m = load_kernels();
#define X(name) f->name = kernel(m, #name);
    RUN_KERNELS(X)
#undef X
}

void run_start(void)
{
    run_contexts[CONTEXT_PRIMARY] = primary_context();
    run_load(&run_functions[0]);
    run_pool = make_pool(0);
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; i < PER_KIND; i++) {
            MUST(cuStreamCreate(&streams_free[side][i], CU_STREAM_NON_BLOCKING));
            MUST(cuStreamCreate(&streams_blocking[side][i], CU_STREAM_DEFAULT));
        }
        for (int i = 0; i < MAX_HOSTS; i++)
            MUST(cuMemAllocHost_v2((void **)&pinned[side][i], 4 * HOST_WORDS));
    }
}

uint64_t run_hash(const uint32_t *p, uint32_t n)
{
    uint64_t h = 1469598103934665603ull;
    for (uint32_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211ull;
    return h ? h : 1;
}

void run_pattern(uint32_t *p, uint32_t n, uint32_t value)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = value * 2654435761u + i * 40503u;
}

uint32_t *run_pinned(int side, int host) { return pinned[side][host]; }

static void call_read(void *arg)
{
    struct call *c = arg;
    *c->note = run_hash(c->buffer, HOST_WORDS);
}

static void call_write(void *arg)
{
    struct call *c = arg;
    run_pattern(c->buffer, HOST_WORDS, c->value);
}

static void launch(const struct run *r, const struct step *s, CUstream to)
{
    const struct functions *f = run_functions_of(s);
    CUdeviceptr t[3] = {0};
    uint32_t n[3] = {0}, all = 0xffffffffu, k = s->value;
    for (int i = 0; i < 3; i++)
        if (s->t[i] >= 0) {
            t[i] = r->tensor[s->t[i]];
            n[i] = r->words[s->t[i]];
        }
    switch (s->verb) {
    case V_MAP:
        for (uint32_t done = 0; done < n[0]; done += n[1]) { /* from the start of the input again, until it is full */
            CUdeviceptr out = t[0] + 4ull * done;
            uint32_t m = order_least(n[0] - done, n[1]);
            RUN_LAUNCH(f->map, to, &out, &t[1], &m, &k, &all);
        }
        break;
    case V_JOIN:
        RUN_LAUNCH(f->join, to, &t[0], &t[1], &t[2], &n[0], &n[1], &n[2]);
        break;
    case V_ADD:
        RUN_LAUNCH(f->add, to, &t[0], &t[1], &n[0], &n[1]);
        break;
    case V_RELU:
        RUN_LAUNCH(f->relu, to, &t[0], &n[0]);
        break;
    case V_HALVES:
        for (uint32_t which = 0; which < 2; which++)
            RUN_LAUNCH(f->half, to, &t[0], &t[1], &n[0], &which);
        break;
    case V_STATS:
        RUN_LAUNCH(f->stats, to, &t[0], &t[1], &t[2], &n[0]);
        break;
    default: {
        uint64_t seed = 5, offset = k;
        RUN_LAUNCH(f->random, to, &t[0], &n[0], &seed, &offset);
        break;
    }
    }
}

/* An event is of the stream's context. */
static void record(struct run *r, const struct step *s)
{
    CUevent *e = &r->event[s->event];
    const uint8_t of = r->p->start.context[s->stream];
    if (*e && r->event_context[s->event] != of) {
        MUST(cuEventDestroy_v2(*e));
        *e = NULL;
    }
    run_use(of);
    if (!*e)
        MUST(cuEventCreate(e, s->value % 3 ? CU_EVENT_DISABLE_TIMING : 0));
    r->event_context[s->event] = of;
    MUST(cuEventRecord(*e, r->stream[s->stream]));
}

static void wait_until(CUresult (*ask)(void *), void *what)
{
    CUresult e;
    while ((e = ask(what)) == CUDA_ERROR_NOT_READY)
        usleep(20);
    MUST(e);
}
static CUresult ask_event(void *e) { return cuEventQuery(e); }
static CUresult ask_stream(void *s) { return cuStreamQuery(s); }

static void do_step(struct run *r, int i)
{
    const struct step *s = &r->p->step[i];
    CUstream to = r->stream[s->stream];
    CUdeviceptr a = s->t[0] >= 0 ? r->tensor[s->t[0]] : 0, b = s->t[1] >= 0 ? r->tensor[s->t[1]] : 0;
    if (s->verb == V_ALLOC || s->verb == V_ALLOC_SYNC || s->verb == V_BESIDE_CAPTURE)
        r->words[s->t[0]] = s->value;
    run_use(s->context);
    uint32_t n = s->t[0] >= 0 ? r->words[s->t[0]] : 0, m = s->t[1] >= 0 ? r->words[s->t[1]] : 0;
    uint32_t *h = pinned[r->side][s->host];
    struct call *c = &r->calls[i];
    *c = (struct call){h, s->value, &r->notes[i]};
    switch (s->verb) {
    case V_ALLOC:
        if (r->p->seed % 5 == 0)
            MUST(cuMemAllocFromPoolAsync(&r->tensor[s->t[0]], 4ull * n, run_pool, to));
        else
            MUST(cuMemAllocAsync(&r->tensor[s->t[0]], 4ull * n, to));
        break;
    case V_FREE: MUST(cuMemFreeAsync(a, to)); break;
    case V_ALLOC_SYNC: run_alloc(r, s); break;
    case V_FREE_SYNC: run_free(r, s); break;
    case V_FILL: MUST(cuMemsetD32Async(a, s->value, n, to)); break;
    case V_FILL_PART: MUST(cuMemsetD8Async(a + 4ull * (n / 3), (unsigned char)s->value, 4ull * (n / 3), to)); break;
    case V_FILL_SYNC: MUST(cuMemsetD32_v2(a, s->value, n)); break;
    case V_COPY: MUST(cuMemcpyDtoDAsync_v2(a, b, 4ull * order_least(n, m), to)); break;
    case V_COPY_SYNC: MUST(cuMemcpyDtoD_v2(a, b, 4ull * order_least(n, m))); break;
    case V_UP: MUST(cuMemcpyHtoDAsync_v2(a, h, 4ull * n, to)); break;
    case V_UP_SYNC: MUST(cuMemcpyHtoD_v2(a, h, 4ull * n)); break;
    case V_UP_PAGED:
        run_pattern(r->paged, n, s->value);
        MUST(cuMemcpyHtoDAsync_v2(a, r->paged, 4ull * n, to));
        memset(r->paged, 0, 4ull * n);
        break;
    case V_DOWN: MUST(cuMemcpyDtoHAsync_v2(h, b, 4ull * m, to)); break;
    case V_DOWN_PAGED:
    case V_DOWN_SYNC:
        if (s->verb == V_DOWN_SYNC)
            MUST(cuMemcpyDtoH_v2(r->paged, b, 4ull * m));
        else
            MUST(cuMemcpyDtoHAsync_v2(r->paged, b, 4ull * m, to));
        r->notes[i] = run_hash(r->paged, m);
        break;
    case V_HOST_WRITE: run_pattern(h, HOST_WORDS, s->value); break;
    case V_HOST_READ: r->notes[i] = run_hash(h, HOST_WORDS); break;
    case V_CALL_READ: MUST(cuLaunchHostFunc(to, call_read, c)); break;
    case V_CALL_WRITE: MUST(cuLaunchHostFunc(to, call_write, c)); break;
    case V_RECORD: record(r, s); break;
    case V_WAIT: MUST(cuStreamWaitEvent(to, r->event[s->event], 0)); break;
    case V_DROP_EVENT:
        if (r->event[s->event])
            MUST(cuEventDestroy_v2(r->event[s->event]));
        r->event[s->event] = NULL;
        break;
    case V_SYNC_EVENT: MUST(cuEventSynchronize(r->event[s->event])); break;
    case V_POLL_EVENT: wait_until(ask_event, r->event[s->event]); break;
    case V_SYNC: MUST(cuStreamSynchronize(to)); break;
    case V_POLL: wait_until(ask_stream, to); break;
    case V_SYNC_ALL:
        for (int i = 0; i < CONTEXTS; i++)
            if (r->p->kinds & run_context_kind[i] || i == CONTEXT_PRIMARY) {
                run_use(i);
                MUST(cuCtxSynchronize());
            }
        break;
    case V_CREATE: MUST(cuStreamCreate(&r->stream[s->stream], CU_STREAM_NON_BLOCKING)); break;
    case V_DESTROY: MUST(cuStreamDestroy_v2(to)); break;
    default:
        if (!run_kinds_step(r, i))
            launch(r, s, to);
        break;
    }
}

/* ---- threads -------------------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    pthread_t thread;
    bool started;
    struct run *run; /* what the second thread is to do; NULL: nothing */
    int step;
} second = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *second_thread(void *arg)
{
    (void)arg;
    run_use(CONTEXT_PRIMARY);
    pthread_mutex_lock(&second.mutex);
    for (;;) {
        while (!second.run)
            pthread_cond_wait(&second.cond, &second.mutex);
        do_step(second.run, second.step);
        second.run = NULL;
        pthread_cond_broadcast(&second.cond);
    }
    return NULL;
}

static void elsewhere(struct run *r, int step)
{
    pthread_mutex_lock(&second.mutex);
    if (!second.started && pthread_create(&second.thread, NULL, second_thread, NULL))
        exit(4);
    second.started = true;
    second.run = r;
    second.step = step;
    pthread_cond_broadcast(&second.cond);
    while (second.run)
        pthread_cond_wait(&second.cond, &second.mutex);
    pthread_mutex_unlock(&second.mutex);
}

static void run_on(const struct program *p, uint64_t *notes, int side)
{
    struct run *r = calloc(1, sizeof *r);
    if (!r || !(r->calls = calloc((size_t)p->n_steps, sizeof *r->calls)) || !(r->paged = malloc(4 * HOST_WORDS)))
        exit(4);
    r->p = p;
    r->notes = notes;
    r->side = side;
    memset(notes, 0, (size_t)p->n_steps * sizeof *notes);
    unsigned n_free = 0, n_blocking = 0;
    if (p->kinds)
        run_kinds_begin(r);
    for (int s = 0; s < MAX_STREAMS; s++)
        if (p->start.context[s] != CONTEXT_PRIMARY)
            r->stream[s] = run_kinds_stream(p, s);
        else switch (p->start.kind[s]) {
        case STREAM_FREE: r->stream[s] = streams_free[side][n_free++ % PER_KIND]; break;
        case STREAM_BLOCKING: r->stream[s] = streams_blocking[side][n_blocking++ % PER_KIND]; break;
        case STREAM_LEGACY: r->stream[s] = p->seed % 2 ? NULL : CU_STREAM_LEGACY; break;
        case STREAM_THREAD: r->stream[s] = CU_STREAM_PER_THREAD; break;
        default: break;
        }
    for (int i = 0; i < MAX_HOSTS; i++)
        memset(pinned[side][i], 0, 4 * HOST_WORDS);
    for (int i = 0; i < p->n_steps; i++)
        if (p->step[i].thread)
            elsewhere(r, i);
        else
            do_step(r, i);
    if (p->kinds)
        run_kinds_end(r);
    free(r->paged);
    free(r->calls);
    free(r);
}

void run_program(const struct program *p, uint64_t *notes) { run_on(p, notes, 0); }

struct beside {
    const struct program *p;
    uint64_t *notes;
};
static void *run_beside(void *arg)
{
    struct beside *b = arg;
    run_use(CONTEXT_PRIMARY);
    run_on(b->p, b->notes, 1);
    return NULL;
}

void run_both(const struct program *p, uint64_t *p_notes, const struct program *q, uint64_t *q_notes)
{
    struct beside b = {q, q_notes};
    pthread_t t;
    if (pthread_create(&t, NULL, run_beside, &b))
        exit(4);
    run_on(p, p_notes, 0);
    pthread_join(t, NULL);
}
