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
 *   legacy_user    a blocking stream frees what the legacy stream still reads; the place goes back to the driver */
#include "tests/programs/equal_buffers.h"

enum { ROUNDS = 8 };

static CUfunction f_add;

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

static void look(const char *what, int round, CUdeviceptr p, CUstream s)
{
    uint64_t h = 1469598103934665603ull;
    MUST(cuMemcpyDtoHAsync_v2(host, p, BYTES, s));
    for (int i = 0; i < WORDS; i++)
        h = (h ^ host[i]) * 1099511628211ull;
    printf("round %d %s %016llx\n", round, what, (unsigned long long)h);
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
        look("next", r, next, d);
        look("out", r, out, b);
        look("next again", r, next, d);
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
        look("out", r, out, s);
        look("kept", r, kept, s);
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
        look("out", r, out, c);
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
        look("out", r, out, a);
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
        look("out", r, out, CU_STREAM_LEGACY);
        MUST(cuMemFree_v2(own));
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"foreign_free", foreign_free},
        {"foreign_fresh", foreign_fresh},
        {"first_touch", first_touch},
        {"legacy_free", legacy_free},
        {"blocking_acts", blocking_acts},
        {"legacy_user", legacy_user},
    };
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_add = kernel(m, "add");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc == 2 && !strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "usage: order foreign_free | foreign_fresh | first_touch | legacy_free | blocking_acts | legacy_user\n");
    return 2;
}
