/* hook_context.c: the driver comes to life; its contexts become current, and end. These doors work whether or not the engine is active, and however
 * deep the thread is inside: a collective makes contexts current too. */
#include "policy/active.h"
#include "policy/current.h"
#include "policy/engine.h"
#include "preload/door.h"

DOOR_PUBLIC CUresult cuInit(unsigned flags)
{
    door_enter_any(HOOK_cuInit);
    CUresult r = door_real.cuInit(flags);
    if (r == CUDA_SUCCESS && door_depth == DOOR_OPEN && (atomic_load(&door_watch) & WATCH_UNSTARTED))
        life_start();
    return r;
}
DOOR_ALIAS(cuInit)

/* ---- contexts: memory dies with a device's last context ------------------------------------------------------------------ */

static bool primary_is_active(CUdevice d)
{
    __typeof__(&cuDevicePrimaryCtxGetState) state =
        (__typeof__(state))provider_driver_symbol("cuDevicePrimaryCtxGetState");
    unsigned flags;
    int active = 1;
    return !state || state(d, &flags, &active) != CUDA_SUCCESS || active;
}

/* The handle of an active primary context, retained and released at once; NULL: not active, or the engine need not know. */
static CUcontext primary_of(CUdevice d)
{
    __typeof__(&cuDevicePrimaryCtxRetain) retain = (__typeof__(retain))provider_driver_symbol("cuDevicePrimaryCtxRetain");
    CUcontext c = NULL;
    if (door_depth != DOOR_OPEN || !eng_active() || !retain || !primary_is_active(d) || retain(&c, d) != CUDA_SUCCESS)
        return NULL;
    door_real.cuDevicePrimaryCtxRelease_v2(d);
    return c;
}

/* ending_begins() and ending_is_over() stand around each call that may end a context, gone() included. False: the engine is not told, since it is inactive or this thread is
 * inside remat, the driver or NCCL. */
static bool ending_begins(void)
{
    const bool told = door_depth == DOOR_OPEN && eng_active();
    if (told)
        eng_ending_begins();
    return told;
}

static void ending_is_over(bool told)
{
    if (told)
        eng_ending_is_over();
}

static void gone(CUcontext c, bool was_primary)
{
    current_era_ends();
    if (!c || door_depth != DOOR_OPEN || !eng_active())
        return;
    door_depth = DOOR_SHUT;
    eng_context_gone(c, was_primary);
    door_depth = DOOR_OPEN;
}

/* A release ends the context only when it is the last one. */
static void released(CUcontext c, CUdevice d)
{
    current_era_ends();
    if (!primary_is_active(d))
        gone(c, true);
}

static void was_reset(CUcontext c, CUdevice d)
{
    (void)d;
    gone(c, true);
}

#define CONTEXT_CALL(sym, after)                                                                                       \
    DOOR_PUBLIC CUresult sym(CUdevice d)                                                                               \
    {                                                                                                                  \
        door_enter_any(HOOK_##sym);                                                                                         \
        CUcontext c = primary_of(d);                                                                                   \
        const bool told = ending_begins();                                                                             \
        CUresult r = door_real.sym(d);                                                                                 \
        if (r == CUDA_SUCCESS)                                                                                         \
            after(c, d);                                                                                               \
        ending_is_over(told);                                                                                          \
        return r;                                                                                                      \
    }                                                                                                                  \
    DOOR_ALIAS(sym)

CONTEXT_CALL(cuDevicePrimaryCtxRelease, released)
CONTEXT_CALL(cuDevicePrimaryCtxRelease_v2, released)
CONTEXT_CALL(cuDevicePrimaryCtxReset, was_reset)
CONTEXT_CALL(cuDevicePrimaryCtxReset_v2, was_reset)

static void ends(CUcontext c)
{
    if (!c || door_depth != DOOR_OPEN || !eng_active())
        return;
    door_depth = DOOR_SHUT;
    eng_context_ends(c);
    door_depth = DOOR_OPEN;
}

DOOR_PUBLIC CUresult cuCtxDestroy(CUcontext c)
{
    door_enter_any(HOOK_cuCtxDestroy);
    const bool told = ending_begins();
    ends(c);
    CUresult r = door_real.cuCtxDestroy(c);
    if (r == CUDA_SUCCESS)
        gone(c, false);
    ending_is_over(told);
    return r;
}
DOOR_ALIAS(cuCtxDestroy)

DOOR_PUBLIC CUresult cuCtxDestroy_v2(CUcontext c)
{
    door_enter_any(HOOK_cuCtxDestroy_v2);
    const bool told = ending_begins();
    ends(c);
    CUresult r = door_real.cuCtxDestroy_v2(c);
    if (r == CUDA_SUCCESS)
        gone(c, false); /* a context other than the one that a device was set up in takes nothing of remat's along */
    ending_is_over(told);
    return r;
}
DOOR_ALIAS(cuCtxDestroy_v2)

/* cuCtxDetach ends the context if it undoes the last attachment; the making of the context counts as one. */
DOOR_PUBLIC CUresult cuCtxAttach(CUcontext *c, unsigned flags)
{
    door_enter_any(HOOK_cuCtxAttach);
    CUresult r = door_real.cuCtxAttach(c, flags);
    if (r == CUDA_SUCCESS && door_depth == DOOR_OPEN)
        engine_context_attached(*c, 1);
    return r;
}
DOOR_ALIAS(cuCtxAttach)

DOOR_PUBLIC CUresult cuCtxDetach(CUcontext c)
{
    door_enter_any(HOOK_cuCtxDetach);
    const bool last = door_depth == DOOR_OPEN && engine_context_attached(c, 0) == 1, told = ending_begins();
    if (last)
        ends(c);
    CUresult r = door_real.cuCtxDetach(c);
    if (r == CUDA_SUCCESS && last)
        gone(c, false);
    else if (r == CUDA_SUCCESS && door_depth == DOOR_OPEN)
        engine_context_attached(c, -1);
    ending_is_over(told);
    current_era_ends();
    return r;
}
DOOR_ALIAS(cuCtxDetach)

/* A green context takes its streams along; memory allocated in it is the primary context's, which the green context has kept. */
DOOR_PUBLIC CUresult cuGreenCtxDestroy(CUgreenCtx g)
{
    door_enter_any(HOOK_cuGreenCtxDestroy);
    __typeof__(&cuCtxFromGreenCtx) as_context = (__typeof__(as_context))provider_driver_symbol("cuCtxFromGreenCtx");
    CUcontext c = NULL;
    CUdevice d = -1;
    if (door_depth == DOOR_OPEN && eng_active() && as_context && as_context(&c, g) == CUDA_SUCCESS)
        d = engine_context_device(c);
    const bool told = ending_begins();
    ends(c);
    CUcontext primary = d >= 0 ? primary_of(d) : NULL;
    CUresult r = door_real.cuGreenCtxDestroy(g);
    current_era_ends();
    if (r == CUDA_SUCCESS && c) {
        gone(c, false);
        if (primary)
            released(primary, d);
    }
    ending_is_over(told);
    return r;
}
DOOR_ALIAS(cuGreenCtxDestroy)

static CUresult made(CUresult r, const CUcontext *c, CUdevice d)
{
    current_is(r == CUDA_SUCCESS ? *c : NULL);
    if (r == CUDA_SUCCESS && door_depth == DOOR_OPEN)
        eng_note_context(*c, d);
    return r;
}

DOOR_PUBLIC CUresult cuCtxCreate(CUcontext *c, unsigned flags, CUdevice d)
{
    door_enter_any(HOOK_cuCtxCreate);
    return made(door_real.cuCtxCreate(c, flags, d), c, d);
}
DOOR_ALIAS(cuCtxCreate)

DOOR_PUBLIC CUresult cuCtxCreate_v2(CUcontext *c, unsigned flags, CUdevice d)
{
    door_enter_any(HOOK_cuCtxCreate_v2);
    return made(door_real.cuCtxCreate_v2(c, flags, d), c, d);
}
DOOR_ALIAS(cuCtxCreate_v2)

DOOR_PUBLIC CUresult cuCtxCreate_v3(CUcontext *c, CUexecAffinityParam *list, int n, unsigned flags, CUdevice d)
{
    door_enter_any(HOOK_cuCtxCreate_v3);
    return made(door_real.cuCtxCreate_v3(c, list, n, flags, d), c, d);
}
DOOR_ALIAS(cuCtxCreate_v3)

DOOR_PUBLIC CUresult cuCtxCreate_v4(CUcontext *c, CUctxCreateParams *params, unsigned flags, CUdevice d)
{
    door_enter_any(HOOK_cuCtxCreate_v4);
    return made(door_real.cuCtxCreate_v4(c, params, flags, d), c, d);
}
DOOR_ALIAS(cuCtxCreate_v4)

/* ---- the current context ---------------------------------------------------------------------------------------------- */

#define CURRENT_CALL(sym, params, args, now)                                                                           \
    DOOR_PUBLIC CUresult sym params                                                                                    \
    {                                                                                                                  \
        door_enter_any(HOOK_##sym);                                                                                    \
        CUresult r = door_real.sym args;                                                                               \
        current_is(r == CUDA_SUCCESS ? (now) : NULL);                                                                  \
        return r;                                                                                                      \
    }                                                                                                                  \
    DOOR_ALIAS(sym)

CURRENT_CALL(cuCtxSetCurrent, (CUcontext c), (c), c)
CURRENT_CALL(cuCtxPushCurrent, (CUcontext c), (c), c)
CURRENT_CALL(cuCtxPushCurrent_v2, (CUcontext c), (c), c)
CURRENT_CALL(cuCtxPopCurrent, (CUcontext *c), (c), NULL)
CURRENT_CALL(cuCtxPopCurrent_v2, (CUcontext *c), (c), NULL)
