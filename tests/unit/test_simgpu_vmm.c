/*
 * Virtual memory management of the simulated GPU: aliasing, access, and every refusal.
 */
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/simgpu/testing.h"

enum { G = 2 << 20 };
static const CUmemAccessDesc readwrite = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
static const CUmemAccessDesc readonly = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READ };
static const CUmemAccessDesc noaccess = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_NONE };

static CUmemGenericAllocationHandle create(size_t bytes)
{
    CUmemAllocationProp prop = device_prop();
    CUmemGenericAllocationHandle h;
    OK(cuMemCreate(&h, bytes, &prop, 0));
    return h;
}

static CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr p;
    OK(cuMemAddressReserve(&p, bytes, 0, 0, 0));
    return p;
}

static void map_all(CUdeviceptr p, size_t bytes, CUmemGenericAllocationHandle h)
{
    OK(cuMemMap(p, bytes, 0, h, 0));
    OK(cuMemSetAccess(p, bytes, &readwrite, 1));
}

START_TEST(one_piece_at_two_addresses)
{
    start();
    CUmemGenericAllocationHandle h = create(2 * G);
    CUdeviceptr a = reserve(2 * G), b = reserve(8 * G) + 3 * G;
    map_all(a, 2 * G, h);
    map_all(b, 2 * G, h);
    uint64_t n = G / 2;
    launch_fill(a, 41, n, NULL);
    launch_step(b + 2 * G - 4, 1, 1, NULL);
    ck_assert_uint_eq(read_word(a + 2 * G - 4), 42);
    launch_step(a + G, 2, 0, NULL);
    ck_assert_uint_eq(read_word(b + G), 82);
    /* the piece lives until its last mapping and its handle are gone */
    OK(cuMemRelease(h));
    OK(cuMemUnmap(a, 2 * G));
    ck_assert_uint_eq(read_word(b + G), 82);
    size_t available, total;
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(total - available, 2 * G);
    OK(cuMemUnmap(b, 2 * G));
    OK(cuMemGetInfo_v2(&available, &total));
    ck_assert_uint_eq(total, available);
    FAILS(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* What moves from one address to another keeps its contents. */
START_TEST(remap_in_pieces)
{
    setenv("SIMGPU_GRANULARITY", "64K", 1);
    enum { PIECE = 64 << 10, N = 64 };
    start();
    CUmemAllocationProp prop = device_prop();
    size_t g;
    OK(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ck_assert_uint_eq(g, PIECE);
    CUmemGenericAllocationHandle h[N];
    CUdeviceptr a = reserve(N * PIECE), b = reserve(N * PIECE);
    for (unsigned i = 0; i < N; i++) {
        h[i] = create(PIECE);
        OK(cuMemMap(a + i * PIECE, PIECE, 0, h[i], 0));
    }
    OK(cuMemSetAccess(a, N * PIECE, &readwrite, 1));
    for (unsigned i = 0; i < N; i++)
        launch_fill(a + i * PIECE, i, PIECE / 4, NULL);
    OK(cuCtxSynchronize());
    OK(cuMemUnmap(a, N * PIECE)); /* many mappings at once */
    for (unsigned i = 0; i < N; i++) /* in reverse */
        map_all(b + (N - 1 - i) * PIECE, PIECE, h[i]);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_uint_eq(read_word(b + (N - 1 - i) * PIECE), i);
        ck_assert_uint_eq(read_word(b + (N - i) * PIECE - 4), i);
    }
}
END_TEST

START_TEST(access_rights)
{
    start();
    CUmemGenericAllocationHandle h = create(G), back;
    CUdeviceptr p = reserve(4 * G);
    unsigned long long flags;
    CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, there = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
    FAILS(cuMemSetAccess(p, G, &readwrite, 1), CUDA_ERROR_INVALID_VALUE); /* not mapped */
    FAILS(cuMemGetAccess(&flags, &here, p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(p, G, 0, h, 0));
    OK(cuMemGetAccess(&flags, &here, p));
    ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    FAILS(cuMemSetAccess(p, 2 * G, &readwrite, 1), CUDA_ERROR_INVALID_VALUE); /* a part is not mapped */
    FAILS(cuMemSetAccess(p, 0, &readwrite, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemSetAccess(p, G, &readwrite, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemSetAccess(p, G, &(CUmemAccessDesc){ there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE }, 1),
          CUDA_ERROR_INVALID_DEVICE);
    OK(cuMemSetAccess(p, G, &readwrite, 1));
    OK(cuMemGetAccess(&flags, &here, p + G - 1));
    ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    launch_fill(p, 9, 4, NULL);
    OK(cuCtxSynchronize());
    OK(cuMemSetAccess(p, G, &readonly, 1));
    ck_assert_uint_eq(read_word(p), 9);
    OK(cuMemRetainAllocationHandle(&back, (void *)(uintptr_t)(p + 1000)));
    ck_assert_uint_eq(back, h);
    OK(cuMemRelease(back));
    CUmemAllocationProp prop;
    OK(cuMemGetAllocationPropertiesFromHandle(&prop, h));
    ck_assert_int_eq(prop.type, CU_MEM_ALLOCATION_TYPE_PINNED);
}
END_TEST

START_TEST(write_to_readonly_faults)
{
    start();
    CUdeviceptr p = reserve(G);
    map_all(p, G, create(G));
    OK(cuMemSetAccess(p, G, &readonly, 1));
    launch_fill(p, 1, 1, NULL);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(mapped_without_access_faults)
{
    start();
    CUdeviceptr p = reserve(G);
    OK(cuMemMap(p, G, 0, create(G), 0));
    unsigned got;
    FAILS(cuMemcpyDtoH_v2(&got, p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(access_taken_back_faults)
{
    start();
    CUdeviceptr p = reserve(G);
    map_all(p, G, create(G));
    launch_fill(p, 1, 1, NULL);
    OK(cuCtxSynchronize());
    OK(cuMemSetAccess(p, G, &noaccess, 1));
    launch_fill(p, 1, 1, NULL);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* Unmapping is not stream-ordered: work that is still queued meets nothing. */
START_TEST(unmap_under_a_queued_kernel_faults)
{
    start();
    CUdeviceptr p = reserve(G);
    map_all(p, G, create(G));
    launch_nap(20000, NULL);
    launch_fill(p, 1, 1, NULL);
    OK(cuMemUnmap(p, G));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(refusals)
{
    start();
    CUmemAllocationProp prop = device_prop();
    CUmemGenericAllocationHandle h, k;
    CUdeviceptr p, q;
    size_t g;
    FAILS(cuMemCreate(&h, G + 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(&h, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(&h, G, &prop, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(NULL, G, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemCreate(&h, G, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    prop.location.id = 3;
    FAILS(cuMemCreate(&h, G, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    prop = device_prop();
    prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
    FAILS(cuMemCreate(&h, G, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_ERROR_INVALID_VALUE);
    prop = device_prop();
    FAILS(cuMemCreate(&h, 16ull << 30, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    FAILS(cuMemCreate(&h, 1ull << 60, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemCreate(&h, 2 * G, &prop, 0));
    OK(cuMemCreate(&k, G, &prop, 0));

    FAILS(cuMemAddressReserve(&p, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&p, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&p, G, 3 * 4096, 0, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&p, G, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressReserve(&p, 1ull << 60, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAddressReserve(&p, 8 * G, 16 * G, 0, 0));
    ck_assert_uint_eq(p % (16 * (uint64_t)G), 0);
    OK(cuMemAddressReserve(&q, 8 * G, 0, p + 64 * (uint64_t)G, 0));
    ck_assert_uint_eq(q, p + 64 * (uint64_t)G); /* the hint was free */

    FAILS(cuMemMap(p + 4096, 2 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(p, G + 4096, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(p, 4 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);     /* larger than the piece */
    FAILS(cuMemMap(p, G, G, h, 0), CUDA_ERROR_INVALID_VALUE);         /* offset must be zero */
    FAILS(cuMemMap(p, 2 * G, 0, h, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(p, 2 * G, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemMap(p + 7 * G, 2 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE); /* over the end of the reservation */
    FAILS(cuMemMap(p + 9 * G, G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(p + G, 2 * G, 0, h, 0));
    FAILS(cuMemMap(p + 2 * G, G, 0, k, 0), CUDA_ERROR_INVALID_VALUE); /* overlaps */
    FAILS(cuMemMap(p, 2 * G, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(p + 3 * G, G, 0, k, 0));

    FAILS(cuMemUnmap(p + G, G), CUDA_ERROR_INVALID_VALUE);     /* part of a mapping */
    FAILS(cuMemUnmap(p + 2 * G, G), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemUnmap(p, 4 * G), CUDA_ERROR_INVALID_VALUE);     /* begins where nothing is mapped */
    FAILS(cuMemUnmap(p + G, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemSetAccess(p + G, G, &readwrite, 1), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressFree(p, 8 * G), CUDA_ERROR_INVALID_VALUE); /* still mapped */
    OK(cuMemUnmap(p + G, 3 * G));
    FAILS(cuMemUnmap(p + G, 2 * G), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressFree(p, 4 * G), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemAddressFree(p + G, 7 * G), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(p, 8 * G));
    FAILS(cuMemAddressFree(p, 8 * G), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemFree_v2(q), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(h));
    FAILS(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(questions)
{
    start();
    CUdeviceptr p = reserve(8 * G), base;
    size_t bytes;
    unsigned type;
    char mapped;
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p));
    ck_assert_int_eq(mapped, 0);
    FAILS(cuMemGetAddressRange_v2(&base, &bytes, p), CUDA_ERROR_NOT_FOUND);
    FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CUDA_ERROR_INVALID_VALUE);
    map_all(p + 2 * G, 2 * G, create(2 * G));
    OK(cuMemGetAddressRange_v2(&base, &bytes, p + 3 * G)); /* the mapping... */
    ck_assert_uint_eq(base, p + 2 * G);
    ck_assert_uint_eq(bytes, 2 * G);
    OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 3 * G)); /* ...and the reservation */
    ck_assert_uint_eq(base, p);
    OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 3 * G));
    ck_assert_uint_eq(bytes, 8 * G);
    OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p + 3 * G));
    ck_assert_uint_eq(bytes, 2 * G);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 3 * G));
    ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p + 3 * G));
    ck_assert_int_eq(mapped, 1);
}
END_TEST

/* Reservations cost nothing, whatever their size; thousands of mappings stay within the kernel's limits. */
START_TEST(large)
{
    enum { N = 20000, PIECE = 64 << 10 };
    setenv("SIMGPU_GRANULARITY", "64K", 1);
    setenv("SIMGPU_MEM", "2G", 1);
    start();
#if defined(__SANITIZE_THREAD__)
    uint64_t huge = 1ull << 37;
#else
    uint64_t huge = 16ull << 40;
#endif
    CUdeviceptr p = reserve(huge);
    map_all(p + huge - PIECE, PIECE, create(PIECE));
    launch_fill(p + huge - PIECE, 4, 10, NULL);
    ck_assert_uint_eq(read_word(p + huge - PIECE + 36), 4);
    static CUmemGenericAllocationHandle h[N];
    for (unsigned i = 0; i < N; i++) {
        h[i] = create(PIECE);
        OK(cuMemMap(p + (uint64_t)i * PIECE, PIECE, 0, h[i], 0));
    }
    OK(cuMemSetAccess(p, (uint64_t)N * PIECE, &readwrite, 1));
    for (unsigned i = 0; i < N; i += 997)
        launch_fill(p + (uint64_t)i * PIECE, i, 1, NULL);
    for (unsigned i = 0; i < N; i += 997)
        ck_assert_uint_eq(read_word(p + (uint64_t)i * PIECE), i);
    /* scattered: every other one elsewhere, so that nothing merges */
    OK(cuMemUnmap(p, (uint64_t)N * PIECE));
    for (unsigned i = 0; i < N; i++)
        map_all(p + (uint64_t)(i * 7919u % N) * PIECE, PIECE, h[i]);
    for (unsigned i = 0; i < N; i += 997)
        ck_assert_uint_eq(read_word(p + (uint64_t)(i * 7919u % N) * PIECE), i);
    OK(cuMemUnmap(p, (uint64_t)N * PIECE));
    OK(cuMemUnmap(p + huge - PIECE, PIECE));
    OK(cuMemAddressFree(p, huge));
}
END_TEST

/* A file descriptor carries a piece to another process. */
START_TEST(shared_with_another_process)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    char byte = 0, control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
    CUmemGenericAllocationHandle h;
    pid_t child = fork(); /* before anybody called cuInit */
    int fd;
    if (child == 0) {
        start();
        ck_assert_int_eq(recvmsg(ends[1], &msg, 0), 1);
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
        OK(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
        CUdeviceptr p = reserve(G);
        map_all(p, G, h);
        launch_step(p, 2, 1, NULL);
        OK(cuCtxSynchronize());
        _exit(0);
    }
    start();
    CUmemAllocationProp prop = device_prop();
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    OK(cuMemCreate(&h, G, &prop, 0));
    CUdeviceptr p = reserve(G);
    map_all(p, G, h);
    launch_fill(p, 20, 1, NULL);
    OK(cuCtxSynchronize());
    OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    ck_assert_int_eq(sendmsg(ends[0], &msg, 0), 1);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(read_word(p), 41);
    CUmemGenericAllocationHandle plain = create(G);
    FAILS(cuMemExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          CUDA_ERROR_INVALID_VALUE);
}
END_TEST

RUN_SUITE("simgpu_vmm", one_piece_at_two_addresses, remap_in_pieces, access_rights, write_to_readonly_faults,
          mapped_without_access_faults, access_taken_back_faults, unmap_under_a_queued_kernel_faults, refusals, questions,
          large, shared_with_another_process)
