/* capture.h: stream captures under way. During a capture no memory moves on the devices that take part: live memory is pinned when a device comes into
 * the capture, since its graph may run at any time, and work that remat queued would become a part of the graph.
 *
 * A capture begins on the device of the stream that begins it, and spans another device as soon as a stream of that device waits for an event that was
 * recorded in the capture. Each device is in it, like the first, until the first stream ends it. The driver's number of a capture says which streams take part.
 *
 * Threads: under engine_lock(). Errors: none. The doors' calls are in engine.h.
 */
#ifndef REMAT_POLICY_CAPTURE_H
#define REMAT_POLICY_CAPTURE_H

#include "policy/engine_state.h"

/* The stream's handle is about to go: a capture that the stream began goes with it. */
void capture_stream_gone(CUstream stream);
/* The device's context has gone, and its streams with it. */
void capture_device_ends(const struct device *d);

#endif
