/* spy_check: does the spy see what it should? Run under libspy.so, on any device.
 *
 * Four launches of one addition, by four ways (linked symbol, dlsym, cuGetProcAddress, `extra` buffer), each under a
 * mark that watches destination and source (both must show) and a stranger (must not). This program's line says
 * whether the sums are right; the spy's line says what it saw.
 */
#include "tests/gpu/facts/fact.h"
#include "tests/gpu/facts/spy.h"

#include <string.h>

static CUdeviceptr dst, src, stranger;

static void open_mark(const char *name)
{
    spy_mark(name);
    spy_watch("dst", dst, 4096);
    spy_watch("src", src, 4096);
    spy_watch("stranger", stranger, 4096);
}

int main(void)
{
    fact_begin("spy_check");
    fact_bool("spied", spy_present());
    fact_open();
    CUfunction add = fact_kernel(fact_module(), "fact_add");
    CUdeviceptr block;
    fact_cu(cuMemAlloc_v2(&block, 3 * 4096));
    fact_cu(cuMemsetD32_v2(block, 5, 3 * 1024));
    dst = block;
    src = block + 4096;
    stranger = block + 8192;

    uint64_t words = 1024, inside = src + 256;
    uint32_t delta = 2, got = 0;
    void *args[] = {&dst, &src, &words, &delta};
    open_mark("linked");
    fact_cu(cuLaunchKernel(add, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    spy_mark_end();

    __typeof__(&cuLaunchKernel) launch = (__typeof__(&cuLaunchKernel))dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    if (!launch)
        fact_refuse("dlsym finds no cuLaunchKernel");
    open_mark("dlsym");
    fact_cu(launch(add, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    spy_mark_end();

    void *fn = NULL;
    fact_cu(cuGetProcAddress_v2("cuLaunchKernel", &fn, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL));
    launch = (__typeof__(&cuLaunchKernel))fn;
    open_mark("getproc");
    fact_cu(launch(add, 1, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
    spy_mark_end();

    unsigned char packed[28];
    size_t bytes = sizeof packed;
    words = 512;
    memcpy(packed, &dst, 8);
    memcpy(packed + 8, &inside, 8); /* a pointer into the middle of the source counts as the source */
    memcpy(packed + 16, &words, 8);
    memcpy(packed + 24, &delta, 4);
    open_mark("extra");
    fact_cu(cuLaunchKernel(add, 1, 1, 1, 256, 1, 1, 0, NULL, NULL,
                           (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                                      CU_LAUNCH_PARAM_END}));
    spy_mark_end();
    fact_cu(cuCtxSynchronize());
    fact_cu(cuMemcpyDtoH_v2(&got, dst, sizeof got));
    fact_bool("answer", got == 7);
    fact_cu(cuMemFree_v2(block));
    return fact_end();
}
