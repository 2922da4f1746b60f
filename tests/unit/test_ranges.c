/* ranges.c against a row of flags: what is remembered of ranges that come and go, one in another's place. */
#include "policy/memory/ranges.h"

#include <check.h>
#include <stdlib.h>

enum { PLACES = 64, STEP = 4096, ROUNDS = 20000 };
static const uint64_t BASE = 0x7f0000000000ull;

static uint64_t seed = 1;
static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % below;
}

static struct ranges held;

/* The range at each place: where it begins, and where it ends. */
static uint64_t begins[PLACES], ends[PLACES];

static void forget(uint64_t begin)
{
    for (int i = 0; i < PLACES; i++)
        if (ends[i] && begins[i] == begin)
            begins[i] = ends[i] = 0;
}

static void is_as_remembered(void)
{
    int first = PLACES, last = -1;
    for (int i = 0; i < PLACES; i++) {
        const uint64_t p = (uint64_t)i * STEP;
        ck_assert_uint_eq(ranges_left(&held, BASE + p + 8), ends[i] ? ends[i] - p - 8 : 0);
        if (ends[i]) {
            first = i < first ? i : first;
            last = i;
            ck_assert(ranges_may_hold(&held, BASE + p));
        }
    }
    ck_assert(!ranges_may_hold(&held, BASE - 1) && !ranges_may_hold(&held, 0) && !ranges_left(&held, BASE - 1));
    ck_assert(!ranges_may_hold(&held, BASE + (uint64_t)(last + 1) * STEP) && (first == PLACES || !first || !ranges_may_hold(&held, BASE + (uint64_t)first * STEP - 1)));
}

START_TEST(comes_and_goes)
{
    int added = 0, removed = 0;
    is_as_remembered();
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t from = draw(PLACES), most = PLACES - from, n = 1 + draw(most < 8 ? most : 8);
        if (draw(2)) {
            ck_assert_int_eq(ranges_add(&held, BASE + from * STEP, n * STEP), 0);
            for (uint64_t i = from; i < from + n; i++)
                if (ends[i])
                    forget(begins[i]);
            for (uint64_t i = from; i < from + n; i++) {
                begins[i] = from * STEP;
                ends[i] = (from + n) * STEP;
            }
            added++;
        } else {
            const bool is = ends[from] && begins[from] == from * STEP;
            ck_assert_uint_eq(ranges_remove(&held, BASE + from * STEP), is ? ends[from] - begins[from] : 0);
            if (is)
                forget(from * STEP);
            removed += is;
        }
        is_as_remembered();
    }
    ck_assert_int_gt(added, 1000);
    ck_assert_int_gt(removed, 1000);
    ck_assert_int_eq(ranges_add(&held, BASE, 0), 0); /* nothing is nowhere */
    ck_assert_int_eq(ranges_add(&held, ~0ull - 8, 64), 0);
    is_as_remembered();
    for (uint64_t i = 0; i < PLACES; i++)
        ranges_remove(&held, BASE + begins[i]);
    ck_assert_uint_eq(held.span, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ranges");
    TCase *t = tcase_create("ranges");
    tcase_add_test(t, comes_and_goes);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
