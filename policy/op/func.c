/* func.c: see func.h. The driver is asked for a layout once for each handle. */
#include "policy/op/func.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct func_row {
    CUfunction handle;
    struct func *func;
    UT_hash_handle hh;
};
struct kernel_row {
    CUkernel handle;
    UT_hash_handle hh;
};

enum { FRONT = 1024 };
static struct func *front[FRONT]; /* direct-mapped cache in front of the table: nearly every launch finds its function here */
static struct func_row *table;
static struct kernel_row *kernels;
static uint64_t generation = 1;

void func_note_kernel(CUkernel k)
{
    struct kernel_row *r;
    HASH_FIND_PTR(kernels, &k, r);
    if (r || !(r = calloc(1, sizeof *r)))
        return;
    r->handle = k;
    HASH_ADD_PTR(kernels, handle, r);
}

void func_forget_all(void) { generation++; }

bool func_is_of(const struct func *f, CUmodule module, CUlibrary library)
{
    if (f->library)
        return f->library == library;
    return !f->module || !module || f->module == module;
}

void func_unload(const struct drv *drv, CUmodule module, CUlibrary library)
{
    struct func_row *r, *next_row;
    struct kernel_row *k, *next_kernel;
    HASH_ITER(hh, table, r, next_row)
        if (r->func && func_is_of(r->func, module, library))
            r->func->unloaded = true;
    HASH_ITER(hh, kernels, k, next_kernel) {
        CUlibrary of;
        if (!library || !drv->cuKernelGetLibrary || drv->cuKernelGetLibrary(&of, k->handle) != CUDA_SUCCESS || of != library)
            continue;
        HASH_DEL(kernels, k); /* the handle may become a CUfunction's */
        free(k);
    }
    func_forget_all();
}

static CUresult param_info(struct device *d, CUfunction f, bool kernel, size_t i, size_t *offset, size_t *size)
{
    if (kernel && d->drv->cuKernelGetParamInfo)
        return d->drv->cuKernelGetParamInfo((CUkernel)f, i, offset, size);
    if (!kernel && d->drv->cuFuncGetParamInfo)
        return d->drv->cuFuncGetParamInfo(f, i, offset, size);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void func_fill(struct device *d, struct func *fn)
{
    struct kernel_row *k;
    CUkernel as_kernel = (CUkernel)fn->handle;
    HASH_FIND_PTR(kernels, &as_kernel, k);
    const char *name = NULL;
    fn->is_kernel = k != NULL;
    if (k ? d->drv->cuKernelGetName && d->drv->cuKernelGetName(&name, as_kernel) == CUDA_SUCCESS
          : d->drv->cuFuncGetName && d->drv->cuFuncGetName(&name, fn->handle) == CUDA_SUCCESS)
        fn->name = name ? strdup(name) : NULL;
    if (!fn->name)
        fn->name = strdup("kernel");
    if (k ? !d->drv->cuKernelGetLibrary || d->drv->cuKernelGetLibrary(&fn->library, as_kernel) != CUDA_SUCCESS
          : !d->drv->cuFuncGetModule || d->drv->cuFuncGetModule(&fn->module, fn->handle) != CUDA_SUCCESS) {
        fn->library = NULL;
        fn->module = NULL;
    }
    uint32_t cap = 0;
    for (fn->n_params = 0; fn->n_params < OP_MAX_PARAMS; fn->n_params++) {
        size_t offset, size;
        CUresult r = param_info(d, fn->handle, k != NULL, fn->n_params, &offset, &size);
        if (r == CUDA_ERROR_INVALID_VALUE) {
            fn->known = true;
            return;
        }
        if (r != CUDA_SUCCESS || offset + size > OP_MAX_ARG_BYTES)
            return;
        if (fn->n_params == cap) {
            cap = cap ? cap * 2 : 8;
            uint32_t *o = realloc(fn->offset, cap * sizeof *o);
            if (o)
                fn->offset = o;
            uint32_t *s = realloc(fn->size, cap * sizeof *s);
            if (s)
                fn->size = s;
            if (!o || !s)
                return;
        }
        fn->offset[fn->n_params] = (uint32_t)offset;
        fn->size[fn->n_params] = (uint32_t)size;
        if (offset + size > fn->arg_bytes)
            fn->arg_bytes = (uint32_t)(offset + size);
    }
}

static struct func **front_of(CUfunction f) { return &front[((uintptr_t)f >> 4) % FRONT]; }

static __attribute__((noinline)) struct func *ask(struct device *d, CUfunction f)
{
    struct func_row *r;
    HASH_FIND_PTR(table, &f, r);
    if (!r) {
        r = calloc(1, sizeof *r);
        if (!r)
            return NULL;
        r->handle = f;
        HASH_ADD_PTR(table, handle, r);
    }
    if (!r->func || r->func->generation != generation) {
        /* the old func is not freed: captured ops may still point at it */
        struct func *fn = calloc(1, sizeof *fn);
        if (!fn)
            return NULL;
        fn->handle = f;
        fn->generation = generation;
        func_fill(d, fn);
        if (r->func && !r->func->unloaded && r->func->known == fn->known && r->func->name && fn->name && !strcmp(r->func->name, fn->name) &&
            r->func->arg_bytes == fn->arg_bytes && r->func->n_params == fn->n_params) {
            free(fn->name);
            free(fn->offset);
            free(fn->size);
            free(fn);
            r->func->generation = generation;
            r->func->lasting_asked = false;
        } else
            r->func = fn;
    }
    return *front_of(f) = r->func;
}

struct func *func_of(struct device *d, CUfunction f)
{
    struct func *fn = *front_of(f);
    return fn && fn->handle == f && fn->generation == generation ? fn : ask(d, f); /* nearly always fn */
}

int func_shared_most_drv(const struct device *d, const struct func *f, int *bytes)
{
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (f->is_kernel)
        return d->drv->cuKernelGetAttribute ? d->drv->cuKernelGetAttribute(bytes, most, (CUkernel)f->handle, d->dev) : CUDA_ERROR_NOT_SUPPORTED;
    return d->drv->cuFuncGetAttribute ? d->drv->cuFuncGetAttribute(bytes, most, f->handle) : CUDA_ERROR_NOT_SUPPORTED;
}

int func_set_shared_most_drv(const struct device *d, const struct func *f, int bytes)
{
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (f->is_kernel)
        return d->drv->cuKernelSetAttribute ? d->drv->cuKernelSetAttribute(most, bytes, (CUkernel)f->handle, d->dev) : CUDA_ERROR_NOT_SUPPORTED;
    return d->drv->cuFuncSetAttribute ? d->drv->cuFuncSetAttribute(f->handle, most, bytes) : CUDA_ERROR_NOT_SUPPORTED;
}

int func_param_at(const struct func *f, uint32_t offset)
{
    for (uint32_t i = 0; f->known && i < f->n_params; i++)
        if (offset >= f->offset[i] && offset < f->offset[i] + f->size[i])
            return (int)i;
    return -1;
}
