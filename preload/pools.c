/* pools.c: see pools.h. */
#include "preload/pools.h"

enum { POOLS_MAX = 256 };

/* Entries are claimed once and never move; a destroyed pool's entry is free for the next. */
static struct entry {
    _Atomic(CUmemoryPool) pool;
    atomic_int use, device;
} entries[POOLS_MAX];
static atomic_int special; /* how many entries are not POOL_ENGINE: 0 lets every question return at once */

static struct entry *find(CUmemoryPool pool)
{
    for (int i = 0; i < POOLS_MAX; i++)
        if (atomic_load_explicit(&entries[i].pool, memory_order_acquire) == pool)
            return &entries[i];
    return NULL;
}

static struct entry *claim(CUmemoryPool pool, int device)
{
    struct entry *e = find(pool);
    for (int i = 0; !e && i < POOLS_MAX; i++) {
        CUmemoryPool none = NULL;
        if (!atomic_compare_exchange_strong(&entries[i].pool, &none, pool))
            continue;
        e = &entries[i];
        atomic_store(&e->use, POOL_ENGINE);
        atomic_store(&e->device, device);
    }
    return e;
}

enum pool_use pools_use(CUmemoryPool pool)
{
    if (!atomic_load_explicit(&special, memory_order_relaxed))
        return POOL_ENGINE;
    struct entry *e = pool ? find(pool) : NULL;
    return e ? (enum pool_use)atomic_load_explicit(&e->use, memory_order_relaxed) : POOL_ENGINE;
}

enum pool_use pools_use_current(void)
{
    if (!atomic_load_explicit(&special, memory_order_relaxed))
        return POOL_ENGINE;
    __typeof__(&cuCtxGetDevice) device = (__typeof__(device))provider_driver_symbol("cuCtxGetDevice");
    __typeof__(&cuDeviceGetMemPool) current = (__typeof__(current))provider_driver_symbol("cuDeviceGetMemPool");
    CUdevice d;
    CUmemoryPool pool;
    if (!device || !current || device(&d) != CUDA_SUCCESS || current(&pool, d) != CUDA_SUCCESS)
        return POOL_ENGINE;
    return pools_use(pool);
}

void pools_mark(CUmemoryPool pool, enum pool_use use)
{
    struct entry *e = pool ? claim(pool, -1) : NULL;
    if (e && atomic_exchange(&e->use, use) == POOL_ENGINE && use != POOL_ENGINE)
        atomic_fetch_add(&special, 1);
}

enum pool_use pools_use_of_props(const CUmemPoolProps *props)
{
    if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return POOL_MANAGED;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return POOL_OUTSIDE;
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return POOL_COUNTED;
    return POOL_ENGINE;
}

void pools_created(CUmemoryPool pool, int device)
{
    if (pool)
        claim(pool, device);
}

void pools_destroyed(CUmemoryPool pool)
{
    struct entry *e = pool ? find(pool) : NULL;
    if (!e)
        return;
    if (atomic_exchange(&e->use, POOL_ENGINE) != POOL_ENGINE)
        atomic_fetch_sub(&special, 1);
    atomic_store_explicit(&e->pool, NULL, memory_order_release);
}

int pools_device(CUmemoryPool pool)
{
    struct entry *e = pool ? find(pool) : NULL;
    int d = e ? atomic_load(&e->device) : -1;
    if (d >= 0)
        return d;
    __typeof__(&cuDeviceGetCount) count = (__typeof__(count))provider_driver_symbol("cuDeviceGetCount");
    __typeof__(&cuDeviceGetDefaultMemPool) def = (__typeof__(def))provider_driver_symbol("cuDeviceGetDefaultMemPool");
    int n;
    CUmemoryPool of;
    if (!count || !def || count(&n) != CUDA_SUCCESS)
        return -1;
    for (int i = 0; i < n; i++)
        if (def(&of, i) == CUDA_SUCCESS && of == pool)
            return i;
    return -1;
}
