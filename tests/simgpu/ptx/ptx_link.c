#include "tests/simgpu/ptx/ptx_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* ---- shared memory: first what several kernels or a function name, then each kernel's own, then the dynamic --------------------- */

static void place_shared(struct ptx_parse *P)
{
    struct ptx_program *p = P->p;
    uint64_t common = 0;
    for (unsigned i = 0; i < p->n_shared; i++) {
        struct ptx_shared *s = &p->shared[i];
        if (s->dynamic || s->user != (unsigned)USERS_MANY)
            continue;
        s->at = (uint32_t)(common = up(common, s->align));
        common += s->bytes;
        if (common > PTX_MAX_SHARED)
            ptx_lex_fail(&P->lex, -EINVAL, "more than %d bytes of shared memory", PTX_MAX_SHARED);
    }
    for (unsigned k = 0; k < p->n_kernels; k++) {
        uint64_t end = common;
        for (unsigned i = 0; i < p->n_shared; i++) {
            struct ptx_shared *s = &p->shared[i];
            if (s->dynamic || s->user != p->kernel_function[k])
                continue;
            s->at = (uint32_t)(end = up(end, s->align));
            end += s->bytes;
            if (end > PTX_MAX_SHARED)
                ptx_lex_fail(&P->lex, -EINVAL, "more than %d bytes of shared memory in '%s'", PTX_MAX_SHARED, p->kernels[k].name);
        }
        p->kernels[k].static_shared_bytes = (uint32_t)end;
    }
    p->dynamic_at = UINT32_MAX;
    for (unsigned i = 0; i < p->n_shared; i++)
        if (p->shared[i].dynamic && p->shared[i].user == (unsigned)USERS_MANY) {
            uint64_t most = 0;
            for (unsigned k = 0; k < p->n_kernels; k++)
                most = p->kernels[k].static_shared_bytes > most ? p->kernels[k].static_shared_bytes : most;
            p->dynamic_at = (uint32_t)up(most, 16);
        }
    for (unsigned i = 0; i < p->n_shared; i++) {
        struct ptx_shared *s = &p->shared[i];
        if (!s->dynamic)
            continue;
        if (p->dynamic_at != UINT32_MAX)
            s->at = p->dynamic_at;
        else if (s->user != (unsigned)USER_NONE)
            s->at = (uint32_t)up(p->kernels[p->functions[s->user].kernel].static_shared_bytes, 16);
    }
    for (unsigned i = 0; i < P->n_places; i++) {
        const struct ptx_place *r = &P->places[i];
        uint64_t v = p->shared[r->shared].at + (uint64_t)r->plus;
        for (unsigned lane = 0; lane < LANES; lane++)
            memcpy(p->pool + r->at + lane * r->bytes, &v, r->bytes);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------------ */

static const char *const builtins[] = { NULL, "vprintf", "__assertfail" };

static unsigned builtin_of(const char *name)
{
    for (unsigned i = 1; i < sizeof builtins / sizeof builtins[0]; i++)
        if (!strcmp(name, builtins[i]))
            return i;
    return 0;
}

/* Local memory of f and its deepest calls. `state`: 1 while f is being looked at, 2 afterwards. */
static void look_at(struct ptx_parse *P, unsigned index, unsigned char *state, unsigned depth)
{
    struct ptx_function *f = &P->p->functions[index];
    state[index] = 1;
    uint64_t most = f->unknown_called ? PTX_STACK_UNKNOWN : 0;
    for (unsigned i = 0; i < f->n_calls; i++) {
        struct ptx_function *g = &P->p->functions[f->calls[i]];
        if (state[f->calls[i]] == 1 || depth > 200) {
            most = PTX_STACK_UNKNOWN;
            continue;
        }
        if (!state[f->calls[i]])
            look_at(P, f->calls[i], state, depth + 1);
        if (g->stack_bytes > most)
            most = g->stack_bytes;
        if (g->missing && !f->missing)
            f->missing = g->missing;
    }
    if (!f->has_body && !f->missing) {
        f->builtin = builtin_of(f->name);
        if (!f->builtin) {
            size_t n = strlen(f->name) + 64;
            char *text = ptx_parse_keep(P, n);
            snprintf(text, n, "function %s is defined nowhere", f->name);
            f->missing = text;
        }
    }
    f->stack_bytes = (uint32_t)up(f->local_bytes + most, 16);
    state[index] = 2;
}

/* ---- what a thread does ------------------------------------------------------------------------------------------------------------ */

static bool is_float(const struct ptx_insn *in)
{
    return (in->kind == K_ALU || in->kind == K_ALU_PREPARED) && (in->type == T_F32 || in->type == T_F64 || in->type == T_F16 || in->type == T_BF16 ||
                                                                in->type == T_F16X2 || in->type == T_BF16X2);
}

static void count(struct ptx_program *p, const struct ptx_function *f, struct ptx_kernel *k)
{
    for (uint32_t i = f->first; i < f->first + f->n; i++) {
        const struct ptx_insn *in = &p->code[i];
        if (in->data && (in->mem.space == S_GLOBAL || in->mem.space == S_GENERIC))
            k->bytes_a_thread += (uint64_t)in->mem.bytes * in->mem.n;
        else if (is_float(in))
            k->flops_a_thread += in->n == 3 ? 2 : 1;
        else if (in->name && !strncmp(in->name, "mma.", 4))
            k->flops_a_thread += 2 * 16 * 8 * 16 / LANES;
    }
}

void ptx_link(struct ptx_parse *P)
{
    struct ptx_program *p = P->p;
    p->kernel_function = ptx_parse_keep(P, (p->n_kernels + 1) * sizeof *p->kernel_function);
    unsigned char *state = ptx_parse_keep(P, p->n_functions + 1);
    for (unsigned i = 0; i < p->n_functions; i++) {
        if (p->functions[i].is_kernel && p->functions[i].has_body)
            p->kernel_function[p->functions[i].kernel] = i;
        if (!state[i])
            look_at(P, i, state, 0);
    }
    place_shared(P);
    for (unsigned k = 0; k < p->n_kernels; k++) {
        const struct ptx_function *f = &p->functions[p->kernel_function[k]];
        struct ptx_kernel *out = &p->kernels[k];
        out->missing = f->missing;
        out->local_bytes = f->stack_bytes;
        uint32_t rows = (f->frame_bytes - FRAME_FIRST) / 128;
        out->registers = rows < 16 ? 16 : rows > 255 ? 255 : rows;
        count(p, f, out);
    }
}
