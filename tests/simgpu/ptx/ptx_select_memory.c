/* Loads, stores, atomics, copies to shared memory, addresses and fences. Cache hints and scopes are passed: there is one memory here. */
#include <errno.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_atom.h"
#include "tests/simgpu/ptx/ptx_parse.h"
#include "tests/simgpu/ptx/ptx_rows.h"
#include "tests/simgpu/ptx/ptx_warp.h"

static void pass_hints(struct ptx_parse *P)
{
    static const char *const words[] = { "weak", "relaxed", "acquire", "release", "acq_rel", "sc", "volatile", "mmio", "cta", "gpu", "sys",
                                         "cluster", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "unified" };
    struct ptx_text_insn *t = (struct ptx_text_insn *)(uintptr_t)P->insn;
    for (unsigned i = 1; i < t->n_parts; i++) {
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            t->used[i] |= !strcmp(t->part[i], words[k]);
        t->used[i] |= !strncmp(t->part[i], "L1::", 4) || !strncmp(t->part[i], "L2::", 4) || !strncmp(t->part[i], "level::", 7);
    }
}

static enum ptx_space pass_space(struct ptx_parse *P)
{
    if (ptx_part(P, "global"))
        return S_GLOBAL;
    if (ptx_part(P, "shared") || ptx_part(P, "shared::cta"))
        return S_SHARED;
    if (ptx_part(P, "local"))
        return S_LOCAL;
    if (ptx_part(P, "const"))
        return S_CONST;
    if (ptx_part(P, "param") || ptx_part(P, "param::entry") || ptx_part(P, "param::func"))
        return S_PARAM;
    return S_GENERIC;
}

static bool is_signed(enum ptx_type t) { return t == T_S8 || t == T_S16 || t == T_S32 || t == T_S64; }

/* ld, ldu, st */
static bool select_access(struct ptx_parse *P, bool store)
{
    const struct ptx_text_insn *t = P->insn;
    struct ptx_mem mem = { .space = (uint8_t)pass_space(P) };
    pass_hints(P);
    unsigned n = ptx_part(P, "v2") ? 2 : ptx_part(P, "v4") ? 4 : ptx_part(P, "v8") ? 8 : 1;
    enum ptx_type type = ptx_part_type(P);
    if (type == T_NONE || type == T_PRED || type == T_B128 || type == T_F16X2 || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 2, 3);
    unsigned bytes = ptx_type_bytes[type];
    if (n * bytes > 32)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: a vector of %u bytes", t->opcode, n * bytes);
    const struct ptx_raw *value = &t->operand[store ? 1 : 0];
    const struct ptx_vec *data = ptx_vector(P, value, !store, ptx_width_letter(type), true);
    if (data->n != n)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: a vector of %u registers", t->opcode, data->n);
    for (unsigned i = 0; i < n; i++)
        if (data->o[i].bytes < bytes || data->o[i].bytes == 0)
            ptx_lex_fail(&P->lex, -EINVAL, "%s: a register is too narrow", t->opcode);
    ptx_address(P, &t->operand[store ? 0 : 1], &mem);
    if (store && mem.space == S_CONST)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: constant memory is read alone", t->opcode);
    mem.bytes = (uint8_t)bytes;
    mem.sign = is_signed(type);
    mem.n = (uint8_t)n;
    mem.vector = (uint8_t)(n * bytes);
    struct ptx_insn *in = ptx_emit(P, K_EXEC);
    in->exec = store ? exec_st : exec_ld;
    in->mem = mem;
    in->data = data;
    in->type = (uint8_t)type;
    return true;
}

static const struct { const char *word; enum ptx_atom op; } atom_words[] = {
    { "add", ATOM_ADD }, { "min", ATOM_MIN }, { "max", ATOM_MAX }, { "inc", ATOM_INC }, { "dec", ATOM_DEC }, { "and", ATOM_AND },
    { "or", ATOM_OR }, { "xor", ATOM_XOR }, { "exch", ATOM_EXCH }, { "cas", ATOM_CAS },
};

static bool atom_fits(enum ptx_atom op, enum ptx_type t, bool noftz)
{
    bool half = t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2;
    switch (op) {
    case ATOM_ADD: return t == T_U32 || t == T_S32 || t == T_U64 || t == T_S64 || t == T_F32 || t == T_F64 || (half && noftz);
    case ATOM_MIN:
    case ATOM_MAX: return t == T_U32 || t == T_S32 || t == T_U64 || t == T_S64 || (half && noftz);
    case ATOM_INC:
    case ATOM_DEC: return t == T_U32;
    case ATOM_CAS: return t == T_B32 || t == T_B64 || t == T_U32 || t == T_U64 || t == T_S32 || t == T_S64 || t == T_B16;
    default: return t == T_B32 || t == T_B64 || t == T_U32 || t == T_S32 || t == T_U64 || t == T_S64;
    }
}

static bool select_atom(struct ptx_parse *P, bool red)
{
    const struct ptx_text_insn *t = P->insn;
    struct ptx_mem mem = { .space = (uint8_t)pass_space(P) };
    pass_hints(P);
    bool noftz = ptx_part(P, "noftz");
    enum ptx_atom op = ATOM_NONE;
    for (size_t i = 0; i < sizeof atom_words / sizeof atom_words[0] && op == ATOM_NONE; i++)
        if (ptx_part(P, atom_words[i].word))
            op = atom_words[i].op;
    enum ptx_type type = ptx_part_type(P);
    if (op == ATOM_NONE || !ptx_parts_done(P) || !atom_fits(op, type, noftz) ||
        (mem.space != S_GENERIC && mem.space != S_GLOBAL && mem.space != S_SHARED))
        return false;
    unsigned at = red ? 0 : 1, n = op == ATOM_CAS ? 2 : 1;
    ptx_need_operands(P, at + 1 + n, at + 2 + n);
    char want = type == T_F16 ? 'e' : type == T_BF16 ? 'b' : ptx_width_letter(type);
    ptx_address(P, &t->operand[at], &mem);
    struct ptx_operand b = ptx_source(P, &t->operand[at + 1], want), c = n == 2 ? ptx_source(P, &t->operand[at + 2], want) : b;
    struct ptx_operand d = red ? (struct ptx_operand){ .base = B_SINK } : ptx_destination(P, &t->operand[0], want);
    mem.bytes = mem.vector = ptx_type_bytes[type];
    mem.n = 1;
    struct ptx_insn *in = ptx_emit(P, K_EXEC);
    in->exec = exec_atom;
    in->mem = mem;
    in->b = b;
    in->c = c;
    in->d = d;
    in->sub = (uint8_t)op;
    in->type = (uint8_t)type;
    return true;
}

/* cp.async.ca.shared.global [to], [from], bytes{, bytes that are read}{, policy}: copied at once; the waits are nothing. */
static bool select_cp(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    if (!ptx_part(P, "async"))
        return false;
    bool nothing = ptx_part(P, "commit_group") || ptx_part(P, "wait_group") || ptx_part(P, "wait_all");
    if (nothing && ptx_parts_done(P)) {
        ptx_emit(P, K_EXEC)->exec = exec_nop;
        return true;
    }
    pass_hints(P);
    bool to = ptx_part(P, "shared") || ptx_part(P, "shared::cta"), from = ptx_part(P, "global");
    if (!to || !from || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 3, 5);
    if (t->operand[2].kind != RAW_INT || (t->operand[2].integer != 4 && t->operand[2].integer != 8 && t->operand[2].integer != 16))
        ptx_lex_fail(&P->lex, -EINVAL, "%s copies 4, 8 or 16 bytes", t->opcode);
    struct ptx_mem dst = { .space = S_SHARED }, src = { .space = S_GLOBAL };
    ptx_address(P, &t->operand[0], &dst);
    ptx_address(P, &t->operand[1], &src);
    bool has_size = t->n_operands > 3 && t->operand[3].kind != RAW_NONE;
    bool ignored = has_size && t->operand[3].kind == RAW_REGISTER && t->operand[3].type == T_PRED;
    bool policy = has_size && t->operand[3].kind == RAW_REGISTER && ptx_type_bytes[t->operand[3].type] == 8;
    struct ptx_operand size = ignored ? ptx_source(P, &t->operand[3], 'p') : has_size && !policy ? ptx_source(P, &t->operand[3], 'w')
                                                                                                : ptx_constant(P, t->operand[2].integer, 4);
    struct ptx_operand plus = ptx_constant(P, (uint64_t)src.plus, 8);
    struct ptx_insn *in = ptx_emit(P, K_EXEC);
    in->exec = exec_cp_async;
    in->mem = dst;
    in->mem.bytes = in->mem.vector = (uint8_t)t->operand[2].integer;
    in->a = src.address;
    in->b = plus;
    in->c = size;
    in->sub = ignored;
    return true;
}

/* cvta{.to}.space.u64 d, a; isspacep.space p, a */
static bool select_cvta(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    bool asks = !strcmp(t->part[0], "isspacep"), to = !asks && ptx_part(P, "to");
    enum ptx_space space = pass_space(P);
    enum ptx_type type = asks ? T_U64 : ptx_part_type(P);
    if (space == S_GENERIC || (type != T_U64 && type != T_U32) || !ptx_parts_done(P))
        return false;
    ptx_need_operands(P, 2, 2);
    const struct ptx_raw *from = &t->operand[1];
    bool frame = from->kind == RAW_SYMBOL && from->symbol->kind == SYM_LOCAL;
    struct ptx_operand a = frame ? ptx_constant(P, from->symbol->at + from->integer, 8) : ptx_source(P, from, ptx_width_letter(type));
    struct ptx_operand d = ptx_destination(P, &t->operand[0], asks ? 'p' : ptx_width_letter(type));
    if (!asks && !frame && type == T_U64 && (space == S_GLOBAL || space == S_CONST)) { /* both are the processor's addresses */
        struct ptx_insn *in = ptx_emit(P, K_ALU);
        in->fn = ptx_row_of("mov.b64")->fn;
        in->a = in->b = in->c = a;
        in->d = d;
        in->n = 1;
        return true;
    }
    struct ptx_insn *in = ptx_emit(P, K_EXEC);
    in->exec = asks ? exec_isspacep : exec_cvta;
    in->a = a;
    in->d = d;
    in->sub = (uint8_t)space;
    in->n = (uint8_t)(to | frame << 1);
    return true;
}

static bool select_ldmatrix(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    struct ptx_mem mem = { .space = S_SHARED };
    unsigned n = ptx_part(P, "x1") ? 1 : ptx_part(P, "x2") ? 2 : ptx_part(P, "x4") ? 4 : 0;
    bool trans = ptx_part(P, "trans");
    bool known = ptx_part(P, "sync") && ptx_part(P, "aligned") && ptx_part(P, "m8n8") && n && ptx_part(P, "b16");
    mem.space = (uint8_t)pass_space(P);
    if (!known || !ptx_parts_done(P) || (mem.space != S_SHARED && mem.space != S_GENERIC))
        return false;
    ptx_need_operands(P, 2, 2);
    const struct ptx_vec *data = ptx_vector(P, &t->operand[0], true, 'w', false);
    if (data->n != n)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: %u registers", t->opcode, data->n);
    ptx_address(P, &t->operand[1], &mem);
    mem.bytes = mem.vector = 16;
    mem.n = 1;
    struct ptx_insn *in = ptx_emit(P, K_SYNC);
    in->sync = sync_all;
    in->exec = exec_ldmatrix;
    in->mem = mem;
    in->data = data;
    in->sub = trans;
    return true;
}

bool ptx_select_memory(struct ptx_parse *P, const struct ptx_text_insn *t)
{
    const char *base = t->part[0];
    if (!strcmp(base, "ld") || !strcmp(base, "ldu"))
        return select_access(P, false);
    if (!strcmp(base, "st"))
        return select_access(P, true);
    if (!strcmp(base, "atom") || !strcmp(base, "red"))
        return select_atom(P, base[0] == 'r');
    if (!strcmp(base, "cp"))
        return select_cp(P);
    if (!strcmp(base, "cvta") || !strcmp(base, "isspacep"))
        return select_cvta(P);
    if (!strcmp(base, "ldmatrix"))
        return select_ldmatrix(P);
    if (!strcmp(base, "membar") || !strcmp(base, "fence")) {
        ptx_emit(P, K_EXEC)->exec = exec_fence;
        return true;
    }
    if (!strcmp(base, "prefetch") || !strcmp(base, "prefetchu")) {
        ptx_emit(P, K_EXEC)->exec = exec_nop;
        return true;
    }
    if (!strcmp(base, "createpolicy")) { /* what it makes is a hint */
        struct ptx_operand d = ptx_destination(P, &t->operand[0], 'x');
        struct ptx_insn *in = ptx_emit(P, K_EXEC);
        in->exec = exec_nop;
        in->d = d;
        return true;
    }
    return false;
}
