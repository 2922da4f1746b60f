/* A plan followed in the test's own process (fixture.h): what the program holds is what it would be without a plan, wherever the plan is left. */
#include "fixture.h"
#include "policy/memory/alloc.h"
#include "policy/memory/chunk.h"
#include "policy/memory/page.h"
#include "policy/memory/slot.h"
#include "policy/memory/supply.h"
#include "policy/plan/replay.h"
#include "policy/plan/steps.h"
#include "policy/process/check.h"

/* 0: x = older, 1: a = x, 2: b = a, 3: c = b; a is not needed until op 4: e = a. Three pages beside the older one would do. */
static const struct fx_line program[] = {
    FX_MAKE(1), FX_FILL(1, 11), /* op 0 */
    FX_MAKE(2), FX_COPY(2, 1),  /* op 1 */
    FX_MAKE(3), FX_FILL(3, 33), /* op 2 */
    FX_MAKE(4), FX_COPY(4, 2),  /* op 3: needs 2, which op 1 makes of 1 */
    FX_COPY(0, 4),              /* op 4: outlives the iteration */
    FX_FREE(1), FX_FREE(2), FX_FREE(3), FX_FREE(4),
};
enum { LINES = sizeof program / sizeof *program };

static void begin(unsigned pages)
{
    fx_begin(pages);
    fx_older(0, 5);
    fx_record(program, LINES);
}

START_TEST(what_is_dropped_is_made_again)
{
    begin(16);
    fx_plan("0 1 d2 2 r1 3 4");
    fx_install(0);
    ck_assert_int_eq(fx_iteration(MODE_REHEARSE), EXEC_END_WHOLE);
    ck_assert(fx.d.ex->now.proved);
    const unsigned before = fx.launches;
    ck_assert_int_eq(fx_iteration(MODE_ENFORCE), EXEC_END_WHOLE);
    ck_assert_uint_eq(fx.launches - before, 5 + 1);
    ck_assert_uint_eq(fx.d.st.replays, 2);
    fx_end();
}
END_TEST

START_TEST(what_is_released_comes_back)
{
    begin(16);
    fx_plan("0 1 o2 l2 2 f2 3 4");
    fx_install(0);
    fx_iteration(MODE_REHEARSE);
    fx_iteration(MODE_ENFORCE);
    ck_assert_uint_eq(fx.d.st.swaps_out, 2);
    ck_assert_uint_eq(fx.d.st.swaps_in, 2);
    fx_end();
}
END_TEST

/* A steady iteration makes no memory call. */
START_TEST(a_steady_iteration_maps_nothing)
{
    begin(16);
    fx_plan("0 1 d2 2 r1 3 4");
    fx_install(0);
    fx_iteration(MODE_REHEARSE);
    fx_iteration(MODE_ENFORCE);
    const uint64_t before = fx.d.st.mem_calls;
    fx_iteration(MODE_ENFORCE);
    ck_assert_uint_eq(fx.d.st.mem_calls, before);
    fx_end();
}
END_TEST

/* A chunk of the plan's map goes back to the driver, and a page of our own gets its handle: that page is mapped nowhere else. */
START_TEST(a_chunk_that_is_gone_is_not_mapped)
{
    CUmemGenericAllocationHandle own;
    begin(16);
    fx_plan("0 1 d2 2 r1 3 4");
    fx_install(0);
    fx_iteration(MODE_REHEARSE);
    const struct slot *s = &fx.d.mem.slots[fx.d.ex->map.alloc_slot[0]];
    const int32_t c = fx.d.ex->map.home[0][0];
    ck_assert_int_eq(s->map[0], c);
    ck_assert_int_eq(supply_release(&fx.d, c), 0);
    ck_assert_int_eq(page_of_own(&fx.d, &own), 0);
    ck_assert_uint_eq(own, fx.d.mem.chunks[c].handle);
    install_repair(&fx.d);
    ck_assert_int_lt(s->map[0], 0);
    fx_iteration(MODE_ENFORCE); /* buffer 1 gets another chunk; every buffer is compared with fx.want */
    page_of_own_gone(&fx.d, own);
    fx_end();
}
END_TEST

static const char *const plans[] = {
    "0 1 d2 2 r1 3 4", "0 1 d1 2 d2 r0 r1 3 4", "0 1 d1 d2 2 r0 r1 d1 3 4", "0 1 o2 l2 2 f2 3 4", "0 1 o1 l1 d2 2 f1 r1 3 4",
};

/* Left before any line of the program: nothing that it holds is lost, and it goes on without a plan. */
START_TEST(left_anywhere)
{
    for (int at = 0; at <= LINES; at++)
        for (int mode = 0; mode < 2; mode++) {
            begin(16);
            fx_plan(plans[_i]);
            fx_install(0);
            if (mode)
                fx_iteration(MODE_REHEARSE);
            fx.d.mode = mode ? MODE_ENFORCE : MODE_REHEARSE;
            fx_run(0, at);
            fx_leave();
            ck_assert_int_eq(fx.d.ex->now.code, 0);
            fx_check_all();
            ck_assert_uint_eq(fx.d.st.divergences, 1);
            fx_run(at, LINES);
            fx_check_all();
            fx_end();
        }
}
END_TEST

/* The program does something else instead of one of its ops: that other op reads the right bytes, and every buffer holds the right bytes when the plan is left right behind it. */
START_TEST(another_op_anywhere)
{
    for (int at = 0; at < LINES; at++) {
        if (!fx_is_op(&program[at]))
            continue;
        begin(16);
        fx_plan(plans[_i]);
        fx_install(0);
        fx_iteration(MODE_REHEARSE);
        fx.d.mode = MODE_ENFORCE;
        fx_run(0, at);
        const struct fx_line other = {FX_COPIES, program[at].buf, 0};
        fx_line(&other);
        if (fx_follows()) /* the op was the recorded one all the same, or ran beside the plan (test_detour.c) */
            fx_leave();
        fx_check_all();
        fx_end();
    }
}
END_TEST

/* A buffer that the recorded iteration frees is held for longer: it is what it was, and the iteration goes on. */
START_TEST(held_for_longer)
{
    begin(16);
    fx_plan(plans[_i]);
    fx_install(0);
    fx_iteration(MODE_REHEARSE);
    fx.d.mode = MODE_ENFORCE;
    for (int i = 0; i < LINES; i++)
        if (program[i].what != FX_FREES || program[i].buf != 2)
            fx_line(&program[i]);
    exec_end_iteration(&fx.d);
    fx_check_all();
    ck_assert_int_eq(fx.want[2], 11);
    fx_end();
}
END_TEST

/* leave.c: what every iteration changes, and neither makes nor frees, must be there. */
START_TEST(can_be_followed_as_long_as_its_tensors_are_there)
{
    begin(16);
    fx_plan(plans[0]);
    fx_install(0);
    ck_assert(leave_can_be_followed(&fx.d));
    alloc_free(&fx.d, fx.slot[0]);
    fx.slot[0] = NULL;
    ck_assert(!leave_can_be_followed(&fx.d));
    fx_end();
}
END_TEST

/* rebuild.c: what leaving would begin from, before each op. */
START_TEST(sources_of_a_rebuild)
{
    begin(16);
    fx_plan("0 1 d2 2 r1 3 4");
    fx_install(0);
    fx.d.mode = MODE_REHEARSE;
    fx_run(0, 4); /* ops 0 and 1 */
    uint8_t *s = rebuild_sources(&fx.d, 2);
    for (int b = 1; b <= 2; b++)
        ck_assert_int_eq(s[fx.rec_buf[b]], 0); /* all is there: nothing is owed */
    free(s);
    fx_run(4, 6); /* op 2, before which 2 is dropped */
    ck_assert(rebuild_owed(&fx.d, fx.rec_buf[2]));
    s = rebuild_sources(&fx.d, 3);
    ck_assert_int_eq(s[fx.rec_buf[1]], 0); /* it is on the host, set aside to compare: no replay is needed */
    free(s);
    fx_leave();
    fx_end();
}
END_TEST

START_TEST(plans_that_do_not_fit)
{
    begin(16);
    ck_assert_int_eq(fx_try_plan("0 1 2 3", true), -EINVAL);          /* an op is missing */
    ck_assert_int_eq(fx_try_plan("0 1 r3 2 3 4", true), -EINVAL);     /* a replay of what has not been */
    ck_assert_int_eq(fx_try_plan("0 2 1 3 4", true), -EINVAL);        /* another order */
    ck_assert_int_eq(fx_try_plan("0 1 r77 2 3 4", true), -EINVAL);    /* no such op */
    ck_assert_int_eq(fx_try_plan("0 1 d2 2 r1 3 4", true), 0);
    fx_end();
}
END_TEST

/* Where the map lacks chunks, iterations map memory, and are right all the same. */
START_TEST(a_map_that_lacks_chunks)
{
    begin(3); /* 0, and two of the others at a time, where four are wanted */
    fx_plan("0 1 2 3 4");
    const int lacking = install_plan(&fx.d);
    ck_assert_int_gt(lacking, 0);
    ck_assert(fx.d.ex->map.lacks_chunks);
    cursor_begin(&fx.d);
    fx_iteration(MODE_REHEARSE);
    fx_iteration(MODE_ENFORCE);
    ck_assert_uint_gt(fx.d.st.swaps_out, 0);
    fx_end();
}
END_TEST

/* ---- checks that stay in release, each with its fault put in ---------------------------------------------------------- */

static void begin_checked(void)
{
    begin(16);
    fx_plan("0 1 d2 2 r1 3 4");
    fx_install(0);
    fx_iteration(MODE_REHEARSE);
    fx.d.mode = MODE_ENFORCE;
    ck_assert_int_eq(fx.d.doubt, DOUBT_NONE);
}

/* bind[b] == id <=> slots[id].plan_buf == b: a slot that stands for another buffer. */
START_TEST(a_binding_that_is_not_mutual)
{
    begin_checked();
    fx_run(0, 4);
    fx.slot[2]->plan_buf = fx.rec_buf[1];
    fx_leave();
    ck_assert_int_eq(fx.d.doubt, DOUBT_PLAN);
    fx_end();
}
END_TEST

START_TEST(a_buffer_that_is_bound_already)
{
    begin_checked();
    fx.d.ex->now.bind[fx.rec_buf[1]] = (int32_t)fx.slot[0]->id;
    fx_run(0, 1);
    ck_assert_int_eq(fx.d.doubt, DOUBT_PLAN);
    ck_assert_int_eq(fx.slot[1]->plan_buf, -1); /* it is the program's alone */
    fx.d.ex->now.bind[fx.rec_buf[1]] = -1;
    fx_leave();
    fx_check_all();
    fx_end();
}
END_TEST

START_TEST(a_place_behind_the_last_op)
{
    begin_checked();
    ck_assert_int_lt(steps_pass(&fx.d, fx.d.ex->learnt.rec.n_ops + 1, STREAM_FIRST_PROGRAM), 0);
    ck_assert_int_eq(fx.d.doubt, DOUBT_PLAN);
    fx_leave();
    fx_check_all();
    fx_end();
}
END_TEST

START_TEST(a_replay_of_what_has_not_been)
{
    begin_checked();
    fx_run(0, 4);
    ck_assert_int_lt(replay_run(&fx.d, 3, STREAM_FIRST_PROGRAM), 0);
    ck_assert_int_eq(fx.d.doubt, DOUBT_PLAN);
    fx_leave();
    fx_check_all();
    fx_end();
}
END_TEST

/* A slot of the map that is smaller than what is allocated there is not given out. */
START_TEST(a_slot_that_is_too_small)
{
    begin_checked();
    fx.d.mem.slots[fx.d.ex->map.alloc_slot[0]].n_pages = 0;
    fx_run(0, 1);
    ck_assert_int_eq(fx.d.doubt, DOUBT_PLAN);
    ck_assert_int_ne((int)fx.slot[1]->id, fx.d.ex->map.alloc_slot[0]);
    fx.d.mem.slots[fx.d.ex->map.alloc_slot[0]].n_pages = 1;
    fx_leave();
    fx_check_all();
    fx_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan_follow");
    TCase *t = tcase_create("plan_follow");
    enum { PLANS = sizeof plans / sizeof *plans };
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_is_dropped_is_made_again);
    tcase_add_test(t, what_is_released_comes_back);
    tcase_add_test(t, a_steady_iteration_maps_nothing);
    tcase_add_test(t, a_chunk_that_is_gone_is_not_mapped);
    tcase_add_loop_test(t, left_anywhere, 0, PLANS);
    tcase_add_loop_test(t, another_op_anywhere, 0, PLANS);
    tcase_add_loop_test(t, held_for_longer, 0, PLANS);
    tcase_add_test(t, can_be_followed_as_long_as_its_tensors_are_there);
    tcase_add_test(t, sources_of_a_rebuild);
    tcase_add_test(t, plans_that_do_not_fit);
    tcase_add_test(t, a_map_that_lacks_chunks);
    tcase_add_test(t, a_binding_that_is_not_mutual);
    tcase_add_test(t, a_buffer_that_is_bound_already);
    tcase_add_test(t, a_place_behind_the_last_op);
    tcase_add_test(t, a_replay_of_what_has_not_been);
    tcase_add_test(t, a_slot_that_is_too_small);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
