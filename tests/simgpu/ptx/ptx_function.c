/* Bodies of functions: scopes, labels, instructions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_parse.h"
#include "tests/simgpu/ptx/ptx_warp.h"

/* ---- labels ------------------------------------------------------------------------------------------------------------------ */

static void declare_label(struct ptx_parse *P, const char *name)
{
    for (unsigned i = P->n_labels; i-- && P->labels[i].scope == P->scope;)
        if (!strcmp(P->labels[i].name, name))
            ptx_lex_fail(&P->lex, -EINVAL, "label '%s' stands twice in one block", name);
    PTX_GROW(P, P->labels, P->n_labels, P->room_labels);
    P->labels[P->n_labels++] = (struct ptx_label){ ptx_parse_word(P, name), P->p->n_code, P->scope };
}

void ptx_branch_to(struct ptx_parse *P, const char *label, uint32_t *target)
{
    PTX_GROW(P, P->fixups, P->n_fixups, P->room_fixups);
    P->fixups[P->n_fixups++] = (struct ptx_fixup){ ptx_parse_word(P, label), target, P->scope, P->lex.line };
}

/* At the end of a block: branches to its labels are settled, the others are the outer block's. */
static void settle_labels(struct ptx_parse *P)
{
    unsigned first = P->n_labels, kept = 0;
    while (first && P->labels[first - 1].scope == P->scope)
        first--;
    for (unsigned i = 0; i < P->n_fixups; i++) {
        struct ptx_fixup f = P->fixups[i];
        bool found = false;
        for (unsigned k = first; f.scope == P->scope && k < P->n_labels; k++)
            if (!strcmp(P->labels[k].name, f.name)) {
                *f.target = P->labels[k].at;
                found = true;
            }
        if (found)
            continue;
        if (f.scope == P->scope) {
            if (P->scope == 1) {
                P->lex.line = f.line;
                ptx_lex_fail(&P->lex, -EINVAL, "label '%s' is not defined", f.name);
            }
            f.scope--;
        }
        P->fixups[kept++] = f;
    }
    P->n_fixups = kept;
    P->n_labels = first;
}

/* ---- instructions -------------------------------------------------------------------------------------------------------------- */

/* The code does not move: see begin_code. */
struct ptx_insn *ptx_emit(struct ptx_parse *P, enum ptx_kind kind)
{
    struct ptx_program *p = P->p;
    if (p->n_code == p->room_code)
        ptx_lex_fail(&P->lex, -ENOMEM, "no memory");
    struct ptx_insn *in = &p->code[p->n_code++];
    memset(in, 0, sizeof *in);
    in->kind = (uint8_t)kind;
    in->line = P->lex.line;
    if (P->insn) {
        in->name = P->insn->opcode;
        in->guarded = P->insn->guarded;
        in->guard = P->insn->guard;
        in->guard_not = P->insn->guard_not;
    }
    return in;
}

static void split_opcode(struct ptx_parse *P, struct ptx_text_insn *t, const char *word)
{
    char *copy = (char *)(uintptr_t)ptx_parse_word(P, word);
    t->opcode = ptx_parse_word(P, word);
    t->n_parts = 0;
    for (char *at = copy; at;) {
        if (t->n_parts == MOST_PARTS)
            ptx_lex_fail(&P->lex, -EINVAL, "too many parts: '%s'", word);
        t->part[t->n_parts] = at;
        t->used[t->n_parts++] = false;
        at = strchr(at, '.');
        if (at)
            *at++ = '\0';
    }
    t->used[0] = true;
}

static void read_guard(struct ptx_parse *P, struct ptx_text_insn *t)
{
    struct ptx_raw r;
    t->guard_not = ptx_lex_take(&P->lex, "!");
    if (!ptx_raw_word(P, P->lex.word, &r) || r.kind != RAW_REGISTER || r.type != T_PRED)
        ptx_lex_fail(&P->lex, -EINVAL, "'%s' is no predicate", P->lex.word);
    t->guarded = true;
    t->guard = r.at;
    ptx_lex_next(&P->lex);
}

/* What was not known becomes an instruction that cannot be run; its operands may be of any kind. */
static void emit_unknown(struct ptx_parse *P, const struct ptx_text_insn *t)
{
    struct ptx_function *f = &P->p->functions[P->function];
    ptx_emit(P, K_UNKNOWN);
    if (!f->missing) {
        size_t n = strlen(t->opcode) + 64;
        char *text = ptx_parse_keep(P, n);
        snprintf(text, n, "line %u: %s is not known", P->lex.line, t->opcode);
        f->missing = text;
    }
    while (!(P->lex.token == TOK_PUNCT && P->lex.word[0] == ';')) {
        if (P->lex.token == TOK_END)
            ptx_lex_fail(&P->lex, -EINVAL, "an instruction without an end");
        ptx_lex_next(&P->lex);
    }
}

/* call{.uni} (out, ...), function, (in, ...), prototype; each part but the function may be missing. */
static void read_call(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    enum { MOST_ARGS = 256 };
    struct ptx_arg *args = calloc(MOST_ARGS, sizeof *args);
    unsigned n[2] = { 0, 0 }; /* out, in */
    struct ptx_call head = { .function = UINT32_MAX };
    if (!args)
        ptx_lex_fail(l, -ENOMEM, "no memory");
    for (int part = 0; part < 2; part++) {
        if (part == 1) {
            struct ptx_raw f;
            if (l->token != TOK_WORD) {
                free(args);
                ptx_lex_fail(l, -EINVAL, "a call of '%s'", l->word);
            }
            if (ptx_raw_word(P, l->word, &f) && f.kind == RAW_REGISTER)
                head.target = ptx_source(P, &f, 'x');
            else
                head.function = ptx_function_named(P, l->word, true);
            ptx_lex_next(l);
            if (!ptx_lex_take(l, ","))
                break;
        }
        if (!ptx_lex_take(l, "("))
            continue;
        while (!ptx_lex_take(l, ")")) {
            struct ptx_raw r;
            ptx_raw_operand(P, &r);
            if (n[0] + n[1] == MOST_ARGS) {
                free(args);
                ptx_lex_fail(l, -EINVAL, "more than %d arguments", MOST_ARGS);
            }
            struct ptx_arg *a = &args[n[0] + n[1]];
            n[part]++;
            if (r.kind == RAW_SYMBOL && r.symbol->kind == SYM_LOCAL)
                *a = (struct ptx_arg){ .in_memory = true, .at = r.symbol->at, .bytes = r.symbol->bytes };
            else if (r.kind == RAW_SINK)
                *a = (struct ptx_arg){ .in_memory = false, .o = { .base = B_SINK } };
            else if (part == 0)
                a->o = ptx_destination_any(P, &r);
            else
                a->o = ptx_source_any(P, &r, r.kind == RAW_FLOAT && r.exact == 32 ? 'f' : 'x');
            ptx_lex_take(l, ",");
        }
        if (part == 0 || !ptx_lex_take(l, ","))
            if (part == 0)
                ptx_lex_need(l, ",");
    }
    if (l->token == TOK_WORD) /* the prototype's name */
        ptx_lex_next(l);
    struct ptx_call *c = ptx_parse_keep(P, sizeof *c + (n[0] + n[1]) * sizeof c->arg[0]);
    *c = head;
    c->n_out = n[0];
    c->n_in = n[1];
    memcpy(c->arg, args + n[0], n[1] * sizeof *args);
    memcpy(c->arg + n[1], args, n[0] * sizeof *args);
    free(args);
    ptx_emit(P, K_CALL)->call = c;
    struct ptx_function *f = &P->p->functions[P->function];
    if (c->function == UINT32_MAX) {
        f->unknown_called = true;
        return;
    }
    unsigned *more = realloc(f->calls, (f->n_calls + 1) * sizeof *more);
    if (!more)
        ptx_lex_fail(l, -ENOMEM, "no memory");
    f->calls = more;
    f->calls[f->n_calls++] = c->function;
}

static void read_instruction(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    struct ptx_text_insn t = { .n_parts = 0 };
    if (ptx_lex_take(l, "@"))
        read_guard(P, &t);
    if (l->token != TOK_WORD || l->word[0] == '.')
        ptx_lex_fail(l, -EINVAL, "an instruction expected, there is '%s'", l->word);
    split_opcode(P, &t, l->word);
    uint32_t line = l->line;
    ptx_lex_next(l);
    P->insn = &t;
    if (!strcmp(t.part[0], "call")) {
        read_call(P);
    } else {
        while (!(l->token == TOK_PUNCT && l->word[0] == ';')) {
            if (t.n_operands == MOST_OPERANDS)
                ptx_lex_fail(l, -EINVAL, "%s has too many operands", t.opcode);
            ptx_raw_operand(P, &t.operand[t.n_operands++]);
            if (!ptx_lex_take(l, ","))
                break;
        }
        uint32_t here = l->line;
        l->line = line; /* of what is said about it */
        if (!(l->token == TOK_PUNCT && l->word[0] == ';') || !ptx_select(P, &t))
            emit_unknown(P, &t);
        l->line = here;
    }
    P->insn = NULL;
    ptx_lex_need(l, ";");
}

/* "name: .branchtargets a, b, c;" becomes what brx.idx looks up: an instruction that does nothing and has the targets. */
static void read_targets(struct ptx_parse *P, const char *name)
{
    struct ptx_lex *l = &P->lex;
    enum { MOST_TARGETS = 4096 };
    char (*names)[128] = malloc(MOST_TARGETS * sizeof *names);
    uint32_t n = 0;
    if (!names)
        ptx_lex_fail(l, -ENOMEM, "no memory");
    do {
        if (n < MOST_TARGETS && l->token == TOK_WORD)
            snprintf(names[n++], sizeof *names, "%.127s", l->word);
        ptx_lex_next(l);
    } while (ptx_lex_take(l, ","));
    uint32_t *targets = ptx_parse_keep(P, (n + 1) * sizeof *targets);
    for (uint32_t i = 0; i < n; i++)
        ptx_branch_to(P, names[i], &targets[i]);
    free(names);
    ptx_lex_need(l, ";");
    declare_label(P, name);
    struct ptx_insn *in = ptx_emit(P, K_EXEC);
    in->exec = exec_nop;
    in->targets = targets;
    in->n_targets = n;
    in->name = ".branchtargets";
}

static void read_label(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    char name[PTX_WORD_MOST];
    strcpy(name, l->word);
    ptx_lex_next(l);
    ptx_lex_need(l, ":");
    if (ptx_lex_take(l, ".branchtargets")) {
        read_targets(P, name);
    } else if (!strcmp(l->word, ".callprototype") || !strcmp(l->word, ".calltargets")) {
        while (!ptx_lex_take(l, ";")) {
            if (l->token == TOK_END)
                ptx_lex_fail(l, -EINVAL, "a prototype without an end");
            ptx_lex_next(l);
        }
    } else {
        declare_label(P, name);
    }
}

static bool is_label(struct ptx_parse *P)
{
    const char *at = P->lex.at;
    while (at < P->lex.end && (*at == ' ' || *at == '\t'))
        at++;
    return P->lex.token == TOK_WORD && at < P->lex.end && *at == ':';
}

/* Branches hold pointers into the code: room for as many instructions as the rest of the text can have is made at once. */
static void begin_code(struct ptx_parse *P)
{
    struct ptx_program *p = P->p;
    if (p->code)
        return;
    size_t n = 16;
    for (const char *at = P->lex.at; at < P->lex.end; at++)
        n += *at == ';' || *at == '}';
    p->room_code = n < UINT32_MAX / 2 ? (uint32_t)n : 0;
    p->code = malloc(p->room_code * sizeof *p->code);
    if (!p->code)
        ptx_lex_fail(&P->lex, -ENOMEM, "no memory");
}

void ptx_function_body(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    begin_code(P);
    unsigned marks[64]; /* symbols when a block began */
    P->scope = 0;
    P->n_labels = P->n_fixups = 0;
    do {
        if (l->token == TOK_END) {
            ptx_lex_fail(l, -EINVAL, "'%s' has no end", P->p->functions[P->function].name);
        } else if (ptx_lex_take(l, "{")) {
            if (P->scope == 63)
                ptx_lex_fail(l, -EINVAL, "blocks more than 63 deep");
            marks[++P->scope] = P->n_symbols;
        } else if (l->token == TOK_PUNCT && l->word[0] == '}') {
            if (P->scope == 1) /* whoever comes to the end returns; labels may stand before it */
                ptx_emit(P, K_RET)->name = "the end";
            settle_labels(P);
            P->n_symbols = marks[P->scope--];
            ptx_lex_next(l);
        } else if (P->scope == 0) {
            ptx_lex_fail(l, -EINVAL, "'{' expected, there is '%s'", l->word);
        } else if (is_label(P)) {
            read_label(P);
        } else if (!strcmp(l->word, ".loc") || !strcmp(l->word, ".file")) {
            ptx_lex_skip_line(l);
        } else if (ptx_lex_take(l, ".pragma")) {
            while (!ptx_lex_take(l, ";")) {
                if (l->token == TOK_END)
                    ptx_lex_fail(l, -EINVAL, ".pragma without an end");
                ptx_lex_next(l);
            }
        } else if (!ptx_lex_take(l, ";") && !(l->token == TOK_WORD && l->word[0] == '.' && ptx_declaration(P))) {
            read_instruction(P);
        }
    } while (P->scope);
}
