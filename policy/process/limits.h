/* limits.h: how much of a device this process may have, and who says so.
 *
 * What was asked for:       --limit (REMAT_LIMIT), else a `limit` rule of remat.conf, else the soft limit of the cgroup or of NVML, else
 *                           all there is.
 * What it cannot go above:  the `max` and `total` rules of remat.conf; the limits of the `remat run`s around this one (REMAT_LIMIT_MAX); what was
 *                           asked for when the library was loaded (a program may change its environment later); what is left
 *                           below the cgroup's dmem.max and NVML's hard limit; the device.
 * A soft limit is aimed at, not held: where nothing more can move, the process takes more, up to what it cannot go above.
 *
 * Threads: limits_at_load() from the library's constructor, limits_start() and limits_ask_machine() any, without a lock of ours; the rest from eng_start()
 * and from set-up, one thread at a time.
 * Errors: none; what could not be read is told by limits_start() on stderr, and counts as not there.
 */
#ifndef REMAT_POLICY_LIMITS_H
#define REMAT_POLICY_LIMITS_H

#include "policy/driver.h"
#include "policy/process/config.h"
#include "tracer/machine/dmem.h"

#include <stdbool.h>
#include <stdint.h>

/* The environment is remembered as it is now. Allocates nothing, reads no file. */
void limits_at_load(void);
/* True where the machine has a file of maxima: then REMAT_DISABLE is the engine's to judge. One system call, no lock. */
bool limits_may_hold(void);
/* Reads the files of maxima, once, and says what is wrong with them. */
void limits_start(void);
/* After it: true where a maximum of the system's binds this user, so that no variable may shut remat out. */
bool limits_hold(void);
/* The same, or a `remat run` around this one has a limit. */
bool limits_bind(void);
/* The rule that does, "FILE:LINE, user alice"; "" where none does. */
const char *limits_holder(void);

struct limits {
    uint64_t limit_bytes;   /* where the process begins */
    uint64_t ceiling_bytes; /* >= limit_bytes: where it may go when nothing more can move */
};
/* What the kernel and NVML allow this process on device `dev`. NVML is a library that may have to be loaded: without a lock (tracer/loader.h). */
struct limits_machine {
    struct dmem dmem;
    uint64_t nvml_bytes, soft_bytes; /* DMEM_NONE: NVML tells of no limit; 0: none */
};
struct limits_machine limits_ask_machine(const struct drv *drv, CUdevice dev);
/* The limits on device `dev`; one line on stderr where more was asked for than there is. */
void limits_decide(const struct limits_machine *m, const struct config *c, CUdevice dev, uint64_t device_bytes, struct limits *out);
/* What all of this user's processes may have of a device together, by the `total` rules; 0: no such rule. share.c keeps it. */
uint64_t limits_total_bytes(uint64_t device_bytes);
/* Without a line, without a driver, without the kernel's and NVML's word: for questions asked before there is a context. */
uint64_t limits_of_bytes(const struct config *c, uint64_t device_bytes);
/* Nothing more can move: a soft limit gives way, for `bytes` and a little more. False: it is hard, or all is taken. */
struct device;
bool limits_borrow(struct device *d, uint64_t bytes);

#endif
