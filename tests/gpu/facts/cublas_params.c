/* cublas_params: do cuBLAS launches show their operands in their parameters, TMA descriptors included?
 *
 * Runs products through cublasGemmEx, cublasGemmStridedBatchedEx and cublasLtMatmul (with a bias epilogue) in
 * fp32, TF32 and bf16, with the library given as first argument (or libcublas.so.13), each under a mark of the
 * spy (LD_PRELOAD=libspy.so), which watches the operands' address ranges. The spy's own line then says, for each
 * mark, which operands showed and how. This program's line says which products ran.
 *
 * The library's few entry points are declared here, with the values of its public interface, so that neither a
 * toolkit nor a link-time library is needed.
 */
#include "tests/gpu/facts/fact.h"
#include "tests/gpu/facts/spy.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef void *handle_t;
enum { TYPE_F32 = 0, TYPE_BF16 = 14, COMPUTE_F32 = 68, COMPUTE_TF32 = 77, GEMM_DEFAULT = -1, OP_N = 0, OP_T = 1 };
enum { LT_DESC_TRANSA = 3, LT_DESC_EPILOGUE = 7, LT_DESC_BIAS = 8, LT_EPILOGUE_BIAS = 4 };

static int (*blas_create)(handle_t *);
static int (*blas_set_stream)(handle_t, CUstream);
static int (*blas_set_workspace)(handle_t, void *, size_t);
static int (*blas_gemm)(handle_t, int, int, int, int, int, const void *, const void *, int, int, const void *, int,
                        int, const void *, void *, int, int, int, int);
static int (*blas_batched)(handle_t, int, int, int, int, int, const void *, const void *, int, int, long long,
                           const void *, int, int, long long, const void *, void *, int, int, long long, int, int,
                           int);
static int (*lt_create)(handle_t *);
static int (*lt_desc_create)(void **, int, int);
static int (*lt_desc_set)(void *, int, const void *, size_t);
static int (*lt_layout_create)(void **, int, uint64_t, uint64_t, int64_t);
static int (*lt_matmul)(handle_t, void *, const void *, const void *, void *, const void *, void *, const void *,
                        const void *, void *, void *, void *, const void *, void *, size_t, CUstream);

static void *need(void *lib, const char *name)
{
    void *p = dlsym(lib, name);
    if (!p)
        fact_refuse(name);
    return p;
}

enum { N_BUF = 5 };
static CUdeviceptr buf[N_BUF]; /* A, B, C, bias, workspace */
static const size_t buf_bytes = (size_t)128 << 20;
static CUstream stream;
static int ran, failed;
static char failures[1024];

static void under_mark(const char *name, int status)
{
    fact_cu(cuStreamSynchronize(stream));
    spy_mark_end();
    if (status == 0)
        ran++;
    else {
        failed++;
        snprintf(failures + strlen(failures), sizeof failures - strlen(failures), "%s%s: %d", failures[0] ? ", " : "",
                 name, status);
    }
}

static void open_mark(const char *name, bool bias)
{
    static const char *const label[] = {"A", "B", "C", "bias"};
    spy_mark(name);
    for (int i = 0; i < 3 + bias; i++)
        spy_watch(label[i], buf[i], buf_bytes);
}

static void gemm(handle_t h, const char *name, int type, int compute, int n, int transa)
{
    float one = 1, zero = 0;
    open_mark(name, false);
    under_mark(name, blas_gemm(h, transa, OP_N, n, n, n, &one, (void *)buf[0], type, n, (void *)buf[1], type, n, &zero,
                               (void *)buf[2], type, n, compute, GEMM_DEFAULT));
}

static void batched(handle_t h, const char *name, int type, int compute, int n, int count)
{
    float one = 1, zero = 0;
    long long stride = (long long)n * n;
    open_mark(name, false);
    under_mark(name, blas_batched(h, OP_N, OP_N, n, n, n, &one, (void *)buf[0], type, n, stride, (void *)buf[1], type,
                                  n, stride, &zero, (void *)buf[2], type, n, stride, count, compute, GEMM_DEFAULT));
}

static void linear(handle_t lt, const char *name, int type, int compute, int n)
{
    float one = 1, zero = 0;
    int transa = OP_T, epilogue = LT_EPILOGUE_BIAS;
    void *desc, *layout, *bias = (void *)buf[3];
    int rc = lt_desc_create(&desc, compute, TYPE_F32);
    rc = rc ? rc : lt_desc_set(desc, LT_DESC_TRANSA, &transa, sizeof transa);
    rc = rc ? rc : lt_desc_set(desc, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    rc = rc ? rc : lt_desc_set(desc, LT_DESC_BIAS, &bias, sizeof bias);
    rc = rc ? rc : lt_layout_create(&layout, type, (uint64_t)n, (uint64_t)n, n);
    open_mark(name, true);
    rc = rc ? rc
            : lt_matmul(lt, desc, &one, (void *)buf[0], layout, (void *)buf[1], layout, &zero, (void *)buf[2], layout,
                        (void *)buf[2], layout, NULL, (void *)buf[4], (size_t)32 << 20, stream);
    under_mark(name, rc);
}

int main(int argc, char **argv)
{
    fact_begin("cublas_params");
    const char *path = argc > 1 ? argv[1] : "libcublas.so.13";
    fact_str("library", path);
    void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!lib)
        fact_refuse(dlerror());
    blas_create = need(lib, "cublasCreate_v2");
    blas_set_stream = need(lib, "cublasSetStream_v2");
    blas_set_workspace = need(lib, "cublasSetWorkspace_v2");
    blas_gemm = need(lib, "cublasGemmEx");
    blas_batched = need(lib, "cublasGemmStridedBatchedEx");
    lt_create = need(lib, "cublasLtCreate");
    lt_desc_create = need(lib, "cublasLtMatmulDescCreate");
    lt_desc_set = need(lib, "cublasLtMatmulDescSetAttribute");
    lt_layout_create = need(lib, "cublasLtMatrixLayoutCreate");
    lt_matmul = need(lib, "cublasLtMatmul");
    fact_bool("spied", spy_present());

    fact_open();
    fact_cu(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < N_BUF; i++) {
        fact_cu(cuMemAllocAsync(&buf[i], buf_bytes, stream));
        fact_cu(cuMemsetD32Async(buf[i], 0, buf_bytes / 4, stream));
    }
    handle_t h, lt;
    if (blas_create(&h) || lt_create(&lt) || blas_set_stream(h, stream) ||
        blas_set_workspace(h, (void *)buf[4], (size_t)32 << 20))
        fact_refuse("cublasCreate, cublasLtCreate, cublasSetStream or cublasSetWorkspace failed");
    gemm(h, "gemm fp32 2048", TYPE_F32, COMPUTE_F32, 2048, OP_N);
    gemm(h, "gemm tf32 2048", TYPE_F32, COMPUTE_TF32, 2048, OP_N);
    gemm(h, "gemm tf32 4096 T", TYPE_F32, COMPUTE_TF32, 4096, OP_T);
    gemm(h, "gemm bf16 512", TYPE_BF16, COMPUTE_F32, 512, OP_N);
    gemm(h, "gemm bf16 2048", TYPE_BF16, COMPUTE_F32, 2048, OP_N);
    gemm(h, "gemm bf16 4096 T", TYPE_BF16, COMPUTE_F32, 4096, OP_T);
    batched(h, "batched fp32 256x64", TYPE_F32, COMPUTE_F32, 256, 64);
    batched(h, "batched bf16 512x64", TYPE_BF16, COMPUTE_F32, 512, 64);
    linear(lt, "lt bias tf32 2048", TYPE_F32, COMPUTE_TF32, 2048);
    linear(lt, "lt bias bf16 4096", TYPE_BF16, COMPUTE_F32, 4096);
    fact_int("ran", ran);
    fact_int("failed", failed);
    fact_str("failures", failures);
    return fact_end();
}
