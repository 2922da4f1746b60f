/* jobs.h: who runs under remat on this machine now, and which groups share a device: the pages of policy/process/status.h and the
 * ledgers of policy/share/ledger.h, of every user whose folders may be read (root: all of them).
 *
 * Threads: the main thread. Errors: 0 or -ENOMEM; what may not be read is not there.
 */
#ifndef REMAT_OFFLINE_JOBS_H
#define REMAT_OFFLINE_JOBS_H

#include "policy/process/status.h"
#include "policy/share/ledger.h"

#include <stdint.h>
#include <sys/types.h>

/* One process on one device; before it has used one, `device` is -1 and the figures are 0. */
struct job {
    uid_t uid;
    char user[40]; /* its name, or its number */
    int64_t pid, started_unix_s;
    int device;
    char pci[STATUS_PCI], mode[9], group[STATUS_GROUP];
    char command[STATUS_COMMAND]; /* valid UTF-8, no control characters */
    uint64_t limit_bytes, in_use_bytes, peak_bytes, host_bytes, iterations;
    double iterations_per_s; /* 0: none yet, or none for long */
};

struct job_group {
    char user[40];
    struct ledger_view view;
};

struct jobs {
    struct job *list;
    struct job_group *groups;
    size_t n, n_groups;
};

/* By user, process and device. A page whose owner has ended is removed where it is this user's. Free with jobs_free. */
int jobs_read(struct jobs *j);
void jobs_free(struct jobs *j);

#endif
