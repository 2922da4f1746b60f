/* host.c: the least of what the machine and every memory cgroup on the path allow, in trees of files laid out as Linux does; other
 * processes' pinned memory, told by their status pages. */
#include "policy/memory/host.h"
#include "policy/process/status.h"

#include <check.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char root[64];
static const uint64_t M = 1 << 20;

static void fill(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void group(const char *dir, bool v2, const char *limit, uint64_t used, uint64_t cache)
{
    char name[256], text[128];
    snprintf(name, sizeof name, "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    fill(name, limit);
    snprintf(name, sizeof name, "%s/%s", dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)used);
    fill(name, text);
    snprintf(name, sizeof name, "%s/memory.stat", dir);
    snprintf(text, sizeof text, "anon 5\n%sinactive_file %llu\nactive_file 77\n", v2 ? "" : "total_", (unsigned long long)cache);
    fill(name, text);
}

static void set_up(void)
{
    strcpy(root, "/tmp/remat-host-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    fill("/proc/meminfo", "MemTotal:  9000000 kB\nMemFree:  10 kB\nMemAvailable:    1048576 kB\n");
}

static void tear_down(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf %s", root);
    ck_assert_int_eq(system(cmd), 0);
}

#define V2_MOUNT "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

START_TEST(machine_alone)
{
    ck_assert_uint_eq(host_free_bytes(root), 1024 * M);
    fill("/proc/self/cgroup", "0::/user.slice\n");
    ck_assert_uint_eq(host_free_bytes(root), 1024 * M); /* no mount */
    fill("/proc/self/mountinfo", V2_MOUNT);
    ck_assert_uint_eq(host_free_bytes(root), 1024 * M); /* no such folder */
    fill("/proc/meminfo", "");
    ck_assert_uint_gt(host_free_bytes(root), 0);
}
END_TEST

START_TEST(nested_groups_of_version_2)
{
    fill("/proc/self/mountinfo", "30 23 0:27 / /sys/fs rw - tmpfs tmpfs rw\n" V2_MOUNT);
    fill("/proc/self/cgroup", "0::/job/step/task\n");
    group("/sys/fs/cgroup/job/step/task", true, "max\n", 10 * M, 0);
    ck_assert_uint_eq(host_free_bytes(root), 1024 * M);
    group("/sys/fs/cgroup/job/step", true, "629145600\n", 300 * M, 100 * M); /* 600 M, 200 of them taken for good */
    ck_assert_uint_eq(host_free_bytes(root), 400 * M);
    group("/sys/fs/cgroup/job", true, "524288000\n", 350 * M, 0); /* the parent's is lower */
    ck_assert_uint_eq(host_free_bytes(root), 150 * M);
    group("/sys/fs/cgroup/job/step/task", true, "8388608\n", 10 * M, 0); /* past it already */
    ck_assert_uint_eq(host_free_bytes(root), 0);
    group("/sys/fs/cgroup/job/step/task", true, "max\n", 10 * M, 0);
    fill("/sys/fs/cgroup/job/step/task/memory.high", "62914560\n"); /* from there on the kernel slows it down */
    ck_assert_uint_eq(host_free_bytes(root), 50 * M);
}
END_TEST

START_TEST(version_1_beside_version_2)
{
    fill("/proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                                 "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                                 "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    fill("/proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/a/b\n0::/\n");
    group("/sys/fs/cgroup/memory", false, "9223372036854771712\n", 5000 * M, 0);
    group("/sys/fs/cgroup/memory/a", false, "9223372036854771712\n", 5000 * M, 0);
    ck_assert_uint_eq(host_free_bytes(root), 1024 * M);
    group("/sys/fs/cgroup/memory/a", false, "209715200\n", 100 * M, 50 * M);
    ck_assert_uint_eq(host_free_bytes(root), 150 * M);
    group("/sys/fs/cgroup/cpu/a/b", false, "1\n", 0, 0); /* not this hierarchy */
    ck_assert_uint_eq(host_free_bytes(root), 150 * M);
}
END_TEST

/* A container sees its own part of the tree at the mount point, and a path that names it as the host does, or nothing at all. */
START_TEST(containers)
{
    group("/sys/fs/cgroup/my groups", true, "209715200\n", 0, 0);
    fill("/proc/self/mountinfo", "31 23 0:28 /docker/abc /sys/fs/cgroup/my\\040groups rw master:1 - cgroup2 cgroup rw\n");
    fill("/proc/self/cgroup", "0::/docker/abc\n");
    ck_assert_uint_eq(host_free_bytes(root), 200 * M);
    group("/sys/fs/cgroup/my groups/inner", true, "104857600\n", 0, 0);
    fill("/proc/self/cgroup", "0::/docker/abc/inner\n");
    ck_assert_uint_eq(host_free_bytes(root), 100 * M);
    fill("/proc/self/cgroup", "0::/../other\n");
    ck_assert_uint_eq(host_free_bytes(root), 200 * M);
    fill("/proc/self/cgroup", "0::\n5:memory\nnonsense\n");
    ck_assert_uint_eq(host_free_bytes(root), 200 * M);
}
END_TEST

/* Whatever the order in which processes come, together they keep to half. */
START_TEST(shares)
{
    const uint64_t all = 1000 * M;
    for (int n = 1; n <= 8; n++) {
        uint64_t has[8] = {0}, sum = 0;
        for (int round = 0; round < 40; round++)
            for (int i = 0; i < n; i++) { /* each takes 20 M where it may */
                uint64_t cap = host_cap_of(all - sum, has[i], sum - has[i], 0);
                if (has[i] + 20 * M <= cap) {
                    has[i] += 20 * M;
                    sum += 20 * M;
                }
            }
        ck_assert_uint_le(sum, all / 2);
        ck_assert_uint_ge(sum, all / 2 - 20 * M);
    }
    ck_assert_uint_eq(host_cap_of(all, 0, 0, 300 * M), 300 * M);       /* the user's word */
    ck_assert_uint_eq(host_cap_of(all, 0, 0, 3000 * M), all - 64 * M); /* but not what would get somebody killed */
    ck_assert_uint_eq(host_cap_of(10 * M, 30 * M, 0, 3000 * M), 30 * M);
    ck_assert_uint_eq(host_cap_of(10 * M, 0, 500 * M, 0), 0);
}
END_TEST

START_TEST(others)
{
    setenv("REMAT_STATUS_DIR", root, 1);
    chmod(root, 0700);
    int up[2], down[2];
    ck_assert_int_eq(pipe(up), 0);
    ck_assert_int_eq(pipe(down), 0);
    struct status_page *mine = status_open();
    ck_assert_ptr_nonnull(mine);
    status_store(&status_add_device(mine, 0, "", NULL, 0)->swapped_bytes, 5 * M);
    ck_assert_uint_eq(host_others_bytes(), 0);
    pid_t child[2];
    for (int i = 0; i < 2; i++)
        if (!(child[i] = fork())) {
            struct status_page *s = status_open();
            char c;
            /* told by device */
            status_store(&status_add_device(s, 0, "", NULL, 0)->swapped_bytes, (uint64_t)(i + 1) * 60 * M);
            status_store(&status_add_device(s, 1, "", NULL, 0)->swapped_bytes, (uint64_t)(i + 1) * 40 * M);
            _exit(write(up[1], "x", 1) != 1 || read(down[0], &c, 1) != 1);
        }
    char c;
    ck_assert(read(up[0], &c, 1) == 1 && read(up[0], &c, 1) == 1);
    fill("/123456789", "short");
    ck_assert_uint_eq(host_others_bytes(), 300 * M);
    kill(child[1], SIGKILL); /* its page stays, its memory does not */
    waitpid(child[1], NULL, 0);
    ck_assert_uint_eq(host_others_bytes(), 100 * M);
    ck_assert_int_eq(write(down[1], "x", 1), 1);
    waitpid(child[0], NULL, 0);
    ck_assert_uint_eq(host_others_bytes(), 0);
    status_close(mine);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("host");
    TCase *t = tcase_create("host");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, machine_alone);
    tcase_add_test(t, nested_groups_of_version_2);
    tcase_add_test(t, version_1_beside_version_2);
    tcase_add_test(t, containers);
    tcase_add_test(t, shares);
    tcase_add_test(t, others);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
