/* ledger_rows.h: the file of a group as it lies in memory: its rows, which of their owners live, who sleeps on it. What the rows mean is in
 * ledger.h.
 *
 * Threads: as ledger.h. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_SHARE_LEDGER_ROWS_H
#define REMAT_POLICY_SHARE_LEDGER_ROWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LEDGER_MAGIC 0x3167646c74616d72ull /* "rmatldg1" */
enum { LEDGER_ROWS = 128, LEDGER_NAME_MAX = 48 };
#define LEDGER_NO_GUARANTEE UINT64_MAX /* as a row's guarantee: none was asked for, see (3) */

struct ledger_row {
    _Atomic int64_t pid; /* 0: the row is free; written last in joining */
    uint64_t start_ticks, pid_ns;
    int64_t joined_unix_s;
    _Atomic uint64_t reserved, asking, wanted, guarantee;
    _Atomic uint32_t blocked; /* the member cannot go on before it gets some of the bytes that it waits for */
    uint32_t pad[15];
};

struct ledger_page {
    uint64_t magic; /* written last when the file is made */
    _Atomic uint64_t limit, peak_reserved; /* peak: the largest sum of reserved that a member has seen */
    uint64_t device_bytes;
    char device[33], group[LEDGER_NAME_MAX + 1];
    char pad[6];
    _Atomic uint32_t n_rows;  /* rows ever used: the rows behind are empty */
    _Atomic uint32_t asked;   /* counts asks; a futex */
    _Atomic uint32_t freed;   /* counts releases; a futex */
    uint32_t pad2[31];
    struct ledger_row rows[LEDGER_ROWS];
};

struct ledger {
    struct ledger_page *page;
    unsigned me; /* own row */
    int fd;      /* must stay open: closing it drops the lock */
    uint64_t pid_ns;
};

/* Byte 0 is held while joining, byte 1 + i by the owner of row i. `type`: F_WRLCK or F_UNLCK. -EAGAIN: another process holds the byte. */
int ledger_lock_byte(int fd, off_t at, int type);
/* When the process began, by the kernel's clock; 0: no process has that pid, or only a zombie whose threads have all closed
 * their files. */
uint64_t ledger_started_at(int64_t pid);
uint64_t ledger_pid_namespace(void);
bool ledger_row_is_alive(int fd, const struct ledger_page *p, unsigned i, uint64_t pid_ns);
void ledger_row_clear(struct ledger_row *r);
/* Clears the rows of dead members. True: one of them had bytes reserved. */
bool ledger_reap(struct ledger *l);
/* A member has asked since the count of asks was `seen`: one load. */
static inline bool ledger_asked(const struct ledger_page *p, uint32_t seen)
{
    return atomic_load_explicit(&p->asked, memory_order_relaxed) != seen;
}
/* Sleeps, ms at most, until bytes are released (`asks` false) or asked for (true) after that count was `seen`. */
void ledger_sleep(const struct ledger_page *p, bool asks, uint32_t seen, int ms);
void ledger_wake(struct ledger_page *p, bool asks);

#endif
