/* space.h: address space: which pages of the reservation are whose. See space.c for where a slot may lie, and why.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_MEMORY_SPACE_H
#define REMAT_POLICY_MEMORY_SPACE_H

#include "policy/device.h"

struct gap { /* pages of address space that nobody has */
    uint64_t first, n;
};

/* n pages in a row that nobody has. -ENOMEM: there are none. */
int space_take(struct device *d, uint64_t n, uint64_t *first);
/* They are nobody's again. -ENOMEM: that could not be noted, and they are still the caller's. */
int space_give(struct device *d, uint64_t first, uint64_t n);

/* What the lower half of an address is where it may be a number of four bytes: an integer, unless it is far from zero, or a float, unless it
 * is negative and next to nothing. No slot lies there that is not very large (space.c). */
static const uint64_t MEM_NUMBERS_TO = 0x81000000, MEM_NUMBERS_FROM = 0xb0000000;
static inline bool mem_may_be_number(CUdeviceptr p) { return (uint32_t)p < MEM_NUMBERS_TO || (uint32_t)p >= MEM_NUMBERS_FROM; }
/* No memory of host or device lies below, or above: such a word is a number, and the driver need not be asked. */
static inline bool mem_may_be_address(uint64_t word) { return word >= 1 << 16 && !(word >> 57); }
static inline bool mem_in_reservation(const struct device *d, CUdeviceptr p) { return p - d->mem.base < d->mem.reserve_bytes; }
static inline uint64_t mem_pages(const struct device *d, uint64_t bytes) { return bytes ? (bytes + d->mem.gran - 1) >> d->mem.shift : 1; }
/* What is useful and not needed may have scratch of its own: on pages of a device's usual size it lies beside small tensors; where pages
 * are tiny it takes some, which must be nothing beside the limit. */
enum { PAGE_USUAL_BYTES = 1 << 16, PAGES_MANY = 256 };
static inline bool mem_pages_are_many(const struct device *d) { return d->mem.gran >= PAGE_USUAL_BYTES || d->mem.limit_bytes / d->mem.gran >= PAGES_MANY; }

#endif
