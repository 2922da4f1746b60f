/*
 * Fused optimizers and norms over lists of tensors, kernels of multi_tensor_apply_kernel. Updates follow
 *   Adam: Kingma and Ba, ICLR 2015, algorithm 1; AdamW: Loshchilov and Hutter, ICLR 2019, algorithm 2;
 *   AMSGrad: Reddi et al., ICLR 2018; Adagrad: Duchi et al., JMLR 2011.
 * Computed in float (f32, f16, bf16) or double, in the order of PyTorch's documentation of each optimizer.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/mta.h"

#define BLOCK 512

struct bound {
    struct mta_layout m;
    enum dtype t, out_t;
    int mode;                   /* ADAM_MODE: 0 the original, 1 with decoupled decay; NormType */
    bool amsgrad, has_momentum;
};

struct chunk_io { double cell[MTA_MAX_DEPTH][BLOCK]; };

/* What a fused optimizer does to one block of elements: x[list][i], computed as float when f32 is set. */
typedef void step_fn(const struct bound *b, double (*x)[BLOCK], int n, const void *ctx);

struct fused { const float *grad_scale; bool f32; };

static void each_block(const struct catalogue_launch *l, void *const *p, const struct bound *b, const struct fused *f,
                       step_fn *step, void *ctx, void (*per_tensor)(const struct bound *, const void *meta, int tensor, void *ctx))
{
    struct chunk_io io;
    size_t es[MTA_MAX_DEPTH], e = dtype_bytes(b->t);
    for (int d = 0; d < MTA_MAX_DEPTH; d++) es[d] = e;
    for (unsigned bl = 0; bl < l->grid.x; bl++) {
        struct mta_chunk ch = mta_chunk(&b->m, p[0], bl, es);
        if (per_tensor) per_tensor(b, p[0], ch.tensor, ctx);
        for (int64_t at = 0; at < ch.n; at += BLOCK) {
            size_t n = (size_t)KERN_MIN((int64_t)BLOCK, ch.n - at);
            for (int d = 0; d < b->m.depth; d++)
                dtype_load(b->t, DC_D, io.cell[d], ch.addr[d] + (size_t)at * e, (ptrdiff_t)e, n);
            step(b, io.cell, (int)n, ctx);
            for (int d = 0; d < b->m.depth; d++)
                if (d != 1 || f->grad_scale) /* gradients are written only when they were unscaled */
                    dtype_store(b->t, DC_D, io.cell[d], ch.addr[d] + (size_t)at * e, (ptrdiff_t)e, n);
        }
    }
}

/* Lists: parameter, gradient, first moment, second moment, [greatest second moment]. */
struct adam {
    struct fused f;
    double lr, beta1, beta2, decay, eps, bias1, bias2_sqrt;
    bool maximize;
};

#define R(T, v) ((double)(T)(v))
#define ADAM_STEP(T, name, sqrt_)                                                                                     \
    static void name(const struct bound *b, double (*x)[BLOCK], int n, const void *ctx)                               \
    {                                                                                                                 \
        const struct adam *a = ctx;                                                                                   \
        T lr = (T)a->lr, b1 = (T)a->beta1, b2 = (T)a->beta2, wd = (T)a->decay, eps = (T)a->eps;                       \
        T step = lr / (T)a->bias1, corr = (T)a->bias2_sqrt, scale = a->f.grad_scale ? (T)*a->f.grad_scale : 1;         \
        for (int i = 0; i < n; i++) {                                                                                 \
            T par = (T)x[0][i], g = (T)x[1][i] / scale;                                                               \
            x[1][i] = g;                                                                                              \
            if (a->maximize) g = -g;                                                                                  \
            if (wd != 0) {                                                                                            \
                if (b->mode == 0) g += par * wd;                                                                      \
                else par -= lr * wd * par;                                                                            \
            }                                                                                                         \
            T m = (T)((double)b1 * x[2][i] + R(T, g - (double)b1 * g)), gg = g * g;                                    \
            T v = (T)((double)b2 * x[3][i] + R(T, gg - (double)b2 * gg)), w = v;                                       \
            x[2][i] = m;                                                                                              \
            x[3][i] = v;                                                                                              \
            if (b->amsgrad) {                                                                                         \
                w = (T)x[4][i] > v ? (T)x[4][i] : v;                                                                  \
                x[4][i] = w;                                                                                          \
            }                                                                                                         \
            x[0][i] = par - step * m / (sqrt_(w) / corr + eps);                                                        \
        }                                                                                                             \
    }
ADAM_STEP(float, adam_f, sqrtf)
ADAM_STEP(double, adam_d, sqrt)

static void adam_bias(const struct bound *b, const void *meta, int tensor, void *ctx)
{
    struct adam *a = ctx;
    double step = *mta_step(&b->m, meta, tensor);
    if (a->f.f32) {
        a->bias1 = 1 - powf((float)a->beta1, (float)step);
        a->bias2_sqrt = sqrtf(1 - powf((float)a->beta2, (float)step));
    } else {
        a->bias1 = 1 - pow(a->beta1, step);
        a->bias2_sqrt = sqrt(1 - pow(a->beta2, step));
    }
}

/* (lists, functor, lr *, lr, beta1, beta2, decay, eps, maximize, grad_scale *, found_inf *) */
static void adam_run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    const float *lr = A(const float *, 2), *found = A(const float *, 10);
    struct adam a = { { A(const float *, 9), b->t != DT_F64 }, lr ? *lr : A(double, 3), A(double, 4), A(double, 5),
                      A(double, 6), A(double, 7), 0, 0, A(bool, 8) };
    if (found && *found == 1) return;
    each_block(l, p, b, &a.f, a.f.f32 ? adam_f : adam_d, &a, adam_bias);
}

/* Lists: parameter, gradient, [momentum]. */
struct sgd {
    struct fused f;
    double decay, momentum, lr, dampening;
    bool nesterov, maximize, first;
};

#define SGD_STEP(T, name)                                                                                             \
    static void name(const struct bound *b, double (*x)[BLOCK], int n, const void *ctx)                               \
    {                                                                                                                 \
        const struct sgd *a = ctx;                                                                                    \
        T scale = a->f.grad_scale ? (T)*a->f.grad_scale : 1;                                                          \
        for (int i = 0; i < n; i++) {                                                                                 \
            T par = (T)x[0][i], g = (T)x[1][i] / scale;                                                               \
            x[1][i] = g;                                                                                              \
            if (a->maximize) g = -g;                                                                                  \
            if (a->decay != 0) g += (T)a->decay * par;                                                                \
            if (b->has_momentum && a->momentum != 0) {                                                                \
                T m = a->first ? g : (T)a->momentum * (T)x[2][i] + (1 - (T)a->dampening) * g;                          \
                x[2][i] = m;                                                                                          \
                g = a->nesterov ? g + (T)a->momentum * m : m;                                                         \
            }                                                                                                         \
            x[0][i] = par - (T)a->lr * g;                                                                             \
        }                                                                                                             \
    }
SGD_STEP(float, sgd_f)
SGD_STEP(double, sgd_d)

/* (lists, functor, decay, momentum, lr *, lr, dampening, nesterov, maximize, first step, grad_scale *, found_inf *) */
static void sgd_run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    const float *lr = A(const float *, 4), *found = A(const float *, 11);
    struct sgd a = { { A(const float *, 10), b->t != DT_F64 }, A(double, 2), A(double, 3), lr ? *lr : A(double, 5),
                     A(double, 6), A(bool, 7), A(bool, 8), A(bool, 9) };
    if (found && *found == 1) return;
    each_block(l, p, b, &a.f, a.f.f32 ? sgd_f : sgd_d, &a, NULL);
}

/* Lists: parameter, gradient, sum of squares. */
struct adagrad {
    struct fused f;
    double lr, lr_decay, decay, eps, rate;
    bool maximize;
};

static void adagrad_step(const struct bound *b, double (*x)[BLOCK], int n, const void *ctx)
{
    const struct adagrad *a = ctx;
    (void)b;
    double scale = a->f.grad_scale ? *a->f.grad_scale : 1;
    for (int i = 0; i < n; i++) {
        double g = dtype_round(a->f.f32 ? DT_F32 : DT_F64, x[1][i] / scale);
        x[1][i] = g;
        if (a->maximize) g = -g;
        if (a->decay != 0) g += x[0][i] * a->decay;
        double sum = x[2][i] + g * g;
        if (a->f.f32) sum = (float)sum;
        x[2][i] = sum;
        x[0][i] -= a->rate * g / (sqrt(sum) + a->eps);
    }
}

static void adagrad_rate(const struct bound *b, const void *meta, int tensor, void *ctx)
{
    struct adagrad *a = ctx;
    a->rate = a->lr / (1 + (*mta_step(&b->m, meta, tensor) - 1) * a->lr_decay);
}

/* (lists, functor, lr *, lr, lr decay, decay, eps, maximize, grad_scale *, found_inf *) */
static void adagrad_run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    const float *lr = A(const float *, 2), *found = A(const float *, 9);
    struct adagrad a = { { A(const float *, 8), b->t != DT_F64 }, lr ? *lr : A(double, 3), A(double, 4), A(double, 5),
                         A(double, 6), 0, A(bool, 7) };
    if (found && *found == 1) return;
    each_block(l, p, b, &a.f, adagrad_step, &a, adagrad_rate);
}

/* Norms: each block leaves its share; a second kernel adds the shares of one tensor. Kinds: 0 number of nonzero elements,
   1 sum of absolute values, 2 sum of squares, 3 greatest absolute value. */
static double norm_share(int mode, double acc, double v)
{
    v = fabs(v);
    switch (mode) {
    case 0: return acc + (v != 0);
    case 1: return acc + v;
    case 2: return acc + v * v;
    default: return v != v || acc != acc ? NAN : v > acc ? v : acc;
    }
}

/* Older versions number the kinds of norms from the sum of absolute values on. */
static int norm_mode(const struct kern *k, long number, unsigned last)
{
    return (int)number + (k->k->n_params == last + 1 && k->k->bytes[last] == sizeof(int32_t));
}

/* Where a tensor's shares begin. Older versions give each tensor as many places as the longest one needs, and say that number in
   place of the addresses of offsets. */
static int64_t first_share(const struct kern *k, const void *last, int tensor)
{
    return k->k->bytes[3] == sizeof(int32_t) ? (int64_t)tensor * *(const int32_t *)last : (*(const int64_t *const *)last)[tensor];
}

/* (lists, functor, share *, offset of each tensor's shares * or places of each tensor) */
static void norm_run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    size_t es[MTA_MAX_DEPTH] = { dtype_bytes(b->t) };
    double cell[BLOCK];
    void *share = A(void *, 2);
    int first = mta_first_tensor(&b->m, p[0]);
    for (unsigned bl = 0; bl < l->grid.x; bl++) {
        struct mta_chunk ch = mta_chunk(&b->m, p[0], bl, es);
        double acc = b->mode == 4 ? -INFINITY : 0;
        for (int64_t at = 0; at < ch.n; at += BLOCK) {
            size_t n = (size_t)KERN_MIN((int64_t)BLOCK, ch.n - at);
            dtype_load(b->t, DC_D, cell, ch.addr[0] + (size_t)at * es[0], (ptrdiff_t)es[0], n);
            for (size_t i = 0; i < n; i++)
                acc = b->mode == 4 ? (cell[i] != cell[i] || cell[i] > acc ? cell[i] : acc) : norm_share(b->mode, acc, cell[i]);
        }
        dtype_set(b->out_t, share, first_share(k, p[3], first + ch.tensor) + ch.chunk, acc);
    }
}

static enum dtype compute_type(enum dtype t) { return t == DT_F16 || t == DT_BF16 ? DT_F32 : t; }

static int optim_bind(struct kern *k)
{
    struct mta_layout m;
    int e = mta_layout(k, &m);
    struct kfunctor f;
    if (e) return e;
    if (kname_functor(k->name.arg[1], &f) || !f.n_targs) return -ENOSYS;
    static const struct { const char *fn; int n_params; } known[] = {
        { "FusedAdamMathFunctor", 11 }, { "FusedSgdMathFunctor", 12 }, { "FusedAdagradMathFunctor", 10 }, { "LpNormFunctor", 4 },
        { "LpMaxFunctor", 4 },
    };
    static kern_run_fn *const runs[] = { adam_run, sgd_run, adagrad_run, norm_run, norm_run };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].fn, f.fn)) continue;
        if ((int)k->k->n_params != known[i].n_params) return -EPROTO;
        if (k->row->run != runs[i]) return -ENOSYS;
        struct bound *b = calloc(1, sizeof *b);
        if (!b) return -ENOMEM;
        long v = 0;
        b->m = m;
        b->t = dtype_parse(f.targ[0]);
        b->out_t = compute_type(b->t);
        if (i == 0) {
            kname_number(f.targ[2], &v);
            b->mode = (int)v;
            kname_number(f.targ[3], &v);
            b->amsgrad = v != 0;
        } else if (i == 1) b->has_momentum = m.depth == 3;
        else if (i == 3) {
            kname_number(f.targ[1], &v);
            b->mode = norm_mode(k, v, 3);
            b->out_t = compute_type(dtype_parse(f.targ[2]));
        } else if (i == 4) {
            b->mode = 4;
            b->out_t = b->t;
        }
        if (dtype_class(b->t) == DC_NONE) e = -ENOSYS;
        if (e) free(b);
        else k->priv = b;
        return e;
    }
    return -ENOSYS;
}

static void optim_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    const struct bound *b = k->priv;
    uint64_t n = mta_elements(&b->m, p[0], l->grid.x);
    bool norm = k->row->run == norm_run;
    *flops = n * (norm ? 2 : 12);
    *bytes = n * dtype_bytes(b->t) * (uint64_t)(norm ? 1 : 2 * b->m.depth - 1);
}

/* One block a tensor adds the shares [from, to) of it. The fourth template argument says whether the root is taken. */
static void norm_of_shares(void *const *p, const struct kern *k, unsigned tensor, int64_t from, int64_t to)
{
    bool max = !strcmp(k->name.base, "lpmax_cleanup");
    enum dtype out = max ? k->t[0] : k->t[2], in = max ? k->t[0] : compute_type(out);
    int mode = max ? 4 : norm_mode(k, k->v[1], 2);
    void *const *addr = p[1];
    double acc = max ? -INFINITY : 0;
    for (int64_t i = from; i < to; i++) {
        double v = dtype_get(in, A(const void *, 0), i);
        acc = mode >= 3 ? (v != v || v > acc ? v : acc) : acc + v;
    }
    if (mode == 2 && k->v[3]) acc = sqrt(in == DT_F32 ? (float)acc : acc);
    dtype_set(out, addr[tensor], 0, acc);
}

/* (share *, addresses by value, offset of each tensor's shares *, first tensor of this launch) */
static void norm_cleanup_run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const int64_t *offset = A(const int64_t *, 2) + A(int, 3);
    for (unsigned t = 0; t < l->grid.x; t++) norm_of_shares(p, k, t, offset[t], offset[t + 1]);
}

/* (share * of the first tensor of this launch, addresses by value, places of each tensor): older versions */
static void norm_cleanup_places_run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    int64_t places = A(int32_t, 2);
    for (unsigned t = 0; t < l->grid.x; t++) norm_of_shares(p, k, t, t * places, (t + 1) * places);
}

const struct kern_row mta_optim_rows[] = {
    { "multi_tensor_apply_kernel", NULL, adam_run, optim_cost, optim_bind },
    { "multi_tensor_apply_kernel", NULL, sgd_run, optim_cost, optim_bind },
    { "multi_tensor_apply_kernel", NULL, adagrad_run, optim_cost, optim_bind },
    { "multi_tensor_apply_kernel", NULL, norm_run, optim_cost, optim_bind },
    { "lpnorm_cleanup", "p*pi", norm_cleanup_run, NULL, NULL },
    { "lpmax_cleanup", "p*pi", norm_cleanup_run, NULL, NULL },
    { "lpnorm_cleanup", "p*i", norm_cleanup_places_run, NULL, NULL },
    { "lpmax_cleanup", "p*i", norm_cleanup_places_run, NULL, NULL },
    KERN_END
};
