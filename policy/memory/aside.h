/* aside.h: copies of what buffers held, kept while an op is tried again and again: on the device where it has room that nobody
 * needs, else on the host within its cap. Free chunks come first: under a plan chunks are made for the whole limit, and
 * many of them are free most of the time. In chunks, a copy lies in pieces of a chunk at most.
 *
 * Memory is bounded by the limit and the host's cap.
 *
 * The pages stay from one op to the next, and hold nothing in between. So they never stand in the way: where the limit is
 * reached, memory/supply.c takes them by aside_give() before anything is evicted or refused.
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
    CUdeviceptr dev;         /* address of the copy on the device; 0: not there */
    uint32_t first, pieces;  /* or in chunks: the room's pieces first .. first + pieces - 1; pieces 0: not there */
    struct host_block *host; /* or the copy on the host */
};

/* Copies these parts of a resident slot, or all of it, on STREAM_IN. -ENOMEM: the device has no room; aside_chunks() free chunks would be enough. */
int aside_take(struct device *d, struct slot *s, const struct rec_range *parts, uint32_t n, struct aside *out);
uint64_t aside_chunks(const struct device *d, const struct rec_range *parts, uint32_t n);
/* Copies all of the slot to the host, which takes about aside_host_ns(). -ENOMEM: the host has no room. */
int aside_take_to_host(struct device *d, struct slot *s, struct aside *out);
uint64_t aside_host_ns(const struct slot *s);
/* Queues the copy back on STREAM_IN. Bytes outside of the parts may come back too, or stay as they are. */
int aside_back(struct device *d, const struct aside *a, struct slot *s);
/* The copies cannot be seen to end: the pages and chunks that they use are never used again. */
void aside_keep(struct device *d);
/* Drops a copy. All copies of an op are dropped together: the first that lies in chunks gives all borrowed chunks back. */
void aside_drop(struct device *d, struct aside *a);
/* Gives a page that holds nothing back to the driver. False: there is none. */
bool aside_give(struct device *d);
/* After the trial is closed: nothing is set aside any more, and the pages go back to the driver where memory presses, or where `all` is true. */
void aside_clear(struct device *d, bool all);
/* The context is gone: the pages and their addresses go back to the driver. */
void aside_end(struct device *d);

#endif
