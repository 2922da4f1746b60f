/* pools.c: which pools the engine serves, however they came about. */
#include "preload/pools.h"

#include <check.h>
#include <string.h>

/* ---- a driver with two devices ------------------------------------------------------------------------------------------ */

#define POOL(n) ((CUmemoryPool)(uintptr_t)(n))
static CUmemoryPool current_pool = POOL(0x10);

static CUresult get_device(CUdevice *d)
{
    *d = 0;
    return CUDA_SUCCESS;
}
static CUresult get_current(CUmemoryPool *pool, CUdevice d)
{
    *pool = d == 0 ? current_pool : POOL(0x11);
    return CUDA_SUCCESS;
}
static CUresult get_default(CUmemoryPool *pool, CUdevice d)
{
    *pool = POOL(0x10 + d);
    return CUDA_SUCCESS;
}
static CUresult get_count(int *n)
{
    *n = 2;
    return CUDA_SUCCESS;
}

void *provider_driver_symbol(const char *name)
{
    return strcmp(name, "cuCtxGetDevice") == 0              ? (void *)get_device
           : strcmp(name, "cuDeviceGetMemPool") == 0        ? (void *)get_current
           : strcmp(name, "cuDeviceGetDefaultMemPool") == 0 ? (void *)get_default
           : strcmp(name, "cuDeviceGetCount") == 0          ? (void *)get_count
                                                            : NULL;
}

/* ---- tests ---------------------------------------------------------------------------------------------------------------- */

START_TEST(ordinary_pools)
{
    ck_assert_int_eq(pools_use(POOL(0x10)), POOL_ENGINE);
    ck_assert_int_eq(pools_use(NULL), POOL_ENGINE);
    ck_assert_int_eq(pools_use_current(), POOL_ENGINE);
    ck_assert_int_eq(pools_device(POOL(0x11)), 1);
    ck_assert_int_eq(pools_device(POOL(0x99)), -1);
    pools_created(POOL(0x99), 1);
    ck_assert_int_eq(pools_device(POOL(0x99)), 1);
    ck_assert_int_eq(pools_use(POOL(0x99)), POOL_ENGINE);
}
END_TEST

START_TEST(marked_pools)
{
    pools_mark(POOL(0x20), POOL_COUNTED);
    ck_assert_int_eq(pools_use(POOL(0x20)), POOL_COUNTED);
    ck_assert_int_eq(pools_use(POOL(0x21)), POOL_ENGINE);
    ck_assert_int_eq(pools_use_current(), POOL_ENGINE);
    current_pool = POOL(0x20); /* cuDeviceSetMemPool */
    ck_assert_int_eq(pools_use_current(), POOL_COUNTED);
    pools_destroyed(POOL(0x20));
    ck_assert_int_eq(pools_use(POOL(0x20)), POOL_ENGINE); /* the handle may come again */
    pools_destroyed(POOL(0x20));
    pools_mark(POOL(0x20), POOL_OUTSIDE);
    ck_assert_int_eq(pools_use(POOL(0x20)), POOL_OUTSIDE);
}
END_TEST

START_TEST(properties)
{
    CUmemPoolProps p = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    ck_assert_int_eq(pools_use_of_props(&p), POOL_ENGINE);
    p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    ck_assert_int_eq(pools_use_of_props(&p), POOL_COUNTED);
    p.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    p.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    ck_assert_int_eq(pools_use_of_props(&p), POOL_MANAGED);
    p.location.type = CU_MEM_LOCATION_TYPE_HOST; /* where the driver is to prefer managed memory: kernels may draw it onto the device all the same */
    ck_assert_int_eq(pools_use_of_props(&p), POOL_MANAGED);
    p.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    ck_assert_int_eq(pools_use_of_props(&p), POOL_OUTSIDE);
}
END_TEST

/* More pools than the table holds: the later ones stay as they were, nothing breaks. */
START_TEST(full_table)
{
    for (uintptr_t i = 1; i <= 1000; i++)
        pools_mark(POOL(i << 8), POOL_COUNTED);
    ck_assert_int_eq(pools_use(POOL(1 << 8)), POOL_COUNTED);
    ck_assert_int_eq(pools_use(POOL(1000 << 8)), POOL_ENGINE);
    for (uintptr_t i = 1; i <= 1000; i++)
        pools_destroyed(POOL(i << 8));
    pools_mark(POOL(1000 << 8), POOL_COUNTED);
    ck_assert_int_eq(pools_use(POOL(1000 << 8)), POOL_COUNTED);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("preload_pools");
    TCase *t = tcase_create("pools");
    tcase_add_test(t, ordinary_pools);
    tcase_add_test(t, marked_pools);
    tcase_add_test(t, properties);
    tcase_add_test(t, full_table);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
