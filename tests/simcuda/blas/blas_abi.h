/*
 * The interfaces of cuBLAS and cuBLASLt 13, as far as these libraries answer them: numbers of enumerations and layouts of
 * structs that cross the interface, from the public headers. Nothing here runs; no errors.
 */
#ifndef BLAS_ABI_H
#define BLAS_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int cublasStatus_t;
enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
typedef int cublasOperation_t;
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };
enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };

typedef int cudaDataType;
enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_C_32F = 4, CUDA_C_64F = 5, CUDA_R_16BF = 14 };

typedef int cublasComputeType_t;
enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_16F_PEDANTIC = 65,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_64F_PEDANTIC = 71,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUBLAS_COMPUTE_32F_EMULATED_16BFX9 = 78,
    CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT = 79,
};

typedef struct blas_handle *cublasHandle_t;
typedef struct blas_handle *cublasLtHandle_t;
typedef struct CUstream_st *cudaStream_t;

/* ---- cuBLASLt ----------------------------------------------------------------------------------------------- */
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

enum {
    LT_LAYOUT_TYPE = 0,
    LT_LAYOUT_ORDER = 1,
    LT_LAYOUT_ROWS = 2,
    LT_LAYOUT_COLS = 3,
    LT_LAYOUT_LD = 4,
    LT_LAYOUT_BATCH_COUNT = 5,
    LT_LAYOUT_BATCH_STRIDE = 6,
};
enum { LT_ORDER_COL = 0 };
enum {
    LT_DESC_COMPUTE_TYPE = 0,
    LT_DESC_SCALE_TYPE = 1,
    LT_DESC_POINTER_MODE = 2,
    LT_DESC_TRANSA = 3,
    LT_DESC_TRANSB = 4,
    LT_DESC_TRANSC = 5,
    LT_DESC_FILL_MODE = 6,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS_POINTER = 8,
    LT_DESC_BIAS_BATCH_STRIDE = 10,
    LT_DESC_AUX_POINTER = 11,
    LT_DESC_AUX_LD = 12,
    LT_DESC_AUX_BATCH_STRIDE = 13,
    LT_DESC_SM_COUNT_TARGET = 15,
    LT_DESC_AUX_DATA_TYPE = 22,
    LT_DESC_FAST_ACCUM = 25,
    LT_DESC_BIAS_DATA_TYPE = 26,
};
/* Epilogues are sets of these bits, but for "nothing", which is 1. */
enum {
    LT_EPILOGUE_NOTHING = 1,
    LT_EPILOGUE_RELU = 2,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_DRELU = 8,
    LT_EPILOGUE_BGRAD = 16,
    LT_EPILOGUE_GELU = 32,
    LT_EPILOGUE_DGELU = 64,
    LT_EPILOGUE_AUX = 128,
    LT_EPILOGUE_BGRADA = 256,
    LT_EPILOGUE_BGRADB = 512,
    LT_EPILOGUE_ALL = 1023,
};
enum { LT_PREF_SEARCH_MODE = 0, LT_PREF_MAX_WORKSPACE_BYTES = 1 };
enum { LT_ALGO_CONFIG_ID = 0, LT_ALGO_CONFIG_SPLITK_NUM = 2, LT_ALGO_CONFIG_REDUCTION_SCHEME = 3 };

#define BLAS_VERSION 130401 /* major * 10000 + minor * 100 + patch: that of the library that this one stands in for */

#endif
