/* proc_address.c: see proc_address.h. */
#include "preload/proc_address.h"

#include "preload/doors.h"
#include "tracer/loader.h"

#include <stdbool.h>
#include <string.h>

enum { FLAG_PER_THREAD = 2 }; /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

static bool mode_fits(const struct door_row *row, cuuint64_t flags)
{
    return row->mode == MODE_PLAIN || (row->mode == MODE_THREAD) == ((flags & FLAG_PER_THREAD) != 0);
}

/* The row whose real function is `fn`, the driver's answer: the addresses of the exported variants of `name` are compared with it. Where two variants share code, the flags
 * choose between them. NULL: none. */
static const struct door_row *row_by_address(const char *name, const void *fn, cuuint64_t flags)
{
    const struct door_row *hit = NULL;
    for (int i = 0; i < HOOK_COUNT; i++) {
        const struct door_row *row = &door_rows[i];
        if (!row->base || *row->real != fn || strcmp(row->base, name) != 0)
            continue;
        if (mode_fits(row, flags))
            return row;
        hit = row;
    }
    return hit;
}

/* The newest variant that `version` and `flags` allow: the driver's documented rule. */
static const struct door_row *row_by_rule(const char *name, int version, cuuint64_t flags)
{
    const struct door_row *best = NULL;
    for (int i = 0; i < HOOK_COUNT; i++) {
        const struct door_row *row = &door_rows[i];
        if (!row->base || row->since > version || !mode_fits(row, flags) || strcmp(row->base, name) != 0)
            continue;
        if (!best || row->since > best->since)
            best = row;
    }
    return best;
}

const char *proc_address_symbol(const void *fn)
{
    Dl_info info;
    return loader_address(fn, &info) && info.dli_saddr == fn ? info.dli_sname : NULL;
}

bool proc_address_is_newer(const char *name, const void *fn, int version, cuuint64_t flags)
{
    void *known = NULL;
    if (version <= DOORS_CUDA_VERSION)
        return false;
    CUdriverProcAddressQueryResult status;
    if ((void *)door_real.cuGetProcAddress_v2 != (void *)rows_not_in_driver)
        return door_real.cuGetProcAddress_v2(name, &known, DOORS_CUDA_VERSION, flags, &status) != CUDA_SUCCESS || known != fn;
    return door_real.cuGetProcAddress(name, &known, DOORS_CUDA_VERSION, flags) != CUDA_SUCCESS || known != fn;
}

enum hook_id proc_address_row(const char *name, const void *fn, int version, cuuint64_t flags)
{
    const struct door_row *row = row_by_address(name, fn, flags);
    if (!row && !proc_address_symbol(fn) && !proc_address_is_newer(name, fn, version, flags))
        row = row_by_rule(name, version, flags);
    return row ? (enum hook_id)(row - door_rows) : HOOK_COUNT;
}
