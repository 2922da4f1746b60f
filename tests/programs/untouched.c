/* untouched: beside the memory it works on it allocates as much again, touches none of it and gives it back, over and over; then
 * it touches one such piece late, and asks for more than there can be. What nobody touches needs no room. */
#include "tests/programs/program.h"

enum { WORDS = 1 << 20, ROUNDS = 20 };

int main(void)
{
    CUmodule module;
    CUfunction map, sum;
    CUdeviceptr a, b, out8;
    uint32_t n = WORDS, k = 3, mask = 0xffffffffu;
    uint64_t v;
    primary_context();
    module = load_kernels();
    map = kernel(module, "map");
    sum = kernel(module, "sum");
    MUST(cuMemAllocAsync(&a, 4ull * WORDS, NULL));
    MUST(cuMemAllocAsync(&out8, 8, NULL));
    MUST(cuMemsetD8Async(a, 1, 4ull * WORDS, NULL));
    for (int i = 0; i < ROUNDS; i++) {
        MUST(cuMemAllocAsync(&b, 4ull * WORDS, NULL));
        void *args[] = {&out8, &a, &n};
        MUST(cuLaunchKernel(sum, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
        MUST(cuMemcpyDtoH_v2(&v, out8, 8));
        printf("%d %016llx\n", i, (unsigned long long)v);
        MUST(cuMemFreeAsync(b, NULL));
    }
    printf("idle\n");
    MUST(cuMemAllocAsync(&b, 4ull * WORDS, NULL));
    if (getenv("UNTOUCHED_LATE")) {
        void *make[] = {&b, &a, &n, &k, &mask}, *args[] = {&out8, &b, &n};
        MUST(cuLaunchKernel(map, 1, 1, 1, 1, 1, 1, 0, NULL, make, NULL));
        MUST(cuMemFreeAsync(a, NULL));
        MUST(cuLaunchKernel(sum, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
        MUST(cuMemcpyDtoH_v2(&v, out8, 8));
        printf("late %016llx\n", (unsigned long long)v);
    }
    return 0;
}
