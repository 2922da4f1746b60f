/* Running a drawn program: each step is the call (or the few calls) that its name says. */
#include "tests/programs/api/order.h"
#include "tests/programs/program.h"

#include <pthread.h>

#define KERNELS(X) X(map) X(join) X(half) X(relu) X(add) X(stats) X(random)
#define X(name) static CUfunction f_##name;
KERNELS(X)
#undef X

enum { SIDES = 2, PER_KIND = 4 };
static CUcontext context;
static CUmemoryPool own_pool;
static CUstream streams_free[SIDES][PER_KIND], streams_blocking[SIDES][PER_KIND];
static uint32_t *pinned[SIDES][MAX_HOSTS];

/* One of the two programs that may run at the same time. */
struct run {
    const struct program *p;
    uint64_t *notes;
    int side;
    CUstream stream[MAX_STREAMS];
    CUevent event[MAX_EVENTS];
    CUdeviceptr tensor[MAX_TENSORS];
    uint32_t words[MAX_TENSORS];
    struct call {
        uint32_t *buffer;
        uint32_t value;
        uint64_t *note;
    } *calls; /* of host functions, by step */
    uint32_t *paged;
};

void run_start(void)
{
    context = primary_context();
    CUmodule m = load_kernels();
#define X(name) f_##name = kernel(m, #name);
    KERNELS(X)
#undef X
    CUmemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    MUST(cuMemPoolCreate(&own_pool, &props));
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; i < PER_KIND; i++) {
            MUST(cuStreamCreate(&streams_free[side][i], CU_STREAM_NON_BLOCKING));
            MUST(cuStreamCreate(&streams_blocking[side][i], CU_STREAM_DEFAULT));
        }
        for (int i = 0; i < MAX_HOSTS; i++)
            MUST(cuMemAllocHost_v2((void **)&pinned[side][i], 4 * HOST_WORDS));
    }
}

static uint64_t hash(const uint32_t *p, uint32_t n)
{
    uint64_t h = 1469598103934665603ull;
    for (uint32_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211ull;
    return h ? h : 1;
}

static void pattern(uint32_t *p, uint32_t n, uint32_t value)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = value * 2654435761u + i * 40503u;
}

static void call_read(void *arg)
{
    struct call *c = arg;
    *c->note = hash(c->buffer, HOST_WORDS);
}

static void call_write(void *arg)
{
    struct call *c = arg;
    pattern(c->buffer, HOST_WORDS, c->value);
}

#define LAUNCH(f, s, ...)                                                                                              \
    do {                                                                                                               \
        void *args_[] = {__VA_ARGS__};                                                                                 \
        MUST(cuLaunchKernel(f, 8, 1, 1, 64, 1, 1, 0, s, args_, NULL));                                                 \
    } while (0)

static void launch(const struct run *r, const struct step *s, CUstream to)
{
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
            LAUNCH(f_map, to, &out, &t[1], &m, &k, &all);
        }
        break;
    case V_JOIN:
        LAUNCH(f_join, to, &t[0], &t[1], &t[2], &n[0], &n[1], &n[2]);
        break;
    case V_ADD:
        LAUNCH(f_add, to, &t[0], &t[1], &n[0], &n[1]);
        break;
    case V_RELU:
        LAUNCH(f_relu, to, &t[0], &n[0]);
        break;
    case V_HALVES:
        for (uint32_t which = 0; which < 2; which++)
            LAUNCH(f_half, to, &t[0], &t[1], &n[0], &which);
        break;
    case V_STATS:
        LAUNCH(f_stats, to, &t[0], &t[1], &t[2], &n[0]);
        break;
    default: {
        uint64_t seed = 5, offset = k;
        LAUNCH(f_random, to, &t[0], &n[0], &seed, &offset);
        break;
    }
    }
}

static void record(struct run *r, const struct step *s)
{
    CUevent *e = &r->event[s->event];
    if (!*e)
        MUST(cuEventCreate(e, s->value % 3 ? CU_EVENT_DISABLE_TIMING : 0));
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
    if (s->verb == V_ALLOC || s->verb == V_ALLOC_SYNC)
        r->words[s->t[0]] = s->value;
    uint32_t n = s->t[0] >= 0 ? r->words[s->t[0]] : 0, m = s->t[1] >= 0 ? r->words[s->t[1]] : 0;
    uint32_t *h = pinned[r->side][s->host];
    struct call *c = &r->calls[i];
    *c = (struct call){h, s->value, &r->notes[i]};
    switch (s->verb) {
    case V_ALLOC:
        if (r->p->seed % 5 == 0)
            MUST(cuMemAllocFromPoolAsync(&r->tensor[s->t[0]], 4ull * n, own_pool, to));
        else
            MUST(cuMemAllocAsync(&r->tensor[s->t[0]], 4ull * n, to));
        break;
    case V_FREE: MUST(cuMemFreeAsync(a, to)); break;
    case V_ALLOC_SYNC: MUST(cuMemAlloc_v2(&r->tensor[s->t[0]], 4ull * n)); break;
    case V_FREE_SYNC: MUST(cuMemFree_v2(a)); break;
    case V_FILL: MUST(cuMemsetD32Async(a, s->value, n, to)); break;
    case V_FILL_PART: MUST(cuMemsetD8Async(a + 4ull * (n / 3), (unsigned char)s->value, 4ull * (n / 3), to)); break;
    case V_FILL_SYNC: MUST(cuMemsetD32_v2(a, s->value, n)); break;
    case V_COPY: MUST(cuMemcpyDtoDAsync_v2(a, b, 4ull * order_least(n, m), to)); break;
    case V_COPY_SYNC: MUST(cuMemcpyDtoD_v2(a, b, 4ull * order_least(n, m))); break;
    case V_UP: MUST(cuMemcpyHtoDAsync_v2(a, h, 4ull * n, to)); break;
    case V_UP_SYNC: MUST(cuMemcpyHtoD_v2(a, h, 4ull * n)); break;
    case V_UP_PAGED:
        pattern(r->paged, n, s->value);
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
        r->notes[i] = hash(r->paged, m);
        break;
    case V_HOST_WRITE: pattern(h, HOST_WORDS, s->value); break;
    case V_HOST_READ: r->notes[i] = hash(h, HOST_WORDS); break;
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
    case V_SYNC_ALL: MUST(cuCtxSynchronize()); break;
    case V_CREATE: MUST(cuStreamCreate(&r->stream[s->stream], CU_STREAM_NON_BLOCKING)); break;
    case V_DESTROY: MUST(cuStreamDestroy_v2(to)); break;
    default: launch(r, s, to); break;
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
    MUST(cuCtxSetCurrent(context));
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
    for (int s = 0; s < MAX_STREAMS; s++)
        switch (p->start.kind[s]) {
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
    MUST(cuCtxSetCurrent(context));
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
