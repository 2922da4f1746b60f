/* libFuzzer target: any bytes as a fat binary, and as a cubin, give what they hold or one clause that says where they are
 * broken; and what was read stays within the driver's limits. */
#include "tests/simgpu/gpu_cubin.h"
#include "tests/simgpu/gpu_fatbin.h"

#include <errno.h>
#include <stdint.h>
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

static void explained(int error, const char *why)
{
    require(error < 0, "errors are negative", why);
    require(error == -ENOMEM || (*why && !strchr(why, '\n')), "one clause of explanation", why);
}

static void read_cubin(const unsigned char *at, size_t n)
{
    char why[256] = "";
    struct gpu_cubin c;
    int e = gpu_cubin_read(at, n, &c, why, sizeof why);
    if (e) {
        explained(e, why);
        require(!c.n_kernels && !c.n_globals && !c.store, "nothing is left behind", why);
        return;
    }
    for (unsigned i = 0; i < c.n_kernels; i++) {
        const struct gpu_cubin_kernel *k = &c.kernels[i];
        require(*k->name && k->max_threads >= 1 && k->max_threads <= 1024, "a kernel that can be launched", k->name);
        require(k->param_bytes <= GPU_CUBIN_MAX_PARAM_BYTES, "the limit of a parameter block", k->name);
        for (unsigned j = 0; j < k->n_params; j++)
            require(k->offset[j] + k->bytes[j] <= k->param_bytes, "parameters within their block", k->name);
    }
    for (unsigned i = 0; i < c.n_globals; i++) {
        unsigned sum = 0;
        for (uint64_t j = 0; c.globals[i].init && j < c.globals[i].n_bytes; j++)
            sum += c.globals[i].init[j];
        require(sum != UINT32_MAX && *c.globals[i].name, "a variable that can be read", c.globals[i].name);
    }
    gpu_cubin_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char why[256] = "";
    struct gpu_fatbin_code code;
    int e = gpu_fatbin_pick(data, len, 80, &code, why, sizeof why);
    if (e) {
        explained(e, why);
    } else {
        read_cubin(code.bytes, code.n_bytes);
        free(code.owned);
    }
    read_cubin(data, len);
    return 0;
}
