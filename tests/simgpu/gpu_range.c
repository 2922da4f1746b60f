/*
 * All ranges of addresses the driver knows, by start: a treap. Ranges do not overlap. Under gpu_lock.
 *
 * Addresses of the device window are handed out upwards and come round again only after the whole window was
 * used, so a stale address stays recognisably stale.
 */
#include <stdlib.h>

#include "tests/simgpu/gpu.h"

static gpu_range *root;
static uint64_t weights = 88172645463325252ull;
static _Atomic unsigned long long last_id; /* also taken before gpu_lock */
static CUdeviceptr cursor;

unsigned long long gpu_range_new_id(void)
{
    return ++last_id;
}

uint64_t gpu_round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static gpu_range *merge(gpu_range *a, gpu_range *b) /* all of a before all of b */
{
    if (!a || !b)
        return a ? a : b;
    if (a->weight > b->weight) {
        a->right = merge(a->right, b);
        return a;
    }
    b->left = merge(a, b->left);
    return b;
}

static void split(gpu_range *t, CUdeviceptr at, gpu_range **below, gpu_range **rest)
{
    if (!t) {
        *below = *rest = NULL;
    } else if (t->start < at) {
        split(t->right, at, &t->right, rest);
        *below = t;
    } else {
        split(t->left, at, below, &t->left);
        *rest = t;
    }
}

void gpu_range_insert(gpu_range *r)
{
    gpu_range *below, *rest;
    weights ^= weights << 13;
    weights ^= weights >> 7;
    weights ^= weights << 17;
    r->weight = weights;
    r->left = r->right = NULL;
    split(root, r->start, &below, &rest);
    root = merge(merge(below, r), rest);
}

void gpu_range_remove(gpu_range *r)
{
    gpu_range *below, *rest, *only, *above;
    split(root, r->start, &below, &rest);
    split(rest, r->start + 1, &only, &above);
    root = merge(below, above);
}

gpu_range *gpu_range_next(CUdeviceptr p)
{
    gpu_range *best = NULL;
    for (gpu_range *t = root; t;)
        if (t->start >= p) {
            best = t;
            t = t->left;
        } else
            t = t->right;
    return best;
}

static gpu_range *last_starting_before(CUdeviceptr p) /* start <= p */
{
    gpu_range *best = NULL;
    for (gpu_range *t = root; t;)
        if (t->start <= p) {
            best = t;
            t = t->right;
        } else
            t = t->left;
    return best;
}

gpu_range *gpu_range_find(CUdeviceptr p)
{
    gpu_range *r = last_starting_before(p);
    return r && p - r->start < r->span ? r : NULL;
}

gpu_range *gpu_range_overlap(CUdeviceptr p, uint64_t bytes)
{
    gpu_range *r = gpu_range_find(p);
    if (r)
        return r;
    r = gpu_range_next(p);
    return r && r->start - p < bytes ? r : NULL;
}

CUdeviceptr gpu_range_address(uint64_t span, uint64_t alignment, CUdeviceptr hint)
{
    CUdeviceptr base = gpu_window_base, end = base + gpu_window_bytes;
    if (span == 0 || span > gpu_window_bytes)
        return 0;
    if (hint >= base && hint < end && span <= end - hint && hint % alignment == 0 &&
        !gpu_range_overlap(hint, span))
        return hint;
    if (cursor < base)
        cursor = base;
    CUdeviceptr at = cursor;
    for (int round = 0; round < 2; round++, at = base)
        for (;;) {
            at = gpu_round_up(at, alignment);
            if (at > end || span > end - at)
                break;
            gpu_range *r = gpu_range_overlap(at, span);
            if (!r) {
                cursor = at + span;
                return at;
            }
            at = r->start + r->span;
        }
    return 0;
}

bool gpu_range_is_pinned(const void *p, uint64_t bytes)
{
    CUdeviceptr a = (CUdeviceptr)(uintptr_t)p;
    gpu_range *r = gpu_range_find(a);
    return r && gpu_range_is_host(r) && bytes <= r->start + r->span - a;
}

bool gpu_range_is_managed(const gpu_range *r)
{
    return r->kind == GPU_RANGE_MANAGED || (r->kind == GPU_RANGE_POOL && r->phys->managed);
}

bool gpu_range_is_host(const gpu_range *r)
{
    return r->kind == GPU_RANGE_HOST || r->kind == GPU_RANGE_REGISTERED || (r->kind == GPU_RANGE_POOL && r->phys->on_host && !r->phys->managed);
}

bool gpu_range_is_device(CUdeviceptr p)
{
    return p - gpu_window_base < gpu_window_bytes;
}

gpu_mapping *gpu_range_mapping(const gpu_range *r, CUdeviceptr p)
{
    if (r->kind != GPU_RANGE_RESERVATION || p - r->start >= r->span)
        return NULL;
    return r->slots[(p - r->start) / gpu_cfg.granularity_bytes];
}
