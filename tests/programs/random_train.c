/* random_train SEED [ITERATIONS [FEATURES]]: a training loop made from a seed. Forward ops save values, backward ops
 * consume them in reverse, an optimizer changes the weights in place. Which oddities take part is drawn from the seed too
 * (or given: a bit mask, hexadecimal). Prints a checksum every iteration and one of all weights at the end. */
#include "tests/programs/list_args.h"
#include "tests/programs/tensors.h"

#include <pthread.h>

enum feature {
    F_HALF = 1 << 0,      /* fresh buffers written in two launches */
    F_RELU = 1 << 1,      /* in place, and without effect in the first iterations */
    F_STATS = 1 << 2,     /* running statistics */
    F_VIEWS = 1 << 3,     /* pointers into the middle; slices of one buffer */
    F_LIST = 1 << 4,      /* pointer arrays in device memory */
    F_SECRET = 1 << 5,    /* written through such an array */
    F_COUNT = 1 << 6,     /* results depend on a counter in memory */
    F_RANDOM = 1 << 7,    /* random numbers by seed and offset */
    F_SEM = 1 << 8,       /* scratch that returns to zero */
    F_COPIES = 1 << 9,    /* DtoD, HtoD, fills and 2D fills in the middle */
    F_LEGACY = 1 << 10,   /* weights in cuMemAlloc memory */
    F_POOL = 1 << 11,     /* a pool of its own */
    F_STREAMS = 1 << 12,  /* two streams */
    F_THREAD = 1 << 13,   /* backward in another thread */
    F_PTDS = 1 << 14,     /* the per-thread default stream */
    F_PREFETCH = 1 << 15, /* the next batch and the last output live across the boundary */
    F_LATE = 1 << 16,     /* frees late, early, on another stream; memory that is never used */
    F_SHAPES = 1 << 17,   /* two shapes in turn */
    F_EVAL = 1 << 18,     /* a long evaluation now and then */
    F_TINY = 1 << 19,     /* many small tensors */
    F_GRADS = 1 << 20,    /* gradients persist, zeroed by a fill, accumulated over two passes */
    F_UNIQUE = 1 << 21,   /* a kernel that never repeats; nobody looks at what it makes */
    F_MAYBE = 1 << 22,    /* a flag in the arguments decides about a write */
    F_STEER = 1 << 23,    /* the loss decides about an extra op */
    F_IGNORE = 1 << 24,   /* pointers that are not followed; launches without work */
    F_POINT = 1 << 25,    /* pointer arrays made on the device */
    F_ALL = (1 << 26) - 1,
    F_SUMS = 1 << 26,     /* gradients of one to four batches are summed, drawn anew; the first batch makes them (not of F_ALL: seeds draw what they drew) */
    F_RARE = F_SHAPES | F_EVAL | F_STEER
};

enum { MAX_LAYERS = 40, QUIET_ITERATIONS = 6 };

enum op { OP_MAP, OP_JOIN, OP_HALF, OP_RELU, OP_STATS, OP_CAT, OP_GATHER, OP_SECRET, OP_COUNT, OP_RANDOM, OP_SEM, OP_COPY, OP_HTOD, OP_FILL,
          OP_IGNORE, OP_MAYBE, OP_POINT, OP_VIEW, N_OPS };

struct layer {
    enum op op;
    uint32_t n, n_b; /* words of the output, at the larger shape */
    int skip;        /* an earlier layer whose output takes part, -1 */
    bool side_stream, two_saved;
};

static uint32_t features;
static bool makes_gradients; /* the batch is the first of its step */
static int n_layers, iterations;
static struct layer layers[MAX_LAYERS];
static struct tensor weight[MAX_LAYERS], grad[MAX_LAYERS], stats[MAX_LAYERS], kept[MAX_LAYERS], logits, batch, sum, zeros, counter;
static void *host_sum, *host_batch;
static uint32_t batch_words;
static CUstream main_stream, side_stream;
static CUmemoryPool pool;
static CUcontext context;
static uint64_t rng;

#define KERNELS(X) X(map) X(join) X(half) X(relu) X(add) X(stats) X(step) X(ignore) X(gather) X(secret) X(point) X(count) \
    X(unique) X(random) X(semaphore) X(maybe) X(sum)
#define X(name) static CUfunction f_##name;
KERNELS(X)
#undef X

static bool with(enum feature f) { return (features & f) != 0; }

static struct tensor make(uint32_t words, CUstream s) { return tensor_make(words, pool, s); }

static struct tensor persistent(uint32_t words)
{
    struct tensor t = {.n = words};
    if (!with(F_LEGACY))
        t = make(words, main_stream);
    else
        MUST(cuMemAlloc_v2(&t.p, 4ull * words));
    MUST(cuMemsetD32Async(t.p, 0x1234567u + words, words, main_stream));
    return t;
}

static void map(struct tensor *out, const struct tensor *in, uint32_t k, uint32_t mask, CUstream s)
{
    uint32_t n = out->n < in->n ? out->n : in->n;
    LAUNCH(f_map, s, &out->p, (void *)&in->p, &n, &k, &mask);
    if (n < out->n) { /* the rest from the start of the input again, until it is full */
        for (uint32_t done = n; done < out->n; done += n) {
            CUdeviceptr p = out->p + 4ull * done;
            uint32_t m = out->n - done < n ? out->n - done : n;
            LAUNCH(f_map, s, &p, (void *)&in->p, &m, &k, &mask);
        }
    }
}

static void join(struct tensor *out, const struct tensor *a, const struct tensor *b, CUstream s)
{
    LAUNCH(f_join, s, &out->p, (void *)&a->p, (void *)&b->p, &out->n, (void *)&a->n, (void *)&b->n);
}

static void tiny(CUstream s)
{
    struct tensor t[12];
    for (int i = 0; i < 12; i++) {
        t[i] = make(1 + (uint32_t)i * 97, s);
        MUST(cuMemsetD32Async(t[i].p, (unsigned)i, t[i].n, s));
    }
    for (int i = 1; i < 12; i++)
        LAUNCH(f_add, s, &t[i].p, &t[i - 1].p, &t[i].n, &t[i - 1].n);
    LAUNCH(f_add, s, &weight[0].p, &t[11].p, &(uint32_t){64}, &t[11].n);
    for (int i = 0; i < 12; i++)
        drop(&t[i], s);
}

static uint32_t words_of(const struct layer *l, int iter) { return with(F_SHAPES) && iter % 2 ? l->n / 4 * 3 + 1 : l->n; }

/* out = layer i of (in, skip); *extra: something more to save */
static struct tensor layer_forward(int i, int iter, struct tensor *in, struct tensor *skip, struct tensor *extra, CUstream s)
{
    const struct layer *l = &layers[i];
    uint32_t n = words_of(l, iter), k = (uint32_t)i * 31 + 7, all = 0xffffffffu;
    struct tensor out = make(n, s);
    const struct tensor *b = skip ? skip : &weight[i];
    uint32_t least = n < in->n ? n : in->n;
    switch (l->op) {
    case OP_HALF:
        join(&out, in, b, s); /* so that words past the input's end have a value */
        least &= ~1u;
        for (uint32_t which = 0; which < 2; which++)
            LAUNCH(f_half, s, &out.p, &in->p, &least, &which);
        if (least < 64)
            break;
        {
            struct tensor fresh = make(least, s);
            for (uint32_t which = 0; which < 2; which++)
                LAUNCH(f_half, s, &fresh.p, &out.p, &least, &which);
            map(&out, &fresh, 3, all, s);
            *extra = fresh;
        }
        break;
    case OP_RELU: {
        uint32_t mask = iter < QUIET_ITERATIONS ? 0x7fffffffu : all;
        map(&out, in, k, mask, s);
        LAUNCH(f_relu, s, &out.p, &out.n);
        break;
    }
    case OP_STATS:
        join(&out, in, b, s);
        {
            struct tensor o = make(n, s);
            LAUNCH(f_stats, s, &o.p, &out.p, &stats[i].p, &n);
            *extra = out;
            out = o;
        }
        break;
    case OP_CAT: {
        uint32_t a = n / 3 & ~3u, c = n - a;
        struct tensor x = {out.p, a}, y = {out.p + 4ull * a, c};
        join(&x, in, b, s);
        join(&y, b, in, s);
        break;
    }
    case OP_VIEW: {
        uint32_t off = in->n / 2 & ~63u;
        struct tensor v = {in->p + 4ull * off, in->n - off};
        join(&out, &v, b, s);
        break;
    }
    case OP_GATHER:
    case OP_SECRET:
    case OP_POINT: {
        struct tensor parts = make(3 * 65536, s), list = make(64, s);
        uint64_t addr[32] = {0};
        uint32_t words = 65536, count = 3;
        join(&parts, in, b, s);
        for (int j = 0; j < 3; j++)
            addr[j] = parts.p + 4ull * 65536 * (unsigned)j;
        if (l->op == OP_POINT) {
            uint32_t stride = 4 * 65536;
            LAUNCH(f_point, s, &list.p, &parts.p, &count, &stride);
        } else {
            MUST(cuMemcpyHtoDAsync_v2(list.p, addr, sizeof addr, s));
        }
        if (l->op == OP_SECRET)
            LAUNCH(f_secret, s, &list.p, &words, &k);
        LAUNCH(f_gather, s, &out.p, &list.p, &count, &words, &n);
        drop(&list, s);
        *extra = parts;
        break;
    }
    case OP_COUNT: {
        struct tensor c = make(n, s);
        LAUNCH(f_count, s, &c.p, &counter.p, &n);
        join(&out, in, &c, s);
        *extra = c;
        break;
    }
    case OP_RANDOM: {
        struct tensor c = make(n, s);
        uint64_t seed = 99, offset = (uint64_t)iter * 1000 + (unsigned)i;
        LAUNCH(f_random, s, &c.p, &n, &seed, &offset);
        join(&out, in, &c, s);
        *extra = c;
        break;
    }
    case OP_SEM:
        join(&out, in, b, s);
        LAUNCH(f_semaphore, s, &out.p, &out.p, &zeros.p, &n);
        break;
    case OP_COPY:
        join(&out, b, in, s);
        MUST(cuMemcpyDtoDAsync_v2(out.p, in->p, 4ull * least, s));
        break;
    case OP_HTOD:
        join(&out, b, in, s);
        {
            uint32_t m = n < batch_words ? n : batch_words;
            MUST(cuMemcpyHtoDAsync_v2(out.p + 4ull * (n - m / 2), host_batch, 4ull * (m / 2), s));
        }
        LAUNCH(f_add, s, &out.p, &in->p, &n, &in->n);
        break;
    case OP_FILL: {
        struct tensor z = make(n, s);
        MUST(cuMemsetD8Async(z.p, (unsigned char)(iter + i), 4ull * n, s));
        MUST(cuMemsetD2D32Async(z.p, 1024, 5, 16, n / 256, s));
        MUST(cuMemsetD16Async(z.p + 4ull * (n / 2), 7, n / 4, s));
        join(&out, in, &z, s);
        *extra = z;
        break;
    }
    case OP_IGNORE: {
        uint32_t none = 0;
        map(&out, in, k, all, s);
        LAUNCH(f_ignore, s, &in->p, &out.p, (void *)&b->p, &in->p, &least);
        LAUNCH(f_map, s, &in->p, &out.p, &none, &k, &all);
        break;
    }
    case OP_MAYBE: {
        uint32_t flag = iter % 5 == 4;
        join(&out, in, b, s);
        LAUNCH(f_maybe, s, &out.p, &out.p, &kept[i].p, &n, &flag);
        break;
    }
    case OP_MAP:
        map(&out, in, k, all, s);
        if (skip)
            LAUNCH(f_add, s, &out.p, &skip->p, &n, &skip->n);
        break;
    default:
        join(&out, in, b, s);
        break;
    }
    return out;
}

/* Everything that backward needs. */
static struct {
    struct tensor act[MAX_LAYERS + 1], extra[MAX_LAYERS], loss_grad, late[4];
    int iter, n_late;
} fwd;

static CUstream stream_of(const struct layer *l) { return with(F_STREAMS) && l->side_stream ? side_stream : main_stream; }

static void release(struct tensor *t, CUstream s)
{
    if (with(F_LATE) && fwd.n_late < 4 && t->p && t->n % 3 == 0) {
        fwd.late[fwd.n_late++] = *t;
        t->p = 0;
        return;
    }
    drop(t, s);
}

static void forward(int iter, bool keep)
{
    fwd.iter = iter;
    fwd.act[0] = make(batch_words, main_stream);
    if (with(F_PREFETCH)) {
        MUST(cuMemcpyDtoDAsync_v2(fwd.act[0].p, batch.p, 4ull * batch_words, main_stream));
        drop(&batch, main_stream);
        batch = make(batch_words, main_stream);
        MUST(cuStreamSynchronize(main_stream));
        for (uint32_t i = 0; i < batch_words; i += 61)
            ((uint32_t *)host_batch)[i] = next_random(&rng);
        MUST(cuMemcpyHtoDAsync_v2(batch.p, host_batch, 4ull * batch_words, main_stream));
    } else {
        for (uint32_t i = 0; i < batch_words; i += 61)
            ((uint32_t *)host_batch)[i] = next_random(&rng);
        MUST(cuMemcpyHtoDAsync_v2(fwd.act[0].p, host_batch, 4ull * batch_words, main_stream));
    }
    CUstream prev = main_stream;
    for (int i = 0; i < n_layers; i++) {
        const struct layer *l = &layers[i];
        CUstream s = stream_of(l);
        after(s, prev);
        prev = s;
        struct tensor *skip = l->skip >= 0 ? &fwd.act[l->skip] : NULL;
        fwd.extra[i].p = 0;
        fwd.act[i + 1] = layer_forward(i, iter, &fwd.act[i], skip && skip->p ? skip : NULL, &fwd.extra[i], s);
        if (with(F_UNIQUE) && i == 2) {
            struct tensor u = make(4096 * 64, s);
            LAUNCH(f_unique, s, &u.p, &u.n);
            drop(&u, s);
        }
        if (with(F_TINY) && i % 4 == 1)
            tiny(s);
        if (with(F_LATE) && i == 3) { /* never used by anybody */
            struct tensor idle = make(300000, s);
            drop(&idle, s);
        }
        if (!keep) {
            drop(&fwd.extra[i], s);
            bool later = false;
            for (int j = i + 1; j < n_layers; j++)
                later |= layers[j].skip == i;
            if (!later)
                drop(&fwd.act[i], s);
        }
    }
    after(main_stream, prev);
}

static uint64_t look(const struct tensor *t)
{
    uint64_t v;
    LAUNCH(f_sum, main_stream, &sum.p, (void *)&t->p, (void *)&t->n);
    MUST(cuMemcpyDtoHAsync_v2(host_sum, sum.p, 8, main_stream));
    MUST(cuStreamSynchronize(main_stream));
    memcpy(&v, host_sum, 8);
    return v;
}

static void backward(void)
{
    CUstream prev = main_stream;
    struct tensor g = fwd.loss_grad;
    for (int i = n_layers; i-- > 0;) {
        const struct layer *l = &layers[i];
        CUstream s = stream_of(l);
        after(s, prev);
        prev = s;
        struct tensor gi = make(fwd.act[i].n, s);
        join(&gi, &g, &fwd.act[i + 1], s); /* saved output */
        if (l->two_saved)
            LAUNCH(f_add, s, &gi.p, &fwd.act[i].p, &gi.n, &fwd.act[i].n); /* saved input */
        if (fwd.extra[i].p)
            LAUNCH(f_add, s, &gi.p, &fwd.extra[i].p, &gi.n, &fwd.extra[i].n);
        if (with(F_GRADS))
            LAUNCH(f_add, s, &grad[i].p, &gi.p, &grad[i].n, &gi.n);
        else if (makes_gradients) {
            grad[i] = make(weight[i].n, s);
            join(&grad[i], &gi, &g, s);
        } else if (i % 3) {
            struct tensor more = make(weight[i].n, s);
            join(&more, &gi, &g, s);
            LAUNCH(f_add, s, &grad[i].p, &more.p, &grad[i].n, &more.n);
            drop(&more, s);
        } else
            LAUNCH(f_add, s, &grad[i].p, &gi.p, &grad[i].n, &gi.n);
        if (fwd.act[i + 1].p != logits.p)
            release(&fwd.act[i + 1], s);
        release(&fwd.extra[i], with(F_LATE) ? prev : s);
        drop(&g, s);
        g = gi;
    }
    after(main_stream, prev);
    drop(&fwd.act[0], main_stream);
    drop(&g, main_stream);
    for (int i = 0; i < fwd.n_late; i++)
        drop(&fwd.late[i], main_stream);
    fwd.n_late = 0;
}

/* ---- the other thread ------------------------------------------------------------------------------------------ */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int work; /* 1: backward, 2: leave */

static void *helper(void *arg)
{
    (void)arg;
    MUST(cuCtxSetCurrent(context));
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (!work)
            pthread_cond_wait(&cond, &mutex);
        if (work == 2)
            break;
        backward();
        if (with(F_PTDS)) /* the other thread's stream is another one */
            MUST(cuStreamSynchronize(main_stream));
        work = 0;
        pthread_cond_broadcast(&cond);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void backward_elsewhere(void)
{
    if (with(F_PTDS))
        MUST(cuStreamSynchronize(main_stream));
    pthread_mutex_lock(&mutex);
    work = 1;
    pthread_cond_broadcast(&cond);
    while (work)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* ---- the loop ----------------------------------------------------------------------------------------------------- */

static void optimizer(int iter)
{
    struct list_args a;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < n_layers;) {
        a.n = 0;
        for (; i < n_layers && a.n < LIST_MAX; i++, a.n++) {
            a.w[a.n] = weight[i].p;
            a.g[a.n] = grad[i].p;
            a.words[a.n] = weight[i].n < grad[i].n ? weight[i].n : grad[i].n;
        }
        a.step = (uint32_t)iter;
        LAUNCH(f_step, main_stream, &a);
    }
    for (int i = 0; i < n_layers && !with(F_GRADS); i++)
        drop(&grad[i], main_stream);
}

static uint64_t train(int iter)
{
    uint64_t loss = 0;
    const int passes = with(F_GRADS) ? 2 : with(F_SUMS) ? 1 + (int)((uint32_t)(iter + 1) * 2654435769u >> 30) : 1;
    for (int pass = 0; pass < passes; pass++) {
        makes_gradients = !pass;
        if (!pass && with(F_GRADS))
            for (int i = 0; i < n_layers; i++)
                MUST(cuMemsetD8Async(grad[i].p, 0, 4ull * grad[i].n, main_stream));
        forward(iter, true);
        struct tensor *out = &fwd.act[n_layers];
        loss = look(out);
        if (with(F_STEER) && loss % 3 == 0)
            LAUNCH(f_add, main_stream, &out->p, &weight[0].p, &out->n, &weight[0].n);
        fwd.loss_grad = make(out->n, main_stream);
        map(&fwd.loss_grad, out, 1, 0xffffffffu, main_stream);
        if (with(F_PREFETCH)) {
            drop(&logits, main_stream);
            logits = *out;
        }
        if (with(F_THREAD))
            backward_elsewhere();
        else
            backward();
    }
    optimizer(iter);
    return loss;
}

static uint64_t evaluate(int iter)
{
    uint64_t h = 0;
    for (int k = 0; k < 3; k++) {
        forward(iter, false);
        h = h * 31 + look(&fwd.act[n_layers]);
        for (int i = 0; i <= n_layers; i++)
            drop(&fwd.act[i], main_stream);
    }
    return h;
}

static void design(void)
{
    static const uint32_t sizes[] = {16384, 65536, 131072, 262144, 262143, 262145, 524288, 524289, 786432, 700001, 300007, 1048576};
    n_layers = 10 + (int)(next_random(&rng) % 12);
    batch_words = 65536 + next_random(&rng) % 400000;
    static const uint32_t needs[N_OPS] = {[OP_HALF] = F_HALF, [OP_RELU] = F_RELU, [OP_STATS] = F_STATS, [OP_CAT] = F_VIEWS, [OP_VIEW] = F_VIEWS,
                                          [OP_GATHER] = F_LIST, [OP_SECRET] = F_SECRET, [OP_COUNT] = F_COUNT, [OP_RANDOM] = F_RANDOM, [OP_SEM] = F_SEM,
                                          [OP_COPY] = F_COPIES, [OP_HTOD] = F_COPIES, [OP_FILL] = F_COPIES, [OP_IGNORE] = F_IGNORE,
                                          [OP_MAYBE] = F_MAYBE, [OP_POINT] = F_POINT};
    for (int i = 0; i < n_layers; i++) {
        struct layer *l = &layers[i];
        do
            l->op = next_random(&rng) % N_OPS;
        while (needs[l->op] & ~features);
        if (next_random(&rng) % 3 == 0)
            l->op = next_random(&rng) % 2 ? OP_MAP : OP_JOIN;
        l->n = sizes[next_random(&rng) % (sizeof sizes / sizeof *sizes)];
        l->skip = i > 2 && next_random(&rng) % 3 == 0 ? (int)(next_random(&rng) % (unsigned)(i - 1)) + 1 : -1;
        l->side_stream = next_random(&rng) % 2;
        l->two_saved = next_random(&rng) % 2;
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    iterations = argc > 2 ? atoi(argv[2]) : 12;
    rng = seed * 0x9e3779b97f4a7c15ull + 12345;
    features = 0;
    for (uint32_t f = 1; f < F_ALL; f <<= 1)
        if (next_random(&rng) % (f & F_RARE ? 8 : 3) == 0)
            features |= f;
    if (seed % 5 == 3)
        features |= F_SUMS;
    if (argc > 3)
        features = (uint32_t)strtoul(argv[3], NULL, 16);
    design();
    printf("seed %llu features %x layers %d\n", (unsigned long long)seed, features, n_layers);

    context = primary_context();
    CUmodule m = load_kernels();
#define X(name) f_##name = kernel(m, #name);
    KERNELS(X)
#undef X
    if (with(F_PTDS))
        main_stream = CU_STREAM_PER_THREAD;
    else if (with(F_STREAMS) || seed % 2)
        MUST(cuStreamCreate(&main_stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side_stream, CU_STREAM_NON_BLOCKING));
    if (with(F_POOL))
        pool = make_pool(0);
    MUST(cuMemAllocHost_v2(&host_sum, 8));
    MUST(cuMemAllocHost_v2(&host_batch, 4ull * batch_words));
    memset(host_batch, 1, 4ull * batch_words);
    sum = persistent(2);
    zeros = persistent(64);
    MUST(cuMemsetD32Async(zeros.p, 0, 64, main_stream));
    counter = persistent(16);
    for (int i = 0; i < n_layers; i++) {
        weight[i] = persistent(4096 + (uint32_t)i * 8191);
        stats[i] = persistent(64);
        kept[i] = persistent(64);
        if (with(F_GRADS))
            grad[i] = persistent(weight[i].n);
    }
    if (with(F_PREFETCH)) {
        batch = make(batch_words, main_stream);
        MUST(cuMemcpyHtoDAsync_v2(batch.p, host_batch, 4ull * batch_words, main_stream));
    }
    MUST(cuCtxSynchronize());
    pthread_t th;
    if (with(F_THREAD) && pthread_create(&th, NULL, helper, NULL))
        return 4;
    for (int iter = 0; iter < iterations; iter++) {
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
        if (with(F_EVAL) && iter % 5 == 4)
            printf("eval %d %016llx\n", iter, (unsigned long long)evaluate(iter));
    }
    uint64_t h = logits.p ? look(&logits) : 0;
    for (int i = 0; i < n_layers; i++)
        h = ((h * 31 + look(&weight[i])) * 31 + look(&stats[i])) * 31 + look(&kept[i]);
    printf("checksum %016llx\n", (unsigned long long)h);
    if (with(F_THREAD)) {
        pthread_mutex_lock(&mutex);
        work = 2;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
        pthread_join(th, NULL);
    }
    return 0;
}
