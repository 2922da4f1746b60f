/* The exact solvers for small traces against a plain exhaustive search over everything a plan may do, and Checkmate's
 * program against its own search. */
#include "offline/model/sim.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/checkmate/checkmate.h"
#include "offline/solvers/checkmate/checkmate_milp.h"
#include "offline/solvers/checkmate/checkmate_search.h"
#include "offline/solvers/milp/milp.h"
#include "offline/solvers/milp/milp_model.h"
#include "offline/solvers/milp/milp_search.h"
#include "offline/solvers/milp/milp_stages.h"
#include "offline/solvers/solver.h"
#include "tests/unit/rand_graph.h"
#include "tests/unit/drawn.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the oracle: Dijkstra's states without any of the solvers' economies --------------------------------- */

enum { ORACLE_MAX = 1 << 18, ORACLE_BUFS = 12 };

struct oracle {
    const struct graph *g;
    int64_t limit;
    uint64_t *key; /* 4 bits a buffer: 0 absent, version + 1; op index on top */
    int64_t *dist;
    uint32_t *queue;
    unsigned char *queued;
    uint32_t head, tail, waiting;
    int overflow;
};

static int oracle_version(uint64_t key, int b) { return (int)(key >> (4 * b) & 15) - 1; }
static uint64_t oracle_put(uint64_t key, int b, int version)
{
    return (key & ~(UINT64_C(15) << (4 * b))) | (uint64_t)(version + 1) << (4 * b);
}

static void oracle_reach(struct oracle *o, uint64_t key, int64_t dist)
{
    uint32_t at = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) & (ORACLE_MAX - 1), steps = 0;
    while (o->key[at] && o->key[at] != key + 1) {
        at = (at + 1) & (ORACLE_MAX - 1);
        if (++steps > 4096) {
            o->overflow = 1;
            return;
        }
    }
    if (o->key[at] && o->dist[at] <= dist)
        return;
    o->key[at] = key + 1;
    o->dist[at] = dist;
    if (!o->queued[at]) {
        o->queued[at] = 1;
        o->queue[o->tail++ & (ORACLE_MAX - 1)] = at;
    }
}

/* Runs op i (own) or its replay from `key`; the new key, or 0 if it breaks a rule or the limit. */
static uint64_t oracle_run(const struct oracle *o, uint64_t key, int i, int own)
{
    const struct graph *g = o->g;
    const struct graph_op *p = &g->ops[i];
    const struct graph_operand *d = graph_operands(g, i);
    for (int j = 0; j < graph_n_operands(p); j++)
        if (d[j].role != GRAPH_WRITE && (own || d[j].role != GRAPH_SIDE) &&
            oracle_version(key, d[j].buf) != g->vals[d[j].in].version)
            return 0;
    for (int j = 0; j < graph_n_operands(p); j++)
        if (d[j].role != GRAPH_READ && (own || d[j].role != GRAPH_SIDE))
            key = oracle_put(key, d[j].buf, g->vals[d[j].out].version);
    int64_t use = own ? 0 : p->side_bytes;
    for (int b = 0; b < g->n_bufs; b++)
        if (oracle_version(key, b) >= 0)
            use += g->bufs[b].bytes;
    return use <= o->limit ? key : 0;
}

/* Least replay time of any drop-and-replay plan; -1: none; -2: too large for the oracle. Needs n_bufs <= 12, fewer
 * than 15 versions, fewer than 256 ops. */
static int64_t oracle(const struct graph *g, int64_t limit)
{
    struct oracle o = { .g = g, .limit = limit };
    int64_t start = 0, best = -1;
    if (g->n_bufs > ORACLE_BUFS)
        return -2;
    for (int b = 0; b < g->n_bufs; b++)
        if (g->bufs[b].n_vers > 14)
            return -2;
    o.key = calloc(ORACLE_MAX, sizeof *o.key);
    o.dist = malloc(ORACLE_MAX * sizeof *o.dist);
    o.queue = malloc(ORACLE_MAX * sizeof *o.queue);
    o.queued = calloc(ORACLE_MAX, 1);
    ck_assert(o.key && o.dist && o.queue && o.queued);
    uint64_t key = 0;
    for (int b = 0; b < g->n_bufs; b++)
        if (g->bufs[b].born < 0) {
            key = oracle_put(key, b, 0);
            start += g->bufs[b].bytes;
        }
    if (start <= limit)
        oracle_reach(&o, key, 0);
    while (o.head != o.tail && !o.overflow) {
        uint32_t at = o.queue[o.head++ & (ORACLE_MAX - 1)];
        o.queued[at] = 0;
        uint64_t k = o.key[at] - 1, next;
        int64_t dist = o.dist[at];
        int t = (int)(k >> 56);
        if (t == g->n_ops) {
            int whole = 1;
            for (int b = 0; b < g->n_bufs; b++)
                if (g->bufs[b].survives && oracle_version(k, b) != g->bufs[b].n_vers - 1)
                    whole = 0;
            if (whole && (best < 0 || dist < best))
                best = dist;
        }
        for (int b = 0; b < g->n_bufs; b++)
            if (oracle_version(k, b) >= 0)
                oracle_reach(&o, oracle_put(k, b, -1), dist);
        if (t < g->n_ops && (next = oracle_run(&o, k, t, 1)))
            oracle_reach(&o, next + (UINT64_C(1) << 56), dist);
        for (int i = 0; i < t; i++)
            if (!g->ops[i].opaque && (next = oracle_run(&o, k, i, 0)))
                oracle_reach(&o, next, dist + g->ops[i].ns);
    }
    free(o.key);
    free(o.dist);
    free(o.queue);
    free(o.queued);
    return o.overflow ? -2 : best;
}

START_TEST(search_equals_the_exhaustive_search)
{
    int compared = 0, replays = 0, impossible = 0;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        if (!drawn(seed, 1, 4))
            continue;
        struct graph *g = rand_graph(seed, 3 + (int)(seed % 5));
        ck_assert_ptr_nonnull(g);
        struct milp_model m;
        ck_assert_int_eq(milp_model_new(g, &m), 0);
        int64_t peak = g->baseline_peak_bytes;
        for (int k = 0; k < 4 && peak > 0; k++) {
            int64_t limit = g->floor_bytes + (peak - g->floor_bytes) * k * k / 16 - (k == 3);
            if (limit <= 0)
                continue;
            int64_t want = oracle(g, limit);
            if (want == -2)
                break;
            struct plan p = { 0 };
            struct milp_found f;
            ck_assert_int_eq(milp_search(&m, limit, 0, &(struct milp_effort){.until_s = solver_now_s() + 60}, &p, &f), 0);
            if (want < 0) {
                ck_assert_msg(f.proved_infeasible && !f.found, "seed %d limit %d: found %d where none is", (int)seed,
                              (int)limit, (int)f.replay_ns);
                impossible++;
            } else {
                struct sim_result r;
                ck_assert_msg(f.found && f.replay_ns == want, "seed %d limit %d: found %d, %d ns, the optimum is %d", (int)seed,
                              (int)limit, f.found, (int)f.replay_ns, (int)want);
                ck_assert_int_eq(sim_run(g, &p, limit, &r), 0);
                ck_assert_msg(r.ok, "seed %d limit %d: %s", (int)seed, (int)limit, r.error);
                ck_assert_int_eq(r.ns - g->total_ns, want);
                replays += want > 0;
            }
            compared++;
            plan_free(&p);
        }
        milp_model_free(&m);
        graph_free(g);
    }
    const int part = drawn_all() ? 1 : 8; /* a quarter of the seeds; those with replays are so few that a draw may have none */
    ck_assert_msg(compared * part > 300 && (!drawn_all() || replays > 20) && impossible * part > 50, "%d compared, %d with replays, %d impossible", compared,
                  replays, impossible);
}
END_TEST

/* Small values without weight: never a bound over the optimum, never "impossible" where a plan exists; a search of few steps says
 * that it was broken off. */
START_TEST(what_is_proved_without_small_values_is_true)
{
    int below = 0, impossible = 0, tight = 0, broken = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct graph *g = rand_graph(seed + 700, 4 + (int)(seed % 9));
        const int64_t limit = g->floor_bytes + (g->baseline_peak_bytes - g->floor_bytes) * (int64_t)(seed % 4) / 8;
        struct milp_model m, rough;
        struct plan p = {0};
        struct milp_found exact, f;
        ck_assert_int_eq(milp_model_new(g, &m), 0);
        ck_assert_int_eq(milp_model_new(g, &rough), 0);
        milp_model_relax(&rough, 1 + g->baseline_peak_bytes / 8);
        const struct milp_effort free_of_clocks = {.work_most = 300000}, few = {.work_most = 3};
        if (limit > 0 && !milp_search(&m, limit, 0, &free_of_clocks, &p, &exact) &&
            !milp_search(&rough, limit, 0, &free_of_clocks, &p, &f)) {
            ck_assert_msg(!f.proved_infeasible || !exact.found, "seed %d: impossible, and a plan exists", (int)seed);
            ck_assert_msg(!exact.found || f.bound_ns <= (double)exact.replay_ns, "seed %d: %f proved, %lld is the optimum", (int)seed,
                          f.bound_ns, (long long)exact.replay_ns);
            below += exact.found && f.bound_ns < (double)exact.replay_ns;
            tight += exact.found && exact.replay_ns && f.bound_ns == (double)exact.replay_ns;
            impossible += f.proved_infeasible;
            broken += milp_search(&m, limit, 0, &few, &p, &f) == -E2BIG;
            ck_assert(!exact.found || f.bound_ns <= (double)exact.replay_ns);
        }
        plan_free(&p);
        milp_model_free(&m);
        milp_model_free(&rough);
        graph_free(g);
    }
    ck_assert_msg(below > 0 && tight > 0 && impossible > 10 && broken > 100, "%d below, %d tight, %d impossible, %d broken off",
                  below, tight, impossible, broken);
}
END_TEST

START_TEST(stages_are_never_better_than_the_search_and_mostly_equal)
{
    int both = 0, equal = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct graph *g = rand_graph(seed + 5000, 4 + (int)(seed % 8));
        ck_assert_ptr_nonnull(g);
        struct milp_model m;
        ck_assert_int_eq(milp_model_new(g, &m), 0);
        int64_t limit = g->baseline_peak_bytes - g->baseline_peak_bytes / 6;
        struct plan p = { 0 }, q = { 0 };
        struct milp_found a, b;
        struct sim_result r;
        if (limit > 0) {
            ck_assert_int_eq(milp_search(&m, limit, 0, &(struct milp_effort){.until_s = solver_now_s() + 60}, &p, &a), 0);
            ck_assert_int_eq(milp_stages(&m, limit, 0, solver_now_s() + 60, 100000, &q, &b), 0);
            ck_assert_msg(!b.found || a.found, "seed %d: a staged plan where none exists", (int)seed);
            if (b.found) {
                ck_assert_int_eq(sim_run(g, &q, limit, &r), 0);
                ck_assert_msg(r.ok, "seed %d: %s", (int)seed, r.error);
                ck_assert_int_ge(b.replay_ns, a.replay_ns);
                both++;
                equal += b.replay_ns == a.replay_ns;
            }
        }
        plan_free(&p);
        plan_free(&q);
        milp_model_free(&m);
        graph_free(g);
    }
    ck_assert_msg(both > 30 && equal * 10 >= both * 9, "%d solved by both, %d equal", both, equal);
}
END_TEST

START_TEST(solver_proves_small_traces_and_says_when_it_cannot)
{
    extern const struct solver solver_milp;
    int proved = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct graph *g = rand_graph(seed + 900, 10);
        struct milp_model m;
        struct milp_found f;
        struct plan p = { 0 }, q = { 0 };
        struct solver_report rep;
        struct solver_opts o = { .limit_bytes = g->baseline_peak_bytes * 15 / 16, .time_limit_s = 5, .seed = seed };
        ck_assert_int_eq(milp_model_new(g, &m), 0);
        if (o.limit_bytes > 0) {
            int rc = solver_run(&solver_milp, g, &o, &p, &rep);
            ck_assert_int_eq(milp_search(&m, o.limit_bytes, 0, &(struct milp_effort){.until_s = solver_now_s() + 60}, &q, &f), 0);
            ck_assert_msg(rc == (f.found ? 0 : -ENOSPC), "seed %d: %d %s", (int)seed, rc, rep.message);
            if (f.found) {
                ck_assert(rep.proved_optimal);
                ck_assert_int_eq(rep.planned_ns, g->total_ns + f.replay_ns);
                ck_assert(fabs(rep.bound_ns - (double)rep.planned_ns) < 0.5);
                proved++;
            } else {
                ck_assert(rc == -ENOSPC);
                refused++;
            }
        }
        plan_free(&p);
        plan_free(&q);
        milp_model_free(&m);
        graph_free(g);
    }
    ck_assert_msg(proved > 10 && refused > 2, "%d proved, %d refused", proved, refused);
}
END_TEST

START_TEST(time_limit_is_kept_on_a_large_trace)
{
    extern const struct solver solver_milp;
    const char *shared = getenv("REMAT_SHARED");
    if (!shared || !*shared)
        return;
    char path[4096], err[512];
    struct graph *g;
    snprintf(path, sizeof path, "%s/traces/bert_base-b32.json", shared);
    ck_assert_msg(!trace_read(path, &g, err, sizeof err), "%s", err);
    struct plan p = { 0 };
    struct solver_report rep;
    struct solver_opts o = { .limit_bytes = g->baseline_peak_bytes / 2, .time_limit_s = 4, .seed = 1 };
    double start = solver_now_s();
    ck_assert_int_eq(solver_run(&solver_milp, g, &o, &p, &rep), 0);
    ck_assert_msg(solver_now_s() - start < 12, "%.1f s", solver_now_s() - start);
    ck_assert(!rep.proved_optimal);
    ck_assert_msg(strstr(rep.message, "too many") != NULL, "%s", rep.message);
    plan_free(&p);
    graph_free(g);
}
END_TEST

/* ---- Checkmate's own model -------------------------------------------------------------------------------- */

static void random_checkmate(uint64_t seed, struct json_doc *doc)
{
    struct rand_state r = { seed * 2654435761u + 88172645463325252ull };
    char text[8192];
    int n = 3 + rand_below(&r, 7), at = 0;
    at += snprintf(text, sizeof text, "{\"n\":%d,\"edges\":[", n);
    for (int i = 1, first = 1; i < n; i++)
        for (int j = 0; j < i; j++)
            if (j == i - 1 || rand_below(&r, 4) == 0) {
                at += snprintf(text + at, sizeof text - (size_t)at, "%s[%d,%d]", first ? "" : ",", j, i);
                first = 0;
            }
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"cost\":[");
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", i ? "," : "", 1 + rand_below(&r, 9));
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"mem\":[");
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", i ? "," : "", 1 + rand_below(&r, 5));
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"budget\":%d}", 8 + rand_below(&r, 10));
    char err[256];
    ck_assert_msg(!json_doc_parse("random", text, (size_t)at, doc, err, sizeof err), "%s", err);
}

START_TEST(checkmate_program_and_search_agree)
{
    int solved = 0, dearer = 0, none = 0;
    for (uint64_t seed = 1; seed <= 250; seed++) {
        if (!drawn(seed, 1, 4))
            continue;
        struct json_doc doc;
        struct checkmate c;
        struct checkmate_plan p;
        struct checkmate_answer a = { 0 }, b = { 0 }, l = { 0 };
        char err[256];
        int64_t cost, peak, ideal = 0;
        random_checkmate(seed, &doc);
        ck_assert_msg(!checkmate_read(&doc, &c, err, sizeof err), "%s", err);
        for (int i = 0; i < c.n; i++)
            ideal += c.cost[i];
        ck_assert_int_eq(checkmate_plan_new(&c, &p), 0);
        ck_assert_int_eq(checkmate_search(&c, 60, &p, &a), 0);
        if (a.found) {
            ck_assert_int_eq(checkmate_replay(&c, &p, &cost, &peak), 0);
            ck_assert(cost == a.cost && peak == a.peak && peak <= c.budget);
        }
        ck_assert_int_eq(checkmate_milp(&c, 60, &p, &b), 0);
        ck_assert_msg(a.found == b.found && a.proved_optimal == b.proved_optimal && (!a.found || a.cost == b.cost),
                      "seed %d: search %d %d, program %d %d", (int)seed, a.found, (int)a.cost, b.found, (int)b.cost);
        if (b.found) {
            ck_assert_int_eq(checkmate_replay(&c, &p, &cost, &peak), 0);
            ck_assert(cost == b.cost && peak == b.peak && peak <= c.budget);
        }
        ck_assert_int_eq(checkmate_lp_round(&c, 60, seed, &p, &l), 0);
        ck_assert(!l.found || (a.found && l.cost >= a.cost && l.peak <= c.budget));
        ck_assert_msg(!a.found || l.bound <= (double)a.cost + 1e-6, "seed %d: bound %g, optimum %d", (int)seed, l.bound,
                      (int)a.cost);
        solved += a.found;
        none += !a.found;
        dearer += a.found && a.cost > ideal;
        checkmate_plan_free(&p);
        checkmate_free(&c);
        json_doc_close(&doc);
    }
    const int part = drawn_all() ? 1 : 8;
    ck_assert_msg(solved * part > 100 && (!drawn_all() || dearer > 10) && none * part > 10, "%d solved, %d with recomputation, %d impossible", solved, dearer,
                  none);
}
END_TEST

START_TEST(published_instances_have_their_optimum)
{
    const char *shared = getenv("REMAT_SHARED");
    static const struct {
        const char *name;
        int64_t optimum;
    } known[] = { { "linear_n11_B4", 14 }, { "linear_n11_B5", 13 }, { "linear_n21_B5", 29 }, { "linear_n21_B6", 27 } };
    if (!shared || !*shared)
        return;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        char path[4096], err[512];
        struct json_doc doc;
        struct solver_opts o = { .time_limit_s = 60 };
        struct instance_result r;
        memset(&r, 0, sizeof r);
        snprintf(path, sizeof path, "%s/anchors/milp/%s.json", shared, known[k].name);
        ck_assert_msg(!json_doc_load(path, &doc, err, sizeof err), "%s", err);
        const struct instance_solver *s = solver_instance_find("checkmate-v1", "milp");
        ck_assert_ptr_nonnull(s);
        ck_assert_int_eq(s->solve(&doc, &o, &r), 0);
        ck_assert(r.feasible && r.proved_optimal && r.value == (double)known[k].optimum && r.bound == r.value);
        ck_assert(r.peak <= (double)json_integer_value(json_object_get(doc.root, "budget")));
        json_decref(r.extra);
        json_decref(r.schedule);
        json_doc_close(&doc);
    }
}
END_TEST

START_TEST(broken_instances_are_refused_with_a_reason)
{
    static const char *const bad[] = {
        "[]", "{}", "{\"n\":0,\"budget\":1,\"edges\":[],\"cost\":[],\"mem\":[]}",
        "{\"n\":2,\"budget\":1,\"edges\":[[1,0]],\"cost\":[1,1],\"mem\":[1,1]}",
        "{\"n\":2,\"budget\":1,\"edges\":[[0,2]],\"cost\":[1,1],\"mem\":[1,1]}",
        "{\"n\":2,\"budget\":1,\"edges\":[],\"cost\":[1],\"mem\":[1,1]}",
        "{\"n\":2,\"budget\":1,\"edges\":[],\"cost\":[1,-1],\"mem\":[1,1]}",
        "{\"n\":2,\"budget\":-1,\"edges\":[],\"cost\":[1,1],\"mem\":[1,1]}",
        "{\"n\":2,\"budget\":1,\"edges\":3,\"cost\":[1,1],\"mem\":[1,1]}",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct json_doc doc;
        struct checkmate c;
        char err[256] = "";
        ck_assert_int_eq(json_doc_parse("bad", bad[k], strlen(bad[k]), &doc, err, sizeof err), 0);
        ck_assert_msg(checkmate_read(&doc, &c, err, sizeof err) < 0, "accepted: %s", bad[k]);
        ck_assert_msg(err[0] != 0, "no reason for: %s", bad[k]);
        json_doc_close(&doc);
    }
}
END_TEST

START_TEST(cbc_wrapper_solves_bounds_and_refuses)
{
    struct milp *m = milp_new();
    struct milp_result r;
    int x = milp_col(m, 0, 5, -1, 1), y = milp_col(m, 0, 5, -1, 1);
    milp_row(m, -MILP_NONE, 7);
    milp_term(m, x, 2);
    milp_term(m, y, 1);
    milp_term(m, y, 1); /* summed: 2x + 2y <= 7 */
    ck_assert_int_eq(milp_solve(m, &(struct milp_opts){ .relaxed = 1 }, &r), 0);
    ck_assert(r.status == MILP_OPTIMAL && fabs(r.value + 3.5) < 1e-6);
    milp_result_free(&r);
    ck_assert_int_eq(milp_solve(m, &(struct milp_opts){ .time_limit_s = 10 }, &r), 0);
    ck_assert(r.status == MILP_OPTIMAL && fabs(r.value + 3) < 1e-6 && fabs(r.bound + 3) < 1e-6);
    milp_result_free(&r);
    milp_row(m, 8, MILP_NONE);
    milp_term(m, x, 1);
    milp_term(m, y, 1);
    ck_assert_int_eq(milp_solve(m, &(struct milp_opts){ .time_limit_s = 10 }, &r), 0);
    ck_assert(r.status == MILP_INFEASIBLE && !r.x);
    milp_term(m, 99, 1);
    ck_assert_int_eq(milp_solve(m, &(struct milp_opts){ 0 }, &r), -EINVAL);
    milp_free(m);
}
END_TEST

/* The copy of this process that solves finds a lock held that nobody will give back: it sleeps for ever. */
static int *copies_to_hang;

static void hang(void)
{
    if (copies_to_hang && *copies_to_hang > 0) {
        --*copies_to_hang;
        for (;;)
            pause();
    }
}

START_TEST(a_child_that_sleeps_for_ever_is_replaced)
{
    copies_to_hang = mmap(NULL, sizeof *copies_to_hang, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(copies_to_hang, MAP_FAILED);
    *copies_to_hang = 1;
    ck_assert_int_eq(pthread_atfork(NULL, NULL, hang), 0);
    struct milp *m = milp_new();
    int x = milp_col(m, 0, 10, -1, 1);
    milp_row(m, -MILP_NONE, 3.5);
    milp_term(m, x, 1);
    struct milp_result r;
    ck_assert_int_eq(milp_solve(m, &(struct milp_opts){ 0 }, &r), 0);
    ck_assert_int_eq(*copies_to_hang, 0);
    ck_assert(r.status == MILP_OPTIMAL && r.x);
    ck_assert_double_eq_tol(r.x[x], 3, 1e-6);
    milp_result_free(&r);
    milp_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("milp");
    TCase *t = tcase_create("milp");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, search_equals_the_exhaustive_search);
    tcase_add_test(t, what_is_proved_without_small_values_is_true);
    tcase_add_test(t, stages_are_never_better_than_the_search_and_mostly_equal);
    tcase_add_test(t, solver_proves_small_traces_and_says_when_it_cannot);
    tcase_add_test(t, time_limit_is_kept_on_a_large_trace);
    tcase_add_test(t, checkmate_program_and_search_agree);
    tcase_add_test(t, published_instances_have_their_optimum);
    tcase_add_test(t, broken_instances_are_refused_with_a_reason);
    tcase_add_test(t, cbc_wrapper_solves_bounds_and_refuses);
    tcase_add_test(t, a_child_that_sleeps_for_ever_is_replaced);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
