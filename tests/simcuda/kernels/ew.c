/*
 * The driver of elementwise kernels. Templates, with their parameters:
 *   vectorized_elementwise_kernel<V, F, array>            (int N, F, char *data[])
 *   unrolled_elementwise_kernel<F, array, ...>             (int N, F, char *data[], in offsets, out offsets, loader, storer)
 *   vectorized_templated_elementwise_kernel<V, F, array>    the same
 *   unrolled_elementwise_kernel_for_multi_outputs<k, F, array, ...> (int N, F, char *data[], in offsets, out offsets)
 *   elementwise_kernel<nt, vt, gpu_kernel_impl[_nocast]<F>::lambda> (int N, { offsets, data, F, [types], host pointer })
 * F is a row's functor, or AUnaryFunctor, BUnaryFunctor, BinaryFunctor around one. Loader and storer carry the element
 * types in memory where they differ from F's: { int8 type[n]; u32 bytes[n] }.
 */
#include "tests/simcuda/kernels/ew.h"

#include <string.h>

#include "tests/simcuda/kernels/offset.h"

#define BLOCK 512

enum form { CONTIGUOUS, UNROLLED, MULTI, STRIDED, STRIDED_CAST };
enum wrapper { PLAIN, SCALAR_FIRST, SCALAR_SECOND };

struct ew_bound {
    const struct ew_row *row;
    ew_fn *fn;
    enum form form;
    enum wrapper wrapper;
    int n_in, n_out;                      /* operands in memory */
    enum dtype type[EW_MAX_OUT + EW_MAX_IN]; /* of the functor: outs, then ins */
    enum dclass cls[EW_MAX_OUT + EW_MAX_IN];
    enum dtype main_t, scalar_t;
    uint32_t caps_at[EW_MAX_CAPS], scalar_at, functor_bytes, functor_align;
    uint32_t data_at, functor_at, types_at; /* within the lambda of a strided kernel */
};

static enum dtype compute_type(enum dtype t)
{
    return t == DT_F16 || t == DT_BF16 ? DT_F32 : t;
}

static enum dtype cap_type(const struct ew_bound *b, char c)
{
    switch (c) {
    case 'o': return compute_type(b->main_t);
    case 't': return b->main_t;
    case 'f': return DT_F32;
    case 'd': return DT_F64;
    case 'i': return DT_I32;
    case 'b': return DT_BOOL;
    default: return DT_I64;
    }
}

static enum dtype complex_of(enum dtype t) { return t == DT_F64 ? DT_C64 : DT_C32; }
static enum dtype real_of(enum dtype t) { return t == DT_C64 ? DT_F64 : t == DT_C32 ? DT_F32 : t; }

static uint32_t up(uint32_t v, uint32_t to) { return (v + to - 1) / to * to; }

/* Where the captured fields lie; a lambda with fields carries a pointer of its host side behind them. */
static void lay_out(struct ew_bound *b, bool is_lambda, uint32_t *bytes, uint32_t *align)
{
    uint32_t at = 0, al = 1;
    for (int i = 0; b->row->caps[i]; i++) {
        uint32_t n = (uint32_t)dtype_bytes(cap_type(b, b->row->caps[i]));
        at = up(at, n);
        b->caps_at[i] = at;
        at += n;
        al = KERN_MAX(al, n);
    }
    if (is_lambda && at) {
        at = up(at, 8) + 8;
        al = 8;
    }
    *bytes = at ? up(at, al) : 1;
    *align = al;
}

static const struct ew_row *const tables[] = { ew_math_rows, ew_binary_rows, ew_activation_rows, ew_misc_rows, ew_complex_rows };

static int count_in(const char *types) { return (int)strlen(strchr(types, '=') + 1); }

const struct ew_row *ew_find(const char *fn, int ord_first, int ord_last, int n_in)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct ew_row *r = tables[t]; r->fn; r++)
            if (!strcmp(r->fn, fn) && count_in(r->types) == n_in && (!r->ord_first || !ord_first || r->ord_first == ord_first)
                && (!r->ord_last || !ord_last || r->ord_last == ord_last))
                return r;
    return NULL;
}

static int fill_types(struct ew_bound *b, const struct kfunctor *f, int n_functor_in, enum dtype given)
{
    const char *outs = b->row->types, *ins = strchr(outs, '=') + 1;
    enum dtype in_t[EW_MAX_IN];
    b->main_t = given;
    for (int i = 0; i < n_functor_in; i++) {
        in_t[i] = f->is_lambda ? dtype_parse(f->param[i]) : f->n_targs ? dtype_parse(f->targ[0]) : DT_NONE;
        if (ins[i] == 'T' && b->main_t == DT_NONE) b->main_t = in_t[i];
    }
    if (!n_functor_in && f->n_targs) b->main_t = dtype_parse(f->targ[0]);
    if (b->main_t == DT_NONE) return -ENOSYS;
    b->n_out = (int)(ins - 1 - outs);
    b->n_in = n_functor_in;
    for (int i = 0; i < b->n_out; i++) {
        char c = outs[i];
        b->type[i] = c == 'T' ? b->main_t : c == 'A' ? compute_type(b->main_t) : c == 'B' ? DT_BOOL : c == 'L' ? DT_I64
                   : c == 'C' ? complex_of(b->main_t) : c == 'R' ? real_of(b->main_t) : c == 'i' ? DT_I32 : c == 'h' ? DT_F16 : c == 'b' ? DT_BF16
                   : f->n_targs > 1 ? dtype_parse(f->targ[1]) : DT_NONE;
        b->cls[i] = c == 'B' ? DC_B : c == 'L' || c == 'i' ? DC_I : c == 'C' ? DC_C : c == 'R' ? DC_D : dtype_class_any(b->main_t);
    }
    for (int i = 0; i < n_functor_in; i++) {
        char c = ins[i];
        b->type[b->n_out + i] = f->is_lambda ? in_t[i] : b->main_t;
        b->cls[b->n_out + i] = c == 'B' ? DC_B : c == 'L' || c == 'i' ? DC_I : dtype_class_any(b->main_t);
    }
    enum dclass c = dtype_class_any(b->main_t);
    b->fn = c == DC_C ? b->row->c : c == DC_F ? b->row->f : c == DC_D ? b->row->d : c == DC_I ? b->row->i : NULL;
    return b->fn ? 0 : -ENOSYS;
}

/* The function of a functor, as rows name it. Lambdas are told apart by their order in it: where a version of PyTorch has more of them, rows have a
   name of their own for it, and what else the module has says which it is. */
static const char *function_of(const struct kfunctor *f, const struct catalogue_kernel *k)
{
    if (strcmp(f->fn, "GroupNormKernelImplInternal")) return f->fn;
    for (unsigned i = 0; i < k->n_beside; i++)
        if (strstr(k->beside[i], "RowwiseMomentsChannelsLastCUDAKernel")) return "GroupNormKernelImplInternal, channels last, too";
    /* PyTorch 2.11 keeps statistics in the type of elements: of 16-bit types only what takes a and b has floats */
    bool floats = f->n_targs == 1 && f->n_params == 3 && strcmp(f->param[0], f->param[1]);
    return floats ? "GroupNormKernelImplInternal, a and b" : f->fn;
}

/* Finds the row of a functor and lays it out. */
static int bind_functor(struct ew_bound *b, const char *text, const struct catalogue_kernel *k)
{
    struct kfunctor f, inner;
    int e = kname_functor(text, &f);
    if (e) return e;
    const struct kfunctor *core = &f;
    enum dtype given = DT_NONE;
    bool wrapped = !f.is_lambda && f.n_targs == 4
                   && (!strcmp(f.fn, "AUnaryFunctor") || !strcmp(f.fn, "BUnaryFunctor") || !strcmp(f.fn, "BinaryFunctor"));
    if (wrapped) {
        if ((e = kname_functor(f.targ[3], &inner))) return e;
        core = &inner;
        b->wrapper = f.fn[0] == 'A' ? SCALAR_FIRST : f.fn[1] == 'U' ? SCALAR_SECOND : PLAIN;
        given = dtype_parse(f.targ[0]);
    }
    const char *fn = function_of(core, k);
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct ew_row *r = tables[t]; r->fn; r++) {
            if (strcmp(r->fn, fn)) continue;
            int n_in = count_in(r->types);
            if (core->is_lambda && core->n_params != n_in) continue;
            if (r->ord_first && (!core->n_ord || core->ord[0] != r->ord_first)) continue;
            if (r->ord_last && (!core->n_ord || core->ord[core->n_ord - 1] != r->ord_last)) continue;
            b->row = r;
            if (fill_types(b, core, n_in, given)) continue;
            uint32_t al;
            enum dtype keep = b->main_t;
            if (wrapped) { /* the inner functor computes on its own argument types */
                enum dtype own = core->is_lambda ? dtype_parse(core->param[0]) : dtype_parse(core->targ[0]);
                b->main_t = own;
                b->scalar_t = own;
            }
            lay_out(b, core->is_lambda, &b->functor_bytes, &al);
            b->main_t = keep;
            if (wrapped) {
                b->type[b->n_out] = dtype_parse(f.targ[0]);
                if (n_in > 1) b->type[b->n_out + 1] = dtype_parse(f.targ[1]);
                b->type[0] = dtype_parse(f.targ[2]);
                if (b->wrapper != PLAIN) {
                    uint32_t n = (uint32_t)dtype_bytes(b->scalar_t);
                    b->scalar_at = up(b->functor_bytes, n);
                    al = KERN_MAX(al, n);
                    b->functor_bytes = up(b->scalar_at + n, al);
                    b->n_in--;
                    if (b->wrapper == SCALAR_FIRST) b->type[b->n_out] = b->type[b->n_out + 1];
                }
            }
            b->functor_align = al;
            return 0;
        }
    return -ENOSYS;
}

static int size_fits(const struct ew_bound *b, uint32_t bytes)
{
    return bytes == b->functor_bytes || (b->functor_bytes == 1 && bytes == 8) ? 0 : -EPROTO;
}

static int ew_bind(struct kern *k)
{
    struct ew_bound *b = calloc(1, sizeof *b);
    if (!b) return -ENOMEM;
    const char *base = k->name.base;
    int e = -ENOSYS, at = !strcmp(base, "unrolled_elementwise_kernel") ? 0 : 1;
    if (!strcmp(base, "elementwise_kernel")) {
        struct kfunctor outer;
        if (k->name.n_args < 3 || kname_functor(k->name.arg[2], &outer) || outer.n_targs < 1) goto out;
        bool cast = !strcmp(outer.fn, "gpu_kernel_impl");
        if (!cast && strcmp(outer.fn, "gpu_kernel_impl_nocast")) goto out;
        b->form = cast ? STRIDED_CAST : STRIDED;
        if ((e = bind_functor(b, outer.targ[0], k->k))) goto out;
        e = -EPROTO;
        uint32_t n = (uint32_t)(b->n_in + 1);
        b->data_at = up(OFFSET_BYTES(n), 8);
        b->functor_at = up(b->data_at + 8 * n, b->functor_align);
        b->types_at = b->functor_at + b->functor_bytes;
        uint32_t end = b->types_at + (cast ? n : 0);
        if (k->k->n_params != 2) goto out;
        if (up(end, 8) + 8 != k->k->bytes[1]) {
            if (b->functor_bytes != 1) goto out;           /* a lambda without fields may carry its pointer alone */
            b->functor_at = up(b->functor_at, 8);
            b->types_at = b->functor_at + 8;
            end = b->types_at + (cast ? n : 0);
            if (up(end, 8) + 8 != k->k->bytes[1]) goto out;
        }
        e = 0;
    } else {
        bool multi = !strcmp(base, "unrolled_elementwise_kernel_for_multi_outputs");
        b->form = multi ? MULTI : !strcmp(base, "vectorized_elementwise_kernel") ? CONTIGUOUS : UNROLLED;
        if (k->name.n_args <= at || k->k->n_params < (multi ? 5 : b->form == UNROLLED ? 7 : 3)) goto out;
        if ((e = bind_functor(b, k->name.arg[at], k->k))) goto out;
        if (!(e = size_fits(b, k->k->bytes[1])) && k->k->bytes[2] != 8u * (uint32_t)(b->n_in + b->n_out)) e = -EPROTO;
    }
out:
    if (e) free(b);
    else k->priv = b;
    return e;
}

struct operands {
    int n;                                      /* outs and ins in memory */
    char *base[EW_MAX_OUT + EW_MAX_IN];
    enum dtype type[EW_MAX_OUT + EW_MAX_IN];    /* in memory */
};

static bool native(enum dtype t, enum dclass c)
{
    return (c == DC_C && t == DT_C64) || (c == DC_F && t == DT_F32) || (c == DC_D && t == DT_F64) || (c == DC_I && t == DT_I64) || (c == DC_B && t == DT_BOOL);
}

/* What was read as another type than the functor's argument is first that argument. */
static void narrow(enum dtype memory, enum dtype arg, enum dclass c, void *block, int n)
{
    if (memory == arg || native(arg, c)) return;
    uint64_t cell[2 * BLOCK];
    dtype_store(arg, c, block, cell, (ptrdiff_t)dtype_bytes(arg), (size_t)n);
    dtype_load(arg, c, block, cell, (ptrdiff_t)dtype_bytes(arg), (size_t)n);
}

struct staging { _Alignas(64) uint64_t cell[EW_MAX_OUT + EW_MAX_IN + 1][2 * BLOCK]; };

/* One block of a functor's arguments in order, the scalar in its place. */
static void call(const struct ew_bound *b, const struct ew_args *g, void *const *operand, void *scalar, int n)
{
    void *in[EW_MAX_IN];
    int k = 0;
    if (b->wrapper == SCALAR_FIRST) in[k++] = scalar;
    for (int i = 0; i < b->n_in; i++) in[k++] = operand[b->n_out + i];
    if (b->wrapper == SCALAR_SECOND) in[k++] = scalar;
    b->fn(g, operand, in, n);
}

/* Class of operand i in memory order (a scalar first argument shifts the inputs by one). */
static enum dclass operand_class(const struct ew_bound *b, int i)
{
    return i < b->n_out || b->wrapper != SCALAR_FIRST ? b->cls[i] : b->cls[i + 1];
}

static void run_contiguous(const struct ew_bound *b, const struct ew_args *g, const struct operands *o, struct staging *st,
                           void *scalar, size_t total)
{
    for (size_t at = 0; at < total; at += BLOCK) {
        int n = (int)KERN_MIN((size_t)BLOCK, total - at);
        void *op[EW_MAX_OUT + EW_MAX_IN];
        for (int i = 0; i < o->n; i++) {
            size_t es = dtype_bytes(o->type[i]);
            char *mem = o->base[i] + at * es;
            enum dclass c = operand_class(b, i);
            if (native(o->type[i], c) && native(b->type[i], c)) op[i] = mem;
            else {
                op[i] = st->cell[i];
                if (i >= b->n_out) {
                    dtype_load(o->type[i], c, op[i], mem, (ptrdiff_t)es, (size_t)n);
                    narrow(o->type[i], b->type[i], c, op[i], n);
                }
            }
        }
        call(b, g, op, scalar, n);
        for (int i = 0; i < b->n_out; i++) {
            enum dclass c = b->cls[i];
            if (op[i] != st->cell[i]) continue;
            size_t es = dtype_bytes(o->type[i]);
            narrow(o->type[i], b->type[i], c, op[i], n);
            dtype_store(o->type[i], c, op[i], o->base[i] + at * es, (ptrdiff_t)es, (size_t)n);
        }
    }
}

/* Several runs along dimension 0 make a block. calc has the outs and ins, in bytes; or in_calc the ins alone: then both count
   elements. */
static void run_strided(const struct ew_bound *b, const struct ew_args *g, const struct operands *o, struct staging *st,
                        void *scalar, size_t total, struct offset_calc calc, const struct offset_calc *in_calc)
{
    int dims = offset_dims(&calc);
    uint32_t row = dims ? offset_size(&calc, 0) : 1;
    ptrdiff_t stride[EW_MAX_OUT + EW_MAX_IN];
    size_t unit[EW_MAX_OUT + EW_MAX_IN];
    for (int i = 0; i < o->n; i++) {
        const struct offset_calc *c = in_calc && i >= b->n_out ? in_calc : &calc;
        unit[i] = in_calc ? dtype_bytes(o->type[i]) : 1;
        stride[i] = dims ? (ptrdiff_t)(int32_t)offset_stride(c, 0, in_calc && i >= b->n_out ? i - b->n_out : i) : 0;
        stride[i] *= (ptrdiff_t)unit[i];
    }
    size_t at = 0;
    while (at < total) {
        struct { uint32_t off[EW_MAX_OUT + EW_MAX_IN]; int n; } seg[BLOCK];
        int n_seg = 0, n = 0;
        while (at < total && n < BLOCK) {
            uint32_t within = (uint32_t)(at % row);
            int len = (int)KERN_MIN((size_t)KERN_MIN((uint32_t)(BLOCK - n), row - within), total - at);
            offset_get(&calc, (uint32_t)at, seg[n_seg].off);
            if (in_calc) offset_get(in_calc, (uint32_t)at, seg[n_seg].off + b->n_out);
            seg[n_seg++].n = len;
            at += (size_t)len;
            n += len;
        }
        void *op[EW_MAX_OUT + EW_MAX_IN];
        for (int i = 0; i < o->n; i++) {
            op[i] = st->cell[i];
            if (i < b->n_out) continue;
            enum dclass c = operand_class(b, i);
            size_t cs = dclass_bytes(c);
            char *d = op[i];
            for (int s = 0; s < n_seg; s++) {
                dtype_load(o->type[i], c, d, o->base[i] + seg[s].off[i] * unit[i], stride[i], (size_t)seg[s].n);
                d += cs * (size_t)seg[s].n;
            }
            narrow(o->type[i], b->type[i], c, op[i], n);
        }
        call(b, g, op, scalar, n);
        for (int i = 0; i < b->n_out; i++) {
            enum dclass c = b->cls[i];
            size_t cs = dclass_bytes(c);
            narrow(o->type[i], b->type[i], c, op[i], n);
            const char *s0 = op[i];
            for (int s = 0; s < n_seg; s++) {
                dtype_store(o->type[i], c, s0, o->base[i] + seg[s].off[i] * unit[i], stride[i], (size_t)seg[s].n);
                s0 += cs * (size_t)seg[s].n;
            }
        }
    }
}

static void read_caps(const struct ew_bound *b, const char *functor, struct ew_args *g)
{
    struct ew_bound c = *b;
    if (b->wrapper != PLAIN || b->scalar_t != DT_NONE) c.main_t = b->scalar_t;
    for (int i = 0; b->row->caps[i]; i++) {
        enum dtype t = cap_type(&c, b->row->caps[i]);
        g->s[i] = dtype_get(t, functor + b->caps_at[i], 0);
        g->si[i] = dtype_geti(t, functor + b->caps_at[i], 0);
        dtype_load(t, DC_C, g->z[i], functor + b->caps_at[i], 0, 1);
    }
}

static void ew_run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    const struct ew_bound *b = k->priv;
    struct staging st;
    struct ew_args g;
    struct operands o = { .n = b->n_out + b->n_in };
    size_t total = (size_t)KERN_MAX(A(int, 0), 0);
    const char *lambda = p[1], *functor = lambda;
    bool strided = b->form >= STRIDED;
    if (strided) functor = lambda + b->functor_at;
    read_caps(b, functor, &g);
    g.t = b->main_t;
    memcpy(o.base, strided ? lambda + b->data_at : (const char *)p[2], 8 * (size_t)o.n);
    memcpy(o.type, b->type, sizeof o.type);
    if (b->form == STRIDED_CAST)
        for (int i = 0; i < o.n; i++) o.type[i] = dtype_of_scalar_type(((const int8_t *)lambda)[b->types_at + (uint32_t)i]);
    if (b->form == UNROLLED && k->k->bytes[6] > 1) o.type[0] = dtype_of_scalar_type(*(const int8_t *)p[6]);
    if (b->form == UNROLLED && k->k->bytes[5] > 1)
        for (int i = 0; i < b->n_in; i++) o.type[b->n_out + i] = dtype_of_scalar_type(((const int8_t *)p[5])[i]);
    void *scalar = NULL;
    if (b->wrapper != PLAIN) {
        enum dclass c = b->cls[b->n_out + (b->wrapper == SCALAR_SECOND)];
        scalar = st.cell[EW_MAX_OUT + EW_MAX_IN];
        dtype_load(b->scalar_t, c, scalar, functor + b->scalar_at, 0, BLOCK);
    }
    if (strided) {
        struct offset_calc calc = { (const uint32_t *)lambda, o.n };
        run_strided(b, &g, &o, &st, scalar, total, calc, NULL);
    } else if (b->form != CONTIGUOUS && k->k->bytes[4] > 1) {
        struct offset_calc in = { p[3], b->n_in }, out = { p[4], b->n_out };
        run_strided(b, &g, &o, &st, scalar, total, out, &in);
    } else
        run_contiguous(b, &g, &o, &st, scalar, total);
}

static void ew_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct ew_bound *b = k->priv;
    uint64_t n = (uint64_t)KERN_MAX(A(int, 0), 0), each = 0;
    for (int i = 0; i < b->n_out + b->n_in; i++) each += dtype_bytes(b->type[i]);
    *flops = n * (uint64_t)(b->n_in + 1);
    *bytes = n * each;
}

const struct kern_row ew_rows[] = {
    { "vectorized_elementwise_kernel", NULL, ew_run, ew_cost, ew_bind },
    { "vectorized_templated_elementwise_kernel", NULL, ew_run, ew_cost, ew_bind },
    { "unrolled_elementwise_kernel", NULL, ew_run, ew_cost, ew_bind },
    { "unrolled_elementwise_kernel_for_multi_outputs", NULL, ew_run, ew_cost, ew_bind },
    { "elementwise_kernel", NULL, ew_run, ew_cost, ew_bind },
    KERN_END
};
