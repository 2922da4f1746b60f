/*
 * CUB's device-wide count and selection, as nonzero() and indexing by truth values use them: how many elements are not zero, and
 * the numbers of those that are not, in order. Elements come through an iterator by value whose first word is their address.
 */
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

/* The element type of the NonZeroOp in one of the kernel's arguments; DT_NONE where there is none. */
static enum dtype flag_type(const char *text)
{
    const char *at = strstr(text, "NonZeroOp<");
    if (!at) return DT_NONE;
    at += 10;
    size_t n = strcspn(at, ">");
    char name[32];
    if (n >= sizeof name) return DT_NONE;
    memcpy(name, at, n);
    name[n] = 0;
    return dtype_parse(name);
}

static int64_t num(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(uint32_t, i); }

static int64_t count(enum dtype t, const void *x, int64_t from, int64_t to)
{
    int64_t n = 0;
    for (int64_t i = from; i < to; i++) n += dtype_class(t) == DC_I ? dtype_geti(t, x, i) != 0 : dtype_get(t, x, i) != 0;
    return n;
}

static int bind_count(struct kern *k)
{
    if (k->name.n_args < 2) return -ENOSYS;
    k->t[1] = flag_type(k->name.arg[1]);
    if (k->t[1] == DT_NONE && !strcmp(k->name.arg[1], "int*")) k->t[1] = DT_RAW4; /* the parts of a first kernel */
    if (k->t[1] == DT_NONE || !strstr(k->name.text, "plus<") || k->k->n_params != 6) return -ENOSYS;
    return 0;
}

/* (elements, int *out, n, op, int init, identity): one block adds all */
static void count_all(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    const void *x = A(const void *, 0);
    int64_t n = num(p, k, 2), sum = A(int, 4);
    if (k->t[1] == DT_RAW4) for (int64_t i = 0; i < n; i++) sum += ((const int *)x)[i];
    else sum += count(k->t[1], x, 0, n);
    *A(int *, 1) = (int)sum;
}

/* (elements, int *parts, n, shares, op, identity): a part a block */
static void count_parts(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    int64_t n = num(p, k, 2), blocks = l->grid.x, each = (n + blocks - 1) / blocks;
    for (int64_t b = 0; b < blocks; b++)
        A(int *, 1)[b] = (int)count(k->t[1], A(const void *, 0), KERN_MIN(b * each, n), KERN_MIN((b + 1) * each, n));
}

/* (tile descriptors *, tiles, count *) */
static void compact_init(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    memset(A(char *, 0), 0, (strstr(k->name.arg[0], "long") ? 16 : 8) * ((size_t)A(uint32_t, 1) + 32));
    if (!A(void *, 2)) return;
    if (!strcmp(k->name.arg[1], "long*")) *A(int64_t *, 2) = 0;
    else *A(int *, 2) = 0;
}

/* (first number, flags, i64 *out, int *count, tiles, .., .., int n, int tiles, { first partition, last, .. }, ..) */
static void select_numbers(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    const void *flags = A(const void *, 1);
    int64_t out = 0, first = A(int64_t, 0);
    for (int64_t i = 0; i < A(int, 7); i++)
        if (count(k->t[2], flags, i, i + 1)) A(int64_t *, 2)[out++] = first + i;
    *A(int *, 3) = (int)out;
}

static int bind_select(struct kern *k)
{
    if (k->name.n_args < 5 || !strstr(k->name.arg[1], "counting_iterator<long")) return -ENOSYS;
    k->t[2] = flag_type(k->name.arg[2]);
    return k->t[2] == DT_NONE || strcmp(k->name.arg[3], "long*") || strcmp(k->name.arg[4], "int*") ? -ENOSYS : 0;
}

/* (i64 *numbers, i64 sizes[25], int dims, i64 n, const i64 *found, i64 fill): numbers become coordinates, a row a dimension; what
   lies beyond the found ones gets the fill value */
static void coordinates(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    const int64_t *size = p[1], *found = A(const int64_t *, 4);
    int64_t n = A(int64_t, 3), *out = A(int64_t *, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = out[i];
        for (int d = A(int, 2) - 1; d >= 0; d--) {
            out[i + d * n] = found && i >= *found ? A(int64_t, 5) : rest % size[d];
            rest /= size[d];
        }
    }
}

const struct kern_row cub_rows[] = {
    { "DeviceReduceSingleTileKernel", NULL, count_all, NULL, bind_count },
    { "DeviceReduceKernel", NULL, count_parts, NULL, bind_count },
    { "DeviceCompactInitKernel", "pip", compact_init, NULL, NULL },
    { "DeviceSelectSweepKernel", "p*pppbbii*p", select_numbers, NULL, bind_select },
    { "write_indices", "p*ippp", coordinates, NULL, NULL },
    KERN_END
};
