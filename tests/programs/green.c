/* green CASE [proven]: contexts of one device that come by other calls than cuCtxCreate; the default stream of one is not the other's.
 *
 *   green      a green context beside the primary one
 *   pushed     it is made current by cuCtxPushCurrent, and the primary one again by cuCtxPopCurrent
 *   two        two green contexts, each with a part of the multiprocessors
 *   streams    streams of green contexts, used from either
 *   first      the device is first used in a green context, which ends; its memory stays
 *   ended      green contexts come and go, with streams in them, while tensors stay
 *   last       the green context's end is the end of the primary one, too; then the device is used anew
 *   detached   a context of the program's own is attached to and ends with the last detachment
 *   kept       the primary context is retained more than once, and released
 *
 * proven: the thread has asked for memory so often before that what its doors tell of contexts is believed (policy/current.h). */
#include "tests/programs/crowd.h"

enum { N = 6 };
static CUcontext second;
static CUgreenCtx green;
static CUdeviceptr keep[N], other[N];

static CUcontext green_context(CUdevResource *of, CUgreenCtx *g)
{
    CUdevResource sms;
    CUdevResourceDesc desc;
    CUcontext c;
    if (!of) {
        MUST(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
        of = &sms;
    }
    MUST(cuDevResourceGenerateDesc(&desc, of, 1));
    MUST(cuGreenCtxCreate(g, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuCtxFromGreenCtx(&c, *g));
    return c;
}

/* Tensors in the default stream of the context that is current. */
static void tensors(CUdeviceptr *t, uint32_t v)
{
    for (unsigned i = 0; i < N; i++) {
        t[i] = alloc(NULL);
        fill(t[i], v + i, NULL);
    }
    MUST(cuStreamSynchronize(NULL));
}

static void work(CUdeviceptr *t)
{
    for (int i = 0; i < N; i++)
        map(t[i], t[i], NULL);
}

static void tell(const char *what, CUdeviceptr *t)
{
    for (int i = 0; i < N; i++)
        look(what, t[i], NULL);
}

/* Work is queued in one context's default stream and nobody waits for it; what is done in the other one's needs the memory. */
static void in_turn(void)
{
    MUST(cuCtxSetCurrent(ctx));
    tensors(keep, 100);
    MUST(cuCtxSetCurrent(second));
    tensors(other, 200);
    for (int r = 0; r < 4; r++) {
        MUST(cuCtxSetCurrent(ctx));
        work(keep);
        MUST(cuCtxSetCurrent(second));
        work(other);
    }
    MUST(cuCtxSetCurrent(ctx));
    tell("keep", keep);
    MUST(cuCtxSetCurrent(second));
    tell("other", other);
}

static void case_green(void)
{
    second = green_context(NULL, &green);
    in_turn();
}

static void pushed(void)
{
    CUcontext was;
    second = green_context(NULL, &green);
    tensors(keep, 100);
    MUST(cuCtxPushCurrent_v2(second));
    tensors(other, 200);
    for (int r = 0; r < 4; r++) {
        work(other);
        MUST(cuCtxPopCurrent_v2(&was));
        work(keep);
        MUST(cuCtxPushCurrent_v2(second));
    }
    tell("other", other);
    MUST(cuCtxPopCurrent_v2(&was));
    tell("keep", keep);
}

static void two(void)
{
    CUdevResource sms, half[2];
    CUgreenCtx g[2];
    unsigned n = 2;
    MUST(cuDeviceGetDevResource(0, &sms, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevSmResourceSplitByCount(half, &n, &sms, NULL, 0, sms.sm.smCount / 2));
    CUcontext a = green_context(&half[0], &g[0]), b = green_context(&half[1], &g[1]);
    ctx = a;
    second = b;
    in_turn();
    CUcontext primary;
    MUST(cuDevicePrimaryCtxRetain(&primary, 0));
    ctx = primary;
    in_turn();
}

static void streams(void)
{
    CUstream a, b, c;
    second = green_context(NULL, &green);
    MUST(cuGreenCtxStreamCreate(&a, green, CU_STREAM_NON_BLOCKING, 0));
    MUST(cuCtxSetCurrent(second));
    b = stream(CU_STREAM_NON_BLOCKING);
    MUST(cuCtxSetCurrent(ctx));
    c = stream(CU_STREAM_NON_BLOCKING);
    CUstream all[] = {a, b, c};
    CUdeviceptr t[3][N];
    for (int i = 0; i < 3; i++)
        for (unsigned k = 0; k < N; k++) {
            t[i][k] = alloc(all[i]);
            fill(t[i][k], 10u * (unsigned)i + k, all[i]);
        }
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < 3; i++) {
            MUST(cuCtxSetCurrent((r + i) % 2 ? second : ctx));
            for (int k = 0; k < N; k++)
                map(t[i][k], t[i][k], all[i]);
        }
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < N; k++)
            look("stream", t[i][k], all[i]);
    for (int i = 0; i < 3; i++)
        MUST(cuStreamDestroy_v2(all[i]));
    MUST(cuGreenCtxDestroy(green));
}

static void first(void)
{
    CUdeviceptr more[CROWD] = {0};
    second = green_context(NULL, &green);
    MUST(cuCtxSetCurrent(second));
    tensors(keep, 100);
    crowd(more, NULL);
    work(keep);
    MUST(cuStreamSynchronize(NULL));
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuGreenCtxDestroy(green));
    crowd(more, NULL);
    tell("keep", keep);
    work(keep);
    crowd(more, NULL);
    tell("keep", keep);
}

static void ended(void)
{
    CUdeviceptr more[CROWD] = {0};
    tensors(keep, 100);
    for (int r = 0; r < 3; r++) {
        CUstream s;
        second = green_context(NULL, &green);
        MUST(cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0));
        MUST(cuCtxSetCurrent(second));
        for (int i = 0; i < N; i++)
            map(keep[i], keep[i], i % 2 ? s : NULL);
        MUST(cuCtxSynchronize());
        MUST(cuCtxSetCurrent(ctx));
        MUST(cuStreamDestroy_v2(s));
        MUST(cuGreenCtxDestroy(green));
        crowd(more, NULL);
        tell("keep", keep);
    }
    printf("gone %s\n", name(cuGreenCtxDestroy(green)));
}

static void last(void)
{
    MUST(cuDevicePrimaryCtxRelease_v2(0)); /* the program's own */
    MUST(cuCtxSetCurrent(NULL));
    for (int r = 0; r < 3; r++) {
        second = green_context(NULL, &green);
        MUST(cuCtxSetCurrent(second));
        f_map = kernel(load_kernels(), "map");
        tensors(keep, 100 + (uint32_t)r);
        tensors(other, 200);
        work(keep);
        work(other);
        tell("keep", keep);
        MUST(cuCtxSetCurrent(NULL));
        MUST(cuGreenCtxDestroy(green));
    }
}

static void detached(void)
{
    CUcontext again;
    MUST(cuCtxSetCurrent(NULL));
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    for (int r = 0; r < 3; r++) {
        MUST(cuCtxCreate_v2(&second, 0, 0));
        MUST(cuCtxAttach(&again, 0));
        f_map = kernel(load_kernels(), "map");
        tensors(keep, 100 + (uint32_t)r);
        tensors(other, 200);
        MUST(cuCtxDetach(again));
        work(keep);
        work(other);
        tell("keep", keep);
        MUST(cuCtxDetach(second));
        printf("gone %s\n", name(cuCtxSetCurrent(second) ? CUDA_ERROR_INVALID_CONTEXT : cuCtxSynchronize()));
        MUST(cuCtxSetCurrent(NULL));
    }
}

static void kept(void)
{
    CUcontext c;
    second = green_context(NULL, &green);
    MUST(cuDevicePrimaryCtxRetain(&c, 0));
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    MUST(cuDevicePrimaryCtxRelease_v2(0)); /* the green one keeps it */
    in_turn();
}

static void proven(void)
{
    for (int i = 0; i < 3000; i++) {
        CUdeviceptr p;
        MUST(cuMemAllocAsync(&p, 256, NULL));
        MUST(cuMemFreeAsync(p, NULL));
    }
    MUST(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"green", case_green}, CASE(pushed), CASE(two), CASE(streams), CASE(first), CASE(ended), CASE(last), CASE(detached),
                                             CASE(kept)};
    start();
    if (argc == 3 && !strcmp(argv[2], "proven")) {
        proven();
        argc--;
    }
    return run_case("green", cases, sizeof cases / sizeof cases[0], argc, argv);
}
