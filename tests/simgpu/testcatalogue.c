/*
 * A small catalogue (tests/simcuda/catalogue.h) for the tests of machine code: three kernels by name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/simcuda/catalogue.h"

#define P(type, i) (*(type *)params[i])

/* k_fill(uint32_t *p, uint32_t value, uint64_t n): p[i] = value + *(const unsigned *)row */
static void fill(const struct catalogue_launch *l, void *const *params, const void *row)
{
    (void)l;
    for (uint64_t i = 0; i < P(uint64_t, 2); i++)
        P(uint32_t *, 0)[i] = P(uint32_t, 1) + *(const unsigned *)row;
}

static void fill_cost(const struct catalogue_launch *l, void *const *params, const void *row, uint64_t *flops, uint64_t *bytes)
{
    (void)l, (void)row;
    *flops = 0;
    *bytes = 4 * P(uint64_t, 2);
}

/* k_tell(uint64_t *out): what a launch tells its kernel */
static void tell(const struct catalogue_launch *l, void *const *params, const void *row)
{
    (void)row;
    uint64_t *out = P(uint64_t *, 0);
    out[0] = l->grid.x;
    out[1] = l->block.y;
    out[2] = l->shared_bytes;
    out[3] = l->chaos;
    out[4] = l->sm_count;
    out[5] = !strcmp(l->kernel->name, "k_tell") && l->kernel->arch == 80;
    out[6] = (uint64_t)l->device;
}

/* k_large(uint64_t *out, char block[n]): the sum of its bytes */
static void sum(const struct catalogue_launch *l, void *const *params, const void *row)
{
    (void)row;
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->kernel->bytes[1]; i++)
        n += ((const unsigned char *)params[1])[i];
    *P(uint64_t *, 0) = n;
}

static const unsigned zero = 0, seven = 7;

/* Whether the driver tells which kernels its module has, this one among them. */
static int is_beside(const struct catalogue_kernel *k)
{
    unsigned i = 0;
    while (i < k->n_beside && strcmp(k->beside[i], k->name))
        i++;
    return i < k->n_beside;
}

static int find(const struct catalogue_kernel *k, struct catalogue_binding *out)
{
    if (!is_beside(k))
        return -ENOENT;
    if (!strcmp(k->name, "k_fill") && k->n_params != 3)
        return -EPROTO;
    if (!strcmp(k->name, "k_fill"))
        *out = (struct catalogue_binding){ fill, fill_cost, &zero };
    else if (!strcmp(k->name, "k_fill7"))
        *out = (struct catalogue_binding){ fill, fill_cost, &seven };
    else if (!strcmp(k->name, "k_tell"))
        *out = (struct catalogue_binding){ tell, NULL, NULL };
    else if (!strcmp(k->name, "k_large"))
        *out = (struct catalogue_binding){ sum, NULL, NULL };
    else
        return strncmp(k->name, "k_", 2) ? -ENOENT : -ENOSYS;
    return 0;
}

static void describe(const char *mangled, char *out, size_t room)
{
    snprintf(out, room, "<%s>", mangled);
}

__attribute__((visibility("default"))) const struct catalogue_info simcuda_catalogue = { CATALOGUE_ABI, find, describe };
