#include "tests/simgpu/ptx/ptx_call.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STACK = 256 << 20 };

static const struct ptx_function *function_at(const struct ptx_program *p, uint32_t pc)
{
    for (unsigned i = 0; i < p->n_functions; i++)
        if (pc >= p->functions[i].first && pc < p->functions[i].first + p->functions[i].n)
            return &p->functions[i];
    return p->functions;
}

static void room_for(struct warp *w, const struct ptx_insn *in, size_t bytes)
{
    if (bytes <= w->stack_bytes)
        return;
    size_t room = w->stack_bytes * 2 > bytes ? w->stack_bytes * 2 : bytes;
    unsigned char *more = room > MOST_STACK ? NULL : aligned_alloc(64, (room + 63) / 64 * 64);
    if (!more)
        warp_fail(w, in, PTX_FAILED, "calls too deep: %zu bytes of registers", room);
    memcpy(more, w->stack, w->stack_bytes);
    memset(more + w->stack_bytes, 0, room - w->stack_bytes);
    free(w->stack);
    w->stack = more;
    w->stack_bytes = room;
}

/* Where a frame of f can lie behind the caller's. */
static uint32_t frame_for(const struct warp *w, const struct ptx_function *f, uint32_t base, uint32_t caller_bytes)
{
    uint32_t at = base + caller_bytes, behind = at;
    bool taken = false;
    for (unsigned i = 0; i < w->n_groups; i++) {
        const struct group *g = &w->group[i];
        if (g->base < at)
            continue;
        const struct ptx_function *other = function_at(w->run->p, g->pc);
        taken |= g->base != at || other != f;
        if (g->base + other->frame_bytes > behind)
            behind = g->base + other->frame_bytes;
    }
    return taken ? behind : at;
}

static unsigned char *local_of(const struct warp *w, const struct ptx_insn *in, uint32_t frame, uint32_t at, uint32_t bytes, unsigned lane)
{
    uint32_t base = ((const uint32_t *)(w->stack + frame + FRAME_LOCAL))[lane];
    return memory_at(w, in, S_LOCAL, (uint64_t)base + at, bytes, 1, lane);
}

/* One argument or result of lane i: from (or to) the caller's frame to (or from) the function's. */
static void pass(struct warp *w, const struct ptx_insn *in, const struct ptx_arg *a, uint32_t caller, const struct ptx_formal *f, uint32_t called,
                 unsigned i, bool back)
{
    unsigned char *mine = NULL, *its = NULL;
    uint32_t bytes = f->in_memory ? f->bytes : a->in_memory ? a->bytes : f->bytes;
    w->base[B_FRAME] = w->stack + caller;
    if (!f->in_memory && f->bytes == 0) { /* a predicate */
        struct ptx_operand to = { .at = f->at };
        uint32_t value = back ? *(const uint32_t *)(w->stack + called + f->at) : predicate(w, a->o);
        if (!back)
            w->base[B_FRAME] = w->stack + called;
        if (!back || a->o.base != B_SINK)
            set_predicate(w, back ? a->o : to, value, 1u << i);
        return;
    }
    if (a->in_memory)
        mine = local_of(w, in, caller, a->at, a->bytes, i);
    else if (a->o.base != B_SINK)
        mine = (unsigned char *)row(w, a->o) + (size_t)i * a->o.bytes;
    its = f->in_memory ? local_of(w, in, called, f->at, f->bytes, i) : w->stack + called + f->at + (size_t)i * f->bytes;
    uint32_t mine_bytes = a->in_memory ? a->bytes : a->o.bytes;
    bytes = bytes < mine_bytes ? bytes : mine_bytes;
    if (mine)
        memcpy(back ? mine : its, back ? its : mine, bytes);
}

static void begin(struct warp *w, const struct ptx_insn *in, uint32_t pc, uint32_t base, uint32_t m, unsigned index, add_group_fn *add)
{
    const struct ptx_program *p = w->run->p;
    const struct ptx_function *f = &p->functions[index], *caller = function_at(p, pc);
    const struct ptx_call *c = in->call;
    if (f->builtin) {
        builtin_call(w, in, f->builtin, m);
        add(w, pc + 1, base, m, G_READY);
        return;
    }
    if (!f->has_body)
        warp_fail(w, in, PTX_FAILED, "function %s is defined nowhere", f->name);
    if (c->n_in != f->n_formal_in || c->n_out != f->n_formal_out)
        warp_fail(w, in, PTX_FAILED, "%s is called with %u parameters and %u results, and has %u and %u", f->name, c->n_in, c->n_out,
                  f->n_formal_in, f->n_formal_out);
    uint32_t frame = frame_for(w, f, base, caller->frame_bytes);
    room_for(w, in, (size_t)frame + f->frame_bytes);
    uint32_t *header = (uint32_t *)(w->stack + frame);
    const uint32_t *local = (const uint32_t *)(w->stack + base + FRAME_LOCAL);
    EACH_BIT(i, m)
    {
        header[FRAME_RETURN / 4 + i] = pc + 1;
        header[FRAME_CALLER / 4 + i] = base;
        header[FRAME_LOCAL / 4 + i] = local[i] + (caller->local_bytes + 15) / 16 * 16;
        if (header[FRAME_LOCAL / 4 + i] + f->local_bytes > w->local_stride)
            warp_fail(w, in, PTX_FAILED, "calls too deep: %u bytes of local memory", w->local_stride);
        for (unsigned k = 0; k < c->n_in; k++)
            pass(w, in, &c->arg[k], base, &f->formal[f->n_formal_out + k], frame, i, false);
    }
    add(w, f->first, frame, m, G_READY);
}

void call_begin(struct warp *w, const struct ptx_insn *in, uint32_t pc, uint32_t base, uint32_t m, add_group_fn *add)
{
    const struct ptx_call *c = in->call;
    if (c->function != UINT32_MAX) {
        begin(w, in, pc, base, m, c->function, add);
        return;
    }
    uint64_t to[LANES];
    const uint64_t *target = row(w, c->target);
    memcpy(to, target, sizeof to);
    while (m) {
        uint64_t first = to[__builtin_ctz(m)];
        uint32_t same = 0;
        EACH_BIT(i, m) same |= (uint32_t)(to[i] == first) << i;
        if (first >> WINDOW_BITS != 4 || (first & ((1ull << WINDOW_BITS) - 1)) >= w->run->p->n_functions)
            warp_fail(w, in, PTX_FAILED, "a call of %#llx, which is no function", (unsigned long long)first);
        begin(w, in, pc, base, same, (unsigned)(first & 0xffffffffu), add);
        m &= ~same;
    }
}

void call_end(struct warp *w, const struct ptx_insn *in, uint32_t base, uint32_t m, add_group_fn *add)
{
    const struct ptx_program *p = w->run->p;
    const uint32_t *header = (const uint32_t *)(w->stack + base);
    (void)in;
    EACH_BIT(i, m)
    {
        uint32_t pc = header[FRAME_RETURN / 4 + i], caller = header[FRAME_CALLER / 4 + i];
        const struct ptx_insn *call = &p->code[pc - 1];
        const struct ptx_function *f = function_at(p, (uint32_t)(in - p->code));
        for (unsigned k = 0; k < call->call->n_out; k++)
            pass(w, call, &call->call->arg[call->call->n_in + k], caller, &f->formal[k], base, i, true);
        add(w, pc, caller, 1u << i, G_READY);
    }
}
