/* hook_launch.c: kernels and host functions. A launch enters remat here, and is decided in eng_launch().
 *
 * Hot path: door_enter() and a structure on the stack; no lock, allocation or system call of the doors' own.
 */
#include "policy/allocations.h"
#include "policy/engine.h"
#include "preload/door.h"

#include <stdlib.h>

static int on_launch(__typeof__(&cuLaunchKernel) real, CUstream nul, CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                     unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra)
{
    (void)real;
    struct eng_kernel k = {
        .func = f,
        .grid = {gx, gy, gz},
        .block = {bx, by, bz},
        .shared_bytes = shared,
        .stream = door_stream(s, nul),
        .params = params,
        .extra = extra,
    };
    return eng_launch(&k);
}

static int on_launch_ex(__typeof__(&cuLaunchKernelEx) real, CUstream nul, const CUlaunchConfig *c, CUfunction f,
                        void **params, void **extra)
{
    if (!c)
        return real(c, f, params, extra);
    struct eng_kernel k = {
        .func = f,
        .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
        .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
        .shared_bytes = c->sharedMemBytes,
        .stream = door_stream(c->hStream, nul),
        .params = params,
        .extra = extra,
        .attrs = c->attrs,
        .n_attrs = c->attrs ? c->numAttrs : 0,
    };
    for (unsigned i = 0; i < k.n_attrs; i++)
        if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c->attrs[i].value.cooperative)
            k.cooperative = true;
    return eng_launch(&k);
}

static int on_launch_cooperative(__typeof__(&cuLaunchCooperativeKernel) real, CUstream nul, CUfunction f, unsigned gx,
                                 unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                 CUstream s, void **params)
{
    (void)real;
    struct eng_kernel k = {
        .func = f,
        .grid = {gx, gy, gz},
        .block = {bx, by, bz},
        .shared_bytes = shared,
        .stream = door_stream(s, nul),
        .params = params,
        .cooperative = true,
    };
    return eng_launch(&k);
}

/* ---- launches whose parameters are out of sight, or that span devices ------------------------------------------------- */

static int on_launch_multi(__typeof__(&cuLaunchCooperativeKernelMultiDevice) real, CUDA_LAUNCH_PARAMS *list, unsigned n,
                           unsigned flags)
{
    DOOR_TRY(eng_pin_everything());
    return real(list, n, flags);
}

/* The parameters of cuLaunch and its kin were set one by one with cuParamSet*. */
static int on_launch_old(__typeof__(&cuLaunch) real, CUfunction f)
{
    DOOR_TRY(eng_pin_everything());
    return real(f);
}

static int on_launch_grid(__typeof__(&cuLaunchGrid) real, CUfunction f, int w, int h)
{
    DOOR_TRY(eng_pin_everything());
    return real(f, w, h);
}

static int on_launch_grid_async(__typeof__(&cuLaunchGridAsync) real, CUfunction f, int w, int h, CUstream s)
{
    DOOR_TRY(eng_pin_everything());
    return real(f, w, h, s);
}

/* `list` names buffers, in a layout of the driver's. */
static int on_decompress(__typeof__(&cuMemBatchDecompressAsync) real, CUstream nul, void *list, size_t n, unsigned flags,
                         size_t *fail, CUstream s)
{
    (void)nul;
    DOOR_TRY(eng_pin_everything());
    return real(list, n, flags, fail, s);
}

/* Copies between devices that may not even be this machine's. */
static int on_fabric_copies(__typeof__(&cuFabricCpyBatchAsync) real, CUstream nul, size_t n, void *list, unsigned long long flags,
                            CUstream s)
{
    (void)nul;
    DOOR_TRY(eng_pin_everything());
    return real(n, list, flags, s);
}

/* ---- host functions: opaque work in stream order ------------------------------------------------------------------------- */

/* A host function may make no driver call: the driver refuses one. The engine's part of a call comes first, and needs a mutex whose holder may be waiting for the function's
 * stream. So the doors are shut around a host function. A function that is captured into a graph runs more than once, and is queued as it is. */
struct host_call {
    CUhostFn fn;
    CUstreamCallback callback;
    void *data;
};

static void run_shut(void *p)
{
    const struct host_call c = *(struct host_call *)p;
    const int depth = door_depth;
    free(p);
    door_depth = DOOR_SHUT;
    c.fn(c.data);
    door_depth = depth;
}

static void callback_shut(CUstream s, CUresult status, void *p)
{
    const struct host_call c = *(struct host_call *)p;
    const int depth = door_depth;
    free(p);
    door_depth = DOOR_SHUT;
    c.callback(s, status, c.data);
    door_depth = depth;
}

/* NULL: the function is queued as it is. */
static struct host_call *shut_around(CUstream s, CUhostFn fn, CUstreamCallback callback, void *data)
{
    struct host_call *c = (fn || callback) && !eng_is_captured(s) ? malloc(sizeof *c) : NULL;
    if (c)
        *c = (struct host_call){fn, callback, data};
    return c;
}

struct queueing {
    int (*issue)(void *);
    void *call;
    bool queued;
};

static int queue(void *p)
{
    struct queueing *q = p;
    const int r = q->issue(q->call);
    q->queued |= !r;
    return r;
}

static int host_op(const char *name, CUstream s, struct host_call *c, int (*issue)(void *), void *call)
{
    struct queueing q = {issue, call, false};
    struct eng_touch waits = door_may_wait;
    const int r = eng_other(name, s, &waits, 1, queue, &q);
    if (!q.queued)
        free(c);
    return r;
}

ISSUE3(host_func, cuLaunchHostFunc, CUstream, CUhostFn, void *)
ISSUE4(callback, cuStreamAddCallback, CUstream, CUstreamCallback, void *, unsigned)

static int on_host_func(__typeof__(&cuLaunchHostFunc) real, CUstream nul, CUstream s, CUhostFn fn, void *data)
{
    struct host_call *c = shut_around(door_stream(s, nul), fn, NULL, data);
    struct call_host_func call = {real, s, c ? run_shut : fn, c ? c : data};
    return host_op("cuLaunchHostFunc", door_stream(s, nul), c, issue_host_func, &call);
}

ISSUE4(host_func_mode, cuLaunchHostFunc_v2, CUstream, CUhostFn, void *, unsigned)

static int on_host_func_mode(__typeof__(&cuLaunchHostFunc_v2) real, CUstream nul, CUstream s, CUhostFn fn, void *data, unsigned mode)
{
    struct host_call *c = shut_around(door_stream(s, nul), fn, NULL, data);
    struct call_host_func_mode call = {real, s, c ? run_shut : fn, c ? c : data, mode};
    return host_op("cuLaunchHostFunc", door_stream(s, nul), c, issue_host_func_mode, &call);
}

static int on_callback(__typeof__(&cuStreamAddCallback) real, CUstream nul, CUstream s, CUstreamCallback fn, void *data,
                       unsigned flags)
{
    struct host_call *c = shut_around(door_stream(s, nul), NULL, fn, data);
    struct call_callback call = {real, s, c ? callback_shut : fn, c ? c : data, flags};
    return host_op("cuStreamAddCallback", door_stream(s, nul), c, issue_callback, &call);
}

HOOKS_LAUNCH(DOOR_EXPORT)
