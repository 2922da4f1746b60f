/*
 * Stream memory operations: write a word, or wait until a word in memory satisfies a condition. A wait ends too
 * when its context fails or the process exits.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/simgpu/gpu_graph.h"

typedef struct {
    gpu_op op;
    CUstream stream;
    uintptr_t at;
    uint64_t value;
    unsigned flags;
    bool wide;
} word_op;

static void run_write(gpu_op *op)
{
    word_op *w = (word_op *)op;
    if (w->wide)
        __atomic_store_n((uint64_t *)w->at, w->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)w->at, (uint32_t)w->value, __ATOMIC_RELEASE);
}

static bool met(const void *op)
{
    const word_op *w = op;
    uint64_t have = w->wide ? __atomic_load_n((const uint64_t *)w->at, __ATOMIC_ACQUIRE)
                            : __atomic_load_n((const uint32_t *)w->at, __ATOMIC_ACQUIRE);
    uint64_t want = w->wide ? w->value : (uint32_t)w->value;
    switch (w->flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic, as the driver defines it */
        return w->wide ? (int64_t)(have - want) >= 0 : (int32_t)(uint32_t)(have - want) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return have == want;
    case CU_STREAM_WAIT_VALUE_AND: return (have & want) != 0;
    default: return w->wide ? ~(have | want) != 0 : (uint32_t)~(have | want) != 0;
    }
}

enum { NAP_FIRST_NS = 20000, NAP_MOST_NS = 1000000 };

void gpu_memop_until(CUstream s, bool (*met)(const void *), const void *what)
{
    struct timespec nap = { 0, NAP_FIRST_NS }; /* a longer one each time: of seventy streams that stand still none keeps a processor busy */
    while (!met(what)) {
        gpu_lock();
        gpu_adversary_set_aside(s);
        if (gpu_cfg.adversary && gpu_adversary_is_demanded(s))
            gpu_adversary_demand_all();
        bool give_up = s->ctx->sticky || gpu_exiting;
        gpu_unlock();
        if (give_up)
            return;
        nanosleep(&nap, NULL);
        nap.tv_nsec = nap.tv_nsec < NAP_MOST_NS ? 2 * nap.tv_nsec : NAP_MOST_NS;
    }
}

static void run_wait(gpu_op *op)
{
    gpu_memop_until(((word_op *)op)->stream, met, op);
}

static CUresult word(CUstream h, bool per_thread, bool wait, bool wide, CUdeviceptr at, uint64_t value, unsigned flags)
{
    unsigned allowed = wait ? 3u | (unsigned)CU_STREAM_WAIT_VALUE_FLUSH : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    if (!at || at % (wide ? 8 : 4) || flags & ~allowed)
        return CUDA_ERROR_INVALID_VALUE;
    if (wait && flags & (unsigned)CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED; /* the device cannot flush remote writes, and says so */
    word_op *op = gpu_exec_op(sizeof *op);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_lock();
    CUstream s = gpu_stream_resolve(h, per_thread);
    gpu_range *r = gpu_range_find(at);
    CUresult e = !s ? CUDA_ERROR_INVALID_HANDLE : !r ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (!e)
        e = gpu_capture_allows_work(s);
    if (!e) {
        *op = (word_op){ { .exec = wait ? run_wait : run_write, .touches_memory = true, .node_type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP }, s, at, value, flags, wide };
        gpu_exec_enqueue(s, &op->op, GPU_ENGINE_NONE, 0);
    }
    gpu_unlock();
    if (e)
        free(op);
    return e;
}

static CUresult batch(CUstream h, bool per_thread, unsigned n, const CUstreamBatchMemOpParams *ops, unsigned flags)
{
    if (!n || n > 256 || !ops || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        const CUstreamBatchMemOpParams *o = &ops[i];
        CUresult e;
        switch (o->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            e = word(h, per_thread, true, false, o->waitValue.address, o->waitValue.value, o->waitValue.flags);
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            e = word(h, per_thread, true, true, o->waitValue.address, o->waitValue.value64, o->waitValue.flags);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            e = word(h, per_thread, false, false, o->writeValue.address, o->writeValue.value, o->writeValue.flags);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            e = word(h, per_thread, false, true, o->writeValue.address, o->writeValue.value64, o->writeValue.flags);
            break;
        case CU_STREAM_MEM_OP_BARRIER: e = CUDA_SUCCESS; break; /* operations of a stream are ordered anyway */
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: e = CUDA_ERROR_NOT_SUPPORTED; break;
        default: e = CUDA_ERROR_INVALID_VALUE; break;
        }
        if (e)
            return e;
    }
    return CUDA_SUCCESS;
}

#define WORDS(version)                                                                                               \
    GPU_API_BOTH(cuStreamWaitValue32##version, _ptsz, (CUstream s, CUdeviceptr p, cuuint32_t value, unsigned flags), \
                 word(s, per_thread, true, false, p, value, flags))                                                  \
    GPU_API_BOTH(cuStreamWaitValue64##version, _ptsz, (CUstream s, CUdeviceptr p, cuuint64_t value, unsigned flags), \
                 word(s, per_thread, true, true, p, value, flags))                                                   \
    GPU_API_BOTH(cuStreamWriteValue32##version, _ptsz,                                                               \
                 (CUstream s, CUdeviceptr p, cuuint32_t value, unsigned flags),                                      \
                 word(s, per_thread, false, false, p, value, flags))                                                 \
    GPU_API_BOTH(cuStreamWriteValue64##version, _ptsz,                                                               \
                 (CUstream s, CUdeviceptr p, cuuint64_t value, unsigned flags),                                      \
                 word(s, per_thread, false, true, p, value, flags))                                                  \
    GPU_API_BOTH(cuStreamBatchMemOp##version, _ptsz,                                                                 \
                 (CUstream s, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags),                            \
                 batch(s, per_thread, n, ops, flags))
WORDS()
WORDS(_v2)
