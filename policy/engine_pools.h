/* engine_pools.h: what the program holds of managed memory from which pool, as it may ask for it.
 *
 * Threads: under engine_lock(). Errors: NULL: no memory; such a pool says nothing of itself.
 */
#ifndef REMAT_POLICY_ENGINE_POOLS_H
#define REMAT_POLICY_ENGINE_POOLS_H

#include "policy/engine_state.h"

struct pool {
    CUmemoryPool handle; /* NULL: the driver could not say which */
    uint64_t used_bytes, most_bytes /* 0: no maximum */, high_bytes[2] /* used, reserved: since they were last reset */;
};

struct pool *pool_of(CUmemoryPool handle);
void pool_gone(CUmemoryPool handle);
/* What the driver says of a pool that is named for the first time: it may be gone, or none. */
int pool_refused_drv(CUmemoryPool handle);
bool pool_has_room(CUmemoryPool handle, uint64_t bytes);
void pool_take(CUmemoryPool handle, uint64_t bytes);
void pool_give(CUmemoryPool handle, uint64_t bytes);
/* Nothing of the device is held from a pool any more. */
void pool_device_ends(struct device *d);

#endif
