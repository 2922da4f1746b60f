/* current.c: when the driver is asked which context is current, and what is believed without. */
#include "policy/current.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

static CUcontext really; /* what the driver has, in whichever thread */
static unsigned asked, devices;

static CUcontext context(uintptr_t n) { return (CUcontext)n; }

static CUresult get(CUcontext *c)
{
    asked++;
    *c = really;
    return CUDA_SUCCESS;
}

static CUresult set(CUcontext c)
{
    really = c;
    return CUDA_SUCCESS;
}

static CUresult device(CUdevice *dev)
{
    devices++;
    *dev = (CUdevice)(uintptr_t)really;
    return really ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static const struct drv drv = {.cuCtxGetCurrent = get, .cuCtxSetCurrent = set, .cuCtxGetDevice = device};

static CUcontext now(void)
{
    CUcontext c = NULL;
    ck_assert(current_context(&drv, &c));
    return c;
}

static int dev_now(void)
{
    CUdevice dev = -1;
    ck_assert_int_eq(current_device_drv(&drv, &dev), CUDA_SUCCESS);
    return dev;
}

/* A call of the program's that has a door. */
static void with_door(CUcontext c)
{
    really = c;
    current_is(c);
}

static void prove(void)
{
    current = (struct current){0};
    atomic_store(&current_era, 1);
    with_door(context(1));
    for (int i = 0; i < CURRENT_PROVEN; i++)
        ck_assert_ptr_eq(now(), context(1));
    dev_now();
    asked = devices = 0;
}

START_TEST(asks_until_proven)
{
    current = (struct current){0};
    atomic_store(&current_era, 1);
    asked = 0;
    really = context(1);
    for (unsigned i = 0; i <= CURRENT_PROVEN; i++) /* the first answer agrees with nothing: nobody had told */
        ck_assert_ptr_eq(now(), context(1));
    ck_assert_uint_eq(asked, CURRENT_PROVEN + 1);
    now();
    ck_assert_uint_eq(asked, CURRENT_PROVEN + 1);
}
END_TEST

START_TEST(follows_the_doors)
{
    prove();
    with_door(context(2));
    ck_assert_ptr_eq(now(), context(2));
    ck_assert_int_eq(dev_now(), 2);
    with_door(context(1));
    ck_assert_int_eq(dev_now(), 1);
    ck_assert_uint_eq(asked, 0);
    ck_assert_uint_eq(devices, 2);
    really = context(3); /* popped: what lies below only the driver knows */
    current_is(NULL);
    ck_assert_ptr_eq(now(), context(3));
    ck_assert_int_eq(dev_now(), 3);
    ck_assert_int_eq(dev_now(), 3);
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_eq(devices, 3);
    ck_assert(current_set(&drv, context(4)));
    ck_assert_ptr_eq(now(), context(4));
    ck_assert_uint_eq(asked, 1);
}
END_TEST

/* The handle of a context that has ended may be that of one on another device. */
START_TEST(an_end_is_an_era)
{
    prove();
    current_era_ends();
    really = NULL;
    CUdevice dev;
    ck_assert_int_eq(current_device_drv(&drv, &dev), CUDA_ERROR_INVALID_CONTEXT);
    ck_assert_ptr_null(now());
    ck_assert_uint_eq(asked, 1);
}
END_TEST

START_TEST(a_way_without_a_door)
{
    prove();
    really = context(2);
    ck_assert_ptr_eq(now(), context(1)); /* believed, until an answer is compared again */
    current_compare();
    ck_assert_ptr_eq(now(), context(2));
    asked = 0;
    for (int i = 0; i < 3 * CURRENT_PROVEN; i++) { /* and from then on it is asked, whatever agrees, and whatever ends */
        really = context(1 + (uintptr_t)i % 2);
        ck_assert_ptr_eq(now(), really);
        ck_assert_int_eq(dev_now(), 1 + i % 2);
        current_era_ends();
    }
    ck_assert_uint_ge(asked, 3 * CURRENT_PROVEN);
}
END_TEST

static void *elsewhere(void *unused)
{
    (void)unused;
    ck_assert_ptr_eq(now(), really);
    return NULL;
}

START_TEST(each_thread_asks)
{
    pthread_t t;
    prove();
    really = context(2);
    ck_assert_int_eq(pthread_create(&t, NULL, elsewhere, NULL), 0);
    pthread_join(t, NULL);
    ck_assert_uint_eq(asked, 1);
    ck_assert_ptr_eq(now(), context(1));
    ck_assert_uint_eq(asked, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("current");
    TCase *c = tcase_create("current");
    tcase_add_test(c, asks_until_proven);
    tcase_add_test(c, follows_the_doors);
    tcase_add_test(c, an_end_is_an_era);
    tcase_add_test(c, a_way_without_a_door);
    tcase_add_test(c, each_thread_asks);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
