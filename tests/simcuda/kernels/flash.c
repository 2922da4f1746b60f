/*
 * Flash attention: flash_fwd_kernel, flash_fwd_splitkv_kernel and its combine kernel, and the three kernels of the backward pass
 * (rows' sums do * o and an empty dq accumulator; dk, dv and the accumulator; dq from it). One struct by value, strides in
 * elements. FlashAttention-2 (Dao, 2023), algorithms 1 and 2. A dropout mask follows from seed and offset, which the forward
 * kernel leaves in rng_state for the backward one.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/attention.h"
#include "tests/simcuda/kernels/philox.h"

struct params {
    char *q, *k, *v;
    int64_t q_batch, k_batch, v_batch, q_row, k_row, v_row, q_head, k_head, v_head;
    int32_t h, h_k, h_ratio;
    char *o;
    float *o_acc;
    int64_t o_batch, o_row, o_head;
    void *p;
    float *lse, *lse_acc;
    int32_t b, nq, nk, nk_new, d, nq_rounded, nk_rounded, d_rounded, rotary, total_q;
    float scale, scale_log2;
    const int32_t *start_q, *start_k;
    const void *other[5];
    int64_t new_strides[6];
    const void *rotary_cos, *rotary_sin, *cache_index, *block_table;
    int64_t block_table_stride;
    int32_t page;
    float keep;
    uint8_t keep_u8;
    float rp, scale_rp;
    int32_t left, right;
    float softcap;
    uint64_t seed_words[4];
    uint64_t *rng_state;
    bool bf16, causal, lengths_cumulative, interleaved;
    int32_t splits;
    const float *slopes;
    int64_t slopes_batch;
    bool unpadded_lse, groups_swapped;
    /* backward */
    char *dout, *dq, *dk, *dv;
    float *dq_acc, *dk_acc, *dv_acc;
    int64_t do_batch, do_row, do_head, dq_batch, dk_batch, dv_batch, dq_row, dk_row, dv_row, dq_head, dk_head, dv_head;
    float *delta;
    bool deterministic;
    int64_t dq_acc_split;
};
_Static_assert(offsetof(struct params, page) == 368 && offsetof(struct params, rng_state) == 432
               && offsetof(struct params, dout) == 472 && sizeof(struct params) == 648, "the structs of the flash kernels");

/* What batch b, head h is about. lse_at, delta_at: its first rows there. */
struct place { int64_t q0, k0, bq, bk, lse_at, delta_at, acc_at; int nq, nk; };

static struct place place_of(const struct params *f, int64_t b, int64_t h)
{
    struct place w = { .nq = f->nq, .nk = f->nk };
    if (f->start_q) {
        w.q0 = f->start_q[b];
        w.nq = f->start_q[b + 1] - f->start_q[b];
    } else w.bq = b;
    if (f->start_k) {
        w.k0 = f->lengths_cumulative ? f->start_k[b] : 0;
        w.nk = f->lengths_cumulative ? f->start_k[b + 1] - f->start_k[b] : f->start_k[b];
        if (!f->lengths_cumulative) w.bk = b;
    } else w.bk = b;
    bool packed = f->start_q && f->unpadded_lse;
    w.lse_at = packed ? h * f->total_q + w.q0 : (b * f->h + h) * f->nq;
    w.delta_at = packed ? h * (f->total_q + 128 * f->b) + w.q0 + 128 * b : (b * f->h + h) * f->nq_rounded;
    w.acc_at = (f->start_q ? w.q0 + 128 * b : b * f->nq_rounded) * f->h * f->d_rounded + h * f->d_rounded;
    return w;
}

static struct attention head_of(const struct params *f, const struct place *w, int64_t b, int64_t h)
{
    enum dtype t = f->bf16 ? DT_BF16 : DT_F16;
    int64_t kv = h / KERN_MAX(f->h_ratio, 1);
    struct attention a = { .t = t, .out_t = t, .dq_t = DT_F32, .nq = w->nq, .nk = w->nk, .d = f->d, .dv = f->d, .scale = f->scale };
    a.q_row = f->q_row, a.k_row = f->k_row, a.v_row = f->v_row, a.o_row = f->o_row;
    a.q = f->q + (w->bq * f->q_batch + w->q0 * f->q_row + h * f->q_head) * 2;
    a.k = f->k + (w->bk * f->k_batch + w->k0 * f->k_row + kv * f->k_head) * 2;
    a.v = f->v + (w->bk * f->v_batch + w->k0 * f->v_row + kv * f->v_head) * 2;
    a.o = f->o + (w->bq * f->o_batch + w->q0 * f->o_row + h * f->o_head) * 2;
    a.left = f->left < 0 ? -1 : f->left;
    a.right = f->causal ? 0 : f->right < 0 ? -1 : f->right;
    a.shift = w->nk - w->nq;
    a.softcap = f->softcap;
    if (f->slopes) a.slope = f->slopes[b * f->slopes_batch + h];
    a.drop = f->keep < 1 ? 1 - f->keep : 0;
    a.offset = (uint64_t)(b * f->h + h) * (uint64_t)f->nq * (uint64_t)f->nk;
    a.drop_row = f->nk;
    return a;
}

static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    struct params f;
    memset(&f, 0, sizeof f);
    memcpy(&f, p[0], 472);
    struct philox_seed seed = { 0, 0 };
    if (f.keep < 1) {
        seed = philox_unpack(f.seed_words);
        f.rng_state[0] = seed.seed;
        f.rng_state[1] = seed.offset;
    }
    for (int64_t b = 0; b < f.b; b++)
        for (int64_t h = 0; h < f.h; h++) {
            struct place w = place_of(&f, b, h);
            struct attention a = head_of(&f, &w, b, h);
            a.lse = f.lse + w.lse_at;
            a.empty_is_inf = true;
            a.seed = seed.seed;
            a.sub = seed.offset;
            attention_forward(&a);
        }
}

/* Each split takes a range of keys; parts go to the accumulators, with as many rows as there are queries. */
static void split_forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct params f;
    memset(&f, 0, sizeof f);
    memcpy(&f, p[0], 472);
    if (f.splits <= 1) {
        forward(l, p, k);
        return;
    }
    struct kfunctor traits;
    long block = 64;
    if (!kname_functor(k->name.arg[0], &traits) && traits.n_targs > 2) kname_number(traits.targ[2], &block);
    for (int s = 0; s < f.splits; s++)
        for (int64_t b = 0; b < f.b; b++)
            for (int64_t h = 0; h < f.h; h++) {
                struct place w = place_of(&f, b, h);
                int64_t blocks = (w.nk + block - 1) / block, each = (blocks + f.splits - 1) / f.splits * block;
                int64_t from = KERN_MIN(s * each, (int64_t)w.nk), to = KERN_MIN(from + each, (int64_t)w.nk);
                int64_t part = ((int64_t)s * f.b + b) * f.h + h;
                struct attention a = head_of(&f, &w, b, h);
                a.k = (const char *)a.k + from * f.k_row * 2;
                a.v = (const char *)a.v + from * f.v_row * 2;
                a.shift -= (int)from;
                a.nk = (int)(to - from);
                a.lse = f.lse_acc + part * f.nq;
                /* parts are kept in float */
                float *acc = f.o_acc + part * f.nq * f.d_rounded;
                a.o_t = DT_F32;
                a.o = acc;
                a.o_row = f.d_rounded;
                attention_forward(&a);
            }
}

static void combine(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    struct params f;
    memset(&f, 0, sizeof f);
    memcpy(&f, p[0], 472);
    enum dtype t = f.bf16 ? DT_BF16 : DT_F16;
    float *row = malloc(sizeof(float) * (size_t)f.d);
    for (int64_t b = 0; b < f.b; b++)
        for (int64_t h = 0; h < f.h; h++)
            for (int64_t i = 0; i < f.nq; i++) {
                int64_t rows = (int64_t)f.b * f.h * f.nq, at = (b * f.h + h) * f.nq + i;
                float max = -INFINITY;
                double sum = 0;
                for (int s = 0; s < f.splits; s++) max = fmaxf(max, f.lse_acc[s * rows + at]);
                for (int s = 0; s < f.splits && max > -INFINITY; s++) sum += expf(f.lse_acc[s * rows + at] - max);
                float lse = sum > 0 ? max + logf((float)sum) : INFINITY;
                f.lse[at] = lse;
                memset(row, 0, sizeof(float) * (size_t)f.d);
                for (int s = 0; s < f.splits; s++) {
                    float weight = lse == INFINITY ? 0 : expf(f.lse_acc[s * rows + at] - lse);
                    if (weight == 0) continue;
                    const float *part = f.o_acc + (s * rows + at) * f.d_rounded;
                    for (int c = 0; c < f.d; c++) row[c] += weight * part[c];
                }
                dtype_store(t, DC_F, row, f.o + (b * f.o_batch + i * f.o_row + h * f.o_head) * 2, 2, (size_t)f.d);
            }
    free(row);
}

/* delta = sum over d of do * o; the dq accumulator is cleared where the first template argument says so. */
static void dot(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct params f;
    memcpy(&f, p[0], sizeof f);
    enum dtype t = f.bf16 ? DT_BF16 : DT_F16;
    float *x = malloc(sizeof(float) * 2 * (size_t)f.d), *y = x + f.d;
    for (int64_t b = 0; b < f.b; b++)
        for (int64_t h = 0; h < f.h; h++) {
            struct place w = place_of(&f, b, h);
            for (int64_t i = 0; i < w.nq; i++) {
                dtype_load(t, DC_F, x, f.dout + (w.bq * f.do_batch + (w.q0 + i) * f.do_row + h * f.do_head) * 2, 2, (size_t)f.d);
                dtype_load(t, DC_F, y, f.o + (w.bq * f.o_batch + (w.q0 + i) * f.o_row + h * f.o_head) * 2, 2, (size_t)f.d);
                double s = 0;
                for (int c = 0; c < f.d; c++) s += (double)x[c] * y[c];
                f.delta[w.delta_at + i] = (float)s * f.keep;
                if (k->v[0]) memset(f.dq_acc + w.acc_at + i * f.h * f.d_rounded, 0, sizeof(float) * (size_t)f.d_rounded);
            }
        }
    free(x);
}

static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    struct params f;
    memcpy(&f, p[0], sizeof f);
    uint64_t seed = 0, sub = 0;
    if (f.keep < 1) {
        seed = f.rng_state[0];
        sub = f.rng_state[1];
    }
    for (int64_t b = 0; b < f.b; b++)
        for (int64_t h = 0; h < f.h; h++) {
            struct place w = place_of(&f, b, h);
            struct attention a = head_of(&f, &w, b, h);
            a.do_row = f.do_row, a.dk_row = f.dk_row, a.dv_row = f.dv_row, a.dq_row = (int64_t)f.h * f.d_rounded;
            a.dout = f.dout + (w.bq * f.do_batch + w.q0 * f.do_row + h * f.do_head) * 2;
            a.dk = f.dk + (w.bk * f.dk_batch + w.k0 * f.dk_row + h * f.dk_head) * 2;
            a.dv_out = f.dv + (w.bk * f.dv_batch + w.k0 * f.dv_row + h * f.dv_head) * 2;
            a.dq = f.dq_acc + w.acc_at;
            a.dq_scale = 1 / f.scale_rp;
            a.lse = f.lse + w.lse_at;
            a.delta = f.delta + w.delta_at;
            a.delta_scale = 1 / f.keep;
            a.seed = seed;
            a.sub = sub;
            attention_backward(&a);
        }
}

static void convert(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    struct params f;
    memcpy(&f, p[0], sizeof f);
    enum dtype t = f.bf16 ? DT_BF16 : DT_F16;
    float *row = malloc(sizeof(float) * (size_t)f.d);
    for (int64_t b = 0; b < f.b; b++)
        for (int64_t h = 0; h < f.h; h++) {
            struct place w = place_of(&f, b, h);
            for (int64_t i = 0; i < w.nq; i++) {
                const float *acc = f.dq_acc + w.acc_at + i * f.h * f.d_rounded;
                for (int c = 0; c < f.d; c++) row[c] = acc[c] * f.scale_rp;
                dtype_store(t, DC_F, row, f.dq + (w.bq * f.dq_batch + (w.q0 + i) * f.dq_row + h * f.dq_head) * 2, 2, (size_t)f.d);
            }
        }
    free(row);
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct params *f = p[0];
    uint64_t heads = (uint64_t)f->b * (uint64_t)f->h, nq = (uint64_t)f->nq, nk = (uint64_t)f->nk, d = (uint64_t)f->d;
    bool main = k->row->run == forward || k->row->run == split_forward || k->row->run == backward;
    uint64_t work = main ? heads * nq * nk * d * (k->row->run == backward ? 10 : 4) : heads * nq * d * 2;
    *flops = f->causal && main ? work / 2 : work;
    *bytes = heads * d * 2 * (main ? 2 * nq + 2 * nk : 3 * nq);
}

static int bind(struct kern *k)
{
    bool back = k->row->run == dot || k->row->run == backward || k->row->run == convert;
    return k->k->bytes[0] == (back ? 648u : 472u) ? 0 : -EPROTO;
}

const struct kern_row flash_rows[] = {
    { "flash_fwd_kernel", "*", forward, cost, bind },
    { "flash_fwd_splitkv_kernel", "*", split_forward, cost, bind },
    { "flash_fwd_splitkv_combine_kernel", "*", combine, cost, bind },
    { "flash_bwd_dot_do_o_kernel", "*", dot, cost, bind },
    { "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", "*", backward, cost, bind },
    { "flash_bwd_convert_dq_kernel", "*i", convert, cost, bind },
    KERN_END
};
