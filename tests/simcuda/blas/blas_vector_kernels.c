/* Vectors, matrix times vector, triangular solves, as device code. */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/blas/blas_abi.h"
#include "tests/simcuda/blas/blas_convert.h"
#include "tests/simcuda/blas/blas_kernels.h"

/* One call for each of the four types; S and D take factors by value, C and Z by address. */
#define FOUR(s, d, c, z)                                                                                               \
    switch (p->type) {                                                                                                 \
    case CUDA_R_64F: d; break;                                                                                         \
    case CUDA_C_32F: c; break;                                                                                         \
    case CUDA_C_64F: z; break;                                                                                         \
    default: s;                                                                                                        \
    }

struct operands {
    const struct blas_vector_params *p;
    void *a, *x, *y;
    double zal[2], zbe[2];
    float cal[2], cbe[2];
    int incx, incy, lda;
};

/* Half-precision vectors: their product in float, rounded once. */
static void dot_of_halves(const struct blas_vector_params *p, const char *x, const char *y, void *result)
{
    float *v = malloc(2 * (size_t)(p->n ? p->n : 1) * sizeof *v), *w = v + p->n, r;
    size_t step_x = (size_t)p->incx * blas_type_bytes(p->type), step_y = (size_t)p->incy * blas_type_bytes(p->y_type);

    for (int i = 0; i < p->n; i++) {
        blas_widen(p->type, x + (size_t)i * step_x, v + i, 1);
        blas_widen(p->y_type, y + (size_t)i * step_y, w + i, 1);
    }
    r = cblas_sdot(p->n, v, 1, w, 1);
    blas_narrow(p->result_type, &r, result, 1);
    free(v);
}

static void dot(const struct operands *o)
{
    const struct blas_vector_params *p = o->p;
    void *r = (void *)(uintptr_t)p->result;
    int n = p->n, conj = p->op == CUBLAS_OP_C;

    if (p->type == CUDA_R_16F || p->type == CUDA_R_16BF) {
        dot_of_halves(p, o->x, o->y, r);
        return;
    }
    FOUR(*(float *)r = cblas_sdot(n, o->x, o->incx, o->y, o->incy),
         *(double *)r = cblas_ddot(n, o->x, o->incx, o->y, o->incy),
         (conj ? cblas_cdotc_sub : cblas_cdotu_sub)(n, o->x, o->incx, o->y, o->incy, r),
         (conj ? cblas_zdotc_sub : cblas_zdotu_sub)(n, o->x, o->incx, o->y, o->incy, r))
}

static void nrm2_or_asum(const struct operands *o)
{
    const struct blas_vector_params *p = o->p;
    void *r = (void *)(uintptr_t)p->result;
    int n = p->n;

    if (p->routine == BLAS_NRM2)
        FOUR(*(float *)r = cblas_snrm2(n, o->x, o->incx), *(double *)r = cblas_dnrm2(n, o->x, o->incx),
             *(float *)r = cblas_scnrm2(n, o->x, o->incx), *(double *)r = cblas_dznrm2(n, o->x, o->incx))
    else
        FOUR(*(float *)r = cblas_sasum(n, o->x, o->incx), *(double *)r = cblas_dasum(n, o->x, o->incx),
             *(float *)r = cblas_scasum(n, o->x, o->incx), *(double *)r = cblas_dzasum(n, o->x, o->incx))
}

static void level1(const struct operands *o)
{
    const struct blas_vector_params *p = o->p;
    int n = p->n, ix = o->incx, iy = o->incy;

    switch (p->routine) {
    case BLAS_DOT: dot(o); break;
    case BLAS_NRM2:
    case BLAS_ASUM: nrm2_or_asum(o); break;
    case BLAS_AXPY:
        FOUR(cblas_saxpy(n, o->cal[0], o->x, ix, o->y, iy), cblas_daxpy(n, o->zal[0], o->x, ix, o->y, iy),
             cblas_caxpy(n, o->cal, o->x, ix, o->y, iy), cblas_zaxpy(n, o->zal, o->x, ix, o->y, iy))
        break;
    case BLAS_SCAL:
        FOUR(cblas_sscal(n, o->cal[0], o->x, ix), cblas_dscal(n, o->zal[0], o->x, ix), cblas_cscal(n, o->cal, o->x, ix),
             cblas_zscal(n, o->zal, o->x, ix))
        break;
    case BLAS_COPY:
        FOUR(cblas_scopy(n, o->x, ix, o->y, iy), cblas_dcopy(n, o->x, ix, o->y, iy), cblas_ccopy(n, o->x, ix, o->y, iy),
             cblas_zcopy(n, o->x, ix, o->y, iy))
        break;
    default:
        FOUR(cblas_sswap(n, o->x, ix, o->y, iy), cblas_dswap(n, o->x, ix, o->y, iy), cblas_cswap(n, o->x, ix, o->y, iy),
             cblas_zswap(n, o->x, ix, o->y, iy))
    }
}

static void level2(const struct operands *o)
{
    const struct blas_vector_params *p = o->p;
    int m = p->m, n = p->n, ix = o->incx, iy = o->incy, lda = o->lda;
    int op = p->op == CUBLAS_OP_N ? CblasNoTrans : p->op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
    int conj = p->op == CUBLAS_OP_C;

    if (p->routine == BLAS_GEMV)
        FOUR(cblas_sgemv(CblasColMajor, op, m, n, o->cal[0], o->a, lda, o->x, ix, o->cbe[0], o->y, iy),
             cblas_dgemv(CblasColMajor, op, m, n, o->zal[0], o->a, lda, o->x, ix, o->zbe[0], o->y, iy),
             cblas_cgemv(CblasColMajor, op, m, n, o->cal, o->a, lda, o->x, ix, o->cbe, o->y, iy),
             cblas_zgemv(CblasColMajor, op, m, n, o->zal, o->a, lda, o->x, ix, o->zbe, o->y, iy))
    else
        FOUR(cblas_sger(CblasColMajor, m, n, o->cal[0], o->x, ix, o->y, iy, o->a, lda),
             cblas_dger(CblasColMajor, m, n, o->zal[0], o->x, ix, o->y, iy, o->a, lda),
             (conj ? cblas_cgerc : cblas_cgeru)(CblasColMajor, m, n, o->cal, o->x, ix, o->y, iy, o->a, lda),
             (conj ? cblas_zgerc : cblas_zgeru)(CblasColMajor, m, n, o->zal, o->x, ix, o->y, iy, o->a, lda))
}

static void trsm(const struct operands *o, void *a, void *b)
{
    const struct blas_vector_params *p = o->p;
    int side = p->side == CUBLAS_SIDE_LEFT ? CblasLeft : CblasRight;
    int fill = p->fill == CUBLAS_FILL_MODE_LOWER ? CblasLower : CblasUpper;
    int op = p->op == CUBLAS_OP_N ? CblasNoTrans : p->op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
    int diag = p->diag == CUBLAS_DIAG_UNIT ? CblasUnit : CblasNonUnit;
    int m = p->m, n = p->n, lda = o->lda, ldb = o->incx;

    FOUR(cblas_strsm(CblasColMajor, side, fill, op, diag, m, n, o->cal[0], a, lda, b, ldb),
         cblas_dtrsm(CblasColMajor, side, fill, op, diag, m, n, o->zal[0], a, lda, b, ldb),
         cblas_ctrsm(CblasColMajor, side, fill, op, diag, m, n, o->cal, a, lda, b, ldb),
         cblas_ztrsm(CblasColMajor, side, fill, op, diag, m, n, o->zal, a, lda, b, ldb))
}

void blas_vector_run(const simgpu_launch *l, void *const *params)
{
    const struct blas_vector_params *p = params[0];
    struct operands o = { .p = p, .a = (void *)(uintptr_t)p->a, .x = (void *)(uintptr_t)p->x,
                          .y = (void *)(uintptr_t)p->y, .incx = (int)p->incx, .incy = (int)p->incy, .lda = (int)p->lda };

    (void)l;
    blas_factor(p->alpha_at, p->alpha, p->scale_type, o.zal);
    blas_factor(p->beta_at, p->beta, p->scale_type, o.zbe);
    for (int i = 0; i < 2; i++)
        o.cal[i] = (float)o.zal[i], o.cbe[i] = (float)o.zbe[i];
    if (p->routine == BLAS_GEMV || p->routine == BLAS_GER)
        level2(&o);
    else if (p->routine != BLAS_TRSM)
        level1(&o);
    else if (!p->batch)
        trsm(&o, o.a, o.x);
    else
        for (int i = 0; i < p->batch; i++)
            trsm(&o, ((void **)o.a)[i], ((void **)o.x)[i]);
}

void blas_vector_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    const struct blas_vector_params *p = params[0];
    uint64_t element = blas_type_bytes(p->type), n = (uint64_t)p->n, m = (uint64_t)p->m, count = p->batch ? (uint64_t)p->batch : 1;

    (void)l;
    if (p->routine == BLAS_GEMV || p->routine == BLAS_GER) {
        *flops = 2 * m * n;
        *bytes = element * m * n;
    } else if (p->routine == BLAS_TRSM) {
        uint64_t side = p->side == CUBLAS_SIDE_LEFT ? m : n;
        *flops = count * m * n * side;
        *bytes = count * element * (side * side / 2 + 2 * m * n);
    } else {
        *flops = 2 * n;
        *bytes = 2 * n * element;
    }
}
