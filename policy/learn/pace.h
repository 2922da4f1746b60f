/* pace.h: how much time learning may take, and what it has taken.
 *
 * An iteration that is learnt may take ten times its own device time, and some round trips to the device an op. How long it takes unlearnt is
 * known from events that are recorded now and then before.
 *
 * Threads: under the engine's mutex. Its state is device.probe->pace; after probe_init().
 */
#ifndef REMAT_POLICY_PACE_H
#define REMAT_POLICY_PACE_H

#include "policy/device.h"

enum { PACE_CLOCKS = 32 };
struct pace {
    CUevent begin, now;        /* around all that learning does with one op */
    struct {                   /* every so many ops an event, so that it is known what an iteration takes */
        CUevent at;
        uint64_t op;           /* 0: not recorded */
        uint64_t host_ns;
    } clock[PACE_CLOCKS];
    CUstream clock_stream;
    uint64_t own_ns, expected_ns, extra_ns;
    uint64_t n_ops;            /* learnt so far, the one at hand as well */
    uint64_t host_ns;          /* that an iteration takes the host, before it is learnt; 0: unknown */
    CUdeviceptr word;          /* what is filled to find out the next two */
    uint64_t launch_ns, least_ns; /* by how much an op that the device had to wait for seems longer than it is; what the shortest op takes */
    bool in_trial, unbounded;
};

/* The events. False: there are none. */
bool pace_init(struct device *d);
/* An op is launched outside a plan: is it one of those whose time is taken? Then: it is. */
bool pace_is_due(const struct device *d);
void pace_note(struct device *d, CUstream stream);
/* An iteration of so many ops is learnt from here on. The second, once the device has nothing to do: how long one takes it. */
void pace_begin(struct device *d, uint64_t period);
void pace_expect(struct device *d, uint64_t period);
/* One line of what learning took. */
void pace_say(const struct device *d);
/* Round all that is done with one op; own_ns: of that the op's own; `counts`: it came to an end. */
void pace_trial_begins(struct device *d);
void pace_trial_ends(struct device *d, uint64_t own_ns, bool counts);
/* From here on the stream's time is the op's: `from` is recorded there. False: it could not be. */
bool pace_op_begins(struct device *d, CUstream stream, CUevent from);
/* What an op takes among others, of which from .. to is what it took where the device had nothing to do before it: launching it is the host's time. */
uint64_t pace_op_ns(struct device *d, CUevent from, CUevent to);
uint64_t pace_between_ns(struct device *d, CUevent from, CUevent to);
/* How long an iteration takes the host, as far as is known; 0: it is not. */
uint64_t pace_iteration_wall_ns(const struct device *d);
/* What is left of the time that learning may take, ns. */
uint64_t pace_left_ns(struct device *d);
/* As much of it as is asked for, from now on: for one op of a plan in force. Or no more. */
void pace_unbounded(struct device *d, bool on);

#endif
