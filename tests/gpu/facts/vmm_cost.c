/* vmm_cost: what do create, map, set-access, unmap and release cost, on an idle device?
 *
 * Host microseconds per call: medians for one physical handle of 2, 8, 32, 128 and 512 MiB, then for 1024 chunks
 * of 2 MiB mapped side by side, where set-access is asked once per chunk and once for the whole range, and where
 * the last tenth is compared with the first (does the cost grow with what is mapped?).
 */
#include "tests/gpu/facts/fact.h"

#include <stdio.h>
#include <string.h>

enum { REPS = 15, CHUNKS = 1024 };

static CUmemAllocationProp prop;
static CUmemAccessDesc access_rw;

static double timed(double *t)
{
    double now = fact_now_us(), d = now - *t;
    *t = now;
    return d;
}

static void one_size(int mib)
{
    size_t bytes = (size_t)mib << 20;
    CUdeviceptr va;
    CUmemGenericAllocationHandle h;
    double us[5][REPS], med[5];
    fact_cu(cuMemAddressReserve(&va, bytes, 0, 0, 0));
    for (int r = 0; r < REPS; r++) {
        double t = fact_now_us();
        fact_cu(cuMemCreate(&h, bytes, &prop, 0));
        us[0][r] = timed(&t);
        fact_cu(cuMemMap(va, bytes, 0, h, 0));
        us[1][r] = timed(&t);
        fact_cu(cuMemSetAccess(va, bytes, &access_rw, 1));
        us[2][r] = timed(&t);
        fact_cu(cuMemUnmap(va, bytes));
        us[3][r] = timed(&t);
        fact_cu(cuMemRelease(h));
        us[4][r] = timed(&t);
    }
    static const char *const what[5] = {"create", "map", "set_access", "unmap", "release"};
    for (int k = 0; k < 5; k++) {
        char key[40];
        med[k] = fact_median(us[k], REPS);
        snprintf(key, sizeof key, "%s_us_%dmib", what[k], mib);
        fact_num(key, med[k]);
    }
    fact_cu(cuMemAddressFree(va, bytes));
}

static void many_chunks(void)
{
    static CUmemGenericAllocationHandle h[CHUNKS];
    static double map[CHUNKS], create[CHUNKS], unmap[CHUNKS], set[CHUNKS];
    size_t range = CHUNKS * FACT_CHUNK_BYTES;
    CUdeviceptr va;
    fact_cu(cuMemAddressReserve(&va, range, 0, 0, 0));
    double t = fact_now_us();
    for (int i = 0; i < CHUNKS; i++) {
        fact_cu(cuMemCreate(&h[i], FACT_CHUNK_BYTES, &prop, 0));
        create[i] = timed(&t);
    }
    for (int i = 0; i < CHUNKS; i++) {
        fact_cu(cuMemMap(va + i * FACT_CHUNK_BYTES, FACT_CHUNK_BYTES, 0, h[i], 0));
        map[i] = timed(&t);
    }
    fact_cu(cuMemSetAccess(va, range, &access_rw, 1));
    double whole = timed(&t);
    fact_cu(cuMemUnmap(va, range));
    double unmap_whole = timed(&t);
    for (int i = 0; i < CHUNKS; i++) {
        fact_cu(cuMemMap(va + i * FACT_CHUNK_BYTES, FACT_CHUNK_BYTES, 0, h[i], 0));
        timed(&t);
        fact_cu(cuMemSetAccess(va + i * FACT_CHUNK_BYTES, FACT_CHUNK_BYTES, &access_rw, 1));
        set[i] = timed(&t);
    }
    for (int i = 0; i < CHUNKS; i++) {
        fact_cu(cuMemUnmap(va + i * FACT_CHUNK_BYTES, FACT_CHUNK_BYTES));
        unmap[i] = timed(&t);
    }
    for (int i = 0; i < CHUNKS; i++)
        fact_cu(cuMemRelease(h[i]));
    double release = timed(&t) / CHUNKS;
    fact_cu(cuMemAddressFree(va, range));

    int tenth = CHUNKS / 10;
    fact_int("chunks", CHUNKS);
    fact_num("set_access_first_tenth_us", fact_median(set, tenth));
    fact_num("set_access_last_tenth_us", fact_median(set + CHUNKS - tenth, tenth));
    fact_num("create_us", fact_median(create, CHUNKS));
    fact_num("map_us", fact_median(map, CHUNKS));
    fact_num("set_access_each_us", fact_median(set, CHUNKS));
    fact_num("set_access_whole_us_per_chunk", whole / CHUNKS);
    fact_num("unmap_each_us", fact_median(unmap, CHUNKS));
    fact_num("unmap_whole_us_per_chunk", unmap_whole / CHUNKS);
    fact_num("release_us", release);
}

int main(void)
{
    fact_begin("vmm_cost");
    CUdevice dev = fact_open();
    prop = fact_prop(dev);
    access_rw = fact_access(dev);
    size_t fine = 0, good = 0;
    fact_cu(cuMemGetAllocationGranularity(&fine, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    fact_cu(cuMemGetAllocationGranularity(&good, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    fact_int("granularity_minimum", (long long)fine);
    fact_int("granularity_recommended", (long long)good);
    static const int sizes[] = {2, 8, 32, 128, 512};
    for (int i = 0; i < 5; i++)
        one_size(sizes[i]);
    many_chunks();
    return fact_end();
}
