/* hook_memory.c: memory that is not stream-ordered: counted against the limit, never evicted, but for cuMemAlloc's under --allocator each. These doors are
 * open inside collectives too: NCCL's allocations count.
 */
#include "policy/allocations.h"
#include "policy/reach.h"
#include "preload/counted.h"
#include "preload/torch_env.h"

/* Pitches are multiples of this at most: bounds the bytes of a pitched allocation before the driver has chosen. */
enum { PITCH_ALIGN_BYTES = 512 };

static int on_alloc(__typeof__(&cuMemAlloc_v2) real, CUdeviceptr *p, size_t n)
{
    int r;
    if (torch_env_allocator() == ALLOC_CONF_EACH && p && n && eng_alloc(p, n, &r))
        return r;
    r = eng_foreign_reserve(ENG_HERE, n);
    if (r)
        return r;
    COUNTED_CALL(r, ENG_HERE, n, real(p, n));
    return counted_settle(ENG_HERE, r, r ? 0 : *p, n, true);
}

static int on_alloc_managed(__typeof__(&cuMemAllocManaged) real, CUdeviceptr *p, size_t n, unsigned flags)
{
    int r = eng_foreign_reserve(ENG_HERE, n);
    if (r)
        return r;
    COUNTED_CALL(r, ENG_HERE, n, real(p, n, flags));
    r = counted_settle(ENG_HERE, r, r ? 0 : *p, n, true);
    if (!r)
        eng_note_in_place(*p, n);
    return r;
}

static int on_alloc_pitch(__typeof__(&cuMemAllocPitch_v2) real, CUdeviceptr *p, size_t *pitch, size_t width,
                          size_t height, unsigned elem)
{
    size_t most;
    if (__builtin_mul_overflow((width + PITCH_ALIGN_BYTES - 1) / PITCH_ALIGN_BYTES * PITCH_ALIGN_BYTES, height, &most))
        return real(p, pitch, width, height, elem); /* no memory is that large: the driver refuses */
    int r = eng_foreign_reserve(ENG_HERE, most);
    if (r)
        return r;
    COUNTED_CALL(r, ENG_HERE, most, real(p, pitch, width, height, elem));
    if (r)
        return counted_settle(ENG_HERE, r, 0, most, true);
    size_t bytes = *pitch * height;
    /* Only the difference is cancelled: the allocation counts at every moment. `most` is whole units, so the bytes that stay reserved are, too. */
    if (bytes <= most)
        eng_foreign_cancel(ENG_HERE, (most - bytes) / PITCH_ALIGN_BYTES * PITCH_ALIGN_BYTES);
    else if ((r = eng_foreign_reserve(ENG_HERE, bytes - most))) {
        CUdeviceptr refused = *p;
        door_real.cuMemFree_v2(refused);
        eng_foreign_cancel(ENG_HERE, most);
        return r;
    }
    return counted_settle(ENG_HERE, CUDA_SUCCESS, *p, bytes, true);
}

static int on_free(__typeof__(&cuMemFree_v2) real, CUdeviceptr p)
{
    (void)real;
    return eng_free(p);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------------- */

static int on_array_create(__typeof__(&cuArrayCreate_v2) real, CUarray *a, const CUDA_ARRAY_DESCRIPTOR *d)
{
    if (!a || !d)
        return real(a, d);
    size_t n = counted_array_bytes(d->Width, d->Height, 0, d->Format, d->NumChannels, 0, 1);
    int r = eng_foreign_reserve(ENG_HERE, n);
    if (r)
        return r;
    COUNTED_CALL(r, ENG_HERE, n, real(a, d));
    return counted_settle(ENG_HERE, r, r ? 0 : (uint64_t)(uintptr_t)*a, n, false);
}

static int on_array3d_create(__typeof__(&cuArray3DCreate_v2) real, CUarray *a, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (!a || !d)
        return real(a, d);
    size_t n = counted_array_bytes(d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags, 1);
    int r = eng_foreign_reserve(ENG_HERE, n);
    if (r)
        return r;
    COUNTED_CALL(r, ENG_HERE, n, real(a, d));
    return counted_settle(ENG_HERE, r, r ? 0 : (uint64_t)(uintptr_t)*a, n, false);
}

static int on_mipmap_create(__typeof__(&cuMipmappedArrayCreate) real, CUmipmappedArray *a,
                            const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
    if (!a || !d)
        return real(a, d, levels);
    size_t n = counted_array_bytes(d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags, levels);
    int r = eng_foreign_reserve(ENG_HERE, n);
    if (r)
        return r;
    COUNTED_CALL(r, ENG_HERE, n, real(a, d, levels));
    return counted_settle(ENG_HERE, r, r ? 0 : (uint64_t)(uintptr_t)*a, n, false);
}

static int on_array_destroy(__typeof__(&cuArrayDestroy) real, CUarray a)
{
    return counted_gone(real(a), (uint64_t)(uintptr_t)a);
}

static int on_mipmap_destroy(__typeof__(&cuMipmappedArrayDestroy) real, CUmipmappedArray a)
{
    return counted_gone(real(a), (uint64_t)(uintptr_t)a);
}

HOOKS_MEMORY(DOOR_EXPORT_COUNTED)
