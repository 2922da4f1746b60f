/* code.c: see code.h. */
#include "policy/op/code.h"

#include "tracer/known/digest.h"

#include <stdlib.h>
#include <uthash.h>

enum { ROWS_MOST = 65536 };

struct row {
    void *handle;
    struct known_code code;
    bool named;
    UT_hash_handle hh;
};

static struct row *rows;

static struct row *row_of(CUmodule module, CUlibrary library)
{
    void *handle = library ? (void *)library : (void *)module;
    struct row *r = NULL;
    if (handle)
        HASH_FIND_PTR(rows, &handle, r);
    return r;
}

void code_forget(CUmodule module, CUlibrary library)
{
    struct row *r = row_of(module, library);
    if (!r)
        return;
    HASH_DEL(rows, r);
    free(r);
}

void code_note(CUmodule module, CUlibrary library, const struct known_code *code)
{
    code_forget(module, library);
    struct row *r = code && HASH_COUNT(rows) < ROWS_MOST ? calloc(1, sizeof *r) : NULL;
    if (!r)
        return;
    r->handle = library ? (void *)library : (void *)module;
    r->code = *code;
    HASH_ADD_PTR(rows, handle, r);
}

void code_is_named(CUmodule module, CUlibrary library)
{
    struct row *r = row_of(module, library);
    if (r)
        r->named = true;
}

/* The driver compiles PTX, and picks one of a fat binary's codes by the device's kind. */
static bool kind_of_device(const struct device *d, int kind[3])
{
    return d->drv->cuDeviceGetAttribute && d->drv->cuDriverGetVersion &&
           d->drv->cuDeviceGetAttribute(&kind[0], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->dev) == CUDA_SUCCESS &&
           d->drv->cuDeviceGetAttribute(&kind[1], CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->dev) == CUDA_SUCCESS &&
           d->drv->cuDriverGetVersion(&kind[2]) == CUDA_SUCCESS;
}

bool code_of(const struct device *d, const struct func *f, struct known_code *code)
{
    const struct row *r = f->unloaded ? NULL : row_of(f->module, f->library);
    struct {
        struct known_code code;
        int kind[4];
    } all = {0};
    if (!r || r->named || !kind_of_device(d, all.kind))
        return false;
    all.code = r->code;
    digest(&all, sizeof all, code->w);
    return true;
}
