/*
 * cuGetProcAddress: which variant of a call a program built for some CUDA version means.
 *
 * Names are asked for without version suffix; the newest variant not newer than the version asked for is the
 * answer. With CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM calls that take the default stream are answered
 * with their _ptsz or _ptds variant; calls that have none, with the plain one.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/abi_graph.h"
#include "tests/simgpu/gpu.h"

typedef struct {
    const char *name;
    void *symbol, *per_thread;
    int version, per_thread_version;
} row;

static const row rows[] = {
#define PROC(name, symbol, version) { #name, (void *)symbol, NULL, version, 0 },
#define PROC_BOTH(name, symbol, version, suffix, per_thread_version) \
    { #name, (void *)symbol, (void *)symbol##suffix, version, per_thread_version },
#include "tests/simgpu/gpu_proc.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* The first row of a name, or the place where it would be: the table is sorted by name. */
static size_t first_of(const char *name)
{
    size_t from = 0, to = ROWS;
    while (from < to) {
        size_t mid = (from + to) / 2;
        if (strcmp(rows[mid].name, name) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* newer/newer.c, where it is a part of the library: a driver that is newer than remat. */
void *simgpu_newer_call(const char *name, int version) __attribute__((weak, visibility("hidden")));

static CUresult find(const char *name, void **out, int version, cuuint64_t flags,
                     CUdriverProcAddressQueryResult *status)
{
    if (!name || !out || flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    bool seen = false;
    void *found = NULL;
    for (size_t i = first_of(name); i < ROWS && !strcmp(rows[i].name, name); i++) {
        seen = true;
        if (rows[i].version > version)
            continue;
        found = per_thread && rows[i].per_thread && rows[i].per_thread_version <= version ? rows[i].per_thread
                                                                                          : rows[i].symbol;
    }
    if (simgpu_newer_call && simgpu_newer_call(name, version))
        found = simgpu_newer_call(name, version);
    *out = found;
    if (status)
        *status = found  ? CU_GET_PROC_ADDRESS_SUCCESS
                  : seen ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                         : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

GPU_API(cuGetProcAddress, (const char *name, void **out, int version, cuuint64_t flags), GPU_NEED_NOTHING,
        find(name, out, version, flags, NULL))
GPU_API(cuGetProcAddress_v2,
        (const char *name, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status),
        GPU_NEED_NOTHING, find(name, out, version, flags, status))

/* Private tables of NVIDIA's runtime: the simulated driver has none. */
static CUresult no_table(const void **out, const CUuuid *id)
{
    if (!out || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
GPU_API(cuGetExportTable, (const void **table, const CUuuid *id), GPU_NEED_NOTHING, no_table(table, id))
