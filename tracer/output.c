/* output.c: see output.h. */
#include "tracer/output.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum how { HOW_DESCRIPTOR, HOW_BESIDE, HOW_COLLECT, HOW_AS_IT_IS };
enum { NUMBERS = 9999, LINKS = 40, LOCK_TRIES = 2000 };

static int fault(char *err, size_t err_len, const char *name, int e)
{
    if (err_len)
        snprintf(err, err_len, "%s: cannot write: %s", !strcmp(name, "-") ? "standard output" : name, strerror(e));
    return -e;
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

int output_expand(const char *name, char *to, size_t room)
{
    const char *rank = getenv("RANK");
    size_t n = 0;
    if (!rank || !*rank || rank[strspn(rank, "0123456789")] || strlen(rank) > 9)
        rank = "0"; /* not a number: it must not lead the name elsewhere */
    for (; *name; name++) {
        char one[24] = {*name};
        const char *put = one;
        if (name[0] == '%' && name[1] == 'p')
            snprintf(one, sizeof one, "%ld", (long)getpid()), name++;
        else if (name[0] == '%' && name[1] == 'r')
            put = rank, name++;
        else if (name[0] == '%' && name[1] == '%')
            name++;
        const size_t more = strlen(put);
        if (n + more + 1 > room)
            return -ENAMETOOLONG;
        memcpy(to + n, put, more);
        n += more;
    }
    if (room)
        to[n] = '\0';
    return room ? 0 : -ENAMETOOLONG;
}

/* The descriptor that a name stands for, or -1. */
static int descriptor_of(const char *name)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (!strcmp(name, "-") || !strcmp(name, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(name, "/dev/stderr"))
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const size_t n = strlen(folders[i]);
        if (!strncmp(name, folders[i], n) && isdigit((unsigned char)name[n]) && strlen(name + n) < 10 &&
            !name[n + strspn(name + n, "0123456789")])
            return atoi(name + n);
    }
    return -1;
}

/* Follows symlinks at the end of `path`, in place; what the last one names need not exist. */
static int follow(char path[OUTPUT_PATH])
{
    char to[OUTPUT_PATH], joined[2 * OUTPUT_PATH];
    for (int i = 0; i < LINKS; i++) {
        const ssize_t n = readlink(path, to, sizeof to - 1);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : -errno; /* no link, or nothing there */
        to[n] = '\0';
        const char *slash = strrchr(path, '/');
        const int before = *to == '/' || !slash ? 0 : (int)(slash - path) + 1;
        snprintf(joined, sizeof joined, "%.*s%s", before, path, to);
        if (strlen(joined) >= OUTPUT_PATH)
            return -ENAMETOOLONG;
        strcpy(path, joined);
    }
    return -ELOOP;
}

/* The folder of `path`, with its slash: its length. 0: the current one. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

/* A file of a name that nobody has, in the target's folder. The name is short: the target's may be as long as names go. */
static int open_beside(struct output *o, mode_t mode)
{
    static _Atomic unsigned count;
    const size_t folder = folder_length(o->path);
    for (int tries = 0; tries < 100; tries++) {
        if ((size_t)snprintf(o->tmp, sizeof o->tmp, "%.*s.remat-%ld-%u.tmp", (int)folder, o->path, (long)getpid(), count++) >=
            sizeof o->tmp)
            return -ENAMETOOLONG;
        const int fd = open(o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            if (mode && fchmod(fd, mode & 07777)) {
                const int e = errno;
                close(fd);
                unlink(o->tmp);
                return -e;
            }
            return fd;
        }
        if (errno != EEXIST) {
            o->tmp[0] = '\0';
            return -errno;
        }
    }
    o->tmp[0] = '\0';
    return -EEXIST;
}

static int open_target(struct output *o)
{
    struct stat st;
    int rc = follow(o->path);
    if (rc)
        return rc;
    const int there = stat(o->path, &st) == 0;
    if (!there && errno != ENOENT)
        return -errno;
    if (there && S_ISDIR(st.st_mode))
        return -EISDIR;
    if (there && !S_ISREG(st.st_mode)) {
        o->how = HOW_AS_IT_IS;
        const int fd = open(o->path, O_WRONLY | O_NOCTTY | O_CLOEXEC | (o->flags & OUTPUT_NO_WAIT ? O_NONBLOCK : 0));
        if (fd >= 0 && o->flags & OUTPUT_NO_WAIT)
            fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        return fd < 0 ? -errno : fd;
    }
    if (there && access(o->path, W_OK))
        return -errno; /* a file that is write-protected stays, though its folder would allow a rename */
    o->how = HOW_BESIDE;
    const int fd = open_beside(o, there ? st.st_mode : 0);
    if (fd >= 0 || !there || (fd != -EACCES && fd != -EPERM && fd != -EROFS))
        return fd;
    o->how = HOW_COLLECT;
    const int mem = memfd_create("remat-output", MFD_CLOEXEC);
    return mem < 0 ? -errno : mem;
}

bool output_is_file(const char *name, unsigned flags)
{
    char path[OUTPUT_PATH];
    struct stat st;
    if (strlen(name) >= sizeof path || (flags & OUTPUT_RUN && output_expand(name, path, sizeof path)))
        return false;
    if (!(flags & OUTPUT_RUN))
        strcpy(path, name);
    return descriptor_of(path) < 0 && (stat(path, &st) ? errno == ENOENT : S_ISREG(st.st_mode));
}

int output_open(struct output *o, const char *name, unsigned flags, char *err, size_t err_len)
{
    int fd, rc = 0;
    memset(o, 0, sizeof *o);
    o->flags = flags;
    if (flags & OUTPUT_RUN)
        rc = output_expand(name, o->asked, sizeof o->asked);
    else if (strlen(name) >= sizeof o->asked)
        rc = -ENAMETOOLONG;
    else
        strcpy(o->asked, name);
    if (rc || !*name)
        return fault(err, err_len, *name ? name : "an empty name", rc ? -rc : ENOENT);
    strcpy(o->path, o->asked);
    const int given = descriptor_of(o->asked);
    if (given == STDOUT_FILENO) {
        o->how = HOW_DESCRIPTOR;
        o->f = stdout;
        return 0;
    }
    if (given >= 0) {
        o->how = HOW_DESCRIPTOR;
        fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
        fd = fd < 0 ? -errno : fd;
    } else {
        fd = open_target(o);
    }
    if (fd < 0)
        return fault(err, err_len, o->asked, -fd);
    o->f = fdopen(fd, o->how == HOW_COLLECT ? "w+" : "w");
    if (!o->f) {
        rc = errno;
        close(fd);
        if (o->tmp[0])
            unlink(o->tmp);
        return fault(err, err_len, o->asked, rc);
    }
    return 0;
}

/* ---- one file, many processes ---------------------------------------------------------------------------------------- */

/* The time that a file made now is stamped with. Not asked of the clock: its copy in user space may lag behind the
 * kernel's, by milliseconds on a virtual machine that is scheduled away in between. */
static struct timespec stamp_now(void)
{
    struct timespec now;
    struct stat st;
    const int fd = memfd_create("remat-clock", MFD_CLOEXEC);
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (fd >= 0 && fstat(fd, &st) == 0)
        now = st.st_ctim;
    if (fd >= 0)
        close(fd);
    return now;
}

void output_run_mark(char *to, size_t room)
{
    const struct timespec before = stamp_now();
    struct timespec now = before;
    for (int i = 0; i < 100 && now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        now = stamp_now();
    }
    snprintf(to, room, "%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
}

static bool older_than_run(const struct stat *st)
{
    const char *text = getenv("REMAT_RUN_STARTED");
    long long sec;
    long nsec;
    if (!text || sscanf(text, "%lld.%9ld", &sec, &nsec) != 2)
        return true; /* no run that others could belong to */
    return st->st_ctim.tv_sec < sec || (st->st_ctim.tv_sec == sec && st->st_ctim.tv_nsec < nsec);
}

bool output_is_of_run(const char *name)
{
    char path[OUTPUT_PATH];
    struct stat st;
    return !output_expand(name, path, sizeof path) && !stat(path, &st) && !older_than_run(&st);
}

/* What this process has written: it may write it again. */
static struct {
    pthread_mutex_t lock;
    struct own {
        dev_t dev;
        ino_t ino;
        struct timespec changed; /* an inode's number is used again once its file is gone */
        bool open;               /* but not while it is held open: it may change */
    } list[16];
    unsigned n;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_own(const struct stat *st)
{
    for (unsigned i = 0; i < own.n && i < sizeof own.list / sizeof *own.list; i++)
        if (own.list[i].dev == st->st_dev && own.list[i].ino == st->st_ino &&
            (own.list[i].open ||
             (own.list[i].changed.tv_sec == st->st_ctim.tv_sec && own.list[i].changed.tv_nsec == st->st_ctim.tv_nsec)))
            return true;
    return false;
}

static void make_own(const struct stat *st, bool stays_open)
{
    if (!is_own(st))
        own.list[own.n++ % (sizeof own.list / sizeof *own.list)] = (struct own){st->st_dev, st->st_ino, st->st_ctim, stays_open};
}

/* Renames only where nothing stands. File systems that cannot do it in one step get an empty file first. */
static int rename_to_free(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    const int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return rename(from, to) ? -errno : 0;
}

static int place_one(struct output *o, const char *to, bool *again)
{
    struct stat st;
    *again = false;
    if (lstat(to, &st))
        return errno == ENOENT ? rename_to_free(o->tmp, to) : -errno;
    if (!S_ISREG(st.st_mode) || (!is_own(&st) && !older_than_run(&st)))
        return -EEXIST;
    *again = is_own(&st);
    return rename(o->tmp, to) ? -errno : 0;
}

static void tell(const char *asked, const char *got)
{
    char line[2 * OUTPUT_PATH + 100];
    const int n = snprintf(line, sizeof line, "remat[%ld]: %s: another process of this run wrote it; this one's is %s\n",
                           (long)getpid(), asked, got);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* stderr is closed: nobody is there to be told */
}

static int place_numbered(struct output *o, bool stays_open)
{
    bool again = false;
    char to[OUTPUT_PATH], folder[OUTPUT_PATH];
    const size_t n = folder_length(o->path);
    struct stat made;
    int rc = -EEXIST;
    snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? o->path : ".");
    pthread_mutex_lock(&own.lock);
    /* between looking and renaming nobody else may rename: on this machine the lock sees to that. Not waited for without end: somebody
     * may lock the folder for reasons of his own (flock . remat run ...), or have been stopped while he had it. */
    const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) && i < LOCK_TRIES; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; rc == -EEXIST && i <= NUMBERS; i++) {
        const int len = i ? snprintf(to, sizeof to, "%s.%d", o->path, i) : snprintf(to, sizeof to, "%s", o->path);
        if ((size_t)len >= sizeof to)
            rc = -ENAMETOOLONG;
        else if ((rc = place_one(o, to, &again)) == 0 && i && !again)
            tell(o->path, to);
    }
    if (dir >= 0)
        close(dir);
    if (!rc) {
        strcpy(o->path, to);
        if (stat(to, &made) == 0)
            make_own(&made, stays_open);
    }
    pthread_mutex_unlock(&own.lock);
    return rc;
}

/* ---- ending ---------------------------------------------------------------------------------------------------------- */

/* The target cannot be replaced, only filled: space is set aside first, so that a full disk is noticed while the old
 * content still stands. */
static int fill_in_place(struct output *o)
{
    struct stat st;
    char part[65536];
    int fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;
    if (fd < 0)
        return -errno;
    const off_t n = ftello(o->f);
    if (fstat(fd, &st))
        rc = -errno;
    else if (o->flags & OUTPUT_RUN && !is_own(&st) && !older_than_run(&st))
        rc = -EEXIST;
    else if (n > st.st_size && fallocate(fd, 0, 0, n) && errno != EOPNOTSUPP && errno != ENOSYS)
        rc = -errno;
    off_t at = 0;
    while (!rc && at < n) {
        const ssize_t k = pread(fileno(o->f), part, sizeof part, at);
        ssize_t done = 0;
        while (k > 0 && done < k && !rc) {
            const ssize_t w = pwrite(fd, part + done, (size_t)(k - done), at + done);
            if (w < 0 && errno != EINTR)
                rc = -errno;
            done += w > 0 ? w : 0;
        }
        if (k <= 0)
            rc = k < 0 ? -errno : -EIO;
        at += done;
    }
    if (!rc && ftruncate(fd, n))
        rc = -errno;
    if (!rc && fstat(fd, &st) == 0)
        make_own(&st, false);
    if (close(fd) && !rc)
        rc = -errno;
    return rc;
}

/* The stream remembers that a write failed, not why: then one more byte is tried, into what is lost already. */
static int flush(FILE *f)
{
    errno = 0;
    if (!fflush(f) && !ferror(f))
        return 0;
    if (!errno && write(fileno(f), "\n", 1) == 1)
        errno = EIO;
    return errno ? -errno : -EIO;
}

int output_commit_open(struct output *o, int *fd, char *err, size_t err_len)
{
    int rc = flush(o->f);
    const int keep = o->how == HOW_BESIDE ? fcntl(fileno(o->f), F_DUPFD_CLOEXEC, 3) : -1;
    if (o->how != HOW_BESIDE)
        rc = -ENOTSUP;
    else if (keep < 0)
        rc = -errno;
    if (!rc)
        rc = o->flags & OUTPUT_RUN ? place_numbered(o, true) : rename(o->tmp, o->path) ? -errno : 0;
    if (!rc)
        o->tmp[0] = '\0';
    else if (keep >= 0)
        close(keep);
    output_abandon(o);
    if (rc && rc != -ENOTSUP)
        fault(err, err_len, o->asked, -rc);
    *fd = rc ? -1 : keep;
    return rc;
}

int output_commit(struct output *o, char *err, size_t err_len)
{
    int rc = flush(o->f);
    if (!rc && o->how == HOW_COLLECT)
        rc = fill_in_place(o);
    if (o->f != stdout && fclose(o->f) && !rc)
        rc = -errno;
    o->f = NULL;
    if (!rc && o->how == HOW_BESIDE)
        rc = o->flags & OUTPUT_RUN ? place_numbered(o, false) : rename(o->tmp, o->path) ? -errno : 0;
    if (rc && o->tmp[0])
        unlink(o->tmp);
    o->tmp[0] = '\0';
    if (rc == -EEXIST && err_len) {
        snprintf(err, err_len, "%s: another process of this run wrote it; put %%p or %%r in the name", o->asked);
        return rc;
    }
    return rc ? fault(err, err_len, o->asked, -rc) : 0;
}

void output_abandon(struct output *o)
{
    if (o->f && o->f != stdout)
        fclose(o->f);
    o->f = NULL;
    if (o->tmp[0])
        unlink(o->tmp);
    o->tmp[0] = '\0';
}
