/* The annealer's schedule: grouping, incremental state against a rebuild from the slots, and plans that replay. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "offline/model/sim.h"
#include "offline/solvers/anneal/anneal_copies.h"
#include "offline/solvers/anneal/anneal_plan.h"
#include "offline/solvers/anneal/anneal_runs.h"
#include "offline/solvers/anneal/solve_anneal.h"

static uint64_t rng;

static int draw(int n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (int)(((rng >> 33) * (uint64_t)n) >> 31);
}

static struct graph *seal(struct graph_build *b)
{
    struct graph *g = NULL;
    struct graph_fault f = {0};
    const int rc = graph_seal(b, &g, &f);
    ck_assert_msg(rc == 0, "op %d buf %d: %s", f.op, f.buf, f.text);
    graph_build_free(b);
    return g;
}

/* A training step as frameworks make it: layers whose activation is changed in place, batch statistics on the side,
 * saved activations read again by the backward pass, weight gradients that stay. */
static struct graph *network(int layers, int64_t bytes, int in_place)
{
    struct graph_build *b = graph_build_new();
    const int n_ops = 1 + layers * (in_place ? 2 : 1) + layers + layers;
    int op = 0, act[64], weight[64], stat[64], grad[64];
    const int input = graph_build_buf(b, bytes, -1, -1, GRAPH_INPUT);
    for (int l = 0; l < layers; l++) {
        weight[l] = graph_build_buf(b, bytes / 8, -1, -1, GRAPH_PARAM);
        stat[l] = graph_build_buf(b, 1024, -1, -1, GRAPH_STATE);
    }
    const int per = in_place ? 2 : 1, bwd = layers * per + 1;
    for (int l = 0; l < layers; l++) {
        act[l] = graph_build_buf(b, bytes, l * per, bwd + (layers - 1 - l) + 1, GRAPH_ACTIVATION);
        graph_build_op(b, "conv", GRAPH_FWD, 1000 + 100 * l);
        graph_build_operand(b, op, GRAPH_READ, l ? act[l - 1] : input);
        graph_build_operand(b, op, GRAPH_READ, weight[l]);
        graph_build_operand(b, op, GRAPH_SIDE, stat[l]);
        graph_build_operand(b, op++, GRAPH_WRITE, act[l]);
        if (in_place) {
            graph_build_op(b, "relu_", GRAPH_FWD, 100);
            graph_build_operand(b, op++, GRAPH_RMW, act[l]);
        }
    }
    int up = graph_build_buf(b, bytes, op, op + 2, GRAPH_ACTIVATION);
    graph_build_op(b, "loss", GRAPH_BWD, 500);
    graph_build_operand(b, op, GRAPH_READ, act[layers - 1]);
    graph_build_operand(b, op++, GRAPH_WRITE, up);
    for (int l = layers - 1; l >= 0; l--) {
        const int down = graph_build_buf(b, bytes, op, op + 2 < n_ops ? op + 2 : n_ops, GRAPH_ACTIVATION);
        grad[l] = graph_build_buf(b, bytes / 8, op, -1, GRAPH_GRAD);
        graph_build_op(b, "conv_backward", GRAPH_BWD, 2000);
        graph_build_operand(b, op, GRAPH_READ, act[l]);
        graph_build_operand(b, op, GRAPH_READ, up);
        graph_build_operand(b, op, GRAPH_READ, weight[l]);
        graph_build_operand(b, op, GRAPH_WRITE, down);
        graph_build_operand(b, op++, GRAPH_WRITE, grad[l]);
        up = down;
    }
    for (int l = 0; l < layers; l++) {
        graph_build_op(b, "sgd", GRAPH_OPT, 10);
        graph_build_operand(b, op, GRAPH_READ, grad[l]);
        graph_build_operand(b, op++, GRAPH_RMW, weight[l]);
    }
    return seal(b);
}

/* Anything at all: small random graphs with every kind of operand. */
static struct graph *random_graph(int n_ops)
{
    struct graph_build *b = graph_build_new();
    int pool[400], n = 0, dead_at[400];
    for (int i = 0; i < 4; i++) {
        pool[n] = graph_build_buf(b, 1 + draw(100000), -1, -1, GRAPH_PARAM);
        dead_at[n++] = n_ops + 1;
    }
    for (int o = 0; o < n_ops; o++) {
        char used[400] = {0};
        graph_build_op(b, "op", GRAPH_FWD, draw(1000));
        graph_build_op_at(b, o)->opaque = draw(20) == 0;
        for (int k = draw(4); k > 0; k--) {
            const int i = draw(n);
            if (used[i] || dead_at[i] <= o)
                continue;
            used[i] = 1;
            const int dice = draw(10);
            graph_build_operand(b, o, dice < 7 ? GRAPH_READ : dice == 7 ? GRAPH_RMW : dice == 8 ? GRAPH_SIDE : GRAPH_WRITE,
                                pool[i]);
        }
        for (int k = 1 + draw(2); k > 0; k--) {
            const int dies = draw(3) ? o + 1 + draw(n_ops - o) : -1;
            pool[n] = graph_build_buf(b, draw(10) ? 1 + draw(1000000) : 0, o, dies, GRAPH_ACTIVATION);
            graph_build_operand(b, o, GRAPH_WRITE, pool[n]);
            dead_at[n++] = dies < 0 ? n_ops + 1 : dies;
        }
    }
    return seal(b);
}

/* The plan of the schedule as it is now replays, and needs no more memory than the schedule says. */
static void plan_holds(struct anneal *a)
{
    struct plan p = {0};
    struct sim_result r;
    ck_assert_int_eq(anneal_clock(a), 0);
    ck_assert_int_eq(anneal_plan(a, &p), 0);
    ck_assert_int_eq(sim_run(a->m->g, &p, 0, &r), 0);
    ck_assert_msg(r.ok, "%s", r.error);
    ck_assert_msg(r.peak_bytes <= anneal_peak(a), "%lld > %lld", (long long)r.peak_bytes, (long long)anneal_peak(a));
    ck_assert_int_ge(r.ns, a->m->g->total_ns + a->replay_ns);
    plan_free(&p);
}

/* Convolutions image by image: columns that all images pass through, a workspace for each product, and what they add up in one tensor;
 * and a backward pass that reads what went in. */
enum { IMAGE_LAYERS = 8, IMAGES = 24 };
static const int64_t map_bytes = 1 << 20, columns_bytes = 1 << 18, workspace_bytes = 3 << 20;

static struct graph *image_by_image(void)
{
    struct graph_build *b = graph_build_new();
    enum { PER_LAYER = 1 + 3 * IMAGES, FORWARD = IMAGE_LAYERS * PER_LAYER };
    int act[IMAGE_LAYERS + 1], op = 0;
    act[0] = graph_build_buf(b, map_bytes, -1, -1, GRAPH_INPUT);
    for (int l = 0; l < IMAGE_LAYERS; l++) {
        act[l + 1] = graph_build_buf(b, map_bytes, op, FORWARD + IMAGE_LAYERS - l, GRAPH_ACTIVATION);
        const int columns = graph_build_buf(b, columns_bytes, op + 1, op + PER_LAYER, GRAPH_ACTIVATION);
        graph_build_op(b, "memset", GRAPH_FWD, 100);
        graph_build_operand(b, op++, GRAPH_WRITE, act[l + 1]);
        for (int i = 0; i < IMAGES; i++) {
            const int workspace = graph_build_buf(b, workspace_bytes, op + 1, op + 3, GRAPH_ACTIVATION);
            graph_build_op(b, "im2col", GRAPH_FWD, 100);
            graph_build_operand(b, op, GRAPH_READ, act[l]);
            graph_build_operand(b, op++, i ? GRAPH_RMW : GRAPH_WRITE, columns);
            graph_build_op(b, "gemm_splitk", GRAPH_FWD, 200);
            graph_build_operand(b, op, GRAPH_READ, columns);
            graph_build_operand(b, op, GRAPH_READ, act[l + 1]);
            graph_build_operand(b, op++, GRAPH_WRITE, workspace);
            graph_build_op(b, "reduce", GRAPH_FWD, 50);
            graph_build_operand(b, op, GRAPH_READ, workspace);
            graph_build_operand(b, op++, GRAPH_RMW, act[l + 1]);
        }
    }
    int up = act[IMAGE_LAYERS];
    for (int l = IMAGE_LAYERS - 1; l >= 0; l--) {
        const int down = graph_build_buf(b, map_bytes, op, l ? op + 2 : -1, GRAPH_ACTIVATION);
        graph_build_op(b, "backward", GRAPH_BWD, 20000);
        graph_build_operand(b, op, GRAPH_READ, act[l]);
        graph_build_operand(b, op, GRAPH_READ, up);
        graph_build_operand(b, op++, GRAPH_WRITE, down);
        up = down;
    }
    return seal(b);
}

/* A unit holds its columns and one workspace at a time, and leaves neither; too long for most searches, it is replayed all the same where
 * nothing else fits. */
START_TEST(inner_cells_come_and_go)
{
    struct graph *g = image_by_image();
    struct anneal_model *shorter = anneal_model_new(g, 0), *m = anneal_model_new_long(g, 0);
    ck_assert_int_eq(shorter->n_long, IMAGE_LAYERS);
    ck_assert_int_eq(m->n_long, 0);
    for (int l = 0; l < IMAGE_LAYERS; l++) {
        const struct anneal_unit *u = &m->units[m->unit_of_op[l * (1 + 3 * IMAGES)]];
        ck_assert_int_eq(u->n_ops, 1 + 3 * IMAGES);
        ck_assert(u->replayable);
        ck_assert(!shorter->units[shorter->unit_of_op[l * (1 + 3 * IMAGES)]].replayable);
        ck_assert_int_eq(u->n_out, 1);
        ck_assert_int_eq(u->n_inner, 1 + IMAGES);
        ck_assert_int_eq(u->scratch_bytes, columns_bytes + workspace_bytes);
    }
    struct anneal *a = anneal_new(m);
    struct anneal_seq row = {0};
    struct plan p = {0};
    const int32_t unit = m->unit_of_op[0], last = 1 + 3 * IMAGES - 1;
    ck_assert_int_eq(anneal_regrid(a), 0);
    ck_assert_int_eq(anneal_add(a, unit, a->op_slot[g->n_ops - 1] - 1), 0);
    ck_assert_int_eq(anneal_check(a), 0);
    plan_holds(a);
    ck_assert_int_eq(anneal_plan(a, &p), 0);
    ck_assert_int_eq(anneal_seq_of_plan(m, &p, &row), 0);
    int n = 0;
    for (int32_t i = 0; i < row.n; i++)
        n += row.at[i] == g->n_ops + unit;
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(m->unit_ops[m->units[unit].first_op + last], last);
    plan_free(&p);
    anneal_seq_free(&row);
    anneal_free(a);
    anneal_model_free(m);
    anneal_model_free(shorter);

    static const char *const solvers[] = {"anneal", "auto", "best"};
    for (size_t k = 0; k < sizeof solvers / sizeof *solvers; k++) {
        struct solver_opts o = {.limit_bytes = g->baseline_peak_bytes - 3 * map_bytes, .seed = 1, .time_limit_s = 5};
        struct solver_report r = {0};
        struct sim_result judged;
        ck_assert_msg(!solver_run(solver_find(solvers[k]), g, &o, &p, &r), "%s: %s", solvers[k], r.message);
        ck_assert_int_eq(sim_run(g, &p, o.limit_bytes, &judged), 0);
        ck_assert_msg(judged.ok && judged.peak_bytes <= o.limit_bytes, "%s: %s", solvers[k], judged.error);
        ck_assert_int_ge(r.replays, 3 * (1 + 3 * IMAGES));
        plan_free(&p);
    }
    graph_free(g);
}
END_TEST

START_TEST(groups_in_place_chains)
{
    struct graph *g = network(6, 1 << 20, 1);
    struct anneal_model *m = anneal_model_new(g, 0);
    for (int l = 0; l < 6; l++) {
        const struct anneal_unit *u = &m->units[m->unit_of_op[2 * l]];
        ck_assert_int_eq(m->unit_of_op[2 * l], m->unit_of_op[2 * l + 1]);
        ck_assert_int_eq(u->n_ops, 2);
        ck_assert_int_eq(u->ns, 1100 + 100 * l);
        ck_assert_int_eq(u->scratch_bytes, 1024);
        ck_assert(u->replayable);
        ck_assert_int_eq(u->until, 13 + 6 + l); /* its weight changes there */
        ck_assert_int_eq(u->n_in, l ? 1 : 0);   /* the input and the weights are always there */
    }
    ck_assert(!m->units[m->unit_of_op[g->n_ops - 1]].replayable);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

START_TEST(no_replays_is_the_program)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        struct graph *g = network(10, 1 << 20, in_place);
        struct anneal_model *m = anneal_model_new(g, 0);
        struct anneal *a = anneal_new(m);
        ck_assert_int_eq(anneal_check(a), 0);
        ck_assert_int_eq(anneal_peak(a), g->baseline_peak_bytes);
        plan_holds(a);
        anneal_free(a);
        anneal_model_free(m);
        graph_free(g);
    }
}
END_TEST

START_TEST(state_stays_exact)
{
    for (int seed = 0; seed < 60; seed++) {
        rng = (uint64_t)seed;
        struct graph *g = seed % 3 ? random_graph(5 + draw(60)) : network(4 + draw(20), 1 << 20, seed % 2);
        struct anneal_model *m = seed % 5 ? anneal_model_new(g, seed % 2) : anneal_model_new_long(g, seed % 2);
        const int64_t limit = g->floor_bytes + (g->baseline_peak_bytes - g->floor_bytes) / 2 + 1;
        struct anneal_search *s = anneal_search_new(m, limit, (uint64_t)seed, seed % 2);
        struct anneal_seq row = {0};
        if (seed % 4 == 3)
            anneal_search_let_wait(s);
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < 200; i++)
                anneal_search_step(s, (double)g->total_ns * (round < 30 ? 0.1 : 0.001));
            ck_assert_int_eq(anneal_check(s->a), 0);
            plan_holds(s->a);
            const int64_t peak = anneal_peak(s->a), ns = s->a->replay_ns;
            ck_assert_int_eq(anneal_save(s->a, &row), 0);
            ck_assert_int_eq(anneal_regrid(s->a), 0);
            ck_assert_int_eq(anneal_check(s->a), 0);
            ck_assert_int_eq(anneal_peak(s->a), peak);
            ck_assert_int_eq(anneal_load(s->a, &row), 0);
            ck_assert_int_eq(anneal_check(s->a), 0);
            ck_assert_int_eq(anneal_peak(s->a), peak);
            ck_assert_int_eq(s->a->replay_ns, ns);
        }
        ck_assert_int_eq(anneal_search_clear(s), 0);
        ck_assert_int_eq(s->a->replay_ns, 0);
        anneal_seq_free(&row);
        anneal_search_free(s);
        anneal_model_free(m);
        graph_free(g);
    }
}
END_TEST

static int by_cell(const void *pa, const void *pb)
{
    const struct anneal_stay *a = pa, *b = pb;
    return a->cell != b->cell ? (a->cell > b->cell) - (a->cell < b->cell) : (a->fetch > b->fetch) - (a->fetch < b->fetch);
}

static void save_sorted(const struct anneal *a, struct anneal_seq *row)
{
    ck_assert_int_eq(anneal_save(a, row), 0);
    if (row->n_stays)
        qsort(row->stays, (size_t)row->n_stays, sizeof *row->stays, by_cell);
}

/* A fetch that a mutation had moved across a use stood on the other side of it once the mutation was taken back: the schedule was
 * another one, above its limit, and no plan was found where there are many. */
START_TEST(taken_back_is_as_before)
{
    for (int seed = 0; seed < 40; seed++) {
        rng = (uint64_t)seed + 100;
        struct graph *g = seed % 3 ? random_graph(20 + draw(60)) : network(6 + draw(20), 1 << 20, seed % 2);
        g->host_bytes_per_s = (double)g->baseline_peak_bytes / (double)(g->total_ns + 1) * 1e9 * (seed % 4 + 1) / 2;
        if (seed % 2)
            setenv("REMAT_PLAN_COPIES", "until-used", 1);
        struct anneal_model *m = anneal_model_new(g, 1);
        const int64_t limit = g->floor_offload_bytes + (g->baseline_peak_bytes - g->floor_offload_bytes) / 3 + 1;
        struct anneal_search *s = anneal_search_new(m, limit, (uint64_t)seed, 1);
        unsetenv("REMAT_PLAN_COPIES");
        struct anneal_seq before = {0}, after = {0};
        if (seed % 4 < 3)
            anneal_search_let_wait(s);
        for (int i = 0; i < 3000; i++) {
            if (i % 500 == 0)
                ck_assert_int_eq(anneal_regrid(s->a), 0);
            save_sorted(s->a, &before);
            const double wait_ns = s->a->copies.wait_ns;
            if (anneal_search_step(s, (double)g->total_ns * (i % 500 < 100 ? 0.1 : 0)))
                continue;
            save_sorted(s->a, &after);
            ck_assert_msg(before.n == after.n && !memcmp(before.at, after.at, (size_t)before.n * sizeof *before.at), "seed %d, step %d: other ops or replays", seed, i);
            ck_assert_msg(before.n_stays == after.n_stays && (!before.n_stays || !memcmp(before.stays, after.stays, (size_t)before.n_stays * sizeof *before.stays)),
                          "seed %d, step %d: other stays", seed, i);
            ck_assert_msg(before.peak_bytes == after.peak_bytes, "seed %d, step %d: another peak", seed, i);
            ck_assert_double_eq_tol(s->a->copies.wait_ns, wait_ns, 1e-3);
        }
        anneal_seq_free(&before);
        anneal_seq_free(&after);
        anneal_search_free(s);
        anneal_model_free(m);
        graph_free(g);
    }
}
END_TEST

/* What the schedule says it waits is what the simulator says that it takes. */
START_TEST(waits_cost_what_they_take)
{
    int waited = 0;
    for (int seed = 0; seed < 40; seed++) {
        rng = (uint64_t)seed + 200;
        struct graph *g = seed % 3 ? random_graph(20 + draw(60)) : network(6 + draw(20), 1 << 20, seed % 2);
        g->host_bytes_per_s = (double)g->baseline_peak_bytes / (double)(g->total_ns + 1) * 1e9 * (seed % 4 + 1) / 2;
        setenv("REMAT_PLAN_COPIES", "until-used", 1);
        struct anneal_model *m = anneal_model_new(g, 1);
        struct anneal_search *s = anneal_search_new(m, g->floor_offload_bytes + (g->baseline_peak_bytes - g->floor_offload_bytes) / 4 + 1, (uint64_t)seed, 1);
        unsetenv("REMAT_PLAN_COPIES");
        struct plan p = {0};
        struct anneal_seq row = {0};
        anneal_search_let_wait(s);
        for (int round = 0; round < 30; round++) {
            for (int i = 0; i < 100; i++)
                anneal_search_step(s, (double)g->total_ns * 0.01);
            ck_assert_int_eq(anneal_regrid(s->a), 0);
            struct sim_result r;
            ck_assert_int_eq(anneal_plan(s->a, &p), 0);
            ck_assert_int_eq(sim_run(g, &p, 0, &r), 0);
            ck_assert_msg(r.ok, "%s", r.error);
            const double says = (double)(g->total_ns + s->a->replay_ns) + s->a->copies.wait_ns;
            ck_assert_msg(fabs(says - (double)r.ns) <= 2, "seed %d: the schedule says %.0f ns, the simulator %lld", seed, says, (long long)r.ns);
            waited += s->a->copies.wait_ns > 0;
            /* and a row made out of the plan is one with its stays */
            ck_assert_int_eq(anneal_seq_of_plan(m, &p, &row), 0);
            ck_assert_int_le(row.n_stays, s->a->copies.n);
            ck_assert(row.n_stays > 0 || s->a->copies.n == 0 || r.offloads == 0);
        }
        anneal_seq_free(&row);
        plan_free(&p);
        anneal_search_free(s);
        anneal_model_free(m);
        graph_free(g);
    }
    ck_assert_int_gt(waited, 100);
}
END_TEST

START_TEST(plan_and_row_agree)
{
    struct graph *g = network(12, 1 << 20, 1);
    struct anneal_model *m = anneal_model_new(g, 0);
    struct anneal_search *s = anneal_search_new(m, g->baseline_peak_bytes * 6 / 10, 7, 0);
    struct anneal_seq row = {0};
    struct plan p = {0};
    ck_assert_int_eq(anneal_runs(s, 0, 2, 0), 0);
    ck_assert_int_gt(s->best.n, 0);
    ck_assert_int_eq(anneal_load(s->a, &s->best), 0);
    ck_assert_int_eq(anneal_plan(s->a, &p), 0);
    ck_assert_int_eq(anneal_seq_of_plan(m, &p, &row), 0);
    ck_assert_int_eq(row.n, s->best.n);
    for (int32_t i = 0; i < row.n; i++)
        ck_assert_int_eq(row.at[i], s->best.at[i]);
    plan_free(&p);
    anneal_seq_free(&row);
    anneal_search_free(s);
    anneal_model_free(m);
    graph_free(g);
}
END_TEST

/* The chain of n equal layers: at a limit of k activations fewer than it holds, k layers are run again; nothing is
 * cheaper, since each replay saves one activation at the peak. */
START_TEST(finds_the_known_optimum)
{
    struct graph *g = network(16, 1 << 20, 0);
    struct solver_opts o = {.limit_bytes = g->baseline_peak_bytes - 3 * (1 << 20), .seed = 3};
    struct plan p = {0};
    struct solver_report r = {0};
    ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 20, 2, NULL, 0, 0, &p, &r), 0);
    ck_assert_int_le(r.peak_bytes, o.limit_bytes);
    ck_assert_int_eq(r.replays, 3);
    /* the three cheapest that can be absent at the peak: the cost rises with the layer */
    ck_assert_int_eq(r.planned_ns, g->total_ns + 1000 + 1100 + 1200);
    plan_free(&p);
    graph_free(g);
}
END_TEST

START_TEST(same_seed_same_plan)
{
    struct graph *g = network(20, 1 << 20, 1);
    struct plan p[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct solver_opts o = {.limit_bytes = g->baseline_peak_bytes / 2, .seed = 11};
        struct solver_report r = {0};
        ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 60, 1, NULL, 0, 0, &p[k], &r), 0);
    }
    ck_assert_uint_eq(p[0].n_steps, p[1].n_steps);
    for (size_t i = 0; i < p[0].n_steps; i++)
        ck_assert(p[0].steps[i].kind == p[1].steps[i].kind && p[0].steps[i].id == p[1].steps[i].id);
    plan_free(&p[0]);
    plan_free(&p[1]);
    graph_free(g);
}
END_TEST

/* cuBLAS-like: one workspace, overwritten by every op and never read, must not forbid replays. */
START_TEST(workspace_does_not_pin)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        struct graph_build *b = graph_build_new();
        const int layers = 8;
        const int ws = graph_build_buf(b, 5000, persistent ? -1 : 0, persistent ? -1 : 2 * layers + 1, GRAPH_STATE);
        const int in = graph_build_buf(b, 1 << 20, -1, -1, GRAPH_INPUT);
        int act[8], op = 0;
        for (int l = 0; l < layers; l++) {
            act[l] = graph_build_buf(b, 1 << 20, op, 2 * layers - l + 1, GRAPH_ACTIVATION);
            graph_build_op(b, "gemm", GRAPH_FWD, 1000);
            graph_build_operand(b, op, GRAPH_READ, in);
            graph_build_operand(b, op, GRAPH_WRITE, act[l]);
            graph_build_operand(b, op++, GRAPH_WRITE, ws);
        }
        graph_build_op(b, "loss", GRAPH_FWD, 10);
        graph_build_operand(b, op++, GRAPH_WRITE, ws);
        for (int l = layers - 1; l >= 0; l--) {
            graph_build_op(b, "bwd", GRAPH_BWD, 10);
            graph_build_operand(b, op, GRAPH_READ, act[l]);
            graph_build_operand(b, op++, GRAPH_WRITE, ws);
        }
        struct graph *g = seal(b);
        struct solver_opts o = {.limit_bytes = g->baseline_peak_bytes - 4 * (1 << 20), .seed = 1};
        struct plan p = {0};
        struct solver_report r = {0};
        ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 20, 2, NULL, 0, 0, &p, &r), 0);
        ck_assert_int_eq(r.replays, 4);
        plan_free(&p);
        graph_free(g);
    }
}
END_TEST

START_TEST(impossible_says_so)
{
    struct graph *g = network(6, 1 << 20, 0);
    struct solver_opts o = {.limit_bytes = g->floor_bytes - 1, .seed = 1};
    struct plan p = {0};
    struct solver_report r = {0};
    ck_assert_int_eq(anneal_solve(g, &o, solver_now_s() + 0.2, 1, NULL, 0, 0, &p, &r), -ENOSPC);
    ck_assert(r.message[0] != 0);
    plan_free(&p);
    graph_free(g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("anneal");
    TCase *c = tcase_create("anneal");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, groups_in_place_chains);
    tcase_add_test(c, inner_cells_come_and_go);
    tcase_add_test(c, no_replays_is_the_program);
    tcase_add_test(c, state_stays_exact);
    tcase_add_test(c, taken_back_is_as_before);
    tcase_add_test(c, waits_cost_what_they_take);
    tcase_add_test(c, plan_and_row_agree);
    tcase_add_test(c, finds_the_known_optimum);
    tcase_add_test(c, same_seed_same_plan);
    tcase_add_test(c, workspace_does_not_pin);
    tcase_add_test(c, impossible_says_so);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
