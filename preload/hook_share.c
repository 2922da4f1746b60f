/* hook_share.c: addresses that leave remat's sight: memory that is shown to other processes stays resident for good.
 * Tensor maps are recognised again where a launch is given one.
 */
#include "policy/reach.h"
#include "preload/door.h"
#include "preload/torch_env.h"

#include "policy/process/log.h"

static int on_ipc_handle(__typeof__(&cuIpcGetMemHandle) real, CUipcMemHandle *h, CUdeviceptr p)
{
    DOOR_TRY(eng_pin(p, 0, "cuIpcGetMemHandle"));
    const int r = real(h, p);
    if (r && torch_env_allocator() == ALLOC_CONF_EACH)
        log_once(SAY_WARN, "with --allocator each memory of cuMemAlloc is managed, and cannot be handed to another process: cuIpcGetMemHandle is refused");
    return r;
}

/* ---- memory of other processes and interfaces: its writers are not seen ------------------------------------------------------ */

static int on_ipc_open(__typeof__(&cuIpcOpenMemHandle_v2) real, CUdeviceptr *p, CUipcMemHandle h, unsigned flags)
{
    int r = real(p, h, flags);
    if (!r)
        eng_note_outside(*p, 0);
    return r;
}

static int on_ipc_close(__typeof__(&cuIpcCloseMemHandle) real, CUdeviceptr p)
{
    int r = real(p);
    if (!r)
        eng_closed_outside(p);
    return r;
}

static int on_external_buffer(__typeof__(&cuExternalMemoryGetMappedBuffer) real, CUdeviceptr *p, CUexternalMemory from,
                              const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *what)
{
    int r = real(p, from, what);
    if (!r)
        eng_note_outside(*p, what->size);
    return r;
}

static int on_graphics_pointer(__typeof__(&cuGraphicsResourceGetMappedPointer_v2) real, CUdeviceptr *p, size_t *n, CUgraphicsResource from)
{
    int r = real(p, n, from);
    if (!r)
        eng_note_outside(*p, *n);
    return r;
}

/* Kernels of the current context's device may write the peer's memory from now on: an argument of such a kernel is no operand on the peer. */
static int on_peer_access(__typeof__(&cuCtxEnablePeerAccess) real, CUcontext peer, unsigned flags)
{
    int r = real(peer, flags);
    if (!r)
        eng_unconfined("kernels of another device reach this one's memory");
    return r;
}

/* Tensor maps: in place of an address a kernel gets 128 bytes that only the driver can read. Each map is made once more for the one address SAME_PLACE, so that two maps can
 * be told apart by shape alone (policy/op/tensor_map.h). */
#define SAME_PLACE ((void *)0x100000)

static int note_map(CUtensorMap *m, void *p, CUresult shaped, const CUtensorMap *shape)
{
    return eng_note_tensor_map(m, (CUdeviceptr)(uintptr_t)p, shaped == CUDA_SUCCESS ? shape : NULL);
}

static int on_encode_tiled(__typeof__(&cuTensorMapEncodeTiled) real, CUtensorMap *m, CUtensorMapDataType t,
                           cuuint32_t rank, void *p, const cuuint64_t *dim, const cuuint64_t *stride,
                           const cuuint32_t *box, const cuuint32_t *elem, CUtensorMapInterleave il,
                           CUtensorMapSwizzle sw, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill)
{
    CUtensorMap shape;
    DOOR_TRY(real(m, t, rank, p, dim, stride, box, elem, il, sw, l2, fill));
    return note_map(m, p, real(&shape, t, rank, SAME_PLACE, dim, stride, box, elem, il, sw, l2, fill), &shape);
}

static int on_encode_im2col(__typeof__(&cuTensorMapEncodeIm2col) real, CUtensorMap *m, CUtensorMapDataType t,
                            cuuint32_t rank, void *p, const cuuint64_t *dim, const cuuint64_t *stride, const int *low,
                            const int *up, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *elem,
                            CUtensorMapInterleave il, CUtensorMapSwizzle sw, CUtensorMapL2promotion l2,
                            CUtensorMapFloatOOBfill fill)
{
    CUtensorMap shape;
    DOOR_TRY(real(m, t, rank, p, dim, stride, low, up, channels, pixels, elem, il, sw, l2, fill));
    return note_map(m, p, real(&shape, t, rank, SAME_PLACE, dim, stride, low, up, channels, pixels, elem, il, sw, l2, fill), &shape);
}

static int on_encode_im2col_wide(__typeof__(&cuTensorMapEncodeIm2colWide) real, CUtensorMap *m, CUtensorMapDataType t,
                                 cuuint32_t rank, void *p, const cuuint64_t *dim, const cuuint64_t *stride, int low,
                                 int up, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *elem,
                                 CUtensorMapInterleave il, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle sw,
                                 CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill)
{
    CUtensorMap shape;
    DOOR_TRY(real(m, t, rank, p, dim, stride, low, up, channels, pixels, elem, il, mode, sw, l2, fill));
    return note_map(m, p, real(&shape, t, rank, SAME_PLACE, dim, stride, low, up, channels, pixels, elem, il, mode, sw, l2, fill), &shape);
}

static int on_replace_address(__typeof__(&cuTensorMapReplaceAddress) real, CUtensorMap *m, void *p)
{
    DOOR_TRY(real(m, p));
    CUtensorMap shape = *m;
    return note_map(m, p, real(&shape, SAME_PLACE), &shape);
}

/* The map's bytes change, the address it was made for does not. */
static int on_set_class(__typeof__(&cuTensorMapSetAllocationClass) real, CUtensorMap *m, CUtensorMapAllocClass want,
                        CUtensorMapAllocClass *got)
{
    const CUdeviceptr at = m ? eng_tensor_map_at(m) : 0;
    DOOR_TRY(real(m, want, got));
    if (!at)
        return CUDA_SUCCESS;
    CUtensorMap shape = *m;
    return note_map(m, (void *)(uintptr_t)at, door_real.cuTensorMapReplaceAddress(&shape, SAME_PLACE), &shape);
}

/* Memory that other machines reach by the endpoint may not move. */
static int on_bind_endpoint(__typeof__(&cuLogicalEndpointBindAddr) real, cuuint32_t id, CUdevice dev, cuuint64_t at, void *p, cuuint64_t n,
                            unsigned long long flags)
{
    DOOR_TRY(eng_pin((CUdeviceptr)(uintptr_t)p, n, "cuLogicalEndpointBindAddr"));
    return real(id, dev, at, p, n, flags);
}

HOOKS_SHARE(DOOR_EXPORT)
