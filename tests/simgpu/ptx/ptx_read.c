/*
 * The module: directives, variables with their initial values, heads of functions. Then the linking: which kernel uses which shared memory,
 * how deep calls go, what a thread costs.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/ptx/ptx_link.h"
#include "tests/simgpu/ptx/ptx_parse.h"

const char *const ptx_type_names[T_TYPES] = { "", "pred", "b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16", "b32", "u32", "s32", "f32",
                                              "f16x2", "bf16x2", "tf32", "b64", "u64", "s64", "f64", "b128" };
const uint8_t ptx_type_bytes[T_TYPES] = { 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 16 };

/* ---- memory --------------------------------------------------------------------------------------------------------------- */

struct piece { struct piece *next; _Alignas(16) unsigned char bytes[]; };

void *ptx_keep(struct ptx_program *p, size_t n)
{
    struct piece *piece = calloc(1, sizeof *piece + n);
    if (!piece)
        return NULL;
    piece->next = p->memory;
    p->memory = piece;
    return piece->bytes;
}

void *ptx_parse_keep(struct ptx_parse *P, size_t n)
{
    void *at = ptx_keep(P->p, n);
    if (!at)
        ptx_lex_fail(&P->lex, -ENOMEM, "no memory");
    return at;
}

const char *ptx_parse_word(struct ptx_parse *P, const char *word)
{
    size_t n = strlen(word) + 1;
    return memcpy(ptx_parse_keep(P, n), word, n);
}

void *ptx_grow(struct ptx_parse *P, void *array, unsigned n, unsigned *room, size_t each)
{
    if (n < *room)
        return array;
    unsigned more = *room ? *room * 2 : 16;
    void *at = realloc(array, more * each);
    if (!at)
        ptx_lex_fail(&P->lex, -ENOMEM, "no memory");
    *room = more;
    return at;
}

void ptx_free(struct ptx_program *p)
{
    if (!p)
        return;
    for (struct piece *next, *piece = p->memory; piece; piece = next) {
        next = piece->next;
        free(piece);
    }
    for (unsigned i = 0; p->inside && i < p->n_variables; i++)
        free(p->inside[i].relocs);
    for (unsigned i = 0; i < p->n_functions; i++)
        free(p->functions[i].calls);
    free(p->code);
    free(p->pool);
    free(p->relocs);
    free(p->functions);
    free(p->kernels);
    free(p->variables);
    free(p->inside);
    free(p->shared);
    free(p);
}

/* ---- declarations ----------------------------------------------------------------------------------------------------------- */

enum ptx_type ptx_type_of(const char *word)
{
    if (*word == '.')
        word++;
    for (int i = T_PRED; i < T_TYPES; i++)
        if (!strcmp(word, ptx_type_names[i]))
            return (enum ptx_type)i;
    return T_NONE;
}

struct ptx_symbol *ptx_declare(struct ptx_parse *P, const char *name, enum ptx_symbol_kind kind, uint32_t at)
{
    PTX_GROW(P, P->symbols, P->n_symbols, P->room_symbols);
    struct ptx_symbol *s = &P->symbols[P->n_symbols++];
    *s = (struct ptx_symbol){ .name = ptx_parse_word(P, name), .kind = kind, .at = at };
    return s;
}

static uint32_t row_bytes(enum ptx_type t)
{
    unsigned lane = t == T_PRED ? 0 : ptx_type_bytes[t] < 2 ? 2 : ptx_type_bytes[t];
    return lane ? lane * LANES : 32;
}

static void read_registers(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    struct ptx_function *f = &P->p->functions[P->function];
    enum ptx_type t = ptx_type_of(l->word);
    if (t == T_NONE || t == T_B128 || l->token != TOK_WORD)
        ptx_lex_fail(l, -EINVAL, "registers of type '%s' are not known", l->word);
    ptx_lex_next(l);
    do {
        if (l->token != TOK_WORD)
            ptx_lex_fail(l, -EINVAL, "a register's name expected, there is '%s'", l->word);
        struct ptx_symbol *s = ptx_declare(P, l->word, SYM_REGISTERS, f->frame_bytes);
        s->type = t;
        ptx_lex_next(l);
        if (ptx_lex_take(l, "<")) {
            uint64_t n = ptx_lex_integer(l);
            ptx_lex_need(l, ">");
            if (n == 0 || n > 1 << 20)
                ptx_lex_fail(l, -EINVAL, "%llu registers", (unsigned long long)n);
            s->count = (uint32_t)n;
        }
        f->frame_bytes += row_bytes(t) * (s->count ? s->count : 1);
    } while (ptx_lex_take(l, ","));
    ptx_lex_need(l, ";");
}

static int variable_named(const struct ptx_program *p, const char *name)
{
    for (unsigned i = 0; i < p->n_variables; i++)
        if (!strcmp(p->variables[i].name, name))
            return (int)i;
    return -1;
}

static void put(unsigned char *at, uint64_t v, unsigned bytes) { memcpy(at, &v, bytes); }

static uint64_t float_bits(double real, uint64_t exact, unsigned exact_bits, unsigned bytes)
{
    uint64_t v = exact;
    if (bytes == 4 && exact_bits != 32) {
        float f = (float)real;
        uint32_t u;
        memcpy(&u, &f, 4);
        v = u;
    } else if (bytes == 8 && exact_bits != 64) {
        memcpy(&v, &real, 8);
    }
    return v;
}

/* One element of an initial value: a number, or an address: `name`, `generic(name)`, either with a number added. */
static void read_element(struct ptx_parse *P, unsigned variable, uint64_t at, enum ptx_type t)
{
    struct ptx_lex *l = &P->lex;
    struct variable_inside *v = &P->p->inside[variable];
    unsigned bytes = ptx_type_bytes[t];
    if (at + bytes > P->p->variables[variable].bytes)
        ptx_lex_fail(l, -EINVAL, "more initial values than '%s' has room for", P->p->variables[variable].name);
    bool minus = ptx_lex_take(l, "-");
    if (l->token == TOK_INT) {
        put(v->init + at, minus ? 0 - l->integer : l->integer, bytes);
        ptx_lex_next(l);
    } else if (l->token == TOK_FLOAT) {
        uint64_t bits = float_bits(minus ? -l->real : l->real, l->integer, minus ? 0 : l->exact, bytes);
        put(v->init + at, bits, bytes);
        ptx_lex_next(l);
    } else if (l->token == TOK_WORD && bytes == 8) {
        bool generic = ptx_lex_take(l, "generic");
        if (generic)
            ptx_lex_need(l, "(");
        int other = variable_named(P->p, l->word);
        if (other < 0)
            ptx_lex_fail(l, -EINVAL, "'%s', an initial value, is no variable declared before", l->word);
        ptx_lex_next(l);
        if (generic)
            ptx_lex_need(l, ")");
        int64_t plus = ptx_lex_take(l, "+") ? (int64_t)ptx_lex_integer(l) : 0;
        PTX_GROW(P, v->relocs, v->n_relocs, v->room);
        v->relocs[v->n_relocs++] = (struct ptx_reloc){ .at = at, .variable = (uint32_t)other, .bytes = 8, .plus = plus };
    } else {
        ptx_lex_fail(l, -EINVAL, "no initial value: '%s'", l->word);
    }
}

static uint64_t read_elements(struct ptx_parse *P, unsigned variable, uint64_t at, enum ptx_type t)
{
    if (!ptx_lex_take(&P->lex, "{")) {
        read_element(P, variable, at, t);
        return at + ptx_type_bytes[t];
    }
    if (ptx_lex_take(&P->lex, "}"))
        return at;
    do
        at = read_elements(P, variable, at, t);
    while (ptx_lex_take(&P->lex, ","));
    ptx_lex_need(&P->lex, "}");
    return at;
}

struct shape { enum ptx_type type; uint64_t align, bytes; bool open; };

/* ".align 8", ".attribute(...)", ".ptr .global .align 4", ".v4", a type: in any order that the grammar allows. */
static void read_kind(struct ptx_parse *P, struct shape *s)
{
    struct ptx_lex *l = &P->lex;
    unsigned vector = 1;
    *s = (struct shape){ .type = T_NONE };
    while (l->token == TOK_WORD && l->word[0] == '.') {
        if (ptx_lex_take(l, ".align")) {
            uint64_t align = ptx_lex_integer(l);
            if (align == 0 || (align & (align - 1)) || align > 4096)
                ptx_lex_fail(l, -EINVAL, "an alignment of %llu", (unsigned long long)align);
            if (s->align == 0)
                s->align = align;
        } else if (ptx_lex_take(l, ".attribute")) {
            while (!ptx_lex_take(l, ")")) {
                if (l->token == TOK_END)
                    ptx_lex_fail(l, -EINVAL, "attributes without an end");
                ptx_lex_next(l);
            }
        } else if (ptx_lex_take(l, ".ptr")) {
            uint64_t had = s->align ? s->align : UINT64_MAX; /* the pointed-to object's alignment is not the parameter's */
            while (l->token == TOK_WORD && l->word[0] == '.') {
                if (ptx_lex_take(l, ".align"))
                    ptx_lex_integer(l);
                else
                    ptx_lex_next(l);
            }
            s->align = had == UINT64_MAX ? 0 : had;
        } else if (!strcmp(l->word, ".v2") || !strcmp(l->word, ".v4")) {
            vector = (unsigned)(l->word[2] - '0');
            ptx_lex_next(l);
        } else if (ptx_type_of(l->word) != T_NONE) {
            s->type = ptx_type_of(l->word);
            ptx_lex_next(l);
        } else {
            ptx_lex_fail(l, -EINVAL, "'%s' is not known in a declaration", l->word);
        }
    }
    if (s->type == T_NONE || s->type == T_PRED)
        ptx_lex_fail(l, -EINVAL, "a declaration without a type, before '%s'", l->word);
    s->bytes = (uint64_t)ptx_type_bytes[s->type] * vector;
    if (!s->align)
        s->align = s->bytes;
}

static void read_dimensions(struct ptx_parse *P, struct shape *s)
{
    while (ptx_lex_take(&P->lex, "[")) {
        if (ptx_lex_take(&P->lex, "]")) {
            s->open = true;
            continue;
        }
        uint64_t n = ptx_lex_integer(&P->lex);
        if (n && s->bytes > (1ull << 40) / n)
            ptx_lex_fail(&P->lex, -EINVAL, "an array that is too large");
        s->bytes *= n;
        ptx_lex_need(&P->lex, "]");
    }
}

uint32_t ptx_local_place(struct ptx_function *f, uint64_t bytes, uint64_t align)
{
    uint64_t at = (f->local_bytes + align - 1) / align * align;
    f->local_bytes = (uint32_t)(at + bytes);
    return (uint32_t)at;
}

static void count_open_array(struct ptx_parse *P, struct shape *s)
{
    /* int x[] = {1, 2, 3}: the elements are counted first */
    struct ptx_lex saved = P->lex;
    uint64_t n = 1;
    unsigned depth = 0;
    for (; P->lex.token != TOK_END && !(P->lex.token == TOK_PUNCT && P->lex.word[0] == ';'); ptx_lex_next(&P->lex)) {
        if (P->lex.token != TOK_PUNCT)
            continue;
        depth += P->lex.word[0] == '{' ? 1u : P->lex.word[0] == '}' ? -1u : 0u;
        n += P->lex.word[0] == ',' && depth;
    }
    P->lex = saved;
    s->bytes *= n;
}

static void declare_variable(struct ptx_parse *P, const char *name, struct shape *s, bool is_const, bool external)
{
    struct ptx_program *p = P->p;
    struct ptx_lex *l = &P->lex;
    bool has_value = l->token == TOK_PUNCT && l->word[0] == '=';
    if (s->open && has_value)
        count_open_array(P, s);
    int i = P->scope ? -1 : variable_named(p, name); /* declared before, as external or not */
    if (i < 0) {
        unsigned room = p->room_variables;
        PTX_GROW(P, p->variables, p->n_variables, p->room_variables);
        PTX_GROW(P, p->inside, p->n_variables, room);
        i = (int)p->n_variables;
        p->inside[i] = (struct variable_inside){ 0 };
        p->variables[i] = (struct ptx_variable){ .name = ptx_parse_word(P, name), .external = true };
        p->n_variables++;
    }
    struct ptx_variable *v = &p->variables[i];
    v->bytes = s->bytes;
    v->align = s->align;
    v->external = v->external && external;
    struct ptx_symbol *symbol = ptx_declare(P, name, SYM_VARIABLE, (uint32_t)i);
    symbol->is_const = is_const;
    if (ptx_lex_take(l, "=")) {
        p->inside[i].init = ptx_parse_keep(P, v->bytes + 1);
        v->init = p->inside[i].init;
        read_elements(P, (unsigned)i, 0, s->type);
    }
}

static void declare_shared(struct ptx_parse *P, const char *name, const struct shape *s, bool external)
{
    struct ptx_program *p = P->p;
    PTX_GROW(P, p->shared, p->n_shared, p->room_shared);
    p->shared[p->n_shared] = (struct ptx_shared){ .bytes = s->bytes, .align = s->align, .dynamic = external || s->open,
                                                  .user = (unsigned)USER_NONE };
    ptx_declare(P, name, SYM_SHARED, p->n_shared++);
}

static void read_variables(struct ptx_parse *P, enum ptx_space space, bool external)
{
    struct ptx_lex *l = &P->lex;
    struct shape kind;
    read_kind(P, &kind);
    do {
        struct shape s = kind;
        char name[PTX_WORD_MOST];
        if (l->token != TOK_WORD)
            ptx_lex_fail(l, -EINVAL, "a variable's name expected, there is '%s'", l->word);
        strcpy(name, l->word);
        ptx_lex_next(l);
        uint64_t many = 0;
        if (ptx_lex_take(l, "<")) { /* name0 to name(n-1) */
            many = ptx_lex_integer(l);
            ptx_lex_need(l, ">");
        }
        read_dimensions(P, &s);
        if (many)
            ptx_lex_fail(l, -ENOTSUP, "variables declared by number ('%s<..>') are not known", name);
        switch (space) {
        case S_GLOBAL:
        case S_CONST: declare_variable(P, name, &s, space == S_CONST, external); break;
        case S_SHARED: declare_shared(P, name, &s, external); break;
        default: {
            if (!P->scope)
                ptx_lex_fail(l, -EINVAL, "'%s' can be declared in a function alone", name);
            struct ptx_function *f = &P->p->functions[P->function];
            ptx_declare(P, name, SYM_LOCAL, ptx_local_place(f, s.bytes, s.align))->bytes = (uint32_t)s.bytes;
        }
        }
    } while (ptx_lex_take(l, ","));
    ptx_lex_need(l, ";");
}

bool ptx_declaration(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    bool external = false;
    for (;;) {
        if (ptx_lex_take(l, ".extern"))
            external = true;
        else if (!ptx_lex_take(l, ".visible") && !ptx_lex_take(l, ".weak") && !ptx_lex_take(l, ".common"))
            break;
    }
    if (P->scope && ptx_lex_take(l, ".reg"))
        read_registers(P);
    else if (ptx_lex_take(l, ".global"))
        read_variables(P, S_GLOBAL, external);
    else if (ptx_lex_take(l, ".const"))
        read_variables(P, S_CONST, external);
    else if (ptx_lex_take(l, ".shared") || ptx_lex_take(l, ".shared::cta"))
        read_variables(P, S_SHARED, external);
    else if (ptx_lex_take(l, ".local"))
        read_variables(P, S_LOCAL, external);
    else if (P->scope && ptx_lex_take(l, ".param"))
        read_variables(P, S_PARAM, external);
    else
        return false;
    return true;
}

/* ---- functions --------------------------------------------------------------------------------------------------------------- */

unsigned ptx_function_named(struct ptx_parse *P, const char *name, bool make)
{
    struct ptx_program *p = P->p;
    for (unsigned i = 0; i < p->n_functions; i++)
        if (!strcmp(p->functions[i].name, name))
            return i;
    if (!make)
        return UINT32_MAX;
    PTX_GROW(P, p->functions, p->n_functions, p->room_functions);
    p->functions[p->n_functions] = (struct ptx_function){ .name = ptx_parse_word(P, name), .frame_bytes = FRAME_FIRST };
    return p->n_functions++;
}

enum { MOST_PARAMS = 4096 };

/* "(...)" of a function: its formal parameters, which become symbols. */
static unsigned read_formals(struct ptx_parse *P, struct ptx_formal *out)
{
    struct ptx_lex *l = &P->lex;
    struct ptx_function *f = &P->p->functions[P->function];
    unsigned n = 0;
    ptx_lex_need(l, "(");
    if (ptx_lex_take(l, ")"))
        return 0;
    do {
        if (n == MOST_PARAMS)
            ptx_lex_fail(l, -EINVAL, "more than %d parameters", MOST_PARAMS);
        if (ptx_lex_take(l, ".reg")) {
            enum ptx_type t = ptx_type_of(l->word);
            if (t == T_NONE || t == T_B128)
                ptx_lex_fail(l, -EINVAL, "a parameter of type '%s'", l->word);
            ptx_lex_next(l);
            ptx_declare(P, l->word, SYM_REGISTERS, f->frame_bytes)->type = t;
            out[n] = (struct ptx_formal){ .at = f->frame_bytes, .bytes = t == T_PRED ? 0 : row_bytes(t) / LANES };
            f->frame_bytes += row_bytes(t);
            ptx_lex_next(l);
        } else {
            struct shape s;
            char name[PTX_WORD_MOST];
            ptx_lex_need(l, ".param");
            read_kind(P, &s);
            strcpy(name, l->word);
            if (l->token != TOK_WORD)
                ptx_lex_fail(l, -EINVAL, "a parameter's name expected, there is '%s'", l->word);
            ptx_lex_next(l);
            read_dimensions(P, &s);
            uint32_t at;
            if (f->is_kernel) {
                struct ptx_kernel *k = &P->p->kernels[f->kernel];
                at = (uint32_t)((k->param_bytes + s.align - 1) / s.align * s.align);
                k->param_bytes = at + (uint32_t)s.bytes;
                if (k->param_bytes > 32764)
                    ptx_lex_fail(l, -EINVAL, "more than 32764 bytes of parameters");
                ptx_declare(P, name, SYM_PARAM, at)->bytes = (uint32_t)s.bytes;
            } else {
                at = ptx_local_place(f, s.bytes, s.align);
                ptx_declare(P, name, SYM_LOCAL, at)->bytes = (uint32_t)s.bytes;
            }
            out[n] = (struct ptx_formal){ .in_memory = true, .at = at, .bytes = (uint32_t)s.bytes };
        }
        n++;
    } while (ptx_lex_take(l, ","));
    ptx_lex_need(l, ")");
    return n;
}

static void read_bound(struct ptx_parse *P, uint32_t *out)
{
    uint32_t v[3] = { 1, 1, 1 };
    unsigned n = 0;
    do
        v[n++] = (uint32_t)ptx_lex_integer(&P->lex);
    while (n < 3 && ptx_lex_take(&P->lex, ","));
    memcpy(out, v, sizeof v);
}

static void read_tuning(struct ptx_parse *P, struct ptx_kernel *k)
{
    struct ptx_lex *l = &P->lex;
    uint32_t v[3];
    while (l->token == TOK_WORD && l->word[0] == '.') {
        if (ptx_lex_take(l, ".maxntid")) {
            read_bound(P, v);
            if (k)
                k->max_threads = v[0] * v[1] * v[2];
        } else if (ptx_lex_take(l, ".reqntid")) {
            read_bound(P, v);
            if (k) {
                memcpy(k->reqntid, v, sizeof v);
                k->max_threads = v[0] * v[1] * v[2];
            }
        } else if (ptx_lex_take(l, ".minnctapersm") || ptx_lex_take(l, ".maxnctapersm") || ptx_lex_take(l, ".maxnreg") ||
                   ptx_lex_take(l, ".abi_preserve") || ptx_lex_take(l, ".abi_preserve_control")) {
            ptx_lex_integer(l);
        } else if (ptx_lex_take(l, ".pragma")) {
            while (!ptx_lex_take(l, ";")) {
                if (l->token == TOK_END)
                    ptx_lex_fail(l, -EINVAL, ".pragma without an end");
                ptx_lex_next(l);
            }
        } else if (!ptx_lex_take(l, ".noreturn")) {
            ptx_lex_fail(l, -ENOTSUP, "'%s' is not known at a function's head", l->word);
        }
    }
}

static void read_function(struct ptx_parse *P, bool is_kernel)
{
    struct ptx_lex *l = &P->lex;
    struct ptx_program *p = P->p;
    unsigned symbols = P->n_symbols;
    if (!P->formals && !(P->formals = calloc(2 * MOST_PARAMS, sizeof *P->formals)))
        ptx_lex_fail(l, -ENOMEM, "no memory");
    struct ptx_formal *const scratch = P->formals;
    /* what comes back stands before the name: its symbols belong to the function that is named afterwards */
    struct ptx_lex before = *l;
    if (!is_kernel && l->token == TOK_PUNCT && l->word[0] == '(')
        while (!ptx_lex_take(l, ")")) {
            if (l->token == TOK_END)
                ptx_lex_fail(l, -EINVAL, "parameters without an end");
            ptx_lex_next(l);
        }
    if (l->token != TOK_WORD)
        ptx_lex_fail(l, -EINVAL, "a function's name expected, there is '%s'", l->word);
    P->function = ptx_function_named(P, l->word, true);
    struct ptx_function *f = &p->functions[P->function];
    if (f->has_body)
        ptx_lex_fail(l, -EINVAL, "'%s' is defined twice", l->word);
    struct ptx_lex behind = *l;
    f->frame_bytes = FRAME_FIRST;
    f->local_bytes = 0;
    f->is_kernel = is_kernel;
    struct ptx_kernel *k = NULL;
    if (is_kernel) {
        PTX_GROW(P, p->kernels, p->n_kernels, p->room_kernels);
        f->kernel = p->n_kernels++;
        k = &p->kernels[f->kernel];
        *k = (struct ptx_kernel){ .name = f->name, .max_threads = PTX_MAX_THREADS };
    }
    unsigned n_out = 0;
    if (!is_kernel && before.token == TOK_PUNCT && before.word[0] == '(') {
        *l = before;
        n_out = read_formals(P, scratch);
        *l = behind;
    }
    ptx_lex_next(l);
    unsigned n_in = l->token == TOK_PUNCT && l->word[0] == '(' ? read_formals(P, scratch + n_out) : 0;
    f = &p->functions[P->function];
    f->n_formal_out = n_out;
    f->n_formal_in = n_in;
    f->formal = ptx_parse_keep(P, (n_in + n_out + 1) * sizeof *f->formal);
    memcpy(f->formal, scratch, (n_in + n_out) * sizeof *f->formal);
    if (k) {
        uint32_t *place = ptx_parse_keep(P, 2 * (n_in + 1) * sizeof *place);
        for (unsigned i = 0; i < n_in; i++) {
            place[i] = scratch[i].at;
            place[n_in + i] = scratch[i].bytes;
        }
        k->offset = place;
        k->bytes = place + n_in;
        k->n_params = n_in;
    }
    read_tuning(P, k);
    if (ptx_lex_take(l, ";")) {
        if (is_kernel)
            p->n_kernels--;
        P->n_symbols = symbols;
        return;
    }
    f->has_body = true;
    f->first = p->n_code;
    ptx_function_body(P);
    p->functions[P->function].n = p->n_code - p->functions[P->function].first;
    P->n_symbols = symbols;
}

/* ---- the module ---------------------------------------------------------------------------------------------------------------- */

static void read_version(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    unsigned major = 0, minor = 0;
    int used = 0;
    char text[16] = "";
    while (l->at < l->end && isblank((unsigned char)*l->at))
        l->at++;
    memcpy(text, l->at, (size_t)(l->end - l->at) < 15 ? (size_t)(l->end - l->at) : 15);
    if (sscanf(text, "%u.%u%n", &major, &minor, &used) != 2)
        ptx_lex_fail(l, -EINVAL, "no version: '%.8s'", text);
    if (10 * major + minor > PTX_ISA_MOST)
        ptx_lex_fail(l, -ENOTSUP, "version %u.%u of PTX: newer than %u.%u, this device's", major, minor, PTX_ISA_MOST / 10, PTX_ISA_MOST % 10);
    l->at += used;
    ptx_lex_next(l);
}

static void read_target(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    do {
        unsigned arch;
        int n = 0;
        if (sscanf(l->word, "sm_%u%n", &arch, &n) == 1) {
            if (arch > PTX_ARCH || l->word[n])
                ptx_lex_fail(l, -ENOTSUP, "the text is for %s, this device is sm_%d", l->word, PTX_ARCH);
        } else if (strcmp(l->word, "texmode_independent") && strcmp(l->word, "texmode_unified") && strcmp(l->word, "debug") &&
                   strcmp(l->word, "map_f64_to_f32")) {
            ptx_lex_fail(l, -ENOTSUP, "target '%s' is not known", l->word);
        }
        ptx_lex_next(l);
    } while (ptx_lex_take(l, ","));
}

static void read_module(struct ptx_parse *P)
{
    struct ptx_lex *l = &P->lex;
    bool target = false;
    ptx_lex_next(l);
    if (strcmp(l->word, ".version"))
        ptx_lex_fail(l, -EINVAL, ".version expected, there is '%s'", l->word);
    while (l->token != TOK_END) {
        if (l->token == TOK_WORD && !strcmp(l->word, ".version")) {
            read_version(P);
        } else if (ptx_lex_take(l, ".target")) {
            read_target(P);
            target = true;
        } else if (ptx_lex_take(l, ".address_size")) {
            if (ptx_lex_integer(l) != 64)
                ptx_lex_fail(l, -ENOTSUP, "addresses of 64 bits alone are known");
        } else if (!strcmp(l->word, ".file") || !strcmp(l->word, ".loc")) {
            ptx_lex_skip_line(l);
        } else if (ptx_lex_take(l, ".section")) {
            ptx_lex_next(l);
            ptx_lex_skip_braces(l);
        } else if (ptx_declaration(P)) {
            continue;
        } else if (ptx_lex_take(l, ".entry")) {
            read_function(P, true);
        } else if (ptx_lex_take(l, ".func")) {
            while (ptx_lex_take(l, ".noreturn") || ptx_lex_take(l, ".attribute"))
                ;
            read_function(P, false);
        } else if (!ptx_lex_take(l, ";")) {
            ptx_lex_fail(l, -EINVAL, "'%s' is not known here", l->word);
        }
    }
    if (!target)
        ptx_lex_fail(l, -EINVAL, "no .target");
}

int ptx_read(const char *text, size_t n, struct ptx_program **out, char *why, size_t why_bytes)
{
    struct ptx_parse *P = calloc(1, sizeof *P);
    struct ptx_program *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!P || !p) {
        free(P);
        free(p);
        snprintf(why, why_bytes, "no memory");
        return -ENOMEM;
    }
    P->p = p;
    P->lex.why = why;
    P->lex.why_bytes = why_bytes;
    ptx_lex_begin(&P->lex, text, n);
    if (!setjmp(P->lex.back)) {
        read_module(P);
        ptx_link(P);
        *out = p;
    }
    int e = P->lex.error;
    if (e)
        ptx_free(p);
    free(P->symbols);
    free(P->labels);
    free(P->fixups);
    free(P->places);
    free(P->constants);
    free(P->formals);
    free(P);
    return e;
}

unsigned ptx_kernels(const struct ptx_program *p) { return p->n_kernels; }
const struct ptx_kernel *ptx_kernel(const struct ptx_program *p, unsigned i) { return &p->kernels[i]; }
unsigned ptx_variables(const struct ptx_program *p) { return p->n_variables; }
const struct ptx_variable *ptx_variable(const struct ptx_program *p, unsigned i) { return &p->variables[i]; }

void ptx_variable_addresses(const struct ptx_program *p, unsigned i, const uint64_t *at, unsigned char *init)
{
    for (unsigned k = 0; k < p->inside[i].n_relocs; k++) {
        const struct ptx_reloc *r = &p->inside[i].relocs[k];
        put(init + r->at, at[r->variable] + (uint64_t)r->plus, 8);
    }
}
