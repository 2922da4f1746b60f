/*
 * reduce_kernel<threads, vec, ReduceOp<In, Ops, unsigned, Out, vt, in vec>>: one parameter by value,
 *   { Ops; Acc ident; config (64 bytes); offsets of one output's inputs <1>; offsets of outputs <2: out, in>; In *src; Out *dst[2];
 *     void *acc_buf, *cta_buf; int *semaphores; i64 base_idx; bool accumulate, final; int n_outputs }
 * config: { elem_bytes, n_inputs, n_outputs, step_input, step_output, ctas, input_mult[3], output_mult[2], block width, height,
 *   threads; bool vectorize; output_vec }.
 * Where several blocks share an output, each leaves its part in cta_buf and counts itself in the semaphore of its column;
 * the last one adds the parts: so it is here. Sums are kept in double within a part, in eight lanes; parts are rounded to Acc.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/kern.h"
#include "tests/simcuda/kernels/offset.h"

#define BLOCK 512
#define LANES 8

enum op { SUM, MEAN, NANSUM, PROD, AND, OR, MAXV, MINV, ARGMAX, ARGMIN, MAXI, MINI, MINMAX, ABSMAX, ABSMIN, NORM0, NORM1, NORM2,
          NORMP, WELFORD };

/* Sizes of Ops and of Acc in units of Acc's element: 1 a byte (empty), 'a' one element, 'p' element and int64, '2' two elements,
   'w' correction and flag, 'W' Welford's state. */
static const struct { const char *name; enum op op; char ops, acc; } names[] = {
    { "sum_functor", SUM, 1, 'a' }, { "ReductionAddOp", SUM, 1, 'a' }, { "prod_functor", PROD, 1, 'a' },
    { "ReductionMulOp", PROD, 1, 'a' }, { "MeanOps", MEAN, 'a', 'a' }, { "NanSumOps", NANSUM, 1, 'a' },
    { "and_kernel_cuda", AND, 1, 'a' }, { "or_kernel_cuda", OR, 1, 'a' }, { "MaxNanFunctor", MAXV, 1, 'a' },
    { "MinNanFunctor", MINV, 1, 'a' }, { "ArgMaxOps", ARGMAX, 1, 'p' }, { "ArgMinOps", ARGMIN, 1, 'p' },
    { "MaxOps", MAXI, 1, 'p' }, { "MinOps", MINI, 1, 'p' }, { "MinMaxOps", MINMAX, 1, '2' },
    { "AbsMaxOps", ABSMAX, 1, 'a' }, { "AbsMinOps", ABSMIN, 1, 'a' }, { "NormZeroOps", NORM0, 1, 'a' },
    { "NormOneOps", NORM1, 1, 'a' }, { "NormTwoOps", NORM2, 1, 'a' }, { "NormOps", NORMP, 'a', 'a' },
    { "WelfordOps", WELFORD, 'w', 'W' },
};

struct bound {
    enum op op;
    enum dtype in, out, acc;
    enum dclass c;
    char acc_kind;
    bool root;                /* norms: the root is taken */
    int vec;                  /* elements that one load takes where the config says so */
    uint32_t config_at, in_calc_at, out_calc_at, tail_at, acc_bytes;
};

/* a: the sum, product, value or mean; b: second moment or maximum of MINMAX; i: integer value; idx: index. */
struct acc {
    double a, b, n, lane[LANES];
    int64_t i, idx;
};

static uint32_t up(uint32_t v, uint32_t to) { return (v + to - 1) / to * to; }

static int bind(struct kern *k)
{
    struct kfunctor r, ops, inner;
    if (k->name.n_args < 3 || kname_functor(k->name.arg[2], &r) || r.n_targs < 4 || strcmp(r.fn, "ReduceOp")) return -ENOSYS;
    if (strcmp(r.targ[2], "unsigned int") || kname_functor(r.targ[1], &ops)) return -ENOSYS;
    const struct kfunctor *f = &ops;
    struct bound *b = calloc(1, sizeof *b);
    if (!b) return -ENOMEM;
    b->in = dtype_parse(r.targ[0]);
    b->out = dtype_parse(r.targ[3]);
    if (!strcmp(ops.fn, "func_wrapper_t")) {
        if (ops.n_targs < 2 || kname_functor(ops.targ[1], &inner)) goto unknown;
        f = &inner;
        b->acc = inner.is_lambda ? dtype_parse(inner.param[0]) : inner.n_targs ? dtype_parse(inner.targ[0]) : DT_NONE;
    }
    size_t i = 0, n = sizeof names / sizeof *names;
    while (i < n && strcmp(names[i].name, f->fn)) i++;
    if (i == n) goto unknown;
    b->op = names[i].op;
    b->acc_kind = names[i].acc;
    if (b->acc == DT_NONE) b->acc = f->n_targs > 1 ? dtype_parse(f->targ[1]) : f->n_targs ? dtype_parse(f->targ[0]) : DT_NONE;
    if (b->op == MEAN || b->op == NANSUM) b->acc = dtype_parse(f->targ[1 < f->n_targs ? (b->op == MEAN ? 1 : 0) : 0]);
    if (b->op == MINMAX) b->acc = dtype_parse(f->targ[1]);
    b->root = true;
    long vec = 4;
    if (r.n_targs > 5) kname_number(r.targ[5], &vec);
    b->vec = (int)vec;
    if ((b->op == NORM2 || b->op == NORMP) && f->n_targs > 3) {
        long v = 0;
        kname_number(f->targ[3], &v);
        b->root = v != 0;
    }
    b->c = dtype_class(b->in);
    if (b->c == DC_NONE || dtype_class(b->acc) == DC_NONE || dtype_class(b->out) == DC_NONE) goto unknown;
    uint32_t e = (uint32_t)dtype_bytes(b->acc), at = names[i].ops == 1 ? 1 : names[i].ops == 'w' ? 2 * e : e, align = e;
    b->acc_bytes = b->acc_kind == 'p' ? 16 : b->acc_kind == '2' ? 2 * e : b->acc_kind == 'W' ? (e == 8 ? 32 : 16) : e;
    if (b->acc_kind == 'p') align = 8;
    at = up(at, align) + b->acc_bytes;
    b->config_at = up(at, 4);
    b->in_calc_at = b->config_at + 64;
    b->out_calc_at = b->in_calc_at + OFFSET_BYTES(1);
    b->tail_at = up(b->out_calc_at + OFFSET_BYTES(2), 8);
    if (b->tail_at + 64 != k->k->bytes[0]) {
        free(b);
        return -EPROTO;
    }
    k->priv = b;
    return 0;
unknown:
    free(b);
    return -ENOSYS;
}

static void start(const struct bound *b, struct acc *a)
{
    memset(a, 0, sizeof *a);
    a->idx = -1;
    switch (b->op) {
    case PROD: a->a = 1; a->i = 1; break;
    case AND: a->i = 1; break;
    case MAXV: case ARGMAX: case MAXI: a->a = -INFINITY; a->i = INT64_MIN; break;
    case MINV: case ARGMIN: case MINI: case ABSMIN: a->a = INFINITY; a->i = INT64_MAX; break;
    case MINMAX: a->a = INFINITY; a->b = -INFINITY; break;
    default: break;
    }
}

static bool better_f(enum op op, double v, double best)
{
    bool max = op == ARGMAX || op == MAXI || op == MAXV;
    if (v != v) return best == best;
    return best == best && (max ? v > best : v < best);
}

#define FOLD_F(T, name)                                                                                               \
    static void name(const struct bound *b, struct acc *a, const T *x, int n, int64_t first, double p)                \
    {                                                                                                                 \
        int k = 0;                                                                                                    \
        switch (b->op) {                                                                                              \
        case SUM: case MEAN:                                                                                          \
            for (; k + LANES <= n; k += LANES)                                                                        \
                for (int j = 0; j < LANES; j++) a->lane[j] += x[k + j];                                               \
            for (; k < n; k++) a->lane[k % LANES] += x[k];                                                            \
            break;                                                                                                    \
        case NORM2:                                                                                                   \
            for (; k + LANES <= n; k += LANES)                                                                        \
                for (int j = 0; j < LANES; j++) a->lane[j] += (double)x[k + j] * x[k + j];                            \
            for (; k < n; k++) a->lane[k % LANES] += (double)x[k] * x[k];                                             \
            break;                                                                                                    \
        case NANSUM: for (; k < n; k++) if (x[k] == x[k]) a->lane[0] += x[k]; break;                                  \
        case NORM1: for (; k < n; k++) a->lane[0] += fabs((double)x[k]); break;                                       \
        case NORM0: for (; k < n; k++) a->lane[0] += x[k] != 0; break;                                                \
        case NORMP: for (; k < n; k++) a->lane[0] += pow(fabs((double)x[k]), p); break;                               \
        case PROD: for (; k < n; k++) a->a *= x[k]; break;                                                            \
        case AND: for (; k < n; k++) a->i &= x[k] != 0; break;                                                        \
        case OR: for (; k < n; k++) a->i |= x[k] != 0; break;                                                         \
        case MAXV: case MINV: for (; k < n; k++) if (better_f(b->op, x[k], a->a)) a->a = x[k]; break;                 \
        case ABSMAX: for (; k < n; k++) { double v = fabs((double)x[k]); if (!(v <= a->a)) a->a = v; } break;         \
        case ABSMIN: for (; k < n; k++) { double v = fabs((double)x[k]); if (!(v >= a->a)) a->a = v; } break;         \
        case MINMAX:                                                                                                  \
            for (; k < n; k++) {                                                                                      \
                if (better_f(MINV, x[k], a->a)) a->a = x[k];                                                          \
                if (better_f(MAXV, x[k], a->b)) a->b = x[k];                                                          \
            }                                                                                                         \
            break;                                                                                                    \
        case ARGMAX: case ARGMIN: case MAXI: case MINI:                                                               \
            for (; k < n; k++)                                                                                        \
                if (a->idx < 0 || better_f(b->op, x[k], a->a)) { a->a = x[k]; a->idx = first + k; }                   \
            break;                                                                                                    \
        case WELFORD:                                                                                                 \
            for (; k < n; k++) {                                                                                      \
                double d = x[k] - a->a;                                                                               \
                a->n += 1;                                                                                            \
                a->a += d / a->n;                                                                                     \
                a->b += d * (x[k] - a->a);                                                                            \
            }                                                                                                         \
            break;                                                                                                    \
        }                                                                                                             \
    }
FOLD_F(float, fold_f)
FOLD_F(double, fold_d)

static void fold_i(const struct bound *b, struct acc *a, const int64_t *x, int n, int64_t first)
{
    for (int k = 0; k < n; k++) {
        int64_t v = x[k];
        switch (b->op) {
        case SUM: case NANSUM: a->i = (int64_t)((uint64_t)a->i + (uint64_t)v); break;
        case MEAN: a->lane[0] += (double)v; break;
        case PROD: a->i = (int64_t)((uint64_t)a->i * (uint64_t)v); break;
        case AND: a->i &= v != 0; break;
        case OR: a->i |= v != 0; break;
        case MAXV: a->i = KERN_MAX(a->i, v); break;
        case MINV: a->i = KERN_MIN(a->i, v); break;
        case ARGMAX: case MAXI: if (a->idx < 0 || v > a->i) { a->i = v; a->idx = first + k; } break;
        case ARGMIN: case MINI: if (a->idx < 0 || v < a->i) { a->i = v; a->idx = first + k; } break;
        case MINMAX: a->a = KERN_MIN(a->a, (double)v); a->b = KERN_MAX(a->b, (double)v); break;
        case NORM0: a->lane[0] += v != 0; break;
        default: break;
        }
    }
}

static void settle(const struct bound *b, struct acc *a)
{
    for (int j = 0; j < LANES; j++) {
        if (b->op != PROD) a->a += a->lane[j];
        a->lane[j] = 0;
    }
}

/* A part joins another; both are settled. */
static void join(const struct bound *b, struct acc *a, const struct acc *o)
{
    switch (b->op) {
    case SUM: case NANSUM: case MEAN: case NORM0: case NORM1: case NORM2: case NORMP:
        a->a += o->a;
        a->i = (int64_t)((uint64_t)a->i + (uint64_t)o->i);
        break;
    case PROD: a->a *= o->a; a->i = (int64_t)((uint64_t)a->i * (uint64_t)o->i); break;
    case AND: a->i &= o->i; break;
    case OR: a->i |= o->i; break;
    case MAXV: case MINV:
        if (better_f(b->op, o->a, a->a)) a->a = o->a;
        a->i = b->op == MAXV ? KERN_MAX(a->i, o->i) : KERN_MIN(a->i, o->i);
        break;
    case ABSMAX: if (!(o->a <= a->a)) a->a = o->a; break;
    case ABSMIN: if (!(o->a >= a->a)) a->a = o->a; break;
    case MINMAX:
        if (better_f(MINV, o->a, a->a)) a->a = o->a;
        if (better_f(MAXV, o->b, a->b)) a->b = o->b;
        break;
    case ARGMAX: case ARGMIN: case MAXI: case MINI: {
        bool max = b->op == ARGMAX || b->op == MAXI;
        bool take = b->c == DC_I ? (max ? o->i > a->i : o->i < a->i) || (o->i == a->i && o->idx < a->idx)
                                 : better_f(b->op, o->a, a->a)
                                   || ((o->a == a->a || (o->a != o->a && a->a != a->a)) && o->idx < a->idx);
        if (o->idx >= 0 && (a->idx < 0 || take)) *a = *o;
        break;
    }
    case WELFORD: {
        if (o->n == 0) break;
        if (a->n == 0) { *a = *o; break; }
        double d = o->a - a->a, n = a->n + o->n;
        a->b += o->b + d * d * a->n * (o->n / n);
        a->a += d * (o->n / n);
        a->n = n;
        break;
    }
    }
}

static bool integral(const struct bound *b) { return b->c == DC_I || b->op == AND || b->op == OR; }

/* A part in memory, as Acc, and what it is worth after it was there. */
static void leave_part(const struct bound *b, struct acc *a, char *at)
{
    if (b->acc_kind == 'W') {
        uint32_t e = (uint32_t)dtype_bytes(b->acc);
        dtype_set(b->acc, at, 0, a->a);
        dtype_set(b->acc, at, 1, a->b);
        *(int32_t *)(at + 2 * e) = -1;
        dtype_set(b->acc, at + (e == 8 ? 24 : 12), 0, a->n);
        a->a = dtype_get(b->acc, at, 0);
        a->b = dtype_get(b->acc, at, 1);
        return;
    }
    if (integral(b) && b->op != MEAN && b->op != MINMAX) {
        dtype_seti(b->acc, at, 0, a->i);
        a->i = dtype_geti(b->acc, at, 0);
    } else {
        dtype_set(b->acc, at, 0, a->a);
        a->a = dtype_get(b->acc, at, 0);
    }
    if (b->acc_kind == '2') dtype_set(b->acc, at, 1, a->b);
    if (b->acc_kind == 'p') *(int64_t *)(at + 8) = a->idx;
}

struct call {
    const char *param, *src;
    const int32_t *config;
    char *dst[2], *cta_buf;
    int32_t *semaphores;
    int64_t base_idx;
    bool accumulate;
    int n_out;
    double p;
    struct offset_calc in, out;
};

static void fold(const struct bound *b, const struct call *c, struct acc *a, const char *src, int64_t from, int64_t to)
{
    uint64_t cell[BLOCK];
    size_t es = dtype_bytes(b->in);
    int dims = offset_dims(&c->in);
    uint32_t row = dims ? offset_size(&c->in, 0) : 1, stride = dims ? offset_stride(&c->in, 0, 0) : (uint32_t)es;
    if (dims <= 1) row = UINT32_MAX;
    for (int64_t at = from; at < to;) {
        uint32_t off = 0;
        int64_t n = KERN_MIN(to - at, (int64_t)BLOCK);
        n = KERN_MIN(n, (int64_t)(row - (uint32_t)at % row));
        if (dims <= 1) off = (uint32_t)at * stride;
        else offset_get(&c->in, (uint32_t)at, &off);
        dtype_load(b->in, b->c, cell, src + off, (ptrdiff_t)stride, (size_t)n);
        if (b->c == DC_F) fold_f(b, a, (const float *)cell, (int)n, at, c->p);
        else if (b->c == DC_D) fold_d(b, a, (const double *)cell, (int)n, at, c->p);
        else fold_i(b, a, (const int64_t *)cell, (int)n, at);
        at += n;
    }
}

static void store(const struct bound *b, const struct call *c, const struct acc *a, uint32_t off)
{
    double v = a->a;
    size_t os = dtype_bytes(b->out);
    switch (b->op) {
    case ARGMAX: case ARGMIN:
        *(int64_t *)(c->dst[0] + off) = a->idx + c->base_idx;
        return;
    case MAXI: case MINI:
        if (b->c == DC_I) dtype_seti(b->out, c->dst[0] + off, 0, a->i);
        else dtype_set(b->out, c->dst[0] + off, 0, v);
        if (c->n_out > 1) *(int64_t *)(c->dst[1] + off / os * 8) = a->idx + c->base_idx;
        return;
    case MINMAX:
        dtype_set(b->out, c->dst[0] + off, 0, a->a);
        dtype_set(b->out, c->dst[1] + off, 0, a->b);
        return;
    case WELFORD: {
        double correction = dtype_get(b->acc, c->param, 0), n = a->n > correction ? a->n - correction : 0;
        bool root = c->param[dtype_bytes(b->acc)];
        double var = a->b / n;
        dtype_set(b->out, c->dst[0] + off, 0, root ? sqrt(var) : var);
        if (c->n_out > 1) dtype_set(b->out, c->dst[1] + off, 0, a->a);
        return;
    }
    case MEAN: v = dtype_round(b->acc, v) * dtype_get(b->acc, c->param, 0); break;
    case NORM2: v = b->root ? sqrt(v) : v; break;
    case NORMP: v = b->root ? pow(v, 1 / c->p) : v; break;
    default: break;
    }
    char *o = c->dst[0] + off;
    if (integral(b) && b->op != MEAN && b->op != NORM0) {
        int64_t i = a->i;
        if (c->accumulate) {
            int64_t old = dtype_geti(b->out, o, 0);
            i = b->op == SUM ? old + i : b->op == PROD ? old * i : b->op == AND ? (old & i) : b->op == OR ? (old | i)
              : b->op == MAXV ? KERN_MAX(old, i) : KERN_MIN(old, i);
        }
        dtype_seti(b->out, o, 0, i);
        return;
    }
    if (c->accumulate) {
        double old = dtype_get(b->out, o, 0);
        v = b->op == PROD ? old * v : b->op == MAXV ? fmax(old, v) : b->op == MINV ? fmin(old, v) : old + v;
    }
    dtype_set(b->out, o, 0, v);
}

/* Sums over rows of a matrix: whole rows are added at once. */
static bool rows_at_once(const struct bound *b, const struct call *c, int64_t n_in, int64_t n_out)
{
    size_t es = dtype_bytes(b->in);
    if ((b->op != SUM && b->op != MEAN) || (b->c != DC_F && b->c != DC_D) || c->accumulate || offset_dims(&c->in) != 1) return false;
    if (offset_dims(&c->out) < 1 || offset_stride(&c->out, 0, 1) != es || offset_stride(&c->in, 0, 0) == es) return false;
    uint32_t row = offset_size(&c->out, 0), stride = offset_stride(&c->in, 0, 0);
    if (row < 8) return false;
    double sum[BLOCK], x[BLOCK];
    for (int64_t at = 0; at < n_out;) {
        int64_t n = KERN_MIN(KERN_MIN((int64_t)BLOCK, n_out - at), (int64_t)(row - (uint32_t)(at % row)));
        uint32_t off[2] = { 0, 0 };
        offset_get(&c->out, (uint32_t)at, off);
        memset(sum, 0, sizeof sum);
        for (int64_t i = 0; i < n_in; i++) {
            const char *p = c->src + off[1] + (size_t)i * stride;
            if (b->in == DT_F32)
                for (int64_t j = 0; j < n; j++) sum[j] += ((const float *)p)[j];
            else {
                dtype_load(b->in, DC_D, x, p, (ptrdiff_t)es, (size_t)n);
                for (int64_t j = 0; j < n; j++) sum[j] += x[j];
            }
        }
        struct acc a;
        start(b, &a);
        for (int64_t j = 0; j < n; j++) {
            uint32_t o[2] = { 0, 0 };
            offset_get(&c->out, (uint32_t)(at + j), o);
            a.a = sum[j];
            store(b, c, &a, o[0]);
        }
        at += n;
    }
    return true;
}

static void one_output(const struct bound *b, const struct call *c, const struct catalogue_launch *l, int64_t o)
{
    const int32_t *g = c->config;
    uint32_t off[2] = { 0, 0 };
    struct acc a, part;
    offset_get(&c->out, (uint32_t)o, off);
    start(b, &a);
    int ctas = g[8] ? g[5] : 1, vec = ((const char *)g)[56] ? b->vec : 1, ovs = KERN_MAX(g[15], 1);
    if (ctas <= 1) {
        fold(b, c, &a, c->src + off[1], 0, g[1]);
        settle(b, &a);
        store(b, c, &a, off[0]);
        return;
    }
    int64_t u = o / ovs, column = u / g[4], lane = g[9] ? (u % g[4]) % KERN_MAX(g[11], 1) : 0;
    int64_t share = (int64_t)g[8] * vec, step = (int64_t)g[3] * vec;
    for (int cta = 0; cta < ctas; cta++) {
        start(b, &part);
        for (int64_t at = cta * share; at < g[1]; at += step) fold(b, c, &part, c->src + off[1], at, KERN_MIN(at + share, (int64_t)g[1]));
        settle(b, &part);
        int64_t slot = cta + column * l->grid.y;
        if (!g[6]) slot = lane + slot * l->block.x;
        leave_part(b, &part, c->cta_buf + ((size_t)slot * (size_t)ovs + (size_t)(o % ovs)) * b->acc_bytes);
        join(b, &a, &part);
    }
    if (o % ((int64_t)g[4] * ovs) == 0) c->semaphores[column] += ctas;
    store(b, c, &a, off[0]);
}

static void run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    const struct bound *b = k->priv;
    const char *s = p[0], *tail = s + b->tail_at;
    struct call c = { .param = s, .config = (const int32_t *)(s + b->config_at),
                      .in = { (const uint32_t *)(s + b->in_calc_at), 1 }, .out = { (const uint32_t *)(s + b->out_calc_at), 2 } };
    memcpy(&c.src, tail, 8);
    memcpy(c.dst, tail + 8, 16);
    memcpy(&c.cta_buf, tail + 32, 8);
    memcpy(&c.semaphores, tail + 40, 8);
    memcpy(&c.base_idx, tail + 48, 8);
    c.accumulate = tail[56];
    memcpy(&c.n_out, tail + 60, 4);
    if (!c.accumulate) c.base_idx = 0;
    if (b->op == NORMP) c.p = dtype_get(b->acc, s, 0);
    if ((!c.config[8] || c.config[5] <= 1) && rows_at_once(b, &c, c.config[1], c.config[2])) return;
    for (int64_t o = 0; o < c.config[2]; o++) one_output(b, &c, l, o);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct bound *b = k->priv;
    const int32_t *g = (const int32_t *)((const char *)p[0] + b->config_at);
    uint64_t n = (uint64_t)g[1] * (uint64_t)g[2];
    *flops = n;
    *bytes = n * dtype_bytes(b->in) + (uint64_t)g[2] * dtype_bytes(b->out);
}

const struct kern_row reduce_rows[] = {
    { "reduce_kernel", NULL, run, cost, bind },
    KERN_END
};
