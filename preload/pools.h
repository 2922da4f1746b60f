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
    POOL_COUNTED, /* the driver serves it; its memory counts against the limit */
    POOL_MANAGED, /* so, and the host may write there at any time */
    POOL_OUTSIDE  /* the driver serves it; it is memory of the host, or another process's, which no allocation comes from */
};

/* A few instructions while no pool is special. */
enum pool_use pools_use(CUmemoryPool pool);
/* The same for the pool that an allocation without one comes from: the current device's current pool. */
enum pool_use pools_use_current(void);
void pools_mark(CUmemoryPool pool, enum pool_use use);
/* What a pool of these properties is. */
enum pool_use pools_use_of_props(const CUmemPoolProps *props);
void pools_destroyed(CUmemoryPool pool);
/* The device that a pool of the engine's lies on, as far as it can be told; -1 otherwise. */
int pools_device(CUmemoryPool pool);
void pools_created(CUmemoryPool pool, int device);

#endif
