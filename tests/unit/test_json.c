/* Places of complaints: line, column and path of syntax errors and of values that are wrong. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "offline/model/json_read.h"

static char err[512];

static void parse(const char *text, struct json_doc *doc)
{
    ck_assert_msg(!json_doc_parse("f.json", text, strlen(text), doc, err, sizeof(err)), "%s", err);
}

START_TEST(syntax_errors_have_a_place)
{
    static const struct {
        const char *text, *place;
    } bad[] = {{"", "f.json:1:"},
               {"{", "f.json:1:"},
               {"{\"a\": 1,\n \"b\" 2}", "f.json:2:"},
               {"[1, 2,\n\n  3x]", "f.json:3:"},
               {"{\"a\": 1, \"a\": 2}", "duplicate"},
               {"[1] [2]", "f.json:1:"},
               {"{\"a\": \"\x01\"}", "f.json:1:"},
               {"[99999999999999999999999]", "too big"},
               {"[1e999]", "f.json:1:"},
               {"\xff\xfe", "f.json:1:"}};
    struct json_doc doc;
    size_t i;

    for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        ck_assert_int_eq(json_doc_parse("f.json", bad[i].text, strlen(bad[i].text), &doc, err, sizeof(err)), -EINVAL);
        ck_assert_msg(strstr(err, bad[i].place), "%s: %s", bad[i].text, err);
        ck_assert_msg(!strchr(err, '\n'), "two lines: %s", err);
        ck_assert_ptr_null(doc.root);
    }
}
END_TEST

START_TEST(faults_find_the_value)
{
    struct json_doc doc;
    struct json_step path[4] = {{"ops", 0}, {NULL, 1}, {"reads", 0}, {NULL, 2}};

    parse("{\"x\": \"}],{\\\"ops\", \"ops\": [ {\"reads\": []},\n   {\"name\": [1, {\"a\": \"]\"}],\n \"reads\": [1,\n 2, -7]} ]}", &doc);
    ck_assert_int_eq(json_fault(&doc, path, 4, err, sizeof(err), "is %d", -7), -EINVAL);
    ck_assert_str_eq(err, "f.json:4:5: ops[1].reads[2]: is -7");
    path[3].index = 9; /* leads nowhere: the place is the list */
    json_fault(&doc, path, 4, err, sizeof(err), "missing");
    ck_assert_str_eq(err, "f.json:3:11: ops[1].reads[9]: missing");
    json_fault(&doc, NULL, 0, err, sizeof(err), "whole");
    ck_assert_str_eq(err, "f.json:1:1: whole");
    json_doc_close(&doc);
}
END_TEST

START_TEST(typed_lookups)
{
    struct json_doc doc;
    int64_t n = 42;
    double d = 0;
    int flag = 0;
    const char *s = NULL;
    json_t *list = NULL;

    parse("{\"i\": 5, \"r\": 3.0, \"half\": 2.5, \"big\": 1e300, \"s\": \"t\", \"b\": true, \"n\": null, \"l\": [1]}", &doc);
#define GET_INT(key, need, lo, hi) json_get_int(&doc, doc.root, NULL, 0, key, need, lo, hi, &n, err, sizeof(err))
    ck_assert_int_eq(GET_INT("i", 1, 0, 9), 0);
    ck_assert_int_eq(n, 5);
    ck_assert_int_eq(GET_INT("r", 1, 0, 9), 0);
    ck_assert_int_eq(n, 3);
    ck_assert_int_eq(GET_INT("half", 1, 0, 9), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "half: must be a whole number"));
    ck_assert_int_eq(GET_INT("big", 1, 0, 9), -EINVAL);
    ck_assert_int_eq(GET_INT("s", 1, 0, 9), -EINVAL);
    ck_assert_int_eq(GET_INT("i", 1, 6, 9), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "i: must be between 6 and 9"));
    ck_assert_int_eq(GET_INT("n", 1, 0, 9), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err, "n: missing"));
    n = 42;
    ck_assert_int_eq(GET_INT("none", 0, 0, 9), 0);
    ck_assert_int_eq(n, 42);
    ck_assert_int_eq(json_get_real(&doc, doc.root, NULL, 0, "half", 1, 0, 9, &d, err, sizeof(err)), 0);
    ck_assert(d == 2.5);
    ck_assert_int_eq(json_get_real(&doc, doc.root, NULL, 0, "half", 1, 3, 9, &d, err, sizeof(err)), -EINVAL);
    ck_assert_int_eq(json_get_string(&doc, doc.root, NULL, 0, "s", 1, &s, err, sizeof(err)), 0);
    ck_assert_str_eq(s, "t");
    ck_assert_int_eq(json_get_string(&doc, doc.root, NULL, 0, "i", 1, &s, err, sizeof(err)), -EINVAL);
    ck_assert_int_eq(json_get_bool(&doc, doc.root, NULL, 0, "b", 1, &flag, err, sizeof(err)), 0);
    ck_assert_int_eq(flag, 1);
    ck_assert_int_eq(json_get_bool(&doc, doc.root, NULL, 0, "i", 1, &flag, err, sizeof(err)), -EINVAL);
    ck_assert_int_eq(json_get_array(&doc, doc.root, NULL, 0, "l", 1, &list, err, sizeof(err)), 0);
    ck_assert_int_eq((int)json_array_size(list), 1);
    ck_assert_int_eq(json_get_array(&doc, doc.root, NULL, 0, "s", 1, &list, err, sizeof(err)), -EINVAL);
    json_doc_close(&doc);
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    struct json_doc doc;

    ck_assert_int_eq(json_doc_load("/nonexistent/x.json", &doc, err, sizeof(err)), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err, "/nonexistent/x.json"));
    ck_assert_int_eq(json_doc_load("/", &doc, err, sizeof(err)), -EISDIR);
    ck_assert_int_eq(json_doc_load("/dev/null", &doc, err, sizeof(err)), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");
    SRunner *r;
    int failed;

    tcase_add_test(t, syntax_errors_have_a_place);
    tcase_add_test(t, faults_find_the_value);
    tcase_add_test(t, typed_lookups);
    tcase_add_test(t, files_that_cannot_be_read);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
