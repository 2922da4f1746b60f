/* Memory of the program's own: counted against the limit, looked up by address, never evicted. */
#include "policy/op/op.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct foreign_row {
    uint64_t key, bytes;
    struct slot *slot; /* NULL: not addressable through the key */
    UT_hash_handle hh;
};
static struct foreign_row *rows;
/* addressable ones, by address */
static struct slot **ranges;
static uint32_t n_ranges, cap_ranges;
static CUdeviceptr low = ~0ull, high;

/* The first range that ends after ptr. */
static uint32_t find(CUdeviceptr ptr)
{
    uint32_t a = 0, b = n_ranges;
    while (a < b) {
        uint32_t m = (a + b) / 2;
        if (ranges[m]->va + ranges[m]->bytes <= ptr)
            a = m + 1;
        else
            b = m;
    }
    return a;
}

struct slot *foreign_lookup(CUdeviceptr ptr)
{
    if (ptr < low || ptr >= high)
        return NULL;
    uint32_t i = find(ptr);
    return i < n_ranges && ranges[i]->va <= ptr ? ranges[i] : NULL;
}

static void bounds(void)
{
    low = n_ranges ? ranges[0]->va : ~0ull;
    high = n_ranges ? ranges[n_ranges - 1]->va + ranges[n_ranges - 1]->bytes : 0;
}

void foreign_add(uint64_t key, uint64_t bytes, bool is_range)
{
    struct foreign_row *r = calloc(1, sizeof *r);
    if (!r)
        return; /* stays counted for ever: the limit errs on the safe side */
    r->key = key;
    r->bytes = foreign_counted(bytes);
    if (is_range) {
        if (n_ranges == cap_ranges) {
            uint32_t cap = cap_ranges ? cap_ranges * 2 : 64;
            struct slot **p = realloc(ranges, cap * sizeof *p);
            if (p) {
                ranges = p;
                cap_ranges = cap;
            }
        }
        r->slot = n_ranges < cap_ranges ? mem_slot_foreign(key, bytes) : NULL;
        if (r->slot) {
            uint32_t i = find(key);
            memmove(ranges + i + 1, ranges + i, (n_ranges - i) * sizeof *ranges);
            ranges[i] = r->slot;
            n_ranges++;
            bounds();
        }
    }
    struct foreign_row *old;
    HASH_FIND(hh, rows, &key, sizeof key, old);
    if (old)
        foreign_remove(key);
    HASH_ADD(hh, rows, key, sizeof r->key, r);
}

bool foreign_detach(uint64_t key, uint64_t *bytes, bool *is_range)
{
    struct foreign_row *r;
    HASH_FIND(hh, rows, &key, sizeof key, r);
    if (!r)
        return false;
    HASH_DEL(rows, r);
    *bytes = r->bytes;
    *is_range = r->slot != NULL;
    if (r->slot) {
        uint32_t i = 0;
        while (i < n_ranges && ranges[i] != r->slot)
            i++;
        if (i < n_ranges) {
            memmove(ranges + i, ranges + i + 1, (n_ranges - i - 1) * sizeof *ranges);
            n_ranges--;
        }
        mem_slot_foreign_gone(r->slot);
        bounds();
    }
    free(r);
    return true;
}

bool foreign_remove(uint64_t key)
{
    uint64_t bytes;
    bool is_range;
    if (!foreign_detach(key, &bytes, &is_range))
        return false;
    rt.foreign_bytes -= bytes < rt.foreign_bytes ? bytes : rt.foreign_bytes;
    return true;
}
