/* aside.h: what a buffer held, set aside while an op is tried again and again: on the device where there is room that nobody
 * needs, else on the host within its cap. Free chunks come first: under a plan all that the limit allows is
 * made, and much of it is free most of the time. A buffer lies there in pieces of a chunk at most.
 *
 * Memory is bounded by the limit and the host's cap.
 *
 * The pages stay from one op to the next, and hold nothing in between. So they never stand in anybody's way: whoever finds the limit
 * reached (memory/supply.c) takes them by aside_give() before anything is evicted or refused.
 *
 * Order: all streams of the device are idle when the first of an op's buffers is set aside, and trial_close() comes back when the last
 * copy has ended. So no copy uses a page that holds nothing, and unmapping one needs no wait.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_ASIDE_H
#define REMAT_POLICY_ASIDE_H

#include "policy/device.h"
#include "tracer/record.h"

struct slot;
struct host_block;

struct aside {
    CUdeviceptr dev;         /* where it lies on the device; 0: not there */
    uint32_t first, pieces;  /* or in chunks: so many of the room's pieces; 0: not there */
    struct host_block *host; /* or on the host */
};

/* Copies these parts of a resident slot, or all of it, on STREAM_IN. -ENOMEM: there is no room on the device; aside_chunks() free chunks would be. */
int aside_take(struct device *d, struct slot *s, const struct rec_range *parts, uint32_t n, struct aside *out);
uint64_t aside_chunks(const struct device *d, const struct rec_range *parts, uint32_t n);
/* All of it to the host, which takes about so long. -ENOMEM: there is no room. */
int aside_take_to_host(struct device *d, struct slot *s, struct aside *out);
uint64_t aside_host_ns(const struct slot *s);
/* Queues the copy back on STREAM_IN. Bytes that lie in none of the parts may be as they were, or as they are. */
int aside_back(struct device *d, const struct aside *a, struct slot *s);
/* The copies cannot be seen to end: nobody else gets what is set aside now, ever. */
void aside_keep(struct device *d);
/* Ends what one op has set aside (they end together). */
void aside_drop(struct device *d, struct aside *a);
/* One page that holds nothing goes back to the driver. False: there is none. */
bool aside_give(struct device *d);
/* After the trial is closed: nothing is set aside any more, and the pages go back where memory presses, or `all`. */
void aside_clear(struct device *d, bool all);
/* The context is gone: the pages and their addresses go back to the driver. */
void aside_end(struct device *d);

#endif
