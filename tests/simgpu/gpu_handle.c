/*
 * Which handles are live: an open-addressing table of pointers. Under gpu_lock.
 */
#include <stdlib.h>

#include "tests/simgpu/gpu.h"

typedef struct {
    const void *h; /* NULL: empty; &gone: was dropped */
    enum gpu_kind kind;
} slot;

static const char gone;
static slot *table;
static size_t n_slots, n_used; /* n_used counts dropped ones; n_used * 2 <= n_slots */

static size_t hash(const void *h)
{
    return (size_t)(((uintptr_t)h >> 4) * 0x9E3779B97F4A7C15ull >> 20);
}

static CUresult grow(void)
{
    size_t n = 64, live = 0;
    for (size_t i = 0; i < n_slots; i++)
        live += table[i].h && table[i].h != &gone;
    while (n < live * 4 + 4)
        n *= 2;
    slot *fresh = calloc(n, sizeof *fresh);
    if (!fresh)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n_slots; i++) {
        if (!table[i].h || table[i].h == &gone)
            continue;
        size_t k = hash(table[i].h) & (n - 1);
        while (fresh[k].h)
            k = (k + 1) & (n - 1);
        fresh[k] = table[i];
    }
    free(table);
    table = fresh;
    n_slots = n;
    n_used = live;
    return CUDA_SUCCESS;
}

CUresult gpu_handle_add(const void *h, enum gpu_kind kind)
{
    if ((n_used + 1) * 2 > n_slots) {
        CUresult r = grow();
        if (r)
            return r;
    }
    size_t k = hash(h) & (n_slots - 1);
    while (table[k].h)
        k = (k + 1) & (n_slots - 1);
    table[k] = (slot){ h, kind };
    n_used++;
    return CUDA_SUCCESS;
}

static slot *find(const void *h)
{
    if (!h || !n_slots)
        return NULL;
    for (size_t k = hash(h) & (n_slots - 1); table[k].h; k = (k + 1) & (n_slots - 1))
        if (table[k].h == h)
            return &table[k];
    return NULL;
}

void gpu_handle_drop(const void *h)
{
    slot *s = find(h);
    if (s)
        *s = (slot){ &gone, GPU_NO_HANDLE };
}

enum gpu_kind gpu_handle_kind(const void *h)
{
    slot *s = find(h);
    return s ? s->kind : GPU_NO_HANDLE;
}

void gpu_handle_each(enum gpu_kind kind, void (*f)(void *h, void *arg), void *arg)
{
    for (size_t i = 0; i < n_slots; i++)
        if (table[i].h && table[i].kind == kind)
            f((void *)table[i].h, arg);
}
