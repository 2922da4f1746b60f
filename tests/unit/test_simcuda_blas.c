/*
 * The simulated cuBLAS and cuBLASLt, by way of their public calls: results against plain sums, bits that do not depend on where
 * operands lie or on when a matmul runs, what of a workspace is written, and what is refused.
 */
#include <dlfcn.h>
#include <math.h>

#include "tests/simcuda/blas/cublas.h"
#include "tests/simgpu/testing.h"

#define DO(call) ck_assert_int_eq((call), CUBLAS_STATUS_SUCCESS)

enum { WORKSPACE = 8 << 20 };

static cublasHandle_t handle(CUdeviceptr workspace)
{
    cublasHandle_t h;
    DO(cublasCreate_v2(&h));
    DO(cublasSetStream_v2(h, NULL));
    if (workspace)
        DO(cublasSetWorkspace_v2(h, (void *)(uintptr_t)workspace, WORKSPACE));
    return h;
}

static CUdeviceptr device(size_t bytes)
{
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, bytes));
    OK(cuMemsetD8_v2(p, 0xab, bytes));
    return p;
}

/* Numbers between -1 and 1 with few bits, so that bfloat16 and half hold them as they are. */
static void draw(float *x, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)(seed >> 25) - 64) / 64;
    }
}

/* Numbers whose products do not fit a float: the order of a sum shows in its bits. */
static void draw_finely(float *x, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
}

static uint16_t bf16(float f)
{
    uint32_t b;
    memcpy(&b, &f, sizeof b);
    return (uint16_t)(b >> 16);
}

/* d = op(a) op(b), all column-major and dense, in double. */
static double sum_at(const float *a, int ta, const float *b, int tb, int m, int n, int k, int i, int j)
{
    double s = 0;
    for (int e = 0; e < k; e++)
        s += (double)a[ta ? e + (size_t)i * k : i + (size_t)e * m] * b[tb ? j + (size_t)e * n : e + (size_t)j * k];
    return s;
}

/* One matmul of f32, its operands `shift` floats into their allocations. */
static void multiply(cublasHandle_t h, int ta, int tb, int m, int n, int k, const float *a, const float *b, float *d, int shift)
{
    size_t sa = (size_t)m * k * 4, sb = (size_t)k * n * 4, sd = (size_t)m * n * 4, off = (size_t)shift * 4;
    CUdeviceptr da = device(sa + off), db = device(sb + off), dd = device(sd + off);
    float one = 1, zero = 0;

    OK(cuMemcpyHtoD_v2(da + off, a, sa));
    OK(cuMemcpyHtoD_v2(db + off, b, sb));
    DO(cublasGemmEx(h, ta, tb, m, n, k, &one, (void *)(uintptr_t)(da + off), CUDA_R_32F, ta ? k : m,
                    (void *)(uintptr_t)(db + off), CUDA_R_32F, tb ? n : k, &zero, (void *)(uintptr_t)(dd + off), CUDA_R_32F, m,
                    CUBLAS_COMPUTE_32F, -1));
    OK(cuMemcpyDtoH_v2(d, dd + off, sd));
    OK(cuMemFree_v2(da));
    OK(cuMemFree_v2(db));
    OK(cuMemFree_v2(dd));
}

/* Bits must be the same at every alignment, with the workspace elsewhere, and a second time: replays rest on it. */
START_TEST(same_bits_wherever_operands_lie)
{
    static const int size[][3] = { { 33, 17, 20 }, { 64, 64, 64 }, { 129, 65, 300 }, { 40, 24, 3000 }, { 1, 50, 70 }, { 70, 1, 50 } };
    start();
    cublasHandle_t h = handle(device(WORKSPACE));

    for (size_t s = 0; s < sizeof size / sizeof *size; s++)
        for (int t = 0; t < 4; t++) {
            int m = size[s][0], n = size[s][1], k = size[s][2];
            float *a = malloc((size_t)m * k * 4), *b = malloc((size_t)k * n * 4), *d = malloc((size_t)m * n * 4),
                  *first = malloc((size_t)m * n * 4);
            draw_finely(a, m * k, 1);
            draw_finely(b, k * n, 2);
            for (int shift = 0; shift < 5; shift++) {
                multiply(h, t & 1, t >> 1, m, n, k, a, b, shift ? d : first, shift);
                if (shift)
                    ck_assert_mem_eq(d, first, (size_t)m * n * 4);
            }
            for (int j = 0; j < n; j++)
                for (int i = 0; i < m; i++)
                    ck_assert_double_eq_tol(first[i + (size_t)j * m], sum_at(a, t & 1, b, t >> 1, m, n, k, i, j), 1e-3);
            free(a), free(b), free(d), free(first);
        }
    DO(cublasDestroy_v2(h));
}
END_TEST

/* A long k is cut: partial sums go to the beginning of the workspace, and nothing behind them is touched. */
START_TEST(split_writes_its_part_of_the_workspace)
{
    enum { M = 40, N = 24, K = 3000, PARTS = 5 };
    static float a[M * K], b[K * N], d[M * N], parts[PARTS * M * N];
    start();
    CUdeviceptr w = device(WORKSPACE);
    cublasHandle_t h = handle(w);
    unsigned char *seen = malloc(WORKSPACE);

    draw(a, M * K, 3);
    draw(b, K * N, 4);
    multiply(h, 0, 0, M, N, K, a, b, d, 0);
    OK(cuMemcpyDtoH_v2(parts, w, sizeof parts));
    for (int i = 0; i < M * N; i++) {
        double s = 0;
        for (int p = 0; p < PARTS; p++)
            s += parts[p * M * N + i];
        ck_assert_double_eq_tol(s, d[i], 1e-3);
    }
    OK(cuMemcpyDtoH_v2(seen, w, WORKSPACE));
    for (size_t i = sizeof parts; i < WORKSPACE; i++)
        ck_assert_uint_eq(seen[i], 0xab);
    free(seen);

    /* without a workspace the sum is taken whole: the same number but for rounding */
    static float whole[M * N];
    cublasHandle_t bare = handle(0);
    multiply(bare, 0, 0, M, N, K, a, b, whole, 0);
    for (int i = 0; i < M * N; i++)
        ck_assert_double_eq_tol(whole[i], d[i], 1e-3);
}
END_TEST

/* bfloat16 in, rounded once at the end; c is added before that; strides of a batch. */
START_TEST(bf16_batch_with_beta)
{
    enum { M = 9, N = 7, K = 33, BATCH = 3 };
    static float a[M * K * BATCH], b[K * N * BATCH], c[M * N * BATCH];
    static uint16_t ha[M * K * BATCH], hb[K * N * BATCH], hc[M * N * BATCH], got[M * N * BATCH];
    start();
    cublasHandle_t h = handle(0);
    CUdeviceptr da = device(sizeof ha), db = device(sizeof hb), dc = device(sizeof hc);
    float alpha = 0.5f, beta = 2;

    draw(a, M * K * BATCH, 5), draw(b, K * N * BATCH, 6), draw(c, M * N * BATCH, 7);
    for (int i = 0; i < M * K * BATCH; i++)
        ha[i] = bf16(a[i]);
    for (int i = 0; i < K * N * BATCH; i++)
        hb[i] = bf16(b[i]);
    for (int i = 0; i < M * N * BATCH; i++)
        hc[i] = bf16(c[i]);
    OK(cuMemcpyHtoD_v2(da, ha, sizeof ha));
    OK(cuMemcpyHtoD_v2(db, hb, sizeof hb));
    OK(cuMemcpyHtoD_v2(dc, hc, sizeof hc));
    DO(cublasGemmStridedBatchedEx(h, 0, 0, M, N, K, &alpha, (void *)(uintptr_t)da, CUDA_R_16BF, M, M * K, (void *)(uintptr_t)db,
                                  CUDA_R_16BF, K, K * N, &beta, (void *)(uintptr_t)dc, CUDA_R_16BF, M, M * N, BATCH,
                                  CUBLAS_COMPUTE_32F, -1));
    OK(cuMemcpyDtoH_v2(got, dc, sizeof got));
    for (int e = 0; e < BATCH; e++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < M; i++) {
                int at = e * M * N + j * M + i;
                uint32_t bits = (uint32_t)got[at] << 16;
                float f;
                memcpy(&f, &bits, sizeof f);
                double want = 0.5 * sum_at(a + e * M * K, 0, b + e * K * N, 0, M, N, K, i, j) + 2.0 * c[at];
                ck_assert_double_eq_tol(f, want, fabs(want) / 256 + 1e-6); /* half a step of 8 bits */
            }
}
END_TEST

/* A scalar that goes to the host waits for the stream; one that stays on the device does not. */
START_TEST(dot_to_host_and_device)
{
    float x[5] = { 1, 2, 3, 4, 5 }, host = 0, back = 0;
    start();
    cublasHandle_t h = handle(0);
    CUdeviceptr dx = device(sizeof x), r = device(4);

    OK(cuMemcpyHtoD_v2(dx, x, sizeof x));
    DO(cublasSdot_v2(h, 5, (void *)(uintptr_t)dx, 1, (void *)(uintptr_t)dx, 1, &host));
    ck_assert_float_eq(host, 55);
    DO(cublasSetPointerMode_v2(h, CUBLAS_POINTER_MODE_DEVICE));
    DO(cublasSdot_v2(h, 5, (void *)(uintptr_t)dx, 1, (void *)(uintptr_t)dx, 1, (void *)(uintptr_t)r));
    OK(cuMemcpyDtoH_v2(&back, r, 4));
    ck_assert_float_eq(back, 55);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    float one = 1, zero = 0;
    start();
    cublasHandle_t h = handle(0);
    CUdeviceptr p = device(4096);
    void *v = (void *)(uintptr_t)p;
    cublasStatus_t (*absent)(void) = (cublasStatus_t(*)(void))dlsym(RTLD_DEFAULT, "cublasSgetrfBatched");

    ck_assert_int_eq(cublasGemmEx(h, 0, 0, 8, 8, 8, &one, v, CUDA_R_32F, 7, v, CUDA_R_32F, 8, &zero, v, CUDA_R_32F, 8,
                                  CUBLAS_COMPUTE_32F, -1), CUBLAS_STATUS_INVALID_VALUE);
    ck_assert_int_eq(cublasGemmEx(h, 9, 0, 8, 8, 8, &one, v, CUDA_R_32F, 8, v, CUDA_R_32F, 8, &zero, v, CUDA_R_32F, 8,
                                  CUBLAS_COMPUTE_32F, -1), CUBLAS_STATUS_INVALID_VALUE);
    ck_assert_int_eq(cublasGemmEx(h, 0, 0, 8, 8, 8, &one, v, 3, 8, v, 3, 8, &zero, v, 10, 8, 72, -1), CUBLAS_STATUS_NOT_SUPPORTED);
    DO(cublasGemmEx(h, 0, 0, 0, 8, 8, &one, v, CUDA_R_32F, 8, v, CUDA_R_32F, 8, &zero, v, CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, -1));
    ck_assert_int_eq(cublasSetWorkspace_v2(h, (void *)(uintptr_t)(p + 8), 64), CUBLAS_STATUS_INVALID_VALUE);
    ck_assert_ptr_nonnull(absent);
    ck_assert_int_eq(absent(), CUBLAS_STATUS_NOT_SUPPORTED);
    ck_assert_int_eq(cublasSetStream_v2(NULL, NULL), CUBLAS_STATUS_NOT_INITIALIZED);
}
END_TEST

RUN_SUITE("simcuda_blas", same_bits_wherever_operands_lie, split_writes_its_part_of_the_workspace, bf16_batch_with_beta,
          dot_to_host_and_device, what_makes_no_sense_is_refused)
