/* Kernels for programs that nobody tuned remat for: integers only, so that every result is exact. A word is 32 bits and
 * sizes count words, unless they say otherwise. */
#include "tests/simgpu/simgpu.h"
#include "tests/programs/list_args.h"
#include "tests/programs/role_args.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef uint32_t u32;

#define P(i, type) (*(type *)params[i])
#define PTR(i) ((u32 *)(uintptr_t)P(i, uint64_t))

static inline u32 mix(u32 x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    return x;
}

static inline u32 least(u32 a, u32 b) { return a < b ? a : b; }

/* kernels_other.so is made of this file, too: kernels of the same names and arguments, of which some do something else. */
#ifdef OTHER_KERNELS
static const bool other = true;
#else
static const bool other = false;
#endif

/* out = f(in), n words: out of place or in place; of the other module, the first word of in grows */
static void k_map(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32), k = P(3, u32), mask = P(4, u32);
    for (size_t i = 0; i < n; i++)
        out[i] = mix(in[i] + k) & mask;
    if (other && n)
        in[0]++;
}
static void c_map(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = 8ull * P(2, u32);
}

/* out[i] = f(a[i % na], b[i % nb]) */
static void k_join(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *a = PTR(1), *b = PTR(2), n = P(3, u32), na = P(4, u32), nb = P(5, u32);
    for (u32 i = 0, run; i < n; i += run) { /* to where one of the two begins anew: a loop that the compiler makes wide */
        const u32 *p = a + i % na, *q = b + i % nb;
        u32 *to = out + i;
        run = least(n - i, least(na - i % na, nb - i % nb));
        for (size_t k = 0; k < run; k++)
            to[k] = mix(p[k] + 3 * q[k]);
    }
}
static void c_join(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 2000ull * P(3, u32);
    *bytes = 12ull * P(3, u32);
}

/* a = f(in), b = g(in), n words each */
static void k_split(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *a = PTR(0), *b = PTR(1), *in = PTR(2), n = P(3, u32), n_in = P(4, u32), x = 0;
    for (u32 i = 0; i < n; i++) {
        a[i] = mix(in[x] + 11);
        b[i] = mix(in[x] + 13);
        x = x + 1 == n_in ? 0 : x + 1;
    }
}
static void c_split(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 2000ull * P(3, u32);
    *bytes = 12ull * P(3, u32);
}

/* one half of out only */
static void k_half(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32), which = P(3, u32);
    for (u32 i = which ? n / 2 : 0; i < (which ? n : n / 2); i++)
        out[i] = mix(in[i] ^ 0x55u);
}

/* negative words become 0: changes nothing where there are none */
static void k_relu(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *x = PTR(0), n = P(1, u32);
    for (u32 i = 0; i < n; i++)
        if (x[i] >> 31)
            x[i] = 0;
}

/* x += a[i % na] */
static void k_add(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *x = PTR(0), *a = PTR(1), n = P(2, u32), na = P(3, u32);
    for (u32 i = 0, run; i < n; i += run) {
        run = least(n - i, na);
        for (size_t k = 0; k < run; k++)
            x[i + k] += mix(a[k]);
    }
}

/* out = f(in); 64 words of statistics move towards the data, and no output depends on them */
static void k_stats(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *st = PTR(2), n = P(3, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] * 5);
    for (u32 i = 0; i < 64; i++)
        st[i] = st[i] / 2 + in[i % n] / 2;
}

/* an optimizer's step on up to LIST_MAX parameters; entries past n are stale */
static void k_step(const simgpu_launch *l, void *const *params)
{
    (void)l;
    struct list_args *a = params[0];
    for (u32 k = 0; k < a->n; k++) {
        u32 *w = (u32 *)(uintptr_t)a->w[k], *g = (u32 *)(uintptr_t)a->g[k];
        for (u32 i = 0; i < a->words[k]; i++)
            w[i] += mix(g[i] + a->step);
    }
}

/* the first list's tensors, of them and of those of the other lists */
static void k_many(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct many_args *a = params[0];
    for (u32 j = 0; j < a->n; j++) {
        u32 *x = (u32 *)(uintptr_t)a->at[j];
        for (u32 k = 1; k < a->lists; k++) {
            const u32 *y = (const u32 *)(uintptr_t)a->at[k * (MANY_MAX / a->lists) + j];
            for (u32 i = 0; i < a->words; i++)
                x[i] += y[i] * (x[i] | 1);
        }
        for (u32 i = 0; i < a->words; i++)
            x[i] = mix(x[i] + a->k);
    }
}

/* the same where a word in memory says so, which is counted up */
static void step_if(const simgpu_launch *l, void *const *params, uint64_t at)
{
    u32 *gate = (u32 *)(uintptr_t)at;
    gate[1]++;
    if (gate[0])
        k_step(l, params);
}

/* it lies behind the last entry of g */
static void k_step_if(const simgpu_launch *l, void *const *params)
{
    step_if(l, params, ((const struct list_args *)params[0])->g[LIST_MAX - 1]);
}

/* behind the first one */
static void k_step_if_first(const simgpu_launch *l, void *const *params)
{
    step_if(l, params, ((const struct list_args *)params[0])->g[0]);
}

/* two of its pointers are never followed */
static void k_ignore(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(1), *in = PTR(3), n = P(4, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + 77);
}

/* out[i] = sum over k of list[k][i % words]: pointers that lie in device memory */
static void k_gather(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t *list = (uint64_t *)(((uintptr_t)PTR(1) + 7) & ~(uintptr_t)7); /* it may lie behind something smaller */
    u32 *out = PTR(0), count = P(2, u32), words = P(3, u32), n = P(4, u32);
    for (u32 i = 0; i < n; i++) {
        u32 s = 0;
        for (u32 k = 0; k < count; k++)
            s += mix(((u32 *)(uintptr_t)list[k])[i % words] + k);
        out[i] = s;
    }
}

/* writes where list[0] points: no argument says so */
static void k_secret(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t *list = (uint64_t *)PTR(0);
    u32 n = P(1, u32), v = P(2, u32), *x = (u32 *)(uintptr_t)list[0];
    for (u32 i = 0; i < n; i++)
        x[i] = mix(x[i] + v);
}

/* what list[0] points to = f(in): no argument says so */
static void k_through(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = (u32 *)(uintptr_t)*(uint64_t *)PTR(0), *in = PTR(1), n = P(2, u32), k = P(3, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + k);
}

/* x = f(x), n words, where list[0] points (nowhere: none), and what it has found is in `info`: only that is an argument */
static void k_factor(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct factor_args *a = params[0];
    u32 *x = (u32 *)(uintptr_t)*(uint64_t *)(uintptr_t)a->list, *info = (u32 *)(uintptr_t)a->info;
    for (u32 i = 0; i < a->words; i++) {
        if (x)
            x[i] = mix(x[i] + a->k);
        info[i] = x ? x[i] % 7 : i % 7;
    }
}

/* out = f(in, what the first word of a list points at), of in alone where there is none */
static void k_peek(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(3, u32);
    const uint64_t p = *(uint64_t *)PTR(2);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + (p ? *(u32 *)(uintptr_t)p : 0));
}

/* out = f(in, what is at t), n words; the address of t comes from a list, from a variable of the module, or is that of the variable */
static void from(u32 *out, const u32 *in, const u32 *t, void *const *numbers)
{
    const u32 n = *(u32 *)numbers[0], n_in = *(u32 *)numbers[1], n_t = *(u32 *)numbers[2], k = *(u32 *)numbers[3];
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i % n_in] + 3 * t[i % n_t] + k);
}
static void k_from_list(const simgpu_launch *l, void *const *params)
{
    (void)l;
    from(PTR(0), PTR(1), (u32 *)(uintptr_t)*(uint64_t *)PTR(2), params + 3);
}
/* what a list points at = f(in) */
static void to(u32 *t, const u32 *in, void *const *numbers)
{
    const u32 n = *(u32 *)numbers[0], n_in = *(u32 *)numbers[1], k = *(u32 *)numbers[2];
    for (u32 i = 0; i < n; i++)
        t[i] = mix(in[i % n_in] + k);
}
static void k_to_list(const simgpu_launch *l, void *const *params)
{
    (void)l;
    to((u32 *)(uintptr_t)*(uint64_t *)PTR(0), PTR(1), params + 2);
}

/* puts addresses into device memory: base, base + stride, ... */
static void k_point(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t *list = (uint64_t *)PTR(0), base = P(1, uint64_t);
    u32 count = P(2, u32), stride = P(3, u32);
    for (u32 k = 0; k < count; k++)
        list[k] = base + (uint64_t)k * stride;
}

/* an address in device memory that nobody can tell for one; another kernel goes there */
enum { HIDE_BITS = 21 };
static void k_hide(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t p = P(1, uint64_t);
    *(uint64_t *)PTR(0) = p << HIDE_BITS | p >> (64 - HIDE_BITS);
}
static void k_seek(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t p = *(uint64_t *)PTR(1);
    u32 *out = PTR(0), n = P(2, u32), *in = (u32 *)(uintptr_t)(p >> HIDE_BITS | p << (64 - HIDE_BITS));
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + 3);
}

/* a counter in device memory decides */
static void k_count(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *counter = PTR(1), n = P(2, u32), c = (*counter)++;
    for (u32 i = 0; i < n; i++)
        out[i] = mix(i + c);
}

/* never the same twice: a counter of the module's own */
static void k_unique(const simgpu_launch *l, void *const *params)
{
    (void)l;
    static u32 calls;
    u32 *out = PTR(0), n = P(1, u32), c = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(i + c);
}

static void k_random(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), n = P(1, u32);
    uint64_t seed = P(2, uint64_t), offset = P(3, uint64_t);
    for (u32 i = 0; i < n; i++)
        out[i] = mix((u32)(seed + offset * 0x9e3779b9u) + mix(i));
}

/* a scratch of zeros is used and left as zeros */
static void k_semaphore(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *zero = PTR(2), n = P(3, u32);
    for (u32 i = 0; i < n; i++) {
        zero[i % 64]++;
        out[i] = mix(in[i] + zero[i % 64]);
        zero[i % 64]--;
    }
}

/* x = f(x), and y += x, by a flag: what it writes depends on a scalar */
static void k_maybe(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *kept = PTR(2), n = P(3, u32), flag = P(4, u32);
    for (u32 i = 0; i < n; i++) {
        out[i] = mix(in[i] + kept[i % 64]);
        if (flag)
            kept[i % 64] += in[i];
    }
}

/* one 64-bit sum */
static void k_sum(const simgpu_launch *l, void *const *params)
{
    (void)l;
    uint64_t *out = (uint64_t *)PTR(0), h = 1469598103934665603ull;
    u32 *in = PTR(1), n = P(2, u32);
    for (u32 i = 0; i < n; i++)
        h = (h ^ in[i]) * 1099511628211ull;
    *out = h;
}

/* out = f(in[0], .., in[n - 1]) */
static void k_bundle(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct bundle_args *a = params[0];
    u32 *out = (u32 *)(uintptr_t)a->out, *first = (u32 *)(uintptr_t)a->in[0];
    for (u32 i = 0; i < a->words; i++) {
        u32 x = 0;
        for (u32 k = 0; k < a->n; k++)
            x = mix(x + ((u32 *)(uintptr_t)a->in[k])[i]);
        out[i] = x;
    }
    const u32 flag = a->flag ? a->flag : a->mode;
    const u32 *optional = flag == BUNDLE_GIVEN ? (u32 *)(uintptr_t)a->in[BUNDLE_OPTIONAL] : NULL;
    for (u32 i = 0; i < a->words && optional; i++)
        out[i] = mix(out[i] + optional[i]);
    const u32 changes = flag == BUNDLE_ASKS ? a->junk : flag == BUNDLE_LOOKS ? *(u32 *)(uintptr_t)a->in[1] : flag == BUNDLE_GIVEN ? 0
                        : flag == BUNDLE_ABSENT ? !a->in[BUNDLE_OPTIONAL] : flag;
    u32 *changed = flag == BUNDLE_OTHER ? (u32 *)(uintptr_t)a->in[BUNDLE_OPTIONAL] : first;
    for (u32 i = 0; i < a->words && changes; i++)
        changed[i] += 1;
}

/* The same with a number: `junk` is none here. */
static void k_tally(const simgpu_launch *l, void *const *params)
{
    const struct bundle_args *a = params[0];
    k_bundle(l, params);
    for (u32 i = 0; i < a->words; i++)
        ((u32 *)(uintptr_t)a->out)[i] += a->junk;
}

/* The same, and never twice: a counter of the module's own. */
static void k_unlike(const simgpu_launch *l, void *const *params)
{
    static u32 calls;
    const struct bundle_args *a = params[0];
    k_bundle(l, params);
    *(u32 *)(uintptr_t)a->out = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

/* out = f(in[0]); each other entry is raised where it is below `junk` */
static void k_raise(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct bundle_args *a = params[0];
    for (u32 i = 0; i < a->words; i++)
        ((u32 *)(uintptr_t)a->out)[i] = mix(((u32 *)(uintptr_t)a->in[0])[i]);
    for (u32 k = 1; k < a->n; k++)
        *(u32 *)(uintptr_t)a->in[k] += *(u32 *)(uintptr_t)a->in[k] < a->junk;
}

/* out = f(in), which changes too where a number says so */
static void k_number(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct count_args *a = params[0];
    u32 *in = (u32 *)(uintptr_t)a->in, *changed = a->other ? (u32 *)(uintptr_t)a->other : in;
    for (u32 i = 0; i < a->words; i++)
        ((u32 *)(uintptr_t)a->out)[i] = mix(in[i]);
    for (u32 i = 0; i < a->words && a->number != a->base; i++)
        changed[i]++;
}

/* out = f(in) */
static void k_functor(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32);
    const struct functor *f = params[3];
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + f->k * f->kind);
}

/* out = f(in), which changes too where the mode is 1 and a word in memory says so */
static void k_mode(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *says = PTR(2), n = P(3, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + 5);
    for (u32 i = 0; i < n && P(4, uint8_t) == 1 && *says; i++)
        in[i]++;
}

/* out = f(in), which changes too where the number is odd */
static void k_odd(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + 9);
    for (u32 i = 0; i < n && P(3, uint64_t) & 1; i++)
        in[i]++;
}

/* out = f(in), with a workspace of which `used` words are written, from the second on */
static void k_work(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *space = PTR(2), n = P(3, u32), used = P(4, u32);
    for (u32 i = 0; i < used; i++)
        space[1 + i] = mix(in[i % n] + i);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + (used ? space[1 + i % used] : i));
}

/* out = f(in, the counters at the begin of space), as which they are counted up; the rest of space is scratch. As cuBLASLt's matmuls, which split
 * their sums, with counters that a memset clears right before */
static void k_cleared(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *space = PTR(2), n = P(3, u32), h = 0;
    for (u32 i = 0; i < 16; i++)
        h = mix(h + space[i]++);
    for (u32 i = 16; i < n; i++)
        space[i] = mix(in[i] + i);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + h) + (i < 16 ? 0 : space[i]);
}

/* out = f(in), where the address of in is first put into memory, and followed from there */
static void k_convolve(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct convolve_args *a = params[0];
    u32 *out = (u32 *)(uintptr_t)a->part[CONVOLVE_OUT].at, n = (u32)a->part[CONVOLVE_OUT].words;
    volatile uint64_t *map = (volatile uint64_t *)(uintptr_t)a->part[CONVOLVE_MAP].at;
    *map = a->part[CONVOLVE_IN].at;
    for (u32 i = 0; i < n; i++)
        out[i] = mix(((const u32 *)(uintptr_t)*map)[i] + 11);
}

static void c_work(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = 8ull * P(3, u32);
}

/* out = f(in, the list, all numbers); and what role_args.h says */
static void k_roles(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct role_args *a = params[0];
    u32 x = 0, *out = (u32 *)(uintptr_t)a->out, *in = (u32 *)(uintptr_t)a->in, *list[ROLE_LIST];
    bool changes_in = false, changes_first = false;
    for (u32 k = 0; k < ROLE_WORDS; k++) {
        const u32 low = (u32)a->w[k], high = (u32)(a->w[k] >> 32), base = role_base(a->layout, k);
        const enum role role = role_of(a->layout, k);
        x = mix(x + (role == ROLE_LOWER || role == ROLE_WHOLE ? low : role == ROLE_UPPER ? high : 0));
        changes_in |= (role == ROLE_MODE_LOW && low != base) || (role == ROLE_MODE_HIGH && high != base);
        changes_first |= role == ROLE_FLAG && (a->w[k] >> 8 * role_byte(a->layout, k) & 0xff);
    }
    for (u32 j = 0; j < a->n; j++)
        list[j] = (u32 *)(uintptr_t)a->list[j];
    for (u32 i = 0; i < a->words; i++) {
        u32 y = in[i] + x;
        for (u32 j = 0; j < a->n; j++)
            y += mix(list[j][i]);
        out[i] = mix(y);
        in[i] += changes_in;
        if (changes_first)
            (a->n ? list[0] : in)[i] ^= 5;
    }
}

static void c_roles(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct role_args *a = params[0];
    *flops = 0;
    *bytes = 4ull * a->words * (a->n + 2);
}

static void c_number(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct count_args *a = params[0];
    *flops = 0;
    *bytes = 8ull * a->words + (a->more_mib << 20);
}

static void c_bundle(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    const struct bundle_args *a = params[0];
    *flops = 0;
    *bytes = 4ull * a->words * (a->n + 1);
}

/* out = f(in). Where a word in memory says so, `more` is filled as well, or counts as well; otherwise it is never followed */
static void k_glance(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *more = PTR(2), *says = PTR(3), n = P(4, u32), put = P(5, u32);
    for (u32 i = 0; i < n; i++) {
        out[i] = mix(in[i] + 11) + (*says && !put ? mix(more[i]) : 0);
        if (*says && put)
            more[i] = in[i] + 5;
    }
}

/* out = f(in); one of two tensors takes in up, in turn: a counter in memory says whose turn it is */
static void k_turns(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *counter = PTR(2), n = P(5, u32), *turn = (*counter)++ % 2 ? PTR(4) : PTR(3);
    for (u32 i = 0; i < n; i++) {
        out[i] = mix(in[i] + 13);
        turn[i] += in[i];
    }
}

/* waits until a word is no longer 0, takes it back to 0, adds it to out */
static void k_await(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), n = P(2, u32), *flag = PTR(1);
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(1000);
    u32 v = __atomic_exchange_n(flag, 0, __ATOMIC_ACQ_REL);
    for (u32 i = 0; i < n; i++)
        out[i] += v;
}

/* out = f(in); `seen` counts the words that have a rare value */
static void k_rare(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *seen = PTR(2), n = P(3, u32), value = P(4, u32), hits = 0;
    for (u32 i = 0; i < n; i++) {
        out[i] = mix(in[i] + 9);
        hits += in[i] % 1000003 == value;
    }
    for (u32 i = 0; i < n && hits; i++)
        if (in[i] % 1000003 == value)
            seen[i % 64]++;
}

/* as map, until it has been called often: what it makes of the same arguments is another thing then, every time */
static void k_drift(const simgpu_launch *l, void *const *params)
{
    (void)l;
    static u32 calls;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32), k = P(3, u32), often = P(4, u32);
    u32 c = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + k) + (c > often ? c : 0);
}

/* out = f(in), both given as tensor maps; in += 1 as far as its map goes, where that is not all of out */
static void k_tensor(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = (u32 *)(uintptr_t)simgpu_tensor_map_address(params[0]), *in = (u32 *)(uintptr_t)simgpu_tensor_map_address(params[1]);
    u32 k = P(2, u32), n = simgpu_tensor_map_dim(params[0], 0), few = simgpu_tensor_map_dim(params[1], 0);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + k);
    for (u32 i = 0; i < few && few < n; i++)
        in[i] += 1;
}
static void c_tensor(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = 8ull * simgpu_tensor_map_dim(params[1], 0);
}

/* the same, from a tensor map that lies in device memory */
static void k_tensor_far(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const void *map = PTR(1);
    u32 *out = PTR(0), n = simgpu_tensor_map_dim(map, 0);
    const u32 *in = (const u32 *)(uintptr_t)simgpu_tensor_map_address(map);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + 5);
}

/* a table that the module keeps between launches: one kernel fills it, another reads it */
static u32 module_table[256];
static void k_table_set(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 v = P(1, u32), *in = PTR(0);
    for (u32 i = 0; i < 256; i++)
        module_table[i] = mix(in[i] + v);
}
static void k_table_use(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + module_table[i % 256]);
}

/* a variable of the module: it is known by name, and no argument shows who reads it */
static const u32 *module_variable;
static void k_variable(const simgpu_launch *l, void *const *params)
{
    (void)l;
    module_variable = PTR(0);
}
static void k_by_name(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + module_variable[i % 64]);
}

/* the same, of the tensor whose address the variable holds */
static void k_by_name_through(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), n = P(2, u32);
    const u32 *tensor = (const u32 *)(uintptr_t)*(const uint64_t *)module_variable;
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + tensor[i % 64]);
}

static void k_from_named(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const u32 through = P(6, u32);
    from(PTR(0), PTR(1), through ? (const u32 *)(uintptr_t)*(const uint64_t *)module_variable : module_variable, params + 2);
}
static void k_named_to_list(const simgpu_launch *l, void *const *params)
{
    (void)l;
    to((u32 *)(uintptr_t)*(const uint64_t *)module_variable, PTR(0), params + 1);
}

static void c_table(const simgpu_launch *l, void *const *params, uint64_t *flops, uint64_t *bytes)
{
    (void)l;
    *flops = 0;
    *bytes = 8ull * P(2, u32);
}

/* out = f(in); the number that it uses depends on how often it has been launched, which is counted in device memory */
static void k_counted(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *in = PTR(1), *launches = PTR(2), n = P(3, u32), change_at = P(4, u32), k = (*launches)++ < change_at ? 3 : 17;
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + k);
}
/* out: what of x is left by a ReLU in place, which a second one changes no more */
static void k_clip(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), *x = PTR(1), n = P(2, u32), words = P(3, u32);
    for (u32 i = 0; i < words; i++)
        x[i] = x[i] >> 31 ? 0 : x[i] & 0xffff;
    for (u32 i = 0; i < n; i++)
        out[i] = x[i % words] ? mix(i) : 0;
}
/* out = f(in), or likewise in place where out is null; `in` lies behind a word, packed */
static void k_packed(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), n = P(1, u32), *in;
    memcpy(&in, (const char *)params[1] + sizeof n, sizeof in);
    for (u32 i = 0; i < n; i++)
        (out ? out : in)[i] = mix(in[i] + 3);
}
/* out = value, and nothing else changes */
static void k_fill(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *out = PTR(0), n = P(1, u32), value = P(2, u32);
    for (u32 i = 0; i < n; i++)
        out[i] = value;
}
static void k_scale(const simgpu_launch *l, void *const *params)
{
    (void)l;
    u32 *x = PTR(0), n = P(1, u32), by = P(2, u32);
    for (u32 i = 0; i < n; i++)
        x[i] *= by;
}

/* Layers that read what a texture shows: 64 words; the handle stands alone, in a struct, in a packed one, in memory; a surface is counted up, too. */
static void textured(u32 *out, const u32 *in, uint64_t handle, u32 n)
{
    const u32 *shown = handle ? (const u32 *)(uintptr_t)simgpu_tensor_map_address(&handle) : NULL;
    for (u32 i = 0; i < n; i++)
        out[i] = mix(in[i] + (shown ? shown[i % 64] : 0));
}
static void k_textured(const simgpu_launch *l, void *const *params)
{
    (void)l;
    textured(PTR(0), PTR(1), P(2, uint64_t), P(3, u32));
}
static void k_textured_struct(const simgpu_launch *l, void *const *params)
{
    (void)l;
    const struct { uint64_t out, in, handle; u32 n, more; } *a = params[0];
    textured((u32 *)(uintptr_t)a->out, (const u32 *)(uintptr_t)a->in, a->handle, a->n);
}
static void k_textured_packed(const simgpu_launch *l, void *const *params)
{
    uint64_t handle;
    (void)l;
    memcpy(&handle, (const char *)params[2] + 4, sizeof handle);
    textured(PTR(0), PTR(1), handle, P(2, u32));
}
static void k_textured_list(const simgpu_launch *l, void *const *params)
{
    (void)l;
    textured(PTR(0), PTR(1), *(const uint64_t *)PTR(2), P(3, u32));
}
static void k_textured_by_name(const simgpu_launch *l, void *const *params)
{
    (void)l;
    textured(PTR(0), PTR(1), *(const uint64_t *)(const void *)module_variable, P(2, u32));
}
static void k_surface(const simgpu_launch *l, void *const *params)
{
    k_textured(l, params);
    if (P(2, uint64_t))
        ++*(u32 *)(uintptr_t)simgpu_tensor_map_address(params[2]);
}
static void k_put(const simgpu_launch *l, void *const *params)
{
    (void)l;
    *(uint64_t *)PTR(0) = P(1, uint64_t);
}

#define ROW(name, n, run, cost, ...) {name, n, (const size_t[]){__VA_ARGS__}, run, cost}
static const simgpu_kernel kernels[] = {
    ROW("map", 5, k_map, c_map, 8, 8, 4, 4, 4),
    ROW("join", 6, k_join, c_join, 8, 8, 8, 4, 4, 4),
    ROW("split", 5, k_split, c_split, 8, 8, 8, 4, 4),
    ROW("half", 4, k_half, NULL, 8, 8, 4, 4),
    ROW("relu", 2, k_relu, NULL, 8, 4),
    ROW("add", 4, k_add, NULL, 8, 8, 4, 4),
    ROW("stats", 4, k_stats, NULL, 8, 8, 8, 4),
    ROW("step", 1, k_step, NULL, sizeof(struct list_args)),
    ROW("many", 1, k_many, NULL, sizeof(struct many_args)),
    ROW("step_if", 1, k_step_if, NULL, sizeof(struct list_args)),
    ROW("step_if_first", 1, k_step_if_first, NULL, sizeof(struct list_args)),
    ROW("ignore", 5, k_ignore, NULL, 8, 8, 8, 8, 4),
    ROW("gather", 5, k_gather, NULL, 8, 8, 4, 4, 4),
    ROW("secret", 3, k_secret, NULL, 8, 4, 4),
    ROW("factor", 1, k_factor, NULL, sizeof(struct factor_args)),
    ROW("peek", 4, k_peek, NULL, 8, 8, 8, 4),
    ROW("through", 4, k_through, NULL, 8, 8, 4, 4),
    ROW("point", 4, k_point, NULL, 8, 8, 4, 4),
    ROW("count", 3, k_count, NULL, 8, 8, 4),
    ROW("unique", 2, k_unique, NULL, 8, 4),
    ROW("random", 4, k_random, NULL, 8, 4, 8, 8),
    ROW("semaphore", 4, k_semaphore, NULL, 8, 8, 8, 4),
    ROW("maybe", 5, k_maybe, NULL, 8, 8, 8, 4, 4),
    ROW("bundle", 1, k_bundle, c_bundle, sizeof(struct bundle_args)),
    ROW("tally", 1, k_tally, c_bundle, sizeof(struct bundle_args)),
    ROW("unlike", 1, k_unlike, c_bundle, sizeof(struct bundle_args)),
    ROW("raise", 1, k_raise, c_bundle, sizeof(struct bundle_args)),
    ROW("roles", 1, k_roles, c_roles, sizeof(struct role_args)),
    ROW("number", 1, k_number, c_number, sizeof(struct count_args)),
    ROW("mode", 5, k_mode, NULL, 8, 8, 8, 4, 1),
    ROW("odd", 4, k_odd, c_map, 8, 8, 4, 8),
    ROW("functor", 4, k_functor, c_map, 8, 8, 4, sizeof(struct functor)),
    ROW("convolve", 1, k_convolve, NULL, sizeof(struct convolve_args)),
    ROW("work", 5, k_work, c_work, 8, 8, 8, 4, 4),
    ROW("cleared", 4, k_cleared, c_work, 8, 8, 8, 4),
    ROW("glance", 6, k_glance, NULL, 8, 8, 8, 8, 4, 4),
    ROW("turns", 6, k_turns, NULL, 8, 8, 8, 8, 8, 4),
    ROW("await", 3, k_await, NULL, 8, 8, 4),
    ROW("rare", 5, k_rare, NULL, 8, 8, 8, 4, 4),
    ROW("drift", 5, k_drift, c_map, 8, 8, 4, 4, 4),
    ROW("tensor", 3, k_tensor, c_tensor, 128, 128, 4),
    ROW("tensor_far", 2, k_tensor_far, NULL, 8, 8),
    ROW("table_set", 2, k_table_set, NULL, 8, 4),
    ROW("table_use", 3, k_table_use, c_table, 8, 8, 4),
    ROW("variable", 1, k_variable, NULL, 8),
    ROW("by_name", 3, k_by_name, c_table, 8, 8, 4),
    ROW("by_name_through", 3, k_by_name_through, c_table, 8, 8, 4),
    ROW("from_list", 7, k_from_list, NULL, 8, 8, 8, 4, 4, 4, 4),
    ROW("to_list", 5, k_to_list, NULL, 8, 8, 4, 4, 4),
    ROW("from_named", 7, k_from_named, NULL, 8, 8, 4, 4, 4, 4, 4),
    ROW("named_to_list", 4, k_named_to_list, NULL, 8, 4, 4, 4),
    ROW("hide", 2, k_hide, NULL, 8, 8),
    ROW("seek", 3, k_seek, NULL, 8, 8, 4),
    ROW("counted", 5, k_counted, NULL, 8, 8, 8, 4, 4),
    ROW("clip", 4, k_clip, NULL, 8, 8, 4, 4),
    ROW("fill", 3, k_fill, NULL, 8, 4, 4),
    ROW("scale", 3, k_scale, NULL, 8, 4, 4),
    ROW("packed", 2, k_packed, NULL, 8, 12),
    ROW("sum", 3, k_sum, NULL, 8, 8, 4),
    ROW("textured", 4, k_textured, NULL, 8, 8, 8, 4),
    ROW("textured_struct", 1, k_textured_struct, NULL, 32),
    ROW("textured_packed", 3, k_textured_packed, NULL, 8, 8, 12),
    ROW("textured_list", 4, k_textured_list, NULL, 8, 8, 8, 4),
    ROW("textured_by_name", 3, k_textured_by_name, NULL, 8, 8, 4),
    ROW("surface", 4, k_surface, NULL, 8, 8, 8, 4),
    ROW("put", 2, k_put, NULL, 8, 8),
};
__attribute__((visibility("default"))) const simgpu_module_info simgpu_module = {SIMGPU_ABI, sizeof kernels / sizeof *kernels, kernels};
