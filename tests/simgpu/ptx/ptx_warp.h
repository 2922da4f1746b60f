/*
 * The executor's state. Lanes of a warp that are at one place of one frame are a group; a warp has one group until a branch parts it. The
 * group that runs is the one in the deepest frame, and there the one furthest behind; where it comes to another's place they are one again.
 * So lanes meet as early as the layout of the code lets them, and no order of branches can keep any from going on.
 *
 * Invariants: masks of a warp's groups and `dead` are disjoint, together they are all 32 lanes. A lane that is dead is never read again, so
 * that results may be written to it. A group that waits stands at the instruction that it waits in.
 */
#ifndef SIMGPU_PTX_WARP_H
#define SIMGPU_PTX_WARP_H

#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_ir.h"

enum { BARRIERS = 16 };
enum group_state { G_READY, G_SYNC /* for lanes of its warp */, G_BAR /* at a barrier */ };
struct group {
    uint32_t pc, base, mask; /* base: of the frame, from the warp's stack on */
    uint8_t state, barrier;
};

struct block;
struct run;
struct warp {
    unsigned char *base[4];  /* by enum ptx_base; [B_FRAME] is the running group's */
    unsigned char *stack, *special, *local;
    size_t stack_bytes, local_bytes;
    uint32_t local_stride;   /* bytes of local memory of a lane */
    uint32_t dead;           /* ended, or never there */
    uint32_t exists;
    uint32_t carry;          /* CC.CF of each lane */
    uint32_t mask;           /* the running group's */
    struct group group[LANES + 1];
    unsigned n_groups, running;
    bool in_turn;            /* the group behind `running` is next, wherever it is */
    unsigned index;
    struct block *block;
    struct run *run;
};

struct barrier {
    uint32_t arrived, wanted; /* threads; wanted 0: all that have not ended */
    uint32_t votes_true, votes;
    uint32_t line;
};
struct block {
    struct warp *warp;
    unsigned n_warps;
    unsigned char *shared;
    uint32_t shared_bytes;
    uint32_t threads, ended;
    uint32_t at[3];
    struct barrier barrier[BARRIERS];
    uint64_t executed; /* instructions of warps */
    bool used, over;
};
struct run {
    const struct ptx_launch *launch;
    const struct ptx_program *p;
    const struct ptx_function *kernel;
    unsigned char *pool;
    uint64_t executed, random;
};

static inline void *row(const struct warp *w, struct ptx_operand o) { return w->base[o.base] + o.at; }
/* holds[i]: what fn says of a and b in lane i; where the instruction asks, subnormal numbers are zeros to it. */
static inline void compare_lanes(const struct warp *w, const struct ptx_insn *in, ptx_alu_fn *fn, uint8_t *holds)
{
    uint32_t a32[LANES], b32[LANES];
    const void *a = row(w, in->a), *b = row(w, in->b);
    for (int i = 0; i < LANES && in->flush; i++) {
        a32[i] = flushed(((const uint32_t *)a)[i]);
        b32[i] = flushed(((const uint32_t *)b)[i]);
    }
    fn(holds, in->flush ? a32 : a, in->flush ? b32 : b, in->flush ? b32 : b, in);
}
static inline uint64_t lane_of(const void *r, unsigned bytes, int i)
{
    switch (bytes) {
    case 2: return ((const uint16_t *)r)[i];
    case 4: return ((const uint32_t *)r)[i];
    default: return ((const uint64_t *)r)[i];
    }
}
static inline void set_lane(void *r, unsigned bytes, int i, uint64_t v)
{
    switch (bytes) {
    case 2: ((uint16_t *)r)[i] = (uint16_t)v; break;
    case 4: ((uint32_t *)r)[i] = (uint32_t)v; break;
    default: ((uint64_t *)r)[i] = v; break;
    }
}
static inline uint32_t predicate(const struct warp *w, struct ptx_operand o)
{
    uint32_t m = *(const uint32_t *)row(w, o);
    return o.negated ? ~m : m;
}
static inline void set_predicate(const struct warp *w, struct ptx_operand o, uint32_t value, uint32_t m)
{
    uint32_t *p = row(w, o);
    *p = (*p & ~m) | (value & m);
}
#define EACH_BIT(i, m) for (uint32_t left_ = (m), i; left_ && ((i) = (uint32_t)__builtin_ctz(left_), true); left_ &= left_ - 1)

/* Ends the launch: says the kernel, the line of `in` and a reason. */
_Noreturn void warp_fail(const struct warp *w, const struct ptx_insn *in, enum ptx_fault what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ptx_memory.c */
ptx_exec_fn exec_ld, exec_st, exec_atom, exec_cp_async, exec_lea_local, exec_prefetch, exec_fence;
/* Where lane i finds `bytes` at address a of a space; fails as the device does. */
unsigned char *memory_at(const struct warp *w, const struct ptx_insn *in, unsigned space, uint64_t a, unsigned bytes, unsigned align, unsigned lane);
/* ptx_convert.c */
ptx_exec_fn exec_cvt, exec_cvt2, exec_cvt_pack;
/* ptx_misc.c */
ptx_exec_fn exec_carry, exec_bfi, exec_set, exec_unpack, exec_pack, exec_clock, exec_cvta, exec_isspacep, exec_nop, exec_nanosleep;
/* ptx_lanes.c: lanes that wait for others are left in *m */
bool sync_shfl(struct warp *w, const struct ptx_insn *in, uint32_t *m);
bool sync_vote(struct warp *w, const struct ptx_insn *in, uint32_t *m);
bool sync_match(struct warp *w, const struct ptx_insn *in, uint32_t *m);
bool sync_redux(struct warp *w, const struct ptx_insn *in, uint32_t *m);
bool sync_warp(struct warp *w, const struct ptx_insn *in, uint32_t *m);
bool sync_elect(struct warp *w, const struct ptx_insn *in, uint32_t *m);
bool sync_all(struct warp *w, const struct ptx_insn *in, uint32_t *m); /* `exec` by the whole warp */
ptx_exec_fn exec_activemask, exec_ldmatrix;
/* ptx_mma.c */
ptx_exec_fn exec_mma;
/* ptx_print.c: calls of vprintf and __assertfail */
void builtin_call(struct warp *w, const struct ptx_insn *in, unsigned builtin, uint32_t m);

#endif
