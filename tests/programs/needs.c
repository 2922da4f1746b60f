/* needs BYTES: two tensors of so many bytes, one copied into the other, beside two small ones. Prints the last word of the copy; where a
 * call is refused for want of memory it ends with 1. */
#include "tests/programs/program.h"

static const uint32_t SMALL = 1024;

int main(int argc, char **argv)
{
    const uint64_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 1 << 20;
    CUdeviceptr large[2];
    uint32_t back = 0;
    primary_context();
    for (int i = 0; i < 2; i++) {
        CUdeviceptr small;
        MUST(cuMemAllocAsync(&small, SMALL, NULL));
        MUST(cuMemsetD32Async(small, 5, SMALL / 4, NULL));
        MUST(cuMemAllocAsync(&large[i], bytes, NULL));
    }
    CUresult r = cuMemsetD32Async(large[0], 7, bytes / 4, NULL);
    if (r == CUDA_SUCCESS)
        r = cuMemcpyDtoDAsync_v2(large[1], large[0], bytes, NULL);
    if (r != CUDA_SUCCESS) {
        printf("refused %d\n", (int)r);
        return r == CUDA_ERROR_OUT_OF_MEMORY ? 1 : 2;
    }
    MUST(cuMemcpyDtoH_v2(&back, large[1] + bytes - 4, 4));
    printf("%u\n", back);
    return 0;
}
