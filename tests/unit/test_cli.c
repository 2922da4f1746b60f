/* Sizes, numbers and options as the commands read them. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"

START_TEST(sizes)
{
    static const struct {
        const char *text;
        int64_t whole, want; /* want < 0: refused */
    } rows[] = {{"0", 0, 0},
                {"4096", 0, 4096},
                {"9007199254740993", 0, 9007199254740993}, /* exact above 2^53 */
                {"1K", 0, 1024},
                {"1k", 0, 1024},
                {"1KiB", 0, 1024},
                {"1KB", 0, 1024},
                {"2M", 0, 2 << 20},
                {"1.5GiB", 0, 3LL << 29},
                {"12G", 0, 12LL << 30},
                {"1T", 0, 1LL << 40},
                {"0.5TiB", 0, 1LL << 39},
                {"100B", 0, 100},
                {"50%", 200, 100},
                {"12.5%", 1000, 125},
                {"100%", 2150793732, 2150793732},
                {"150%", 100, 150},
                {"50%", 0, -1},
                {"", 0, -1},
                {"G", 0, -1},
                {"-1", 0, -1},
                {"-1G", 0, -1},
                {"+1G", 0, -1},
                {"1X", 0, -1},
                {"1Ki", 0, -1},
                {"1GiBB", 0, -1},
                {"1 G", 0, -1},
                {"1e3", 0, -1},
                {"0x10", 0, -1},
                {"inf", 0, -1},
                {"nan%", 100, -1},
                {"50%%", 100, -1},
                {"99999999999999999999", 0, -1},
                {"99999999T", 0, -1},
                {".", 0, -1}};
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int64_t got = -7;
        int rc = cli_size(rows[i].text, rows[i].whole, &got);

        if (rows[i].want < 0)
            ck_assert_msg(rc == -EINVAL, "\"%s\" was taken as %lld", rows[i].text, (long long)got);
        else
            ck_assert_msg(!rc && got == rows[i].want, "\"%s\": %d, %lld", rows[i].text, rc, (long long)got);
    }
}
END_TEST

START_TEST(numbers)
{
    int64_t n;
    double d;

    ck_assert_int_eq(cli_long("12", 0, 20, &n), 0);
    ck_assert_int_eq(n, 12);
    ck_assert_int_eq(cli_long("21", 0, 20, &n), -EINVAL);
    ck_assert_int_eq(cli_long("1x", 0, 20, &n), -EINVAL);
    ck_assert_int_eq(cli_long("", 0, 20, &n), -EINVAL);
    ck_assert_int_eq(cli_long("99999999999999999999", 0, INT64_MAX, &n), -EINVAL);
    ck_assert_int_eq(cli_real("2.5", 0, 9, &d), 0);
    ck_assert(d == 2.5);
    ck_assert_int_eq(cli_real("nan", 0, 9, &d), -EINVAL);
    ck_assert_int_eq(cli_real("2.5s", 0, 9, &d), -EINVAL);
}
END_TEST

START_TEST(human_bytes)
{
    char buf[32];

    ck_assert_str_eq(cli_bytes(0, buf, sizeof(buf)), "0 B");
    ck_assert_str_eq(cli_bytes(1536, buf, sizeof(buf)), "1.50 KiB");
    ck_assert_str_eq(cli_bytes(3LL << 40, buf, sizeof(buf)), "3.00 TiB");
}
END_TEST

static const char *out, *name;
static int flag;
static const struct option_row rows[] = {
    {"output", 'o', "FILE", NULL, NULL, ""}, {"name", 0, "S", NULL, NULL, ""}, {"json", 'j', NULL, NULL, NULL, ""}, {0}};
static const struct option_command command = {"x", "", "none", rows, "", 0};
static const struct option_bind binds[] = {{"output", &out}, {"name", &name}, {"json", &flag}, {0}};

static int parse(const char **argv, const char **operands, size_t *n)
{
    int argc = 0;

    out = name = NULL;
    flag = 0;
    while (argv[argc])
        argc++;
    return options_parse_as(&command, argc, (char **)argv, binds, operands, 2, n);
}

START_TEST(options)
{
    const char *ops[2];
    size_t n = 0;

    ck_assert_int_eq(parse((const char *[]){"x", "a", "-o", "f", "--name=v=1", "--json", "b", NULL}, ops, &n), 0);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(ops[0], "a");
    ck_assert_str_eq(ops[1], "b");
    ck_assert_str_eq(out, "f");
    ck_assert_str_eq(name, "v=1");
    ck_assert_int_eq(flag, 1);
    ck_assert_int_eq(parse((const char *[]){"x", "-of", "--name", "--json", "--", "-j", NULL}, ops, &n), 0);
    ck_assert_str_eq(out, "f");
    ck_assert_str_eq(name, "--json");
    ck_assert_int_eq(flag, 0);
    ck_assert_str_eq(ops[0], "-j");
    ck_assert_int_eq(parse((const char *[]){"x", "-", NULL}, ops, &n), 0);
    ck_assert_str_eq(ops[0], "-");
    ck_assert_int_eq(parse((const char *[]){"x", "a", "b", "c", NULL}, ops, &n), -EINVAL);
    ck_assert_int_eq(parse((const char *[]){"x", "--nam", "v", NULL}, ops, &n), -EINVAL);
    ck_assert_int_eq(parse((const char *[]){"x", "--name", NULL}, ops, &n), -EINVAL);
    ck_assert_int_eq(parse((const char *[]){"x", "--json=1", NULL}, ops, &n), -EINVAL);
    ck_assert_int_eq(parse((const char *[]){"x", "-z", NULL}, ops, &n), -EINVAL);
    ck_assert_int_eq(parse((const char *[]){"x", "--help", NULL}, ops, &n), 1);
}
END_TEST

START_TEST(what_was_meant)
{
    static const char *const rows[][3] = {{"plam", "run|plan|check", "plan"},   {"pln", "run|plan|check", "plan"},
                                          {"paln", "run|plan|check", "plan"},   {"rnu", "run|plan|check", "run"},
                                          {"verify", "run|plan|check", ""},     {"x", "run|plan|check", ""},
                                          {"ch", "run|plan|check", "check"},    {"time-limt", "time-limit|limit", "time-limit"},
                                          {"", "run", ""},                      {"memoryviz", "dot|memory-viz", "memory-viz"}};
    char got[64];
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        ck_assert_str_eq(options_nearest(rows[i][0], rows[i][1], got, sizeof(got)), rows[i][2]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cli");
    TCase *t = tcase_create("cli");
    SRunner *r;
    int failed;

    tcase_add_test(t, sizes);
    tcase_add_test(t, numbers);
    tcase_add_test(t, human_bytes);
    tcase_add_test(t, options);
    tcase_add_test(t, what_was_meant);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
