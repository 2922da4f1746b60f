/* graph_memory.c: see graph_memory.h. */
#include "policy/graph_memory.h"

#include <stdint.h>
#include <stdlib.h>

/* A set, by open addressing: rows is a power of two, and at most half of it is taken. 0: an empty row. */
static struct {
    CUdeviceptr *at;
    size_t rows, taken;
} given;

static size_t row_of(const CUdeviceptr *at, size_t rows, CUdeviceptr ptr)
{
    size_t i = (size_t)(ptr * 0x9e3779b97f4a7c15u >> 32) & (rows - 1);
    while (at[i] && at[i] != ptr)
        i = (i + 1) & (rows - 1);
    return i;
}

static bool grow(void)
{
    const size_t rows = given.rows ? 2 * given.rows : 64;
    CUdeviceptr *at = calloc(rows, sizeof *at);
    for (size_t i = 0; at && i < given.rows; i++)
        if (given.at[i])
            at[row_of(at, rows, given.at[i])] = given.at[i];
    if (!at)
        return false;
    free(given.at);
    given.at = at;
    given.rows = rows;
    return true;
}

void graph_memory_add(CUdeviceptr ptr)
{
    if (!ptr || (2 * given.taken >= given.rows && !grow()))
        return;
    const size_t i = row_of(given.at, given.rows, ptr);
    given.taken += !given.at[i];
    given.at[i] = ptr;
}

bool graph_memory_is_none(CUdeviceptr ptr, int r)
{
    return given.rows && (r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) && given.at[row_of(given.at, given.rows, ptr)] == ptr;
}
