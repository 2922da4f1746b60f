/* Facts by code and pattern: when a launch is known, like, or unknown; what varies freely; what is never believed again. */
#include "tracer/known/known.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS = 64, WORDS = 3 }; /* addresses at 0, 8 and 16; numbers from 24 on */

static struct known *k;
static struct known_kernel *f;
static unsigned char args[ARGS];
static struct known_word words[WORDS];
static struct known_launch l;
static uint8_t use[WORDS], told[WORDS];
static uint32_t idle[1];
static struct known_facts did, says;

static void address(uint32_t i, uint64_t at) { memcpy(args + 8 * i, &at, 8); }
static void number(uint32_t at, uint32_t n) { memcpy(args + at, &n, 4); }

static void setup(void)
{
    k = known_new();
    f = known_kernel(k, (struct known_code){{1, 2}}, "gelu");
    memset(args, 0, sizeof args);
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = (struct known_word){.offset = 8 * i, .same_as = i, .bytes = 4096, .before = KNOWN_DEFINED};
        address(i, 0x7f0000000000 + 4096 * i);
    }
    words[0].before = KNOWN_BLANK;
    l = (struct known_launch){args, words, ARGS, WORDS, {8, 1, 1}, {128, 1, 1}, 0};
    use[0] = KNOWN_WHOLE, use[1] = use[2] = KNOWN_READ;
    did = (struct known_facts){.use = use};
    says = (struct known_facts){.use = told};
    known_lesson(k);
}

static void teardown(void) { known_free(k); }

static enum known_news enter(void)
{
    enum known_news news;
    ck_assert_int_eq(known_enter(k, f, &l, &did, &news), 0);
    return news;
}
static enum known_state ask(void) { return known_ask(k, f, &l, &says); }
static void enter_twice(void)
{
    enter();
    ck_assert_int_eq(enter(), KNOWN_NEWS_SAME);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
}

START_TEST(one_launch_is_not_believed_two_are)
{
    ck_assert_int_eq(ask(), KNOWN_NOT);
    ck_assert_int_eq(enter(), KNOWN_NEWS_FIRST);
    ck_assert_int_eq(ask(), KNOWN_NOT);
    ck_assert_int_eq(enter(), KNOWN_NEWS_SAME);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    ck_assert_int_eq(told[0], KNOWN_WHOLE);
    ck_assert_int_eq(told[1], KNOWN_READ);
    ck_assert_ptr_null(says.why);
}
END_TEST

START_TEST(a_lesson_that_ends_settles_what_was_measured_in_it)
{
    enter();
    known_lesson(k); /* the one before was given up */
    ck_assert_int_eq(ask(), KNOWN_NOT);
    known_settle(k);
    ck_assert_int_eq(ask(), KNOWN_NOT);
    number(24, 1);
    enter();
    known_settle(k);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    number(24, 0);
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

START_TEST(addresses_make_no_pattern_and_all_else_does)
{
    enter_twice();
    address(1, 0x7e0000000000);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    words[2].same_as = 1;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[2].same_as = 2;
    words[1].delta = 512;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[1].delta = 0;
    words[0].bytes = 8192;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[0].bytes = 4096;
    words[0].before = KNOWN_DEFINED;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[0].before = KNOWN_BLANK;
    words[1].map = 7;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[1].map = 0;
    words[1].blank = 7;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[1].blank = 0;
    l.grid[2] = 2;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    l.grid[2] = 1, l.block[0] = 64;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    l.block[0] = 128, l.also = 1;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    l.also = 0, l.n_words = 2;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    l.n_words = WORDS;
    number(60, 1);
    ck_assert_int_eq(ask(), KNOWN_NOT);
    number(60, 0);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
}
END_TEST

START_TEST(two_words_of_one_buffer_need_two_words_of_one_buffer)
{
    words[2].same_as = 1;
    enter_twice();
    words[2].same_as = 2;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[1].same_as = 0, words[2].same_as = 0;
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

START_TEST(code_and_name_tell_kernels_apart)
{
    enter_twice();
    struct known_kernel *g = known_kernel(k, (struct known_code){{1, 3}}, "gelu"), *h = known_kernel(k, (struct known_code){{1, 2}}, "relu");
    ck_assert(g && h && g != f && h != f);
    ck_assert_int_eq(known_ask(k, g, &l, &says), KNOWN_NOT);
    ck_assert_int_eq(known_ask(k, h, &l, &says), KNOWN_NOT);
    ck_assert_ptr_eq(known_kernel(k, (struct known_code){{1, 2}}, "gelu"), f);
}
END_TEST

/* A step count: another one at each launch. */
START_TEST(bits_are_free_once_they_have_varied_three_times)
{
    enter();
    for (uint32_t step = 1; step <= 3; step++) {
        ck_assert_uint_eq(known_free_bits(f, 24), 0);
        number(24, step % 2);
        number(28, step); /* no two are one pattern */
        ck_assert_int_eq(enter(), KNOWN_NEWS_FIRST);
    }
    ck_assert_uint_eq(known_free_bits(f, 24), 1);
    ck_assert_uint_eq(known_free_bits(f, 28) & 1, 1);
    ck_assert_uint_eq(known_free_bits(f, 28) & 4, 0);
    /* like one that is believed, but for free bits; and checked then */
    enter();
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    number(24, 0);
    ck_assert_int_eq(ask(), KNOWN_LIKE);
    number(24, 2);
    l.grid[0] = 9;
    words[1].delta = 8;
    l.n_words = 2;
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

START_TEST(bits_that_mattered_are_never_free)
{
    enter();
    for (uint32_t step = 1; step <= 9; step++) {
        use[1] = step == 5 ? KNOWN_IN_PLACE : KNOWN_READ; /* a flag */
        number(24, step);
        enter();
    }
    ck_assert_uint_eq(known_free_bits(f, 24) & 1, 0);
}
END_TEST

START_TEST(three_patterns_that_agree_make_a_fourth_like_them)
{
    for (uint32_t n = 1; n <= 3; n++) {
        l.grid[0] = 8 * n;
        number(24, 1000 * n);
        words[0].bytes = words[1].bytes = 4000 * n;
        l.grid[1] = 2;
        enter();
        l.grid[1] = 1;
        l.grid[0] = 99;
        words[0].bytes = 99;
        ck_assert_int_eq(ask(), n < 3 ? KNOWN_NOT : KNOWN_LIKE);
    }
    ck_assert_int_eq(told[0], KNOWN_WHOLE);
    words[0].before = KNOWN_OLD;
    ck_assert_int_eq(ask(), KNOWN_NOT);
    words[0].before = KNOWN_BLANK;
    use[2] = KNOWN_IN_PLACE;
    enter();
    l.grid[0] = 98;
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

/* A list whose third entry nobody filled: another address in each launch, or none. */
START_TEST(what_lies_in_idle_words_makes_no_pattern)
{
    use[2] = KNOWN_IDLE;
    idle[0] = 18;
    did.idle = idle, did.n_idle = 1;
    enter_twice();
    words[2] = (struct known_word){.offset = 16, .same_as = 1, .bytes = 77, .before = KNOWN_OLD};
    address(2, 0x7d0000003000);
    ck_assert_int_eq(ask(), KNOWN_NOT); /* its first two bytes are numbers for all that is known */
    address(2, 0x7d0000112000);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    ck_assert_int_eq(told[2], KNOWN_IDLE);
    l.n_words = 2; /* it leads nowhere */
    address(2, 0x7c0000222000);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    /* an address where the pattern had none */
    l.n_words = WORDS;
    words[2] = (struct known_word){.offset = 32, .same_as = 2, .bytes = 4096};
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

START_TEST(a_launch_that_does_more_ends_belief_for_good)
{
    enter_twice();
    use[1] = KNOWN_IN_PLACE;
    ck_assert_int_eq(enter(), KNOWN_NEWS_MORE);
    ck_assert_int_eq(ask(), KNOWN_NOT);
    use[1] = KNOWN_READ;
    enter();
    enter();
    known_settle(k);
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

START_TEST(a_surprise_does_too)
{
    enter_twice();
    known_surprise(k, f, &l);
    ck_assert_int_eq(ask(), KNOWN_NOT);
    enter();
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

START_TEST(one_that_does_less_takes_nothing_back)
{
    use[1] = KNOWN_IN_PLACE;
    enter_twice();
    use[0] = KNOWN_READ, use[1] = KNOWN_READ;
    ck_assert_int_eq(enter(), KNOWN_NEWS_LESS);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    ck_assert_int_eq(told[0], KNOWN_WHOLE);
    ck_assert_int_eq(told[1], KNOWN_IN_PLACE);
}
END_TEST

START_TEST(one_that_does_not_repeat_is_not_believed_to)
{
    enter_twice();
    did.why = "does not repeat bit for bit";
    ck_assert_int_eq(enter(), KNOWN_NEWS_MORE);
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

/* A workspace of which one launch writes less than the one before. */
START_TEST(what_is_left_unwritten_is_a_fact)
{
    struct known_range left[KNOWN_LEFT_MOST + 1] = {{0, 1024, 4096}};
    enum known_news news;
    use[0] = KNOWN_IN_PART;
    did.left = left, did.n_left = 1;
    enter_twice();
    ck_assert_uint_eq(says.n_left, 1);
    ck_assert(says.left != left && says.left[0].offset == 0 && says.left[0].from == 1024 && says.left[0].to == 4096);
    did.n_left = KNOWN_LEFT_MOST + 1;
    ck_assert_int_lt(known_enter(k, f, &l, &did, &news), 0);
    ck_assert_int_eq(ask(), KNOWN_FULLY);
    did.n_left = 1;
    left[0].from = 512;
    ck_assert_int_eq(enter(), KNOWN_NEWS_MORE);
    ck_assert_int_eq(ask(), KNOWN_NOT);
}
END_TEST

START_TEST(what_one_use_covers)
{
    static const char *const rows[] = {/* by fact: which of IDLE UNTRIED READ SIDE WHOLE IN_PART IN_PLACE are no more than it */
                                       "110....", "111....", "111....", "1111...", "111.1..", "111.11.", "1111111"};
    for (int a = 0; a < KNOWN_NO_USE; a++)
        for (int b = 0; b < KNOWN_NO_USE; b++)
            ck_assert_msg(known_use_covers(a, b) == (rows[a][b] == '1'), "%d %d", a, b);
}
END_TEST

START_TEST(the_table_is_bounded)
{
    enum known_news news;
    for (uint32_t n = 0; n < 3 * KNOWN_PATTERNS_MOST; n++) {
        number(24, n);
        l.grid[0] = n + 1;
        enter();
    }
    ck_assert_uint_eq(known_patterns(k), KNOWN_PATTERNS_MOST);
    l.grid[0] = 1;
    number(24, 0);
    enter(); /* the oldest has gone: it is new */
    ck_assert_int_eq(known_enter(k, f, &l, &did, &news), 0);
    unsigned char *large = calloc(1, 1 << 20);
    int r = 0;
    ck_assert_ptr_nonnull(large);
    l.args = large, l.arg_bytes = 1 << 20;
    for (uint32_t n = 0; n < 200; n++) {
        large[n] = 1;
        char name[16];
        snprintf(name, sizeof name, "k%u", n);
        struct known_kernel *g = known_kernel(k, (struct known_code){{0, 0}}, name);
        if (g && !r)
            r = known_enter(k, g, &l, &did, &news);
        ck_assert_uint_le(known_bytes(k), KNOWN_BYTES_MOST);
    }
    ck_assert_int_lt(r, 0);
    free(large);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("known");
    TCase *t = tcase_create("known");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, one_launch_is_not_believed_two_are);
    tcase_add_test(t, a_lesson_that_ends_settles_what_was_measured_in_it);
    tcase_add_test(t, addresses_make_no_pattern_and_all_else_does);
    tcase_add_test(t, two_words_of_one_buffer_need_two_words_of_one_buffer);
    tcase_add_test(t, code_and_name_tell_kernels_apart);
    tcase_add_test(t, bits_are_free_once_they_have_varied_three_times);
    tcase_add_test(t, bits_that_mattered_are_never_free);
    tcase_add_test(t, three_patterns_that_agree_make_a_fourth_like_them);
    tcase_add_test(t, what_lies_in_idle_words_makes_no_pattern);
    tcase_add_test(t, a_launch_that_does_more_ends_belief_for_good);
    tcase_add_test(t, a_surprise_does_too);
    tcase_add_test(t, one_that_does_less_takes_nothing_back);
    tcase_add_test(t, one_that_does_not_repeat_is_not_believed_to);
    tcase_add_test(t, what_is_left_unwritten_is_a_fact);
    tcase_add_test(t, what_one_use_covers);
    tcase_add_test(t, the_table_is_bounded);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
