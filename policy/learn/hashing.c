#include "policy/learn/hashing.h"
#include "policy/memory/arena.h"
#include "policy/memory/space.h"
#include "policy/process/stats.h"
#include "tracer/effects/hash.h"
#include "tracer/effects/hash_ptx.h"
#include "tracer/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, BLOCK = 256, GRID_MAX = 1056 };

/* Bytes for each range in hashing.around, laid out alike at around_at on the device: all rows of the hashes before, all rows of the hashes after, then two sums for each row. */
enum { AROUND_BYTES = 2 * sizeof(struct hash_row) + 4 * sizeof(uint64_t) };

struct hashing {
    CUfunction few, list, find;
    CUdeviceptr around_at;
    uint32_t around_most, n_before, n_around; /* around_most: ranges that around_at has room for */
    bool around_tried;
    uint64_t around[HASHING_AROUND_MOST * AROUND_BYTES / sizeof(uint64_t)];
    CUdeviceptr table, out;
    uint32_t n_rows; /* rows that table and out have room for */
    struct hash_row rows[ROWS];
    bool usable;
};

static int find_functions(struct device *d, struct hashing *h, CUmodule m)
{
    return d->drv->cuModuleGetFunction(&h->few, m, "remat_hash_few") == CUDA_SUCCESS &&
                   d->drv->cuModuleGetFunction(&h->list, m, "remat_hash_list") == CUDA_SUCCESS &&
                   d->drv->cuModuleGetFunction(&h->find, m, "remat_find_list") == CUDA_SUCCESS
               ? 0 : -EIO;
}

CUmodule hashing_load(const struct drv *drv)
{
    CUmodule m;
    (void)loader_asks("a module of the driver's"); /* the driver may have to load its compiler */
    return drv->cuModuleLoadData(&m, hash_ptx) == CUDA_SUCCESS ? m : NULL;
}

bool hashing_is_loaded(const struct device *d) { return d->code_loaded; }

void hashing_loaded(struct device *d, CUmodule m)
{
    d->code = m;
    d->code_loaded = true;
}

int hashing_init(struct device *d)
{
    if (d->hashing)
        return d->hashing->usable ? 0 : -ENOTSUP;
    struct hashing *h = d->hashing = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->n_rows = arena_most_small(d, ROWS, sizeof *h->rows);
    h->usable = d->code && !find_functions(d, h, d->code) && (h->table = arena_scratch(d, h->n_rows * sizeof *h->rows)) && (h->out = arena_scratch(d, h->n_rows * 16ull));
    return h->usable ? 0 : -ENOTSUP;
}

static unsigned grid_of(uint64_t bytes)
{
    uint64_t grid = (bytes / 8 + BLOCK - 1) / BLOCK;
    return (unsigned)(grid < 1 ? 1 : grid > GRID_MAX ? GRID_MAX : grid);
}

/* One launch of `kernel` over n rows. `tells`: its first argument, the rows or their address; `more`: its third argument. */
static int queue_launch(struct device *d, CUfunction kernel, CUstream stream, void *tells, const struct hash_row *rows, uint32_t n, void *more)
{
    uint64_t all_bytes = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        all_bytes += rows[i].bytes;
        most = rows[i].bytes > most ? rows[i].bytes : most;
    }
    void *params[] = {tells, &all_bytes, more};
    return !n || d->drv->cuLaunchKernel(kernel, grid_of(most), n, 1, BLOCK, 1, 1, 0, stream, params, NULL) == CUDA_SUCCESS ? 0 : -EIO;
}

/* Queues the hash kernel over n rows, which lie at `at` on the device. */
static int queue_rows(struct device *d, CUstream stream, CUdeviceptr at, const struct hash_row *rows, uint32_t n)
{
    return queue_launch(d, d->hashing->list, stream, &at, rows, n, NULL);
}

/* Runs `kernel` over the ranges on STREAM_IN, and brings two sums for each range into out[]; the host waits for that stream. */
static int over_ranges(struct device *d, CUfunction kernel, void *more, const struct hash_range *r, uint32_t n, uint64_t *out)
{
    struct hashing *h = d->hashing;
    CUstream s = d->stream[STREAM_IN];
    for (uint32_t done = 0; done < n;) {
        uint32_t part = n - done < h->n_rows ? n - done : h->n_rows;
        for (uint32_t i = 0; i < part; i++)
            h->rows[i] = (struct hash_row){.ptr = r[done + i].ptr, .bytes = r[done + i].bytes, .out = h->out + i * 16};
        if (d->drv->cuMemsetD8Async(h->out, 0, part * 16ull, s) != CUDA_SUCCESS ||
            d->drv->cuMemcpyHtoDAsync_v2(h->table, h->rows, part * sizeof *h->rows, s) != CUDA_SUCCESS ||
            queue_launch(d, kernel, s, &h->table, h->rows, part, more) ||
            d->drv->cuMemcpyDtoHAsync_v2(out + 2 * done, h->out, part * 16ull, s) != CUDA_SUCCESS ||
            d->drv->cuStreamSynchronize(s) != CUDA_SUCCESS)
            return -EIO;
        done += part;
    }
    return 0;
}

int hashing_now(struct device *d, const struct hash_range *r, uint32_t n, uint64_t *out) { return over_ranges(d, d->hashing->list, NULL, r, n, out); }

int hashing_find(struct device *d, const struct hash_range *r, uint32_t n, const struct hash_range spans[HASHING_SPANS], uint64_t *out)
{
    struct find_spans where;
    for (uint32_t k = 0; k < FIND_SPANS; k++) {
        where.at[k].low = spans[k].ptr;
        where.at[k].bytes = spans[k].bytes;
    }
    return over_ranges(d, d->hashing->find, &where, r, n, out);
}

uint32_t hashing_around_most(struct device *d)
{
    struct hashing *h = d->hashing;
    if (!h || !h->usable || h->around_tried)
        return h ? h->around_most : 0;
    h->around_tried = true;
    uint32_t n = mem_pages_are_many(d) ? arena_most_small(d, HASHING_AROUND_MOST, AROUND_BYTES) : 0;
    h->around_at = n ? arena_scratch(d, n * (uint64_t)AROUND_BYTES) : 0;
    h->around_most = h->around_at ? n : 0;
    return h->around_most;
}

int hashing_before(struct device *d, CUstream stream, const struct hash_range *r, uint32_t n_before, uint32_t n)
{
    struct hashing *h = d->hashing;
    struct hash_row *rows = (struct hash_row *)h->around;
    CUdeviceptr sums = h->around_at + 2 * n * sizeof *rows;
    h->n_before = n_before;
    h->n_around = n;
    memset(h->around, 0, n * (size_t)AROUND_BYTES);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = (struct hash_row){.ptr = r[i].ptr, .bytes = r[i].bytes, .out = sums + i * 16};
        rows[n + i] = (struct hash_row){.ptr = r[i].ptr, .bytes = r[i].bytes, .out = sums + (n + i) * 16};
    }
    if (n && d->drv->cuMemcpyHtoDAsync_v2(h->around_at, h->around, n * (size_t)AROUND_BYTES, stream) != CUDA_SUCCESS)
        return -EIO;
    return queue_rows(d, stream, h->around_at, rows, n_before);
}

int hashing_after(struct device *d, CUstream stream)
{
    const struct hashing *h = d->hashing;
    const struct hash_row *rows = (const struct hash_row *)h->around;
    return queue_rows(d, stream, h->around_at + h->n_around * sizeof *rows, rows + h->n_around, h->n_around);
}

int hashing_around(struct device *d, uint64_t *before, uint64_t *after)
{
    struct hashing *h = d->hashing;
    uint64_t sums[4 * HASHING_AROUND_MOST];
    uint32_t n = h->n_around;
    if (n && d->drv->cuMemcpyDtoH_v2(sums, h->around_at + 2 * n * sizeof(struct hash_row), n * 32ull) != CUDA_SUCCESS)
        return -EIO;
    memcpy(before, sums, h->n_before * 16ull);
    memcpy(after, sums + 2 * n, n * 16ull);
    return 0;
}

_Static_assert(HASHING_FEW == HASH_FEW && HASHING_SPANS == FIND_SPANS, "the header says what the device code does");

int hashing_queue(struct device *d, CUstream stream, const struct hash_range *r, const CUdeviceptr *out, uint32_t n)
{
    struct hash_few few = {0};
    for (uint32_t i = 0; i < n; i++)
        few.row[i] = (struct hash_row){.ptr = r[i].ptr, .bytes = r[i].bytes, .out = out[i]};
    uint64_t began = stats_driver_begins(d);
    int e = queue_launch(d, d->hashing->few, stream, &few, few.row, n, NULL);
    stats_driver_ended(d, began);
    return e;
}
