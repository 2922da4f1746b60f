/* hook_stream.c: streams that begin and end, and operations on single words in stream order. Such a word is shared with the host,
 * another stream or another device while the operation waits: its allocation is never evicted.
 */
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

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

/* Waits and writes alike keep their address at the same place. */
static CUdeviceptr address_of(const CUstreamBatchMemOpParams *op)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32: case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return op->waitValue.address;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return op->writeValue.address;
    default: /* barriers and flushes have none */
        return 0;
    }
}

/* Every address is pinned, hence resident; the touches tell the engine the first few writes. */
static int on_batch_mem_op(__typeof__(&cuStreamBatchMemOp) real, CUstream nul, CUstream s, unsigned n,
                           CUstreamBatchMemOpParams *ops, unsigned flags)
{
    struct call_batch_mem_op call = {real, s, n, ops, flags};
    struct eng_touch touch[16];
    unsigned used = 0;
    for (unsigned i = 0; ops && i < n; i++) {
        CUdeviceptr p = address_of(&ops[i]);
        if (!p)
            continue;
        DOOR_TRY(eng_pin(p, 8, "cuStreamBatchMemOp"));
        if (ops[i].operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
            DOOR_TRY(eng_note_host_data(p, &ops[i].writeValue.value64, sizeof ops[i].writeValue.value64));
        if (used < sizeof touch / sizeof touch[0])
            touch[used++] = (struct eng_touch){p, 8, ENG_READ | ENG_WRITE | ENG_WAITS};
    }
    return eng_other("cuStreamBatchMemOp", door_stream(s, nul), touch, used, issue_batch_mem_op, &call);
}

HOOKS_STREAM(DOOR_EXPORT)
