/* fence.c against a driver of three functions: who has to wait, and whom nobody waits for any more. */
#include "policy/device.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { T = STREAM_FIRST_PROGRAM };

static struct device d;
static struct drv drv;
enum { SOME = 200 };
static bool at_work[SOME + 0x200]; /* by stream: its work has not ended */
static unsigned asked, waits, made;

static CUresult create_stream(CUstream *s, unsigned flags)
{
    (void)flags;
    *s = (CUstream)(uintptr_t)(0x100 + made++);
    return CUDA_SUCCESS;
}

static CUresult create_event(CUevent *e, unsigned flags)
{
    static char one[1];
    (void)flags;
    *e = (CUevent)one;
    return CUDA_SUCCESS;
}

static CUresult record(CUevent e, CUstream s)
{
    (void)e, (void)s;
    return CUDA_SUCCESS;
}

static CUresult wait_event(CUstream s, CUevent e, unsigned flags)
{
    (void)s, (void)e, (void)flags;
    waits++;
    return CUDA_SUCCESS;
}

static CUresult query(CUstream s)
{
    asked++;
    return at_work[(uintptr_t)s - 0x100] ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult context(CUcontext *ctx)
{
    *ctx = NULL;
    return CUDA_SUCCESS;
}

static void start(void)
{
    memset(&d, 0, sizeof d);
    memset(at_work, 0, sizeof at_work);
    asked = waits = made = 0;
    drv = (struct drv){.cuStreamCreate = create_stream,
                       .cuEventCreate = create_event,
                       .cuEventRecord = record,
                       .cuStreamWaitEvent = wait_event,
                       .cuStreamQuery = query,
                       .cuCtxGetCurrent = context};
    d.drv = &drv;
    ck_assert_int_eq(stream_init(&d), 0);
    ck_assert_uint_eq(stream_index(&d, (CUstream)(uintptr_t)0x200), T);
}

static void end(void)
{
    free(d.streams->row);
    free(d.streams);
    free(d.stream);
    free(d.seq);
}

static struct fence after_copy(unsigned u)
{
    struct fence f = {0};
    stream_mark(&d, u);
    fence_add(&d, &f, u);
    return f;
}

/* A copy that is still at work stays in its fence, whoever looks, and is waited for once. */
START_TEST(at_work_is_waited_for)
{
    struct fence f = after_copy(STREAM_OUT);
    at_work[STREAM_OUT] = true;
    stream_look(&d);
    fence_trim(&d, &f);
    ck_assert(!fence_empty(&f));
    ck_assert(!fence_only_on(&f, T));
    ck_assert_int_eq(fence_wait(&d, T, &f), 0);
    ck_assert_uint_eq(waits, 1);
    ck_assert_int_eq(fence_wait(&d, T, &f), 0);
    ck_assert_uint_eq(waits, 1);
}
END_TEST

/* One that has ended leaves; what is queued after the look does not. */
START_TEST(done_is_nobodys_wait)
{
    struct fence f = after_copy(STREAM_OUT);
    stream_look(&d);
    struct fence later = after_copy(STREAM_OUT);
    at_work[STREAM_OUT] = true;
    stream_look(&d);
    fence_trim(&d, &f);
    fence_trim(&d, &later);
    ck_assert(fence_empty(&f));
    ck_assert(!fence_empty(&later));
    ck_assert_int_eq(fence_wait(&d, T, &later), 0);
    ck_assert_uint_eq(waits, 1);
}
END_TEST

/* The points that stay move together, so that a launch finds its own stream first. */
START_TEST(what_stays_moves_up)
{
    struct fence f = after_copy(STREAM_IN);
    stream_issued(&d, T);
    fence_add(&d, &f, T);
    fence_merge(&d, &f, &(struct fence){0});
    ck_assert(!fence_only_on(&f, T));
    stream_look(&d);
    fence_trim(&d, &f);
    ck_assert(fence_only_on(&f, T));
    ck_assert(!fence_empty(&f));
    ck_assert_int_eq(fence_wait(&d, STREAM_OUT, &f), 0);
    ck_assert_uint_eq(waits, 1);
}
END_TEST

static CUstream handle(unsigned i) { return (CUstream)(uintptr_t)(0x210 + i); }

/* A fence after so many streams at work. */
static struct fence after_streams(unsigned from, unsigned n)
{
    struct fence f = {0};
    for (unsigned i = from; i < from + n; i++) {
        unsigned u = stream_index(&d, handle(i));
        at_work[(uintptr_t)handle(i) - 0x100] = true;
        stream_issued(&d, u);
        fence_add(&d, &f, u);
    }
    return f;
}

static unsigned waits_for(const struct fence *f)
{
    const unsigned before = waits;
    ck_assert_int_eq(fence_wait(&d, T, f), 0);
    return waits - before;
}

/* More streams than a fence has points, as many as there are: each is waited for once, and nobody else is. */
START_TEST(every_stream_counts)
{
    struct fence f = after_streams(0, SOME);
    const struct fence other = after_streams(SOME, 1);
    for (unsigned i = 0; i < SOME; i++)
        ck_assert_uint_eq(stream_index(&d, handle(i)), T + 1 + i);
    ck_assert(!fence_only_on(&f, T));
    ck_assert(fence_is_sound(&d, &f));
    struct fence copy = f;
    ck_assert_uint_eq(waits_for(&f), SOME);
    ck_assert_uint_eq(waits_for(&copy), 0);
    ck_assert_uint_eq(waits_for(&other), 1); /* it was in none of them */
}
END_TEST

/* What is in a set ends as what is not: it is looked at before it is kept, and when it has ended nobody waits for it. */
START_TEST(sets_end_too)
{
    struct fence f = after_streams(0, 12);
    ck_assert(f.set != 0);
    ck_assert(!fence_has_passed(&d, &f));
    for (unsigned i = 0; i < 12; i++)
        at_work[(uintptr_t)handle(i) - 0x100] = false;
    ck_assert(fence_has_passed(&d, &f));
    fence_trim(&d, &f);
    ck_assert(fence_empty(&f));
    struct fence idle = {0}; /* of streams that are done already there is no set */
    for (unsigned i = 0; i < 12; i++) {
        stream_issued(&d, T + 1 + i);
        fence_add(&d, &idle, T + 1 + i);
    }
    ck_assert_uint_eq(idle.set, 0);
}
END_TEST

/* Sets are united, and each point is the latest of its stream. */
START_TEST(sets_are_united)
{
    struct fence f = after_streams(0, 10), g = after_streams(5, 10), h = after_streams(0, 10);
    struct fence both = f;
    fence_merge(&d, &both, &g);
    fence_merge(&d, &both, &h);
    ck_assert_uint_eq(waits_for(&both), 15);
    ck_assert_uint_eq(waits_for(&f), 0);
    ck_assert_uint_eq(waits_for(&g), 0);
    ck_assert_uint_eq(waits_for(&h), 0);
}
END_TEST

/* The place of a set that has ended goes to another: a fence that names the old one waits for none of the new one's streams. */
START_TEST(places_of_sets_are_used_again)
{
    struct fence old[100];
    for (unsigned k = 0; k < 100; k++) {
        old[k] = after_streams(2 * k % 90, 8 + k % 3);
        for (unsigned i = 0; i < 110; i++)
            at_work[(uintptr_t)handle(i) - 0x100] = false;
        ck_assert(fence_has_passed(&d, &old[k]));
    }
    struct fence now = after_streams(100, 20);
    for (unsigned k = 0; k < 100; k++) {
        ck_assert_uint_eq(waits_for(&old[k]), 0);
        fence_merge(&d, &now, &old[k]);
    }
    ck_assert_uint_eq(waits_for(&now), 20);
}
END_TEST

/* A capture may forbid to ask; where nothing is new nothing is asked; the program's streams are never asked. */
START_TEST(asked_when_it_may_be)
{
    stream_issued(&d, T);
    stream_look(&d);
    ck_assert_uint_eq(asked, 0);
    struct fence f = after_copy(STREAM_IN);
    d.capturing = true;
    stream_look(&d);
    ck_assert_uint_eq(asked, 0);
    fence_trim(&d, &f);
    ck_assert(!fence_empty(&f));
    d.capturing = false;
    stream_look(&d);
    stream_look(&d);
    ck_assert_uint_eq(asked, 1);
}
END_TEST

/* Hashes on their way to the host hold up nobody's memory: nobody asks for them, and what is queued behind them is asked for as ever. */
START_TEST(not_asked_for_what_is_apart)
{
    at_work[STREAM_OUT] = true;
    stream_issued_apart(&d, STREAM_OUT);
    stream_issued_apart(&d, STREAM_OUT);
    stream_look(&d);
    ck_assert_uint_eq(asked, 0);
    stream_seen(&d, STREAM_OUT, 1);
    stream_look(&d);
    ck_assert_uint_eq(asked, 0);
    stream_issued(&d, STREAM_OUT);
    stream_issued_apart(&d, STREAM_OUT); /* behind a copy that memory waits for */
    stream_look(&d);
    ck_assert_uint_eq(asked, 1);
    at_work[STREAM_OUT] = false;
    stream_look(&d);
    stream_issued_apart(&d, STREAM_OUT);
    stream_look(&d);
    ck_assert_uint_eq(asked, 2);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fence");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, start, end);
    tcase_add_test(t, at_work_is_waited_for);
    tcase_add_test(t, done_is_nobodys_wait);
    tcase_add_test(t, what_stays_moves_up);
    tcase_add_test(t, every_stream_counts);
    tcase_add_test(t, sets_end_too);
    tcase_add_test(t, sets_are_united);
    tcase_add_test(t, places_of_sets_are_used_again);
    tcase_add_test(t, asked_when_it_may_be);
    tcase_add_test(t, not_asked_for_what_is_apart);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
