/* output.c: see output.h. */
#include "tracer/output.h"
#include "tracer/loader.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum how { HOW_DESCRIPTOR, HOW_BESIDE, HOW_COLLECT, HOW_AS_IT_IS };
enum { NUMBERS = 9999, LOCK_TRIES = 2000 };

static int fault(char *err, size_t err_len, const char *name, int e)
{
    if (err_len)
        snprintf(err, err_len, "%s: cannot write: %s", !strcmp(name, "-") ? "standard output" : name, strerror(e));
    return -e;
}

/* fault() for a name that place_find() has refused with `rc`: the line has the reason if a rule of place.h refused it. */
static int refused(char *err, size_t err_len, const struct output *o, int rc)
{
    if (!o->at.why)
        return fault(err, err_len, o->asked, -rc);
    if (err_len)
        snprintf(err, err_len, "%s: cannot write: %s: %s", o->asked, strerror(-rc), o->at.why);
    return rc;
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

/* The rank's text. torchrun's RANK comes first: under srun torchrun is started once a node, and its processes inherit Slurm's variable. */
static const char *rank_text(void)
{
    static const char *const names[] = {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i]);
        if (rank && *rank && !rank[strspn(rank, "0123456789")] && strlen(rank) <= 9) /* a number: other text could lead to another folder */
            return rank;
    }
    return "0";
}

int output_expand(const char *name, char *to, size_t room)
{
    const char *rank = rank_text();
    size_t n = 0;
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

/* Removes the file beside the target unless it has been renamed, and closes the folder. */
static void leave(struct output *o)
{
    if (o->tmp[0])
        unlinkat(o->at.dir, o->tmp, 0);
    o->tmp[0] = '\0';
    place_close(&o->at);
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

/* A random name: no other process can have taken it before. */
static void draw_name(char to[OUTPUT_TMP])
{
    static _Atomic unsigned count;
    uint64_t x;
    if (getrandom(&x, sizeof x, GRND_NONBLOCK) != (ssize_t)sizeof x) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        x = (uint64_t)now.tv_nsec << 40 ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)getpid() << 4 ^ count++;
    }
    snprintf(to, OUTPUT_TMP, ".remat-%016" PRIx64 ".tmp", x);
}

/* Gives the new file the permissions of the file that it replaces, which is this user's; never the set-user-id, set-group-id or sticky bit. Group permissions hold
 * for the old file's group alone: if the new file cannot belong to that group, its own group may do no more than everybody. */
static int take_over_mode(int fd, const struct stat *was)
{
    struct stat made;
    mode_t mode = was->st_mode & 0777;
    if (fstat(fd, &made))
        return -errno;
    if (made.st_gid != was->st_gid && fchown(fd, (uid_t)-1, was->st_gid))
        mode &= ~(mode_t)070 | (mode & 07) << 3;
    return fchmod(fd, mode) ? -errno : 0;
}

/* Makes a file in the target's folder, with a short name: the target's name may be as long as names can be. */
static int open_beside(struct output *o)
{
    const bool own = o->at.there && o->at.st.st_uid == geteuid();
    for (int tries = 0; tries < 100; tries++) {
        draw_name(o->tmp);
        const int fd = openat(o->at.dir, o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, own ? 0600 : 0666);
        if (fd >= 0) {
            const int rc = own ? take_over_mode(fd, &o->at.st) : 0;
            if (rc) {
                close(fd);
                unlinkat(o->at.dir, o->tmp, 0);
                o->tmp[0] = '\0';
                return rc;
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

/* Opens a device or a pipe as it is; -EACCES if another file has the name by now. */
static int open_as_it_is(struct output *o)
{
    struct stat st;
    o->how = HOW_AS_IT_IS;
    const int wait = o->flags & OUTPUT_NO_WAIT ? O_NONBLOCK : 0;
    const int fd = openat(o->at.dir, o->at.name, O_WRONLY | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC | wait);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) || st.st_dev != o->at.st.st_dev || st.st_ino != o->at.st.st_ino) {
        close(fd);
        return -EACCES;
    }
    if (wait)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

static int open_target(struct output *o)
{
    const int rc = place_find(o->asked, &o->at);
    if (rc)
        return rc;
    if (o->at.there && !S_ISREG(o->at.st.st_mode))
        return open_as_it_is(o);
    if (o->at.there && faccessat(o->at.dir, o->at.name, W_OK, 0))
        return -errno; /* a write-protected file stays, though its folder would allow a rename */
    o->how = HOW_BESIDE;
    const int fd = open_beside(o);
    if (fd >= 0 || !o->at.there || (fd != -EACCES && fd != -EPERM && fd != -EROFS))
        return fd;
    o->how = HOW_COLLECT;
    const int mem = memfd_create("remat-output", MFD_CLOEXEC);
    return mem < 0 ? -errno : mem;
}

/* Finds the place that `name` stands for, and closes its folder. False: a descriptor's name, or a place that cannot be written. */
static bool look_at(const char *name, unsigned flags, struct place *p)
{
    char path[OUTPUT_PATH];
    if (strlen(name) >= sizeof path || (flags & OUTPUT_RUN && output_expand(name, path, sizeof path)))
        return false;
    if (!(flags & OUTPUT_RUN))
        strcpy(path, name);
    if (descriptor_of(path) >= 0 || place_find(path, p))
        return false;
    place_close(p);
    return true;
}

bool output_is_file(const char *name, unsigned flags)
{
    struct place p;
    return look_at(name, flags, &p) && (!p.there || S_ISREG(p.st.st_mode));
}

int output_open(struct output *o, const char *name, unsigned flags, char *err, size_t err_len)
{
    int fd, rc = 0;
    memset(o, 0, sizeof *o);
    o->flags = flags;
    o->at.dir = -1;
    if (flags & OUTPUT_RUN)
        rc = output_expand(name, o->asked, sizeof o->asked);
    else if (strlen(name) >= sizeof o->asked)
        rc = -ENAMETOOLONG;
    else
        strcpy(o->asked, name);
    if (rc || !*name)
        return fault(err, err_len, *name ? name : "an empty name", rc ? -rc : ENOENT);
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
    if (fd < 0) {
        place_close(&o->at);
        return refused(err, err_len, o, fd);
    }
    o->f = fdopen(fd, o->how == HOW_COLLECT ? "w+" : "w");
    if (!o->f) {
        rc = errno;
        close(fd);
        leave(o);
        return fault(err, err_len, o->asked, rc);
    }
    return 0;
}

/* ---- one file, many processes ---------------------------------------------------------------------------------------- */

/* The time stamp that a new file gets, read from a new file and not from the clock: the clock's copy in user space may lag
 * behind the kernel's, by milliseconds on a virtual machine that is scheduled away in between. */
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
        return true; /* outside `remat run`: no file belongs to a run */
    return st->st_ctim.tv_sec < sec || (st->st_ctim.tv_sec == sec && st->st_ctim.tv_nsec < nsec);
}

bool output_is_of_run(const char *name)
{
    struct place p;
    return look_at(name, OUTPUT_RUN, &p) && p.there && !older_than_run(&p.st);
}

/* Files that this process has written, and may write again. */
static struct {
    pthread_mutex_t lock;
    struct own {
        dev_t dev;
        ino_t ino;
        struct timespec changed; /* tells the file from a later one with the same inode number */
        bool open;               /* held open for writing: `changed` is not compared */
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

/* Renames o->tmp to `to`, never over another file. File systems that cannot do so in one step get an empty file first. */
static int rename_to_free(const struct output *o, const char *to)
{
    const int dir = o->at.dir;
    if (renameat2(dir, o->tmp, dir, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    const int fd = openat(dir, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return renameat(dir, o->tmp, dir, to) ? -errno : 0;
}

/* Renames o->tmp to `to`. Replaces only a file that this process or an earlier run wrote, and none that another user has put there; else -EEXIST. *again: the file
 * was this process's own. */
static int place_one(const struct output *o, const char *to, bool *again)
{
    struct stat st;
    *again = false;
    if (fstatat(o->at.dir, to, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? rename_to_free(o, to) : -errno;
    if (!S_ISREG(st.st_mode) || !place_may_write(&o->at, &st) || (!is_own(&st) && !older_than_run(&st)))
        return -EEXIST;
    *again = is_own(&st);
    return renameat(o->at.dir, o->tmp, o->at.dir, to) ? -errno : 0;
}

static void tell(const char *asked, const char *got)
{
    char line[2 * OUTPUT_PATH + 100];
    const int n = snprintf(line, sizeof line, "remat[%ld]: %s: another process of this run wrote it; this one's is %s\n",
                           (long)getpid(), asked, got);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* stderr is closed */
}

static int place_numbered(struct output *o, bool stays_open)
{
    bool again = false;
    char to[PLACE_NAME + 8] = "";
    const size_t folder = strlen(o->at.path) - strlen(o->at.name);
    struct stat made;
    int rc = -EEXIST;
    loader_lock(&own.lock);
    /* No other process may rename between this one's look and its rename: on this machine the folder's lock sees to that. The wait has an end:
     * another program may hold the lock for its own reasons (flock . remat run ...), or have been stopped while it had the lock. */
    const int dir = openat(o->at.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) && i < LOCK_TRIES; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; rc == -EEXIST && i <= NUMBERS; i++) {
        if (i)
            snprintf(to, sizeof to, "%s.%d", o->at.name, i);
        else
            strcpy(to, o->at.name);
        rc = place_one(o, to, &again);
    }
    if (dir >= 0)
        close(dir);
    if (!rc && strcmp(to, o->at.name) != 0 && !again) {
        char got[OUTPUT_PATH + 8];
        snprintf(got, sizeof got, "%.*s%s", (int)folder, o->at.path, to);
        tell(o->at.path, got);
    }
    if (!rc && fstatat(o->at.dir, to, &made, AT_SYMLINK_NOFOLLOW) == 0)
        make_own(&made, stays_open);
    loader_unlock(&own.lock);
    return rc;
}

/* Renames the written file to its own name. */
static int put_in_place(struct output *o, bool stays_open)
{
    const int rc = o->flags & OUTPUT_RUN ? place_numbered(o, stays_open)
                   : renameat(o->at.dir, o->tmp, o->at.dir, o->at.name) ? -errno
                                                                         : 0;
    if (!rc)
        o->tmp[0] = '\0';
    return rc;
}

/* ---- ending ---------------------------------------------------------------------------------------------------------- */

/* Writes the collected content into a target that cannot be replaced. Space is set aside first, so that a full disk is noticed
 * while the old content still stands. */
static int fill_in_place(struct output *o)
{
    struct stat st;
    char part[65536];
    int fd = openat(o->at.dir, o->at.name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc = 0;
    if (fd < 0)
        return -errno;
    const off_t n = ftello(o->f);
    if (fstat(fd, &st))
        rc = -errno;
    else if (!S_ISREG(st.st_mode) || !place_may_write(&o->at, &st))
        rc = -EACCES;
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

/* Flushes. A stream remembers that a write failed, but not why: one more byte is then written, to a file that is lost already, for its errno. */
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
        rc = put_in_place(o, true);
    if (rc && keep >= 0)
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
        rc = put_in_place(o, false);
    leave(o);
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
    leave(o);
}
