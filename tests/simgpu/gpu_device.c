/*
 * The devices, SIMGPU_DEVICES of them: each an A100 in round numbers, without graphics, clusters or multicast.
 */
#include <stdio.h>
#include <string.h>

#include "tests/simgpu/gpu.h"

static const struct {
    CUdevice_attribute id;
    int value;
} attributes[] = {
    { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
    { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
    { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
    { CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
    { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff },
    { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
    { CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
    { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10 },
    { CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10 },
    { CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
    { CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff },
    { CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
    { CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1410000 },
    { CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512 },
    { CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1 },
    { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 108 },
    { CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
    { CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512 },
    { CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
    { CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1 },
    { CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1 },
    { CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1215000 },
    { CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120 },
    { CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 40 << 20 },
    { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048 },
    { CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
    { CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131072 },
    { CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131072 },
    { CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536 },
    { CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384 },
    { CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384 },
    { CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384 },
    { CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32 },
    { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8 },
    { CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
    { CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 164 << 10 },
    { CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536 },
    { CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
    { CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2 },
    { CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1 },
    { CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
    { CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
    { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 163 << 10 },
    { CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0 },
    { CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32 },
    { CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024 },
    { CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
    { CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1 },
    { CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1 },
    { CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1 },
    { CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1 },
    { CU_DEVICE_ATTRIBUTE_NUMA_ID, -1 },
    { CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, 0 },
};
static const char uuid[16] = "simulated GPU 0"; /* the digit is the device's */

bool gpu_device_known(CUdevice dev)
{
    return dev >= 0 && dev < gpu_cfg.n_devices;
}

/* One bus for each. Valid until the thread's next call. */
static const char *bus_id(CUdevice dev)
{
    static __thread char text[16];
    snprintf(text, sizeof text, "0000:%02x:00.0", (unsigned char)(dev + 1));
    return text;
}

static CUresult attribute(int *out, CUdevice_attribute id, CUdevice dev)
{
    if (!out || (int)id < 1 || id > CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = 0; /* what the table does not name the device does not have */
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].id == id)
            *out = attributes[i].value;
    if (id == CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)
        *out = gpu_cfg.n_copy_engines;
    if (id == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS)
        *out = gpu_cfg.pageable;
    if (id == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
        *out += dev;
    return CUDA_SUCCESS;
}

static CUresult get(CUdevice *dev, int ordinal)
{
    if (!dev)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *dev = ordinal;
    return CUDA_SUCCESS;
}

static CUresult count(int *n)
{
    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    *n = gpu_cfg.n_devices;
    return CUDA_SUCCESS;
}

static CUresult text(char *out, int room, CUdevice dev, const char *from)
{
    if (!out || room <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(out, (size_t)room, "%s", from);
    return CUDA_SUCCESS;
}

static CUresult total(size_t *bytes, CUdevice dev)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = gpu_cfg.mem_bytes;
    return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *out, CUdevice dev)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(out->bytes, uuid, sizeof out->bytes);
    out->bytes[14] = (char)('0' + dev);
    return CUDA_SUCCESS;
}

static CUresult by_bus_id(CUdevice *dev, const char *id)
{
    if (!dev || !id)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < gpu_cfg.n_devices; i++) {
        const char *full = bus_id(i); /* with or without domain and function */
        if (!strcmp(id, full) || !strcmp(id, full + 5) || (!strncmp(id, full, 10) && !id[10]) ||
            (!strncmp(id, full + 5, 5) && !id[5])) {
            *dev = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult capability(int *major, int *minor, CUdevice dev)
{
    CUresult e = attribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, dev);
    return e ? e : attribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, dev);
}

static CUresult properties(CUdevprop *out, CUdevice dev)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (CUdevprop){ 1024, { 1024, 1024, 64 }, { 0x7fffffff, 65535, 65535 }, 48 << 10, 64 << 10, 32, 0x7fffffff,
                        65536, 1410000, 512 };
    return CUDA_SUCCESS;
}

static CUresult can_access_peer(int *out, CUdevice dev, CUdevice peer)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev) || !gpu_device_known(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = gpu_cfg.peers && dev != peer; /* otherwise copies between them go through the host */
    return CUDA_SUCCESS;
}

static CUresult p2p_attribute(int *out, CUdevice_P2PAttribute a, CUdevice dev, CUdevice peer)
{
    if (!gpu_device_known(dev) || !gpu_device_known(peer) || dev == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out || a < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK || a > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    *out = gpu_cfg.peers && a == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult texture_width(size_t *out, CUarray_format format, unsigned channels, CUdevice dev)
{
    (void)format;
    if (!out || !channels || channels > 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = 1u << 28;
    return CUDA_SUCCESS;
}

static CUresult affinity_support(int *out, CUexecAffinityType type, CUdevice dev)
{
    (void)type;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = 0;
    return CUDA_SUCCESS;
}

GPU_API(cuDeviceGet, (CUdevice *dev, int ordinal), GPU_NEED_INIT, get(dev, ordinal))
GPU_API(cuDeviceGetCount, (int *n), GPU_NEED_INIT, count(n))
GPU_API(cuDeviceGetName, (char *out, int room, CUdevice dev), GPU_NEED_INIT, text(out, room, dev, "Simulated GPU"))
GPU_API(cuDeviceGetUuid, (CUuuid *out, CUdevice dev), GPU_NEED_INIT, get_uuid(out, dev))
GPU_API(cuDeviceGetUuid_v2, (CUuuid *out, CUdevice dev), GPU_NEED_INIT, get_uuid(out, dev))
GPU_API(cuDeviceGetLuid, (char *luid, unsigned *mask, CUdevice dev), GPU_NEED_INIT,
        ((void)luid, (void)mask, (void)dev, CUDA_ERROR_NOT_SUPPORTED))
GPU_API(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice dev), GPU_NEED_INIT, total(bytes, dev))
GPU_API(cuDeviceGetAttribute, (int *value, CUdevice_attribute id, CUdevice dev), GPU_NEED_INIT, attribute(value, id, dev))
GPU_API(cuDeviceGetProperties, (CUdevprop *out, CUdevice dev), GPU_NEED_INIT, properties(out, dev))
GPU_API(cuDeviceComputeCapability, (int *major, int *minor, CUdevice dev), GPU_NEED_INIT, capability(major, minor, dev))
GPU_API(cuDeviceGetByPCIBusId, (CUdevice *dev, const char *id), GPU_NEED_INIT, by_bus_id(dev, id))
GPU_API(cuDeviceGetPCIBusId, (char *out, int room, CUdevice dev), GPU_NEED_INIT, text(out, room, dev, bus_id(dev)))
GPU_API(cuDeviceCanAccessPeer, (int *out, CUdevice dev, CUdevice peer), GPU_NEED_INIT, can_access_peer(out, dev, peer))
GPU_API(cuDeviceGetP2PAttribute, (int *out, CUdevice_P2PAttribute a, CUdevice dev, CUdevice peer), GPU_NEED_INIT,
        p2p_attribute(out, a, dev, peer))
GPU_API(cuDeviceGetTexture1DLinearMaxWidth, (size_t *out, CUarray_format format, unsigned channels, CUdevice dev),
        GPU_NEED_INIT, texture_width(out, format, channels, dev))
GPU_API(cuDeviceGetExecAffinitySupport, (int *out, CUexecAffinityType type, CUdevice dev), GPU_NEED_INIT,
        affinity_support(out, type, dev))
GPU_API(cuDeviceGraphMemTrim, (CUdevice dev), GPU_NEED_INIT,
        gpu_device_known(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE)
