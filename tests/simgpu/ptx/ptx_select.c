/*
 * What an instruction is: its opcode without the words that are M_ bits is the form by which the tables are searched. Words that say how a
 * device should go about it (.uni, cache hints) change nothing here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_parse.h"
#include "tests/simgpu/ptx/ptx_rows.h"
#include "tests/simgpu/ptx/ptx_warp.h"

static struct ptx_text_insn *text(struct ptx_parse *P) { return (struct ptx_text_insn *)(uintptr_t)P->insn; }

bool ptx_part(struct ptx_parse *P, const char *word)
{
    struct ptx_text_insn *t = text(P);
    for (unsigned i = 1; i < t->n_parts; i++)
        if (!t->used[i] && !strcmp(t->part[i], word))
            return t->used[i] = true;
    return false;
}

enum ptx_type ptx_part_type(struct ptx_parse *P)
{
    struct ptx_text_insn *t = text(P);
    for (unsigned i = 1; i < t->n_parts; i++)
        if (!t->used[i] && ptx_type_of(t->part[i]) != T_NONE) {
            t->used[i] = true;
            return ptx_type_of(t->part[i]);
        }
    return T_NONE;
}

bool ptx_parts_done(struct ptx_parse *P)
{
    for (unsigned i = 1; i < P->insn->n_parts; i++)
        if (!P->insn->used[i])
            return false;
    return true;
}

void ptx_need_operands(struct ptx_parse *P, unsigned least, unsigned most)
{
    if (P->insn->n_operands < least || P->insn->n_operands > most)
        ptx_lex_fail(&P->lex, -EINVAL, "%s with %u operands", P->insn->opcode, P->insn->n_operands);
}

/* ---- from the tables ------------------------------------------------------------------------------------------------------------------ */

static const struct { const char *word; uint32_t bit; } mod_words[] = {
    { "rn", M_RN }, { "rz", M_RZ }, { "rm", M_RM }, { "rp", M_RP }, { "ftz", M_FTZ }, { "sat", M_SAT }, { "relu", M_RELU },
};

/* The row of the opcode's words that are not yet passed; `mods` says which were M_ bits. NULL: none. */
static const struct ptx_row *find(struct ptx_parse *P, const char *base, uint32_t *mods)
{
    const struct ptx_text_insn *t = P->insn;
    for (int plain = 1; plain >= 0; plain--) { /* as it stands, then without the words */
        char form[256];
        int n = snprintf(form, sizeof form, "%s", base);
        *mods = 0;
        for (unsigned i = 1; i < t->n_parts && n < (int)sizeof form; i++) {
            uint32_t bit = 0;
            for (size_t k = 0; !plain && k < sizeof mod_words / sizeof mod_words[0]; k++)
                if (!strcmp(t->part[i], mod_words[k].word))
                    bit = mod_words[k].bit;
            *mods |= bit;
            if (!bit && !t->used[i])
                n += snprintf(form + n, sizeof form - (size_t)n, ".%s", t->part[i]);
        }
        const struct ptx_row *r = n < (int)sizeof form ? ptx_row_of(form) : NULL;
        if (r && !(*mods & ~(r->mods & 0xffff)) && (!(r->mods & M_ROUND_NEEDED) || *mods & M_ROUND))
            return r;
    }
    return NULL;
}

static struct ptx_insn *emit_row(struct ptx_parse *P, const struct ptx_row *r, uint32_t mods)
{
    const struct ptx_text_insn *t = P->insn;
    unsigned n = (unsigned)strlen(r->operands) - 1;
    bool number = r->operands[n] == 'i';
    ptx_need_operands(P, n + 1, n + 1);
    struct ptx_operand o[4] = { { .at = 0 } };
    uint64_t imm = 0;
    for (unsigned i = 1; i <= n; i++) {
        if (r->operands[i] != 'i') {
            o[i] = ptx_source(P, &t->operand[i], r->operands[i]);
            continue;
        }
        if (t->operand[i].kind != RAW_INT)
            ptx_lex_fail(&P->lex, -EINVAL, "%s: its last operand is a number", t->opcode);
        imm = t->operand[i].integer;
    }
    o[0] = ptx_destination(P, &t->operand[0], r->operands[0]);
    struct ptx_insn *in = ptx_emit(P, K_ALU);
    in->d = o[0];
    in->a = o[1];
    in->b = n > 1 ? o[2] : o[1];
    in->c = n - number > 2 ? o[3] : in->b;
    in->n = (uint8_t)(n - number);
    in->fn = r->fn;
    in->type = (uint8_t)r->type;
    in->mods = mods;
    in->imm = imm;
    for (unsigned i = 1; mods & M_FTZ && i <= n; i++)
        in->flush |= (uint16_t)(r->operands[i] == 'f' ? 1u << (i - 1) : 0);
    if (mods & M_FTZ && r->operands[0] == 'f')
        in->flush |= 8;
    if (r->operands[0] == 'f' && mods & M_SAT)
        in->post = M_SAT;
    bool whole = r->operands[0] != 'f' && r->operands[0] != 'F';
    if (in->flush || in->post || (!whole && mods & (M_RZ | M_RM | M_RP)))
        in->kind = K_ALU_PREPARED;
    return in;
}

static bool select_row(struct ptx_parse *P)
{
    uint32_t mods;
    const struct ptx_row *r = find(P, P->insn->part[0], &mods);
    if (!r)
        return false;
    emit_row(P, r, mods);
    return true;
}

/* setp.CMP{.BOOL}{.ftz}.TYPE p{|q}, a, b{, {!}c} */
static bool select_setp(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    unsigned sub = ptx_part(P, "and") ? 1 : ptx_part(P, "or") ? 2 : ptx_part(P, "xor") ? 3 : 0;
    uint32_t mods;
    const struct ptx_row *r = find(P, "setp", &mods);
    if (!r)
        return false;
    ptx_need_operands(P, sub ? 4 : 3, sub ? 4 : 3);
    struct ptx_operand a = ptx_source(P, &t->operand[1], r->operands[1]), b = ptx_source(P, &t->operand[2], r->operands[2]);
    struct ptx_operand c = sub ? ptx_source(P, &t->operand[3], 'p') : (struct ptx_operand){ .at = 0 };
    struct ptx_operand d = ptx_destination(P, &t->operand[0], 'p'), sink = { .base = B_SINK };
    struct ptx_insn *in = ptx_emit(P, K_SETP);
    in->fn = r->fn;
    in->type = (uint8_t)r->type;
    in->a = a;
    in->b = b;
    in->c = c;
    in->d = d;
    in->second = t->operand[0].n ? ptx_destination(P, t->operand[0].part, 'p') : sink;
    in->sub = (uint8_t)sub;
    in->n = 2;
    in->flush = mods & M_FTZ ? 3 : 0;
    return true;
}

static bool select_testp(struct ptx_parse *P)
{
    uint32_t mods;
    const struct ptx_row *r = find(P, "testp", &mods);
    if (!r)
        return false;
    ptx_need_operands(P, 2, 2);
    struct ptx_operand a = ptx_source(P, &P->insn->operand[1], r->operands[1]), d = ptx_destination(P, &P->insn->operand[0], 'p');
    struct ptx_insn *in = ptx_emit(P, K_SETP);
    in->fn = r->fn;
    in->a = in->b = a;
    in->d = d;
    in->second = (struct ptx_operand){ .base = B_SINK };
    in->n = 2;
    return true;
}

/* set.CMP{.BOOL}{.ftz}.DTYPE.TYPE d, a, b{, {!}c}: all ones or 1.0 where it holds */
static bool select_set(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    unsigned sub = ptx_part(P, "and") ? 1 : ptx_part(P, "or") ? 2 : ptx_part(P, "xor") ? 3 : 0;
    struct ptx_text_insn *w = text(P);
    enum ptx_type d = T_NONE;
    for (unsigned i = 1; i < w->n_parts && d == T_NONE; i++)
        if (!w->used[i] && (d = ptx_type_of(w->part[i])) != T_NONE)
            w->used[i] = true;
    uint32_t mods;
    const struct ptx_row *r = d == T_U32 || d == T_S32 || d == T_F32 || d == T_F16 || d == T_BF16 || d == T_U16 || d == T_S16 ? find(P, "setp", &mods) : NULL;
    if (!r)
        return false;
    ptx_need_operands(P, sub ? 4 : 3, sub ? 4 : 3);
    struct ptx_operand a = ptx_source(P, &t->operand[1], r->operands[1]), b = ptx_source(P, &t->operand[2], r->operands[2]);
    struct ptx_operand c = sub ? ptx_source(P, &t->operand[3], 'p') : (struct ptx_operand){ .at = 0 };
    struct ptx_operand out = ptx_destination(P, &t->operand[0], ptx_width_letter(d));
    struct ptx_insn *in = ptx_emit(P, K_EXEC);
    in->exec = exec_set;
    in->a = a;
    in->b = b;
    in->c = c;
    in->d = out;
    in->sub = (uint8_t)sub;
    in->flush = mods & M_FTZ ? 3 : 0;
    in->imm = (uint64_t)(uintptr_t)r->fn;
    in->type = (uint8_t)d;
    return true;
}

/* ---- those that are not in the tables ---------------------------------------------------------------------------------------------------- */

static struct ptx_insn *emit_exec(struct ptx_parse *P, ptx_exec_fn *exec)
{
    struct ptx_insn *in = ptx_emit(P, K_EXEC);
    in->exec = exec;
    return in;
}

static bool select_predicates(struct ptx_parse *P)
{
    static const char *const names[] = { "mov", "not", "and", "or", "xor" };
    const struct ptx_text_insn *t = P->insn;
    unsigned sub = 0;
    while (sub < 5 && strcmp(t->part[0], names[sub]))
        sub++;
    if (sub == 5)
        return false;
    ptx_need_operands(P, sub < 2 ? 2 : 3, sub < 2 ? 2 : 3);
    struct ptx_operand a = ptx_source(P, &t->operand[1], 'p'), b = sub < 2 ? a : ptx_source(P, &t->operand[2], 'p');
    struct ptx_operand d = ptx_destination(P, &t->operand[0], 'p');
    struct ptx_insn *in = ptx_emit(P, K_PRED);
    in->sub = (uint8_t)sub;
    in->a = a;
    in->b = b;
    in->d = d;
    return true;
}

/* Between a register and a vector of narrower ones. */
static bool select_vector_mov(struct ptx_parse *P, enum ptx_type type)
{
    const struct ptx_text_insn *t = P->insn;
    bool unpack = t->operand[0].kind == RAW_VECTOR;
    const struct ptx_raw *vector = &t->operand[unpack ? 0 : 1], *other = &t->operand[unpack ? 1 : 0];
    unsigned bytes = ptx_type_bytes[type];
    if (type == T_B128 || vector->n < 2 || bytes % vector->n || bytes / vector->n < 2)
        return false;
    const char want = bytes / vector->n == 2 ? 'h' : 'w';
    const struct ptx_vec *v = ptx_vector(P, vector, unpack, want, false);
    struct ptx_operand whole = unpack ? ptx_source(P, other, bytes == 8 ? 'x' : 'w') : ptx_destination(P, other, bytes == 8 ? 'x' : 'w');
    struct ptx_insn *in = emit_exec(P, unpack ? exec_unpack : exec_pack);
    in->a = in->d = whole;
    in->vec = v;
    in->sub = (uint8_t)(bytes / vector->n);
    return true;
}

static bool select_mov(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    enum ptx_type type = t->n_parts == 2 ? ptx_type_of(t->part[1]) : T_NONE;
    if (type == T_PRED)
        return select_predicates(P);
    if (type == T_NONE)
        return false;
    ptx_need_operands(P, 2, 2);
    if (t->operand[0].kind == RAW_VECTOR || t->operand[1].kind == RAW_VECTOR)
        return select_vector_mov(P, type);
    const struct ptx_raw *from = &t->operand[1];
    if (from->kind == RAW_SPECIAL && from->at >= SR_ROWS) {
        bool wide = from->at == SR_CLOCK64 || from->at == SR_GLOBALTIMER;
        struct ptx_operand d = ptx_destination(P, &t->operand[0], wide ? 'x' : 'w');
        struct ptx_insn *in = emit_exec(P, exec_clock);
        in->d = d;
        in->sub = (uint8_t)from->at;
        return true;
    }
    if (from->kind == RAW_SYMBOL && from->symbol->kind == SYM_LOCAL) {
        struct ptx_operand d = ptx_destination(P, &t->operand[0], ptx_width_letter(type));
        struct ptx_insn *in = emit_exec(P, exec_lea_local);
        in->d = d;
        in->imm = from->symbol->at + from->integer;
        return true;
    }
    return select_row(P);
}

/* add.cc, addc{.cc}, sub.cc, subc{.cc}, mad.lo.cc, madc.hi{.cc}, ...: with the carry of the lane */
static bool select_carry(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    const char *base = t->part[0];
    bool with = !strcmp(base, "addc") || !strcmp(base, "subc") || !strcmp(base, "madc"), sets = ptx_part(P, "cc");
    bool mad = !strncmp(base, "mad", 3), hi = mad && ptx_part(P, "hi");
    if (!with && !sets)
        return false;
    if (mad && !hi && !ptx_part(P, "lo"))
        return false;
    enum ptx_type type = ptx_part_type(P);
    if ((type != T_U32 && type != T_S32 && type != T_U64 && type != T_S64) || !ptx_parts_done(P))
        return false;
    char want = ptx_width_letter(type);
    ptx_need_operands(P, mad ? 4 : 3, mad ? 4 : 3);
    struct ptx_operand a = ptx_source(P, &t->operand[1], want), b = ptx_source(P, &t->operand[2], want);
    struct ptx_operand c = mad ? ptx_source(P, &t->operand[3], want) : b;
    struct ptx_operand d = ptx_destination(P, &t->operand[0], want);
    struct ptx_insn *in = emit_exec(P, exec_carry);
    in->a = a;
    in->b = b;
    in->c = c;
    in->d = d;
    in->type = (uint8_t)type;
    in->sub = (uint8_t)((mad ? hi ? 3 : 2 : base[0] == 's') | with << 4 | sets << 5);
    return true;
}

static bool select_bfi(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    enum ptx_type type = ptx_part_type(P);
    if ((type != T_B32 && type != T_B64) || !ptx_parts_done(P))
        return false;
    char want = ptx_width_letter(type);
    ptx_need_operands(P, 5, 5);
    struct ptx_operand a = ptx_source(P, &t->operand[1], want), b = ptx_source(P, &t->operand[2], want);
    struct ptx_operand c = ptx_source(P, &t->operand[3], 'w'), e = ptx_source(P, &t->operand[4], 'w');
    struct ptx_operand d = ptx_destination(P, &t->operand[0], want);
    struct ptx_insn *in = emit_exec(P, exec_bfi);
    in->a = a;
    in->b = b;
    in->c = c;
    in->e = e;
    in->d = d;
    in->type = (uint8_t)type;
    return true;
}

/* ---- where it goes on --------------------------------------------------------------------------------------------------------------------- */

static bool select_flow(struct ptx_parse *P)
{
    const struct ptx_text_insn *t = P->insn;
    const char *base = t->part[0];
    if (!strcmp(base, "bra") || !strcmp(base, "ret"))
        ptx_part(P, "uni");
    if (!strcmp(base, "bra") && ptx_parts_done(P)) {
        ptx_need_operands(P, 1, 1);
        if (!t->operand[0].name)
            return false;
        struct ptx_insn *in = ptx_emit(P, K_BRA);
        ptx_branch_to(P, t->operand[0].name, &in->target);
    } else if (!strcmp(base, "brx") && ptx_part(P, "idx") && ptx_parts_done(P)) {
        ptx_need_operands(P, 2, 2);
        struct ptx_operand a = ptx_source(P, &t->operand[0], 'w');
        struct ptx_insn *in = ptx_emit(P, K_BRX);
        in->a = a;
        in->imm = 0;
        if (!t->operand[1].name)
            return false;
        uint32_t *list = ptx_parse_keep(P, sizeof *list);
        ptx_branch_to(P, t->operand[1].name, list);
        in->targets = list; /* the list's own place, see ptx_exec.c */
    } else if (!strcmp(base, "ret") && ptx_parts_done(P)) {
        ptx_emit(P, K_RET);
    } else if (!strcmp(base, "exit") && ptx_parts_done(P)) {
        ptx_emit(P, K_EXIT);
    } else if ((!strcmp(base, "trap") || !strcmp(base, "brkpt")) && ptx_parts_done(P)) {
        ptx_emit(P, K_TRAP);
    } else {
        return false;
    }
    return true;
}

/* Known, and nothing to be done here: hints about caches and scheduling. */
static bool select_hint(struct ptx_parse *P)
{
    static const char *const hints[] = { "pmevent", "setmaxnreg", "applypriority", "discard", "griddepcontrol" };
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (!strcmp(P->insn->part[0], hints[i])) {
            emit_exec(P, exec_nop);
            return true;
        }
    return false;
}

bool ptx_select(struct ptx_parse *P, const struct ptx_text_insn *t)
{
    const char *base = t->part[0];
    if (t->n_parts == 2 && !strcmp(t->part[1], "pred"))
        return select_predicates(P);
    if (!strcmp(base, "mov"))
        return select_mov(P);
    if (!strcmp(base, "setp"))
        return select_setp(P);
    if (!strcmp(base, "set"))
        return select_set(P);
    if (!strcmp(base, "testp"))
        return select_testp(P);
    if (!strcmp(base, "bfi"))
        return select_bfi(P);
    if (!strcmp(base, "cvt"))
        return ptx_select_cvt(P, t);
    if (select_row(P) || select_flow(P))
        return true;
    if (!strncmp(base, "add", 3) || !strncmp(base, "sub", 3) || !strncmp(base, "mad", 3))
        return select_carry(P);
    return select_hint(P) || ptx_select_memory(P, t) || ptx_select_warp(P, t);
}

/* cvt{.round}{.ftz}{.sat}{.relu}.dtype.atype d, a{, b} */
bool ptx_select_cvt(struct ptx_parse *P, const struct ptx_text_insn *t)
{
    static const struct { const char *word; uint32_t bits; } words[] = {
        { "rni", M_RN | M_RINT }, { "rzi", M_RZ | M_RINT }, { "rmi", M_RM | M_RINT }, { "rpi", M_RP | M_RINT },
        { "rn", M_RN }, { "rz", M_RZ }, { "rm", M_RM }, { "rp", M_RP }, { "rna", M_RNA },
        { "ftz", M_FTZ }, { "sat", M_SAT }, { "relu", M_RELU },
    };
    bool pack = ptx_part(P, "pack");
    uint32_t mods = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (ptx_part(P, words[i].word))
            mods |= words[i].bits;
    enum ptx_type d = ptx_part_type(P), a = ptx_part_type(P), third = ptx_part_type(P);
    if (a == T_NONE || d == T_PRED || a == T_PRED || d == T_B128 || a == T_B128 || !ptx_parts_done(P))
        return false;
    if (pack) {
        bool bytes = ptx_type_bytes[d] == 1;
        if (!(mods & M_SAT) || a != T_S32 || (third != T_NONE && third != T_B32) || (bytes != (third == T_B32)))
            return false;
        ptx_need_operands(P, bytes ? 4 : 3, bytes ? 4 : 3);
        struct ptx_operand x = ptx_source(P, &t->operand[1], 'w'), y = ptx_source(P, &t->operand[2], 'w');
        struct ptx_operand z = bytes ? ptx_source(P, &t->operand[3], 'w') : y, o = ptx_destination(P, &t->operand[0], 'w');
        struct ptx_insn *in = emit_exec(P, exec_cvt_pack);
        in->d = o;
        in->a = x;
        in->b = y;
        in->c = z;
        in->n = bytes ? 3 : 2;
        in->type = (uint8_t)d;
        return true;
    }
    bool to_float = d == T_F16 || d == T_BF16 || d == T_F32 || d == T_F64 || d == T_F16X2 || d == T_BF16X2 || d == T_TF32;
    bool from_float = a == T_F16 || a == T_BF16 || a == T_F32 || a == T_F64;
    bool narrows = to_float && (!from_float || ptx_type_bytes[d] < ptx_type_bytes[a] || d == T_TF32 || d == T_F16X2 || d == T_BF16X2);
    bool needs = narrows || (from_float && !to_float);
    if (third != T_NONE || (needs && !(mods & (M_ROUND | M_RNA))) || (from_float && !to_float && !(mods & M_RINT)) ||
        (!from_float && !to_float && mods & ~(uint32_t)M_SAT) || (mods & M_RNA && d != T_TF32))
        return false;
    bool pair = d == T_F16X2 || d == T_BF16X2;
    if ((pair || d == T_BF16) && a != T_F32)
        return false;
    ptx_need_operands(P, pair ? 3 : 2, pair ? 3 : 2);
    char form[64];
    snprintf(form, sizeof form, "cvt.%s.%s", ptx_type_names[d], ptx_type_names[a]);
    const struct ptx_row *r = ptx_row_of(form);
    uint32_t core = mods & ~(uint32_t)(!from_float || !to_float || narrows ? 0 : M_ROUND);
    if (r && (core & ~(r->mods & 0xffff)) == 0) {
        bool exact = true;
        for (unsigned i = 0; i <= (pair ? 2u : 1u); i++) {
            const struct ptx_raw *o = &t->operand[i];
            unsigned bytes = strchr("heb", r->operands[i]) ? 2 : strchr("wf", r->operands[i]) ? 4 : 8;
            exact &= o->kind != RAW_REGISTER || ptx_type_bytes[o->type] == bytes;
        }
        if (exact) {
            emit_row(P, r, 0);
            return true;
        }
    }
    struct ptx_operand x = ptx_source_any(P, &t->operand[1], from_float ? ptx_width_letter(a) : 'x');
    struct ptx_operand y = pair ? ptx_source_any(P, &t->operand[2], 'f') : x;
    struct ptx_operand o = ptx_destination_any(P, &t->operand[0]);
    unsigned least_d = d == T_TF32 || pair ? 4 : ptx_type_bytes[d];
    if (x.bytes < ptx_type_bytes[a] || o.bytes < least_d || x.bytes == 0 || o.bytes == 0)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: a register is too narrow", t->opcode);
    struct ptx_insn *in = emit_exec(P, pair ? exec_cvt2 : exec_cvt);
    in->d = o;
    in->a = x;
    in->b = y;
    in->type = (uint8_t)d;
    in->type2 = (uint8_t)a;
    in->mods = mods;
    return true;
}
