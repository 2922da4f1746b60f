/*
 * Memory that other processes and other interfaces have, and this one uses: opened by its handle (cuIpcOpenMemHandle), imported from a graphics
 * interface (cuImportExternalMemory), pointers of an imported pool.
 *
 * A handle says where the memory lies: the process, its descriptor of the file, the place there. It is mapped here from /proc, and counts as the
 * other process's. What lies there when that one gives it back is not said; nor does it end with that process. Each of the three is given back
 * in its own way and in no other: cuIpcCloseMemHandle, which waits for nothing; cuMemFree, which waits for the context's work; of a pool's
 * pointer that or cuMemFreeAsync (gpu_pool.c).
 *
 * External memory is a file that a descriptor stands for (CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, no other kind); buffers of it begin at whole
 * pages of the host.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simgpu/gpu_graph.h"

static uint64_t page(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

struct gpu_shown gpu_range_shown(const gpu_range *r)
{
    return (struct gpu_shown){ (int)getpid(), gpu_phys_file(r->phys), r->device, r->id, r->phys->offset, r->bytes };
}

CUresult gpu_import_range(const struct gpu_shown *shown, enum gpu_import how, CUdeviceptr *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", shown->pid, shown->fd);
    gpu_range *r = calloc(1, sizeof *r);
    gpu_phys *p = calloc(1, sizeof *p);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    CUresult e = !r || !p ? CUDA_ERROR_OUT_OF_MEMORY : fd < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    gpu_lock();
    if (!e) {
        CUcontext ctx = gpu_ctx_owner(gpu_ctx_current());
        *p = (gpu_phys){ .offset = shown->offset, .bytes = gpu_round_up(shown->bytes, page()), .device = shown->device, .refs = 1, .fd = fd };
        *r = (gpu_range){ .kind = GPU_RANGE_IMPORTED, .bytes = shown->bytes, .span = p->bytes, .ctx = ctx, .device = shown->device, .id = gpu_range_new_id(),
                          .phys = p, .import = how, .shown = *shown, .opened = 1 };
        r->start = gpu_range_address(r->span, page(), 0);
        e = r->start ? gpu_phys_map(r->start, r->span, p, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!e) {
        gpu_range_insert(r);
        *out = r->start;
    }
    gpu_unlock();
    if (e) {
        if (fd >= 0)
            close(fd);
        free(p);
        free(r);
    }
    return e;
}

/* ---- by a handle -------------------------------------------------------------------------------------------------------------------- */

static bool same(const struct gpu_shown *a, const struct gpu_shown *b) { return a->pid == b->pid && a->id == b->id; }

static CUresult show(CUipcMemHandle *out, CUdeviceptr p)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    const gpu_range *r = gpu_range_find(p);
    const bool ok = r && r->kind == GPU_RANGE_LINEAR && r->start == p; /* that of cuMemAlloc, where it begins */
    if (ok) {
        const struct gpu_shown shown = gpu_range_shown(r);
        _Static_assert(sizeof shown <= sizeof *out, "it fits into a handle");
        memset(out, 0, sizeof *out);
        memcpy(out, &shown, sizeof shown);
    }
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The memory that this context has opened already, once more. */
static bool open_again(const struct gpu_shown *shown, CUdeviceptr *out)
{
    bool found = false;
    gpu_lock();
    for (gpu_range *r = gpu_range_next(0); r && !found; r = gpu_range_next(r->start + 1))
        if (r->kind == GPU_RANGE_IMPORTED && r->import == GPU_IMPORT_HANDLE && same(&r->shown, shown)) {
            r->opened++;
            *out = r->start;
            found = true;
        }
    gpu_unlock();
    return found;
}

static CUresult open_shown(CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
    struct gpu_shown shown;
    CUresult e = gpu_capture_allows_unsafe();
    if (e)
        return e;
    memcpy(&shown, &h, sizeof shown);
    if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || shown.pid <= 0 || !shown.bytes || !gpu_device_known(shown.device))
        return CUDA_ERROR_INVALID_VALUE;
    if (shown.pid == (int)getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* it is for others */
    return open_again(&shown, out) ? CUDA_SUCCESS : gpu_import_range(&shown, GPU_IMPORT_HANDLE, out);
}

static CUresult close_shown(CUdeviceptr p)
{
    gpu_lock();
    gpu_range *r = gpu_range_find(p);
    const bool ok = r && r->kind == GPU_RANGE_IMPORTED && r->import == GPU_IMPORT_HANDLE && r->start == p;
    if (ok && !--r->opened)
        gpu_alloc_release(r);
    gpu_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuIpcGetMemHandle, (CUipcMemHandle *h, CUdeviceptr p), GPU_NEED_CTX, show(h, p))
GPU_API(cuIpcOpenMemHandle, (CUdeviceptr *p, CUipcMemHandle h, unsigned flags), GPU_NEED_CTX, open_shown(p, h, flags))
GPU_API(cuIpcOpenMemHandle_v2, (CUdeviceptr *p, CUipcMemHandle h, unsigned flags), GPU_NEED_CTX, open_shown(p, h, flags))
GPU_API(cuIpcCloseMemHandle, (CUdeviceptr p), GPU_NEED_CTX, close_shown(p))

/* ---- of a graphics interface --------------------------------------------------------------------------------------------------------- */

struct CUextMemory_st {
    int fd;
    uint64_t bytes;
};

static CUresult import(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d)
{
    struct stat st;
    if (!out || !d || !d->size || d->flags & ~CUDA_EXTERNAL_MEMORY_DEDICATED)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (fstat(d->handle.fd, &st) || (unsigned long long)st.st_size < d->size)
        return CUDA_ERROR_INVALID_VALUE;
    CUexternalMemory m = calloc(1, sizeof *m);
    gpu_lock();
    CUresult e = m ? gpu_handle_add(m, GPU_EXTERNAL_MEMORY) : CUDA_ERROR_OUT_OF_MEMORY;
    gpu_unlock();
    if (e) {
        free(m);
        return e;
    }
    *m = (struct CUextMemory_st){ d->handle.fd, d->size }; /* the descriptor is the driver's from now on */
    *out = m;
    return CUDA_SUCCESS;
}

static CUresult buffer(CUdeviceptr *out, CUexternalMemory m, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d)
{
    if (!out || !d || d->flags || !d->size || d->offset % page())
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    const bool ok = gpu_handle_kind(m) == GPU_EXTERNAL_MEMORY;
    struct gpu_shown shown = { .pid = (int)getpid(), .device = gpu_ctx_current()->device, .offset = d->offset, .bytes = d->size };
    const bool fits = ok && d->size <= m->bytes && d->offset <= m->bytes - d->size;
    shown.fd = ok ? m->fd : -1;
    gpu_unlock();
    return !ok ? CUDA_ERROR_INVALID_HANDLE : !fits ? CUDA_ERROR_INVALID_VALUE : gpu_import_range(&shown, GPU_IMPORT_EXTERNAL, out);
}

/* Its buffers stay, until each is freed. */
static CUresult forget(CUexternalMemory m)
{
    gpu_lock();
    const bool ok = gpu_handle_kind(m) == GPU_EXTERNAL_MEMORY;
    if (ok)
        gpu_handle_drop(m);
    gpu_unlock();
    if (ok) {
        close(m->fd);
        free(m);
    }
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

GPU_API(cuImportExternalMemory, (CUexternalMemory *m, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d), GPU_NEED_CTX, import(m, d))
GPU_API(cuExternalMemoryGetMappedBuffer, (CUdeviceptr *p, CUexternalMemory m, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d), GPU_NEED_CTX,
        buffer(p, m, d))
GPU_API(cuDestroyExternalMemory, (CUexternalMemory m), GPU_NEED_CTX, forget(m))
