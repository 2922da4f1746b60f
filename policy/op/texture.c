#include "policy/op/texture.h"

#include "tracer/grow.h"

#include <stdlib.h>

enum { FILTER_BITS = 1 << 14 };

static struct row {
    uint64_t handle;
    uint32_t objects;
} *rows; /* sorted by handle: handles are few, and seldom change */
static uint32_t n_rows, room;
static bool by_any;
static uint64_t filter[FILTER_BITS / 64];

static uint32_t filter_bit(uint64_t word)
{
    word *= 0x9e3779b97f4a7c15ull;
    return (uint32_t)(word >> 40) % FILTER_BITS;
}

/* The first row whose handle is not below this one. */
static uint32_t place_of(uint64_t handle)
{
    uint32_t a = 0, b = n_rows;
    while (a < b) {
        const uint32_t m = (a + b) / 2;
        if (rows[m].handle < handle)
            a = m + 1;
        else
            b = m;
    }
    return a;
}

void texture_note(uint64_t handle)
{
    uint32_t i = place_of(handle);
    if (i < n_rows && rows[i].handle == handle) {
        rows[i].objects++;
        return;
    }
    if (!grow_room(&rows, n_rows, &room, 16)) {
        by_any = true;
        return;
    }
    for (uint32_t k = n_rows++; k > i; k--)
        rows[k] = rows[k - 1];
    rows[i] = (struct row){handle, 1};
    filter[filter_bit(handle) / 64] |= 1ull << filter_bit(handle) % 64;
}

void texture_forget(uint64_t handle)
{
    uint32_t i = place_of(handle);
    if (i == n_rows || rows[i].handle != handle || --rows[i].objects)
        return;
    for (n_rows--; i < n_rows; i++)
        rows[i] = rows[i + 1];
}

bool texture_any(void) { return n_rows > 0; }

bool texture_is(uint64_t word)
{
    const uint32_t bit = filter_bit(word);
    if (!(filter[bit / 64] >> bit % 64 & 1))
        return false;
    const uint32_t i = place_of(word);
    return i < n_rows && rows[i].handle == word;
}

bool texture_by_any(void) { return by_any; }
void texture_set_by_any(void) { by_any = true; }
