/* awkward CASE: moments at which a library in front of the driver easily loses its limit, or its way. Prints what the program computes.
 *
 *   capture_beside  a stream allocates while another one is captured, as often as it can within 640 KiB
 *   capture_own     so, memory of the program's own, when memory that the captured stream has used has just been freed
 *   reset           the primary context is reset, and the program begins anew
 *   release         the primary context is given back by its last holder, and the program begins anew
 *   own_context     the only context, of the program's own making, is destroyed, and the program begins anew
 *   other_free      memory is freed on its stream while another device is the current one
 *   other_create    memory is created on a device that is not the current one, and by a thread that has none
 *   streams         150 streams, which take turns and are exchanged for others
 *   wait_room       a thread goes on behind a stream that waits for a word, and needs room there; another thread writes the word
 *   pitches         four threads ask for pitched memory at once, of which there may be room for one
 *   leaving         memory of the program's own is given back in such a stream, and other memory of its own is asked for
 */
#include "tests/programs/crowd.h"

#include <pthread.h>

enum { ROUNDS = 6 };

/* ---- captures --------------------------------------------------------------------------------------------------------- */

static void capture_beside(void)
{
    CUstream s = stream(1), t = stream(1);
    CUdeviceptr p = alloc(s), more[CROWD];
    CUgraph g;
    fill(p, 1, s);
    MUST(cuStreamSynchronize(s));
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    map(p, p, s);
    int n = 0;
    CUresult r = CUDA_SUCCESS;
    for (; n < CROWD && (r = cuMemAllocAsync(&more[n], BYTES, t)) == CUDA_SUCCESS; n++)
        fill(more[n], (uint32_t)n, t);
    fprintf(stderr, "%d times, %s\n", n, name(r));
    MUST(cuStreamEndCapture(s, &g));
    look("first", more[0], t);
    for (int i = 0; i < n; i++)
        MUST(cuMemFreeAsync(more[i], t));
}

static void capture_own(void)
{
    CUstream s = stream(1), t = stream(1);
    CUdeviceptr p = alloc(s), out = alloc(s), more[CROWD] = {0}, own = 0;
    CUgraph g;
    fill(p, 1, s);
    crowd(more, s);
    for (int i = 0; i < 8; i++)
        map(more[i], p, s);
    for (int i = 0; i < 8; i++)
        MUST(cuMemFreeAsync(more[i], s));
    MUST(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    map(out, p, s);
    MUST(cuMemAlloc_v2(&own, 2 * BYTES));
    MUST(cuMemsetD32Async(own, 5, WORDS, t));
    look("own", own, t);
    map(out, out, s);
    MUST(cuStreamEndCapture(s, &g));
    CUgraphExec e;
    MUST(cuGraphInstantiateWithFlags(&e, g, 0));
    MUST(cuGraphLaunch(e, s));
    look("out", out, s);
    look("more", more[8], s);
}

/* ---- contexts that end ------------------------------------------------------------------------------------------------ */

static void end_own(void)
{
    MUST(cuCtxDestroy_v2(ctx));
    MUST(cuCtxCreate_v2(&ctx, 0, 0));
}

static void anew(void (*end)(void))
{
    for (uint32_t r = 0; r < 3; r++) {
        CUdeviceptr more[CROWD] = {0};
        CUmodule m = load_kernels();
        f_map = kernel(m, "map");
        CUstream s = stream(1);
        CUdeviceptr p = alloc(s), q = alloc(s), small;
        fill(p, 3 + r, s);
        crowd(more, s);
        map(q, p, s);
        MUST(cuMemAllocAsync(&small, 4096, s));
        crowd(more, s);
        look("q", q, s);
        look("first", more[0], s);
        end();
        if (end != end_own)
            MUST(cuDevicePrimaryCtxRetain(&ctx, 0));
        MUST(cuCtxSetCurrent(ctx));
    }
}

static void end_by_reset(void) { MUST(cuDevicePrimaryCtxReset_v2(0)); }
static void end_by_release(void)
{
    MUST(cuCtxSetCurrent(NULL));
    MUST(cuDevicePrimaryCtxRelease_v2(0));
}
static void reset(void) { anew(end_by_reset); }
static void release(void) { anew(end_by_release); }
static void own_context(void)
{
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    MUST(cuCtxCreate_v2(&ctx, 0, 0));
    anew(end_own);
}

/* ---- other devices ---------------------------------------------------------------------------------------------------- */

static void other_free(void)
{
    CUcontext other = second_device();
    CUstream s = stream(1);
    CUdeviceptr more[CROWD] = {0}, out = alloc(s);
    fill(out, 1, s);
    for (int r = 0; r < ROUNDS; r++) {
        CUdeviceptr p = alloc(s), q = alloc(s);
        crowd(more, s);
        fill(p, (uint32_t)r, s);
        for (int i = 0; i < 20; i++)
            map(q, p, s), map(p, q, s);
        map(out, p, s);
        MUST(cuCtxSetCurrent(other));
        MUST(cuMemFreeAsync(p, s));
        MUST(cuCtxSetCurrent(ctx));
        CUstream t = stream(1);
        CUdeviceptr u = alloc(t), v = alloc(t), w = alloc(t);
        fill(u, 77, t), fill(v, 78, t), fill(w, 79, t);
        look("u", u, t);
        look("out", out, s);
        MUST(cuMemFreeAsync(u, t));
        MUST(cuMemFreeAsync(v, t));
        MUST(cuMemFreeAsync(w, t));
        MUST(cuMemFreeAsync(q, s));
    }
}

static void create_on(int dev, const char *what)
{
    CUmemGenericAllocationHandle h[4];
    const CUmemAllocationProp prop = memory_of(dev);
    for (int i = 0; i < 4; i++)
        printf("%s %s\n", what, name(cuMemCreate(&h[i], BYTES, &prop, 0)));
    for (int i = 0; i < 4; i++)
        MUST(cuMemRelease(h[i]));
}

static void *create_without(void *arg)
{
    (void)arg;
    create_on(1, "by a thread that has no context");
    return NULL;
}

static void other_create(void)
{
    CUcontext other = second_device();
    pthread_t t;
    MUST(cuCtxSetCurrent(other));
    CUstream s = stream(1);
    CUdeviceptr more[CROWD] = {0};
    crowd(more, s);
    MUST(cuCtxSetCurrent(ctx));
    create_on(1, "on the other device");
    MUST(cuCtxSetCurrent(other));
    crowd(more, s);
    look("first", more[0], s);
    if (pthread_create(&t, NULL, create_without, NULL))
        exit(3);
    pthread_join(t, NULL);
    look("last", more[CROWD - 1], s);
}

/* ---- threads ---------------------------------------------------------------------------------------------------------- */

static CUdeviceptr word;
static CUstream sb;
static void *write_word(void *arg)
{
    (void)arg;
    MUST(cuCtxSetCurrent(ctx));
    usleep(500000);
    MUST(cuStreamWriteValue32(sb, word, 1, 0));
    MUST(cuStreamSynchronize(sb));
    return NULL;
}
static void wait_room(void)
{
    pthread_t other;
    CUstream a = stream(1);
    sb = stream(1);
    CUdeviceptr more[CROWD] = {0}, extra[CROWD] = {0};
    MUST(cuMemAlloc_v2(&word, 4));
    MUST(cuMemsetD32_v2(word, 0, 1));
    crowd(more, a);
    MUST(cuCtxSynchronize());
    MUST(cuStreamWaitValue32(a, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    if (pthread_create(&other, NULL, write_word, NULL))
        exit(3);
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < CROWD; i++) {
            if (!extra[i])
                extra[i] = alloc(a);
            fill(extra[i], 7u + (uint32_t)(i * r), a);
            map(more[i], extra[i], a);
            if (i % 3 == r % 3) {
                MUST(cuMemFreeAsync(extra[i], a));
                extra[i] = 0;
            }
        }
    pthread_join(other, NULL);
    for (int i = 0; i < CROWD; i++)
        look("more", more[i], a);
}

static void *ask_for_pitches(void *times)
{
    MUST(cuCtxSetCurrent(ctx));
    for (int i = 0; i < *(const int *)times; i++) {
        CUdeviceptr p;
        size_t pitch;
        if (cuMemAllocPitch_v2(&p, &pitch, 512, 3 * BYTES / 512, 4) == CUDA_SUCCESS)
            MUST(cuMemFree_v2(p));
    }
    return NULL;
}

static void pitches(void)
{
    pthread_t t[4];
    CUdeviceptr stays, more;
    MUST(cuMemAlloc_v2(&stays, 6 * BYTES));
    int times = 10000;
    if (cuMemAlloc_v2(&more, 5 * BYTES) == CUDA_SUCCESS) { /* there is room natively: each call takes addresses, and only some are to be had */
        MUST(cuMemFree_v2(more));
        times = 100;
    }
    for (int i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, ask_for_pitches, &times))
            exit(3);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    printf("done\n");
}

static void leaving(void)
{
    pthread_t other;
    CUstream a = stream(1), t = stream(1);
    CUdeviceptr p[4], q[4];
    size_t before, after, all;
    sb = stream(1);
    MUST(cuMemAlloc_v2(&word, 4));
    MUST(cuMemsetD32_v2(word, 0, 1));
    for (uint32_t i = 0; i < 4; i++) {
        MUST(cuMemAlloc_v2(&p[i], 2 * BYTES));
        fill(p[i], i, a);
    }
    MUST(cuCtxSynchronize());
    MUST(cuStreamWaitValue32(a, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    for (int i = 0; i < 4; i++)
        MUST(cuMemFreeAsync(p[i], a));
    MUST(cuMemGetInfo_v2(&before, &all));
    if (pthread_create(&other, NULL, write_word, NULL))
        exit(3);
    for (uint32_t i = 0; i < 4; i++) {
        MUST(cuMemAlloc_v2(&q[i], 2 * BYTES));
        fill(q[i], 7 + i, t);
    }
    pthread_join(other, NULL);
    MUST(cuStreamSynchronize(a));
    for (int i = 0; i < 4; i++)
        look("q", q[i], t);
    for (int i = 0; i < 4; i++)
        MUST(cuMemFreeAsync(q[i], t));
    MUST(cuStreamSynchronize(t));
    MUST(cuMemGetInfo_v2(&after, &all));
    printf("free: %lld more\n", (long long)(after - before));
}

/* ---- streams ---------------------------------------------------------------------------------------------------------- */

static void streams(void)
{
    enum { MANY = 150 };
    CUstream s[MANY];
    CUdeviceptr p[MANY];
    for (int i = 0; i < MANY; i++) {
        s[i] = stream(i % 3 != 0);
        p[i] = alloc(s[i]);
        fill(p[i], (uint32_t)i, s[i]);
    }
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < MANY; i++) {
            CUevent e;
            MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
            MUST(cuEventRecord(e, s[i]));
            MUST(cuStreamWaitEvent(s[(i * 7 + 1) % MANY], e, 0));
            map(p[(i * 7 + 1) % MANY], p[i], s[(i * 7 + 1) % MANY]);
            MUST(cuEventRecord(e, s[(i * 7 + 1) % MANY]));
            MUST(cuStreamWaitEvent(s[i], e, 0));
            MUST(cuEventDestroy_v2(e));
            if (i % 10 == r) {
                MUST(cuMemFreeAsync(p[i], s[i]));
                MUST(cuStreamDestroy_v2(s[i]));
                s[i] = stream(1);
                p[i] = alloc(s[i]);
                fill(p[i], (uint32_t)(i * r), s[i]);
            }
        }
    }
    MUST(cuCtxSynchronize());
    for (int i = 0; i < MANY; i++)
        look("p", p[i], s[i]);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(capture_beside), CASE(capture_own), CASE(reset), CASE(release), CASE(own_context), CASE(other_free), CASE(other_create),
        CASE(wait_room), CASE(pitches), CASE(leaving), CASE(streams)};
    start();
    return run_case("awkward", cases, sizeof cases / sizeof *cases, argc, argv);
}
