#include "policy/plan/address.h"
#include "policy/memory/pinned.h"
#include "policy/memory/space.h"

static bool driver_knows(const struct device *d, uint64_t word)
{
    unsigned what;
    return mem_may_be_address(word) && d->drv->cuPointerGetAttribute(&what, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) == CUDA_SUCCESS;
}

bool address_is_elsewhere(struct device *d, uint64_t word) { return !mem_is_ours(d, word) && driver_knows(d, word); }

bool address_is_known(struct device *d, uint64_t word) { return mem_is_ours(d, word) || driver_knows(d, word); }

bool address_may_have_been_had(struct device *d, uint64_t word)
{
    return address_is_known(d, word) && (!mem_in_reservation(d, word) || word - d->mem.base < d->mem.top_page << d->mem.shift);
}
