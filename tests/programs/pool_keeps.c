/* pool_keeps CASE: memory that a pool of the driver's serves, since another stream is captured meanwhile, is freed; the pool keeps it. Then other memory is
 * asked for, which fits only where the pool lets go. 40 of 64 MiB are the pool's, each time; prints what the memory holds.
 *
 *   threshold  the pool's release threshold is raised, and the host waits
 *   waits_not  the threshold is zero, and the host waits for nothing
 *   own_pool   a pool of the program's own, with a threshold
 *   behind     the free stands in a stream behind a long kernel
 *   plain      the other memory is cuMemAlloc's
 *   mapped     it is cuMemCreate's
 *   some       a part of the pool's memory is in use still
 *   destroyed  the pool is destroyed before its memory is freed, which is in use beside two tensors of which one has room
 *   trimmed    the program trims the pool itself
 *   captured   the other memory is asked for while a stream is captured again
 *   again      many times in turn */
#include "tests/programs/crowd.h"

enum { MIB = 1 << 20 };
static CUstream s, captured;
static CUmemoryPool pool;
static CUdeviceptr p;

static void set(CUdeviceptr at, unsigned mib, uint32_t v) { MUST(cuMemsetD32Async(at, v, (size_t)mib * MIB / 4, s)); }

static void tell(const char *what, CUdeviceptr at, unsigned mib)
{
    uint32_t ends[2];
    MUST(cuMemcpyDtoHAsync_v2(&ends[0], at, 4, s));
    MUST(cuMemcpyDtoHAsync_v2(&ends[1], at + (CUdeviceptr)mib * MIB - 4, 4, s));
    MUST(cuStreamSynchronize(s));
    printf("%s %u %u\n", what, ends[0], ends[1]);
}

static void capture_begins(void) { MUST(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); }
static void capture_ends(void)
{
    CUgraph g;
    MUST(cuStreamEndCapture(captured, &g));
    MUST(cuGraphDestroy(g));
}

static CUdeviceptr from_driver(unsigned mib)
{
    CUdeviceptr at;
    capture_begins();
    MUST(cuMemAllocFromPoolAsync(&at, (size_t)mib * MIB, pool, s));
    set(at, mib, 3);
    capture_ends();
    return at;
}

static void raise_threshold(void)
{
    cuuint64_t most = UINT64_MAX;
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most));
}

static void let_go(void)
{
    tell("pool", p, 40);
    MUST(cuMemFreeAsync(p, s));
}

static void others(unsigned mib)
{
    CUdeviceptr q;
    MUST(cuMemAllocAsync(&q, (size_t)mib * MIB, s));
    set(q, mib, 5);
    tell("other", q, mib);
    MUST(cuMemFreeAsync(q, s));
    MUST(cuStreamSynchronize(s));
}

static void threshold(void)
{
    raise_threshold();
    p = from_driver(40);
    let_go();
    MUST(cuStreamSynchronize(s));
    others(60);
    p = from_driver(40);
    let_go();
}

static void waits_not(void)
{
    CUdeviceptr q;
    p = from_driver(40);
    MUST(cuMemFreeAsync(p, s));
    MUST(cuMemAllocAsync(&q, 60 * MIB, s));
    set(q, 60, 5);
    tell("other", q, 60);
}

static void own_pool(void)
{
    pool = make_pool(0);
    threshold();
}

static void behind(void)
{
    CUdeviceptr q;
    uint32_t n = 10 * MIB, k = 1, all = ~0u;
    raise_threshold();
    p = from_driver(40);
    for (int i = 0; i < 3; i++)
        LAUNCH_ON(f_map, s, &p, &p, &n, &k, &all);
    MUST(cuMemFreeAsync(p, s));
    MUST(cuMemAllocAsync(&q, 60 * MIB, captured));
    MUST(cuMemsetD32Async(q, 5, 15 * MIB, captured));
    MUST(cuStreamSynchronize(captured));
    tell("other", q, 60);
}

static void plain(void)
{
    CUdeviceptr q;
    raise_threshold();
    p = from_driver(40);
    let_go();
    MUST(cuMemAlloc_v2(&q, 60 * MIB));
    set(q, 60, 5);
    tell("other", q, 60);
}

static void mapped(void)
{
    raise_threshold();
    p = from_driver(40);
    let_go();
    MUST(cuStreamSynchronize(s));
    CUdeviceptr q = map_own(60 * MIB);
    set(q, 60, 5);
    tell("other", q, 60);
}

static void some(void)
{
    raise_threshold();
    CUdeviceptr stays = from_driver(6);
    p = from_driver(40);
    let_go();
    MUST(cuStreamSynchronize(s));
    others(54);
    tell("stays", stays, 6);
    MUST(cuMemFreeAsync(stays, s));
    MUST(cuStreamSynchronize(s));
    others(60);
}

static void destroyed(void)
{
    pool = make_pool(0);
    p = from_driver(40);
    MUST(cuMemPoolDestroy(pool));
    CUdeviceptr t[2];
    for (int i = 0; i < 4; i++) {
        if (i < 2)
            MUST(cuMemAllocAsync(&t[i], 20 * MIB, s));
        set(t[i % 2], 20, 7 + (uint32_t)i);
    }
    for (int i = 0; i < 2; i++) {
        tell("tensor", t[i], 20);
        MUST(cuMemFreeAsync(t[i], s));
    }
    let_go();
    MUST(cuStreamSynchronize(s));
    others(60);
}

static void trimmed(void)
{
    raise_threshold();
    p = from_driver(40);
    let_go();
    MUST(cuStreamSynchronize(s));
    MUST(cuMemPoolTrimTo(pool, 0));
    others(60);
}

static void captures(void)
{
    CUdeviceptr q;
    raise_threshold();
    p = from_driver(40);
    let_go();
    MUST(cuStreamSynchronize(s));
    CUmemoryPool other = make_pool(0);
    capture_begins();
    MUST(cuMemAllocFromPoolAsync(&q, 50 * MIB, other, s));
    set(q, 50, 5);
    capture_ends();
    tell("other", q, 50);
}

static void again(void)
{
    raise_threshold();
    for (unsigned i = 0; i < 6; i++) {
        p = from_driver(40);
        let_go();
        others(50 + i);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {CASE(threshold), CASE(waits_not), CASE(own_pool), CASE(behind), CASE(plain), CASE(mapped), CASE(some),
                                             CASE(destroyed), CASE(trimmed), {"captured", captures}, CASE(again)};
    start();
    s = stream(1);
    captured = stream(1);
    MUST(cuDeviceGetDefaultMemPool(&pool, 0));
    return run_case("pool_keeps", cases, sizeof cases / sizeof cases[0], argc, argv);
}
