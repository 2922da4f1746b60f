/* allocations.h: memory that the program asks for: managed memory, pools, and memory that is only counted. The doors call it: see engine.h.
 *
 * Threads: any. Errors: functions of type `int` return the driver's code for the program.
 */
#ifndef REMAT_POLICY_ALLOCATIONS_H
#define REMAT_POLICY_ALLOCATIONS_H

#include "policy/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cuMemAllocAsync (pool NULL) and cuMemAllocFromPoolAsync. `pool_dev`: the device that the pool lies on, -1: unknown, or no pool is named;
 * pool_dev matters only where eng_has_devices() is true. */
int eng_alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, int pool_dev, CUstream stream);
bool eng_has_devices(void);
/* cuMemAlloc where its memory is managed (--allocator each). 1: answered, result code in *res; 0: the door must ask the driver. */
int eng_alloc(CUdeviceptr *out, size_t bytes, int *res);
/* Stream-ordered memory that the driver serves, of pools that cannot be managed. Such a pool counts as a whole, as large as the driver says. `dev` as for
 * eng_foreign_reserve(); pool NULL: the current one. issue() makes the call, without a lock. */
struct eng_pool_call {
    CUmemoryPool pool;
    CUstream stream;
    CUdeviceptr *out;
    size_t bytes;
    int (*issue)(const struct eng_pool_call *c);
    void *ctx;
};
int eng_allocation_from_driver(int dev, const struct eng_pool_call *c);
/* cuMemFreeAsync. Memory that is not managed goes to the driver. */
int eng_free_async(CUdeviceptr ptr, CUstream stream);

/* cuMemPoolGetAttribute / SetAttribute / TrimTo for managed memory. Return 1 when answered (result in *res), 0 when
 * the door must ask the driver. */
int eng_pool_get(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res);
int eng_pool_set(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res);
int eng_pool_trim(CUmemoryPool pool, size_t keep_bytes, int *res);
/* The program has made a pool, which may hold most_bytes; 0: no maximum. */
void eng_pool_made(CUmemoryPool pool, size_t most_bytes);
void eng_pool_destroyed(CUmemoryPool pool);
/* The program chose other pools for allocations that name none. */
void eng_pool_chosen(void);

/* ---- all other device memory: counted against the limit, never evicted ---------------------------------------- */

/* Makes room for `bytes` (evicting managed memory if needed) and counts them. 0, or CUDA_ERROR_OUT_OF_MEMORY after one
 * explaining line. After a success call exactly one of commit (the driver call succeeded) or cancel. */
enum { ENG_HERE = -1 }; /* for `dev`: the device of the current context; a device of which nothing is known counts as this one too */
int eng_foreign_reserve(int dev, size_t bytes);
/* eng_foreign_reserve() has succeeded, but the driver had no memory for these bytes: something else holds it (another process). Managed memory goes back to
 * the driver, as much as is missing. True: some went back, and the driver is to be asked once more. */
bool eng_foreign_gives(int dev, size_t bytes);
/* `key`: a device pointer (is_range: the bytes at it are addressable there: cuMemAlloc, managed) or any handle
 * (cuMemCreate handle, array). */
void eng_foreign_commit(int dev, uint64_t key, size_t bytes, bool is_range);
void eng_foreign_cancel(int dev, size_t bytes);
/* The program gave `key` back; unknown keys are ignored. */
void eng_foreign_free(uint64_t key);
/* cuMemFree_v2: frees managed memory, or a counted range. For memory of eng_alloc() it waits for the device, as the driver does. */
int eng_free(CUdeviceptr ptr);

/* Work queued in the stream now becomes a part of a graph. */
bool eng_is_captured(CUstream stream);
/* After a graph was launched or uploaded: the memory of its allocation nodes may have been made now, and counts. */
void eng_graph_issued(void);

#endif
