/* Files as output.h promises them: whole or not at all, nothing destroyed, no process over another's. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/output.h"

static char dir[64];
static char err[4400];

static void setup(void)
{
    strcpy(dir, "/tmp/remat-output-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    unsetenv("REMAT_RUN_STARTED");
    unsetenv("RANK");
    unsetenv("SLURM_PROCID");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("PMI_RANK");
}

static void teardown(void)
{
    char command[128];
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static const char *get(const char *path)
{
    static char text[256];
    FILE *f = fopen(path, "r");
    if (!f)
        return "(none)";
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static int say(const char *path, unsigned flags, const char *text)
{
    struct output o;
    int rc = output_open(&o, path, flags, err, sizeof err);
    if (rc)
        return rc;
    fputs(text, o.f);
    return output_commit(&o, err, sizeof err);
}

static int files_here(void)
{
    FILE *p = popen("ls -A | wc -l", "r");
    int n = -1;
    ck_assert_int_eq(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

START_TEST(a_file_is_replaced_and_keeps_its_permissions)
{
    struct stat st;
    put("a", "old");
    ck_assert_int_eq(chmod("a", 0640), 0);
    ck_assert_int_eq(say("a", 0, "new"), 0);
    ck_assert_str_eq(get("a"), "new");
    ck_assert_int_eq(stat("a", &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0640);
    ck_assert_int_eq(say("b", 0, "fresh"), 0);
    ck_assert_int_eq(stat("b", &st), 0);
    mode_t mask = umask(0);
    umask(mask);
    ck_assert_int_eq(st.st_mode & 0777, 0666 & ~mask);
    ck_assert_int_eq(files_here(), 2);
}
END_TEST

START_TEST(until_the_end_the_old_file_stands)
{
    struct output o;
    put("a", "old");
    ck_assert_int_eq(output_open(&o, "a", 0, err, sizeof err), 0);
    fputs("half", o.f);
    fflush(o.f);
    ck_assert_str_eq(get("a"), "old");
    output_abandon(&o);
    ck_assert_str_eq(get("a"), "old");
    ck_assert_int_eq(files_here(), 1);
}
END_TEST

/* A disk that fills up, as a limit of file size makes it. */
START_TEST(a_failed_write_leaves_the_old_file)
{
    struct rlimit small = {1000, RLIM_INFINITY}, before;
    struct output o;
    put("a", "old");
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    ck_assert_int_eq(output_open(&o, "a", 0, err, sizeof err), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 100000; i++)
        fputs("much text\n", o.f);
    int rc = output_commit(&o, err, sizeof err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_lt(rc, 0);
    ck_assert_ptr_nonnull(strstr(err, "a: cannot write: "));
    ck_assert_str_eq(get("a"), "old");
    ck_assert_int_eq(files_here(), 1);
}
END_TEST

START_TEST(symlinks_are_followed_and_kept)
{
    struct stat st;
    ck_assert_int_eq(mkdir("deep", 0777), 0);
    put("deep/a", "old");
    ck_assert_int_eq(symlink("deep/a", "l"), 0);
    ck_assert_int_eq(symlink("l", "m"), 0);
    ck_assert_int_eq(symlink("../fresh", "deep/d"), 0);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    ck_assert_int_eq(say("m", 0, "new"), 0);
    ck_assert_str_eq(get("deep/a"), "new");
    ck_assert_int_eq(say("deep/d", 0, "made"), 0);
    ck_assert_str_eq(get("fresh"), "made");
    static const char *const links[] = {"l", "m", "deep/d"};
    for (int i = 0; i < 3; i++)
        ck_assert(lstat(links[i], &st) == 0 && S_ISLNK(st.st_mode));
    ck_assert_int_eq(say("loop", 0, "x"), -ELOOP);
}
END_TEST

START_TEST(devices_and_pipes_are_written_to)
{
    struct stat st;
    /* nodes of its own where it may make them: this test must not be what breaks the machine's */
    const int made = mknod("null", S_IFCHR | 0666, 1 << 8 | 3) == 0 && mknod("full", S_IFCHR | 0666, 1 << 8 | 7) == 0;
    const char *null = made ? "null" : "/dev/null", *full = made ? "full" : "/dev/full";
    ck_assert_int_eq(say(null, 0, "x"), 0);
    ck_assert(stat(null, &st) == 0 && S_ISCHR(st.st_mode));
    ck_assert_int_eq(symlink(null, "n"), 0);
    ck_assert_int_eq(say("n", 0, "x"), 0);
    ck_assert(stat(null, &st) == 0 && S_ISCHR(st.st_mode));
    ck_assert_int_eq(say(full, 0, "x"), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(err, "full: cannot write: No space left on device"));
    ck_assert(stat(full, &st) == 0 && S_ISCHR(st.st_mode));
    ck_assert_int_eq(mkfifo("p", 0600), 0);
    ck_assert_int_eq(say("p", OUTPUT_NO_WAIT, "x"), -ENXIO);
    int fd = open("p", O_RDWR);
    char got[8] = "";
    ck_assert_int_eq(say("p", 0, "word"), 0);
    ck_assert_int_eq(read(fd, got, sizeof got - 1), 4);
    ck_assert_str_eq(got, "word");
    ck_assert(lstat("p", &st) == 0 && S_ISFIFO(st.st_mode));
    ck_assert_int_eq(say(dir, 0, "x"), -EISDIR);
    ck_assert_int_eq(say("", 0, "x"), -ENOENT);
    ck_assert_int_eq(say("none/a", 0, "x"), -ENOENT);
}
END_TEST

/* /dev/fd/N of a log: what stands in it stays. */
START_TEST(a_descriptor_is_no_name)
{
    char name[32];
    put("log", "before ");
    int fd = open("log", O_WRONLY | O_APPEND);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    ck_assert_int_eq(say(name, 0, "after"), 0);
    ck_assert_str_eq(get("log"), "before after");
    close(fd);
    ck_assert_int_eq(say(name, 0, "x"), -EBADF);
}
END_TEST

/* Not as root, who may write anywhere. */
START_TEST(a_folder_that_takes_no_file)
{
    put("a", "a long old text");
    put("kept", "kept");
    ck_assert_int_eq(chmod("a", 0666), 0);
    ck_assert_int_eq(chmod("kept", 0444), 0);
    ck_assert_int_eq(chmod(".", 0555), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (getuid() == 0 && setuid(65534))
            _exit(9);
        _exit(say("a", 0, "new") ? 1 : say("kept", 0, "x") != -EACCES ? 2 : say("fresh", 0, "x") != -EACCES ? 3 : 0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(chmod(".", 0777), 0);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(get("a"), "new");
    ck_assert_str_eq(get("kept"), "kept");
    ck_assert_int_eq(files_here(), 2);
}
END_TEST

START_TEST(names_are_filled_in)
{
    char to[64], want[64];
    ck_assert_int_eq(output_expand("a-%p-%r%%%q%", to, sizeof to), 0);
    snprintf(want, sizeof want, "a-%ld-0%%%%q%%", (long)getpid());
    ck_assert_str_eq(to, want);
    /* under srun, whose variable torchrun's processes inherit: RANK, where there is one, is the finer word */
    setenv("SLURM_PROCID", "3", 1);
    ck_assert_int_eq(output_expand("%r", to, sizeof to), 0);
    ck_assert_str_eq(to, "3");
    setenv("RANK", "17", 1);
    ck_assert_int_eq(output_expand("%r", to, sizeof to), 0);
    ck_assert_str_eq(to, "17");
    unsetenv("SLURM_PROCID");
    setenv("RANK", "../../etc/x", 1);
    ck_assert_int_eq(output_expand("%r", to, sizeof to), 0);
    ck_assert_str_eq(to, "0");
    ck_assert_int_eq(output_expand("12345678", to, 8), -ENAMETOOLONG);
    ck_assert_int_eq(output_expand("1234567", to, 8), 0);
    ck_assert_int_eq(say("%p", 0, "x"), 0); /* only where it is asked for */
    ck_assert_str_eq(get("%p"), "x");
}
END_TEST

static void begin_run(void)
{
    char mark[64];
    output_run_mark(mark, sizeof mark);
    setenv("REMAT_RUN_STARTED", mark, 1);
}

static int in_child(const char *path, const char *text)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(say(path, OUTPUT_RUN, text) ? 1 : 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(a_second_process_of_the_run_gets_a_name_of_its_own)
{
    put("s", "an earlier run's");
    begin_run();
    ck_assert_int_eq(in_child("s", "first"), 0); /* what an earlier run left is replaced */
    ck_assert_str_eq(get("s"), "first");
    ck_assert_int_eq(in_child("s", "second"), 0);
    ck_assert_int_eq(say("s", OUTPUT_RUN, "third"), 0);
    ck_assert_int_eq(say("s", OUTPUT_RUN, "third, again"), 0); /* its own, over again */
    ck_assert_str_eq(get("s"), "first");
    ck_assert_str_eq(get("s.1"), "second");
    ck_assert_str_eq(get("s.2"), "third, again");
    ck_assert_int_eq(files_here(), 3);
    begin_run();
    ck_assert_int_eq(in_child("s", "another run's"), 0);
    ck_assert_str_eq(get("s"), "another run's");
    ck_assert_int_eq(files_here(), 3);
}
END_TEST

/* Runs one after the other, as quickly as may be: each finds the one before older than itself. */
START_TEST(runs_in_quick_succession)
{
    for (int i = 0; i < 50; i++) {
        begin_run();
        ck_assert_int_eq(in_child("s", "x"), 0);
        ck_assert_int_eq(files_here(), 1);
    }
}
END_TEST

START_TEST(processes_that_end_at_once)
{
    enum { N = 24 };
    for (int old = 0; old < 2; old++) {
        int go[2], status;
        ck_assert_int_eq(system("rm -f s*"), 0);
        if (old)
            put("s", "old");
        begin_run();
        ck_assert_int_eq(pipe(go), 0);
        for (int i = 0; i < N; i++)
            if (fork() == 0) {
                char text[16], c;
                snprintf(text, sizeof text, "%d", i);
                close(go[1]);
                if (read(go[0], &c, 1) != 0)
                    _exit(2);
                _exit(say("s", OUTPUT_RUN, text) ? 1 : 0);
            }
        close(go[0]);
        close(go[1]);
        for (int i = 0; i < N; i++) {
            ck_assert_int_gt(wait(&status), 0);
            ck_assert_int_eq(status, 0);
        }
        unsigned seen = 0;
        for (int i = 0; i < N; i++) {
            char name[16];
            snprintf(name, sizeof name, i ? "s.%d" : "s", i);
            seen |= 1u << atoi(get(name));
        }
        if (seen != (1u << N) - 1 || files_here() != N)
            ck_assert_int_ge(system("ls -lA --time-style=full-iso; grep -H . s*; env | grep REMAT_RUN"), 0);
        ck_assert_uint_eq(seen, (1u << N) - 1);
        ck_assert_int_eq(files_here(), N);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("output");
    TCase *t = tcase_create("output");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_file_is_replaced_and_keeps_its_permissions);
    tcase_add_test(t, until_the_end_the_old_file_stands);
    tcase_add_test(t, a_failed_write_leaves_the_old_file);
    tcase_add_test(t, symlinks_are_followed_and_kept);
    tcase_add_test(t, devices_and_pipes_are_written_to);
    tcase_add_test(t, a_descriptor_is_no_name);
    tcase_add_test(t, a_folder_that_takes_no_file);
    tcase_add_test(t, names_are_filled_in);
    tcase_add_test(t, a_second_process_of_the_run_gets_a_name_of_its_own);
    tcase_add_test(t, runs_in_quick_succession);
    tcase_add_test(t, processes_that_end_at_once);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
