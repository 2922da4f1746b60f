/* Stays on the host: when memory goes and comes back, how the engines queue, and plans that cost nothing. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "offline/model/sim.h"
#include "offline/solvers/anneal/anneal_copies.h"
#include "offline/solvers/anneal/anneal_plan.h"
#include "offline/solvers/anneal/anneal_search.h"
#include "offline/solvers/anneal/solve_anneal.h"
#include "tests/unit/drawn.h"

/* n values made one after another, used again in reverse order at the end, `pause` ops of 1 ms in between; copies of a
 * value take `copy_ns`. Each value can also be recomputed, at 5 ms. */
static struct graph *tide(int n, int pause, int64_t bytes, double copy_ns)
{
    struct graph_build *b = graph_build_new();
    const int in = graph_build_buf(b, 16, -1, -1, GRAPH_INPUT);
    const int n_ops = 2 * n + pause;
    int val[64], op = 0;
    for (int i = 0; i < n; i++) {
        val[i] = graph_build_buf(b, bytes, op, n_ops - i, GRAPH_ACTIVATION);
        graph_build_op(b, "make", GRAPH_FWD, 5000000);
        graph_build_operand(b, op, GRAPH_READ, in);
        graph_build_operand(b, op++, GRAPH_WRITE, val[i]);
    }
    for (int i = 0; i < pause; i++) {
        graph_build_op(b, "wait", GRAPH_FWD, 1000000);
        graph_build_operand(b, op, GRAPH_READ, in);
        graph_build_operand(b, op, GRAPH_WRITE, graph_build_buf(b, 16, op, op + 1, GRAPH_ACTIVATION));
        op++;
    }
    for (int i = n - 1; i >= 0; i--) {
        graph_build_op(b, "use", GRAPH_BWD, 1000000);
        graph_build_operand(b, op, GRAPH_READ, val[i]);
        graph_build_operand(b, op, GRAPH_WRITE, graph_build_buf(b, 16, op, -1, GRAPH_GRAD));
        op++;
    }
    struct graph *g = NULL;
    struct graph_fault f = {0};
    ck_assert_msg(graph_seal(b, &g, &f) == 0, "%s", f.text);
    graph_build_free(b);
    g->host_bytes_per_s = (double)bytes / copy_ns * 1e9;
    return g;
}

static int32_t cell_of_op(const struct anneal_model *m, int op)
{
    return m->unit_cells[m->units[m->unit_of_op[op]].first_out];
}

START_TEST(one_stay_in_time)
{
    struct graph *g = tide(1, 10, 1000, 2.5e6);
    struct anneal_model *m = anneal_model_new(g, 1);
    struct anneal *a = anneal_new(m);
    const int32_t c = cell_of_op(m, 0);
    ck_assert_int_eq(anneal_copy_add(a, c, a->op_slot[11], anneal_wait_for(0)), 0);
    ck_assert_int_eq(anneal_retime(a), 0);
    /* made by 5 ms, on the host by 7.5: held while ops 1, 2 and 3 run; back within 2.5 ms before 15: from op 8 on */
    ck_assert_double_eq(segtree_at(&a->tree, (uint32_t)a->op_slot[3]) - segtree_at(&a->tree, (uint32_t)a->op_slot[4]), 1000);
    ck_assert_double_eq(segtree_at(&a->tree, (uint32_t)a->op_slot[8]) - segtree_at(&a->tree, (uint32_t)a->op_slot[7]), 1000);
    ck_assert_int_eq(anneal_check(a), 0);
    struct plan p = {0};
    struct sim_result r;
    ck_assert_int_eq(anneal_plan(a, &p), 0);
    ck_assert_int_eq(sim_run(g, &p, 0, &r), 0);
    ck_assert_msg(r.ok, "%s", r.error);
    ck_assert_int_eq(r.ns, g->total_ns); /* nothing waited */
    ck_assert_int_eq(r.offloads, 1);
    anneal_copy_remove(a, 0);
    ck_assert_int_eq(anneal_check(a), 0);
    plan_free(&p);
    anneal_free(a);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

/* The plan of the schedule takes so long beyond the program itself, as the schedule has it. */
static void expect_wait(struct anneal *a, double wait_ns)
{
    struct plan p = {0};
    struct sim_result r;
    ck_assert_double_eq_tol(a->copies.wait_ns, wait_ns, 1);
    ck_assert_int_eq(anneal_check(a), 0);
    ck_assert_int_eq(anneal_plan(a, &p), 0);
    ck_assert_int_eq(sim_run(a->m->g, &p, 0, &r), 0);
    ck_assert_msg(r.ok, "%s", r.error);
    ck_assert_double_eq_tol((double)(r.ns - a->m->g->total_ns), wait_ns, 1);
    plan_free(&p);
}

/* Made by 5 ms, on the host by 7.5, wanted at 15. Memory that must be free where ops 3 to 9 run, from 7 to 14 ms, costs half a millisecond before op 3
 * and what the copy back lacks at 15; free from use to use, it costs both copies. */
START_TEST(a_stay_waits_where_memory_is_short)
{
    struct graph *g = tide(1, 10, 1000, 2.5e6);
    struct anneal_model *m = anneal_model_new(g, 1);
    struct anneal *a = anneal_new(m);
    struct anneal_seq row = {0};
    const int32_t c = cell_of_op(m, 0);
    const struct anneal_wait wait = {ANNEAL_WAIT_BOTH, a->op_slot[3], a->op_slot[9] + 1};
    const double held = segtree_at(&a->tree, (uint32_t)a->op_slot[5]);
    ck_assert_int_eq(anneal_copy_add(a, c, a->op_slot[11], wait), 0);
    ck_assert_int_eq(anneal_clock(a), 0);
    for (int again = 0; again < 3; again++) {
        for (int op = 1; op <= 10; op++)
            ck_assert_double_eq(segtree_at(&a->tree, (uint32_t)a->op_slot[op]), op < 3 || op > 9 ? held : held - 1000);
        expect_wait(a, 0.5e6 + 1.5e6);
        /* as it is when slots are numbered anew, and as a row */
        ck_assert_int_eq(again ? anneal_regrid(a) : anneal_save(a, &row), 0);
        ck_assert_int_eq(again ? 0 : anneal_load(a, &row), 0);
    }
    ck_assert_int_eq(anneal_copies_hide(a), 0); /* something waits: as it is */
    expect_wait(a, 2e6);
    anneal_copy_remove(a, 0);
    ck_assert_int_eq(anneal_copy_add(a, c, a->op_slot[11], anneal_wait_for(ANNEAL_WAIT_BOTH)), 0);
    ck_assert_int_eq(anneal_clock(a), 0);
    expect_wait(a, 5e6);
    anneal_copy_remove(a, 0);
    ck_assert_int_eq(anneal_copy_add(a, c, a->op_slot[11], (struct anneal_wait){ANNEAL_WAIT_BOTH, a->op_slot[5], a->op_slot[7]}), 0);
    ck_assert_int_eq(anneal_clock(a), 0);
    expect_wait(a, 0);
    ck_assert_int_eq(anneal_copies_hide(a), 0); /* nothing does: none waits any more */
    ck_assert_int_eq(a->copies.at[0].wait.sides, 0);
    expect_wait(a, 0);
    anneal_seq_free(&row);
    anneal_free(a);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

START_TEST(too_late_is_refused)
{
    struct graph *g = tide(2, 4, 1000, 2.5e6);
    struct anneal_model *m = anneal_model_new(g, 1);
    struct anneal *a = anneal_new(m);
    /* out takes 2.5 ms, back 2.5 ms; from the making of value 1 to its use there are 4 */
    ck_assert_int_eq(anneal_copy_add(a, cell_of_op(m, 1), a->op_slot[6], anneal_wait_for(0)), 0);
    ck_assert_int_eq(anneal_retime(a), -EBUSY);
    ck_assert_int_eq(anneal_clock(a), 0); /* which lets go of it */
    ck_assert_int_eq(a->copies.n, 0);
    ck_assert_int_eq(anneal_check(a), 0);
    ck_assert_int_eq(anneal_copy_add(a, cell_of_op(m, 1), a->op_slot[3], anneal_wait_for(0)), -EINVAL); /* no use of it there */
    anneal_free(a);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

START_TEST(engines_serve_one_after_another)
{
    struct graph *g = tide(4, 30, 1000, 7e6);
    struct anneal_model *m = anneal_model_new(g, 1);
    struct anneal *a = anneal_new(m);
    struct plan p = {0};
    struct sim_result r;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(anneal_copy_add(a, cell_of_op(m, i), a->op_slot[37 - i], anneal_wait_for(0)), 0);
        ck_assert_int_eq(anneal_retime(a), i < 2 ? 0 : anneal_retime(a)); /* later ones may not fit */
        if (a->copies.dirty)
            anneal_clock(a);
        ck_assert_int_eq(anneal_check(a), 0);
        ck_assert_int_eq(anneal_plan(a, &p), 0);
        ck_assert_int_eq(sim_run(g, &p, 0, &r), 0);
        ck_assert_msg(r.ok, "%s", r.error);
        ck_assert_int_eq(r.ns, g->total_ns);
        ck_assert_int_le(r.peak_bytes, anneal_peak(a));
    }
    ck_assert_int_ge(a->copies.n, 2);
    plan_free(&p);
    anneal_free(a);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

START_TEST(copies_beat_replays)
{
    struct graph *g = tide(12, 40, 1 << 20, 0.8e6);
    struct solver_opts o = {.limit_bytes = g->baseline_peak_bytes - 6 * (1 << 20), .seed = 1};
    struct plan p = {0};
    struct solver_report with = {0}, without = {0};
    ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 20, 2, NULL, 0, 0, &p, &without), 0);
    ck_assert_int_eq(without.replays, 6);
    o.offload = 1;
    ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 20, 2, NULL, 0, 0, &p, &with), 0);
    ck_assert_int_eq(with.planned_ns, g->total_ns); /* there is time for all of it */
    ck_assert_int_ge(with.offloads, 6);
    plan_free(&p);
    graph_free(g);
}
END_TEST

/* A small copy engine and nothing to recompute: the computation has to wait, and does. */
/* Annealing on from a plan without copies comes to one with copies, and tells its figures; from the best plan it comes to no other. */
START_TEST(going_on_from_a_plan)
{
    struct graph *g = tide(12, 40, 1 << 20, 0.8e6);
    struct solver_opts o = {.limit_bytes = g->baseline_peak_bytes - 6 * (1 << 20), .seed = 1};
    struct plan p = {0};
    struct solver_report r = {0};
    struct sim_result judged;
    ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 20, 2, NULL, 0, 0, &p, &r), 0);
    ck_assert_int_gt(r.planned_ns, g->total_ns);
    o.offload = 1;
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(anneal_go_on(g, &o, solver_now_s() + 20, 2, &p, &r), 0);
        ck_assert_int_eq(r.planned_ns, g->total_ns);
        ck_assert_int_ge(r.offloads, 6);
        ck_assert_int_eq(sim_run(g, &p, o.limit_bytes, &judged), 0);
        ck_assert_msg(judged.ok, "%s", judged.error);
        ck_assert_int_eq(judged.ns, r.planned_ns);
    }
    plan_free(&p);
    graph_free(g);
}
END_TEST

START_TEST(waits_when_nothing_else_fits)
{
    struct graph_build *b = graph_build_new();
    int val[6], op = 0;
    for (int i = 0; i < 6; i++) {
        val[i] = graph_build_buf(b, 1 << 20, op, -1, GRAPH_STATE);
        graph_build_op(b, "make", GRAPH_FWD, 1000);
        graph_build_op_at(b, op)->opaque = 1;
        graph_build_operand(b, op++, GRAPH_WRITE, val[i]);
    }
    for (int i = 0; i < 6; i++) {
        graph_build_op(b, "use", GRAPH_BWD, 1000);
        graph_build_operand(b, op, GRAPH_READ, val[i]);
        graph_build_operand(b, op, GRAPH_WRITE, graph_build_buf(b, 16, op, op + 1, GRAPH_ACTIVATION));
        op++;
    }
    struct graph *g = NULL;
    struct graph_fault f = {0};
    ck_assert_msg(graph_seal(b, &g, &f) == 0, "%s", f.text);
    graph_build_free(b);
    g->host_bytes_per_s = 1e9; /* a millisecond a value, out of a microsecond of computation */
    struct solver_opts o = {.limit_bytes = 4 << 20, .seed = 1, .offload = 1};
    struct plan p = {0};
    struct solver_report r = {0};
    ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 20, 2, NULL, 0, 0, &p, &r), 0);
    ck_assert_int_le(r.peak_bytes, o.limit_bytes);
    ck_assert_int_gt(r.planned_ns, g->total_ns);
    ck_assert_int_eq(r.replays, 0);
    plan_free(&p);
    graph_free(g);
}
END_TEST

/* n values, each made, used once more, and again in reverse order at the end. */
static struct graph *used_twice(int n, int64_t bytes)
{
    struct graph_build *b = graph_build_new();
    const int in = graph_build_buf(b, 16, -1, -1, GRAPH_INPUT);
    int val[64], op = 0;
    for (int i = 0; i < n; i++)
        val[i] = graph_build_buf(b, bytes, i, 3 * n - i, GRAPH_ACTIVATION);
    for (int i = 0; i < 3 * n; i++, op++) {
        graph_build_op(b, i < n ? "make" : "use", i < 2 * n ? GRAPH_FWD : GRAPH_BWD, 1000000);
        if (i < n)
            graph_build_op_at(b, op)->opaque = 1; /* a copy, or nothing */
        graph_build_operand(b, op, GRAPH_READ, i < n ? in : val[i < 2 * n ? i - n : 3 * n - 1 - i]);
        graph_build_operand(b, op, GRAPH_WRITE, i < n ? val[i] : graph_build_buf(b, 16, op, op + 1, GRAPH_ACTIVATION));
    }
    struct graph *g = NULL;
    struct graph_fault f = {0};
    ck_assert_msg(graph_seal(b, &g, &f) == 0, "%s", f.text);
    graph_build_free(b);
    g->host_bytes_per_s = (double)bytes / 1e6 * 1e9; /* a millisecond a copy */
    return g;
}

/* Copies that an op of the program comes after, before the memory goes. */
static int copies_before_a_use(const struct graph *g, const struct plan *p, int *copies)
{
    int n = 0;
    *copies = 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kind != PLAN_OFFLOAD)
            continue;
        (*copies)++;
        int used = 0;
        for (size_t j = i + 1; j < p->n_steps; j++) {
            const struct plan_step s = p->steps[j];
            if (s.kind == PLAN_RELEASE && s.id == p->steps[i].id)
                break;
            for (int32_t k = 0; s.kind == PLAN_OP && k < graph_n_operands(&g->ops[s.id]); k++)
                used |= graph_operands(g, s.id)[k].buf == p->steps[i].id;
        }
        n += used;
    }
    return n;
}

/* As the judge has it a copy holds as long as the value does, so it is made early. Where a program runs it does not. */
START_TEST(copies_until_used)
{
    struct graph *g = used_twice(12, 1 << 20);
    static const char *const solvers[] = {"anneal", "auto"};
    for (size_t k = 0; k < 2 * (sizeof solvers / sizeof *solvers); k++) {
        const char *name = solvers[k / 2];
        struct solver_opts o = {.limit_bytes = 8 << 20, .seed = 1, .offload = 1, .time_limit_s = 2};
        struct plan p = {0};
        struct solver_report r = {0};
        int copies;
        if (k % 2)
            setenv("REMAT_PLAN_COPIES", "until-used", 1);
        ck_assert_int_eq(solver_run(solver_find(name), g, &o, &p, &r), 0);
        unsetenv("REMAT_PLAN_COPIES");
        const int before = copies_before_a_use(g, &p, &copies);
        ck_assert_msg(copies > 0 && (k % 2 ? before == 0 : before > 0), "%s: %d of %d copies before a use", name, before, copies);
        plan_free(&p);
    }
    graph_free(g);
}
END_TEST

/* An iteration of a model that is trained with Adam, in small: 2 n states of which nothing rebuilds one, used early and at the end; n
 * activations that no replay brings back; and in the middle an op that needs as much as all of them. Copies take about `busy` times as
 * long as the whole iteration. */
static struct graph *crowded(int n, int64_t bytes, double busy)
{
    struct graph_build *b = graph_build_new();
    int state[1024], act[512], op = 0;
    ck_assert_int_le(n, 512);
    for (int i = 0; i < 2 * n; i++)
        state[i] = graph_build_buf(b, bytes, -1, -1, GRAPH_PARAM);
    for (int i = 0; i < n; i++, op++) {
        act[i] = graph_build_buf(b, bytes, op, 2 * n + 3 - i, GRAPH_ACTIVATION);
        graph_build_op(b, "forward", GRAPH_FWD, 100000);
        graph_build_op_at(b, op)->opaque = 1;
        graph_build_operand(b, op, GRAPH_READ, state[i]);
        graph_build_operand(b, op, GRAPH_WRITE, act[i]);
    }
    const int big = graph_build_buf(b, 2 * n * bytes, op, op + 3, GRAPH_ACTIVATION), big2 = graph_build_buf(b, n * bytes, op + 1, op + 3, GRAPH_ACTIVATION);
    graph_build_op(b, "loss", GRAPH_FWD, 100000);
    graph_build_operand(b, op++, GRAPH_WRITE, big);
    graph_build_op(b, "loss backward", GRAPH_BWD, 100000);
    graph_build_operand(b, op, GRAPH_READ, big);
    graph_build_operand(b, op++, GRAPH_WRITE, big2);
    graph_build_op(b, "loss backward", GRAPH_BWD, 100000);
    graph_build_operand(b, op, GRAPH_READ, big2);
    graph_build_operand(b, op++, GRAPH_RMW, big);
    for (int i = n - 1; i >= 0; i--) {
        graph_build_op(b, "backward", GRAPH_BWD, 100000);
        graph_build_operand(b, op, GRAPH_READ, act[i]);
        graph_build_operand(b, op, GRAPH_READ, state[i]);
        graph_build_operand(b, op, GRAPH_WRITE, graph_build_buf(b, 16, op, op + 1, GRAPH_GRAD));
        op++;
    }
    for (int i = 0; i < n; i++, op++) {
        graph_build_op(b, "step", GRAPH_OPT, 100000);
        graph_build_operand(b, op, GRAPH_RMW, state[n + i]);
        graph_build_operand(b, op, GRAPH_RMW, state[i]);
    }
    struct graph *g = NULL;
    struct graph_fault f = {0};
    ck_assert_msg(graph_seal(b, &g, &f) == 0, "%s", f.text);
    graph_build_free(b);
    g->host_bytes_per_s = 3.0 * n * (double)bytes / (busy * (double)g->total_ns) * 1e9;
    return g;
}

/* No schedule hides these copies, yet there is one: down to the floor. More than 256 stays are needed where there are many cells. */
START_TEST(a_plan_for_every_limit_above_the_floor)
{
    static const struct {
        int n;
        double busy;
    } kinds[] = {{12, 1}, {12, 20}, {200, 3}};
    static const double above[] = {1.03, 1.3};
    for (size_t k = 0; k < 2 * (sizeof kinds / sizeof *kinds); k++) {
        if (!drawn(k, 1, 3) && k) /* the first one always */
            continue;
        struct graph *g = crowded(kinds[k / 2].n, 1 << 20, kinds[k / 2].busy);
        struct solver_opts o = {.limit_bytes = (int64_t)((double)g->floor_offload_bytes * above[k % 2]), .seed = 1, .offload = 1, .time_limit_s = 8};
        struct plan p = {0};
        struct solver_report r = {0};
        struct sim_result judged;
        setenv("REMAT_PLAN_COPIES", "until-used", 1);
        const int rc = solver_run(solver_find("best"), g, &o, &p, &r);
        unsetenv("REMAT_PLAN_COPIES");
        ck_assert_msg(rc == 0, "%d states, limit %.2f floors: %s", 2 * kinds[k / 2].n, above[k % 2], r.message);
        ck_assert_int_eq(sim_run(g, &p, o.limit_bytes, &judged), 0);
        ck_assert_msg(judged.ok, "%s", judged.error);
        /* out and back once each, at most, in a row */
        ck_assert_double_le((double)judged.ns, (double)g->total_ns + 2.02 * 3 * kinds[k / 2].n * (double)(1 << 20) / g->host_bytes_per_s * 1e9);
        plan_free(&p);
        graph_free(g);
    }
}
END_TEST

/* A program stands still while it is planned for: time that brings nothing more is not used up. A plan that costs nothing ends the search at once. */
START_TEST(the_best_ends_early)
{
    for (int hidden = 0; hidden < 2; hidden++) {
        struct graph *g = hidden ? tide(12, 40, 1 << 20, 0.8e6) : crowded(12, 1 << 20, 2);
        struct solver_opts o = {.limit_bytes = hidden ? g->baseline_peak_bytes - 6 * (1 << 20) : g->floor_offload_bytes * 5 / 4, .seed = 1, .offload = 1, .time_limit_s = 90};
        struct plan p = {0};
        struct solver_report r = {0};
        const double began_s = solver_now_s();
        ck_assert_int_eq(solver_run(solver_find("best"), g, &o, &p, &r), 0);
        ck_assert_double_le(solver_now_s() - began_s, hidden ? 10 : 30);
        ck_assert(!hidden || r.planned_ns == g->total_ns);
        plan_free(&p);
        graph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("offload");
    TCase *c = tcase_create("offload");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, one_stay_in_time);
    tcase_add_test(c, a_stay_waits_where_memory_is_short);
    tcase_add_test(c, too_late_is_refused);
    tcase_add_test(c, engines_serve_one_after_another);
    tcase_add_test(c, copies_beat_replays);
    tcase_add_test(c, going_on_from_a_plan);
    tcase_add_test(c, waits_when_nothing_else_fits);
    tcase_add_test(c, copies_until_used);
    tcase_add_test(c, a_plan_for_every_limit_above_the_floor);
    tcase_add_test(c, the_best_ends_early);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
