/* hook_copy2d.c: two- and three-dimensional copies: opaque ops that read and write the ranges their boxes span. */
#include "preload/door.h"

/* One side of a copy: where its box begins in memory of `pitch` bytes a row and `rows` rows a slice. */
struct side {
    CUmemorytype type;
    CUdeviceptr ptr;
    size_t x_bytes, y, z, pitch, rows;
};
#define SIDE_2D(c, s) {(c)->s##MemoryType, (c)->s##Device, (c)->s##XInBytes, (c)->s##Y, 0, (c)->s##Pitch, 0}
#define SIDE_3D(c, s)                                                                                                  \
    {(c)->s##MemoryType, (c)->s##Device, (c)->s##XInBytes, (c)->s##Y, (c)->s##Z, (c)->s##Pitch, (c)->s##Height}

struct box {
    struct side dst, src;
    size_t width_bytes, height, depth;
};

/* A box touches everything from its first to its last byte; where rows have gaps between them, what lies there stays, so
 * the range is changed rather than overwritten. */
static unsigned add_side(struct eng_touch *touch, unsigned used, const struct box *b, const struct side *s, unsigned mode)
{
    if (s->type != CU_MEMORYTYPE_DEVICE && s->type != CU_MEMORYTYPE_UNIFIED)
        return used;
    bool gaps = (b->height > 1 && s->pitch != b->width_bytes) || (b->depth > 1 && s->rows != b->height);
    size_t bytes = ((b->depth - 1) * s->rows + (b->height - 1)) * s->pitch + b->width_bytes;
    CUdeviceptr at = s->ptr + (s->z * s->rows + s->y) * s->pitch + s->x_bytes;
    touch[used] = (struct eng_touch){at, bytes, gaps ? mode | ENG_READ : mode};
    return used + 1;
}

/* At most two. */
static unsigned box_touches(struct eng_touch *touch, const struct box *b)
{
    if (!b->width_bytes || !b->height || !b->depth)
        return 0;
    return add_side(touch, add_side(touch, 0, b, &b->dst, ENG_WRITE), b, &b->src, ENG_READ);
}

ISSUE1(copy2d, cuMemcpy2D_v2, const CUDA_MEMCPY2D *)
ISSUE2(copy2d_async, cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D *, CUstream)
ISSUE1(copy3d, cuMemcpy3D_v2, const CUDA_MEMCPY3D *)
ISSUE2(copy3d_async, cuMemcpy3DAsync_v2, const CUDA_MEMCPY3D *, CUstream)
ISSUE1(copy3d_peer, cuMemcpy3DPeer, const CUDA_MEMCPY3D_PEER *)
ISSUE2(copy3d_peer_async, cuMemcpy3DPeerAsync, const CUDA_MEMCPY3D_PEER *, CUstream)

static unsigned touches_2d(const CUDA_MEMCPY2D *c, struct eng_touch *touch)
{
    if (!c)
        return 0;
    struct box b = {SIDE_2D(c, dst), SIDE_2D(c, src), c->WidthInBytes, c->Height, 1};
    return box_touches(touch, &b);
}

static unsigned touches_3d(const CUDA_MEMCPY3D *c, struct eng_touch *touch)
{
    if (!c)
        return 0;
    struct box b = {SIDE_3D(c, dst), SIDE_3D(c, src), c->WidthInBytes, c->Height, c->Depth};
    return box_touches(touch, &b);
}

static unsigned touches_peer(const CUDA_MEMCPY3D_PEER *c, struct eng_touch *touch)
{
    if (!c)
        return 0;
    struct box b = {SIDE_3D(c, dst), SIDE_3D(c, src), c->WidthInBytes, c->Height, c->Depth};
    return box_touches(touch, &b);
}

static int on_copy2d(__typeof__(&cuMemcpy2D_v2) real, CUstream nul, const CUDA_MEMCPY2D *c)
{
    struct call_copy2d call = {real, c};
    struct eng_touch touch[2];
    return eng_other("cuMemcpy2D", nul, touch, touches_2d(c, touch), issue_copy2d, &call);
}

static int on_copy2d_async(__typeof__(&cuMemcpy2DAsync_v2) real, CUstream nul, const CUDA_MEMCPY2D *c, CUstream s)
{
    struct call_copy2d_async call = {real, c, s};
    struct eng_touch touch[2];
    return eng_other("cuMemcpy2DAsync", door_stream(s, nul), touch, touches_2d(c, touch), issue_copy2d_async, &call);
}

static int on_copy3d(__typeof__(&cuMemcpy3D_v2) real, CUstream nul, const CUDA_MEMCPY3D *c)
{
    struct call_copy3d call = {real, c};
    struct eng_touch touch[2];
    return eng_other("cuMemcpy3D", nul, touch, touches_3d(c, touch), issue_copy3d, &call);
}

static int on_copy3d_async(__typeof__(&cuMemcpy3DAsync_v2) real, CUstream nul, const CUDA_MEMCPY3D *c, CUstream s)
{
    struct call_copy3d_async call = {real, c, s};
    struct eng_touch touch[2];
    return eng_other("cuMemcpy3DAsync", door_stream(s, nul), touch, touches_3d(c, touch), issue_copy3d_async, &call);
}

static int on_copy3d_peer(__typeof__(&cuMemcpy3DPeer) real, CUstream nul, const CUDA_MEMCPY3D_PEER *c)
{
    struct call_copy3d_peer call = {real, c};
    struct eng_touch touch[2];
    return eng_other("cuMemcpy3DPeer", nul, touch, touches_peer(c, touch), issue_copy3d_peer, &call);
}

static int on_copy3d_peer_async(__typeof__(&cuMemcpy3DPeerAsync) real, CUstream nul, const CUDA_MEMCPY3D_PEER *c,
                                CUstream s)
{
    struct call_copy3d_peer_async call = {real, c, s};
    struct eng_touch touch[2];
    return eng_other("cuMemcpy3DPeerAsync", door_stream(s, nul), touch, touches_peer(c, touch), issue_copy3d_peer_async,
                     &call);
}

HOOKS_COPY2D(DOOR_EXPORT)
