/*
 * See gpu_code.h.
 */
#include "tests/simgpu/gpu_code.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_fatbin.h"
#include "tests/simgpu/gpu_ptx.h"
#include "tests/simgpu/ptx/ptx.h"

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

static CUresult refuse(const char *why, CUresult e)
{
    fprintf(stderr, "simgpu: cannot load machine code: %s\n", why);
    return e;
}

CUresult gpu_code_fill(struct gpu_code_file *f, unsigned arch)
{
    const struct gpu_cubin *c = &f->cubin;
    size_t n_params = 0;
    for (unsigned i = 0; i < c->n_kernels; i++)
        n_params += c->kernels[i].n_params;
    f->kernels = calloc(c->n_kernels + 1, sizeof *f->kernels);
    f->codes = calloc(c->n_kernels + 1, sizeof *f->codes);
    f->sizes = calloc(n_params + 1, sizeof *f->sizes);
    if (!f->kernels || !f->codes || !f->sizes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t *size = f->sizes;
    for (unsigned i = 0; i < c->n_kernels; i++) {
        const struct gpu_cubin_kernel *k = &c->kernels[i];
        f->kernels[i] = (simgpu_kernel){ .name = k->name, .n_params = k->n_params, .param_bytes = size };
        for (unsigned j = 0; j < k->n_params; j++)
            *size++ = k->bytes[j];
        f->codes[i].meta = (struct catalogue_kernel){ .name = k->name, .n_params = k->n_params, .offset = k->offset,
                                                      .bytes = k->bytes, .param_bytes = k->param_bytes,
                                                      .max_threads = k->max_threads,
                                                      .static_shared_bytes = k->static_shared_bytes,
                                                      .registers = k->registers, .arch = arch,
                                                      .beside = c->names, .n_beside = c->n_kernels };
    }
    return CUDA_SUCCESS;
}

CUresult gpu_code_open(const void *image, size_t n, struct gpu_code_file **out)
{
    char why[256];
    struct gpu_fatbin_code code = { .bytes = image, .n_bytes = n, .arch = GPU_CODE_ARCH };
    if (gpu_fatbin_is(image)) {
        int e = gpu_fatbin_pick(image, n, GPU_CODE_ARCH, &code, why, sizeof why);
        if (e == -ENOENT) {
            char text_why[256];
            struct gpu_fatbin_code text;
            int none = gpu_fatbin_pick_text(image, n, GPU_CODE_ARCH, &text, text_why, sizeof text_why);
            if (!none) {
                CUresult r = gpu_ptx_open((const char *)text.bytes, text.n_bytes, out, why, sizeof why);
                free(text.owned);
                return r ? refuse(why, r) : r;
            }
        }
        if (e)
            return e == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                                : refuse(why, e == -EINVAL ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    struct gpu_code_file *f = calloc(1, sizeof *f);
    int e = f ? gpu_cubin_read(code.bytes, code.n_bytes, &f->cubin, why, sizeof why) : -ENOMEM;
    if (!e && !gpu_fatbin_runs(f->cubin.arch, GPU_CODE_ARCH)) {
        snprintf(why, sizeof why, "it is for sm_%u, this device is sm_%u", f->cubin.arch, GPU_CODE_ARCH);
        e = -ENOTSUP;
    }
    CUresult r = !e              ? gpu_code_fill(f, f->cubin.arch)
                 : e == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                                : refuse(why, e == -ENOTSUP ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE);
    free(code.owned);
    if (r)
        gpu_code_close(f);
    else
        *out = f;
    return r;
}

/* ---- variables ------------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t variables_lock = PTHREAD_MUTEX_INITIALIZER;

/* Variables live in the context that first asks for one, one context a device; when it is gone, so are they. NULL: no
   memory. */
static CUdeviceptr *variables_in(struct gpu_code_file *f, CUcontext ctx)
{
    CUdeviceptr **at = &f->variables[ctx->device].at;
    if (!*at || f->variables[ctx->device].ctx_id != ctx->id) {
        free(*at);
        *at = calloc(f->cubin.n_globals + 1, sizeof **at);
        f->variables[ctx->device].ctx_id = ctx->id;
    }
    return *at;
}

static CUresult make_variable(const struct gpu_cubin_global *g, CUdeviceptr *out)
{
    CUdeviceptr at;
    CUresult e = gpu_alloc_linear(&at, g->n_bytes);
    if (!e)
        e = g->init ? cuMemcpyHtoD_v2(at, g->init, g->n_bytes) : cuMemsetD8_v2(at, 0, g->n_bytes);
    if (!e)
        *out = at;
    return e;
}

/* Those of a text, all at once: some begin as addresses of others. */
static CUresult make_all(struct gpu_code_file *f, CUdeviceptr *variables)
{
    bool made = true;
    for (unsigned i = 0; i < f->cubin.n_globals; i++) {
        made &= variables[i] != 0;
        CUresult e = variables[i] ? CUDA_SUCCESS : gpu_alloc_linear(&variables[i], f->cubin.globals[i].n_bytes);
        if (e)
            return e;
    }
    if (!made)
        gpu_ptx_begin(f, variables);
    return CUDA_SUCCESS;
}

CUresult gpu_code_variables(struct gpu_code_file *f)
{
    if (!f->cubin.n_globals)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&variables_lock);
    CUdeviceptr *variables = variables_in(f, gpu_ctx_current());
    CUresult e = variables ? make_all(f, variables) : CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&variables_lock);
    return e;
}

CUresult gpu_code_global(struct gpu_code_file *f, const char *name, CUdeviceptr *at, size_t *bytes)
{
    pthread_mutex_lock(&variables_lock);
    CUdeviceptr *variables = variables_in(f, gpu_ctx_current());
    CUresult e = variables ? f->ptx ? make_all(f, variables) : CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (!e)
        e = CUDA_ERROR_NOT_FOUND;
    else
        variables = NULL;
    for (unsigned i = 0; variables && i < f->cubin.n_globals; i++) {
        const struct gpu_cubin_global *g = &f->cubin.globals[i];
        if (strcmp(g->name, name))
            continue;
        e = variables[i] ? CUDA_SUCCESS : make_variable(g, &variables[i]);
        if (!e && at)
            *at = variables[i];
        if (!e && bytes)
            *bytes = g->n_bytes;
        break;
    }
    pthread_mutex_unlock(&variables_lock);
    return e;
}

void gpu_code_close(struct gpu_code_file *f)
{
    if (!f)
        return;
    gpu_cubin_free(&f->cubin);
    gpu_ptx_close(f->ptx);
    free(f->kernels);
    free(f->codes);
    free(f->sizes);
    for (int i = 0; i < GPU_MAX_DEVICES; i++)
        free(f->variables[i].at);
    free(f);
}

/* ---- the catalogue ------------------------------------------------------------------------------------------------------------ */

static pthread_mutex_t bind_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t catalogue_once = PTHREAD_ONCE_INIT;
static const struct catalogue_info *catalogue;

static void catalogue_path(char *out, size_t room)
{
    const char *given = getenv("SIMGPU_CATALOGUE");
    Dl_info self;
    if (given && *given) {
        snprintf(out, room, "%s", given);
    } else if (dladdr((void *)(uintptr_t)catalogue_path, &self) && self.dli_fname && strrchr(self.dli_fname, '/')) {
        int folder = (int)(strrchr(self.dli_fname, '/') - self.dli_fname);
        snprintf(out, room, "%.*s/../simcuda/catalogue.so", folder, self.dli_fname);
    } else {
        snprintf(out, room, "catalogue.so");
    }
}

static void open_catalogue(void)
{
    char path[4096];
    catalogue_path(path, sizeof path);
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct catalogue_info *info = dl ? dlsym(dl, CATALOGUE_SYMBOL) : NULL;
    if (!info)
        fprintf(stderr, "simgpu: no catalogue of kernels: %s (SIMGPU_CATALOGUE names another)\n", dlerror());
    else if (info->abi != CATALOGUE_ABI)
        fprintf(stderr, "simgpu: the catalogue of kernels %s has ABI %u, not %u: build it again\n", path, info->abi,
                CATALOGUE_ABI);
    else
        catalogue = info;
}

static const char *reason(int error, char *out, size_t room, const struct catalogue_kernel *k)
{
    switch (error) {
    case -ENOENT: return "no entry for this function";
    case -ENOSYS: return "its template has an entry, but not for this functor or type";
    case -EPROTO:
        snprintf(out, room, "its %u parameters of %u bytes are not what the entry expects", k->n_params, k->param_bytes);
        return out;
    case -ENOMEM: return "no memory";
    default: return "there is no catalogue";
    }
}

static void say_missing(const struct catalogue_kernel *k, int error)
{
    char name[8192], text[128];
    if (catalogue)
        catalogue->describe(k->name, name, sizeof name);
    else
        snprintf(name, sizeof name, "%s", k->name);
    fprintf(stderr, "simgpu: a kernel cannot be launched (%s; to add one: tests/simcuda/README.md): %s\n",
            reason(error, text, sizeof text, k), name);
}

/* A text is bound from the beginning; one instruction that is not known keeps its kernel from being launched. */
static CUresult bind_text(struct gpu_code *c)
{
    if (c->ptx->missing && atomic_exchange(&c->state, GPU_CODE_MISSING) != GPU_CODE_MISSING)
        fprintf(stderr, "simgpu: kernel %s cannot be launched: %s\n", c->ptx->name, c->ptx->missing);
    return c->ptx->missing ? CUDA_ERROR_NOT_SUPPORTED : gpu_ptx_prepare(c);
}

CUresult gpu_code_bind(struct gpu_code *c)
{
    if (c->ptx)
        return bind_text(c);
    if (c->state == GPU_CODE_BOUND)
        return CUDA_SUCCESS;
    pthread_once(&catalogue_once, open_catalogue);
    pthread_mutex_lock(&bind_lock);
    if (c->state == GPU_CODE_UNBOUND) {
        int e = catalogue ? catalogue->find(&c->meta, &c->bound) : -ENXIO;
        if (e)
            say_missing(&c->meta, e);
        c->state = e ? GPU_CODE_MISSING : GPU_CODE_BOUND;
    }
    pthread_mutex_unlock(&bind_lock);
    return c->state == GPU_CODE_BOUND ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

uint64_t gpu_code_chaos(void)
{
    static _Atomic uint64_t launches;
    if (!gpu_cfg.chaos)
        return 0;
    uint64_t x = gpu_cfg.chaos_seed + ++launches * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return x ? x : 1;
}
