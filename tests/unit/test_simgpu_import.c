/*
 * Memory of other processes and interfaces on the simulated GPU; pools that others, or the host, may reach; mipmapped arrays.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/simgpu/testing.h"
#define MUST OK
#include "tests/programs/elsewhere.h"

enum { BYTES = 1 << 21 };

/* Before the driver is initialised. */
static CUdeviceptr opened(bool in_pool, struct shown *said, int *fd)
{
    const int other = another_process(false, in_pool, BYTES, BYTES / 4);
    start();
    *fd = another_told(other, said, sizeof *said);
    return another_opens(said, *fd);
}

START_TEST(opened_memory_is_the_other_ones)
{
    struct shown said;
    int fd;
    size_t bytes;
    CUdeviceptr base, again, p = opened(false, &said, &fd);
    ck_assert_uint_eq(read_word(p + BYTES - 4), 5);
    OK(cuMemGetAddressRange_v2(&base, &bytes, p + 100));
    ck_assert(base == p && bytes == BYTES);
    FAILS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemFreeAsync(p, 0), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuIpcOpenMemHandle_v2(&again, said.handle, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcOpenMemHandle_v2(&again, said.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ck_assert_uint_eq(again, p); /* opened once more: the same */
    OK(cuIpcCloseMemHandle(p));
    launch_fill(p, 9, 4, 0);
    ck_assert_uint_eq(read_word(p), 9);
    FAILS(cuIpcCloseMemHandle(p + 512), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcCloseMemHandle(p));
    FAILS(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemGetAddressRange_v2(&base, &bytes, p), CUDA_ERROR_NOT_FOUND);
    launch_fill(p, 9, 4, 0);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(handles_are_of_whole_allocations)
{
    start();
    CUipcMemHandle h;
    CUdeviceptr p = alloc_words(1024), q;
    int capable = 0;
    OK(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
    ck_assert_int_eq(capable, 1);
    OK(cuIpcGetMemHandle(&h, p));
    FAILS(cuIpcGetMemHandle(&h, p + 4), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuIpcOpenMemHandle_v2(&q, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT); /* its own */
    OK(cuMemAllocAsync(&q, 64, 0));
    FAILS(cuIpcGetMemHandle(&h, q), CUDA_ERROR_INVALID_VALUE);
    memset(&h, 0, sizeof h);
    FAILS(cuIpcOpenMemHandle_v2(&q, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(pointers_of_a_pool_that_was_imported)
{
    struct shown said;
    int fd;
    CUmemoryPool pool, other;
    CUdeviceptr p = opened(true, &said, &fd), q;
    ck_assert_uint_eq(read_word(p), 5);
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    FAILS(cuMemAllocFromPoolAsync(&q, 64, pool, 0), CUDA_ERROR_INVALID_VALUE); /* it gives nothing out */
    FAILS(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemPoolExportPointer(&said.data, p), CUDA_ERROR_INVALID_VALUE);
    const CUmemPoolProps props = shared_pool();
    OK(cuMemPoolCreate(&other, &props));
    FAILS(cuMemPoolImportPointer(&q, other, &said.data), CUDA_ERROR_INVALID_VALUE);
    int mine;
    CUmemoryPool again;
    OK(cuMemPoolExportToShareableHandle(&mine, other, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemPoolImportFromShareableHandle(&again, (void *)(intptr_t)mine, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    FAILS(cuMemPoolImportPointer(&q, again, &said.data), CUDA_ERROR_INVALID_VALUE); /* of another pool */
    OK(cuMemPoolImportPointer(&q, pool, &said.data));
    launch_fill(q, 8, 1, 0);
    ck_assert_uint_eq(read_word(p), 8); /* the same memory */
    OK(cuMemFreeAsync(q, 0));
    OK(cuMemFree_v2(p));
    FAILS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolDestroy(pool));
    OK(cuMemPoolDestroy(again));
    OK(cuMemPoolDestroy(other));
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(memory_of_a_graphics_interface)
{
    start();
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = { .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle = { .fd = memfd_create("image", 0) }, .size = BYTES };
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = { .offset = 4096, .size = 8192 };
    CUexternalMemory m;
    CUdeviceptr p, q;
    FAILS(cuImportExternalMemory(&m, &d), CUDA_ERROR_INVALID_VALUE); /* it is not so long */
    ck_assert_int_eq(ftruncate(d.handle.fd, BYTES), 0);
    unsigned *seen = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d.handle.fd, 0); /* as its owner sees it */
    OK(cuImportExternalMemory(&m, &d));
    OK(cuExternalMemoryGetMappedBuffer(&p, m, &part));
    launch_fill(p, 3, 1, 0);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(seen[1024], 3);
    part.offset = 512;
    FAILS(cuExternalMemoryGetMappedBuffer(&q, m, &part), CUDA_ERROR_INVALID_VALUE);
    part.offset = BYTES - 4096;
    FAILS(cuExternalMemoryGetMappedBuffer(&q, m, &part), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    FAILS(cuMemFreeAsync(p, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuDestroyExternalMemory(m));
    FAILS(cuDestroyExternalMemory(m), CUDA_ERROR_INVALID_HANDLE);
    launch_fill(p + 4, 4, 1, 0); /* what is mapped stays */
    OK(cuMemFree_v2(p));
    ck_assert_uint_eq(seen[1025], 4);
}
END_TEST

START_TEST(pools_that_the_host_reaches)
{
    if (_i)
        setenv("SIMGPU_CHAOS", "adversary", 1);
    start();
    for (int managed = 0; managed < 2; managed++) {
        size_t before, now, total;
        unsigned type = 0;
        char is_managed = 0;
        CUstream s;
        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        OK(cuMemGetInfo_v2(&before, &total));
        CUdeviceptr p = host_pool_memory(managed, BYTES, s);
        OK(cuMemGetInfo_v2(&now, &total));
        ck_assert_uint_eq(before - now, managed ? BYTES : 0);
        OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
        OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
        ck_assert(type == (managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST) && is_managed == managed);
        volatile unsigned *seen = (unsigned *)(uintptr_t)p;
        seen[0] = 5;
        launch_step(p, 2, 1, s);
        OK(cuStreamSynchronize(s));
        ck_assert_uint_eq(seen[0], 11);
        OK(cuMemFreeAsync(p, s));
        FAILS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CUDA_ERROR_INVALID_VALUE);
        OK(cuStreamSynchronize(s));
        OK(cuMemGetInfo_v2(&now, &total));
        ck_assert_uint_eq(before, now);
    }
    CUmemoryPool pool;
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = CU_MEM_LOCATION_TYPE_HOST }, .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
    FAILS(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    FAILS(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    OK(cuMemPoolCreate(&pool, &props));
    CUmemLocation at = { .type = CU_MEM_LOCATION_TYPE_DEVICE };
    CUmemAccess_flags flags;
    OK(cuMemPoolGetAccess(&flags, pool, &at));
    ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE); /* until it is opened */
    FAILS(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(levels_of_an_array)
{
    start();
    const CUDA_ARRAY3D_DESCRIPTOR d = { .Width = 64, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1 };
    CUDA_ARRAY3D_DESCRIPTOR is;
    CUmipmappedArray m;
    CUarray level[7], none;
    unsigned row[64], got[4] = { 0 };
    OK(cuMipmappedArrayCreate(&m, &d, 99));
    for (unsigned i = 0; i < 7; i++) {
        OK(cuMipmappedArrayGetLevel(&level[i], m, i));
        OK(cuArray3DGetDescriptor_v2(&is, level[i]));
        ck_assert(is.Width == 64u >> i && is.Height == (i < 4 ? 16u >> i : 1));
    }
    FAILS(cuMipmappedArrayGetLevel(&none, m, 7), CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < 64; i++)
        row[i] = 100 + i;
    OK(cuMemcpyHtoA_v2(level[0], 0, row, sizeof row));
    OK(cuMemcpyHtoA_v2(level[4], 0, row + 7, 16));
    OK(cuMemcpyAtoH_v2(got, level[0], 240, 16)); /* no level reaches into another */
    ck_assert_uint_eq(got[3], 163);
    OK(cuMemcpyAtoH_v2(got, level[4], 0, 16));
    ck_assert_uint_eq(got[0], 107);
    FAILS(cuArrayDestroy(level[4]), CUDA_ERROR_INVALID_HANDLE);
    CUtexObject t;
    const CUDA_TEXTURE_DESC how = { .flags = CU_TRSF_READ_AS_INTEGER };
    const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, .res.mipmap.hMipmappedArray = m };
    OK(cuTexObjectCreate(&t, &r, &how, NULL));
    FAILS(cuSurfObjectCreate(&t, &r), CUDA_ERROR_INVALID_VALUE);
    OK(cuMipmappedArrayDestroy(m));
    FAILS(cuMipmappedArrayDestroy(m), CUDA_ERROR_INVALID_HANDLE);
    FAILS(cuMemcpyAtoH_v2(got, level[4], 0, 16), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("import");
    TCase *t = tcase_create("import");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, opened_memory_is_the_other_ones);
    tcase_add_test(t, handles_are_of_whole_allocations);
    tcase_add_test(t, pointers_of_a_pool_that_was_imported);
    tcase_add_test(t, memory_of_a_graphics_interface);
    tcase_add_loop_test(t, pools_that_the_host_reaches, 0, 2);
    tcase_add_test(t, levels_of_an_array);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
