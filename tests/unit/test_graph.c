/* Values, lifetimes, floors, and every fault that graph_seal finds. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "offline/model/graph.h"
#include "offline/model/sha256.h"
#include "tests/unit/rand_graph.h"

/* op 0: x -> a        (a = f(x, w))
 * op 1: a in place    (a is changed, w is read)
 * op 2: a -> y, side s
 * op 3: y, a -> w in place */
static struct graph_build *small(void)
{
    struct graph_build *b = graph_build_new();

    graph_build_buf(b, 8, -1, -1, GRAPH_PARAM);     /* 0: w */
    graph_build_buf(b, 16, -1, 1, GRAPH_INPUT);     /* 1: x, freed before op 1 */
    graph_build_buf(b, 100, 0, 4, GRAPH_ACTIVATION); /* 2: a */
    graph_build_buf(b, 50, 2, -1, GRAPH_ACTIVATION); /* 3: y */
    graph_build_buf(b, 4, -1, -1, GRAPH_STATE);     /* 4: s */
    graph_build_buf(b, 999, 1, 1, GRAPH_ACTIVATION); /* 5: never touched */
    graph_build_op(b, "f", GRAPH_FWD, 10);
    graph_build_operand(b, 0, GRAPH_READ, 1);
    graph_build_operand(b, 0, GRAPH_WRITE, 2);
    graph_build_operand(b, 0, GRAPH_READ, 0);
    graph_build_op(b, "inplace", GRAPH_FWD, 20);
    graph_build_operand(b, 1, GRAPH_RMW, 2);
    graph_build_op(b, "g", GRAPH_BWD, 30);
    graph_build_operand(b, 2, GRAPH_READ, 2);
    graph_build_operand(b, 2, GRAPH_WRITE, 3);
    graph_build_operand(b, 2, GRAPH_SIDE, 4);
    graph_build_op(b, "step", GRAPH_OPT, 40);
    graph_build_operand(b, 3, GRAPH_READ, 3);
    graph_build_operand(b, 3, GRAPH_READ, 2);
    graph_build_operand(b, 3, GRAPH_RMW, 0);
    return b;
}

START_TEST(values_and_lifetimes)
{
    struct graph_build *b = small();
    struct graph_fault f;
    struct graph *g = NULL;
    const struct graph_val *v;

    ck_assert_int_eq(graph_seal(b, &g, &f), 0);
    graph_build_free(b);
    ck_assert_int_eq(g->n_vals, 2 + 1 + 3 + 2 + 2 + 1);
    ck_assert_int_eq(g->total_ns, 100);
    /* operands are laid out reads | rmw | side | writes, in the order given within each */
    ck_assert_int_eq(graph_operands(g, 0)[0].buf, 1);
    ck_assert_int_eq(graph_operands(g, 0)[1].buf, 0);
    ck_assert_int_eq(graph_operands(g, 0)[2].role, GRAPH_WRITE);
    v = &g->vals[g->bufs[0].first_val]; /* w as it was */
    ck_assert_int_eq(v->producer, -1);
    ck_assert_int_eq(v->n_uses, 2);
    ck_assert_int_eq(v->over, 3);
    ck_assert(graph_val_fixed(v));
    v = &g->vals[g->bufs[0].first_val + 1]; /* w after the step: made in place from what nothing rebuilds */
    ck_assert(graph_val_fixed(v));
    ck_assert_int_eq(v->last_use, 4); /* survives */
    v = &g->vals[g->bufs[2].first_val + 1]; /* a, first version */
    ck_assert_int_eq(v->producer, 0);
    ck_assert_int_eq(v->over, 1);
    ck_assert_int_eq(v->rebuild_until, 3); /* w changes at op 3 */
    v = &g->vals[g->bufs[2].first_val + 2];
    ck_assert_int_eq(v->last_use, 3);
    ck_assert_int_eq(v->gone, 4);
    ck_assert_int_eq(v->rebuild_until, 3);
    v = &g->vals[g->bufs[4].first_val + 1]; /* side buffers are never rebuilt */
    ck_assert(graph_val_fixed(v));
    ck_assert_int_eq(g->bufs[3].survives, 1);
    ck_assert_int_eq(g->bufs[5].survives, 0);
    ck_assert_int_eq(g->live_bytes[0], 8 + 16 + 100 + 4);
    ck_assert_int_eq(g->live_bytes[1], 8 + 100 + 4);
    ck_assert_int_eq(g->baseline_peak_bytes, 8 + 100 + 4 + 50);
    ck_assert_int_eq(g->baseline_peak_op, 2);
    /* op 3 reads y and a and changes w while s waits */
    ck_assert_int_eq(g->floor_bytes, 8 + 100 + 4 + 50);
    ck_assert_int_eq(g->floor_offload_bytes, 8 + 100 + 50);
    ck_assert_int_eq(g->floor_offload_op, 3);
    graph_free(g);
}
END_TEST

/* Each row breaks the small graph in one way. */
static void mend(struct graph_build *b, int what)
{
    switch (what) {
    case 0: graph_build_operand(b, 1, GRAPH_READ, 77); break;
    case 1: graph_build_operand(b, 1, GRAPH_READ, -1); break;
    case 2: graph_build_operand(b, 2, GRAPH_SIDE, 2); break;  /* twice in one op */
    case 3: graph_build_operand(b, 1, GRAPH_READ, 3); break;  /* not born yet */
    case 4: graph_build_operand(b, 1, GRAPH_READ, 1); break;  /* freed */
    case 5: graph_build_buf(b, -1, -1, -1, GRAPH_STATE); break;
    case 6: graph_build_buf(b, 1, 99, -1, GRAPH_STATE); break;
    case 7: graph_build_buf(b, 1, -2, -1, GRAPH_STATE); break;
    case 8: graph_build_buf(b, 1, 0, 99, GRAPH_STATE); break;
    case 9: graph_build_buf(b, 1, 3, 2, GRAPH_STATE); break;
    case 10: graph_build_op_at(b, 1)->ns = -5; break;
    case 11: /* born at 1, first written at 2 */
        graph_build_operand(b, 2, GRAPH_WRITE, graph_build_buf(b, 1, 1, -1, GRAPH_STATE));
        break;
    case 12: /* read where it is born */
        graph_build_operand(b, 2, GRAPH_READ, graph_build_buf(b, 1, 2, -1, GRAPH_STATE));
        break;
    case 13: graph_build_buf(b, INT64_MAX, -1, -1, GRAPH_STATE); break;
    default: graph_build_op_at(b, 1)->ns = INT64_MAX; break;
    }
}

START_TEST(faults_name_op_and_buffer)
{
    static const struct {
        int op, buf;
        const char *text;
    } want[] = {{1, 77, "names buffer 77"},  {1, -1, "names buffer -1"},      {2, 2, "twice"},
                {1, 3, "cycle"},             {1, 1, "frees before op 1"},     {-1, 6, "negative size"},
                {-1, 6, "born at op 99"},    {-1, 6, "born at op -2"},        {-1, 6, "dies before op 99"},
                {-1, 6, "dies before op 2"}, {1, -1, "negative time"},        {-1, 6, "first written by op 2"},
                {2, 6, "no op before it"},   {-1, 6, "add up"},               {1, -1, "add up"}};
    size_t i;

    for (i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct graph_build *b = small();
        struct graph_fault f;
        struct graph *g = NULL;

        mend(b, (int)i);
        ck_assert_msg(graph_seal(b, &g, &f) == -EINVAL, "case %zu was accepted", i);
        ck_assert_ptr_null(g);
        ck_assert_msg(f.op == want[i].op && f.buf == want[i].buf, "case %zu: op %d buffer %d: %s", i, f.op, f.buf, f.text);
        ck_assert_msg(strstr(f.text, want[i].text), "case %zu: %s", i, f.text);
        graph_build_free(b);
    }
}
END_TEST

START_TEST(an_empty_graph_is_a_graph)
{
    struct graph_build *b = graph_build_new();
    struct graph_fault f;
    struct graph *g = NULL;

    ck_assert_int_eq(graph_seal(b, &g, &f), 0);
    ck_assert_int_eq(g->n_ops, 0);
    ck_assert_int_eq(g->floor_bytes, 0);
    graph_build_free(b);
    graph_free(g);
}
END_TEST

START_TEST(random_graphs_hold_together)
{
    int seed;

    for (seed = 1; seed <= 2000; seed++) {
        struct graph *g = rand_graph((uint64_t)seed, 1 + seed % 50);
        int32_t v, i, k, deaths = 0;

        ck_assert_ptr_nonnull(g);
        for (v = 0; v < g->n_vals; v++) {
            const struct graph_val *x = &g->vals[v];

            ck_assert_int_eq(g->bufs[x->buf].first_val + x->version, v);
            for (k = 0; k < x->n_uses; k++) {
                ck_assert_int_gt(g->uses[x->first_use + k], k ? g->uses[x->first_use + k - 1] : x->producer);
                ck_assert_int_le(g->uses[x->first_use + k], x->over);
            }
        }
        for (i = 0; i < g->n_ops; i++) {
            ck_assert_int_le(g->ops[i].work_bytes, g->live_bytes[i]);
            ck_assert_int_le(g->live_bytes[i], g->baseline_peak_bytes);
        }
        for (i = 0; i <= g->n_ops; i++)
            for (k = g->dies_at[i]; k < g->dies_at[i + 1]; k++, deaths++)
                ck_assert_int_eq(g->bufs[g->die_list[k]].dies, i);
        for (i = 0; i < g->n_bufs; i++)
            deaths -= g->bufs[i].dies >= 0;
        ck_assert_int_eq(deaths, 0);
        ck_assert_int_le(g->floor_bytes, g->baseline_peak_bytes);
        ck_assert_int_le(g->floor_offload_bytes, g->floor_bytes);
        graph_free(g);
    }
}
END_TEST

START_TEST(sha256_of_known_texts)
{
    static const char *const a56 = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char hex[65];

    sha256_hex("", 0, hex);
    ck_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256_hex("abc", 3, hex);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256_hex(a56, strlen(a56), hex);
    ck_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("graph");
    TCase *t = tcase_create("graph");
    SRunner *r;
    int failed;

    tcase_set_timeout(t, 120);
    tcase_add_test(t, values_and_lifetimes);
    tcase_add_test(t, faults_name_op_and_buffer);
    tcase_add_test(t, an_empty_graph_is_a_graph);
    tcase_add_test(t, random_graphs_hold_together);
    tcase_add_test(t, sha256_of_known_texts);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
