/* sched_realize on random graphs and random decisions: whatever it returns 0 for, the simulator accepts. sched_tighten:
 * never raises peak or time, and a second pass changes nothing. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "offline/model/sched.h"
#include "offline/model/sched_fill.h"
#include "offline/model/sched_tighten.h"
#include "offline/solvers/mincut/mincut.h"
#include "tests/unit/rand_graph.h"

#define ROUNDS 3000

static void draw(struct rand_state *r, const struct sched *s, uint8_t *choice, int kinds)
{
    int32_t i;

    for (i = 0; i < s->n_gaps; i++)
        choice[i] = (uint8_t)(rand_below(r, 3) ? rand_below(r, kinds) : SCHED_KEEP);
}

START_TEST(realized_plans_are_good)
{
    struct plan p = {0};
    int seed, solved = 0, stuck = 0, replays = 0;

    for (seed = 1; seed <= ROUNDS; seed++) {
        struct rand_state r = {(uint64_t)seed * 77 + 1};
        struct graph *g = rand_graph((uint64_t)seed, 3 + seed % 40);
        struct sched *s;
        uint8_t *choice;
        struct sim_result res;
        int turn;

        ck_assert_ptr_nonnull(g);
        s = sched_new(g);
        choice = calloc((size_t)s->n_gaps + 1, 1);
        for (turn = 0; turn < 4; turn++) {
            int rc;

            draw(&r, s, choice, turn < 2 ? 3 : 4);
            rc = sched_realize(s, choice, &p, &res);
            if (rc) {
                ck_assert_msg(rc == -EDEADLK || rc == -E2BIG, "seed %d: rc %d", seed, rc);
                ck_assert_int_ge(s->stuck_op, 0);
                stuck++;
                continue;
            }
            solved++;
            replays += (int)res.replays;
            ck_assert_msg(res.ok, "seed %d turn %d: %s", seed, turn, res.error);
            if (turn < 2) {
                ck_assert_int_eq(res.offloads, 0);
                ck_assert_msg(res.peak_bytes >= g->floor_bytes, "seed %d: peak %lld below the floor %lld", seed,
                              (long long)res.peak_bytes, (long long)g->floor_bytes);
            }
            ck_assert_int_ge(res.peak_bytes, g->floor_offload_bytes);
        }
        sched_default(s, choice);
        ck_assert_int_eq(sched_realize(s, choice, &p, &res), 0);
        ck_assert_msg(res.ok, "seed %d default: %s", seed, res.error);
        ck_assert_int_eq(res.replays, 0);
        ck_assert_int_eq(res.ns, g->total_ns);
        ck_assert_int_le(res.peak_bytes, g->baseline_peak_bytes);
        free(choice);
        sched_free(s);
        graph_free(g);
    }
    plan_free(&p);
    /* These graphs overwrite in place so often that many random decisions want two versions of a buffer at once. */
    ck_assert_int_gt(solved, ROUNDS * 3 / 2);
    ck_assert_int_gt(replays, ROUNDS);
    ck_assert_int_gt(stuck, 0);
}
END_TEST

static int same(const struct plan *a, const struct plan *b)
{
    return a->n_steps == b->n_steps && a->n_keep == b->n_keep &&
           !memcmp(a->steps, b->steps, a->n_steps * sizeof(*a->steps)) &&
           (!a->n_keep || !memcmp(a->keep, b->keep, a->n_keep * sizeof(*a->keep)));
}

/* A plan with useless steps: every replayable op is replayed right after it ran, when its inputs allow. */
START_TEST(tighten_removes_what_is_useless)
{
    int seed;

    for (seed = 1; seed <= ROUNDS; seed++) {
        struct graph *g = rand_graph((uint64_t)seed + 50000, 3 + seed % 40);
        struct sched *s = sched_new(g);
        struct plan p = {0}, again = {0};
        struct sim_result before, after;
        int32_t i;

        for (i = 0; i < g->n_ops; i++) {
            const struct graph_op *o = &g->ops[i];
            int32_t k, dead = 0;

            plan_push(&p, PLAN_OP, i);
            for (k = g->dies_at[i + 1]; k < g->dies_at[i + 2]; k++)
                dead = 1;
            if (!dead && !o->opaque && !o->n_rmw && !o->n_side && o->n_writes)
                plan_push(&p, PLAN_REPLAY, i);
        }
        sim_run_ws(s->sim, &p, 0, &before);
        ck_assert_msg(before.ok, "seed %d: %s", seed, before.error);
        ck_assert_int_eq(sched_tighten(s, &p), 0);
        sim_run_ws(s->sim, &p, 0, &after);
        ck_assert_msg(after.ok, "seed %d: %s", seed, after.error);
        ck_assert_int_eq(after.replays, 0);
        ck_assert_int_eq(after.ns, g->total_ns);
        ck_assert_int_le(after.peak_bytes, before.peak_bytes);
        plan_copy(&again, &p);
        ck_assert_int_eq(sched_tighten(s, &again), 0);
        ck_assert_msg(same(&p, &again), "seed %d: a second pass changed the plan", seed);
        plan_free(&p);
        plan_free(&again);
        sched_free(s);
        graph_free(g);
    }
}
END_TEST

START_TEST(tighten_refuses_what_is_not_a_plan)
{
    struct graph *g = rand_graph(3, 12);
    struct sched *s = sched_new(g);
    struct plan p = {0};

    plan_push(&p, PLAN_OP, 1);
    ck_assert_int_eq(sched_tighten(s, &p), -EINVAL);
    plan_reset(&p);
    plan_push(&p, PLAN_DROP, g->n_bufs);
    ck_assert_int_eq(sched_tighten(s, &p), -EINVAL);
    plan_free(&p);
    sched_free(s);
    graph_free(g);
}
END_TEST

/* a = f(); b = g(a); ...; last reads a again. Dropped, a is replayed once, just before its use. */
START_TEST(a_dropped_gap_costs_one_replay)
{
    struct graph_build *b = graph_build_new();
    struct graph_fault fault;
    struct graph *g = NULL;
    struct sched *s;
    struct plan p = {0};
    struct sim_result r;
    uint8_t choice[64];
    int32_t i, v;

    graph_build_buf(b, 100, 0, 4, GRAPH_ACTIVATION); /* a */
    graph_build_buf(b, 10, 1, 4, GRAPH_ACTIVATION);
    graph_build_buf(b, 100, 2, 3, GRAPH_ACTIVATION); /* a big temporary */
    graph_build_buf(b, 10, 3, -1, GRAPH_ACTIVATION);
    for (i = 0; i < 4; i++)
        graph_build_op(b, "op", GRAPH_FWD, 7);
    graph_build_operand(b, 0, GRAPH_WRITE, 0);
    graph_build_operand(b, 1, GRAPH_READ, 0);
    graph_build_operand(b, 1, GRAPH_WRITE, 1);
    graph_build_operand(b, 2, GRAPH_READ, 1);
    graph_build_operand(b, 2, GRAPH_WRITE, 2);
    graph_build_operand(b, 3, GRAPH_READ, 0);
    graph_build_operand(b, 3, GRAPH_WRITE, 3);
    ck_assert_int_eq(graph_seal(b, &g, &fault), 0);
    graph_build_free(b);
    s = sched_new(g);
    sched_default(s, choice);
    v = g->bufs[0].first_val + 1;
    ck_assert_int_eq(s->gap_at[v + 1] - s->gap_at[v], 3); /* 0..1, 1..3, tail */
    choice[s->gap_at[v] + 1] = SCHED_DROP;
    ck_assert_int_eq(sched_realize(s, choice, &p, &r), 0);
    ck_assert(r.ok);
    ck_assert_int_eq(r.replays, 1);
    ck_assert_int_eq(r.ns, 5 * 7);
    ck_assert_int_eq(r.peak_bytes, 110);
    plan_free(&p);
    sched_free(s);
    graph_free(g);
}
END_TEST

/* Filling never makes a plan slower or lets it over the limit; with all the memory there is, most replays go. */
START_TEST(fill_uses_the_room)
{
    int seed, before = 0, after = 0, tight = 0, tight_after = 0;

    for (seed = 1; seed <= ROUNDS; seed++) {
        struct rand_state r = {(uint64_t)seed * 31 + 5};
        struct graph *g = rand_graph((uint64_t)seed + 90000, 3 + seed % 40);
        struct sched *s = sched_new(g);
        uint8_t *choice = calloc((size_t)s->n_gaps + 1, 1);
        struct plan p = {0};
        struct sim_result res, filled;
        int64_t limit;

        draw(&r, s, choice, seed % 3 ? 3 : 4);
        if (!sched_realize(s, choice, &p, &res)) {
            *(seed % 2 ? &before : &tight) += (int)res.replays;
            limit = seed % 2 ? INT64_MAX / 4 : res.peak_bytes + rand_below(&r, 300);
            ck_assert_int_eq(sched_fill(s, &p, limit, &filled), 0);
            ck_assert_msg(filled.ok, "seed %d: %s", seed, filled.error);
            ck_assert_int_le(filled.ns, res.ns);
            ck_assert_int_le(filled.peak_bytes, limit);
            sim_run_ws(s->sim, &p, limit, &res);
            ck_assert(res.ok && res.ns == filled.ns);
            *(seed % 2 ? &after : &tight_after) += (int)res.replays;
        }
        plan_free(&p);
        free(choice);
        sched_free(s);
        graph_free(g);
    }
    ck_assert_int_gt(before, 500);
    ck_assert_int_lt(after * 3, before); /* some buffers hold another version in between and cannot be kept */
    ck_assert_int_lt(tight_after, tight);
}
END_TEST

/* A gradient (op 1) is given up over op 2 and used by op 5, and what it is made from hangs on a weight that op 3 changes: it comes back
 * before op 3, but when it is used where what it is made from stays in memory as long (ask 1), not where that leaves before (ask 2). */
START_TEST(a_value_comes_back_before_its_source_changes)
{
    enum { WEIGHT, A, GRAD, LARGE, STATE, N_BUFS };
    for (int ask = 0; ask < 3; ask++) {
        const int held = ask > 0;
        struct graph_build *b = graph_build_new();
        struct graph_fault fault;
        struct graph *g = NULL;
        struct plan p = {0};
        struct sim_result r;
        graph_build_buf(b, 10, -1, -1, GRAPH_PARAM);
        graph_build_buf(b, 20, 0, held ? 6 : 2, GRAPH_ACTIVATION);
        graph_build_buf(b, 50, 1, 6, GRAPH_GRAD);
        graph_build_buf(b, 100, 2, 3, GRAPH_ACTIVATION);
        graph_build_buf(b, 5, -1, -1, GRAPH_STATE);
        for (int i = 0; i < 6; i++)
            graph_build_op(b, "k", GRAPH_BWD, 1);
        graph_build_operand(b, 0, GRAPH_READ, WEIGHT);
        graph_build_operand(b, 0, GRAPH_WRITE, A);
        graph_build_operand(b, 1, GRAPH_READ, A);
        graph_build_operand(b, 1, GRAPH_WRITE, GRAD);
        graph_build_operand(b, 2, GRAPH_WRITE, LARGE);
        graph_build_operand(b, 3, GRAPH_RMW, WEIGHT);
        graph_build_operand(b, 4, GRAPH_READ, held ? A : WEIGHT);
        graph_build_operand(b, 4, GRAPH_RMW, STATE);
        graph_build_operand(b, 5, GRAPH_READ, GRAD);
        graph_build_operand(b, 5, GRAPH_RMW, STATE);
        ck_assert_int_eq(graph_seal(b, &g, &fault), 0);
        graph_build_free(b);
        struct sched *s = sched_new(g);
        uint8_t *choice = calloc((size_t)s->n_gaps + 1, 1);
        mincut_unforce(s);
        sched_default(s, choice);
        choice[s->gap_at[g->bufs[GRAD].first_val + 1]] = SCHED_DROP;
        if (ask == 1) /* the tail of what op 0 makes */
            choice[s->gap_at[g->bufs[A].first_val + 2] - 1] = SCHED_KEEP;
        ck_assert_int_eq(sched_realize(s, choice, &p, &r), 0);
        ck_assert_msg(r.ok, "%s", r.error);
        ck_assert_int_eq(r.replays, held ? 1 : 2);
        ck_assert_int_eq(r.peak_bytes, 10 + 5 + 100 + (held ? 20 : 0));
        int32_t next = 0;
        for (size_t k = 0; k < p.n_steps; k++) {
            next += p.steps[k].kind == PLAN_OP;
            ck_assert(p.steps[k].kind != PLAN_REPLAY || next == (ask == 1 ? 5 : 3));
        }
        free(choice);
        plan_free(&p);
        sched_free(s);
        graph_free(g);
    }
}
END_TEST

/* A value at the end of a chain of 200,000 that were all dropped: an error, not an overflow of the stack. */
START_TEST(a_long_chain_is_refused)
{
    enum { N = 200000 };
    struct graph_build *b = graph_build_new();
    struct graph_fault fault;
    struct graph *g = NULL;
    struct sched *s;
    struct plan p = {0};
    uint8_t *choice;
    int32_t i;

    for (i = 0; i < N; i++) {
        graph_build_buf(b, 1, i, i < N - 1 ? i + 2 : -1, GRAPH_ACTIVATION);
        graph_build_op(b, "k", GRAPH_FWD, 1);
        graph_build_operand(b, i, GRAPH_WRITE, i);
        if (i)
            graph_build_operand(b, i, GRAPH_READ, i - 1);
    }
    ck_assert_int_eq(graph_seal(b, &g, &fault), 0);
    graph_build_free(b);
    s = sched_new(g);
    choice = calloc((size_t)s->n_gaps + 1, 1);
    sched_default(s, choice);
    choice[s->gap_at[g->bufs[N - 1].first_val + 1]] = SCHED_DROP;
    ck_assert_int_eq(sched_realize(s, choice, &p, NULL), -E2BIG);
    ck_assert_int_eq(s->stuck_op, N);
    free(choice);
    plan_free(&p);
    sched_free(s);
    graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sched");
    TCase *t = tcase_create("sched");
    SRunner *r;
    int failed;

    tcase_set_timeout(t, 250);
    tcase_add_test(t, realized_plans_are_good);
    tcase_add_test(t, tighten_removes_what_is_useless);
    tcase_add_test(t, tighten_refuses_what_is_not_a_plan);
    tcase_add_test(t, a_dropped_gap_costs_one_replay);
    tcase_add_test(t, fill_uses_the_room);
    tcase_add_test(t, a_value_comes_back_before_its_source_changes);
    tcase_add_test(t, a_long_chain_is_refused);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
