/* ledger.h: one budget of device memory for several processes (DESIGN 7): who holds how much of it. Here: joining, leaving, and reading one;
 * ledger_sums.h: reserving; ledger_rows.h: the file itself.
 *
 * One file per group and device, mapped shared by every member; a member is one row. All quantities are bytes.
 *
 *   row i:    reserved_i   bytes that i may have mapped on the device      guarantee_i  bytes that i may always come back to
 *             asking_i     a reservation i is making this very moment      wanted_i     bytes that i waits for, at most entitled_i
 *
 *   (1)  mapped_i <= reserved_i                  i reserves before it maps, and releases after it has unmapped
 *   (2)  sum of reserved_i over all rows <= limit                           at every instant
 *   (3)  entitled_i = guarantee_i where i asked for one, else an equal part of what all guarantees leave of the limit;
 *        so the sum of entitled_i <= limit, and members below their entitlement can always be served by members above theirs.
 *   (4)  within entitled_i a reservation needs (2) alone; a reservation beyond also leaves alone the bytes that other members wait for:
 *        sum over the others of max(reserved_j, wanted_j) + reserved_i + bytes <= limit
 *
 * No total is stored that could be wrong after a crash: the rows are summed each time. And no lock is held while
 * reserving, so that a stopped process stops no other: i first announces (asking_i = bytes), then sums reserved + asking over all
 * rows, then commits or withdraws. Of two members that do so at once at least one sees the other (both announce before they
 * sum, in one total order), so they never both pass (2). asking is read before reserved, since a commit writes reserved first:
 * bytes on their way from asking to reserved are seen twice, never not at all. Where two announcements alone are in each other's
 * way the higher row withdraws and comes again.
 *
 * Life and death. A member holds a POSIX record lock on its row's byte of the file from joining to its end, however the
 * process ends: the kernel drops the lock. Not an OFD lock: a forked child inherits it, so that a data loader would keep its dead
 * parent's share. Not a robust mutex, which lives as long as a thread. A row is dead when its lock can be had
 * AND, where the row is of our pid namespace, /proc knows no such process any more (or a zombie without threads): a program that
 * closes all its descriptors loses the lock while it lives. A dead row's share is free the moment any member finds it dead,
 * and every member looks that finds the budget full. Nothing is to be done at an exit.
 * Do not open a member's ledger a second time in the same process: closing either descriptor drops the lock.
 *
 * The first member sets the limit, which stays while there is a member; the file stays for ever, and says nothing without a member.
 * A system ledger (remat.conf's `total`) lies where the environment has no say. Folder: $REMAT_GROUP_DIR, which may be shared by users who trust each other, else
 * the folders of tracer/machine/folders.h, which no other user can take first; file GROUP@DEVICE, with the device's UUID in 32 hexadecimal digits.
 *
 * Threads: the functions of one `struct ledger` are called by one thread at a time (the engine's mutex), but for
 * ledger_sleep() (ledger_rows.h). Errors: 0 or a negative errno; joining says why in one line.
 */
#ifndef REMAT_POLICY_SHARE_LEDGER_H
#define REMAT_POLICY_SHARE_LEDGER_H

#include "policy/share/ledger_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger_ask {
    const char *group;
    uint8_t device[16];    /* UUID */
    uint64_t device_bytes;
    uint64_t limit_bytes;  /* of the group; 0: the limit that the group has, or limit_pct says it */
    double limit_pct;      /* the group's limit in percent of the device's memory; 0: not given so */
    uint64_t guarantee;    /* LEDGER_NO_GUARANTEE: none */
    bool system;           /* the machine's total for a user: its folder is fixed, its limit is the total that remat.conf says now */
};

/* True when the name is 1 to LEDGER_NAME_MAX of A-Z a-z 0-9 . _ - and does not begin with a dot. */
bool ledger_name_ok(const char *name);
/* Makes this process a member. -EINVAL: bad name or figures; -EACCES and others: the file; -EEXIST: the group has another limit; -ENOENT: no limit yet and none
 * given; -EDQUOT: the guarantees would pass the limit; -ENOSPC: all rows are taken; with one line in err. */
int ledger_join(const struct ledger_ask *ask, struct ledger **out, char *err, size_t err_bytes);
/* Whether ledger_join() would succeed: its errors, on every device on which the group has members; `device` is not looked at. */
int ledger_may_join(const struct ledger_ask *ask, char *err, size_t err_bytes);
/* Gives all reserved bytes back and frees *l. A process need not call it: its end gives them back too. */
void ledger_leave(struct ledger *l);
/* In a forked child: the row is the parent's. Frees *l. */
void ledger_after_fork_child(struct ledger *l);

/* ---- reading, for `remat status` ---------------------------------------------------------------------------------- */

struct ledger_view {
    char group[LEDGER_NAME_MAX + 1], device[33];
    uint64_t limit, device_bytes, reserved, peak_reserved; /* reserved: sum over living members */
    unsigned n; /* living members */
    struct ledger_member {
        int64_t pid, joined_unix_s;
        uint64_t reserved, guarantee, wanted, entitled; /* guarantee: LEDGER_NO_GUARANTEE where none was asked for */
        bool blocked;
    } member[LEDGER_ROWS];
};
/* Reads one file without changing it. 0 or a negative errno. Not for a process that is a member of that ledger. */
int ledger_read(const char *path, struct ledger_view *v);

#endif
