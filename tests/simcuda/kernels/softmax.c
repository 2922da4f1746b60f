/*
 * Softmax and log-softmax along one dimension, forward and backward. Computed in float for f32, f16, bf16 and in double for
 * f64; sums are kept in double.
 *   y = exp(x - max) / sum      dx = y (g - sum(g y)), where PyTorch hands g y over as the gradient
 *   y = x - max - log(sum)      dx = g - exp(y) sum(g)
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

/* One row of n elements; masked elements count as minus infinity. */
#define SOFTMAX(T, name, exp_, log_)                                                                                  \
    static void name##_fwd(T *y, const T *x, int64_t n, bool log_form, const uint8_t *mask)                           \
    {                                                                                                                 \
        T max = -INFINITY;                                                                                            \
        for (int64_t i = 0; i < n; i++) if (!(mask && mask[i]) && (x[i] > max || x[i] != x[i])) max = x[i];           \
        double sum = 0;                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            T e = mask && mask[i] ? 0 : exp_(x[i] - max);                                                             \
            if (!log_form) y[i] = e;                                                                                  \
            sum += e;                                                                                                 \
        }                                                                                                             \
        if (log_form) {                                                                                               \
            T l = log_((T)sum);                                                                                       \
            for (int64_t i = 0; i < n; i++) y[i] = mask && mask[i] ? -INFINITY : x[i] - max - l;                      \
        } else {                                                                                                      \
            T s = (T)sum;                                                                                             \
            for (int64_t i = 0; i < n; i++) y[i] = s == 0 && mask ? (T)NAN : y[i] / s;                                \
        }                                                                                                             \
    }                                                                                                                 \
    /* g may already be g * y */                                                                                      \
    static void name##_bwd(T *dx, const T *g, const T *y, int64_t n, bool log_form, bool multiplied, const uint8_t *mask) \
    {                                                                                                                 \
        double s = 0;                                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                               \
            if (!(mask && mask[i])) s += log_form || multiplied ? (double)g[i] : (double)g[i] * y[i];                 \
        T sum = (T)s;                                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                               \
            dx[i] = mask && mask[i] ? 0 : log_form ? g[i] - exp_(y[i]) * sum : multiplied ? g[i] - y[i] * sum          \
                                                                          : y[i] * (g[i] - sum);                      \
    }
SOFTMAX(float, sm_f, expf, logf)
SOFTMAX(double, sm_d, exp, log)

struct shape {
    enum dtype in, out;
    int64_t n, stride;           /* elements of a row, distance between them */
    bool log_form, multiplied;
};

static void forward(const struct shape *s, void *out, int64_t out_at, const void *in, int64_t in_at, const uint8_t *mask, void *scratch)
{
    if (dtype_class(s->in) == DC_D || dtype_class(s->out) == DC_D) {
        double *x = scratch;
        row_load(s->in, x, in, in_at, s->stride, s->n);
        sm_d_fwd(x, x, s->n, s->log_form, mask);
        row_store(s->out, x, out, out_at, s->stride, s->n);
    } else {
        float *x = scratch;
        rowf_load(s->in, x, in, in_at, s->stride, s->n);
        sm_f_fwd(x, x, s->n, s->log_form, mask);
        rowf_store(s->out, x, out, out_at, s->stride, s->n);
    }
}

/* in: type of gradient and output; out: of the result. */
static void backward(const struct shape *s, void *dx, const void *g, const void *y, int64_t at, const uint8_t *mask, void *scratch)
{
    if (dtype_class(s->in) == DC_D) {
        double *a = scratch, *b = a + s->n;
        row_load(s->in, a, g, at, s->stride, s->n);
        row_load(s->in, b, y, at, s->stride, s->n);
        sm_d_bwd(a, a, b, s->n, s->log_form, s->multiplied, mask);
        row_store(s->out, a, dx, at, s->stride, s->n);
    } else {
        float *a = scratch, *b = a + s->n;
        rowf_load(s->in, a, g, at, s->stride, s->n);
        rowf_load(s->in, b, y, at, s->stride, s->n);
        sm_f_bwd(a, a, b, s->n, s->log_form, s->multiplied, mask);
        rowf_store(s->out, a, dx, at, s->stride, s->n);
    }
}

/* <In, Out, Acc, log2, log form, masked, warp> (Out *, const In *, batch, stride, n, const bool *mask, chunk, transformer mask).
   A transformer's mask has a row for each chunk of elements; the two rows of a warp have the mask of the first. */
static void warp_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int batch = A(int, 2), stride = A(int, 3), chunk = A(int, 6);
    struct shape s = { k->t[0], k->t[1], A(int, 4), 1, k->v[4] != 0, false };
    const uint8_t *mask = k->v[5] ? A(const uint8_t *, 5) : NULL;
    bool per_chunk = A(bool, 7);
    int64_t together = k->v[3] <= 7 ? 2 : 1;
    void *scratch = row_scratch(s.n);
    for (int64_t r = 0; r < batch; r++)
        forward(&s, A(void *, 0), r * stride, A(const void *, 1), r * stride,
                mask ? mask + (per_chunk ? r / together * together * stride / chunk * stride : r * stride) : NULL, scratch);
    free(scratch);
}

/* (Out *dx, const In *g, const In *y, batch, stride, n, const bool *mask) */
static void warp_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    int batch = A(int, 3), stride = A(int, 4);
    struct shape s = { k->t[0], k->t[1], A(int, 5), 1, k->v[4] != 0, true };
    const uint8_t *mask = k->v[5] ? A(const uint8_t *, 6) : NULL;
    void *scratch = row_scratch(2 * s.n);
    for (int64_t r = 0; r < batch; r++)
        backward(&s, A(void *, 0), A(const void *, 1), A(const void *, 2), r * stride, mask ? mask + r * stride : NULL, scratch);
    free(scratch);
}

static bool log_epilogue(const struct kern *k)
{
    for (int i = 0; i < k->name.n_args; i++)
        if (strstr(k->name.arg[i], "LogSoftMax")) return true;
    return false;
}

/* The first three type arguments, wherever they stand: In, Acc, Out. */
static void block_types(const struct kern *k, enum dtype *in, enum dtype *out)
{
    int at = k->t[0] == DT_NONE;
    *in = k->t[at];
    *out = k->t[at + 2];
}

/* One block a row: (Out *, const In *, n). */
static void block_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct shape s = { .n = k->k->bytes[2] == 8 ? A(int64_t, 2) : A(int, 2), .stride = 1, .log_form = log_epilogue(k) };
    block_types(k, &s.in, &s.out);
    void *scratch = row_scratch(s.n);
    for (int64_t r = 0; r < l->grid.x; r++) forward(&s, A(void *, 0), r * s.n, A(const void *, 1), r * s.n, NULL, scratch);
    free(scratch);
}

/* One block a row: (dx *, const y *, const g *, n). */
static void block_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct shape s = { .n = A(int64_t, 3), .stride = 1, .log_form = log_epilogue(k), .multiplied = true };
    enum dtype out;
    block_types(k, &s.out, &out);
    s.in = out;
    void *scratch = row_scratch(2 * s.n);
    for (int64_t r = 0; r < l->grid.x; r++)
        backward(&s, A(void *, 0), A(const void *, 2), A(const void *, 1), r * s.n, NULL, scratch);
    free(scratch);
}

/* (Out *, const In *, outer, dim, inner) */
static void spatial_fwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool wide = k->k->bytes[2] == 8;
    int64_t outer = wide ? A(int64_t, 2) : A(int, 2), inner = wide ? A(int64_t, 4) : A(int, 4);
    struct shape s = { k->t[0], k->t[2], wide ? A(int64_t, 3) : A(int, 3), inner, log_epilogue(k), false };
    void *scratch = row_scratch(s.n);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t at = o * s.n * inner + i;
            forward(&s, A(void *, 0), at, A(const void *, 1), at, NULL, scratch);
        }
    free(scratch);
}

/* (dx *, const y *, const g *, outer, dim, inner) */
static void spatial_bwd(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    bool wide = k->k->bytes[3] == 8;
    int64_t outer = wide ? A(int64_t, 3) : A(int, 3), inner = wide ? A(int64_t, 5) : A(int, 5);
    struct shape s = { k->t[2], k->t[0], wide ? A(int64_t, 4) : A(int, 4), inner, log_epilogue(k), true };
    void *scratch = row_scratch(2 * s.n);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++)
            backward(&s, A(void *, 0), A(const void *, 2), A(const void *, 1), o * s.n * inner + i, NULL, scratch);
    free(scratch);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    uint64_t n, es = 4;
    const char *b = k->row->base;
    if (!strcmp(b, "softmax_warp_forward")) n = (uint64_t)A(int, 2) * (uint64_t)A(int, 4);
    else if (!strcmp(b, "softmax_warp_backward")) n = (uint64_t)A(int, 3) * (uint64_t)A(int, 5);
    else if (k->row->run == block_fwd) n = l->grid.x * (uint64_t)(k->k->bytes[2] == 8 ? A(int64_t, 2) : A(int, 2));
    else if (k->row->run == block_bwd) n = l->grid.x * (uint64_t)A(int64_t, 3);
    else if (k->row->run == spatial_fwd) n = (uint64_t)A(int, 2) * (uint64_t)A(int, 3) * (uint64_t)A(int, 4);
    else n = (uint64_t)A(int, 3) * (uint64_t)A(int, 4) * (uint64_t)A(int, 5);
    for (int i = 0; i < 2; i++) if (k->t[i] != DT_NONE) es = dtype_bytes(k->t[i]);
    *flops = 5 * n;
    *bytes = n * es * (strstr(b, "ackward") ? 3 : 2);
}

const struct kern_row softmax_rows[] = {
    { "softmax_warp_forward", "ppiiipib", warp_fwd, cost, NULL },
    { "softmax_warp_backward", "pppiiip", warp_bwd, cost, NULL },
    { "cunn_SoftMaxForward", "pp*", block_fwd, cost, NULL },
    { "cunn_SoftMaxForwardSmem", "pp*", block_fwd, cost, NULL },
    { "cunn_SoftMaxForwardReg", "pp*", block_fwd, cost, NULL },
    { "cunn_SoftMaxForwardGmem", "pp*", block_fwd, cost, NULL },
    { "cunn_SoftMaxBackward", "pppp", block_bwd, cost, NULL },
    { "cunn_SoftMaxBackwardSmem", "pppp", block_bwd, cost, NULL },
    { "cunn_SpatialSoftMaxForward", "pp***", spatial_fwd, cost, NULL },
    { "cunn_SpatialSoftMaxBackward", "ppp***", spatial_bwd, cost, NULL },
    KERN_END
};
