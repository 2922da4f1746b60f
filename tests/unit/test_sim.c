/* The simulator's rules one by one: words, memory and clocks. (tests/system/test_sim_verify.py compares thousands of random
 * plans with the independent judge.) */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sim.h"
#include "offline/solvers/solver.h"
#include "offline/solvers/swapping.h"

/* op 0: -> a (100 B, 10 ns); op 1: a -> b (50 B, 20 ns), side s; op 2: a, b -> c (10 B, 30 ns). a dies before op 3 (the
 * end), b too. The host moves a byte a nanosecond. */
static struct graph *g;
static struct plan p;
static struct sim_result r;

static void setup(void)
{
    struct graph_build *b = graph_build_new();
    struct graph_fault f;
    int32_t i;

    graph_build_buf(b, 100, 0, 3, GRAPH_ACTIVATION);
    graph_build_buf(b, 50, 1, 3, GRAPH_ACTIVATION);
    graph_build_buf(b, 10, 2, -1, GRAPH_ACTIVATION);
    graph_build_buf(b, 4, -1, -1, GRAPH_STATE);
    for (i = 0; i < 3; i++)
        graph_build_op(b, "k", GRAPH_FWD, 10 + 10 * i);
    graph_build_operand(b, 0, GRAPH_WRITE, 0);
    graph_build_operand(b, 1, GRAPH_READ, 0);
    graph_build_operand(b, 1, GRAPH_WRITE, 1);
    graph_build_operand(b, 1, GRAPH_SIDE, 3);
    graph_build_operand(b, 2, GRAPH_READ, 0);
    graph_build_operand(b, 2, GRAPH_READ, 1);
    graph_build_operand(b, 2, GRAPH_WRITE, 2);
    ck_assert_int_eq(graph_seal(b, &g, &f), 0);
    graph_build_free(b);
    g->host_bytes_per_s = 1e9;
    memset(&p, 0, sizeof(p));
}

static void teardown(void)
{
    plan_free(&p);
    graph_free(g);
}

/* Steps as text: "o0 d1 r1 f2 x0 l1" = op 0, drop 1, replay 1, fetch 2, offload 0, release 1. */
static void run(const char *steps, int64_t limit)
{
    static const char kinds[] = "ordxlf";

    plan_reset(&p);
    while (*steps) {
        char *end;
        const char *k = strchr(kinds, *steps);
        long id = strtol(steps + 1, &end, 10);

        plan_push(&p, (enum plan_kind)(k - kinds), (int32_t)id);
        steps = *end ? end + 1 : end;
    }
    ck_assert_int_eq(sim_run(g, &p, limit, &r), 0);
}

static void refused(const char *steps, const char *why)
{
    run(steps, 0);
    ck_assert_msg(!r.ok && strstr(r.error, why), "%s: %s", steps, r.error);
}

START_TEST(good_plans_are_measured)
{
    run("o0 o1 o2", 0);
    ck_assert_msg(r.ok, "%s", r.error);
    ck_assert_int_eq(r.ns, 60);
    ck_assert_int_eq(r.peak_bytes, 164);
    ck_assert_int_eq(r.peak_step, 2);
    run("o0 o1 d0 r0 o2", 0);
    ck_assert_msg(r.ok, "%s", r.error);
    ck_assert_int_eq(r.ns, 70);
    ck_assert_int_eq(r.replays, 1);
    ck_assert(r.overhead > 0.166 && r.overhead < 0.167);
    /* a replay with a side buffer: its scratch counts, the buffer keeps its version */
    run("o0 o1 d1 r1 o2", 0);
    ck_assert_msg(r.ok, "%s", r.error);
    ck_assert_int_eq(r.peak_bytes, 164);
    /* copies run beside: out 100 ns from 10 on, so release waits till 110; back by 210; op 2 till 240 */
    run("o0 x0 o1 l0 f0 o2", 0);
    ck_assert_msg(r.ok, "%s", r.error);
    ck_assert_int_eq(r.ns, 240);
    ck_assert_int_eq(r.offloads, 1);
    /* a copy that nobody waits for still has to end */
    run("o0 o1 o2 x2", 0);
    ck_assert_int_eq(r.ns, 70);
}
END_TEST

START_TEST(rules)
{
    refused("o1", "op 1 out of order, expected 0");
    refused("o0 o1", "2 of 3 ops ran");
    refused("o0 o1 d0 o2", "op 2 k reads buffer 0, which is not resident");
    refused("r0", "replay of op 0 before it ran");
    refused("o0 o9", "no op 9");
    refused("o0 d9", "no buffer 9");
    refused("d0", "drop of buffer 0, which is not resident");
    refused("o0 l0", "release of buffer 0, which has no host copy of its version");
    refused("o0 f0", "fetch of buffer 0, which has no host copy");
    refused("o0 x0 f0", "fetch of buffer 0, which is resident");
    refused("o0 x1", "offload of buffer 1, which is not resident");
    refused("o0 x0 l0 f0 x0", "still coming in");
    refused("o0 o1 o2 d2", "buffer 2 is not back at its final version");
    refused("o0 o1 o2 d3", "buffer 3 is not back at its final version");
    run("o0 o1 o2", 163);
    ck_assert(!r.ok);
    ck_assert_str_eq(r.error, "peak 164 over limit 163");
    run("o0 o1 o2", 164);
    ck_assert(r.ok);
    g->ops[0].opaque = 1;
    refused("o0 o1 d0 r0 o2", "op 0 may not be replayed");
}
END_TEST

START_TEST(frees_and_keep)
{
    run("o0 o1 o2 d0", 0); /* the program freed it already */
    ck_assert_ptr_nonnull(strstr(r.error, "drop of buffer 0, which is not resident"));
    plan_reset(&p);
    plan_keep(&p, 0);
    plan_push(&p, PLAN_OP, 0);
    plan_push(&p, PLAN_OP, 1);
    plan_push(&p, PLAN_OP, 2);
    plan_push(&p, PLAN_DROP, 0);
    ck_assert_int_eq(sim_run(g, &p, 0, &r), 0);
    ck_assert_msg(r.ok, "%s", r.error);
    /* a dead buffer may be rebuilt and dropped again */
    run("o0 o1 o2 r0 d0", 0);
    ck_assert_msg(r.ok, "%s", r.error);
}
END_TEST

START_TEST(profile_follows_the_plan)
{
    int64_t use[8];
    double clock[8];

    run("o0 o1 d0 r0 o2", 0);
    ck_assert_int_eq(sim_profile(g, &p, use, clock, &r), 0);
    ck_assert_int_eq(use[0], 104);
    ck_assert_int_eq(use[1], 154);
    ck_assert_int_eq(use[2], 54);
    ck_assert_int_eq(use[3], 154);
    ck_assert(clock[3] == 40 && clock[4] == 70);
    sim_stamp(g, &p, 500, &r);
    ck_assert_int_eq(p.limit_bytes, 500);
    ck_assert_int_eq(p.planned_ns, 70);
    ck_assert_int_eq(p.baseline_ns, 60);
}
END_TEST

/* solver_run judges again: solver none under too small a limit, and below the floor. */
START_TEST(solver_none_and_the_floor)
{
    const struct solver *none = solver_find("none");
    struct solver_opts o = {.limit_bytes = 164};
    struct solver_report rep;

    ck_assert_ptr_nonnull(none);
    ck_assert_ptr_null(solver_find("nonesuch"));
    ck_assert(solver_known("milp") && !solver_known("nonesuch"));
    ck_assert_int_eq(solver_run(none, g, &o, &p, &rep), 0);
    ck_assert_int_eq(rep.peak_bytes, 164);
    ck_assert_str_eq(p.solver, "none");
    o.limit_bytes = g->floor_bytes - 1;
    ck_assert_int_lt(solver_run(none, g, &o, &p, &rep), 0);
    ck_assert_int_eq(rep.proved_infeasible, 1);
}
END_TEST

/* Swapping, as the runtime does it: what was used longest ago leaves by a copy, whatever is wanted next. */
START_TEST(swapping)
{
    ck_assert_int_eq(swapping_schedule(g, 164, &p, &r), 0);
    ck_assert_int_eq(r.ok, 1);
    ck_assert_int_eq(r.ns, 60);
    plan_reset(&p);
    ck_assert_int_eq(swapping_schedule(g, 160, &p, &r), 0); /* s leaves for c: four bytes, which op 2 waits for */
    ck_assert_int_eq(r.ok, 1);
    ck_assert_int_eq(r.ns, 64);
    ck_assert_int_eq(r.offloads, 1);
    ck_assert_int_le(r.peak_bytes, 160);
    plan_reset(&p);
    ck_assert_int_eq(swapping_schedule(g, 159, &p, &r), -ENOSPC);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sim");
    TCase *t = tcase_create("sim");
    SRunner *run_all;
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, good_plans_are_measured);
    tcase_add_test(t, rules);
    tcase_add_test(t, frees_and_keep);
    tcase_add_test(t, profile_follows_the_plan);
    tcase_add_test(t, solver_none_and_the_floor);
    tcase_add_test(t, swapping);
    suite_add_tcase(s, t);
    run_all = srunner_create(s);
    srunner_run_all(run_all, CK_NORMAL);
    failed = srunner_ntests_failed(run_all);
    srunner_free(run_all);
    return failed != 0;
}
