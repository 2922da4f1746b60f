/*
 * Errors: their names and texts, and the last one of each thread.
 */
#include "tests/simcuda/runtime/rt.h"

static __thread int last_error;

int rt_done(int error)
{
    if (error != RT_SUCCESS && error != RT_NOT_READY)
        last_error = error;
    return error;
}

int rt_result(CUresult r)
{
    return rt_done((int)r);
}

RT_EXPORT int cudaGetLastError(void)
{
    int e = last_error;
    last_error = RT_SUCCESS;
    return e;
}

RT_EXPORT int cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    int code;
    const char *name, *text;
} rows[] = {
#define RT_ERROR(code, name, text) { code, #name, text },
#include "tests/simcuda/runtime/rt_error.def"
};

RT_EXPORT const char *cudaGetErrorName(int error)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == error)
            return rows[i].name;
    return "unrecognized error code";
}

RT_EXPORT const char *cudaGetErrorString(int error)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == error)
            return rows[i].text;
    return "unrecognized error code";
}
