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

enum { JOBS_UUID = 41 };

/* One process on one device; before it has used one, `device` is -1 and the figures are 0. */
struct job {
    uid_t uid;
    char user[40]; /* its name, or its number */
    int64_t pid; /* as this process's pid namespace counts, where that can see it; else as its own does */
    int64_t started_unix_s;
    int device;
    char pci[STATUS_PCI], mode[9], group[STATUS_GROUP], host[STATUS_HOST];
    char uuid[JOBS_UUID]; /* as NVML and DCGM write it; "": not told */
    char command[STATUS_COMMAND]; /* valid UTF-8, no control characters */
    uint64_t device_bytes, limit_bytes, in_use_bytes, peak_bytes, host_bytes, iterations, iterations_planned;
    uint64_t replays, swaps_out, swaps_in, departures, compared, differed;
    double iterations_per_s; /* 0: none yet, or none for long */
    double price;            /* device time beyond the native, as a share of that; NAN: not known */
};

struct job_group {
    char user[40], uuid[JOBS_UUID];
    struct ledger_view view;
};

struct jobs {
    struct job *list;
    struct job_group *groups;
    size_t n, n_groups;
};

/* By user, process and device. A page whose owner has ended is removed where it is this user's. Free with jobs_free. */
int jobs_read(struct jobs *j);
/* By user, pid, gpu; or limit, use, share, host, price, rate, peak, the largest first. -EINVAL: no such word. */
int jobs_sort(struct jobs *j, const char *by);
/* What of the device's memory the process holds now, 0 to 1; 0 where the device is not known. */
double jobs_share(const struct job *s);
void jobs_free(struct jobs *j);

#endif
