/* hook_module.c: kernels that come from libraries, and code that goes away. */
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

/* Told before, while what the code makes can be made; and after it: a handle that is reused meanwhile is forgotten once too often, never
 * once too little. */
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

/* The driver fills as many as there are, at most n. */
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

/* The host writes such a variable without a call, as it does all managed memory. */
static int on_get_managed(__typeof__(&cuLibraryGetManaged) real, CUdeviceptr *p, size_t *n, CUlibrary l, const char *name)
{
    size_t bytes = 0;
    CUdeviceptr at = 0;
    DOOR_TRY(real(&at, &bytes, l, name));
    eng_note_in_place(at, bytes);
    if (p)
        *p = at;
    if (n)
        *n = bytes;
    return CUDA_SUCCESS;
}

HOOKS_MODULE(DOOR_EXPORT)
