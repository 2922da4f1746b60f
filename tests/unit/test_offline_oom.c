/* Fails the n-th allocation, for every n, while a trace and a plan are read, judged and planned: each time an error comes
 * back (or the work succeeds without it), nothing is leaked and nothing crashes. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/graph.h"
#include "offline/model/json_read.h"
#include "offline/model/plan.h"
#include "offline/model/sched.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_solve.h"
#include "offline/solvers/solver.h"
#include "tests/unit/drawn.h"

/* gcc says it by macro, clang by feature */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OOM_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(OOM_SANITIZED)
int main(void)
{
    puts("a sanitizer owns malloc here: skipped");
    return 77;
}
#else

static volatile long countdown = -1; /* allocations until one fails; negative: none does */
static volatile long live;           /* blocks handed out and not freed, while counting */
static volatile int counting;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

static int deny(void) { return counting && countdown >= 0 && countdown-- == 0; }

void *malloc(size_t n)
{
    void *p = deny() ? NULL : __libc_malloc(n);

    live += counting && p;
    if (!p)
        errno = ENOMEM;
    return p;
}

void *calloc(size_t n, size_t size)
{
    void *p = deny() ? NULL : __libc_calloc(n, size);

    live += counting && p;
    if (!p)
        errno = ENOMEM;
    return p;
}

void *realloc(void *old, size_t n)
{
    void *p = deny() ? NULL : __libc_realloc(old, n);

    live += counting && p && !old;
    if (!p)
        errno = ENOMEM;
    return p;
}

void free(void *p)
{
    live -= counting && p;
    __libc_free(p);
}

/* jansson 2.14 writes past its string buffer where growing it fails, so its own allocations are spared. */
static void *spared_malloc(size_t n)
{
    int was = counting;
    void *p;

    counting = 0;
    p = malloc(n);
    counting = was;
    live += counting && p;
    return p;
}

static const char *trace = "tests/golden/mlp.json", *plan = "tests/golden/mlp.plan.json", *instance = "tests/golden/chain.json";
static char err[512];

static int use_trace(void)
{
    struct graph *g = NULL;
    int rc = trace_read(trace, &g, err, sizeof(err));

    graph_free(g);
    return rc;
}

static int use_plan(void)
{
    struct graph *g = NULL;
    struct plan p = {0};
    struct sim_result r;
    int rc = trace_read(trace, &g, err, sizeof(err));

    if (!rc)
        rc = plan_read(plan, &p, err, sizeof(err));
    if (!rc)
        rc = sim_run(g, &p, 0, &r);
    if (!rc)
        rc = r.ok ? 0 : -EPROTO;
    plan_free(&p);
    graph_free(g);
    return rc;
}

static int use_solver(void)
{
    struct graph *g = NULL;
    struct plan p = {0};
    struct solver_report rep;
    struct solver_opts o = {.slots = 40};
    int rc = trace_read(trace, &g, err, sizeof(err));

    if (!rc) {
        o.limit_bytes = g->baseline_peak_bytes * 6 / 10;
        rc = solver_run(solver_find("chen-sqrt"), g, &o, &p, &rep);
    }
    if (!rc)
        rc = solver_run(solver_find("revolve"), g, &o, &p, &rep);
    plan_free(&p);
    graph_free(g);
    return rc == -ENOSPC ? 0 : rc;
}

static int use_chain_solver(void)
{
    struct graph *g = NULL;
    struct plan p = {0};
    struct solver_report rep;
    struct solver_opts o = {.slots = 20};
    int rc = trace_read(trace, &g, err, sizeof(err));

    if (!rc) {
        o.limit_bytes = g->baseline_peak_bytes * 7 / 10;
        rc = solver_run(solver_find("chain"), g, &o, &p, &rep);
    }
    plan_free(&p);
    graph_free(g);
    return rc;
}

static int use_chain(void)
{
    struct json_doc doc;
    struct chain c;
    struct chain_answer a;
    int64_t budget, slots;
    int unit, rc = json_doc_load(instance, &doc, err, sizeof(err));

    if (rc)
        return rc;
    rc = chain_read(&doc, &c, &budget, &slots, &unit, err, sizeof(err));
    json_doc_close(&doc);
    if (rc)
        return rc;
    rc = chain_solve(&c, budget, CHAIN_FLOATING, 0, &a);
    if (!rc)
        chain_schedule_free(&a.schedule);
    chain_free(&c);
    return rc;
}

/* stride: the long runs fail every stride-th allocation only */
static void every_allocation(int (*use)(void), const char *what, long stride)
{
    long n, failed = 0;
    int rc;

    counting = 0;
    countdown = -1;
    ck_assert_msg(use() == 0, "%s: %s", what, err); /* warm: what libc keeps for good is there now */
    if (!drawn_all()) /* every third of these, from a place that the commit draws */
        stride *= 3;
    for (n = drawn_all() ? 0 : drawn(1, 1, 3) ? 1 : drawn(2, 1, 2) ? 2 : 0;; n += stride) {
        live = 0;
        countdown = n;
        counting = 1;
        rc = use();
        counting = 0;
        ck_assert_msg(live == 0, "%s: %ld blocks leaked when allocation %ld fails", what, live, n);
        if (countdown >= 0)
            break; /* fewer than n allocations: all have been failed */
        ck_assert_msg(rc <= 0, "%s: allocation %ld: rc %d", what, n, rc);
        failed += rc < 0;
    }
    countdown = -1;
    ck_assert_msg(rc == 0, "%s with no failure: %d %s", what, rc, err);
    ck_assert_msg(failed * (drawn_all() ? 1 : 3) > 10, "%s: only %ld failures were noticed", what, failed);
}

START_TEST(reading) { every_allocation(use_trace, "trace", 1); }
END_TEST
START_TEST(checking) { every_allocation(use_plan, "plan", 1); }
END_TEST
START_TEST(planning) { every_allocation(use_solver, "solver", 7); }
END_TEST
START_TEST(planning_by_chain) { every_allocation(use_chain_solver, "chain solver", 13); }
END_TEST
START_TEST(chains) { every_allocation(use_chain, "chain", 1); }
END_TEST

int main(void)
{
    Suite *s = suite_create("offline_oom");
    TCase *t = tcase_create("offline_oom");
    SRunner *r;
    int failed;

    json_set_alloc_funcs(spared_malloc, free);
    tcase_set_timeout(t, 200);
    tcase_add_test(t, reading);
    tcase_add_test(t, checking);
    tcase_add_test(t, planning);
    tcase_add_test(t, planning_by_chain);
    tcase_add_test(t, chains);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
#endif
