/* log.c: one line a call, a prefix, a cap at every call site, and nothing else disturbed. */
#include "policy/process/log.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int saved_stderr, ends[2];
static char text[65536];

static void capture(void)
{
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
}

/* What was written since capture(). */
static const char *captured(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(ends[1]);
    close(saved_stderr);
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0;)
        used += (size_t)n;
    close(ends[0]);
    text[used] = '\0';
    return text;
}

static int lines(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

START_TEST(a_line)
{
    char want[64];
    errno = ENOSPC;
    capture();
    log_say(SAY_WARN, "%s costs %d", "memory", 7);
    const char *got = captured();
    snprintf(want, sizeof want, "remat[%d]: memory costs 7\n", (int)getpid());
    ck_assert_str_eq(got, want);
    errno = ENOSPC;
    close(STDERR_FILENO); /* nowhere to write: errno stays, nothing fails */
    log_say(SAY_WARN, "lost");
    ck_assert_int_eq(errno, ENOSPC);
}
END_TEST

START_TEST(levels)
{
    capture();
    log_say(SAY_INFO, "not by default");
    log_init("info");
    log_say(SAY_INFO, "now");
    log_say(SAY_DEBUG, "not yet");
    log_init("error");
    log_say(SAY_WARN, "not any more");
    const char *got = captured();
    ck_assert_int_eq(lines(got), 1);
    ck_assert_ptr_nonnull(strstr(got, ": now\n"));
}
END_TEST

START_TEST(words)
{
    ck_assert_int_eq(log_init(NULL), 0);
    ck_assert_int_eq(log_init(""), 0);
    ck_assert_int_eq(log_init("doors"), 0);
    ck_assert_int_eq(log_threshold, SAY_WARN);
    ck_assert_uint_eq(log_topics, LOG_TOPIC_DOORS);
    ck_assert_int_eq(log_init("debug,doors"), 0);
    ck_assert_int_eq(log_threshold, SAY_DEBUG);
    ck_assert_int_eq(log_init("loud,info"), -EINVAL);
    ck_assert_int_eq(log_threshold, SAY_INFO);
    ck_assert_int_eq(log_init("door"), -EINVAL);
}
END_TEST

START_TEST(caps)
{
    capture();
    for (int i = 0; i < 3 * LOG_CAP; i++) {
        log_say(SAY_WARN, "again %d", i);
        log_once(SAY_WARN, "once %d", i);
    }
    const char *got = captured();
    ck_assert_int_eq(lines(got), LOG_CAP + 1);
    ck_assert_ptr_nonnull(strstr(got, "again 19 (this message is not repeated)\n"));
    ck_assert_ptr_null(strstr(got, "again 20"));
    ck_assert_ptr_nonnull(strstr(got, "once 0\n"));
}
END_TEST

/* Too long for its buffer: cut, still one line, still with its note. */
START_TEST(long_lines)
{
    char big[5000];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = '\0';
    capture();
    for (int i = 0; i < LOG_CAP; i++)
        log_say(SAY_WARN, "%s", big);
    const char *got = captured();
    ck_assert_int_eq(lines(got), LOG_CAP);
    ck_assert_ptr_nonnull(strstr(got, "x (this message is not repeated)\n"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("log");
    TCase *t = tcase_create("log");
    tcase_add_test(t, a_line);
    tcase_add_test(t, levels);
    tcase_add_test(t, words);
    tcase_add_test(t, caps);
    tcase_add_test(t, long_lines);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
