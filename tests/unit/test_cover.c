/* Bounds of the covering program against exhaustive search and against every plan any solver finds; plans and ladder. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sim.h"
#include "offline/solvers/cover/cover.h"
#include "offline/solvers/cover/cover_bound.h"
#include "offline/solvers/cover/cover_milp.h"
#include "offline/solvers/cover/cover_plan.h"
#include "offline/solvers/cover/ladder.h"
#include "offline/solvers/milp/milp_model.h"
#include "offline/solvers/milp/milp_search.h"
#include "offline/solvers/solver.h"
#include "tests/unit/rand_graph.h"
#include "tests/unit/drawn.h"

enum { GRAPHS = 600, OPS = 12 };

/* Somewhere between the floor and the peak. */
static int64_t some_limit(const struct graph *g, uint64_t seed)
{
    return g->floor_bytes + (g->baseline_peak_bytes - g->floor_bytes) * (int64_t)(seed % 5) / 5;
}

/* Replay time of the best schedule there is; -1: none; -2: too many states to know. */
static int64_t optimum(const struct graph *g, int64_t limit_bytes)
{
    struct milp_model m = {0};
    struct milp_found f = {0};
    struct plan p = {0};
    int rc = milp_model_new(g, &m);
    if (!rc)
        rc = milp_search(&m, limit_bytes, 0, &(struct milp_effort){.until_s = solver_now_s() + 1}, &p, &f);
    milp_model_free(&m);
    plan_free(&p);
    return rc ? -2 : f.found ? f.replay_ns : -1;
}

/* Each single instant, by itself. Returns how many bounds were over zero. */
static int check_instants(const struct graph *g, int64_t limit_bytes, int64_t best, uint64_t seed)
{
    int sharp = 0;
    for (int32_t t = 0; t < g->n_ops; t++) {
        struct cover_cut *c = cover_cut_new(g, t);
        struct cover_verdict v;
        ck_assert_ptr_nonnull(c);
        ck_assert_int_eq(cover_cut_solve(c, limit_bytes, &v), 0);
        if (best >= 0) {
            ck_assert_msg(!v.impossible, "seed %llu op %d: called impossible", (unsigned long long)seed, t);
            ck_assert_msg(v.bound_ns <= (double)best, "seed %llu op %d: bound %f over the optimum %lld",
                          (unsigned long long)seed, t, v.bound_ns, (long long)best);
            sharp += v.bound_ns > 0;
        }
        cover_cut_free(c);
    }
    return sharp;
}

/* The program over every instant whose memory is over the limit. */
static void check_program(const struct graph *g, int64_t limit_bytes, int64_t best, int relaxed, uint64_t seed)
{
    struct cover_cut *cut[OPS];
    int n = 0;
    for (int32_t t = 0; t < g->n_ops; t++)
        if (g->live_bytes[t] > limit_bytes)
            cut[n++] = cover_cut_new(g, t);
    const struct cover_milp q = {.g = g, .cuts = cut, .n_cuts = n, .limit_bytes = limit_bytes, .relaxed = relaxed, .max_nodes = 50};
    struct cover_milp_result r;
    ck_assert_int_eq(n ? cover_milp_solve(&q, &r) : 0, 0);
    if (n && best >= 0) {
        ck_assert_msg(!r.impossible, "seed %llu: the program is called infeasible", (unsigned long long)seed);
        ck_assert_msg(r.bound_ns <= (double)best, "seed %llu: bound %f over the optimum %lld", (unsigned long long)seed,
                      r.bound_ns, (long long)best);
    }
    if (n)
        cover_milp_result_free(&r);
    while (n)
        cover_cut_free(cut[--n]);
}

/* A small training step: ops that read one or two earlier results, some of which the program frees at once, and a backward
 * pass that reads the others in reverse. */
static struct graph *rand_net(uint64_t seed, int n)
{
    enum { FWD_MAX = 32 };
    struct rand_state r = {seed * 2654435761u + 88172645463325252ull};
    struct graph_build *b = graph_build_new();
    struct graph_fault fault;
    struct graph *g = NULL;
    int reads[FWD_MAX][2], last[FWD_MAX], saved[FWD_MAX];
    for (int i = 0; i < n; i++) {
        reads[i][0] = i ? i - 1 : n;
        reads[i][1] = i > 1 && rand_below(&r, 3) == 0 ? rand_below(&r, i - 1) : -1;
        saved[i] = rand_below(&r, 3) > 0;
        last[i] = saved[i] ? 2 * n - 1 - i : i;
        for (int k = 0; k < 2; k++)
            if (reads[i][k] >= 0 && reads[i][k] < n && last[reads[i][k]] < i)
                last[reads[i][k]] = i;
    }
    for (int i = 0; i < n; i++)
        graph_build_buf(b, 1 + rand_below(&r, 100), i, last[i] + 1, GRAPH_ACTIVATION);
    graph_build_buf(b, 1 + rand_below(&r, 20), -1, -1, GRAPH_INPUT);
    for (int i = 0; i < n; i++) {
        const int op = graph_build_op(b, "f", GRAPH_FWD, 1 + rand_below(&r, 100));
        for (int k = 0; k < 2; k++)
            if (reads[i][k] >= 0)
                graph_build_operand(b, op, GRAPH_READ, reads[i][k]);
        graph_build_operand(b, op, GRAPH_WRITE, i);
        graph_build_op_at(b, op)->opaque = rand_below(&r, 12) == 0;
    }
    for (int i = n - 1; i >= 0; i--) {
        const int op = graph_build_op(b, "b", GRAPH_BWD, 1 + rand_below(&r, 100));
        if (saved[i])
            graph_build_operand(b, op, GRAPH_READ, i);
    }
    if (graph_seal(b, &g, &fault))
        ck_abort_msg("seed %llu: %s", (unsigned long long)seed, fault.text);
    graph_build_free(b);
    return g;
}

START_TEST(test_bounds_against_exhaustive_search)
{
    int known = 0, sharp = 0, graphs = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        if (!drawn(seed, 1, 5))
            continue;
        graphs++;
        struct graph *g = seed % 2 ? rand_net(seed, 6) : rand_graph(seed, OPS - 3);
        const int64_t limit = g ? some_limit(g, seed) : 0, best = g && limit > 0 ? optimum(g, limit) : -2;
        if (best != -2) {
            known++;
            sharp += check_instants(g, limit, best, seed);
            if (seed % 8 < 2) {
                check_program(g, limit, best, 0, seed);
                check_program(g, limit, best, 1, seed);
            }
        }
        graph_free(g);
    }
    ck_assert_int_gt(known, graphs / 2);
    ck_assert_int_gt(sharp * GRAPHS, (drawn_all() ? 40 : 20) * graphs); /* else nothing was tested */
}
END_TEST

/* A forward pass of n values and a backward pass that reads them in reverse: the bound is what arithmetic says. */
static struct graph *ladder_net(int n, int64_t bytes, int64_t ns)
{
    struct graph_build *b = graph_build_new();
    struct graph_fault fault;
    struct graph *g = NULL;
    for (int i = 0; i < n; i++)
        graph_build_buf(b, bytes, i, 2 * n - i, GRAPH_ACTIVATION);
    graph_build_buf(b, 1, -1, -1, GRAPH_INPUT);
    for (int i = 0; i < n; i++) {
        const int op = graph_build_op(b, "f", GRAPH_FWD, ns);
        graph_build_operand(b, op, GRAPH_READ, i ? i - 1 : n);
        graph_build_operand(b, op, GRAPH_WRITE, i);
    }
    for (int i = 0; i < n; i++) {
        const int op = graph_build_op(b, "b", GRAPH_BWD, ns);
        graph_build_operand(b, op, GRAPH_READ, n - 1 - i);
    }
    ck_assert_int_eq(graph_seal(b, &g, &fault), 0);
    graph_build_free(b);
    return g;
}

START_TEST(test_bound_of_a_chain)
{
    struct graph *g = ladder_net(10, 100, 7);
    struct cover_cut *c = cover_cut_new(g, 9);
    struct cover_verdict v;
    /* at op 9 its operands and the input stay: 201 bytes; of the 8 others 3 fit under 501: 5 replays */
    ck_assert_int_eq(cover_cut_solve(c, 501, &v), 0);
    ck_assert(!v.impossible);
    ck_assert_double_ge(v.bound_ns, 5 * 7 - 1.5);
    ck_assert_double_le(v.bound_ns, 5 * 7);
    ck_assert_int_eq(cover_cut_solve(c, 200, &v), 0);
    ck_assert(v.impossible);
    cover_cut_free(c);
    graph_free(g);
}
END_TEST

/* What was kept from a program with an opaque op in it may not be called rebuildable. */
START_TEST(test_what_nothing_rebuilds_is_held)
{
    struct graph_build *b = graph_build_new();
    struct graph_fault fault;
    struct graph *g = NULL;
    graph_build_buf(b, 100, 0, -1, GRAPH_ACTIVATION); /* opaque */
    graph_build_buf(b, 100, 1, -1, GRAPH_ACTIVATION);
    graph_build_buf(b, 100, 2, -1, GRAPH_ACTIVATION);
    graph_build_op_at(b, graph_build_op(b, "comm", GRAPH_FWD, 5))->opaque = 1;
    graph_build_op(b, "f", GRAPH_FWD, 5);
    graph_build_op(b, "g", GRAPH_FWD, 5);
    graph_build_operand(b, 0, GRAPH_WRITE, 0);
    graph_build_operand(b, 1, GRAPH_READ, 0);
    graph_build_operand(b, 1, GRAPH_WRITE, 1);
    graph_build_operand(b, 2, GRAPH_WRITE, 2);
    ck_assert_int_eq(graph_seal(b, &g, &fault), 0);
    graph_build_free(b);
    struct cover_cut *c = cover_cut_new(g, 2);
    struct cover_verdict v;
    ck_assert_int_eq(cover_cut_solve(c, 200, &v), 0);
    ck_assert(!v.impossible); /* at op 2 only: its own 100 and the opaque op's 100; f's comes back */
    ck_assert_double_gt(v.bound_ns, 3.5);
    ck_assert_int_eq(cover_cut_solve(c, 199, &v), 0);
    ck_assert(v.impossible);
    cover_cut_free(c);
    graph_free(g);
}
END_TEST

/* No plan of any solver is below a bound, and auto's bound is none that its own plan breaks. */
START_TEST(test_no_plan_below_a_bound)
{
    static const char *const names[] = {"mincut", "dtr", "anneal", "chen-greedy"};
    int plans = 0;
    int graphs = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        if (!drawn(seed, 1, 4) && (graphs || seed < 8))
            continue;
        graphs++;
        struct graph *g = rand_net(seed * 7919, 20);
        struct cover *c = g ? cover_new(g) : NULL;
        for (int pct = 90; g && pct >= 50; pct -= 20) {
            const int64_t limit = g->floor_bytes + (g->baseline_peak_bytes - g->floor_bytes) * pct / 100;
            struct cover_bound b;
            struct plan mine = {0};
            struct sim_result r;
            if (limit <= 0)
                continue;
            const int rc = cover_plan(c, &(struct cover_ask){.limit_bytes = limit, .bound_bytes = limit}, &mine, &r, &b);
            ck_assert(rc == 0 || rc == -ENOSPC);
            if (!rc) {
                ck_assert_double_le(b.ns, (double)(r.ns - g->total_ns));
                ck_assert_int_le(r.peak_bytes, limit);
            }
            plan_free(&mine);
            for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
                const struct solver_opts o = {.limit_bytes = limit, .time_limit_s = 0.1, .seed = 1};
                struct solver_report rep;
                struct plan p = {0};
                if (!solver_run(solver_find(names[k]), g, &o, &p, &rep)) {
                    plans++;
                    ck_assert_msg(!b.impossible && b.ns <= (double)(rep.planned_ns - g->total_ns),
                                  "seed %llu, %d %%: %s needs %lld ns, the bound says %f (impossible %d)", (unsigned long long)seed,
                                  pct, names[k], (long long)(rep.planned_ns - g->total_ns), b.ns, b.impossible);
                }
                plan_free(&p);
            }
        }
        cover_free(c);
        graph_free(g);
    }
    ck_assert_int_gt(plans, 30 * graphs / 8);
}
END_TEST

/* One rung in the middle holds a plan, and by ill luck no other: whoever has that much memory gets it. Odd rungs are those that leaps of
 * two steps pass by. */
START_TEST(test_ladder_leaps_over_nothing)
{
    struct graph *g = ladder_net(drawn_all() ? 30 : 12, 100, 7);
    struct ladder *l = ladder_new(g);
    const int32_t lucky = (l->n_steps / 2) | 1, top = lucky + 8;
    const int64_t step = g->baseline_peak_bytes;
    struct plan p = {0};
    struct cover_bound b;
    ck_assert_int_eq(ladder_plan(l, step * (lucky + 1) / l->n_steps, 0, &p, &b), 0);
    ck_assert_msg(l->rung[lucky].solved && l->rung[lucky].plan.n_steps, "the plan is not that of its rung");
    const size_t n = p.n_steps;
    plan_free(&p);
    for (int32_t i = 0; i <= l->n_steps; i++)
        if (i != lucky) {
            plan_free(&l->rung[i].plan);
            l->rung[i] = (struct ladder_rung){.solved = 1, .bounded = 1, .rc = -ENOSPC};
        }
    for (int32_t i = lucky; i <= top; i++) {
        ck_assert_msg(!ladder_plan(l, step * (i + 1) / l->n_steps, 0, &p, &b), "%d rungs above it: a hole", i - lucky);
        ck_assert_uint_eq(p.n_steps, n);
        plan_free(&p);
    }
    ladder_free(l);
    graph_free(g);
}
END_TEST

/* More memory never costs more; asked for in any order, in one ladder or in many. */
START_TEST(test_ladder_is_monotone)
{
    for (uint64_t seed = 3; seed <= (drawn_all() ? 4 : 3); seed++) {
        struct graph *g = rand_net(seed * 104729, seed % 2 ? 8 : 22);
        struct ladder *all = g ? ladder_new(g) : NULL;
        int64_t last = INT64_MAX;
        for (int pct = 0; g && pct <= 100; pct += 10) {
            const int64_t limit = g->floor_bytes + (g->baseline_peak_bytes - g->floor_bytes) * pct / 100;
            struct plan p = {0}, q = {0};
            struct cover_bound b;
            struct sim_result r;
            if (limit <= 0)
                continue;
            int rc = ladder_plan(all, limit, 0, &p, &b);
            ck_assert(rc == 0 || rc == -ENOSPC);
            ck_assert_msg(!rc || last == INT64_MAX, "seed %llu: a hole at %d %%", (unsigned long long)seed, pct);
            if (!rc) {
                ck_assert_int_eq(sim_run(g, &p, limit, &r), 0);
                ck_assert_msg(r.ok, "%s", r.error);
                ck_assert_msg(r.ns <= last, "seed %llu: dearer at %d %%", (unsigned long long)seed, pct);
                ck_assert_double_le(b.ns, (double)(r.ns - g->total_ns));
                last = r.ns;
            }
            if (pct % 20 == 0) { /* alone: the same plan */
                struct ladder *alone = ladder_new(g);
                ck_assert_int_eq(ladder_plan(alone, limit, 0, &q, &b), rc);
                ck_assert(p.n_steps == q.n_steps && (!p.n_steps || !memcmp(p.steps, q.steps, p.n_steps * sizeof *p.steps)));
                ladder_free(alone);
            }
            plan_free(&p);
            plan_free(&q);
        }
        ladder_free(all);
        graph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cover");
    const struct {
        const char *name;
        const TTest *test;
    } cases[] = {{"exhaustive", test_bounds_against_exhaustive_search},
                 {"chain", test_bound_of_a_chain},
                 {"fixed", test_what_nothing_rebuilds_is_held},
                 {"plans", test_no_plan_below_a_bound},
                 {"ladder", test_ladder_is_monotone},
                 {"leaps", test_ladder_leaps_over_nothing}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TCase *t = tcase_create(cases[i].name);
        tcase_set_timeout(t, 600);
        tcase_add_test(t, cases[i].test);
        suite_add_tcase(s, t);
    }
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
