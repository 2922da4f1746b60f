/* states CASE ITERATION: launches that change something in place, by which what else they make is not changed in most iterations; in one it is.
 * A replay must find that as the launch found it. And tensors that nobody seems to write.
 *   counted  how often the kernel was launched, which says by what number: another one from ITERATION on
 *   clip     a ReLU in place, and the mask of what it leaves; then that is scaled, in ITERATION by 0
 *   small    the same, of few words
 *   empty    a fresh tensor that a launch fills in ITERATION alone, and a later one reads then
 *   poison   a fresh tensor that a launch fills with the bytes that learning fills fresh memory with
 * Prints a checksum for every iteration, and one of the weights at the end. */
#include "tests/programs/tensors.h"

enum { LAYERS = 12, FIRST = 2, LAST = 9, USE = 10, WORDS = 131072, FEW = 4096, ITERATIONS = 28 };

static CUfunction map, join, counted, clip, scale, glance, fill, f_sum;
static struct tensor weight[LAYERS], act[LAYERS + 1], state_of[LAYERS], counter[LAYERS], sum, says, space;
static const char *what;
static CUstream s;

static bool is(const char *name) { return !strcmp(what, name); }

static void fmap(struct tensor *to, struct tensor *from, uint32_t k)
{
    LAUNCH(map, s, &to->p, &from->p, &to->n, &k, &(uint32_t){~0u});
}

static void state(int i, uint32_t change_at, uint32_t by)
{
    struct tensor *in = &act[i], *out = &act[i + 1], *x = &state_of[i];
    if (is("counted")) {
        LAUNCH(counted, s, &out->p, &in->p, &counter[i].p, &out->n, &change_at);
        return;
    }
    fmap(x, in, 3 + (uint32_t)i);
    LAUNCH(clip, s, &out->p, &x->p, &out->n, &x->n);
    LAUNCH(scale, s, &x->p, &x->n, &by);
    LAUNCH(join, s, &weight[i].p, &weight[i].p, &x->p, &weight[i].n, &weight[i].n, &x->n);
}

/* Made by one layer, used by another. */
static void fresh(int i)
{
    struct tensor *in = &act[i], *out = &act[i + 1];
    if (i == FIRST)
        space = tensor_make(WORDS, NULL, s);
    if (is("empty"))
        LAUNCH(glance, s, &out->p, &in->p, &space.p, &says.p, &out->n, &(uint32_t){i == FIRST});
    else if (i == FIRST) {
        fmap(out, in, 3);
        LAUNCH(fill, s, &space.p, &space.n, &(uint32_t){0x3c3c3c3c});
    } else
        LAUNCH(join, s, &out->p, &in->p, &space.p, &out->n, &in->n, &space.n);
    if (i == USE)
        drop(&space, s);
}

static void forward(int i, uint32_t change_at, uint32_t by)
{
    const bool is_fresh = is("empty") || is("poison");
    act[i + 1] = tensor_make(WORDS, NULL, s);
    if (is_fresh && (i == FIRST || i == USE))
        fresh(i);
    else if (!is_fresh && i >= FIRST && i <= LAST)
        state(i, change_at, by);
    else
        fmap(&act[i + 1], &act[i], 3 + (uint32_t)i);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: states counted|clip|small|empty|poison ITERATION\n");
        return 2;
    }
    what = argv[1];
    const int at = atoi(argv[2]);
    primary_context();
    CUmodule m = load_kernels();
    map = kernel(m, "map");
    join = kernel(m, "join");
    counted = kernel(m, "counted");
    clip = kernel(m, "clip");
    scale = kernel(m, "scale");
    glance = kernel(m, "glance");
    fill = kernel(m, "fill");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    sum = tensor_make(2, NULL, s);
    says = tensor_make(1, NULL, s);
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = tensor_make(WORDS, NULL, s);
        counter[i] = tensor_make(1, NULL, s);
        MUST(cuMemsetD32Async(weight[i].p, 3 + (unsigned)i, WORDS, s));
        MUST(cuMemsetD32Async(counter[i].p, 0, 1, s));
        if (i >= FIRST && i <= LAST && (is("clip") || is("small"))) {
            state_of[i] = tensor_make(is("small") ? FEW : WORDS, NULL, s);
            MUST(cuMemsetD32Async(state_of[i].p, 0, state_of[i].n, s));
        }
    }
    for (int iter = 0; iter < ITERATIONS; iter++) {
        act[0] = tensor_make(WORDS, NULL, s);
        fmap(&act[0], &weight[0], 1);
        const uint32_t now = iter == at;
        MUST(cuMemcpyHtoDAsync_v2(says.p, &now, sizeof now, s));
        for (int i = 0; i < LAYERS; i++)
            forward(i, (uint32_t)at, now ? 0 : 3);
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
