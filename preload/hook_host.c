/* hook_host.c: host memory that a device reads in place. Such memory is no device's and counts against no limit; but a kernel may find the
 * addresses of tensors in it, and no argument shows them (policy/memory/in_place.h).
 */
#include "policy/reach.h"
#include "preload/door.h"

static int on_alloc_host(__typeof__(&cuMemAllocHost_v2) real, void **p, size_t n)
{
    DOOR_TRY(real(p, n));
    eng_note_pinned((CUdeviceptr)(uintptr_t)*p, n);
    return CUDA_SUCCESS;
}

static int on_alloc_host_old(__typeof__(&cuMemAllocHost) real, void **p, unsigned n)
{
    DOOR_TRY(real(p, n));
    eng_note_pinned((CUdeviceptr)(uintptr_t)*p, n);
    return CUDA_SUCCESS;
}

static int on_host_alloc(__typeof__(&cuMemHostAlloc) real, void **p, size_t n, unsigned flags)
{
    DOOR_TRY(real(p, n, flags));
    eng_note_pinned((CUdeviceptr)(uintptr_t)*p, n);
    return CUDA_SUCCESS;
}

static int on_host_register(__typeof__(&cuMemHostRegister_v2) real, void *p, size_t n, unsigned flags)
{
    DOOR_TRY(real(p, n, flags));
    if (!(flags & CU_MEMHOSTREGISTER_IOMEMORY)) /* memory-mapped I/O of another device is not read like memory */
        eng_note_pinned((CUdeviceptr)(uintptr_t)p, n);
    return CUDA_SUCCESS;
}

/* Forgets the memory before the driver gives it back: afterwards another thread may be given the same addresses. */
static int on_host_gone(__typeof__(&cuMemFreeHost) real, void *p)
{
    const size_t was = eng_forget_in_place((CUdeviceptr)(uintptr_t)p);
    int r = real(p);
    if (r && was)
        eng_note_pinned((CUdeviceptr)(uintptr_t)p, was);
    return r;
}

/* Some devices reach registered memory at another address than the host does. */
static int on_device_pointer(__typeof__(&cuMemHostGetDevicePointer_v2) real, CUdeviceptr *p, void *host, unsigned flags)
{
    DOOR_TRY(real(p, host, flags));
    if (*p != (CUdeviceptr)(uintptr_t)host)
        eng_note_outside(*p, 0);
    return CUDA_SUCCESS;
}

HOOKS_HOST(DOOR_EXPORT)
