/* hooks.c: the table of hooks, and the driver's own call that hands entry points out: cuGetProcAddress, one of the three ways in. Both are here because
 * cuGetProcAddress is a row of the table.
 */
#include "preload/hooks.h"
#include "preload/net.h"
#include "preload/proc_address.h"

/* hook_SYM is the exported SYM under a name that no other library can preempt (DOOR_ALIAS). */
#define H(sym, ...) extern __typeof__(sym) hook_##sym __attribute__((visibility("hidden")));
HOOKS_CUDA(H) HOOKS_NVML(H) HOOKS_NCCL(H)
#undef H

void *const hooks[HOOK_COUNT] = {
#define H(sym, ...) [HOOK_##sym] = (void *)hook_##sym,
    HOOKS_CUDA(H) HOOKS_NVML(H) HOOKS_NCCL(H)
#undef H
};

/* The driver answers first; its pointer is then swapped for the hook of that very variant. The rest of the driver's answer (result, symbol status, a name it does not know,
 * the empty name that libcudart asks first) is left as it is. */
static void *swapped(const char *name, void *fn, int version, cuuint64_t flags)
{
    door_note_asked(ROUTE_PROC_ADDRESS);
    if (!fn || !name || !*name || door_disabled() || !provider_resolve(DOOR_CUDA))
        return fn;
    const enum hook_id id = proc_address_row(name, fn, version, flags);
    if (id == HOOK_COUNT)
        return net_proc_address(name, proc_address_symbol(fn), fn, version, proc_address_is_newer(name, fn, version, flags));
    door_note_given(id, ROUTE_PROC_ADDRESS);
    return hooks[id];
}

DOOR_PUBLIC CUresult cuGetProcAddress(const char *name, void **fn, int version, cuuint64_t flags)
{
    door_enter_any(HOOK_cuGetProcAddress);
    CUresult r = door_real.cuGetProcAddress(name, fn, version, flags);
    if (r == CUDA_SUCCESS && fn)
        *fn = swapped(name, *fn, version, flags);
    return r;
}
DOOR_ALIAS(cuGetProcAddress)

DOOR_PUBLIC CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult *status)
{
    door_enter_any(HOOK_cuGetProcAddress_v2);
    CUresult r = door_real.cuGetProcAddress_v2(name, fn, version, flags, status);
    if (r == CUDA_SUCCESS && fn)
        *fn = swapped(name, *fn, version, flags);
    return r;
}
DOOR_ALIAS(cuGetProcAddress_v2)
