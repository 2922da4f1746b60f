/* hook_query.c: questions about memory, answered as they would be without remat, for evicted tensors too; except one (on_device_attribute). */
#include "policy/answers.h"
#include "policy/reach.h"
#include "preload/door.h"

static int on_mem_info(__typeof__(&cuMemGetInfo_v2) real, size_t *free_b, size_t *total_b)
{
    if (!free_b || !total_b)
        return real(free_b, total_b);
    return eng_mem_info(free_b, total_b);
}

/* cuDeviceTotalMem answers the limit, as cuMemGetInfo does: programs divide one by the other. */
static int on_total_mem(__typeof__(&cuDeviceTotalMem_v2) real, size_t *bytes, CUdevice dev)
{
    DOOR_TRY(real(bytes, dev));
    struct eng_memory m = {.total_bytes = *bytes, .free_bytes = *bytes};
    if (eng_device_memory(dev, &m))
        *bytes = m.total_bytes;
    return CUDA_SUCCESS;
}

/* Kernels of some devices follow addresses of the host's ordinary memory (HMM, ATS). No call tells which memory that is, or when the host writes it, so that a replay could
 * read bytes that the host has written since. Programs ask this question before they hand a kernel such addresses; where the answer is no they copy. */
static int on_device_attribute(__typeof__(&cuDeviceGetAttribute) real, int *value, CUdevice_attribute attr, CUdevice dev)
{
    DOOR_TRY(real(value, attr, dev));
    if (attr == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS || attr == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)
        *value = 0;
    return CUDA_SUCCESS;
}

static int on_address_range(__typeof__(&cuMemGetAddressRange_v2) real, CUdeviceptr *base, size_t *n, CUdeviceptr p)
{
    int r;
    return eng_address_range(base, n, p, &r) ? r : (int)real(base, n, p);
}

static int on_pointer_attribute(__typeof__(&cuPointerGetAttribute) real, void *data, CUpointer_attribute attr,
                                CUdeviceptr p)
{
    int r;
    return eng_pointer_attribute(data, attr, p, &r) ? r : (int)real(data, attr, p);
}

/* The driver checks the list, and answers attributes that remat does not know. At a managed address that no allocation has any more, the driver is asked about an address that
 * it has never heard of instead: it still takes remat's reservation for memory of this device. */
static int on_pointer_attributes(__typeof__(&cuPointerGetAttributes) real, unsigned n, CUpointer_attribute *attrs,
                                 void **data, CUdeviceptr p)
{
    int r;
    unsigned kind;
    if (!n || !attrs || !data || !eng_pointer_attribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, &r))
        return real(n, attrs, data, p);
    if (r)
        return real(n, attrs, data, (CUdeviceptr)(uintptr_t)&kind);
    DOOR_TRY(real(n, attrs, data, p));
    for (unsigned i = 0; i < n; i++)
        eng_pointer_attribute(data[i], attrs[i], p, &r); /* an attribute that the memory does not have stays zero, as the driver leaves it */
    return CUDA_SUCCESS;
}

/* Programs ask this for memory that a network card or another driver is to reach: the memory must not move. */
static int on_pointer_set(__typeof__(&cuPointerSetAttribute) real, const void *value, CUpointer_attribute attr,
                          CUdeviceptr p)
{
    DOOR_TRY(eng_pin(p, 0, "cuPointerSetAttribute"));
    return real(value, attr, p);
}

HOOKS_QUERY(DOOR_EXPORT)
