/* Holds: what the program has not freed can be brought back until it is, as a run asks for it; and a plan with holds is one of the trace without them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/held.h"
#include "offline/model/sim.h"
#include "offline/solvers/solver.h"
#include "tests/unit/rand_graph.h"

static int64_t *sizes(const struct graph *g)
{
    int64_t *bytes = malloc(((size_t)g->n_bufs + 1) * sizeof *bytes);
    for (int32_t b = 0; b < g->n_bufs; b++)
        bytes[b] = g->bufs[b].bytes;
    return bytes;
}

/* a = f(w); y = g(a); z = h(y), which writes over y's neighbour; a is freed three ops after its last use. */
START_TEST(where_holds_stand)
{
    struct graph_build *b = graph_build_new();
    struct graph_fault f;
    struct graph *g, *held;
    int32_t *op_of;
    graph_build_buf(b, 8, -1, -1, GRAPH_PARAM);      /* 0: w */
    graph_build_buf(b, 100, 0, 4, GRAPH_ACTIVATION); /* 1: a */
    graph_build_buf(b, 50, 1, 4, GRAPH_ACTIVATION);  /* 2: y, last used by the op before its end */
    graph_build_buf(b, 30, -1, 2, GRAPH_INPUT);      /* 3: freed two ops after its last use */
    for (int i = 0; i < 4; i++)
        graph_build_op(b, "f", i < 2 ? GRAPH_FWD : GRAPH_BWD, 10);
    graph_build_operand(b, 0, GRAPH_READ, 0);
    graph_build_operand(b, 0, GRAPH_READ, 3);
    graph_build_operand(b, 0, GRAPH_WRITE, 1);
    graph_build_operand(b, 1, GRAPH_READ, 1);
    graph_build_operand(b, 1, GRAPH_WRITE, 2);
    graph_build_operand(b, 2, GRAPH_WRITE, 2); /* wholly: what it held could still be looked at */
    graph_build_operand(b, 3, GRAPH_READ, 2);
    ck_assert_int_eq(graph_seal(b, &g, &f), 0);
    graph_build_free(b);
    int64_t *bytes = sizes(g);
    ck_assert_int_eq(held_graph(g, bytes, 1, &held, &op_of), 0);
    static const int32_t want[] = {0, 1, -1 - 2, -1 - 2, 2, 3, -1 - 4}; /* of buffer 3 before op 2, of y before it is overwritten, of a at its end */
    ck_assert_int_eq(held->n_ops, 7);
    for (int i = 0; i < 7; i++)
        ck_assert_msg(op_of[i] == want[i], "op %d is %d", i, op_of[i]);
    ck_assert_int_eq(held->bufs[3].dies, 3);
    ck_assert_int_eq(held->bufs[1].dies, 7);
    ck_assert_int_eq(held->bufs[2].dies, 7); /* behind the holds at the same place */
    ck_assert(held->ops[2].opaque && held->ops[2].ns == 0 && held->total_ns == g->total_ns);
    graph_free(held);
    free(op_of);
    bytes[1] = bytes[2] = bytes[3] = 0; /* what never moves needs none */
    ck_assert_int_eq(held_graph(g, bytes, 1, &held, &op_of), 0);
    ck_assert_int_eq(held->n_ops, 4);
    graph_free(held);
    free(op_of);
    free(bytes);
    graph_free(g);
}
END_TEST

/* Plans of drawn graphs with holds, by two solvers, with copies and without: in the trace they take the same time, fit, and bring everything back. */
START_TEST(plans_without_holds)
{
    int plans = 0, kept = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct graph *g = rand_graph(seed, 24), *held;
        int64_t *bytes = sizes(g);
        int32_t *op_of;
        ck_assert_int_eq(held_graph(g, bytes, 1, &held, &op_of), 0);
        for (int k = 0; k < 6; k++) {
            const struct solver *s = solver_find(k % 2 ? "dtr" : "anneal");
            struct solver_opts o = {.limit_bytes = held->floor_offload_bytes + (held->baseline_peak_bytes - held->floor_offload_bytes) * (1 + k / 2) / 4,
                                    .offload = 1, .seed = seed, .time_limit_s = 0.02};
            struct plan p = {0};
            struct solver_report r;
            struct sim_result x;
            if (solver_run(s, held, &o, &p, &r)) {
                plan_free(&p);
                continue;
            }
            ck_assert_int_eq(held_plan(g, held, op_of, &p), 0);
            ck_assert_int_eq(sim_run(g, &p, o.limit_bytes, &x), 0);
            ck_assert_msg(x.ok, "seed %d, %s: %s", (int)seed, s->name, x.error);
            ck_assert_msg(x.ns == r.planned_ns, "seed %d, %s: %lld ns, with holds %lld", (int)seed, s->name, (long long)x.ns, (long long)r.planned_ns);
            plans++;
            kept += p.n_keep > 0;
            plan_free(&p);
        }
        graph_free(held);
        free(op_of);
        free(bytes);
        graph_free(g);
    }
    ck_assert_msg(plans > 60 && kept > 5, "%d plans, %d of them keep something", plans, kept);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("held");
    TCase *t = tcase_create("held");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, where_holds_stand);
    tcase_add_test(t, plans_without_holds);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
