/* The chain programs against an exhaustive search on small chains, against each other, and against published values. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_classic.h"
#include "offline/solvers/chain/chain_dp.h"
#include "offline/solvers/chain/chain_float.h"
#include "offline/solvers/chain/chain_solve.h"
#include "tests/unit/rand_graph.h"
#include "tests/unit/drawn.h"

#define SEEDS 300

static void draw_chain(struct chain *c, struct rand_state *r, int32_t n)
{
    int32_t l;

    ck_assert_int_eq(chain_alloc(c, n), 0);
    for (l = 0; l <= n; l++) {
        c->a[l] = l < n ? rand_below(r, 4) : 0;
        c->abar[l] = l && l < n ? c->a[l] + rand_below(r, 4) : 0;
        c->delta[l] = l < n ? c->a[l] : 0;
        if (!l)
            continue;
        c->uf[l] = rand_below(r, 10);
        c->ub[l] = rand_below(r, 10);
        c->of[l] = c->on[l] = rand_below(r, 4) ? 0 : rand_below(r, 3);
        c->ob[l] = rand_below(r, 4) ? 0 : rand_below(r, 3);
    }
}

/* ---- exhaustive search: least time over all sequences of steps within the budget, where the input of a stage stays as
 * long as its abar does (as the model has it) ---- */

/* State: which a and abar are held (2 bits a stage), and how many backwards are done. Dijkstra over at most 4^n * (n+1)
 * states; time is bounded by a few hundred, so a bucket queue of plain arrays does. */
#define SEARCH_N 5
#define SEARCH_STATES (1 << (2 * (SEARCH_N + 1)))

static int64_t search_best(const struct chain *c, int64_t budget)
{
    static int64_t dist[SEARCH_STATES][SEARCH_N + 2];
    static char done[SEARCH_STATES][SEARCH_N + 2];
    int32_t n = c->n, states = 1 << (2 * (n + 1));

    memset(done, 0, sizeof(done));
    for (int32_t s = 0; s < states; s++)
        for (int32_t b = 0; b <= n; b++)
            dist[s][b] = INT64_MAX;
    if (c->a[0] + c->delta[n] > budget)
        return -1;
    dist[1][n] = 0; /* a^0 held, no backward done */
    for (;;) {
        int64_t best = INT64_MAX;
        int32_t bs = 0, bb = 0, l;
        int64_t held;

        for (int32_t s = 0; s < states; s++)
            for (int32_t b = 0; b <= n; b++)
                if (!done[s][b] && dist[s][b] < best) {
                    best = dist[s][b];
                    bs = s;
                    bb = b;
                }
        if (best == INT64_MAX)
            return -1;
        if (bb == 0)
            return best;
        done[bs][bb] = 1;
        held = c->delta[bb];
        for (l = 0; l <= n; l++)
            held += (bs >> (2 * l) & 1 ? c->a[l] : 0) + (bs >> (2 * l) & 2 ? c->abar[l] : 0);
#define SEARCH_GO(state, back, cost, peak)                                                                            \
    do {                                                                                                              \
        if ((peak) <= budget && best + (cost) < dist[state][back])                                                    \
            dist[state][back] = best + (cost);                                                                        \
    } while (0)
        for (l = 0; l <= n; l++)
            if ((bs >> (2 * l) & 1) && !(l < n && !(bs >> (2 * l) & 2) && (bs >> (2 * (l + 1)) & 2)))
                SEARCH_GO(bs & ~(1 << (2 * l)), bb, 0, held); /* drop */
        for (l = 1; l <= n; l++) {
            int in = bs >> (2 * (l - 1)) & 3, here = bs >> (2 * l) & 3;

            if (!in)
                continue;
            if (!(here & 1))
                SEARCH_GO(bs | 1 << (2 * l), bb, c->uf[l], held + c->a[l] + c->on[l]);
            if (!(here & 2))
                SEARCH_GO(bs | 2 << (2 * l), bb, c->uf[l], held + c->abar[l] + c->of[l]);
            if (l == bb && (here & 2)) {
                int64_t after = held - c->delta[l] - c->abar[l] - (here & 1 ? c->a[l] : 0) + c->delta[l - 1];
                int64_t peak = held + c->delta[l - 1] + c->ob[l];

                SEARCH_GO(bs & ~(3 << (2 * l)), l - 1, c->ub[l], peak > after ? peak : after);
            }
        }
    }
}

START_TEST(programs_against_search)
{
    int seed, tried = 0, feasible = 0, equal_float = 0, persistent_worse = 0;

    for (seed = 1; seed <= SEEDS; seed++) {
        if (!drawn((uint64_t)seed, 1, 5))
            continue;
        tried++;
        struct rand_state r = {(uint64_t)seed * 7919 + 13};
        struct chain c;
        struct chain_dp *dp = NULL;
        struct chain_float *fl = NULL;
        int64_t full, m;

        draw_chain(&c, &r, 2 + rand_below(&r, SEARCH_N - 1));
        full = chain_store_all_peak(&c);
        m = full - rand_below(&r, (int)(full / 3 + 1));
        ck_assert_int_eq(chain_dp_solve(&c, m, &dp), 0);
        ck_assert_int_eq(chain_float_solve(&c, m, 1 << 26, &fl), 0);
        {
            int64_t want = search_best(&c, m), p = chain_dp_time(dp, m), f = chain_float_time(fl, m);
            struct chain_schedule s = {0};
            struct chain_result res;

            if (p >= 0) {
                ck_assert_int_eq(chain_dp_schedule(dp, m, &s), 0);
                ck_assert_msg(!chain_replay(&c, &s, &res), "seed %d: persistent schedule fails at step %zu", seed, res.bad);
                ck_assert_int_eq(res.time, p);
                ck_assert_msg(res.peak <= m, "seed %d: peak %lld of %lld", seed, (long long)res.peak, (long long)m);
                ck_assert_msg(f >= 0 && f <= p, "seed %d: floating %lld, persistent %lld", seed, (long long)f, (long long)p);
                chain_schedule_free(&s);
            }
            if (f >= 0) {
                ck_assert_int_eq(chain_float_schedule(fl, m, &s), 0);
                ck_assert_msg(!chain_replay(&c, &s, &res), "seed %d: floating schedule fails at step %zu", seed, res.bad);
                ck_assert_int_eq(res.time, f);
                ck_assert_msg(res.peak <= m, "seed %d: floating peak", seed);
                ck_assert_msg(want >= 0 && want <= f, "seed %d: search %lld, floating %lld", seed, (long long)want,
                              (long long)f);
                chain_schedule_free(&s);
                feasible++;
                equal_float += want == f;
                persistent_worse += p < 0 || p > f;
            }
        }
        chain_dp_free(dp);
        chain_float_free(fl);
        chain_free(&c);
    }
    /* 175 of all 300 are; of the sixty that a commit draws fewer than half may be */
    ck_assert_int_gt(feasible, tried / (drawn_all() ? 2 : 3));
    /* On chains this short the floating program finds the optimum of the model, every time. */
    ck_assert_int_eq(equal_float, feasible);
    printf("%d feasible: floating is the optimum in %d, persistent is not in %d\n", feasible, equal_float, persistent_worse);
}
END_TEST

START_TEST(more_memory_never_costs_time)
{
    int seed;

    for (seed = 1; seed <= 60; seed++) {
        struct rand_state r = {(uint64_t)seed * 104729 + 7};
        struct chain c;
        struct chain_dp *dp = NULL;
        int64_t full, m, last = -1;

        draw_chain(&c, &r, 3 + rand_below(&r, 25));
        full = chain_store_all_peak(&c);
        ck_assert_int_eq(chain_dp_solve(&c, full + 3, &dp), 0);
        ck_assert_int_eq(chain_dp_time(dp, full), chain_ideal_time(&c));
        for (m = 0; m <= full + 3; m++) {
            int64_t t = chain_dp_time(dp, m);
            struct chain_schedule s = {0};
            struct chain_result res;

            ck_assert(last < 0 || (t >= 0 && t <= last));
            last = t;
            if (t < 0)
                continue;
            ck_assert_int_eq(chain_dp_schedule(dp, m, &s), 0);
            ck_assert_int_eq(chain_replay(&c, &s, &res), 0);
            ck_assert_int_eq(res.time, t);
            ck_assert_int_le(res.peak, m);
            chain_schedule_free(&s);
        }
        chain_dp_free(dp);
        chain_free(&c);
    }
}
END_TEST

/* Unit stages, s = k + 1 stored inputs: with r the least number for which C(s + r, s) >= n, reversing n stages takes
 * r n - C(s + r, s + 1) forwards besides the one that feeds each backward (Griewank and Walther 2000, Proposition 1). */
START_TEST(revolve_is_binomial)
{
    int32_t n, k;

    for (n = 2; n <= 40; n++)
        for (k = 0; k <= 6; k++) {
            struct chain c;
            struct chain_schedule s = {0};
            struct chain_result res;
            int64_t reach = 1, below = 1, r = 0, q;
            int32_t l;

            ck_assert_int_eq(chain_alloc(&c, n), 0);
            for (l = 1; l <= n; l++)
                c.uf[l] = 1;
            ck_assert_int_eq(chain_revolve(&c, k, &s), 0);
            ck_assert_int_eq(chain_replay(&c, &s, &res), 0);
            while (reach < n) {
                r++;
                reach = reach * (k + 1 + r) / r;
            }
            for (q = 1; q <= k + 2; q++)
                below = below * (r - 1 + q) / q;
            /* res.time counts one forward for each leaf as well; the formula counts the moves before it. */
            ck_assert_msg(res.time - n == r * n - below, "n %d k %d: %lld forwards, formula %lld", n, k, (long long)(res.time - n),
                          (long long)(r * n - below));
            chain_schedule_free(&s);
            chain_free(&c);
        }
}
END_TEST

START_TEST(chen_sqrt_stores_about_two_roots)
{
    struct chain c;
    struct chain_schedule s = {0};
    struct chain_result res;
    int32_t l;

    ck_assert_int_eq(chain_alloc(&c, 100), 0);
    for (l = 1; l <= 100; l++)
        c.a[l] = c.abar[l] = c.uf[l] = 1;
    ck_assert_int_eq(chain_chen_sqrt(&c, &s), 0);
    ck_assert_int_eq(chain_replay(&c, &s, &res), 0);
    ck_assert_int_eq(res.time, 190);
    ck_assert_int_le(res.peak, 21);
    chain_schedule_free(&s);
    chain_free(&c);
}
END_TEST

START_TEST(replay_refuses_nonsense)
{
    struct chain c;
    struct chain_schedule s = {0};
    struct chain_result r;

    ck_assert_int_eq(chain_alloc(&c, 2), 0);
    chain_push(&s, CHAIN_FCK, 2);
    ck_assert_int_eq(chain_replay(&c, &s, &r), -EINVAL);
    ck_assert_int_eq(r.bad, 0);
    s.n = 0;
    chain_push(&s, CHAIN_FALL, 1);
    chain_push(&s, CHAIN_BWD, 1);
    ck_assert_int_eq(chain_replay(&c, &s, &r), -EINVAL); /* stage 2's backward comes first */
    ck_assert_int_eq(r.bad, 1);
    s.n = 1;
    ck_assert_int_eq(chain_replay(&c, &s, &r), -EINVAL); /* does not finish */
    ck_assert_int_eq(r.bad, 1);
    s.n = 0;
    chain_push(&s, CHAIN_DROP, 1);
    ck_assert_int_eq(chain_replay(&c, &s, &r), -EINVAL);
    chain_schedule_free(&s);
    chain_free(&c);
}
END_TEST

/* Published instances: exact values at the file's own number of slots, and a default no worse than 0.5 % over a fine one. */
static void anchor(const char *name, int64_t persistent, int64_t floating)
{
    const char *shared = getenv("REMAT_SHARED");
    char path[4096], err[512];
    struct json_doc doc;
    struct chain c;
    struct chain_answer a, fine;
    int64_t budget, slots;
    int unit;

    if (!shared || !*shared)
        return;
    snprintf(path, sizeof(path), "%s/anchors/rotor/%s.json", shared, name);
    ck_assert_msg(!json_doc_load(path, &doc, err, sizeof(err)), "%s", err);
    ck_assert_msg(!chain_read(&doc, &c, &budget, &slots, &unit, err, sizeof(err)), "%s", err);
    json_doc_close(&doc);
    ck_assert_int_eq(chain_solve(&c, budget, CHAIN_PERSISTENT, slots, &a), 0);
    ck_assert_int_eq(a.replayed.time, persistent);
    ck_assert_int_le(a.replayed.peak, budget);
    chain_schedule_free(&a.schedule);
    if (floating) {
        ck_assert_int_eq(chain_solve(&c, budget, CHAIN_FLOATING, slots, &a), 0);
        ck_assert_int_eq(a.replayed.time, floating);
        ck_assert_int_le(a.replayed.peak, budget);
        chain_schedule_free(&a.schedule);
    }
    ck_assert_int_eq(chain_solve(&c, budget, CHAIN_PERSISTENT, 0, &a), 0);
    ck_assert_int_le(a.replayed.peak, budget);
    if (!unit && c.n <= 101) {
        ck_assert_int_eq(chain_solve(&c, budget, CHAIN_PERSISTENT, 4000, &fine), 0);
        ck_assert_msg((double)a.replayed.time <= 1.005 * (double)fine.replayed.time, "%s: %lld, with 4000 slots %lld", name,
                      (long long)a.replayed.time, (long long)fine.replayed.time);
        chain_schedule_free(&fine.schedule);
    }
    chain_schedule_free(&a.schedule);
    chain_free(&c);
}

START_TEST(published_instances)
{
    static const struct {
        const char *name;
        int64_t persistent, floating; /* 0: not known */
    } long_ones[] = {{"chain_L50_s1", 206981178, 0},  {"chain_L50_s2", 214611850, 0},  {"chain_L100_s1", 392240553, 0},
                     {"chain_L100_s2", 439939748, 0}, {"chain_L200_s1", 838282471, 0}, {"chain_L339_s1", 1379036012, 0}};
    anchor("paper_toy", 4742, 0);
    anchor("paper_fig4_n6", 16, 14);
    anchor("paper_fig4_n8", 22, 18);
    anchor("chain_L8_s1", 39627156, 0);
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++)
        if (drawn(i, 1, 6))
            anchor(long_ones[i].name, long_ones[i].persistent, long_ones[i].floating);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("chain");
    TCase *t = tcase_create("chain");
    SRunner *r;
    int failed;

    tcase_set_timeout(t, 250);
    tcase_add_test(t, programs_against_search);
    tcase_add_test(t, more_memory_never_costs_time);
    tcase_add_test(t, revolve_is_binomial);
    tcase_add_test(t, chen_sqrt_stores_about_two_roots);
    tcase_add_test(t, replay_refuses_nonsense);
    tcase_add_test(t, published_instances);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
