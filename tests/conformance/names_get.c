/* names_get.c: cuGetProcAddress of the names-only driver. It answers with functions that no symbol names, as a driver may:
 * the doors must then tell the variant by the documented rule (newest version not above the one asked, the stream flavour
 * of the flags). Only walk.c runs it.
 */
#include "preload/cuda_abi.h"
#include "preload/hooks.def"

#include <string.h>

enum { PLAIN, LEGACY, THREAD };

/* One function a row, of different code so that no linker folds two into one. */
#define H(sym, ...)                                                                                                    \
    static const char *thunk_##sym(void)                                                                               \
    {                                                                                                                  \
        return #sym;                                                                                                   \
    }
HOOKS_CUDA(H)
#undef H

static const struct row {
    const char *base;
    int since, mode;
    void *thunk;
} rows[] = {
#define H(sym, base, since, mode, body, params, args) {base, since, mode, (void *)thunk_##sym},
    HOOKS_CUDA(H)
#undef H
};

CUresult cuGetProcAddress(const char *name, void **fn, int version, cuuint64_t flags)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        if (strcmp(r->base, name) != 0 || r->since > version)
            continue;
        if (r->mode != PLAIN && (r->mode == THREAD) != (flags == 2))
            continue;
        if (!best || r->since > best->since)
            best = r;
    }
    *fn = best ? best->thunk : NULL;
    return best ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CUresult r = cuGetProcAddress(name, fn, version, flags);
    *status = r ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    return r;
}
