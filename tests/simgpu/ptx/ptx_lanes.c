/*
 * Between the lanes of a warp. Each such instruction names the lanes that take part; it is executed when all of them that have not ended have
 * come to it. A lane that takes part without being named, or one that is named and never comes, ends the launch.
 */
#include <string.h>

#include "tests/simgpu/ptx/ptx_lanes.h"
#include "tests/simgpu/ptx/ptx_warp.h"

typedef void part_fn(struct warp *w, const struct ptx_insn *in, uint32_t m);

/* Executes `part` for each set of lanes that name each other and are all there; false: those left in *m wait. */
static bool in_parts(struct warp *w, const struct ptx_insn *in, uint32_t *m, struct ptx_operand names, part_fn *part)
{
    const uint32_t *named = row(w, names);
    uint32_t wait = 0;
    for (uint32_t left = *m; left;) {
        const uint32_t want = named[__builtin_ctz(left)];
        uint32_t set = 0;
        EACH_BIT(i, left) set |= (uint32_t)(named[i] == want) << i;
        left &= ~set;
        if (set & ~want)
            warp_fail(w, in, PTX_FAILED, "lanes %#x take part, and name the lanes %#x", set, want);
        if (want & ~w->dead & ~set)
            wait |= set;
        else
            part(w, in, set);
    }
    *m = wait;
    return !wait;
}

static void shuffle(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const uint32_t *a = row(w, in->a), *b = row(w, in->b), *c = row(w, in->c);
    uint32_t out[LANES] = { 0 }, valid = 0;
    EACH_BIT(i, m)
    {
        unsigned lane = b[i] & 31, clamp = c[i] & 31, segment = c[i] >> 8 & 31;
        unsigned most = (i & segment) | (clamp & ~segment & 31), least = i & segment, from;
        bool ok;
        switch (in->sub) {
        case SHFL_UP: ok = (int)i - (int)lane >= (int)most; from = i - lane; break;
        case SHFL_DOWN: from = i + lane; ok = from <= most; break;
        case SHFL_BFLY: from = i ^ lane; ok = from <= most; break;
        default: from = least | (lane & ~segment & 31); ok = from <= most; break;
        }
        from = ok ? from : i;
        out[i] = a[from & 31]; /* of a lane that does not take part: whatever it has */
        valid |= (uint32_t)ok << i;
    }
    uint32_t *d = row(w, in->d);
    EACH_BIT(i, m) d[i] = out[i];
    set_predicate(w, in->second, valid, m);
}

static void vote(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    uint32_t yes = predicate(w, in->a) & m;
    if (in->sub == VOTE_BALLOT) {
        uint32_t *d = row(w, in->d);
        EACH_BIT(i, m) d[i] = yes;
        return;
    }
    bool r = in->sub == VOTE_ALL ? yes == m : in->sub == VOTE_ANY ? yes != 0 : yes == m || yes == 0;
    set_predicate(w, in->d, r ? ALL_LANES : 0, m);
}

static void match(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const void *a = row(w, in->a);
    uint32_t out[LANES];
    bool all = true;
    EACH_BIT(i, m)
    {
        uint64_t v = lane_of(a, in->a.bytes, (int)i);
        out[i] = 0;
        EACH_BIT(k, m) out[i] |= (uint32_t)(lane_of(a, in->a.bytes, (int)k) == v) << k;
        all = all && out[i] == m;
    }
    uint32_t *d = row(w, in->d);
    EACH_BIT(i, m) d[i] = in->sub ? all ? m : 0 : out[i];
    set_predicate(w, in->second, all ? ALL_LANES : 0, m);
}

static void reduce(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const uint32_t *a = row(w, in->a);
    uint32_t r = a[__builtin_ctz(m)];
    EACH_BIT(i, m & (m - 1))
    switch (in->sub) {
    case REDUX_ADD: r += a[i]; break;
    case REDUX_MIN: r = in->type == T_S32 ? ((int32_t)a[i] < (int32_t)r ? a[i] : r) : a[i] < r ? a[i] : r; break;
    case REDUX_MAX: r = in->type == T_S32 ? ((int32_t)a[i] > (int32_t)r ? a[i] : r) : a[i] > r ? a[i] : r; break;
    case REDUX_AND: r &= a[i]; break;
    case REDUX_OR: r |= a[i]; break;
    default: r ^= a[i]; break;
    }
    uint32_t *d = row(w, in->d);
    EACH_BIT(i, m) d[i] = r;
}

static void elect(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    unsigned leader = (unsigned)__builtin_ctz(m);
    uint32_t *d = row(w, in->d);
    EACH_BIT(i, m) d[i] = leader;
    set_predicate(w, in->second, 1u << leader, m);
}

static void meet(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    (void)w;
    (void)in;
    (void)m;
}

bool sync_shfl(struct warp *w, const struct ptx_insn *in, uint32_t *m) { return in_parts(w, in, m, in->e, shuffle); }
bool sync_vote(struct warp *w, const struct ptx_insn *in, uint32_t *m) { return in_parts(w, in, m, in->e, vote); }
bool sync_match(struct warp *w, const struct ptx_insn *in, uint32_t *m) { return in_parts(w, in, m, in->e, match); }
bool sync_redux(struct warp *w, const struct ptx_insn *in, uint32_t *m) { return in_parts(w, in, m, in->e, reduce); }
bool sync_elect(struct warp *w, const struct ptx_insn *in, uint32_t *m) { return in_parts(w, in, m, in->e, elect); }
bool sync_warp(struct warp *w, const struct ptx_insn *in, uint32_t *m) { return in_parts(w, in, m, in->e, meet); }

bool sync_all(struct warp *w, const struct ptx_insn *in, uint32_t *m)
{
    if (*m != (w->exists & ~w->dead))
        return false;
    if (w->dead & w->exists)
        warp_fail(w, in, PTX_FAILED, "lanes %#x have ended, and all of the warp are to take part", w->dead & w->exists);
    if (w->exists != ALL_LANES)
        warp_fail(w, in, PTX_FAILED, "the warp has lanes %#x alone, and all 32 are to take part", w->exists);
    in->exec(w, in, *m);
    *m = 0;
    return true;
}

void exec_activemask(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    uint32_t *d = row(w, in->d);
    EACH_BIT(i, m) d[i] = w->mask;
}

/* Matrices of 8 x 8 numbers of 16 bits: lanes 8k to 8k+7 give the rows of the k-th; lane i gets two neighbours of row i / 4. */
void exec_ldmatrix(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    const void *from = row(w, in->mem.address);
    uint16_t part[4][8][8];
    (void)m;
    for (unsigned k = 0; k < in->data->n; k++)
        for (unsigned r = 0; r < 8; r++) {
            unsigned lane = 8 * k + r;
            uint64_t a = lane_of(from, in->mem.address.bytes, (int)lane) + (uint64_t)in->mem.plus;
            memcpy(part[k][r], memory_at(w, in, in->mem.space, a, 16, 16, lane), 16);
        }
    for (unsigned k = 0; k < in->data->n; k++) {
        uint32_t *d = row(w, in->data->o[k]);
        for (unsigned i = 0; i < LANES; i++) {
            unsigned r = i / 4, c = i % 4 * 2;
            uint16_t low = in->sub ? part[k][c][r] : part[k][r][c], high = in->sub ? part[k][c + 1][r] : part[k][r][c + 1];
            d[i] = low | (uint32_t)high << 16;
        }
    }
}
