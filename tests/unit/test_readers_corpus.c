/* The fuzz targets' promises on the corpus of broken files, on truncations of good ones, and on thousands of good files
 * with a few bytes changed; no fuzzer needed. */
#include <check.h>
#include <dirent.h>

#include "tests/fuzz/fuzz_readers.h"
#include "tests/unit/rand_graph.h"

#ifndef TEST_DIR
#define TEST_DIR "tests"
#endif

static char *slurp(const char *dir, const char *name, size_t *len)
{
    char path[4096];
    FILE *f;
    char *text = malloc(1 << 20);

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s cannot be opened: run from the repository's root", path);
    *len = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

static int feed(const char *name, const void *data, size_t len)
{
    return !strncmp(name, "plan_", 5)       ? fuzz_plan(data, len)
           : !strncmp(name, "instance_", 9) ? fuzz_chain(data, len)
                                            : fuzz_trace(data, len);
}

START_TEST(broken_files)
{
    DIR *d = opendir(TEST_DIR "/corpus");
    struct dirent *e;
    int n = 0;

    ck_assert_msg(d != NULL, "no " TEST_DIR "/corpus: run from the repository's root");
    while ((e = readdir(d))) {
        char *text;
        size_t len;

        if (e->d_name[0] == '.' || !strstr(e->d_name, ".json"))
            continue; /* a folder of good ones */
        if (!strncmp(e->d_name, "instance_", 9) && strstr(e->d_name, "format"))
            continue; /* the command picks the reader by format, and refuses these before any reads them */
        text = slurp(TEST_DIR "/corpus", e->d_name, &len);
        ck_assert_msg(!feed(e->d_name, text, len), "%s was accepted", e->d_name);
        free(text);
        n++;
    }
    closedir(d);
    ck_assert_int_gt(n, 50);
}
END_TEST

static const struct {
    const char *file, *as;
} good[] = {{"mlp.json", "trace_"}, {"mlp.plan.json", "plan_"}, {"chain.json", "instance_"}};

START_TEST(good_files_and_their_truncations)
{
    size_t i, cut;

    for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
        size_t len;
        char *text = slurp(TEST_DIR "/golden", good[i].file, &len);
        size_t end = len;

        ck_assert_msg(feed(good[i].as, text, len), "%s was refused", good[i].file);
        while (end && text[end - 1] != '}')
            end--;
        for (cut = 0; cut < end; cut += 1 + cut / 200)
            ck_assert_msg(!feed(good[i].as, text, cut), "%s was accepted at %zu bytes", good[i].file, cut);
        free(text);
    }
}
END_TEST

/* Changes that keep most of the JSON whole: digits for digits, so that ids, sizes and times go wrong. */
START_TEST(good_files_with_bytes_changed)
{
    struct rand_state r = {4711};
    int accepted = 0, round;
    size_t i;

    for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
        size_t len;
        char *text = slurp(TEST_DIR "/golden", good[i].file, &len), *bad = malloc(len + 1);

        for (round = 0; round < 3000; round++) {
            int changes = 1 + rand_below(&r, 4);

            memcpy(bad, text, len);
            while (changes) {
                size_t at = (size_t)rand_below(&r, (int)len);

                if (round % 4 == 0)
                    bad[at] = (char)rand_below(&r, 256);
                else if (bad[at] >= '0' && bad[at] <= '9')
                    bad[at] = (char)('0' + rand_below(&r, 10));
                else
                    continue;
                changes--;
            }
            accepted += feed(good[i].as, bad, len);
        }
        free(text);
        free(bad);
    }
    ck_assert_int_gt(accepted, 100);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("readers");
    TCase *t = tcase_create("readers");
    SRunner *r;
    int failed;

    tcase_set_timeout(t, 200);
    tcase_add_test(t, broken_files);
    tcase_add_test(t, good_files_and_their_truncations);
    tcase_add_test(t, good_files_with_bytes_changed);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
