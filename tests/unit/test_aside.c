/* aside.c: what was set aside comes back, byte for byte, from wherever it lay: in free chunks that are mapped somewhere, in others that are mapped nowhere, in pages of its own; and
 * parts that do not count are left as they are. Everybody's chunks are theirs again afterwards. */
#include "policy/memory/aside.h"
#include "policy/memory/chunk.h"
#include "policy/memory/page.h"
#include "tests/unit/fixture.h"

enum { PAGES = 3, BYTES = PAGES * FX_PAGE };
static unsigned char was[BYTES];

static struct slot *filled(void)
{
    ck_assert_int_eq(alloc_new(&fx.d, BYTES, &fx.slot[0]), 0);
    ck_assert_int_eq(ready_pin(&fx.d, fx.slot[0]), 0);
    for (int i = 0; i < BYTES; i++)
        was[i] = (unsigned char)(i * 7 + i / 251);
    memcpy((void *)fx.slot[0]->va, was, BYTES);
    return fx.slot[0];
}

/* Buffers of so many pages that the program has had: their chunks are free; `mapped`: where they were. */
static void leave_free(unsigned pages, bool mapped)
{
    struct slot *s;
    ck_assert_int_eq(alloc_new(&fx.d, (uint64_t)pages * FX_PAGE, &s), 0);
    ck_assert_int_eq(ready_pin(&fx.d, s), 0);
    s->pins = 0;
    alloc_free(&fx.d, s);
    ck_assert_uint_ge(fx.d.mem.n_free_chunks, pages);
    for (unsigned p = 0; p < pages && !mapped; p++)
        ck_assert_int_eq(page_unmap(&fx.d, s, p), 0);
}

/* Sets parts aside, writes over all of the buffer, and asks what is there when they are back. */
static void there_and_back(struct slot *s, const struct rec_range *parts, uint32_t n, bool in_chunks)
{
    struct aside a;
    ck_assert_int_eq(aside_take(&fx.d, s, parts, n, &a), 0);
    ck_assert_int_eq(a.pieces > 0, in_chunks);
    memset((void *)s->va, 0xee, BYTES);
    ck_assert_int_eq(aside_back(&fx.d, &a, s), 0);
    for (uint64_t i = 0; i < BYTES; i++) {
        bool counts = false;
        for (uint32_t k = 0; k < n; k++)
            counts |= parts[k].from <= i && i < parts[k].to;
        const unsigned char is = ((unsigned char *)s->va)[i];
        ck_assert_msg(counts ? is == was[i] : is == 0xee || is == was[i], "byte %llu: %#x, was %#x", (unsigned long long)i, is, was[i]);
    }
    memcpy((void *)s->va, was, BYTES);
    aside_drop(&fx.d, &a);
    aside_clear(&fx.d, false);
}

static const struct rec_range WHOLE = {0, BYTES}, PARTS[] = {{3, 70}, {100, FX_PAGE + 12345}, {2 * FX_PAGE - 1, 2 * FX_PAGE + 1}, {BYTES - 5, BYTES}};

static void free_chunks_are_everybodys(unsigned n)
{
    ck_assert_uint_eq(fx.d.mem.n_free_chunks, n);
    for (uint32_t c = 0; c < fx.d.mem.n_chunks; c++)
        ck_assert(fx.d.mem.chunks[c].owner != CHUNK_BORROWED);
}

static void in_free_chunks(bool mapped)
{
    fx_begin(8);
    struct slot *s = filled();
    leave_free(4, mapped);
    const unsigned n = fx.d.mem.n_free_chunks;
    for (int again = 0; again < 3; again++) {
        there_and_back(s, &WHOLE, 1, true);
        there_and_back(s, PARTS, 4, true);
        free_chunks_are_everybodys(n);
    }
    leave_free(4, true); /* a buffer that gets these chunks next maps them as if nothing had been set aside in them */
    s->pins = 0;
    fx_end();
}

START_TEST(in_chunks_that_are_mapped) { in_free_chunks(true); }
END_TEST
START_TEST(in_chunks_that_are_mapped_nowhere) { in_free_chunks(false); }
END_TEST

START_TEST(in_pages_of_its_own)
{
    fx_begin(8);
    struct slot *s = filled();
    there_and_back(s, &WHOLE, 1, false);
    there_and_back(s, PARTS, 4, false);
    aside_clear(&fx.d, true);
    s->pins = 0;
    fx_end();
}
END_TEST

START_TEST(where_there_is_no_room)
{
    fx_begin(4);
    struct slot *s = filled();
    struct aside a;
    ck_assert_int_eq(aside_take(&fx.d, s, &WHOLE, 1, &a), -ENOMEM);
    ck_assert_uint_ge(aside_chunks(&fx.d, &WHOLE, 1), PAGES);
    ck_assert_int_eq(aside_take_to_host(&fx.d, s, &a), 0);
    memset((void *)s->va, 0xee, BYTES);
    ck_assert_int_eq(aside_back(&fx.d, &a, s), 0);
    ck_assert_int_eq(memcmp((void *)s->va, was, BYTES), 0);
    aside_drop(&fx.d, &a);
    ck_assert_int_eq(aside_take(&fx.d, s, PARTS, 1, &a), 0); /* a little has room */
    aside_drop(&fx.d, &a);
    aside_clear(&fx.d, true);
    s->pins = 0;
    fx_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("aside");
    TCase *t = tcase_create("aside");
    tcase_add_test(t, in_chunks_that_are_mapped);
    tcase_add_test(t, in_chunks_that_are_mapped_nowhere);
    tcase_add_test(t, in_pages_of_its_own);
    tcase_add_test(t, where_there_is_no_room);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
