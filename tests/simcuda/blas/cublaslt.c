/*
 * cuBLASLt: descriptors, layouts, preferences, the one algorithm that the heuristic offers, and the matmul itself. Descriptors are
 * ours alone: a caller sets them through the attribute calls.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/blas/blas_gemm.h"

struct lt_desc {
    int32_t compute, scale_type, pointer_mode, ta, tb, epilogue, bias_type, aux_type;
    uint64_t bias, aux;
    int64_t bias_stride, aux_ld, aux_stride;
};
struct lt_layout {
    int32_t type, order, batch;
    uint64_t rows, cols;
    int64_t ld, stride;
};
struct lt_preference { size_t workspace_bytes; };

typedef struct lt_desc *cublasLtMatmulDesc_t;
typedef struct lt_layout *cublasLtMatrixLayout_t;
typedef struct lt_preference *cublasLtMatmulPreference_t;

/* An algorithm as we write it into the caller's 64 bytes. */
struct lt_algo { uint32_t magic; int32_t splits; };
#define ALGO_MAGIC 0x534d4c54u

cublasStatus_t cublasLtCreate(cublasLtHandle_t *h);
cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
    if (!h)
        return CUBLAS_STATUS_INVALID_VALUE;
    *h = calloc(1, 64);
    return *h ? blas_driver_ready() : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return BLAS_VERSION;
}

/* ---- descriptors --------------------------------------------------------------------------------------------- */
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType scale);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType scale)
{
    if (!d)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!(*d = calloc(1, sizeof **d)))
        return CUBLAS_STATUS_ALLOC_FAILED;
    **d = (struct lt_desc){ .compute = compute, .scale_type = scale, .epilogue = LT_EPILOGUE_NOTHING, .bias_type = -1,
                            .aux_type = -1 };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

/* A field of an object by the number of its attribute. */
struct field { int attribute; size_t at, bytes; };
#define FIELD(attribute, type, member) { attribute, offsetof(type, member), sizeof(((type *)0)->member) }

static const struct field DESC_FIELD[] = {
    FIELD(LT_DESC_COMPUTE_TYPE, struct lt_desc, compute),   FIELD(LT_DESC_SCALE_TYPE, struct lt_desc, scale_type),
    FIELD(LT_DESC_POINTER_MODE, struct lt_desc, pointer_mode), FIELD(LT_DESC_TRANSA, struct lt_desc, ta),
    FIELD(LT_DESC_TRANSB, struct lt_desc, tb),              FIELD(LT_DESC_EPILOGUE, struct lt_desc, epilogue),
    FIELD(LT_DESC_BIAS_POINTER, struct lt_desc, bias),      FIELD(LT_DESC_BIAS_BATCH_STRIDE, struct lt_desc, bias_stride),
    FIELD(LT_DESC_AUX_POINTER, struct lt_desc, aux),        FIELD(LT_DESC_AUX_LD, struct lt_desc, aux_ld),
    FIELD(LT_DESC_AUX_BATCH_STRIDE, struct lt_desc, aux_stride), FIELD(LT_DESC_AUX_DATA_TYPE, struct lt_desc, aux_type),
    FIELD(LT_DESC_BIAS_DATA_TYPE, struct lt_desc, bias_type),
};
static const struct field LAYOUT_FIELD[] = {
    FIELD(LT_LAYOUT_TYPE, struct lt_layout, type),         FIELD(LT_LAYOUT_ORDER, struct lt_layout, order),
    FIELD(LT_LAYOUT_ROWS, struct lt_layout, rows),         FIELD(LT_LAYOUT_COLS, struct lt_layout, cols),
    FIELD(LT_LAYOUT_LD, struct lt_layout, ld),             FIELD(LT_LAYOUT_BATCH_COUNT, struct lt_layout, batch),
    FIELD(LT_LAYOUT_BATCH_STRIDE, struct lt_layout, stride),
};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static cublasStatus_t set_field(const struct field *f, size_t n, void *object, int attribute, const void *v, size_t bytes)
{
    if (!object || !v)
        return CUBLAS_STATUS_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (f[i].attribute == attribute) {
            if (bytes < f[i].bytes)
                return CUBLAS_STATUS_INVALID_VALUE;
            memcpy((char *)object + f[i].at, v, f[i].bytes);
            return CUBLAS_STATUS_SUCCESS;
        }
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, int attribute, const void *v, size_t bytes);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, int attribute, const void *v, size_t bytes)
{
    /* hints that change no result; and what asks for nothing when it is 0 */
    if (attribute == LT_DESC_SM_COUNT_TARGET || attribute == LT_DESC_FAST_ACCUM)
        return CUBLAS_STATUS_SUCCESS;
    if ((attribute == LT_DESC_TRANSC || attribute == LT_DESC_FILL_MODE) && v && bytes >= 4)
        return *(const int32_t *)v == (attribute == LT_DESC_TRANSC ? CUBLAS_OP_N : 2)
                   ? CUBLAS_STATUS_SUCCESS
                   : blas_refuse("cublasLtMatmul with op(c) or a triangle");
    if (set_field(DESC_FIELD, COUNT(DESC_FIELD), d, attribute, v, bytes) != CUBLAS_STATUS_NOT_SUPPORTED)
        return CUBLAS_STATUS_SUCCESS;
    return blas_refuse("an attribute of cublasLtMatmul (scales of 8-bit types, say)");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
    if (!l)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!(*l = calloc(1, sizeof **l)))
        return CUBLAS_STATUS_ALLOC_FAILED;
    **l = (struct lt_layout){ .type = type, .order = LT_ORDER_COL, .batch = 1, .rows = rows, .cols = cols, .ld = ld };
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, int attribute, const void *v, size_t bytes);
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, int attribute, const void *v, size_t bytes)
{
    cublasStatus_t rc = set_field(LAYOUT_FIELD, COUNT(LAYOUT_FIELD), l, attribute, v, bytes);
    return rc == CUBLAS_STATUS_NOT_SUPPORTED ? blas_refuse("an attribute of a cublasLt layout") : rc;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    if (!p)
        return CUBLAS_STATUS_INVALID_VALUE;
    *p = calloc(1, sizeof **p);
    return *p ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, int attribute, const void *v, size_t bytes);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, int attribute, const void *v, size_t bytes)
{
    if (!p || !v)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (attribute == LT_PREF_MAX_WORKSPACE_BYTES && bytes >= sizeof(uint64_t)) {
        uint64_t n;
        memcpy(&n, v, sizeof n);
        p->workspace_bytes = (size_t)n;
    }
    return CUBLAS_STATUS_SUCCESS; /* the others narrow a search among algorithms; there is one */
}

/* ---- the matmul ---------------------------------------------------------------------------------------------- */
static cublasStatus_t fill(struct blas_gemm_params *p, const struct lt_desc *d, const struct lt_layout *a,
                           const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *out)
{
    int rows_only = a->order == LT_ORDER_COL && b->order == LT_ORDER_COL && c->order == LT_ORDER_COL && out->order == LT_ORDER_COL;

    if (!rows_only)
        return blas_refuse("cublasLtMatmul with an order other than by columns");
    if (out->rows > INT32_MAX || out->cols > INT32_MAX || a->rows > INT32_MAX || a->cols > INT32_MAX)
        return CUBLAS_STATUS_INVALID_VALUE;
    *p = (struct blas_gemm_params){
        .a = { 0, a->ld, a->stride, a->type, d->ta },      .b = { 0, b->ld, b->stride, b->type, d->tb },
        .c = { 0, c->ld, c->stride, c->type, 0 },          .d = { 0, out->ld, out->stride, out->type, 0 },
        .m = (int32_t)out->rows, .n = (int32_t)out->cols,  .k = (int32_t)(d->ta ? a->rows : a->cols),
        .batch = out->batch, .epilogue = d->epilogue,      .scale_type = d->scale_type,
        .bias_type = d->bias_type < 0 ? out->type : d->bias_type,
        .aux_type = d->aux_type < 0 ? out->type : d->aux_type,
    };
    if ((d->ta ? a->cols : a->rows) != out->rows || (d->tb ? b->rows : b->cols) != out->cols ||
        (d->tb ? b->cols : b->rows) != (uint64_t)p->k || c->rows != out->rows || c->cols != out->cols)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (blas_scale_type(d->compute, a->type) < 0 || d->scale_type != blas_scale_type(d->compute, a->type))
        return blas_refuse("cublasLtMatmul with this compute type");
    if (d->epilogue < LT_EPILOGUE_NOTHING || d->epilogue > LT_EPILOGUE_ALL)
        return blas_refuse("this epilogue of cublasLtMatmul");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    struct blas_gemm_params p;
    struct lt_algo algo = { ALGO_MAGIC, 1 };
    cublasStatus_t rc;

    (void)h;
    if (!d || !a || !b || !c || !out || !preference || !results || !found || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    *found = 0;
    if ((rc = fill(&p, d, a, b, c, out)))
        return rc;
    memset(results, 0, sizeof *results);
    algo.splits = blas_gemm_splits(&p, preference->workspace_bytes, &results->workspaceSize);
    memcpy(&results->algo, &algo, sizeof algo);
    results->state = CUBLAS_STATUS_SUCCESS;
    results->wavesCount = 1;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t h, cublasComputeType_t compute, cudaDataType scale, cudaDataType a,
                                      cudaDataType b, cudaDataType c, cudaDataType d, int id, cublasLtMatmulAlgo_t *algo);
cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t h, cublasComputeType_t compute, cudaDataType scale, cudaDataType a,
                                      cudaDataType b, cudaDataType c, cudaDataType d, int id, cublasLtMatmulAlgo_t *algo)
{
    struct lt_algo ours = { ALGO_MAGIC, 1 };

    (void)h, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!algo || id != 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(algo, 0, sizeof *algo);
    memcpy(algo, &ours, sizeof ours);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result);
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                       const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
    struct blas_gemm_params p;
    struct lt_algo ours;
    cublasStatus_t rc;

    (void)h;
    if (!d || !a || !b || !c || !out || !algo || !result)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&ours, algo, sizeof ours);
    if (ours.magic != ALGO_MAGIC)
        return CUBLAS_STATUS_INVALID_VALUE;
    if ((rc = fill(&p, d, a, b, c, out)))
        return rc;
    memset(result, 0, sizeof *result);
    result->algo = *algo;
    result->wavesCount = 1;
    blas_gemm_splits(&p, SIZE_MAX, &result->workspaceSize);
    if (ours.splits == 1)
        result->workspaceSize = 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo, int attribute, void *v, size_t bytes,
                                                    size_t *written);
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo, int attribute, void *v, size_t bytes,
                                                    size_t *written)
{
    struct lt_algo ours;
    int32_t value = 0;

    if (!algo)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&ours, algo, sizeof ours);
    if (attribute == LT_ALGO_CONFIG_SPLITK_NUM)
        value = ours.splits;
    if (written)
        *written = sizeof value;
    if (v && bytes < sizeof value)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (v)
        memcpy(v, &value, sizeof value);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo, int attribute, const void *v, size_t bytes);
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo, int attribute, const void *v, size_t bytes)
{
    (void)algo, (void)attribute, (void)v, (void)bytes;
    return blas_refuse("cublasLtMatmulAlgoConfigSetAttribute");
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t lout,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t lout,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    struct blas_gemm_params p;
    struct lt_algo ours = { ALGO_MAGIC, 0 };
    cublasStatus_t rc;

    (void)h;
    if (!d || !la || !lb || !lc || !lout || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if ((rc = fill(&p, d, la, lb, lc, lout)))
        return rc;
    p.a.at = (uint64_t)(uintptr_t)a;
    p.b.at = (uint64_t)(uintptr_t)b;
    p.d.at = (uint64_t)(uintptr_t)out;
    blas_set_factor(alpha, d->pointer_mode, d->scale_type, &p.alpha_at, p.alpha);
    blas_set_factor(beta, d->pointer_mode, d->scale_type, &p.beta_at, p.beta);
    if (p.beta_at || p.beta[0] != 0 || p.beta[1] != 0)
        p.c.at = (uint64_t)(uintptr_t)c;
    if (d->epilogue & (LT_EPILOGUE_BIAS | LT_EPILOGUE_BGRAD | LT_EPILOGUE_BGRADA | LT_EPILOGUE_BGRADB))
        p.bias = d->bias, p.bias_stride = d->bias_stride;
    if (d->epilogue & LT_EPILOGUE_AUX)
        p.aux = d->aux, p.aux_ld = d->aux_ld, p.aux_stride = d->aux_stride;
    if ((d->epilogue != LT_EPILOGUE_NOTHING && (la->type == CUDA_C_32F || la->type == CUDA_C_64F)) ||
        (p.bias_type != p.d.type && p.bias) || (p.aux_type != p.d.type && p.aux && p.d.type == CUDA_R_64F))
        return blas_refuse("cublasLtMatmul with an epilogue of these types");
    if (algo)
        memcpy(&ours, algo, sizeof ours);
    if (ours.magic != ALGO_MAGIC)
        return CUBLAS_STATUS_INVALID_VALUE;
    /* the heuristic chose with the room that it was told of; an algorithm without split takes none */
    if (ours.splits == 1)
        workspace_bytes = 0;
    return blas_gemm_launch(&p, workspace_bytes ? (uint64_t)(uintptr_t)workspace : 0, workspace_bytes, stream);
}
