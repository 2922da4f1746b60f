/* status.c: a page appears with its process, carries what is stored to it, and goes with it, however the process ends. */
#include "policy/process/status.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[] = "/tmp/remat-status-XXXXXX";

static int entries(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
    if (d)
        closedir(d);
    return n;
}

/* Whether somebody holds the lock of DIR/pid. */
static int is_locked(pid_t pid)
{
    char path[128];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof path, "%s/%d", dir, (int)pid);
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_GETLK, &lock), 0);
    close(fd);
    return lock.l_type != F_UNLCK;
}

START_TEST(comes_and_goes)
{
    struct status_page *s = status_open();
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(s->pid, getpid());
    ck_assert_uint_eq(s->magic, STATUS_MAGIC);
    ck_assert_int_gt((int)strlen(s->command), 0);
    struct status_device *d = status_add_device(s, 3, "0000:3b:00.0", (const uint8_t *)"\x01\x23\x45\x67\x89\xab\xcd\xef\xff\0\0\0\0\0\0\x10", 7);
    status_set_mode(d, "rehearse");
    uint64_t mode = d->mode_text;
    ck_assert_int_eq(memcmp(&mode, "rehearse", 8), 0);
    ck_assert_str_eq(d->uuid, "0123456789abcdefff00000000000010");
    ck_assert(d->device_bytes == 7 && d->price_ppm == STATUS_NO_PRICE && *s->host);
    ck_assert_int_eq(entries(), 1);
    status_close(s);
    ck_assert_int_eq(entries(), 0);
    status_close(NULL);
}
END_TEST

/* The regression this guards: a lock that a forked child inherits would keep a dead parent's page alive. */
START_TEST(killed_owner_with_living_child)
{
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    pid_t owner = fork();
    if (owner == 0) {
        if (!status_open())
            _exit(1);
        pid_t child = fork();
        if (child == 0) { /* outlives its parent until the pipe's other end goes */
            close(fds[1]);
            pause();
        }
        if (write(fds[1], &child, sizeof child) < 0)
            _exit(1);
        pause();
    }
    pid_t child = 0;
    ck_assert_int_eq(read(fds[0], &child, sizeof child), (int)sizeof child);
    ck_assert_int_eq(is_locked(owner), 1);
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
    ck_assert_int_eq(is_locked(owner), 0);
    kill(child, SIGKILL);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* A child that forgets the page neither removes it nor unlocks it. */
START_TEST(forked_child_forgets)
{
    int before = entries(); /* the killed owner's page is still there: readers remove it */
    struct status_page *s = status_open();
    pid_t child = fork();
    if (child == 0) {
        status_after_fork_child(s);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    ck_assert_int_eq(entries(), before + 1);
    pid_t watcher = fork(); /* a process does not see its own locks */
    if (watcher == 0) {
        char path[128];
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        snprintf(path, sizeof path, "%s/%d", dir, (int)getppid());
        int fd = open(path, O_RDWR);
        _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 0 : 1);
    }
    int status = -1;
    waitpid(watcher, &status, 0);
    ck_assert_int_eq(status, 0);
    struct status_device *d = status_add_device(s, 0, "", NULL, 0);
    status_store(&d->in_use_bytes, 5);
    ck_assert_uint_eq(s->device[0].in_use_bytes, 5);
    status_close(s);
}
END_TEST

/* Devices up to the room there is, then none; the time of an iteration is a mean. */
START_TEST(devices_and_iterations)
{
    struct status_page *s = status_open();
    for (int i = 0; i < STATUS_DEVICES; i++) {
        struct status_device *d = status_add_device(s, i, "0000:00:00.0 and more than fits", NULL, 0);
        ck_assert_ptr_nonnull(d);
        ck_assert_uint_eq(strlen(d->pci), STATUS_PCI - 1);
    }
    ck_assert_ptr_null(status_add_device(s, 99, "", NULL, 0));
    ck_assert_ptr_null(status_add_device(NULL, 0, "", NULL, 0));
    ck_assert_uint_eq(s->n_devices, STATUS_DEVICES);
    struct status_device *d = &s->device[0];
    status_iteration(d, 1);
    ck_assert_uint_eq(d->iteration_ns, 0); /* one alone has no length */
    d->last_iteration_ns -= 1000000000u;
    status_iteration(d, 2);
    ck_assert(d->iteration_ns >= 1000000000u && d->iterations == 2);
    uint64_t one = d->iteration_ns;
    d->last_iteration_ns -= 5 * one;
    status_iteration(d, 3);
    ck_assert(d->iteration_ns >= 2 * one && d->iteration_ns < 4 * one + 4000000000u);
    status_close(s);
}
END_TEST

/* A folder that others may write to is not ours to publish in. */
START_TEST(refuses_a_strange_folder)
{
    ck_assert_int_eq(chmod(dir, 0777), 0);
    ck_assert_ptr_null(status_open());
    ck_assert_int_eq(chmod(dir, 0700), 0);
    setenv("REMAT_STATUS_DIR", "/proc/nowhere", 1);
    ck_assert_ptr_null(status_open());
}
END_TEST

int main(void)
{
    if (!mkdtemp(dir))
        return 1;
    setenv("REMAT_STATUS_DIR", dir, 1);
    Suite *s = suite_create("status");
    TCase *t = tcase_create("page");
    tcase_add_test(t, comes_and_goes);
    tcase_add_test(t, killed_owner_with_living_child);
    tcase_add_test(t, forked_child_forgets);
    tcase_add_test(t, devices_and_iterations);
    tcase_add_test(t, refuses_a_strange_folder);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(dir);
    return failed ? 1 : 0;
}
