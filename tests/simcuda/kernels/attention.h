/*
 * Attention for one head: o = dropout(softmax(scale q k' + bias, masked)) v, its gradient, row by row.
 *   p = exp(s - lse)   dv = (p z)' do   dp = z (do v')   ds = p (dp - delta)   dq = scale ds k   dk = scale ds' q
 * z is 0 or 1 / (1 - dropout). FlashAttention (Dao et al., NeurIPS 2022), appendix B. Computed in float; rows of keys are
 * transposed once so that the inner loops run along keys.
 */
#ifndef SIMCUDA_ATTENTION_H
#define SIMCUDA_ATTENTION_H

#include "tests/simcuda/kernels/kern.h"

struct attention {
    enum dtype t, out_t, dq_t;        /* of q, k, v, o, do; of the gradients of k and v; of that of q */
    int nq, nk, d, dv;
    const void *q, *k, *v, *bias;     /* the head's first elements; bias NULL: none */
    int64_t q_row, k_row, v_row, bias_row, o_row, do_row, dq_row, dk_row, dv_row, dbias_row; /* elements between rows */
    float scale, slope;               /* slope: of ALiBi, 0 none */
    int left, right;                  /* query i sees keys i + shift - left .. i + shift + right; negative: no bound */
    int shift;
    float softcap;                    /* 0: none */
    float *lse;                       /* per query; NULL: not kept */
    float drop;                       /* probability of dropping; 0: none */
    uint64_t seed, sub, offset;       /* element (i, j) has number offset + i * drop_row + j of subsequence sub */
    int64_t drop_row;
    void *o;
    enum dtype o_t;                   /* forward: of o; DT_NONE: t */
    float delta_scale;                /* backward: delta is kept divided by this; 0 stands for 1 */
    /* backward */
    const void *dout;
    float *delta;                     /* sum over d of do * o */
    bool compute_delta;
    void *dq, *dk, *dv_out, *dbias;   /* dk, dv_out: rows of this head; dbias NULL: not wanted */
    float dq_scale;                   /* dq is stored times this; 0 stands for 1 */
    bool empty_is_inf;                /* a row that sees no key has lse plus infinity, not minus */
};

void attention_forward(const struct attention *a);
void attention_backward(const struct attention *a);

#endif
