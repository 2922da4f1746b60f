/*
 * Memory-efficient attention: fmha_cutlassF_* and fmha_cutlassB_*, a struct by value each. Blocks along z are batches, along y
 * heads. The names carry the element type; what else they carry is tiling. Where the kernel would spread an accumulator over
 * its workspace, the sums are kept on the side: what a workspace holds afterwards nobody reads.
 *
 * PyTorch 2.11.0 has smaller structs: every query head has keys of its own there, and a launch begins at batch and head 0. They are
 * read as those of 2.15.0. What its kernels got wrong in corners (one query against keys shared by all heads, a window from the bottom
 * right) is computed as 2.15.0 does.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/kernels/attention.h"
#include "tests/simcuda/kernels/philox.h"

struct forward_params {
    const char *q, *k, *v, *bias;
    const int32_t *start_q, *start_k, *len_k;
    int32_t causal_offset;
    char *o;
    void *o_acc;
    float *lse;
    int32_t window;
    float scale;
    int32_t d, dv, nq, nk, nk_absolute;
    uint8_t mask;
    int32_t q_row, k_row, v_row, bias_row, o_row, q_head, k_head, v_head;
    int64_t bias_head, q_batch, k_batch, v_batch, bias_batch;
    int32_t batches, batch_offset, head_offset, heads, heads_per_kv;
    bool dropout;
    uint64_t rng_offset;
    float drop;
    uint64_t seed_words[4];
    int64_t *extragraph_offset, *seed;
};
_Static_assert(sizeof(struct forward_params) == 280, "the struct of the forward kernels");

struct backward_params {
    const char *q, *k, *v, *bias;
    const float *lse;
    const char *o, *dout;
    float *delta;
    const int32_t *start_q, *start_k;
    char *dq, *dk, *dv, *dbias;
    void *workspace, *workspace_dv, *workspace_dq;
    int32_t window;
    float scale;
    int32_t d, d_value, nq, nk, heads, heads_per_kv;
    uint8_t mask;
    int64_t q_row, k_row, v_row, bias_row, do_row, dbias_row;
    int8_t row_multiplier;
    uint64_t seed_words[4];
    uint64_t rng_offset;
    float drop;
    int64_t o_head;
    int32_t q_head, k_head, v_head;
    int64_t bias_head, o_batch, q_batch, k_batch, v_batch, bias_batch, lse_batch, lse_head, delta_batch, delta_head;
    int32_t batches, batch_offset, head_offset;
    int16_t splits;
    int64_t do_batch, dq_batch, dk_batch, dv_batch, dbias_batch, do_head, dq_head, dk_head, dv_head, dbias_head;
};
_Static_assert(sizeof(struct backward_params) == 480, "the struct of the backward kernels");

/* Bytes at up to end of a struct lie back bytes further to the front in the one of 2.11.0. What has no piece is 0. */
struct piece { size_t at, end, back; };

#define OF(field) offsetof(struct forward_params, field)
static const struct piece forward_old[] = {
    { 0, OF(batch_offset), 0 }, { OF(heads), OF(heads_per_kv), 8 }, { OF(dropout), OF(dropout) + 1, 12 },
    { OF(rng_offset), sizeof(struct forward_params), 8 }, { 0, 0, 0 }
};
#undef OF
#define OF(field) offsetof(struct backward_params, field)
static const struct piece backward_old[] = {
    { 0, OF(heads_per_kv), 0 }, { OF(mask), OF(mask) + 1, 4 }, { OF(q_row), OF(batch_offset), 8 }, { OF(splits), OF(splits) + 2, 16 },
    { OF(do_batch), sizeof(struct backward_params), 16 }, { 0, 0, 0 }
};
#undef OF

/* to: the struct of the kernel, bytes of it, from a launch's parameter. */
static void read_params(void *to, size_t bytes, const struct kern *k, const void *from, const struct piece *old)
{
    if (k->k->bytes[0] == bytes) {
        memcpy(to, from, bytes);
        return;
    }
    memset(to, 0, bytes);
    for (; old->end; old++) memcpy((char *)to + old->at, (const char *)from + old->at - old->back, old->end - old->at);
}

static int bind(struct kern *k)
{
    const char *n = k->name.base;
    bool back = !strncmp(n, "fmha_cutlassB", 13);
    enum dtype t = strstr(n, "_bf16_") ? DT_BF16 : strstr(n, "_f16_") ? DT_F16 : strstr(n, "_f32_") ? DT_F32 : DT_NONE;
    if (t == DT_NONE) return -ENOSYS;
    k->t[0] = t;
    size_t bytes = k->k->bytes[0], now = back ? sizeof(struct backward_params) : sizeof(struct forward_params), then = back ? 464 : 272;
    return k->k->n_params == 1 && (bytes == now || bytes == then) ? 0 : -EPROTO;
}

/* 1: causal from the top left corner, 2: from the bottom right one. */
static void set_mask(struct attention *a, int mask, int causal_offset, int window)
{
    a->left = a->right = -1;
    a->shift = mask == 2 ? a->nk - a->nq : mask == 1 ? causal_offset : 0;
    if (mask) a->right = 0;
    if (window > 0) a->left = window - 1;
}

static void forward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct forward_params f;
    read_params(&f, sizeof f, k, p[0], forward_old);
    enum dtype t = k->t[0];
    int64_t es = (int64_t)dtype_bytes(t), lse_rows = ((int64_t)f.nq + 31) / 32 * 32;
    struct philox_seed seed = { 0, 0 };
    if (f.dropout) {
        seed = philox_unpack(f.seed_words);
        if (f.seed_words[3] & 0xff) {
            *f.seed = (int64_t)seed.seed;
            *f.extragraph_offset = (int64_t)seed.offset;
        }
    }
    for (int64_t z = 0; z < l->grid.z; z++)
        for (int64_t y = 0; y < l->grid.y; y++) {
            int64_t batch = z + f.batch_offset, head = y + f.head_offset, kv = head / KERN_MAX(f.heads_per_kv, 1);
            int64_t q0 = f.start_q ? f.start_q[batch] : 0, k0 = f.start_k ? f.start_k[batch] : 0;
            int64_t bq = f.start_q ? 0 : batch * f.q_batch, bk = f.start_k ? 0 : batch * f.k_batch, bv = f.start_k ? 0 : batch * f.v_batch;
            struct attention a = { .t = t, .nq = f.nq, .nk = f.nk, .d = f.d, .dv = f.dv, .scale = f.scale };
            if (f.start_q) a.nq = f.start_q[batch + 1] - f.start_q[batch];
            if (f.start_k) a.nk = f.len_k ? f.len_k[batch] : f.start_k[batch + 1] - f.start_k[batch];
            a.q_row = f.q_row, a.k_row = f.k_row, a.v_row = f.v_row, a.bias_row = f.bias_row, a.o_row = f.o_row;
            a.q = f.q + (bq + q0 * f.q_row + head * f.q_head) * es;
            a.k = f.k + (bk + k0 * f.k_row + kv * f.k_head) * es;
            a.v = f.v + (bv + k0 * f.v_row + kv * f.v_head) * es;
            a.bias = f.bias ? f.bias + (batch * f.bias_batch + head * f.bias_head) * es : NULL;
            a.o = f.o + ((f.start_q ? q0 : batch * f.nq) * f.o_row + head * f.dv) * es;
            a.lse = f.lse ? f.lse + (batch * f.heads + head) * lse_rows : NULL;
            set_mask(&a, f.mask, f.causal_offset, f.window);
            a.drop = f.dropout ? f.drop : 0;
            a.seed = seed.seed;
            a.offset = seed.offset + (uint64_t)((batch * f.heads + head) * f.nq) * (uint64_t)f.nk;
            a.drop_row = a.nk;
            attention_forward(&a);
            if (a.lse)
                for (int64_t i = a.nq; i < lse_rows && !f.start_q; i++) a.lse[i] = INFINITY;
        }
}

static void backward(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    struct backward_params f;
    read_params(&f, sizeof f, k, p[0], backward_old);
    enum dtype t = k->t[0];
    int64_t es = (int64_t)dtype_bytes(t);
    struct philox_seed seed = { 0, 0 };
    if (f.drop > 0) seed = philox_unpack(f.seed_words);
    int64_t m = f.row_multiplier * f.heads;
    for (int64_t z = 0; z < l->grid.z; z++)
        for (int64_t y = 0; y < l->grid.y; y++) {
            int64_t batch = z + f.batch_offset, head = y + f.head_offset, kv = head / KERN_MAX(f.heads_per_kv, 1);
            int64_t q0 = f.start_q ? f.start_q[batch] : 0, k0 = f.start_k ? f.start_k[batch] : 0, b = f.start_q ? 0 : batch;
            struct attention a = { .t = t, .out_t = t, .dq_t = t, .nq = f.nq, .nk = f.nk, .d = f.d, .dv = f.d_value, .scale = f.scale };
            if (f.start_q) a.nq = f.start_q[batch + 1] - f.start_q[batch];
            if (f.start_k) a.nk = f.start_k[batch + 1] - f.start_k[batch];
            a.q_row = f.q_row, a.k_row = f.k_row, a.v_row = f.v_row, a.bias_row = f.bias_row, a.do_row = f.do_row, a.dbias_row = f.dbias_row;
            a.o_row = (int64_t)f.d_value * f.heads;
            a.dq_row = a.dk_row = m * f.d, a.dv_row = m * f.d_value;
            a.q = f.q + (b * f.q_batch + q0 * f.q_row + head * f.q_head) * es;
            a.k = f.k + (b * f.k_batch + k0 * f.k_row + kv * f.k_head) * es;
            a.v = f.v + (b * f.v_batch + k0 * f.v_row + kv * f.v_head) * es;
            a.bias = f.bias ? f.bias + (batch * f.bias_batch + head * f.bias_head) * es : NULL;
            a.o = (char *)(uintptr_t)f.o + (b * f.o_batch + q0 * a.o_row + head * f.o_head) * es;
            a.dout = f.dout + (b * f.do_batch + q0 * f.do_row + head * f.do_head) * es;
            a.dq = f.dq + (b * f.dq_batch + q0 * a.dq_row + head * f.dq_head) * es;
            a.dk = f.dk + (b * f.dk_batch + k0 * a.dk_row + head * f.dk_head) * es;
            a.dv_out = f.dv + (b * f.dv_batch + k0 * a.dv_row + head * f.dv_head) * es;
            a.dbias = f.dbias ? f.dbias + (batch * f.dbias_batch + head * f.dbias_head) * es : NULL;
            a.lse = (float *)(uintptr_t)(f.lse + batch * f.lse_batch + head * f.lse_head);
            a.delta = f.delta + b * f.delta_batch + q0 + head * f.delta_head;
            a.compute_delta = t != DT_F32;
            set_mask(&a, f.mask, 0, f.window);
            a.drop = f.drop;
            a.seed = seed.seed;
            a.offset = seed.offset + (uint64_t)((batch * f.heads + head) * f.nq) * (uint64_t)f.nk;
            a.drop_row = f.nk;
            attention_backward(&a);
        }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    uint64_t nq, nk, d, dv, heads = (uint64_t)l->grid.y * l->grid.z, es = dtype_bytes(k->t[0]);
    bool back = k->row->run == backward;
    if (back) {
        const struct backward_params *f = p[0];
        nq = (uint64_t)f->nq, nk = (uint64_t)f->nk, d = (uint64_t)f->d, dv = (uint64_t)f->d_value;
    } else {
        const struct forward_params *f = p[0];
        nq = (uint64_t)f->nq, nk = (uint64_t)f->nk, d = (uint64_t)f->d, dv = (uint64_t)f->dv;
    }
    *flops = heads * nq * nk * (d + dv) * (back ? 5 : 2);
    *bytes = heads * es * (nq * (d + dv) + nk * (d + dv)) * (back ? 2 : 1);
}

const struct kern_row fmha_rows[] = {
    { "fmha_cutlassF_*", NULL, forward, cost, bind },
    { "fmha_cutlassB_*", NULL, backward, cost, bind },
    KERN_END
};
