/* hook_context.c: the driver comes to life, hands out entry points, and its contexts end. These doors work whether or not
 * the engine is active.
 */
#include "preload/proc_address.h"

/* What every hook of this file opens with: counts, and finds the real entry points. */
static void enter_any(enum hook_id id)
{
    if (DOOR_UNLIKELY(atomic_load_explicit(&door_watch, memory_order_acquire)))
        door_slow(id);
}

DOOR_PUBLIC CUresult cuInit(unsigned flags)
{
    enter_any(HOOK_cuInit);
    CUresult r = door_real.cuInit(flags);
    if (r == CUDA_SUCCESS && door_depth == DOOR_OPEN && (atomic_load(&door_watch) & WATCH_UNSTARTED))
        door_start();
    return r;
}
DOOR_ALIAS(cuInit)

DOOR_PUBLIC CUresult cuGetProcAddress(const char *name, void **fn, int version, cuuint64_t flags)
{
    enter_any(HOOK_cuGetProcAddress);
    CUresult r = door_real.cuGetProcAddress(name, fn, version, flags);
    if (r == CUDA_SUCCESS && fn)
        *fn = proc_address_swap(name, *fn, version, flags);
    return r;
}
DOOR_ALIAS(cuGetProcAddress)

DOOR_PUBLIC CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult *status)
{
    enter_any(HOOK_cuGetProcAddress_v2);
    CUresult r = door_real.cuGetProcAddress_v2(name, fn, version, flags, status);
    if (r == CUDA_SUCCESS && fn)
        *fn = proc_address_swap(name, *fn, version, flags);
    return r;
}
DOOR_ALIAS(cuGetProcAddress_v2)

/* ---- contexts: memory dies with a device's last one ------------------------------------------------------------------ */

static bool primary_is_active(CUdevice d)
{
    __typeof__(&cuDevicePrimaryCtxGetState) state =
        (__typeof__(state))door_driver_symbol("cuDevicePrimaryCtxGetState");
    unsigned flags;
    int active = 1;
    return !state || state(d, &flags, &active) != CUDA_SUCCESS || active;
}

static void gone(CUdevice d)
{
    if (door_depth != DOOR_OPEN || !eng_active())
        return;
    door_depth = DOOR_SHUT;
    eng_context_gone(d);
    door_depth = DOOR_OPEN;
}

/* A release ends the context only when it was the last one. */
static CUresult released(CUresult r, CUdevice d)
{
    if (r == CUDA_SUCCESS && !primary_is_active(d))
        gone(d);
    return r;
}

static CUresult was_reset(CUresult r, CUdevice d)
{
    if (r == CUDA_SUCCESS)
        gone(d);
    return r;
}

#define CONTEXT_CALL(sym, after)                                                                                       \
    DOOR_PUBLIC CUresult sym(CUdevice d)                                                                               \
    {                                                                                                                  \
        enter_any(HOOK_##sym);                                                                                         \
        return after(door_real.sym(d), d);                                                                             \
    }                                                                                                                  \
    DOOR_ALIAS(sym)

CONTEXT_CALL(cuDevicePrimaryCtxRelease, released)
CONTEXT_CALL(cuDevicePrimaryCtxRelease_v2, released)
CONTEXT_CALL(cuDevicePrimaryCtxReset, was_reset)
CONTEXT_CALL(cuDevicePrimaryCtxReset_v2, was_reset)

/* The device of a context that need not be current. */
static bool device_of(CUcontext c, CUdevice *d)
{
    __typeof__(&cuCtxPushCurrent_v2) push = (__typeof__(push))door_driver_symbol("cuCtxPushCurrent_v2");
    __typeof__(&cuCtxPopCurrent_v2) pop = (__typeof__(pop))door_driver_symbol("cuCtxPopCurrent_v2");
    __typeof__(&cuCtxGetDevice) get = (__typeof__(get))door_driver_symbol("cuCtxGetDevice");
    CUcontext top;
    if (!push || !pop || !get || push(c) != CUDA_SUCCESS)
        return false;
    bool ok = get(d) == CUDA_SUCCESS;
    pop(&top);
    return ok;
}

DOOR_PUBLIC CUresult cuCtxDestroy_v2(CUcontext c)
{
    enter_any(HOOK_cuCtxDestroy_v2);
    CUdevice d = 0;
    bool known = door_depth == DOOR_OPEN && eng_active() && device_of(c, &d);
    CUresult r = door_real.cuCtxDestroy_v2(c);
    /* A context of the program's own beside a living primary one takes nothing of ours along. */
    if (r == CUDA_SUCCESS && known && !primary_is_active(d))
        gone(d);
    return r;
}
DOOR_ALIAS(cuCtxDestroy_v2)
