/* space.c against a row of flags: what is taken is nobody else's, lies where no number does as long as there is such a place, and is
 * all there again in the end. */
#include "policy/memory/space.h"
#include "tests/unit/drawn.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT = 21, TAKEN_MOST = 400 };
static const uint64_t HALF = 1ull << 32;

struct taken {
    uint64_t first, n;
};
static struct device d;
static bool *used;
static struct taken taken[TAKEN_MOST];
static uint32_t n_taken;

static uint64_t seed = 1;
static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (seed >> 33) % below;
}

static void begin(CUdeviceptr base, uint64_t pages)
{
    memset(&d, 0, sizeof d);
    d.mem.base = base;
    d.mem.shift = SHIFT;
    d.mem.gran = 1ull << SHIFT;
    d.mem.n_va_pages = pages;
    d.mem.reserve_bytes = pages << SHIFT;
    d.mem.page_slot = calloc(pages, sizeof *d.mem.page_slot);
    used = calloc(pages, sizeof *used);
    n_taken = 0;
}

static void end(void)
{
    while (n_taken) {
        n_taken--;
        ck_assert_int_eq(space_give(&d, taken[n_taken].first, taken[n_taken].n), 0);
    }
    ck_assert_uint_eq(d.mem.next_page, 0);
    ck_assert_uint_eq(d.mem.n_gaps, 0);
    free(d.mem.gaps);
    free(d.mem.page_slot);
    free(used);
}

/* What lies in the lower half of a word is no address of the range, if it is an integer that is not far below zero; nor, of a range of
 * 752 MiB at most, if it is a float of any use. */
static bool is_at_no_number(uint64_t first, uint64_t n)
{
    const uint64_t low = (d.mem.base + (first << SHIFT)) % HALF, last = (d.mem.base + ((first + n) << SHIFT) - 1) % HALF;
    const float minus_zero = -0.0f, little = -1e-9f;
    uint32_t zero_bits, little_bits;
    memcpy(&zero_bits, &minus_zero, 4);
    memcpy(&little_bits, &little, 4);
    return low > INT32_MAX && last >= low && last < (uint32_t)-(1 << 28) && (n > 376 || (low > zero_bits && last < little_bits));
}

static bool take_one(uint64_t n)
{
    uint64_t first;
    if (n_taken == TAKEN_MOST || space_take(&d, n, &first))
        return false;
    ck_assert_uint_le(first + n, d.mem.n_va_pages);
    for (uint64_t i = first; i < first + n; i++) {
        ck_assert(!used[i]);
        used[i] = true;
    }
    taken[n_taken++] = (struct taken){first, n};
    return true;
}

static void give_one(void)
{
    const uint32_t k = (uint32_t)draw(n_taken);
    memset(used + taken[k].first, 0, taken[k].n * sizeof *used);
    ck_assert_int_eq(space_give(&d, taken[k].first, taken[k].n), 0);
    taken[k] = taken[--n_taken];
}

START_TEST(numbers_are_no_addresses)
{
    static const CUdeviceptr bases[] = {0x157a00000000, 0x7f1240200000, 0x7f12a0000000, 0x7f12f0000000, 0x7f12ffe00000};
    begin(bases[_i], 64 * (HALF >> SHIFT));
    for (int i = 0; i < (drawn_all() ? 20000 : 4000); i++) {
        if (n_taken && (n_taken > 300 || draw(2))) {
            give_one();
            continue;
        }
        const uint64_t n = 1 + draw(draw(8) ? 40 : 896);
        ck_assert(take_one(n));
        ck_assert(is_at_no_number(taken[n_taken - 1].first, n));
    }
    end();
}
END_TEST

/* Other files ask what a word's lower half may be: a number that programs have is one, and an address of a slot none. */
START_TEST(words_are_numbers_or_addresses)
{
    static const int32_t integers[] = {0, 1, 7, 224, 65536, 1 << 24, INT32_MAX, -1, -2, -(1 << 20), -(1 << 28)};
    static const float floats[] = {0, 1e-30f, 1e-8f, 0.9f, 1, 3e38f, -1e-9f * 2, -1e-5f, -0.5f, -1, -3e38f, -0.0f};
    const uint64_t upper = 0x7f12ull << 32;
    uint32_t bits;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        ck_assert_msg(mem_may_be_number(upper | (uint32_t)integers[i]), "%d", integers[i]);
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        memcpy(&bits, &floats[i], sizeof bits);
        ck_assert_msg(mem_may_be_number(upper | bits), "%g", (double)floats[i]);
    }
    begin(0x7f1240200000, 64 * (HALF >> SHIFT));
    for (int i = 0; i < TAKEN_MOST; i++) {
        const uint64_t n = 1 + draw(40);
        ck_assert(take_one(n));
        const CUdeviceptr at = d.mem.base + (taken[n_taken - 1].first << SHIFT);
        ck_assert(!mem_may_be_number(at) && !mem_may_be_number(at + (n << SHIFT) - 1));
    }
    end();
}
END_TEST

/* Larger ones, and all that a small reservation has left, lie anywhere; none is refused that there is room for. */
START_TEST(all_is_taken_in_the_end)
{
    begin(0x7f1200000000, 2 * (HALF >> SHIFT));
    ck_assert(take_one(1 + (HALF >> SHIFT)));
    uint64_t pages = 1 + (HALF >> SHIFT);
    while (take_one(7))
        pages += 7;
    while (take_one(1))
        pages++;
    ck_assert_uint_eq(pages, d.mem.n_va_pages);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("space");
    TCase *c = tcase_create("all");
    tcase_add_loop_test(c, numbers_are_no_addresses, 0, 5);
    tcase_add_test(c, words_are_numbers_or_addresses);
    tcase_add_test(c, all_is_taken_in_the_end);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
