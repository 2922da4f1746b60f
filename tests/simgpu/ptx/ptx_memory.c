/*
 * Memory. A global address is the processor's own: what is not mapped raises SIGSEGV at the access. Shared, local and parameter memory are
 * arrays, each access is checked. Addresses that are not a multiple of the access's size fail as they do on a device.
 */
#include <stdatomic.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_atom.h"
#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_warp.h"

typedef uint8_t __attribute__((may_alias)) mem8;
typedef uint16_t __attribute__((may_alias)) mem16;
typedef uint32_t __attribute__((may_alias)) mem32;
typedef uint64_t __attribute__((may_alias)) mem64;
typedef int8_t __attribute__((may_alias)) mems8;
typedef int16_t __attribute__((may_alias)) mems16;
typedef int32_t __attribute__((may_alias)) mems32;

/* ---- where an address is ------------------------------------------------------------------------------------------------------------- */

static _Noreturn void outside(const struct warp *w, const struct ptx_insn *in, const char *what, uint64_t a, unsigned bytes, uint64_t end)
{
    warp_fail(w, in, PTX_ILLEGAL_ADDRESS, "%u bytes at %llu of %s, which has %llu", bytes, (unsigned long long)a, what, (unsigned long long)end);
}

static inline unsigned char *place(const struct warp *w, const struct ptx_insn *in, unsigned space, uint64_t a, unsigned bytes, unsigned align,
                                   unsigned lane)
{
    if (space == S_GENERIC) {
        uint64_t window = a >> WINDOW_BITS << WINDOW_BITS;
        space = window == WINDOW_SHARED ? S_SHARED : window == WINDOW_LOCAL ? S_LOCAL : window == WINDOW_PARAM ? S_PARAM : S_GLOBAL;
        if (space != S_GLOBAL)
            a -= window;
    }
    if (a & (align - 1))
        warp_fail(w, in, PTX_MISALIGNED, "address %#llx is no multiple of %u", (unsigned long long)a, align);
    switch (space) {
    case S_SHARED:
        if (a > w->block->shared_bytes || bytes > w->block->shared_bytes - a)
            outside(w, in, "shared memory", a, bytes, w->block->shared_bytes);
        return w->block->shared + a;
    case S_LOCAL:
        if (a > w->local_stride || bytes > w->local_stride - a)
            outside(w, in, "local memory", a, bytes, w->local_stride);
        return w->local + (size_t)lane * w->local_stride + a;
    case S_PARAM: {
        uint32_t end = w->run->p->kernels[w->run->kernel->kernel].param_bytes;
        if (a > end || bytes > end - a)
            outside(w, in, "the parameters", a, bytes, end);
        return (unsigned char *)(uintptr_t)w->run->launch->params + a;
    }
    default: return (unsigned char *)(uintptr_t)a;
    }
}

unsigned char *memory_at(const struct warp *w, const struct ptx_insn *in, unsigned space, uint64_t a, unsigned bytes, unsigned align,
                         unsigned lane)
{
    return place(w, in, space, a, bytes, align, lane);
}

static inline void addresses(const struct warp *w, const struct ptx_insn *in, uint64_t a[LANES])
{
    const struct ptx_mem *mem = &in->mem;
    const void *from = row(w, mem->address);
    const uint64_t plus = (uint64_t)mem->plus;
    if (mem->frame) {
        const uint32_t *base = (const uint32_t *)(w->base[B_FRAME] + FRAME_LOCAL);
        const uint64_t *at = from;
        for (int i = 0; i < LANES; i++)
            a[i] = at[i] + base[i] + plus;
    } else if (mem->address.bytes == 4) {
        const uint32_t *at = from;
        for (int i = 0; i < LANES; i++)
            a[i] = at[i] + plus;
    } else {
        const uint64_t *at = from;
        for (int i = 0; i < LANES; i++)
            a[i] = at[i] + plus;
    }
}

/* Pointers of the lanes of m. */
static inline void places(const struct warp *w, const struct ptx_insn *in, uint32_t m, unsigned char *p[LANES])
{
    const struct ptx_mem *mem = &in->mem;
    uint64_t a[LANES], low = 0;
    addresses(w, in, a);
    if (mem->space == S_GLOBAL || mem->space == S_CONST) {
        EACH_BIT(i, m)
        {
            low |= a[i];
            p[i] = (unsigned char *)(uintptr_t)a[i];
        }
        if (low & (mem->vector - 1u))
            EACH_BIT(i, m) place(w, in, mem->space, a[i], mem->vector, mem->vector, i);
        return;
    }
    EACH_BIT(i, m) p[i] = place(w, in, mem->space, a[i], mem->vector, mem->vector, i);
}

/* Tells of what the lanes of m do to global memory. */
static void tell(const struct warp *w, const struct ptx_insn *in, uint32_t m, unsigned bytes, bool loads, bool stores)
{
    uint64_t a[LANES];
    if (in->mem.space != S_GLOBAL && in->mem.space != S_GENERIC)
        return;
    addresses(w, in, a);
    EACH_BIT(i, m)
    {
        uint64_t window = a[i] >> WINDOW_BITS << WINDOW_BITS;
        if (in->mem.space == S_GENERIC && (window == WINDOW_SHARED || window == WINDOW_LOCAL || window == WINDOW_PARAM))
            continue;
        if (loads)
            w->run->launch->touched(a[i], bytes, false);
        if (stores)
            w->run->launch->touched(a[i], bytes, true);
    }
}
#define TELL(bytes, loads, stores)                                        \
    do {                                                                  \
        if (__builtin_expect(w->run->launch->touched != NULL, 0))         \
            tell(w, in, m, bytes, loads, stores);                         \
    } while (0)

/* ---- loads and stores ------------------------------------------------------------------------------------------------------------------ */

#define MOVE(M, D, body)                                 \
    do {                                                 \
        D *r = reg;                                      \
        if (m == ALL_LANES)                              \
            for (uint32_t i = 0; i < LANES; i++)         \
                body(M, D);                              \
        else                                             \
            EACH_BIT(i, m) body(M, D);                   \
    } while (0)
#define LOAD(M, D) r[i] = (D)*(const M *)(p[i] + plus)
#define STORE(M, D) *(M *)(p[i] + plus) = (M)r[i]
#define KEY(memory, reg) ((memory) * 16 + (reg))

static void load(void *reg, unsigned reg_bytes, unsigned char *const p[LANES], unsigned plus, unsigned bytes, bool sign, uint32_t m)
{
    switch (KEY(bytes, reg_bytes) + (sign && bytes < reg_bytes ? 8 * 32 : 0)) {
    case KEY(1, 2): MOVE(mem8, uint16_t, LOAD); break;
    case KEY(1, 4): MOVE(mem8, uint32_t, LOAD); break;
    case KEY(1, 8): MOVE(mem8, uint64_t, LOAD); break;
    case KEY(2, 2): MOVE(mem16, uint16_t, LOAD); break;
    case KEY(2, 4): MOVE(mem16, uint32_t, LOAD); break;
    case KEY(2, 8): MOVE(mem16, uint64_t, LOAD); break;
    case KEY(4, 4): MOVE(mem32, uint32_t, LOAD); break;
    case KEY(4, 8): MOVE(mem32, uint64_t, LOAD); break;
    case KEY(8, 8): MOVE(mem64, uint64_t, LOAD); break;
    case KEY(1, 2) + 256: MOVE(mems8, uint16_t, LOAD); break;
    case KEY(1, 4) + 256: MOVE(mems8, uint32_t, LOAD); break;
    case KEY(1, 8) + 256: MOVE(mems8, uint64_t, LOAD); break;
    case KEY(2, 4) + 256: MOVE(mems16, uint32_t, LOAD); break;
    case KEY(2, 8) + 256: MOVE(mems16, uint64_t, LOAD); break;
    case KEY(4, 8) + 256: MOVE(mems32, uint64_t, LOAD); break;
    }
}

static void store(const void *reg, unsigned reg_bytes, unsigned char *const p[LANES], unsigned plus, unsigned bytes, uint32_t m)
{
    switch (KEY(bytes, reg_bytes)) {
    case KEY(1, 2): MOVE(mem8, const uint16_t, STORE); break;
    case KEY(1, 4): MOVE(mem8, const uint32_t, STORE); break;
    case KEY(1, 8): MOVE(mem8, const uint64_t, STORE); break;
    case KEY(2, 2): MOVE(mem16, const uint16_t, STORE); break;
    case KEY(2, 4): MOVE(mem16, const uint32_t, STORE); break;
    case KEY(2, 8): MOVE(mem16, const uint64_t, STORE); break;
    case KEY(4, 4): MOVE(mem32, const uint32_t, STORE); break;
    case KEY(4, 8): MOVE(mem32, const uint64_t, STORE); break;
    case KEY(8, 8): MOVE(mem64, const uint64_t, STORE); break;
    }
}

/* One address for all lanes: each register is one value. */
static void load_one(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const struct ptx_mem *mem = &in->mem;
    uint64_t a = lane_of(row(w, mem->address), mem->address.bytes, 0) + (uint64_t)mem->plus;
    const unsigned char *at = place(w, in, mem->space, a, mem->vector, mem->vector, (unsigned)__builtin_ctz(m));
    for (unsigned k = 0; k < mem->n; k++) {
        uint64_t v = 0;
        memcpy(&v, at + k * mem->bytes, mem->bytes);
        const unsigned shift = 64 - 8 * mem->bytes;
        if (mem->sign)
            v = (uint64_t)((int64_t)(v << shift) >> shift);
        void *d = row(w, in->data->o[k]);
        const unsigned bytes = in->data->o[k].bytes;
        if ((m | w->dead) != ALL_LANES)
            EACH_BIT(i, m) set_lane(d, bytes, (int)i, v);
        else if (bytes == 8)
            for (int i = 0; i < LANES; i++)
                ((uint64_t *)d)[i] = v;
        else if (bytes == 4)
            for (int i = 0; i < LANES; i++)
                ((uint32_t *)d)[i] = (uint32_t)v;
        else
            for (int i = 0; i < LANES; i++)
                ((uint16_t *)d)[i] = (uint16_t)v;
    }
}

/* True if the lanes' addresses follow each other without a gap, in global memory: *first is where. */
static bool in_a_row(const struct warp *w, const struct ptx_insn *in, uint32_t m, unsigned char **first)
{
    const struct ptx_mem *mem = &in->mem;
    if (m != ALL_LANES || mem->space != S_GLOBAL || mem->address.bytes != 8 || mem->frame)
        return false;
    const uint64_t *at = row(w, mem->address);
    const uint64_t begin = at[0], step = mem->vector;
    uint64_t off = 0;
    for (uint64_t i = 0; i < LANES; i++)
        off |= at[i] - begin - i * step;
    *first = (unsigned char *)(uintptr_t)(begin + (uint64_t)mem->plus);
    return !off && !((uintptr_t)*first & (step - 1));
}

#define STRIDED(M, D, body)                    \
    do {                                       \
        D *r = reg;                            \
        for (unsigned i = 0; i < LANES; i++)   \
            body(M, D);                        \
    } while (0)
#define LOAD_STRIDED(M, D) r[i] = *(const M *)(from + i * step)
#define STORE_STRIDED(M, D) *(M *)(to + i * step) = r[i]

void exec_ld(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const struct ptx_mem *mem = &in->mem;
    unsigned char *p[LANES], *first;
    TELL(mem->vector, true, false);
    if (mem->address.base == B_POOL && !mem->frame && mem->space != S_LOCAL) {
        load_one(w, in, m);
        return;
    }
    if (in_a_row(w, in, m, &first)) {
        const unsigned step = mem->vector;
        for (unsigned v = 0; v < mem->n; v++) {
            void *reg = row(w, in->data->o[v]);
            const unsigned char *from = first + v * mem->bytes;
            if (mem->bytes != in->data->o[v].bytes) {
                for (unsigned i = 0; i < LANES; i++)
                    p[i] = first + i * step;
                load(reg, in->data->o[v].bytes, p, v * mem->bytes, mem->bytes, mem->sign, m);
            } else if (step == mem->bytes)
                memcpy(reg, from, (size_t)LANES * step);
            else if (mem->bytes == 4)
                STRIDED(mem32, uint32_t, LOAD_STRIDED);
            else if (mem->bytes == 8)
                STRIDED(mem64, uint64_t, LOAD_STRIDED);
            else
                STRIDED(mem16, uint16_t, LOAD_STRIDED);
        }
        return;
    }
    places(w, in, m, p);
    for (unsigned v = 0; v < mem->n; v++)
        load(row(w, in->data->o[v]), in->data->o[v].bytes, p, v * mem->bytes, mem->bytes, mem->sign, m);
}

void exec_st(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const struct ptx_mem *mem = &in->mem;
    unsigned char *p[LANES], *first;
    TELL(mem->vector, false, true);
    if (in_a_row(w, in, m, &first)) {
        const unsigned step = mem->vector;
        for (unsigned v = 0; v < mem->n; v++) {
            const void *reg = row(w, in->data->o[v]);
            unsigned char *to = first + v * mem->bytes;
            if (mem->bytes != in->data->o[v].bytes) {
                for (unsigned i = 0; i < LANES; i++)
                    p[i] = first + i * step;
                store(reg, in->data->o[v].bytes, p, v * mem->bytes, mem->bytes, m);
            } else if (step == mem->bytes)
                memcpy(to, reg, (size_t)LANES * step);
            else if (mem->bytes == 4)
                STRIDED(mem32, const uint32_t, STORE_STRIDED);
            else if (mem->bytes == 8)
                STRIDED(mem64, const uint64_t, STORE_STRIDED);
            else
                STRIDED(mem16, const uint16_t, STORE_STRIDED);
        }
        return;
    }
    places(w, in, m, p);
    for (unsigned v = 0; v < mem->n; v++)
        store(row(w, in->data->o[v]), in->data->o[v].bytes, p, v * mem->bytes, mem->bytes, m);
}

/* The address of local memory in the lane's frame. */
void exec_lea_local(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const uint32_t *base = (const uint32_t *)(w->base[B_FRAME] + FRAME_LOCAL);
    void *d = row(w, in->d);
    EACH_BIT(i, m) set_lane(d, in->d.bytes, (int)i, base[i] + in->imm);
}

void exec_fence(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    (void)w;
    (void)in;
    (void)m;
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- atomics ------------------------------------------------------------------------------------------------------------------------------ */

static uint16_t half_sum(uint16_t a, uint16_t b, bool bf16)
{
    return bf16 ? bf16_of_double((double)f32_of_bf16(a) + (double)f32_of_bf16(b), M_RN)
                : f16_of_double((double)f32_of_f16(a) + (double)f32_of_f16(b), M_RN);
}

static uint16_t half_extreme(uint16_t a, uint16_t b, bool bf16, bool most)
{
    float x = bf16 ? f32_of_bf16(a) : f32_of_f16(a), y = bf16 ? f32_of_bf16(b) : f32_of_f16(b);
    if (x != x || y != y)
        return x != x && y != y ? NAN_F16 : x != x ? b : a;
    bool first = x == y ? (a & 0x8000) != 0 : x < y;
    return first != most ? a : b;
}

static uint16_t half_result(enum ptx_atom op, uint16_t a, uint16_t b, bool bf16)
{
    return op == ATOM_ADD ? half_sum(a, b, bf16) : half_extreme(a, b, bf16, op == ATOM_MAX);
}

/* What stands in memory after an operation on `had`. */
static uint64_t result(enum ptx_atom op, enum ptx_type t, uint64_t had, uint64_t b, uint64_t c, bool flush)
{
    bool wide = ptx_type_bytes[t] == 8;
    switch (op) {
    case ATOM_ADD:
        if (t == T_F32) {
            float x = f32_bits(flush ? flushed((uint32_t)had) : (uint32_t)had), y = f32_bits(flush ? flushed((uint32_t)b) : (uint32_t)b);
            uint32_t sum = bits_f32(canonical(x + y));
            return flush ? flushed(sum) : sum;
        }
        if (t == T_F64)
            return bits_f64(canonical_f64(f64_bits(had) + f64_bits(b)));
        /* fall through */
    case ATOM_MIN:
    case ATOM_MAX:
        if (t == T_F16 || t == T_BF16)
            return half_result(op, (uint16_t)had, (uint16_t)b, t == T_BF16);
        if (t == T_F16X2 || t == T_BF16X2)
            return (uint64_t)half_result(op, (uint16_t)(had >> 16), (uint16_t)(b >> 16), t == T_BF16X2) << 16 |
                   half_result(op, (uint16_t)had, (uint16_t)b, t == T_BF16X2);
        if (op == ATOM_ADD)
            return had + b;
        if (t == T_S32 || t == T_S64) {
            int64_t x = wide ? (int64_t)had : (int32_t)had, y = wide ? (int64_t)b : (int32_t)b;
            return (uint64_t)((x < y) != (op == ATOM_MAX) ? x : y);
        }
        return (had < b) != (op == ATOM_MAX) ? had : b;
    case ATOM_INC: return had >= b ? 0 : had + 1;
    case ATOM_DEC: return had == 0 || had > b ? b : had - 1;
    case ATOM_AND: return had & b;
    case ATOM_OR: return had | b;
    case ATOM_XOR: return had ^ b;
    case ATOM_EXCH: return b;
    default: return had == b ? c : had;
    }
}

static uint64_t atomically(const struct ptx_insn *in, unsigned char *p, uint64_t b, uint64_t c, bool flush)
{
    enum ptx_atom op = in->sub;
    enum ptx_type t = in->type;
    if (op == ATOM_ADD && t != T_F32 && t != T_F64 && in->mem.bytes == 4 && t != T_F16X2 && t != T_BF16X2)
        return __atomic_fetch_add((mem32 *)p, (uint32_t)b, __ATOMIC_SEQ_CST);
    switch (in->mem.bytes) {
    case 2: {
        uint16_t had = __atomic_load_n((mem16 *)p, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n((mem16 *)p, &had, (uint16_t)result(op, t, had, b, c, flush), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            ;
        return had;
    }
    case 4: {
        uint32_t had = __atomic_load_n((mem32 *)p, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n((mem32 *)p, &had, (uint32_t)result(op, t, had, b, c, flush), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            ;
        return had;
    }
    default: {
        uint64_t had = __atomic_load_n((mem64 *)p, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n((mem64 *)p, &had, result(op, t, had, b, c, flush), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            ;
        return had;
    }
    }
}

/* Lanes come one after the other, under SIMGPU_CHAOS from another one on each time. */
void exec_atom(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    unsigned char *p[LANES];
    const void *b = row(w, in->b), *c = row(w, in->c);
    unsigned first = 0;
    TELL(in->mem.bytes, true, true);
    places(w, in, m, p);
    if (w->run->launch->chaos) {
        w->run->random = w->run->random * 6364136223846793005u + 1442695040888963407u;
        first = (unsigned)(w->run->random >> 59);
    }
    unsigned char *shared = w->block->shared;
    uint64_t had[LANES];
    for (unsigned k = 0; k < LANES; k++) {
        unsigned i = (k + first) % LANES;
        if (!(m >> i & 1))
            continue;
        bool flush = !(p[i] >= shared && p[i] < shared + w->block->shared_bytes);
        had[i] = atomically(in, p[i], lane_of(b, in->mem.bytes, (int)i), lane_of(c, in->mem.bytes, (int)i), flush);
    }
    if (in->d.base == B_SINK)
        return;
    void *d = row(w, in->d);
    EACH_BIT(i, m) set_lane(d, in->d.bytes, (int)i, had[i]);
}

/* ---- copies to shared memory --------------------------------------------------------------------------------------------------------------- */

void exec_cp_async(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const unsigned bytes = in->mem.bytes;
    unsigned char *to[LANES];
    const void *from = row(w, in->a), *plus = row(w, in->b);
    places(w, in, m, to);
    EACH_BIT(i, m)
    {
        uint64_t size = in->sub ? (predicate(w, in->c) >> i & 1 ? 0 : bytes) : lane_of(row(w, in->c), 4, (int)i);
        if (size > bytes)
            warp_fail(w, in, PTX_FAILED, "%llu bytes of %u are to be read", (unsigned long long)size, bytes);
        uint64_t a = lane_of(from, in->a.bytes, (int)i) + lane_of(plus, 8, (int)i);
        const unsigned char *at = place(w, in, S_GLOBAL, a, bytes, bytes, i);
        if (size && w->run->launch->touched)
            w->run->launch->touched(a, (unsigned)size, false);
        if (size)
            memcpy(to[i], at, size);
        memset(to[i] + size, 0, bytes - size);
    }
}
