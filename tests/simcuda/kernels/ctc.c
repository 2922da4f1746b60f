/*
 * Connectionist temporal classification (Graves et al., ICML 2006, equations 6 to 16), in logarithms: forward variables, backward
 * variables, gradient. The target, with blanks between and around its labels, has 2 length + 1 states.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/order.h"
#include "tests/simcuda/kernels/rows.h"

static double log_add(double a, double b)
{
    double hi = fmax(a, b), lo = fmin(a, b);
    return hi == -INFINITY ? -INFINITY : hi + log1p(exp(lo - hi));
}

struct problem {
    const struct kern *k;
    const void *log_p, *targets;
    const int64_t *input_len, *target_len, *offsets;
    int64_t lp_t, lp_b, lp_c;          /* strides of the log probabilities */
    int64_t step, blank;               /* stride of the targets */
};

static int64_t label(const struct problem *q, int64_t b, int64_t s)
{
    return s % 2 ? dtype_geti(q->k->t[1], q->targets, q->offsets[b] + q->step * (s / 2)) : q->blank;
}

static double log_p(const struct problem *q, int64_t t, int64_t b, int64_t c)
{
    return dtype_get(q->k->t[0], q->log_p, t * q->lp_t + b * q->lp_b + c * q->lp_c);
}

/* (T *log alpha, const T *log p, const i64 *input lengths, i64 greatest, const I *targets, const i64 *target lengths, i64 greatest, T *loss,
   strides of log p: t, b, c, of log alpha: b, t, s, const i64 *offsets, i64 stride of targets, i64 batch, i64 blank) */
static void alpha(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct problem q = { k, A(const void *, 1), A(const void *, 4), A(const int64_t *, 2), A(const int64_t *, 5), A(const int64_t *, 14),
                         A(int64_t, 8), A(int64_t, 9), A(int64_t, 10), A(int64_t, 15), A(int64_t, 17) };
    int64_t states = 2 * A(int64_t, 6) + 1, sb = A(int64_t, 11), st = A(int64_t, 12), ss = A(int64_t, 13);
    char *la = A(char *, 0);
    for (int64_t b = 0; b < A(int64_t, 16); b++) {
        int64_t len = q.target_len[b], end = q.input_len[b];
        for (int64_t i = 0; i < A(int64_t, 3); i++)
            for (int64_t s = 0; s < states; s++) {
                double v = -INFINITY;
                if (i == 0) {
                    if (s == 0 || (s == 1 && len > 0)) v = log_p(&q, 0, b, label(&q, b, s));
                } else if (i < end && s < 2 * len + 1) {
                    int64_t at = b * sb + (i - 1) * st + s * ss;
                    v = dtype_get(t, la, at);
                    if (s > 0) v = log_add(v, dtype_get(t, la, at - ss));
                    if (s > 1 && label(&q, b, s - 2) != label(&q, b, s)) v = log_add(v, dtype_get(t, la, at - 2 * ss));
                    v += log_p(&q, i, b, label(&q, b, s));
                }
                dtype_set(t, la, b * sb + i * st + s * ss, v);
            }
        double sum = -INFINITY;
        if (end > 0) {
            int64_t at = b * sb + (end - 1) * st + 2 * len * ss;
            sum = dtype_get(t, la, at);
            if (len > 0) sum = log_add(sum, dtype_get(t, la, at - ss));
        } else if (len == 0) sum = 0;
        dtype_set(t, A(void *, 7), b, -sum);
    }
}

/* (T *log beta, .. as above without the loss) */
static void beta(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct problem q = { k, A(const void *, 1), A(const void *, 4), A(const int64_t *, 2), A(const int64_t *, 5), A(const int64_t *, 13),
                         A(int64_t, 7), A(int64_t, 8), A(int64_t, 9), A(int64_t, 14), A(int64_t, 16) };
    int64_t states = 2 * A(int64_t, 6) + 1, sb = A(int64_t, 10), st = A(int64_t, 11), ss = A(int64_t, 12);
    char *lb = A(char *, 0);
    for (int64_t b = 0; b < A(int64_t, 15); b++) {
        int64_t len = q.target_len[b], end = q.input_len[b];
        for (int64_t i = A(int64_t, 3) - 1; i >= 0; i--)
            for (int64_t s = states - 1; s >= 0; s--) {
                double v = -INFINITY;
                if (i == end - 1) {
                    if (s == 2 * len || (len > 0 && s == 2 * len - 1)) v = log_p(&q, i, b, label(&q, b, s));
                } else if (i < end - 1 && s < 2 * len + 1) {
                    int64_t at = b * sb + (i + 1) * st + s * ss;
                    v = dtype_get(t, lb, at);
                    if (s < 2 * len) v = log_add(v, dtype_get(t, lb, at + ss));
                    if (s < 2 * len - 1 && label(&q, b, s + 2) != label(&q, b, s)) v = log_add(v, dtype_get(t, lb, at + 2 * ss));
                    v += log_p(&q, i, b, label(&q, b, s));
                }
                dtype_set(t, lb, b * sb + i * st + s * ss, v);
            }
    }
}

struct gradient {
    struct problem q;
    char *grad;
    const void *dy, *la, *lb, *loss;
    int64_t dy_b, g_t, g_b, g_c, la_b, la_t, la_s, lb_b, lb_t, lb_s;
    bool zero_infinity;
};

static double both(const struct gradient *g, enum dtype t, int64_t b, int64_t i, int64_t s)
{
    return dtype_get(t, g->la, b * g->la_b + i * g->la_t + s * g->la_s) + dtype_get(t, g->lb, b * g->lb_b + i * g->lb_t + s * g->lb_s);
}

static void read_strides(struct gradient *g, void *const *p, int at)
{
    int64_t v[12];
    for (int i = 0; i < 12; i++) v[i] = A(int64_t, at + i);
    g->g_t = v[0], g->g_b = v[1], g->g_c = v[2], g->q.lp_t = v[3], g->q.lp_b = v[4], g->q.lp_c = v[5];
    g->la_b = v[6], g->la_t = v[7], g->la_s = v[8], g->lb_b = v[9], g->lb_t = v[10], g->lb_s = v[11];
}

/* (T *grad, const T *dy, i64 its stride, const T *log alpha, log beta, log p, const i64 *input lengths, i64 greatest, const I *targets,
   const i64 *target lengths, i64 greatest, const T *loss, twelve strides, const i64 *offsets, i64 stride of targets, i64 batch, i64 labels,
   i64 blank, bool zero infinity): grad holds minus infinity; it collects, then becomes the gradient */
static void collect(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct gradient g = { .grad = A(char *, 0), .dy = A(const void *, 1), .dy_b = A(int64_t, 2), .la = A(const void *, 3),
                          .lb = A(const void *, 4), .loss = A(const void *, 11), .zero_infinity = A(bool, 29) };
    g.q = (struct problem){ .k = k, .log_p = A(const void *, 5), .targets = A(const void *, 8), .input_len = A(const int64_t *, 6),
                            .target_len = A(const int64_t *, 9), .offsets = A(const int64_t *, 24), .step = A(int64_t, 25),
                            .blank = A(int64_t, 28) };
    read_strides(&g, p, 12);
    for (int64_t b = 0; b < A(int64_t, 26); b++)
        for (int64_t i = 0; i < A(int64_t, 7); i++) {
            int64_t base = i * g.g_t + b * g.g_b;
            for (int64_t s = 0; s < 2 * g.q.target_len[b] + 1 && i < g.q.input_len[b]; s++) {
                int64_t at = base + label(&g.q, b, s) * g.g_c;
                dtype_set(t, g.grad, at, log_add(dtype_get(t, g.grad, at), both(&g, t, b, i, s)));
            }
            double nll = dtype_get(t, g.loss, b), d = dtype_get(t, g.dy, b * g.dy_b);
            for (int64_t c = 0; c < A(int64_t, 27); c++) {
                double lp = log_p(&g.q, i, b, c), v = 0;
                if (i < g.q.input_len[b] && !(g.zero_infinity && nll == INFINITY))
                    v = (exp(lp) - exp(dtype_get(t, g.grad, base + c * g.g_c) + nll - lp)) * d;
                dtype_set(t, g.grad, base + c * g.g_c, v);
            }
        }
}

/* (T *grad, const T *dy, i64 its stride, const T *log alpha, log beta, log p, const i64 *input lengths, const I *targets, const i64 *target
   lengths, const T *loss, twelve strides, const i64 *offsets, i64 stride of targets, i64 batch, bool zero infinity): labels that are not
   blank, by atomics */
static void collect_labels(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[0];
    struct gradient g = { .grad = A(char *, 0), .dy = A(const void *, 1), .dy_b = A(int64_t, 2), .la = A(const void *, 3),
                          .lb = A(const void *, 4), .loss = A(const void *, 9), .zero_infinity = A(bool, 25) };
    g.q = (struct problem){ .k = k, .log_p = A(const void *, 5), .targets = A(const void *, 7), .input_len = A(const int64_t *, 6),
                            .target_len = A(const int64_t *, 8), .offsets = A(const int64_t *, 22), .step = A(int64_t, 23) };
    read_strides(&g, p, 10);
    for (int64_t b = 0; b < A(int64_t, 24); b++) {
        int64_t len = g.q.target_len[b];
        double nll = dtype_get(t, g.loss, b), d = dtype_get(t, g.dy, b * g.dy_b);
        if (g.zero_infinity && nll == INFINITY) continue;
        for (int64_t o = 0; o < len; o++) {
            int64_t s = 2 * order_of(l->chaos, o, len) + 1, c = label(&g.q, b, s);
            for (int64_t i = 0; i < g.q.input_len[b]; i++) {
                int64_t at = i * g.g_t + b * g.g_b + c * g.g_c;
                double v = exp(both(&g, t, b, i, s) + nll - log_p(&g.q, i, b, c)) * d;
                dtype_set(t, g.grad, at, dtype_get(t, g.grad, at) - v);
            }
        }
    }
}

/* (T *grad, const i64 *input lengths, strides t, b, c, i64 greatest, i64 batch, i64 labels): zero behind each input's end */
static void zero_padding(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    for (int64_t b = 0; b < A(int64_t, 6); b++)
        for (int64_t i = A(const int64_t *, 1)[b]; i < A(int64_t, 5); i++)
            for (int64_t c = 0; c < A(int64_t, 7); c++)
                dtype_set(k->t[0], A(void *, 0), i * A(int64_t, 2) + b * A(int64_t, 3) + c * A(int64_t, 4), 0);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    kern_run_fn *f = k->row->run;
    uint64_t n = f == alpha ? A(uint64_t, 3) * (2 * A(uint64_t, 6) + 1) * A(uint64_t, 16)
               : f == beta ? A(uint64_t, 3) * (2 * A(uint64_t, 6) + 1) * A(uint64_t, 15)
               : f == collect ? A(uint64_t, 7) * (2 * A(uint64_t, 10) + 1 + A(uint64_t, 27)) * A(uint64_t, 26)
               : f == collect_labels ? (uint64_t)l->grid.x * l->block.x * l->grid.y * l->block.y
                                     : A(uint64_t, 5) * A(uint64_t, 6) * A(uint64_t, 7);
    *flops = 20 * n;
    *bytes = 4 * n * dtype_bytes(k->t[0]);
}

#define P10 "pppppppppp"
const struct kern_row ctc_rows[] = {
    { "ctc_loss_log_alpha_gpu_kernel", P10 "pppppppp", alpha, cost, NULL },
    { "ctc_loss_backward_log_beta_gpu_kernel", P10 "ppppppp", beta, cost, NULL },
    { "ctc_loss_backward_collect_gpu_kernel", P10 P10 "pppppppppb", collect, cost, NULL },
    { "ctc_loss_backward_collect_nonblank_gpu_kernel", P10 P10 "pppppb", collect_labels, cost, NULL },
    { "ctc_loss_zero_padded_gradients", "pppppppp", zero_padding, cost, NULL },
    KERN_END
};
