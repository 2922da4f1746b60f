/*
 * Modules, libraries, functions and kernels. A module is an ELF shared object of our ABI (simgpu.h), loaded with
 * dlopen: from its path, or from its bytes through a memory file. What is an image at all but not one of ours
 * (PTX, a fat binary, another ELF file) has no binary for this GPU; anything else is an invalid image.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simgpu/gpu.h"

struct CUmod_st {
    CUcontext ctx;     /* NULL: of a library, which belongs to no context */
    CUlibrary library; /* NULL: loaded as a module */
    void *dl;
    int fd; /* kept open: the loader knows objects by name, and the name is /proc/self/fd/N */
    unsigned n;
    struct CUfunc_st *functions; /* n of them */
    size_t *offsets;             /* of all functions' parameters */
};
struct CUlib_st {
    CUmodule module;
    struct CUkern_st *kernels; /* as many as the module has functions */
};

/* ---- loading -------------------------------------------------------------------------------------------------------- */

static size_t parameter_alignment(size_t bytes)
{
    size_t a = bytes & (0 - bytes);
    return a > 8 || a == 0 ? 8 : a;
}

static void unload(CUmodule m)
{
    if (m->functions)
        for (unsigned i = 0; i < m->n; i++)
            gpu_handle_drop(&m->functions[i]);
    if (m->dl)
        dlclose(m->dl);
    if (m->fd >= 0)
        close(m->fd);
    free(m->functions);
    free(m->offsets);
    free(m);
}

/* Not under gpu_lock: constructors of the module run here. */
static CUresult open_object(const char *path, int fd, CUmodule *out)
{
    CUmodule m = calloc(1, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->fd = fd;
    m->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->dl) {
        fprintf(stderr, "simgpu: cannot load kernel module: %s\n", dlerror());
        unload(m);
        return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
    }
    const simgpu_module_info *info = dlsym(m->dl, "simgpu_module");
    if (!info || info->abi != SIMGPU_ABI) {
        unload(m);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    size_t n_params = 0;
    for (unsigned i = 0; i < info->n_kernels; i++)
        n_params += info->kernels[i].n_params;
    m->n = info->n_kernels;
    m->functions = calloc(m->n + 1, sizeof *m->functions);
    m->offsets = calloc(n_params + 1, sizeof *m->offsets);
    if (!m->functions || !m->offsets) {
        unload(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t *offset = m->offsets;
    for (unsigned i = 0; i < m->n; i++) {
        CUfunction f = &m->functions[i];
        const simgpu_kernel *k = &info->kernels[i];
        size_t end = 0;
        f->k = k;
        f->module = m;
        f->offsets = offset;
        f->carveout = CU_SHAREDMEM_CARVEOUT_DEFAULT;
        for (unsigned j = 0; j < k->n_params; j++) {
            *offset = gpu_round_up(end, parameter_alignment(k->param_bytes[j]));
            end = *offset++ + k->param_bytes[j];
        }
        f->param_total = end;
    }
    *out = m;
    return CUDA_SUCCESS;
}

static bool is_elf(const void *image)
{
    const unsigned char *p = image; /* one byte at a time: a text may end early */
    return p[0] == ELFMAG0 && p[1] == ELFMAG1 && p[2] == ELFMAG2 && p[3] == ELFMAG3;
}

/* PTX begins with a comment or a directive; fat binaries with one of two magic numbers. */
static bool is_foreign_image(const void *image)
{
    const unsigned char *p = image;
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
        p++;
    if (*p == '.' || (*p == '/' && (p[1] == '/' || p[1] == '*')))
        return true;
    p = image;
    return (p[0] == 0x50 && p[1] == 0xed && p[2] == 0x55 && p[3] == 0xba) ||
           (p[0] == 0xb1 && p[1] == 0x43 && p[2] == 0x62 && p[3] == 0x46);
}

/* Size of an ELF64 file in memory: the furthest byte its headers speak of. 0: not one for this machine. */
static size_t elf_bytes(const void *image)
{
    const Elf64_Ehdr *e = image;
    if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_type != ET_DYN)
        return 0;
    size_t end = sizeof *e;
    size_t ph_end = e->e_phoff + (size_t)e->e_phnum * e->e_phentsize;
    if (e->e_phnum && e->e_phentsize == sizeof(Elf64_Phdr)) {
        end = ph_end > end ? ph_end : end;
        for (unsigned i = 0; i < e->e_phnum; i++) {
            Elf64_Phdr p;
            memcpy(&p, (const char *)image + e->e_phoff + i * sizeof p, sizeof p);
            size_t to = p.p_offset + p.p_filesz;
            end = to > end ? to : end;
        }
    }
    if (e->e_shoff && e->e_shnum && e->e_shentsize == sizeof(Elf64_Shdr)) {
        size_t sh_end = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
        end = sh_end > end ? sh_end : end;
        for (unsigned i = 0; i < e->e_shnum; i++) {
            Elf64_Shdr s;
            memcpy(&s, (const char *)image + e->e_shoff + i * sizeof s, sizeof s);
            size_t to = s.sh_type == SHT_NOBITS ? 0 : s.sh_offset + s.sh_size;
            end = to > end ? to : end;
        }
    }
    return end < 1ull << 32 ? end : 0;
}

static CUresult load_image(const void *image, CUmodule *out)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_elf(image))
        return is_foreign_image(image) ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
    size_t bytes = elf_bytes(image);
    if (!bytes)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    int fd = memfd_create("simgpu-module", MFD_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write(fd, (const char *)image + at, bytes - at);
        if (n <= 0) {
            close(fd);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        at += (size_t)n;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open_object(path, fd, out); /* takes fd */
}

static CUresult load_file(const char *path, CUmodule *out)
{
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned char head[4] = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    ssize_t n = read(fd, head, sizeof head);
    close(fd);
    if (n < (ssize_t)sizeof head || !is_elf(head))
        return n == (ssize_t)sizeof head && is_foreign_image(head) ? CUDA_ERROR_NO_BINARY_FOR_GPU
                                                                    : CUDA_ERROR_INVALID_IMAGE;
    if (strchr(path, '/'))
        return open_object(path, -1, out);
    char here[4096]; /* a bare name would be searched for in the library path */
    snprintf(here, sizeof here, "./%s", path);
    return open_object(here, -1, out);
}

static CUresult add_functions(CUmodule m, enum gpu_kind kind, const void *handle)
{
    CUresult e = gpu_handle_add(handle, kind);
    for (unsigned i = 0; !e && i < m->n; i++)
        e = gpu_handle_add(&m->functions[i], GPU_FUNCTION);
    return e;
}

static CUresult module_load(CUmodule *out, const char *path, const void *image)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule m;
    CUresult e = image ? load_image(image, &m) : load_file(path, &m);
    if (e)
        return e;
    m->ctx = gpu_ctx_current();
    gpu_lock();
    e = add_functions(m, GPU_MODULE, m);
    gpu_unlock();
    if (!e)
        *out = m;
    return e;
}

static CUmodule live_module(CUmodule m)
{
    return gpu_handle_kind(m) == GPU_MODULE ? m : NULL;
}

static CUresult module_unload(CUmodule h)
{
    gpu_lock();
    CUmodule m = live_module(h);
    CUresult e = !m || m->library ? CUDA_ERROR_INVALID_HANDLE : gpu_ctx_wait_host(m->ctx);
    if (!e) {
        gpu_handle_drop(m);
        unload(m);
    }
    gpu_unlock();
    return e;
}

static void free_of_ctx(void *h, void *ctx)
{
    CUmodule m = h;
    if (m->ctx != ctx)
        return;
    gpu_handle_drop(m);
    unload(m);
}

void gpu_module_free_ctx(CUcontext ctx)
{
    gpu_handle_each(GPU_MODULE, free_of_ctx, ctx);
}

GPU_API(cuModuleLoad, (CUmodule *m, const char *path), GPU_NEED_CTX, module_load(m, path, NULL))
GPU_API(cuModuleLoadData, (CUmodule *m, const void *image), GPU_NEED_CTX,
        image ? module_load(m, NULL, image) : CUDA_ERROR_INVALID_VALUE)
GPU_API(cuModuleLoadDataEx, (CUmodule *m, const void *image, unsigned n, CUjit_option *options, void **values),
        GPU_NEED_CTX,
        ((void)n, (void)options, (void)values, image ? module_load(m, NULL, image) : CUDA_ERROR_INVALID_VALUE))
GPU_API(cuModuleLoadFatBinary, (CUmodule *m, const void *image), GPU_NEED_CTX,
        image ? module_load(m, NULL, image) : CUDA_ERROR_INVALID_VALUE)
GPU_API(cuModuleUnload, (CUmodule m), GPU_NEED_CTX, module_unload(m))

/* ---- finding functions ------------------------------------------------------------------------------------------------ */

static CUfunction by_name(CUmodule m, const char *name)
{
    for (unsigned i = 0; i < m->n; i++)
        if (!strcmp(m->functions[i].k->name, name))
            return &m->functions[i];
    return NULL;
}

static CUresult module_function(CUfunction *out, CUmodule h, const char *name)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUmodule m = live_module(h);
    CUfunction f = m ? by_name(m, name) : NULL;
    gpu_unlock();
    if (f)
        *out = f;
    return f ? CUDA_SUCCESS : m ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult module_count(unsigned *out, CUmodule h)
{
    gpu_lock();
    CUmodule m = live_module(h);
    if (m && out)
        *out = m->n;
    gpu_unlock();
    return !m ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult module_enumerate(CUfunction *out, unsigned n, CUmodule h)
{
    gpu_lock();
    CUmodule m = live_module(h);
    for (unsigned i = 0; m && out && i < n && i < m->n; i++)
        out[i] = &m->functions[i];
    gpu_unlock();
    return !m ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult loading_mode(CUmoduleLoadingMode *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

/* A kernel module has no global variables. */
static CUresult no_global(bool known, const char *name)
{
    return !known ? CUDA_ERROR_INVALID_HANDLE : !name ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

static bool is_kind(const void *h, enum gpu_kind kind)
{
    gpu_lock();
    bool yes = gpu_handle_kind(h) == kind;
    gpu_unlock();
    return yes;
}

GPU_API(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name), GPU_NEED_CTX, module_function(f, m, name))
GPU_API(cuModuleGetFunctionCount, (unsigned *n, CUmodule m), GPU_NEED_CTX, module_count(n, m))
GPU_API(cuModuleEnumerateFunctions, (CUfunction *f, unsigned n, CUmodule m), GPU_NEED_CTX, module_enumerate(f, n, m))
GPU_API(cuModuleGetLoadingMode, (CUmoduleLoadingMode *mode), GPU_NEED_INIT, loading_mode(mode))
GPU_API(cuModuleGetGlobal_v2, (CUdeviceptr *p, size_t *bytes, CUmodule m, const char *name), GPU_NEED_CTX,
        ((void)p, (void)bytes, no_global(is_kind(m, GPU_MODULE), name)))

/* ---- libraries ---------------------------------------------------------------------------------------------------------- */

static CUresult library_load(CUlibrary *out, const char *path, const void *image)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule m;
    CUresult e = image ? load_image(image, &m) : load_file(path, &m);
    if (e)
        return e;
    CUlibrary l = calloc(1, sizeof *l);
    struct CUkern_st *kernels = calloc(m->n + 1, sizeof *kernels);
    if (!l || !kernels) {
        free(l);
        free(kernels);
        gpu_lock();
        unload(m);
        gpu_unlock();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    l->module = m;
    l->kernels = kernels;
    m->library = l;
    gpu_lock();
    e = add_functions(m, GPU_MODULE, m);
    if (!e)
        e = gpu_handle_add(l, GPU_LIBRARY);
    for (unsigned i = 0; !e && i < m->n; i++) {
        l->kernels[i] = (struct CUkern_st){ l, &m->functions[i] };
        m->functions[i].kernel = &l->kernels[i];
        e = gpu_handle_add(&l->kernels[i], GPU_KERNEL);
    }
    gpu_unlock();
    if (!e)
        *out = l;
    return e;
}

static CUlibrary live_library(CUlibrary l)
{
    return gpu_handle_kind(l) == GPU_LIBRARY ? l : NULL;
}

static void wait_for_ctx(void *ctx, void *arg)
{
    (void)arg;
    if (((CUcontext)ctx)->alive)
        gpu_exec_drain(ctx);
}

static CUresult library_unload(CUlibrary h)
{
    gpu_lock();
    CUlibrary l = live_library(h);
    if (l) {
        gpu_handle_each(GPU_CTX, wait_for_ctx, NULL);
        for (unsigned i = 0; i < l->module->n; i++)
            gpu_handle_drop(&l->kernels[i]);
        gpu_handle_drop(l);
        gpu_handle_drop(l->module);
        unload(l->module);
        free(l->kernels);
        free(l);
    }
    gpu_unlock();
    return l ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult library_kernel(CUkernel *out, CUlibrary h, const char *name)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    gpu_lock();
    CUlibrary l = live_library(h);
    CUfunction f = l ? by_name(l->module, name) : NULL;
    if (f)
        *out = f->kernel;
    gpu_unlock();
    return f ? CUDA_SUCCESS : l ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult library_count(unsigned *out, CUlibrary h)
{
    gpu_lock();
    CUlibrary l = live_library(h);
    if (l && out)
        *out = l->module->n;
    gpu_unlock();
    return !l ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult library_enumerate(CUkernel *out, unsigned n, CUlibrary h)
{
    gpu_lock();
    CUlibrary l = live_library(h);
    for (unsigned i = 0; l && out && i < n && i < l->module->n; i++)
        out[i] = &l->kernels[i];
    gpu_unlock();
    return !l ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult library_module(CUmodule *out, CUlibrary h)
{
    gpu_lock();
    CUlibrary l = live_library(h);
    if (l && out)
        *out = l->module;
    gpu_unlock();
    return !l ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What a question about a kernel wants to know. */
enum ask { ASK_FUNCTION, ASK_LIBRARY, ASK_NAME };

static CUresult kernel_ask(CUkernel h, enum ask what, void *out)
{
    gpu_lock();
    CUkernel k = gpu_handle_kind(h) == GPU_KERNEL ? h : NULL;
    if (k && out)
        switch (what) {
        case ASK_FUNCTION: *(CUfunction *)out = k->function; break;
        case ASK_LIBRARY: *(CUlibrary *)out = k->library; break;
        case ASK_NAME: *(const char **)out = k->function->k->name; break;
        }
    gpu_unlock();
    return !k ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPU_API(cuLibraryLoadData,
        (CUlibrary *l, const void *image, CUjit_option *jit, void **jit_values, unsigned n_jit, CUlibraryOption *options,
         void **values, unsigned n),
        GPU_NEED_INIT,
        ((void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n,
         image ? library_load(l, NULL, image) : CUDA_ERROR_INVALID_VALUE))
GPU_API(cuLibraryLoadFromFile,
        (CUlibrary *l, const char *path, CUjit_option *jit, void **jit_values, unsigned n_jit, CUlibraryOption *options,
         void **values, unsigned n),
        GPU_NEED_INIT,
        ((void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n, library_load(l, path, NULL)))
GPU_API(cuLibraryUnload, (CUlibrary l), GPU_NEED_INIT, library_unload(l))
GPU_API(cuLibraryGetKernel, (CUkernel *k, CUlibrary l, const char *name), GPU_NEED_INIT, library_kernel(k, l, name))
GPU_API(cuLibraryGetKernelCount, (unsigned *n, CUlibrary l), GPU_NEED_INIT, library_count(n, l))
GPU_API(cuLibraryEnumerateKernels, (CUkernel *k, unsigned n, CUlibrary l), GPU_NEED_INIT, library_enumerate(k, n, l))
GPU_API(cuLibraryGetModule, (CUmodule *m, CUlibrary l), GPU_NEED_CTX, library_module(m, l))
GPU_API(cuLibraryGetGlobal, (CUdeviceptr *p, size_t *bytes, CUlibrary l, const char *name), GPU_NEED_CTX,
        ((void)p, (void)bytes, no_global(is_kind(l, GPU_LIBRARY), name)))
GPU_API(cuLibraryGetManaged, (CUdeviceptr *p, size_t *bytes, CUlibrary l, const char *name), GPU_NEED_INIT,
        ((void)p, (void)bytes, no_global(is_kind(l, GPU_LIBRARY), name)))
GPU_API(cuLibraryGetUnifiedFunction, (void **p, CUlibrary l, const char *name), GPU_NEED_INIT,
        ((void)p, no_global(is_kind(l, GPU_LIBRARY), name)))
GPU_API(cuKernelGetFunction, (CUfunction *f, CUkernel k), GPU_NEED_CTX, kernel_ask(k, ASK_FUNCTION, f))
GPU_API(cuKernelGetLibrary, (CUlibrary *l, CUkernel k), GPU_NEED_INIT, kernel_ask(k, ASK_LIBRARY, l))
GPU_API(cuKernelGetName, (const char **name, CUkernel k), GPU_NEED_INIT, kernel_ask(k, ASK_NAME, name))

/* ---- questions about functions ------------------------------------------------------------------------------------------- */

CUfunction gpu_module_function(CUfunction f)
{
    switch (gpu_handle_kind(f)) {
    case GPU_FUNCTION: return f;
    case GPU_KERNEL: return ((CUkernel)f)->function;
    default: return NULL;
    }
}

static CUfunction function_locked(void *h)
{
    gpu_lock();
    CUfunction f = gpu_module_function(h);
    gpu_unlock();
    return f;
}

static CUresult param_info(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!offset || index >= f->k->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->offsets[index];
    if (size)
        *size = f->k->param_bytes[index];
    return CUDA_SUCCESS;
}

static CUresult get_attribute(int *out, CUfunction_attribute a, CUfunction f)
{
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    switch (a) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = 1024; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = 32; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *out = 80; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = 80; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = f->max_dynamic_shared ? f->max_dynamic_shared : 48 << 10;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = f->carveout; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *out = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction f, CUfunction_attribute a, int value)
{
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 && value <= 163 << 10)
        f->max_dynamic_shared = value;
    else if (a == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 && value <= 100)
        f->carveout = value;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult function_module(CUmodule *out, CUfunction f)
{
    if (f && out)
        *out = f->module;
    return !f ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult function_name(const char **out, CUfunction f)
{
    if (f && out)
        *out = f->k->name;
    return !f ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult function_loaded(CUfunctionLoadingState *out, CUfunction f)
{
    if (f && out)
        *out = CU_FUNCTION_LOADING_STATE_LOADED;
    return !f ? CUDA_ERROR_INVALID_HANDLE : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#define KNOWN(f) (function_locked(f) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)
#define ON_DEVICE(dev, expression) ((dev) != 0 ? CUDA_ERROR_INVALID_DEVICE : (expression))

GPU_API(cuFuncGetParamInfo, (CUfunction f, size_t i, size_t *offset, size_t *size), GPU_NEED_CTX,
        param_info(function_locked(f), i, offset, size))
GPU_API(cuKernelGetParamInfo, (CUkernel k, size_t i, size_t *offset, size_t *size), GPU_NEED_INIT,
        param_info(function_locked(k), i, offset, size))
GPU_API(cuFuncGetAttribute, (int *value, CUfunction_attribute a, CUfunction f), GPU_NEED_CTX,
        get_attribute(value, a, function_locked(f)))
GPU_API(cuKernelGetAttribute, (int *value, CUfunction_attribute a, CUkernel k, CUdevice dev), GPU_NEED_INIT,
        ON_DEVICE(dev, get_attribute(value, a, function_locked(k))))
GPU_API(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute a, int value), GPU_NEED_CTX,
        set_attribute(function_locked(f), a, value))
GPU_API(cuKernelSetAttribute, (CUfunction_attribute a, int value, CUkernel k, CUdevice dev), GPU_NEED_INIT,
        ON_DEVICE(dev, set_attribute(function_locked(k), a, value)))
GPU_API(cuFuncSetCacheConfig, (CUfunction f, CUfunc_cache config), GPU_NEED_CTX, ((void)config, KNOWN(f)))
GPU_API(cuKernelSetCacheConfig, (CUkernel k, CUfunc_cache config, CUdevice dev), GPU_NEED_INIT,
        ((void)config, ON_DEVICE(dev, KNOWN(k))))
GPU_API(cuFuncSetSharedMemConfig, (CUfunction f, CUsharedconfig config), GPU_NEED_CTX, ((void)config, KNOWN(f)))
GPU_API(cuFuncGetModule, (CUmodule *m, CUfunction f), GPU_NEED_CTX, function_module(m, function_locked(f)))
GPU_API(cuFuncGetName, (const char **name, CUfunction f), GPU_NEED_CTX, function_name(name, function_locked(f)))
GPU_API(cuFuncIsLoaded, (CUfunctionLoadingState *state, CUfunction f), GPU_NEED_CTX,
        function_loaded(state, function_locked(f)))
GPU_API(cuFuncLoad, (CUfunction f), GPU_NEED_CTX, KNOWN(f))
