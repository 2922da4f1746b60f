/*
 * Two passes over blocks in a fixed order: running sums of one dimension where algorithms shall be deterministic, and torch.nonzero_static. The
 * most frequent element of a row (torch.mode).
 */
#include <string.h>

#include "tests/simcuda/kernels/accessor.h"
#include "tests/simcuda/kernels/rows.h"

/* Elements of a block: its threads, elements a thread, rounds. */
static int64_t block_of(const struct kern *k, int rounds) { return k->v[0] * k->v[1] * rounds; }

static bool differs_from_zero(enum dtype t, const void *p, int64_t i)
{
    return dtype_class(t) == DC_F || dtype_class(t) == DC_D ? dtype_get(t, p, i) != 0 : dtype_geti(t, p, i) != 0;
}

/* <threads, elements, count those that are not zero, T, Sum> (const T *x, Sum *sums, i64 n, int rounds): the sum of each block */
static void sums(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[3], st = k->t[4];
    int64_t n = A(int64_t, 2), each = block_of(k, A(int, 3));
    bool count = !strcmp(k->name.arg[2], "true");
    for (int64_t b = 0; b < (int64_t)l->grid.x; b++) {
        double sum = 0;
        int64_t isum = 0;
        for (int64_t i = b * each; i < KERN_MIN(n, (b + 1) * each); i++) {
            if (count) isum += differs_from_zero(t, A(const void *, 0), i);
            else if (dtype_class(t) == DC_I) isum = (int64_t)((uint64_t)isum + (uint64_t)dtype_geti(t, A(const void *, 0), i));
            else sum += dtype_get(t, A(const void *, 0), i);
        }
        if (count || dtype_class(st) == DC_I) dtype_seti(st, A(void *, 1), b, isum);
        else dtype_set(st, A(void *, 1), b, sum);
    }
}

/* <threads, elements, T> (const T *x, T *y, const T *sums, i64 n, int rounds): running sums, each block behind those before it */
static void running(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[2];
    int64_t n = A(int64_t, 3), each = block_of(k, A(int, 4)), ibefore = 0;
    double before = 0;
    bool integer = dtype_class(t) == DC_I;
    for (int64_t b = 0; b < (int64_t)l->grid.x; b++) {
        double sum = before;
        int64_t isum = ibefore;
        for (int64_t i = b * each; i < KERN_MIN(n, (b + 1) * each); i++) {
            if (integer) dtype_seti(t, A(void *, 1), i, isum = (int64_t)((uint64_t)isum + (uint64_t)dtype_geti(t, A(const void *, 0), i)));
            else dtype_set(t, A(void *, 1), i, sum += dtype_get(t, A(const void *, 0), i));
        }
        if (integer) ibefore = (int64_t)((uint64_t)ibefore + (uint64_t)dtype_geti(t, A(const void *, 2), b));
        else before += dtype_get(t, A(const void *, 2), b);
    }
}

/* (int *counts, i64 *running, unsigned n) */
static void counts_before(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    int64_t sum = 0;
    for (uint32_t i = 0; i < A(uint32_t, 2); i++) A(int64_t *, 1)[i] = sum += A(const int *, 0)[i];
}

/* <threads, elements, T> (const T *x, i64 *places, const i64 *running counts, i64 n, i64 of places, int rounds): where x is not zero */
static void places(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    enum dtype t = k->t[2];
    int64_t n = A(int64_t, 3), each = block_of(k, A(int, 5));
    for (int64_t b = 0; b < (int64_t)l->grid.x; b++) {
        int64_t at = b ? A(const int64_t *, 2)[b - 1] : 0;
        for (int64_t i = b * each; i < KERN_MIN(n, (b + 1) * each); i++)
            if (differs_from_zero(t, A(const void *, 0), i)) {
                if (at < A(int64_t, 4)) A(int64_t *, 1)[at] = i;
                at++;
            }
    }
}

/* (i64 *places, const i64 *found, i64 value, i64 n): what no place was found for */
static void fill_rest(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l, (void)k;
    for (int64_t i = KERN_MAX(*A(const int64_t *, 1), 0); i < A(int64_t, 3); i++) A(int64_t *, 0)[i] = A(int64_t, 2);
}

/* <T, ..> (const T *x, info values, info indices, i64 row size, i64 rows): the most frequent element, the least of several, and a place of it */
static void mode(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    enum dtype t = k->t[0];
    struct tinfo value = tinfo_read(p[1], k->k->bytes[1]), index = tinfo_read(p[2], k->k->bytes[2]);
    int64_t n = A(int64_t, 3);
    bool integer = dtype_class(t) == DC_I;
    for (int64_t row = 0; row < A(int64_t, 4); row++) {
        int64_t best = -1, most = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t many = 0, last = i;
            for (int64_t j = 0; j < n; j++) {
                bool same = integer ? dtype_geti(t, A(const void *, 0), row * n + j) == dtype_geti(t, A(const void *, 0), row * n + i)
                                    : dtype_get(t, A(const void *, 0), row * n + j) == dtype_get(t, A(const void *, 0), row * n + i);
                if (!same) continue;
                many++;
                last = j;
            }
            bool less = best >= 0 && (integer ? dtype_geti(t, A(const void *, 0), row * n + i) < dtype_geti(t, A(const void *, 0), row * n + best)
                                              : dtype_get(t, A(const void *, 0), row * n + i) < dtype_get(t, A(const void *, 0), row * n + best));
            if (many < most || (many == most && !less)) continue;
            most = many;
            best = last;
        }
        size_t es = dtype_bytes(t);
        memcpy(value.data + tinfo_offset(&value, row) * (int64_t)es, A(const char *, 0) + (row * n + best) * (int64_t)es, es);
        ((int64_t *)index.data)[tinfo_offset(&index, row)] = best;
    }
}

static void mode_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    uint64_t n = A(uint64_t, 3) * A(uint64_t, 4);
    *flops = 40 * n;
    *bytes = n * dtype_bytes(k->t[0]);
}

static void pass_cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    bool first = k->row->run == sums;
    uint64_t n = A(uint64_t, first ? 2 : 3);
    *flops = n;
    *bytes = (first ? 1 : 2) * n * dtype_bytes(k->t[first ? 3 : 2]);
}

static int bind_type(struct kern *k)
{
    int at = k->row->run == sums ? 3 : k->row->run == mode ? 0 : 2;
    return dtype_class(k->t[at]) == DC_NONE || (at == 3 && dtype_class(k->t[4]) == DC_NONE) ? -ENOSYS : 0;
}

const struct kern_row blocks_rows[] = {
    { "calc_block_sums", "pppi", sums, pass_cost, bind_type },
    { "final_scan_kernel", "ppppi", running, pass_cost, bind_type },
    { "compute_agg", "ppi", counts_before, NULL, NULL },
    { "flag_kernel", "pppppi", places, pass_cost, bind_type },
    { "write_fill_value", "pppp", fill_rest, NULL, NULL },
    { "compute_mode", "p**pp", mode, mode_cost, bind_type },
    KERN_END
};
