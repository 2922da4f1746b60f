/*
 * The kernels the simulated GPU's own tests launch. A module of the ABI in simgpu.h.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/simgpu.h"

#define P(type, i) (*(type *)params[i])

/* fill(uint32_t *p, uint32_t value, uint64_t n) */
static void fill(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint32_t *p = P(uint32_t *, 0);
    for (uint64_t i = 0; i < P(uint64_t, 2); i++)
        p[i] = P(uint32_t, 1);
}
static void fill_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = P(uint64_t, 2) * 4;
}
static const size_t fill_params[] = { 8, 4, 8 };

/* add(const uint32_t *a, const uint32_t *b, uint32_t *c, uint64_t n): c = a + b */
static void add(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const uint32_t *a = P(const uint32_t *, 0), *b = P(const uint32_t *, 1);
    uint32_t *c = P(uint32_t *, 2);
    for (uint64_t i = 0; i < P(uint64_t, 3); i++)
        c[i] = a[i] + b[i];
}
static void add_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = P(uint64_t, 3);
    *bytes = P(uint64_t, 3) * 12;
}
static const size_t add_params[] = { 8, 8, 8, 8 };

/* step(uint32_t *p, uint32_t multiply, uint32_t add): order matters */
static void step(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint32_t *p = P(uint32_t *, 0);
    *p = *p * P(uint32_t, 1) + P(uint32_t, 2);
}
static const size_t step_params[] = { 8, 4, 4 };

/* nap(uint32_t microseconds) */
static void nap(const simgpu_launch *l, void *const *params)
{
    (void)l;
    usleep(P(uint32_t, 0));
}
static const size_t nap_params[] = { 4 };

/* work(uint64_t flops, uint64_t bytes): costs that, does nothing */
static void work(const simgpu_launch *l, void *const *params)
{
    (void)l;
    (void)params;
}
static void work_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = P(uint64_t, 0);
    *bytes = P(uint64_t, 1);
}
static const size_t work_params[] = { 8, 8 };

/* wait_flag(volatile uint32_t *host_flag, uint32_t *out): out = 1 once the host has set the flag */
static void wait_flag(const simgpu_launch *l, void *const *params)
{
    (void)l;
    while (!__atomic_load_n(P(uint32_t *, 0), __ATOMIC_ACQUIRE))
        usleep(50);
    *P(uint32_t *, 1) = 1;
}
static const size_t wait_flag_params[] = { 8, 8 };

/* shape(uint32_t out[7]): writes the launch's dimensions */
static void shape(const simgpu_launch *l, void *const *params)
{
    uint32_t v[7] = { l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z, l->shared_bytes };
    memcpy(P(void *, 0), v, sizeof v);
}
static const size_t shape_params[] = { 8 };

/* mixed(char a, struct {12 bytes} b, uint64_t *out, short c): parameters of odd sizes; out gets 4 numbers */
typedef struct {
    uint32_t x, y, z;
} triple;
static void mixed(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t *out = P(uint64_t *, 2);
    out[0] = (uint64_t)P(char, 0);
    out[1] = P(triple, 1).x + P(triple, 1).y * 1000u;
    out[2] = P(triple, 1).z;
    out[3] = (uint64_t)P(short, 3);
}
static const size_t mixed_params[] = { 1, 12, 8, 2 };

/* threads(uint32_t *p, uint64_t n): two threads of its own fill one half each with 7 */
typedef struct {
    uint32_t *p;
    uint64_t n;
} half;
static void *fill_half(void *arg)
{
    half *h = arg;
    for (uint64_t i = 0; i < h->n; i++)
        h->p[i] = 7;
    return NULL;
}
static void threads(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t n = P(uint64_t, 1) / 2;
    half h[2] = { { P(uint32_t *, 0), n }, { P(uint32_t *, 0) + n, n } };
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, fill_half, &h[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}
static const size_t threads_params[] = { 8, 8 };

/* none(): no parameters */
static void none(const simgpu_launch *l, void *const *params)
{
    (void)l;
    (void)params;
}

#define K(name, cost) { #name, sizeof name##_params / sizeof(size_t), name##_params, name, cost }
static const simgpu_kernel kernels[] = {
    K(fill, fill_cost), K(add, add_cost), K(step, NULL),  K(nap, NULL),     K(work, work_cost), K(wait_flag, NULL),
    K(shape, NULL),     K(mixed, NULL),   K(threads, NULL), { "none", 0, NULL, none, NULL },
};
__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {
    SIMGPU_ABI, sizeof kernels / sizeof kernels[0], kernels
};
