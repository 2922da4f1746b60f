/* engine_pass.c: an engine that hands every call on to the driver and keeps the ledger of what it was asked. Linked with the
 * doors it makes a preloadable library whose behaviour must equal the driver's own: the reference the doors are tested
 * against.
 *
 * Threads: any; the counters are atomic. Errors: the driver's codes.
 * CONFORMANCE_LEDGER=1 prints, at exit, `ledger NAME COUNT` lines on stderr.
 */
#include "policy/allocations.h"
#include "policy/answers.h"
#include "policy/current.h"
#include "policy/engine.h"
#include "policy/life.h"
#include "policy/reach.h"
#include "policy/stays.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS(C)                                                                                                       \
    C(start) C(finish) C(finish_now) C(fork_child) C(alloc_async) C(alloc_driver) C(free_async) C(pool_get) C(pool_set) C(pool_trim) C(pool_chosen)  \
    C(pool_destroyed) C(foreign_reserve) C(foreign_commit) C(foreign_cancel) C(foreign_free) C(free) C(launch)         \
    C(memset) C(copy) C(other) C(mem_info) C(address_range) C(pointer_attribute) C(note_kernel) C(note_unload) C(pin)  \
    C(stream_destroyed) C(capture_begins) C(capture_ends) C(pin_everything) C(context_gone)

enum call {
#define C(name) CALL_##name,
    CALLS(C)
#undef C
        CALL_COUNT
};
static const char *const call_name[] = {
#define C(name) #name,
    CALLS(C)
#undef C
};

static atomic_ullong ledger[CALL_COUNT];
/* bytes reserved and neither committed nor cancelled; bytes committed and not freed */
static atomic_llong pending_bytes, counted_bytes;
static const struct drv *drv;
static atomic_bool active;

static void note(enum call c)
{
    atomic_fetch_add(&ledger[c], 1);
}

/* What was committed: small programs only, so a list does. */
static struct {
    uint64_t key;
    size_t bytes;
} committed[4096];
static atomic_flag list_lock = ATOMIC_FLAG_INIT;

static void list_add(uint64_t key, size_t bytes)
{
    while (atomic_flag_test_and_set(&list_lock)) {
    }
    for (size_t i = 0; i < sizeof committed / sizeof committed[0]; i++)
        if (!committed[i].key) {
            committed[i].key = key;
            committed[i].bytes = bytes;
            break;
        }
    atomic_flag_clear(&list_lock);
}

static size_t list_take(uint64_t key)
{
    size_t bytes = 0;
    while (atomic_flag_test_and_set(&list_lock)) {
    }
    for (size_t i = 0; i < sizeof committed / sizeof committed[0]; i++)
        if (committed[i].key == key) {
            bytes = committed[i].bytes;
            committed[i].key = 0;
            break;
        }
    atomic_flag_clear(&list_lock);
    return bytes;
}

/* ---- life ---------------------------------------------------------------------------------------------------------- */

void eng_loaded(void) {}
void eng_unused(void) {}
void eng_stood_aside(void) {}
bool eng_may_hold(void) { return false; }

void eng_before_start(void) {}
void eng_after_start(void) {}

int eng_start(const struct drv *d)
{
    note(CALL_start);
    drv = d;
    atomic_store(&active, true);
    return 0;
}

_Thread_local enum eng_stack eng_stack_used;
atomic_bool eng_stack_matters;

bool eng_active(void)
{
    return atomic_load_explicit(&active, memory_order_acquire);
}

void eng_finish_now(void) { note(CALL_finish_now); }

void eng_finish(void)
{
    note(CALL_finish);
    if (ledger[CALL_finish] > 1 || !getenv("CONFORMANCE_LEDGER"))
        return;
    for (int i = 0; i < CALL_COUNT; i++)
        fprintf(stderr, "ledger %s %llu\n", call_name[i], (unsigned long long)ledger[i]);
    fprintf(stderr, "ledger pending_bytes %lld\nledger counted_bytes %lld\n", (long long)pending_bytes,
            (long long)counted_bytes);
}

void eng_after_fork_child(void)
{
    note(CALL_fork_child);
    atomic_store(&active, false);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

bool eng_has_devices(void) { return false; }

int eng_alloc_async(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, int pool_dev, CUstream stream)
{
    (void)pool_dev;
    note(CALL_alloc_async);
    return (int)(pool ? drv->cuMemAllocFromPoolAsync(out, bytes, pool, stream) : drv->cuMemAllocAsync(out, bytes, stream));
}

int eng_alloc(CUdeviceptr *out, size_t bytes, int *res)
{
    (void)out, (void)bytes, (void)res;
    return 0;
}

int eng_allocation_from_driver(int dev, const struct eng_pool_call *c)
{
    (void)dev;
    note(CALL_alloc_driver);
    return c->issue(c);
}

int eng_free_async(CUdeviceptr ptr, CUstream stream)
{
    note(CALL_free_async);
    return (int)drv->cuMemFreeAsync(ptr, stream);
}

int eng_pool_get(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res)
{
    note(CALL_pool_get);
    (void)pool, (void)attr, (void)value, (void)res;
    return 0;
}

int eng_pool_set(CUmemoryPool pool, CUmemPool_attribute attr, void *value, int *res)
{
    note(CALL_pool_set);
    (void)pool, (void)attr, (void)value, (void)res;
    return 0;
}

int eng_pool_trim(CUmemoryPool pool, size_t keep_bytes, int *res)
{
    note(CALL_pool_trim);
    (void)pool, (void)keep_bytes, (void)res;
    return 0;
}

void eng_pool_made(CUmemoryPool pool, size_t most_bytes) { (void)pool, (void)most_bytes; }

void eng_pool_chosen(void) { note(CALL_pool_chosen); }

void eng_pool_destroyed(CUmemoryPool pool)
{
    note(CALL_pool_destroyed);
    (void)pool;
}

int eng_foreign_reserve(int dev, size_t bytes)
{
    note(CALL_foreign_reserve);
    (void)dev;
    atomic_fetch_add(&pending_bytes, (long long)bytes);
    return 0;
}

void eng_foreign_commit(int dev, uint64_t key, size_t bytes, bool is_range)
{
    note(CALL_foreign_commit);
    (void)dev, (void)is_range;
    atomic_fetch_sub(&pending_bytes, (long long)bytes);
    atomic_fetch_add(&counted_bytes, (long long)bytes);
    list_add(key, bytes);
}

bool eng_foreign_gives(int dev, size_t bytes)
{
    (void)dev, (void)bytes;
    return false;
}

void eng_foreign_cancel(int dev, size_t bytes)
{
    note(CALL_foreign_cancel);
    (void)dev;
    atomic_fetch_sub(&pending_bytes, (long long)bytes);
}

void eng_foreign_free(uint64_t key)
{
    note(CALL_foreign_free);
    atomic_fetch_sub(&counted_bytes, (long long)list_take(key));
}

int eng_free(CUdeviceptr ptr)
{
    note(CALL_free);
    int r = (int)drv->cuMemFree_v2(ptr);
    if (!r)
        atomic_fetch_sub(&counted_bytes, (long long)list_take(ptr));
    return r;
}

/* ---- work -------------------------------------------------------------------------------------------------------------- */

int eng_launch(const struct eng_kernel *k)
{
    note(CALL_launch);
    if (!drv->cuLaunchKernelEx)
        return (int)drv->cuLaunchKernel(k->func, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1],
                                        k->block[2], k->shared_bytes, k->stream, k->params, k->extra);
    CUlaunchAttribute attrs[64];
    CUlaunchConfig c = {
        .gridDimX = k->grid[0], .gridDimY = k->grid[1], .gridDimZ = k->grid[2],
        .blockDimX = k->block[0], .blockDimY = k->block[1], .blockDimZ = k->block[2],
        .sharedMemBytes = k->shared_bytes, .hStream = k->stream, .attrs = attrs,
    };
    for (unsigned i = 0; i < k->n_attrs && c.numAttrs < 63; i++)
        if (k->attrs[i].id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            attrs[c.numAttrs++] = k->attrs[i];
    if (k->cooperative) {
        memset(&attrs[c.numAttrs], 0, sizeof attrs[0]);
        attrs[c.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attrs[c.numAttrs++].value.cooperative = 1;
    }
    if (!c.numAttrs && !k->cooperative)
        return (int)drv->cuLaunchKernel(k->func, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1],
                                        k->block[2], k->shared_bytes, k->stream, k->params, k->extra);
    return (int)drv->cuLaunchKernelEx(&c, k->func, k->params, k->extra);
}

int eng_memset(const struct eng_memset *m)
{
    note(CALL_memset);
    CUresult r;
    if (m->pitch_bytes) {
        r = m->elem_bytes == 1   ? drv->cuMemsetD2D8Async(m->dst, m->pitch_bytes, (unsigned char)m->value, m->width,
                                                          m->height, m->stream)
            : m->elem_bytes == 2 ? drv->cuMemsetD2D16Async(m->dst, m->pitch_bytes, (unsigned short)m->value, m->width,
                                                           m->height, m->stream)
                                 : drv->cuMemsetD2D32Async(m->dst, m->pitch_bytes, m->value, m->width, m->height,
                                                           m->stream);
    } else {
        r = m->elem_bytes == 1   ? drv->cuMemsetD8Async(m->dst, (unsigned char)m->value, m->width, m->stream)
            : m->elem_bytes == 2 ? drv->cuMemsetD16Async(m->dst, (unsigned short)m->value, m->width, m->stream)
                                 : drv->cuMemsetD32Async(m->dst, m->value, m->width, m->stream);
    }
    if (!r && m->sync)
        r = drv->cuStreamSynchronize(m->stream);
    return (int)r;
}

int eng_copy(const struct eng_copy *c)
{
    note(CALL_copy);
    CUresult r = c->kind == ENG_HTOD   ? drv->cuMemcpyHtoDAsync_v2(c->dst_dev, c->src_host, c->bytes, c->stream)
                 : c->kind == ENG_DTOH ? drv->cuMemcpyDtoHAsync_v2(c->dst_host, c->src_dev, c->bytes, c->stream)
                                       : drv->cuMemcpyDtoDAsync_v2(c->dst_dev, c->src_dev, c->bytes, c->stream);
    if (!r && c->sync)
        r = drv->cuStreamSynchronize(c->stream);
    return (int)r;
}

bool eng_is_device_pointer(CUdeviceptr ptr)
{
    unsigned type = 0;
    return drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
}

bool eng_is_managed(CUdeviceptr ptr)
{
    (void)ptr;
    return false;
}

void eng_before_host_copy(CUstream stream, const void *dst_host, bool sync)
{
    (void)stream, (void)dst_host, (void)sync;
}

int eng_note_host_data(CUdeviceptr dst, const void *src, size_t bytes)
{
    (void)dst, (void)src, (void)bytes;
    return 0;
}

int eng_other(const char *name, CUstream stream, struct eng_touch *touch, unsigned n_touch, int (*issue)(void *), void *ctx)
{
    note(CALL_other);
    (void)name, (void)stream, (void)touch, (void)n_touch;
    return issue(ctx);
}

/* ---- questions and notes -------------------------------------------------------------------------------------------------- */

bool eng_device_memory(int dev, struct eng_memory *m)
{
    (void)dev;
    (void)m;
    return false;
}

int eng_mem_info(size_t *free_bytes, size_t *total_bytes)
{
    note(CALL_mem_info);
    return (int)drv->cuMemGetInfo_v2(free_bytes, total_bytes);
}

int eng_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr, int *res)
{
    note(CALL_address_range);
    (void)base, (void)bytes, (void)ptr, (void)res;
    return 0;
}

int eng_pointer_attribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr, int *res)
{
    note(CALL_pointer_attribute);
    (void)data, (void)attr, (void)ptr, (void)res;
    return 0;
}

void eng_note_kernel(CUkernel k)
{
    note(CALL_note_kernel);
    (void)k;
}

struct eng_file eng_file_code(const char *path)
{
    (void)path;
    return (struct eng_file){0};
}

void eng_note_file(CUmodule module, CUlibrary library, const char *path, const struct eng_file *before)
{
    (void)module, (void)library, (void)path, (void)before;
}

void eng_note_image(CUmodule module, CUlibrary library, const void *image) { (void)module, (void)library, (void)image; }

void eng_note_variable(CUmodule module, CUlibrary library) { (void)module, (void)library; }

void eng_before_unload(CUmodule module, CUlibrary library) { (void)module, (void)library; }

void eng_note_unload(void)
{
    note(CALL_note_unload);
}

void eng_note_pinned(CUdeviceptr p, size_t bytes) { eng_note_in_place(p, bytes); }

void eng_note_in_place(CUdeviceptr p, size_t bytes)
{
    (void)p;
    (void)bytes;
}

void eng_note_outside(CUdeviceptr p, size_t bytes)
{
    (void)p;
    (void)bytes;
}

void eng_unconfined(const char *why) { (void)why; }

int eng_memory_stays(const char *why)
{
    (void)why;
    return 0;
}

size_t eng_forget_outside(CUdeviceptr p) { return (void)p, 0; }
void eng_closed_outside(CUdeviceptr p) { (void)p; }

size_t eng_forget_in_place(CUdeviceptr p)
{
    (void)p;
    return 0;
}

void eng_reach_texture_made(uint64_t handle) { (void)handle; }
void eng_reach_texture_gone(uint64_t handle) { (void)handle; }
void eng_reach_texture_bound(void) {}

int eng_note_tensor_map(const CUtensorMap *map, CUdeviceptr ptr, const CUtensorMap *shape)
{
    (void)map, (void)ptr, (void)shape;
    return CUDA_SUCCESS;
}

CUdeviceptr eng_tensor_map_at(const CUtensorMap *map)
{
    (void)map;
    return 0;
}

int eng_pin(CUdeviceptr ptr, size_t bytes, const char *why)
{
    note(CALL_pin);
    (void)ptr, (void)bytes, (void)why;
    return 0;
}

void eng_note_stream(unsigned flags) { (void)flags; }

void eng_stream_destroyed(CUstream stream)
{
    note(CALL_stream_destroyed);
    (void)stream;
}

int eng_pin_everything(void)
{
    note(CALL_pin_everything);
    return 0;
}

int eng_capture_begins(CUstream stream)
{
    note(CALL_capture_begins);
    (void)stream;
    return 0;
}

void eng_capture_began(CUstream s) { (void)s; }
bool eng_capture_under_way(void) { return false; }
int eng_capture_joins(CUstream s, CUevent e, bool *joins)
{
    (void)s, (void)e;
    *joins = false;
    return 0;
}
void eng_capture_joined(CUstream s) { (void)s; }
void eng_capture_ends(CUstream stream)
{
    note(CALL_capture_ends);
    (void)stream;
}

bool eng_is_captured(CUstream stream)
{
    (void)stream;
    return false;
}

void eng_graph_issued(void) {}

int engine_context_attached(CUcontext ctx, int more)
{
    (void)ctx, (void)more;
    return 0;
}

CUdevice engine_context_device(CUcontext ctx)
{
    (void)ctx;
    return -1;
}

void current_is(CUcontext ctx) { (void)ctx; }
void current_era_ends(void) {}
void current_asks_always(void) {}

void eng_note_context(CUcontext ctx, CUdevice dev) { (void)ctx, (void)dev; }

void eng_ending_begins(void) {}
void eng_ending_is_over(void) {}
void eng_context_ends(CUcontext ctx) { (void)ctx; }

void eng_context_gone(CUcontext ctx, bool was_primary)
{
    (void)was_primary;
    note(CALL_context_gone);
    (void)ctx;
}
