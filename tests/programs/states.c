/* states CASE ITERATION: launches that change something in place, by which what else they make is not changed in most iterations; in one it is.
 * A replay must find that as the launch found it.
 *   counted  how often the kernel was launched, which says by what number: another one from ITERATION on
 *   clip     a ReLU in place, and the mask of what it leaves; then that is scaled, in ITERATION by 0
 *   small    the same, of few words
 * Prints a checksum for every iteration, and one of the weights at the end. */
#include "tests/programs/tensors.h"

enum { LAYERS = 12, FIRST = 2, LAST = 9, WORDS = 131072, FEW = 4096, ITERATIONS = 28 };

static CUfunction map, join, counted, clip, scale, f_sum;
static struct tensor weight[LAYERS], act[LAYERS + 1], state[LAYERS], counter[LAYERS], sum;
static CUstream s;

static void fmap(struct tensor *to, struct tensor *from, uint32_t k)
{
    LAUNCH(map, s, &to->p, &from->p, &to->n, &k, &(uint32_t){~0u});
}

static void forward(int i, bool counts, uint32_t change_at, uint32_t by)
{
    struct tensor *in = &act[i], *out = &act[i + 1], *x = &state[i];
    if (i < FIRST || i > LAST)
        fmap(out, in, 3 + (uint32_t)i);
    else if (counts)
        LAUNCH(counted, s, &out->p, &in->p, &counter[i].p, &out->n, &change_at);
    else {
        fmap(x, in, 3 + (uint32_t)i);
        LAUNCH(clip, s, &out->p, &x->p, &out->n, &x->n);
        LAUNCH(scale, s, &x->p, &x->n, &by);
        LAUNCH(join, s, &weight[i].p, &weight[i].p, &x->p, &weight[i].n, &weight[i].n, &x->n);
    }
}

int main(int argc, char **argv)
{
    const bool counts = argc == 3 && !strcmp(argv[1], "counted"), small = argc == 3 && !strcmp(argv[1], "small");
    if (argc != 3 || (!counts && !small && strcmp(argv[1], "clip"))) {
        fprintf(stderr, "usage: states counted|clip|small ITERATION\n");
        return 2;
    }
    const int at = atoi(argv[2]);
    primary_context();
    CUmodule m = load_kernels();
    map = kernel(m, "map");
    join = kernel(m, "join");
    counted = kernel(m, "counted");
    clip = kernel(m, "clip");
    scale = kernel(m, "scale");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    sum = tensor_make(2, NULL, s);
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = tensor_make(WORDS, NULL, s);
        state[i] = tensor_make(small ? FEW : WORDS, NULL, s);
        counter[i] = tensor_make(1, NULL, s);
        MUST(cuMemsetD32Async(weight[i].p, 3 + (unsigned)i, WORDS, s));
        MUST(cuMemsetD32Async(state[i].p, 0, state[i].n, s));
        MUST(cuMemsetD32Async(counter[i].p, 0, 1, s));
    }
    for (int iter = 0; iter < ITERATIONS; iter++) {
        act[0] = tensor_make(WORDS, NULL, s);
        fmap(&act[0], &weight[0], 1);
        for (int i = 0; i < LAYERS; i++) {
            act[i + 1] = tensor_make(WORDS, NULL, s);
            forward(i, counts, (uint32_t)at, iter == at ? 0 : 3);
        }
        struct tensor g = tensor_make(WORDS, NULL, s);
        fmap(&g, &act[LAYERS], 1);
        for (int i = LAYERS; i >= 0; i--) {
            struct tensor next = tensor_make(WORDS, NULL, s);
            LAUNCH(join, s, &next.p, &g.p, &act[i].p, &next.n, &g.n, &act[i].n);
            drop(&g, s);
            drop(&act[i], s);
            g = next;
            if (i < LAYERS)
                fmap(&weight[i], &g, 1);
        }
        printf("iter %d loss %016llx\n", iter, (unsigned long long)checksum(f_sum, s, sum.p, g.p, g.n));
        drop(&g, s);
    }
    for (int i = 0; i < LAYERS; i++)
        printf("weight %d %016llx\n", i, (unsigned long long)checksum(f_sum, s, sum.p, weight[i].p, weight[i].n));
    return 0;
}
