/*
 * What lets streams of this process pass and is not theirs alone: events of another process, and semaphores of graphics interfaces.
 *
 * An event that was made for it (CU_EVENT_INTERPROCESS) has a page in a memory file as soon as it is shown; its handle tells the other process
 * where that is. A wait is for the latest record then, by whichever process. The page of a process that has ended goes on.
 *
 * A semaphore is a timeline in a file: its first eight bytes are the counter, in the host's order. A wait is until the counter is at least the
 * value, a signal sets it. Whoever has the file may write there, as another interface would. Other kinds of semaphores are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simgpu/gpu_graph.h"

/* ---- events ----------------------------------------------------------------------------------------------------------------- */

struct handle {
    int pid, fd; /* the file, as in the page */
};

static struct gpu_event_page *map_page(int fd)
{
    void *p = fd >= 0 ? mmap(NULL, sizeof(struct gpu_event_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    return p == MAP_FAILED ? NULL : p;
}

/* Not while operations of this process may look there: they do until the process ends. */
void gpu_event_page_drop(struct gpu_event_page *p)
{
    (void)p;
}

static CUresult show(CUipcEventHandle *out, CUevent e)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUresult r = gpu_handle_kind(e) != GPU_EVENT ? CUDA_ERROR_INVALID_HANDLE : !(e->flags & CU_EVENT_INTERPROCESS) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (!r && !e->page) {
        int fd = memfd_create("simgpu event", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, sizeof(struct gpu_event_page)) || !(e->page = map_page(fd)))
            r = CUDA_ERROR_OUT_OF_MEMORY;
        if (!r) {
            e->page->pid = (int)getpid();
            e->page->fd = fd;
            if (e->stream && e->stream->done < e->seq) /* what it stood for before it was shown is waited for here */
                r = gpu_exec_wait(e->stream, e->seq);
        } else if (fd >= 0)
            close(fd);
    }
    if (!r) {
        struct handle h = { e->page->pid, e->page->fd };
        memset(out, 0, sizeof *out);
        memcpy(out, &h, sizeof h);
    }
    gpu_unlock();
    return r;
}

static CUresult open_shown(CUevent *out, CUipcEventHandle shown)
{
    struct handle h;
    char path[64];
    memcpy(&h, &shown, sizeof h);
    if (!out || h.pid <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (h.pid == (int)getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* it is for others */
    snprintf(path, sizeof path, "/proc/%d/fd/%d", h.pid, h.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct gpu_event_page *p = map_page(fd);
    if (fd >= 0)
        close(fd);
    return p ? gpu_event_of_page(p, out) : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuIpcGetEventHandle, (CUipcEventHandle *h, CUevent e), GPU_NEED_CTX, show(h, e))
GPU_API(cuIpcOpenEventHandle, (CUevent *e, CUipcEventHandle h), GPU_NEED_CTX, open_shown(e, h))

/* ---- semaphores ------------------------------------------------------------------------------------------------------------- */

struct CUextSemaphore_st {
    _Atomic uint64_t *counter;
};

typedef struct {
    gpu_op op;
    CUstream stream;
    _Atomic uint64_t *counter; /* stays mapped when the semaphore goes: the operation may come after that */
    uint64_t value;
} semaphore_op;

static CUresult import(CUexternalSemaphore *out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *d)
{
    struct stat st;
    if (!out || !d || d->flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (fstat(d->handle.fd, &st) || st.st_size < 8)
        return CUDA_ERROR_INVALID_VALUE;
    CUexternalSemaphore x = calloc(1, sizeof *x);
    void *p = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, d->handle.fd, 0);
    gpu_lock();
    CUresult e = x && p != MAP_FAILED ? gpu_handle_add(x, GPU_SEMAPHORE) : CUDA_ERROR_OUT_OF_MEMORY;
    gpu_unlock();
    if (e) {
        free(x);
        return e;
    }
    close(d->handle.fd); /* the driver's from now on */
    x->counter = p;
    *out = x;
    return CUDA_SUCCESS;
}

static CUresult forget(CUexternalSemaphore x)
{
    gpu_lock();
    bool ok = gpu_handle_kind(x) == GPU_SEMAPHORE;
    if (ok)
        gpu_handle_drop(x);
    gpu_unlock();
    if (ok)
        free(x);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static bool is_there(const void *op)
{
    const semaphore_op *s = op;
    return *s->counter >= s->value;
}

static void run_wait(gpu_op *op)
{
    gpu_memop_until(((semaphore_op *)op)->stream, is_there, op);
}

static void run_signal(gpu_op *op)
{
    *((semaphore_op *)op)->counter = ((semaphore_op *)op)->value;
}

static CUresult enqueue(CUstream h, bool per_thread, CUexternalSemaphore x, bool wait, uint64_t value)
{
    semaphore_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    CUresult e = !s || gpu_handle_kind(x) != GPU_SEMAPHORE ? CUDA_ERROR_INVALID_HANDLE : gpu_capture_allows_work(s);
    if (!e && s->capture)
        e = CUDA_ERROR_NOT_SUPPORTED; /* no node of a graph waits for one here */
    if (!e) {
        *op = (semaphore_op){ { .exec = wait ? run_wait : run_signal }, s, x->counter, value };
        gpu_exec_enqueue(s, &op->op, GPU_ENGINE_NONE, 0);
    } else
        free(op);
    gpu_unlock();
    return e;
}

static CUresult wait_all(CUstream s, bool per_thread, const CUexternalSemaphore *x, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *how, unsigned n)
{
    CUresult e = x && how && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !e && i < n; i++)
        e = how[i].flags ? CUDA_ERROR_INVALID_VALUE : enqueue(s, per_thread, x[i], true, how[i].params.fence.value);
    return e;
}

static CUresult signal_all(CUstream s, bool per_thread, const CUexternalSemaphore *x, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *how, unsigned n)
{
    CUresult e = x && how && n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !e && i < n; i++)
        e = how[i].flags ? CUDA_ERROR_INVALID_VALUE : enqueue(s, per_thread, x[i], false, how[i].params.fence.value);
    return e;
}

GPU_API(cuImportExternalSemaphore, (CUexternalSemaphore *x, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *d), GPU_NEED_CTX, import(x, d))
GPU_API(cuDestroyExternalSemaphore, (CUexternalSemaphore x), GPU_NEED_CTX, forget(x))
GPU_API_BOTH(cuWaitExternalSemaphoresAsync, _ptsz,
             (const CUexternalSemaphore *x, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *how, unsigned n, CUstream s),
             wait_all(s, per_thread, x, how, n))
GPU_API_BOTH(cuSignalExternalSemaphoresAsync, _ptsz,
             (const CUexternalSemaphore *x, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *how, unsigned n, CUstream s),
             signal_all(s, per_thread, x, how, n))
