/*
 * Linking: PTX texts become one, which cuModuleLoadData takes as it takes any text. What needs a real linker (machine code, libraries, NVVM) is
 * not supported.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/gpu.h"
#include "tests/simgpu/gpu_fatbin.h"
#include "tests/simgpu/gpu_ptx.h"
#include "tests/simgpu/ptx/ptx.h"

struct CUlinkState_st {
    char *text; /* all of them so far, one after the other; ends with a NUL */
    size_t n;
    struct gpu_jit_log log; /* of cuLinkCreate; its arrays are copies of the caller's, the buffers in them are not */
    CUjit_option *options;
    void **values, **given; /* `given`: the caller's array, where sizes of logs come back */
};

static CUlinkState live_link(CUlinkState s)
{
    gpu_lock();
    bool live = gpu_handle_kind(s) == GPU_LINK;
    gpu_unlock();
    return live ? s : NULL;
}

static void drop_link(CUlinkState s)
{
    free(s->text);
    free(s->options);
    free(s->values);
    free(s);
}

static CUresult link_create(unsigned n, const CUjit_option *options, void **values, CUlinkState *out)
{
    if (!out || (n && (!options || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    CUlinkState s = calloc(1, sizeof *s);
    CUresult e = s ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (!e) {
        s->options = calloc(n + 1, sizeof *s->options);
        s->values = calloc(n + 1, sizeof *s->values);
        s->text = calloc(1, 1);
        e = s->options && s->values && s->text ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!e) {
        if (n) {
            memcpy(s->options, options, n * sizeof *options);
            memcpy(s->values, values, n * sizeof *values);
        }
        s->given = values;
        s->log = (struct gpu_jit_log){ n, s->options, s->values };
        gpu_lock();
        e = gpu_handle_add(s, GPU_LINK);
        gpu_unlock();
    }
    if (e && s)
        drop_link(s);
    if (!e)
        *out = s;
    return e;
}

/* Past the directives that a module begins with: the first text's hold for all. */
static const char *past_head(const char *p)
{
    for (;;) {
        p += strspn(p, " \t\r\n");
        if (!strncmp(p, "//", 2) || !strncmp(p, ".version", 8) || !strncmp(p, ".target", 7) || !strncmp(p, ".address_size", 13)) {
            p += strcspn(p, "\n");
        } else if (!strncmp(p, "/*", 2)) {
            const char *end = strstr(p + 2, "*/");
            p = end ? end + 2 : p + strlen(p);
        } else {
            return p;
        }
    }
}

static CUresult add_text(CUlinkState s, const char *text, size_t n)
{
    char *one = malloc(n + 1);
    if (!one)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(one, text, n);
    one[n] = '\0';
    CUresult e = gpu_ptx_is(one) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
    const char *from = s->n ? past_head(one) : one;
    size_t more = strlen(from);
    char *all = e ? NULL : realloc(s->text, s->n + more + 2);
    if (all) {
        memcpy(all + s->n, from, more);
        memcpy(all + s->n + more, "\n", 2);
        s->text = all;
        s->n += more + 1;
    } else if (!e) {
        e = CUDA_ERROR_OUT_OF_MEMORY;
    }
    free(one);
    return e;
}

/* What this linker made is a text too, whatever the caller calls it. */
static CUresult link_add(CUlinkState h, CUjitInputType type, const void *data, size_t n, const char *name)
{
    CUlinkState s = live_link(h);
    if (!s || !data || !n)
        return s ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (n > 8 && gpu_fatbin_is(data)) {
        char why[256] = "";
        struct gpu_fatbin_code code;
        int e = gpu_fatbin_pick_text(data, n, PTX_ARCH, &code, why, sizeof why);
        CUresult r = e ? CUDA_ERROR_NO_BINARY_FOR_GPU : add_text(s, (const char *)code.bytes, code.n_bytes);
        if (!e)
            free(code.owned);
        else
            fprintf(stderr, "simgpu: %s cannot be linked: %s\n", name ? name : "a fat binary", why);
        return r;
    }
    if (type == CU_JIT_INPUT_PTX || *(const char *)data == '.' || *(const char *)data == '/')
        return add_text(s, data, strnlen(data, n));
    fprintf(stderr, "simgpu: %s cannot be linked: PTX alone can\n", name ? name : "a part of a program");
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult link_add_file(CUlinkState h, CUjitInputType type, const char *path)
{
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *f = fopen(path, "rb");
    if (!f)
        return CUDA_ERROR_FILE_NOT_FOUND;
    char *data = NULL;
    size_t n = 0;
    CUresult e = CUDA_SUCCESS;
    if (fseek(f, 0, SEEK_END) || ftell(f) < 0)
        e = CUDA_ERROR_OPERATING_SYSTEM;
    else if (!(data = malloc((size_t)ftell(f) + 1)))
        e = CUDA_ERROR_OUT_OF_MEMORY;
    if (!e) {
        size_t bytes = (size_t)ftell(f);
        rewind(f);
        n = fread(data, 1, bytes, f);
        e = link_add(h, type, data, n, path);
    }
    fclose(f);
    free(data);
    return e;
}

static CUresult link_complete(CUlinkState h, void **out, size_t *bytes)
{
    CUlinkState s = live_link(h);
    if (!s || !out)
        return s ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    char why[512] = "";
    struct gpu_code_file *code;
    CUresult e = gpu_ptx_open(s->text, SIZE_MAX, &code, why, sizeof why);
    if (!e)
        gpu_code_close(code);
    gpu_ptx_log(&s->log, e ? why : NULL);
    for (unsigned i = 0; i < s->log.n; i++)
        if (s->options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || s->options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            s->given[i] = s->values[i];
    if (e && !s->log.n)
        fprintf(stderr, "simgpu: PTX cannot be linked: %s\n", why);
    if (e)
        return e;
    *out = s->text;
    if (bytes)
        *bytes = s->n + 1;
    return CUDA_SUCCESS;
}

static CUresult link_destroy(CUlinkState h)
{
    gpu_lock();
    bool live = gpu_handle_kind(h) == GPU_LINK;
    if (live)
        gpu_handle_drop(h);
    gpu_unlock();
    if (live)
        drop_link(h);
    return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

GPU_API(cuLinkCreate_v2, (unsigned n, CUjit_option *options, void **values, CUlinkState *out), GPU_NEED_CTX, link_create(n, options, values, out))
GPU_API(cuLinkAddData_v2, (CUlinkState s, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned n, CUjit_option *options,
        void **values), GPU_NEED_CTX, ((void)n, (void)options, (void)values, link_add(s, type, data, bytes, name)))
GPU_API(cuLinkAddFile_v2, (CUlinkState s, CUjitInputType type, const char *path, unsigned n, CUjit_option *options, void **values), GPU_NEED_CTX,
        ((void)n, (void)options, (void)values, link_add_file(s, type, path)))
GPU_API(cuLinkComplete, (CUlinkState s, void **out, size_t *bytes), GPU_NEED_CTX, link_complete(s, out, bytes))
GPU_API(cuLinkDestroy, (CUlinkState s), GPU_NEED_CTX, link_destroy(s))
