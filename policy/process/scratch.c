/* scratch.c: see scratch.h. */
#include "policy/process/scratch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "remat-plan-"
enum { DRAWN = 6, LOCK_TEXT = 400 };

static const char lock_name[] = "lock", errors_name[] = "plan.err";

/* The i-th folder for temporary files ($TMPDIR first); NULL: no more. */
static const char *base(int i)
{
    static const char *const others[] = {"/tmp", "/var/tmp", "/dev/shm"};
    const char *own = getenv("TMPDIR");
    if (i == 0)
        return own && *own == '/' && strlen(own) < SCRATCH_PATH - 64 ? own : others[0];
    return i <= 3 ? others[i - 1] : NULL;
}

static int open_folder(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- remat's own files ---------------------------------------------------------------------------------------------- */

static bool all_of(const char *s, size_t n, int (*is)(int))
{
    for (size_t i = 0; i < n; i++)
        if (!s[i] || !is((unsigned char)s[i]))
            return false;
    return n > 0;
}

/* The process number in a folder's name; 0: the name has another form. */
static long pid_of(const char *name)
{
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
        return 0;
    const char *digits = name + sizeof PREFIX - 1;
    const size_t n = strspn(digits, "0123456789");
    const char *drawn = digits + n + 1;
    if (!n || n > 9 || digits[0] == '0' || digits[n] != '-' || !all_of(drawn, DRAWN, isalnum) || drawn[DRAWN])
        return 0;
    return strtol(digits, NULL, 10);
}

/* A file's name that this process, `remat plan` or output.c uses; output.c's is ".remat-", sixteen hexadecimal digits, ".tmp". */
static bool is_ours(const char *name)
{
    static const char *const files[] = {"trace.json", "plan.json", "plan.json.best", errors_name, lock_name};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(name, files[i]))
            return true;
    return !strncmp(name, ".remat-", 7) && all_of(name + 7, 16, isxdigit) && !strcmp(name + 23, ".tmp");
}

static void lock_text(char to[LOCK_TEXT], const char *name, const struct stat *folder)
{
    snprintf(to, LOCK_TEXT, "remat plan 1 %s %ju %ju\n", name, (uintmax_t)folder->st_dev, (uintmax_t)folder->st_ino);
}

static int take_lock(int fd)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_SETLK, &l) ? -errno : 0;
}

/* Calls `each` with every name in the folder until `each` returns false. `dir` stays open. True: every call returned true. */
static bool every(int dir, bool (*each)(int dir, const char *name))
{
    const int fd = open_folder(dir, ".");
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    bool all = d != NULL;
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; all && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            all = each(dir, e->d_name);
    if (d)
        closedir(d);
    return all;
}

static bool file_of_ours(int dir, const char *name)
{
    struct stat st;
    return is_ours(name) && !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* The lock goes last (unlink_all): its file shows that the others are remat's. */
static bool unlink_one(int dir, const char *name)
{
    if (strcmp(name, lock_name) != 0 && is_ours(name))
        unlinkat(dir, name, 0);
    return true;
}

static void unlink_all(int dir)
{
    every(dir, unlink_one);
    unlinkat(dir, lock_name, 0);
}

/* ---- folders left by killed processes -------------------------------------------------------------------------------- */

/* Whether a process that has ended left the folder behind. If so the folder's lock is held. The caller closes *lock if it is >= 0. */
static bool is_leaving(int dir, const char *name, int *lock)
{
    struct stat st, file;
    char want[LOCK_TEXT], got[LOCK_TEXT] = "";
    *lock = -1;
    if (fstat(dir, &st) || st.st_uid != geteuid() || st.st_mode & 077)
        return false;
    *lock = openat(dir, lock_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (*lock < 0 || fstat(*lock, &file) || !S_ISREG(file.st_mode) || file.st_uid != geteuid() || file.st_nlink != 1)
        return false;
    lock_text(want, name, &st);
    return pread(*lock, got, sizeof got - 1, 0) == (ssize_t)strlen(want) && !strcmp(got, want) && !take_lock(*lock) && every(dir, file_of_ours);
}

static void sweep(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && (e = readdir(d));) {
        const long pid = pid_of(e->d_name);
        /* This process's own folders are left out: to close a second descriptor of a lock's file would drop the lock. */
        if (pid <= 0 || pid == getpid() || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        int lock = -1;
        const int dir = open_folder(fd, e->d_name);
        if (dir >= 0 && is_leaving(dir, e->d_name, &lock)) {
            unlink_all(dir);
            unlinkat(fd, e->d_name, AT_REMOVEDIR);
        }
        if (lock >= 0)
            close(lock);
        if (dir >= 0)
            close(dir);
    }
    if (d)
        closedir(d);
}

/* ---- this process's own ---------------------------------------------------------------------------------------------- */

/* A folder without a lock (on a file system that has none) works too, but stays if the process is killed. */
static void make_lock(struct scratch *s, int dir, const struct stat *st)
{
    char text[LOCK_TEXT];
    s->lock = openat(dir, lock_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return;
    lock_text(text, strrchr(s->path, '/') + 1, st); /* the lock is taken before its text is written: no process finds the text complete and the lock free */
    if (take_lock(s->lock) || write(s->lock, text, strlen(text)) != (ssize_t)strlen(text)) {
        unlinkat(dir, lock_name, 0);
        close(s->lock);
        s->lock = -1;
    }
}

static int make_in(struct scratch *s, const char *path, bool keep)
{
    struct stat st;
    if (stat(path, &st))
        return -errno;
    if (st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX))
        return -EACCES;
    sweep(path);
    snprintf(s->path, sizeof s->path, "%s/" PREFIX "%ld-XXXXXX", path, (long)getpid());
    if (!mkdtemp(s->path))
        return -errno;
    const int dir = open_folder(AT_FDCWD, s->path);
    if (dir < 0 || fstat(dir, &st) || st.st_uid != geteuid()) {
        const int rc = dir < 0 && errno ? -errno : -EACCES;
        if (dir >= 0)
            close(dir);
        rmdir(s->path);
        return rc;
    }
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    if (!keep)
        make_lock(s, dir, &st);
    close(dir);
    return 0;
}

int scratch_make(struct scratch *s, bool keep)
{
    int first = 0;
    for (int i = 0; base(i); i++) {
        *s = (struct scratch){.lock = -1};
        const int rc = make_in(s, base(i), keep);
        if (!rc)
            return 0;
        first = first ? first : rc;
    }
    s->path[0] = '\0';
    return first;
}

void scratch_remove(struct scratch *s, bool keep)
{
    struct stat st;
    if (!s->path[0])
        return;
    const int dir = open_folder(AT_FDCWD, s->path);
    /* a folder of another process may have this path by now: such a folder stays */
    if (dir >= 0 && fstat(dir, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino) {
        if (keep) {
            unlinkat(dir, errors_name, 0);
        } else {
            unlink_all(dir);
            rmdir(s->path);
        }
    }
    if (dir >= 0)
        close(dir);
    if (s->lock >= 0)
        close(s->lock);
    *s = (struct scratch){.lock = -1};
}
