/* counted.c, vmm.c: what arrays weigh, and when the memory behind a cuMemCreate handle is really gone. */
#include "preload/counted.h"
#include "preload/vmm.h"

#include <check.h>

/* ---- an engine that keeps a ledger ------------------------------------------------------------------------------------ */

enum { KEYS = 64 };
static struct {
    uint64_t key;
    size_t bytes;
} ledger[KEYS];

void eng_foreign_commit(int dev, uint64_t key, size_t bytes, bool is_range)
{
    ck_assert(!is_range && !dev);
    for (int i = 0; i < KEYS; i++)
        ck_assert_msg(!ledger[i].key || ledger[i].key != key, "a key is committed twice");
    for (int i = 0; i < KEYS; i++)
        if (!ledger[i].key) {
            ledger[i].key = key;
            ledger[i].bytes = bytes;
            return;
        }
    ck_abort_msg("ledger full");
}

void eng_foreign_free(uint64_t key)
{
    for (int i = 0; i < KEYS; i++)
        if (ledger[i].key == key) {
            ledger[i].key = 0;
            return;
        }
    ck_abort_msg("a key is freed that was not committed, or twice");
}

static size_t counted(void)
{
    size_t sum = 0;
    for (int i = 0; i < KEYS; i++)
        sum += ledger[i].key ? ledger[i].bytes : 0;
    return sum;
}

/* ---- handles and mappings -------------------------------------------------------------------------------------------------- */

START_TEST(released_then_unmapped)
{
    vmm_created(7, 0, 100);
    ck_assert_uint_eq(counted(), 100);
    vmm_mapped(7, 0x1000, 100);
    vmm_released(7); /* lives on behind its mapping */
    ck_assert_uint_eq(counted(), 100);
    vmm_unmapped(0x1000, 100);
    ck_assert_uint_eq(counted(), 0);
}
END_TEST

START_TEST(unmapped_then_released)
{
    vmm_created(7, 0, 100);
    vmm_mapped(7, 0x1000, 100);
    vmm_unmapped(0x1000, 100);
    ck_assert_uint_eq(counted(), 100);
    vmm_released(7);
    ck_assert_uint_eq(counted(), 0);
}
END_TEST

START_TEST(further_references)
{
    vmm_created(7, 0, 100);
    vmm_retained(7, 0);
    vmm_released(7);
    ck_assert_uint_eq(counted(), 100);
    vmm_released(7);
    ck_assert_uint_eq(counted(), 0);
    vmm_released(7); /* the driver would refuse; nothing happens here */
}
END_TEST

/* A mapping alone has kept it; the driver may give it another number. */
START_TEST(asked_for_by_address)
{
    for (CUmemGenericAllocationHandle h = 7; h <= 8; h++) {
        vmm_created(7, 0, 100);
        vmm_mapped(7, 0x1000, 100);
        vmm_released(7);
        vmm_retained(h, 0x1010);
        vmm_unmapped(0x1000, 100);
        ck_assert_uint_eq(counted(), 100);
        vmm_released(h);
        ck_assert_uint_eq(counted(), 0);
    }
}
END_TEST

/* A number whose references are gone may be given to new memory while the old is still mapped. */
START_TEST(number_used_again)
{
    vmm_created(7, 0, 100);
    vmm_mapped(7, 0x1000, 100);
    vmm_released(7);
    vmm_created(7, 0, 30);
    vmm_mapped(7, 0x2000, 30);
    ck_assert_uint_eq(counted(), 130);
    vmm_unmapped(0x1000, 100);
    ck_assert_uint_eq(counted(), 30);
    vmm_released(7);
    vmm_unmapped(0x2000, 30);
    ck_assert_uint_eq(counted(), 0);
}
END_TEST

START_TEST(one_unmap_for_many_maps)
{
    for (CUmemGenericAllocationHandle h = 1; h <= 4; h++) {
        vmm_created(h, 0, 10);
        vmm_mapped(h, h * 10, 10);
        vmm_released(h);
    }
    vmm_mapped(99, 200, 10); /* imported: not ours to count */
    vmm_unmapped(20, 20);    /* the second and the third */
    ck_assert_uint_eq(counted(), 20);
    vmm_unmapped(0, 1000);
    ck_assert_uint_eq(counted(), 0);
}
END_TEST

START_TEST(one_block_at_many_places)
{
    vmm_created(5, 0, 64);
    vmm_mapped(5, 0x100, 64);
    vmm_mapped(5, 0x200, 64);
    vmm_released(5);
    vmm_unmapped(0x100, 64);
    ck_assert_uint_eq(counted(), 64);
    vmm_unmapped(0x200, 64);
    ck_assert_uint_eq(counted(), 0);
}
END_TEST

/* ---- arrays ------------------------------------------------------------------------------------------------------------------ */

static const struct {
    size_t w, h, d;
    CUarray_format format;
    unsigned channels, flags, levels;
    size_t bytes;
} arrays[] = {
    {64, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0, 1, 256},
    {64, 64, 0, CU_AD_FORMAT_HALF, 4, 0, 1, 64 * 64 * 8},
    {8, 8, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 1, 512},
    {8, 8, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 4, 512 + 64 + 8 + 1},
    {8, 8, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED, 2, 3 * (64 + 16)},
    {8, 8, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0, 1, 32},
    {8, 8, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0, 1, 64},
    {64, 64, 64, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE, 1, 0},
    {64, 64, 64, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_DEFERRED_MAPPING, 1, 0},
    {SIZE_MAX, SIZE_MAX, 1, CU_AD_FORMAT_FLOAT, 4, 0, 1, SIZE_MAX / 2},
};

START_TEST(array_bytes)
{
    ck_assert_uint_eq(counted_array_bytes(arrays[_i].w, arrays[_i].h, arrays[_i].d, arrays[_i].format, arrays[_i].channels,
                                          arrays[_i].flags, arrays[_i].levels),
                      arrays[_i].bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("preload_counted");
    TCase *t = tcase_create("handles");
    tcase_add_test(t, released_then_unmapped);
    tcase_add_test(t, unmapped_then_released);
    tcase_add_test(t, further_references);
    tcase_add_test(t, asked_for_by_address);
    tcase_add_test(t, number_used_again);
    tcase_add_test(t, one_unmap_for_many_maps);
    tcase_add_test(t, one_block_at_many_places);
    suite_add_tcase(s, t);
    t = tcase_create("arrays");
    tcase_add_loop_test(t, array_bytes, 0, (int)(sizeof arrays / sizeof arrays[0]));
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
