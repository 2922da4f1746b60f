/*
 * The kernels as a module of the simulated GPU: for every row of kernels.def a loop over the launch's threads,
 * and the work it costs. On x86-64 each loop is compiled twice and the processor's AVX2 decides at run time; the
 * lanes are independent and nothing is fused, so both give the same bits.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/simgpu.h"
#include "tests/workloads/kernel_args.h"
#include "tests/workloads/kernel_items.h"

/* Items are independent (kernels.def), whatever the pointers look like. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#ifdef __x86_64__
#define WIDE __attribute__((target("avx2")))
#define HAVE_WIDE __builtin_cpu_supports("avx2")
#else
#define WIDE
#define HAVE_WIDE 0
#endif

/* how many of the items have a thread in this launch */
static int launched(const simgpu_launch *l, int items)
{
    uint64_t threads = (uint64_t)l->grid.x * l->grid.y * l->grid.z * l->block.x * l->block.y * l->block.z;
    return threads < (uint64_t)items ? (int)threads : items;
}

#define LOAD(t, n) t n = *(t const *)*arg++;
#define SIZE(t, n) sizeof(t)
#define UNUSED(t, n) (void)n;

#define LOOP(name, how, attributes, items, ...) \
    attributes static void name##how(const simgpu_launch *l, void *const *arg) \
    { \
        EACH(LOAD, ARGS_NOTHING, __VA_ARGS__) \
        int last = launched(l, (items)); \
        INDEPENDENT for (int i = 0; i < last; i++) \
            name##_item(i, EACH(ARGS_NAME, ARGS_COMMA, __VA_ARGS__)); \
    }

#define KERNEL(name, items, flops_, bytes_, ...) \
    LOOP(name, _plain, , items, __VA_ARGS__) \
    LOOP(name, _wide, WIDE, items, __VA_ARGS__) \
    static void name##_run(const simgpu_launch *l, void *const *arg) \
    { \
        if (HAVE_WIDE) \
            name##_wide(l, arg); \
        else \
            name##_plain(l, arg); \
    } \
    static void name##_cost(const simgpu_launch *l, void *const *arg, uint64_t *flops, uint64_t *bytes) \
    { \
        EACH(LOAD, ARGS_NOTHING, __VA_ARGS__) \
        EACH(UNUSED, ARGS_NOTHING, __VA_ARGS__) \
        (void)l; \
        *flops = (uint64_t)(flops_); \
        *bytes = (uint64_t)(bytes_); \
    } \
    static const size_t name##_sizes[] = {EACH(SIZE, ARGS_COMMA, __VA_ARGS__)};
#include "tests/workloads/kernels.def"
#undef KERNEL

#define KERNEL(name, items, flops, bytes, ...) \
    {#name, sizeof name##_sizes / sizeof *name##_sizes, name##_sizes, name##_run, name##_cost},
static const simgpu_kernel kernels[] = {
#include "tests/workloads/kernels.def"
};
#undef KERNEL

__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {
    1, sizeof kernels / sizeof *kernels, kernels
};
