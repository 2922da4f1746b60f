/* Iterations of earlier runs: where one has gone by, or may have ended; and bytes that are none. */
#include "tracer/known/sequence.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sequences *s;

static void setup(void) { s = sequences_new(); }
static void teardown(void) { sequences_free(s); }

static int add(const char *sigs, uint64_t n_irregular)
{
    const uint64_t irregular[] = {sequence_word(1, 8), sequence_word(1, 16), sequence_word(2, 8)};
    uint64_t all[64];
    const struct sequence_about about = {.ops = strlen(sigs), .swap_ns = 7, .swap_ops = 5, .checked = 1, .n_irregular = n_irregular};
    unsigned char *bytes;
    size_t n;
    for (size_t i = 0; i < about.ops; i++)
        all[i] = (unsigned char)sigs[i];
    ck_assert_int_eq(sequence_write(&about, all, irregular, &bytes, &n), 0);
    const int r = sequence_add(s, bytes, n);
    free(bytes);
    return r;
}

/* What the last of these ops ends. */
static int feed(const char *sigs)
{
    int ended = -1;
    for (; *sigs; sigs++)
        ended = sequences_feed(s, (unsigned char)*sigs);
    return ended;
}

START_TEST(gone_by)
{
    ck_assert_int_eq(add("aab", 0), 0);
    ck_assert_int_eq(feed("xaa"), -1);
    ck_assert_int_eq(feed("ab"), 0); /* the second and the third a begin it */
    ck_assert_int_eq(feed("aab"), 0);
    ck_assert_int_eq(feed("aaxb"), -1);
    feed("aa");
    sequences_break(s);
    ck_assert_int_eq(feed("b"), -1);
}
END_TEST

START_TEST(longest)
{
    ck_assert_int_eq(add("ab", 0), 0);
    ck_assert_int_eq(add("ababc", 0), 0);
    ck_assert_int_eq(feed("ab"), -1); /* of an accumulation, perhaps */
    ck_assert_int_eq(feed("abc"), 1);
    ck_assert_int_eq(feed("xab"), -1);
    ck_assert_int_eq(feed("xxab"), -1);
    ck_assert_int_eq(sequence_about(s, 1)->ops, 5);
}
END_TEST

START_TEST(may_end)
{
    ck_assert_int_eq(add("abcdef", 0), 0);
    feed("abf");
    ck_assert_int_eq(sequences_may_end(s, 'f'), -1); /* too little of it */
    feed("abcdf");
    ck_assert_int_eq(sequences_may_end(s, 'f'), -1); /* too soon */
    feed("abcdxef");
    ck_assert_int_eq(sequences_may_end(s, 'e'), -1);
    ck_assert_int_eq(sequences_may_end(s, 'f'), 0);
}
END_TEST

START_TEST(irregular)
{
    ck_assert_int_eq(add("abc", 3), 0);
    ck_assert(sequence_is_irregular(s, 0, 1, 8) && sequence_is_irregular(s, 0, 1, 16) && sequence_is_irregular(s, 0, 2, 8));
    ck_assert(!sequence_is_irregular(s, 0, 0, 8) && !sequence_is_irregular(s, 0, 1, 12) && !sequence_is_irregular(s, 0, 2, 16));
}
END_TEST

START_TEST(refused)
{
    const struct sequence_about none = {.ops = 0};
    struct sequence_about a = {.ops = 2, .n_irregular = 1};
    const uint64_t words[3] = {1, 2, 3};
    unsigned char *bytes;
    size_t n;
    ck_assert_int_eq(sequence_write(&none, words, words, &bytes, &n), -EFBIG);
    ck_assert_int_eq(sequence_write(&a, words, words, &bytes, &n), 0);
    for (size_t cut = 0; cut < n; cut++)
        ck_assert_int_eq(sequence_add(s, bytes, cut), -EBADMSG);
    for (uint64_t k = 0; k < sizeof a; k += 8) { /* each number of it too large */
        uint64_t wrong = UINT64_MAX - k, then;
        memcpy(&then, bytes + k, 8);
        memcpy(bytes + k, &wrong, 8);
        ck_assert(k == offsetof(struct sequence_about, swap_ns) || sequence_add(s, bytes, n) == -EBADMSG);
        memcpy(bytes + k, &then, 8);
    }
    free(bytes);
    for (int i = 0; i < SEQUENCES_MOST; i++)
        (void)add("ab", 0);
    ck_assert_int_eq(add("ab", 0), -ENOSPC);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sequence");
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, gone_by);
    tcase_add_test(c, longest);
    tcase_add_test(c, may_end);
    tcase_add_test(c, irregular);
    tcase_add_test(c, refused);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
