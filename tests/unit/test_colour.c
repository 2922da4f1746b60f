/* colour.c against lives drawn at random: no chunk has two tenants, a map is found where one is easily there, and what no map could give is counted
 * right. */
#include "policy/plan/colour.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 24, STEPS = 200, CHUNKS_MOST = 64 };

static uint64_t seed;
static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % below;
}

static struct colouring c;
static uint32_t pages[PLACES];
static int32_t **home;

/* Places with a life or two each. */
static void begin(uint64_t s, uint32_t n_chunks)
{
    seed = s;
    memset(&c, 0, sizeof c);
    c.n_steps = STEPS;
    c.of_alloc = malloc(PLACES * sizeof *c.of_alloc);
    c.lives = calloc(2 * PLACES, sizeof *c.lives);
    home = calloc(PLACES, sizeof *home);
    for (int k = 0; k < PLACES; k++) {
        c.of_alloc[k] = -1;
        pages[k] = draw(4); /* 0: it needs none */
        home[k] = pages[k] ? malloc(pages[k] * sizeof **home) : NULL;
        uint32_t from = draw(STEPS / 2);
        for (uint32_t l = 0; l < 1 + draw(2) && from < STEPS - 1; l++) {
            const uint32_t to = from + 1 + draw(STEPS / 4 < STEPS - from - 1 ? STEPS / 4 : STEPS - from - 1);
            c.lives[c.n_lives] = (struct life){.from = from, .to = to, .next = c.of_alloc[k]};
            c.of_alloc[k] = (int32_t)c.n_lives++;
            from = to + 1 + draw(STEPS / 4);
        }
    }
    ck_assert_int_eq(colour_room(&c, n_chunks), 0);
}

static void end(void)
{
    for (int k = 0; k < PLACES; k++)
        free(home[k]);
    free(home);
    colour_end(&c);
}

static bool lives_at(int k, uint32_t step)
{
    for (int32_t l = c.of_alloc[k]; l >= 0; l = c.lives[l].next)
        if (c.lives[l].from <= step && step < c.lives[l].to)
            return true;
    return false;
}

/* Step by step, with nothing of colour.c. */
static void check_tenants(void)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        int tenant[CHUNKS_MOST];
        memset(tenant, -1, sizeof tenant);
        for (int k = 0; k < PLACES; k++)
            for (uint32_t i = 0; i < pages[k] && lives_at(k, step); i++) {
                if (home[k][i] < 0)
                    continue;
                ck_assert_int_lt(home[k][i], (int)c.n_chunks);
                ck_assert_msg(tenant[home[k][i]] < 0, "step %u: chunk %d is of %d and of %d", step, home[k][i], tenant[home[k][i]], k);
                tenant[home[k][i]] = k;
            }
    }
}

static uint32_t most_at_once(void)
{
    uint32_t most = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t now = 0;
        for (int k = 0; k < PLACES; k++)
            now += lives_at(k, step) ? pages[k] : 0;
        most = now > most ? now : most;
    }
    return most;
}

START_TEST(one_tenant_at_a_time)
{
    uint64_t lacking, beyond;
    begin((uint64_t)_i, 8 + draw(24));
    ck_assert_int_eq(colour_map(&c, pages, PLACES, &home, &lacking, &beyond), 0);
    check_tenants();
    ck_assert(colour_is_sound(&c, pages, PLACES, home));
    uint64_t none = 0;
    for (int k = 0; k < PLACES; k++)
        for (uint32_t i = 0; i < pages[k]; i++)
            none += home[k][i] < 0;
    ck_assert_uint_eq(none, lacking);
    const uint32_t most = most_at_once();
    if (lacking)
        ck_assert_uint_eq(beyond, most > c.n_chunks ? most - c.n_chunks : 0);
    ck_assert_uint_le(beyond, lacking);
    end();
}
END_TEST

START_TEST(with_chunks_enough_none_lacks)
{
    uint64_t lacking, beyond;
    begin((uint64_t)_i, CHUNKS_MOST);
    ck_assert_int_eq(colour_map(&c, pages, PLACES, &home, &lacking, &beyond), 0);
    if (most_at_once() * 2 <= CHUNKS_MOST)
        ck_assert_uint_eq(lacking, 0);
    check_tenants();
    end();
}
END_TEST

START_TEST(what_is_taken_stays_so)
{
    uint64_t lacking, beyond;
    begin(7, 16);
    colour_take_all(&c, 3);
    ck_assert_int_eq(colour_map(&c, pages, PLACES, &home, &lacking, &beyond), 0);
    for (int k = 0; k < PLACES; k++)
        for (uint32_t i = 0; i < pages[k] && c.of_alloc[k] >= 0; i++)
            ck_assert_int_ne(home[k][i], 3);
    end();
}
END_TEST

/* The fault that colour_is_sound() is there for: two buffers that are in memory at the same step have the same chunk. */
START_TEST(two_tenants_are_seen)
{
    uint64_t lacking, beyond;
    begin(11, CHUNKS_MOST);
    ck_assert_int_eq(colour_map(&c, pages, PLACES, &home, &lacking, &beyond), 0);
    ck_assert(colour_is_sound(&c, pages, PLACES, home));
    unsigned seen = 0;
    for (int a = 0; a < PLACES; a++)
        for (int b = 0; b < a; b++) {
            bool meet = false;
            for (uint32_t step = 0; step < STEPS; step++)
                meet |= lives_at(a, step) && lives_at(b, step);
            if (!meet || !pages[a] || !pages[b])
                continue;
            const int32_t was = home[a][0];
            home[a][0] = home[b][0];
            ck_assert(!colour_is_sound(&c, pages, PLACES, home));
            home[a][0] = was;
            seen++;
        }
    ck_assert_uint_gt(seen, 10);
    for (int k = 0; k < PLACES; k++)
        if (pages[k]) {
            home[k][0] = CHUNKS_MOST; /* no such chunk */
            break;
        }
    ck_assert(!colour_is_sound(&c, pages, PLACES, home));
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("colour");
    TCase *t = tcase_create("colour");
    tcase_add_loop_test(t, one_tenant_at_a_time, 1, 60);
    tcase_add_loop_test(t, with_chunks_enough_none_lacks, 1, 30);
    tcase_add_test(t, what_is_taken_stays_so);
    tcase_add_test(t, two_tenants_are_seen);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
