/* counted.h: bookkeeping shared by the doors of memory that is counted but not managed.
 *
 * Threads: any. Errors: driver codes are handed through.
 */
#ifndef REMAT_PRELOAD_COUNTED_H
#define REMAT_PRELOAD_COUNTED_H

#include "policy/allocations.h"
#include "preload/door.h"

/* Makes the driver's call `call`, result r, after eng_foreign_reserve(dev, bytes); repeats it while the driver has no memory and the engine gives managed memory back to it. */
#define COUNTED_CALL(r, dev, bytes, call)                                                                              \
    do                                                                                                                 \
        (r) = (call);                                                                                                  \
    while ((r) == CUDA_ERROR_OUT_OF_MEMORY && eng_foreign_gives(dev, bytes))

/* After eng_foreign_reserve(dev, bytes) and the driver's call with result r: commits or cancels. Returns r. */
static inline int counted_settle(int dev, int r, uint64_t key, size_t bytes, bool is_range)
{
    if (r)
        eng_foreign_cancel(dev, bytes);
    else
        eng_foreign_commit(dev, key, bytes, is_range);
    return r;
}

/* After the driver's freeing call with result r. Returns r. */
static inline int counted_gone(int r, uint64_t key)
{
    if (!r)
        eng_foreign_free(key);
    return r;
}

/* Bytes of a CUDA array of `levels` mipmap levels: the texels' own, without the driver's tiling, which it does not tell.
 * Sparse and deferred arrays have no memory of their own: 0. */
size_t counted_array_bytes(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
                           unsigned flags, unsigned levels);

#endif
