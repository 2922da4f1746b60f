/* parts.c: see parts.h. */
#include "policy/learn/parts.h"

#include "policy/learn/hashing.h"
#include "policy/memory/pinned.h"
#include "policy/memory/slot.h"
#include "tracer/effects/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* PART_LEAST_BYTES: the least part whose hash by a launch costs less than its copy to the host. PARTS_MOST: as many parts as one launch hashes. */
static const uint64_t PART_LEAST_BYTES = 16384, LOOK_MOST_BYTES = 256ull << 20;
enum { PARTS_MOST = 256 };

static uint64_t length(const struct parts *p, uint32_t i) { return i + 1 < p->n ? p->part_bytes : p->bytes - i * p->part_bytes; }

/* The hash that the device makes of `bytes` bytes of the poison (hash.h). */
static void hash_of_poison(unsigned char poison, uint64_t bytes, uint64_t out[2])
{
    unsigned char row[8];
    memset(row, poison, sizeof row);
    const hash_word w = hash_tail(row, 8), n = bytes / 8;
    hash_word a = 0, b = 0;
    for (hash_word i = 0; i < n; i++) {
        a += hash_first(w, i);
        b += hash_second(w, i);
    }
    if (bytes % 8) {
        a += hash_first(hash_tail(row, bytes % 8), n);
        b += hash_second(hash_tail(row, bytes % 8), n);
    }
    out[0] = a;
    out[1] = b;
}

/* Hashes of the poison: as long as a whole part, and as the last part. */
struct poisoned {
    uint64_t whole[2], last[2];
};

static struct poisoned poisoned(const struct parts *p, unsigned char poison)
{
    struct poisoned x;
    hash_of_poison(poison, length(p, 0), x.whole);
    hash_of_poison(poison, length(p, p->n - 1), x.last);
    return x;
}

static bool is_poison(const struct parts *p, const uint64_t *hash, uint32_t i, const struct poisoned *x)
{
    return hashing_same(hash + 2 * i, i + 1 < p->n ? x->whole : x->last);
}

static int hash_parts(struct device *d, const struct slot *s, const struct parts *p, uint64_t *out)
{
    struct hash_range r[PARTS_MOST];
    for (uint32_t i = 0; i < p->n; i++)
        r[i] = (struct hash_range){s->va + i * p->part_bytes, length(p, i)};
    return hashing_now(d, r, p->n, out);
}

/* Host memory: pinned, which the device fills ten times as fast, or, where none is to be had, ordinary. */
static unsigned char *host_room(struct device *d, uint64_t bytes, struct host_block **block)
{
    *block = pinned_get(d, bytes);
    return *block && !pinned_wait(d, *block) ? (*block)->p : malloc(bytes);
}

static int take(struct device *d, const struct slot *s, const struct parts *p, uint32_t i, unsigned char *to)
{
    return d->drv->cuMemcpyDtoH_v2(to, s->va + i * p->part_bytes, length(p, i)) == CUDA_SUCCESS ? 0 : -EIO;
}

int parts_second(struct device *d, const struct slot *s, unsigned char poison, struct parts *p)
{
    uint64_t each = (s->bytes / PARTS_MOST + PART_LEAST_BYTES) / PART_LEAST_BYTES * PART_LEAST_BYTES;
    *p = (struct parts){.bytes = s->bytes, .part_bytes = each, .n = (uint32_t)((s->bytes + each - 1) / each)};
    if (s->bytes > LOOK_MOST_BYTES)
        return -EFBIG;
    p->hash = calloc(p->n, 2 * sizeof *p->hash);
    p->first = calloc(p->n, 2 * sizeof *p->first);
    p->place = calloc(p->n, sizeof *p->place);
    int r = p->hash && p->first && p->place ? hash_parts(d, s, p, p->hash) : -ENOMEM;
    if (r)
        return r;
    const struct poisoned x = poisoned(p, poison);
    uint32_t others = 0;
    for (uint32_t i = 0; i < p->n; i++)
        p->place[i] = is_poison(p, p->hash, i, &x) ? UINT32_MAX : others++;
    if (others && !(p->second = host_room(d, others * each, &p->second_block)))
        return -ENOMEM;
    for (uint32_t i = 0; i < p->n && !r; i++)
        if (p->place[i] != UINT32_MAX)
            r = take(d, s, p, i, p->second + p->place[i] * each);
    return r;
}

int parts_first(struct device *d, const struct slot *s, struct parts *p) { return hash_parts(d, s, p, p->first); }

int parts_difference(struct device *d, const struct slot *s, unsigned char poison_first, unsigned char poison_second, struct parts *p, struct blank *out)
{
    const struct poisoned first = poisoned(p, poison_first);
    struct blank all = {0}, b;
    unsigned char *filled = NULL;
    int r = (p->mixed = host_room(d, p->part_bytes, &p->mixed_block)) ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < p->n && !r; i++) {
        const uint64_t at = i * p->part_bytes, bytes = length(p, i);
        const bool was_poison = p->place[i] == UINT32_MAX;
        if (hashing_same(p->hash + 2 * i, p->first + 2 * i))
            continue;
        if (was_poison && is_poison(p, p->first, i, &first)) {
            r = blank_add(&all, at, at + bytes);
            continue;
        }
        const unsigned char *second = was_poison ? filled : p->second + p->place[i] * p->part_bytes;
        if (!second) {
            second = filled = malloc(p->part_bytes);
            if (filled)
                memset(filled, poison_second, p->part_bytes);
        }
        r = second ? take(d, s, p, i, p->mixed) : -ENOMEM;
        if (!r)
            r = blank_of_difference(&b, p->mixed, second, bytes);
        for (uint32_t k = 0; !r && k < b.n; k++)
            r = blank_add(&all, at + b.r[k].from, at + b.r[k].to);
    }
    free(filled);
    if (!r)
        *out = all;
    return r;
}

static void host_free(struct device *d, unsigned char *p, struct host_block *block)
{
    if (!block || p != block->p)
        free(p);
    pinned_put(d, block);
}

void parts_free(struct device *d, struct parts *p)
{
    host_free(d, p->second, p->second_block);
    host_free(d, p->mixed, p->mixed_block);
    free(p->hash);
    free(p->first);
    free(p->place);
    *p = (struct parts){0};
}
