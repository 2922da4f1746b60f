/* counted.c: see counted.h. */
#include "preload/counted.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- arrays -------------------------------------------------------------------------------------------------------- */

/* Bits of one texel with all its channels. */
static size_t texel_bits(CUarray_format f, unsigned channels)
{
    switch ((int)f) {
    case CU_AD_FORMAT_UNSIGNED_INT8: case CU_AD_FORMAT_SIGNED_INT8:
        return 8u * channels;
    case CU_AD_FORMAT_UNSIGNED_INT16: case CU_AD_FORMAT_SIGNED_INT16: case CU_AD_FORMAT_HALF:
        return 16u * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32: case CU_AD_FORMAT_SIGNED_INT32: case CU_AD_FORMAT_FLOAT:
        return 32u * channels;
    case CU_AD_FORMAT_UNORM_INT8X1: case CU_AD_FORMAT_SNORM_INT8X1:
        return 8;
    case CU_AD_FORMAT_UNORM_INT8X2: case CU_AD_FORMAT_SNORM_INT8X2: case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X1:
        return 16;
    case CU_AD_FORMAT_UNORM_INT8X4: case CU_AD_FORMAT_SNORM_INT8X4: case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X2: case CU_AD_FORMAT_UNORM_INT_101010_2:
        return 32;
    case CU_AD_FORMAT_UNORM_INT16X4: case CU_AD_FORMAT_SNORM_INT16X4:
        return 64;
    case CU_AD_FORMAT_BC1_UNORM: case CU_AD_FORMAT_BC1_UNORM_SRGB: case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
        return 4;
    case CU_AD_FORMAT_BC2_UNORM: case CU_AD_FORMAT_BC2_UNORM_SRGB: case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB: case CU_AD_FORMAT_BC5_UNORM: case CU_AD_FORMAT_BC5_SNORM:
    case CU_AD_FORMAT_BC6H_UF16: case CU_AD_FORMAT_BC6H_SF16: case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
        return 8;
    default: /* video formats: planes of 8 to 16 bits a sample, three samples at most */
        return 48;
    }
}

static size_t half(size_t n, unsigned level)
{
    size_t h = level < 64 ? n >> level : 0;
    return h ? h : 1;
}

size_t counted_array_bytes(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
                           unsigned flags, unsigned levels)
{
    if (flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return 0;
    bool layered = flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    size_t bits = texel_bits(format, channels), sum = 0;
    for (unsigned l = 0; l < levels && l < 64; l++) {
        size_t w = half(width, l), h = height ? half(height, l) : 1, d = depth ? (layered ? depth : half(depth, l)) : 1;
        size_t texels, b;
        if (__builtin_mul_overflow(w, h, &texels) || __builtin_mul_overflow(texels, d, &texels) ||
            __builtin_mul_overflow(texels, bits, &b) || __builtin_add_overflow(sum, (b + 7) / 8, &sum))
            return SIZE_MAX / 2; /* more than there is: the reservation fails */
    }
    return sum;
}

/* ---- handles and mappings ---------------------------------------------------------------------------------------------- */

struct block {
    CUmemGenericAllocationHandle handle;
    unsigned refs; /* 0: the number may belong to a newer block already */
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks[BUCKETS];
static struct mapping *mappings;
static uint64_t serial;

static struct block **bucket(CUmemGenericAllocationHandle h)
{
    return &blocks[(h * 0x9E3779B97F4A7C15ull) >> 54];
}

/* Held by reference; a block with mappings alone is not found by its number. */
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

/* Takes the lock's word that neither reference nor mapping is left. Returns the key to give back, 0 while it lives. */
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
    pthread_mutex_lock(&lock);
    uint64_t key = KEY_BASE + ++serial;
    if (b) {
        *b = (struct block){.handle = h, .refs = 1, .key = key, .next = *bucket(h)};
        *bucket(h) = b;
    }
    pthread_mutex_unlock(&lock);
    eng_foreign_commit(dev, key, bytes, false);
}

/* A block that mappings alone have kept goes by this number from now on: by its old one nobody finds it. */
static void renamed(struct block *b, CUmemGenericAllocationHandle h)
{
    take_out(b);
    b->handle = h;
    b->next = *bucket(h);
    *bucket(h) = b;
}

void vmm_retained(CUmemGenericAllocationHandle h, CUdeviceptr at)
{
    pthread_mutex_lock(&lock);
    struct mapping *m = mappings;
    while (m && at - m->at >= m->bytes)
        m = m->next;
    struct block *b = m ? m->block : block_of(h);
    if (b && !b->refs && b->handle != h)
        renamed(b, h);
    if (b)
        b->refs++;
    pthread_mutex_unlock(&lock);
}

void vmm_released(CUmemGenericAllocationHandle h)
{
    pthread_mutex_lock(&lock);
    struct block *b = block_of(h);
    uint64_t key = 0;
    if (b) {
        b->refs--;
        key = drop_if_dead(b);
    }
    pthread_mutex_unlock(&lock);
    if (key)
        eng_foreign_free(key);
}

void vmm_mapped(CUmemGenericAllocationHandle h, CUdeviceptr at, size_t bytes)
{
    struct mapping *m = malloc(sizeof *m);
    pthread_mutex_lock(&lock);
    struct block *b = m ? block_of(h) : NULL;
    if (b) {
        b->maps++;
        *m = (struct mapping){at, bytes, b, mappings};
        mappings = m;
        m = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(m); /* an imported handle: another process counts it */
}

void vmm_unmapped(CUdeviceptr at, size_t bytes)
{
    struct mapping *dead = NULL;
    pthread_mutex_lock(&lock);
    for (struct mapping **p = &mappings; *p;) {
        struct mapping *m = *p;
        if (m->at < at || m->at - at >= bytes) {
            p = &m->next;
            continue;
        }
        *p = m->next;
        m->next = dead;
        dead = m;
    }
    pthread_mutex_unlock(&lock);
    while (dead) {
        struct mapping *m = dead;
        dead = m->next;
        pthread_mutex_lock(&lock);
        m->block->maps--;
        uint64_t key = drop_if_dead(m->block);
        pthread_mutex_unlock(&lock);
        if (key)
            eng_foreign_free(key);
        free(m);
    }
}
