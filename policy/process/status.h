/* status.h: the page a running process publishes for `remat status`.
 *
 * One file per process, DIR/<pid>, mapped shared; the engine stores to its fields with relaxed atomics, without a
 * system call. The owner holds a POSIX write lock on the file for its whole life, and the kernel drops the lock when the
 * process ends in whatever way: a file without a lock is stale, and a reader removes it. (POSIX locks, not
 * flock: a forked child must not keep a dead parent's file alive.)
 *
 * A process of another pid namespace (a container's, with the folder mounted into it) may have the same number and be alive: the second of the two is
 * called <pid>.<namespace>. `host` tells them apart: in a pod it is the pod's name.
 *
 * DIR is $REMAT_STATUS_DIR, else one of the user's folders of tracer/machine/folders.h; mode 0700, owned by the user. Nothing in it is replaced or removed but
 * pages: files of that name, size and magic whose owner has ended.
 *
 * Threads: fields from any thread; status_open and status_close from one. Errors: status_open returns NULL when there
 * is no place to publish; the run goes on without a page.
 */
#ifndef REMAT_POLICY_STATUS_H
#define REMAT_POLICY_STATUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STATUS_MAGIC 0x33746174736d6572ull /* "remstat3" */
enum { STATUS_DEVICES = 16, STATUS_COMMAND = 200, STATUS_GROUP = 64, STATUS_PCI = 16, STATUS_HOST = 64, STATUS_UUID = 33 };
#define STATUS_NO_PRICE INT64_MIN

/* A process's state on one device. */
struct status_device {
    int32_t ordinal; /* CUDA's number */
    char pci[STATUS_PCI];
    char uuid[STATUS_UUID]; /* 32 hexadecimal digits; the whole GPU's where the device is a part of one (MIG); "": not known */
    uint64_t device_bytes;  /* all of the device's memory */
    _Atomic uint64_t limit_bytes;       /* 0: no limit */
    _Atomic uint64_t in_use_bytes;      /* physical device memory now */
    _Atomic uint64_t peak_bytes;        /* high-water mark of in_use_bytes */
    _Atomic uint64_t mode_text;         /* up to 8 characters of device_mode_name(), in memory order */
    _Atomic uint64_t iterations;        /* seen so far */
    _Atomic uint64_t swapped_bytes;     /* pinned on the host now */
    _Atomic uint64_t iteration_ns;      /* wall time of an iteration, a running mean; 0: not known yet */
    _Atomic uint64_t last_iteration_ns; /* end of the latest iteration, CLOCK_MONOTONIC */
    /* counted since the process began; as of the latest iteration's end, but for copies, departures and differences, which are told at once */
    _Atomic uint64_t iterations_planned; /* iterations that ran by a plan */
    _Atomic uint64_t replays, swaps_out, swaps_in;
    _Atomic uint64_t departures;         /* times that a plan was left in the midst of an iteration */
    _Atomic uint64_t compared, differed; /* rebuilt values compared with the dropped ones; differences found */
    _Atomic int64_t price_ppm;           /* device time beyond the native, in millionths of the native; STATUS_NO_PRICE: not known */
};

struct status_page {
    uint64_t magic;
    int64_t pid;
    int64_t started_unix_s;
    char command[STATUS_COMMAND]; /* the command line, arguments joined by spaces, NUL-terminated */
    char group[STATUS_GROUP];     /* the process's group (REMAT_GROUP); "": none */
    char host[STATUS_HOST];       /* the machine's name; in a pod, the pod's */
    _Atomic uint32_t n_devices;   /* raised after the new device's fields are written */
    struct status_device device[STATUS_DEVICES];
};

/* Publishes this process. NULL: no place for the page. The page stays mapped until status_close(). */
struct status_page *status_open(void);
/* Adds a device; NULL if there is no page, or the page is full. One thread at a time. uuid: 16 bytes; NULL: not known. */
struct status_device *status_add_device(struct status_page *s, int ordinal, const char *pci, const uint8_t *uuid, uint64_t device_bytes);
/* Unmaps and removes the file. NULL is fine. */
void status_close(struct status_page *s);
/* In a forked child: forgets the page, which is the parent's, without removing it. */
void status_after_fork_child(struct status_page *s);

static inline void status_store(_Atomic uint64_t *field, uint64_t v)
{
    atomic_store_explicit(field, v, memory_order_relaxed);
}

static inline void status_set_mode(struct status_device *s, const char *name)
{
    char text[8] = {0};
    uint64_t v;
    memcpy(text, name, strnlen(name, sizeof text));
    memcpy(&v, text, sizeof v);
    status_store(&s->mode_text, v);
}

/* The n-th iteration has ended. One clock reading, no system call. */
static inline void status_iteration(struct status_device *s, uint64_t n)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    uint64_t last = atomic_load_explicit(&s->last_iteration_ns, memory_order_relaxed);
    uint64_t mean = atomic_load_explicit(&s->iteration_ns, memory_order_relaxed);
    if (last)
        status_store(&s->iteration_ns, mean ? (3 * mean + (now - last)) / 4 : now - last);
    status_store(&s->last_iteration_ns, now);
    status_store(&s->iterations, n);
}

static const char STATUS_SORT[] = "remat"; /* the `sort` of folders.h */

/* The folder that the user has named for pages; NULL: none. */
static inline const char *status_named_dir(void)
{
    const char *own = getenv("REMAT_STATUS_DIR");
    return own && *own ? own : NULL;
}

/* Whether a file of this name can be a page: <pid>, <pid>.<namespace>, or either with a dot before it while the page is being made. */
static inline bool status_is_page_name(const char *name)
{
    static const char digits[] = "0123456789";
    name += *name == '.';
    const size_t n = strspn(name, digits), more = name[n] == '.' ? strspn(name + n + 1, digits) : 0;
    return n && (!name[n] || (more && !name[n + 1 + more]));
}

/* Whether the file `name` in the folder `dir` is a page of this user's whose owner has ended, so that it may be removed. False for any other file of that name. */
bool status_is_stale(int dir, const char *name);

#endif
