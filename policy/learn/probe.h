/* probe.h: what an op does to the memory it touches, measured on the device.
 *
 * Nothing is assumed about a kernel. Memory that was allocated in the probed iteration (the lesson) is filled with a poison first; every buffer a
 * launch touches is hashed before and after it. A buffer whose hash changed was written. The launch then runs again, with another poison in the
 * bytes that nobody has written yet and the old content in all others: equal hashes prove that the blank bytes did not matter and that the kernel
 * repeats bit for bit; bytes that differ were not written, and are never compared (blank.h). To tell `side` from `rmw` (tracer/record.h), the launch
 * runs once more with the in-place buffers as the first run left them; if its other outputs are the same, the in-place ones do not influence them.
 * Words of structs passed by value are tried with decoys in their place (words.c). All of this happens in one iteration, synchronously, within ten
 * times the iteration's own device time and some round trips an op; an op that there is no time or no memory to try again is opaque.
 *
 * What measuring cannot see, and what happens then:
 *   reads that no argument shows     addresses in memory are looked for (a kernel that wrote some, a copy from the host): the buffers that they
 *                                    point at stay in memory. An address that a kernel computes from numbers is not found; a wrong value
 *                                    behind it is found only if it gets into a rebuilt one (comparing goes on for as long as a plan is in
 *                                    force); `--rehearse unmapped` makes such a kernel fault (plan/unmapped.h)
 *   tensor maps                      in a launch's arguments they are operands (op/tensor_map.h), though never given scratch in place of
 *                                    the buffer they describe; a tensor map that lies in device memory keeps its buffer where it is
 *   memory of the host, peers        a kernel that has such an address among its arguments runs once, and is never replayed
 *   effects that depend on data      effects are kept by kernel and offset: one launch that writes makes all of them write
 *   state of a module                (its __device__ variables): a kernel that does not repeat bit for bit is never replayed. The driver
 *                                    does not list a module's variables, so a kernel that repeats in the lesson and not later is found by
 *                                    comparing
 *   flags inside structs             any byte of the arguments that is no pointer and changes makes the plan be left (plan/args.c)
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; *_drv the driver's code.
 */
#ifndef REMAT_POLICY_PROBE_H
#define REMAT_POLICY_PROBE_H

#include "policy/op/op.h"

struct probe_result {
    const char *why_opaque; /* why the op is never replayed; NULL: it repeats exactly */
    uint64_t ns;            /* device time of the program's own run */
    int32_t unannounced;    /* earliest op of the lesson since which a touched buffer was changed by no known op; -1: none */
    bool reaches_host;      /* the arguments hold addresses of memory that remat does not see (probe_reaches_elsewhere) */
    uint32_t *idle, n_idle; /* offsets of argument words that do not matter (words_idle_part), no operands. Valid until the next op */
};

/* Scratch memory and events for lessons, taken once for a device. 0; -EAGAIN: the device code is not loaded yet (hashing_loaded); -ENOTSUP: learning is impossible on this
 * device; -ENOMEM. */
int probe_init(struct device *d);
/* For an op launched outside a plan: now and then an event is recorded, to know how long an iteration takes, and so how long a lesson may take. */
void probe_clock(struct device *d, CUstream stream);
/* Starts a lesson, an iteration of `period` ops: buffers allocated before are old. `checked`: an earlier run's lesson, of the very same iteration, found no memory changed but
 * by what arguments show; then nothing is hashed around launches whose facts are their kernel's image's (facts.h). */
void probe_begin(struct device *d, uint64_t period, bool checked);
/* Ends a lesson that is over, or given up: memory taken for it goes. */
void probe_end(struct device *d);
/* Runs the op for the program, and again as often as measuring takes; sets operands[].mode, and takes idle words out of the operands. `nth`: the op's index in the iteration.
 * Every buffer that the op touches is resident. */
int probe_op_drv(struct device *d, struct rt_op *op, int32_t nth, struct probe_result *out);
/* At the end of a lesson: hashes all watched buffers once more. Returns the earliest op since which one was changed by no known op; 0 if work that may change anything is
 * still running; -1: none. */
int32_t probe_census(struct device *d);
/* The launch's arguments hold addresses of memory that the driver knows and remat does not see, in words other than those at the offsets but[n_but]: pinned or managed memory
 * of the host, another device's, the program's own mappings. Such memory may change at any time, and a launch that ran again might wait there for ever. */
bool probe_reaches_elsewhere(struct device *d, const struct rt_op *op, const uint32_t *but, uint32_t n_but);
/* Why a launch may not run again, whatever is known of its code: its arguments or its kind let one more run change memory that nobody has set aside (a surface, memory of the
 * host, addresses in a buffer). NULL: it may. The same in a lesson and under a plan. */
const char *probe_runs_once(const struct rt_op *op, bool reaches_elsewhere);
/* True if any measured launch of this function has changed memory through a pointer at this offset. */
bool probe_offset_changes(const struct func *f, uint32_t offset);

#endif
