/*
 * Products of matrices that a warp holds in its registers. Where each lane's numbers lie is the ISA's (the lane's group g = lane / 4, its
 * place t = lane % 4). Products are exact, their sum with c is made in f64 from k = 0 on, the result rounded once.
 */
#include <math.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_lanes.h"
#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_warp.h"

enum { MOST_M = 16, MOST_N = 8, MOST_K = 32 };
struct matrices {
    double a[MOST_M][MOST_K], b[MOST_K][MOST_N], c[MOST_M][MOST_N];
};

static double number_at(const void *r, unsigned lane, enum ptx_type t, unsigned part)
{
    uint32_t v = ((const uint32_t *)r)[lane];
    switch (t) {
    case T_F16: return (double)f32_of_f16((uint16_t)(v >> 16 * part));
    case T_BF16: return (double)f32_of_bf16((uint16_t)(v >> 16 * part));
    case T_TF32: return (double)f32_bits(v & 0xffffe000u);
    case T_F64: return ((const double *)r)[lane];
    case T_S8: return (double)(int8_t)(v >> 8 * part);
    case T_U8: return (double)(uint8_t)(v >> 8 * part);
    case T_S32: return (double)(int32_t)v;
    default: return (double)f32_bits(v);
    }
}

/* Numbers that lie side by side in one register. */
static unsigned side_by_side(enum ptx_type t) { return t == T_F16 || t == T_BF16 ? 2 : t == T_S8 || t == T_U8 ? 4 : 1; }

/*
 * a: register j of a lane has row g + 8 (j % 2), columns beginning at each * t + (4 * each) (j / 2); of b: column g, rows beginning
 * at each * t + (4 * each) j. Where there are 8 rows, j counts columns alone.
 */
static void read_matrices(const struct warp *w, const struct ptx_insn *in, const struct ptx_matrix *shape, struct matrices *x)
{
    const struct ptx_vec *a = &in->vec[1], *b = &in->vec[2], *c = &in->vec[3];
    enum ptx_type ta = in->type2, tb = in->sub, tc = in->type;
    const unsigned each = side_by_side(ta), halves = shape->m / 8;
    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned j = 0; j < a->n; j++)
            for (unsigned e = 0; e < each; e++)
                x->a[g + 8 * (j % halves)][each * t + 4 * each * (j / halves) + e] = number_at(row(w, a->o[j]), lane, ta, e);
        for (unsigned j = 0; j < b->n; j++)
            for (unsigned e = 0; e < each; e++)
                x->b[each * t + 4 * each * j + e][g] = number_at(row(w, b->o[j]), lane, tb, e);
        if (tc == T_F16) {
            for (unsigned j = 0; j < c->n; j++)
                for (unsigned e = 0; e < 2; e++)
                    x->c[g + 8 * j][2 * t + e] = number_at(row(w, c->o[j]), lane, tc, e);
        } else {
            for (unsigned j = 0; j < c->n; j++)
                x->c[g + 8 * (j / 2)][2 * t + j % 2] = number_at(row(w, c->o[j]), lane, tc, 0);
        }
    }
}

static uint32_t whole(double v, bool saturates)
{
    if (saturates)
        return (uint32_t)(v > 2147483647.0 ? INT32_MAX : v < -2147483648.0 ? INT32_MIN : (int32_t)v);
    return (uint32_t)(int64_t)v;
}

void exec_mma(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const struct ptx_matrix *shape = (const struct ptx_matrix *)(const void *)&in->e;
    const struct ptx_vec *d = &in->vec[0];
    struct matrices x;
    (void)m;
    read_matrices(w, in, shape, &x);
    for (unsigned i = 0; i < shape->m; i++)
        for (unsigned k = 0; k < shape->k; k++)
            for (unsigned n = 0; n < MOST_N; n++)
                x.c[i][n] += x.a[i][k] * x.b[k][n];
    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned g = lane / 4, t = lane % 4;
        for (unsigned j = 0; j < d->n; j++) {
            void *r = row(w, d->o[j]);
            if (in->type == T_F16) {
                double low = x.c[g + 8 * j][2 * t], high = x.c[g + 8 * j][2 * t + 1];
                ((uint32_t *)r)[lane] = f16_of_double(low, M_RN) | (uint32_t)f16_of_double(high, M_RN) << 16;
                continue;
            }
            double v = x.c[g + 8 * (j / 2)][2 * t + j % 2];
            if (in->type == T_F64)
                ((double *)r)[lane] = canonical_f64(v);
            else if (in->type == T_S32)
                ((uint32_t *)r)[lane] = whole(v, in->mods & M_SATFINITE);
            else
                ((float *)r)[lane] = canonical((float)v);
        }
    }
}
