/* detour.c: ops that the recorded iteration has not, and recorded ops that do not come, at every place of a small program and under several plans. Whatever is put in or
 * left out, each buffer that the program holds is what it would be without a plan. */
#include "fixture.h"
#include "policy/plan/detour.h"
#include "policy/plan/replay.h"

/* Sizes tell the ops apart. */
static const struct fx_line program[] = {
    FX_MAKE(1), FX_FILL(1, 11),          /* op 0 */
    FX_MAKE_LARGE(2, 2), FX_FILL(2, 22), /* op 1 */
    FX_MAKE_LARGE(3, 2), FX_COPY(3, 2),  /* op 2 */
    FX_MAKE_LARGE(4, 3), FX_FILL(4, 44), /* op 3 */
    FX_MAKE_LARGE(5, 3), FX_COPY(5, 4),  /* op 4 */
    FX_MAKE(6), FX_COPY(6, 1),           /* op 5 */
    FX_COPY(0, 6),                       /* op 6: outlives the iteration */
    FX_MAKE_LARGE(7, 2), FX_COPY(7, 3),  /* op 7 */
    FX_MAKE_LARGE(8, 3), FX_COPY(8, 5),  /* op 8 */
    FX_FILL(4, 45),                      /* op 9: what op 3 made is not needed before */
    FX_MAKE_LARGE(9, 2), FX_COPY(9, 7),  /* op 10 */
    FX_MAKE_LARGE(10, 3), FX_COPY(10, 8), /* op 11 */
    FX_COPY(0, 6),                       /* op 12 */
    FX_COPY(9, 2),                       /* op 13 */
    FX_FREE(1), FX_FREE(2), FX_FREE(3), FX_FREE(4), FX_FREE(5), FX_FREE(6), FX_FREE(7), FX_FREE(8), FX_FREE(9), FX_FREE(10),
};
enum { LINES = sizeof program / sizeof *program, BUFS = 11, OTHER = 20 /* a buffer that no record knows */ };

static const char *const plans[] = {
    "0 1 2 3 4 5 6 7 8 9 10 11 12 13",
    "0 1 2 d3 3 4 5 6 r2 7 8 9 10 11 12 13",
    "0 1 2 3 4 d4 5 6 7 8 9 10 11 12 13",
    "0 1 2 3 4 5 d0 6 7 8 9 10 11 12 13", /* what op 6 is to overwrite, which nobody could make */
    "0 1 2 d2 d3 3 4 5 6 r1 r2 7 8 9 10 11 12 13",
    "0 1 2 3 4 d5 5 6 d4 7 r3 r4 8 9 10 11 12 13",
    "0 1 2 o3 l3 3 4 d5 5 6 f3 7 r4 8 9 10 11 12 13",
    "0 d1 1 2 d3 3 4 r0 5 6 r2 7 8 d8 9 10 r8 11 12 13",
};
enum { PLANS = sizeof plans / sizeof *plans };

static unsigned stayed, rejoined, left; /* iterations, of all of a test */

static void begin(const char *plan)
{
    fx_begin(40);
    fx_older(0, 5);
    fx_record(program, LINES);
    fx_plan(plan);
    fx_install(0);
    fx_iteration(MODE_REHEARSE);
    fx.d.mode = MODE_ENFORCE;
}

/* After what was put in or left out: the rest of the iteration, the end of it, and one more as recorded if the plan was not left. */
static void end(void)
{
    const bool followed = fx_follows() && fx.d.ex->now.ended;
    if (fx_follows() && !followed)
        fx_leave();
    fx_check_all();
    ck_assert_int_eq(fx.d.ex->now.code, 0);
    if (followed) {
        rejoined += fx.d.ex->now.detour_to > 0;
        stayed++;
        exec_end_iteration(&fx.d);
        fx_check_all();
        cursor_begin(&fx.d);
        fx_iteration(MODE_ENFORCE);
    }
    left += !followed;
    ck_assert_int_eq(fx.d.ex->now.code, 0);
    fx_end();
}

/* The line that makes the buffer, and its pages. */
static int made_at(int buf)
{
    int at = buf ? 0 : -2;
    while (at >= 0 && at < LINES && (program[at].what != FX_MAKES || program[at].buf != buf))
        at++;
    return at;
}
static int pages_of(int buf) { return buf ? program[made_at(buf)].arg : 1; }

/* One more op before line `at`: a buffer is filled, or copied over, by another or to another. */
START_TEST(an_op_more)
{
    for (int at = 2; at < LINES; at++)
        for (int to = 0; to < BUFS && fx_is_op(&program[at]); to++)
            for (int from = -1; from < BUFS; from++) {
                if (from == to || (at * 7 + to * 3 + from + _i) % 13 || made_at(to) >= at || (from >= 0 && (made_at(from) + 1 >= at || pages_of(from) != pages_of(to))))
                    continue;
                begin(plans[_i]);
                fx_run(0, at);
                const struct fx_line other = {from < 0 ? FX_FILLS : FX_COPIES, to, from < 0 ? 99 : from};
                fx_line(&other);
                fx_run(at, LINES);
                end();
            }
    ck_assert_msg(stayed > 10, "%u stayed, %u left", stayed, left);
}
END_TEST

/* Buffer 3 is dropped, to be made again of buffer 2 (op 2), when that is filled with something else; or of what buffer 2 is made of (op 1), where the plan drops both. */
START_TEST(what_is_needed_again_changes)
{
    static const int changed[PLANS] = {-1, 2, -1, -1, 2, 4, 4, 1};
    if (changed[_i] < 0)
        return;
    for (int at = 8; at < LINES - 10; at++) {
        if (!fx_is_op(&program[at]))
            continue;
        begin(plans[_i]);
        fx_run(0, at);
        const struct fx_line other = FX_FILL(changed[_i], 99);
        fx_line(&other);
        fx_run(at, LINES);
        end();
    }
    ck_assert_uint_gt(left, 0);
}
END_TEST

/* An op more that has a buffer of its own, which is as large as one that the plan has yet to give out. */
START_TEST(a_buffer_more)
{
    for (int at = 2 + _i % 3; at < LINES; at += 3)
        for (int pages = 1; pages <= 3; pages++) {
            begin(plans[_i]);
            fx_run(0, at);
            const struct fx_line more[] = {FX_MAKE_LARGE(OTHER, pages), FX_FILL(OTHER, 77), FX_MAKE_LARGE(OTHER + 1, pages), FX_COPY(OTHER + 1, OTHER),
                                           FX_FREE(OTHER), FX_FREE(OTHER + 1)};
            fx_line(&more[0]);
            fx_line(&more[1]);
            fx_run(at, at + (LINES - at) / 2);
            for (int i = 2; i < 6; i++)
                fx_line(&more[i]);
            fx_run(at + (LINES - at) / 2, LINES);
            end();
        }
    ck_assert_msg(stayed > 10, "%u stayed, %u left", stayed, left);
}
END_TEST

/* Ops from line `from` to line `to` do not come; with others in their place or without. */
static void without(const char *plan, int from, int to, int others)
{
    begin(plan);
    fx_run(0, from);
    for (int i = 0; i < others && fx.slot[1]; i++) {
        const struct fx_line other = FX_FILL(OTHER, i), make = FX_MAKE_LARGE(OTHER, 5), gone = FX_FREE(OTHER);
        fx_line(&make);
        fx_line(&other);
        fx_line(&gone);
    }
    for (int i = from; i < LINES; i++) {
        if (program[i].what == FX_FREES && others && fx_follows() && !fx.slot[OTHER]) { /* all that the program holds */
            rejoined += fx.d.ex->now.detour_to > 0;
            fx_leave();
            fx_check_all();
        }
        if (i >= to || !fx_is_op(&program[i]))
            fx_line(&program[i]);
    }
    end();
}

START_TEST(ops_that_do_not_come)
{
    for (int from = 2; from < LINES; from++)
        for (int to = from + 1; to <= LINES; to++)
            if (fx_is_op(&program[from]) && fx_is_op(&program[to - 1]) && to - from < 12 && (5 * from + to + _i) % 3 == 0)
                without(plans[_i], from, to, (from + to) % 2 * 2);
    ck_assert_msg(rejoined > 2 || _i > 4, /* the last three plans run ops again that lie in every detour so long */
                   "%u rejoined, %u stayed, %u left", rejoined, stayed, left);
}
END_TEST

/* A recorded op that did not run in this iteration is never replayed in this iteration: the arguments that were kept of the op are those of an earlier one. */
START_TEST(what_did_not_come_is_not_run_again)
{
    begin(plans[0]);
    fx_run(0, 2);
    for (int i = 2; i < LINES - 10; i++)
        if (!fx_is_op(&program[i]) || i > 5) /* ops 1 and 2 do not come */
            fx_line(&program[i]);
    ck_assert(fx_follows());
    ck_assert_uint_gt(fx.d.ex->now.detour_to, 0);
    ck_assert(fx.d.ex->now.not_again[1] && fx.d.ex->now.not_again[2]);
    ck_assert_int_lt(replay_run(&fx.d, 1, STREAM_FIRST_PROGRAM), 0);
    fx_leave();
    fx_end();
}
END_TEST

/* The plan runs op 2 again, which does not come: the plan is left, and knows why. */
START_TEST(what_the_plan_needs_again)
{
    begin(plans[1]);
    fx_run(0, 4);
    for (int i = 4; i < LINES && fx_follows(); i++)
        if (!fx_is_op(&program[i]) || i > 5) /* op 2 does not come */
            fx_line(&program[i]);
    ck_assert(!fx_follows());
    ck_assert_uint_eq(fx.d.ex->now.left_at, 2);
    ck_assert_uint_gt(fx.d.ex->now.left_for, 2);
    ck_assert(detour_is_known(&fx.d));
    ck_assert_ptr_nonnull(fx.d.ex->learnt.rec.ops[2].why_opaque);
    ck_assert(!fx.d.ex->now.have_plan);
    ck_assert(!detour_is_known(&fx.d));
    fx_check_all();
    fx_end();
}
END_TEST

/* An op fills what the plan makes again, and comes in place of op 2: the plan is left there. Four ops further on it is known which recorded ones did not come before them. */
START_TEST(what_did_not_come_is_seen_afterwards)
{
    begin(plans[4]);
    fx_run(0, 5);
    const struct fx_line other = FX_FILL(2, 99);
    fx_line(&other);
    ck_assert(!fx_follows());
    ck_assert_uint_eq(fx.d.ex->now.left_for, 0);
    for (int i = 6; i < LINES && !fx.came_back; i++)
        fx_line(&program[i]);
    ck_assert_uint_eq(fx.d.ex->now.left_at, 2);
    ck_assert_uint_eq(fx.d.ex->now.left_for, 6);
    ck_assert(detour_is_known(&fx.d));
    ck_assert_ptr_nonnull(fx.d.ex->learnt.rec.ops[2].why_opaque);
    ck_assert_ptr_null(fx.d.ex->learnt.rec.ops[6].why_opaque);
    fx_check_all();
    fx_end();
}
END_TEST

/* An op comes beside the recorded ones, all of which come; or something else comes for good. Nothing is to be made anew for that. */
START_TEST(nothing_else_came)
{
    begin(plans[4]);
    fx_run(0, 5);
    const struct fx_line other = FX_FILL(2, 99);
    fx_line(&other);
    ck_assert(!fx_follows());
    if (_i)
        fx_run(5, LINES);
    for (int i = 0; i < 64 && !_i; i++)
        fx_line(&other);
    ck_assert_uint_eq(fx.came_back, 0);
    ck_assert_uint_eq(fx.d.ex->now.left_for, 0);
    ck_assert_uint_eq(fx.d.ex->now.looks_back, 0);
    fx_end();
}
END_TEST

/* The next op comes in place of one that does not, at once where no later op reads what that makes: no op runs beside the plan then. Else four in a row must be
 * recorded ones. */
START_TEST(what_nobody_reads_is_skipped)
{
    static const struct { int line, skipped; } leave_out[] = {{17, 1} /* op 9 */, {12, 1} /* op 6 */, {14, 0} /* op 7, which op 10 reads */, {3, 0} /* op 1 */};
    for (size_t i = 0; i < sizeof leave_out / sizeof *leave_out; i++) {
        begin(plans[0]);
        const int at = leave_out[i].line;
        ck_assert(fx_is_op(&program[at]));
        fx_run(0, at);
        fx_run(at + 1, at + 2 + !fx_is_op(&program[at + 1]));
        ck_assert(fx_follows());
        ck_assert_uint_eq(fx.d.ex->now.n_beside, leave_out[i].skipped ? 0 : 1);
        fx_run(at + 2 + !fx_is_op(&program[at + 1]), LINES);
        ck_assert_uint_eq(fx.d.ex->now.not_again[fx.d.ex->now.n_beside ? 0 : at == 17 ? 9 : 6], !fx.d.ex->now.n_beside);
        end();
    }
}
END_TEST

/* Batches whose gradients are summed. Buffers 6, 8 and 10 are gradients of a batch; they are added to 0 and 1, or, where those have been given back, become these. */
static const struct fx_line batch[] = {
    FX_MAKE(2), FX_FILL(2, 11),          /* op 0 */
    FX_MAKE_LARGE(3, 2), FX_FILL(3, 22), /* op 1 */
    FX_MAKE_LARGE(4, 2), FX_COPY(4, 3),  /* op 2 */
    FX_MAKE_LARGE(5, 3), FX_FILL(5, 33), /* op 3 */
    FX_MAKE(6), FX_COPY(6, 2),           /* op 4 */
    FX_COPY(0, 6), FX_FREE(6),           /* op 5 */
    FX_MAKE_LARGE(7, 2), FX_COPY(7, 4),  /* op 6 */
    FX_MAKE(8), FX_COPY(8, 2),           /* op 7 */
    FX_COPY(1, 8), FX_FREE(8),           /* op 8 */
    FX_MAKE_LARGE(9, 3), FX_COPY(9, 5),  /* op 9 */
    FX_FREE(3), FX_FREE(4), FX_FREE(5), FX_FREE(7), FX_FREE(9),
    FX_MAKE(10), FX_FILL(10, 44),        /* op 10 */
    FX_COPY(1, 10), FX_FREE(10), FX_FREE(2), /* op 11 */
};
enum { BATCH_LINES = sizeof batch / sizeof *batch };
static const char *const batch_plans[] = {
    "0 1 2 3 4 5 6 7 8 9 10 11",
    "0 1 2 d3 3 4 5 6 7 8 9 10 11",
    "0 1 2 d4 3 4 5 r2 6 7 8 9 10 11",
    "0 1 2 3 d5 4 d2 5 r0 6 7 8 r3 9 10 11",
    "0 1 2 o3 l3 3 4 d5 5 6 f3 7 r3 8 9 10 11",
    "0 1 2 d3 d4 3 4 d5 5 r1 r2 6 7 o1 l1 f1 8 r3 9 10 11",
};
enum { BATCH_PLANS = sizeof batch_plans / sizeof *batch_plans };

/* The first batch of a step: nothing is added, and gradients stay. */
static void first_batch(void)
{
    for (int i = 0; i < BATCH_LINES; i++)
        if (!(fx_is_op(&batch[i]) && batch[i].buf < 2) && !(batch[i].what == FX_FREES && (batch[i].buf == 6 || batch[i].buf == 8)))
            fx_line(&batch[i]);
    const int of[] = {6, 8};
    for (int b = 0; b < 2; b++) {
        fx.slot[b] = fx.slot[of[b]];
        fx.want[b] = fx.want[of[b]];
        fx.slot[of[b]] = NULL;
    }
}

/* The optimizer's step is none of the recorded ops, and gradients are given back after it; the next step's first batch is under the plan again. */
static void step(void)
{
    const struct fx_line other = FX_COPY(OTHER, OTHER + 1), more[] = {FX_FREE(0), FX_FREE(1)};
    fx_line(&other);
    fx_check_all();
    if (fx_follows()) /* it may have run beside the plan */
        fx_leave();
    fx_check_all();
    fx_line(&more[0]);
    fx_line(&more[1]);
    const struct fx_line first = batch[1];
    fx_line(&batch[0]);
    struct rt_op op;
    fx_build(&first, &op);
    ck_assert(exec_may_resume(&fx.d, &op, false));
    fx.d.mode = MODE_ENFORCE;
    cursor_begin(&fx.d);
    exec_resume(&fx.d);
    fx.slot[2] = (alloc_free(&fx.d, fx.slot[2]), NULL);
}

START_TEST(the_first_of_several_batches)
{
    fx_begin(40);
    fx_older(0, 5);
    fx_older(1, 6);
    fx_older(OTHER, 7);
    fx_older(OTHER + 1, 8);
    fx_record(batch, BATCH_LINES);
    fx_plan(batch_plans[_i]);
    fx_install(0);
    fx_iteration(MODE_REHEARSE);
    fx.d.mode = MODE_ENFORCE;
    for (int turn = 0; turn < 3; turn++) {
        step();
        first_batch();
        ck_assert(fx_follows());
        for (int more = 0; more < turn; more++) { /* the first batch's end is seen when the second one begins */
            fx_run(0, BATCH_LINES);
            ck_assert(fx_follows());
            ck_assert(fx.d.ex->now.ended);
            ck_assert_uint_eq(fx.d.ex->now.n_beside, 0);
            exec_end_iteration(&fx.d);
            fx_check_all();
            cursor_begin(&fx.d);
        }
        ck_assert_uint_eq(fx.ended, (unsigned)turn);
        fx_check_all();
        ck_assert_int_eq(fx.d.ex->now.code, 0);
    }
    const unsigned ended = fx.ended;
    step();
    first_batch();
    fx.slot[OTHER]->points = true; /* the optimizer's op cannot run beside the plan */
    step(); /* by now it is known that the last ops may be missing: the batch ends before the optimizer's op, too */
    ck_assert_uint_eq(fx.ended, ended + 1);
    first_batch();
    fx_run(0, BATCH_LINES);
    ck_assert_uint_eq(fx.ended, ended + 2);
    fx_check_all();
    fx_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("detour");
    TCase *t = tcase_create("detour");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, an_op_more, 0, PLANS);
    tcase_add_loop_test(t, what_is_needed_again_changes, 0, PLANS);
    tcase_add_loop_test(t, a_buffer_more, 0, PLANS);
    tcase_add_loop_test(t, ops_that_do_not_come, 0, PLANS);
    tcase_add_test(t, what_nobody_reads_is_skipped);
    tcase_add_loop_test(t, the_first_of_several_batches, 0, BATCH_PLANS);
    tcase_add_test(t, what_did_not_come_is_not_run_again);
    tcase_add_test(t, what_the_plan_needs_again);
    tcase_add_test(t, what_did_not_come_is_seen_afterwards);
    tcase_add_loop_test(t, nothing_else_came, 0, 2);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
