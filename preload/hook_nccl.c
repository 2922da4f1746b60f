/* hook_nccl.c: collectives. A collective's work list hides the buffers' addresses from the launch, and other processes read and
 * write the buffers: buffers handed to NCCL become unevictable, and the call is an op that is never run again.
 *
 * NCCL's own launches and copies are no ops of the program: they pass while this thread is inside NCCL. NCCL's
 * allocations count all the same (DOOR_QUIET). The op is recorded before the call: inside a group NCCL launches only at
 * the group's end, and the buffers are resident for good either way.
 */
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

static int nothing(void *ctx)
{
    (void)ctx;
    return CUDA_SUCCESS;
}

enum { NCCL_UNHANDLED_CUDA_ERROR = 1 }; /* ncclUnhandledCudaError */

/* Tells the engine; afterwards this thread is quiet. Returns the depth for door_leave(). `refused`: the engine's code when a buffer cannot be kept in memory: the collective
 * must not run. */
static int nccl_enter(enum hook_id id, const char *name, const void *send, const void *recv, const CUstream *s, int *refused)
{
    *refused = CUDA_SUCCESS;
    provider_resolve(DOOR_NCCL);
    int depth = door_enter(id, DOOR_OPEN);
    if (depth < 0)
        return door_depth;
    struct eng_touch touch[2];
    unsigned n = 0;
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)send, to = (CUdeviceptr)(uintptr_t)recv;
    *refused = from ? eng_pin(from, 0, name) : CUDA_SUCCESS;
    if (!*refused && to)
        *refused = eng_pin(to, 0, name);
    if (from) {
        touch[n++] = (struct eng_touch){from, 0, ENG_READ};
    }
    if (to) {
        touch[n++] = (struct eng_touch){to, 0, ENG_READ | ENG_WRITE};
    }
    if (s && !*refused)
        eng_other(name, door_stream(*s, CU_STREAM_LEGACY), touch, n, nothing, NULL);
    door_depth = DOOR_QUIET;
    return depth;
}

#define NCCL_ROW(sym, params, args, buffers)                                                                           \
    DOOR_PUBLIC int sym params                                                                                         \
    {                                                                                                                  \
        int refused, depth = NCCL_ENTER(HOOK_##sym, #sym, DOOR_UNWRAP buffers, &refused);                              \
        int r = refused ? NCCL_UNHANDLED_CUDA_ERROR : (int)door_real.sym args;                                         \
        door_leave(depth, SWEEP_ALL);                                                                                  \
        return r;                                                                                                      \
    }                                                                                                                  \
    DOOR_ALIAS(sym)
#define NCCL_ENTER(...) nccl_enter(__VA_ARGS__)
HOOKS_NCCL(NCCL_ROW)
