/*
 * Tensor maps: descriptors of a tiled tensor that a kernel takes by value in place of an address. What they look like inside is the
 * driver's affair; here the address is scrambled, so that nobody can find it in one by reading it as an address.
 * simgpu_tensor_map_address() (simgpu.h) reads it in a kernel.
 */
#include <string.h>

#include "tests/simgpu/gpu.h"
#include "tests/simgpu/simgpu.h"

enum { MAX_RANK = 5, MAX_BOX = 256, PLACE = 0, SHAPE = 1, CLASS = 15 };

static CUresult encode_tiled(CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *place, const cuuint64_t *dim,
                             const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *elem, unsigned modes)
{
    if (!m || (uintptr_t)m % 64 || !rank || rank > MAX_RANK || (uintptr_t)place % 16 || !place || !dim || !box || !elem ||
        (rank > 1 && !stride))
        return CUDA_ERROR_INVALID_VALUE;
    memset(m, 0, sizeof *m);
    m->opaque[PLACE] = simgpu_tensor_map_scramble((uintptr_t)place);
    m->opaque[SHAPE] = (cuuint64_t)type << 32 | rank << 16 | modes;
    for (cuuint32_t i = 0; i < rank; i++) {
        if (!dim[i] || dim[i] >> 32 || !box[i] || box[i] > MAX_BOX || !elem[i] || elem[i] > 8 ||
            (i + 1 < rank && (stride[i] % 16 || stride[i] >> 40)))
            return CUDA_ERROR_INVALID_VALUE;
        m->opaque[2 + i] = dim[i] << 32 | box[i] << 8 | elem[i];
        m->opaque[2 + MAX_RANK + i] = i + 1 < rank ? stride[i] : 0;
    }
    return CUDA_SUCCESS;
}

static CUresult replace_address(CUtensorMap *m, void *place)
{
    if (!m || (uintptr_t)place % 16 || !place)
        return CUDA_ERROR_INVALID_VALUE;
    m->opaque[PLACE] = simgpu_tensor_map_scramble((uintptr_t)place);
    return CUDA_SUCCESS;
}

/* The class is a part of the map, and changes nothing of what a kernel reads. */
static CUresult set_class(CUtensorMap *m, CUtensorMapAllocClass want, CUtensorMapAllocClass *got)
{
    if (!m || (unsigned)want > CU_TENSOR_MAP_ALLOC_CLASS_LARGE)
        return CUDA_ERROR_INVALID_VALUE;
    m->opaque[CLASS] = want;
    if (got)
        *got = want;
    return CUDA_SUCCESS;
}

GPU_API(cuTensorMapEncodeTiled,
        (CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *place, const cuuint64_t *dim, const cuuint64_t *stride,
         const cuuint32_t *box, const cuuint32_t *elem, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
         CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill),
        GPU_NEED_INIT,
        encode_tiled(m, type, rank, place, dim, stride, box, elem, (unsigned)interleave << 12 | (unsigned)swizzle << 8 | (unsigned)l2 << 4 | (unsigned)fill))
GPU_API(cuTensorMapReplaceAddress, (CUtensorMap *m, void *place), GPU_NEED_INIT, replace_address(m, place))
GPU_API(cuTensorMapSetAllocationClass, (CUtensorMap *m, CUtensorMapAllocClass want, CUtensorMapAllocClass *got), GPU_NEED_INIT, set_class(m, want, got))
