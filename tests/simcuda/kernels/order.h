/*
 * The order in which atomic additions of a launch arrive. Without chaos that of the elements; with it one that follows from
 * the launch's number: the elements rotated, and backwards for every other number. Sums in f32 then differ in their last bits
 * from launch to launch, as they do on a device.
 */
#ifndef SIMCUDA_ORDER_H
#define SIMCUDA_ORDER_H

#include <stdint.h>

static inline int64_t order_of(uint64_t chaos, int64_t i, int64_t n)
{
    if (!chaos) return i;
    int64_t k = (int64_t)(((uint64_t)i + chaos / 2) % (uint64_t)n);
    return chaos & 1 ? n - 1 - k : k;
}

#endif
