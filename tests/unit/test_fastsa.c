/* The annealer of checkmate graphs: the row against a rebuild from its slots, moves that are taken back, orders that keep
 * their freedom, and answers against the exact search. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/anneal/fastsa.h"
#include "offline/solvers/anneal/fastsa_first.h"
#include "offline/solvers/anneal/fsa_move.h"
#include "offline/solvers/anneal/fsa_profile.h"
#include "offline/solvers/checkmate/checkmate_pebble.h"
#include "offline/solvers/checkmate/checkmate_search.h"
#include "offline/solvers/solver.h"

static uint64_t rng = 1;

static int draw(int n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (int)(((rng >> 33) * (uint64_t)n) >> 31);
}

/* A random instance; its budget lies between what one op needs and the given order's peak. */
static void instance(int n, int share_percent, int64_t scale, struct checkmate *c)
{
    char text[65536], err[256];
    struct json_doc doc;
    int at = snprintf(text, sizeof text, "{\"n\":%d,\"edges\":[", n), first = 1;
    for (int v = 1; v < n; v++)
        for (int u = v > 8 ? v - 8 : 0, sure = u + draw(v - u); u < v; u++)
            if (u == sure || v == n - 1 || draw(6) == 0) {
                at += snprintf(text + at, sizeof text - (size_t)at, "%s[%d,%d]", first ? "" : ",", u, v);
                first = 0;
            }
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"cost\":[");
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? "," : "", (long long)((1 + draw(9)) * scale));
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"mem\":[");
    for (int i = 0; i < n; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", i ? "," : "", 1 + draw(9));
    at += snprintf(text + at, sizeof text - (size_t)at, "],\"constant_overhead\":%d,\"budget\":1}", draw(3));
    ck_assert_int_eq(json_doc_parse("random", text, (size_t)at, &doc, err, sizeof err), 0);
    ck_assert_msg(!checkmate_read(&doc, c, err, sizeof err), "%s", err);
    json_doc_close(&doc);
    int32_t *given = malloc((size_t)n * sizeof *given);
    int64_t cost, peak, least = 0;
    for (int i = 0; i < n; i++) {
        int64_t need = c->fixed + c->mem[i];
        given[i] = i;
        for (int q = c->dep_at[i]; q < c->dep_at[i + 1]; q++)
            need += c->mem[c->dep[q]];
        least = need > least ? need : least;
    }
    ck_assert_int_eq(checkmate_sequence(c, given, n, &cost, &peak), 0);
    c->budget = least + (peak - least) * share_percent / 100;
    free(given);
}

static void load_given(struct fsa_row *r, int n)
{
    int32_t *given = malloc((size_t)n * sizeof *given);
    for (int i = 0; i < n; i++)
        given[i] = i;
    ck_assert_int_eq(fsa_load(r, given, n), 0);
    free(given);
}

START_TEST(profile_steps_are_exact)
{
    for (int n = 0; n < 40; n++) {
        double use[64], want = 0, top = 0;
        const double budget = 50, x = draw(2) ? 7 : -7;
        for (int i = 0; i < n; i++) {
            use[i] = 7 + draw(90);
            want += fmax(0, use[i] + x - budget) - fmax(0, use[i] - budget);
            top = fmax(top, use[i] + x);
        }
        use[n] = 1e9;
        ck_assert(fsa_profile_add(use, n, x, budget) == want);
        ck_assert(fsa_profile_max(use, n) == top);
        ck_assert(use[n] == 1e9);
    }
}
END_TEST

/* Counted from the order alone: a computation that is not its node's first, and after it a node of no larger number. */
static int32_t bends_of(const int32_t *order, int32_t n)
{
    int32_t bends = 0;
    for (int32_t k = 0; k + 1 < n; k++) {
        int again = 0;
        for (int32_t i = 0; i < k; i++)
            again |= order[i] == order[k];
        bends += again && order[k + 1] <= order[k];
    }
    return bends;
}

START_TEST(row_follows_every_move_and_back)
{
    int made[3] = {0}, bent = 0;
    for (int freedom = FSA_FREE; freedom <= FSA_STAGES; freedom++)
        for (int round = 0; round < 30; round++) {
            struct checkmate c;
            instance(6 + draw(50), 60, 1, &c);
            struct fsa_row *r = fsa_new(&c, 3 * c.n + 64);
            int32_t *before = malloc(((size_t)r->cap_items + 1) * sizeof *before), *after = malloc(((size_t)r->cap_items + 1) * sizeof *after);
            struct fsa_mover m = {.row = r, .freedom = (enum fsa_freedom)freedom, .rng = (uint64_t)round + 1, .sight = round % 2 ? 0.5 : -1};
            load_given(r, c.n);
            for (int k = 0; k < 400; k++) {
                const int32_t n = fsa_save(r, before);
                if (!fsa_mutate(&m)) {
                    ck_assert(fsa_save(r, after) == n && !memcmp(before, after, (size_t)n * sizeof *before));
                    continue;
                }
                made[freedom]++;
                if (k % 7 == 0)
                    ck_assert_int_eq(fsa_check(r), 0);
                if (draw(2)) {
                    fsa_undo(&m);
                    ck_assert(fsa_save(r, after) == n && !memcmp(before, after, (size_t)n * sizeof *before));
                    ck_assert_int_eq(fsa_check(r), 0);
                }
                const int32_t len = fsa_save(r, after);
                int64_t cost, peak;
                ck_assert_int_eq(checkmate_sequence(&c, after, len, &cost, &peak), 0);
                ck_assert(r->cost == (double)cost && fsa_peak(r) + (double)c.fixed == (double)peak);
                if (freedom == FSA_STAGES)
                    ck_assert(checkmate_staged(&c, after, len));
                if (freedom != FSA_FREE) {
                    ck_assert_int_eq(r->bends, bends_of(after, len));
                    ck_assert(checkmate_staged(&c, after, len) == !r->bends);
                    bent += r->bends > 0;
                }
                if (k % 50 == 49)
                    ck_assert_int_eq(fsa_spread(r), 0);
            }
            free(before);
            free(after);
            fsa_free(r);
            checkmate_free(&c);
        }
    ck_assert_int_gt(bent, 100);
    ck_assert_msg(made[FSA_FREE] > 1000 && made[FSA_FIRSTS] > 1000 && made[FSA_STAGES] > 1000, "%d %d %d moves", made[0], made[1], made[2]);
}
END_TEST

START_TEST(sequence_counts_as_stages_do)
{
    for (int round = 0; round < 200; round++) {
        struct checkmate c;
        struct checkmate_plan p;
        int64_t cost, peak, cost2, peak2;
        instance(3 + draw(20), 50, 1, &c);
        ck_assert_int_eq(checkmate_plan_new(&c, &p), 0);
        for (int t = 0; t < c.n; t++)
            for (int i = 0; i < t; i++)
                p.S[t * c.n + i] = draw(3) > 0;
        checkmate_complete(&c, &p);
        checkmate_prune(&c, &p);
        ck_assert_int_eq(checkmate_replay(&c, &p, &cost, &peak), 0);
        int32_t *order = malloc((size_t)c.n * (size_t)(c.n + 1) / 2 * sizeof *order);
        const int32_t n = checkmate_order(&c, &p, order);
        ck_assert(checkmate_staged(&c, order, n));
        ck_assert_int_eq(checkmate_sequence(&c, order, n, &cost2, &peak2), 0);
        ck_assert_int_eq(cost, cost2);
        ck_assert_int_eq(peak, peak2);
        order[0] = 1; /* nothing makes 0 any more, unless it is replayed before its reader */
        ck_assert_int_eq(checkmate_sequence(&c, order, 1, &cost2, &peak2), -EINVAL);
        ck_assert(!checkmate_staged(&c, order, n));
        free(order);
        checkmate_plan_free(&p);
        checkmate_free(&c);
    }
}
END_TEST

START_TEST(answers_equal_the_exact_search)
{
    int equal = 0, both = 0, free_cheaper = 0;
    for (int round = 0; round < 60; round++) {
        struct checkmate c;
        struct checkmate_plan p;
        struct checkmate_answer exact = {0};
        struct fastsa_answer fixed, any, again;
        const struct fastsa_opts o = {.seed = 3, .deadline_s = solver_now_s() + 60, .moves = 60000};
        struct fastsa_opts free_o = o;
        instance(4 + draw(8), 10 + draw(70), 1 + (round % 2) * INT64_C(1000000000000), &c);
        ck_assert_int_eq(checkmate_plan_new(&c, &p), 0);
        ck_assert_int_eq(checkmate_search(&c, 60, &p, &exact), 0);
        ck_assert_int_eq(fastsa_solve(&c, &o, &fixed), 0);
        ck_assert_int_eq(fastsa_solve(&c, &o, &again), 0);
        ck_assert(fixed.found == again.found && fixed.n == again.n && fixed.moves == again.moves);
        ck_assert(!fixed.found || !memcmp(fixed.order, again.order, (size_t)fixed.n * sizeof *fixed.order));
        if (fixed.found && fixed.staged) {
            ck_assert_msg(exact.found && fixed.cost >= exact.cost, "round %d: %lld below the optimum", round, (long long)fixed.cost);
            ck_assert(fixed.peak <= c.budget && fixed.in_order);
            both++;
            equal += fixed.cost == exact.cost;
        }
        free_o.reorder = 1;
        ck_assert_int_eq(fastsa_solve(&c, &free_o, &any), 0);
        free_cheaper += any.found && (!fixed.found || any.cost < fixed.cost);
        fastsa_answer_free(&fixed);
        fastsa_answer_free(&again);
        fastsa_answer_free(&any);
        checkmate_plan_free(&p);
        checkmate_free(&c);
    }
    ck_assert_msg(both > 25 && equal * 20 >= both * 19 && free_cheaper > 0, "%d of %d equal the optimum, %d cheaper in another order",
                  equal, both, free_cheaper);
}
END_TEST

START_TEST(given_order_out_of_any)
{
    int made = 0;
    for (int round = 0; round < 40; round++) {
        struct checkmate c;
        struct fastsa_answer any;
        const struct fastsa_opts o = {.seed = 1, .reorder = 1, .deadline_s = solver_now_s() + 60, .moves = 30000};
        instance(10 + draw(40), 30, 1, &c);
        ck_assert_int_eq(fastsa_solve(&c, &o, &any), 0);
        if (any.found) {
            const int32_t cap = 24 * c.n + 64;
            int32_t *order = malloc((size_t)cap * sizeof *order), n = 0;
            int64_t cost, peak;
            ck_assert_int_eq(fastsa_first(&c, any.order, any.n, order, cap, &n), 0);
            ck_assert_int_eq(checkmate_sequence(&c, order, n, &cost, &peak), 0);
            ck_assert_int_le(peak, c.budget);
            for (int32_t k = 0, next = 0; k < n; k++) {
                ck_assert_int_le(order[k], next);
                next += order[k] == next;
            }
            made += n > c.n;
            ck_assert_int_eq(fastsa_first(&c, any.order, any.n, order, c.n / 2, &n), -ENOSPC);
            ck_assert_int_eq(fastsa_first(&c, any.order, 1, order, cap, &n), -EINVAL);
            free(order);
        }
        fastsa_answer_free(&any);
        checkmate_free(&c);
    }
    ck_assert_msg(made > 10, "%d", made);
}
END_TEST

/* Can every node be computed within the budget: all sets of results, forwards. */
static int oracle_computable(const struct checkmate *c)
{
    unsigned char *seen = calloc((size_t)1 << c->n, 1);
    int32_t *queue = malloc(((size_t)1 << c->n) * sizeof *queue), head = 0, tail = 0, all = 0;
    ck_assert(seen && queue);
    seen[0] = 1;
    queue[tail++] = 0;
    while (head < tail) {
        const int32_t set = queue[head++];
        int64_t bytes = c->fixed;
        for (int i = 0; i < c->n; i++)
            bytes += set >> i & 1 ? c->mem[i] : 0;
        all |= set;
        for (int i = 0; i < c->n; i++) {
            int32_t next = set ^ (1 << i);
            int ready = 1;
            for (int q = c->dep_at[i]; q < c->dep_at[i + 1]; q++)
                ready &= set >> c->dep[q] & 1;
            if (seen[next] || (!(set >> i & 1) && (!ready || bytes + c->mem[i] > c->budget)))
                continue;
            seen[next] = 1;
            queue[tail++] = next;
        }
    }
    free(seen);
    free(queue);
    return all == (1 << c->n) - 1;
}

START_TEST(hopeless_is_exact_where_everything_can_be_looked_at)
{
    int none = 0, some = 0, beyond_one_op = 0;
    for (int round = 0; round < 2000; round++) {
        struct checkmate c;
        int node = -1;
        instance(6 + draw(7), 0, 1, &c);
        const int64_t one_op = c.budget;
        c.budget += draw(4) - 1;
        const int can = oracle_computable(&c), hopeless = checkmate_hopeless_node(&c, 5000, &node), quick = checkmate_hopeless_node(&c, 8, &node);
        ck_assert_msg(can == !hopeless, "round %d: %d %d", round, can, hopeless);
        ck_assert(!quick || hopeless);
        none += !can;
        some += can;
        beyond_one_op += !can && c.budget >= one_op;
        checkmate_free(&c);
    }
    ck_assert_msg(none > 40 && some > 40 && beyond_one_op > 2, "%d %d %d", none, some, beyond_one_op);
}
END_TEST

START_TEST(costs_as_large_as_flops_and_no_larger)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {
        {"{\"n\":2,\"budget\":9,\"edges\":[[0,1]],\"cost\":[2251799813685248,1],\"mem\":[1,1]}", "sum of all past 2^51"},
        {"{\"n\":2,\"budget\":9,\"edges\":[[0,1]],\"cost\":[2251799813685249,0],\"mem\":[1,1]}", "at most 2^51"},
        {"{\"n\":2,\"budget\":9,\"edges\":[[0,1]],\"cost\":[1,1],\"mem\":[2251799813685248,1]}", "sum of all past 2^51"},
    };
    static const char good[] = "{\"n\":2,\"budget\":9,\"edges\":[[0,1]],\"cost\":[2251799813685247,1],\"mem\":[1,1]}";
    struct json_doc doc;
    struct checkmate c;
    char err[256];
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        ck_assert_int_eq(json_doc_parse("bad", bad[k].text, strlen(bad[k].text), &doc, err, sizeof err), 0);
        ck_assert_int_lt(checkmate_read(&doc, &c, err, sizeof err), 0);
        ck_assert_msg(strstr(err, bad[k].reason) != NULL, "%s", err);
        json_doc_close(&doc);
    }
    ck_assert_int_eq(json_doc_parse("good", good, strlen(good), &doc, err, sizeof err), 0);
    ck_assert_msg(!checkmate_read(&doc, &c, err, sizeof err), "%s", err);
    int32_t order[4100];
    int64_t cost, peak;
    for (int k = 0; k < 4100; k++)
        order[k] = k == 4099;
    ck_assert_int_eq(checkmate_sequence(&c, order, 4100, &cost, &peak), -EOVERFLOW);
    ck_assert_int_eq(checkmate_sequence(&c, order + 4098, 2, &cost, &peak), 0);
    ck_assert(cost == INT64_C(1) << 51 && peak == 2);
    checkmate_free(&c);
    json_doc_close(&doc);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fastsa");
    TCase *t = tcase_create("fastsa");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, profile_steps_are_exact);
    tcase_add_test(t, row_follows_every_move_and_back);
    tcase_add_test(t, sequence_counts_as_stages_do);
    tcase_add_test(t, answers_equal_the_exact_search);
    tcase_add_test(t, given_order_out_of_any);
    tcase_add_test(t, hopeless_is_exact_where_everything_can_be_looked_at);
    tcase_add_test(t, costs_as_large_as_flops_and_no_larger);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
