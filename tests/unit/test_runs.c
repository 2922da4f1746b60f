/* runs.c against a row of flags: the first place that is free for n, and the longest run, after every change. */
#include "policy/memory/runs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS_MOST = 5000 };
static bool is_free[UNITS_MOST];

static uint32_t longest(uint32_t units)
{
    uint32_t run = 0, most = 0;
    for (uint32_t u = 0; u < units; u++) {
        run = is_free[u] ? run + 1 : 0;
        most = run > most ? run : most;
    }
    return most;
}

static uint32_t first_of(uint32_t units, uint32_t n)
{
    uint32_t run = 0;
    for (uint32_t u = 0; u < units; u++) {
        run = is_free[u] ? run + 1 : 0;
        if (run == n)
            return u + 1 - n;
    }
    return UINT32_MAX;
}

static uint64_t seed = 1;
static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((seed >> 33) % below);
}

/* Taken where they fit first, given back in any order, as an arena does it. */
static void holds_for(uint32_t units, uint32_t most, int changes)
{
    struct { uint32_t at, n; } held[UNITS_MOST];
    uint32_t n_held = 0;
    struct runs *r = runs_new(units);
    ck_assert_ptr_nonnull(r);
    memset(is_free, true, sizeof is_free);
    for (int i = 0; i < changes; i++) {
        uint32_t n = 1 + draw(most);
        ck_assert_uint_eq(runs_longest(r), longest(units));
        if (n <= runs_longest(r) && draw(3)) {
            uint32_t at = runs_find(r, n);
            ck_assert_uint_eq(at, first_of(units, n));
            runs_set(r, at, n, false);
            memset(is_free + at, false, n);
            held[n_held].at = at;
            held[n_held++].n = n;
        } else if (n_held) {
            uint32_t k = draw(n_held);
            runs_set(r, held[k].at, held[k].n, true);
            memset(is_free + held[k].at, true, held[k].n);
            held[k] = held[--n_held];
        }
    }
    while (n_held--)
        runs_set(r, held[n_held].at, held[n_held].n, true);
    ck_assert_uint_eq(runs_longest(r), units);
    ck_assert_uint_eq(runs_find(r, units), 0);
    free(r);
}

START_TEST(as_a_row_of_flags)
{
    static const uint32_t sizes[] = {1, 2, 7, 8, 32, 63, 64, 65, 100, 127, 128, 200, 512, 1000, 4096, UNITS_MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        holds_for(sizes[i], sizes[i], 500);
        holds_for(sizes[i], sizes[i] < 8 ? sizes[i] : 8, 2000);
        holds_for(sizes[i], sizes[i] < 150 ? sizes[i] : 150, 2000);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("runs");
    TCase *c = tcase_create("all");
    tcase_add_test(c, as_a_row_of_flags);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
