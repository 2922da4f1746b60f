#include "policy/op/tensor_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILTER_BITS = 1 << 14, FIRST_ROOM = 256 };

struct row {
    uint64_t content[TENSOR_MAP_BYTES / 8];
    uint64_t shape;
    CUdeviceptr at; /* 0: the row is free */
};

static struct row *rows; /* open addressing; at most half of them in use */
static uint32_t room, used;
static uint64_t filter[FILTER_BITS / 64]; /* by a map's first two words: bytes that begin otherwise are no map */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static uint64_t hash(const uint64_t *words)
{
    uint64_t h = 1;
    for (int i = 0; i < TENSOR_MAP_BYTES / 8; i++)
        h = mix(h, words[i]);
    return h ? h : 1;
}

static uint32_t filter_bit(const uint64_t *words) { return (uint32_t)(mix(mix(2, words[0]), words[1]) % FILTER_BITS); }

bool tensor_map_any(void) { return used > 0; }

/* The row of this content, or the free row where it belongs. */
static struct row *row_of(const uint64_t *words)
{
    uint32_t i = (uint32_t)hash(words) & (room - 1);
    while (rows[i].at && memcmp(rows[i].content, words, TENSOR_MAP_BYTES))
        i = (i + 1) & (room - 1);
    return &rows[i];
}

static int grow(void)
{
    struct row *old = rows;
    uint32_t n = room;
    struct row *bigger = calloc(n ? n * 2 : FIRST_ROOM, sizeof *bigger);
    if (!bigger)
        return -ENOMEM;
    rows = bigger;
    room = n ? n * 2 : FIRST_ROOM;
    for (uint32_t i = 0; i < n; i++)
        if (old[i].at)
            *row_of(old[i].content) = old[i];
    free(old);
    return 0;
}

int tensor_map_note(const CUtensorMap *map, CUdeviceptr at, const CUtensorMap *shape)
{
    uint64_t words[TENSOR_MAP_BYTES / 8], like[TENSOR_MAP_BYTES / 8];
    _Static_assert(sizeof *map == TENSOR_MAP_BYTES, "a tensor map is 128 bytes");
    memcpy(words, map, sizeof words);
    memcpy(like, shape, sizeof like);
    if (!at)
        return -EINVAL;
    if (room && row_of(words)->at)
        return 0; /* a map of the same bytes has the same place and shape */
    if (used == TENSOR_MAPS_MOST)
        return -ENOSPC;
    if ((!room || (used + 1) * 2 > room) && grow())
        return -ENOMEM;
    struct row *r = row_of(words);
    memcpy(r->content, words, sizeof words);
    r->shape = hash(like);
    r->at = at;
    used++;
    filter[filter_bit(words) / 64] |= 1ull << filter_bit(words) % 64;
    return 0;
}

CUdeviceptr tensor_map_at(const unsigned char *bytes, uint64_t *shape)
{
    uint64_t words[TENSOR_MAP_BYTES / 8];
    memcpy(words, bytes, 16);
    uint32_t bit = filter_bit(words);
    if (!(filter[bit / 64] >> bit % 64 & 1) || !used)
        return 0;
    memcpy(words, bytes, sizeof words);
    const struct row *r = row_of(words);
    *shape = r->shape;
    return r->at;
}
