/* query.c: see query.h. Questions about memory get the answer that they would get without remat. */
#include "policy/query.h"
#include "policy/memory/slot.h"

#include <string.h>

/* Bytes that this driver writes for a boolean: more might lie beyond the caller's room. */
static size_t boolean_bytes(struct device *d, CUdeviceptr ptr)
{
    static size_t known;
    unsigned char seen[8];
    memset(seen, 0xff, sizeof seen);
    if (!known && d->drv->cuPointerGetAttribute(seen, CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr) == CUDA_SUCCESS)
        known = seen[1] == 0xff ? 1 : sizeof(int);
    return known ? known : 1;
}

int query_attribute(struct device *d, void *data, CUpointer_attribute attr, CUdeviceptr ptr, const struct slot *s, CUresult *res)
{
    (void)ptr;
    *res = CUDA_SUCCESS;
    switch (attr) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
        CUcontext of = s->waits ? d->ctx : NULL; /* stream-ordered memory belongs to no context */
        memcpy(data, &of, sizeof of);
        return 1;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
        unsigned v = CU_MEMORYTYPE_DEVICE;
        memcpy(data, &v, sizeof v);
        return 1;
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        memcpy(data, &ptr, sizeof ptr);
        return 1;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        memcpy(data, &s->serial, sizeof s->serial);
        return 1;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: {
        int v = 0; /* as the driver says of stream-ordered memory */
        memcpy(data, &v, boolean_bytes(d, ptr));
        return 1;
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
        int v = d->dev;
        memcpy(data, &v, sizeof v);
        return 1;
    }
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        memcpy(data, &s->va, sizeof s->va);
        return 1;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: {
        size_t v = s->bytes;
        memcpy(data, &v, sizeof v);
        return 1;
    }
    case CU_POINTER_ATTRIBUTE_MAPPED: {
        int v = 1;
        memcpy(data, &v, boolean_bytes(d, ptr));
        return 1;
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        memcpy(data, &s->pool, sizeof s->pool);
        return 1;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *res = CUDA_ERROR_INVALID_VALUE;
        return 1;
    default:
        return 0;
    }
}
