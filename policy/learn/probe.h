/* probe.h: what an op does to the memory it touches, measured on the device.
 *
 * Nothing is assumed about a kernel. Memory that was allocated in the probed iteration is filled with a poison first; every
 * buffer a launch touches is hashed before and after it. What changed was written. The launch then runs again, all that nobody has
 * written yet holding another poison and the rest its old content: equal hashes prove that what was blank did not matter and that
 * the kernel repeats bit for bit; bytes that differ were not written, and are never compared (blank.h). To tell `side` from `rmw`,
 * it runs once more with the in-place buffers as the first run left them; if its other outputs are the same, the in-place ones do
 * not influence them. Words of structs passed by value are tried with decoys in their place (words.c). All of this happens in one
 * iteration, synchronously, within ten times the iteration's own device time and some round trips an op; what there is no time or no
 * memory to try again is opaque.
 *
 * What this cannot see, and what happens then:
 *   reads that no argument shows     addresses in memory are looked for (a kernel that wrote some, a copy from the host): what they
 *                                    point at stays in memory. Where an address is made of numbers, nothing is seen; there a
 *                                    wrong value is found only if it gets into a rebuilt one (comparing goes on for as long as
 *                                    a plan is in force); `--rehearse unmapped` makes such a kernel fault (plan/unmapped.h)
 *   tensor maps                      in a launch's arguments they are operands (op/tensor_map.h), though never given scratch in place of
 *                                    what they describe; one that lies in device memory keeps that where it is
 *   memory of the host, peers        a kernel that has such an address among its arguments runs once, and is never replayed
 *   effects that depend on data      effects are kept by kernel and offset: one launch that writes makes all of them write
 *   state of a module                (its __device__ variables): a kernel that does not repeat bit for bit is never replayed. The driver
 *                                    does not list a module's variables, so one that repeats now and not later is found by comparing
 *   flags inside structs             any byte of the arguments that is no pointer and changes makes the plan be left (plan/args.c)
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
    bool reaches_host;      /* its arguments hold addresses of memory that we do not see */
    uint32_t *idle, n_idle; /* what does not matter (words_idle_part); operands no more. Valid until the next op */
};

/* Loads the device code and takes its scratch memory. 0, or a negative errno: learning is impossible here. */
int probe_init(struct device *d);
/* An op is launched outside a plan: now and then the time is taken, so that it is known how long learning may take. */
void probe_clock(struct device *d, CUstream stream);
/* Starts a probed iteration: what was allocated before this is old. `checked`: a lesson of an earlier run, of the very same iteration, found no memory
 * changed but by what arguments show; then nothing is hashed around launches whose facts are their image's. */
void probe_begin(struct device *d, uint64_t period, bool checked);
/* It is over, or given up: memory taken for it goes. */
void probe_end(struct device *d);
/* Runs the op for the program, and again as often as it takes; sets operands[].mode, and leaves out operands that are none. `nth`:
 * its index in the iteration. Everything it touches is resident. */
int probe_op_drv(struct device *d, struct rt_op *op, int32_t nth, struct probe_result *out);
/* At the end: looks at all watched buffers once more; the index since which an unannounced write happened, or -1. */
int32_t probe_census(struct device *d);
/* Its arguments hold addresses of memory that the driver knows and we do not see, in other words than those at the offsets but[n_but]: pinned
 * or managed memory of the host, another device's, the program's own mappings. What lies there may change at any time, and a launch that ran
 * again might wait there for ever. */
bool probe_reaches_elsewhere(struct device *d, const struct rt_op *op, const uint32_t *but, uint32_t n_but);
/* What of a launch's arguments forbids to run it again, whatever is known of its code: one more run would change what nobody has set aside. NULL: nothing does. In a lesson and under
 * a plan alike. */
const char *probe_runs_once(const struct rt_op *op, bool reaches_elsewhere);
/* A launch of this function has changed memory through a pointer at this offset, ever. */
bool probe_offset_changes(const struct func *f, uint32_t offset);

#endif
