/*
 * Attention for one head: o = dropout(softmax(scale q k' + bias, masked)) v, its gradient, row by row.
 *   p = exp(s - lse)   dv = (p z)' do   dp = z (do v')   ds = p (dp - delta)   dq = scale ds k   dk = scale ds' q
 * z is 0 or 1 / (1 - dropout). Rao, FlashAttention (Dao et al., NeurIPS 2022), appendix B. Computed in float; rows of keys are
 * transposed once so that the inner loops run along keys.
 */
#ifndef SIMCUDA_ATTENTION_H
#define SIMCUDA_ATTENTION_H

#include "tests/simcuda/kernels/kern.h"

struct attention {
    enum dtype t, out_t;              /* of q, k, v, o, do; of the gradients */
    int nq, nk, d, dv;
    const void *q, *k, *v, *bias;     /* the head's first elements; bias NULL: none */
    int64_t q_row, k_row, v_row, bias_row, o_row, do_row, dq_row, dk_row, dv_row, dbias_row; /* elements between rows */
    float scale, slope;               /* slope: of ALiBi, 0 none */
    int left, right;                  /* query i sees keys i + shift - left .. i + shift + right; negative: no bound */
    int shift;
    float softcap;                    /* 0: none */
    float *lse;                       /* per query; NULL: not kept */
    float drop;                       /* probability of dropping; 0: none */
    uint64_t seed, offset;            /* element (i, j) has number offset + i * drop_row + j */
    int64_t drop_row;
    void *o;
    /* backward */
    const void *dout;
    float *delta;                     /* sum over d of do * o */
    bool compute_delta;
    void *dq, *dk, *dv_out, *dbias;   /* dk, dv_out: rows of this head; dbias NULL: not wanted */
    bool dk_add;                      /* added to what is there (heads that share keys) */
    bool negative_lse_empty;          /* a row without keys has lse of plus infinity, and o of 0 */
};

void attention_forward(const struct attention *a);
void attention_backward(const struct attention *a);

#endif
