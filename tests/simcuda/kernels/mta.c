#include "tests/simcuda/kernels/mta.h"

#include <stdio.h>
#include <string.h>

int mta_layout(const struct kern *k, struct mta_layout *out)
{
    /* of versions 2.15 and 2.11 */
    static const struct { int list[MTA_MAX_DEPTH], scalars[MTA_MAX_DEPTH], blocks, index_bytes; } known[] = {
        { { 770, 448, 336, 252, 210 }, { 672, 448, 336, 252, 210 }, 2240, 2 },
        { { 110, 64, 48, 36, 30 }, { 96, 64, 48, 36, 30 }, 320, 1 },
    };
    struct kfunctor f;
    if (k->name.n_args < 2 || kname_functor(k->name.arg[0], &f)) return -ENOSYS;
    long depth = 0;
    memset(out, 0, sizeof *out);
    if (!strcmp(f.fn, "TensorListMetadata")) out->kind = MTA_LIST;
    else if (!strcmp(f.fn, "FusedOptimizerTensorListMetadata")) out->kind = MTA_FUSED;
    else if (!strcmp(f.fn, "TensorListScalarListMetadata")) out->kind = MTA_SCALAR_LIST;
    else return -ENOSYS;
    int at = out->kind == MTA_SCALAR_LIST;
    if (f.n_targs <= at || !kname_number(f.targ[at], &depth) || depth < 1 || depth > MTA_MAX_DEPTH) return -ENOSYS;
    out->depth = (int)depth;
    if (at) {
        out->scalar_t = dtype_parse(f.targ[0]);
        if (dtype_class(out->scalar_t) == DC_NONE) return -ENOSYS;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        out->max = (at ? known[i].scalars : known[i].list)[depth - 1];
        out->blocks = known[i].blocks;
        out->index_bytes = known[i].index_bytes;
        uint32_t bytes = (uint32_t)(8 * (depth + 1) * out->max + (4 + out->index_bytes) * out->blocks);
        if (at) bytes += (uint32_t)(dtype_bytes(out->scalar_t) * (size_t)out->max);
        else bytes += 4 + (out->kind == MTA_FUSED ? 8 * (uint32_t)out->max : 0);
        if ((bytes + 7) / 8 * 8 == (k->k->bytes[0] + 7) / 8 * 8) return 0;
    }
    return -EPROTO;
}

static const char *scalars(const struct mta_layout *m, const void *meta)
{
    return (const char *)meta + 8 * (size_t)(m->depth + 1) * (size_t)m->max;
}

static const char *block_tensors(const struct mta_layout *m, const void *meta)
{
    const char *p = scalars(m, meta);
    if (m->kind == MTA_SCALAR_LIST) p += dtype_bytes(m->scalar_t) * (size_t)m->max;
    if (m->kind == MTA_FUSED) p += 8 * (size_t)m->max;
    return p;
}

static int block_tensor(const struct mta_layout *m, const void *meta, unsigned block)
{
    const char *p = block_tensors(m, meta);
    return m->index_bytes == 1 ? ((const uint8_t *)p)[block] : ((const uint16_t *)p)[block];
}

static const int32_t *block_chunk(const struct mta_layout *m, const void *meta)
{
    return (const int32_t *)(block_tensors(m, meta) + m->index_bytes * m->blocks);
}

const void *mta_address(const struct mta_layout *m, const void *meta, int list, int tensor)
{
    return ((void *const *)meta)[list * m->max + tensor];
}

struct mta_chunk mta_chunk(const struct mta_layout *m, const void *meta, unsigned block, const size_t *elem_bytes)
{
    struct mta_chunk c = { .tensor = block_tensor(m, meta, block), .chunk = block_chunk(m, meta)[block] };
    const int64_t *numel = (const int64_t *)meta + (size_t)m->depth * (size_t)m->max;
    c.n = KERN_MIN(numel[c.tensor] - c.chunk * MTA_CHUNK, (int64_t)MTA_CHUNK);
    for (int d = 0; d < m->depth; d++)
        c.addr[d] = (char *)(uintptr_t)mta_address(m, meta, d, c.tensor) + c.chunk * MTA_CHUNK * (int64_t)elem_bytes[d];
    return c;
}

double mta_scalar(const struct mta_layout *m, const void *meta, int tensor)
{
    return dtype_get(m->scalar_t, scalars(m, meta), tensor);
}

int64_t mta_scalar_i(const struct mta_layout *m, const void *meta, int tensor)
{
    return dtype_geti(m->scalar_t, scalars(m, meta), tensor);
}

const float *mta_step(const struct mta_layout *m, const void *meta, int tensor)
{
    return ((const float *const *)scalars(m, meta))[tensor];
}

int mta_first_tensor(const struct mta_layout *m, const void *meta)
{
    return block_chunk(m, meta)[m->blocks];
}

uint64_t mta_elements(const struct mta_layout *m, const void *meta, unsigned blocks)
{
    const int64_t *numel = (const int64_t *)meta + (size_t)m->depth * (size_t)m->max;
    uint64_t n = 0;
    for (unsigned b = 0; b < blocks; b++)
        n += (uint64_t)KERN_MIN(numel[block_tensor(m, meta, b)] - (int64_t)block_chunk(m, meta)[b] * MTA_CHUNK,
                                (int64_t)MTA_CHUNK);
    return n;
}
