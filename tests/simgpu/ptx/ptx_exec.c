#include "tests/simgpu/ptx/ptx_exec.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "tests/simgpu/ptx/ptx_call.h"
#include "tests/simgpu/ptx/ptx_lanes.h"
#include "tests/simgpu/ptx/ptx_number.h"
#include "tests/simgpu/ptx/ptx_rows.h"

/* ---- lane by lane ----------------------------------------------------------------------------------------------------------------- */

static void blend(void *d, const void *s, unsigned bytes, uint32_t m)
{
    switch (bytes) {
    case 2: ptx_blends.of16(d, s, m); break;
    case 4: ptx_blends.of32(d, s, m); break;
    default: ptx_blends.of64(d, s, m); break;
    }
}

static const int directions[16] = { [M_RZ] = FE_TOWARDZERO, [M_RM] = FE_DOWNWARD, [M_RP] = FE_UPWARD };

static void saturate(uint32_t *r)
{
    for (int i = 0; i < LANES; i++) {
        float x = f32_bits(r[i]);
        r[i] = !(x > 0) ? 0 : x > 1 ? 0x3f800000u : r[i];
    }
}

/* Around the function: subnormal operands flushed, another direction of rounding, what the result still needs. */
static void prepared(void *d, const void *const from[3], const struct ptx_insn *in)
{
    uint32_t flat[3][LANES];
    const void *s[3];
    for (int k = 0; k < 3; k++) {
        s[k] = from[k];
        if (k < in->n && in->flush >> k & 1) {
            for (int i = 0; i < LANES; i++)
                flat[k][i] = flushed(((const uint32_t *)from[k])[i]);
            s[k] = flat[k];
        }
    }
    unsigned round = in->mods & (M_RZ | M_RM | M_RP);
    if (round && (in->type == T_F32 || in->type == T_F64)) {
        fesetround(directions[round]);
        in->fn(d, s[0], s[1], s[2], in);
        fesetround(FE_TONEAREST);
    } else {
        in->fn(d, s[0], s[1], s[2], in);
    }
    if (in->flush & 8)
        for (int i = 0; i < LANES; i++)
            ((uint32_t *)d)[i] = flushed(((uint32_t *)d)[i]);
    if (in->post & M_SAT)
        saturate(d);
}

static void compute(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    _Alignas(32) unsigned char other[LANES * 8];
    const void *const from[3] = { row(w, in->a), row(w, in->b), row(w, in->c) };
    bool all = (m | w->dead) == ALL_LANES;
    void *d = row(w, in->d), *to = all ? d : other;
    if (in->kind == K_ALU)
        in->fn(to, from[0], from[1], from[2], in);
    else
        prepared(to, from, in);
    if (!all)
        blend(d, other, in->d.bytes, m);
}

static uint32_t mask_of(const uint8_t *bytes)
{
#ifdef __SSE2__
    __m128i low = _mm_load_si128((const __m128i *)bytes), high = _mm_load_si128((const __m128i *)(bytes + 16));
    return (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(low, 7)) | (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(high, 7)) << 16;
#else
    uint32_t m = 0;
    for (int i = 0; i < LANES; i++)
        m |= (uint32_t)bytes[i] << i;
    return m;
#endif
}

static uint32_t combined(unsigned how, uint32_t a, uint32_t c)
{
    return how == 1 ? a & c : how == 2 ? a | c : how == 3 ? a ^ c : a;
}

static void compare(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    _Alignas(32) uint8_t holds[LANES];
    compare_lanes(w, in, in->fn, holds);
    uint32_t r = mask_of(holds), c = in->sub ? predicate(w, in->c) : 0;
    set_predicate(w, in->d, combined(in->sub, r, c), m);
    if (in->second.base != B_SINK)
        set_predicate(w, in->second, combined(in->sub, ~r, c), m);
}

static void predicates(struct warp *w, const struct ptx_insn *in, uint32_t m)
{
    uint32_t a = predicate(w, in->a), b = predicate(w, in->b);
    uint32_t r = in->sub == 0 ? a : in->sub == 1 ? ~a : in->sub == 2 ? a & b : in->sub == 3 ? a | b : a ^ b;
    set_predicate(w, in->d, r, m);
}

/* ---- groups --------------------------------------------------------------------------------------------------------------------------- */

static void add_group(struct warp *w, uint32_t pc, uint32_t base, uint32_t mask, enum group_state state)
{
    if (!mask)
        return;
    for (unsigned i = 0; i < w->n_groups; i++)
        if (w->group[i].pc == pc && w->group[i].base == base && w->group[i].state == state && state != G_BAR) {
            w->group[i].mask |= mask;
            return;
        }
    w->group[w->n_groups++] = (struct group){ .pc = pc, .base = base, .mask = mask, .state = (uint8_t)state };
}

static void drop_group(struct warp *w, unsigned i) { w->group[i] = w->group[--w->n_groups]; }

/* Lanes that waited for others look again: one of those may have ended. */
static void look_again(struct warp *w)
{
    for (unsigned i = 0; i < w->n_groups; i++)
        if (w->group[i].state == G_SYNC)
            w->group[i].state = G_READY;
}

bool exec_ready(const struct warp *w)
{
    for (unsigned i = 0; i < w->n_groups; i++)
        if (w->group[i].state == G_READY)
            return true;
    return false;
}

/* Takes the group that is to run out of the list; *stop: where it meets the next one. */
static bool pick(struct warp *w, struct group *out, uint32_t *stop, bool in_turn)
{
    int best = -1;
    for (unsigned i = 0; i < w->n_groups; i++) {
        const struct group *g = &w->group[in_turn ? (i + w->running + 1) % w->n_groups : i];
        if (g->state != G_READY)
            continue;
        if (in_turn) {
            best = (int)(g - w->group);
            break;
        }
        if (best < 0 || g->base > w->group[best].base || (g->base == w->group[best].base && g->pc < w->group[best].pc))
            best = (int)i;
    }
    if (best < 0)
        return false;
    *out = w->group[best];
    w->running = (unsigned)best;
    drop_group(w, (unsigned)best);
    *stop = UINT32_MAX;
    for (unsigned i = 0; i < w->n_groups;) {
        const struct group *g = &w->group[i];
        if (g->state == G_READY && g->base == out->base) {
            if (g->pc == out->pc) {
                out->mask |= g->mask;
                drop_group(w, i);
                continue;
            }
            if (g->pc > out->pc && g->pc < *stop)
                *stop = g->pc;
        }
        i++;
    }
    return true;
}

void exec_begin(struct warp *w)
{
    w->dead = ~w->exists;
    w->carry = 0;
    w->n_groups = 0;
    w->running = 0;
    uint32_t *header = (uint32_t *)w->stack;
    for (int i = 0; i < LANES; i++) {
        header[FRAME_RETURN / 4 + i] = UINT32_MAX;
        header[FRAME_LOCAL / 4 + i] = 0;
        header[FRAME_CALLER / 4 + i] = 0;
    }
    add_group(w, w->run->kernel->first, 0, w->exists, G_READY);
}

/* ---- barriers ----------------------------------------------------------------------------------------------------------------------------- */

/* A barrier that says .aligned is to be met by all lanes of a warp at one instruction. */
static void check_aligned(const struct block *b, unsigned id)
{
    for (unsigned i = 0; i < b->n_warps; i++) {
        const struct warp *w = &b->warp[i];
        const struct group *first = NULL;
        for (unsigned g = 0; g < w->n_groups; g++) {
            if (w->group[g].state != G_BAR || w->group[g].barrier != id)
                continue;
            const struct ptx_insn *in = &w->run->p->code[w->group[g].pc];
            if (first && in->aligned && first->pc != w->group[g].pc)
                warp_fail(w, in, PTX_FAILED, "lanes of one warp are at barrier %u in line %u and in line %u", id, in->line,
                          w->run->p->code[first->pc].line);
            first = &w->group[g];
        }
    }
}

static void open_barrier(struct block *b, unsigned id)
{
    struct barrier *bar = &b->barrier[id];
    check_aligned(b, id);
    for (unsigned i = 0; i < b->n_warps; i++) {
        struct warp *w = &b->warp[i];
        for (unsigned g = 0; g < w->n_groups; g++) {
            struct group *at = &w->group[g];
            if (at->state != G_BAR || at->barrier != id)
                continue;
            const struct ptx_insn *in = &w->run->p->code[at->pc];
            w->base[B_FRAME] = w->stack + at->base;
            if (in->sub == BAR_POPC) {
                uint32_t *d = row(w, in->d);
                EACH_BIT(i2, at->mask) d[i2] = bar->votes_true;
            } else if (in->sub == BAR_AND || in->sub == BAR_OR) {
                bool yes = in->sub == BAR_AND ? bar->votes_true == bar->votes : bar->votes_true != 0;
                set_predicate(w, in->d, yes ? ALL_LANES : 0, at->mask);
            }
            at->state = G_READY;
            at->pc++;
        }
    }
    *bar = (struct barrier){ .arrived = 0 };
}

void exec_barriers(struct block *b)
{
    for (unsigned id = 0; id < BARRIERS; id++) {
        const struct barrier *bar = &b->barrier[id];
        if (bar->arrived && bar->arrived >= (bar->wanted ? bar->wanted : b->threads - b->ended))
            open_barrier(b, id);
    }
}

static void arrive(struct warp *w, const struct ptx_insn *in, uint32_t pc, uint32_t base, uint32_t m)
{
    unsigned first = (unsigned)__builtin_ctz(m);
    uint32_t id = ((const uint32_t *)row(w, in->a))[first], wanted = in->n == 2 ? ((const uint32_t *)row(w, in->b))[first] : 0;
    if (id >= BARRIERS)
        warp_fail(w, in, PTX_FAILED, "there is no barrier %u", id);
    if (in->n == 2 && (wanted == 0 || wanted % LANES))
        warp_fail(w, in, PTX_FAILED, "a barrier of %u threads: no multiple of %d", wanted, LANES);
    struct barrier *bar = &w->block->barrier[id];
    if (bar->arrived && bar->wanted != wanted)
        warp_fail(w, in, PTX_FAILED, "barrier %u is for %u threads here and for %u in line %u", id, wanted, bar->wanted, bar->line);
    uint32_t there = (uint32_t)__builtin_popcount(m);
    if (wanted && (m | w->dead) == ALL_LANES)
        there = LANES; /* a barrier with a number counts whole warps */
    bar->arrived += there;
    bar->wanted = wanted;
    bar->line = in->line;
    if (in->sub >= BAR_POPC) {
        bar->votes += (uint32_t)__builtin_popcount(m);
        bar->votes_true += (uint32_t)__builtin_popcount(predicate(w, in->c) & m);
    }
    if (bar->wanted && bar->arrived > bar->wanted)
        warp_fail(w, in, PTX_FAILED, "%u threads came to barrier %u, which is for %u", bar->arrived, id, bar->wanted);
    if (in->sub == BAR_ARRIVE) {
        add_group(w, pc + 1, base, m, G_READY);
    } else {
        add_group(w, pc, base, m, G_BAR);
        w->group[w->n_groups - 1].barrier = (uint8_t)id;
    }
    exec_barriers(w->block);
}

static void end_lanes(struct warp *w, uint32_t m)
{
    w->dead |= m;
    w->block->ended += (uint32_t)__builtin_popcount(m);
    look_again(w);
    exec_barriers(w->block);
}

/* ---- the loop --------------------------------------------------------------------------------------------------------------------------- */

/* Each lane to its own target. */
static void branch_by_index(struct warp *w, const struct ptx_insn *in, uint32_t base, uint32_t m)
{
    const struct ptx_insn *list = &w->run->p->code[in->targets[0]];
    const uint32_t *index = row(w, in->a);
    EACH_BIT(i, m)
    {
        if (index[i] >= list->n_targets)
            warp_fail(w, in, PTX_FAILED, "index %u of a list of %u targets", index[i], list->n_targets);
        add_group(w, list->targets[index[i]], base, 1u << i, G_READY);
    }
}

/* Lanes at an instruction that waits for others. `g` is the running group, its lanes without those whose guard does not hold. */
static void synchronize(struct warp *w, const struct ptx_insn *in, struct group *g)
{
    for (unsigned i = 0; i < w->n_groups;)
        if (w->group[i].state != G_BAR && w->group[i].pc == g->pc && w->group[i].base == g->base) {
            g->mask |= w->group[i].mask;
            drop_group(w, i);
        } else {
            i++;
        }
    uint32_t m = g->mask;
    if (in->guarded) {
        uint32_t p = *(const uint32_t *)(w->base[B_FRAME] + in->guard);
        m &= in->guard_not ? ~p : p;
    }
    uint32_t wait = m;
    w->mask = g->mask;
    if (m)
        in->sync(w, in, &wait);
    add_group(w, g->pc, g->base, wait, G_SYNC);
    add_group(w, g->pc + 1, g->base, g->mask & ~wait, G_READY);
}

enum warp_stop exec_warp(struct warp *w, uint64_t slice)
{
    const struct ptx_insn *const code = w->run->p->code;
    uint64_t left = slice, threads = 0;
    bool in_turn = w->in_turn;
    struct group g;
    uint32_t stop;
    while (pick(w, &g, &stop, in_turn)) {
        if (in_turn)
            stop = UINT32_MAX;
        in_turn = w->in_turn = false;
        w->base[B_FRAME] = w->stack + g.base;
        w->mask = g.mask;
        uint32_t pc = g.pc;
        for (;;) {
            if (pc >= stop) {
                add_group(w, pc, g.base, g.mask, G_READY);
                break;
            }
            if (!left) {
                add_group(w, pc, g.base, g.mask, G_READY);
                w->run->executed += threads;
                w->block->executed += slice;
                w->running = w->n_groups - 1;
                w->in_turn = true; /* lanes that are further on come next: this group may be waiting for them */
                return WARP_SLICE;
            }
            left--;
            const struct ptx_insn *in = &code[pc];
            uint32_t m = g.mask;
            if (in->guarded) {
                uint32_t p = *(const uint32_t *)(w->base[B_FRAME] + in->guard);
                m &= in->guard_not ? ~p : p;
                if (!m) {
                    pc++;
                    continue;
                }
            }
            threads += m == ALL_LANES ? LANES : (unsigned)__builtin_popcount(m);
            switch (in->kind) {
            case K_ALU:
                if ((m | w->dead) == ALL_LANES) {
                    in->fn(row(w, in->d), row(w, in->a), row(w, in->b), row(w, in->c), in);
                    pc++;
                    continue;
                }
                /* fall through */
            case K_ALU_PREPARED: compute(w, in, m); pc++; continue;
            case K_SETP: compare(w, in, m); pc++; continue;
            case K_PRED: predicates(w, in, m); pc++; continue;
            case K_EXEC: in->exec(w, in, m); pc++; continue;
            case K_SYNC: {
                uint32_t wait = m;
                if (m == g.mask && w->n_groups == 0) {
                    if (in->sync(w, in, &wait)) {
                        pc++;
                        continue;
                    }
                    add_group(w, pc, g.base, wait, G_SYNC);
                    add_group(w, pc + 1, g.base, g.mask & ~wait, G_READY);
                    break;
                }
                g.pc = pc;
                synchronize(w, in, &g);
                break;
            }
            case K_BRA:
                if (m == g.mask) {
                    pc = in->target;
                    continue;
                }
                add_group(w, pc + 1, g.base, g.mask & ~m, G_READY);
                add_group(w, in->target, g.base, m, G_READY);
                break;
            case K_BRX:
                add_group(w, pc + 1, g.base, g.mask & ~m, G_READY);
                branch_by_index(w, in, g.base, m);
                break;
            case K_CALL:
                add_group(w, pc + 1, g.base, g.mask & ~m, G_READY);
                call_begin(w, in, pc, g.base, m, add_group);
                break;
            case K_RET:
                add_group(w, pc + 1, g.base, g.mask & ~m, G_READY);
                if (g.base == 0)
                    end_lanes(w, m);
                else
                    call_end(w, in, g.base, m, add_group);
                break;
            case K_EXIT:
                add_group(w, pc + 1, g.base, g.mask & ~m, G_READY);
                end_lanes(w, m);
                break;
            case K_BAR:
                add_group(w, pc + 1, g.base, g.mask & ~m, G_READY);
                arrive(w, in, pc, g.base, m);
                break;
            case K_TRAP: warp_fail(w, in, PTX_FAILED, "%s", in->name);
            default: warp_fail(w, in, PTX_FAILED, "%s is not known", in->name);
            }
            break;
        }
    }
    w->run->executed += threads;
    w->block->executed += slice - left;
    w->in_turn = false;
    return w->n_groups ? WARP_WAITS : WARP_ENDED;
}
