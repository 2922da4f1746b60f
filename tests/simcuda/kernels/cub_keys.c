/*
 * CUB's device-wide operations on runs of equal keys: the first of each run (unique, unique by key), its length (reduce by key), and
 * sums within it (scan by key). Keys and values come through iterators by value: plain pointers, reversed ones, constants, counters.
 * Device code may leave anything in the tile descriptors; here they stay as their own kernel has set them.
 */
#include <string.h>

#include "tests/simcuda/kernels/rows.h"

enum kind { NONE, POINTER, REVERSED, CONSTANT, COUNTER, BLOCK_KEY };

struct iter { enum kind kind; enum dtype t; size_t value_at; /* a constant's value, behind its counter */ };

/* The text from `from` to the given character is a type. */
static enum dtype type_until(const char *from, char end)
{
    char text[40];
    const char *stop = strchr(from, end);
    size_t n = stop ? (size_t)(stop - from) : 0;
    if (!n || n >= sizeof text) return DT_NONE;
    memcpy(text, from, n);
    text[n] = 0;
    return dtype_parse(text);
}

/* "T, its counter's type, ..": the counter has 8 bytes where no type is named. */
static struct iter constant(const char *text)
{
    struct iter it = { CONSTANT, type_until(text, ','), 0 };
    const char *second = strchr(text, ',');
    enum dtype counter = second ? type_until(second + 2, ',') : DT_NONE;
    it.value_at = KERN_MAX(counter == DT_NONE ? 8 : dtype_bytes(counter), dtype_bytes(it.t));
    return it;
}

static struct iter iter_parse(const char *text)
{
    struct iter it = { NONE, DT_NONE, 0 };
    const char *at;
    if (strstr(text, "BlockIdxToKey")) it = (struct iter){ BLOCK_KEY, DT_U32, 0 };
    else if ((at = strstr(text, "reverse_iterator<"))) it = (struct iter){ REVERSED, type_until(at + 17, '*'), 0 };
    else if ((at = strstr(text, "constant_iterator<"))) it = constant(at + 18);
    else if ((at = strstr(text, "counting_iterator<"))) it = (struct iter){ COUNTER, type_until(at + 18, ','), 0 };
    else it = (struct iter){ POINTER, dtype_parse_pointer(text), 0 };
    if (dtype_class(it.t) == DC_NONE) it.kind = NONE;
    return it;
}

/* Where element i of a pointer lies. */
static int64_t place(struct iter it, int64_t i) { return it.kind == REVERSED ? -1 - i : i; }

static int64_t number(struct iter it, const void *p, int64_t i)
{
    switch (it.kind) {
    case COUNTER: return dtype_geti(it.t, p, 0) + i;
    case CONSTANT: return dtype_geti(it.t, (const char *)p + it.value_at, 0);
    case BLOCK_KEY: return (((const uint32_t *)p)[0] + i) / KERN_MAX(((const uint32_t *)p)[1], 1u);
    default: return dtype_geti(it.t, *(const void *const *)p, place(it, i));
    }
}

static bool same(struct iter it, const void *p, int64_t a, int64_t b)
{
    if (it.kind != POINTER && it.kind != REVERSED) return number(it, p, a) == number(it, p, b);
    const void *base = *(const void *const *)p;
    return dtype_class(it.t) == DC_I ? dtype_geti(it.t, base, place(it, a)) == dtype_geti(it.t, base, place(it, b))
                                     : dtype_get(it.t, base, place(it, a)) == dtype_get(it.t, base, place(it, b));
}

static int64_t num(void *const *p, const struct kern *k, int i) { return k->k->bytes[i] == 8 ? A(int64_t, i) : A(int, i); }

static struct iter arg(const struct kern *k, int i) { return iter_parse(k->name.arg[i]); }

static void copy_key(struct iter it, const void *p, int64_t from, void *out, int64_t to)
{
    size_t es = dtype_bytes(it.t);
    memcpy((char *)out + to * (int64_t)es, *(const char *const *)p + place(it, from) * (int64_t)es, es);
}

/* <policy, keys, flags, out, count, ..> (keys, flags, T *out, I *count, tiles, .., equality, int n, ..): the first of equal neighbours */
static void unique(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct iter keys = arg(k, 1);
    int64_t n = num(p, k, 7), out = 0;
    for (int64_t i = 0; i < n; i++)
        if (!i || !same(keys, p[0], i - 1, i)) copy_key(keys, p[0], i, A(void *, 2), out++);
    dtype_seti(arg(k, 4).t, A(void *, 3), 0, out);
}

static int bind_unique(struct kern *k)
{
    bool known = k->name.n_args > 7 && arg(k, 1).kind == POINTER && strstr(k->name.arg[2], "NullType")
                 && arg(k, 4).kind == POINTER && strstr(k->name.arg[7], "equal_to");
    return known ? 0 : -ENOSYS;
}

/* <policy, keys, values, keys out, values out, count, ..> (keys, values, keys out, values out, count, tiles, equality, n, ..) */
static void unique_by_key(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct iter keys = arg(k, 1), values = arg(k, 2), out_t = arg(k, 4);
    int64_t n = num(p, k, 7), out = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i && same(keys, p[0], i - 1, i)) continue;
        if (A(void *, 2)) copy_key(keys, p[0], i, A(void *, 2), out);
        dtype_seti(out_t.t, A(void *, 3), out++, number(values, p[1], i));
    }
    dtype_seti(arg(k, 5).t, A(void *, 4), 0, out);
}

static int bind_unique_by_key(struct kern *k)
{
    bool known = k->name.n_args > 7 && arg(k, 1).kind == POINTER && arg(k, 2).kind != NONE && arg(k, 4).kind == POINTER
                 && dtype_class(arg(k, 4).t) == DC_I && arg(k, 5).kind == POINTER && strstr(k->name.arg[7], "equal_to");
    return known ? 0 : -ENOSYS;
}

/* <policy, keys, keys out, values, sums, count, ..> (keys, keys out, values, sums, count, tiles, first tile, equality, op, n, ..) */
static void reduce_by_key(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct iter keys = arg(k, 1), values = arg(k, 3), sums = arg(k, 4);
    int64_t n = num(p, k, 9), out = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!i || !same(keys, p[0], i - 1, i)) {
            copy_key(keys, p[0], i, A(void *, 1), out++);
            sum = 0;
        }
        sum += number(values, p[2], i);
        dtype_seti(sums.t, A(void *, 3), out - 1, sum);
    }
    dtype_seti(arg(k, 5).t, A(void *, 4), 0, out);
}

static int bind_reduce_by_key(struct kern *k)
{
    bool known = k->name.n_args > 8 && arg(k, 1).kind == POINTER && arg(k, 3).kind == CONSTANT && arg(k, 4).kind == POINTER
                 && arg(k, 5).kind == POINTER && strstr(k->name.arg[7], "equal_to") && strstr(k->name.arg[8], "plus");
    return known ? 0 : -ENOSYS;
}

/* <policy, keys, values, out, tiles, equality, op, ..> (keys, previous keys *, values, out, tiles, first tile, equality, op, .., n) */
static void scan_by_key(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct iter keys = arg(k, 1), values = arg(k, 2), out = arg(k, 3);
    bool max = strstr(k->name.arg[6], "maximum") != NULL;
    int64_t n = num(p, k, 9), acc = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = number(values, p[2], i);
        if (!i || !same(keys, p[0], i - 1, i)) acc = v;
        else acc = max ? KERN_MAX(acc, v) : acc + v;
        dtype_seti(out.t, A(void *, 3), place(out, i), acc);
    }
}

static int bind_scan_by_key(struct kern *k)
{
    bool known = k->name.n_args > 7 && arg(k, 1).kind != NONE && arg(k, 2).kind != NONE && arg(k, 3).kind != NONE
                 && dtype_class(arg(k, 3).t) == DC_I && strstr(k->name.arg[7], "NullType")
                 && (strstr(k->name.arg[6], "maximum") || strstr(k->name.arg[6], "plus"));
    return known ? 0 : -ENOSYS;
}

/* (tiles *, keys, previous keys *, items of a tile, number of tiles): the key before each tile */
static void scan_by_key_init(const struct catalogue_launch *l, void *const *p, const struct kern *k)
{
    (void)l;
    struct iter keys = arg(k, 1);
    int64_t tiles = A(int, 4), items = num(p, k, 3);
    memset(A(char *, 0), 0, 16 * ((size_t)tiles + 32));
    for (int64_t i = 1; i < tiles; i++) dtype_seti(keys.t, A(void *, 2), i, number(keys, p[1], i * items - 1));
}

static int bind_scan_by_key_init(struct kern *k) { return k->name.n_args > 1 && arg(k, 1).kind != NONE ? 0 : -ENOSYS; }

static void cost(const struct catalogue_launch *l, void *const *p, const struct kern *k, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    int at = k->row->run == reduce_by_key || k->row->run == scan_by_key ? 9 : 7;
    *flops = (uint64_t)num(p, k, at);
    *bytes = 32 * *flops;
}

const struct kern_row cub_keys_rows[] = {
    { "DeviceSelectSweepKernel", "pppppbbii*p", unique, cost, bind_unique },
    { "DeviceUniqueByKeySweepKernel", "p*ppp" "pb*ip", unique_by_key, cost, bind_unique_by_key },
    { "DeviceReduceByKeyKernel", "pp*pppibbi*p", reduce_by_key, cost, bind_reduce_by_key },
    { "DeviceReduceByKeyKernel", "pp*pppibbi", reduce_by_key, cost, bind_reduce_by_key }, /* 2.11 */
    { "DeviceScanByKeyKernel", "*p**pibbb*", scan_by_key, cost, bind_scan_by_key },
    { "DeviceScanByKeyInitKernel", "p*p*i", scan_by_key_init, NULL, bind_scan_by_key_init },
    KERN_END
};
