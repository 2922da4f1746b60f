/* sizes [ROUNDS]: every allocation has another size than those of the rounds before it, a few are held at once. Prints a checksum of all
 * that was read back. */
#include "tests/programs/program.h"

enum { HELD = 6, PAGE = 4096, PAGES_MOST = 250 };

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1200;
    CUdeviceptr held[HELD] = {0};
    uint32_t words[HELD] = {0};
    uint64_t seed = 7, h = 0;
    CUstream stream;
    static uint32_t back[PAGES_MOST * PAGE / 4];
    primary_context();
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < rounds + HELD; i++) {
        unsigned k = i % HELD;
        if (held[k]) {
            MUST(cuMemcpyDtoHAsync_v2(back, held[k], 4ull * words[k], stream));
            MUST(cuStreamSynchronize(stream));
            for (uint32_t w = 0; w < words[k]; w++)
                h = h * 31 + back[w];
            MUST(cuMemFreeAsync(held[k], stream));
            held[k] = 0;
        }
        if (i >= rounds)
            continue;
        words[k] = PAGE / 4 * (1 + (i * 37 + next_random(&seed) % 3) % PAGES_MOST);
        MUST(cuMemAllocAsync(&held[k], 4ull * words[k], stream));
        MUST(cuMemsetD32Async(held[k], 1000003u * i, words[k], stream));
        MUST(cuMemsetD32Async(held[k] + 2ull * words[k], i, words[k] / 2, stream));
    }
    printf("%016llx\n", (unsigned long long)h);
    return 0;
}
