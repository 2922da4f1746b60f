/* hook_module.c: modules and libraries: code that is loaded or unloaded, kernels, variables. */
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

static int on_module_load(__typeof__(&cuModuleLoad) real, CUmodule *m, const char *file)
{
    const struct eng_file before = eng_file_code(file);
    int r = real(m, file);
    if (!r)
        eng_note_file(*m, NULL, file, &before);
    return r;
}

static int on_module_load_data(__typeof__(&cuModuleLoadData) real, CUmodule *m, const void *image)
{
    int r = real(m, image);
    if (!r)
        eng_note_image(*m, NULL, image);
    return r;
}

static int on_module_load_data_ex(__typeof__(&cuModuleLoadDataEx) real, CUmodule *m, const void *image, unsigned n, CUjit_option *o, void **v)
{
    int r = real(m, image, n, o, v);
    if (!r)
        eng_note_image(*m, NULL, image);
    return r;
}

static int on_library_load_data(__typeof__(&cuLibraryLoadData) real, CUlibrary *l, const void *image, CUjit_option *jit, void **jv, unsigned nj,
                                CUlibraryOption *o, void **v, unsigned n)
{
    int r = real(l, image, jit, jv, nj, o, v, n);
    if (!r)
        eng_note_image(NULL, *l, image);
    return r;
}

static int on_library_load_file(__typeof__(&cuLibraryLoadFromFile) real, CUlibrary *l, const char *file, CUjit_option *jit, void **jv, unsigned nj,
                                CUlibraryOption *o, void **v, unsigned n)
{
    const struct eng_file before = eng_file_code(file);
    int r = real(l, file, jit, jv, nj, o, v, n);
    if (!r)
        eng_note_file(NULL, *l, file, &before);
    return r;
}

static int on_module_global(__typeof__(&cuModuleGetGlobal_v2) real, CUdeviceptr *p, size_t *n, CUmodule m, const char *name)
{
    eng_note_variable(m, NULL);
    return real(p, n, m, name);
}

static int on_library_global(__typeof__(&cuLibraryGetGlobal) real, CUdeviceptr *p, size_t *n, CUlibrary l, const char *name)
{
    eng_note_variable(NULL, l);
    return real(p, n, l, name);
}

/* The engine is told before, while values that need the module's kernels can be made, and after: a handle that is reused meanwhile is forgotten once too often, never once too
 * little. */
static int on_module_unload(__typeof__(&cuModuleUnload) real, CUmodule m)
{
    eng_before_unload(m, NULL);
    int r = real(m);
    if (!r)
        eng_note_unload();
    return r;
}

static int on_library_unload(__typeof__(&cuLibraryUnload) real, CUlibrary l)
{
    eng_before_unload(NULL, l);
    int r = real(l);
    if (!r)
        eng_note_unload();
    return r;
}

static int on_get_kernel(__typeof__(&cuLibraryGetKernel) real, CUkernel *k, CUlibrary l, const char *name)
{
    int r = real(k, l, name);
    if (!r)
        eng_note_kernel(*k);
    return r;
}

/* The driver fills k with as many kernels as the library has, at most n. */
static int on_enumerate_kernels(__typeof__(&cuLibraryEnumerateKernels) real, CUkernel *k, unsigned n, CUlibrary l)
{
    int r = real(k, n, l);
    if (r || !k)
        return r;
    __typeof__(&cuLibraryGetKernelCount) count = (__typeof__(count))provider_driver_symbol("cuLibraryGetKernelCount");
    unsigned there = 0;
    if (!count || count(&there, l) != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < n && i < there; i++)
        eng_note_kernel(k[i]);
    return r;
}

/* The host writes a managed variable without a call, as it does all managed memory. */
static int on_get_managed(__typeof__(&cuLibraryGetManaged) real, CUdeviceptr *p, size_t *n, CUlibrary l, const char *name)
{
    size_t bytes = 0;
    CUdeviceptr at = 0;
    eng_note_variable(NULL, l);
    DOOR_TRY(real(&at, &bytes, l, name));
    eng_note_in_place(at, bytes);
    if (p)
        *p = at;
    if (n)
        *n = bytes;
    return CUDA_SUCCESS;
}

HOOKS_MODULE(DOOR_EXPORT)
