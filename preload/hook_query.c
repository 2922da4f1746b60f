/* hook_query.c: questions about memory, answered as they would be without remat, for evicted tensors too. */
#include "preload/door.h"

#include <string.h>

static int on_mem_info(__typeof__(&cuMemGetInfo_v2) real, size_t *free_b, size_t *total_b)
{
    if (!free_b || !total_b)
        return real(free_b, total_b);
    return eng_mem_info(free_b, total_b);
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

/* Bytes the driver writes for an attribute. */
static size_t attribute_bytes(CUpointer_attribute attr)
{
    switch (attr) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return 8;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return 16;
    default:
        return 4;
    }
}

/* One list of attributes is one answer: an attribute that the pointer does not have is zeroed, it is no error. */
static int on_pointer_attributes(__typeof__(&cuPointerGetAttributes) real, unsigned n, CUpointer_attribute *attrs,
                                 void **data, CUdeviceptr p)
{
    int r;
    unsigned kind;
    if (!n || !attrs || !data || !eng_pointer_attribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p, &r))
        return real(n, attrs, data, p);
    for (unsigned i = 0; i < n; i++) {
        if (!data[i])
            continue;
        if (!eng_pointer_attribute(data[i], attrs[i], p, &r) || r)
            memset(data[i], 0, attribute_bytes(attrs[i]));
    }
    return CUDA_SUCCESS;
}

/* Asked for memory that a network card or another driver is to reach: it must not move. */
static int on_pointer_set(__typeof__(&cuPointerSetAttribute) real, const void *value, CUpointer_attribute attr,
                          CUdeviceptr p)
{
    DOOR_TRY(eng_pin(p, 0, "cuPointerSetAttribute"));
    return real(value, attr, p);
}

HOOKS_QUERY(DOOR_EXPORT)
