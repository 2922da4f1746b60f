/* fence.c against a driver of three functions: who has to wait, and whom nobody waits for any more. */
#include "policy/device.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { T = STREAM_FIRST_PROGRAM };

static struct device d;
static struct drv drv;
static bool at_work[RT_MAX_STREAMS]; /* by stream: its work has not ended */
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

static void start(void)
{
    memset(&d, 0, sizeof d);
    memset(at_work, 0, sizeof at_work);
    asked = waits = made = 0;
    drv = (struct drv){.cuStreamCreate = create_stream,
                       .cuEventCreate = create_event,
                       .cuEventRecord = record,
                       .cuStreamWaitEvent = wait_event,
                       .cuStreamQuery = query};
    d.drv = &drv;
    ck_assert_int_eq(stream_init(&d), 0);
    ck_assert_uint_eq(stream_index(&d, (CUstream)(uintptr_t)0x200), T);
}

static void end(void) { free(d.streams); }

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

/* More streams than a fence has points are kept as tails: they end as points do. */
START_TEST(tails_end_too)
{
    struct fence f = {0};
    for (unsigned i = 0; i < FENCE_POINTS + 1; i++) {
        unsigned u = stream_index(&d, (CUstream)(uintptr_t)(0x210 + i));
        stream_issued(&d, u);
        fence_add(&d, &f, u);
    }
    stream_mark(&d, STREAM_OUT);
    fence_add(&d, &f, STREAM_OUT);
    uint64_t tails = f.tails;
    ck_assert(tails >> STREAM_OUT & 1);
    at_work[STREAM_OUT] = true;
    stream_look(&d);
    fence_trim(&d, &f);
    ck_assert_uint_eq(f.tails, tails);
    at_work[STREAM_OUT] = false;
    stream_look(&d);
    fence_trim(&d, &f);
    ck_assert_uint_eq(f.tails, tails & ~(1ull << STREAM_OUT));
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

int main(void)
{
    Suite *s = suite_create("fence");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, start, end);
    tcase_add_test(t, at_work_is_waited_for);
    tcase_add_test(t, done_is_nobodys_wait);
    tcase_add_test(t, what_stays_moves_up);
    tcase_add_test(t, tails_end_too);
    tcase_add_test(t, asked_when_it_may_be);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
