/* probe.h: what an op does to the memory it touches, measured on the device.
 *
 * Nothing is assumed about a kernel. Memory that was allocated in the probed iteration is filled with a poison first; every
 * buffer a launch touches is hashed before and after it. What changed was written. The launch then runs again, its fresh
 * outputs holding another poison and the others their old content: equal hashes prove that the old content of the fresh
 * ones did not matter and that the kernel repeats bit for bit. To tell `side` from `rmw`, it runs once more with the
 * in-place buffers as the first run left them; if its other outputs are the same, the in-place ones do not influence
 * them. All of this happens in one iteration, synchronously.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; *_drv the driver's code.
 */
#ifndef REMAT_POLICY_PROBE_H
#define REMAT_POLICY_PROBE_H

#include "policy/op/op.h"

struct probe_result {
    const char *why_opaque; /* NULL: repeats exactly */
    uint64_t ns;            /* device time of the program's own run */
    int32_t unannounced;    /* op (of this probe) since which a touched buffer was changed by nobody known; -1 none */
};

/* Loads the device code and takes its scratch memory. 0, or a negative errno: learning is impossible here. */
int probe_init(struct device *d);
/* Starts a probed iteration: what was allocated before this is old. */
void probe_begin(struct device *d);
/* Fills fresh memory with the poison (it must be resident). */
void probe_poison(struct device *d, struct slot *s);
/* Runs the op for the program, and again as often as it takes; sets operands[].mode. `nth`: its index in the iteration.
 * Everything it touches is resident. */
int probe_op_drv(struct device *d, struct rt_op *op, int32_t nth, struct probe_result *out);
/* At the end: looks at all watched buffers once more; the index since which an unannounced write happened, or -1. */
int32_t probe_census(struct device *d);
/* A launch of this function has changed memory through a pointer at this offset, ever. */
bool probe_offset_changes(const struct func *f, uint32_t offset);

/* Hashes n buffers into out[2 * n] (the host waits). */
int probe_hash(struct device *d, struct slot *const *slots, uint32_t n, uint64_t *out);

#endif
