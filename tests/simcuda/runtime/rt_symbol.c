/*
 * Copies to and from a program's device variables, named by their host shadows.
 */
#include "tests/simcuda/runtime/rt_module.h"

int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind);
int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int kind, CUstream stream);

RT_EXPORT int cudaGetSymbolAddress(void **out, const void *symbol)
{
    CUdeviceptr at;
    int e = out ? rt_variable(symbol, &at, NULL) : RT_INVALID_VALUE;
    if (!e)
        *out = (void *)(uintptr_t)at;
    return rt_done(e);
}

RT_EXPORT int cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    CUdeviceptr at;
    return rt_done(bytes ? rt_variable(symbol, &at, bytes) : RT_INVALID_VALUE);
}

/* The part of a variable that a copy means. RT_INVALID_VALUE: it goes beyond the end. */
static int part(const void *symbol, size_t bytes, size_t offset, void **out)
{
    CUdeviceptr at;
    size_t room;
    int e = rt_variable(symbol, &at, &room);
    if (!e && (offset > room || bytes > room - offset))
        e = RT_INVALID_VALUE;
    if (!e)
        *out = (void *)(uintptr_t)(at + offset);
    return e;
}

static bool to_device(int kind)
{
    return kind == RT_HOST_TO_DEVICE || kind == RT_DEVICE_TO_DEVICE || kind == RT_COPY_DEFAULT;
}

static bool from_device(int kind)
{
    return kind == RT_DEVICE_TO_HOST || kind == RT_DEVICE_TO_DEVICE || kind == RT_COPY_DEFAULT;
}

RT_EXPORT int cudaMemcpyToSymbol(const void *symbol, const void *src, size_t bytes, size_t offset, int kind)
{
    void *at;
    int e = to_device(kind) ? part(symbol, bytes, offset, &at) : RT_INVALID_MEMCPY_DIRECTION;
    return e ? rt_done(e) : cudaMemcpy(at, src, bytes, kind);
}

RT_EXPORT int cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
                                      CUstream stream)
{
    void *at;
    int e = to_device(kind) ? part(symbol, bytes, offset, &at) : RT_INVALID_MEMCPY_DIRECTION;
    return e ? rt_done(e) : cudaMemcpyAsync(at, src, bytes, kind, stream);
}

RT_EXPORT int cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t bytes, size_t offset, int kind)
{
    void *at;
    int e = from_device(kind) ? part(symbol, bytes, offset, &at) : RT_INVALID_MEMCPY_DIRECTION;
    return e ? rt_done(e) : cudaMemcpy(dst, at, bytes, kind);
}

RT_EXPORT int cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t bytes, size_t offset, int kind, CUstream stream)
{
    void *at;
    int e = from_device(kind) ? part(symbol, bytes, offset, &at) : RT_INVALID_MEMCPY_DIRECTION;
    return e ? rt_done(e) : cudaMemcpyAsync(dst, at, bytes, kind, stream);
}
