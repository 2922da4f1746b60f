/* conf.c, dmem.c: what the machine allows: the file of maxima, line by line, and the kernel's files. */
#include "tracer/machine/conf.h"
#include "tracer/machine/dmem.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/remat-machine-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* alice: user 1001, in the groups 50 and 60 */
static const gid_t groups[] = {50, 60};
static const struct conf_who alice = {.uid = 1001, .user = "alice", .groups = groups, .n_groups = 2};

static struct conf c;
static void read_text(const char *text)
{
    char path[256];
    put("conf", text);
    snprintf(path, sizeof path, "%s/conf", dir);
    ck_assert_int_eq(conf_read(path, &alice, &c), 0);
}

enum { GIB = 1 << 30 };
#define DEVICE (80ull * GIB)

static uint64_t max_of(const char *text)
{
    uint64_t b = 0;
    read_text(text);
    ck_assert_msg(!c.n_bad, "%s: %s", text, c.bad);
    return conf_least(c.max, c.n_max, DEVICE, &b) ? b : 0;
}

START_TEST(the_most_particular_rule)
{
    ck_assert_uint_eq(max_of(""), 0);
    ck_assert_uint_eq(max_of("# nothing\n\n   \t\n"), 0);
    ck_assert_uint_eq(max_of("max everyone 12G\n"), 12ull * GIB);
    ck_assert_uint_eq(max_of("max everyone 50%  # half\n"), 40ull * GIB);
    ck_assert_uint_eq(max_of("max everyone 12G"), 12ull * GIB); /* no line end */
    ck_assert_uint_eq(max_of("max user bob 1G\n"), 0);
    ck_assert_uint_eq(max_of("max user alice 20G\nmax everyone 1G\n"), 20ull * GIB);
    ck_assert_uint_eq(max_of("max everyone 1G\nmax user 1001 20G\n"), 20ull * GIB);
    ck_assert_uint_eq(max_of("max group 60 8G\nmax everyone 90G\n"), 8ull * GIB);
    ck_assert_uint_eq(max_of("max group 50 8G\nmax group 60 6G\nmax group 70 1G\n"), 6ull * GIB);
    ck_assert_uint_eq(max_of("max group 50 10%\nmax group 60 9G\n"), 8ull * GIB); /* the smaller on this device */
    ck_assert_uint_eq(max_of("max group 50 8G\nmax user alice none\n"), 0);
    ck_assert(!conf_holds(&c));
    ck_assert_uint_eq(max_of("max user alice 5G\nmax user alice 4G\n"), 4ull * GIB);
    ck_assert(conf_holds(&c));
    ck_assert_uint_eq(max_of("max group no-such-group-anywhere 1G\n"), 0);
}
END_TEST

/* What all of a user's programs may have together: ranked by itself, and a rule that holds. */
START_TEST(totals)
{
    uint64_t b = 0;
    read_text("total everyone 50%\ntotal user alice 12G\nmax everyone 20G\n");
    ck_assert_uint_eq(c.n_total, 1);
    ck_assert_uint_eq(c.n_max, 1);
    ck_assert_ptr_nonnull(strstr(conf_least(c.total, c.n_total, DEVICE, &b)->from, "/conf:2, user alice"));
    ck_assert_uint_eq(b, 12ull * GIB);
    read_text("total group 50 8G\n");
    ck_assert_ptr_nonnull(strstr(conf_holds(&c)->from, "/conf:1, group 50"));
    read_text("total user alice none\nmax user alice none\n");
    ck_assert_ptr_null(conf_holds(&c));
}
END_TEST

START_TEST(both_words)
{
    uint64_t b = 0;
    read_text("max everyone 20G\nlimit group 50 10G\nlimit everyone 1G\n");
    ck_assert_uint_eq(c.n_max, 1);
    ck_assert_uint_eq(c.n_limit, 1);
    const struct conf_rule *r = conf_least(c.limit, c.n_limit, DEVICE, &b);
    ck_assert_uint_eq(b, 10ull * GIB);
    ck_assert_ptr_nonnull(strstr(r->from, "/conf:2, group 50"));
}
END_TEST

static const struct {
    const char *text, *says;
} bad_lines[] = {
    {"maximum everyone 1G\n", ":1:1: 'maximum' is neither max, total nor limit"},
    {"max everyone 1G\n  mx user alice 1G\n", ":2:3: 'mx' is neither"},
    {"max\n", ":1:1: after max comes user NAME, group NAME or everyone"},
    {"max alice 1G\n", ":1:5: after max comes"},
    {"max user alice\n", ":1:10: a size is missing"},
    {"max everyone\n", ":1:5: a size is missing"},
    {"max everyone 1G 2G\n", ":1:17: nothing comes after the size"},
    {"max user alice 1G extra words\n", ":1:19: nothing comes after the size"},
    {"max everyone lots\n", ":1:14: 'lots' is no size: 12G, 40% or none"},
    {"max everyone 0\n", ":1:14: '0' is out of range"},
    {"max everyone 101%\n", ":1:14: '101%' is out of range"},
    {"max user alice -1\n", ":1:16: '-1' is no size"},
};

START_TEST(bad_lines_are_named)
{
    read_text(bad_lines[_i].text);
    ck_assert_msg(strstr(c.bad, bad_lines[_i].says) != NULL, "%s: %s", bad_lines[_i].text, c.bad);
}
END_TEST

/* The lines that can be read count: a slip of the pen must not lift the others' maxima. */
START_TEST(the_others_hold)
{
    uint64_t b = 0;
    read_text("max everyone 1G\nrubbish\nmax user\nmax group 50 2G\n");
    ck_assert_uint_eq(c.n_bad, 2);
    ck_assert_ptr_nonnull(conf_least(c.max, c.n_max, DEVICE, &b));
    ck_assert_uint_eq(b, 2ull * GIB);
    char text[2000] = "max everyone 3G\nmax user ";
    memset(text + strlen(text), 'x', 900);
    strcat(text, " 1G\nmax everyone 2G\n");
    read_text(text);
    ck_assert_ptr_nonnull(strstr(c.bad, ":2:512: the line is longer"));
    ck_assert_ptr_nonnull(conf_least(c.max, c.n_max, DEVICE, &b));
    ck_assert_uint_eq(b, 2ull * GIB);
    FILE *f;
    char path[256];
    snprintf(path, sizeof path, "%s/conf", dir);
    ck_assert_ptr_nonnull(f = fopen(path, "w"));
    for (int i = 0; i < CONF_RULES + 5; i++)
        fprintf(f, "max everyone %dG\n", i + 1);
    fclose(f);
    ck_assert_int_eq(conf_read(path, &alice, &c), 0);
    ck_assert_uint_eq(c.n_max, CONF_RULES);
    ck_assert_ptr_nonnull(strstr(c.bad, "more than 64 rules"));
}
END_TEST

START_TEST(files)
{
    ck_assert_int_eq(conf_read("/nonexistent/remat.conf", &alice, &c), 0);
    ck_assert(!conf_holds(&c));
    ck_assert_int_lt(conf_read(dir, &alice, &c), 0); /* a folder */
    char path[256], text[64];
    snprintf(path, sizeof path, "%s/conf", dir);
    snprintf(text, sizeof text, "max user %u 3G\n", (unsigned)getuid());
    put("conf", text);
    ck_assert_int_eq(conf_read_own(path, &c), 0);
    ck_assert(conf_holds(&c));
    snprintf(text, sizeof text, "max group %u 3G\n", (unsigned)getgid());
    put("conf", text);
    ck_assert_int_eq(conf_read_own(path, &c), 0);
    ck_assert(conf_holds(&c));
}
END_TEST

/* ---- the kernel's ------------------------------------------------------------------------------------------------------ */

static struct dmem m;
static void look(const char *pci)
{
    char path[256];
    snprintf(path, sizeof path, "%s/a/b", dir);
    dmem_read(path, pci, &m);
}

START_TEST(dmem)
{
    char path[256];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, i ? "a/b" : "a");
        ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
    look("0000:3b:00.0");
    ck_assert_uint_eq(m.max_bytes, DMEM_NONE);
    ck_assert_uint_eq(m.room_bytes, DMEM_NONE);
    put("a/b/dmem.max", "nvidia/0000:3a:00.0/vidmem 1\nnvidia/0000:3b:00.0/vidmem 8589934592\n");
    put("a/b/dmem.current", "nvidia/0000:3b:00.0/vidmem 1073741824\n");
    look("0000:3B:00.0"); /* CUDA's spelling */
    ck_assert_uint_eq(m.max_bytes, 8589934592ull);
    ck_assert_uint_eq(m.room_bytes, 7516192768ull);
    ck_assert_ptr_nonnull(strstr(m.from, "/a/b/dmem.max"));
    look("00000000:3b:00.0"); /* NVML's */
    ck_assert_uint_eq(m.max_bytes, 8589934592ull);
    look("0000:3b:00.1");
    ck_assert_uint_eq(m.max_bytes, DMEM_NONE);
    /* a group above binds as well, and what its others use is gone */
    put("a/dmem.max", "nvidia/0000:3b:00.0/vidmem 4294967296\n");
    put("a/dmem.current", "nvidia/0000:3b:00.0/vidmem 3221225472\n");
    look("0000:3b:00.0");
    ck_assert_uint_eq(m.max_bytes, 4294967296ull);
    ck_assert_uint_eq(m.room_bytes, 1073741824ull);
    ck_assert_ptr_nonnull(strstr(m.from, "/a/dmem.max"));
    put("a/dmem.current", "nvidia/0000:3b:00.0/vidmem 5221225472\n"); /* over already */
    look("0000:3b:00.0");
    ck_assert_uint_eq(m.room_bytes, 0);
    put("a/dmem.max", "nvidia/0000:3b:00.0/vidmem max\n");
    put("a/b/dmem.max", "nvidia/0000:3b:00.0/vidmem max\n");
    put("a/b/dmem.min", "nvidia/0000:3b:00.0/vidmem 2147483648\n");
    look("0000:3b:00.0");
    ck_assert_uint_eq(m.max_bytes, DMEM_NONE);
    ck_assert_uint_eq(m.soft_bytes, 2147483648ull);
    put("a/b/dmem.min", "nvidia/0000:3b:00.0/vidmem 0\n");
    put("a/b/dmem.low", "drm/0000:3b:00.0/vram0 1048576\n");
    look("0000:3b:00.0");
    ck_assert_uint_eq(m.soft_bytes, 1048576);
    put("a/b/dmem.low", "drm/0000:3b:00.0/stolen 1048576\nnonsense\n/\n\nvidmem 7\nnvidia/0000:3b:00.0/vidmem many\n");
    look("0000:3b:00.0");
    ck_assert_uint_eq(m.soft_bytes, 0);
}
END_TEST

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    Suite *s = suite_create("machine");
    TCase *t = tcase_create("conf");
    tcase_add_test(t, the_most_particular_rule);
    tcase_add_test(t, totals);
    tcase_add_test(t, both_words);
    tcase_add_loop_test(t, bad_lines_are_named, 0, sizeof bad_lines / sizeof bad_lines[0]);
    tcase_add_test(t, the_others_hold);
    tcase_add_test(t, files);
    suite_add_tcase(s, t);
    t = tcase_create("dmem");
    tcase_add_test(t, dmem);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) || failed ? 1 : 0;
}
