/* strays SEED [ITERATIONS [KINDS [LAST]]]: a training loop on one stream or two, drawn from a seed, which is the same in every iteration
 * until it has been calm for long enough. From then on it strays: in most iterations, at some place, it does one thing that no iteration
 * did before. KINDS: which of them take part, a bit mask, hexadecimal (0: none); LAST: the iteration from which on it is calm again.
 * The program's own order is total: every piece of work comes after the one before, across the streams. So whatever it does is allowed.
 * Prints a checksum for every iteration, of all that came to the host in it, and one of the weights at the end. */
#include "tests/programs/tensors.h"

enum { LAYERS_MOST = 16, KEPT_MOST = 6, CALM = 8 /* iterations */ };

enum stray {
    D_TWICE,     /* a launch comes twice */
    D_SKIP,      /* not at all: its output is filled instead */
    D_STREAM,    /* it comes on the other stream */
    D_MODULE,    /* it is of another module: the same code */
    D_SCALAR,    /* it has another number */
    D_KEEP,      /* a tensor is not freed where it is otherwise; later it is looked at */
    D_KEEP_LONG, /* the same, for more than an iteration */
    D_RENEW,     /* a tensor is copied to a new one, and the old one freed */
    D_OVERWRITE, /* a tensor that is still needed is filled */
    D_PLACE,     /* it is changed in place */
    D_PART,      /* a part of it is read by a launch */
    D_FILL_PART, /* a part of it is filled */
    D_READ,      /* it is copied to the host */
    D_READ_PART, /* a part of it is */
    D_UPLOAD,    /* a part of it comes from the host */
    D_COPY,      /* it is copied to a new one, which is looked at much later */
    D_EXCHANGE,  /* two tensors of one size are each other */
    D_EXTRA,     /* memory of another size is used for a while */
    D_EARLY,     /* a tensor is freed before the backward pass needs it: that uses the weights instead */
    D_END,       /* the pass ends in the middle: everything is freed */
    D_WAIT,      /* the host waits for the device */
    D_EVALUATE,  /* a whole forward pass more, which keeps nothing */
    D_RELOAD,    /* the module is unloaded, and loaded again: every other time it is another one of the same kernels by name */
    N_STRAYS
};

enum layer_kind { L_JOIN, L_FILL, L_COPY, L_PLACE, L_MAP, L_SPLIT, L_OPAQUE, N_LAYER_KINDS };

static struct layer {
    enum layer_kind kind;
    uint32_t n;
    bool side, two_saved;
    bool out_idle, extra_idle; /* the backward pass frees it and has not looked at it */
    bool in_short;             /* its input is freed when it has been used */
    bool extra_short;          /* what else it has made is freed two layers further on */
    bool changed;              /* its output is changed in place when it has been copied */
} layers[LAYERS_MOST];
static int n_layers;
static uint32_t batch_words;
static bool two_streams;

static uint64_t fixed, now; /* random numbers: of the program's shape, of what is strayed */
static CUstream stream[2], last; /* last: of the work before */
static CUmodule module[2];
static unsigned reloads;
enum { F_MAP, F_JOIN, F_ADD, F_SUM, F_SPLIT, N_FUNCS };
static const char *const func_name[N_FUNCS] = {"map", "join", "add", "sum", "split"};
static CUfunction func[2][N_FUNCS];

static struct tensor act[LAYERS_MOST + 1], extra[LAYERS_MOST], weight[LAYERS_MOST], grad[LAYERS_MOST], gradient, sum;
static void *host_batch;
static uint64_t seen; /* of what came to the host in this iteration */

/* The stray of this iteration: which, and before how many more pieces of work; -1: none. */
static struct {
    int which;
    int32_t in;
    bool launch, end; /* the next launch is the one; the pass ends here */
} stray = {.which = -1};
static uint32_t kinds = (1u << N_STRAYS) - 1, places, places_before; /* pieces of work in this iteration, and in the one before */
static bool announced; /* the next launch records an event when it has begun, which nobody waits for */
static bool straying; /* what is done now is the stray itself */

static struct {
    struct tensor t;
    uint64_t until; /* pieces of work in all */
} kept[KEPT_MOST];
static uint64_t worked;

static CUstream on(CUstream s)
{
    after(s, last);
    return last = s;
}

static struct tensor make(uint32_t n) { return tensor_make(n, NULL, last); }

static uint64_t look(const struct tensor *t)
{
    straying = true;
    const uint64_t h = checksum(func[0][F_SUM], last, sum.p, t->p, t->n);
    straying = false;
    return seen = (seen ^ h) * 0x100000001b3ull + 1;
}

static void keep(struct tensor *t, uint64_t for_long)
{
    for (int i = 0; i < KEPT_MOST; i++)
        if (!kept[i].t.p) {
            kept[i].t = *t;
            kept[i].until = worked + for_long;
            t->p = 0;
            return;
        }
}

static void look_at_kept(bool all)
{
    for (int i = 0; i < KEPT_MOST; i++)
        if (kept[i].t.p && (all || worked >= kept[i].until)) {
            look(&kept[i].t);
            drop(&kept[i].t, last);
        }
}

/* Some tensor that is held now, weights among them; NULL: none. */
static struct tensor *any(bool weights)
{
    struct tensor *all[3 * LAYERS_MOST + 2];
    unsigned n = 0;
    for (int i = 0; i < n_layers; i++) {
        if (act[i].p)
            all[n++] = &act[i];
        if (extra[i].p)
            all[n++] = &extra[i];
        if (weights)
            all[n++] = &weight[i];
    }
    if (act[n_layers].p)
        all[n++] = &act[n_layers];
    if (gradient.p)
        all[n++] = &gradient;
    return n ? all[next_random(&now) % n] : NULL;
}

static void get_functions(int m)
{
    for (int f = 0; f < N_FUNCS; f++)
        func[m][f] = kernel(module[m], func_name[f]);
}

static void read_back(const struct tensor *t, uint32_t from, uint32_t words)
{
    uint32_t *p = malloc(4ull * words);
    if (!p)
        _exit(4);
    MUST(cuMemcpyDtoHAsync_v2(p, t->p + 4ull * from, 4ull * words, last));
    MUST(cuStreamSynchronize(last));
    for (uint32_t i = 0; i < words; i++)
        seen = (seen ^ p[i]) * 0x100000001b3ull;
    free(p);
}

static void reload(void)
{
    MUST(cuCtxSynchronize());
    MUST(cuModuleUnload(module[0]));
    module[0] = load_kernels_of(reloads++ % 2 ? "kernels.so" : "kernels_other.so");
    get_functions(0);
}

static void forward(bool saves);

/* What is not done to a launch is done before it. */
static void go_astray(void)
{
    struct tensor *t = any(stray.which != D_EARLY && stray.which != D_EXCHANGE && stray.which != D_RENEW), other;
    const uint32_t mask = 0xffffffffu, k = next_random(&now);
    uint32_t from = 0, words = 0;
    if (t) {
        words = 1 + next_random(&now) % t->n;
        from = next_random(&now) % (t->n - words + 1);
    }
    straying = true;
    switch (stray.which) {
    case D_TWICE:
    case D_SKIP:
    case D_STREAM:
    case D_MODULE:
    case D_SCALAR:
        stray.launch = true;
        break;
    case D_RENEW:
        if (!t)
            break;
        other = make(t->n);
        MUST(cuMemcpyDtoDAsync_v2(other.p, t->p, 4ull * t->n, last));
        drop(t, last);
        *t = other;
        break;
    case D_OVERWRITE:
        if (t)
            MUST(cuMemsetD32Async(t->p, k, t->n, last));
        break;
    case D_PLACE:
        if (t)
            LAUNCH(func[0][F_MAP], last, &t->p, &t->p, &t->n, (void *)&k, (void *)&mask);
        break;
    case D_PART:
    case D_EXTRA:
        if (!t)
            break;
        other = make(words);
        {
            CUdeviceptr p = t->p + 4ull * from;
            LAUNCH(func[0][F_MAP], last, &other.p, &p, &words, (void *)&k, (void *)&mask);
        }
        if (stray.which == D_PART)
            look(&other);
        else
            LAUNCH(func[0][F_ADD], last, &t->p, &other.p, &t->n, &other.n);
        drop(&other, last);
        break;
    case D_FILL_PART:
        if (t)
            MUST(cuMemsetD32Async(t->p + 4ull * from, k, words, last));
        break;
    case D_READ:
        if (t)
            read_back(t, 0, t->n);
        break;
    case D_READ_PART:
        if (t)
            read_back(t, from, words);
        break;
    case D_UPLOAD:
        if (t)
            MUST(cuMemcpyHtoDAsync_v2(t->p + 4ull * from, host_batch, 4ull * (words < batch_words ? words : batch_words), last));
        MUST(cuStreamSynchronize(last));
        break;
    case D_COPY:
        if (!t)
            break;
        other = make(t->n);
        MUST(cuMemcpyDtoDAsync_v2(other.p, t->p, 4ull * t->n, last));
        keep(&other, next_random(&now) % (2 * places_before + 1));
        drop(&other, last);
        break;
    case D_EXCHANGE:
        for (int i = 0; i <= n_layers && t; i++)
            if (act[i].p && &act[i] != t && act[i].n == t->n) {
                other = act[i];
                act[i] = *t;
                *t = other;
                break;
            }
        break;
    case D_EARLY:
        if (t != &gradient && t != &act[n_layers] && t)
            drop(t, last);
        break;
    case D_END:
        stray.end = true;
        break;
    case D_WAIT:
        MUST(cuCtxSynchronize());
        break;
    case D_EVALUATE: {
        struct tensor held[2][LAYERS_MOST + 1];
        memcpy(held[0], act, sizeof act);
        memcpy(held[1], extra, sizeof extra);
        memset(act, 0, sizeof act);
        memset(extra, 0, sizeof extra);
        forward(false);
        look(&act[n_layers]);
        drop(&act[n_layers], last);
        memcpy(act, held[0], sizeof act);
        memcpy(extra, held[1], sizeof extra);
        break;
    }
    case D_RELOAD:
        reload();
        break;
    default: /* D_KEEP and D_KEEP_LONG: in let_go() */
        stray.in = 0;
        straying = false;
        return;
    }
    straying = false;
    if (!stray.launch)
        stray.which = -1;
}

/* Before each piece of work, and before anybody has looked where its tensors lie, or made the one that it writes. */
static void place(void)
{
    if (straying)
        return;
    worked++;
    places++;
    look_at_kept(false);
    if (stray.which >= 0 && !stray.launch && stray.in-- <= 0)
        go_astray();
}

static void launch_with_event(CUfunction f, CUstream s, void **args)
{
    CUlaunchAttribute event = {.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT};
    const CUlaunchConfig config = {.gridDimX = 64, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 1, .blockDimZ = 1,
                                   .hStream = s, .attrs = &event, .numAttrs = 1};
    MUST(cuEventCreate(&event.value.launchCompletionEvent.event, CU_EVENT_DISABLE_TIMING));
    MUST(cuLaunchKernelEx(&config, f, args, NULL));
    MUST(cuEventDestroy_v2(event.value.launchCompletionEvent.event));
}

/* One launch, which makes `out` of what is in it and else; `whole`: of nothing that is in it. other: a second output, or NULL. scalar: one of
 * its arguments. */
static void launch(int f, struct tensor *out, struct tensor *other, bool whole, uint32_t *scalar, CUstream s, void **args)
{
    const bool now_astray = stray.launch && !straying;
    const int which = now_astray ? stray.which : -1;
    if (now_astray)
        stray.which = -1, stray.launch = false;
    if (which == D_SKIP) {
        if (whole)
            MUST(cuMemsetD32Async(out->p, 3, out->n, on(s)));
        if (other)
            MUST(cuMemsetD32Async(other->p, 4, other->n, on(s)));
        return;
    }
    if (which == D_STREAM)
        s = s == stream[0] ? stream[1] : stream[0];
    if (which == D_SCALAR && scalar)
        *scalar += 17;
    on(s);
    for (int i = 0; i <= (which == D_TWICE); i++)
        if (announced)
            launch_with_event(func[which == D_MODULE][f], s, args);
        else
            MUST(cuLaunchKernel(func[which == D_MODULE][f], 64, 1, 1, 128, 1, 1, 0, s, args, NULL));
    announced = false;
}

static void map(struct tensor *out, const struct tensor *in, uint32_t k, CUstream s)
{
    CUdeviceptr to = out->p, from = in->p;
    uint32_t n = out->n, mask = 0xffffffffu;
    void *args[] = {&to, &from, &n, &k, &mask};
    launch(F_MAP, out, NULL, true, &k, s, args);
}

static void join(struct tensor *out, const struct tensor *a, const struct tensor *b, CUstream s)
{
    CUdeviceptr p = out->p, pa = a->p, pb = b->p;
    uint32_t n = out->n, na = a->n, nb = b->n;
    void *args[] = {&p, &pa, &pb, &n, &na, &nb};
    launch(F_JOIN, out, NULL, true, NULL, s, args);
}

static void split(struct tensor *a, struct tensor *b, const struct tensor *in, CUstream s)
{
    CUdeviceptr pa = a->p, pb = b->p, from = in->p;
    uint32_t n = a->n, n_in = in->n;
    void *args[] = {&pa, &pb, &from, &n, &n_in};
    launch(F_SPLIT, a, b, true, NULL, s, args);
}

static void add(struct tensor *out, const struct tensor *a, CUstream s)
{
    CUdeviceptr p = out->p, pa = a->p;
    uint32_t n = out->n, na = a->n;
    void *args[] = {&p, &pa, &n, &na};
    launch(F_ADD, out, NULL, false, NULL, s, args);
}

static void let_go(struct tensor *t)
{
    if (t->p && (stray.which == D_KEEP || stray.which == D_KEEP_LONG) && stray.in <= 0) {
        keep(t, stray.which == D_KEEP ? next_random(&now) % (places_before + 1) : places_before + next_random(&now) % (2 * places_before + 1));
        stray.which = -1;
    }
    drop(t, last);
}

static CUstream stream_of(const struct layer *l) { return stream[two_streams && l->side]; }

/* What is saved, or a weight where it is not there. */
static const struct tensor *saved(const struct tensor *t, int i) { return t->p ? t : &weight[i]; }

/* Layer i's output, which is fresh. */
static void make_output(int i, const struct tensor *(*other)(int), CUstream s)
{
    place();
    act[i + 1] = make(layers[i].n);
    announced = layers[i].kind == L_JOIN && i % 3 == 1;
    join(&act[i + 1], saved(&act[i], i), other(i), s);
}

static const struct tensor *weights(int i) { return &weight[i]; }
static const struct tensor *extras(int i) { return saved(&extra[i], i); }

static void add_to(struct tensor *t, const struct tensor *a, CUstream s)
{
    place();
    if (t->p && a->p)
        add(t, a, s);
}

static void forward(bool saves)
{
    place();
    on(stream[0]);
    act[0] = make(batch_words);
    MUST(cuMemcpyHtoDAsync_v2(act[0].p, host_batch, 4ull * batch_words, last));
    for (int i = 0; i < n_layers && !stray.end; i++) {
        const struct layer *l = &layers[i];
        const CUstream s = stream_of(l);
        on(s);
        switch (l->kind) {
        case L_FILL:
            place();
            extra[i] = make(l->n);
            MUST(cuMemsetD32Async(extra[i].p, 77u + (unsigned)i, l->n, on(s)));
            if (i % 2)
                add_to(&extra[i], &act[i], s);
            make_output(i, extras, s);
            break;
        case L_COPY:
            make_output(i, weights, s);
            place();
            extra[i] = make(l->n);
            MUST(act[i + 1].p ? cuMemcpyDtoDAsync_v2(extra[i].p, act[i + 1].p, 4ull * l->n, on(s)) : cuMemsetD32Async(extra[i].p, 5, l->n, on(s)));
            if (i % 2)
                add_to(&extra[i], &weight[i], s);
            if (l->changed)
                add_to(&act[i + 1], &weight[0], s);
            break;
        case L_SPLIT:
            place();
            act[i + 1] = make(l->n);
            extra[i] = make(l->n);
            split(&act[i + 1], &extra[i], saved(&act[i], i), s);
            break;
        case L_OPAQUE: { /* what no launch makes */
            place();
            struct tensor whole = make(l->n);
            join(&whole, saved(&act[i], i), &weight[i], s);
            place();
            extra[i] = make(l->n);
            const CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = whole.p, .srcPitch = 4, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                        .dstDevice = extra[i].p, .dstPitch = 4, .WidthInBytes = 4, .Height = l->n};
            MUST(cuMemcpy2DAsync_v2(&rows, on(s)));
            let_go(&whole);
            make_output(i, extras, s);
            break;
        }
        case L_PLACE:
            make_output(i, weights, s);
            add_to(&act[i + 1], &weight[i], s);
            break;
        case L_MAP: {
            place();
            struct tensor whole = make(l->n);
            join(&whole, saved(&act[i], i), &weight[i], s);
            place();
            act[i + 1] = make(l->n);
            map(&act[i + 1], &whole, 5, s);
            let_go(&whole);
            break;
        }
        default:
            make_output(i, weights, s);
            break;
        }
        if (!saves || l->in_short)
            let_go(&act[i]);
        if (!saves)
            let_go(&extra[i]);
        if (i >= 2 && layers[i - 2].extra_short)
            let_go(&extra[i - 2]);
    }
    on(stream[0]);
}

static void backward(void)
{
    for (int i = n_layers; i-- > 0 && !stray.end;) {
        const struct layer *l = &layers[i];
        const CUstream s = stream_of(l);
        on(s);
        place();
        struct tensor in = make(act[i].p ? act[i].n : weight[i].n);
        join(&in, saved(&gradient, i), l->out_idle ? &weight[i] : saved(&act[i + 1], i), s);
        if (l->two_saved)
            add_to(&in, &act[i], s);
        add_to(&in, l->extra_idle ? &weight[i] : extras(i), s);
        place();
        struct tensor room = make(in.n);
        map(&room, &in, 9, s);
        add_to(&in, &room, s);
        let_go(&room);
        place();
        grad[i] = make(weight[i].n);
        join(&grad[i], &in, saved(&gradient, i), s);
        let_go(&act[i + 1]);
        let_go(&extra[i]);
        let_go(&gradient);
        gradient = in;
    }
    on(stream[0]);
    let_go(&act[0]);
    let_go(&gradient);
}

static void give_everything_back(void)
{
    for (int i = 0; i <= n_layers; i++)
        drop(&act[i], last);
    for (int i = 0; i < n_layers; i++) {
        drop(&extra[i], last);
        drop(&grad[i], last);
    }
    drop(&gradient, last);
    stray.end = false;
}

static void draw_stray(int iteration, int until)
{
    stray.which = -1;
    stray.launch = stray.end = false;
    if (!kinds || iteration < CALM || iteration >= until || next_random(&now) % 3 == 0)
        return;
    do
        stray.which = (int)(next_random(&now) % N_STRAYS);
    while (!(kinds >> stray.which & 1));
    stray.in = (int32_t)(next_random(&now) % (places_before + 1));
}

static void train(int iteration)
{
    seen = 0;
    places = 0;
    for (uint32_t i = 0; i < batch_words; i += 61)
        ((uint32_t *)host_batch)[i] = next_random(&fixed);
    forward(true);
    if (!stray.end) {
        const struct tensor *out = saved(&act[n_layers], 0);
        look(out);
        gradient = make(out->n);
        map(&gradient, out, 1, stream[0]);
        backward();
    }
    for (int i = 0; i < n_layers && !stray.end; i++) {
        add(&weight[i], &grad[i], stream[0]);
        drop(&grad[i], last);
    }
    give_everything_back();
    places_before = places;
    printf("iter %d loss %016llx\n", iteration, (unsigned long long)seen);
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = {131072, 262144, 262143, 262145, 393216, 300007};
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    const int iterations = argc > 2 ? atoi(argv[2]) : 24;
    if (argc > 3)
        kinds &= (uint32_t)strtoul(argv[3], NULL, 16);
    const int until = argc > 4 ? atoi(argv[4]) : iterations;
    fixed = seed * 0x9e3779b97f4a7c15ull + 12345;
    now = seed * 0xd1342543de82ef95ull + 777;
    n_layers = 8 + (int)(next_random(&fixed) % 7);
    batch_words = 131072 + next_random(&fixed) % 200000;
    two_streams = next_random(&fixed) % 2;
    for (int i = 0; i < n_layers; i++)
        layers[i] = (struct layer){.kind = next_random(&fixed) % N_LAYER_KINDS, .n = sizes[next_random(&fixed) % (sizeof sizes / sizeof *sizes)],
                                   .side = next_random(&fixed) % 2, .two_saved = next_random(&fixed) % 2,
                                   .out_idle = next_random(&fixed) % 3 == 0, .extra_idle = next_random(&fixed) % 2, .in_short = next_random(&fixed) % 3 == 0,
                                   .extra_short = next_random(&fixed) % 3 == 0, .changed = next_random(&fixed) % 2};
    primary_context();
    for (int m = 0; m < 2; m++) {
        module[m] = load_kernels();
        get_functions(m);
        MUST(cuStreamCreate(&stream[m], CU_STREAM_NON_BLOCKING));
    }
    last = stream[0];
    MUST(cuMemAllocHost_v2(&host_batch, 4ull * batch_words));
    memset(host_batch, 1, 4ull * batch_words);
    sum = make(2);
    for (int i = 0; i < n_layers; i++) {
        weight[i] = make(4096 + (uint32_t)i * 8191);
        MUST(cuMemsetD32Async(weight[i].p, 0x1234567u + (unsigned)i, weight[i].n, last));
    }
    for (int i = 0; i < iterations; i++) {
        draw_stray(i, until);
        train(i);
    }
    look_at_kept(true);
    seen = 0;
    for (int i = 0; i < n_layers; i++)
        look(&weight[i]);
    printf("checksum %016llx\n", (unsigned long long)seen);
    return 0;
}
