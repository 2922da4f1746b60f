/* See gpu_ptx.h. */
#include "tests/simgpu/gpu_ptx.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu_touched.h"
#include "tests/simgpu/ptx/ptx.h"

struct gpu_ptx {
    struct ptx_program *program;
    struct gpu_code_file *file;
    struct gpu_ptx_kernel { struct gpu_ptx *of; unsigned index; } *kernels; /* rows of the bindings */
};

bool gpu_ptx_is(const void *image)
{
    const char *p = image;
    for (;;) {
        while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
            p++;
        if (p[0] == '/' && p[1] == '/') {
            while (*p && *p != '\n')
                p++;
        } else if (p[0] == '/' && p[1] == '*') {
            for (p += 2; *p && !(p[0] == '*' && p[1] == '/'); p++)
                ;
            p += *p ? 2 : 0;
        } else {
            return !strncmp(p, ".version", 8);
        }
    }
}

/* ---- launches -------------------------------------------------------------------------------------------------------------- */

static void fail(void *who, enum ptx_fault what, const char *text)
{
    static const CUresult codes[] = { [PTX_ILLEGAL_ADDRESS] = CUDA_ERROR_ILLEGAL_ADDRESS, [PTX_MISALIGNED] = CUDA_ERROR_MISALIGNED_ADDRESS,
                                      [PTX_FAILED] = CUDA_ERROR_LAUNCH_FAILED, [PTX_ASSERT] = CUDA_ERROR_ASSERT,
                                      [PTX_NO_MEMORY] = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES };
    (void)who;
    fprintf(stderr, "simgpu: %s\n", text);
    gpu_fault_leave(codes[what]);
}

static struct ptx_launch launch_of(const struct catalogue_launch *l, void *const *params, const struct gpu_ptx_kernel *k)
{
    return (struct ptx_launch){ .program = k->of->program, .kernel = k->index,
                                .grid = { l->grid.x, l->grid.y, l->grid.z }, .block = { l->block.x, l->block.y, l->block.z },
                                .dynamic_shared_bytes = l->shared_bytes,
                                .params = l->kernel->n_params ? (char *)params[0] - l->kernel->offset[0] : NULL,
                                .variables = (const uint64_t *)k->of->file->variables[l->device].at,
                                .sm_count = l->sm_count, .chaos = l->chaos, .cooperative = l->cooperative, .fail = fail };
}

static void run(const struct catalogue_launch *l, void *const *params, const void *row)
{
    struct ptx_launch p = launch_of(l, params, row);
    bool told = gpu_touched_begin(l, &p);
    ptx_run(&p);
    if (told)
        gpu_touched_end(&p);
}

/* Of each thread as if it went through its instructions once: what loops do is not known before they run. */
static void cost(const struct catalogue_launch *l, void *const *params, const void *row, uint64_t *flops, uint64_t *bytes)
{
    const struct gpu_ptx_kernel *k = row;
    const struct ptx_kernel *says = ptx_kernel(k->of->program, k->index);
    uint64_t threads = (uint64_t)l->grid.x * l->grid.y * l->grid.z * l->block.x * l->block.y * l->block.z;
    struct ptx_launch p = launch_of(l, params, row);
    gpu_touched_launched(l, &p);
    *flops = threads * says->flops_a_thread;
    *bytes = threads * says->bytes_a_thread;
}

CUresult gpu_ptx_prepare(const struct gpu_code *c)
{
    const struct gpu_ptx_kernel *k = c->bound.row;
    return gpu_code_variables(k->of->file);
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

static CUresult fill(struct gpu_ptx *p, struct gpu_cubin *c)
{
    unsigned n = ptx_kernels(p->program), m = ptx_variables(p->program);
    c->kernels = calloc(n + 1, sizeof *c->kernels);
    c->names = calloc(n + 1, sizeof *c->names);
    c->globals = calloc(m + 1, sizeof *c->globals);
    p->kernels = calloc(n + 1, sizeof *p->kernels);
    if (!c->kernels || !c->names || !c->globals || !p->kernels)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->arch = PTX_ARCH;
    for (; c->n_kernels < n; c->n_kernels++) {
        const struct ptx_kernel *from = ptx_kernel(p->program, c->n_kernels);
        struct gpu_cubin_kernel *to = &c->kernels[c->n_kernels];
        size_t bytes = from->n_params * sizeof(uint32_t);
        *to = (struct gpu_cubin_kernel){ .name = from->name, .offset = malloc(bytes + 1), .bytes = malloc(bytes + 1), .n_params = from->n_params,
                                         .param_bytes = from->param_bytes, .max_threads = from->max_threads,
                                         .static_shared_bytes = from->static_shared_bytes, .registers = from->registers };
        if (!to->offset || !to->bytes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(to->offset, from->offset, bytes);
        memcpy(to->bytes, from->bytes, bytes);
        c->names[c->n_kernels] = from->name;
        p->kernels[c->n_kernels] = (struct gpu_ptx_kernel){ p, c->n_kernels };
    }
    for (; c->n_globals < m; c->n_globals++) {
        const struct ptx_variable *v = ptx_variable(p->program, c->n_globals);
        c->globals[c->n_globals] = (struct gpu_cubin_global){ v->name, v->bytes ? v->bytes : 1, v->init };
    }
    return CUDA_SUCCESS;
}

CUresult gpu_ptx_open(const char *text, size_t n, struct gpu_code_file **out, char *why, size_t room)
{
    struct gpu_ptx *p = calloc(1, sizeof *p);
    struct gpu_code_file *f = calloc(1, sizeof *f);
    if (!p || !f) {
        free(p);
        free(f);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    f->ptx = p;
    p->file = f;
    int e = ptx_read(text, n == SIZE_MAX ? strlen(text) : strnlen(text, n), &p->program, why, room);
    CUresult r = e == 0         ? fill(p, &f->cubin)
                 : e == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
                 : e == -ENOTSUP && strstr(why, "of PTX:") ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                                                           : CUDA_ERROR_INVALID_PTX;
    for (unsigned i = 0; !r && i < ptx_variables(p->program); i++)
        if (ptx_variable(p->program, i)->external) {
            snprintf(why, room, "variable %s is defined nowhere", ptx_variable(p->program, i)->name);
            r = CUDA_ERROR_INVALID_PTX;
        }
    if (!r)
        r = gpu_code_fill(f, PTX_ARCH);
    for (unsigned i = 0; !r && i < f->cubin.n_kernels; i++) {
        struct gpu_code *c = &f->codes[i];
        c->ptx = ptx_kernel(p->program, i);
        c->bound = (struct catalogue_binding){ run, cost, &p->kernels[i] };
    }
    if (r)
        gpu_code_close(f);
    else
        *out = f;
    return r;
}

void gpu_ptx_close(struct gpu_ptx *p)
{
    if (!p)
        return;
    ptx_free(p->program);
    free(p->kernels);
    free(p);
}

/* Nobody has seen this memory yet: it is written here and now. */
void gpu_ptx_begin(const struct gpu_code_file *f, const CUdeviceptr *at)
{
    gpu_phys_open(GPU_EVERY_DEVICE);
    for (unsigned i = 0; i < f->cubin.n_globals; i++) {
        const struct ptx_variable *v = ptx_variable(f->ptx->program, i);
        unsigned char *to = (unsigned char *)(uintptr_t)at[i];
        if (v->init)
            memcpy(to, v->init, v->bytes);
        else
            memset(to, 0, v->bytes);
        ptx_variable_addresses(f->ptx->program, i, (const uint64_t *)at, to);
    }
    gpu_phys_close();
}

/* ---- what a compiler would say ------------------------------------------------------------------------------------------------- */

/* A size is an option's value itself, and comes back there. */
static void fill_log(const struct gpu_jit_log *log, CUjit_option buffer, CUjit_option size, const char *text)
{
    char *at = NULL;
    size_t room = 0;
    void **back = NULL;
    for (unsigned i = 0; i < log->n && log->options && log->values; i++) {
        if (log->options[i] == buffer)
            at = log->values[i];
        if (log->options[i] == size) {
            room = (uintptr_t)log->values[i] & 0xffffffffu;
            back = &log->values[i];
        }
    }
    size_t n = strlen(text);
    if (at && room) {
        n = n < room ? n : room - 1;
        memcpy(at, text, n);
        at[n] = '\0';
    }
    if (back)
        *back = (void *)(uintptr_t)(at && room && *text ? n + 1 : 0);
}

void gpu_ptx_log(const struct gpu_jit_log *log, const char *text)
{
    char line[600];
    snprintf(line, sizeof line, text ? "ptxas application ptx input, %s" : "%s", text ? text : "");
    fill_log(log, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, "");
    fill_log(log, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, line);
}

/* ---- modules in C that stand for a text ------------------------------------------------------------------------------------------- */

static bool stands_for(const char *path, const char *text)
{
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *const *its = dl ? dlsym(dl, "simgpu_stands_for") : NULL;
    bool same = its && !strcmp(*its, text);
    if (dl)
        dlclose(dl);
    return same;
}

bool gpu_ptx_twin(const char *text, char *path, size_t room)
{
    const char *given = getenv("SIMGPU_TWINS");
    Dl_info self;
    if (!given) {
        if (!dladdr((void *)(uintptr_t)gpu_ptx_twin, &self) || !self.dli_fname || !strrchr(self.dli_fname, '/'))
            return false;
        snprintf(path, room, "%.*s/remat_kernels.so", (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
        return stands_for(path, text);
    }
    while (*given) {
        size_t n = strcspn(given, ":");
        snprintf(path, room, "%.*s", (int)n, given);
        if (n && stands_for(path, text))
            return true;
        given += n + (given[n] == ':');
    }
    return false;
}
