/* What lanes and warps do together. */
#include <errno.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_lanes.h"
#include "tests/simgpu/ptx/ptx_parse.h"
#include "tests/simgpu/ptx/ptx_warp.h"

typedef bool sync_fn(struct warp *w, const struct ptx_insn *in, uint32_t *m);

static struct ptx_insn *emit_sync(struct ptx_parse *P, sync_fn *sync)
{
    struct ptx_insn *in = ptx_emit(P, K_SYNC);
    in->sync = sync;
    in->second = in->d = (struct ptx_operand){ .base = B_SINK };
    return in;
}

static int word_among(struct ptx_parse *P, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (ptx_part(P, words[i]))
            return i;
    return -1;
}

/* The predicate of "d|p", or nowhere. */
static struct ptx_operand second_of(struct ptx_parse *P, const struct ptx_raw *r)
{
    return r->n && r->kind != RAW_VECTOR ? ptx_destination(P, r->part, 'p') : (struct ptx_operand){ .base = B_SINK };
}

static bool select_shfl(struct ptx_parse *P)
{
    static const char *const modes[] = { "up", "down", "bfly", "idx", NULL };
    const struct ptx_text_insn *t = P->insn;
    if (!ptx_part(P, "sync"))
        return false;
    int mode = word_among(P, modes);
    if (mode < 0 || !ptx_part(P, "b32") || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 5, 5);
    struct ptx_operand a = ptx_source(P, &t->operand[1], 'w'), b = ptx_source(P, &t->operand[2], 'w');
    struct ptx_operand c = ptx_source(P, &t->operand[3], 'w'), e = ptx_source(P, &t->operand[4], 'w');
    struct ptx_operand d = ptx_destination(P, &t->operand[0], 'w'), second = second_of(P, &t->operand[0]);
    struct ptx_insn *in = emit_sync(P, sync_shfl);
    in->sub = (uint8_t)mode;
    in->a = a;
    in->b = b;
    in->c = c;
    in->e = e;
    in->d = d;
    in->second = second;
    return true;
}

static bool select_vote(struct ptx_parse *P)
{
    static const char *const modes[] = { "all", "any", "uni", "ballot", NULL };
    const struct ptx_text_insn *t = P->insn;
    if (!ptx_part(P, "sync"))
        return false;
    int mode = word_among(P, modes);
    if (mode < 0 || !ptx_part(P, mode == VOTE_BALLOT ? "b32" : "pred") || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 3, 3);
    struct ptx_operand a = ptx_source(P, &t->operand[1], 'p'), e = ptx_source(P, &t->operand[2], 'w');
    struct ptx_operand d = ptx_destination(P, &t->operand[0], mode == VOTE_BALLOT ? 'w' : 'p');
    struct ptx_insn *in = emit_sync(P, sync_vote);
    in->sub = (uint8_t)mode;
    in->a = a;
    in->e = e;
    in->d = d;
    return true;
}

static bool select_match(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    bool all = ptx_part(P, "all");
    if ((!all && !ptx_part(P, "any")) || !ptx_part(P, "sync"))
        return false;
    enum ptx_type type = ptx_part_type(P);
    if ((type != T_B32 && type != T_B64) || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 3, 3);
    struct ptx_operand a = ptx_source(P, &t->operand[1], ptx_width_letter(type)), e = ptx_source(P, &t->operand[2], 'w');
    struct ptx_operand d = ptx_destination(P, &t->operand[0], 'w'), second = second_of(P, &t->operand[0]);
    struct ptx_insn *in = emit_sync(P, sync_match);
    in->sub = all;
    in->a = a;
    in->e = e;
    in->d = d;
    in->second = second;
    return true;
}

static bool select_redux(struct ptx_parse *P)
{
    static const char *const ops[] = { "add", "min", "max", "and", "or", "xor", NULL };
    const struct ptx_text_insn *t = P->insn;
    if (!ptx_part(P, "sync"))
        return false;
    int op = word_among(P, ops);
    enum ptx_type type = ptx_part_type(P);
    bool fits = op >= REDUX_AND ? type == T_B32 : type == T_U32 || type == T_S32;
    if (op < 0 || !fits || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 3, 3);
    struct ptx_operand a = ptx_source(P, &t->operand[1], 'w'), e = ptx_source(P, &t->operand[2], 'w'), d = ptx_destination(P, &t->operand[0], 'w');
    struct ptx_insn *in = emit_sync(P, sync_redux);
    in->sub = (uint8_t)op;
    in->type = (uint8_t)type;
    in->a = a;
    in->e = e;
    in->d = d;
    return true;
}

/* bar{.cta}.sync a{, b}; bar.arrive a, b; bar.red.popc.u32 d, a{, b}, {!}c; bar.red.{and,or}.pred p, a{, b}, {!}c; bar.warp.sync mask */
static bool select_bar(struct ptx_parse *P)
{
    static const char *const kinds[] = { "popc", "and", "or", NULL };
    const struct ptx_text_insn *t = P->insn;
    bool aligned = !strcmp(t->part[0], "bar");
    if (aligned && ptx_part(P, "warp")) {
        if (!ptx_part(P, "sync") || !ptx_parts_done(P))
            return false;
        ptx_need_operands(P, 1, 1);
        struct ptx_operand e = ptx_source(P, &t->operand[0], 'w');
        emit_sync(P, sync_warp)->e = e;
        return true;
    }
    ptx_part(P, "cta");
    int what = ptx_part(P, "sync") ? BAR_SYNC : ptx_part(P, "arrive") ? BAR_ARRIVE : ptx_part(P, "red") ? BAR_POPC : -1;
    if (what == BAR_POPC) {
        int kind = word_among(P, kinds);
        if (kind < 0 || !ptx_part(P, kind == 0 ? "u32" : "pred"))
            return false;
        what += kind;
    }
    aligned |= ptx_part(P, "aligned");
    if (what < 0 || !ptx_parts_done(P))
        return false;
    bool red = what >= BAR_POPC;
    unsigned n = t->n_operands - 2 * red;
    ptx_need_operands(P, red ? 3 : what == BAR_ARRIVE ? 2 : 1, red ? 4 : 2);
    struct ptx_operand d = red ? ptx_destination(P, &t->operand[0], what == BAR_POPC ? 'w' : 'p') : (struct ptx_operand){ .base = B_SINK };
    struct ptx_operand a = ptx_source(P, &t->operand[red], 'w'), b = n == 2 ? ptx_source(P, &t->operand[red + 1], 'w') : a;
    struct ptx_operand c = red ? ptx_source(P, &t->operand[t->n_operands - 1], 'p') : a;
    struct ptx_insn *in = ptx_emit(P, K_BAR);
    in->sub = (uint8_t)what;
    in->n = (uint8_t)n;
    in->aligned = aligned;
    in->a = a;
    in->b = b;
    in->c = c;
    in->d = d;
    return true;
}

/* mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c */
static const struct { const char *shape; enum ptx_type d, a, b; struct ptx_matrix matrix; } products[] = {
    { "m16n8k16", T_F32, T_F16, T_F16, { 16, 8, 16, 16 } }, { "m16n8k8", T_F32, T_F16, T_F16, { 16, 8, 8, 16 } },
    { "m16n8k16", T_F16, T_F16, T_F16, { 16, 8, 16, 16 } }, { "m16n8k8", T_F16, T_F16, T_F16, { 16, 8, 8, 16 } },
    { "m16n8k16", T_F32, T_BF16, T_BF16, { 16, 8, 16, 16 } }, { "m16n8k8", T_F32, T_BF16, T_BF16, { 16, 8, 8, 16 } },
    { "m16n8k8", T_F32, T_TF32, T_TF32, { 16, 8, 8, 32 } }, { "m16n8k4", T_F32, T_TF32, T_TF32, { 16, 8, 4, 32 } },
    { "m8n8k4", T_F64, T_F64, T_F64, { 8, 8, 4, 64 } },
    { "m16n8k32", T_S32, T_S8, T_S8, { 16, 8, 32, 8 } }, { "m16n8k16", T_S32, T_S8, T_S8, { 16, 8, 16, 8 } }, { "m8n8k16", T_S32, T_S8, T_S8, { 8, 8, 16, 8 } },
};

static bool select_mma(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    const struct ptx_matrix *shape = NULL;
    if (!ptx_part(P, "sync") || !ptx_part(P, "aligned") || !ptx_part(P, "row") || !ptx_part(P, "col"))
        return false;
    bool saturates = ptx_part(P, "satfinite");
    enum ptx_type d = ptx_part_type(P), a = ptx_part_type(P), b = ptx_part_type(P), c = ptx_part_type(P);
    for (size_t i = 0; i < sizeof products / sizeof products[0] && !shape; i++) {
        bool bytes = products[i].a == T_S8;
        if (products[i].d == d && c == d && (bytes ? (a == T_S8 || a == T_U8) && (b == T_S8 || b == T_U8) : products[i].a == a && products[i].b == b) &&
            (bytes || !saturates) && ptx_part(P, products[i].shape))
            shape = &products[i].matrix;
    }
    if (!shape || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 4, 4);
    unsigned per_register = d == T_F16 ? 2 : 1, bits = d == T_F64 ? 64 : 32;
    unsigned want[4] = { shape->m * shape->n / 32u / per_register, shape->m * shape->k * shape->bits / bits / 32u, shape->n * shape->k * shape->bits / bits / 32u, 0 };
    want[3] = want[0];
    struct ptx_vec *v = ptx_parse_keep(P, 4 * sizeof *v);
    for (unsigned i = 0; i < 4; i++) {
        char letter = d == T_F64 ? 'F' : 'w';
        v[i] = *ptx_vector(P, &t->operand[i], i == 0, letter, false);
        if (v[i].n != want[i])
            ptx_lex_fail(&P->lex, -EINVAL, "%s: %u registers where there are %u", t->opcode, v[i].n, want[i]);
    }
    struct ptx_insn *in = emit_sync(P, sync_all);
    in->exec = exec_mma;
    in->vec = v;
    in->type = (uint8_t)d;
    in->type2 = (uint8_t)a;
    in->sub = (uint8_t)b;
    in->mods = saturates ? M_SATFINITE : 0;
    memcpy(&in->e, shape, sizeof *shape);
    return true;
}

bool ptx_select_warp(struct ptx_parse *P, const struct ptx_text_insn *t)
{
    const char *base = t->part[0];
    if (!strcmp(base, "shfl"))
        return select_shfl(P);
    if (!strcmp(base, "vote"))
        return select_vote(P);
    if (!strcmp(base, "match"))
        return select_match(P);
    if (!strcmp(base, "redux"))
        return select_redux(P);
    if (!strcmp(base, "bar") || !strcmp(base, "barrier"))
        return select_bar(P);
    if (!strcmp(base, "mma"))
        return select_mma(P);
    if (!strcmp(base, "activemask") && ptx_part(P, "b32") && ptx_parts_done(P)) {
        ptx_need_operands(P, 1, 1);
        struct ptx_operand d = ptx_destination(P, &t->operand[0], 'w');
        struct ptx_insn *in = ptx_emit(P, K_EXEC);
        in->exec = exec_activemask;
        in->d = d;
        return true;
    }
    if (!strcmp(base, "elect") && ptx_part(P, "sync") && ptx_parts_done(P)) {
        ptx_need_operands(P, 2, 2);
        struct ptx_operand e = ptx_source(P, &t->operand[1], 'w'), d = ptx_destination(P, &t->operand[0], 'w'), p = second_of(P, &t->operand[0]);
        struct ptx_insn *in = emit_sync(P, sync_elect);
        in->e = e;
        in->d = d;
        in->second = p;
        return true;
    }
    if (!strcmp(base, "nanosleep") && ptx_part(P, "u32") && ptx_parts_done(P)) {
        ptx_emit(P, K_EXEC)->exec = exec_nanosleep;
        return true;
    }
    return false;
}
