/* rows.h: the rows of hooks.def as data: a number each, the real entry point, the other columns. The hooks themselves are in hooks.h.
 *
 * Threads: any; door_real is filled by provider.c, entry by entry, and read without a lock.
 */
#ifndef REMAT_PRELOAD_ROWS_H
#define REMAT_PRELOAD_ROWS_H

#include "preload/abi_extra.h"
#include "preload/hooks.def"

enum hook_id {
#define H(sym, ...) HOOK_##sym,
    HOOKS_CUDA(H) HOOKS_NVML(H) HOOKS_NCCL(H)
#undef H
        HOOK_COUNT
};

struct door_real {
#define H(sym, ...) __typeof__(&sym) sym;
    HOOKS_CUDA(H) HOOKS_NVML(H) HOOKS_NCCL(H)
#undef H
};
/* Entries whose library is not loaded, or lacks the call, point to a function that answers an error. */
extern struct door_real door_real;
/* The entry of a call that this driver lacks: answers CUDA_ERROR_NOT_SUPPORTED. */
int rows_not_in_driver(void);

enum door_provider { DOOR_CUDA, DOOR_NVML, DOOR_NCCL, DOOR_PROVIDERS };
enum door_mode { MODE_PLAIN, MODE_LEGACY, MODE_THREAD };

struct door_row {
    const char *symbol, *base; /* base NULL: not a driver call */
    int since;
    enum door_mode mode;
    enum door_provider provider;
    void **real; /* into door_real */
};
extern const struct door_row door_rows[HOOK_COUNT];

#endif
