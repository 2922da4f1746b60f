/* evict.c: chunks out of memory that the program has freed in a stream which has not come to the free. */
#include "fixture.h"
#include "policy/memory/evict.h"
#include "policy/memory/foreign.h"
#include "policy/memory/supply.h"

enum { PAGES = 16 };

static CUresult not_yet(void) { return CUDA_ERROR_NOT_READY; }

/* One block of the program's own leaves room for eight chunks: waiting for the block makes all of them, not one. */
START_TEST(one_wait_makes_several_chunks)
{
    fx_begin(PAGES);
    struct device *d = &fx.d;
    const struct foreign_block block = {.bytes = PAGES / 2 * FX_PAGE};
    d->mem.foreign_bytes = block.bytes;
    fx.drv.cuStreamQuery = (void *)not_yet;
    fx.drv.cuEventQuery = (void *)not_yet;
    foreign_leaves(d, &block, STREAM_FIRST_PROGRAM);
    while (supply_chunk(d) >= 0)
        ;
    ck_assert_uint_eq(d->mem.n_free_chunks, PAGES / 2);
    evict_for(d, PAGES);
    ck_assert_uint_eq(d->mem.n_free_chunks, PAGES);
    ck_assert_uint_eq(d->mem.foreign_bytes, 0);
    evict_for(d, PAGES + 1); /* beyond the limit: nothing is left to wait for */
    ck_assert_uint_eq(d->mem.n_free_chunks, PAGES);
    fx_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("evict");
    TCase *t = tcase_create("evict");
    tcase_add_test(t, one_wait_makes_several_chunks);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
