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
/* The n pages from `first` on are nobody's again. -ENOMEM: the gap cannot be noted, and the pages are still the caller's. */
int space_give(struct device *d, uint64_t first, uint64_t n);

/* Lower halves of addresses below MEM_NUMBERS_TO or from MEM_NUMBERS_FROM on may be numbers of four bytes; between them lie integers far from zero, and
 * floats that are negative and next to nothing. Only very large slots lie where the lower half may be a number (space.c). */
static const uint64_t MEM_NUMBERS_TO = 0x81000000, MEM_NUMBERS_FROM = 0xb0000000;
static inline bool mem_may_be_number(CUdeviceptr p) { return (uint32_t)p < MEM_NUMBERS_TO || (uint32_t)p >= MEM_NUMBERS_FROM; }
/* No memory of host or device lies below 2^16 or from 2^57 on: such a word is a number, and the driver need not be asked. */
static inline bool mem_may_be_address(uint64_t word) { return word >= 1 << 16 && !(word >> 57); }
static inline bool mem_in_reservation(const struct device *d, CUdeviceptr p) { return p - d->mem.base < d->mem.reserve_bytes; }
static inline uint64_t mem_pages(const struct device *d, uint64_t bytes) { return bytes ? (bytes + d->mem.gran - 1) >> d->mem.shift : 1; }
/* Scratch memory that is useful but not needed (the tables of plan/verify.c) may be taken. On pages of a device's usual size it lies beside small tensors; where
 * pages are tiny it takes whole pages, which must be nothing beside the limit. */
enum { PAGE_USUAL_BYTES = 1 << 16, PAGES_MANY = 256 };
static inline bool mem_pages_are_many(const struct device *d) { return d->mem.gran >= PAGE_USUAL_BYTES || d->mem.limit_bytes / d->mem.gran >= PAGES_MANY; }

#endif
