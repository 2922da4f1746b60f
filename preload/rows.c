/* rows.c: see rows.h. */
#include "preload/rows.h"

#include <stddef.h>

const struct door_row door_rows[HOOK_COUNT] = {
#define H(sym, base, since, mode, body, params, args)                                                                  \
    [HOOK_##sym] = {#sym, base, since, MODE_##mode, DOOR_CUDA, (void **)&door_real.sym},
    HOOKS_CUDA(H)
#undef H
#define N(sym, params, args) {#sym, NULL, 0, MODE_PLAIN, DOOR_NVML, (void **)&door_real.sym},
    HOOKS_NVML(N)
#undef N
#define N(sym, ...) {#sym, NULL, 0, MODE_PLAIN, DOOR_NCCL, (void **)&door_real.sym},
    HOOKS_NCCL(N)
#undef N
};

/* ---- answers before the real library is found, and for calls that it lacks ---------------------------------------------------------- */

static int no_driver(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}
int rows_not_in_driver(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}
static int not_in_nvml(void)
{
    return 13; /* NVML_ERROR_FUNCTION_NOT_FOUND */
}
static int not_in_nccl(void)
{
    return 2; /* ncclSystemError */
}

struct door_real door_real = {
#define H(sym, ...) .sym = (__typeof__(&sym))(void *)no_driver,
    HOOKS_CUDA(H)
#undef H
#define H(sym, ...) .sym = (__typeof__(&sym))(void *)not_in_nvml,
    HOOKS_NVML(H)
#undef H
#define H(sym, ...) .sym = (__typeof__(&sym))(void *)not_in_nccl,
    HOOKS_NCCL(H)
#undef H
};
