/* alike CASE [ITERATIONS [WHEN]]: a training loop whose iterations are alike but for one thing, which must not cost a plan its steadiness.
 * Prints a checksum every iteration.
 *
 *   unused    a workspace around every op, of which no op is told
 *   padding   a functor by value, a byte and a word, with whatever lies between them
 *   dropped   entries of structs that nobody fills: null until iteration 12, then the address of a tensor that is long not needed
 *   pinned    the same, then the address of pinned memory of the host
 *   hosted    in iteration WHEN alone such an entry is filled and used: pinned memory of the host is read
 *   batch     a large batch that is still held when the next one is made
 *   detour    an evaluation after iteration 12: what lives long is used in another order, and evicted
 *   inner     a loop of two ops, many times in every iteration
 *   number    a number among the arguments, another one in every iteration
 *   flag      a flag among the arguments, set in iteration WHEN alone: what is only read otherwise is written then
 *   packed    the same flag, in arguments that are handed over as one buffer
 *   often     beside the flag a number that is another one in two of three iterations: each time the launch is tried again
 *   grown     beside a number that is another one in two of three iterations, the struct has an entry that nobody fills: in two of three
 *             iterations a tensor stands there. From iteration WHEN on it is read, and it changes before the layer's output is used again
 *   zeroed    the same with a tensor that holds zeros from iteration WHEN on, until it changes
 *   doubled   beside a number, entries that nobody fills point at a tensor of zeros, which the launch reads by an entry that is filled: other
 *             ones in every iteration. In iteration WHEN some of them are in use; in others an activation stands at one of these
 *   update    after the backward pass a state is made anew from a tensor, by a launch whose struct holds bytes that nobody fills, other ones
 *             in most iterations; in iteration WHEN a flag in it changes the tensor too, which is read again at the end
 *   ahead     the same behind two and a half seconds of other work, which the host does not wait for
 *   midway    the same in the middle of the forward pass, from an activation that others may have to be rebuilt from
 *   late      all layers are launches of one kernel in one shape, with bytes that nobody fills beside a flag: the same ones until iteration
 *             8, then other ones in every iteration at a layer more each time. In iteration WHEN the flag is set at layer 9; or, where WHEN
 *             is odd, the bytes that nobody fills elsewhere are filled at layer 10, where they say that the input changes
 *   swings    beside bytes that nobody fills, which are other ones in every iteration, a flag is set in iterations WHEN and WHEN + 2. The
 *             kernel looks at a tensor before it does as the flag says; that says so in the second of them, or, where WHEN is odd, in
 *             the iteration between them, when the flag is not set
 *   crowd     as swings, among many entries that nobody fills and that are others in every iteration
 *   upper     as crowd; the flag is a byte in the upper half of its word. Where it is set, its padding holds what an address
 *             has left there: in one of 256 runs the word is that of a library then
 *   beyond    as upper; with the flag the word is an address where a tensor could lie, and none ever did
 *   swarm     the flag of swings is set at all layers in iteration WHEN, and at one of them alone the tensor says so
 *   hearsay   as swarm; the other layers have had the flag in iterations 9, 11 and 13 for nothing, beside bytes that nobody fills, which are
 *             other ones in every iteration after 8, and at that layer after 14
 *   residue   an entry that nobody fills points at pinned memory of the host, and from iteration 8 on at such memory that the driver knows and
 *             this program does not: what others have left on the stack. Beside it are bytes that nobody fills, other ones in every iteration after that
 *   widened   an update that is looked at only, of a list of one; in iteration WHEN its second entry comes into use, which was known to be idle,
 *             for a tensor that stays; from then on for one that a plan may hold evicted
 *   halves    beside a number in a struct are bytes that nobody fills, at times what the upper half of a tensor's address has left there. The
 *             number is, if it can be, the lower half of that address; in iteration WHEN it is another one, and the input is changed too
 *   dangling  as halves; in every iteration the word is an address where no tensor lies, near those where some do
 *   fields    as halves; the number is a byte, and the rest of the word what is left of the tensor's address
 *   counted   as fields; and the number says that one more entry is in use, for a tensor that is changed. It is stale before
 *   wide      as halves; the number is the bits of a float, and of the lower half of an address of a tensor too large to lie at no float
 *   heap      a struct has four entries that nobody fills. Each holds the address of some host object, another object in every iteration; in one
 *             iteration of sixteen the object lies 32 MiB away, so that the address has another fourth byte. With WHEN, the struct of `halves`: the number
 *             is the lower half of a host object's address, the same one always, and the word's upper half is left over from a host object's or the
 *             stack's address; in iteration WHEN the number has another fourth byte, and the input is changed too
 *   stale     after the forward pass, a launch that never does twice the same makes a tensor that nobody reads. From iteration 12 on, entries of its
 *             struct that nobody fills point at activations, and a plan holds some of these evicted
 *   absent    an entry that is not in use points at a tensor of zeros, of which no trial can tell that it is not, until iteration 8, and is null from then
 *             on. With WHEN the launch changes its input where the entry is null, and it is null in iteration WHEN alone
 *   zeros     an entry that is not in use points at another tensor from iteration 8 on; at one layer, from iteration 12 on, at a tensor of zeros. With WHEN
 *             that entry is in use at this layer, if it is not null, and null until iteration WHEN; the backward pass changes the tensor
 *   once      the launch of one layer alone has an entry that is not in use. From iteration 12 on, in every second one, it points at a tensor of zeros
 *   mode      a parameter of one byte, which nobody fills, is another one in two iterations of three. With WHEN it is a mode: 1 in iterations 9, 11 and
 *             13, for nothing, and in iteration WHEN, when a tensor says that the input changes
 *   unused8   a parameter of eight bytes that the kernel does not use holds the address of some host object, another one in every iteration. With WHEN
 *             it is a number, and odd in iteration WHEN: the input changes then
 *   optional  after the forward pass, a launch whose struct has room for one more output and a flag for it, set from iteration WHEN on: at
 *             first for a tensor that is made anew soon, then for activations that others may have to be rebuilt from
 *   beside    as midway; beside the flag, in the same word, is a number that is another one in every iteration
 */
#include "tests/programs/list_args.h"
#include "tests/programs/program.h"

#include <sys/mman.h>
#include <unistd.h>

enum { LAYERS = 12, WORDS = 131072, CHANGES_AT = 12, WIDE_WORDS = 200 << 20 };

static const char *what;
static int flag_at = -1;
static CUfunction f_maybe, f_map, f_join, f_bundle, f_functor, f_mode, f_odd, f_number, f_tally, f_unlike, f_sum;
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], sum, batch, counter, pinned, state, wide;
static CUstream stream;
static uint64_t rng = 1;

#define LAUNCH(f, ...) LAUNCH_ON(f, stream, __VA_ARGS__)

static bool is(const char *c) { return !strcmp(what, c); }
static bool one_layer_swings(void) { return is("swings") || is("crowd") || is("upper") || is("beyond"); }

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void drop(CUdeviceptr p) { MUST(cuMemFreeAsync(p, stream)); }

/* act[i + 1] from act[i]; with the flag, act[i - 1] changes too. */
static void flagged(int i, int iter)
{
    uint32_t n = WORDS, flag = iter == flag_at;
    if (is("flag")) {
        LAUNCH(f_maybe, &act[i + 1], &act[i], &act[i - 1], &n, &flag);
        return;
    }
    struct {
        CUdeviceptr out, in, kept;
        uint32_t n, flag;
    } args = {act[i + 1], act[i], act[i - 1], n, flag};
    size_t bytes = sizeof args;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    MUST(cuLaunchKernel(f_maybe, 64, 1, 1, 128, 1, 1, 0, stream, NULL, extra));
}

/* act[i + 1] from act[i], which changes too in iteration flag_at. */
static void counted(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i], act[i - 1]}, .words = WORDS, .n = 2, .flag = iter == flag_at};
    s.junk = iter % 3 ? (uint32_t)iter : 7;
    LAUNCH(f_tally, &s);
}

/* act[i + 1] from act[i], and from iteration flag_at on from a tensor too that the backward pass changes. Its entry is stale before. */
static void grown(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i]}, .words = WORDS, .n = iter < flag_at ? 1 : 2};
    if (iter % 3 || iter >= flag_at)
        s.in[1] = is("zeroed") ? state : weight[LAYERS - 1];
    s.junk = (uint32_t)(iter - (iter % 3 == 2));
    LAUNCH(f_tally, &s);
}

/* act[i + 1] from act[i] and the state, by one entry, or by several in iteration flag_at. They are stale before and after. */
static void doubled(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i], state, state}, .words = WORDS, .n = iter == flag_at ? 4 : 2};
    s.in[3] = iter == flag_at || iter % 3 ? state : act[i - 1];
    s.in[4 + iter % 3] = state;
    s.in[8] = i < 6 ? state : act[iter % 3];
    s.junk = (uint32_t)iter;
    LAUNCH(f_tally, &s);
}

/* act[i + 1] from act[i], which changes too at one layer in iteration flag_at. */
static void late(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i]}, .words = WORDS, .n = 1};
    s.junk = iter >= 8 + i ? (uint32_t)next_random(&rng) : 5;
    if (i == 9)
        s.flag = iter == flag_at && flag_at % 2 == 0;
    if (i == 10) {
        s.flag = BUNDLE_ASKS;
        s.junk = iter == flag_at && flag_at % 2;
    }
    LAUNCH(f_bundle, &s);
}

/* act[i + 1] from act[i] and the state, of which next_state() says whether act[i] changes too where the flag is set. */
static void swings(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i], state}, .words = WORDS, .n = 2};
    const uint32_t flag = iter == flag_at || iter == flag_at + 2 ? BUNDLE_LOOKS : 0;
    s.junk = (uint32_t)next_random(&rng);
    if (is("upper") || is("beyond")) {
        s.rest = (uint32_t)next_random(&rng) | 0x01010101;
        s.mode = (uint8_t)flag;
        if (is("beyond"))
            s.pad[0] = flag ? (uint8_t)((state >> 40) + 1) : 0;
        else
            s.pad[0] = flag ? (uint8_t)((uintptr_t)&s >> 40) : 0;
    } else
        s.flag = flag;
    for (int k = 2; k < BUNDLE_MAX && !is("swings"); k++)
        s.in[k] = next_random(&rng) | 1ull << 63;
    LAUNCH(f_bundle, &s);
}

static void swarm(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i], i == 10 ? batch : state}, .words = WORDS, .n = 2};
    s.flag = iter == flag_at ? BUNDLE_LOOKS : 0;
    if (is("hearsay") && i != 10 && (iter == 9 || iter == 11 || iter == 13))
        s.flag = BUNDLE_LOOKS;
    if (is("hearsay") && iter > (i == 10 ? 14 : 8))
        s.junk = (uint32_t)next_random(&rng) | 0x01010101;
    LAUNCH(f_bundle, &s);
}

/* Little memory of the host that is pinned, and not by us: tables, no copies of tensors. 0: there is none. */
static CUdeviceptr pinned_by_others(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long long from, to;
    char line[512];
    CUdeviceptr found = 0;
    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned type = 0;
        size_t bytes = 0;
        if (sscanf(line, "%llx-%llx rw", &from, &to) != 2)
            continue;
        for (unsigned long long p = from; p < to && p < from + (4 << 20) && !found; p += 4096)
            if (p - pinned >= 1 << 20 && cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p) == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST &&
                cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p) == CUDA_SUCCESS && bytes < 1 << 16)
                found = p;
    }
    if (maps)
        fclose(maps);
    return found;
}

static void residue(int i, int iter)
{
    enum { LEFT_AT = 8 };
    static CUdeviceptr left;
    struct bundle_args s = {.out = act[i + 1], .in = {act[i]}, .words = WORDS, .n = 1};
    if (iter == LEFT_AT && !left)
        left = pinned_by_others();
    s.in[5] = left ? left : pinned + 64;
    s.junk = iter > LEFT_AT ? (uint32_t)next_random(&rng) : 0;
    LAUNCH(f_bundle, &s);
}

/* Numbers are not negative here. In the halves of one word, number and rest are an address of weight[LAYERS - 1] where those of tensors allow it. */
static void halves(int i, int iter)
{
    const uint32_t low = (uint32_t)weight[LAYERS - 1] + 4, other = (uint32_t)next_random(&rng);
    struct count_args s = {.out = act[i + 1], .in = act[i], .base = low >> 31 ? 4 : low, .words = WORDS};
    s.rest = i == 2 || (i == 5 ? iter >= 8 : iter % 2) ? (uint32_t)(weight[LAYERS - 1] >> 32) : other;
    if (is("dangling")) {
        s.base = 4;
        s.rest = (uint32_t)(weight[LAYERS - 1] >> 32) + 1;
    } else if (is("fields") || is("counted")) {
        s.base = (uint32_t)weight[LAYERS - 1];
        s.rest = s.rest == other && i != 8 ? other : (uint32_t)(weight[LAYERS - 1] >> 32);
    } else if (is("wide")) {
        const uint32_t bits = 0xb0800000; /* of a float below zero */
        s.rest = s.rest == other ? other : (uint32_t)((wide + (uint32_t)(bits - (uint32_t)wide)) >> 32);
        s.base = bits;
        s.more_mib = 4 << 10; /* learning an iteration may hash the tensor as often as that allows */
    }
    if (is("counted"))
        s.other = iter == flag_at ? act[i - 1] : iter % 3 ? weight[3] : 0;
    s.number = s.base + (iter == flag_at ? is("fields") || is("counted") ? 1 : 16 : 0);
    LAUNCH(f_number, &s);
}

/* Objects of the host's lie here, in the same 4 GiB as the C library. */
static uint64_t arena(void)
{
    static const uint64_t bytes = 64 << 20;
    static uint64_t at;
    const uint64_t from = (uint64_t)(uintptr_t)&qsort >> 32 << 32;
    for (uint64_t try = from; !at && try < from + (1ull << 32); try += bytes)
        if (mmap((void *)(uintptr_t)try, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED)
            at = try;
    return at;
}

static void heap(int i, int iter)
{
    enum { AWAY = 32 << 20, OBJECTS = 1 << 20 };
    if (flag_at < 0) {
        struct bundle_args s = {.out = act[i + 1], .in = {act[i]}, .words = WORDS, .n = 1};
        for (int k = 0; k < 4; k++)
            s.in[5 + k] = arena() + (iter % 16 == 8 + 2 * k ? AWAY : 0) + 8 * (next_random(&rng) % OBJECTS);
        LAUNCH(f_bundle, &s);
        return;
    }
    struct count_args s = {.out = act[i + 1], .in = act[i], .base = (uint32_t)arena(), .words = WORDS};
    s.rest = (uint32_t)((iter % 2 && iter != flag_at ? (uint64_t)(uintptr_t)&s : arena()) >> 32);
    s.number = s.base + (iter == flag_at ? AWAY : 0);
    LAUNCH(f_number, &s);
}

static void unused8(int i, int iter)
{
    uint32_t n = WORDS;
    uint64_t held = arena() + 8 * (next_random(&rng) % (1 << 20)) + (iter == flag_at);
    LAUNCH(f_odd, &act[i + 1], &act[i], &n, &held);
}

static CUdeviceptr early; /* a tensor that is made first and read last */

/* The state from a tensor, which is changed too in iteration flag_at. */
static void update(CUdeviceptr from, int iter)
{
    struct bundle_args s = {.out = state, .in = {from}, .words = WORDS, .n = 1, .flag = iter == flag_at};
    uint32_t left_over = iter % 3 && !is("widened") ? (uint32_t)next_random(&rng) : 0;
    s.junk = is("beside") ? (uint32_t)iter : left_over;
    if (is("beside")) {
        LAUNCH(f_tally, &s);
        return;
    }
    s.in[4 + left_over % 5] = left_over % 4096 + 1;
    if (is("widened")) {
        s.flag = 0;
        s.junk = (uint32_t)(iter > 7) + (iter > 8);
        s.n = iter >= flag_at && flag_at > 0 ? 2 : 1;
        s.in[1] = s.n == 1 || iter == flag_at ? weight[next_random(&rng) % LAYERS] : early;
    }
    LAUNCH(f_bundle, &s);
}

/* The state from the last activation; from iteration flag_at on something else is changed too. Its entry is stale before. */
static void optional(int iter)
{
    struct bundle_args s = {.out = state, .in = {act[LAYERS]}, .words = WORDS, .n = 1};
    s.in[BUNDLE_OPTIONAL] = weight[3];
    if (flag_at > 0 && iter >= flag_at)
        s.flag = BUNDLE_OTHER;
    if (flag_at > 0 && iter > flag_at)
        s.in[BUNDLE_OPTIONAL] = act[1 + iter * 7 % (LAYERS - 1)];
    LAUNCH(f_bundle, &s);
}

static void absent(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i]}, .words = WORDS, .n = 1, .flag = flag_at < 0 ? 0 : BUNDLE_ABSENT};
    if (flag_at < 0 ? iter < 8 : iter != flag_at)
        s.in[BUNDLE_OPTIONAL] = state;
    LAUNCH(f_bundle, &s);
}

static void zeros(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i]}, .words = WORDS, .n = 1};
    if (i == 8) {
        s.flag = flag_at < 0 ? 0 : BUNDLE_GIVEN;
        s.in[BUNDLE_OPTIONAL] = iter >= (flag_at < 0 ? CHANGES_AT : flag_at) ? state : 0;
    } else if (iter >= 8)
        s.in[BUNDLE_OPTIONAL] = weight[i];
    LAUNCH(f_bundle, &s);
}

static void once(int i, int iter)
{
    struct bundle_args s = {.out = act[i + 1], .in = {act[i]}, .words = WORDS, .n = 1};
    s.in[BUNDLE_OPTIONAL] = iter >= CHANGES_AT && iter % 2 ? state : 0;
    LAUNCH(f_bundle, &s);
}

static void mode(int i, int iter)
{
    static uint8_t left[LAYERS];
    const bool set = iter == 9 || iter == 11 || iter == 13 || iter == flag_at;
    uint32_t n = WORDS;
    if (iter % 3)
        left[i] = (uint8_t)(16 + next_random(&rng) % 240);
    uint8_t now = flag_at < 0 ? left[i] : set;
    LAUNCH(f_mode, &act[i + 1], &act[i], &state, &n, &now);
}

static void stale(int iter)
{
    struct bundle_args s = {.out = make(WORDS), .in = {act[LAYERS]}, .words = WORDS, .n = 1};
    for (int k = 4; k < 8 && iter >= CHANGES_AT; k++)
        s.in[k] = act[k - 2];
    LAUNCH(f_unlike, &s);
    drop(s.out);
}

static void layer(int i, int iter)
{
    uint32_t n = WORDS, k = 3 + (uint32_t)i, mask = ~0u;
    CUdeviceptr space = is("unused") ? make(2 * WORDS) : 0;
    act[i + 1] = make(WORDS);
    if (is("padding")) {
        struct functor f;
        memset(&f, (int)next_random(&rng), sizeof f);
        f.kind = 1;
        f.k = k;
        LAUNCH(f_functor, &act[i + 1], &act[i], &n, &f);
    } else if (is("dropped") || is("pinned") || is("hosted")) {
        struct bundle_args s = {.out = act[i + 1], .in = {act[i], weight[i]}, .words = WORDS, .n = 2};
        if (is("hosted") && iter == flag_at && i >= 6)
            s.in[s.n++] = pinned;
        if (!is("hosted") && iter >= CHANGES_AT && i >= 6)
            s.in[5] = is("pinned") ? pinned + 64 : act[(i + iter) % 3];
        LAUNCH(f_bundle, &s);
    } else if ((is("flag") || is("packed")) && i % 3 == 2)
        flagged(i, iter);
    else if ((is("halves") || is("dangling") || is("fields") || is("counted") || is("wide")) && i % 3 == 2)
        halves(i, iter);
    else if (is("heap") && (flag_at < 0 ? i == 5 : i % 3 == 2))
        heap(i, iter);
    else if (is("often") && i % 3 == 2)
        counted(i, iter);
    else if (one_layer_swings() && i == 10)
        swings(i, iter);
    else if (is("swarm") || is("hearsay"))
        swarm(i, iter);
    else if (is("residue") && i > 8)
        residue(i, iter);
    else if (is("late"))
        late(i, iter);
    else if ((is("grown") || is("zeroed")) && i % 3 == 2)
        grown(i, iter);
    else if (is("doubled") && i % 3 == 2)
        doubled(i, iter);
    else if (is("absent") && i % 3 == 2)
        absent(i, iter);
    else if (is("zeros") && i % 3 == 2)
        zeros(i, iter);
    else if (is("unused8") && i % 3 == 2)
        unused8(i, iter);
    else if (is("once") && i == 8)
        once(i, iter);
    else if (is("mode") && i % 3 == 2)
        mode(i, iter);
    else {
        k += is("number") ? (uint32_t)iter * 64 : 0;
        LAUNCH(f_map, &act[i + 1], &act[i], &n, &k, &mask);
    }
    if ((is("midway") || is("beside")) && i == LAYERS - 1)
        update(act[3], iter);
    if (is("optional") && i == LAYERS - 1)
        optional(iter);
    if (is("stale") && i == LAYERS - 1)
        stale(iter);
    if (space)
        drop(space);
}

static void inner(void)
{
    uint32_t n = 64, k = 1, mask = ~0u;
    for (int i = 0; i < 40; i++) {
        LAUNCH(f_map, &counter, &counter, &n, &k, &mask);
        LAUNCH(f_join, &counter, &counter, &counter, &n, &n, &n);
    }
}

static uint64_t look(CUdeviceptr p) { return checksum(f_sum, stream, sum, p, WORDS); }

/* The next batch is made while the one before is still held. */
static void next_batch(int iter)
{
    static uint32_t host[WORDS];
    CUdeviceptr before = batch;
    for (uint32_t i = 0; i < WORDS; i++)
        host[i] = (uint32_t)iter * 7 + i;
    batch = make(WORDS);
    MUST(cuMemcpyHtoDAsync_v2(batch, host, sizeof host, stream));
    MUST(cuStreamSynchronize(stream));
    if (before)
        drop(before);
}

/* The state from the host: zeros from iteration flag_at on; or with a first word that says something in one iteration (swings). */
static void next_state(int iter)
{
    static uint32_t host[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        host[i] = !is("zeroed") || iter < flag_at ? i : 0;
    memset(host, 0, is("zeros") || is("mode") ? sizeof host : 0);
    host[0] = (one_layer_swings() && iter == flag_at + (flag_at % 2 ? 1 : 2)) || (is("mode") && iter == flag_at);
    MUST(cuMemcpyHtoDAsync_v2(state, host, sizeof host, stream));
    MUST(cuStreamSynchronize(stream));
}

static void work_for_long(void *learnt)
{
    const char *us = getenv("ALIKE_WORK_US");
    usleep(us ? (unsigned)atoi(us) : learnt ? 2500000 : 1200000);
}

/* A tensor that the state is made from, many others, and the tensor again. */
static void second_pass(int iter)
{
    uint32_t n = WORDS, k = 11, mask = ~0u;
    CUdeviceptr from = make(WORDS);
    LAUNCH(f_map, &from, &weight[0], &n, &k, &mask);
    if (is("ahead"))
        MUST(cuLaunchHostFunc(stream, work_for_long, iter > 3 ? &flag_at : NULL));
    update(from, iter);
    for (int i = 0; i <= LAYERS; i++) {
        act[i] = make(WORDS);
        LAUNCH(f_map, &act[i], i ? &act[i - 1] : &weight[1], &n, &k, &mask);
    }
    for (int i = LAYERS; i > 0; i--) {
        LAUNCH(f_join, &act[i - 1], &act[i], &act[i - 1], &n, &n, &n);
        drop(act[i]);
    }
    LAUNCH(f_join, &weight[0], &from, &act[0], &n, &n, &n);
    drop(act[0]);
    drop(from);
    if (is("widened")) {
        LAUNCH(f_join, &weight[1], &early, &weight[1], &n, &n, &n);
        drop(early);
    }
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    next_batch(is("batch") ? iter : 1);
    if (is("zeroed") || one_layer_swings() || is("swarm") || is("hearsay") || is("mode") || (is("zeros") && flag_at > 0))
        next_state(iter);
    if (is("widened")) {
        early = make(WORDS);
        LAUNCH(f_map, &early, &batch, &n, &k, &mask);
    }
    act[0] = make(WORDS);
    LAUNCH(f_join, &act[0], &batch, &weight[0], &n, &n, &n);
    for (int i = 0; i < LAYERS; i++) {
        layer(i, iter);
        if (i % 4 == 1 && is("inner"))
            inner();
    }
    CUdeviceptr g = make(WORDS);
    LAUNCH(f_map, &g, &act[LAYERS], &n, &k, &mask);
    if (is("zeroed") || (is("zeros") && flag_at > 0))
        LAUNCH(f_map, &state, &g, &n, &k, &mask);
    for (int i = LAYERS; i >= 0; i--) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(f_join, &next, &g, &act[i], &n, &n, &n);
        drop(g);
        drop(act[i]);
        g = next;
        if (i < LAYERS)
            LAUNCH(f_map, &weight[i], &g, &n, &k, &mask);
    }
    uint64_t h = look(g);
    drop(g);
    if (is("update") || is("ahead") || is("widened"))
        second_pass(iter);
    return h;
}

/* Other tensors push out what lives long, and it comes back wherever there is room. */
static uint64_t detour(void)
{
    enum { MANY = 20 };
    CUdeviceptr p[MANY];
    uint32_t n = WORDS, k = 9, mask = ~0u;
    uint64_t h = 0;
    for (int i = 0; i < MANY; i++) {
        p[i] = make(WORDS);
        LAUNCH(f_map, &p[i], i ? &p[i - 1] : &weight[3], &n, &k, &mask);
    }
    for (int i = LAYERS; i-- > 0;)
        h = h * 31 + look(weight[i]);
    for (int i = 0; i < MANY; i++) {
        h = h * 31 + look(p[i]);
        drop(p[i]);
    }
    return h;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "unused";
    int iterations = argc > 2 ? atoi(argv[2]) : 24;
    if (argc > 3)
        flag_at = atoi(argv[3]);
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_maybe = kernel(m, "maybe");
    f_join = kernel(m, "join");
    f_bundle = kernel(m, "bundle");
    f_functor = kernel(m, "functor");
    f_number = kernel(m, "number");
    f_mode = kernel(m, "mode");
    f_odd = kernel(m, "odd");
    f_tally = kernel(m, "tally");
    f_unlike = kernel(m, "unlike");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, stream));
    }
    if (is("wide")) {
        wide = make(WIDE_WORDS);
        MUST(cuMemsetD32Async(wide, 3, WIDE_WORDS, stream));
    }
    sum = make(64);
    state = make(WORDS);
    MUST(cuMemsetD32Async(state, is("doubled") || is("absent") || is("zeros") || is("once") ? 0 : 1, WORDS, stream));
    counter = make(64);
    void *host;
    MUST(cuMemAllocHost_v2(&host, 1 << 20));
    memset(host, 7, 1 << 20);
    pinned = (CUdeviceptr)(uintptr_t)host;
    MUST(cuMemsetD32Async(counter, 0, 64, stream));
    for (int iter = 0; iter < iterations; iter++) {
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
        if (is("detour") && iter == CHANGES_AT)
            printf("evaluation %016llx\n", (unsigned long long)detour());
    }
    uint64_t h = 0;
    for (int i = 0; i < LAYERS; i++)
        h = h * 31 + look(weight[i]);
    h = h * 31 + look(state);
    printf("checksum %016llx\n", (unsigned long long)h);
    return 0;
}
