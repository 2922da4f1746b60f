/* vmm.c: see vmm.h. */
#include "preload/vmm.h"
#include "policy/allocations.h"
#include "tracer/loader.h"

#include <stdlib.h>

struct block {
    CUmemGenericAllocationHandle handle;
    unsigned refs; /* 0: the handle's number may belong to a newer block already */
    unsigned maps;
    uint64_t key;
    struct block *next;
};
struct mapping {
    CUdeviceptr at;
    size_t bytes;
    struct block *block;
    struct mapping *next;
};

enum { BUCKETS = 1024 };
/* Keys of the engine's ledger: no device pointer and no heap address has these top bits. */
#define KEY_BASE 0xF00D000000000000ull

static struct {
    pthread_mutex_t lock; /* of the other fields */
    struct block *blocks[BUCKETS];
    struct mapping *mappings;
    uint64_t serial;
} vmm = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct block **bucket(CUmemGenericAllocationHandle h)
{
    return &vmm.blocks[(h * 0x9E3779B97F4A7C15ull) >> 54];
}

/* The block with handle h and a reference; NULL: none. A block that mappings alone keep is not found by its number. */
static struct block *block_of(CUmemGenericAllocationHandle h)
{
    for (struct block *b = *bucket(h); b; b = b->next)
        if (b->handle == h && b->refs)
            return b;
    return NULL;
}

static void take_out(struct block *b)
{
    struct block **at = bucket(b->handle);
    while (*at && *at != b)
        at = &(*at)->next;
    if (*at)
        *at = b->next;
}

/* Frees a block that has neither reference nor mapping left. Returns its key, to be freed in the engine's ledger; 0: the block lives on. The lock is held. */
static uint64_t drop_if_dead(struct block *b)
{
    if (b->refs || b->maps)
        return 0;
    take_out(b);
    uint64_t key = b->key;
    free(b);
    return key;
}

void vmm_created(CUmemGenericAllocationHandle h, int dev, size_t bytes)
{
    struct block *b = malloc(sizeof *b);
    loader_lock(&vmm.lock);
    uint64_t key = KEY_BASE + ++vmm.serial;
    if (b) {
        *b = (struct block){.handle = h, .refs = 1, .key = key, .next = *bucket(h)};
        *bucket(h) = b;
    }
    loader_unlock(&vmm.lock);
    eng_foreign_commit(dev, key, bytes, false);
}

/* Gives the handle h to a block that mappings alone have kept: block_of() does not find the block by its old number. */
static void renamed(struct block *b, CUmemGenericAllocationHandle h)
{
    take_out(b);
    b->handle = h;
    b->next = *bucket(h);
    *bucket(h) = b;
}

void vmm_retained(CUmemGenericAllocationHandle h, CUdeviceptr at)
{
    loader_lock(&vmm.lock);
    struct mapping *m = vmm.mappings;
    while (m && at - m->at >= m->bytes)
        m = m->next;
    struct block *b = m ? m->block : block_of(h);
    if (b && !b->refs && b->handle != h)
        renamed(b, h);
    if (b)
        b->refs++;
    loader_unlock(&vmm.lock);
}

void vmm_released(CUmemGenericAllocationHandle h)
{
    loader_lock(&vmm.lock);
    struct block *b = block_of(h);
    uint64_t key = 0;
    if (b) {
        b->refs--;
        key = drop_if_dead(b);
    }
    loader_unlock(&vmm.lock);
    if (key)
        eng_foreign_free(key);
}

void vmm_mapped(CUmemGenericAllocationHandle h, CUdeviceptr at, size_t bytes)
{
    struct mapping *m = malloc(sizeof *m);
    loader_lock(&vmm.lock);
    struct block *b = m ? block_of(h) : NULL;
    if (b) {
        b->maps++;
        *m = (struct mapping){at, bytes, b, vmm.mappings};
        vmm.mappings = m;
        m = NULL;
    }
    loader_unlock(&vmm.lock);
    free(m); /* not NULL for an imported handle: another process counts its memory */
}

void vmm_unmapped(CUdeviceptr at, size_t bytes)
{
    struct mapping *dead = NULL;
    loader_lock(&vmm.lock);
    for (struct mapping **p = &vmm.mappings; *p;) {
        struct mapping *m = *p;
        if (m->at < at || m->at - at >= bytes) {
            p = &m->next;
            continue;
        }
        *p = m->next;
        m->next = dead;
        dead = m;
    }
    loader_unlock(&vmm.lock);
    while (dead) {
        struct mapping *m = dead;
        dead = m->next;
        loader_lock(&vmm.lock);
        m->block->maps--;
        uint64_t key = drop_if_dead(m->block);
        loader_unlock(&vmm.lock);
        if (key)
            eng_foreign_free(key);
        free(m);
    }
}
