/* kinds KIND [STEPS]: a training loop as people write them, in which something is another thing from step to step. Prints a checksum every step.
 *
 *   same         nothing is
 *   accumulate   gradients of one, two or four batches make a step, drawn anew; they are given back after it, and made by the first batch
 *   apart        as accumulate, and the backward pass of a step's first batch has other launches; its forward pass has the same
 *   evaluate     three batches forward after every ten steps
 *   reload       after a third of the steps, and after two, the optimizer's state lies in other buffers
 *   second       after half of the steps another model of the same shapes is trained, and the first one stays
 *   keep         after a third of the steps a copy of the weights is made, and held for good
 *   lengths      batches of three lengths, drawn anew
 *   any          each batch of another length
 *   mixes        each batch is made ready in one of two ways, drawn anew, by five launches or three
 *   measures     between forward and backward, now and then, three launches look at the result
 *   bursts       seven short batches, which fit any limit, then five long ones
 *   named        nothing is; it asks for a variable of its kernels' by name, which there is not
 *   shrink       four batches of one length, then of another that is a little less, never of an earlier one
 */
#include "tests/programs/program.h"

enum { LAYERS = 12, WORDS = 24576, WEIGHT = 4096, LENGTHS = 3 };

static CUstream stream;
static CUfunction f_map, f_join, f_sum;
static CUdeviceptr weight[LAYERS], grad[LAYERS], state[LAYERS], sum;

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void map(CUdeviceptr out, CUdeviceptr in, uint32_t n, uint32_t k)
{
    uint32_t mask = ~0u;
    LAUNCH_ON(f_map, stream, &out, &in, &n, &k, &mask);
}

static void join(CUdeviceptr out, CUdeviceptr a, uint32_t n_a, CUdeviceptr b, uint32_t n_b, uint32_t n)
{
    LAUNCH_ON(f_join, stream, &out, &a, &b, &n, &n_a, &n_b);
}

/* What neither way has in common with the other is all its launches. */
static void mix(CUdeviceptr batch, uint32_t n, unsigned way)
{
    CUdeviceptr part = make(n / (2 + way));
    if (way) {
        map(part, batch, n / 3, 9);
        MUST(cuMemsetD32Async(part, 5, 16, stream));
        join(batch, batch, n, part, n / 3, n);
    } else {
        MUST(cuMemcpyDtoDAsync_v2(part, batch, 4ull * (n / 2), stream));
        map(part, part, n / 2, 11);
        map(part, part, n / 2, 13);
        join(batch, batch, n, part, n / 2, n);
        MUST(cuMemsetD32Async(batch, 77, 8, stream));
    }
    MUST(cuMemFreeAsync(part, stream));
}

static void measure(CUdeviceptr out, uint32_t n)
{
    CUdeviceptr copy = make(n), few = make(n / 16);
    map(copy, out, n, 21);
    join(few, copy, n, out, n, n / 16);
    printf("measured %016llx\n", (unsigned long long)checksum(f_sum, stream, sum, few, n / 16));
    MUST(cuMemFreeAsync(copy, stream));
    MUST(cuMemFreeAsync(few, stream));
}

/* way: of two in which the batch is made ready; else none. */
static void forward(CUdeviceptr act[LAYERS + 1], uint32_t n, uint32_t seed, unsigned way)
{
    act[0] = make(n);
    MUST(cuMemsetD32Async(act[0], seed, n, stream));
    if (way < 2)
        mix(act[0], n, way);
    for (int l = 0; l < LAYERS; l++) {
        act[l + 1] = make(n);
        join(act[l + 1], act[l], n, weight[l], WEIGHT, n);
    }
}

static void backward(CUdeviceptr act[LAYERS + 1], uint32_t n, bool apart)
{
    CUdeviceptr g = make(n);
    map(g, act[LAYERS], n, 3);
    for (int l = LAYERS; l-- > 0;) {
        CUdeviceptr next = make(n);
        if (apart && !grad[l])
            map(next, g, n, 9);
        else
            join(next, g, n, act[l], n, n);
        if (!grad[l])
            map(grad[l] = make(WEIGHT), next, WEIGHT, 5);
        else
            join(grad[l], grad[l], WEIGHT, next, WEIGHT, WEIGHT);
        MUST(cuMemFreeAsync(g, stream));
        MUST(cuMemFreeAsync(act[l + 1], stream));
        g = next;
    }
    MUST(cuMemFreeAsync(g, stream));
    MUST(cuMemFreeAsync(act[0], stream));
}

static void optimizer_step(void)
{
    for (int l = 0; l < LAYERS; l++) {
        join(state[l], state[l], WEIGHT, grad[l], WEIGHT, WEIGHT);
        join(weight[l], weight[l], WEIGHT, state[l], WEIGHT, WEIGHT);
        MUST(cuMemFreeAsync(grad[l], stream));
        grad[l] = 0;
    }
}

static void reload(void)
{
    for (int l = 0; l < LAYERS; l++) {
        const CUdeviceptr old = state[l];
        state[l] = make(WEIGHT);
        MUST(cuMemcpyDtoDAsync_v2(state[l], old, 4ull * WEIGHT, stream));
        MUST(cuMemFreeAsync(old, stream));
    }
}

static void new_model(unsigned first)
{
    for (unsigned l = 0; l < LAYERS; l++) {
        weight[l] = make(WEIGHT);
        state[l] = make(WEIGHT);
        MUST(cuMemsetD32Async(weight[l], first + l, WEIGHT, stream));
        MUST(cuMemsetD32Async(state[l], 10 * first + l, WEIGHT, stream));
    }
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "same";
    const unsigned steps = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    static const unsigned BATCHES[] = {1, 2, 4};
    uint64_t seed = 7;
    CUdeviceptr act[LAYERS + 1];
    primary_context();
    CUmodule m = load_kernels();
    CUdeviceptr variable;
    if (!strcmp(kind, "named"))
        (void)cuModuleGetGlobal_v2(&variable, NULL, m, "mode");
    f_map = kernel(m, "map"), f_join = kernel(m, "join"), f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    sum = make(2);
    new_model(3);
    for (unsigned i = 0; i < steps; i++) {
        const bool apart = !strcmp(kind, "apart");
        const unsigned batches = strcmp(kind, "accumulate") && !apart ? 1 : BATCHES[next_random(&seed) % 3];
        const uint32_t n = !strcmp(kind, "lengths") ? WORDS / LENGTHS * (1 + next_random(&seed) % LENGTHS)
                           : !strcmp(kind, "any")   ? WORDS - 16 * (next_random(&seed) % 512)
                           : !strcmp(kind, "shrink") ? WORDS - 256 * (i / 4)
                           : !strcmp(kind, "bursts") && i % 12 < 7 ? WORDS / 4
                                                    : WORDS;
        for (unsigned k = 0; k < batches; k++) {
            forward(act, n, i * 4 + k, strcmp(kind, "mixes") ? 2 : next_random(&seed) % 2);
            if (!strcmp(kind, "measures") && next_random(&seed) % 4 == 0)
                measure(act[LAYERS], n);
            backward(act, n, apart);
        }
        optimizer_step();
        for (unsigned k = 0; k < 3 && !strcmp(kind, "evaluate") && i % 10 == 9; k++) {
            forward(act, n, i * 4 + k, 2);
            for (int l = 0; l < LAYERS; l++)
                MUST(cuMemFreeAsync(act[l], stream));
            printf("evaluation %016llx\n", (unsigned long long)checksum(f_sum, stream, sum, act[LAYERS], n));
            MUST(cuMemFreeAsync(act[LAYERS], stream));
        }
        for (int l = 0; !strcmp(kind, "keep") && i == steps / 3 && l < LAYERS; l++)
            MUST(cuMemcpyDtoDAsync_v2(make(WEIGHT), weight[l], 4ull * WEIGHT, stream));
        if (!strcmp(kind, "second") && i == steps / 2)
            new_model(7);
        if (!strcmp(kind, "reload") && i && i % (steps / 3) == 0)
            reload();
        printf("step %u %016llx\n", i, (unsigned long long)checksum(f_sum, stream, sum, weight[0], WEIGHT));
    }
    return 0;
}
