/*
 * Virtual memory management: reservations, physical handles, mappings and access.
 *
 * A mapping without access faults. Nothing here waits for the device: unmapping memory that a queued kernel
 * still uses makes that kernel fault.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simgpu/gpu_costs.h"

static gpu_phys *phys_of(CUmemGenericAllocationHandle h)
{
    gpu_phys *p = (gpu_phys *)(uintptr_t)h;
    return gpu_handle_kind(p) == GPU_PHYS ? p : NULL;
}

/* ---- reservations ---------------------------------------------------------------------------------------------- */

static CUresult reserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), g = gpu_cfg.granularity_bytes;
    if (!out || !bytes || bytes % page || hint % page || flags || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > gpu_window_bytes || (gpu_cfg.va_bytes && bytes > gpu_cfg.va_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_range *r = calloc(1, sizeof *r);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->kind = GPU_RANGE_RESERVATION;
    r->bytes = bytes;
    r->span = gpu_round_up(bytes, g);
    r->ctx = gpu_ctx_current() ? gpu_ctx_owner(gpu_ctx_current()) : NULL;
    r->n_slots = r->span / g;
    /* one pointer per granule; the kernel backs only what is touched */
    r->slots = mmap(NULL, r->n_slots * sizeof *r->slots, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->slots == MAP_FAILED) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    gpu_lock();
    r->id = gpu_range_new_id();
    uint64_t align = alignment > g ? alignment : g > (2u << 20) ? g : 2u << 20;
    r->start = gpu_range_address(r->span, align, hint);
    if (r->start)
        gpu_range_insert(r);
    gpu_unlock();
    if (!r->start) {
        munmap(r->slots, r->n_slots * sizeof *r->slots);
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = r->start;
    return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr p, size_t bytes)
{
    gpu_lock();
    gpu_range *r = gpu_range_find(p);
    bool ok = r && r->kind == GPU_RANGE_RESERVATION && r->start == p && r->bytes == bytes && !r->n_mapped;
    if (ok) {
        gpu_range_remove(r);
        munmap(r->slots, r->n_slots * sizeof *r->slots);
        free(r);
    }
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuMemAddressReserve, (CUdeviceptr *p, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags),
        GPU_NEED_OK, reserve(p, bytes, alignment, hint, flags))
GPU_API(cuMemAddressFree, (CUdeviceptr p, size_t bytes), GPU_NEED_OK, unreserve(p, bytes))

/* ---- physical handles --------------------------------------------------------------------------------------------- */

static CUresult check_prop(const CUmemAllocationProp *prop)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) /* a machine without NUMA has the node 0 alone */
        return gpu_cfg.no_host_vmm || prop->requestedHandleTypes ? CUDA_ERROR_NOT_SUPPORTED : prop->location.id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(prop->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
                       unsigned long long flags)
{
    if (!out || flags || !bytes || bytes % gpu_cfg.granularity_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult e = check_prop(prop);
    if (e)
        return e;
    const bool host = prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (!host && bytes > gpu_cfg.mem_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    gpu_phys *p;
    e = gpu_phys_take(host ? 0 : prop->location.id, bytes, host ? 0 : bytes, prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE, &p);
    if (!e && (e = gpu_handle_add(p, GPU_PHYS)))
        gpu_phys_unref(p);
    if (!e) {
        p->prop = *prop;
        p->handle_refs = 1;
        *out = (CUmemGenericAllocationHandle)(uintptr_t)p;
    }
    gpu_unlock();
    return e;
}

static CUresult release(CUmemGenericAllocationHandle h)
{
    gpu_lock();
    gpu_phys *p = phys_of(h);
    if (p) {
        if (--p->handle_refs == 0)
            gpu_handle_drop(p);
        gpu_phys_unref(p);
    }
    gpu_unlock();
    return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult retain_phys(gpu_phys *p, CUmemGenericAllocationHandle *out)
{
    if (p->handle_refs == 0) {
        CUresult e = gpu_handle_add(p, GPU_PHYS);
        if (e)
            return e;
    }
    p->handle_refs++;
    p->refs++;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)p;
    return CUDA_SUCCESS;
}

static gpu_mapping *mapping_at(CUdeviceptr p)
{
    gpu_range *r = gpu_range_find(p);
    return r ? gpu_range_mapping(r, p) : NULL;
}

static CUresult retain(CUmemGenericAllocationHandle *out, void *address)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    gpu_mapping *m = mapping_at((CUdeviceptr)(uintptr_t)address);
    CUresult e = m ? retain_phys(m->phys, out) : CUDA_ERROR_INVALID_VALUE;
    gpu_unlock();
    return e;
}

static CUresult granularity(size_t *out, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
    if (!out || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult e = check_prop(prop);
    if (!e)
        *out = gpu_cfg.granularity_bytes;
    return e;
}

static CUresult properties(CUmemAllocationProp *out, CUmemGenericAllocationHandle h)
{
    gpu_lock();
    gpu_phys *p = phys_of(h);
    if (p && out)
        *out = p->prop;
    gpu_unlock();
    return p && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuMemCreate, (CUmemGenericAllocationHandle *h, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags),
        GPU_NEED_OK, create(h, bytes, prop, flags))
GPU_API(cuMemRelease, (CUmemGenericAllocationHandle h), GPU_NEED_OK, release(h))
GPU_API(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *h, void *address), GPU_NEED_OK,
        retain(h, address))
GPU_API(cuMemGetAllocationGranularity, (size_t *bytes, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option),
        GPU_NEED_OK, granularity(bytes, prop, option))
GPU_API(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *prop, CUmemGenericAllocationHandle h),
        GPU_NEED_OK, properties(prop, h))

/* ---- sharing with another process: a file descriptor ------------------------------------------------------------------- */

static CUresult export(void *out, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type, unsigned long long flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    gpu_lock();
    gpu_phys *p = phys_of(h);
    int fd = p && p->fd >= 0 ? fcntl(p->fd, F_DUPFD_CLOEXEC, 0) : -1;
    gpu_unlock();
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)out = fd;
    return CUDA_SUCCESS;
}

typedef struct {
    struct stat st;
    gpu_phys *found;
} same_file;

static void compare_file(void *h, void *arg)
{
    gpu_phys *p = h;
    same_file *s = arg;
    struct stat st;
    if (p->fd >= 0 && !fstat(p->fd, &st) && st.st_ino == s->st.st_ino && st.st_dev == s->st.st_dev)
        s->found = p;
}

static CUresult import(CUmemGenericAllocationHandle *out, void *os_handle, CUmemAllocationHandleType type)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int fd = (int)(uintptr_t)os_handle;
    same_file same = { .found = NULL };
    if (fstat(fd, &same.st) || same.st.st_size <= 0 || (uint64_t)same.st.st_size % gpu_cfg.granularity_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUresult e = CUDA_ERROR_OUT_OF_MEMORY;
    gpu_handle_each(GPU_PHYS, compare_file, &same);
    if (same.found)
        e = retain_phys(same.found, out);
    else {
        /* the exporter's memory: not counted here */
        gpu_phys *p = calloc(1, sizeof *p);
        int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (p && own >= 0) {
            *p = (gpu_phys){ .bytes = (uint64_t)same.st.st_size, .fd = own };
            p->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
            p->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
            p->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
            /* a file does not say whose memory it is: the importer's device, as it is for one process a device */
            p->device = p->prop.location.id = gpu_ctx_current() ? gpu_ctx_current()->device : 0;
            e = retain_phys(p, out);
        }
        if (e) {
            if (own >= 0)
                close(own);
            free(p);
        }
    }
    gpu_unlock();
    return e;
}

GPU_API(cuMemExportToShareableHandle,
        (void *out, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type, unsigned long long flags), GPU_NEED_OK,
        export(out, h, type, flags))
GPU_API(cuMemImportFromShareableHandle,
        (CUmemGenericAllocationHandle *h, void *os_handle, CUmemAllocationHandleType type), GPU_NEED_OK,
        import(h, os_handle, type))

/* ---- mappings ------------------------------------------------------------------------------------------------------------ */

static CUresult map(CUdeviceptr va, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
    uint64_t g = gpu_cfg.granularity_bytes;
    if (flags || !bytes || va % g || bytes % g || offset)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_mapping *m = calloc(1, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    gpu_phys *p = phys_of(h);
    gpu_range *r = gpu_range_find(va);
    bool ok = p && bytes <= p->bytes && r && r->kind == GPU_RANGE_RESERVATION && bytes <= r->start + r->bytes - va;
    gpu_mapping **slot = ok ? &r->slots[(va - r->start) / g] : NULL;
    for (uint64_t i = 0; ok && i < bytes / g; i++)
        ok = !slot[i];
    if (ok) {
        *m = (gpu_mapping){ va, bytes, 0, p, CU_MEM_ACCESS_FLAGS_PROT_NONE, gpu_range_new_id() };
        p->refs++;
        r->n_mapped++;
        gpu_stats.mappings++;
        for (uint64_t i = 0; i < bytes / g; i++)
            slot[i] = m;
    }
    gpu_unlock();
    if (!ok)
        free(m);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* True if [va, va + bytes) is wholly mapped and begins and ends where mappings do. */
static bool whole_mappings(CUdeviceptr va, uint64_t bytes)
{
    CUdeviceptr at = va, end = va + bytes;
    if (!bytes || end < va)
        return false;
    while (at < end) {
        gpu_mapping *m = mapping_at(at);
        if (!m || m->va != at || m->bytes > end - at)
            return false;
        at += m->bytes;
    }
    return true;
}

static CUresult unmap(CUdeviceptr va, size_t bytes)
{
    uint64_t g = gpu_cfg.granularity_bytes;
    gpu_lock();
    bool ok = whole_mappings(va, bytes);
    if (ok) {
        gpu_phys_unmap(va, bytes);
        for (CUdeviceptr at = va; at < va + bytes;) {
            gpu_range *r = gpu_range_find(at);
            gpu_mapping **slot = &r->slots[(at - r->start) / g], *m = *slot;
            for (uint64_t i = 0; i < m->bytes / g; i++)
                slot[i] = NULL;
            r->n_mapped--;
            gpu_stats.mappings--;
            at += m->bytes;
            gpu_phys_unref(m->phys);
            free(m);
        }
    }
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_access(CUdeviceptr va, size_t bytes, const CUmemAccessDesc *desc, size_t n)
{
    if (!desc || !n || va % gpu_cfg.granularity_bytes || bytes % gpu_cfg.granularity_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        if (!gpu_device_known(desc[i].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    gpu_lock();
    CUresult e = whole_mappings(va, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    CUmemAccess_flags access = e ? CU_MEM_ACCESS_FLAGS_PROT_NONE : mapping_at(va)->access;
    bool peers = !e && mapping_at(va)->phys->peers;
    for (size_t i = 0; !e && i < n; i++)
        if (desc[i].location.id == mapping_at(va)->phys->device)
            access = desc[i].flags;
        else if (!gpu_cfg.peers)
            e = CUDA_ERROR_INVALID_VALUE; /* memory is for the device it lies on */
        else
            peers = desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE; /* by device: not looked at where there are more than two */
    for (CUdeviceptr at = va; !e && at < va + bytes; at += mapping_at(at)->bytes)
        gpu_phys_set_peers(mapping_at(at)->phys, peers);
    for (CUdeviceptr at = va; !e && at < va + bytes;) {
        gpu_mapping *first = mapping_at(at);
        uint64_t run = first->bytes;
        /* pieces that are neighbours in the memory file go in one call */
        for (gpu_mapping *m; at + run < va + bytes; run += m->bytes) {
            m = mapping_at(at + run);
            if (first->phys->fd >= 0 || m->phys->fd >= 0 || m->phys->offset != first->phys->offset + run)
                break;
        }
        e = gpu_phys_map(at, run, first->phys, first->offset, access);
        for (uint64_t done = 0; !e && done < run;) {
            gpu_mapping *m = mapping_at(at + done);
            m->access = access;
            done += m->bytes;
        }
        at += run;
    }
    gpu_unlock();
    return e;
}

static CUresult get_access(unsigned long long *flags, const CUmemLocation *at, CUdeviceptr p)
{
    if (!flags || !at || at->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpu_device_known(at->id))
        return CUDA_ERROR_INVALID_DEVICE;
    gpu_lock();
    gpu_mapping *m = mapping_at(p);
    if (m)
        *flags = m->phys->device == at->id || m->phys->peers ? m->access : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    gpu_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuMemMap, (CUdeviceptr va, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags),
        GPU_NEED_OK, map(va, bytes, offset, h, flags))
GPU_API(cuMemUnmap, (CUdeviceptr va, size_t bytes), GPU_NEED_OK, unmap(va, bytes))
GPU_API(cuMemSetAccess, (CUdeviceptr va, size_t bytes, const CUmemAccessDesc *desc, size_t n), GPU_NEED_OK,
        (gpu_costs_bytes(bytes), set_access(va, bytes, desc, n)))
GPU_API(cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *at, CUdeviceptr p), GPU_NEED_OK,
        get_access(flags, at, p))
