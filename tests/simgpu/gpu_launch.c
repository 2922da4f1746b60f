/*
 * Kernel launches. Parameters are copied before the call returns; the kernel sees the copies. They are the
 * operation's own memory, which is kept when a kernel faulted: threads it started may still read it.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu.h"
#include "tests/simgpu/gpu_code.h"
#include "tests/simgpu/gpu_graph.h"
#include "tests/simgpu/ptx/ptx.h"

enum { SM_COUNT = 108, THREADS_PER_SM = 2048, BLOCKS_PER_SM = 32, MAX_THREADS = 1024, MAX_ATTRS = 64 };

typedef struct {
    gpu_op op;
    const simgpu_kernel *k;
    const struct gpu_code *code; /* NULL: k->run does it */
    simgpu_launch launch;
    struct catalogue_launch code_launch;
    bool started, finished;
    void *params[]; /* pointers into the copy behind them */
} launch_op;

static void run(gpu_op *op)
{
    launch_op *l = (launch_op *)op;
    gpu_stats.kernels++;
    l->started = true;
    l->finished = false; /* in a graph it runs again and again */
    if (l->code)
        l->code->bound.run(&l->code_launch, l->params, l->code->bound.row);
    else
        l->k->run(&l->launch, l->params);
    l->finished = true;
}

static gpu_op *abandoned; /* of kernels that faulted; under gpu_lock */

static void retire(gpu_op *op)
{
    launch_op *l = (launch_op *)op;
    if (l->finished || l->op.skipped || !l->started) {
        free(l);
    } else {
        op->next = abandoned;
        abandoned = op;
    }
}

typedef struct {
    unsigned grid[3], block[3], shared;
    bool cooperative;
    CUevent after; /* recorded behind the kernel; NULL: none */
} shape;

static CUresult check_shape(CUfunction f, const shape *s)
{
    uint64_t threads = (uint64_t)s->block[0] * s->block[1] * s->block[2];
    uint64_t blocks = (uint64_t)s->grid[0] * s->grid[1] * s->grid[2];
    if (!threads || !s->grid[0] || !s->grid[1] || !s->grid[2] || s->grid[0] > 0x7fffffff || s->grid[1] > 65535 ||
        s->grid[2] > 65535 || s->block[0] > 1024 || s->block[1] > 1024 || s->block[2] > 64)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > MAX_THREADS)
        return CUDA_ERROR_INVALID_VALUE;
    if (f->code && threads > f->code->meta.max_threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    const uint32_t *required = f->code && f->code->ptx ? f->code->ptx->reqntid : NULL;
    if (required && required[0] && (s->block[0] != required[0] || s->block[1] != required[1] || s->block[2] != required[2]))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->shared > (unsigned)gpu_function_dynamic_shared(f))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t fit = THREADS_PER_SM / threads;
    if (s->cooperative && blocks > SM_COUNT * (fit < BLOCKS_PER_SM ? fit : BLOCKS_PER_SM))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

/* Finds the argument buffer in `extra`; NULL and an error if it is not well formed or too short. */
static CUresult read_extra(void **extra, size_t want, const char **buffer)
{
    size_t bytes = 0;
    *buffer = NULL;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            bytes = *(size_t *)extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    return (want && !*buffer) || bytes < want ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult launch(CUfunction h, const shape *s, CUstream stream, void **params, void **extra, bool per_thread)
{
    gpu_lock();
    CUfunction f = gpu_module_function(h);
    gpu_unlock();
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    const simgpu_kernel *k = f->k;
    CUresult e = check_shape(f, s);
    if (!e && f->code)
        e = gpu_code_bind(f->code);
    if (e)
        return e;
    if ((params && extra) || (!params && !extra && k->n_params))
        return CUDA_ERROR_INVALID_VALUE;
    const char *buffer = NULL;
    if (extra && (e = read_extra(extra, f->param_total, &buffer)))
        return e;
    size_t pointers = gpu_round_up(k->n_params * sizeof(void *), 16);
    launch_op *op = gpu_exec_op(sizeof *op + pointers + f->param_total + 16);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *copy = (char *)gpu_round_up((uintptr_t)op->params + pointers, 16);
    for (unsigned i = 0; i < k->n_params; i++) {
        const void *from = params ? params[i] : buffer + f->offsets[i];
        if (!from) {
            free(op);
            return CUDA_ERROR_INVALID_VALUE;
        }
        op->params[i] = copy + f->offsets[i];
        memcpy(op->params[i], from, k->param_bytes[i]);
    }
    op->k = k;
    op->code = f->code;
    op->launch = (simgpu_launch){ { s->grid[0], s->grid[1], s->grid[2] },
                                  { s->block[0], s->block[1], s->block[2] },
                                  s->shared };
    op->op.exec = run;
    op->op.retire = retire;
    op->op.touches_memory = true;
    uint64_t flops = 0, bytes = 0;
    if (op->code) {
        op->code_launch = (struct catalogue_launch){ .grid = op->launch.grid, .block = op->launch.block,
                                                     .shared_bytes = s->shared, .kernel = &op->code->meta,
                                                     .device = gpu_ctx_current()->device, .sm_count = SM_COUNT, .chaos = gpu_code_chaos(),
                                                     .cooperative = s->cooperative };
        if (op->code->bound.cost)
            op->code->bound.cost(&op->code_launch, op->params, op->code->bound.row, &flops, &bytes);
    } else if (k->cost) {
        k->cost(&op->launch, op->params, &flops, &bytes);
    }
    gpu_lock();
    CUstream to = gpu_stream_resolve(stream, per_thread);
    if (to && gpu_cfg.queue) {
        gpu_exec_wait_for_room(to);
        to = gpu_stream_resolve(stream, per_thread);
    }
    if (gpu_cfg.lazy_bytes && !f->loaded_on && !(e = gpu_phys_charge(gpu_ctx_current()->device, gpu_cfg.lazy_bytes)))
        f->loaded_on = gpu_ctx_current()->device + 1;
    if (e) {
        gpu_unlock();
        free(op);
        return e;
    }
    if (!to || (s->after && gpu_handle_kind(s->after) != GPU_EVENT))
        e = CUDA_ERROR_INVALID_HANDLE;
    else if (!(e = gpu_capture_allows_work(to))) {
        gpu_exec_enqueue(to, &op->op, GPU_ENGINE_COMPUTE, gpu_clock_kernel_ns(flops, bytes));
        if (s->after)
            gpu_event_capture(s->after, to);
    }
    gpu_unlock();
    if (e)
        free(op);
    return e;
}

static CUresult launch_plain(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared, bool cooperative, CUstream stream, void **params, void **extra,
                             bool per_thread)
{
    shape s = { { gx, gy, gz }, { bx, by, bz }, shared, cooperative, NULL };
    return launch(f, &s, stream, params, extra, per_thread);
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra, bool per_thread)
{
    if (!c || c->numAttrs > MAX_ATTRS || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    shape s = { { c->gridDimX, c->gridDimY, c->gridDimZ },
                { c->blockDimX, c->blockDimY, c->blockDimZ },
                c->sharedMemBytes,
                false,
                NULL };
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttributeValue *v = &c->attrs[i].value;
        switch (c->attrs[i].id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            s.cooperative = v->cooperative != 0;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            /* the device has no clusters (CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH is 0) but of one block */
            if (v->clusterDim.x > 1 || v->clusterDim.y > 1 || v->clusterDim.z > 1)
                return CUDA_ERROR_NOT_SUPPORTED;
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            s.after = v->programmaticEvent.event;
            break;
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            s.after = v->launchCompletionEvent.event;
            break;
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return CUDA_ERROR_NOT_SUPPORTED;
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* may overlap, need not */
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            break;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return launch(f, &s, c->hStream, params, extra, per_thread);
}

GPU_API_BOTH(cuLaunchKernel, _ptsz,
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
              CUstream s, void **params, void **extra),
             launch_plain(f, gx, gy, gz, bx, by, bz, shared, false, s, params, extra, per_thread))
GPU_API_BOTH(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig *c, CUfunction f, void **params, void **extra),
             launch_ex(c, f, params, extra, per_thread))
GPU_API_BOTH(cuLaunchCooperativeKernel, _ptsz,
             (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
              CUstream s, void **params),
             launch_plain(f, gx, gy, gz, bx, by, bz, shared, true, s, params, NULL, per_thread))

/* ---- occupancy: a kernel uses 32 registers, one in C no static shared memory -------------------------------------------- */

static CUfunction known(CUfunction h)
{
    gpu_lock();
    CUfunction f = gpu_module_function(h);
    gpu_unlock();
    return f;
}

static CUresult max_blocks(int *out, CUfunction h, int block, size_t shared)
{
    CUfunction f = known(h);
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || block <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    int fit = block > MAX_THREADS ? 0 : THREADS_PER_SM / block;
    if (fit > BLOCKS_PER_SM)
        fit = BLOCKS_PER_SM;
    shared += f->code ? f->code->meta.static_shared_bytes : 0;
    if (shared) {
        size_t by_shared = (164u << 10) / (shared + 1024);
        if ((size_t)fit > by_shared)
            fit = (int)by_shared;
    }
    *out = fit;
    return CUDA_SUCCESS;
}

static CUresult best_block(int *grid, int *block, CUfunction h, int limit)
{
    CUfunction f = known(h);
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    int most = f->code && f->code->meta.max_threads < MAX_THREADS ? (int)f->code->meta.max_threads : MAX_THREADS;
    *block = limit > 0 && limit < most ? limit : most;
    *grid = SM_COUNT * (THREADS_PER_SM / *block < BLOCKS_PER_SM ? THREADS_PER_SM / *block : BLOCKS_PER_SM);
    return CUDA_SUCCESS;
}

static CUresult free_shared(size_t *out, CUfunction h, int blocks, int block)
{
    CUfunction f = known(h);
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || blocks <= 0 || block <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t each = (164u << 10) / (unsigned)blocks;
    each = each > 1024 ? each - 1024 : 0;
    size_t fixed = f->code ? f->code->meta.static_shared_bytes : 0;
    each = each > fixed ? each - fixed : 0;
    *out = each < 163u << 10 ? each : 163u << 10;
    return CUDA_SUCCESS;
}

GPU_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *n, CUfunction f, int block, size_t shared), GPU_NEED_CTX,
        max_blocks(n, f, block, shared))
GPU_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *n, CUfunction f, int block, size_t shared, unsigned flags), GPU_NEED_CTX,
        flags > 1 ? CUDA_ERROR_INVALID_VALUE : max_blocks(n, f, block, shared))
GPU_API(cuOccupancyMaxPotentialBlockSize,
        (int *grid, int *block, CUfunction f, CUoccupancyB2DSize shared_of, size_t shared, int limit), GPU_NEED_CTX,
        ((void)shared_of, (void)shared, best_block(grid, block, f, limit)))
GPU_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
        (int *grid, int *block, CUfunction f, CUoccupancyB2DSize shared_of, size_t shared, int limit, unsigned flags),
        GPU_NEED_CTX,
        ((void)shared_of, (void)shared, flags > 1 ? CUDA_ERROR_INVALID_VALUE : best_block(grid, block, f, limit)))
GPU_API(cuOccupancyAvailableDynamicSMemPerBlock, (size_t *bytes, CUfunction f, int blocks, int block), GPU_NEED_CTX,
        free_shared(bytes, f, blocks, block))
