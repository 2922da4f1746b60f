/* residue CASE [ITERATIONS]: an optimizer that hands its lists over in a struct with room for many more addresses. What it does not fill is what the stack held:
 * tensors of earlier launches, alive, or freed since. Prints a checksum of each list, an iteration a line.
 *
 *   one       one list of four tensors, of 16 that are alive; the others are left over from launches of their own
 *   two       two lists, whose places lie apart: what is left over lies between them
 *   buffer    as one, by a buffer of arguments (CU_LAUNCH_PARAM_EXTRA)
 *   freed     as one; some of what is left over is freed and made again, at other addresses
 *   stream    as one, on two streams in turn
 *   whole     one launch over all 16: they are used, whatever there is room for
 *   product   two lists over all 16, each of which says what the other one does
 *   pointer   two tensors that are arguments of their own, for which there is no room
 */
#include "tests/programs/list_args.h"
#include "tests/programs/program.h"

enum { LISTS = 4, EACH = 4, WORDS = 65536, ACTS = 6 };

static CUfunction many, map, f_sum;
static CUdeviceptr t[LISTS][EACH], sum;
static CUstream s[2];
static struct many_args held; /* the stack's: never cleared */

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, s[0]));
    return p;
}

/* What is queued on `on` from here comes after what has been queued on `other`. */
static void after(CUstream on, CUstream other)
{
    CUevent e;
    if (on == other)
        return;
    MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventRecord(e, other));
    MUST(cuStreamWaitEvent(on, e, 0));
    MUST(cuEventDestroy_v2(e));
}

static void step(const char *how, uint32_t lists, const int *which, uint32_t n, CUstream on)
{
    for (uint32_t k = 0; k < lists; k++)
        for (uint32_t i = 0; i < n; i++)
            held.at[k * (MANY_MAX / lists) + i] = t[(which[k] + i / EACH) % LISTS][i % EACH];
    held.n = n, held.lists = lists, held.words = WORDS, held.k++;
    size_t bytes = sizeof held;
    void *args[] = {&held}, *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &held, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    const int packed = !strcmp(how, "buffer");
    CUresult r = cuLaunchKernel(many, 8, 1, 1, 128, 1, 1, 0, on, packed ? NULL : args, packed ? extra : NULL);
    if (r == CUDA_ERROR_OUT_OF_MEMORY) {
        printf("refused\n");
        exit(1);
    }
    MUST(r);
}

/* What makes it an iteration: something is saved, and used in reverse. */
static void train(void)
{
    CUdeviceptr act[ACTS];
    uint32_t n = WORDS, k = 3, mask = ~0u;
    for (int i = 0; i < ACTS; i++) {
        act[i] = make(WORDS);
        void *args[] = {&act[i], i ? &act[i - 1] : &t[0][0], &n, &k, &mask};
        MUST(cuLaunchKernel(map, 8, 1, 1, 128, 1, 1, 0, s[0], args, NULL));
    }
    for (int i = ACTS; i-- > 0;) {
        void *args[] = {&t[1][i % EACH], &act[i], &n, &k, &mask};
        MUST(cuLaunchKernel(map, 8, 1, 1, 128, 1, 1, 0, s[0], args, NULL));
        MUST(cuMemFreeAsync(act[i], s[0]));
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "one";
    const int iterations = argc > 2 ? atoi(argv[2]) : 3, list[] = {0, 1, 2, 3};
    primary_context();
    CUmodule m = load_kernels();
    many = kernel(m, "many"), map = kernel(m, "map"), f_sum = kernel(m, "sum");
    for (int i = 0; i < 2; i++)
        MUST(cuStreamCreate(&s[i], CU_STREAM_DEFAULT));
    sum = make(2);
    for (int i = 0; i < LISTS * EACH; i++) {
        t[i / EACH][i % EACH] = make(WORDS);
        MUST(cuMemsetD32Async(t[i / EACH][i % EACH], 7 + (unsigned)i, WORDS, s[0]));
    }
    if (!strcmp(how, "pointer")) {
        uint32_t words = 5 * WORDS, k = 3, mask = ~0u;
        CUdeviceptr from = make(words), to = make(words);
        void *args[] = {&to, &from, &words, &k, &mask};
        printf("%s\n", cuLaunchKernel(map, 8, 1, 1, 128, 1, 1, 0, s[0], args, NULL) == CUDA_ERROR_OUT_OF_MEMORY ? "refused" : "runs");
        return 0;
    }
    for (int iter = 0; iter < iterations; iter++) {
        train();
        for (int j = 0; j < LISTS; j++) /* in other places from launch to launch, so that the last one has all of them */
            for (int i = 0; i < EACH; i++)
                held.at[8 + 4 * j + i] = t[j][i], held.at[28 + 4 * j + i] = t[LISTS - 1 - j][i];
        if (!strcmp(how, "freed") && iter)
            for (int i = 0; i < EACH; i++) {
                const CUdeviceptr old = t[3][i];
                t[3][i] = make(WORDS);
                MUST(cuMemcpyDtoDAsync_v2(t[3][i], old, 4ull * WORDS, s[0]));
                MUST(cuMemFreeAsync(old, s[0]));
            }
        if (!strcmp(how, "whole"))
            step(how, 1, list, LISTS * EACH, s[0]);
        else if (!strcmp(how, "product"))
            step(how, 2, list + 1, LISTS * EACH, s[0]);
        else
            for (int j = 0; j < LISTS; j++) {
                CUstream on = s[!strcmp(how, "stream") && j % 2];
                after(on, s[0]);
                step(how, !strcmp(how, "two") ? 2 : 1, list + (!strcmp(how, "two") && j == 3 ? 0 : j), EACH, on);
                after(s[0], on);
            }
        for (int j = 0; j < LISTS; j++) {
            uint64_t h = 0;
            for (int i = 0; i < EACH; i++)
                h = h * 31 + checksum(f_sum, s[0], sum, t[j][i], WORDS);
            printf("%s%016llx", j ? " " : "", (unsigned long long)h);
        }
        putchar('\n');
    }
    return 0;
}
