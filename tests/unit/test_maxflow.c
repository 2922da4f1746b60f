/* Minimum cuts against an augmenting-path reference on small random networks, and against the answers in
 * the mincut-v1 files. */
#include "offline/solvers/mincut/maxflow.h"
#include "offline/literature/mincut_inst.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_MAX 14

static uint64_t rng_state;
static unsigned rnd(unsigned below)
{
    rng_state = rng_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)((rng_state >> 33) % below);
}

/* Depth-first augmentation on a dense matrix; slow, plainly right. */
static int64_t ref_path(int n, int64_t res[N_MAX][N_MAX], char *seen, int u, int64_t limit)
{
    if (u == 1)
        return limit;
    seen[u] = 1;
    for (int v = 0; v < n; v++)
        if (res[u][v] > 0 && !seen[v]) {
            int64_t x = ref_path(n, res, seen, v, limit < res[u][v] ? limit : res[u][v]);
            if (x) {
                res[u][v] -= x;
                res[v][u] += x;
                return x;
            }
        }
    return 0;
}

START_TEST(random_networks_match_the_reference)
{
    rng_state = 99;
    for (int round = 0; round < 4000; round++) {
        int n = 2 + (int)rnd(N_MAX - 1), m = (int)rnd(4 * (unsigned)n);
        int64_t res[N_MAX][N_MAX] = { { 0 } };
        struct { int u, v; int64_t c; } e[4 * N_MAX];
        struct maxflow *f = maxflow_new(n);
        ck_assert_ptr_nonnull(f);
        const int64_t far = INT64_C(1) << 50;
        for (int i = 0; i < m; i++) {
            e[i].u = (int)rnd((unsigned)n);
            e[i].v = (int)rnd((unsigned)n);
            e[i].c = rnd(6) == 0 ? MAXFLOW_INF : (int64_t)rnd(round % 2 ? 5 : 1000000);
            ck_assert_int_eq(maxflow_arc(f, e[i].u, e[i].v, e[i].c), 0);
            if (e[i].u != e[i].v)
                res[e[i].u][e[i].v] += e[i].c == MAXFLOW_INF ? far : e[i].c;
        }
        int64_t want = 0, got = -1;
        for (;;) {
            char seen[N_MAX] = { 0 };
            int64_t x = ref_path(n, res, seen, 0, INT64_MAX / 2);
            if (!x || want >= far)
                break;
            want += x;
        }
        int r = maxflow_solve(f, 0, 1, &got);
        if (want >= far) {
            ck_assert_int_eq(r, -ERANGE);
        } else {
            ck_assert_int_eq(r, 0);
            ck_assert_int_eq(got, want);
            int64_t crossing = 0;
            ck_assert(maxflow_on_source_side(f, 0) && !maxflow_on_source_side(f, 1));
            for (int i = 0; i < m; i++)
                if (maxflow_on_source_side(f, e[i].u) && !maxflow_on_source_side(f, e[i].v)) {
                    ck_assert(e[i].c != MAXFLOW_INF);
                    crossing += e[i].c;
                }
            ck_assert_int_eq(crossing, want);
        }
        maxflow_free(f);
    }
}
END_TEST

START_TEST(capacities_can_change_between_solves)
{
    struct maxflow *f = maxflow_new(3);
    int64_t x;
    ck_assert_int_eq(maxflow_arc(f, 0, 2, 5), 0);
    ck_assert_int_eq(maxflow_arc(f, 2, 1, 3), 0);
    ck_assert_int_eq(maxflow_solve(f, 0, 1, &x), 0);
    ck_assert_int_eq(x, 3);
    ck_assert_int_eq(maxflow_set(f, 1, INT64_C(1) << 40), 0);
    ck_assert_int_eq(maxflow_solve(f, 0, 1, &x), 0);
    ck_assert_int_eq(x, 5);
    ck_assert_int_eq(maxflow_set(f, 0, INT64_C(1) << 61), 0);
    ck_assert_int_eq(maxflow_solve(f, 0, 1, &x), 0);
    ck_assert_int_eq(x, INT64_C(1) << 40);
    maxflow_free(f);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    int64_t x;
    ck_assert_ptr_null(maxflow_new(0));
    struct maxflow *f = maxflow_new(3);
    ck_assert_int_eq(maxflow_arc(f, 0, 3, 1), -EINVAL);
    ck_assert_int_eq(maxflow_arc(f, -1, 0, 1), -EINVAL);
    ck_assert_int_eq(maxflow_arc(f, 0, 1, -1), -EINVAL);
    ck_assert_int_eq(maxflow_set(f, 0, 1), -EINVAL);
    ck_assert_int_eq(maxflow_solve(f, 0, 0, &x), -EINVAL);
    ck_assert_int_eq(maxflow_arc(f, 0, 2, INT64_C(1) << 61), 0);
    ck_assert_int_eq(maxflow_arc(f, 2, 1, INT64_C(1) << 61), 0);
    ck_assert_int_eq(maxflow_solve(f, 0, 1, &x), -EOVERFLOW);
    maxflow_free(f);
}
END_TEST

/* A residual stream: each block reads the stream and adds to it, so that the cheap edges lie at the end
 * of chains thousands of arcs long. */
START_TEST(a_long_skip_chain_is_solved_at_once)
{
    enum { L = 20000 };
    struct maxflow *f = maxflow_new(2 + 2 * L);
    int64_t sinks = 0, want = INT64_MAX, x; /* cutting the chain at block i leaves the sink arcs before it */
    rng_state = 5;
    for (int i = 0; i < L; i++) {
        int in = 2 + 2 * i, out = in + 1;
        int64_t cap = 1000 + (int64_t)rnd(100000) - i / 4;
        if (cap < 1)
            cap = 1;
        if (i == 0)
            maxflow_arc(f, 0, in, MAXFLOW_INF);
        maxflow_arc(f, in, out, cap);
        if (i + 1 < L)
            maxflow_arc(f, out, in + 2, MAXFLOW_INF);
        if (sinks + cap < want)
            want = sinks + cap;
        if (i % 3 == 2) {
            maxflow_arc(f, out, 1, 1);
            sinks++;
        }
    }
    if (sinks < want)
        want = sinks;
    ck_assert_int_eq(maxflow_solve(f, 0, 1, &x), 0);
    ck_assert_int_eq(x, want);
    maxflow_free(f);
}
END_TEST

START_TEST(published_instances_have_their_cut)
{
    const char *shared = getenv("REMAT_SHARED");
    static const char *const names[] = { "mincut_n200_s1", "mincut_n5000_s1", "mincut_transformer_n241",
                                         "mincut_transformer_n5101" };
    if (!shared || !*shared)
        return;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char path[4096], err[256] = "";
        struct mincut_inst g;
        snprintf(path, sizeof path, "%s/anchors/mincut/%s.json", shared, names[k]);
        struct json_doc doc;
        ck_assert_msg(!json_doc_load(path, &doc, err, sizeof err), "%s", err);
        ck_assert_msg(!mincut_inst_read(&doc, &g, err, sizeof err), "%s", err);
        json_doc_close(&doc);
        struct maxflow *f = maxflow_new(g.n_vertices);
        for (int i = 0; i < g.n_edges; i++)
            ck_assert_int_eq(maxflow_arc(f, g.u[i], g.v[i], g.cap[i]), 0);
        int64_t x = -1;
        ck_assert_int_eq(maxflow_solve(f, 0, 1, &x), 0);
        ck_assert_int_eq(x, g.cut);
        maxflow_free(f);
        mincut_inst_free(&g);
    }
}
END_TEST

START_TEST(broken_files_are_refused_with_a_reason)
{
    static const char *const bad[] = {
        "[]", "{\"format\":\"mincut-v1\"}", "{\"n\":-1,\"edges\":[]}", "{\"n\":1,\"edges\":[[0,1]]}",
        "{\"n\":1,\"edges\":[[0,4,1]]}", "{\"n\":1,\"edges\":[[0,1,-2]]}", "{\"n\":1,\"edges\":[[0,1,1.5]]}",
        "{\"n\":1,\"edges\":[7]}", "{\"n\":1,\"edges\":{}}", "{\"n\":1,\"edges\":[],\"cut\":\"a\"}",
        "{\"n\":1,\"edges\":[[0,1,9223372036854775807]]}",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char err[256] = "";
        struct json_doc doc;
        struct mincut_inst g;
        ck_assert_int_eq(json_doc_parse("broken", bad[k], strlen(bad[k]), &doc, err, sizeof err), 0);
        ck_assert_msg(mincut_inst_read(&doc, &g, err, sizeof err) < 0, "accepted: %s", bad[k]);
        ck_assert_msg(err[0] != 0, "no reason for: %s", bad[k]);
        json_doc_close(&doc);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("maxflow");
    TCase *t = tcase_create("maxflow");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, random_networks_match_the_reference);
    tcase_add_test(t, capacities_can_change_between_solves);
    tcase_add_test(t, bad_arguments_are_refused);
    tcase_add_test(t, a_long_skip_chain_is_solved_at_once);
    tcase_add_test(t, published_instances_have_their_cut);
    tcase_add_test(t, broken_files_are_refused_with_a_reason);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
