/* The device hash as a module of the simulated GPU: stands for the PTX text, which would take twenty times as long there. tests/unit/
   test_simgpu_ptx.c holds one against the other. */
#include "tracer/effects/hash.h"
#include "tracer/effects/hash_ptx.h"
#include "tests/simgpu/simgpu.h"

/* Adds the sums of n words. */
static inline __attribute__((always_inline)) void words_sum(const hash_word *w, hash_word n, hash_word *out)
{
    hash_word a = 0, b = 0;
    for (hash_word i = 0; i < n; i++) {
        a += hash_first(w[i], i);
        b += hash_second(w[i], i);
    }
    out[0] += a;
    out[1] += b;
}

#ifdef __x86_64__
/* Half of the time in which a program is learnt goes into these sums: eight words at a time where the processor multiplies so many, four at a
 * time where products of eight halves make up theirs. */
__attribute__((target("avx512f,avx512dq"))) static void words_wide(const hash_word *w, hash_word n, hash_word *out) { words_sum(w, n, out); }

typedef hash_word four __attribute__((vector_size(32)));

__attribute__((target("avx2"))) static inline __attribute__((always_inline)) four mix_four(four x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

__attribute__((target("avx2"))) static void words_four(const hash_word *w, hash_word n, hash_word *out)
{
    const hash_word first = 0x9e3779b97f4a7c15ull, whole = n & ~(hash_word)3;
    four a = {0}, b = {0}, i = {0, 1, 2, 3}, step = {first, 2 * first, 3 * first, 4 * first};
    for (hash_word k = 0; k < whole; k += 4, i += 4, step += 4 * first) {
        four v;
        __builtin_memcpy(&v, w + k, sizeof v);
        a += mix_four(v + step);
        b += mix_four((v ^ 0xd6e8feb86659fd93ull) * (2 * i + 1) + i);
    }
    out[0] += a[0] + a[1] + a[2] + a[3];
    out[1] += b[0] + b[1] + b[2] + b[3];
    for (hash_word k = whole; k < n; k++) {
        out[0] += hash_first(w[k], k);
        out[1] += hash_second(w[k], k);
    }
}
#endif

static void words_run(const hash_word *w, hash_word n, hash_word *out)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        words_wide(w, n, out);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        words_four(w, n, out);
        return;
    }
#endif
    words_sum(w, n, out);
}

static void hash_one(const hash_word *w, hash_word bytes, hash_word *out)
{
    hash_word n = bytes / 8; /* the sums do not depend on the grid */
    words_run(w, n, out);
    if (bytes % 8) {
        hash_word v = hash_tail((const unsigned char *)(w + n), bytes % 8);
        out[0] += hash_first(v, n);
        out[1] += hash_second(v, n);
    }
}

static void rows_run(const struct hash_row *row, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        hash_one((const hash_word *)(uintptr_t)row[i].ptr, row[i].bytes, (hash_word *)(uintptr_t)row[i].out);
}

static void few_run(const simgpu_launch *l, void *const *params) { rows_run(((const struct hash_few *)params[0])->row, l->grid.y); }

static void list_run(const simgpu_launch *l, void *const *params) { rows_run(*(const struct hash_row *const *)params[0], l->grid.y); }

static void find_run(const simgpu_launch *l, void *const *params)
{
    const struct hash_row *row = *(const struct hash_row *const *)params[0];
    for (unsigned i = 0; i < l->grid.y; i++)
        for (hash_word k = 0; k < row[i].bytes / 8; k++)
            *(hash_word *)(uintptr_t)row[i].out += find_may_be(params[2], ((const hash_word *)(uintptr_t)row[i].ptr)[k]);
}

static void hash_cost(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = *(const hash_word *)params[1];
}

static const size_t few_params[] = {sizeof(struct hash_few), 8}, list_params[] = {8, 8}, find_params[] = {8, 8, sizeof(struct find_spans)};
static const simgpu_kernel kernels[] = {{"remat_hash_few", 2, few_params, few_run, hash_cost},
                                        {"remat_hash_list", 2, list_params, list_run, hash_cost},
                                        {"remat_find_list", 3, find_params, find_run, hash_cost}};
__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {1, 3, kernels};
__attribute__((visibility("default"))) const char *const simgpu_stands_for = hash_ptx;
