/*
 * The catalogue's door: finds the row of a kernel by its name and binds it.
 */
#include <stdio.h>
#include <string.h>

#include "tests/simcuda/kernels/kern.h"

static const struct kern_row *const families[] = {
#define FAMILY(name) name##_rows,
#include "tests/simcuda/kernels/families.def"
#undef FAMILY
};

/* A row's name may end in a star: any kernel that begins so. */
static bool is_name(const char *row, const char *name)
{
    size_t n = strlen(row);
    return n && row[n - 1] == '*' ? !strncmp(row, name, n - 1) : !strcmp(row, name);
}

static uint32_t bytes_of(char c)
{
    return c == 'b' ? 1 : c == 'h' ? 2 : c == 'i' ? 4 : c == 'p' ? 8 : 0;
}

static int check_signature(const struct kern_row *row, const struct catalogue_kernel *k)
{
    if (!row->sig) return 0;
    if (strlen(row->sig) != k->n_params) return -EPROTO;
    for (unsigned i = 0; i < k->n_params; i++)
        if (row->sig[i] != '*' && bytes_of(row->sig[i]) != k->bytes[i]) return -EPROTO;
    return 0;
}

static void run(const struct catalogue_launch *l, void *const *params, const void *row)
{
    const struct kern *k = row;
    k->row->run(l, params, k);
}

static void cost(const struct catalogue_launch *l, void *const *params, const void *row, uint64_t *flops, uint64_t *bytes)
{
    const struct kern *k = row;
    uint64_t threads = (uint64_t)l->grid.x * l->grid.y * l->grid.z * l->block.x * l->block.y * l->block.z;
    *flops = threads;
    *bytes = threads * 8;
    if (k->row->cost) k->row->cost(l, params, k, flops, bytes);
}

static int find(const struct catalogue_kernel *ck, struct catalogue_binding *out)
{
    struct kern *k = calloc(1, sizeof *k);
    if (!k) return -ENOMEM;
    k->k = ck;
    int e = kname_parse(ck->name, &k->name), worst = -ENOENT;
    if (e) return e;
    for (int i = 0; i < k->name.n_args; i++) {
        k->t[i] = dtype_parse(k->name.arg[i]);
        kname_number(k->name.arg[i], &k->v[i]);
    }
    for (size_t f = 0; f < sizeof families / sizeof *families; f++)
        for (const struct kern_row *row = families[f]; row->base; row++) {
            if (!is_name(row->base, k->name.base)) continue;
            k->row = row;
            e = check_signature(row, ck);
            if (!e && row->bind) e = row->bind(k);
            if (!e) {
                *out = (struct catalogue_binding){ run, cost, k };
                return 0;
            }
            if (worst == -ENOENT || e == -EPROTO) worst = e;
        }
    free(k);
    return worst;
}

static void describe(const char *mangled, char *out, size_t out_bytes)
{
    char *text = kname_demangle(mangled);
    snprintf(out, out_bytes, "%s", text ? text : mangled);
    free(text);
}

__attribute__((visibility("default"))) const struct catalogue_info simcuda_catalogue = { CATALOGUE_ABI, find, describe };
