/* hook_copy2d.c: two- and three-dimensional copies: opaque ops that read and write the ranges their boxes span. */
#include "policy/answers.h"
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

/* One side of a copy: where its box begins in memory of `pitch` bytes a row and `rows` rows a slice. */
struct side {
    CUmemorytype type;
    CUdeviceptr ptr;
    void *host;
    size_t x_bytes, y, z, pitch, rows;
};
#define SIDE_2D(c, s) {(c)->s##MemoryType, (c)->s##Device, (void *)(uintptr_t)(c)->s##Host, (c)->s##XInBytes, (c)->s##Y, 0, (c)->s##Pitch, 0}
#define SIDE_3D(c, s)                                                                                                  \
    {(c)->s##MemoryType, (c)->s##Device, (void *)(uintptr_t)(c)->s##Host, (c)->s##XInBytes, (c)->s##Y, (c)->s##Z, (c)->s##Pitch, (c)->s##Height}

struct box {
    struct side dst, src;
    size_t width_bytes, height, depth;
};

/* Adds the touch of one side: every byte from the box's first to its last. Bytes in the gaps between rows stay, so that a range with gaps is changed rather than overwritten. */
static unsigned add_side(struct eng_touch *touch, unsigned used, const struct box *b, const struct side *s, unsigned mode)
{
    if (s->type != CU_MEMORYTYPE_DEVICE && s->type != CU_MEMORYTYPE_UNIFIED)
        return used;
    bool gaps = (b->height > 1 && s->pitch != b->width_bytes) || (b->depth > 1 && s->rows != b->height);
    size_t bytes = ((b->depth - 1) * s->rows + (b->height - 1)) * s->pitch + b->width_bytes;
    CUdeviceptr at = s->ptr + (s->z * s->rows + s->y) * s->pitch + s->x_bytes;
    touch[used] = (struct eng_touch){at, bytes, ENG_EXACT | (gaps ? mode | ENG_READ : mode)};
    return used + 1;
}

/* Fills in at most two touches; returns how many. */
static unsigned box_touches(struct eng_touch *touch, const struct box *b)
{
    if (!b->width_bytes || !b->height || !b->depth)
        return 0;
    return add_side(touch, add_side(touch, 0, b, &b->dst, ENG_WRITE), b, &b->src, ENG_READ);
}

/* The host address of a side; NULL: the side lies on the device, or in an array. */
static const void *on_host(const struct side *s)
{
    if (s->type == CU_MEMORYTYPE_HOST)
        return s->host;
    return s->type == CU_MEMORYTYPE_UNIFIED && !eng_is_device_pointer(s->ptr) ? (const void *)(uintptr_t)s->ptr : NULL;
}

/* True if the box lies within its destination's allocation. Rows lie in order, so the range from the first to the last byte decides. */
static bool fits(const struct box *b)
{
    struct eng_touch to[1];
    CUdeviceptr base;
    size_t bytes, rows, all;
    int r;
    if (add_side(to, 0, b, &b->dst, ENG_WRITE) != 1)
        return false;
    if (!eng_address_range(&base, &bytes, to->ptr, &r))
        r = (int)door_real.cuMemGetAddressRange_v2(&base, &bytes, to->ptr);
    return r == CUDA_SUCCESS && !__builtin_mul_overflow(b->height, b->depth, &rows) && !__builtin_mul_overflow(rows, b->width_bytes, &all) &&
           all <= bytes && to->bytes <= base + bytes - to->ptr;
}

/* Bytes from a side's address to a row of the box. */
static size_t row_at(const struct side *s, size_t z, size_t y)
{
    return ((s->z + z) * s->rows + s->y + y) * s->pitch + s->x_bytes;
}

/* Tells the engine before the call that the host may wait for the stream, and which host data travels. */
static int box_before(const struct box *b, CUstream s, bool sync)
{
    if (!b->width_bytes || !b->height || !b->depth)
        return CUDA_SUCCESS;
    const void *to = on_host(&b->dst), *from = on_host(&b->src);
    if (to || from)
        eng_before_host_copy(s, to, sync);
    /* a copy that the driver refuses reads nothing */
    bool is_box = b->src.pitch >= b->src.x_bytes + b->width_bytes && b->src.rows >= b->height && fits(b);
    for (size_t z = 0; is_box && from && !to && z < b->depth; z++)
        for (size_t y = 0; y < b->height; y++)
            DOOR_TRY(eng_note_host_data(b->dst.ptr + row_at(&b->dst, z, y), (const char *)from + row_at(&b->src, z, y), b->width_bytes));
    return CUDA_SUCCESS;
}

ISSUE1(copy2d, cuMemcpy2D_v2, const CUDA_MEMCPY2D *)
ISSUE2(copy2d_async, cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D *, CUstream)
ISSUE1(copy3d, cuMemcpy3D_v2, const CUDA_MEMCPY3D *)
ISSUE2(copy3d_async, cuMemcpy3DAsync_v2, const CUDA_MEMCPY3D *, CUstream)
ISSUE1(copy3d_peer, cuMemcpy3DPeer, const CUDA_MEMCPY3D_PEER *)
ISSUE2(copy3d_peer_async, cuMemcpy3DPeerAsync, const CUDA_MEMCPY3D_PEER *, CUstream)

/* Fills in zeros: a pitch of 0 means rows one behind the other, a height of 0 slices one behind the other. */
static struct box whole(struct box b)
{
    struct side *const sides[] = {&b.dst, &b.src};
    for (int i = 0; i < 2; i++) {
        const CUdeviceptr host = (CUdeviceptr)(uintptr_t)sides[i]->host;
        if (sides[i]->type == CU_MEMORYTYPE_HOST && eng_is_device_pointer(host)) { /* the driver goes by the address */
            sides[i]->type = CU_MEMORYTYPE_DEVICE;
            sides[i]->ptr = host;
        }
        sides[i]->pitch = sides[i]->pitch ? sides[i]->pitch : sides[i]->x_bytes + b.width_bytes;
        sides[i]->rows = sides[i]->rows ? sides[i]->rows : b.height;
    }
    return b;
}

static struct box box_2d(const CUDA_MEMCPY2D *c)
{
    return c ? whole((struct box){SIDE_2D(c, dst), SIDE_2D(c, src), c->WidthInBytes, c->Height, 1}) : (struct box){.depth = 0};
}

static struct box box_3d(const CUDA_MEMCPY3D *c)
{
    return c ? whole((struct box){SIDE_3D(c, dst), SIDE_3D(c, src), c->WidthInBytes, c->Height, c->Depth}) : (struct box){.depth = 0};
}

static struct box box_peer(const CUDA_MEMCPY3D_PEER *c)
{
    return c ? whole((struct box){SIDE_3D(c, dst), SIDE_3D(c, src), c->WidthInBytes, c->Height, c->Depth}) : (struct box){.depth = 0};
}

static int on_copy2d(__typeof__(&cuMemcpy2D_v2) real, CUstream nul, const CUDA_MEMCPY2D *c)
{
    struct call_copy2d call = {real, c};
    struct eng_touch touch[2];
    struct box b = box_2d(c);
    DOOR_TRY(box_before(&b, nul, true));
    return eng_other("cuMemcpy2D", nul, touch, box_touches(touch, &b), issue_copy2d, &call);
}

static int on_copy2d_async(__typeof__(&cuMemcpy2DAsync_v2) real, CUstream nul, const CUDA_MEMCPY2D *c, CUstream s)
{
    struct call_copy2d_async call = {real, c, s};
    struct eng_touch touch[2];
    struct box b = box_2d(c);
    DOOR_TRY(box_before(&b, door_stream(s, nul), false));
    return eng_other("cuMemcpy2DAsync", door_stream(s, nul), touch, box_touches(touch, &b), issue_copy2d_async, &call);
}

static int on_copy3d(__typeof__(&cuMemcpy3D_v2) real, CUstream nul, const CUDA_MEMCPY3D *c)
{
    struct call_copy3d call = {real, c};
    struct eng_touch touch[2];
    struct box b = box_3d(c);
    DOOR_TRY(box_before(&b, nul, true));
    return eng_other("cuMemcpy3D", nul, touch, box_touches(touch, &b), issue_copy3d, &call);
}

static int on_copy3d_async(__typeof__(&cuMemcpy3DAsync_v2) real, CUstream nul, const CUDA_MEMCPY3D *c, CUstream s)
{
    struct call_copy3d_async call = {real, c, s};
    struct eng_touch touch[2];
    struct box b = box_3d(c);
    DOOR_TRY(box_before(&b, door_stream(s, nul), false));
    return eng_other("cuMemcpy3DAsync", door_stream(s, nul), touch, box_touches(touch, &b), issue_copy3d_async, &call);
}

static int on_copy3d_peer(__typeof__(&cuMemcpy3DPeer) real, CUstream nul, const CUDA_MEMCPY3D_PEER *c)
{
    struct call_copy3d_peer call = {real, c};
    struct eng_touch touch[2];
    struct box b = box_peer(c);
    DOOR_TRY(box_before(&b, nul, true));
    return eng_other("cuMemcpy3DPeer", nul, touch, box_touches(touch, &b), issue_copy3d_peer, &call);
}

static int on_copy3d_peer_async(__typeof__(&cuMemcpy3DPeerAsync) real, CUstream nul, const CUDA_MEMCPY3D_PEER *c,
                                CUstream s)
{
    struct call_copy3d_peer_async call = {real, c, s};
    struct eng_touch touch[2];
    struct box b = box_peer(c);
    DOOR_TRY(box_before(&b, door_stream(s, nul), false));
    return eng_other("cuMemcpy3DPeerAsync", door_stream(s, nul), touch, box_touches(touch, &b), issue_copy3d_peer_async, &call);
}

HOOKS_COPY2D(DOOR_EXPORT)
