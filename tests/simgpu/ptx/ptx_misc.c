/* Instructions of one lane that do not fit the tables: four operands, the carry, addresses, clocks. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_warp.h"

/* CC.CF after a subtraction says that it borrowed. */
void exec_carry(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const unsigned bytes = ptx_type_bytes[in->type], what = in->sub & 15;
    const bool with = in->sub & 16, sets = in->sub & 32, sign = in->type == T_S32 || in->type == T_S64;
    const void *a = row(w, in->a), *b = row(w, in->b), *c = row(w, in->c);
    void *d = row(w, in->d);
    EACH_BIT(i, m)
    {
        uint64_t x = lane_of(a, bytes, (int)i), y = lane_of(b, bytes, (int)i);
        const uint64_t in_carry = with ? w->carry >> i & 1 : 0;
        if (what >= 2) {
            unsigned __int128 product = bytes == 4 ? (sign ? (unsigned __int128)((int64_t)(int32_t)x * (int32_t)y) : (unsigned __int128)(x * y))
                                        : sign     ? (unsigned __int128)((__int128)(int64_t)x * (int64_t)y)
                                                   : (unsigned __int128)x * y;
            x = (uint64_t)(what == 3 ? product >> 8 * bytes : product);
            y = lane_of(c, bytes, (int)i);
            x = bytes == 4 ? (uint32_t)x : x;
        }
        unsigned __int128 r = what == 1 ? (unsigned __int128)x - y - in_carry : (unsigned __int128)x + y + in_carry;
        set_lane(d, bytes, (int)i, (uint64_t)r);
        if (sets)
            w->carry = (w->carry & ~(1u << i)) | (uint32_t)(r >> 8 * bytes & 1) << i;
    }
}

static uint64_t inserted(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, unsigned width)
{
    pos &= 255;
    len &= 255;
    if (pos >= width || len == 0)
        return b;
    len = len < width - pos ? len : width - pos;
    uint64_t keep = (len >= 64 ? ~0ull : (1ull << len) - 1) << pos;
    return (b & ~keep) | (a << pos & keep);
}

void exec_bfi(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const unsigned bytes = ptx_type_bytes[in->type];
    const void *a = row(w, in->a), *b = row(w, in->b);
    const uint32_t *pos = row(w, in->c), *len = row(w, in->e);
    void *d = row(w, in->d);
    EACH_BIT(i, m) set_lane(d, bytes, (int)i, inserted(lane_of(a, bytes, (int)i), lane_of(b, bytes, (int)i), pos[i], len[i], bytes * 8));
}

void exec_set(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    uint8_t holds[LANES];
    compare_lanes(w, in, (ptx_alu_fn *)(uintptr_t)in->imm, holds);
    const uint32_t c = in->sub ? predicate(w, in->c) : 0;
    uint64_t yes = in->type == T_F32 ? 0x3f800000u : in->type == T_F16 ? 0x3c00u : in->type == T_BF16 ? 0x3f80u : ~0ull;
    void *d = row(w, in->d);
    EACH_BIT(i, m)
    {
        bool h = holds[i], q = c >> i & 1;
        h = in->sub == 1 ? h && q : in->sub == 2 ? h || q : in->sub == 3 ? h != q : h;
        set_lane(d, in->d.bytes, (int)i, h ? yes : 0);
    }
}

void exec_unpack(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const void *a = row(w, in->a);
    uint64_t v[LANES];
    EACH_BIT(i, m) v[i] = lane_of(a, in->a.bytes, (int)i);
    for (unsigned k = 0; k < in->vec->n; k++) {
        void *d = row(w, in->vec->o[k]);
        EACH_BIT(i, m) set_lane(d, in->sub, (int)i, v[i] >> 8 * in->sub * k);
    }
}

void exec_pack(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    uint64_t v[LANES] = { 0 };
    for (unsigned k = 0; k < in->vec->n; k++) {
        const void *a = row(w, in->vec->o[k]);
        EACH_BIT(i, m) v[i] |= lane_of(a, in->sub, (int)i) << 8 * in->sub * k;
    }
    void *d = row(w, in->d);
    EACH_BIT(i, m) set_lane(d, in->d.bytes, (int)i, v[i]);
}

void exec_clock(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    uint64_t v = w->run->executed;
    if (in->sub >= SR_GLOBALTIMER) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        v = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    }
    if (in->sub == SR_CLOCK_HI || in->sub == SR_GLOBALTIMER_HI)
        v >>= 32;
    void *d = row(w, in->d);
    EACH_BIT(i, m) set_lane(d, in->d.bytes, (int)i, v);
}

static uint64_t window_of(unsigned space)
{
    return space == S_SHARED ? WINDOW_SHARED : space == S_LOCAL ? WINDOW_LOCAL : space == S_PARAM ? WINDOW_PARAM : 0;
}

void exec_cvta(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const bool to = in->n & 1, frame = in->n & 2;
    const uint64_t window = window_of(in->sub);
    const uint32_t *base = (const uint32_t *)(w->base[B_FRAME] + FRAME_LOCAL);
    const void *a = row(w, in->a);
    void *d = row(w, in->d);
    EACH_BIT(i, m)
    {
        uint64_t v = lane_of(a, in->a.bytes, (int)i) + (frame ? base[i] : 0);
        set_lane(d, in->d.bytes, (int)i, to ? v - window : v + window);
    }
}

void exec_isspacep(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const uint64_t *a = row(w, in->a);
    uint32_t is = 0;
    EACH_BIT(i, m)
    {
        uint64_t window = a[i] >> WINDOW_BITS << WINDOW_BITS;
        is |= (uint32_t)(window == window_of(in->sub)) << i;
    }
    set_predicate(w, in->d, is, m);
}

void exec_nop(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    (void)w;
    (void)in;
    (void)m;
}

void exec_nanosleep(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    exec_nop(w, in, m);
    sched_yield();
}
