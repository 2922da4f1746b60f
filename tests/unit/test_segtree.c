/* Range-add trees against plain rows: maxima, single positions, ranges, and the log-add-exp form against libm. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "offline/solvers/anneal/segtree.h"

static uint64_t rng = 12345;

static uint32_t draw(uint32_t n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(((rng >> 33) * n) >> 31);
}

START_TEST(equals_plain_row)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 8, 9, 100, 1000, 1025};
    struct segtree t = {0};
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
        const uint32_t n = sizes[z];
        double *row = calloc(n, sizeof *row);
        ck_assert_int_eq(segtree_init(&t, n), 0);
        for (uint32_t i = 0; i < n; i++)
            row[i] = (double)draw(1000) - 500;
        segtree_build(&t, row);
        for (int step = 0; step < 3000; step++) {
            uint32_t lo = draw(n), hi = draw(n);
            const double x = (double)draw(2000001) * 4096.0 - 4096e6;
            segtree_add(&t, lo, hi, x); /* lo > hi: nothing */
            double max = -INFINITY;
            for (uint32_t i = 0; i < n; i++) {
                row[i] += i >= lo && i <= hi ? x : 0;
                max = fmax(max, row[i]);
            }
            ck_assert_double_eq(segtree_max(&t), max);
            const uint32_t at = draw(n);
            ck_assert_double_eq(segtree_at(&t, at), row[at]);
            if (lo > hi) {
                const uint32_t swap = lo;
                lo = hi;
                hi = swap;
            }
            max = -INFINITY;
            for (uint32_t i = lo; i <= hi; i++)
                max = fmax(max, row[i]);
            ck_assert_double_eq(segtree_range_max(&t, lo, hi), max);
        }
        free(row);
    }
    segtree_free(&t);
}
END_TEST

/* Many additions at once, between additions of the ordinary kind: every position, every range and the smooth maximum as if they had come one by one. */
START_TEST(together_as_one_by_one)
{
    static const uint32_t sizes[] = {1, 2, 3, 8, 9, 100, 1025};
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
        const uint32_t n = sizes[z];
        struct segtree t = {0}, one = {0};
        struct segtree_soft soft = {0}, soft_one = {0};
        double *x = calloc(n, sizeof *x), *read = calloc(n, sizeof *read);
        ck_assert(!segtree_init(&t, n) && !segtree_init(&one, n) && !segtree_soft_init(&soft, n) && !segtree_soft_init(&soft_one, n));
        for (int step = 0; step < 300; step++) {
            uint32_t lo = draw(n), hi = lo + draw(n - lo);
            segtree_add(&t, lo, hi, 512);
            segtree_add(&one, lo, hi, 512);
            segtree_soft_add(&soft, lo, hi, 0.5);
            segtree_soft_add(&soft_one, lo, hi, 0.5);
            lo = draw(n);
            hi = lo + draw(n - lo);
            for (uint32_t i = lo; i <= hi; i++) {
                x[i - lo] = (double)draw(2001) - 1000;
                segtree_add(&one, i, i, x[i - lo]);
                segtree_soft_add(&soft_one, i, i, x[i - lo] / 1024);
            }
            segtree_add_each(&t, lo, hi, x);
            for (uint32_t i = lo; i <= hi; i++)
                x[i - lo] /= 1024;
            segtree_soft_add_each(&soft, lo, hi, x);
            segtree_read(&t, read);
            for (uint32_t i = 0; i < n; i++)
                ck_assert(read[i] == segtree_at(&one, i) && segtree_at(&t, i) == read[i]);
            ck_assert_double_eq(segtree_max(&t), segtree_max(&one));
            ck_assert_double_eq(segtree_range_max(&t, lo, hi), segtree_range_max(&one, lo, hi));
            ck_assert_double_eq_tol(segtree_soft_max(&soft), segtree_soft_max(&soft_one), 1e-9);
        }
        segtree_free(&t);
        segtree_free(&one);
        segtree_soft_free(&soft);
        segtree_soft_free(&soft_one);
        free(x);
        free(read);
    }
}
END_TEST

START_TEST(undo_restores_every_bit)
{
    struct segtree t = {0};
    ck_assert_int_eq(segtree_init(&t, 777), 0);
    for (int i = 0; i < 500; i++) {
        const uint32_t lo = draw(777), hi = lo + draw(777 - lo);
        const double x = (double)draw(1u << 30);
        const double before = segtree_max(&t);
        segtree_add(&t, lo, hi, x);
        segtree_add(&t, lo, hi, -x);
        ck_assert_double_eq(segtree_max(&t), before);
        segtree_add(&t, lo, hi, x);
    }
    segtree_free(&t);
}
END_TEST

START_TEST(soft_maximum_is_close)
{
    static const uint32_t sizes[] = {1, 2, 5, 64, 1000};
    struct segtree_soft t = {0};
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++) {
        const uint32_t n = sizes[z];
        double *row = calloc(n, sizeof *row);
        ck_assert_int_eq(segtree_soft_init(&t, n), 0);
        for (int step = 0; step < 2000; step++) {
            const uint32_t lo = draw(n), hi = lo + draw(n - lo);
            const double x = (double)draw(4000) / 100 - 20;
            segtree_soft_add(&t, lo, hi, x);
            double max = -INFINITY, sum = 0;
            for (uint32_t i = 0; i < n; i++) {
                row[i] += i >= lo && i <= hi ? x : 0;
                max = fmax(max, row[i]);
            }
            for (uint32_t i = 0; i < n; i++)
                sum += exp(row[i] - max);
            /* a rounding of 1/128 of the table's argument, halved by the slope, at each of ten levels */
            ck_assert_double_eq_tol(segtree_soft_max(&t), max + log(sum), 0.05);
            ck_assert_double_ge(segtree_soft_max(&t), max - 1e-6);
        }
        free(row);
    }
    segtree_soft_free(&t);
}
END_TEST

START_TEST(bad_sizes)
{
    struct segtree t = {0};
    ck_assert_int_eq(segtree_init(&t, 0), -EINVAL);
    ck_assert_int_eq(segtree_init(&t, UINT32_MAX), -EINVAL);
    ck_assert_ptr_null(t.node);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("segtree");
    TCase *c = tcase_create("segtree");
    tcase_add_test(c, equals_plain_row);
    tcase_add_test(c, undo_restores_every_bit);
    tcase_add_test(c, together_as_one_by_one);
    tcase_add_test(c, soft_maximum_is_close);
    tcase_add_test(c, bad_sizes);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
