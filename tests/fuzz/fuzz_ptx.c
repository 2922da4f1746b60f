/* libFuzzer target: any bytes as PTX give a program whose kernels and variables can be looked at, or one clause that says where they are broken. */
#include "tests/simgpu/ptx/ptx.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(int truth, const char *what, const char *why)
{
    if (!truth) {
        fprintf(stderr, "broken promise: %s (%s)\n", what, why);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char why[256] = "";
    struct ptx_program *p;
    int e = ptx_read((const char *)data, len, &p, why, sizeof why);
    if (e) {
        require(e == -EINVAL || e == -ENOTSUP || e == -ENOMEM, "an error that the header names", why);
        require(e == -ENOMEM || (*why && !strchr(why, '\n')), "one clause of explanation", why);
        return 0;
    }
    for (unsigned i = 0; i < ptx_kernels(p); i++) {
        const struct ptx_kernel *k = ptx_kernel(p, i);
        require(*k->name && k->max_threads <= PTX_MAX_THREADS && k->static_shared_bytes <= PTX_MAX_SHARED, "a kernel that can be launched", k->name);
        for (unsigned j = 0; j < k->n_params; j++)
            require((uint64_t)k->offset[j] + k->bytes[j] <= k->param_bytes, "parameters within their block", k->name);
    }
    unsigned n = ptx_variables(p);
    uint64_t *at = calloc(n + 1, sizeof *at);
    for (unsigned i = 0; at && i < n; i++) {
        const struct ptx_variable *v = ptx_variable(p, i);
        if (!v->init || v->bytes > 1 << 20)
            continue;
        unsigned char *init = malloc(v->bytes + 1);
        if (init) {
            memcpy(init, v->init, v->bytes);
            ptx_variable_addresses(p, i, at, init);
        }
        free(init);
    }
    free(at);
    ptx_free(p);
    return 0;
}
