#include "tests/simcuda/blas/blas_gemm.h"

#include <string.h>

#include "tests/simcuda/blas/blas_convert.h"

/* Cut k where a device would run out of blocks to keep it busy: a small result of a long sum. */
enum { SPLIT_FROM_K = 1024, SPLIT_PART_K = 512, SPLIT_MOST = 8, TILE = 64 };

static int is_complex(int type)
{
    return type == CUDA_C_32F || type == CUDA_C_64F;
}

int blas_gemm_splits(const struct blas_gemm_params *p, size_t workspace_bytes, size_t *need_bytes)
{
    int longest = p->m > p->n ? p->m : p->n;
    size_t one = (size_t)p->m * (size_t)p->n * (size_t)p->batch * (p->a.type == CUDA_R_64F ? 8 : 4);
    int splits = p->k / SPLIT_PART_K < SPLIT_MOST ? p->k / SPLIT_PART_K : SPLIT_MOST;

    *need_bytes = 0;
    if (is_complex(p->a.type) || p->k < SPLIT_FROM_K || p->k / 4 < longest)
        return 1;
    if (one && workspace_bytes / one < (size_t)splits)
        splits = (int)(workspace_bytes / one);
    if (splits < 2)
        return 1;
    *need_bytes = one * (size_t)splits;
    return splits;
}

static int types_known(const struct blas_gemm_params *p)
{
    int a = p->a.type, d = p->d.type;

    if (a != p->b.type || p->c.type != d || !blas_type_bytes(a))
        return 0;
    if (a == d)
        return 1;
    return (a == CUDA_R_16F || a == CUDA_R_16BF) && d == CUDA_R_32F;
}

static int sizes_ok(const struct blas_gemm_params *p)
{
    int64_t rows_a = p->a.op ? p->k : p->m, rows_b = p->b.op ? p->n : p->k;

    return p->m >= 0 && p->n >= 0 && p->k >= 0 && p->batch >= 0 && p->a.ld >= (rows_a > 1 ? rows_a : 1) &&
           p->b.ld >= (rows_b > 1 ? rows_b : 1) && p->d.ld >= (p->m > 1 ? p->m : 1) &&
           p->c.ld >= (p->m > 1 ? p->m : 1) && p->a.ld <= INT32_MAX && p->b.ld <= INT32_MAX && p->d.ld <= INT32_MAX;
}

struct names { int type; const char *whole, *split, *reduce; };
#define NAMES(type, letter)                                                                                            \
    { type, "simblas_" letter "gemm", "simblas_" letter "gemm_splitk", "simblas_" letter "gemm_splitk_reduce" }
static const struct names NAME[] = {
    NAMES(CUDA_R_32F, "s"), NAMES(CUDA_R_64F, "d"), NAMES(CUDA_C_32F, "c"),
    NAMES(CUDA_C_64F, "z"), NAMES(CUDA_R_16F, "h"), NAMES(CUDA_R_16BF, "bf16"),
};

cublasStatus_t blas_gemm_launch(struct blas_gemm_params *p, uint64_t workspace, size_t workspace_bytes, cudaStream_t stream)
{
    const struct names *name = NAME;
    struct blas_grid grid = { (unsigned)(p->m + TILE - 1) / TILE, (unsigned)(p->n + TILE - 1) / TILE, (unsigned)p->batch };
    cublasStatus_t rc;
    size_t need;

    if (!types_known(p))
        return blas_refuse("a matmul of these element types");
    if (!sizes_ok(p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!p->m || !p->n || !p->batch)
        return CUBLAS_STATUS_SUCCESS;
    while (name->type != p->a.type)
        name++;
    if (grid.y > 65535)
        grid.y = 65535; /* the grid tells the launch's size; the kernel goes by m, n and batch */
    if (grid.z > 65535)
        grid.z = 65535;
    p->splits = blas_gemm_splits(p, workspace ? workspace_bytes : 0, &need);
    p->workspace = p->splits > 1 ? workspace : 0;
    if (p->splits == 1)
        return blas_launch(name->whole, grid, 128, p, stream);
    rc = blas_launch(name->split, grid, 128, p, stream);
    if (!rc)
        rc = blas_launch(name->reduce, grid, 128, p, stream);
    return rc;
}

int blas_scale_type(cublasComputeType_t compute, int a_type)
{
    switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_EMULATED_16BFX9: return is_complex(a_type) ? CUDA_C_32F : CUDA_R_32F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
    case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT: return is_complex(a_type) ? CUDA_C_64F : CUDA_R_64F;
    default: return -1;
    }
}

void blas_set_factor(const void *factor, int on_device, int scale_type, uint64_t *at, double held[2])
{
    float f[2] = { 0, 0 };

    *at = 0, held[0] = held[1] = 0;
    if (!factor)
        return;
    if (on_device) {
        *at = (uint64_t)(uintptr_t)factor;
        held[0] = 1; /* what it is shows on the device alone: costs and copies reckon with any */
        return;
    }
    switch (scale_type) {
    case CUDA_R_64F: held[0] = *(const double *)factor; break;
    case CUDA_C_64F: memcpy(held, factor, 2 * sizeof *held); break;
    case CUDA_C_32F: memcpy(f, factor, sizeof f), held[0] = f[0], held[1] = f[1]; break;
    default: blas_widen(scale_type, factor, f, 1), held[0] = f[0];
    }
}
