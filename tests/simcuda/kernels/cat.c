/*
 * Concatenation: CatArrayBatchedCopy and its variants. Blocks along y are inputs. Parameters:
 *   (out *, inputs by value, { out size[4]; out stride[4] }, int dimension, unsigned stride of that dimension)
 * inputs <batch, strided>: { T *data[batch]; u32 offset[batch]; u32 dim size[batch]; u32 elements[batch]; bool contiguous[batch];
 *   { u32 size[4]; u32 stride[4] } shape[strided] }. Only as many entries as there are inputs are initialised. The vectorized
 * variant counts in vectors of 16 bytes.
 */
#include <string.h>

#include "tests/simcuda/kernels/kern.h"

static uint32_t locate(const uint32_t *size, const uint32_t *stride, int dims, uint32_t dim_size, int cat_dim, uint32_t i)
{
    uint32_t off = 0;
    for (int d = dims - 1; d >= 1; d--) {
        uint32_t cur = d == cat_dim ? dim_size : size[d];
        off += i % cur * stride[d];
        i /= cur;
    }
    return off + i * stride[0];
}

static void run(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    size_t es = dtype_bytes(k->t[0]);
    int dims = (int)k->v[2], batch = (int)k->v[3], cat_dim = A(int, 3);
    bool vectors = !strcmp(k->name.base, "CatArrayBatchedCopy_vectorized");
    uint32_t dim_stride = A(uint32_t, 4), vec = vectors ? (uint32_t)k->v[6] : 1;
    const char *meta = p[1];
    const uint32_t *out_size = p[2], *out_stride = out_size + 4;
    char *const *in = (char *const *)meta;
    const uint32_t *offset = (const uint32_t *)(meta + 8 * batch), *dim_size = offset + batch, *elements = dim_size + batch;
    const uint8_t *contiguous = (const uint8_t *)(elements + batch);
    const uint32_t *shape = (const uint32_t *)(meta + 21 * batch + (4 - 21 * batch % 4) % 4);
    size_t unit = es * vec;
    bool plain = !strcmp(k->name.base, "CatArrayBatchedCopy");
    for (unsigned y = 0; y < l->grid.y; y++) {
        uint32_t n = elements[y] / vec, ds = vectors ? dim_size[y] * dim_stride / vec : dim_size[y];
        char *out = A(char *, 0) + (size_t)offset[y] * dim_stride * es;
        bool strided = plain && !contiguous[y];
        /* runs of the innermost dimension are dense in both, where they are */
        uint32_t run = dims > 0 ? (dims - 1 == cat_dim || dims == 1 ? ds : out_size[dims - 1]) : 1;
        if (strided || (dims > 1 && out_stride[dims - 1] != 1) || !run) run = 1;
        for (uint32_t i = 0; i < n; i += run) {
            uint32_t m = KERN_MIN(run, n - i);
            uint32_t from = strided ? locate(shape + 8 * y, shape + 8 * y + 4, dims, dim_size[y], cat_dim, i) : i;
            uint32_t to = locate(out_size, out_stride, dims, ds, cat_dim, i);
            memcpy(out + to * unit, in[y] + from * unit, m * unit);
        }
    }
}

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    int batch = (int)k->v[3];
    const uint32_t *elements = (const uint32_t *)((const char *)p[1] + 8 * batch) + 2 * batch;
    uint64_t n = 0;
    for (unsigned y = 0; y < l->grid.y && (int)y < batch; y++) n += elements[y];
    *flops = 0;
    *bytes = 2 * n * dtype_bytes(k->t[0]);
}

/* The sizes of the inputs' struct are those of 32-bit indices. */
static int bind(struct kern *k)
{
    int batch = (int)k->v[3], strided = (int)k->v[4];
    if (k->t[1] != DT_U32 || dtype_bytes(k->t[0]) == 0) return -ENOSYS;
    uint32_t n = (uint32_t)(21 * batch);
    n = (n + 3) / 4 * 4 + 32 * (uint32_t)strided;
    return (n + 7) / 8 * 8 == k->k->bytes[1] ? 0 : -EPROTO;
}

const struct kern_row cat_rows[] = {
    { "CatArrayBatchedCopy", "p**ii", run, cost, bind },
    { "CatArrayBatchedCopy_contig", "p**ii", run, cost, bind },
    { "CatArrayBatchedCopy_alignedK_contig", "p**ii", run, cost, bind },
    { "CatArrayBatchedCopy_vectorized", "p**ii", run, cost, bind },
    KERN_END
};
