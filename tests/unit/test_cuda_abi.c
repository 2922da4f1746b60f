/*
 * Our declarations of the driver interface against NVIDIA's cuda.h. Prototypes are compared by the compiler
 * (tests/simgpu/abi_nvidia.c); sizes, offsets and values here. Exit 77 where no cuda.h of 13.0 or later is
 * installed.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/simgpu/abi_rows.h"

START_TEST(same_rows)
{
    ck_assert_uint_eq(abi_rows_ours_count, abi_rows_nvidia_count);
    ck_assert_uint_gt(abi_rows_ours_count, 1000);
    size_t differ = 0;
    for (size_t i = 0; i < abi_rows_ours_count; i++) {
        ck_assert_str_eq(abi_rows_ours[i].what, abi_rows_nvidia[i].what);
        if (abi_rows_ours[i].value == abi_rows_nvidia[i].value)
            continue;
        differ++;
        fprintf(stderr, "%s: ours %lld, cuda.h %lld\n", abi_rows_ours[i].what, abi_rows_ours[i].value,
                abi_rows_nvidia[i].value);
    }
    ck_assert_uint_eq(differ, 0);
}
END_TEST

int main(void)
{
    if (abi_rows_nvidia_count == 0) {
        puts("test_cuda_abi: skipped, no cuda.h of CUDA 13.0 or later here");
        return 77;
    }
    Suite *s = suite_create("cuda_abi");
    TCase *t = tcase_create("layout");
    tcase_add_test(t, same_rows);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
