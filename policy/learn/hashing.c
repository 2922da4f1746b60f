#include "policy/learn/hashing.h"
#include "tracer/effects/hash.h"
#include "tracer/effects/hash_ptx.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, BLOCK = 256, GRID_MAX = 1056 };

struct hashing {
    CUfunction one, list;
    CUdeviceptr table, out;
    uint32_t n_rows; /* that table and out have room for */
    struct hash_row rows[ROWS];
    bool usable;
};

static int find_functions(struct device *d, struct hashing *h, CUmodule m)
{
    return d->drv->cuModuleGetFunction(&h->one, m, "remat_hash") == CUDA_SUCCESS &&
                   d->drv->cuModuleGetFunction(&h->list, m, "remat_hash_list") == CUDA_SUCCESS
               ? 0 : -EIO;
}

static int load(struct device *d, struct hashing *h)
{
    CUmodule m;
    if (d->drv->cuModuleLoadData(&m, hash_ptx) == CUDA_SUCCESS)
        return find_functions(d, h, m);
    /* the simulated GPU reads modules of its own kind, which lie beside it */
    Dl_info me;
    char path[4096];
    const char *slash;
    if (!d->drv->cuModuleLoad || !dladdr((void *)hashing_init, &me) || !(slash = strrchr(me.dli_fname, '/')))
        return -ENOTSUP;
    int n = snprintf(path, sizeof path, "%.*s/simgpu/remat_kernels.so", (int)(slash - me.dli_fname), me.dli_fname);
    if (n < 0 || (size_t)n >= sizeof path || d->drv->cuModuleLoad(&m, path) != CUDA_SUCCESS)
        return -ENOTSUP;
    return find_functions(d, h, m);
}

int hashing_init(struct device *d)
{
    if (d->hashing)
        return d->hashing->usable ? 0 : -ENOTSUP;
    struct hashing *h = d->hashing = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->n_rows = ROWS;
    while (h->n_rows > 1 && !mem_is_small(d, h->n_rows * sizeof *h->rows))
        h->n_rows /= 2; /* pages may be small */
    h->usable = !load(d, h) && (h->table = mem_scratch(d, h->n_rows * sizeof *h->rows)) && (h->out = mem_scratch(d, h->n_rows * 16ull));
    return h->usable ? 0 : -ENOTSUP;
}

static unsigned grid_of(uint64_t bytes)
{
    uint64_t grid = (bytes / 8 + BLOCK - 1) / BLOCK;
    return (unsigned)(grid < 1 ? 1 : grid > GRID_MAX ? GRID_MAX : grid);
}

int hashing_now(struct device *d, const struct hash_range *r, uint32_t n, uint64_t *out)
{
    struct hashing *h = d->hashing;
    CUstream s = d->stream[STREAM_IN];
    for (uint32_t done = 0; done < n;) {
        uint32_t part = n - done < h->n_rows ? n - done : h->n_rows;
        uint64_t all_bytes = 0, most = 0;
        for (uint32_t i = 0; i < part; i++) {
            h->rows[i] = (struct hash_row){.ptr = r[done + i].ptr, .bytes = r[done + i].bytes, .out = h->out + i * 16};
            all_bytes += r[done + i].bytes;
            most = r[done + i].bytes > most ? r[done + i].bytes : most;
        }
        void *params[] = {&h->table, &all_bytes};
        if (d->drv->cuMemsetD8Async(h->out, 0, part * 16ull, s) != CUDA_SUCCESS ||
            d->drv->cuMemcpyHtoDAsync_v2(h->table, h->rows, part * sizeof *h->rows, s) != CUDA_SUCCESS ||
            d->drv->cuLaunchKernel(h->list, grid_of(most), part, 1, BLOCK, 1, 1, 0, s, params, NULL) != CUDA_SUCCESS ||
            d->drv->cuMemcpyDtoHAsync_v2(out + 2 * done, h->out, part * 16ull, s) != CUDA_SUCCESS ||
            d->drv->cuStreamSynchronize(s) != CUDA_SUCCESS)
            return -EIO;
        done += part;
    }
    return 0;
}

int hashing_queue(struct device *d, CUstream stream, const struct hash_range *r, uint32_t n, CUdeviceptr out)
{
    for (uint32_t i = 0; i < n; i++) {
        CUdeviceptr to = out + i * 16ull;
        void *params[] = {(void *)&r[i].ptr, (void *)&r[i].bytes, &to};
        if (d->drv->cuLaunchKernel(d->hashing->one, grid_of(r[i].bytes), 1, 1, BLOCK, 1, 1, 0, stream, params, NULL) != CUDA_SUCCESS)
            return -EIO;
    }
    return 0;
}
