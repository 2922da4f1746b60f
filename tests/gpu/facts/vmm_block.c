/* vmm_block: does a memory-management call wait for a running kernel, or hold it up?
 *
 * Each call is made on memory that no kernel uses, 2 ms after a kernel of 20 ms was started. A call that takes
 * more than half of the kernel's time, in most of several tries, waits for it; "<call>_us" is the host time it
 * took. "kernels_slowdown" is the time of a train of memory-bound kernels while another chunk is
 * mapped and unmapped all along, over the time of the same train in peace.
 */
#include "tests/gpu/facts/fact.h"

#include <stdio.h>
#include <unistd.h>

enum { TRIES = 5 };
static const uint64_t spin_ns = 20000000;

static CUmemAllocationProp prop;
static CUmemAccessDesc access_rw;
static CUfunction spin, add;
static CUstream stream;
static CUdeviceptr flag, va;
static CUmemGenericAllocationHandle handle;
static CUdeviceptr dev_ptr, async_ptr, range;
static void *host_ptr;
static CUevent event;
static size_t train_bytes;
static int train_kernels;

static CUresult do_create(void) { return cuMemCreate(&handle, FACT_CHUNK_BYTES, &prop, 0); }
static CUresult do_map(void) { return cuMemMap(va, FACT_CHUNK_BYTES, 0, handle, 0); }
static CUresult do_set_access(void) { return cuMemSetAccess(va, FACT_CHUNK_BYTES, &access_rw, 1); }
static CUresult do_unmap(void) { return cuMemUnmap(va, FACT_CHUNK_BYTES); }
static CUresult do_release(void) { return cuMemRelease(handle); }
static CUresult do_reserve(void) { return cuMemAddressReserve(&range, FACT_CHUNK_BYTES * 64, 0, 0, 0); }
static CUresult do_unreserve(void) { return cuMemAddressFree(range, FACT_CHUNK_BYTES * 64); }
static CUresult do_alloc(void) { return cuMemAlloc_v2(&dev_ptr, FACT_CHUNK_BYTES * 4); }
static CUresult do_free(void) { return cuMemFree_v2(dev_ptr); }
static CUresult do_alloc_async(void) { return cuMemAllocAsync(&async_ptr, FACT_CHUNK_BYTES * 4, stream); }
static CUresult do_free_async(void) { return cuMemFreeAsync(async_ptr, stream); }
static CUresult do_host_alloc(void) { return cuMemHostAlloc(&host_ptr, FACT_CHUNK_BYTES * 8, 0); }
static CUresult do_host_free(void) { return cuMemFreeHost(host_ptr); }
static CUresult do_event(void) { return cuEventRecord(event, stream); }

/* In this order each call finds what the one before it left. */
static const struct {
    const char *name;
    CUresult (*call)(void);
} calls[] = {
    {"create", do_create},           {"map", do_map},
    {"set_access", do_set_access},   {"unmap", do_unmap},
    {"release", do_release},         {"reserve", do_reserve},
    {"unreserve", do_unreserve},     {"alloc", do_alloc},
    {"free", do_free},               {"alloc_async", do_alloc_async},
    {"free_async", do_free_async},   {"host_alloc", do_host_alloc},
    {"host_free", do_host_free},     {"event_record", do_event},
};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

/* A train of memory-bound kernels; host microseconds until it is over. With `churn`, one chunk is mapped and
 * unmapped meanwhile, *cycles counts how often. */
static double train(CUdeviceptr buf, bool churn, int *cycles)
{
    uint64_t words = train_bytes / 4;
    uint32_t one = 1;
    double t = fact_now_us();
    for (int i = 0; i < train_kernels; i++)
        fact_launch(add, 1024, stream, (void *[]){&buf, &buf, &words, &one});
    if (churn) {
        fact_cu(do_create());
        for (*cycles = 0; cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; ++*cycles) {
            fact_cu(do_map());
            fact_cu(do_set_access());
            fact_cu(do_unmap());
        }
        fact_cu(do_release());
    }
    fact_cu(cuStreamSynchronize(stream));
    return fact_now_us() - t;
}

int main(void)
{
    fact_begin("vmm_block");
    CUdevice dev = fact_open();
    CUmodule m = fact_module();
    spin = fact_kernel(m, "fact_spin");
    add = fact_kernel(m, "fact_add");
    prop = fact_prop(dev);
    access_rw = fact_access(dev);
    CUdeviceptr buf;
    fact_cu(cuMemAlloc_v2(&flag, 4096));
    /* past the caches of a real device; a small one is given less to do */
    size_t free_bytes = 0, total = 0;
    fact_cu(cuMemGetInfo_v2(&free_bytes, &total));
    bool large = total > (size_t)16 << 30;
    train_bytes = FACT_CHUNK_BYTES * (large ? 128 : 4);
    train_kernels = large ? 200 : 50;
    fact_cu(cuMemAlloc_v2(&buf, train_bytes));
    fact_cu(cuMemsetD32_v2(buf, 0, train_bytes / 4));
    fact_cu(cuCtxSynchronize()); /* a fill does not wait for itself, and the stream below does not wait for it */
    fact_cu(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    fact_cu(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    fact_cu(cuMemAddressReserve(&va, FACT_CHUNK_BYTES, 0, 0, 0));
    /* the first launch of a kernel loads it, which is no part of the question */
    fact_spin(spin, flag, 1000, stream);
    int cycles = 0;
    train(buf, false, &cycles);

    double us[N_CALLS][TRIES];
    int waited[N_CALLS] = {0}, holders = 0;
    for (int r = 0; r < TRIES; r++) {
        for (int k = 0; k < N_CALLS; k++) {
            fact_cu(cuCtxSynchronize());
            fact_spin(spin, flag, spin_ns, stream);
            usleep(2000);
            bool running = cuStreamQuery(stream) == CUDA_ERROR_NOT_READY;
            double t = fact_now_us();
            fact_cu(calls[k].call());
            us[k][r] = fact_now_us() - t;
            /* the kernel had 18 ms to go: a call that returned long before cannot have waited for it */
            if (running && us[k][r] > (double)spin_ns * 0.5e-3)
                waited[k]++;
        }
    }
    fact_cu(cuCtxSynchronize());
    for (int k = 0; k < N_CALLS; k++) {
        char key[48];
        snprintf(key, sizeof key, "%s_waits", calls[k].name);
        fact_bool(key, waited[k] > TRIES / 2);
        snprintf(key, sizeof key, "%s_us", calls[k].name);
        fact_num(key, fact_median(us[k], TRIES));
        holders += waited[k] > TRIES / 2;
    }
    fact_int("calls_that_wait", holders);

    double quiet[TRIES], busy[TRIES];
    for (int r = 0; r < TRIES; r++) {
        quiet[r] = train(buf, false, &cycles);
        busy[r] = train(buf, true, &cycles);
    }
    double q = fact_median(quiet, TRIES), b = fact_median(busy, TRIES);
    fact_num("train_quiet_us", q);
    fact_num("train_mapping_us", b);
    fact_int("map_cycles_during_train", cycles);
    fact_num("kernels_slowdown", b / q);
    return fact_end();
}
