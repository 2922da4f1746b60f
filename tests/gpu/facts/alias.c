/* alias: may one physical chunk be mapped at two addresses and used from two kernels in stream order?
 *
 * One handle is mapped at A and at B. Each round, a kernel fills A with the round's number, a second one checks
 * that B shows it and a third adds one through B, which a fourth must see through A. The rounds run once on one
 * stream and once on two streams ordered by events; "mismatches" counts wrong words over all of them. With
 * "stale_*" the same is asked after an unmap and remap of A onto another chunk, while B keeps the first.
 */
#include "tests/gpu/facts/fact.h"

enum { ROUNDS = 500, BLOCKS = 64 };
static const uint64_t words = FACT_CHUNK_BYTES / 4;

static CUfunction fill, add, count_bad;

static unsigned read_bad(CUdeviceptr bad, CUstream s)
{
    unsigned n = 0;
    fact_cu(cuStreamSynchronize(s));
    fact_cu(cuMemcpyDtoH_v2(&n, bad, sizeof n));
    fact_cu(cuMemsetD32Async(bad, 0, 1, s));
    fact_cu(cuStreamSynchronize(s));
    return n;
}

/* Rounds over writer stream `s` and reader stream `t` (may be the same); returns the number of wrong words. */
static unsigned rounds(CUdeviceptr a, CUdeviceptr b, CUdeviceptr bad, CUstream s, CUstream t)
{
    CUevent wrote, checked;
    uint64_t n = words;
    fact_cu(cuEventCreate(&wrote, CU_EVENT_DISABLE_TIMING));
    fact_cu(cuEventCreate(&checked, CU_EVENT_DISABLE_TIMING));
    for (uint32_t r = 1; r <= ROUNDS; r++) {
        uint32_t next = r + 1, one = 1;
        fact_launch(fill, BLOCKS, s, (void *[]){&a, &n, &r});
        if (s != t) {
            fact_cu(cuEventRecord(wrote, s));
            fact_cu(cuStreamWaitEvent(t, wrote, 0));
        }
        fact_launch(count_bad, BLOCKS, t, (void *[]){&b, &n, &r, &bad});
        fact_launch(add, BLOCKS, t, (void *[]){&b, &b, &n, &one});
        if (s != t) {
            fact_cu(cuEventRecord(checked, t));
            fact_cu(cuStreamWaitEvent(s, checked, 0));
        }
        fact_launch(count_bad, BLOCKS, s, (void *[]){&a, &n, &next, &bad});
    }
    fact_cu(cuStreamSynchronize(t));
    unsigned n_bad = read_bad(bad, s);
    fact_cu(cuEventDestroy_v2(wrote));
    fact_cu(cuEventDestroy_v2(checked));
    return n_bad;
}

int main(void)
{
    fact_begin("alias");
    CUdevice dev = fact_open();
    CUmodule m = fact_module();
    fill = fact_kernel(m, "fact_fill");
    add = fact_kernel(m, "fact_add");
    count_bad = fact_kernel(m, "fact_count_bad");

    CUmemAllocationProp prop = fact_prop(dev);
    CUmemAccessDesc access = fact_access(dev);
    CUmemGenericAllocationHandle first, second;
    CUdeviceptr a, b, bad;
    CUstream s, t;
    fact_cu(cuMemAlloc_v2(&bad, 4096));
    fact_cu(cuMemsetD32_v2(bad, 0, 1));
    fact_cu(cuCtxSynchronize()); /* a fill does not wait for itself, and the streams below do not wait for it */
    fact_cu(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    fact_cu(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    fact_cu(cuMemAddressReserve(&a, 2 * FACT_CHUNK_BYTES, 0, 0, 0));
    b = a + FACT_CHUNK_BYTES;
    fact_cu(cuMemCreate(&first, FACT_CHUNK_BYTES, &prop, 0));
    fact_cu(cuMemCreate(&second, FACT_CHUNK_BYTES, &prop, 0));
    fact_cu(cuMemMap(a, FACT_CHUNK_BYTES, 0, first, 0));
    fact_cu(cuMemMap(b, FACT_CHUNK_BYTES, 0, first, 0));
    fact_cu(cuMemSetAccess(a, 2 * FACT_CHUNK_BYTES, &access, 1));
    fact_bool("two_mappings_accepted", true);

    unsigned one_stream = rounds(a, b, bad, s, s), two_streams = rounds(a, b, bad, s, t);
    fact_int("rounds", ROUNDS);
    fact_int("mismatches_one_stream", one_stream);
    fact_int("mismatches_two_streams", two_streams);

    /* A moves to the second chunk: B must keep the first one's words, and A must not touch them. */
    uint64_t n = words;
    uint32_t kept = 0xabcd1234, other = 0x55aa55aa;
    fact_launch(fill, BLOCKS, s, (void *[]){&b, &n, &kept});
    fact_cu(cuStreamSynchronize(s));
    fact_cu(cuMemUnmap(a, FACT_CHUNK_BYTES));
    fact_cu(cuMemMap(a, FACT_CHUNK_BYTES, 0, second, 0));
    fact_cu(cuMemSetAccess(a, FACT_CHUNK_BYTES, &access, 1));
    fact_launch(fill, BLOCKS, s, (void *[]){&a, &n, &other});
    fact_launch(count_bad, BLOCKS, s, (void *[]){&b, &n, &kept, &bad});
    fact_launch(count_bad, BLOCKS, s, (void *[]){&a, &n, &other, &bad});
    unsigned stale = read_bad(bad, s);
    fact_int("stale_after_remap", stale);

    /* A handle may be released while mapped; the memory stays until the last mapping goes. */
    fact_cu(cuMemRelease(first));
    fact_launch(count_bad, BLOCKS, s, (void *[]){&b, &n, &kept, &bad});
    unsigned after_release = read_bad(bad, s);
    fact_int("mismatches_after_release", after_release);

    fact_bool("answer", one_stream + two_streams + stale + after_release == 0);
    fact_cu(cuMemUnmap(a, 2 * FACT_CHUNK_BYTES));
    fact_cu(cuMemRelease(second));
    fact_cu(cuMemAddressFree(a, 2 * FACT_CHUNK_BYTES));
    fact_cu(cuMemFree_v2(bad));
    return fact_end();
}
