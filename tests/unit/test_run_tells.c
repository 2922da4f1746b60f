/* story.c and closing.c: when a change of state is told, and what the line at the end says, from counters that are given. */
#include "policy/process/closing.h"
#include "policy/process/story.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { S = 1 };
static const uint64_t SECOND = 1000000000ull;

/* A line at most every ten seconds, and of what holds by then. */
START_TEST(a_file_has_a_line_every_ten_seconds)
{
    struct story s = {0};
    uint64_t last = 0;
    ck_assert(story_set(&s, STORY_LEARNING, 0, "learning"));
    ck_assert(story_may_tell(&s, STORY_PAUSE_NS, SECOND, last));
    last = SECOND;
    ck_assert(story_set(&s, STORY_PLANNING, 0, "planning"));
    ck_assert(!story_may_tell(&s, STORY_PAUSE_NS, 2 * SECOND, last));
    ck_assert(story_set(&s, STORY_IN_FORCE, 0, "in force"));
    ck_assert(!story_may_tell(&s, STORY_PAUSE_NS, last + STORY_PAUSE_NS - 1, last));
    ck_assert(story_may_tell(&s, STORY_PAUSE_NS, last + STORY_PAUSE_NS, last));
    ck_assert_str_eq(s.text, "in force");
    ck_assert_int_eq(s.told, STORY_IN_FORCE);
    ck_assert(!story_may_tell(&s, STORY_PAUSE_NS, 100 * SECOND, last));
}
END_TEST

/* What is again as it was told is nothing to tell; the reason to swap stays known. */
START_TEST(what_comes_back_in_between_is_not_told)
{
    struct story s = {0};
    story_set(&s, STORY_IN_FORCE, 0, "in force");
    ck_assert(story_may_tell(&s, STORY_PAUSE_NS, SECOND, 0));
    story_set(&s, STORY_SWAPPING, 0, "another batch");
    ck_assert(!story_may_tell(&s, STORY_PAUSE_NS, 2 * SECOND, SECOND));
    story_set(&s, STORY_IN_FORCE, 0, "in force");
    ck_assert(!story_may_tell(&s, STORY_PAUSE_NS, 50 * SECOND, SECOND));
    ck_assert_str_eq(s.why, "another batch");
    story_set(&s, STORY_SWAPPING, 0, "another batch");
    ck_assert(story_may_tell(&s, STORY_PAUSE_NS, 51 * SECOND, SECOND));
    /* another reason is another state, the same one is not */
    ck_assert(!story_set(&s, STORY_SWAPPING, 0, "another batch"));
    ck_assert(story_set(&s, STORY_SWAPPING, 0, "no plan"));
    ck_assert(story_may_tell(&s, STORY_PAUSE_NS, 90 * SECOND, 51 * SECOND));
}
END_TEST

/* A plan that takes the place of the one in force is told, with its price; one that costs the same is not. */
START_TEST(another_price_is_told)
{
    struct story s = {0};
    story_set(&s, STORY_IN_FORCE, 40, "4 %");
    ck_assert(story_may_tell(&s, STORY_PAUSE_NS, SECOND, 0));
    ck_assert(!story_set(&s, STORY_IN_FORCE, 40, "4 %, from iteration 9 on"));
    ck_assert_str_eq(s.text, "4 %");
    ck_assert(story_set(&s, STORY_IN_FORCE, 10, "1 %"));
    ck_assert_str_eq(s.text, "1 %");
    ck_assert(story_may_tell(&s, STORY_PAUSE_NS, 50 * SECOND, SECOND));
    /* what was told last, and holds again, is not told twice */
    story_set(&s, STORY_SWAPPING, 0, "another batch");
    ck_assert(story_set(&s, STORY_IN_FORCE, 10, "1 %"));
    ck_assert(!story_may_tell(&s, STORY_PAUSE_NS, 90 * SECOND, 50 * SECOND));
}
END_TEST

static struct config cfg;
static struct story story;
static struct device dev, *devs[] = {&dev};
static char text[CLOSING_TEXT];

static void setup(void)
{
    memset(&cfg, 0, sizeof cfg);
    memset(&story, 0, sizeof story);
    memset(&dev, 0, sizeof dev);
    dev.cfg = &cfg;
    dev.story = &story;
    dev.mem.device_bytes = 8ull << 30;
    dev.mem.limit_bytes = 100 << 20;
    dev.mem.pressed = true;
    dev.mode = MODE_ENFORCE;
    dev.st = (struct stats){.peak_physical_bytes = 98 << 20, .native_peak_bytes = 200 << 20, .iterations = 40, .iterations_enforced = 30, .launches = 1000,
                            .replays = 90, .verify_checked = 7, .bytes_out = 32 << 20, .bytes_in = 16 << 20, .lessons_ns = 3 * SECOND / 2,
                            .planning_ns = 2 * SECOND, .plans = 1, .iter_ns_count = 10, .iter_ns_sum = 10 * 2.2e6, .native_ns = 2000000,
                            .first_enforced_ns = 9 * SECOND, .first_enforced_iteration = 10, .bound_ns = 2100000, .baseline_ns = 2000000};
}

static const char *closing(void)
{
    struct summary s;
    summary_make(devs, S, &s);
    closing_text(&cfg, &s, text);
    return text;
}

START_TEST(a_plan)
{
    ck_assert_str_eq(closing(), "peak 98 MiB of 100 MiB, natively 200 MiB; 30 of 40 iterations by a plan (the first 10 ran before the plan was there); "
                                "2.200 ms each, +10.0 % on 2.000 ms natively (estimated), proved bound +5.0 %; learning 1.5 s, planning 2.0 s; "
                                "7 values compared, 0 differed; copied 32 MiB out, 16 MiB in");
    cfg.limit_pct = 1.22;
    ck_assert_ptr_nonnull(strstr(closing(), "of 100 MiB (1.22 % of the device's memory)"));
    dev.st.first_enforced_iteration = 4;
    snprintf(story.why, sizeof story.why, "it evaluated");
    ck_assert_ptr_nonnull(strstr(closing(), "(the first 4 ran before the plan was there, 6 later without it (the last time since it evaluated))"));
    dev.st.iter_ns_sum = 10 * 1.9e6; /* the ops by themselves took longer than together */
    ck_assert_ptr_nonnull(strstr(closing(), "1.900 ms each, -5.0 % on"));
}
END_TEST

/* What is not known is said not to be. */
START_TEST(unknown)
{
    dev.st.native_ns = dev.st.bound_ns = dev.st.verify_checked = 0;
    ck_assert_ptr_nonnull(strstr(closing(), "2.200 ms each, natively not known; learning"));
    ck_assert_ptr_nonnull(strstr(closing(), "; no values compared; copied"));
    dev.st.native_ns = 2000000;
    ck_assert_ptr_nonnull(strstr(closing(), "natively (estimated), no bound known;"));
    dev.st.iter_ns_count = 0;
    dev.st.iter_ns_sum = 0;
    ck_assert_ptr_nonnull(strstr(closing(), "; how long one takes is not known;"));
}
END_TEST

START_TEST(reasons)
{
    dev.st.iterations_enforced = 0;
    dev.st.first_enforced_iteration = 0;
    dev.st.plans = 0;
    story.now = STORY_LEARNING;
    ck_assert_ptr_nonnull(strstr(closing(), "0 of 40 iterations by a plan (the program ended while its iteration was being learnt)"));
    story.now = STORY_PLANNING;
    ck_assert_ptr_nonnull(strstr(closing(), "(the program ended while its plan was being made)"));
    story.now = STORY_SWAPPING;
    snprintf(story.text, sizeof story.text, "no plan meets the limit");
    ck_assert_ptr_nonnull(strstr(closing(), "(no plan meets the limit)"));
    cfg.policy = POLICY_SWAP;
    ck_assert_ptr_nonnull(strstr(closing(), "(--policy swap makes no plan)"));
    cfg.policy = POLICY_AUTO;
    story.now = STORY_NONE;
    dev.mem.pressed = false;
    dev.st = (struct stats){.peak_physical_bytes = 90 << 20, .native_peak_bytes = 89 << 20, .iterations = 40, .launches = 9, .iter_ns_count = 2, .iter_ns_sum = 4e6};
    ck_assert_str_eq(closing(), "peak 90 MiB of 100 MiB; 40 iterations (the limit was never felt); 2.000 ms each, as natively (measured)");
    dev.mem.limit_bytes = dev.mem.device_bytes;
    ck_assert_str_eq(closing(), "peak 90 MiB without a limit; 40 iterations; 2.000 ms each, as natively (measured)");
    /* every iteration had launches that ran as trials: 4.873 ms were told as the native time of a script that takes 2.29 */
    dev.st.iter_ns_count = 0;
    dev.st.tried_ns_count = 2;
    dev.st.tried_ns_sum = 4e6;
    ck_assert_str_eq(closing(), "peak 90 MiB without a limit; 40 iterations; 2.000 ms each, natively not known");
    dev.st.native_ns = 1000000;
    ck_assert_ptr_nonnull(strstr(closing(), "; 2.000 ms each, +100.0 % on 1.000 ms natively (estimated), no bound known"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tells");
    TCase *t = tcase_create("tells");
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, a_file_has_a_line_every_ten_seconds);
    tcase_add_test(t, what_comes_back_in_between_is_not_told);
    tcase_add_test(t, another_price_is_told);
    tcase_add_test(t, a_plan);
    tcase_add_test(t, unknown);
    tcase_add_test(t, reasons);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
