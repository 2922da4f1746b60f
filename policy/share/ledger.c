/* ledger.c: see ledger.h. Here: joining, and the folders and files on disk. */
#include "policy/share/ledger.h"

#include "policy/share/ledger_sums.h"
#include "tracer/machine/folders.h"

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

enum { JOIN_WAIT_MS = 10000 };

#ifndef REMAT_TOTAL_DIR
#define REMAT_TOTAL_DIR NULL /* tests: the one parent of the folders of totals */
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

/* ---- the folder and the file ---------------------------------------------------------------------------------------- */

bool ledger_name_ok(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    return n >= 1 && n <= LEDGER_NAME_MAX && name[0] != '.' &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

/* The folders in which a ledger may lie, each locked (held) against other processes that join.
 *
 * There may be several (folders.h), and two processes that make a folder at the same time may each make another. They agree all the same: each holds all folders
 * that it sees, in their common order, looks again, and begins anew if there is one more by now. No folder is ever taken away, so the process that holds its set
 * later needs all folders of the earlier one too, and waits for that process; then it finds the earlier one's ledger, which has a living member. */
struct held {
    struct folders f;
    int fd[FOLDERS_MOST]; /* of JOIN_FILE; -1: not held */
    bool is_named;        /* named by REMAT_GROUP_DIR: one folder, of any owner */
};

static const char SORT[] = "remat-groups", JOIN_FILE[] = ".join";

static void let_go(struct held *h)
{
    for (unsigned i = 0; i < h->f.n; i++)
        if (h->fd[i] >= 0)
            close(h->fd[i]);
    h->f.n = 0;
}

static int wait_for_byte(int fd, off_t at)
{
    int r;
    for (int ms = 0; (r = ledger_lock_byte(fd, at, F_WRLCK)) == -EAGAIN && ms < JOIN_WAIT_MS; ms++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return r;
}

static int hold_those(struct held *h)
{
    char path[FOLDER_PATH + sizeof JOIN_FILE];
    for (unsigned i = 0; i < h->f.n; i++)
        h->fd[i] = -1;
    for (unsigned i = 0; i < h->f.n; i++) {
        snprintf(path, sizeof path, "%s/%s", h->f.at[i].path, JOIN_FILE);
        h->fd[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (h->fd[i] < 0)
            continue; /* the file cannot be made, by any process, so this folder has no ledger and cannot get one */
        int r = wait_for_byte(h->fd[i], 0);
        if (r)
            return r;
    }
    return 0;
}

static bool same_folders(const struct folders *a, const struct folders *b)
{
    bool same = a->n == b->n;
    for (unsigned i = 0; same && i < a->n; i++)
        same = !strcmp(a->at[i].path, b->at[i].path);
    return same;
}

/* Holds all folders of this user. `more`: the existing folders do not do; one more is made first. */
static int hold_folders(const char *only, bool more, struct held *h, char *err, size_t err_bytes)
{
    struct folders now;
    char made[FOLDER_PATH];
    for (int tries = 0; tries < 100; tries++) {
        folders_list(SORT, only, &h->f);
        if ((more || !h->f.n) && folders_make(SORT, only, &h->f, made)) {
            h->f.n = 0;
            return say(-EACCES, err, err_bytes, "there is no folder for groups: neither /run/user/%u nor /dev/shm nor /tmp takes one that is yours and closed to "
                       "others; set REMAT_GROUP_DIR", (unsigned)geteuid());
        }
        if (more || !h->f.n) {
            more = false;
            continue;
        }
        int r = hold_those(h);
        folders_list(SORT, only, &now);
        if (!r && same_folders(&h->f, &now))
            return 0;
        let_go(h);
        if (r)
            return say(r, err, err_bytes, "somebody else is joining a group and does not come to an end (%s)", strerror(-r));
    }
    return say(-EAGAIN, err, err_bytes, "the folders for groups change again and again");
}

/* The folder named by REMAT_GROUP_DIR. 1: the variable is set; 0: it is not; or a negative errno. */
static int named_folder(struct held *h, char *err, size_t err_bytes)
{
    const char *own = getenv("REMAT_GROUP_DIR");
    char *dir = h->f.at[0].path;
    if (!own || !*own)
        return 0;
    h->f.n = 0;
    if ((size_t)snprintf(dir, FOLDER_PATH, "%s", own) >= FOLDER_PATH)
        return say(-ENAMETOOLONG, err, err_bytes, "REMAT_GROUP_DIR is too long");
    if ((mkdir(dir, 0700) && errno != EEXIST) || access(dir, R_OK | W_OK | X_OK))
        return say(-errno, err, err_bytes, "the folder of groups %s (REMAT_GROUP_DIR) cannot be used: %s", dir, strerror(errno));
    h->f.n = 1;
    h->fd[0] = -1;
    return 1;
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

/* Another user may have laid the file in a folder that everybody may write to, to be read or to be cut short while a process has it mapped. */
static bool is_laid(const char *path, const struct stat *file)
{
    char dir[PATH_MAX];
    struct stat st;
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(path, '/') - path), path);
    return stat(*dir ? dir : "/", &st) || (st.st_mode & S_IWOTH && file->st_uid != geteuid() && file->st_uid != st.st_uid);
}

/* Opens and maps the ledger, and holds it against other processes that join. */
static int open_held(struct ledger *l, const char *path, bool make, char *err, size_t err_bytes)
{
    struct stat st;
    l->page = MAP_FAILED;
    l->me = LEDGER_ROWS;
    l->pid_ns = ledger_pid_namespace();
    l->fd = open(path, O_RDWR | (make ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0660);
    if (l->fd < 0 || fstat(l->fd, &st))
        return say(-errno, err, err_bytes, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return say(-EINVAL, err, err_bytes, "%s is no file", path);
    if (is_laid(path, &st))
        return say(-EACCES, err, err_bytes, "%s is another user's, in a folder that everybody may write to", path);
    int r = wait_for_byte(l->fd, 0);
    if (r)
        return say(r, err, err_bytes, "%s: somebody else is joining and does not come to an end (%s)", path, strerror(-r));
    if (fstat(l->fd, &st))
        return say(-errno, err, err_bytes, "%s: %s", path, strerror(errno));
    if (st.st_size < (off_t)sizeof *l->page) {
        /* an empty file has just been made by a process that has not come to hold it yet. Disk space is allocated before the file is mapped: a full disk is an
         * error here, a signal later */
        r = !make && st.st_size ? EIO : posix_fallocate(l->fd, 0, sizeof *l->page);
        if (r)
            return say(-r, err, err_bytes, r == EIO ? "%s is cut short" : "there is no room for %s", path);
    }
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
        if (atomic_load(&r->pid) || ledger_lock_byte(l->fd, 1 + (off_t)i, F_WRLCK))
            continue; /* the row's member lives, or the row is being cleared */
        ledger_row_clear(r);
        r->pid_ns = l->pid_ns;
        r->start_ticks = ledger_started_at(getpid());
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

static bool has_members(const struct ledger *l)
{
    bool lives = false;
    for (unsigned i = 0; i < LEDGER_ROWS; i++)
        lives |= atomic_load(&l->page->rows[i].pid) != 0;
    return lives;
}

/* Opens the ledger of one folder. 0: *out, which can be joined. */
static int open_in(const char *dir, const char *file, bool make, struct ledger **out, char *err, size_t err_bytes)
{
    char path[PATH_MAX];
    struct ledger *l = calloc(1, sizeof *l);
    *out = NULL;
    if (!l)
        return say(-ENOMEM, err, err_bytes, "host memory is exhausted");
    snprintf(path, sizeof path, "%s/%s", dir, file);
    int r = open_held(l, path, make, err, err_bytes);
    if (r)
        shut(l);
    else
        *out = l;
    return r;
}

/* The ledger that has members, else the first that can be made. -ENOSPC and the like: no folder has room for a ledger. */
static int find_ledger(const struct held *h, const char *file, struct ledger **out, char *err, size_t err_bytes)
{
    int r = -ENOENT;
    for (unsigned i = 0; h->f.n > 1 && i < h->f.n; i++) {
        r = open_in(h->f.at[i].path, file, false, out, err, err_bytes);
        if (r == -EAGAIN)
            return r;
        if (r)
            continue;
        ledger_reap(*out);
        if (has_members(*out))
            return 0;
        shut(*out);
    }
    for (unsigned i = 0; i < h->f.n; i++) {
        r = open_in(h->f.at[i].path, file, true, out, err, err_bytes);
        if (!r || (r != -ENOSPC && r != -EDQUOT && r != -EROFS && r != -EACCES))
            break;
    }
    return r;
}

/* Finds or makes the ledger: *out, and in *h the folders, both held. */
static int open_for(const struct ledger_ask *ask, const char *file, struct held *h, struct ledger **out, char *err, size_t err_bytes)
{
    const char *only = ask->system ? REMAT_TOTAL_DIR : NULL;
    int r = ask->system ? 0 : named_folder(h, err, err_bytes);
    h->is_named = r == 1;
    if (r < 0)
        return r;
    for (bool more = false;; more = true) {
        r = h->is_named ? 0 : hold_folders(only, more, h, err, err_bytes);
        if (!r)
            r = find_ledger(h, file, out, err, err_bytes);
        if (!r || h->is_named || (r != -ENOSPC && r != -EDQUOT && r != -EROFS))
            return r;
        let_go(h);
    }
}

int ledger_join(const struct ledger_ask *wish, struct ledger **out, char *err, size_t err_bytes)
{
    struct ledger_ask here = *wish;
    const struct ledger_ask *ask = &here;
    here.limit_bytes = limit_of(wish, wish->device_bytes);
    char file[LEDGER_NAME_MAX + 64], hex[33];
    uint64_t limit = 0;
    struct held h;
    struct ledger *l = NULL;
    *out = NULL;
    int r = check(ask, err, err_bytes);
    if (r)
        return r;
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", ask->device[i]);
    snprintf(file, sizeof file, "%s@%s", ask->group, hex);
    h.f.n = 0;
    r = open_for(ask, file, &h, &l, err, err_bytes);
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
    if (r && l)
        shut(l);
    else if (!r)
        ledger_lock_byte(l->fd, 0, F_UNLCK);
    let_go(&h);
    *out = r ? NULL : l;
    return r;
}

/* ledger_may_join() in one folder; *devices counts on how many devices the group has members. */
static int may_join_in(const char *dir, const struct ledger_ask *ask, unsigned *devices, char *err, size_t err_bytes)
{
    struct ledger_ask here = *ask;
    const size_t n = strlen(ask->group);
    uint64_t limit;
    int r = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && !r && (e = readdir(d));) {
        struct ledger *l;
        if (strncmp(e->d_name, ask->group, n) || e->d_name[n] != '@')
            continue;
        r = open_in(dir, e->d_name, false, &l, err, err_bytes);
        if (r)
            continue;
        ledger_reap(l);
        if (has_members(l)) {
            ++*devices;
            here.limit_bytes = limit_of(ask, l->page->device_bytes);
            r = admit(l, &here, &limit, err, err_bytes);
        }
        shut(l);
    }
    if (d)
        closedir(d);
    return r;
}

int ledger_may_join(const struct ledger_ask *ask, char *err, size_t err_bytes)
{
    struct held h;
    unsigned devices = 0;
    int r = check(ask, err, err_bytes);
    if (r)
        return r;
    r = named_folder(&h, err, err_bytes);
    if (!r && !(r = hold_folders(NULL, false, &h, err, err_bytes))) /* makes a folder where there is none: whether that fails is told now */
        r = 1;
    for (unsigned i = 0; r >= 0 && i < h.f.n; i++)
        if ((r = may_join_in(h.f.at[i].path, ask, &devices, err, err_bytes)))
            break;
    if (h.f.n)
        let_go(&h);
    if (r >= 0 && !devices && !ask->limit_bytes && !(ask->limit_pct > 0))
        r = say(-ENOENT, err, err_bytes, "group %s has no member yet: its first one must give --group-limit", ask->group);
    return r < 0 ? r : 0;
}

void ledger_leave(struct ledger *l)
{
    if (!l)
        return;
    ledger_row_clear(&l->page->rows[l->me]);
    ledger_wake(l->page, false);
    shut(l); /* closing drops the lock */
}

void ledger_after_fork_child(struct ledger *l)
{
    if (l)
        shut(l); /* the parent's lock is no lock of this process */
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

/* Names in a ledger are printed on terminals, root's too: a file with a name that is not valid is no ledger. */
static bool says_well(const struct ledger_page *p)
{
    const char *system = ".total";
    return memchr(p->group, '\0', sizeof p->group) && memchr(p->device, '\0', sizeof p->device) &&
           (ledger_name_ok(p->group) || !strcmp(p->group, system)) && !p->device[strspn(p->device, "0123456789abcdef")];
}

int ledger_read(const char *path, struct ledger_view *v)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), r = 0;
    if (fd < 0)
        return -errno;
    struct ledger_page *p = malloc(sizeof *p); /* a copy: the file's owner may cut the file short at any moment */
    if (!p)
        r = -ENOMEM;
    else if (fstat(fd, &st) || !S_ISREG(st.st_mode) || pread(fd, p, sizeof *p, 0) != (ssize_t)sizeof *p)
        r = -EINVAL;
    else if (p->magic != LEDGER_MAGIC || !says_well(p))
        r = -EINVAL;
    if (!r) {
        uint64_t ns = ledger_pid_namespace();
        memset(v, 0, sizeof *v);
        memcpy(v->group, p->group, sizeof v->group);
        memcpy(v->device, p->device, sizeof v->device);
        v->limit = atomic_load(&p->limit);
        v->peak_reserved = atomic_load(&p->peak_reserved);
        v->device_bytes = p->device_bytes;
        for (unsigned i = 0; i < LEDGER_ROWS; i++) {
            const struct ledger_row *row = &p->rows[i];
            if (!ledger_row_is_alive(fd, p, i, ns))
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
    free(p);
    close(fd);
    return r;
}
