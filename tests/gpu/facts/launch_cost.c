/* launch_cost: what does a kernel launch cost the host?
 *
 * Host nanoseconds per cuLaunchKernel of a small kernel with four parameters, in bursts that the device keeps up
 * with, and of the stream-ordered allocation and free of 4 MiB. Run natively and under a preloaded layer, the
 * difference is what that layer adds.
 */
#include "tests/gpu/facts/fact.h"

enum { BURST = 200, BURSTS = 101 };

int main(void)
{
    fact_begin("launch_cost");
    fact_open();
    CUfunction add = fact_kernel(fact_module(), "fact_add");
    CUstream s;
    CUdeviceptr buf, p;
    uint64_t words = 1024;
    uint32_t one = 1;
    double launch[BURSTS], alloc[BURSTS], drop[BURSTS];
    fact_cu(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    fact_cu(cuMemAllocAsync(&buf, FACT_CHUNK_BYTES, s));
    fact_cu(cuMemsetD32Async(buf, 0, FACT_CHUNK_BYTES / 4, s));
    for (int b = 0; b < BURSTS; b++) {
        fact_cu(cuStreamSynchronize(s));
        double t = fact_now_us();
        for (int i = 0; i < BURST; i++)
            fact_launch(add, 4, s, (void *[]){&buf, &buf, &words, &one});
        launch[b] = (fact_now_us() - t) * 1e3 / BURST;
    }
    for (int b = 0; b < BURSTS; b++) {
        double t = fact_now_us();
        fact_cu(cuMemAllocAsync(&p, FACT_CHUNK_BYTES * 2, s));
        alloc[b] = (fact_now_us() - t) * 1e3;
        fact_launch(add, 4, s, (void *[]){&p, &buf, &words, &one});
        t = fact_now_us();
        fact_cu(cuMemFreeAsync(p, s));
        drop[b] = (fact_now_us() - t) * 1e3;
    }
    uint32_t first = 0;
    fact_cu(cuStreamSynchronize(s));
    fact_cu(cuMemcpyDtoH_v2(&first, buf, sizeof first));
    fact_num("launch_ns", fact_median(launch, BURSTS));
    fact_num("alloc_async_ns", fact_median(alloc, BURSTS));
    fact_num("free_async_ns", fact_median(drop, BURSTS));
    /* every launch added one: a layer that lost or doubled a launch shows here */
    fact_bool("answer", first == BURST * BURSTS);
    fact_cu(cuMemFreeAsync(buf, s));
    fact_cu(cuStreamSynchronize(s));
    return fact_end();
}
