/* capture.h: stream captures under way. While one is, nothing of ours moves on the devices that take part: what is live is pinned when a device comes into
 * it, since its graph may run at any time, and what we would queue would become a part of the graph.
 *
 * A capture begins on the device of the stream that begins it, and spans others as soon as streams of theirs wait for an event that was recorded in it:
 * these devices are in it, each as the first, until the first stream ends it. The driver's number of a capture says which streams are of one.
 *
 * Threads: under engine_lock(). Errors: none. The doors' calls are in engine.h.
 */
#ifndef REMAT_POLICY_CAPTURE_H
#define REMAT_POLICY_CAPTURE_H

#include "policy/engine_state.h"

/* Its handle is about to go: a capture that it began goes with it. */
void capture_stream_gone(CUstream stream);
/* The device's context has gone, and its streams with it. */
void capture_device_ends(const struct device *d);

#endif
