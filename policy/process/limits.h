/* limits.h: how much of a device this process may have, and who says so.
 *
 * Asked for:   --limit (REMAT_LIMIT), else a `limit` rule of remat.conf, else the soft limit of the cgroup or of NVML, else the whole device.
 * Ceiling:     the least of the `max` and `total` rules of remat.conf; the limits of the `remat run`s around this one (REMAT_LIMIT_MAX); REMAT_LIMIT as
 *              it was when the library was loaded (a program may change its environment later); the room left below the cgroup's dmem.max and NVML's
 *              hard limit; the device.
 * A soft limit is aimed at, not held: where nothing more can move, the process takes more, up to its ceiling.
 *
 * Threads: limits_at_load() from the library's constructor, limits_start() and limits_ask_machine() any, without a lock of remat's; the rest from eng_start()
 * and from set-up, one thread at a time.
 * Errors: none; a file or line that cannot be read is named by limits_start() on stderr, and counts as absent.
 */
#ifndef REMAT_POLICY_LIMITS_H
#define REMAT_POLICY_LIMITS_H

#include "policy/driver.h"
#include "policy/process/config.h"
#include "tracer/machine/dmem.h"

#include <stdbool.h>
#include <stdint.h>

/* Remembers REMAT_LIMIT and REMAT_LIMIT_MAX. Allocates nothing, reads no file. */
void limits_at_load(void);
/* True where the machine has a file of maxima: whether REMAT_DISABLE holds is then the engine's to judge. One system call, no lock. */
bool limits_may_hold(void);
/* Reads the files of maxima, once, and says on stderr what is wrong with them. */
void limits_start(void);
/* After limits_start(): true where a maximum of the system's binds this user, so that no variable may shut remat out. */
bool limits_hold(void);
/* limits_hold(), or a `remat run` around this one has a limit. */
bool limits_bind(void);
/* The rule that binds, "FILE:LINE, user alice", or words for the outer `remat run`; "" where nothing binds. */
const char *limits_holder(void);

struct limits {
    uint64_t limit_bytes;   /* the process's limit at first */
    uint64_t ceiling_bytes; /* >= limit_bytes: how far the limit may grow when nothing more can move */
};
/* Limits that the kernel and NVML set this process on device `dev`. NVML is a library that may have to be loaded: call without a lock (tracer/loader.h). */
struct limits_machine {
    struct dmem dmem;
    uint64_t nvml_bytes, soft_bytes; /* room below NVML's hard limit, DMEM_NONE: NVML has none; soft limit, 0: none */
};
struct limits_machine limits_ask_machine(const struct drv *drv, CUdevice dev);
/* Decides the limits on device `dev`; one line on stderr where more was asked for than the ceiling. */
void limits_decide(const struct limits_machine *m, const struct config *c, CUdevice dev, uint64_t device_bytes, struct limits *out);
/* Bytes of a device that all of this user's processes may have together, by the `total` rules; 0: no such rule. share.c keeps to it. */
uint64_t limits_total_bytes(uint64_t device_bytes);
/* The limit in bytes, asked before there is a context: nothing on stderr, no driver, and without the kernel's and NVML's limits. */
uint64_t limits_of_bytes(const struct config *c, uint64_t device_bytes);
/* Raises a soft limit by `bytes` and a little more: nothing more can move. False: the limit is hard, or at its ceiling. */
struct device;
bool limits_borrow(struct device *d, uint64_t bytes);

#endif
