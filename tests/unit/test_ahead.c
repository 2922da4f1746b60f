/* ahead.c: what swapping has sent to the host comes back before it is asked for, while memory falls, and is what it was. */
#include "fixture.h"
#include "policy/memory/ahead.h"

enum { PAGES = 16, EACH = 2, MADE = PAGES / EACH };

static bool is_back(int buf) { return fx.slot[buf]->state == SLOT_RESIDENT; }

static void work(int buf) /* two ops: one of them is followed by a look */
{
    const struct fx_line fill = FX_FILL(buf, 100);
    fx_line(&fill);
    fx_line(&fill);
}

static void give_back(int buf)
{
    const struct fx_line gone = FX_FREE(buf);
    fx_line(&gone);
}

/* Buffers 1 to 8 fill the memory; those from 1 to `out` are on the host, and others in their place. */
static void begin(int out)
{
    fx_begin(PAGES);
    fx.d.mode = MODE_OBSERVE;
    fx.d.mem.pressed = true;
    for (int b = 1; b <= MADE + out; b++) {
        const struct fx_line make = FX_MAKE_LARGE(b, EACH), fill = FX_FILL(b, b);
        fx_line(&make);
        fx_line(&fill);
    }
    for (int b = 1; b <= out; b++)
        ck_assert_int_eq(fx.slot[b]->state, SLOT_HOST);
}

/* The latest used of those that left comes first; room for the largest tensor stays. */
START_TEST(what_left_last_comes_first)
{
    begin(3);
    give_back(MADE + 3);
    work(MADE + 2);
    ck_assert(!is_back(1) && !is_back(2) && !is_back(3)); /* there is no more room than for the largest */
    give_back(MADE + 1);
    work(MADE + 2);
    ck_assert(is_back(3) && !is_back(2) && !is_back(1));
    give_back(8);
    work(MADE + 2);
    ck_assert(is_back(2) && !is_back(1));
    fx_check_all();
    work(3);
    ck_assert_uint_eq(fx.d.mem.ahead.used_bytes, EACH * FX_PAGE);
    fx_end();
}
END_TEST

/* While the program holds more and more nothing comes back, however much is free. */
START_TEST(not_while_memory_rises)
{
    begin(2);
    fx.d.mem.ahead.falling = false;
    fx.d.mem.ahead.turning_bytes = 0;
    for (int b = 5; b <= MADE; b++)
        give_back(b);
    fx.d.mem.ahead.turning_bytes = fx.d.mem.live_bytes; /* it has just begun to rise from here */
    work(MADE + 1);
    ck_assert(!is_back(1) && !is_back(2));
    fx_end();
}
END_TEST

/* A workspace of half the memory comes and goes: so much stays free for it as long as it was there lately. */
START_TEST(room_for_what_comes_and_goes)
{
    begin(3);
    ahead_allocated(&fx.d, PAGES / 2 * FX_PAGE);
    give_back(MADE + 3);
    give_back(MADE + 1);
    give_back(MADE);
    give_back(MADE - 1);
    work(MADE + 2);
    ck_assert(!is_back(3)); /* 8 pages are free */
    fx.d.op_count += 2000;
    work(MADE + 2);
    fx.d.op_count += 2000;
    work(MADE + 2);
    ck_assert(is_back(3));
    fx_end();
}
END_TEST

/* What leaves again before anything has used it came for nothing; where that is much, nothing comes. */
START_TEST(in_vain)
{
    begin(3);
    give_back(MADE + 3);
    give_back(MADE + 1);
    work(MADE + 2);
    ck_assert(is_back(3));
    ck_assert_int_eq(swap_out(&fx.d, fx.slot[3]), 0);
    ck_assert_uint_eq(fx.d.mem.ahead.vain_bytes, EACH * FX_PAGE);
    work(MADE + 2);
    ck_assert(!is_back(3));
    fx.d.mem.ahead.used_bytes = 100 * FX_PAGE; /* it is little beside what was used */
    work(MADE + 2);
    ck_assert(is_back(3));
    fx_check_all();
    fx_end();
}
END_TEST

/* Something may wait for the host: a copy back that came early would stand behind that, and copies that are asked for behind the early one. */
START_TEST(not_where_streams_may_stand_still)
{
    begin(3);
    fx.d.streams->gated = true;
    give_back(MADE + 3);
    give_back(MADE + 1);
    work(MADE + 2);
    ck_assert(!is_back(3));
    fx.d.streams->gated = false;
    work(MADE + 2);
    ck_assert(is_back(3));
    fx_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ahead");
    TCase *t = tcase_create("ahead");
    tcase_add_test(t, what_left_last_comes_first);
    tcase_add_test(t, not_while_memory_rises);
    tcase_add_test(t, room_for_what_comes_and_goes);
    tcase_add_test(t, in_vain);
    tcase_add_test(t, not_where_streams_may_stand_still);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
