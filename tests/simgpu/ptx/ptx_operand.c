/* Operands: as they stand in the text, and as rows. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_parse.h"

/* ---- as they stand in the text ------------------------------------------------------------------------------------------------- */

static const struct { const char *name; enum ptx_special special; } specials[] = {
    { "%tid.x", SR_TID_X }, { "%tid.y", SR_TID_Y }, { "%tid.z", SR_TID_Z },
    { "%ntid.x", SR_NTID_X }, { "%ntid.y", SR_NTID_Y }, { "%ntid.z", SR_NTID_Z },
    { "%ctaid.x", SR_CTAID_X }, { "%ctaid.y", SR_CTAID_Y }, { "%ctaid.z", SR_CTAID_Z },
    { "%nctaid.x", SR_NCTAID_X }, { "%nctaid.y", SR_NCTAID_Y }, { "%nctaid.z", SR_NCTAID_Z },
    { "%laneid", SR_LANEID }, { "%warpid", SR_WARPID }, { "%nwarpid", SR_NWARPID }, { "%smid", SR_SMID }, { "%nsmid", SR_NSMID },
    { "%lanemask_eq", SR_LANEMASK_EQ }, { "%lanemask_le", SR_LANEMASK_LE }, { "%lanemask_lt", SR_LANEMASK_LT },
    { "%lanemask_ge", SR_LANEMASK_GE }, { "%lanemask_gt", SR_LANEMASK_GT },
    { "%dynamic_smem_size", SR_DYNAMIC_SMEM }, { "%total_smem_size", SR_TOTAL_SMEM }, { "%gridid", SR_GRIDID },
    { "%clusterid.x", SR_CTAID_X }, { "%clusterid.y", SR_CTAID_Y }, { "%clusterid.z", SR_CTAID_Z },
    { "%nclusterid.x", SR_NCTAID_X }, { "%nclusterid.y", SR_NCTAID_Y }, { "%nclusterid.z", SR_NCTAID_Z },
    { "%cluster_ctaid.x", SR_ZERO32 }, { "%cluster_ctaid.y", SR_ZERO32 }, { "%cluster_ctaid.z", SR_ZERO32 },
    { "%cluster_nctaid.x", SR_ONE32 }, { "%cluster_nctaid.y", SR_ONE32 }, { "%cluster_nctaid.z", SR_ONE32 },
    { "%cluster_ctarank", SR_ZERO32 }, { "%cluster_nctarank", SR_ONE32 },
    { "%clock", SR_CLOCK }, { "%clock_hi", SR_CLOCK_HI }, { "%clock64", SR_CLOCK64 },
    { "%globaltimer", SR_GLOBALTIMER }, { "%globaltimer_lo", SR_GLOBALTIMER_LO }, { "%globaltimer_hi", SR_GLOBALTIMER_HI },
};

static bool is_number_of(const char *word, const struct ptx_symbol *s, uint32_t *out)
{
    size_t n = strlen(s->name);
    if (strncmp(word, s->name, n) || !word[n] || (word[n] == '0' && word[n + 1]))
        return false;
    uint64_t v = 0;
    for (const char *c = word + n; *c; c++) {
        if (*c < '0' || *c > '9' || v >= s->count)
            return false;
        v = v * 10 + (uint64_t)(*c - '0');
    }
    *out = (uint32_t)v;
    return v < s->count;
}

static uint32_t row_of(enum ptx_type t)
{
    return t == T_PRED ? 32 : LANES * (ptx_type_bytes[t] < 2 ? 2u : ptx_type_bytes[t]);
}

bool ptx_raw_word(struct ptx_parse *P, const char *word, struct ptx_raw *out)
{
    *out = (struct ptx_raw){ .kind = RAW_NONE };
    for (unsigned i = P->n_symbols; i--;) {
        const struct ptx_symbol *s = &P->symbols[i];
        uint32_t number = 0;
        if (s->count ? !is_number_of(word, s, &number) : strcmp(word, s->name) != 0)
            continue;
        if (s->kind == SYM_REGISTERS) {
            out->kind = RAW_REGISTER;
            out->type = s->type;
            out->at = s->at + number * row_of(s->type);
        } else {
            out->kind = RAW_SYMBOL;
            out->symbol = s;
        }
        return true;
    }
    if (word[0] == '%')
        for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
            if (!strcmp(word, specials[i].name)) {
                out->kind = RAW_SPECIAL;
                out->at = specials[i].special;
                return true;
            }
    if (!strcmp(word, "_")) {
        out->kind = RAW_SINK;
        return true;
    }
    if (!strcmp(word, "WARP_SZ")) {
        out->kind = RAW_INT;
        out->integer = LANES;
        return true;
    }
    return false;
}

static void read_plain(struct ptx_parse *P, struct ptx_raw *out)
{
    struct ptx_lex *l = &P->lex;
    bool minus = ptx_lex_take(l, "-"), not = !minus && ptx_lex_take(l, "!"), complement = !minus && !not && ptx_lex_take(l, "~");
    if (l->token == TOK_INT) {
        *out = (struct ptx_raw){ .kind = RAW_INT, .integer = complement ? ~l->integer : minus ? 0 - l->integer : l->integer };
        ptx_lex_next(l);
    } else if (l->token == TOK_FLOAT) {
        *out = (struct ptx_raw){ .kind = RAW_FLOAT, .real = minus ? -l->real : l->real, .integer = l->integer, .exact = l->exact };
        if (minus && l->exact)
            out->integer ^= 1ull << (l->exact - 1);
        ptx_lex_next(l);
    } else if (l->token == TOK_WORD && !minus && !complement) {
        if (!ptx_raw_word(P, l->word, out)) {
            if (l->word[0] == '%')
                ptx_lex_fail(l, -EINVAL, "register '%s' is not declared", l->word);
            unsigned f = ptx_function_named(P, l->word, false);
            *out = (struct ptx_raw){ .kind = f != UINT32_MAX ? RAW_FUNCTION : RAW_NAME, .at = f };
        }
        out->name = ptx_parse_word(P, l->word);
        out->negated = not;
        ptx_lex_next(l);
    } else {
        ptx_lex_fail(l, -EINVAL, "an operand expected, there is '%s'", l->word);
    }
}

void ptx_raw_operand(struct ptx_parse *P, struct ptx_raw *out)
{
    struct ptx_lex *l = &P->lex;
    if (ptx_lex_take(l, "[")) {
        struct ptx_raw *inside = ptx_parse_keep(P, sizeof *inside);
        read_plain(P, inside);
        *out = (struct ptx_raw){ .kind = RAW_MEMORY, .part = inside, .n = 1 };
        bool minus = ptx_lex_take(l, "-");
        if (minus || ptx_lex_take(l, "+"))
            out->integer = minus ? 0 - ptx_lex_integer(l) : ptx_lex_integer(l);
        ptx_lex_need(l, "]");
        return;
    }
    if (ptx_lex_take(l, "{")) {
        *out = (struct ptx_raw){ .kind = RAW_VECTOR, .part = ptx_parse_keep(P, PTX_VECTOR * sizeof *out->part) };
        do {
            if (out->n == PTX_VECTOR)
                ptx_lex_fail(l, -EINVAL, "a vector of more than %d", PTX_VECTOR);
            read_plain(P, &out->part[out->n++]);
        } while (ptx_lex_take(l, ","));
        ptx_lex_need(l, "}");
        return;
    }
    read_plain(P, out);
    if (ptx_lex_take(l, "|")) {
        out->part = ptx_parse_keep(P, sizeof *out->part);
        out->n = 1;
        read_plain(P, out->part);
    } else if (out->kind == RAW_SYMBOL && (l->token == TOK_PUNCT && (l->word[0] == '+' || l->word[0] == '-'))) {
        bool minus = ptx_lex_take(l, "-");
        if (!minus)
            ptx_lex_need(l, "+");
        out->integer = minus ? 0 - ptx_lex_integer(l) : ptx_lex_integer(l);
    }
}

/* ---- as rows --------------------------------------------------------------------------------------------------------------------- */

static uint32_t pool_row(struct ptx_parse *P, unsigned bytes)
{
    struct ptx_program *p = P->p;
    unsigned n = bytes ? bytes * LANES : 32;
    if (p->pool_bytes + n > p->pool_room) {
        uint32_t room = p->pool_room ? p->pool_room * 2 : 1 << 14;
        void *more = realloc(p->pool, room);
        if (!more)
            ptx_lex_fail(&P->lex, -ENOMEM, "no memory");
        p->pool = more;
        p->pool_room = room;
    }
    uint32_t at = p->pool_bytes;
    memset(p->pool + at, 0, n);
    p->pool_bytes += n;
    return at;
}

static unsigned slot_of(uint64_t value, unsigned bytes, unsigned room)
{
    return (unsigned)((value * 0x9e3779b97f4a7c15u ^ bytes * 0x85ebca6bu) >> 20) & (room - 1);
}

static void more_constants(struct ptx_parse *P)
{
    unsigned room = P->room_constants ? P->room_constants * 2 : 256;
    struct ptx_pooled *old = P->constants;
    unsigned n = P->room_constants;
    P->constants = calloc(room, sizeof *P->constants);
    if (!P->constants) {
        P->constants = old;
        ptx_lex_fail(&P->lex, -ENOMEM, "no memory");
    }
    P->room_constants = room;
    for (unsigned i = 0; i < n; i++)
        if (old[i].at) {
            unsigned k = slot_of(old[i].value, old[i].bytes, room);
            while (P->constants[k].at)
                k = (k + 1) & (room - 1);
            P->constants[k] = old[i];
        }
    free(old);
}

/* Rows are kept by value; `at` is one more than where they lie, 0 stands for an empty slot. */
struct ptx_operand ptx_constant(struct ptx_parse *P, uint64_t value, unsigned bytes)
{
    if (P->n_constants * 2 >= P->room_constants)
        more_constants(P);
    if (bytes && bytes < 8)
        value &= (1ull << (8 * bytes)) - 1;
    unsigned k = slot_of(value, bytes, P->room_constants);
    for (; P->constants[k].at; k = (k + 1) & (P->room_constants - 1))
        if (P->constants[k].value == value && P->constants[k].bytes == bytes)
            return (struct ptx_operand){ .at = P->constants[k].at - 1, .base = B_POOL, .bytes = (uint8_t)bytes };
    uint32_t at = pool_row(P, bytes);
    for (unsigned i = 0; bytes && i < LANES; i++)
        memcpy(P->p->pool + at + i * bytes, &value, bytes);
    if (!bytes)
        memset(P->p->pool + at, value ? 0xff : 0, 4);
    P->constants[k].value = value;
    P->constants[k].bytes = bytes;
    P->constants[k].at = at + 1;
    P->n_constants++;
    return (struct ptx_operand){ .at = at, .base = B_POOL, .bytes = (uint8_t)bytes };
}

struct ptx_operand ptx_address_row(struct ptx_parse *P, const struct ptx_symbol *s, int64_t plus, unsigned bytes)
{
    struct ptx_program *p = P->p;
    struct ptx_operand o = { .base = B_POOL, .bytes = (uint8_t)bytes };
    if (s->kind == SYM_PARAM)
        return ptx_constant(P, s->at + (uint64_t)plus, bytes);
    if (s->kind == SYM_LOCAL)
        ptx_lex_fail(&P->lex, -EINVAL, "the address of '%s' can be taken by mov alone", s->name);
    o.at = pool_row(P, bytes);
    if (s->kind == SYM_SHARED) {
        struct ptx_shared *shared = &p->shared[s->at];
        unsigned user = p->functions[P->function].is_kernel ? P->function : (unsigned)USERS_MANY;
        shared->user = shared->user == (unsigned)USER_NONE || shared->user == user ? user : (unsigned)USERS_MANY;
        PTX_GROW(P, P->places, P->n_places, P->room_places);
        P->places[P->n_places++] = (struct ptx_place){ o.at, bytes, s->at, plus };
    } else {
        PTX_GROW(P, p->relocs, p->n_relocs, p->room_relocs);
        p->relocs[p->n_relocs++] = (struct ptx_reloc){ o.at, s->at, bytes, plus };
    }
    return o;
}

static unsigned bytes_of(char want)
{
    switch (want) {
    case 'h': case 'e': case 'b': return 2;
    case 'w': case 'f': return 4;
    case 'x': case 'F': return 8;
    default: return 0;
    }
}

char ptx_width_letter(enum ptx_type t)
{
    if (t == T_F32)
        return 'f';
    if (t == T_F64)
        return 'F';
    if (t == T_PRED)
        return 'p';
    switch (ptx_type_bytes[t]) {
    case 8: return 'x';
    case 4: return 'w';
    default: return 'h';
    }
}

static uint64_t number(struct ptx_parse *P, const struct ptx_raw *raw, char want)
{
    if (raw->kind == RAW_INT) {
        if (want == 'f' || want == 'F' || want == 'e' || want == 'b')
            ptx_lex_fail(&P->lex, -EINVAL, "%s: a whole number where a floating-point one is wanted", P->insn->opcode);
        return raw->integer;
    }
    uint64_t bits;
    if (bytes_of(want) == 8) {
        if (raw->exact == 64 || (raw->exact == 32 && want == 'x'))
            return raw->integer;
        memcpy(&bits, &raw->real, 8);
        return bits;
    }
    if (bytes_of(want) == 4) {
        if (raw->exact == 32)
            return raw->integer;
        float f = (float)raw->real;
        uint32_t u;
        memcpy(&u, &f, 4);
        return u;
    }
    ptx_lex_fail(&P->lex, -EINVAL, "%s: a floating-point number for %u bytes", P->insn->opcode, bytes_of(want));
}

static unsigned lane_bytes(enum ptx_type t) { return t == T_PRED ? 0 : ptx_type_bytes[t] < 2 ? 2 : ptx_type_bytes[t]; }

static struct ptx_operand source(struct ptx_parse *P, const struct ptx_raw *raw, char want, bool any)
{
    const char *opcode = P->insn ? P->insn->opcode : "call";
    unsigned bytes = bytes_of(want);
    switch (raw->kind) {
    case RAW_REGISTER:
        if ((raw->type == T_PRED) != (want == 'p') || (!any && lane_bytes(raw->type) != bytes))
            ptx_lex_fail(&P->lex, -EINVAL, "%s: '%s' is a .%s register", opcode, raw->name, ptx_type_names[raw->type]);
        return (struct ptx_operand){ .at = raw->at, .bytes = (uint8_t)lane_bytes(raw->type), .negated = raw->negated };
    case RAW_SPECIAL: {
        bool wide = raw->at >= SR_ROWS32;
        if (raw->at >= SR_ROWS || want == 'p' || (!any && bytes != (wide ? 8u : 4u)))
            ptx_lex_fail(&P->lex, -EINVAL, "%s: '%s' cannot be read so", opcode, raw->name);
        return (struct ptx_operand){ .at = wide ? SR_ROWS32 * 128 + (raw->at - SR_ROWS32) * 256 : raw->at * 128, .base = B_SPECIAL,
                                     .bytes = wide ? 8 : 4 };
    }
    case RAW_INT:
    case RAW_FLOAT: return ptx_constant(P, number(P, raw, want), bytes);
    case RAW_SYMBOL: return ptx_address_row(P, raw->symbol, (int64_t)raw->integer, bytes);
    case RAW_FUNCTION: return ptx_constant(P, 0x0400000000000000u + raw->at, bytes);
    default: ptx_lex_fail(&P->lex, -EINVAL, "%s: '%s' is not declared", opcode, raw->name ? raw->name : "a vector");
    }
}

struct ptx_operand ptx_source(struct ptx_parse *P, const struct ptx_raw *raw, char want) { return source(P, raw, want, false); }
struct ptx_operand ptx_source_any(struct ptx_parse *P, const struct ptx_raw *raw, char want) { return source(P, raw, want, true); }

struct ptx_operand ptx_destination(struct ptx_parse *P, const struct ptx_raw *raw, char want)
{
    if (raw->kind == RAW_SINK)
        return (struct ptx_operand){ .base = B_SINK, .bytes = (uint8_t)bytes_of(want) };
    if (raw->kind != RAW_REGISTER || raw->negated)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: a register is wanted for the result", P->insn->opcode);
    return source(P, raw, want, false);
}

struct ptx_operand ptx_destination_any(struct ptx_parse *P, const struct ptx_raw *raw)
{
    if (raw->kind == RAW_SINK)
        return (struct ptx_operand){ .base = B_SINK, .bytes = 8 };
    if (raw->kind != RAW_REGISTER || raw->negated)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: a register is wanted for the result", P->insn ? P->insn->opcode : "call");
    return source(P, raw, raw->type == T_PRED ? 'p' : 'x', true);
}

const struct ptx_vec *ptx_vector(struct ptx_parse *P, const struct ptx_raw *raw, bool destination, char want, bool any)
{
    struct ptx_vec *v = ptx_parse_keep(P, sizeof *v);
    const struct ptx_raw *part = raw->kind == RAW_VECTOR ? raw->part : raw;
    v->n = raw->kind == RAW_VECTOR ? raw->n : 1;
    for (unsigned i = 0; i < v->n; i++)
        v->o[i] = destination ? any ? ptx_destination_any(P, &part[i]) : ptx_destination(P, &part[i], want) : source(P, &part[i], want, any);
    return v;
}

void ptx_address(struct ptx_parse *P, const struct ptx_raw *raw, struct ptx_mem *out)
{
    if (raw->kind != RAW_MEMORY)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: an address in brackets is wanted", P->insn->opcode);
    const struct ptx_raw *in = raw->part;
    out->plus = (int64_t)raw->integer;
    if (in->kind == RAW_SYMBOL && in->symbol->kind == SYM_LOCAL) {
        out->frame = true;
        out->address = ptx_constant(P, in->symbol->at, 8);
        if (out->space != S_LOCAL && out->space != S_PARAM)
            ptx_lex_fail(&P->lex, -EINVAL, "%s: '%s' is not there", P->insn->opcode, in->symbol->name);
        out->space = S_LOCAL;
        return;
    }
    if (in->kind == RAW_SYMBOL) {
        enum ptx_symbol_kind k = in->symbol->kind;
        bool fits = k == SYM_SHARED ? out->space == S_SHARED : k == SYM_PARAM ? out->space == S_PARAM
                                                             : out->space == S_GLOBAL || out->space == S_CONST || out->space == S_GENERIC;
        if (!fits)
            ptx_lex_fail(&P->lex, -EINVAL, "%s: '%s' is not there", P->insn->opcode, in->symbol->name);
    }
    out->address = ptx_source_any(P, in, 'x');
    if (out->address.bytes < 4)
        ptx_lex_fail(&P->lex, -EINVAL, "%s: an address of %u bits", P->insn->opcode, out->address.bytes * 8u);
}
