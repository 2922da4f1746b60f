/* cuBLAS: handles and what is set in them. */
#include "tests/simcuda/blas/cublas_handle.h"

#include <stdlib.h>

#include "tests/simcuda/blas/blas_driver.h"
#include "tests/simcuda/blas/cublas.h"

cublasStatus_t cublasCreate_v2(cublasHandle_t *h)
{
    cublasStatus_t rc;

    if (!h)
        return CUBLAS_STATUS_INVALID_VALUE;
    if ((rc = blas_driver_ready()))
        return rc;
    *h = calloc(1, sizeof **h);
    return *h ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h)
{
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    blas_scalar_free(h->scalar);
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

#define SETTER(name, type, field)                                                                                      \
    cublasStatus_t name(cublasHandle_t h, type v);                                                                     \
    cublasStatus_t name(cublasHandle_t h, type v)                                                                      \
    {                                                                                                                  \
        if (!h)                                                                                                        \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        h->field = v;                                                                                                  \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
#define GETTER(name, type, field)                                                                                      \
    cublasStatus_t name(cublasHandle_t h, type *v);                                                                    \
    cublasStatus_t name(cublasHandle_t h, type *v)                                                                     \
    {                                                                                                                  \
        if (!h)                                                                                                        \
            return CUBLAS_STATUS_NOT_INITIALIZED;                                                                      \
        if (!v)                                                                                                        \
            return CUBLAS_STATUS_INVALID_VALUE;                                                                        \
        *v = h->field;                                                                                                 \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }
SETTER(cublasSetPointerMode_v2, int, pointer_mode)
GETTER(cublasGetPointerMode_v2, int, pointer_mode)
SETTER(cublasSetMathMode, int, math_mode)
GETTER(cublasGetMathMode, int, math_mode)
SETTER(cublasSetAtomicsMode, int, atomics_mode)
GETTER(cublasGetAtomicsMode, int, atomics_mode)
SETTER(cublasSetSmCountTarget, int, sm_count_target)
GETTER(cublasGetSmCountTarget, int, sm_count_target)
GETTER(cublasGetStream_v2, cudaStream_t, stream)

/* Setting a stream takes the workspace back, as cuBLAS documents it: a caller sets it again. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream)
{
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    h->stream = stream;
    h->workspace = 0, h->workspace_bytes = 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *workspace, size_t bytes)
{
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((uintptr_t)workspace % 256)
        return CUBLAS_STATUS_INVALID_VALUE;
    h->workspace = (uint64_t)(uintptr_t)workspace;
    h->workspace_bytes = workspace ? bytes : 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t h, int *version)
{
    (void)h;
    if (!version)
        return CUBLAS_STATUS_INVALID_VALUE;
    *version = BLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusName(cublasStatus_t s)
{
    switch (s) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_UNKNOWN";
    }
}

const char *cublasGetStatusString(cublasStatus_t s)
{
    return cublasGetStatusName(s);
}
