/* compile.c, elide.c, verify.c's turns, of records and plans written by hand: nothing of a device is asked. */
#include "policy/plan/compile.h"
#include "policy/plan/elide.h"
#include "policy/plan/verify.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct recording rec;
static const struct compiled *p;

static int buf(uint64_t bytes, bool made)
{
    static uint64_t serial;
    serial++;
    return record_buf(&rec.rec, bytes, serial, serial, made ? record_alloc(&rec.rec, bytes) : -1);
}

static void op(const char *name, const char *why_opaque)
{
    static uint64_t sig;
    record_op(&rec.rec, ++sig, name, why_opaque, 0);
}

static void uses(int b, enum rec_mode m) { record_operand(&rec.rec, b, 8 * rec.rec.ops[rec.rec.n_ops - 1].n, 0, m); }

enum { W, A, B, C }; /* buffers in the order in which they are made below */

/* op 0: A = f(W); op 1: B = g(A); op 2: C = h(B); op 3: W += B + C; A, B and C are freed then. */
static void chain(void)
{
    memset(&rec, 0, sizeof rec);
    buf(4096, false);
    buf(4096, true);
    op("f", NULL), uses(W, REC_READ), uses(A, REC_WRITE);
    buf(4096, true);
    op("g", NULL), uses(A, REC_READ), uses(B, REC_WRITE);
    buf(4096, true);
    op("h", NULL), uses(B, REC_READ), uses(C, REC_WRITE);
    op("update", "changes only what outlives the iteration"), uses(W, REC_RMW), uses(B, REC_READ), uses(C, REC_READ);
    for (int b = A; b <= C; b++)
        record_free(&rec.rec, b);
    ck_assert_int_eq(record_seal(&rec.rec), 0);
}

/* With holds, as the library has it. */
static void finish(bool holds)
{
    const uint32_t n = rec.rec.n_ops;
    rec.op_of_trace = calloc(n + 1, sizeof *rec.op_of_trace);
    for (uint32_t i = 0; i < n; i++)
        rec.op_of_trace[i] = i;
    rec.n_trace_ops = n;
    if (holds)
        ck_assert_int_eq(record_insert_holds(&rec.rec, rec.op_of_trace), 0);
    rec.n_caps = rec.rec.n_ops;
    rec.caps = calloc(rec.n_caps + 1, sizeof *rec.caps);
    for (uint32_t i = 0; i < rec.n_caps; i++)
        rec.caps[i].kind = OP_KERNEL;
    ck_assert_int_eq(compile_index(&rec.rec, &p), 0);
}

static void end(void)
{
    compile_free(p);
    p = NULL;
    recording_clear(&rec);
}

/* "0 1 d1 r0": as in fixture.h, but with the record's own numbers. */
static int plan(const char *text, bool own)
{
    struct plan q = {.limit_bytes = 1, .peak_bytes = 1};
    char path[] = "/tmp/remat-test-XXXXXX", err[400] = "";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    for (const char *c = text; *c; c += strcspn(c, " "), c += strspn(c, " ")) {
        static const enum plan_kind of[] = {PLAN_REPLAY, PLAN_DROP, PLAN_OFFLOAD, PLAN_RELEASE, PLAN_FETCH};
        const char *const kind = strchr("rdolf", *c);
        ck_assert_int_eq(plan_push(&q, kind ? of[kind - "rdolf"] : PLAN_OP, atoi(c + (kind != NULL))), 0);
    }
    ck_assert_msg(plan_write(&q, path, err, sizeof err) == 0, "%s", err);
    plan_free(&q);
    const int r = compile_plan(p, &rec, path, own);
    unlink(path);
    return r;
}

static int32_t value(int b, int v) { return p->first_val[b] + v; }
static uint32_t steps_before(uint32_t at) { return p->step_at[at + 1] - p->step_at[at]; }

START_TEST(versions_and_their_makers)
{
    chain();
    finish(false);
    ck_assert_int_eq(p->in_ver[0], 0);   /* f takes W as the iteration found it */
    ck_assert_int_eq(p->out_ver[1], 1);  /* and makes the first version of A */
    ck_assert_int_eq(p->in_ver[1], -1);  /* of which it needs nothing */
    ck_assert_int_eq(p->producer[value(A, 1)], 0);
    ck_assert_int_eq(p->producer[value(C, 1)], 2);
    ck_assert_int_eq(p->producer[value(W, 0)], -1);
    ck_assert_int_eq(p->producer[value(W, 1)], 3);
    ck_assert(p->used[value(W, 1)]);     /* the next iteration begins from it */
    ck_assert(p->used[value(A, 1)] && !p->used[value(A, 0)]);
    ck_assert_uint_eq(p->made_at[1] - p->made_at[0], 1);
    ck_assert_int_eq(p->made[p->made_at[3]].buf, W);
    ck_assert_uint_eq(p->die_at[5] - p->die_at[4], 3); /* all after the last op */
    end();
}
END_TEST

START_TEST(steps_stand_where_the_plan_has_them)
{
    chain();
    finish(false);
    ck_assert_int_eq(plan("0 1 d1 2 d2 r0 r1 3", true), 0);
    ck_assert_uint_eq(steps_before(0), 0);
    ck_assert_uint_eq(steps_before(2), 1);
    ck_assert_uint_eq(steps_before(3), 3);
    ck_assert_int_eq(p->steps[p->step_at[3]].kind, PLAN_DROP);
    ck_assert(p->remade[value(A, 1)] && p->remade[value(B, 1)] && !p->remade[value(C, 1)]);
    ck_assert(p->rebuilt[A] && !p->rebuilt[C]);
    ck_assert_int_eq(p->relied[W], 3); /* the replay of f begins from it */
    ck_assert_int_eq(p->relied[C], -1);
    ck_assert_int_eq(p->last_ref[W], 4); /* it survives */
    end();
}
END_TEST

START_TEST(a_second_plan_leaves_nothing_of_the_first)
{
    chain();
    finish(false);
    ck_assert_int_eq(plan("0 1 d1 2 r0 3", true), 0);
    ck_assert_int_eq(plan("0 1 d2 2 r1 3", true), 0);
    ck_assert(!p->remade[value(A, 1)] && p->remade[value(B, 1)]);
    ck_assert(!p->rebuilt[A]);
    end();
}
END_TEST

START_TEST(plans_that_do_not_fit)
{
    static const char *const wrong[] = {"0 1 2", "0 2 1 3", "0 1 2 3 4", "0 r1 1 2 3", "0 1 2 r3 3", "0 1 r9 2 3", "0 1 d9 2 3", "0 1 2 3 r3"};
    chain();
    finish(false);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(plan(wrong[i], true) == -EINVAL, "%s", wrong[i]);
    ck_assert_int_eq(plan("0 1 2 3", true), 0);
    end();
}
END_TEST

/* Holds stand before the deaths. A user's plan does not know them, and may drop what nothing brings back: that drop is left out. */
START_TEST(a_users_plan_knows_no_holds)
{
    chain();
    finish(true);
    ck_assert_uint_gt(rec.rec.n_ops, 4);
    ck_assert_int_eq(plan("0 1 d1 2 3", false), 0);
    for (uint32_t i = 0; i < p->step_at[rec.rec.n_ops + 1]; i++)
        ck_assert_msg(p->steps[i].kind != PLAN_DROP, "A is dropped, and the program holds it to the end");
    ck_assert_int_eq(plan("0 1 d1 2 r0 3", false), 0);
    ck_assert_int_eq(plan("0 1 2", false), -EINVAL);
    /* what the plan drops where its hold comes next goes behind that, before the step that follows: its memory may be counted on */
    ck_assert_int_eq(plan("0 1 2 3 d1 r1", false), 0);
    const uint32_t from = (uint32_t)rec.rec.bufs[A].dies;
    ck_assert(rec.rec.ops[from - 1].hold && rec.rec.operands[rec.rec.ops[from - 1].first].buf == A);
    for (uint32_t i = 0; i < p->step_at[from]; i++)
        ck_assert_msg(p->steps[i].kind != PLAN_REPLAY, "the replay stands before the hold of A");
    end();
}
END_TEST

/* A copy to the host that a kernel may make old begins behind that kernel. */
START_TEST(copies_begin_behind_kernels)
{
    chain();
    finish(false);
    ck_assert_int_eq(plan("0 o1 1 l1 2 f1 3", true), 0);
    ck_assert_uint_eq(steps_before(1), 0);                                /* it was to begin here */
    ck_assert_int_eq(p->steps[p->step_at[2]].kind, PLAN_OFFLOAD);
    ck_assert_int_eq(p->steps[p->step_at[2] + 1].kind, PLAN_RELEASE);
    end();
}
END_TEST

/* What outlives iterations and is on the host where one ends comes back behind the first kernel, not when it is wanted. */
START_TEST(what_is_left_on_the_host_comes_back_early)
{
    chain();
    finish(false);
    ck_assert_int_eq(plan("0 o0 l0 1 2 f0 3 o0 l0", true), 0);
    ck_assert_int_eq(p->steps[p->step_at[1]].kind, PLAN_FETCH);
    ck_assert_int_eq(p->steps[p->step_at[1]].id, W);
    end();
}
END_TEST

/* A replay whose value nothing but a hold wants is left out; one that an op wants is not. */
START_TEST(replays_for_holds_alone_are_left_out)
{
    chain();
    finish(true);
    const uint32_t n = rec.rec.n_ops;
    char text[400], *c = text;
    uint32_t last = 0; /* the first hold */
    while (!rec.rec.ops[last].hold)
        last++;
    for (uint32_t i = 0; i < n; i++) {
        if (i == rec.op_of_trace[2])
            c += sprintf(c, "d%d ", A);
        if (i == last)
            c += sprintf(c, "r%u ", rec.op_of_trace[0]);
        c += sprintf(c, "%u ", i);
    }
    ck_assert_int_eq(plan(text, true), 0);
    uint32_t replays = 0, elided = 0;
    for (uint32_t i = 0; i < p->step_at[n + 1]; i++) {
        replays += p->steps[i].kind == PLAN_REPLAY;
        elided += p->elided[i];
    }
    ck_assert_uint_eq(replays, 1);
    ck_assert_uint_le(elided, replays);
    if (elided) /* then what it is made of is kept until A dies */
        ck_assert_int_ge(p->relied[W], rec.rec.bufs[A].dies);
    end();
}
END_TEST

/* Until when an op may be run again: by a replay; by who leaves the plan before what was dropped is overwritten; where the op that it fills memory for is. */
START_TEST(ops_that_may_be_run_again)
{
    chain();
    finish(false);
    ck_assert_int_eq(plan("0 1 2 d2 r1 3", true), 0);
    ck_assert_int_eq(p->again_until[1], 3);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(p->again_until[i], i == 1 ? 3 : -1);
    int32_t by[16] = {0};
    for (uint32_t k = 0; k < rec.rec.n_operands; k++)
        by[k] = -1;
    by[rec.rec.ops[1].first] = 0; /* as if op 0 had filled something for op 1 */
    compile_fills(p, &rec.rec, by);
    ck_assert_int_eq(p->again_until[0], 3);
    ck_assert_int_eq(plan("0 1 2 d2 3", true), 0); /* B is dropped for good: it is made of A, and A of W */
    ck_assert_int_eq(p->again_until[0], rec.rec.bufs[B].dies);
    ck_assert_int_eq(p->again_until[1], rec.rec.bufs[B].dies);
    ck_assert_int_eq(p->again_until[2], -1);
    end();
}
END_TEST

/* Every value that a replay makes has a turn; what the same position makes has the same one; no other value has any. */
START_TEST(turns_of_comparing)
{
    chain();
    finish(false);
    ck_assert_int_eq(plan("0 1 d1 2 d2 r0 r1 3", true), 0);
    ck_assert_int_ge(p->check_turn[value(A, 1)], 0);
    ck_assert_int_lt(p->check_turn[value(A, 1)], VERIFY_TURNS);
    ck_assert_int_eq(p->check_turn[value(A, 1)], p->check_turn[value(B, 1)]);
    ck_assert_int_eq(p->check_turn[value(C, 1)], -1);
    ck_assert_int_eq(p->check_turn[value(W, 0)], -1);
    ck_assert_int_eq(plan("0 1 d1 r0 2 d2 r1 3", true), 0);
    ck_assert_int_ne(p->check_turn[value(A, 1)], p->check_turn[value(B, 1)]); /* the cost of two is spread */
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("compile");
    TCase *t = tcase_create("compile");
    tcase_add_test(t, versions_and_their_makers);
    tcase_add_test(t, steps_stand_where_the_plan_has_them);
    tcase_add_test(t, a_second_plan_leaves_nothing_of_the_first);
    tcase_add_test(t, plans_that_do_not_fit);
    tcase_add_test(t, a_users_plan_knows_no_holds);
    tcase_add_test(t, copies_begin_behind_kernels);
    tcase_add_test(t, what_is_left_on_the_host_comes_back_early);
    tcase_add_test(t, replays_for_holds_alone_are_left_out);
    tcase_add_test(t, ops_that_may_be_run_again);
    tcase_add_test(t, turns_of_comparing);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
