/*
 * What a program compiled by nvcc registers: fat binaries, kernels (by the address of their host function) and variables (by
 * the address of their host shadow). Registration happens in constructors, 24,000 kernels at PyTorch's import, and only takes
 * notes. A fat binary is handed to the driver when one of its kernels or variables is first needed.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

#include "tests/simcuda/runtime/rt.h"
#include "tests/simcuda/runtime/rt_module.h"

/* As the linker leaves it in a program (fatbinary_section.h). */
struct fat_wrapper {
    int magic, version;
    const void *data;
    void *more; /* of separately compiled programs: nothing we need */
};
enum { FAT_MAGIC = 0x466243b1 };

struct fat {
    const void *data; /* NULL: what was registered is no fat binary */
    CUlibrary library;
    int error;       /* of loading it: said once, then kept */
    bool loaded;
    struct fat *next;
};

struct entry { /* a kernel or a variable */
    const void *host; /* key */
    struct fat *fat;
    const char *name;
    CUkernel kernel; /* NULL: not asked for yet */
    UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fat *fats;
static struct entry *kernels, *variables;

/* ---- registration ------------------------------------------------------------------------------------------------------- */

RT_EXPORT void **__cudaRegisterFatBinary(void *wrapper)
{
    const struct fat_wrapper *w = wrapper;
    struct fat *f = calloc(1, sizeof *f);
    if (!f) {
        fprintf(stderr, "simcuda: no memory for a fat binary's registration\n");
        abort(); /* a constructor has no way to say no */
    }
    f->data = w && w->magic == FAT_MAGIC ? w->data : NULL;
    pthread_mutex_lock(&lock);
    f->next = fats;
    fats = f;
    pthread_mutex_unlock(&lock);
    return (void **)f;
}

RT_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

RT_EXPORT char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

static void add(struct entry **table, void **handle, const void *host, const char *name)
{
    struct entry *e = calloc(1, sizeof *e);
    if (!e) {
        fprintf(stderr, "simcuda: no memory for the registration of %s\n", name);
        abort();
    }
    *e = (struct entry){ .host = host, .fat = (struct fat *)handle, .name = name };
    struct entry *old;
    pthread_mutex_lock(&lock);
    HASH_REPLACE_PTR(*table, host, e, old);
    pthread_mutex_unlock(&lock);
    free(old);
}

RT_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int thread_limit,
                                      void *tid, void *bid, void *block, void *grid, int *warp)
{
    (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    add(&kernels, handle, host, name);
}

RT_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t bytes,
                                 int constant, int global)
{
    (void)device, (void)ext, (void)bytes, (void)constant, (void)global;
    add(&variables, handle, host, name);
}

static void drop_of(struct entry **table, const struct fat *f)
{
    struct entry *e, *next;
    HASH_ITER(hh, *table, e, next)
    {
        if (e->fat == f) {
            HASH_DEL(*table, e);
            free(e);
        }
    }
}

/* A library's destructors call this, and so does every program's exit(), when what is loaded goes with the process. */
RT_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    struct fat *f = (struct fat *)handle;
    if (rt_exiting() || !f)
        return;
    pthread_mutex_lock(&lock);
    struct fat **at = &fats;
    while (*at && *at != f)
        at = &(*at)->next;
    bool known = *at != NULL;
    if (known) {
        *at = f->next;
        drop_of(&kernels, f);
        drop_of(&variables, f);
    }
    pthread_mutex_unlock(&lock);
    if (!known)
        return;
    if (f->loaded && !f->error)
        rt_drv.cuLibraryUnload(f->library);
    free(f);
}

/* ---- finding what was registered -------------------------------------------------------------------------------------------- */

/* Under the lock. RT_SUCCESS or why the driver refused the fat binary. */
static int load(struct fat *f)
{
    if (!f->loaded) {
        f->error = f->data ? (int)rt_drv.cuLibraryLoadData(&f->library, f->data, NULL, NULL, 0, NULL, NULL, 0)
                           : (int)CUDA_ERROR_INVALID_IMAGE;
        f->loaded = true;
    }
    return f->error;
}

int rt_kernel(const void *host, CUkernel *out)
{
    int e = rt_use();
    if (e)
        return e;
    struct entry *k;
    pthread_mutex_lock(&lock);
    HASH_FIND_PTR(kernels, &host, k);
    if (!k) {
        e = RT_INVALID_DEVICE_FUNCTION;
    } else if (!k->kernel) {
        e = load(k->fat);
        if (!e)
            e = (int)rt_drv.cuLibraryGetKernel(&k->kernel, k->fat->library, k->name);
        if (e == RT_SYMBOL_NOT_FOUND)
            e = RT_INVALID_DEVICE_FUNCTION;
    }
    *out = k && !e ? k->kernel : NULL;
    pthread_mutex_unlock(&lock);
    if (e == RT_INVALID_DEVICE_FUNCTION && !k) { /* perhaps a kernel of cudaLibraryGetKernel, passed as a function */
        const char *name;
        if (host && !rt_drv.cuKernelGetName(&name, (CUkernel)host)) {
            *out = (CUkernel)host;
            e = RT_SUCCESS;
        }
    }
    return e;
}

int rt_variable(const void *host, CUdeviceptr *at, size_t *bytes)
{
    int e = rt_use();
    if (e)
        return e;
    struct entry *v;
    pthread_mutex_lock(&lock);
    HASH_FIND_PTR(variables, &host, v);
    e = v ? load(v->fat) : RT_INVALID_SYMBOL;
    if (!e)
        e = (int)rt_drv.cuLibraryGetGlobal(at, bytes, v->fat->library, v->name);
    if (e == RT_SYMBOL_NOT_FOUND)
        e = RT_INVALID_SYMBOL;
    pthread_mutex_unlock(&lock);
    return e;
}

/* ---- libraries by name -------------------------------------------------------------------------------------------------------- */

RT_EXPORT int cudaLibraryLoadData(CUlibrary *out, const void *code, int *jit, void **jit_values, unsigned n_jit, int *options,
                                  void **values, unsigned n)
{
    RT_DO(cuLibraryLoadData(out, code, (CUjit_option *)jit, jit_values, n_jit, (CUlibraryOption *)options, values, n));
}

RT_EXPORT int cudaLibraryLoadFromFile(CUlibrary *out, const char *path, int *jit, void **jit_values, unsigned n_jit,
                                      int *options, void **values, unsigned n)
{
    RT_DO(cuLibraryLoadFromFile(out, path, (CUjit_option *)jit, jit_values, n_jit, (CUlibraryOption *)options, values, n));
}

RT_EXPORT int cudaLibraryUnload(CUlibrary library)
{
    RT_DO(cuLibraryUnload(library));
}

RT_EXPORT int cudaLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    RT_DO(cuLibraryGetKernel(out, library, name));
}

RT_EXPORT int cudaLibraryGetKernelCount(unsigned *n, CUlibrary library)
{
    RT_DO(cuLibraryGetKernelCount(n, library));
}

RT_EXPORT int cudaLibraryEnumerateKernels(CUkernel *out, unsigned n, CUlibrary library)
{
    RT_DO(cuLibraryEnumerateKernels(out, n, library));
}

RT_EXPORT int cudaLibraryGetGlobal(void **at, size_t *bytes, CUlibrary library, const char *name)
{
    RT_DO(cuLibraryGetGlobal((CUdeviceptr *)at, bytes, library, name));
}

RT_EXPORT int cudaLibraryGetManaged(void **at, size_t *bytes, CUlibrary library, const char *name)
{
    RT_DO(cuLibraryGetManaged((CUdeviceptr *)at, bytes, library, name));
}

RT_EXPORT int cudaLibraryGetUnifiedFunction(void **at, CUlibrary library, const char *name)
{
    RT_DO(cuLibraryGetUnifiedFunction(at, library, name));
}
