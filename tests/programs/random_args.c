/* random_args SEED [ITERATIONS]: a training loop whose launches take structs by value, as role_args.h draws them: numbers, modes and flags
 * beside bytes that nobody fills, which hold what stacks hold: addresses of tensors that live or are gone, halves of them, anything. They
 * stay for a while, change now and then, or in every iteration. In some iterations a mode or a flag is set somewhere, or a list grows, and
 * the launch changes what it did not change before. Prints a checksum every iteration and one of all weights at the end. */
#include "tests/programs/program.h"
#include "tests/programs/role_args.h"

enum { LAYERS = 10, PLACES = 2 * LAYERS, WORDS = 65536, GONE = 6, QUIET_MOST = 6 };

enum habit { STAYS, NOW_AND_THEN, TWO_OF_THREE, ALWAYS, HABITS };

struct place { /* a launch of the iteration */
    struct role_args a;
    enum habit habit[ROLE_WORDS + ROLE_LIST];
    uint32_t kinds; /* what its bytes that nobody fills hold, a bit for each kind */
    uint32_t n;
};

static struct place places[PLACES];
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], gone[GONE], sum;
static CUstream stream;
static CUfunction f_roles, f_join, f_sum;
static uint64_t rng;
static int quiet; /* so many iterations at first without anything odd: what is learnt then is what the later ones do */

#define LAUNCH(f, ...) LAUNCH_ON(f, stream, __VA_ARGS__)

static uint32_t draw(uint32_t n) { return next_random(&rng) % n; }
static bool one_in(uint32_t n) { return !draw(n); }

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void drop(CUdeviceptr p)
{
    gone[draw(GONE)] = p;
    MUST(cuMemFreeAsync(p, stream));
}

/* What a stack may hold. */
static uint64_t left_over(uint32_t kinds)
{
    enum { WEIGHT, ACT, FREED, NEAR, FAR, HOST, SMALL, ZERO, ANYTHING, KINDS };
    uint32_t kind;
    do
        kind = draw(KINDS);
    while (!(kinds >> kind & 1));
    const uint64_t place = draw(WORDS) * 4ull;
    switch (kind) {
    case WEIGHT: return weight[draw(LAYERS)] + place;
    case ACT: return act[draw(LAYERS)] + place;
    case FREED: return gone[draw(GONE)] + place;
    case NEAR: return weight[draw(LAYERS)] + ((uint64_t)draw(5) << 32);
    case FAR: return (weight[0] & ~0xffffffffull) + draw(1 << 16);
    case HOST: return (uintptr_t)&kind + place;
    case SMALL: return draw(300);
    case ZERO: return 0;
    default: return (uint64_t)next_random(&rng) << 33 ^ next_random(&rng);
    }
}

static bool is_new(enum habit h, int iter)
{
    return iter == 0 || h == ALWAYS || (h == TWO_OF_THREE && iter % 3) || (h == NOW_AND_THEN && one_in(6));
}

/* The lower half of `low` beside the upper half of `high`. */
static uint64_t halves(uint64_t low, uint64_t high) { return (low & 0xffffffff) | high >> 32 << 32; }

static void fill_word(struct place *p, uint32_t k, int iter, bool odd)
{
    const uint32_t layout = p->a.layout, base = role_base(layout, k), mode = base + (odd && one_in(2));
    const uint64_t before = p->a.w[k], rest = is_new(p->habit[k], iter) ? left_over(p->kinds) : before;
    const unsigned shift = 8 * role_byte(layout, k);
    const uint32_t number = p->habit[k] == STAYS ? 5 + k : (uint32_t)iter * 16 + k;
    switch (role_of(layout, k)) {
    case ROLE_NONE: p->a.w[k] = rest; break;
    case ROLE_LOWER: p->a.w[k] = halves(number, rest); break;
    case ROLE_UPPER: p->a.w[k] = halves(rest, (uint64_t)number << 32); break;
    case ROLE_WHOLE: p->a.w[k] = number * 3ull; break;
    case ROLE_MODE_LOW: p->a.w[k] = halves(mode, rest); break;
    case ROLE_MODE_HIGH: p->a.w[k] = halves(rest, (uint64_t)mode << 32); break;
    case ROLE_FLAG: p->a.w[k] = (rest & ~((2ull << (shift + 7)) - (1ull << shift / 32 * 32))) | (uint64_t)(odd && one_in(2)) << shift; break;
    }
}

/* The launch at place `at`, from what the iteration has made so far: act[0 .. made]. */
static void launch(int at, CUdeviceptr out, CUdeviceptr in, int made, int iter)
{
    struct place *p = &places[at];
    const bool odd = iter >= quiet && one_in(60);
    p->a.out = out;
    p->a.in = in;
    p->a.n = p->n + (p->n < ROLE_LIST && odd && one_in(3));
    for (uint32_t k = 0; k < ROLE_WORDS; k++)
        fill_word(p, k, iter, odd);
    for (uint32_t k = 0; k < ROLE_LIST; k++)
        if (k < p->a.n)
            p->a.list[k] = k % 2 && made ? act[(uint32_t)(at + (int)k) % (uint32_t)made] : weight[((uint32_t)at + 3 * k) % LAYERS];
        else if (is_new(p->habit[ROLE_WORDS + k], iter))
            p->a.list[k] = left_over(p->kinds);
    if (is_new(p->habit[0], iter))
        p->a.rest = (uint32_t)left_over(p->kinds);
    LAUNCH(f_roles, &p->a);
}

static uint64_t look(CUdeviceptr p) { return checksum(f_sum, stream, sum, p, WORDS); }

static uint64_t train(int iter)
{
    uint32_t n = WORDS;
    act[0] = make(WORDS);
    LAUNCH(f_join, &act[0], &weight[0], &weight[1], &n, &n, &n);
    for (int i = 0; i < LAYERS; i++) {
        act[i + 1] = make(WORDS);
        launch(i, act[i + 1], act[i], i, iter);
    }
    CUdeviceptr g = make(WORDS);
    LAUNCH(f_join, &g, &act[LAYERS], &weight[2], &n, &n, &n);
    for (int i = LAYERS; i-- > 0;) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(f_join, &next, &g, &act[i + 1], &n, &n, &n);
        drop(g);
        drop(act[i + 1]);
        g = next;
        launch(LAYERS + i, weight[i], g, i, iter);
    }
    uint64_t h = look(g) * 31 + look(act[0]);
    drop(g);
    drop(act[0]);
    return h;
}

int main(int argc, char **argv)
{
    const uint32_t seed = argc > 1 ? (uint32_t)atoi(argv[1]) : 1;
    const int iterations = argc > 2 ? atoi(argv[2]) : 24;
    rng = seed * 0x9e3779b97f4a7c15ull + 1;
    primary_context();
    CUmodule m = load_kernels();
    f_roles = kernel(m, "roles");
    f_join = kernel(m, "join");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, stream));
    }
    for (int i = 0; i < GONE; i++)
        gone[i] = weight[0];
    sum = make(64);
    uint32_t layout = 0;
    quiet = 1 + (int)draw(QUIET_MOST);
    for (int i = 0; i < PLACES; i++) {
        struct place *p = &places[i];
        layout = i && one_in(2) ? layout : next_random(&rng); /* layers are alike */
        p->a.layout = layout;
        p->a.words = WORDS;
        p->n = draw(3);
        p->kinds = next_random(&rng) | 1u << draw(9);
        for (int k = 0; k < ROLE_WORDS + ROLE_LIST; k++)
            p->habit[k] = (enum habit)draw(HABITS);
    }
    for (int iter = 0; iter < iterations; iter++)
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
    uint64_t h = 0;
    for (int i = 0; i < LAYERS; i++)
        h = h * 31 + look(weight[i]);
    printf("checksum %016llx\n", (unsigned long long)h);
    return 0;
}
