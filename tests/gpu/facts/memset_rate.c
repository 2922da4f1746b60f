/* memset_rate: how fast are fills and copies, alone and beside a kernel?
 *
 * Bytes per second of cuMemsetD32Async, of device-to-device copies (bytes read plus written), and of copies from
 * and to pinned host memory in pieces of 16 MiB; then both host directions at once, and the slowdown of a
 * memory-bound kernel train while a copy to the host runs. Sizes fit the memory that is there.
 */
#include "tests/gpu/facts/fact.h"

enum { TRIES = 5 };

static CUstream s, t;
static CUevent begin, end;

static double ms_between(CUstream st, CUresult (*work)(CUstream))
{
    float ms = 0;
    double v[TRIES];
    for (int r = 0; r < TRIES; r++) {
        fact_cu(cuCtxSynchronize());
        fact_cu(cuEventRecord(begin, st));
        fact_cu(work(st));
        fact_cu(cuEventRecord(end, st));
        fact_cu(cuEventSynchronize(end));
        fact_cu(cuEventElapsedTime(&ms, begin, end));
        v[r] = ms;
    }
    return fact_median(v, TRIES);
}

static CUdeviceptr a, b;
static size_t bytes, host_bytes;
static char *host, *host2;
static CUfunction add;

static CUresult memset_all(CUstream st) { return cuMemsetD32Async(a, 0x3f800000, bytes / 4, st); }
static CUresult copy_dd(CUstream st) { return cuMemcpyDtoDAsync_v2(b, a, bytes, st); }

static CUresult copy_pieces(CUstream st, bool out)
{
    const size_t piece = (size_t)16 << 20;
    CUresult rc = CUDA_SUCCESS;
    for (size_t at = 0; at < host_bytes && rc == CUDA_SUCCESS; at += piece)
        rc = out ? cuMemcpyDtoHAsync_v2(host + at, a + at, piece, st)
                 : cuMemcpyHtoDAsync_v2(b + at, host2 + at, piece, st);
    return rc;
}

static CUresult copy_out(CUstream st) { return copy_pieces(st, true); }
static CUresult copy_in(CUstream st) { return copy_pieces(st, false); }

static CUresult copy_both(CUstream st)
{
    CUresult rc = copy_pieces(st, true);
    if (rc == CUDA_SUCCESS)
        rc = copy_pieces(t, false);
    return rc == CUDA_SUCCESS ? cuStreamSynchronize(t) : rc;
}

static CUresult kernels(CUstream st)
{
    uint64_t words = bytes / 4;
    uint32_t one = 1;
    for (int i = 0; i < 20; i++)
        fact_launch(add, 2048, st, (void *[]){&b, &b, &words, &one});
    return CUDA_SUCCESS;
}

static CUresult kernels_and_copy(CUstream st)
{
    CUresult rc = copy_pieces(t, true);
    return rc == CUDA_SUCCESS ? kernels(st) : rc;
}

int main(void)
{
    fact_begin("memset_rate");
    fact_open();
    add = fact_kernel(fact_module(), "fact_add");
    size_t free_bytes = 0, total = 0;
    fact_cu(cuMemGetInfo_v2(&free_bytes, &total));
    bytes = free_bytes > ((size_t)16 << 30) ? (size_t)1 << 30 : (size_t)64 << 20;
    host_bytes = bytes / 2;
    fact_int("device_bytes", (long long)bytes);
    fact_cu(cuMemAlloc_v2(&a, bytes));
    fact_cu(cuMemAlloc_v2(&b, bytes));
    fact_cu(cuMemsetD32_v2(b, 0, bytes / 4));
    fact_cu(cuCtxSynchronize()); /* a fill does not wait for itself, and the streams below do not wait for it */
    double t0 = fact_now_us();
    fact_cu(cuMemHostAlloc((void **)&host, host_bytes, 0));
    fact_num("host_alloc_us_per_mib", (fact_now_us() - t0) / (double)(host_bytes >> 20));
    fact_cu(cuMemHostAlloc((void **)&host2, host_bytes, 0));
    for (size_t i = 0; i < host_bytes; i += 4096)
        host[i] = host2[i] = 1;
    fact_cu(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    fact_cu(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    fact_cu(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    fact_cu(cuEventCreate(&end, CU_EVENT_DEFAULT));
    kernels(s);

    fact_num("memset_bytes_per_s", (double)bytes / (ms_between(s, memset_all) * 1e-3));
    fact_num("copy_dd_bytes_per_s", 2 * (double)bytes / (ms_between(s, copy_dd) * 1e-3));
    fact_num("copy_out_bytes_per_s", (double)host_bytes / (ms_between(s, copy_out) * 1e-3));
    fact_num("copy_in_bytes_per_s", (double)host_bytes / (ms_between(s, copy_in) * 1e-3));
    fact_num("copy_both_bytes_per_s", 2 * (double)host_bytes / (ms_between(s, copy_both) * 1e-3));
    double alone = ms_between(s, kernels), beside = ms_between(s, kernels_and_copy);
    fact_num("kernels_ms", alone);
    fact_num("kernels_slowdown_beside_copy", beside / alone);
    return fact_end();
}
