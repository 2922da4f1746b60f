/* plan/args.c, of launches made by hand: which argument bytes may be others without a trial, and after how many trials. No device is asked.
 *
 * The recorded iteration here is one launch, or some, of one kernel whose parameters are a struct of 64 bytes and a flag of four. An iteration gives the
 * launch its bytes, asks args_compare() what is known of the change, and tells args_accept() what a trial found, as proof.c does. */
#include "policy/memory/pinned.h"
#include "policy/plan/args.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 68, FLAG_AT = 64, PLACES_MOST = 8, PADDING_TRIALS = 3, NUMBER_TRIALS = 8, NUMBER_ASKED_AGAIN = 32, PADDING_ASKED_AGAIN = 32 };
static uint32_t offsets[] = {0, FLAG_AT}, sizes[] = {FLAG_AT, 4};
static struct func kernel = {.name = "kernel", .n_params = 2, .arg_bytes = BYTES, .offset = offsets, .size = sizes, .known = true};
static struct device d;
static struct exec ex;
static struct drv drv;
static struct config cfg;
static struct rt_op caps[PLACES_MOST];
static unsigned char was[PLACES_MOST][BYTES], now[BYTES], other[4096];

static CUresult nothing_lies_there(void *out, CUpointer_attribute what, CUdeviceptr p)
{
    (void)out, (void)what, (void)p;
    return CUDA_ERROR_INVALID_VALUE;
}

/* An iteration of so many launches of the kernel, whose structs hold 0, 1, 2, .. */
static void begin(uint32_t places)
{
    memset(&d, 0, sizeof d);
    memset(&ex, 0, sizeof ex);
    drv.cuPointerGetAttribute = nothing_lies_there;
    d.drv = &drv;
    d.ex = &ex;
    d.cfg = &cfg;
    d.mem.base = 0x7f1281000000; /* of no bytes: every address is elsewhere */
    ex.learnt.caps = caps;
    for (uint32_t i = 0; i < places; i++) {
        ck_assert_int_eq(record_op(&ex.learnt.rec, 1, "kernel", NULL, 0), i);
        for (unsigned char k = 0; k < BYTES; k++)
            was[i][k] = k;
        caps[i] = (struct rt_op){.kind = OP_KERNEL, .sig = 1, .func = &kernel, .args = was[i], .arg_bytes = BYTES};
    }
    ex.learnt.n_caps = places;
    ck_assert_int_eq(pinned_init(&d), 0);
    ck_assert_int_eq(args_index(&d), 0);
    memcpy(now, was[0], BYTES);
}

static void end(void)
{
    args_clear(&d);
    record_clear(&ex.learnt.rec);
    pinned_end(&d);
}

/* The launch at this place comes with the bytes of `now`. Where they are a surprise, a trial finds that what was put back is idle, or not. True: it was a
 * surprise. */
static bool launched(uint32_t place, bool idle)
{
    struct rt_op op = caps[place];
    uint32_t at = 0;
    op.args = now;
    ex.now.pos = place;
    const enum args_change change = args_compare(&d, &op, &at);
    const bool surprise = change == ARGS_SURPRISE && !args_known_alike(&d, &op);
    enum args_mattered mattered = ARGS_UNTRIED;
    if (surprise) {
        (void)args_surprised(&d);
        if (args_before(&d, &op, false, other))
            mattered = idle ? ARGS_IDLE : ARGS_MATTERED;
        args_may_use_others(&d, false);
    }
    args_accept(&d, &op, mattered);
    memcpy(was[place], now, BYTES);
    return surprise;
}

static uint64_t drawn = 1;
static uint64_t draw(void)
{
    drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
    return drawn >> 8;
}

/* So many bytes hold what bytes that nobody fills hold: each another value than before. */
static void litter(unsigned char *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(at[i] + 1 + draw() % 255);
}

START_TEST(what_stays_is_no_surprise)
{
    begin(1);
    for (int k = 0; k < 50; k++)
        ck_assert(!launched(0, true));
    now[FLAG_AT] ^= 1;
    ck_assert(launched(0, true));
    end();
}
END_TEST

/* Not sooner: a trial or two say nothing of what hangs on data. */
START_TEST(litter_is_padding_after_three_trials)
{
    begin(1);
    for (int k = 0; k < PADDING_TRIALS; k++) {
        litter(now + 8, 8);
        ck_assert_msg(launched(0, true), "after %d trials", k);
    }
    for (int k = PADDING_TRIALS; k < PADDING_ASKED_AGAIN - 1; k++) {
        litter(now + 8, 8);
        ck_assert_msg(!launched(0, true), "change %d", k);
    }
    litter(now + 8, 8);
    ck_assert(launched(0, true)); /* once more, now and then */
    end();
}
END_TEST

/* Four bytes of a word are proved to be padding; the fifth has never changed, and takes three trials of its own. */
START_TEST(bytes_are_free_each_for_itself)
{
    begin(1);
    for (int k = 0; k < 10; k++) {
        litter(now + 8, 4);
        launched(0, true);
    }
    litter(now + 8, 4);
    ck_assert(!launched(0, true));
    for (int k = 0; k < PADDING_TRIALS; k++) {
        now[12]++;
        ck_assert_msg(launched(0, true), "after %d trials of this byte", k);
    }
    end();
}
END_TEST

/* After one trial in which the word made a difference no later trials make it padding: the difference may hang on the data of that iteration. */
START_TEST(what_mattered_is_tried_each_time)
{
    begin(1);
    for (int k = 0; k < NUMBER_TRIALS; k++) {
        litter(now + 8, 8);
        ck_assert_msg(launched(0, k > 0), "change %d", k);
    }
    end();
}
END_TEST

/* A step count: eight in a row that did what was recorded. */
START_TEST(numbers_change_each_time)
{
    begin(1);
    for (int k = 0; k < NUMBER_TRIALS; k++) {
        now[FLAG_AT]++;
        ck_assert_msg(launched(0, false), "after %d", k);
    }
    for (int k = NUMBER_TRIALS; k < NUMBER_ASKED_AGAIN - 1; k++) {
        now[FLAG_AT]++;
        ck_assert_msg(!launched(0, false), "step %d", k);
    }
    now[FLAG_AT]++;
    ck_assert(launched(0, false)); /* once more */
    ck_assert(!launched(0, false)); /* it stays, as a flag would, */
    now[FLAG_AT]++;
    ck_assert(launched(0, false)); /* and is tried when it changes again */
    end();
}
END_TEST

/* A number that grows by 16 each time may carry into its second byte, which had not changed before; one that grows by 17 then is tried. */
START_TEST(numbers_carry)
{
    for (int step = 16; step <= 17; step++) {
        begin(1);
        uint32_t n = 0x00fefe00;
        for (int k = 0; k < 16; k++, n += 16) {
            memcpy(now + FLAG_AT, &n, 4);
            launched(0, false);
        }
        n += (uint32_t)step - 16;
        memcpy(now + FLAG_AT, &n, 4);
        ck_assert_int_eq(launched(0, false), step == 17);
        n = (n | 0xff) + 1; /* into the next byte, by no step that was seen */
        n += 1 << 16;
        memcpy(now + FLAG_AT, &n, 4);
        ck_assert(launched(0, false));
        end();
    }
}
END_TEST

/* Byte 8 counts up, as a flag's would, or the word there holds litter. */
static void change(bool flag)
{
    if (flag)
        now[8]++;
    else
        litter(now + 8, 8);
}

/* Six trials at other places make up for three at one that had none; a flag's byte is asked for at each. */
START_TEST(places_alike_know_litter)
{
    for (int flag = 0; flag <= 1; flag++) {
        begin(PLACES_MOST);
        int surprises = 0;
        for (int k = 0; k < 4; k++) {
            memcpy(now, was[0], BYTES);
            change(flag);
            for (uint32_t i = 0; i + 1 < PLACES_MOST; i++)
                surprises += launched(i, true);
        }
        memcpy(now, was[0], BYTES);
        change(flag);
        memcpy(was[PLACES_MOST - 1], was[0], BYTES);
        ck_assert_int_eq(launched(PLACES_MOST - 1, true), flag);
        ck_assert_msg(flag ? surprises >= (PLACES_MOST - 1) * PADDING_TRIALS : surprises < (PLACES_MOST - 1) * PADDING_TRIALS, "%d trials", surprises);
        end();
    }
}
END_TEST

/* A launch that ran without proof wants one in the next iteration, with the same bytes, too. */
START_TEST(unproved_asks_again)
{
    begin(1);
    struct rt_op op = caps[0];
    ck_assert(!args_ask_again(&d));
    args_unproved(&d, &op);
    ck_assert(args_ask_again(&d) && args_are_unproved(&d, 0) && args_idle_in_doubt(&d));
    args_may_use_others(&d, false);
    args_accept(&d, &op, ARGS_UNTRIED);
    ck_assert(!args_ask_again(&d));
    args_are_covered(&d);
    args_accept(&d, &op, ARGS_UNTRIED);
    ck_assert(args_ask_again(&d)); /* the next one, with the same bytes */
    end();
}
END_TEST

/* A word may hold anything from its fifth byte on; what is before that is watched as before. */
START_TEST(freed_words_are_not_watched)
{
    begin(1);
    ck_assert_int_eq(args_free_word(&d, 12), 0);
    litter(now + 12, 4);
    ck_assert(!launched(0, false));
    now[11]++;
    ck_assert(launched(0, false));
    ck_assert_int_eq(args_free_word(&d, 16), 0);
    litter(now + 16, 8);
    ck_assert(!launched(0, false));
    now[24]++;
    ck_assert(launched(0, false));
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("arg_bytes");
    TCase *c = tcase_create("all");
    tcase_add_test(c, what_stays_is_no_surprise);
    tcase_add_test(c, litter_is_padding_after_three_trials);
    tcase_add_test(c, bytes_are_free_each_for_itself);
    tcase_add_test(c, what_mattered_is_tried_each_time);
    tcase_add_test(c, numbers_change_each_time);
    tcase_add_test(c, numbers_carry);
    tcase_add_test(c, places_alike_know_litter);
    tcase_add_test(c, unproved_asks_again);
    tcase_add_test(c, freed_words_are_not_watched);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
