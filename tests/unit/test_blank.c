/* Bytes that differ between two contents of a buffer, against a search byte by byte. */
#include "policy/learn/blank.h"
#include "tests/unit/drawn.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 400 };

/* Every place that lies in a range differs, every other one does not, and neighbours are in one range. */
static void is_right(const struct blank *b, const unsigned char *x, const unsigned char *y, uint64_t bytes)
{
    uint64_t at = 0;
    for (uint32_t k = 0; k < b->n; k++) {
        ck_assert_uint_lt(b->r[k].from, b->r[k].to);
        ck_assert(k == 0 || b->r[k].from > b->r[k - 1].to);
        ck_assert_int_eq(memcmp(x + at, y + at, b->r[k].from - at), 0);
        for (uint64_t i = b->r[k].from; i < b->r[k].to; i++)
            ck_assert_uint_ne(x[i], y[i]);
        at = b->r[k].to;
    }
    ck_assert_uint_le(at, bytes);
    ck_assert_int_eq(memcmp(x + at, y + at, bytes - at), 0);
}

/* One run of differing bytes: wherever it begins and ends beside words of eight, and whatever its differences are. */
START_TEST(a_run_wherever_it_lies)
{
    static const unsigned char by[] = {0x01, 0x80, 0xff, 0x7f};
    unsigned char x[96], y[96];
    struct blank b;
    memset(x, 0x5a, sizeof x);
    for (uint64_t from = 0; from <= sizeof x; from++)
        for (uint64_t to = from; to <= sizeof x; to++) {
            memcpy(y, x, sizeof y);
            for (uint64_t i = from; i < to; i++)
                y[i] ^= by[(i + from) % sizeof by];
            ck_assert_int_eq(blank_of_difference(&b, x, y, sizeof x), 0);
            ck_assert_uint_eq(b.n, to > from);
            is_right(&b, x, y, sizeof x);
        }
}
END_TEST

/* Runs drawn by chance, single equal bytes among them. */
START_TEST(runs_by_chance)
{
    unsigned char x[ROOM], y[ROOM];
    struct blank b;
    srand(1);
    for (int k = 0; k < (drawn_all() ? 20000 : 4000); k++) {
        const uint64_t bytes = 1 + (uint64_t)rand() % ROOM;
        const int seldom = 2 + rand() % 90;
        int differ = rand() % 2;
        for (uint64_t i = 0; i < bytes; i++) {
            differ ^= rand() % seldom == 0;
            x[i] = (unsigned char)rand();
            y[i] = (unsigned char)(x[i] ^ (differ ? 1 + rand() % 255 : 0));
        }
        b.n = 77;
        const int rc = blank_of_difference(&b, x, y, bytes);
        if (rc) {
            ck_assert_int_eq(rc, -E2BIG);
            ck_assert_uint_eq(b.n, 77);
            continue;
        }
        is_right(&b, x, y, bytes);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("blank");
    TCase *c = tcase_create("blank");
    tcase_add_test(c, a_run_wherever_it_lies);
    tcase_add_test(c, runs_by_chance);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
