/* hook_stream.c: streams that begin and end, and operations on single words in stream order. Such a word is shared with the host,
 * another stream or another device while the operation waits: its allocation is never evicted. Also waits that end outside this
 * process's streams: for events of other processes, semaphores of other interfaces.
 */
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"
#include "tracer/grow.h"
#include "tracer/loader.h"

#include <stdlib.h>

static int on_stream_create(__typeof__(&cuStreamCreate) real, CUstream *s, unsigned flags)
{
    int r = real(s, flags);
    if (!r)
        eng_note_stream(flags);
    return r;
}

static int on_stream_create_priority(__typeof__(&cuStreamCreateWithPriority) real, CUstream *s, unsigned flags, int priority)
{
    int r = real(s, flags, priority);
    if (!r)
        eng_note_stream(flags);
    return r;
}

static int on_stream_destroy(__typeof__(&cuStreamDestroy_v2) real, CUstream s)
{
    eng_stream_destroyed(s);
    return real(s);
}

ISSUE4(word32, cuStreamWriteValue32, CUstream, CUdeviceptr, cuuint32_t, unsigned)
ISSUE4(word64, cuStreamWriteValue64, CUstream, CUdeviceptr, cuuint64_t, unsigned)
ISSUE4(batch_mem_op, cuStreamBatchMemOp, CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned)

static int word_op(const char *name, CUstream s, CUdeviceptr p, size_t bytes, unsigned mode, int (*issue)(void *), void *call)
{
    struct eng_touch touch = {p, bytes, mode};
    DOOR_TRY(eng_pin(p, bytes, name));
    return eng_other(name, s, &touch, 1, issue, call);
}

static int on_write32(__typeof__(&cuStreamWriteValue32) real, CUstream nul, CUstream s, CUdeviceptr p, cuuint32_t v,
                      unsigned flags)
{
    struct call_word32 call = {real, s, p, v, flags};
    return word_op("cuStreamWriteValue32", door_stream(s, nul), p, 4, ENG_WRITE, issue_word32, &call);
}

static int on_wait32(__typeof__(&cuStreamWaitValue32) real, CUstream nul, CUstream s, CUdeviceptr p, cuuint32_t v,
                     unsigned flags)
{
    struct call_word32 call = {real, s, p, v, flags};
    return word_op("cuStreamWaitValue32", door_stream(s, nul), p, 4, ENG_READ | ENG_WAITS, issue_word32, &call);
}

static int on_write64(__typeof__(&cuStreamWriteValue64) real, CUstream nul, CUstream s, CUdeviceptr p, cuuint64_t v,
                      unsigned flags)
{
    struct call_word64 call = {real, s, p, v, flags};
    DOOR_TRY(eng_note_host_data(p, &v, sizeof v));
    return word_op("cuStreamWriteValue64", door_stream(s, nul), p, 8, ENG_WRITE, issue_word64, &call);
}

static int on_wait64(__typeof__(&cuStreamWaitValue64) real, CUstream nul, CUstream s, CUdeviceptr p, cuuint64_t v,
                     unsigned flags)
{
    struct call_word64 call = {real, s, p, v, flags};
    return word_op("cuStreamWaitValue64", door_stream(s, nul), p, 8, ENG_READ | ENG_WAITS, issue_word64, &call);
}

/* The effect of one operation of a batch. */
struct mem_op {
    CUdeviceptr address; /* 0: no address, as for barriers and flushes, or one that the driver will refuse */
    bool waits;          /* the stream may stand still at the operation */
    bool known;          /* the headers have the operation; any other may do anything, anywhere */
};

static struct mem_op mem_op(const CUstreamBatchMemOpParams *op)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return (struct mem_op){op->waitValue.address, true, true};
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return (struct mem_op){op->writeValue.address, false, true};
    case CU_STREAM_MEM_OP_BARRIER: case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return (struct mem_op){0, false, true};
    default:
        return (struct mem_op){0, true, false};
    }
}

/* Every address is pinned, hence resident; the touches tell the engine the first few. Behind a batch that waits for a value the stream may stand still, and nothing can be
 * compared; a batch of writes alone is over as any other op is. */
static int on_batch_mem_op(__typeof__(&cuStreamBatchMemOp) real, CUstream nul, CUstream s, unsigned n,
                           CUstreamBatchMemOpParams *ops, unsigned flags)
{
    struct call_batch_mem_op call = {real, s, n, ops, flags};
    struct eng_touch touch[17] = {{0}}; /* touch[0]: whether the batch waits */
    unsigned used = 1;
    for (unsigned i = 0; ops && i < n; i++) {
        const struct mem_op op = mem_op(&ops[i]);
        if (op.waits)
            touch[0] = door_may_wait;
        if (!op.known)
            DOOR_TRY(eng_pin_everything());
        if (!op.address)
            continue;
        DOOR_TRY(eng_pin(op.address, 8, "cuStreamBatchMemOp"));
        if (ops[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
            DOOR_TRY(eng_note_host_data(op.address, &ops[i].writeValue.value64, sizeof ops[i].writeValue.value64));
        if (used < sizeof touch / sizeof touch[0])
            touch[used++] = (struct eng_touch){op.address, 8, ENG_READ | ENG_WRITE};
    }
    return eng_other("cuStreamBatchMemOp", door_stream(s, nul), touch, used, issue_batch_mem_op, &call);
}

/* ---- events and semaphores ------------------------------------------------------------------------------------------------------ */

/* Events that another process may let pass: opened from one, or shown to one. The list is short. A destroyed event may stay in it, and a new event with the same handle is
 * then taken for one of these, which costs an event in front of each wait. */
static struct {
    pthread_mutex_t lock;
    CUevent *at;
    uint32_t n, room;
    atomic_bool any, all; /* any: there are such events; all: memory for the list ran out, and every event counts as one */
} outside = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_outside_locked(CUevent e)
{
    for (uint32_t i = 0; i < outside.n; i++)
        if (outside.at[i] == e)
            return true;
    return false;
}

static void note_outside(CUevent e)
{
    loader_lock(&outside.lock);
    if (!is_outside_locked(e)) {
        if (grow_room(&outside.at, outside.n, &outside.room, 16))
            outside.at[outside.n++] = e;
        else
            atomic_store(&outside.all, true);
        atomic_store(&outside.any, true);
    }
    loader_unlock(&outside.lock);
}

static bool is_outside(CUevent e)
{
    if (!atomic_load_explicit(&outside.any, memory_order_relaxed))
        return false; /* nearly always */
    loader_lock(&outside.lock);
    const bool is = atomic_load(&outside.all) || is_outside_locked(e);
    loader_unlock(&outside.lock);
    return is;
}

static int on_event_shown(__typeof__(&cuIpcGetEventHandle) real, CUipcEventHandle *h, CUevent e)
{
    int r = real(h, e);
    if (!r)
        note_outside(e);
    return r;
}

static int on_event_opened(__typeof__(&cuIpcOpenEventHandle) real, CUevent *e, CUipcEventHandle h)
{
    int r = real(e, h);
    if (!r)
        note_outside(*e);
    return r;
}

ISSUE3(wait_event, cuStreamWaitEvent, CUstream, CUevent, unsigned)

/* The engine needs to know of a wait only where another process lets the stream go on (work in front of the wait must not be taken to stand still with it), and where the wait
 * brings the stream into a capture. */
static int on_wait_event(__typeof__(&cuStreamWaitEvent) real, CUstream nul, CUstream s, CUevent e, unsigned flags)
{
    if (is_outside(e)) {
        struct call_wait_event call = {real, s, e, flags};
        struct eng_touch waits = door_may_wait;
        return eng_other("cuStreamWaitEvent", door_stream(s, nul), &waits, 1, issue_wait_event, &call);
    }
    bool joins = false;
    if (eng_capture_under_way())
        DOOR_TRY(eng_capture_joins(door_stream(s, nul), e, &joins));
    int r = real(s, e, flags);
    if (joins)
        eng_capture_joined(door_stream(s, nul));
    return r;
}

ISSUE4(semaphores, cuWaitExternalSemaphoresAsync, const CUexternalSemaphore *, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *, unsigned, CUstream)

static int on_wait_semaphores(__typeof__(&cuWaitExternalSemaphoresAsync) real, CUstream nul, const CUexternalSemaphore *x,
                              const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *how, unsigned n, CUstream s)
{
    struct call_semaphores call = {real, x, how, n, s};
    struct eng_touch waits = door_may_wait;
    return eng_other("cuWaitExternalSemaphoresAsync", door_stream(s, nul), &waits, 1, issue_semaphores, &call);
}

HOOKS_STREAM(DOOR_EXPORT)
