/* order CASE: programs whose result hangs on one order that they promise. Each was wrong once, under a device that does no more
 * than it must (SIMGPU_CHAOS=adversary), and right everywhere else. Prints a line a round; natively all rounds of a case are as
 * the program says.
 *
 *   foreign_free   a tensor used on two streams is freed on a third that only ever waited for events
 *   foreign_fresh  the same on streams that were never used before
 *   first_touch    memory given to a tensor that nobody touches is taken back and filled by a copy, while its owner before
 *                  is still being read; one stream
 *   legacy_free    two blocking streams are ordered by a free on the legacy stream between them
 *   blocking_acts  an allocation, then a free, on a blocking stream comes after the legacy stream's work, and the host waits for that
 *                  blocking stream
 *   legacy_user    a blocking stream frees what the legacy stream still reads; the place goes back to the driver
 *   two_threads    what one thread's own stream waits for before it reads a tensor, another thread's does not: it reads it too
 *   thread_capture a thread's own stream frees memory behind slow work and is captured; another thread is given that memory */
#include "tests/programs/crowd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { ROUNDS = 8 };

static CUfunction f_add, f_stats;

static void add(CUdeviceptr x, CUdeviceptr a, CUstream s)
{
    uint32_t n = WORDS;
    MUST(cuLaunchKernel(f_add, 8, 1, 1, 64, 1, 1, 0, s, (void *[]){&x, &a, &n, &n}, NULL));
}

static void after(CUstream to, CUstream from)
{
    CUevent e;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, from));
    MUST(cuStreamWaitEvent(to, e, 0));
    MUST(cuEventDestroy_v2(e));
}

static void look_in(const char *what, int round, CUdeviceptr p, CUstream s)
{
    MUST(cuMemcpyDtoHAsync_v2(host, p, BYTES, s));
    printf("round %d %s %016llx\n", round, what, (unsigned long long)hash());
}

/* What is done once is done: a case does not pause. */
static void warm_up(CUstream s)
{
    CUdeviceptr first = alloc(s);
    fill(first, 1, s);
    add(first, first, s);
    MUST(cuMemFreeAsync(first, s));
    MUST(cuCtxSynchronize());
}

static void free_on_third(bool fresh)
{
    CUstream a = stream(1), b = stream(1), c = stream(1), d = stream(1);
    warm_up(a);
    for (int r = 0; r < ROUNDS; r++) {
        if (fresh) { /* never used before, as memory of this size was not: nothing orders them by chance */
            a = stream(1);
            b = stream(1);
            c = stream(1);
            d = stream(1);
        }
        CUdeviceptr t, out = alloc(b), next;
        size_t bytes = fresh ? BYTES * (size_t)(r + 2) : BYTES;
        MUST(cuMemAllocAsync(&t, bytes, a));
        fill(t, (uint32_t)r, a);
        after(b, a);
        map(out, t, b);
        after(c, a);
        after(c, b);
        MUST(cuMemFreeAsync(t, c));
        MUST(cuMemAllocAsync(&next, bytes, d));
        fill(next, 77, d);
        look_in("next", r, next, d);
        look_in("out", r, out, b);
        look_in("next again", r, next, d);
        MUST(cuMemFreeAsync(next, d));
        MUST(cuMemFreeAsync(out, b));
        MUST(cuCtxSynchronize());
    }
}

static void foreign_free(void) { free_on_third(false); }
static void foreign_fresh(void) { free_on_third(true); }

static void first_touch(void)
{
    CUstream s = stream(1);
    warm_up(s);
    CUdeviceptr kept = alloc(s), out = alloc(s);
    fill(kept, 3, s);
    for (int r = 0; r < ROUNDS; r++) {
        CUdeviceptr push[3];
        fill(out, 0, s);
        for (int i = 0; i < 3; i++) { /* `kept` leaves for the host: used least recently */
            push[i] = alloc(s);
            fill(push[i], (uint32_t)(r + i), s);
        }
        MUST(cuStreamSynchronize(s));
        map(out, push[2], s); /* the one that has the place of `kept`: used least recently from here on */
        add(out, push[1], s);
        add(out, push[0], s);
        for (int i = 0; i < 3; i++)
            MUST(cuMemFreeAsync(push[i], s));
        for (int i = 0; i < 3; i++)
            push[i] = alloc(s); /* in their place, never touched */
        add(kept, kept, s);     /* comes back, in the place of one of them */
        look_in("out", r, out, s);
        look_in("kept", r, kept, s);
        for (int i = 0; i < 3; i++)
            MUST(cuMemFreeAsync(push[i], s));
    }
}

static void legacy_free(void)
{
    CUstream a = stream(1), b = stream(0), c = stream(0);
    warm_up(a);
    CUdeviceptr x = alloc(a), out = alloc(c);
    MUST(cuCtxSynchronize());
    for (int r = 0; r < ROUNDS; r++) {
        CUdeviceptr t = alloc(CU_STREAM_LEGACY);
        fill(x, (uint32_t)r, a);
        after(b, a);
        MUST(cuMemFreeAsync(t, CU_STREAM_LEGACY)); /* after b, and so after a */
        map(out, x, c);                            /* after the free */
        look_in("out", r, out, c);
        MUST(cuCtxSynchronize());
    }
}

static void blocking_acts(void)
{
    CUstream a = stream(1), b = stream(0);
    warm_up(a);
    CUdeviceptr x = alloc(a), out = alloc(a), t;
    for (int r = 0; r < 2 * ROUNDS; r++) {
        if (r % 2)
            t = alloc(b);
        fill(x, (uint32_t)r, a);
        MUST(cuStreamSynchronize(a));
        MUST(cuStreamSynchronize(b));
        map(out, x, CU_STREAM_LEGACY);
        if (r % 2)
            MUST(cuMemFreeAsync(t, b));
        else
            t = alloc(b);
        MUST(cuStreamSynchronize(b)); /* has waited for the map */
        look_in("out", r, out, a);
        if (r % 2 == 0)
            MUST(cuMemFreeAsync(t, b));
        MUST(cuCtxSynchronize());
    }
}

static void legacy_user(void)
{
    CUstream b = stream(0);
    CUdeviceptr out = alloc(b), t[4], own;
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < 4; i++) {
            t[i] = alloc(b);
            fill(t[i], (uint32_t)(r + i), b);
        }
        MUST(cuCtxSynchronize());
        map(out, t[0], CU_STREAM_LEGACY);
        for (int i = 1; i < 4; i++)
            add(out, t[i], CU_STREAM_LEGACY);
        for (int i = 0; i < 4; i++)
            MUST(cuMemFreeAsync(t[i], b));
        MUST(cuMemAlloc_v2(&own, 4 * BYTES)); /* makes room in the limit */
        look_in("out", r, out, CU_STREAM_LEGACY);
        MUST(cuMemFree_v2(own));
    }
}

static void nap(void *arg)
{
    (void)arg;
    usleep(300000);
}

struct reading {
    CUdeviceptr out, in;
    atomic_bool go;
};

static void *read_too(void *arg)
{
    struct reading *r = arg;
    MUST(cuCtxSetCurrent(ctx));
    while (!r->go)
        ;
    usleep(30000);
    map(r->out, r->in, CU_STREAM_PER_THREAD);
    look_in("other thread", 0, r->out, CU_STREAM_PER_THREAD);
    return NULL;
}

static void two_threads(void)
{
    CUstream s = stream(1), t = stream(1);
    CUdeviceptr more[CROWD] = {0}, x = alloc(t), out = alloc(t), late = alloc(s);
    struct reading other = {.out = alloc(t), .in = x};
    uint32_t n = WORDS;
    pthread_t thread;
    MUST(cuCtxSynchronize());
    fill(x, 7, t);
    fill(other.out, 1, CU_STREAM_PER_THREAD);
    map(other.out, other.out, CU_STREAM_PER_THREAD);
    MUST(cuCtxSynchronize());
    crowd(more, t); /* x leaves for the host */
    fill(late, 9, s);
    fill(out, 1, t);
    fill(other.out, 1, t);
    MUST(cuCtxSynchronize());
    MUST(cuMemFreeAsync(late, s));
    fill(more[0], 1000, t); /* takes the place of `late` */
    MUST(cuCtxSynchronize());
    MUST(cuLaunchHostFunc(s, nap, NULL));
    MUST(cuMemAllocAsync(&late, BYTES, CU_STREAM_PER_THREAD));
    if (pthread_create(&thread, NULL, read_too, &other))
        exit(3);
    usleep(5000);
    other.go = true;
    /* x comes back, and `late` gets its memory: this thread's stream waits for both */
    MUST(cuLaunchKernel(f_stats, 8, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, (void *[]){&out, &x, &late, &n}, NULL));
    pthread_join(thread, NULL);
    look_in("this thread", 0, out, CU_STREAM_PER_THREAD);
    look_in("x", 0, x, CU_STREAM_PER_THREAD);
}

/* Small enough to lie in a page with others: its place is given to the next one of its size at once. */
enum { FEW = 1024 };

static CUdeviceptr alloc_few(void)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4 * FEW, CU_STREAM_PER_THREAD));
    return p;
}

static void map_few(CUdeviceptr p)
{
    uint32_t n = FEW, k = 1, all = 0xffffffffu;
    MUST(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, (void *[]){&p, &p, &n, &k, &all}, NULL));
}

static void *use_again(void *arg)
{
    CUdeviceptr *q = arg;
    MUST(cuCtxSetCurrent(ctx));
    *q = alloc_few();
    MUST(cuMemsetD32Async(*q, 6, FEW, CU_STREAM_PER_THREAD));
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void thread_capture(void)
{
    CUdeviceptr r = alloc_few(), p = alloc_few(), q = 0;
    CUgraph g;
    pthread_t thread;
    MUST(cuMemsetD32Async(r, 1, FEW, CU_STREAM_PER_THREAD));
    MUST(cuMemsetD32Async(p, 1, FEW, CU_STREAM_PER_THREAD));
    MUST(cuCtxSynchronize());
    MUST(cuLaunchHostFunc(CU_STREAM_PER_THREAD, nap, NULL));
    map_few(p);
    MUST(cuMemFreeAsync(p, CU_STREAM_PER_THREAD));
    MUST(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    map_few(r);
    MUST(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
    MUST(cuGraphDestroy(g));
    if (pthread_create(&thread, NULL, use_again, &q))
        exit(3);
    pthread_join(thread, NULL);
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH_v2(host, q, 4 * FEW));
    printf("round 0 other thread %u %u\n", host[0], host[FEW - 1]);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(foreign_free), CASE(foreign_fresh), CASE(first_touch), CASE(legacy_free), CASE(blocking_acts), CASE(legacy_user),
        CASE(two_threads), CASE(thread_capture)};
    start();
    f_add = kernel(kernels, "add");
    f_stats = kernel(kernels, "stats");
    return run_case("order", cases, sizeof cases / sizeof *cases, argc, argv);
}
