/* pools.h: which memory pools the engine can serve. A pool whose memory other processes or devices may see, or that lies
 * on the host, keeps getting its memory from the driver: the engine's chunks are mapped for their own device alone.
 *
 * Threads: any; pools_* are lock-free reads of a small table. Errors: none; when the table is full, a pool stays as it was.
 */
#ifndef REMAT_PRELOAD_POOLS_H
#define REMAT_PRELOAD_POOLS_H

#include "preload/door.h"

enum pool_use {
    POOL_ENGINE,  /* managed */
    POOL_COUNTED, /* served by the driver; the memory counts against the limit */
    POOL_MANAGED, /* as POOL_COUNTED, and the host may write the memory at any time */
    POOL_OUTSIDE  /* served by the driver; memory of the host, or another process's pool, which no allocation comes from */
};

/* How a pool is served; a few instructions while no pool is special. */
enum pool_use pools_use(CUmemoryPool pool);
/* How the current device's current pool is served, which cuMemAllocAsync allocates from. */
enum pool_use pools_use_current(void);
void pools_mark(CUmemoryPool pool, enum pool_use use);
/* How a pool of these properties is served. */
enum pool_use pools_use_of_props(const CUmemPoolProps *props);
void pools_destroyed(CUmemoryPool pool);
/* The device on which a pool of the engine's lies; -1: unknown. */
int pools_device(CUmemoryPool pool);
void pools_created(CUmemoryPool pool, int device);

#endif
