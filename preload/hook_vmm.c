/* hook_vmm.c: the program's own virtual memory management (PyTorch's expandable segments, NCCL): its physical blocks are
 * counted, its mappings are its own. Stream-ordered memory is made of mappings too, but only remat may change those.
 */
#include "policy/allocations.h"
#include "policy/answers.h"
#include "policy/reach.h"
#include "preload/counted.h"
#include "preload/vmm.h"

static int on_create(__typeof__(&cuMemCreate) real, CUmemGenericAllocationHandle *h, size_t n,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    if (!h || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return real(h, n, prop, flags); /* host memory does not count */
    const int dev = prop->location.id;
    int r = eng_foreign_reserve(dev, n);
    if (r)
        return r;
    COUNTED_CALL(r, dev, n, real(h, n, prop, flags));
    if (r)
        eng_foreign_cancel(dev, n);
    else
        vmm_created(*h, dev, n);
    return r;
}

static int on_release(__typeof__(&cuMemRelease) real, CUmemGenericAllocationHandle h)
{
    int r = real(h);
    if (!r)
        vmm_released(h);
    return r;
}

/* Reserved addresses are noted at once: an address may lie in a list before memory is mapped at it. */
static int on_reserve(__typeof__(&cuMemAddressReserve) real, CUdeviceptr *p, size_t n, size_t alignment, CUdeviceptr hint,
                      unsigned long long flags)
{
    int r = real(p, n, alignment, hint, flags);
    if (!r)
        eng_note_outside(*p, n);
    return r;
}

static int on_unreserve(__typeof__(&cuMemAddressFree) real, CUdeviceptr p, size_t n)
{
    if (eng_is_managed(p))
        return CUDA_ERROR_INVALID_VALUE;
    const size_t was = eng_forget_outside(p); /* forgotten before another thread may be given the addresses */
    int r = real(p, n);
    if (r && was)
        eng_note_outside(p, was);
    return r;
}

static int on_map(__typeof__(&cuMemMap) real, CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h,
                  unsigned long long flags)
{
    int r = eng_is_managed(p) ? CUDA_ERROR_INVALID_VALUE : (int)real(p, n, offset, h, flags);
    if (!r)
        vmm_mapped(h, p, n);
    return r;
}

static int on_unmap(__typeof__(&cuMemUnmap) real, CUdeviceptr p, size_t n)
{
    int r = eng_is_managed(p) ? CUDA_ERROR_INVALID_VALUE : (int)real(p, n);
    if (!r)
        vmm_unmapped(p, n);
    return r;
}

static int on_set_access(__typeof__(&cuMemSetAccess) real, CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t count)
{
    return eng_is_managed(p) ? CUDA_ERROR_INVALID_VALUE : (int)real(p, n, d, count);
}

static int on_retain(__typeof__(&cuMemRetainAllocationHandle) real, CUmemGenericAllocationHandle *h, void *p)
{
    int r;
    CUdeviceptr base;
    size_t n;
    /* stream-ordered memory has no handle that a program could hold */
    if (eng_address_range(&base, &n, (CUdeviceptr)(uintptr_t)p, &r))
        return CUDA_ERROR_INVALID_VALUE;
    r = real(h, p);
    if (!r)
        vmm_retained(*h, (CUdeviceptr)(uintptr_t)p);
    return r;
}

static int on_range_handle(__typeof__(&cuMemGetHandleForAddressRange) real, void *h, CUdeviceptr p, size_t n,
                           CUmemRangeHandleType t, unsigned long long flags)
{
    DOOR_TRY(eng_pin(p, n, "cuMemGetHandleForAddressRange"));
    return real(h, p, n, t, flags);
}

static int on_multicast_bind(__typeof__(&cuMulticastBindAddr) real, CUmemGenericAllocationHandle mc, size_t at,
                             CUdeviceptr p, size_t n, unsigned long long flags)
{
    DOOR_TRY(eng_pin(p, n, "cuMulticastBindAddr"));
    return real(mc, at, p, n, flags);
}

static int on_multicast_bind_on(__typeof__(&cuMulticastBindAddr_v2) real, CUmemGenericAllocationHandle mc, CUdevice dev, size_t at,
                                CUdeviceptr p, size_t n, unsigned long long flags)
{
    DOOR_TRY(eng_pin(p, n, "cuMulticastBindAddr"));
    return real(mc, dev, at, p, n, flags);
}

/* Memory bound by its handle is mapped elsewhere too, and another device or machine may write it through the other mapping. */
static const char bound[] = "memory is bound to a multicast object or a logical endpoint";

static int on_multicast_bind_mem(__typeof__(&cuMulticastBindMem) real, CUmemGenericAllocationHandle mc, size_t at,
                                 CUmemGenericAllocationHandle h, size_t from, size_t n, unsigned long long flags)
{
    eng_unconfined(bound);
    return real(mc, at, h, from, n, flags);
}

static int on_multicast_bind_mem_on(__typeof__(&cuMulticastBindMem_v2) real, CUmemGenericAllocationHandle mc, CUdevice dev, size_t at,
                                    CUmemGenericAllocationHandle h, size_t from, size_t n, unsigned long long flags)
{
    eng_unconfined(bound);
    return real(mc, dev, at, h, from, n, flags);
}

static int on_bind_endpoint_mem(__typeof__(&cuLogicalEndpointBindMem) real, cuuint32_t id, CUdevice dev, cuuint64_t at,
                                CUmemGenericAllocationHandle h, cuuint64_t from, cuuint64_t n, unsigned long long flags)
{
    eng_unconfined(bound);
    return real(id, dev, at, h, from, n, flags);
}

HOOKS_VMM(DOOR_EXPORT_COUNTED)
