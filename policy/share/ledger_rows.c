/* ledger_rows.c: see ledger_rows.h. */
#include "policy/share/ledger_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct ledger_row) == 128, "rows of a file that outlives this build");
_Static_assert(offsetof(struct ledger_page, rows) == 256, "header of a file that outlives this build");

int ledger_lock_byte(int fd, off_t at, int type)
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
    return fcntl(fd, F_GETLK, &l) || l.l_type != F_UNLCK; /* a byte that cannot be asked about counts as locked */
}

uint64_t ledger_started_at(int64_t pid)
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
    const char *after = strrchr(text, ')'); /* the program's name, before that, may hold anything */
    char state;
    long threads;
    unsigned long long start;
    if (!after || sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu", &state, &threads,
                         &start) != 3)
        return 0;
    return (state == 'Z' || state == 'X') && threads <= 1 ? 0 : start;
}

uint64_t ledger_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
}

bool ledger_row_is_alive(int fd, const struct ledger_page *p, unsigned i, uint64_t pid_ns)
{
    const struct ledger_row *r = &p->rows[i];
    int64_t pid = atomic_load(&r->pid);
    if (!pid)
        return false;
    if (byte_is_locked(fd, 1 + (off_t)i))
        return true;
    return pid_ns && r->pid_ns == pid_ns && ledger_started_at(pid) == r->start_ticks;
}

void ledger_row_clear(struct ledger_row *r)
{
    atomic_store(&r->wanted, 0);
    atomic_store(&r->blocked, 0);
    atomic_store(&r->asking, 0);
    atomic_store(&r->guarantee, 0);
    atomic_store(&r->pid, 0);
    atomic_store(&r->reserved, 0); /* last: the row counts until this store */
}

bool ledger_reap(struct ledger *l)
{
    bool found = false;
    for (unsigned i = 0; i < atomic_load(&l->page->n_rows); i++) {
        struct ledger_row *r = &l->page->rows[i];
        bool holds = atomic_load(&r->pid) || atomic_load(&r->reserved) || atomic_load(&r->asking);
        if (i == l->me || !holds || ledger_row_is_alive(l->fd, l->page, i, l->pid_ns) || ledger_lock_byte(l->fd, 1 + (off_t)i, F_WRLCK))
            continue;
        /* With the lock held, the row is looked at again: between the first look and the lock another process may have taken it. */
        if (!atomic_load(&r->pid) || r->pid_ns != l->pid_ns || ledger_started_at(atomic_load(&r->pid)) != r->start_ticks) {
            found |= atomic_load(&r->reserved) != 0;
            ledger_row_clear(r);
        }
        ledger_lock_byte(l->fd, 1 + (off_t)i, F_UNLCK);
    }
    if (found)
        ledger_wake(l->page, false);
    return found;
}

/* ---- sleeping and waking ------------------------------------------------------------------------------------------- */

void ledger_wake(struct ledger_page *p, bool asks)
{
    _Atomic uint32_t *count = asks ? &p->asked : &p->freed;
    atomic_fetch_add(count, 1);
    syscall(SYS_futex, count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void ledger_sleep(const struct ledger_page *p, bool asks, uint32_t seen, int ms)
{
    const _Atomic uint32_t *count = asks ? &p->asked : &p->freed;
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    syscall(SYS_futex, count, FUTEX_WAIT, seen, &t, NULL, 0);
}
