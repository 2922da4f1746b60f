/*
 * What one work item of each kernel computes: name_item(i, parameters of kernels.def). Written once, in the
 * subset that C and CUDA C share; compiled by the C compiler for the simulated GPU and by nvcc for a real one.
 *
 * Every sum has a fixed order and items share no output, so results do not depend on the order of items. No
 * fused multiply-add and no library function is used but sqrtf, which IEEE 754 defines to the last bit: both
 * builds give the same bits. Sums along a row run in TILE lanes, added up as a tree.
 */
#ifndef WORKLOADS_KERNEL_ITEMS_H
#define WORKLOADS_KERNEL_ITEMS_H

#include "tests/workloads/kernel_types.h"

#define ITEM KERNEL_SHARED
#ifdef __CUDACC__
#define RESTRICT __restrict__
#else
#define RESTRICT restrict
#endif

/* ---- elementary functions ---------------------------------------------------------------------------- */

ITEM float bits_to_float(int i)
{
    union { int i; float f; } u;
    u.i = i;
    return u.f;
}

ITEM int float_to_bits(float f)
{
    union { int i; float f; } u;
    u.f = f;
    return u.i;
}

/* e^x: 2^n times a polynomial on [-ln 2 / 2, ln 2 / 2]; relative error about 2e-7, x clamped to +-60 */
ITEM float exp_(float x)
{
    const float round = 12582912.0f;        /* adding it leaves the nearest integer in the low bits */
    x = x < -60.0f ? -60.0f : x;
    x = x > 60.0f ? 60.0f : x;
    float n = (x * 1.44269504f + round) - round;
    float r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * bits_to_float(((int)n + 127) << 23);
}

/* ln x for normal x > 0: the mantissa moved to [sqrt(1/2), sqrt(2)), then ln m = 2 artanh((m-1)/(m+1)) */
ITEM float log_(float x)
{
    int bits = float_to_bits(x);
    int e = (bits >> 23) - 127;
    float m = bits_to_float((bits & 0x7fffff) | 0x3f800000);
    if (m > 1.41421356f) {
        m = m * 0.5f;
        e = e + 1;
    }
    float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    float p = 0.11111111f;
    p = p * q + 0.14285714f;
    p = p * q + 0.2f;
    p = p * q + 0.33333333f;
    p = p * q + 1.0f;
    return 2.0f * s * p + (float)e * 0.69314718f;
}

ITEM float tanh_(float x)
{
    return 1.0f - 2.0f / (exp_(2.0f * x) + 1.0f);
}

ITEM float sigmoid_(float x)
{
    return 1.0f / (1.0f + exp_(-x));
}

/* TILE floats that a processor's vector registers hold as two halves and a GPU thread in registers. */
#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
typedef struct { float lo[TILE / 2], hi[TILE / 2]; } vec;
#else
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
typedef float half_vec __attribute__((vector_size(TILE / 2 * sizeof(float))));
typedef struct { half_vec lo, hi; } vec;
#endif

ITEM vec vec_load(const float *x)
{
    vec v;
#ifdef __CUDACC__
    UNROLL for (int j = 0; j < TILE / 2; j++) {
        v.lo[j] = x[j];
        v.hi[j] = x[j + TILE / 2];
    }
#else
    __builtin_memcpy(&v.lo, x, sizeof v.lo);
    __builtin_memcpy(&v.hi, x + TILE / 2, sizeof v.hi);
#endif
    return v;
}

ITEM void vec_store(float *y, vec v)
{
#ifdef __CUDACC__
    UNROLL for (int j = 0; j < TILE / 2; j++) {
        y[j] = v.lo[j];
        y[j + TILE / 2] = v.hi[j];
    }
#else
    __builtin_memcpy(y, &v.lo, sizeof v.lo);
    __builtin_memcpy(y + TILE / 2, &v.hi, sizeof v.hi);
#endif
}

ITEM vec vec_zero(void)
{
    vec v;
    UNROLL for (int j = 0; j < TILE / 2; j++)
        v.lo[j] = v.hi[j] = 0.0f;
    return v;
}

/* acc + f x, each lane rounded twice */
ITEM vec vec_scaled_add(vec acc, float f, vec x)
{
#ifdef __CUDACC__
    UNROLL for (int j = 0; j < TILE / 2; j++) {
        acc.lo[j] = acc.lo[j] + f * x.lo[j];
        acc.hi[j] = acc.hi[j] + f * x.hi[j];
    }
#else
    acc.lo = acc.lo + f * x.lo;
    acc.hi = acc.hi + f * x.hi;
#endif
    return acc;
}

ITEM vec vec_product_add(vec acc, vec a, vec b)
{
#ifdef __CUDACC__
    UNROLL for (int j = 0; j < TILE / 2; j++) {
        acc.lo[j] = acc.lo[j] + a.lo[j] * b.lo[j];
        acc.hi[j] = acc.hi[j] + a.hi[j] * b.hi[j];
    }
#else
    acc.lo = acc.lo + a.lo * b.lo;
    acc.hi = acc.hi + a.hi * b.hi;
#endif
    return acc;
}

ITEM float lanes_sum(float *lane)
{
    for (int width = TILE / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] = lane[j] + lane[j + width];
    return lane[0];
}

ITEM float lanes_max(float *lane)
{
    for (int width = TILE / 2; width > 0; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] = lane[j] > lane[j + width] ? lane[j] : lane[j + width];
    return lane[0];
}

/* ---- element by element ------------------------------------------------------------------------------ */

ITEM void fill_item(int i, float *y, float value, int n)
{
    (void)n;
    y[i] = value;
}

ITEM void copy_item(int i, float *y, const float *x, int n)
{
    (void)n;
    y[i] = x[i];
}

ITEM void add_item(int i, float *y, const float *a, const float *b, int n)
{
    (void)n;
    y[i] = a[i] + b[i];
}

ITEM void add_inplace_item(int i, float *y, const float *b, int n)
{
    (void)n;
    y[i] = y[i] + b[i];
}

ITEM void mul_item(int i, float *y, const float *a, const float *b, int n)
{
    (void)n;
    y[i] = a[i] * b[i];
}

ITEM void scale_item(int i, float *y, const float *x, float factor, int n)
{
    (void)n;
    y[i] = x[i] * factor;
}

ITEM void add_scalar_item(int i, float *y, const float *x, float term, int n)
{
    (void)n;
    y[i] = x[i] + term;
}

ITEM void cube_item(int i, float *y, const float *x, int n)
{
    (void)n;
    y[i] = x[i] * x[i] * x[i];
}

ITEM void cube_bwd_item(int i, float *dx, const float *dy, const float *x, int n)
{
    (void)n;
    dx[i] = dy[i] * 3.0f * x[i] * x[i];
}

ITEM void tanh_fwd_item(int i, float *y, const float *x, int n)
{
    (void)n;
    y[i] = tanh_(x[i]);
}

ITEM void tanh_bwd_item(int i, float *dx, const float *dy, const float *y, int n)
{
    (void)n;
    dx[i] = dy[i] * (1.0f - y[i] * y[i]);
}

ITEM void silu_item(int i, float *y, const float *x, int n)
{
    (void)n;
    y[i] = x[i] * sigmoid_(x[i]);
}

ITEM void silu_bwd_item(int i, float *dx, const float *dy, const float *x, int n)
{
    (void)n;
    float s = sigmoid_(x[i]);
    dx[i] = dy[i] * s * (1.0f + x[i] * (1.0f - s));
}

ITEM void relu_inplace_item(int i, float *y, int n)
{
    (void)n;
    y[i] = y[i] > 0.0f ? y[i] : 0.0f;
}

ITEM void relu_bwd_item(int i, float *dx, const float *dy, const float *y, int n)
{
    (void)n;
    float d = dy[i];            /* loaded in any case: a loop with a conditional load has no vector form */
    dx[i] = y[i] > 0.0f ? d : 0.0f;
}

/* A counter-based generator: draw number offset + i of stream seed is the same whenever it is asked for. */
ITEM u32 random_bits(u64 seed, u64 offset, u32 i)
{
    u32 low = (u32)offset + i;
    u32 x = low * 0x9E3779B1u ^ (u32)seed ^ (u32)(seed >> 32) * 0x85EBCA6Bu ^ (u32)(offset >> 32);
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    return x;
}

ITEM void dropout_item(int i, float *y, u8 *mask, const float *x, float p, u64 seed, u64 offset, int n)
{
    (void)n;
    float draw = (float)(int)(random_bits(seed, offset, (u32)i) >> 8) * (1.0f / 16777216.0f);
    int keep = draw >= p;
    float kept = x[i] * (1.0f / (1.0f - p));
    mask[i] = (u8)keep;
    y[i] = keep ? kept : 0.0f;
}

ITEM void dropout_bwd_item(int i, float *dx, const float *dy, const u8 *mask, float factor, int n)
{
    (void)n;
    dx[i] = dy[i] * (float)mask[i] * factor;
}

/* ---- optimizers -------------------------------------------------------------------------------------- */

ITEM void weight_decay_item(int i, float *g, const float *p, float decay, int n)
{
    (void)n;
    g[i] = g[i] + decay * p[i];
}

ITEM void momentum_item(int i, float *buf, const float *g, float mu, int n)
{
    (void)n;
    buf[i] = mu * buf[i] + g[i];
}

ITEM void step_item(int i, float *p, const float *buf, float rate, int n)
{
    (void)n;
    p[i] = p[i] - rate * buf[i];
}

ITEM void adam_item(int i, adam_pack a, float rate, float beta1, float beta2, float unbias1, float unbias2,
    float eps)
{
    int t = 0, chunk = i;
    while (chunk >= tiles(a.size[t], CHUNK))
        chunk -= tiles(a.size[t++], CHUNK);
    int first = chunk * CHUNK, last = first + CHUNK < a.size[t] ? first + CHUNK : a.size[t];
    float *RESTRICT p = a.param[t], *RESTRICT m = a.m[t], *RESTRICT v = a.v[t];
    const float *RESTRICT g = a.grad[t];
    for (int j = first; j < last; j++) {
        m[j] = beta1 * m[j] + (1.0f - beta1) * g[j];
        v[j] = beta2 * v[j] + (1.0f - beta2) * g[j] * g[j];
        p[j] = p[j] - rate * (m[j] * unbias1) / (sqrtf(v[j] * unbias2) + eps);
    }
}

/* ---- matrices ---------------------------------------------------------------------------------------- */

ITEM void gemm_item(int i, float *RESTRICT c, const float *RESTRICT a, const float *RESTRICT b,
    const float *RESTRICT bias, int batch, int m, int n, int k, int a_row, int a_col, int a_batch, int k_total)
{
    int across = n / TILE, down = tiles(m, TILE_ROWS);
    int z = i / (across * down), rest = i - z * across * down;
    int row = rest / across * TILE_ROWS, col = rest % across * TILE;
    int terms = k_total - z * k < k ? k_total - z * k : k;
    const float *a0 = a + (u64)z * a_batch, *b0 = b + (u64)z * k * n + col;
    float *c0 = c + (u64)z * m * n + col;
    int at[TILE_ROWS];      /* rows past the end read the last one again and are not stored */
    vec acc[TILE_ROWS];
    (void)batch;

    UNROLL for (int r = 0; r < TILE_ROWS; r++) {
        at[r] = (row + r < m ? row + r : m - 1) * a_row;
        acc[r] = bias ? vec_load(bias + col) : vec_zero();
    }
    for (int t = 0; t < terms; t++) {
        vec line = vec_load(b0 + t * n);
        UNROLL for (int r = 0; r < TILE_ROWS; r++)
            acc[r] = vec_scaled_add(acc[r], a0[at[r] + t * a_col], line);
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        if (row + r < m)
            vec_store(c0 + (row + r) * n, acc[r]);
}

ITEM void transpose_item(int i, float *RESTRICT y, const float *RESTRICT x, int batch, int rows, int cols)
{
    int z = i / cols, col = i - z * cols;
    (void)batch;
    for (int row = 0; row < rows; row++)
        y[i * rows + row] = x[(z * rows + row) * cols + col];
}

ITEM void column_sum_item(int i, float *RESTRICT y, const float *RESTRICT x, int rows, int cols, int chunk)
{
    int across = tiles(cols, TILE), s = i / across, col = i % across * TILE;
    int first = s * chunk, last = first + chunk < rows ? first + chunk : rows;
    if (col + TILE <= cols) {
        float acc[TILE] = {0};
        for (int r = first; r < last; r++)
            for (int j = 0; j < TILE; j++)
                acc[j] = acc[j] + x[r * cols + col + j];
        for (int j = 0; j < TILE; j++)
            y[s * cols + col + j] = acc[j];
    } else {
        for (int j = col; j < cols; j++) {
            float acc = 0.0f;
            for (int r = first; r < last; r++)
                acc = acc + x[r * cols + j];
            y[s * cols + j] = acc;
        }
    }
}

/* ---- rows -------------------------------------------------------------------------------------------- */

ITEM void layer_norm_item(int i, float *RESTRICT y, float *RESTRICT mean, float *RESTRICT rstd,
    const float *RESTRICT x, const float *RESTRICT gamma, const float *RESTRICT beta, int rows, int cols,
    float eps)
{
    const float *xi = x + (u64)i * cols;
    float *yi = y + (u64)i * cols;
    float lane[TILE] = {0};
    (void)rows;
    for (int j = 0; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++)
            lane[l] = lane[l] + xi[j + l];
    float mu = lanes_sum(lane) / (float)cols;
    for (int l = 0; l < TILE; l++)
        lane[l] = 0.0f;
    for (int j = 0; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++)
            lane[l] = lane[l] + (xi[j + l] - mu) * (xi[j + l] - mu);
    float r = 1.0f / sqrtf(lanes_sum(lane) / (float)cols + eps);
    for (int j = 0; j < cols; j++)
        yi[j] = (xi[j] - mu) * r * gamma[j] + beta[j];
    mean[i] = mu;
    rstd[i] = r;
}

ITEM void layer_norm_bwd_item(int i, float *RESTRICT dx, const float *RESTRICT dy, const float *RESTRICT x,
    const float *RESTRICT mean, const float *RESTRICT rstd, const float *RESTRICT gamma, int rows, int cols)
{
    const float *xi = x + (u64)i * cols, *di = dy + (u64)i * cols;
    float *oi = dx + (u64)i * cols;
    float plain[TILE] = {0}, along[TILE] = {0}, mu = mean[i], r = rstd[i];
    (void)rows;
    for (int j = 0; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++) {
            float d = di[j + l] * gamma[j + l];
            plain[l] = plain[l] + d;
            along[l] = along[l] + d * ((xi[j + l] - mu) * r);
        }
    float p = lanes_sum(plain) / (float)cols, a = lanes_sum(along) / (float)cols;
    for (int j = 0; j < cols; j++)
        oi[j] = r * (di[j] * gamma[j] - p - (xi[j] - mu) * r * a);
}

ITEM void layer_norm_params_item(int i, float *RESTRICT dgamma, float *RESTRICT dbeta, const float *RESTRICT dy,
    const float *RESTRICT x, const float *RESTRICT mean, const float *RESTRICT rstd, int rows, int cols,
    int chunk)
{
    int across = cols / TILE, s = i / across, col = i % across * TILE;
    int first = s * chunk, last = first + chunk < rows ? first + chunk : rows;
    float g[TILE] = {0}, b[TILE] = {0};
    for (int r = first; r < last; r++) {
        float mu = mean[r], d = rstd[r];
        for (int j = 0; j < TILE; j++) {
            float v = dy[r * cols + col + j];
            g[j] = g[j] + v * ((x[r * cols + col + j] - mu) * d);
            b[j] = b[j] + v;
        }
    }
    for (int j = 0; j < TILE; j++) {
        dgamma[s * cols + col + j] = g[j];
        dbeta[s * cols + col + j] = b[j];
    }
}

/* softmax of factor x over the first `live` of cols; the others become zero */
ITEM void softmax_row(float *RESTRICT y, const float *RESTRICT x, int cols, int live, float factor)
{
    float lane[TILE];
    for (int l = 0; l < TILE; l++)
        lane[l] = -3.0e38f;
    for (int j = 0; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++) {
            float v = j + l < live ? x[j + l] * factor : -3.0e38f;
            lane[l] = v > lane[l] ? v : lane[l];
        }
    float top = lanes_max(lane);
    for (int l = 0; l < TILE; l++)
        lane[l] = 0.0f;
    for (int j = 0; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++) {
            float e = exp_(x[j + l] * factor - top);
            e = j + l < live ? e : 0.0f;
            y[j + l] = e;
            lane[l] = lane[l] + e;
        }
    float whole = lanes_sum(lane);
    for (int j = 0; j < cols; j++)
        y[j] = y[j] / whole;
}

ITEM void causal_softmax_item(int i, float *y, const float *x, int rows, int cols, float factor)
{
    (void)rows;
    softmax_row(y + (u64)i * cols, x + (u64)i * cols, cols, i % cols + 1, factor);
}

ITEM void causal_softmax_bwd_item(int i, float *RESTRICT dx, const float *RESTRICT dy, const float *RESTRICT y,
    int rows, int cols, float factor)
{
    const float *yi = y + (u64)i * cols, *di = dy + (u64)i * cols;
    float *oi = dx + (u64)i * cols;
    float lane[TILE] = {0};
    (void)rows;
    for (int j = 0; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++)
            lane[l] = lane[l] + yi[j + l] * di[j + l];
    float s = lanes_sum(lane);
    for (int j = 0; j < cols; j++)
        oi[j] = yi[j] * (di[j] - s) * factor;
}

ITEM void log_softmax_item(int i, float *RESTRICT y, const float *RESTRICT x, int rows, int cols)
{
    const float *xi = x + (u64)i * cols;
    float *yi = y + (u64)i * cols;
    float lane[TILE];
    (void)rows;
    for (int l = 0; l < TILE; l++)
        lane[l] = xi[l];
    for (int j = TILE; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++)
            lane[l] = xi[j + l] > lane[l] ? xi[j + l] : lane[l];
    float top = lanes_max(lane);
    for (int l = 0; l < TILE; l++)
        lane[l] = 0.0f;
    for (int j = 0; j < cols; j += TILE)
        for (int l = 0; l < TILE; l++)
            lane[l] = lane[l] + exp_(xi[j + l] - top);
    float shift = top + log_(lanes_sum(lane));
    for (int j = 0; j < cols; j++)
        yi[j] = xi[j] - shift;
}

ITEM void nll_item(int i, float *y, const float *logp, const int *labels, int rows, int cols)
{
    int first = i * CHUNK, last = first + CHUNK < rows ? first + CHUNK : rows;
    float acc = 0.0f;
    for (int r = first; r < last; r++)
        acc = acc - logp[r * cols + labels[r]];
    y[i] = acc;
}

ITEM void sum_item(int i, float *y, const float *x, int n, float factor)
{
    float acc = 0.0f;
    for (int j = 0; j < n; j++)
        acc = acc + x[j];
    y[i] = acc * factor;
}

ITEM void cross_entropy_bwd_item(int i, float *RESTRICT dx, const float *RESTRICT dloss,
    const float *RESTRICT logp, const int *RESTRICT labels, int rows, int cols, float factor)
{
    float d = dloss[0] * factor;
    int label = labels[i];
    (void)rows;
    for (int j = 0; j < cols; j++)
        dx[(u64)i * cols + j] = (exp_(logp[(u64)i * cols + j]) - (j == label ? 1.0f : 0.0f)) * d;
}

/* ---- embeddings and attention heads -------------------------------------------------------------------- */

ITEM void embed_item(int i, float *RESTRICT y, const float *RESTRICT table, const int *RESTRICT ids, int rows,
    int cols)
{
    const float *from = table + (u64)ids[i] * cols;
    (void)rows;
    for (int j = 0; j < cols; j++)
        y[(u64)i * cols + j] = from[j];
}

ITEM void embed_bwd_item(int i, float *RESTRICT dtable, const float *RESTRICT dy, const int *RESTRICT order,
    const int *RESTRICT start, int vocab, int rows, int cols)
{
    float *row = dtable + (u64)i * cols;
    (void)vocab, (void)rows;
    for (int j = 0; j < cols; j++)
        row[j] = 0.0f;
    for (int t = start[i]; t < start[i + 1]; t++)
        for (int j = 0; j < cols; j++)
            row[j] = row[j] + dy[(u64)order[t] * cols + j];
}

ITEM void add_position_item(int i, float *RESTRICT y, const float *RESTRICT x, const float *RESTRICT table,
    int rows, int period, int cols)
{
    const float *position = table + i % period * cols;
    (void)rows;
    for (int j = 0; j < cols; j++)
        y[(u64)i * cols + j] = x[(u64)i * cols + j] + position[j];
}

/* item i is (batch, head, time); where its row stands in [batch][time][3][heads][width], third 0 */
ITEM u64 qkv_offset(int i, int time, int heads, int width)
{
    int t = i % time, h = i / time % heads, b = i / time / heads;
    return ((u64)(b * time + t) * 3 * heads + h) * width;
}

ITEM void split_qkv_item(int i, float *RESTRICT q, float *RESTRICT k, float *RESTRICT v, const float *RESTRICT x,
    int batch, int time, int heads, int width)
{
    const float *from = x + qkv_offset(i, time, heads, width);
    int third = heads * width;
    (void)batch;
    for (int j = 0; j < width; j++) {
        q[(u64)i * width + j] = from[j];
        k[(u64)i * width + j] = from[j + third];
        v[(u64)i * width + j] = from[j + 2 * third];
    }
}

ITEM void merge_qkv_item(int i, float *RESTRICT x, const float *RESTRICT q, const float *RESTRICT k,
    const float *RESTRICT v, int batch, int time, int heads, int width)
{
    float *to = x + qkv_offset(i, time, heads, width);
    int third = heads * width;
    (void)batch;
    for (int j = 0; j < width; j++) {
        to[j] = q[(u64)i * width + j];
        to[j + third] = k[(u64)i * width + j];
        to[j + 2 * third] = v[(u64)i * width + j];
    }
}

ITEM void swap_axes_item(int i, float *RESTRICT y, const float *RESTRICT x, int batch, int a, int b, int width)
{
    int z = i / (a * b), rest = i - z * a * b, ib = rest / a, ia = rest - ib * a;
    (void)batch;
    for (int j = 0; j < width; j++)
        y[(u64)i * width + j] = x[(u64)((z * a + ia) * b + ib) * width + j];
}

/* ---- images ------------------------------------------------------------------------------------------ */

ITEM void pad_item(int i, float *RESTRICT y, const float *RESTRICT x, int planes, int h, int w)
{
    int plane = i / (h + 2), row = i - plane * (h + 2) - 1;
    float *to = y + (u64)i * (w + 2);
    const float *from = x + (u64)plane * h * w + (u64)(row < 0 ? 0 : row) * w;
    (void)planes;
    if (row < 0 || row >= h) {
        for (int j = 0; j < w + 2; j++)
            to[j] = 0.0f;
        return;
    }
    to[0] = 0.0f;
    for (int j = 0; j < w; j++)
        to[j + 1] = from[j];
    to[w + 1] = 0.0f;
}

ITEM void conv3x3_item(int i, float *RESTRICT y, const float *RESTRICT x, const float *RESTRICT weight, int batch,
    int cin, int cout, int h, int w)
{
    int across = w / TILE, col = i % across * TILE, rest = i / across, row = rest % h;
    rest = rest / h;
    int out = rest % (cout / TILE_ROWS) * TILE_ROWS, image = rest / (cout / TILE_ROWS);
    vec acc[TILE_ROWS];
    (void)batch;
    UNROLL for (int o = 0; o < TILE_ROWS; o++)
        acc[o] = vec_zero();
    for (int in = 0; in < cin; in++) {
        const float *x0 = x + ((u64)(image * cin + in) * (h + 2) + row) * (w + 2) + col;
        const float *w0 = weight + (out * cin + in) * 9;
        for (int tap = 0; tap < 9; tap++) {
            vec line = vec_load(x0 + tap / 3 * (w + 2) + tap % 3);
            UNROLL for (int o = 0; o < TILE_ROWS; o++)
                acc[o] = vec_scaled_add(acc[o], w0[o * cin * 9 + tap], line);
        }
    }
    UNROLL for (int o = 0; o < TILE_ROWS; o++)
        vec_store(y + ((u64)(image * cout + out + o) * h + row) * w + col, acc[o]);
}

ITEM void flip3x3_item(int i, float *y, const float *weight, int cin, int cout)
{
    int tap = i % 9, out = i / 9 % cout, in = i / 9 / cout;
    y[i] = weight[(out * cin + in) * 9 + 8 - tap];
}

ITEM void conv3x3_weight_item(int i, float *RESTRICT y, const float *RESTRICT dy, const float *RESTRICT x,
    int batch, int cin, int cout, int h, int w)
{
    int in = i % cin, image = i / cin / cout;
    const float *d0 = dy + (u64)(i / cin) * h * w, *x0 = x + (u64)(image * cin + in) * (h + 2) * (w + 2);
    (void)batch;
    for (int up = 0; up < 3; up++) {
        vec acc[3] = {vec_zero(), vec_zero(), vec_zero()};
        for (int row = 0; row < h; row++)
            for (int col = 0; col < w; col += TILE) {
                vec d = vec_load(d0 + row * w + col);
                const float *at = x0 + (row + up) * (w + 2) + col;
                UNROLL for (int left = 0; left < 3; left++)
                    acc[left] = vec_product_add(acc[left], d, vec_load(at + left));
            }
        for (int left = 0; left < 3; left++) {
            float lane[TILE];
            vec_store(lane, acc[left]);
            y[(u64)i * 9 + up * 3 + left] = lanes_sum(lane);
        }
    }
}

ITEM void conv1x1_weight_item(int i, float *RESTRICT y, const float *RESTRICT dy, const float *RESTRICT x,
    int batch, int cin, int cout, int hw)
{
    int in = i % cin, image = i / cin / cout;
    const float *d = dy + (u64)(i / cin) * hw, *x0 = x + (u64)(image * cin + in) * hw;
    float lane[TILE] = {0};
    (void)batch;
    for (int j = 0; j < hw; j += TILE)
        for (int l = 0; l < TILE; l++)
            lane[l] = lane[l] + d[j + l] * x0[j + l];
    y[i] = lanes_sum(lane);
}

ITEM void bn_sums_item(int i, float *RESTRICT part, const float *RESTRICT x, int batch, int channels, int hw)
{
    const float *xi = x + (u64)i * hw;
    float plain[TILE] = {0}, square[TILE] = {0};
    int image = i / channels, channel = i - image * channels;
    (void)batch;
    for (int j = 0; j < hw; j += TILE)
        for (int l = 0; l < TILE; l++) {
            plain[l] = plain[l] + xi[j + l];
            square[l] = square[l] + xi[j + l] * xi[j + l];
        }
    part[image * 2 * channels + channel] = lanes_sum(plain);
    part[(image * 2 + 1) * channels + channel] = lanes_sum(square);
}

ITEM void bn_finish_item(int i, float *RESTRICT mean, float *RESTRICT rstd, float *RESTRICT running_mean,
    float *RESTRICT running_var, const float *RESTRICT part, int batch, int channels, int hw, float momentum,
    float eps)
{
    float plain = 0.0f, square = 0.0f, n = (float)batch * (float)hw;
    for (int b = 0; b < batch; b++) {
        plain = plain + part[b * 2 * channels + i];
        square = square + part[(b * 2 + 1) * channels + i];
    }
    float mu = plain / n, var = square / n - mu * mu;
    var = var > 0.0f ? var : 0.0f;
    mean[i] = mu;
    rstd[i] = 1.0f / sqrtf(var + eps);
    running_mean[i] = (1.0f - momentum) * running_mean[i] + momentum * mu;
    running_var[i] = (1.0f - momentum) * running_var[i] + momentum * (var * n / (n - 1.0f));
}

/* item i is the i-th CHUNK of the tensor; the channel it lies in */
ITEM int chunk_channel(int i, int channels, int hw)
{
    return i / (hw / CHUNK) % channels;
}

ITEM void bn_apply_item(int i, float *RESTRICT y, const float *RESTRICT x, const float *RESTRICT mean,
    const float *RESTRICT rstd, const float *RESTRICT gamma, const float *RESTRICT beta, int batch, int channels,
    int hw)
{
    int c = chunk_channel(i, channels, hw);
    float factor = rstd[c] * gamma[c], term = beta[c] - mean[c] * factor;
    (void)batch;
    for (int j = 0; j < CHUNK; j++)
        y[(u64)i * CHUNK + j] = x[(u64)i * CHUNK + j] * factor + term;
}

ITEM void bn_eval_item(int i, float *RESTRICT y, const float *RESTRICT x, const float *RESTRICT running_mean,
    const float *RESTRICT running_var, const float *RESTRICT gamma, const float *RESTRICT beta, int batch,
    int channels, int hw, float eps)
{
    int c = chunk_channel(i, channels, hw);
    float factor = gamma[c] / sqrtf(running_var[c] + eps), term = beta[c] - running_mean[c] * factor;
    (void)batch;
    for (int j = 0; j < CHUNK; j++)
        y[(u64)i * CHUNK + j] = x[(u64)i * CHUNK + j] * factor + term;
}

ITEM void bn_bwd_sums_item(int i, float *RESTRICT part, const float *RESTRICT dy, const float *RESTRICT x,
    const float *RESTRICT mean, const float *RESTRICT rstd, int batch, int channels, int hw)
{
    const float *xi = x + (u64)i * hw, *di = dy + (u64)i * hw;
    float plain[TILE] = {0}, along[TILE] = {0};
    int image = i / channels, channel = i - image * channels;
    float mu = mean[channel], r = rstd[channel];
    (void)batch;
    for (int j = 0; j < hw; j += TILE)
        for (int l = 0; l < TILE; l++) {
            plain[l] = plain[l] + di[j + l];
            along[l] = along[l] + di[j + l] * ((xi[j + l] - mu) * r);
        }
    part[image * 2 * channels + channel] = lanes_sum(plain);
    part[(image * 2 + 1) * channels + channel] = lanes_sum(along);
}

ITEM void bn_bwd_finish_item(int i, float *RESTRICT dgamma, float *RESTRICT dbeta, const float *RESTRICT part,
    int batch, int channels)
{
    float plain = 0.0f, along = 0.0f;
    for (int b = 0; b < batch; b++) {
        plain = plain + part[b * 2 * channels + i];
        along = along + part[(b * 2 + 1) * channels + i];
    }
    dbeta[i] = plain;
    dgamma[i] = along;
}

ITEM void bn_bwd_apply_item(int i, float *RESTRICT dx, const float *RESTRICT dy, const float *RESTRICT x,
    const float *RESTRICT mean, const float *RESTRICT rstd, const float *RESTRICT gamma,
    const float *RESTRICT dgamma, const float *RESTRICT dbeta, int batch, int channels, int hw)
{
    int c = chunk_channel(i, channels, hw);
    float n = (float)batch * (float)hw, mu = mean[c], r = rstd[c], g = gamma[c] * r;
    float plain = dbeta[c] / n, along = dgamma[c] / n;
    for (int j = i * CHUNK; j < (i + 1) * CHUNK; j++)
        dx[j] = g * (dy[j] - plain - (x[j] - mu) * r * along);
}

ITEM void max_pool_item(int i, float *RESTRICT y, int *RESTRICT at, const float *RESTRICT x, int planes, int h,
    int w)
{
    int plane = i / (h / 2), row = i % (h / 2);
    const float *x0 = x + (u64)plane * h * w;
    (void)planes;
    for (int col = 0; col < w / 2; col++) {
        int best = 2 * row * w + 2 * col;
        best = x0[best + 1] > x0[best] ? best + 1 : best;
        int below = (2 * row + 1) * w + 2 * col;
        below = x0[below + 1] > x0[below] ? below + 1 : below;
        best = x0[below] > x0[best] ? below : best;
        y[(u64)i * (w / 2) + col] = x0[best];
        at[(u64)i * (w / 2) + col] = best;
    }
}

ITEM void max_pool_bwd_item(int i, float *RESTRICT dx, const float *RESTRICT dy, const int *RESTRICT at,
    int planes, int h, int w)
{
    int plane = i / (h / 2), row = i % (h / 2);
    float *d0 = dx + (u64)plane * h * w;
    (void)planes;
    for (int corner = 0; corner < 2; corner++)
        for (int col = 0; col < w; col++) {
            int here = (2 * row + corner) * w + col;
            u64 from = (u64)i * (w / 2) + col / 2;
            d0[here] = at[from] == here ? dy[from] : 0.0f;
        }
}

ITEM void mean_pool_item(int i, float *RESTRICT y, const float *RESTRICT x, int planes, int hw)
{
    float lane[TILE] = {0};
    (void)planes;
    for (int j = 0; j < hw; j += TILE)
        for (int l = 0; l < TILE; l++)
            lane[l] = lane[l] + x[(u64)i * hw + j + l];
    y[i] = lanes_sum(lane) / (float)hw;
}

ITEM void mean_pool_bwd_item(int i, float *RESTRICT dx, const float *RESTRICT dy, int planes, int hw)
{
    float d = dy[i / (hw / CHUNK)] / (float)hw;
    (void)planes;
    for (int j = 0; j < CHUNK; j++)
        dx[(u64)i * CHUNK + j] = d;
}

#endif
