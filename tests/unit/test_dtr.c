/* Dynamic tensor rematerialization in simulation: rows that hold, and each variant's choice of victim. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "offline/model/sim.h"
#include "offline/solvers/anneal/anneal_plan.h"
#include "offline/solvers/dtr/dtr.h"
#include "offline/solvers/solver.h"

static struct graph *seal(struct graph_build *b)
{
    struct graph *g = NULL;
    struct graph_fault f = {0};
    ck_assert_msg(graph_seal(b, &g, &f) == 0, "%s", f.text);
    graph_build_free(b);
    return g;
}

/* Three independent values wait for their uses when a fourth needs room: a is large and cheap, b is costly and was used
 * last, c is small and oldest. Which one is replayed tells which one the variant evicted. */
static int victim(enum dtr_h h)
{
    static const int64_t bytes[3] = {400, 400, 200}, ns[3] = {100, 100000, 90000};
    static const int order[3] = {2, 0, 1};
    struct graph_build *b = graph_build_new();
    const int in = graph_build_buf(b, 1, -1, -1, GRAPH_INPUT);
    int val[3], op = 0;
    for (int k = 0; k < 3; k++) {
        const int v = order[k];
        val[v] = graph_build_buf(b, bytes[v], op, 8, GRAPH_ACTIVATION);
        graph_build_op(b, "make", GRAPH_FWD, ns[v]);
        graph_build_operand(b, op, GRAPH_READ, in);
        graph_build_operand(b, op++, GRAPH_WRITE, val[v]);
    }
    const int big = graph_build_buf(b, 200, op, op + 1, GRAPH_ACTIVATION);
    graph_build_op(b, "press", GRAPH_FWD, 1000);
    graph_build_operand(b, op++, GRAPH_WRITE, big);
    for (int k = 0; k < 3; k++) {
        const int out = graph_build_buf(b, 1, op, -1, GRAPH_GRAD);
        graph_build_op(b, "use", GRAPH_BWD, 1000);
        graph_build_operand(b, op, GRAPH_READ, val[order[k]]);
        graph_build_operand(b, op++, GRAPH_WRITE, out);
    }
    graph_build_op(b, "end", GRAPH_BWD, 1000);
    graph_build_operand(b, op, GRAPH_READ, in);
    graph_build_operand(b, op, GRAPH_WRITE, graph_build_buf(b, 1, op, -1, GRAPH_GRAD));
    struct graph *g = seal(b);
    struct anneal_model *m = anneal_model_new(g, 0);
    struct anneal_seq row = {0};
    ck_assert_int_eq(dtr_simulate(m, 1010, h, 0, &row), 0);
    int first = -1;
    for (int32_t i = 0; i < row.n && first < 0; i++)
        if (row.at[i] >= g->n_ops)
            first = order[m->unit_ops[m->units[row.at[i] - g->n_ops].first_op]];
    anneal_seq_free(&row);
    anneal_model_free(m);
    graph_free(g);
    return first;
}

START_TEST(variants_choose_as_named)
{
    ck_assert_int_eq(victim(DTR_FULL), 0);
    ck_assert_int_eq(victim(DTR_EQ), 0);
    ck_assert_int_eq(victim(DTR_LOCAL), 0);
    ck_assert_int_eq(victim(DTR_MSPS), 0);
    ck_assert_int_eq(victim(DTR_LRU), 2);  /* the oldest */
    ck_assert_int_ne(victim(DTR_SIZE), 2); /* one of the largest */
}
END_TEST

/* A chain of n: forward, then backward in reverse, each backward op reading its activation. */
static struct graph *chain(int n)
{
    struct graph_build *b = graph_build_new();
    const int in = graph_build_buf(b, 1000, -1, -1, GRAPH_INPUT);
    int act[128], op = 0;
    for (int i = 0; i < n; i++) {
        act[i] = graph_build_buf(b, 1000, op, 2 * n - i, GRAPH_ACTIVATION);
        graph_build_op(b, "f", GRAPH_FWD, 100);
        graph_build_operand(b, op, GRAPH_READ, i ? act[i - 1] : in);
        graph_build_operand(b, op++, GRAPH_WRITE, act[i]);
    }
    for (int i = n - 1; i >= 0; i--) {
        graph_build_op(b, "b", GRAPH_BWD, 200);
        graph_build_operand(b, op, GRAPH_READ, act[i]);
        graph_build_operand(b, op, GRAPH_WRITE, graph_build_buf(b, 1, op, -1, GRAPH_GRAD));
        op++;
    }
    return seal(b);
}

START_TEST(holds_the_limit)
{
    struct graph *g = chain(60);
    struct anneal_model *m = anneal_model_new(g, 0);
    struct anneal *a = anneal_new(m);
    struct anneal_seq row = {0};
    for (int h = 0; h < DTR_N_H; h++)
        for (int percent = 20; percent < 100; percent += 20) {
            const int64_t limit = g->baseline_peak_bytes * percent / 100;
            struct plan p = {0};
            struct sim_result r;
            ck_assert_int_eq(dtr_simulate(m, limit, (enum dtr_h)h, 0, &row), 0);
            ck_assert_int_eq(anneal_load(a, &row), 0);
            ck_assert_int_eq(a->n_replays, row.n - g->n_ops);
            ck_assert_int_eq(anneal_plan(a, &p), 0);
            ck_assert_int_eq(sim_run(g, &p, limit, &r), 0);
            ck_assert_msg(r.ok, "%s at %d %%: %s", dtr_name((enum dtr_h)h), percent, r.error);
            ck_assert_int_gt(r.replays, 0);
            plan_free(&p);
        }
    anneal_seq_free(&row);
    anneal_free(a);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

START_TEST(too_small_says_so)
{
    struct graph *g = chain(10);
    struct anneal_model *m = anneal_model_new(g, 0);
    struct anneal_seq row = {0};
    ck_assert_int_eq(dtr_simulate(m, 1500, DTR_FULL, 0, &row), -ENOSPC);
    ck_assert_int_eq(dtr_simulate(m, g->baseline_peak_bytes, DTR_FULL, 0, &row), 0);
    ck_assert_int_eq(row.n, g->n_ops); /* room for all: nothing is replayed */
    anneal_seq_free(&row);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("dtr");
    TCase *c = tcase_create("dtr");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, variants_choose_as_named);
    tcase_add_test(c, holds_the_limit);
    tcase_add_test(c, too_small_says_so);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
