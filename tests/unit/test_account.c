/* account.c: when a first lesson is worth its time, from a device whose clock is set by hand. */
#include "policy/campaign/account.h"
#include "policy/campaign/modes.h"
#include "policy/driver.h"
#include "policy/memory/swap.h"
#include "policy/plan/exec.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 2048, PERIOD = 100, OP_NS = 100000, BYTES_PER_NS = 1 /* what is taken for the link's speed where no copy was timed */ };

static uint64_t now_ns, event_ns[EVENTS];
static unsigned n_events;
static bool passes; /* events pass at once; else never */

static CUresult event_create(CUevent *e, unsigned flags)
{
    (void)flags;
    ck_assert_uint_lt(n_events, EVENTS);
    *e = (CUevent)&event_ns[n_events++];
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s)
{
    (void)s;
    *(uint64_t *)e = now_ns;
    return CUDA_SUCCESS;
}

static CUresult event_query(CUevent e) { return (void)e, passes ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }

static CUresult event_elapsed(float *ms, CUevent from, CUevent to)
{
    *ms = (float)((double)(*(uint64_t *)to - *(uint64_t *)from) * 1e-6);
    return CUDA_SUCCESS;
}

static struct drv drv;
static struct config cfg;
static struct device dev;
static struct exec ex;
static CUstream streams[1];

static void setup(void)
{
    memset(&dev, 0, sizeof dev);
    memset(&cfg, 0, sizeof cfg);
    now_ns = n_events = 0;
    passes = true;
    drv.cuEventCreate = event_create;
    drv.cuEventRecord = event_record;
    drv.cuEventQuery = event_query;
    drv.cuEventSynchronize = event_query;
    drv.cuEventElapsedTime = event_elapsed;
    cfg.policy = POLICY_AUTO;
    dev.cfg = &cfg;
    dev.drv = &drv;
    dev.ex = &ex;
    dev.stream = streams;
    dev.mem.pressed = true;
    ck_assert_int_eq(modes_init(&dev), 0);
    ck_assert_int_eq(swap_init(&dev), 0);
}

static void teardown(void)
{
    free(dev.campaign);
    free(dev.mem.swap);
}

static bool to_host; /* which way copies go */
static uint64_t long_ns; /* what the last op of an iteration takes longer */

/* Iterations after which a lesson is worth its time, at most `most` of them: each op waits so long, then runs, and a copy of so many ns came beside. */
static int learns_after(uint64_t wait_ns, uint64_t copy_ns, int most)
{
    for (int i = 0; i < most; i++) {
        for (int k = 0; k < PERIOD; k++) {
            struct account_sample *s = account_sample(&dev, (uint64_t)k);
            now_ns += wait_ns;
            if (s)
                event_record(s->from.at, NULL);
            now_ns += OP_NS + (k == PERIOD - 1 ? long_ns : 0);
            if (s) {
                event_record(s->to.at, NULL);
                s->awaited = true;
            }
            dev.op_count++;
            *(to_host ? &dev.st.bytes_out : &dev.st.bytes_in) += copy_ns * BYTES_PER_NS;
            account_tick(&dev, NULL, PERIOD);
        }
        if (account_is_worth_it(&dev, PERIOD))
            return i + 1;
    }
    return most + 1;
}

/* An op waits as long again as it runs: (1 - 0.2) of an iteration is lost in each; four times as much will be, and a lesson takes eight. */
START_TEST(waits_for_copies)
{
    ck_assert(!account_is_worth_it(&dev, 0)); /* no iteration is known */
    const int after = learns_after(OP_NS, OP_NS, 40);
    ck_assert_int_ge(after, 2);
    ck_assert_int_le(after, 6); /* ticks come every 256 ops */
    ck_assert_uint_ge(dev.campaign->account.n_sampled, 60);
    ck_assert_double_eq(account_op_ns(&dev), OP_NS);
}
END_TEST

/* One op of an iteration takes as long as all others together. */
START_TEST(long_ops)
{
    ck_assert_double_eq(account_op_ns(&dev), 0);
    long_ns = PERIOD * OP_NS;
    learns_after(0, 0, 3);
    ck_assert_double_eq(account_op_ns(&dev), 2 * OP_NS);
    long_ns = 0;
    for (uint64_t sig = 1000; sig < 1000 + 4 * ACCOUNT_KINDS; sig++) /* of which there are more than kinds */
        account_sample(&dev, sig);
    ck_assert_uint_gt(dev.campaign->account.kind[ACCOUNT_KINDS].n_ops, 0);
    ck_assert_double_lt(account_op_ns(&dev), 2.5 * OP_NS);
}
END_TEST

/* Memory waits for its content's way to the host as launches do for theirs back. */
START_TEST(waits_for_copies_out)
{
    to_host = true;
    ck_assert_int_le(learns_after(OP_NS, OP_NS, 40), 6);
    to_host = false;
}
END_TEST

/* The copies take as long, beside the ops, which wait for a tenth of their time: a plan would cost that. */
START_TEST(copies_beside_ops_cost_nothing) { ck_assert_int_eq(learns_after(OP_NS / 10, OP_NS, 200), 201); }
END_TEST

/* What ops wait for is not copies: the host is slow. */
START_TEST(a_slow_host_is_no_reason) { ck_assert_int_eq(learns_after(3 * OP_NS, OP_NS / 10, 200), 201); }
END_TEST

/* No event passes while the host runs ahead: nothing is known. Without events nothing is forbidden. */
START_TEST(without_times)
{
    passes = false;
    ck_assert_int_eq(learns_after(OP_NS, OP_NS, 20), 21);
    drv.cuEventElapsedTime = NULL;
    teardown();
    memset(&dev.st, 0, sizeof dev.st);
    dev.op_count = 0;
    ck_assert_int_eq(modes_init(&dev), 0);
    ck_assert_int_eq(swap_init(&dev), 0);
    ck_assert_ptr_null(account_sample(&dev, 1));
    ck_assert_int_eq(learns_after(OP_NS, OP_NS, 20), 1);
}
END_TEST

/* Whoever asks for plans and nothing else, and an iteration of few ops: at once. */
START_TEST(at_once)
{
    ck_assert(account_is_worth_it(&dev, 20));
    cfg.policy = POLICY_PLAN;
    ck_assert(account_is_worth_it(&dev, 0) && account_is_worth_it(&dev, PERIOD));
    ck_assert_ptr_null(account_sample(&dev, 1));
}
END_TEST

/* Ops of an iteration by swapping take 2 x OP_NS. Under the plan they take OP_NS, but `after_ns` each after a departure, which is at op `at`; `copied` bytes are copied there an
 * op, and half of OP_NS as many by swapping. */
static const char *verdict_of(uint64_t after_ns, int departures, uint32_t at, uint64_t copied)
{
    dev.campaign->account.swap_bytes = OP_NS / 2 * PERIOD * BYTES_PER_NS;
    dev.ex->now.left_at = at;
    const char *why = NULL;
    dev.campaign->account.swap_ns = 2ull * OP_NS * PERIOD;
    dev.campaign->account.swap_ops = PERIOD;
    dev.ex->learnt.rec.period = PERIOD;
    account_new_plan(&dev);
    for (int i = 0; i < departures && !why; i++) {
        dev.mode = MODE_ENFORCE;
        account_iteration(&dev, 0);
        dev.op_count += PERIOD;
        now_ns += (uint64_t)PERIOD * OP_NS;
        account_iteration(&dev, 0);
        dev.mode = MODE_STANDBY;
        account_left(&dev, 0);
        why = account_verdict(&dev, (uint64_t)PERIOD * OP_NS);
        for (int k = 0; k < 3 * PERIOD; k++) { /* what comes later than an iteration after it is the program's own */
            dev.op_count++;
            dev.st.bytes_in += k < PERIOD ? copied : 0;
            now_ns += k < PERIOD ? after_ns : 9 * OP_NS;
            account_tick(&dev, NULL, PERIOD);
        }
    }
    return why;
}

static const char *verdict_after(uint64_t after_ns, int departures) { return verdict_of(after_ns, departures, 1, 0); }

/* Between two batches an optimizer's step: its ops take long natively. What comes back is what is copied. */
START_TEST(ops_of_no_iteration_take_what_they_take)
{
    ck_assert_ptr_null(verdict_of(50 * OP_NS, 30, 0, 0));
    ck_assert_ptr_null(verdict_of(50 * OP_NS, 30, 0, OP_NS * BYTES_PER_NS)); /* half an op time more, where an iteration saves one */
}
END_TEST

START_TEST(what_they_copy_counts) { ck_assert_ptr_nonnull(verdict_of(50 * OP_NS, 30, 0, 8 * OP_NS * BYTES_PER_NS)); }
END_TEST

/* What the plan has sent away comes back after a departure: a plan that is left after each iteration costs more than it saves where that takes long. */
START_TEST(departures_cost)
{
    ck_assert_ptr_null(verdict_after(2 * OP_NS, 30)); /* as swapping */
    ck_assert_ptr_null(verdict_after(5 * OP_NS / 2, 30)); /* 50 op times more, where an iteration saves 100 */
}
END_TEST

START_TEST(departures_cost_too_much) { ck_assert_ptr_nonnull(verdict_after(5 * OP_NS, 30)); }
END_TEST

/* Hardly any time has gone by, of which a twentieth is less than anything costs: a loss of less than an iteration that is swapped says nothing. */
START_TEST(a_departure_at_the_beginning_says_nothing)
{
    ck_assert_uint_eq(dev.campaign->account.total_ns, 0);
    dev.campaign->account.swap_ns = 2ull * OP_NS * PERIOD;
    dev.campaign->account.swap_ops = PERIOD;
    dev.ex->learnt.rec.period = PERIOD;
    account_new_plan(&dev);
    dev.campaign->account.plan_balance_ns = -(int64_t)(2ull * OP_NS * PERIOD - 1);
    ck_assert_ptr_null(account_verdict(&dev, (uint64_t)PERIOD * OP_NS));
    dev.campaign->account.plan_balance_ns = -(int64_t)(2ull * OP_NS * PERIOD + 1);
    ck_assert_ptr_nonnull(account_verdict(&dev, (uint64_t)PERIOD * OP_NS));
}
END_TEST

/* The first swapped iterations copy little: the time of the latest iterations is taken for what swapping takes. */
START_TEST(swapping_is_what_it_has_become)
{
    for (int k = 0; k < 6 * PERIOD; k++) {
        dev.op_count++;
        now_ns += k < 3 * PERIOD ? OP_NS : 3 * OP_NS;
        account_tick(&dev, NULL, PERIOD);
    }
    account_learns(&dev, PERIOD, NULL);
    ck_assert_uint_ge(dev.campaign->account.swap_ops, PERIOD);
    ck_assert_uint_le(dev.campaign->account.swap_ops, 2 * PERIOD + 1);
    ck_assert_uint_eq(dev.campaign->account.swap_ns / dev.campaign->account.swap_ops, 3 * OP_NS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("account");
    TCase *t = tcase_create("account");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, waits_for_copies);
    tcase_add_test(t, long_ops);
    tcase_add_test(t, waits_for_copies_out);
    tcase_add_test(t, copies_beside_ops_cost_nothing);
    tcase_add_test(t, a_slow_host_is_no_reason);
    tcase_add_test(t, without_times);
    tcase_add_test(t, at_once);
    tcase_add_test(t, departures_cost);
    tcase_add_test(t, departures_cost_too_much);
    tcase_add_test(t, ops_of_no_iteration_take_what_they_take);
    tcase_add_test(t, what_they_copy_counts);
    tcase_add_test(t, a_departure_at_the_beginning_says_nothing);
    tcase_add_test(t, swapping_is_what_it_has_become);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
