/* ledger.c: see ledger.h. Joining is here, and what is on disk; the arithmetic of sharing is in ledger_sums.c. */
#include "policy/share/ledger_own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct ledger_row) == 128, "rows of a file that outlives this build");
_Static_assert(offsetof(struct ledger_page, rows) == 256, "header of a file that outlives this build");

enum { JOIN_WAIT_MS = 10000 };

#ifndef REMAT_TOTAL_DIR
#define REMAT_TOTAL_DIR "/dev/shm"
#endif

static int say(int rc, char *err, size_t err_bytes, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static int say(int rc, char *err, size_t err_bytes, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err, err_bytes, fmt, ap);
    va_end(ap);
    return rc;
}

/* ---- locks and lives -------------------------------------------------------------------------------------------- */

/* Byte 0 is held while joining, byte 1 + i by the owner of row i. */
static int lock_byte(int fd, off_t at, int type)
{
    struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    while (fcntl(fd, F_SETLK, &l))
        if (errno != EINTR)
            return errno == EACCES ? -EAGAIN : -errno;
    return 0;
}

static bool byte_is_locked(int fd, off_t at)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    return fcntl(fd, F_GETLK, &l) || l.l_type != F_UNLCK; /* what cannot be told counts as held */
}

/* When the process began, by the kernel's clock; 0: there is none of that number, or only what is left to be reaped: a zombie
 * whose threads have all closed their files. */
static uint64_t started_at(int64_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *after = strrchr(text, ')'); /* the name before it may hold anything */
    char state;
    long threads;
    unsigned long long start;
    if (!after || sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu", &state, &threads,
                         &start) != 3)
        return 0;
    return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : start;
}

static uint64_t pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

static bool row_is_alive(int fd, const struct ledger_page *p, unsigned i, uint64_t pid_ns)
{
    const struct ledger_row *r = &p->rows[i];
    int64_t pid = atomic_load(&r->pid);
    if (!pid)
        return false;
    if (byte_is_locked(fd, 1 + (off_t)i))
        return true;
    return pid_ns && r->pid_ns == pid_ns && started_at(pid) == r->start_ticks;
}

static void row_clear(struct ledger_row *r)
{
    atomic_store(&r->wanted, 0);
    atomic_store(&r->blocked, 0);
    atomic_store(&r->asking, 0);
    atomic_store(&r->guarantee, 0);
    atomic_store(&r->pid, 0);
    atomic_store(&r->reserved, 0); /* last: until then the row counts */
}

bool ledger_reap(struct ledger *l)
{
    bool found = false;
    for (unsigned i = 0; i < atomic_load(&l->page->n_rows); i++) {
        struct ledger_row *r = &l->page->rows[i];
        bool holds = atomic_load(&r->pid) || atomic_load(&r->reserved) || atomic_load(&r->asking);
        if (i == l->me || !holds || row_is_alive(l->fd, l->page, i, l->pid_ns) || lock_byte(l->fd, 1 + (off_t)i, F_WRLCK))
            continue;
        /* Ours to clear, and only now it is certain: between the look and the lock somebody else may have taken the row. */
        if (!atomic_load(&r->pid) || r->pid_ns != l->pid_ns || started_at(atomic_load(&r->pid)) != r->start_ticks) {
            found |= atomic_load(&r->reserved) != 0;
            row_clear(r);
        }
        lock_byte(l->fd, 1 + (off_t)i, F_UNLCK);
    }
    if (found)
        ledger_wake(l->page, false);
    return found;
}

/* ---- the folder and the file ---------------------------------------------------------------------------------------- */

bool ledger_name_ok(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    return n >= 1 && n <= LEDGER_NAME_MAX && name[0] != '.' &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

static int dir_at(int i, char *dir, size_t room)
{
    const char *run = getenv("XDG_RUNTIME_DIR");
    int n = i == 0                     ? snprintf(dir, room, "/dev/shm/remat-groups-%u", (unsigned)getuid())
            : i == 1 && run && *run ? snprintf(dir, room, "%s/remat-groups", run)
                                       : -1;
    return n > 0 && (size_t)n < room;
}

/* In a folder that everybody may write to somebody else could have laid it in wait. */
static bool dir_is_ours(const char *dir)
{
    struct stat st;
    if (mkdir(dir, 0700) && errno != EEXIST)
        return false;
    return !lstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == getuid() && !(st.st_mode & 022);
}

int ledger_dir(char *dir, size_t room, char *err, size_t err_bytes)
{
    const char *own = getenv("REMAT_GROUP_DIR");
    if (own && *own) {
        if ((size_t)snprintf(dir, room, "%s", own) >= room)
            return say(-ENAMETOOLONG, err, err_bytes, "REMAT_GROUP_DIR is too long");
        if ((mkdir(dir, 0700) && errno != EEXIST) || access(dir, R_OK | W_OK | X_OK))
            return say(-errno, err, err_bytes, "the folder of groups %s (REMAT_GROUP_DIR) cannot be used: %s", dir, strerror(errno));
        return 0;
    }
    for (int i = 0; dir_at(i, dir, room); i++)
        if (dir_is_ours(dir))
            return 0;
    return say(-EACCES, err, err_bytes, "there is no folder for groups: /dev/shm/remat-groups-%u must be yours and closed to others; or set "
               "REMAT_GROUP_DIR", (unsigned)getuid());
}

/* No variable moves it. */
static int system_dir(char *dir, size_t room, char *err, size_t err_bytes)
{
    snprintf(dir, room, "%s/remat-groups-%u", REMAT_TOTAL_DIR, (unsigned)getuid());
    return dir_is_ours(dir) ? 0 : say(-EACCES, err, err_bytes, "a total holds (remat.conf), and %s, where it is kept, is not yours and closed to "
                                      "others", dir);
}

static const char *size_text(uint64_t bytes, char *to, size_t room)
{
    static const char units[] = "BKMGT";
    int u = 0;
    while (u < 4 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        u++;
    }
    snprintf(to, room, u ? "%llu%c" : "%llu", (unsigned long long)bytes, units[u]);
    return to;
}

/* Opened, mapped, and held against others who join. */
static int open_held(struct ledger *l, const char *path, bool make, char *err, size_t err_bytes)
{
    struct stat st;
    l->page = MAP_FAILED;
    l->me = LEDGER_ROWS;
    l->pid_ns = pid_namespace();
    l->fd = open(path, O_RDWR | (make ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW, 0660);
    if (l->fd < 0 || fstat(l->fd, &st))
        return say(-errno, err, err_bytes, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return say(-EINVAL, err, err_bytes, "%s is no file", path);
    int r;
    for (int ms = 0; (r = lock_byte(l->fd, 0, F_WRLCK)) == -EAGAIN && ms < JOIN_WAIT_MS; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (r)
        return say(r, err, err_bytes, "%s: somebody else is joining and does not come to an end (%s)", path, strerror(-r));
    /* an empty one has just been made by somebody who has not come to hold it yet */
    if (fstat(l->fd, &st) || (st.st_size < (off_t)sizeof *l->page && ((!make && st.st_size) || ftruncate(l->fd, sizeof *l->page))))
        return say(-EIO, err, err_bytes, "%s is cut short, or there is no room for it", path);
    l->page = mmap(NULL, sizeof *l->page, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
    if (l->page == MAP_FAILED)
        return say(-errno, err, err_bytes, "%s cannot be mapped: %s", path, strerror(errno));
    if (l->page->magic && l->page->magic != LEDGER_MAGIC)
        return say(-EINVAL, err, err_bytes, "%s is not the ledger of a group, or of another version of remat", path);
    return 0;
}

static void shut(struct ledger *l)
{
    if (l->page != MAP_FAILED)
        munmap(l->page, sizeof *l->page);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

/* ---- joining ---------------------------------------------------------------------------------------------------------- */

static uint64_t limit_of(const struct ledger_ask *ask, uint64_t device_bytes)
{
    return ask->limit_pct > 0 ? (uint64_t)((double)device_bytes * (ask->limit_pct / 100)) : ask->limit_bytes;
}

/* With the file held: would this member be let in, and with which limit? */
static int admit(struct ledger *l, const struct ledger_ask *ask, uint64_t *limit, char *err, size_t err_bytes)
{
    char a[32], b[32], c[32];
    unsigned living = 0;
    uint64_t promised = 0;
    ledger_reap(l);
    for (unsigned i = 0; l->page->magic && i < LEDGER_ROWS; i++)
        if (atomic_load(&l->page->rows[i].pid)) {
            uint64_t g = atomic_load(&l->page->rows[i].guarantee);
            living++;
            promised += g == LEDGER_NO_GUARANTEE ? 0 : g;
        }
    *limit = living && !ask->system ? atomic_load(&l->page->limit) : ask->limit_bytes;
    if (!*limit)
        return say(-ENOENT, err, err_bytes, "group %s has no member yet: its first one must give --group-limit", ask->group);
    if (ask->limit_bytes && ask->limit_bytes != *limit)
        return say(-EEXIST, err, err_bytes, "group %s has a limit of %s, fixed by its first member: --group-limit %s differs; leave it out, or "
                   "wait until the group's %u member(s) have ended", ask->group, size_text(*limit, a, sizeof a),
                   size_text(ask->limit_bytes, b, sizeof b), living);
    if (living == LEDGER_ROWS)
        return say(-ENOSPC, err, err_bytes, "group %s is full: it has %u members, and takes no more", ask->group, living);
    if (ask->guarantee != LEDGER_NO_GUARANTEE && (ask->guarantee > *limit || promised > *limit - ask->guarantee))
        return say(-EDQUOT, err, err_bytes, "--guarantee %s cannot be promised: %s of group %s's limit of %s are guaranteed to others",
                   size_text(ask->guarantee, a, sizeof a), size_text(promised, c, sizeof c), ask->group,
                   size_text(*limit, b, sizeof b));
    return 0;
}

static int take_row(struct ledger *l, const struct ledger_ask *ask)
{
    for (unsigned i = 0; i < LEDGER_ROWS; i++) {
        struct ledger_row *r = &l->page->rows[i];
        if (atomic_load(&r->pid) || lock_byte(l->fd, 1 + (off_t)i, F_WRLCK))
            continue; /* living, or being cleared */
        row_clear(r);
        r->pid_ns = l->pid_ns;
        r->start_ticks = started_at(getpid());
        r->joined_unix_s = time(NULL);
        atomic_store(&r->guarantee, ask->guarantee);
        atomic_store(&r->pid, getpid());
        if (atomic_load(&l->page->n_rows) <= i)
            atomic_store(&l->page->n_rows, i + 1);
        l->me = i;
        return 0;
    }
    return -ENOSPC;
}

static int check(const struct ledger_ask *ask, char *err, size_t err_bytes)
{
    if (!ask->system && !ledger_name_ok(ask->group))
        return say(-EINVAL, err, err_bytes, "'%s' is no name for a group: 1 to %d of A-Z a-z 0-9 . _ - and no dot in front",
                   ask->group ? ask->group : "", LEDGER_NAME_MAX);
    char a[32], b[32];
    if (ask->device_bytes && ask->limit_bytes > ask->device_bytes)
        return say(-EINVAL, err, err_bytes, "--group-limit of %s is more than the device has (%s)", size_text(ask->limit_bytes, a, sizeof a),
                   size_text(ask->device_bytes, b, sizeof b));
    return 0;
}

int ledger_join(const struct ledger_ask *wish, struct ledger **out, char *err, size_t err_bytes)
{
    struct ledger_ask here = *wish;
    const struct ledger_ask *ask = &here;
    here.limit_bytes = limit_of(wish, wish->device_bytes);
    char dir[PATH_MAX - 128], path[PATH_MAX], hex[33];
    uint64_t limit = 0;
    *out = NULL;
    int r = check(ask, err, err_bytes);
    if (r || (r = ask->system ? system_dir(dir, sizeof dir, err, err_bytes) : ledger_dir(dir, sizeof dir, err, err_bytes)))
        return r;
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", ask->device[i]);
    snprintf(path, sizeof path, "%s/%s@%s", dir, ask->group, hex);
    struct ledger *l = calloc(1, sizeof *l);
    if (!l)
        return say(-ENOMEM, err, err_bytes, "host memory is exhausted");
    r = open_held(l, path, true, err, err_bytes);
    if (!r)
        r = admit(l, ask, &limit, err, err_bytes);
    if (!r) {
        struct ledger_page *p = l->page;
        if (atomic_load(&p->limit) != limit)
            atomic_store(&p->peak_reserved, 0);
        atomic_store(&p->limit, limit);
        p->device_bytes = ask->device_bytes;
        memcpy(p->device, hex, sizeof hex);
        snprintf(p->group, sizeof p->group, "%s", ask->group);
        p->magic = LEDGER_MAGIC;
        r = take_row(l, ask);
        if (r)
            say(r, err, err_bytes, "group %s is full: all its %d rows are taken", ask->group, LEDGER_ROWS);
    }
    if (r) {
        shut(l);
        return r;
    }
    lock_byte(l->fd, 0, F_UNLCK);
    *out = l;
    return 0;
}

int ledger_may_join(const struct ledger_ask *ask, char *err, size_t err_bytes)
{
    char dir[PATH_MAX - 512], path[PATH_MAX];
    struct ledger_ask here = *ask;
    uint64_t limit;
    unsigned devices = 0;
    int r = check(ask, err, err_bytes);
    if (r || (r = ledger_dir(dir, sizeof dir, err, err_bytes)))
        return r;
    size_t n = strlen(ask->group);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && !r && (e = readdir(d));) {
        if (strncmp(e->d_name, ask->group, n) || e->d_name[n] != '@')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        struct ledger *l = calloc(1, sizeof *l);
        if (!l)
            r = say(-ENOMEM, err, err_bytes, "host memory is exhausted");
        else if (!(r = open_held(l, path, false, err, err_bytes))) {
            bool lives = false;
            ledger_reap(l);
            for (unsigned i = 0; i < LEDGER_ROWS; i++)
                lives |= atomic_load(&l->page->rows[i].pid) != 0;
            if (lives) {
                devices++;
                here.limit_bytes = limit_of(ask, l->page->device_bytes);
                r = admit(l, &here, &limit, err, err_bytes);
            }
        }
        if (l)
            shut(l);
    }
    if (d)
        closedir(d);
    if (!r && !devices && !ask->limit_bytes && !(ask->limit_pct > 0))
        r = say(-ENOENT, err, err_bytes, "group %s has no member yet: its first one must give --group-limit", ask->group);
    return r;
}

void ledger_leave(struct ledger *l)
{
    if (!l)
        return;
    row_clear(&l->page->rows[l->me]);
    ledger_wake(l->page, false);
    shut(l); /* closing drops the lock */
}

void ledger_after_fork_child(struct ledger *l)
{
    if (l)
        shut(l); /* the parent's lock is no lock of this process */
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

int ledger_read(const char *path, struct ledger_view *v)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), r = 0;
    if (fd < 0)
        return -errno;
    struct ledger_page *p = MAP_FAILED;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof *p)
        r = -EINVAL;
    else if ((p = mmap(NULL, sizeof *p, PROT_READ, MAP_SHARED, fd, 0)) == MAP_FAILED)
        r = -errno;
    else if (p->magic != LEDGER_MAGIC)
        r = -EINVAL;
    if (!r) {
        uint64_t ns = pid_namespace();
        memset(v, 0, sizeof *v);
        memcpy(v->group, p->group, sizeof v->group);
        memcpy(v->device, p->device, sizeof v->device);
        v->group[sizeof v->group - 1] = v->device[sizeof v->device - 1] = '\0';
        v->limit = atomic_load(&p->limit);
        v->peak_reserved = atomic_load(&p->peak_reserved);
        v->device_bytes = p->device_bytes;
        for (unsigned i = 0; i < LEDGER_ROWS; i++) {
            const struct ledger_row *row = &p->rows[i];
            if (!row_is_alive(fd, p, i, ns))
                continue;
            v->member[v->n++] = (struct ledger_member){.pid = atomic_load(&row->pid),
                                                       .joined_unix_s = row->joined_unix_s,
                                                       .reserved = atomic_load(&row->reserved),
                                                       .guarantee = atomic_load(&row->guarantee),
                                                       .wanted = atomic_load(&row->wanted),
                                                       .entitled = ledger_entitlement(p, i),
                                                       .blocked = atomic_load(&row->blocked)};
            v->reserved += atomic_load(&row->reserved);
        }
    }
    if (p != MAP_FAILED)
        munmap(p, sizeof *p);
    close(fd);
    return r;
}
