#include "tests/simcuda/kernels/attention.h"

#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/philox.h"

static void load(enum dtype t, float *dst, const void *base, int64_t first, int n)
{
    int64_t es = (int64_t)dtype_bytes(t);
    dtype_load(t, DC_F, dst, (const char *)base + first * es, (ptrdiff_t)es, (size_t)n);
}

static void store(enum dtype t, const float *src, void *base, int64_t first, int n)
{
    int64_t es = (int64_t)dtype_bytes(t);
    dtype_store(t, DC_F, src, (char *)base + first * es, (ptrdiff_t)es, (size_t)n);
}

/* Rows as columns: out[c * n + r]. */
static void load_transposed(enum dtype t, float *out, float *row, const void *base, int64_t stride, int n, int d)
{
    for (int r = 0; r < n; r++) {
        load(t, row, base, r * stride, d);
        for (int c = 0; c < d; c++) out[(size_t)c * (size_t)n + (size_t)r] = row[c];
    }
}

/* Keys that query i sees: [*from, *to). */
static void visible(const struct attention *a, int i, int *from, int *to)
{
    *from = a->left < 0 ? 0 : KERN_MAX(0, i + a->shift - a->left);
    *to = a->right < 0 ? a->nk : KERN_MIN(a->nk, i + a->shift + a->right + 1);
    if (*to < *from) *to = *from;
}

/* s[j] for the visible keys of query i, of which q is the row. */
static void scores(const struct attention *a, int i, const float *q, const float *kt, float *s, float *bias, int from, int to)
{
    memset(s + from, 0, sizeof(float) * (size_t)(to - from));
    for (int c = 0; c < a->d; c++) {
        const float *k = kt + (size_t)c * (size_t)a->nk, x = q[c];
        for (int j = from; j < to; j++) s[j] += x * k[j];
    }
    for (int j = from; j < to; j++) s[j] *= a->scale;
    if (a->softcap > 0)
        for (int j = from; j < to; j++) s[j] = a->softcap * tanhf(s[j] / a->softcap);
    if (a->bias) {
        load(a->t, bias, a->bias, i * a->bias_row, a->nk);
        for (int j = from; j < to; j++) s[j] += bias[j];
    }
    if (a->slope != 0)
        for (int j = from; j < to; j++) s[j] -= a->slope * fabsf((float)(i + a->nk - a->nq - j));
}

/* z[j]: 0 or 1 / (1 - p). */
static void keep(const struct attention *a, int i, float *z, int from, int to)
{
    uint64_t have = UINT64_MAX;
    uint32_t r[4];
    float scale = 1.0f / (1.0f - a->drop);
    for (int j = from; j < to; j++) {
        uint64_t at = a->offset + (uint64_t)i * (uint64_t)a->drop_row + (uint64_t)j;
        if (at / 4 != have) philox(a->seed, a->sub, have = at / 4, r);
        z[j] = philox_uniform(r[at & 3]) > a->drop ? scale : 0;
    }
}

void attention_forward(const struct attention *a)
{
    size_t nk = (size_t)a->nk, d = (size_t)KERN_MAX(a->d, a->dv);
    float *kt = malloc(sizeof(float) * (nk * ((size_t)a->d + (size_t)a->dv + 3) + 3 * d));
    float *v = kt + nk * (size_t)a->d, *s = v + nk * (size_t)a->dv, *z = s + nk, *bias = z + nk, *q = bias + nk, *o = q + d, *row = o + d;
    load_transposed(a->t, kt, row, a->k, a->k_row, a->nk, a->d);
    for (int j = 0; j < a->nk; j++) load(a->t, v + (size_t)j * (size_t)a->dv, a->v, j * a->v_row, a->dv);
    for (int i = 0; i < a->nq; i++) {
        int from, to;
        visible(a, i, &from, &to);
        load(a->t, q, a->q, i * a->q_row, a->d);
        scores(a, i, q, kt, s, bias, from, to);
        float max = -INFINITY;
        for (int j = from; j < to; j++) if (s[j] > max) max = s[j];
        if (max == -INFINITY) max = 0;
        double sum = 0;
        for (int j = from; j < to; j++) sum += s[j] = expf(s[j] - max);
        if (a->lse) a->lse[i] = sum > 0 ? max + logf((float)sum) : a->empty_is_inf ? INFINITY : -INFINITY;
        float inv = sum > 0 ? 1.0f / (float)sum : 0;
        if (a->drop > 0) {
            keep(a, i, z, from, to);
            for (int j = from; j < to; j++) s[j] *= z[j];
        }
        memset(o, 0, sizeof(float) * (size_t)a->dv);
        for (int j = from; j < to; j++) {
            float w = s[j] * inv;
            const float *vj = v + (size_t)j * (size_t)a->dv;
            for (int c = 0; c < a->dv; c++) o[c] += w * vj[c];
        }
        store(a->o_t == DT_NONE ? a->t : a->o_t, o, a->o, i * a->o_row, a->dv);
    }
    free(kt);
}

void attention_backward(const struct attention *a)
{
    size_t nk = (size_t)a->nk, d = (size_t)a->d, dv = (size_t)a->dv;
    float *kt = malloc(sizeof(float) * (nk * (3 * d + 2 * dv + 5) + 4 * (d + dv)));
    float *k = kt + nk * d, *dk = k + nk * d, *vt = dk + nk * d, *gv = vt + nk * dv, *s = gv + nk * dv, *z = s + nk, *dp = z + nk;
    float *bias = dp + nk, *zero = bias + nk, *q = zero + nk, *dq = q + d, *go = dq + d, *row = go + dv, *o = row + d + dv;
    load_transposed(a->t, kt, row, a->k, a->k_row, a->nk, a->d);
    load_transposed(a->t, vt, row, a->v, a->v_row, a->nk, a->dv);
    for (int j = 0; j < a->nk; j++) load(a->t, k + (size_t)j * d, a->k, j * a->k_row, a->d);
    memset(dk, 0, sizeof(float) * nk * d);
    memset(gv, 0, sizeof(float) * nk * dv);
    for (int i = 0; i < a->nq; i++) {
        int from, to;
        visible(a, i, &from, &to);
        load(a->t, q, a->q, i * a->q_row, a->d);
        load(a->t, go, a->dout, i * a->do_row, a->dv);
        scores(a, i, q, kt, s, bias, from, to);
        float delta;
        if (a->compute_delta) {
            load(a->t, o, a->o, i * a->o_row, a->dv);
            double x = 0;
            for (int c = 0; c < a->dv; c++) x += (double)go[c] * o[c];
            delta = (float)x;
            if (a->delta) a->delta[i] = delta;
        } else delta = a->delta[i] * (a->delta_scale != 0 ? a->delta_scale : 1);
        memset(dp + from, 0, sizeof(float) * (size_t)(to - from));
        for (int c = 0; c < a->dv; c++) {
            const float *v = vt + (size_t)c * nk, x = go[c];
            for (int j = from; j < to; j++) dp[j] += x * v[j];
        }
        if (a->drop > 0) keep(a, i, z, from, to);
        memset(dq, 0, sizeof(float) * d);
        if (a->dbias) memset(zero, 0, sizeof(float) * nk);
        for (int j = from; j < to; j++) {
            float p = a->lse[i] == INFINITY || a->lse[i] == -INFINITY ? 0 : expf(s[j] - a->lse[i]), zj = a->drop > 0 ? z[j] : 1, w = p * zj;
            float ds = p * (dp[j] * zj - delta);
            if (a->dbias) zero[j] = ds;
            if (a->softcap > 0) {
                float t = s[j] / a->softcap;
                ds *= 1 - t * t;
            }
            ds *= a->scale;
            float *gvj = gv + (size_t)j * dv, *dkj = dk + (size_t)j * d;
            const float *kj = k + (size_t)j * d;
            for (size_t c = 0; c < dv; c++) gvj[c] += w * go[c];
            for (size_t c = 0; c < d; c++) dq[c] += ds * kj[c];
            for (size_t c = 0; c < d; c++) dkj[c] += ds * q[c];
        }
        if (a->dq_scale != 0)
            for (size_t c = 0; c < d; c++) dq[c] *= a->dq_scale;
        store(a->dq_t, dq, a->dq, i * a->dq_row, a->d);
        if (a->dbias) store(a->out_t, zero, a->dbias, i * a->dbias_row, a->nk);
    }
    for (int j = 0; j < a->nk; j++) {
        float *dkj = dk + (size_t)j * d, *gvj = gv + (size_t)j * dv;
        store(a->out_t, dkj, a->dk, j * a->dk_row, a->d);
        store(a->out_t, gvj, a->dv_out, j * a->dv_row, a->dv);
    }
    free(kt);
}
