/* pinned.h: pinned memory of the host, in blocks, for swapped-out content and for copies set aside (aside.h). How much there may be: host.h.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_PINNED_H
#define REMAT_POLICY_MEMORY_PINNED_H

#include "policy/memory/space.h"

struct host_block {
    void *p;
    size_t bytes;
    struct fence busy; /* copies of ours that use the block */
    struct host_block *next, *next_all;
};

int pinned_init(struct device *d);
/* The device's context is gone: the driver has freed the blocks with it. */
void pinned_end(struct device *d);
/* A block of at least `bytes`; NULL when the cap is reached or the driver refuses. pinned_put() gives it back. */
struct host_block *pinned_get(struct device *d, uint64_t bytes);
/* The host waits for the copies that use the block. */
FENCE_MUST_USE int pinned_wait(struct device *d, struct host_block *b);
void pinned_put(struct device *d, struct host_block *b);
/* The address p lies in such a block. The program knows no such address, but our words may lie in what it leaves uninitialised on the stack. */
bool pinned_is_ours(const struct device *d, CUdeviceptr p);
/* p points at memory that the library manages or has for itself: the reservation, our own ranges, host blocks of ours. */
static inline bool mem_is_ours(const struct device *d, CUdeviceptr p)
{
    if (mem_in_reservation(d, p))
        return true;
    for (int i = 0; i < OWN_KINDS; i++)
        if (p - d->mem.own[i].at < d->mem.own[i].bytes)
            return true;
    return pinned_is_ours(d, p);
}
/* `bytes` more, or fewer where negative, are pinned, in blocks or otherwise (pages of lodged slots): all count alike. */
void pinned_count(struct device *d, int64_t bytes);
/* Pinned host memory that may still be taken. */
uint64_t pinned_room_bytes(const struct device *d);

#endif
