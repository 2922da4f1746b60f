/*
 * Memory of the simulated GPU that is not stream-ordered, copies and fills of every shape, questions about
 * addresses.
 */
#include "tests/simgpu/testing.h"

#include <stdbool.h>

START_TEST(limit)
{
    setenv("SIMGPU_MEM", "64M", 1);
    start();
    size_t available, total;
    CUdeviceptr p, q;
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(total, 64 << 20);
    ck_assert_uint_eq(available, 64 << 20);
    OK(cuMemAlloc_v2(&p, 40 << 20));
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(available, 24 << 20);
    FAILS(cuMemAlloc_v2(&q, 25 << 20), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuMemAlloc_v2(&q, 1ull << 50), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuMemAlloc_v2(&q, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&q, 24 << 20));
    OK(cuMemFree_v2(p));
    OK(cuMemAlloc_v2(&p, 40 << 20));
    OK(cuMemFree_v2(p));
    OK(cuMemFree_v2(q));
    FAILS(cuMemFree_v2(q), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemFree_v2(0x1000), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(0));
    FAILS(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuDeviceTotalMem_v2(&total, 0));
    ck_assert_uint_eq(total, 64 << 20);
}
END_TEST

START_TEST(address_range)
{
    start();
    CUdeviceptr p, base;
    size_t bytes;
    OK(cuMemAlloc_v2(&p, 100000));
    OK(cuMemGetAddressRange_v2(&base, &bytes, p + 99999));
    ck_assert_uint_eq(base, p);
    ck_assert_uint_eq(bytes, 100000);
    OK(cuMemGetAddressRange_v2(NULL, &bytes, p));
    OK(cuMemGetAddressRange_v2(&base, NULL, p));
    FAILS(cuMemGetAddressRange_v2(&base, &bytes, p + 100000), CUDA_ERROR_NOT_FOUND);
    FAILS(cuMemFree_v2(p + 512), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
    FAILS(cuMemGetAddressRange_v2(&base, &bytes, p), CUDA_ERROR_NOT_FOUND);
}
END_TEST

START_TEST(linear_copies)
{
    start();
    CUdeviceptr p = alloc_words(1024), q = alloc_words(1024);
    unsigned a[1024], b[1024];
    for (unsigned i = 0; i < 1024; i++)
        a[i] = i * 2654435761u;
    OK(cuMemcpyHtoD_v2(p, a, sizeof a));
    OK(cuMemcpyDtoD_v2(q, p, sizeof a));
    OK(cuMemcpyDtoH_v2(b, q, sizeof b));
    ck_assert_mem_eq(a, b, sizeof a);
    memset(b, 0, sizeof b);
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)b, p + 400, 400)); /* unified: the driver finds out */
    ck_assert_mem_eq(a + 100, b, 400);
    OK(cuMemcpyAsync(q, (CUdeviceptr)(uintptr_t)a, 40, NULL));
    OK(cuMemcpyPeer(p, test_ctx, q, test_ctx, 40));
    OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)b, p, 40, NULL)); /* pageable target: written on return */
    ck_assert_mem_eq(a, b, 40);
    OK(cuMemcpyHtoD_v2(p, a, 0));
    FAILS(cuMemcpyHtoD_v2(0, a, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyHtoD_v2(p, a, 1 << 20), CUDA_ERROR_INVALID_VALUE); /* longer than the allocation */
    FAILS(cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)b, a, 4), CUDA_ERROR_INVALID_VALUE); /* not device memory */
    FAILS(cuMemcpyDtoH_v2(b, (CUdeviceptr)(uintptr_t)a, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpyDtoHAsync_v2(b, p, 4, (CUstream)a), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(copies_2d)
{
    start();
    CUdeviceptr p;
    size_t pitch;
    OK(cuMemAllocPitch_v2(&p, &pitch, 100, 16, 4));
    ck_assert_uint_ge(pitch, 100);
    ck_assert_uint_eq(pitch % 512, 0);
    OK(cuMemsetD8_v2(p, 0xcc, pitch * 16));
    unsigned char host[20][64], back[20][64];
    for (int y = 0; y < 20; y++)
        for (int x = 0; x < 64; x++)
            host[y][x] = (unsigned char)(y * 64 + x);
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.srcPitch = 64;
    c.srcXInBytes = 3;
    c.srcY = 2;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = p;
    c.dstPitch = pitch;
    c.dstXInBytes = 7;
    c.dstY = 1;
    c.WidthInBytes = 30;
    c.Height = 10;
    OK(cuMemcpy2D_v2(&c));
    unsigned char row[100];
    OK(cuMemcpyDtoH_v2(row, p + pitch * 4, 100));
    ck_assert_mem_eq(row + 7, &host[5][3], 30);
    ck_assert_uint_eq(row[6], 0xcc);
    ck_assert_uint_eq(row[37], 0xcc);

    CUDA_MEMCPY2D d;
    memset(&d, 0, sizeof d);
    memset(back, 0, sizeof back);
    d.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    d.srcDevice = p;
    d.srcPitch = pitch;
    d.srcXInBytes = 7;
    d.srcY = 1;
    d.dstMemoryType = CU_MEMORYTYPE_HOST;
    d.dstHost = back;
    d.dstPitch = 64;
    d.WidthInBytes = 30;
    d.Height = 10;
    OK(cuMemcpy2DAsync_v2(&d, NULL));
    for (int y = 0; y < 10; y++)
        ck_assert_mem_eq(back[y], &host[y + 2][3], 30);
    d.dstPitch = 29;
    FAILS(cuMemcpy2D_v2(&d), CUDA_ERROR_INVALID_VALUE);
    d.dstPitch = 32;
    d.dstXInBytes = 3; /* a row would run into the next one */
    FAILS(cuMemcpy2D_v2(&d), CUDA_ERROR_INVALID_VALUE);
    d.dstXInBytes = 0;
    d.dstPitch = 64;
    d.srcY = SIZE_MAX / 256; /* numbers that wrap around */
    FAILS(cuMemcpy2D_v2(&d), CUDA_ERROR_INVALID_VALUE);
    d.srcY = 1;
    d.Height = SIZE_MAX / 16;
    FAILS(cuMemcpy2D_v2(&d), CUDA_ERROR_INVALID_VALUE);
    d.Height = 10;
    d.dstPitch = SIZE_MAX / 4;
    FAILS(cuMemcpy2D_v2(&d), CUDA_ERROR_INVALID_VALUE);
    d.dstPitch = 64;
    FAILS(cuMemsetD2D8_v2(p, SIZE_MAX / 2, 0, 1, 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD2D32_v2(p, 4, 0, SIZE_MAX / 2, 4), CUDA_ERROR_INVALID_VALUE);
    d.srcMemoryType = (CUmemorytype)9;
    FAILS(cuMemcpy2DUnaligned_v2(&d), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(copies_3d)
{
    start();
    enum { W = 8, H = 4, D = 3 };
    unsigned char host[D][H][W], back[2][2][4];
    for (int i = 0; i < D * H * W; i++)
        (&host[0][0][0])[i] = (unsigned char)i;
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, D * H * W));
    CUDA_MEMCPY3D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.srcPitch = W;
    c.srcHeight = H;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = p;
    c.dstPitch = W;
    c.dstHeight = H;
    c.WidthInBytes = W;
    c.Height = H;
    c.Depth = D;
    OK(cuMemcpy3D_v2(&c));
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = p;
    c.srcPitch = W;
    c.srcHeight = H;
    c.srcXInBytes = 2;
    c.srcY = 1;
    c.srcZ = 1;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = back;
    c.dstPitch = 4;
    c.dstHeight = 2;
    c.WidthInBytes = 4;
    c.Height = 2;
    c.Depth = 2;
    OK(cuMemcpy3DAsync_v2(&c, NULL));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            ck_assert_mem_eq(back[z][y], &host[z + 1][y + 1][2], 4);
    CUDA_MEMCPY3D_PEER peer;
    memset(&peer, 0, sizeof peer);
    peer.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    peer.srcDevice = p;
    peer.srcContext = test_ctx;
    peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    peer.dstDevice = p + 48;
    peer.dstContext = test_ctx;
    peer.WidthInBytes = 8;
    peer.Height = peer.Depth = 1;
    OK(cuMemcpy3DPeerAsync(&peer, NULL));
    unsigned char eight[8];
    OK(cuMemcpyDtoH_v2(eight, p + 48, 8));
    ck_assert_mem_eq(eight, host, 8);
}
END_TEST

START_TEST(fills)
{
    start();
    CUdeviceptr p;
    unsigned char got[64];
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuMemsetD8_v2(p, 1, 64));
    OK(cuMemsetD16_v2(p + 2, 0x0203, 2));
    OK(cuMemsetD32_v2(p + 8, 0x04050607, 1));
    OK(cuMemsetD2D8_v2(p + 16, 8, 9, 3, 2));
    OK(cuMemsetD2D16Async(p + 32, 8, 0x0a0b, 2, 2, NULL));
    OK(cuMemsetD2D32Async(p + 48, 8, 0x0c0d0e0f, 1, 2, NULL));
    OK(cuMemcpyDtoH_v2(got, p, 64));
    static const unsigned char want[64] = { 1, 1, 3, 2, 3, 2, 1, 1, 7, 6, 5, 4, 1, 1, 1, 1, 9, 9, 9, 1, 1, 1,
                                            1, 1, 9, 9, 9, 1, 1, 1, 1, 1, 11, 10, 11, 10, 1, 1, 1, 1, 11, 10, 11, 10,
                                            1, 1, 1, 1, 15, 14, 13, 12, 1, 1, 1, 1, 15, 14, 13, 12, 1, 1, 1, 1 };
    ck_assert_mem_eq(got, want, 64);
    OK(cuMemsetD8Async(p, 1, 0, NULL));
    FAILS(cuMemsetD32_v2(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD16Async(p + 1, 1, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD8_v2(p, 1, 100000), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemsetD8_v2(0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    unsigned *host;
    OK(cuMemAllocHost_v2((void **)&host, 4));
    OK(cuMemsetD32_v2((CUdeviceptr)(uintptr_t)host, 5, 1)); /* pinned: done on return */
    ck_assert_uint_eq(*host, 5);
}
END_TEST

START_TEST(host_memory)
{
    start();
    unsigned char *p;
    CUdeviceptr d;
    unsigned flags;
    OK(cuMemHostAlloc((void **)&p, 10000, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetFlags(&flags, p));
    ck_assert_uint_eq(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    OK(cuMemHostGetDevicePointer_v2(&d, p, 0));
    uint64_t n = 2500;
    launch_fill(d, 0x01010101, n, NULL);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(p[9999], 1);
    OK(cuMemFreeHost(p));
    FAILS(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemHostAlloc((void **)&p, 100, 64), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAllocHost_v2((void **)&p, 0), CUDA_ERROR_INVALID_VALUE);

    static unsigned mine[1000], outside;
    OK(cuMemHostRegister_v2(mine, sizeof mine, CU_MEMHOSTREGISTER_DEVICEMAP));
    FAILS(cuMemHostRegister_v2(mine, sizeof mine, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    FAILS(cuMemHostRegister_v2(mine + 10, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    FAILS(cuMemHostRegister_v2(&outside, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostGetDevicePointer_v2(&d, mine + 5, 0));
    FAILS(cuMemHostGetDevicePointer_v2(&d, &outside, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemHostGetFlags(&flags, mine), CUDA_ERROR_INVALID_VALUE);
    launch_fill(d, 3, 10, NULL);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(mine[5], 3);
    ck_assert_uint_eq(mine[15], 0);
    FAILS(cuMemHostUnregister(mine + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostUnregister(mine));
    FAILS(cuMemHostUnregister(mine), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}
END_TEST

START_TEST(managed)
{
    start();
    CUdeviceptr p;
    FAILS(cuMemAllocManaged(&p, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    unsigned *host = (unsigned *)(uintptr_t)p;
    host[1000] = 7;
    launch_step(p + 4000, 3, 1, NULL);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(host[1000], 22);
    CUmemLocation at = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
    OK(cuMemPrefetchAsync_v2(p, 4096, at, 0, NULL));
    OK(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, at));
    OK(cuMemFree_v2(p));
}
END_TEST

START_TEST(pointer_attributes)
{
    start();
    CUdeviceptr p, got_p;
    unsigned type;
    char managed;
    int ordinal = -1;
    size_t bytes;
    unsigned long long id, id2;
    void *host;
    CUcontext ctx;
    OK(cuMemAlloc_v2(&p, 1000));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 999));
    ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    ck_assert_ptr_eq(ctx, test_ctx);
    OK(cuPointerGetAttribute(&got_p, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 5));
    ck_assert_uint_eq(got_p, p);
    OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 5));
    ck_assert_uint_eq(bytes, 1000);
    OK(cuPointerGetAttribute(&got_p, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 5));
    ck_assert_uint_eq(got_p, p + 5);
    FAILS(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p), CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    ck_assert_int_eq(ordinal, 0);
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    ck_assert_int_eq(managed, 0);
    OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    OK(cuMemFree_v2(p));
    OK(cuMemAlloc_v2(&p, 1000));
    OK(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    ck_assert_uint_ne(id, id2);
    FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 1000), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type),
          CUDA_ERROR_INVALID_VALUE);
    FAILS(cuPointerGetAttribute(&type, (CUpointer_attribute)77, p), CUDA_ERROR_INVALID_VALUE);

    /* many at once: a pointer nobody knows is no error, its answers are zero */
    CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_HOST_POINTER };
    void *out[] = { &ctx, &type, &ordinal, &managed, &host };
    OK(cuPointerGetAttributes(5, which, out, p));
    ck_assert_ptr_eq(ctx, test_ctx);
    ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
    ck_assert_ptr_null(host);
    OK(cuPointerGetAttributes(5, which, out, (CUdeviceptr)(uintptr_t)&type));
    ck_assert_ptr_null(ctx);
    ck_assert_uint_eq(type, 0);
    ck_assert_int_eq(ordinal, -2);

    OK(cuMemAllocHost_v2(&host, 100));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
    ck_assert_uint_eq(type, CU_MEMORYTYPE_HOST);
    void *same;
    OK(cuPointerGetAttribute(&same, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)(uintptr_t)host));
    ck_assert_ptr_eq(same, host);
    unsigned on = 1, now = 0;
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    OK(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    ck_assert_uint_eq(now, 1);
}
END_TEST

START_TEST(arrays)
{
    start();
    CUarray a;
    CUDA_ARRAY_DESCRIPTOR d = { 16, 4, CU_AD_FORMAT_FLOAT, 1 }, back_d;
    OK(cuArrayCreate_v2(&a, &d));
    OK(cuArrayGetDescriptor_v2(&back_d, a));
    ck_assert_uint_eq(back_d.Height, 4);
    float host[4][16], back[4][16];
    for (int i = 0; i < 64; i++)
        (&host[0][0])[i] = (float)i;
    CUDA_MEMCPY2D c;
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = a;
    c.WidthInBytes = 64;
    c.Height = 4;
    OK(cuMemcpy2D_v2(&c));
    memset(&c, 0, sizeof c);
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    c.srcArray = a;
    c.dstMemoryType = CU_MEMORYTYPE_HOST;
    c.dstHost = back;
    c.WidthInBytes = 64;
    c.Height = 4;
    OK(cuMemcpy2D_v2(&c));
    ck_assert_mem_eq(host, back, sizeof host);
    c.Height = 5;
    FAILS(cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyAtoH_v2(back, a, 64, 64));
    ck_assert_mem_eq(back, host[1], 64);
    OK(cuArrayDestroy(a));
    FAILS(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

static CUDA_RESOURCE_DESC linear(CUdeviceptr p, size_t bytes)
{
    CUDA_RESOURCE_DESC r;
    memset(&r, 0, sizeof r);
    r.resType = CU_RESOURCE_TYPE_LINEAR;
    r.res.linear.devPtr = p;
    r.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
    r.res.linear.numChannels = 1;
    r.res.linear.sizeInBytes = bytes;
    return r;
}

/* A handle is given for memory that is there, and aligned; two for one place are two. */
START_TEST(textures)
{
    start();
    CUdeviceptr p = alloc_words(1024);
    CUtexObject t, u;
    CUsurfObject s;
    CUarray a, plain;
    CUDA_TEXTURE_DESC how;
    memset(&how, 0, sizeof how);
    CUDA_RESOURCE_DESC r = linear(p, 4096), got;
    OK(cuTexObjectCreate(&t, &r, &how, NULL));
    OK(cuTexObjectCreate(&u, &r, &how, NULL));
    OK(cuTexObjectGetResourceDesc(&got, t));
    ck_assert_uint_eq(got.res.linear.devPtr, p);
    OK(cuTexObjectDestroy(t));
    OK(cuTexObjectDestroy(u));
    FAILS(cuTexObjectDestroy(t), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuTexObjectCreate(&t, &r, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuSurfObjectCreate(&s, &r), CUDA_ERROR_INVALID_VALUE);
    CUDA_RESOURCE_DESC wrong[] = { linear(p + 4, 16), linear(p, 8192), linear(0, 16), linear(p, 0), r };
    wrong[4].res.linear.numChannels = 3;
    for (int i = 0; i < 5; i++)
        FAILS(cuTexObjectCreate(&t, &wrong[i], &how, NULL), CUDA_ERROR_INVALID_VALUE);
    CUDA_ARRAY3D_DESCRIPTOR d = { .Width = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1 };
    OK(cuArray3DCreate_v2(&plain, &d));
    d.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    OK(cuArray3DCreate_v2(&a, &d));
    memset(&r, 0, sizeof r);
    r.res.array.hArray = plain;
    OK(cuTexObjectCreate(&t, &r, &how, NULL));
    FAILS(cuSurfObjectCreate(&s, &r), CUDA_ERROR_INVALID_VALUE);
    r.res.array.hArray = a;
    OK(cuSurfObjectCreate(&s, &r));
    FAILS(cuTexObjectDestroy(s), CUDA_ERROR_INVALID_VALUE);
    OK(cuSurfObjectDestroy(s));
}
END_TEST

START_TEST(batch_copy)
{
    start();
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = alloc_words(2);
    unsigned a = 1, b = 2, back[2] = { 0, 0 };
    CUdeviceptr dst[] = { p, p + 4 };
    CUdeviceptr src[] = { (CUdeviceptr)(uintptr_t)&a, (CUdeviceptr)(uintptr_t)&b };
    size_t sizes[] = { 4, 4 }, first[] = { 0 }, failed;
    CUmemcpyAttributes attrs[1];
    memset(attrs, 0, sizeof attrs);
    attrs[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    OK(cuMemcpyBatchAsync(dst, src, sizes, 2, attrs, first, 1, &failed, s));
    OK(cuMemcpyDtoHAsync_v2(back, p, 8, s));
    ck_assert_uint_eq(back[0] * 10 + back[1], 12);
    FAILS(cuMemcpyBatchAsync_v2(dst, src, sizes, 2, attrs, first, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyWithAttributesAsync(p, p + 4, 4, attrs, s));
    OK(cuMemcpyDtoHAsync_v2(back, p, 8, s));
    ck_assert_uint_eq(back[0] * 10 + back[1], 22);
    FAILS(cuMemcpyWithAttributesAsync(p, p + 4, 4, NULL, s), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* A source that may be read out of stream order is read before the call returns, device memory too; one that may not is read when the stream gets there,
   pageable memory too. */
START_TEST(batch_reads_as_told)
{
    start();
    CUstream s;
    unsigned *word, pageable, back[2] = { 0, 0 };
    CUdeviceptr at, from = alloc_words(1), to = alloc_words(2);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer_v2(&at, word, 0));
    for (int order = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM; order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY; order++) {
        CUmemcpyAttributes attr = { .srcAccessOrder = (CUmemcpySrcAccessOrder)order };
        CUdeviceptr dst[] = { to, to + 4 }, src[] = { from, (CUdeviceptr)(uintptr_t)&pageable };
        size_t sizes[] = { 4, 4 }, first[] = { 0 };
        const bool early = order != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        *word = 0;
        pageable = 1;
        OK(cuMemsetD32Async(from, 1, 1, s));
        OK(cuStreamSynchronize(s));
        OK(cuStreamWaitValue32_v2(s, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuMemsetD32Async(from, 2, 1, s));
        OK(cuMemcpyBatchAsync_v2(dst, src, sizes, 2, &attr, first, 1, s));
        pageable = 2;
        __atomic_store_n(word, 1, __ATOMIC_RELEASE);
        OK(cuMemcpyDtoHAsync_v2(back, to, 8, s));
        OK(cuStreamSynchronize(s));
        ck_assert_uint_eq(back[0], early ? 1 : 2);
        ck_assert_uint_eq(back[1], early ? 1 : 2);
    }
    CUmemcpyAttributes none = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID };
    FAILS(cuMemcpyWithAttributesAsync(to, from, 4, &none, s), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(from));
}
END_TEST

START_TEST(batch_copy_3d)
{
    start();
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    unsigned char host[4][8], back[2][4];
    for (int i = 0; i < 32; i++)
        (&host[0][0])[i] = (unsigned char)i;
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 8));
    CUDA_MEMCPY3D_BATCH_OP ops[2];
    memset(ops, 0, sizeof ops);
    ops[0].src.type = ops[0].dst.type = ops[1].src.type = ops[1].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    ops[0].src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)&host[1][2];
    ops[0].src.op.ptr.rowLength = 8;
    ops[0].dst.op.ptr.ptr = ops[1].src.op.ptr.ptr = p;
    ops[1].dst.op.ptr.ptr = (CUdeviceptr)(uintptr_t)back;
    for (int i = 0; i < 2; i++) {
        ops[i].extent = (CUextent3D){ 4, 2, 1 };
        ops[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    }
    size_t failed = 5;
    OK(cuMemcpy3DBatchAsync(2, ops, &failed, 0, s));
    ck_assert_uint_eq(failed, SIZE_MAX);
    ck_assert_mem_eq(back[0], &host[1][2], 4);
    ck_assert_mem_eq(back[1], &host[2][2], 4);
    memset(back, 0, sizeof back);
    OK(cuMemcpy3DWithAttributesAsync(&ops[1], 0, s));
    ck_assert_mem_eq(back[1], &host[2][2], 4);
    FAILS(cuMemcpy3DWithAttributesAsync(NULL, 0, s), CUDA_ERROR_INVALID_VALUE);
    ops[1].dst.type = (CUmemcpy3DOperandType)7;
    FAILS(cuMemcpy3DBatchAsync(2, ops, &failed, 0, s), CUDA_ERROR_INVALID_VALUE);
    ck_assert_uint_eq(failed, 1);
}
END_TEST

RUN_SUITE("simgpu_memory", limit, address_range, linear_copies, copies_2d, copies_3d, fills, host_memory, managed,
          pointer_attributes, arrays, textures, batch_copy, batch_reads_as_told, batch_copy_3d)
