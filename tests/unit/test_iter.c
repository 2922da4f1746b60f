/* The iteration finder: what repeats with the same weights and new activations is an iteration; layers are not. */
#include "tracer/iter.h"

#include <check.h>
#include <stdlib.h>

enum { WEIGHTS = 1000 };
static uint64_t next_serial, n_fed;
static uint64_t base; /* bytes held when a step begins */
static uint64_t size = 1; /* of a batch: everything that a step holds is so many times larger */
static struct iter *it;

static void setup(void)
{
    it = iter_new();
    iter_reset(it, 0);
    next_serial = 100000;
    n_fed = 0;
    base = 1000;
    size = 1;
}
static void teardown(void) { iter_free(it); }

/* One op reading weight `w` (0: none) and writing something new. */
static int64_t op(uint64_t sig, uint64_t w, uint64_t live)
{
    struct iter_operand o[2];
    uint32_t n = 0;
    if (w)
        o[n++] = (struct iter_operand){.serial = w, .birth_op = 0, .offset = 0};
    o[n++] = (struct iter_operand){.serial = ++next_serial, .birth_op = n_fed, .offset = 8};
    n_fed++;
    return iter_feed(it, sig, o, n, live, sig == 5);
}

/* A network of equal layers, each with a weight of its own: 3 ops a layer forward, 2 backward, then one update each. */
static int64_t train_step(int layers, int *at)
{
    int64_t found = 0;
    uint64_t live = base; /* weights, and what the step has made so far */
    int n = 0;
    for (int l = 0; l < layers; l++)
        for (int k = 0; k < 3; k++, n++) {
            int64_t p = op(10 + (uint64_t)k, k ? 0 : WEIGHTS + (uint64_t)l, live += 10 * size);
            if (p > 0 && !found)
                found = p, *at = n;
        }
    for (int l = layers; l-- > 0;)
        for (int k = 0; k < 2; k++, n++) {
            int64_t p = op(20 + (uint64_t)k, k ? 0 : WEIGHTS + (uint64_t)l, (live -= 15 * size) + 50 * size);
            if (p > 0 && !found)
                found = p, *at = n;
        }
    for (int l = 0; l < layers; l++, n++) {
        int64_t p = op(30, WEIGHTS + (uint64_t)l, live + 50 * size); /* gradients are held until the last update */
        if (p > 0 && !found)
            found = p, *at = n;
    }
    return found;
}

START_TEST(finds_the_training_step)
{
    int at = -1, step = 0;
    int64_t p = 0;
    for (; step < 6 && !p; step++)
        p = train_step(8, &at);
    ck_assert_int_eq(p, 8 * 6);
    ck_assert_int_le(step, 3);
}
END_TEST

START_TEST(layers_are_no_iteration)
{
    int at;
    ck_assert_int_eq(train_step(50, &at), 0);
}
END_TEST

START_TEST(boundary_is_where_least_is_held)
{
    int at = -1;
    int64_t p = 0;
    while (!p)
        p = train_step(8, &at);
    /* least is held when the first op of a step is launched; `at` is the op after which the period was certain */
    uint64_t until = iter_until_boundary(it, (uint64_t)p);
    ck_assert_uint_lt(until, (uint64_t)p);
    /* the rest of the step was fed after `at` too: the finder now stands at a step's end */
    ck_assert_uint_eq(until, 0);
    ck_assert_uint_eq(iter_has_come(it, (uint64_t)p), 2);
    ck_assert_uint_eq(iter_has_come(it, (uint64_t)p + 1), 0);
    ck_assert_uint_eq(iter_expected_sig(it, (uint64_t)p, 0), 10);
    ck_assert_uint_eq(iter_expected_sig(it, (uint64_t)p, 1), 11);
}
END_TEST

/* An op of a loop that goes through a batch: the same weight, the same two buffers, `delta` bytes further in. */
static int64_t walking(uint64_t sig, uint64_t delta)
{
    struct iter_operand o[] = {{.serial = WEIGHTS, .offset = 0}, {.serial = WEIGHTS + 1, .delta = delta, .offset = 8},
                               {.serial = WEIGHTS + 2, .delta = 2 * delta, .offset = 16}};
    n_fed++;
    return iter_feed(it, sig, o, 3, 1000, 0);
}

/* A convolution image by image, as PyTorch does it without cuDNN: broken when "iterations" of three ops were learnt within it */
START_TEST(a_loop_through_a_batch_is_no_iteration)
{
    for (uint64_t image = 0; image < 64; image++) {
        ck_assert_int_eq(walking(60, image * 512), 0);
        ck_assert_int_eq(op(61, 0, 1000), 0);
        ck_assert_int_eq(op(62, WEIGHTS + 3, 1000), 0);
    }
}
END_TEST

/* The iteration around such loops is found; and one that takes each batch from further in a buffer that holds them all */
START_TEST(iterations_around_loops)
{
    int64_t p = 0;
    for (int step = 0; step < 4 && !p; step++) {
        p = walking(63, 4096 * (uint64_t)step);
        for (uint64_t image = 0; image < 16; image++) {
            int64_t q = walking(60, image * 512), r = op(61, 0, 1000);
            p = p ? p : q ? q : r;
        }
        for (uint64_t k = 0; k < 5; k++) {
            int64_t q = op(70 + k, WEIGHTS + 10 + k, 1000);
            p = p ? p : q;
        }
    }
    ck_assert_int_eq(p, 1 + 32 + 5);
}
END_TEST

START_TEST(growing_memory_is_no_iteration)
{
    /* the same weight used the same way again and again, while more and more is held: steps of a recurrent network */
    for (int t = 0; t < 300; t++)
        for (int k = 0; k < 5; k++)
            ck_assert_int_eq(op(40 + (uint64_t)k, WEIGHTS, 1000 + 10 * (uint64_t)(5 * t + k)), 0);
}
END_TEST

START_TEST(a_list_that_grows_may)
{
    int at;
    int64_t p = 0;
    for (int step = 0; step < 4 && !p; step++, base++) /* a byte, of the 300 that a step needs */
        p = train_step(30, &at);
    ck_assert_int_eq(p, 30 * 6);
}
END_TEST

START_TEST(a_list_that_grows_fast_may_not)
{
    int at;
    for (int step = 0; step < 6; step++, base += 10)
        ck_assert_int_eq(train_step(30, &at), 0);
}
END_TEST

START_TEST(nor_in_a_short_loop)
{
    /* a recurrent layer: much comes and goes within a step, and a little of it stays */
    for (int t = 0; t < 300; t++)
        for (int k = 0; k < 5; k++)
            ck_assert_int_eq(op(40 + (uint64_t)k, WEIGHTS, (uint64_t)(1000 + 4096 * t + (k == 2 ? 100000000 : 0))), 0);
}
END_TEST

/* Broken when short steps had to hold exactly as much: a small network whose losses are kept had no iteration */
START_TEST(but_by_a_scalar_in_a_short_step)
{
    int64_t p = 0;
    for (int step = 0; step < 4 && !p; step++)
        for (int k = 0; k < 5; k++) {
            int64_t q = op(40 + (uint64_t)k, WEIGHTS + (uint64_t)k, (uint64_t)(1000 + 512 * step + (k == 2 ? 1000000 : 0)));
            p = p ? p : q;
        }
    ck_assert_int_eq(p, 5);
}
END_TEST

/* A recurrent network, of which two losses are read: nothing old is used only once. Broken when the distance to the last use was all that was
 * tried */
START_TEST(what_is_used_twice_in_a_step)
{
    enum { STEPS = 10, WHOLE = 1 + STEPS + 2 + 2 * STEPS + 1 };
    int64_t p = 0;
    for (int iter = 0; iter < 4; iter++) {
        uint64_t live = 1000;
        op(5, 0, live);
        for (int k = 0; k < STEPS; k++)
            op(40, WEIGHTS, live += 100);
        op(50, WEIGHTS + 1, live);
        op(6, 0, live);
        for (int k = 0; k < STEPS; k++) {
            op(41, WEIGHTS, live);
            op(42, WEIGHTS + 2, live -= 100);
        }
        p = op(50, WEIGHTS + 1, live);
        ck_assert(!p || p == WHOLE);
    }
    ck_assert_int_eq(p, WHOLE);
}
END_TEST

/* Batches whose gradients are summed before a step look like iterations until the step comes: its first op shows the whole. */
START_TEST(batches_summed_before_a_step)
{
    const int64_t batch_ops = 24, step_ops = 20, whole = 4 * batch_ops + step_ops;
    int64_t p = 0;
    for (int step = 0; step < 2; step++) {
        for (int batch = 0; batch < 4; batch++)
            for (int64_t k = 0; k < batch_ops; k++) {
                p = op(100 + (uint64_t)k, k % 3 ? 0 : WEIGHTS + (uint64_t)k, 1000 + 10 * (uint64_t)k);
                ck_assert(!p || p == batch_ops);
            }
        for (int64_t k = 0; k < step_ops; k++) {
            p = op(200 + (uint64_t)k, WEIGHTS + (uint64_t)k, 1000);
            ck_assert_int_eq(p, step && k == step_ops - 1 ? whole : p == whole ? whole : 0);
        }
    }
    ck_assert_int_eq(p, whole);
}
END_TEST

/* Broken when no multiple of a period was tried: the same launches on batches of other sizes in turn had none */
START_TEST(shapes_that_take_turns)
{
    for (uint64_t turns = 2; turns <= 4; turns++) {
        int at;
        int64_t p = 0;
        teardown();
        setup();
        base = 100000;
        for (uint64_t step = 0; step < 4 * turns && (p != (int64_t)turns * 48 || step % turns); step++) {
            size = 1 + step % turns;
            p = train_step(8, &at);
            ck_assert_msg(p == 0 || p == 48 || p == (int64_t)turns * 48, "%d", (int)p);
            ck_assert_msg(!(p == 48 && iter_is_settled(it, 48)), "%d turns: a part of the iteration, after step %d", (int)turns, (int)step);
        }
        ck_assert_int_eq(p, turns * 48);
        ck_assert(iter_is_settled(it, (uint64_t)p));
    }
}
END_TEST

/* Ops of a step: one reads a list of ten, one a list of four of these at the same offsets, over what is left of the first, and one a buffer alone. */
START_TEST(what_is_left_of_a_longer_list)
{
    const uint64_t a = next_serial + 1;
    for (uint64_t step = 0; step < 2; step++) {
        struct iter_operand o[10];
        for (uint32_t i = 0; i < 10; i++)
            o[i] = (struct iter_operand){.serial = a + 10 * step + i, .birth_op = n_fed, .offset = 8 * i};
        iter_feed(it, 1, o, 10, base, 0);
        for (uint32_t i = 0; i < 4; i++)
            o[i].serial += 1000;
        iter_feed(it, 2, o, 10, base, 0);
        iter_feed(it, 3, o + 4, 1, base, 0);
        n_fed += 3;
    }
    ck_assert(iter_expected_again(it, 3, 2, 8 * 5, 8) && !iter_expected_again(it, 3, 2, 8 * 2, 8)); /* the sixth entry is there again, the third is not */
    ck_assert(iter_expected_again(it, 3, 2, 8 * 9, 9) && !iter_expected_again(it, 3, 2, 8 * 9, 10)); /* of lists of ten; there is none of more */
    ck_assert(!iter_expected_again(it, 3, 0, 8 * 5, 8));                                            /* in this step alone */
    ck_assert(!iter_expected_again(it, 3, 2, 8 * 11, 8));
    ck_assert(iter_expected_again(it, 7, 2, 8 * 2, 8)); /* nobody knows what was seven ops ago */
}
END_TEST

START_TEST(recovers_after_an_odd_step)
{
    int at;
    int64_t p = 0;
    while (!p)
        p = train_step(4, &at);
    for (int i = 0; i < 17; i++)
        op(77 + (uint64_t)i, 0, 5000);
    p = 0;
    for (int i = 0; i < 4 && !p; i++)
        p = train_step(4, &at);
    ck_assert_int_eq(p, 24);
}
END_TEST

/* So many ops of no weight, each of another size than ever before (a batch that is cut and mixed). */
static int64_t others(int n, uint64_t live)
{
    static uint64_t sig = 1 << 20;
    int64_t p = 0;
    for (int i = 0; i < n; i++)
        p = op(++sig, 0, live);
    return p;
}

/* A step of 16 layers is 96 ops, after as many others as first[] says. The period that was found by its end; 0: none. */
static int64_t steps_with_others(const int *first, int n)
{
    int64_t p = 0;
    int at;
    for (int i = 0; i < n; i++) {
        op(5, 0, base);
        others(first[i], base);
        p = train_step(16, &at);
    }
    return p;
}

START_TEST(a_few_other_ops_are_no_other_iteration)
{
    ck_assert_int_eq(steps_with_others((const int[]){3, 3, 3}, 3), 100);
    ck_assert(iter_has_come(it, 100) >= 2);
    ck_assert_int_eq(iter_apart(it, 1), 100);
    ck_assert_int_eq(iter_apart(it, 96), 100);
    ck_assert_int_eq(iter_apart(it, 98), 0); /* one of the three */
    op(5, 0, base);
    ck_assert(!iter_is_astray(it));
    others(1, base);
    ck_assert(iter_is_astray(it));
}
END_TEST

/* All ops of a forward pass through equal layers look alike; their weights tell how far the step is behind the one before. */
START_TEST(ops_correspond_by_their_weights)
{
    steps_with_others((const int[]){3, 3}, 2);
    op(5, 0, base);
    others(5, base);
    for (int l = 0; l < 2; l++)
        for (int k = 0; k < 3; k++)
            op(10 + (uint64_t)k, k ? 0 : WEIGHTS + (uint64_t)l, base + 50);
    for (uint64_t apart = 90; apart < 110; apart++)
        ck_assert_int_eq(iter_correspond(it, 3, apart), apart == 102); /* the first op of the second layer */
    ck_assert(!iter_correspond(it, 0, 102) && !iter_correspond(it, 3, 1000) && iter_correspond(it, 6, 102) && !iter_correspond(it, 7, 102));
}
END_TEST

START_TEST(more_or_fewer_of_them_make_it_longer_or_shorter)
{
    ck_assert_int_eq(steps_with_others((const int[]){3, 3, 5}, 3), 102);
    ck_assert_int_eq(iter_apart(it, 1), 102);
    ck_assert_int_eq(iter_apart(it, 1 + 102), 100);
    ck_assert_int_eq(steps_with_others((const int[]){1}, 1), 98);
}
END_TEST

START_TEST(too_many_of_them_are_another)
{
    ck_assert_int_eq(steps_with_others((const int[]){3, 31, 3, 31, 3}, 5), 0);
}
END_TEST

/* Eight other ops are too many for a step of 98, also where each time only two come together. */
START_TEST(nor_may_many_come_here_and_there)
{
    int64_t p = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t live = base;
        for (int k = 0; k < 100; k++) {
            if (k >= 60 && k % 10 == 0)
                others(2, live);
            p = op(100 + (uint64_t)k, WEIGHTS + (uint64_t)k, live += 10);
        }
    }
    ck_assert_int_eq(p, 0);
    ck_assert(!iter_is_astray(it));
}
END_TEST

START_TEST(in_a_short_step_every_op_counts)
{
    int at;
    int64_t p = 0;
    for (int i = 0; i < 6; i++) {
        others(1, base);
        p = train_step(4, &at);
    }
    ck_assert_int_eq(p, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("iter");
    TCase *t = tcase_create("finder");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, finds_the_training_step);
    tcase_add_test(t, layers_are_no_iteration);
    tcase_add_test(t, boundary_is_where_least_is_held);
    tcase_add_test(t, growing_memory_is_no_iteration);
    tcase_add_test(t, a_loop_through_a_batch_is_no_iteration);
    tcase_add_test(t, iterations_around_loops);
    tcase_add_test(t, a_list_that_grows_may);
    tcase_add_test(t, a_list_that_grows_fast_may_not);
    tcase_add_test(t, nor_in_a_short_loop);
    tcase_add_test(t, but_by_a_scalar_in_a_short_step);
    tcase_add_test(t, what_is_used_twice_in_a_step);
    tcase_add_test(t, batches_summed_before_a_step);
    tcase_add_test(t, shapes_that_take_turns);
    tcase_add_test(t, what_is_left_of_a_longer_list);
    tcase_add_test(t, recovers_after_an_odd_step);
    tcase_add_test(t, a_few_other_ops_are_no_other_iteration);
    tcase_add_test(t, ops_correspond_by_their_weights);
    tcase_add_test(t, more_or_fewer_of_them_make_it_longer_or_shorter);
    tcase_add_test(t, too_many_of_them_are_another);
    tcase_add_test(t, nor_may_many_come_here_and_there);
    tcase_add_test(t, in_a_short_step_every_op_counts);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
