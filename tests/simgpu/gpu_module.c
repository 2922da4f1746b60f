/*
 * Modules, libraries, functions and kernels. A module is an ELF shared object of our ABI (simgpu.h), loaded with
 * dlopen: from its path, or from its bytes through a memory file. Or it is PTX, which is run as it stands (gpu_ptx.h). Or it is
 * machine code for a real device, in a fat binary or bare: its names and parameters are read, and what its kernels do is looked up
 * by name when one is first launched (gpu_code.h). Code for another device is no binary for this GPU, and a line on stderr says
 * what it has; anything else is an invalid image.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simgpu/gpu.h"
#include "tests/simgpu/gpu_code.h"
#include "tests/simgpu/gpu_cubin.h"
#include "tests/simgpu/gpu_fatbin.h"
#include "tests/simgpu/gpu_ptx.h"

struct CUmod_st {
    CUcontext ctx;     /* NULL: of a library, which belongs to no context */
    CUlibrary library; /* NULL: loaded as a module */
    void *dl;
    int fd; /* kept open: the loader knows objects by name, and the name is /proc/self/fd/N */
    unsigned n;
    struct CUfunc_st *functions; /* n of them */
    size_t *offsets;             /* of all functions' parameters */
    struct gpu_code_file *code;  /* what was read of machine code; NULL: a module of our ABI */
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
        for (unsigned i = 0; i < m->n; i++) {
            if (m->functions[i].loaded_on)
                gpu_phys_uncharge(m->functions[i].loaded_on - 1, gpu_cfg.lazy_bytes);
            gpu_handle_drop(&m->functions[i]);
        }
    if (m->dl)
        dlclose(m->dl);
    if (m->fd >= 0)
        close(m->fd);
    gpu_code_close(m->code);
    free(m->functions);
    free(m->offsets);
    free(m);
}

static CUresult fill_functions(CUmodule m, const simgpu_kernel *kernels, unsigned n)
{
    size_t n_params = 0;
    for (unsigned i = 0; i < n; i++)
        n_params += kernels[i].n_params;
    m->n = n;
    m->functions = calloc(n + 1, sizeof *m->functions);
    m->offsets = calloc(n_params + 1, sizeof *m->offsets);
    if (!m->functions || !m->offsets)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t *offset = m->offsets;
    for (unsigned i = 0; i < n; i++) {
        CUfunction f = &m->functions[i];
        const simgpu_kernel *k = &kernels[i];
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
    return CUDA_SUCCESS;
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
    CUresult e = fill_functions(m, info->kernels, info->n_kernels);
    if (e)
        unload(m);
    else
        *out = m;
    return e;
}

/* Takes code. */
static CUresult module_of(struct gpu_code_file *code, CUmodule *out)
{
    CUmodule m = calloc(1, sizeof *m);
    if (!m) {
        gpu_code_close(code);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->fd = -1;
    m->code = code;
    CUresult e = fill_functions(m, m->code->kernels, m->code->cubin.n_kernels);
    for (unsigned i = 0; !e && i < m->n; i++) {
        CUfunction f = &m->functions[i];
        f->code = &m->code->codes[i];
        f->param_total = f->code->meta.param_bytes;
        for (unsigned j = 0; j < f->code->meta.n_params; j++)
            f->offsets[j] = f->code->meta.offset[j];
    }
    if (e)
        unload(m);
    else
        *out = m;
    return e;
}

/* Machine code of n bytes (SIZE_MAX: as long as it says itself). The image is not needed afterwards. */
static CUresult open_code(const void *image, size_t n, CUmodule *out)
{
    struct gpu_code_file *code;
    CUresult e = gpu_code_open(image, n, &code);
    return e ? e : module_of(code, out);
}

static bool is_elf(const void *image)
{
    const unsigned char *p = image; /* one byte at a time: a text may end early */
    return p[0] == ELFMAG0 && p[1] == ELFMAG1 && p[2] == ELFMAG2 && p[3] == ELFMAG3;
}

/* A text of n bytes (SIZE_MAX: up to its NUL), or what stands for it. What is wrong with it is said to whoever gave room for a log, else on
   stderr. */
static CUresult open_text(const char *text, size_t n, const struct gpu_jit_log *log, CUmodule *out)
{
    char path[4096], why[512] = "";
    if (n == SIZE_MAX && gpu_ptx_twin(text, path, sizeof path))
        return open_object(path, -1, out);
    struct gpu_code_file *code;
    CUresult e = gpu_ptx_open(text, n, &code, why, sizeof why);
    if (log)
        gpu_ptx_log(log, e ? why : NULL);
    if (e && *why && (!log || !log->n))
        fprintf(stderr, "simgpu: PTX cannot be loaded: %s\n", why);
    return e ? e : module_of(code, out);
}

/* The container inside what a program's linker leaves ({magic, version, address}); NULL: it is none. */
static const void *unwrapped(const void *image)
{
    const unsigned char *p = image;
    if (p[0] != 0xb1 || p[1] != 0x43 || p[2] != 0x62 || p[3] != 0x46)
        return NULL;
    const void *at;
    memcpy(&at, p + 8, sizeof at);
    return at;
}

static bool is_cubin(const void *image)
{
    const Elf64_Ehdr *e = image;
    return is_elf(image) && e->e_machine == GPU_CUBIN_MACHINE;
}

/* Size of an ELF64 file in memory: the furthest byte its headers speak of. 0: not one for this machine. */
static size_t elf_bytes(const void *image)
{
    const Elf64_Ehdr *e = image;
    if (e->e_ident[EI_CLASS] != ELFCLASS64 || (e->e_type != ET_DYN && !is_cubin(image)))
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

/* `log`: where a compiler's words go; NULL: nowhere. */
static CUresult load_image(const void *image, const struct gpu_jit_log *log, CUmodule *out)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    const void *inside = unwrapped(image);
    if (inside)
        image = inside;
    if (gpu_fatbin_is(image))
        return open_code(image, gpu_fatbin_bytes(image), out);
    if (!is_elf(image))
        return gpu_ptx_is(image) ? open_text(image, SIZE_MAX, log, out) : CUDA_ERROR_INVALID_IMAGE;
    size_t bytes = elf_bytes(image);
    if (is_cubin(image))
        return open_code(image, bytes, out);
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

static CUresult load_code_file(int fd, CUmodule *out)
{
    struct stat st;
    if (fstat(fd, &st) || st.st_size <= 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    void *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (image == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult e = open_code(image, (size_t)st.st_size, out);
    munmap(image, (size_t)st.st_size);
    return e;
}

static CUresult load_text_file(int fd, CUmodule *out)
{
    struct stat st;
    if (fstat(fd, &st) || st.st_size <= 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    char *text = malloc((size_t)st.st_size + 1);
    size_t n = 0;
    if (!text)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (ssize_t got; n < (size_t)st.st_size && (got = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    CUresult e = gpu_ptx_is(text) ? open_text(text, SIZE_MAX, NULL, out) : CUDA_ERROR_INVALID_IMAGE;
    free(text);
    return e;
}

static CUresult load_file(const char *path, CUmodule *out)
{
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned char head[64] = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    ssize_t n = read(fd, head, sizeof head - 1);
    if (n >= 16 && (gpu_fatbin_is(head) || is_cubin(head))) {
        CUresult e = load_code_file(fd, out);
        close(fd);
        return e;
    }
    if (n < 4 || !is_elf(head)) {
        CUresult e = n < 4 ? CUDA_ERROR_INVALID_IMAGE : load_text_file(fd, out);
        close(fd);
        return e;
    }
    close(fd);
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

static CUresult module_load(CUmodule *out, const char *path, const void *image, const struct gpu_jit_log *log)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule m;
    CUresult e = image ? load_image(image, log, &m) : load_file(path, &m);
    if (e)
        return e;
    m->ctx = gpu_ctx_owner(gpu_ctx_current());
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

GPU_API(cuModuleLoad, (CUmodule *m, const char *path), GPU_NEED_CTX, module_load(m, path, NULL, NULL))
GPU_API(cuModuleLoadData, (CUmodule *m, const void *image), GPU_NEED_CTX,
        image ? module_load(m, NULL, image, NULL) : CUDA_ERROR_INVALID_VALUE)
GPU_API(cuModuleLoadDataEx, (CUmodule *m, const void *image, unsigned n, CUjit_option *options, void **values),
        GPU_NEED_CTX,
        image ? module_load(m, NULL, image, &(struct gpu_jit_log){ n, options, values }) : CUDA_ERROR_INVALID_VALUE)
GPU_API(cuModuleLoadFatBinary, (CUmodule *m, const void *image), GPU_NEED_CTX,
        image ? module_load(m, NULL, image, NULL) : CUDA_ERROR_INVALID_VALUE)
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

/* A variable of machine code or of a text; a module of our ABI has none. */
static CUresult module_global(CUdeviceptr *at, size_t *bytes, CUmodule h, const char *name)
{
    gpu_lock();
    CUmodule m = live_module(h);
    gpu_unlock();
    if (!m)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || (!at && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return m->code ? gpu_code_global(m->code, name, at, bytes) : CUDA_ERROR_NOT_FOUND;
}

GPU_API(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name), GPU_NEED_CTX, module_function(f, m, name))
GPU_API(cuModuleGetFunctionCount, (unsigned *n, CUmodule m), GPU_NEED_CTX, module_count(n, m))
GPU_API(cuModuleEnumerateFunctions, (CUfunction *f, unsigned n, CUmodule m), GPU_NEED_CTX, module_enumerate(f, n, m))
GPU_API(cuModuleGetLoadingMode, (CUmoduleLoadingMode *mode), GPU_NEED_INIT, loading_mode(mode))
GPU_API(cuModuleGetGlobal_v2, (CUdeviceptr *p, size_t *bytes, CUmodule m, const char *name), GPU_NEED_CTX,
        module_global(p, bytes, m, name))

/* ---- libraries ---------------------------------------------------------------------------------------------------------- */

static CUresult library_load(CUlibrary *out, const char *path, const void *image, const struct gpu_jit_log *log)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUmodule m;
    CUresult e = image ? load_image(image, log, &m) : load_file(path, &m);
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

static CUresult library_global(CUdeviceptr *at, size_t *bytes, CUlibrary h, const char *name)
{
    gpu_lock();
    CUlibrary l = live_library(h);
    CUmodule m = l ? l->module : NULL;
    gpu_unlock();
    return m ? module_global(at, bytes, m, name) : CUDA_ERROR_INVALID_HANDLE;
}

/* No library here has managed variables or unified functions. */
static CUresult library_lacks(CUlibrary h, const char *name)
{
    gpu_lock();
    bool known = live_library(h) != NULL;
    gpu_unlock();
    return !known ? CUDA_ERROR_INVALID_HANDLE : !name ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

GPU_API(cuLibraryLoadData,
        (CUlibrary *l, const void *image, CUjit_option *jit, void **jit_values, unsigned n_jit, CUlibraryOption *options,
         void **values, unsigned n),
        GPU_NEED_INIT,
        ((void)options, (void)values, (void)n,
         image ? library_load(l, NULL, image, &(struct gpu_jit_log){ n_jit, jit, jit_values }) : CUDA_ERROR_INVALID_VALUE))
GPU_API(cuLibraryLoadFromFile,
        (CUlibrary *l, const char *path, CUjit_option *jit, void **jit_values, unsigned n_jit, CUlibraryOption *options,
         void **values, unsigned n),
        GPU_NEED_INIT,
        ((void)jit, (void)jit_values, (void)n_jit, (void)options, (void)values, (void)n, library_load(l, path, NULL, NULL)))
GPU_API(cuLibraryUnload, (CUlibrary l), GPU_NEED_INIT, library_unload(l))
GPU_API(cuLibraryGetKernel, (CUkernel *k, CUlibrary l, const char *name), GPU_NEED_INIT, library_kernel(k, l, name))
GPU_API(cuLibraryGetKernelCount, (unsigned *n, CUlibrary l), GPU_NEED_INIT, library_count(n, l))
GPU_API(cuLibraryEnumerateKernels, (CUkernel *k, unsigned n, CUlibrary l), GPU_NEED_INIT, library_enumerate(k, n, l))
GPU_API(cuLibraryGetModule, (CUmodule *m, CUlibrary l), GPU_NEED_CTX, library_module(m, l))
GPU_API(cuLibraryGetGlobal, (CUdeviceptr *p, size_t *bytes, CUlibrary l, const char *name), GPU_NEED_CTX,
        library_global(p, bytes, l, name))
GPU_API(cuLibraryGetManaged, (CUdeviceptr *p, size_t *bytes, CUlibrary l, const char *name), GPU_NEED_INIT,
        ((void)p, (void)bytes, library_lacks(l, name)))
GPU_API(cuLibraryGetUnifiedFunction, (void **p, CUlibrary l, const char *name), GPU_NEED_INIT,
        ((void)p, library_lacks(l, name)))
GPU_API(cuKernelGetFunction, (CUfunction *f, CUkernel k), GPU_NEED_CTX, kernel_ask(k, ASK_FUNCTION, f))
GPU_API(cuKernelGetLibrary, (CUlibrary *l, CUkernel k), GPU_NEED_INIT, kernel_ask(k, ASK_LIBRARY, l))
GPU_API(cuKernelGetName, (const char **name, CUkernel k), GPU_NEED_INIT, kernel_ask(k, ASK_NAME, name))
