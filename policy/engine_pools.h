/* engine_pools.h: how much managed memory the program holds from which pool, since it may ask.
 *
 * Threads: under engine_lock(). Errors: NULL: no memory; nothing is counted for such a pool.
 */
#ifndef REMAT_POLICY_ENGINE_POOLS_H
#define REMAT_POLICY_ENGINE_POOLS_H

#include "policy/engine_state.h"

struct pool {
    CUmemoryPool handle; /* NULL: the driver could not say which */
    uint64_t used_bytes, most_bytes /* 0: no maximum */, high_bytes[2] /* peaks of used and of reserved bytes since their last reset */;
};

struct pool *pool_of(CUmemoryPool handle);
void pool_gone(CUmemoryPool handle);
/* The driver's code for a pool that is named for the first time: the handle may be of a destroyed pool, or of none. */
int pool_refused_drv(CUmemoryPool handle);
bool pool_has_room(CUmemoryPool handle, uint64_t bytes);
void pool_take(CUmemoryPool handle, uint64_t bytes);
void pool_give(CUmemoryPool handle, uint64_t bytes);
/* The device has ended: its memory is held from no pool any more. */
void pool_device_ends(struct device *d);

#endif
