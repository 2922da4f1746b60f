/*
 * Random calls, right and wrong ones, on the simulated GPU: whatever a program does with handles and addresses of
 * its own, the driver neither crashes nor reports a fault, and at the end all memory is back. Each kind of object
 * has SLOTS places; a step picks a place and does something to it.
 */
#include <stdbool.h>

#include "tests/simgpu/testing.h"

enum { SLOTS = 24, STEPS = 6000, PIECE = 64 << 10, RANGES = 4, RANGE_PIECES = 64 };

static uint64_t state;
static unsigned dice(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 11) % n);
}

static CUstream streams[SLOTS];
static CUevent events[SLOTS];
static CUdeviceptr pooled[SLOTS], plain[SLOTS], ranges[RANGES];
static size_t pooled_bytes[SLOTS];
static CUmemGenericAllocationHandle pieces[SLOTS];
static void *host[SLOTS];

/* Any answer but a fault is fine. */
static bool ok(CUresult r)
{
    ck_assert_msg(r != CUDA_ERROR_ILLEGAL_ADDRESS && r != CUDA_ERROR_UNKNOWN, "%s", error_name(r));
    return r == CUDA_SUCCESS;
}

static CUstream some_stream(void)
{
    return dice(8) ? streams[dice(SLOTS)] : (CUstream)(uintptr_t)dice(3);
}

static CUdeviceptr some_address(void)
{
    return ranges[dice(RANGES)] + (CUdeviceptr)PIECE * dice(RANGE_PIECES + 2);
}

static void step_streams(unsigned i)
{
    CUstream s = some_stream();
    switch (dice(8)) {
    case 0:
        if (!streams[i] && !ok(cuStreamCreate(&streams[i], dice(2))))
            streams[i] = NULL;
        break;
    case 1:
        if (streams[i] && !dice(4)) {
            ok(cuStreamDestroy_v2(streams[i]));
            streams[i] = NULL;
        }
        break;
    case 2:
        if (!events[i] && !ok(cuEventCreate(&events[i], dice(9))))
            events[i] = NULL;
        break;
    case 3:
        if (events[i] && !dice(4)) {
            ok(cuEventDestroy_v2(events[i]));
            events[i] = NULL;
        }
        break;
    case 4: ok(cuEventRecord(events[i], s)); break;
    case 5: ok(cuStreamWaitEvent(s, events[i], 0)); break;
    case 6: ok(cuEventSynchronize(events[i])); break;
    default: ok(dice(2) ? cuStreamQuery(s) : cuStreamSynchronize(s)); break;
    }
}

static void step_memory(unsigned i)
{
    unsigned value = dice(1000);
    switch (dice(9)) {
    case 0:
    case 1:
        pooled_bytes[i] = 1 + dice(dice(2) ? 300000 : 5000);
        if (!pooled[i] && !ok(cuMemAllocAsync(&pooled[i], pooled_bytes[i], NULL)))
            pooled[i] = 0;
        break;
    case 2: /* in whatever stream: so everything that may use it has to be over */
        ok(cuCtxSynchronize());
        ok(cuMemFreeAsync(pooled[i], some_stream()));
        pooled[i] = 0;
        break;
    case 3:
        if (!plain[i] && !ok(cuMemAlloc_v2(&plain[i], 1 + dice(100000))))
            plain[i] = 0;
        break;
    case 4:
        ok(dice(2) ? cuMemFree_v2(plain[i]) : cuMemFreeAsync(plain[i], some_stream()));
        plain[i] = 0;
        ok(cuCtxSynchronize());
        break;
    case 5: {
        CUdeviceptr base;
        size_t bytes;
        /* the place's size may be that of a later wish: ask */
        if (pooled[i] && ok(cuMemGetAddressRange_v2(&base, &bytes, pooled[i]))) {
            uint64_t n = bytes / 4;
            LAUNCH("fill", NULL, &base, &value, &n);
        }
        break;
    }
    case 6:
        if (!host[i] && !ok(cuMemAllocHost_v2(&host[i], 4096)))
            host[i] = NULL;
        else if (!dice(8)) {
            ok(cuMemFreeHost(host[i]));
            host[i] = NULL;
        }
        break;
    case 7:
        if (host[i] && pooled[i])
            ok(dice(2) ? cuMemcpyHtoDAsync_v2(pooled[i], host[i], dice(4097), NULL)
                       : cuMemcpyDtoHAsync_v2(host[i], pooled[i], dice(4097), NULL));
        break;
    default: {
        uint64_t answer[2];
        ok(cuPointerGetAttribute(answer, (CUpointer_attribute)dice(25), dice(2) ? pooled[i] + dice(5000) : some_address()));
        break;
    }
    }
}

static void step_mappings(unsigned i)
{
    CUmemAllocationProp prop = device_prop();
    CUmemAccessDesc access = { prop.location, (CUmemAccess_flags)dice(4) };
    switch (dice(7)) {
    case 0:
        if (!pieces[i] && !ok(cuMemCreate(&pieces[i], (size_t)PIECE * (1 + dice(4)), &prop, 0)))
            pieces[i] = 0;
        break;
    case 1:
        ok(cuMemRelease(pieces[i]));
        pieces[i] = 0;
        break;
    case 2:
    case 3: ok(cuMemMap(some_address(), (size_t)PIECE * dice(5), 0, pieces[i], 0)); break;
    case 4: ok(cuMemSetAccess(some_address(), (size_t)PIECE * dice(5), &access, 1)); break;
    case 5: ok(cuMemUnmap(some_address(), (size_t)PIECE * dice(6))); break;
    default:
        if (!dice(20)) {
            CUdeviceptr *r = &ranges[dice(RANGES)];
            if (ok(cuMemAddressFree(*r, (size_t)PIECE * RANGE_PIECES)))
                OK(cuMemAddressReserve(r, (size_t)PIECE * RANGE_PIECES, 0, 0, 0));
        }
        break;
    }
}

START_TEST(random_calls)
{
    char seed[16];
    snprintf(seed, sizeof seed, "%d", _i);
    if (_i & 1)
        setenv("SIMGPU_CHAOS", seed, 1);
    setenv("SIMGPU_GRANULARITY", "64K", 1);
    setenv("SIMGPU_MEM", _i & 2 ? "4M" : "256M", 1);
    state = 0x9E3779B97F4A7C15ull * (unsigned)(_i + 1);
    start();
    for (int i = 0; i < RANGES; i++)
        OK(cuMemAddressReserve(&ranges[i], (size_t)PIECE * RANGE_PIECES, 0, 0, 0));
    for (int i = 0; i < STEPS; i++)
        switch (dice(3)) {
        case 0: step_streams(dice(SLOTS)); break;
        case 1: step_memory(dice(SLOTS)); break;
        default: step_mappings(dice(SLOTS)); break;
        }
    OK(cuCtxSynchronize());
    for (int i = 0; i < SLOTS; i++) {
        OK(cuMemFree_v2(pooled[i]));
        OK(cuMemFree_v2(plain[i]));
        if (pieces[i])
            OK(cuMemRelease(pieces[i]));
    }
    for (int r = 0; r < RANGES; r++) {
        for (unsigned at = 0; at < RANGE_PIECES; at++)
            for (unsigned n = 1; n < 5; n++)
                ok(cuMemUnmap(ranges[r] + (CUdeviceptr)PIECE * at, (size_t)PIECE * n));
        OK(cuMemAddressFree(ranges[r], (size_t)PIECE * RANGE_PIECES));
    }
    OK(cuCtxSynchronize());
    size_t available, total;
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(available, total);
    OK(cuDevicePrimaryCtxRelease_v2(0));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simgpu_random");
    TCase *t = tcase_create("random");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, random_calls, 0, 12);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
