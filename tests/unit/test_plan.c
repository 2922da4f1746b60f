/* Plan files: what is written reads back the same; what is broken is refused with its place. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "offline/model/plan.h"

static char err[512];

START_TEST(round_trip)
{
    char path[] = "/tmp/remat-plan-XXXXXX";
    int fd = mkstemp(path), kind;
    struct plan p = {0}, q = {0};
    size_t i;

    ck_assert_int_ge(fd, 0);
    close(fd);
    for (kind = 0; kind < PLAN_N_KINDS; kind++)
        ck_assert_int_eq(plan_push(&p, (enum plan_kind)kind, kind * 1000), 0);
    for (i = 0; i < 5000; i++)
        ck_assert_int_eq(plan_push(&p, PLAN_REPLAY, (int32_t)i), 0);
    plan_keep(&p, 9);
    plan_keep(&p, 3);
    plan_keep(&p, 9);
    plan_keep_sort(&p);
    ck_assert_uint_eq(p.n_keep, 2);
    p.limit_bytes = 1LL << 60;
    p.peak_bytes = 123;
    p.baseline_ns = 5;
    p.planned_ns = 6;
    snprintf(p.solver, sizeof(p.solver), "odd \"name\"\\\t");
    memset(p.trace, 'a', 64);
    ck_assert_msg(!plan_write(&p, path, err, sizeof(err)), "%s", err);
    ck_assert_msg(!plan_read(path, &q, err, sizeof(err)), "%s", err);
    ck_assert_uint_eq(q.n_steps, p.n_steps);
    ck_assert(!memcmp(q.steps, p.steps, p.n_steps * sizeof(*p.steps)));
    ck_assert_uint_eq(q.n_keep, 2);
    ck_assert_int_eq(q.keep[0], 3);
    ck_assert_int_eq(q.keep[1], 9);
    ck_assert_int_eq(q.limit_bytes, p.limit_bytes);
    ck_assert_int_eq(q.peak_bytes, 123);
    ck_assert_int_eq(q.planned_ns, 6);
    ck_assert_str_eq(q.solver, p.solver);
    ck_assert_str_eq(q.trace, p.trace);
    plan_free(&q);
    ck_assert_int_eq(plan_copy(&q, &p), 0);
    ck_assert(!memcmp(q.steps, p.steps, p.n_steps * sizeof(*p.steps)));
    plan_free(&p);
    plan_free(&q);
    ck_assert_ptr_null(q.steps);
    unlink(path);
}
END_TEST

/* A solver may be a command of the user's own, of any length (exec:CMD): 511 bytes of it are kept, and the end says that there was more. */
START_TEST(labels_of_any_length)
{
    char path[] = "/tmp/remat-plan-XXXXXX", name[600];
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    for (size_t n = PLAN_LABEL - 2; n < PLAN_LABEL + 3; n++) {
        struct plan p = {.limit_bytes = 1, .peak_bytes = 1}, q = {0};
        memset(name, 'x', n);
        name[n] = 0;
        plan_label(&p, name);
        ck_assert_int_eq(plan_push(&p, PLAN_OP, 0), 0);
        ck_assert_msg(!plan_write(&p, path, err, sizeof err), "%s", err);
        ck_assert_msg(!plan_read(path, &q, err, sizeof err), "%s", err);
        ck_assert_uint_eq(strlen(q.solver), n < PLAN_LABEL ? n : PLAN_LABEL - 1);
        ck_assert_str_eq(q.solver + strlen(q.solver) - 3, n < PLAN_LABEL ? "xxx" : "...");
        plan_free(&p);
        plan_free(&q);
    }
    unlink(path);
}
END_TEST

START_TEST(broken_files_are_refused)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "p.json:1:"},
        {"[]", "p.json:1:1: a plan is a JSON object"},
        {"{\"steps\": []}", "format: missing"},
        {"{\"format\": \"plan-2\", \"steps\": []}", "p.json:1:12: format: is \"plan-2\""},
        {"{\"format\": \"plan-1\"}", "steps: missing"},
        {"{\"format\": \"plan-1\", \"steps\": 3}", "steps: must be an array"},
        {"{\"format\": \"plan-1\", \"steps\": [7]}", "steps[0]: a step is an object"},
        {"{\"format\": \"plan-1\", \"steps\": [{}]}", "steps[0]: a step is an object"},
        {"{\"format\": \"plan-1\",\n\"steps\": [{\"op\":0},\n{\"op\":1,\"drop\":2}]}", "p.json:3:1: steps[1]: a step"},
        {"{\"format\": \"plan-1\", \"steps\": [{\"jump\":0}]}", "unknown step \"jump\""},
        {"{\"format\": \"plan-1\", \"steps\": [{\"op\":-1}]}", "steps[0].op: must be an op"},
        {"{\"format\": \"plan-1\", \"steps\": [{\"drop\":1.5}]}", "steps[0].drop: must be a buffer"},
        {"{\"format\": \"plan-1\", \"steps\": [{\"drop\":4294967296}]}", "must be a buffer"},
        {"{\"format\": \"plan-1\", \"steps\": [], \"keep\": [\"a\"]}", "keep[0]: must be a buffer"},
        {"{\"format\": \"plan-1\", \"steps\": [], \"keep\": [-4]}", "keep[0]"},
        {"{\"format\": \"plan-1\", \"steps\": [], \"limit_bytes\": -4}", "limit_bytes: must be between"},
        {"{\"format\": \"plan-1\", \"steps\": [], \"solver\": 4}", "solver: must be a string"},
    };
    struct plan p;
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        ck_assert_msg(plan_read_text("p.json", bad[i].text, strlen(bad[i].text), &p, err, sizeof(err)) == -EINVAL,
                      "accepted: %s", bad[i].text);
        ck_assert_msg(strstr(err, bad[i].says), "%s: %s", bad[i].text, err);
        ck_assert_ptr_null(p.steps);
    }
}
END_TEST

START_TEST(writing_fails_cleanly)
{
    struct plan p = {0};

    ck_assert_int_lt(plan_write(&p, "/nonexistent/dir/p.json", err, sizeof(err)), 0);
    ck_assert_ptr_nonnull(strstr(err, "/nonexistent/dir/p.json"));
    ck_assert_int_lt(plan_write(&p, "/dev", err, sizeof(err)), 0);
    ck_assert_int_lt(plan_read("/nonexistent/p.json", &p, err, sizeof(err)), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    SRunner *r;
    int failed;

    tcase_add_test(t, round_trip);
    tcase_add_test(t, labels_of_any_length);
    tcase_add_test(t, broken_files_are_refused);
    tcase_add_test(t, writing_fails_cleanly);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
