/* learning CASE [ITERATIONS]: a training loop that shows one thing which learning must see, or say that it cannot. A forward pass
 * saves an activation a layer, the backward pass consumes them in reverse. Prints a checksum every iteration.
 *
 *   stale      structs passed by value whose unused entries hold pointers of calls long past, others in every iteration
 *   tail       structs whose unused entries are what a launch early in the iteration has left there, which used them
 *   parted     outputs that are written in two parts; from iteration 12 on the first of them is ever shorter
 *   untouched  a workspace around every op, that the op leaves alone
 *   part       a workspace around every op, of which it writes a part
 *   convolve   a kernel that puts an address into its workspace and follows it from there; the struct has many addresses of that workspace
 *   flag       a flag inside a struct makes one launch change its input, from iteration 12 on
 *   freed      a number changes, from iteration 12 on; memory of the program's own was given back just before. What the launch touches can be
 *              set aside there in part: the rest of it is large, and of the program's own
 *   emptied    many small tensors between the layers, gone again before the next one: pages of theirs are empty, and given back
 *   host       a word in pinned memory is an input, and changes
 *   managed    so, in managed memory
 *   await      a kernel waits for a word that the program sets after its next call
 *   value      a stream waits for such a word (cuStreamWaitValue32)
 *   capture    a stream is captured in every iteration
 *   drift      a kernel that repeats itself for long, and then no more
 *   map        inputs and outputs are given as tensor maps
 *   mapshape   so; from iteration 12 on one of them has another shape, and the launch changes its input
 *   farmap     tensor maps that were copied to device memory
 *   seek       a kernel reads a tensor whose address lies in memory, scrambled: no argument shows it
 *   through    outputs that nothing has touched are first written through an address that was copied to the device
 *   factor     tensors are changed in place through an address that a kernel has put into memory, beside an output that an argument shows
 *   refactor   so; from iteration 12 on it has another number every other time
 *   oldlist    so, an old tensor, whose address was put there in the first iteration
 *   relist     so, an old tensor, whose address is copied there: from iteration 12 on it is another one, of which something was made before
 *   fewlist    so, a small one
 *   repoint    so, a large one, by a kernel
 *   hostlist   so, through a list in pinned memory that the kernel reads in place
 *   hostnew    so, where the list says nothing before iteration 12
 *   newlist    a word that was null becomes the address of memory that was reached so before, and is changed after it was used
 *   table      a kernel keeps a table in its module, others read it
 *   variable   a kernel reads a variable of its module, which is written before each pass, and from iteration 12 on once more after it
 *   restless   after every second pass the weights are worked on, now longer and now shorter: passes look like iterations, and are none
 *   gated      an update of all weights that a word in memory lets through from iteration 12 on, and not before
 *   unlocked   such an update right after the forward pass, of a tensor by each of the activations, which a plan has evicted by then
 *   opened     as unlocked; the word is the first of the list, where the others look like the end of a list that is not in use
 *   reopened   an update by old tensors at the beginning of an iteration, and by the same ones after the forward pass, which a word behind
 *              them lets through from iteration 12 on: until then its list looks like what the first one has left there
 *   altered    such an update right after the forward pass, of the tensor that the first activation is made of
 *   refused    a launch that the driver refuses now and then, from iteration 12 on: what it would have changed, or overwritten, stays as it is
 *   turns      of two old tensors a layer one is changed, in turn: a counter in memory says which
 *   rare       an output that is written for certain data only
 *   seldom     words of a small tensor that a kernel counts up for certain data only, beside its output: from iteration 12 on
 *   grown      so, of a large tensor
 *   ninth      so, in every iteration, by the ninth of equal launches; the others only read it
 *   packed     an address in the middle of a word of a struct: of a tensor that was made long before
 *   inpacked   so, which is changed in place
 *   once       a workspace that one launch fills and another one reads, both in one iteration only, the 12th: else both leave it alone
 *   poison     a kernel fills new memory with the bytes that remat fills it with to see whether it is written
 *   poisons    so, beside another output
 *   halfpoison so, the first half of it; another kernel fills the rest
 *   onepoison  so, beside another output in a cooperative launch, which is not repeated
 *   cleared    each layer's launch counts in the first words of a workspace that all share: a memset clears them right before it
 *   uncleared  so, but for every fourth layer, which goes by what the layer before has counted
 *   recleared  so, at all layers; from iteration 12 on the memset fills in another number in every iteration
 *   late       a large tensor that a kernel writes for certain data only, beside its output: from iteration 12 on
 */
#include "tests/programs/list_args.h"
#include "tests/programs/program.h"

enum { LAYERS = 12, WORDS = 32768, CHANGE_AT = 12, LARGE_WORDS = 8 * WORDS };

static const char *what;
static CUfunction f_map, f_join, f_bundle, f_work, f_cleared, f_convolve, f_await, f_rare, f_drift, f_tensor, f_tensor_far, f_table_set, f_table_use, f_hide, f_seek, f_through, f_point, f_variable, f_by_name, f_turns, f_step_if, f_step_if_first, f_peek, f_factor, f_maybe, f_glance, f_fill, f_packed, f_sum;
static CUdeviceptr weight[LAYERS], sum, seen, word, large, late, first;
static CUdeviceptr variable;
static CUdeviceptr space;
static uint32_t host_values[64];
static CUstream stream, other;
static uint32_t *host_word;
static uint64_t rng = 1;

#define LAUNCH LAUNCH_ON

static bool is(const char *c) { return !strcmp(what, c); }
static bool relists(void) { return is("relist") || is("fewlist") || is("repoint") || is("hostlist") || is("hostnew"); }
static bool poisons(void) { return is("poison") || is("poisons") || is("halfpoison") || is("onepoison"); }

static CUdeviceptr make(uint32_t words)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, 4ull * words, stream));
    return p;
}

static void drop(CUdeviceptr p) { MUST(cuMemFreeAsync(p, stream)); }

static CUdeviceptr act[LAYERS + 1], info[LAYERS];
static uint64_t past[64];
static unsigned n_past;

/* What stood at this place of the stack in some call before. */
static uint64_t stale(void)
{
    return n_past ? past[next_random(&rng) % (n_past < 64 ? n_past : 64)] : (uintptr_t)&n_past;
}

static void bundle(CUdeviceptr out, CUdeviceptr a, CUdeviceptr b, uint32_t flag)
{
    struct bundle_args s;
    for (int i = 0; i < BUNDLE_MAX; i++)
        s.in[i] = stale();
    s.out = out;
    s.in[0] = a;
    s.in[1] = b;
    s.words = WORDS;
    s.n = 2;
    s.flag = flag;
    s.junk = next_random(&rng);
    s.rest = s.mode = 0;
    LAUNCH(f_bundle, stream, &s);
    past[n_past++ % 64] = a;
    past[n_past++ % 64] = out;
}

static CUdeviceptr listed[BUNDLE_MAX];

/* out = f(a, b), or of all that is listed. */
static void bundle_listed(CUdeviceptr out, CUdeviceptr a, CUdeviceptr b)
{
    struct bundle_args s = {.out = out, .words = WORDS, .n = a ? 2 : BUNDLE_MAX};
    for (int i = 0; i < BUNDLE_MAX; i++)
        s.in[i] = listed[i];
    if (a) {
        s.in[0] = a;
        s.in[1] = b;
    }
    LAUNCH(f_bundle, stream, &s);
}

static void make_list(void)
{
    uint32_t n = WORDS, mask = ~0u;
    for (uint32_t i = 0; i < BUNDLE_MAX; i++) {
        listed[i] = make(WORDS);
        LAUNCH(f_map, stream, &listed[i], &weight[i % LAYERS], &n, &i, &mask);
    }
}

static CUtensorMap tensor_map(CUdeviceptr p, uint32_t words)
{
    CUtensorMap m;
    MUST(cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_UINT32, 1, (void *)(uintptr_t)p, &(cuuint64_t){words}, NULL, &(cuuint32_t){256},
                                &(cuuint32_t){1}, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return m;
}

/* act[i + 1] from act[i], neither of which an argument shows as an address */
static void mapped_layer(int i, int iter)
{
    uint32_t k = 3, words = is("mapshape") && iter >= CHANGE_AT && i == 3 ? WORDS / 2 : WORDS;
    CUtensorMap out = tensor_map(act[i + 1], WORDS), in = tensor_map(act[i], words);
    if (i % 2) /* the other way to make one */
        MUST(cuTensorMapReplaceAddress(&out, (void *)(uintptr_t)act[i + 1]));
    if (i % 2 == 0) /* it changes after it was made, not in what it is a map of */
        MUST(cuTensorMapSetAllocationClass(&out, CU_TENSOR_MAP_ALLOC_CLASS_LARGE, NULL));
    LAUNCH(f_tensor, stream, &out, &in, &k);
}

static void far_layer(int i)
{
    static CUtensorMap in[LAYERS];
    MUST(cuStreamSynchronize(stream));
    in[i] = tensor_map(act[i / 2], WORDS); /* one that has not been used for long */
    CUdeviceptr there = make(64);
    MUST(cuMemcpyHtoDAsync_v2(there, &in[i], sizeof in[i], stream));
    LAUNCH(f_tensor_far, stream, &act[i + 1], &there);
    drop(there);
}

/* What is factored is needed no more; what was found is, and the activation can be made of it. */
static void factor_layer(int i, int iter)
{
    static CUdeviceptr list[LAYERS];
    uint32_t n = WORDS, k = 3, mask = ~0u, count = 1, stride = 0;
    const bool old = is("oldlist");
    CUdeviceptr x = old ? late : make(WORDS);
    if (!list[i])
        list[i] = make(64);
    info[i] = make(WORDS);
    struct factor_args a = {.list = list[i], .info = info[i], .words = WORDS, .k = is("refactor") && iter >= CHANGE_AT ? (uint32_t)iter / 2 : k};
    LAUNCH(f_map, stream, &x, &act[i], &n, &k, &mask);
    if (!old || !iter)
        LAUNCH(f_point, stream, &a.list, &x, &count, &stride);
    LAUNCH(f_factor, stream, &a);
    LAUNCH(f_map, stream, &act[i + 1], &info[i], &n, &k, &mask);
    LAUNCH(f_join, stream, &weight[i], &weight[i], &x, &n, &n, &n);
    if (!old)
        drop(x);
}

/* The address of one old tensor or another is copied to the device, and that is changed in place. */
static void relisted(int iter)
{
    const bool in_place = is("hostlist") || is("hostnew");
    CUdeviceptr list = in_place ? word : make(64), found = make(WORDS);
    static CUdeviceptr address;
    uint32_t n = WORDS, few = is("fewlist") ? 64 : WORDS;
    MUST(cuStreamSynchronize(stream));
    address = iter >= CHANGE_AT ? late : is("hostnew") ? 0 : first;
    if (in_place)
        *(volatile CUdeviceptr *)host_word = address;
    else if (is("repoint"))
        LAUNCH(f_point, stream, &list, &address, &(uint32_t){1}, &(uint32_t){0});
    else
        MUST(cuMemcpyHtoDAsync_v2(list, &address, 8, stream));
    struct factor_args a = {.list = list, .info = found, .words = few, .k = 5};
    LAUNCH(f_factor, stream, &a);
    LAUNCH(f_join, stream, &weight[0], &weight[0], &found, &n, &n, &few);
    if (!in_place)
        drop(list);
    drop(found);
}

/* In the driver's hands or not, by how much shared memory the kernel may have. */
static void launch_or_not(CUfunction f, bool refused, void **args)
{
    enum { SHARED_BYTES = 64 << 10 };
    MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, refused ? 0 : SHARED_BYTES));
    const CUresult r = cuLaunchKernel(f, 64, 1, 1, 128, 1, 1, SHARED_BYTES, stream, args, NULL);
    if ((r != CUDA_SUCCESS) != refused)
        MUST(r ? r : CUDA_ERROR_UNKNOWN);
    MUST(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, SHARED_BYTES)); /* whoever launches it again may */
}

/* Of act[i + 1], which has been made: two layers change it, one of them by a number that is never the same, and one overwrites it. */
static void refused_now_and_then(int i, int iter)
{
    uint32_t n = WORDS, k = 7, mask = ~0u, used = i == 3 ? WORDS - (uint32_t)iter : WORDS;
    const bool refused = iter >= CHANGE_AT && iter % 3 == 0 && i == (iter % 2 ? 6 : iter % 4 ? 9 : 3);
    static CUfunction own[LAYERS]; /* what refuses a launch here refuses no replay of another layer's */
    if (!own[i])
        own[i] = kernel(load_kernels(), i == 9 ? "map" : "join");
    if (i == 9)
        launch_or_not(own[i], refused, (void *[]){&act[i + 1], &act[i], &n, &k, &mask});
    else
        launch_or_not(own[i], refused, (void *[]){&act[i + 1], &act[i + 1], &act[i], &n, &n, &used});
}

static void convolved_layer(int i)
{
    uint32_t n = WORDS, k = 3, mask = ~0u;
    CUdeviceptr in = make(2 * WORDS + 64), out = in + 4ull * WORDS, map = out + 4ull * WORDS;
    struct convolve_args a;
    for (int t = 0; t < CONVOLVE_TIMES; t++) {
        a.part[t * CONVOLVE_KINDS + CONVOLVE_IN].at = in;
        a.part[t * CONVOLVE_KINDS + CONVOLVE_OUT].at = out;
        a.part[t * CONVOLVE_KINDS + CONVOLVE_MAP].at = map;
        for (int p = 0; p < CONVOLVE_KINDS; p++)
            a.part[t * CONVOLVE_KINDS + p].words = p == CONVOLVE_MAP ? 64 : WORDS;
    }
    LAUNCH(f_map, stream, &in, &act[i], &n, &k, &mask);
    LAUNCH(f_convolve, stream, &a);
    LAUNCH(f_map, stream, &act[i + 1], &out, &n, &k, &mask);
    drop(in);
}

enum { POISON = 0x3c3c3c3c }; /* POISON_FIRST of policy/learn/trial.h */

/* `late` and `word` are such that what is put there is the poison. */
static void poisoned_layer(int i)
{
    uint32_t n = WORDS, half = WORDS / 2, k = 3, mask = ~0u, put = 1, value = POISON;
    space = make(WORDS);
    CUdeviceptr rest = space + 4ull * half, in = act[i] + 4ull * half;
    void *args[] = {&act[i + 1], &late, &space, &word, &n, &put};
    if (is("poisons"))
        LAUNCH(f_glance, stream, &act[i + 1], &late, &space, &word, &n, &put);
    else if (is("onepoison"))
        MUST(cuLaunchCooperativeKernel(f_glance, 64, 1, 1, 128, 1, 1, 0, stream, args));
    else {
        LAUNCH(f_map, stream, &act[i + 1], &act[i], &n, &k, &mask);
        LAUNCH(f_fill, stream, &space, is("poison") ? &n : &half, &value);
    }
    if (is("halfpoison"))
        LAUNCH(f_map, stream, &rest, &in, &half, &k, &mask);
}

static bool clears(void) { return is("cleared") || is("uncleared") || is("recleared"); }

static void layer(int i, int iter)
{
    uint32_t n = WORDS, k = 3, mask = ~0u;
    bool from_host = is("host") || is("managed");
    act[i + 1] = make(WORDS);
    if (is("stale") || is("flag"))
        bundle(act[i + 1], act[i], weight[i], is("flag") && iter >= CHANGE_AT && i == 3);
    else if (is("tail") && i % 4 == 1)
        bundle_listed(act[i + 1], act[i], weight[i]);
    else if (clears()) {
        if (!is("uncleared") || i % 4 != 3)
            MUST(cuMemsetD32Async(late, is("recleared") && iter >= CHANGE_AT ? (unsigned)iter : 0, 16, stream));
        LAUNCH(f_cleared, stream, &act[i + 1], &act[i], &late, &n);
    } else if (is("untouched") || is("part")) {
        uint32_t used = is("part") ? 1000 + (uint32_t)i : 0;
        CUdeviceptr space = make(WORDS);
        LAUNCH(f_work, stream, &act[i + 1], &act[i], &space, &n, &used);
        drop(space);
    } else if (is("convolve"))
        convolved_layer(i);
    else if (is("map") || is("mapshape"))
        mapped_layer(i, iter);
    else if ((is("factor") || is("refactor") || is("oldlist")) && i % 4 == 1)
        factor_layer(i, iter);
    else if (relists() && i == 3)
        LAUNCH(f_maybe, stream, &act[i + 1], &act[i], &late, &n, &(uint32_t){0});
    else if (is("variable") && i % 4 == 1)
        LAUNCH(f_by_name, stream, &act[i + 1], &act[i], &n);
    else if (is("turns") && i % 4 == 1) {
        static CUdeviceptr counter[LAYERS], taken[LAYERS][2];
        for (int j = 0; j < 2 && !counter[i]; j++) {
            taken[i][j] = make(WORDS);
            MUST(cuMemsetD32Async(taken[i][j], (unsigned)j, WORDS, stream));
        }
        if (!counter[i]) {
            counter[i] = make(64);
            MUST(cuMemsetD32Async(counter[i], 0, 64, stream));
        }
        LAUNCH(f_turns, stream, &act[i + 1], &act[i], &counter[i], &taken[i][0], &taken[i][1], &n);
        LAUNCH(f_join, stream, &seen, &taken[i][0], &taken[i][1], &(uint32_t){64}, &n, &n);
        LAUNCH(f_join, stream, &weight[i], &seen, &taken[i][1], &n, &(uint32_t){64}, &n);
    } else if (is("newlist") && i == 3)
        LAUNCH(f_peek, stream, &act[i + 1], &act[i], &seen, &n);
    else if (is("parted")) {
        uint32_t part = WORDS / 2 - (iter >= CHANGE_AT ? 64 * (uint32_t)(iter - CHANGE_AT + 1) : 0), rest = WORDS - part;
        CUdeviceptr to = act[i + 1] + 4ull * part, from = act[i] + 4ull * part;
        LAUNCH(f_map, stream, &act[i + 1], &act[i], &part, &k, &mask);
        LAUNCH(f_map, stream, &to, &from, &rest, &k, &mask);
    } else if (is("farmap") && i % 4 == 1)
        far_layer(i);
    else if (is("through") && i % 4 == 1) {
        CUdeviceptr list = make(64), beside = make(WORDS); /* that memory is in use by then */
        LAUNCH(f_map, stream, &beside, &act[i], &n, &k, &mask);
        MUST(cuMemcpyHtoDAsync_v2(list, &act[i + 1], 8, stream));
        LAUNCH(f_through, stream, &list, &act[i], &n, &k);
        LAUNCH(f_join, stream, &act[i + 1], &act[i + 1], &beside, &n, &n, &n);
        drop(list);
        drop(beside);
    } else if (is("seek") && i == 9)
        LAUNCH(f_seek, stream, &act[i + 1], &seen, &n);
    else if (is("table") && i % 4 == 1) {
        uint32_t v = (uint32_t)i;
        LAUNCH(f_table_set, stream, &weight[i], &v);
        LAUNCH(f_table_use, stream, &act[i + 1], &act[i], &n);
    } else if (is("drift")) {
        uint32_t own = (uint32_t)i, often = 500;
        LAUNCH(f_drift, stream, &act[i + 1], &act[i], &n, &own, &often);
    } else if (is("freed") && (i == 3 || i == 6)) {
        uint32_t used = iter >= CHANGE_AT ? WORDS / 2 : WORDS;
        LAUNCH(f_join, stream, &act[i + 1], &act[i], &large, &n, &used, &n);
    } else if ((is("packed") || is("inpacked")) && i == 9) {
        CUdeviceptr none = 0;
        unsigned char a[12];
        memcpy(a, &n, 4);
        memcpy(a + 4, &act[2], 8);
        LAUNCH(f_packed, stream, is("packed") ? &act[i + 1] : &none, a);
        if (!is("packed"))
            LAUNCH(f_map, stream, &act[i + 1], &act[2], &n, &k, &mask);
    } else if (poisons() && i == 2) {
        poisoned_layer(i);
    } else if (poisons() && i == 10) {
        LAUNCH(f_join, stream, &act[i + 1], &act[i], &space, &n, &n, &n);
        drop(space);
    } else if (is("once") && (i == 2 || i == 10)) {
        uint32_t put = i == 2;
        if (put)
            space = make(WORDS);
        LAUNCH(f_glance, stream, &act[i + 1], &act[i], &space, &word, &n, &put);
        if (!put)
            drop(space);
    } else if (is("late") && i == 3) {
        uint32_t put = 1;
        LAUNCH(f_glance, stream, &act[i + 1], &act[i], &late, &word, &n, &put);
    } else if (is("rare") || is("ninth") || ((is("seldom") || is("grown")) && i == 3)) {
        uint32_t value = 5;
        static const uint32_t from_host_words[2] = {5, 6};
        if (is("ninth")) /* not filled: a launch right behind a memset is another one for another value */
            MUST(cuMemcpyHtoDAsync_v2(act[i], &from_host_words[i != 8], sizeof value, stream));
        else if (!is("rare"))
            MUST(cuMemsetD32Async(act[i], iter >= CHANGE_AT ? value : value + 1, 64, stream));
        LAUNCH(f_rare, stream, &act[i + 1], &act[i], is("grown") ? &late : &seen, &n, &value);
    } else {
        k += from_host && i == 2 ? 0 : (uint32_t)i;
        LAUNCH(f_map, stream, &act[i + 1], from_host && i == 2 ? &word : &act[i], from_host && i == 2 ? &(uint32_t){1} : &n, &k, &mask);
        if (from_host && i == 2) { /* its first word came from the host */
            uint32_t from = 1, rest = WORDS - 1;
            CUdeviceptr to = act[i + 1] + 4 * from, in = act[i] + 4 * from;
            LAUNCH(f_map, stream, &to, &in, &rest, &k, &mask);
        }
    }
}

/* Something that ends only after the program's next call. */
static void wait_for_later(void)
{
    uint32_t n = 64;
    if (is("await")) {
        LAUNCH(f_await, other, &seen, &word, &n);
        MUST(cuMemsetD32Async(weight[0], 7, 64, stream));
        __atomic_store_n(host_word, 5, __ATOMIC_RELEASE);
    } else {
        MUST(cuStreamWaitValue32_v2(other, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
        LAUNCH(f_map, other, &seen, &seen, &n, &n, &(uint32_t){~0u});
        MUST(cuMemsetD32Async(weight[0], 7, 64, stream));
        MUST(cuStreamWriteValue32_v2(stream, word, 1, 0));
        MUST(cuStreamSynchronize(other));
        MUST(cuMemsetD32Async(word, 0, 1, stream));
    }
    MUST(cuStreamSynchronize(other));
}

static void capture(void)
{
    CUgraph g;
    uint32_t n = 64;
    MUST(cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_GLOBAL));
    LAUNCH(f_map, other, &seen, &seen, &n, &n, &(uint32_t){~0u});
    MUST(cuStreamEndCapture(other, &g));
    MUST(cuGraphDestroy(g));
}

static uint64_t look(CUdeviceptr p)
{
    uint64_t h;
    uint32_t n = WORDS;
    LAUNCH(f_sum, stream, &sum, &p, &n);
    MUST(cuMemcpyDtoHAsync_v2(&h, sum, 8, stream));
    MUST(cuStreamSynchronize(stream));
    return h;
}

/* Memory of the program's own: some is there for good; what some leaves that a plan was made beside is nobody's. */
static void own_memory(int iter)
{
    static CUdeviceptr beside;
    size_t pitch;
    if (iter == 0) {
        MUST(cuMemAllocPitch_v2(&large, &pitch, 4 * WORDS, LARGE_WORDS / WORDS, 4));
        MUST(cuMemAllocPitch_v2(&beside, &pitch, 4 * WORDS, 2, 4));
        MUST(cuMemsetD32Async(large, 9, LARGE_WORDS, stream));
    } else if (iter == CHANGE_AT - 1)
        MUST(cuMemFree_v2(beside));
}

/* Small tensors come and go; each is written, so that none is blank. */
static void crowd(int i)
{
    enum { MANY = 60, SMALL = 6000 };
    CUdeviceptr p[MANY];
    uint32_t n = SMALL, k = (uint32_t)i, mask = ~0u;
    for (int j = 0; j < MANY; j++) {
        p[j] = make(SMALL);
        if (j % 20 == 0)
            LAUNCH(f_map, stream, &p[j], &act[i], &n, &k, &mask);
    }
    for (int j = 0; j < MANY; j++)
        drop(p[j]);
}

/* All weights from the given one on but for the last, by g. The word is the last of the list. */
static void update_weights(int first_weight, CUdeviceptr g)
{
    struct list_args a = {.n = LAYERS - 1, .step = 3};
    for (int i = 0; i < LAYERS; i++) {
        a.w[i] = weight[(first_weight + i) % LAYERS];
        a.g[i] = i == LAYERS - 1 ? word : g;
        a.words[i] = WORDS;
    }
    LAUNCH(f_step_if, stream, &a);
}

/* One tensor by each of the others. The word `gate` is the last of the list, or the first. */
static void update_late(const CUdeviceptr *by, CUdeviceptr gate)
{
    const int at = is("opened") ? 0 : LAYERS - 1;
    struct list_args a = {.n = at ? LAYERS - 1 : LAYERS, .step = 3};
    for (int i = 0; i < LAYERS; i++) {
        a.w[i] = late;
        a.g[i] = i == at ? gate : by[i];
        a.words[i] = i == at ? 0 : WORDS;
    }
    LAUNCH(at ? f_step_if : f_step_if_first, stream, &a);
}

/* Where a variable of a module lies: on the device, in memory that the program has not allocated as such. */
static void make_variable(void)
{
    variable = map_own(65536);
    for (int i = 0; i < 64; i++)
        host_values[i] = 100 + (uint32_t)i;
    LAUNCH(f_variable, stream, &variable);
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    if (is("freed"))
        own_memory(iter);
    if (is("host") || is("managed"))
        *host_word = (uint32_t)iter * 77;
    if (is("newlist") && iter == CHANGE_AT)
        MUST(cuMemcpyHtoDAsync_v2(seen, &first, 8, stream));
    if (is("once") || is("late") || is("gated") || is("unlocked") || is("opened") || is("reopened") || is("altered")) {
        const uint32_t says = is("once") ? iter == CHANGE_AT : iter >= CHANGE_AT;
        MUST(cuMemcpyHtoDAsync_v2(word, &says, sizeof says, stream));
    }
    if (is("variable"))
        MUST(cuMemcpyHtoDAsync_v2(variable, host_values, sizeof host_values, stream));
    act[0] = make(WORDS);
    const bool lists = is("tail") || is("reopened");
    if (lists)
        make_list();
    if (is("reopened"))
        update_late(listed, first);
    if (is("tail"))
        bundle_listed(act[0], 0, 0);
    else
        LAUNCH(f_map, stream, &act[0], &weight[0], &n, &k, &mask);
    for (int i = 0; i < LAYERS; i++) {
        layer(i, iter);
        if (is("refused") && i > 0 && i % 3 == 0)
            refused_now_and_then(i, iter);
        if (is("emptied") && i % 3 == 0)
            crowd(i);
        if (i == 5 && (is("await") || is("value")))
            wait_for_later();
        if (i == 8 && is("newlist"))
            LAUNCH(f_join, stream, &first, &first, &act[i], &(uint32_t){64}, &(uint32_t){64}, &n);
        if (i == 8 && relists())
            relisted(iter);
        if (i == 1 && is("seek"))
            LAUNCH(f_hide, stream, &seen, &act[1]);
        if (i == 5 && is("capture") && iter >= 2 && iter < 6)
            capture();
    }
    if (is("variable") && iter >= CHANGE_AT)
        MUST(cuMemsetD32Async(variable, (unsigned)iter, 64, stream));
    if (is("unlocked") || is("opened"))
        update_late(act + 1, word);
    if (is("reopened"))
        update_late(listed, word);
    if (is("altered"))
        update_weights(0, act[LAYERS]);
    CUdeviceptr g = make(WORDS);
    LAUNCH(f_map, stream, &g, &act[LAYERS], &n, &k, &mask);
    for (int i = LAYERS; i >= 0; i--) {
        CUdeviceptr next = make(WORDS);
        if (is("stale") || is("flag"))
            bundle(next, g, act[i], 0);
        else
            LAUNCH(f_join, stream, &next, &g, &act[i], &n, &n, &n);
        drop(g);
        drop(act[i]);
        g = next;
        if (i == LAYERS / 2 && is("gated"))
            update_weights(1, g);
        if (i < LAYERS && info[i]) {
            LAUNCH(f_join, stream, &g, &g, &info[i], &n, &n, &n);
            drop(info[i]);
            info[i] = 0;
        }
        if (i < LAYERS)
            LAUNCH(f_map, stream, &weight[i], &g, &n, &k, &mask);
    }
    if (is("late"))
        LAUNCH(f_join, stream, &g, &g, &late, &n, &n, &n);
    for (int i = 0; i < BUNDLE_MAX && lists; i++) {
        LAUNCH(f_join, stream, &g, &g, &listed[i], &n, &n, &n);
        drop(listed[i]);
    }
    uint64_t h = look(g);
    drop(g);
    return h;
}

static void work_on(CUdeviceptr w, uint32_t k)
{
    uint32_t n = WORDS, mask = 0xffffffffu;
    void *args[] = {&w, &w, &n, &k, &mask};
    MUST(cuLaunchKernel(f_map, 32, 1, 1, 128, 1, 1, 0, stream, args, NULL));
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "stale";
    int iterations = argc > 2 ? atoi(argv[2]) : 20;
    primary_context();
    CUmodule m = load_kernels();
    f_map = kernel(m, "map");
    f_join = kernel(m, "join");
    f_bundle = kernel(m, "bundle");
    f_work = kernel(m, "work");
    f_cleared = kernel(m, "cleared");
    f_convolve = kernel(m, "convolve");
    f_await = kernel(m, "await");
    f_rare = kernel(m, "rare");
    f_drift = kernel(m, "drift");
    f_tensor = kernel(m, "tensor");
    f_tensor_far = kernel(m, "tensor_far");
    f_table_set = kernel(m, "table_set");
    f_table_use = kernel(m, "table_use");
    f_hide = kernel(m, "hide");
    f_seek = kernel(m, "seek");
    f_through = kernel(m, "through");
    f_point = kernel(m, "point");
    f_maybe = kernel(m, "maybe");
    f_variable = kernel(m, "variable");
    f_by_name = kernel(m, "by_name");
    f_turns = kernel(m, "turns");
    f_step_if = kernel(m, "step_if");
    f_step_if_first = kernel(m, "step_if_first");
    f_peek = kernel(m, "peek");
    f_factor = kernel(m, "factor");
    f_glance = kernel(m, "glance");
    f_fill = kernel(m, "fill");
    f_packed = kernel(m, "packed");
    f_sum = kernel(m, "sum");
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, stream));
    }
    if (clears() || is("late") || is("grown") || is("oldlist") || is("unlocked") || is("opened") || is("reopened")) {
        late = make(WORDS);
        MUST(cuMemsetD32Async(late, 1, WORDS, stream));
    }
    if (relists()) {
        const uint32_t few = is("fewlist") ? 64 : WORDS;
        late = make(few);
        first = make(few);
        MUST(cuMemsetD32Async(late, 1, few, stream));
        MUST(cuMemsetD32Async(first, 2, few, stream));
    }
    if (is("reopened")) {
        first = make(64);
        MUST(cuMemsetD32Async(first, 1, 64, stream));
    }
    sum = make(64);
    seen = make(64);
    MUST(cuMemsetD32Async(seen, 0, 64, stream));
    if (is("variable"))
        make_variable();
    if (is("newlist")) {
        first = make(64);
        MUST(cuMemsetD32Async(first, 2, 64, stream));
        MUST(cuMemcpyHtoDAsync_v2(sum, &first, 8, stream));
    }
    if (is("managed")) {
        MUST(cuMemAllocManaged(&word, 64, CU_MEM_ATTACH_GLOBAL));
        host_word = (uint32_t *)(uintptr_t)word;
        *host_word = 0;
    } else if (is("host") || is("await") || is("hostlist") || is("hostnew")) {
        MUST(cuMemHostAlloc((void **)&host_word, 64, CU_MEMHOSTALLOC_DEVICEMAP));
        *host_word = 0;
        MUST(cuMemHostGetDevicePointer_v2(&word, host_word, 0));
    } else {
        word = make(64);
        MUST(cuMemsetD32Async(word, 0, 64, stream));
    }
    if (poisons()) {
        late = make(WORDS);
        MUST(cuMemsetD32Async(late, POISON - 5, WORDS, stream));
        MUST(cuMemsetD32Async(word, 1, 64, stream));
    }
    MUST(cuCtxSynchronize());
    for (int iter = 0; iter < iterations; iter++) {
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
        for (uint32_t i = is("restless") && iter % 2 ? 5 + next_random(&rng) % 40 : 0; i > 0; i--)
            work_on(weight[i % LAYERS], i);
    }
    uint64_t h = is("grown") || is("unlocked") || is("opened") || is("reopened") ? look(late) : 0;
    for (int i = 0; i < LAYERS; i++)
        h = h * 31 + look(weight[i]);
    MUST(cuCtxSynchronize()); /* whoever has queued something: it must be right */
    uint32_t counts[64] = {0};
    if (!is("newlist"))
        MUST(cuMemcpyDtoH_v2(counts, seen, sizeof counts));
    for (int i = 0; i < 64; i++)
        h = h * 31 + counts[i];
    printf("checksum %016llx\n", (unsigned long long)h);
    return 0;
}
