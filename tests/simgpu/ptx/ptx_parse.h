/*
 * Inside the reader: what its files share while one text is read. ptx_read.c reads the module and its declarations, ptx_function.c bodies,
 * ptx_operand.c operands, ptx_select*.c choose what an instruction is.
 *
 * Errors: all leave by ptx_lex_fail. PARSE_UNKNOWN is no error: the instruction is kept as one that cannot be run.
 */
#ifndef SIMGPU_PTX_PARSE_H
#define SIMGPU_PTX_PARSE_H

#include "tests/simgpu/ptx/ptx_ir.h"
#include "tests/simgpu/ptx/ptx_lex.h"

enum ptx_symbol_kind { SYM_REGISTERS, SYM_VARIABLE, SYM_SHARED, SYM_LOCAL, SYM_PARAM };
struct ptx_symbol {
    const char *name;       /* of registers: the prefix, where `count` is not 0 */
    enum ptx_symbol_kind kind;
    enum ptx_type type;     /* of registers */
    uint32_t count;         /* %r<count>; 0: the one of this name */
    uint32_t at;            /* frame offset; index of the variable; local or parameter offset */
    uint32_t bytes;
    bool is_const;          /* SYM_VARIABLE: .const */
};

enum ptx_raw_kind { RAW_NONE, RAW_REGISTER, RAW_SPECIAL, RAW_INT, RAW_FLOAT, RAW_SYMBOL, RAW_FUNCTION, RAW_NAME, RAW_VECTOR, RAW_MEMORY, RAW_SINK };
struct ptx_raw {
    enum ptx_raw_kind kind;
    bool negated;              /* !p */
    enum ptx_type type;        /* of registers */
    uint32_t at;               /* register: frame offset; special: enum ptx_special; function: index */
    uint64_t integer;          /* number; symbol or memory: what is added */
    double real;
    unsigned exact;
    const struct ptx_symbol *symbol;
    const char *name;
    struct ptx_raw *part;      /* vector: its `n` parts; memory: what is in the brackets; "a|b": b */
    unsigned n;
};

enum { MOST_OPERANDS = 8, MOST_PARTS = 16 };
struct ptx_text_insn { /* one instruction as it stands in the text */
    const char *opcode;
    const char *part[MOST_PARTS]; /* of the opcode between its dots; parts ending in :: and what follows are one */
    bool used[MOST_PARTS];
    unsigned n_parts;
    struct ptx_raw operand[MOST_OPERANDS];
    unsigned n_operands;
    uint32_t guard;
    bool guarded, guard_not;
};

struct ptx_label { const char *name; uint32_t at; unsigned scope; };
struct ptx_fixup { const char *name; uint32_t *target; unsigned scope; uint32_t line; };
struct ptx_place { uint32_t at, bytes, shared; int64_t plus; }; /* a row of the pool that is the address of a .shared variable */

struct ptx_parse {
    struct ptx_lex lex;
    struct ptx_program *p;
    struct ptx_symbol *symbols;
    unsigned n_symbols, room_symbols;
    struct ptx_label *labels;
    unsigned n_labels, room_labels;
    struct ptx_fixup *fixups;
    unsigned n_fixups, room_fixups;
    struct ptx_place *places;
    unsigned n_places, room_places;
    struct ptx_pooled { uint64_t value; uint32_t at, bytes; } *constants; /* open addressing */
    unsigned n_constants, room_constants;
    struct ptx_formal *formals;  /* of the head that is being read */
    unsigned scope;              /* depth */
    unsigned function;           /* that is being read */
    uint32_t shared_of_function; /* its own */
    const struct ptx_text_insn *insn;
};

/* Grows an array to one more element; leaves on lack of memory. */
#define PTX_GROW(P, array, n, room) ((array) = ptx_grow((P), (array), (n), &(room), sizeof *(array)))
void *ptx_grow(struct ptx_parse *P, void *array, unsigned n, unsigned *room, size_t each);
void *ptx_parse_keep(struct ptx_parse *P, size_t n);
const char *ptx_parse_word(struct ptx_parse *P, const char *word); /* a copy that lives as long as the program */

/* ptx_read.c */
enum ptx_type ptx_type_of(const char *word); /* ".b32", "b32"; T_NONE: no type */
struct ptx_symbol *ptx_declare(struct ptx_parse *P, const char *name, enum ptx_symbol_kind kind, uint32_t at);
/* Declarations of variables and registers, from the space's word on; false: the next word is none. */
bool ptx_declaration(struct ptx_parse *P);
unsigned ptx_function_named(struct ptx_parse *P, const char *name, bool make); /* UINT32_MAX: there is none */
uint32_t ptx_local_place(struct ptx_function *f, uint64_t bytes, uint64_t align);
/* ptx_function.c */
void ptx_function_body(struct ptx_parse *P);
struct ptx_insn *ptx_emit(struct ptx_parse *P, enum ptx_kind kind);
/* A label's instruction is written to *target when it is known; *target lives as long as the program. */
void ptx_branch_to(struct ptx_parse *P, const char *label, uint32_t *target);

/* ptx_operand.c */
void ptx_raw_operand(struct ptx_parse *P, struct ptx_raw *out);
bool ptx_raw_word(struct ptx_parse *P, const char *word, struct ptx_raw *out);
/* The row of an operand. `want`: h w x of 2, 4, 8 bytes, e b f F of f16, bf16, f32, f64, p a predicate. */
struct ptx_operand ptx_source(struct ptx_parse *P, const struct ptx_raw *raw, char want);
/* One of whatever width a register has; numbers as `want` says. */
struct ptx_operand ptx_source_any(struct ptx_parse *P, const struct ptx_raw *raw, char want);
struct ptx_operand ptx_destination(struct ptx_parse *P, const struct ptx_raw *raw, char want);
struct ptx_operand ptx_destination_any(struct ptx_parse *P, const struct ptx_raw *raw);
struct ptx_operand ptx_constant(struct ptx_parse *P, uint64_t value, unsigned bytes);
struct ptx_operand ptx_address_row(struct ptx_parse *P, const struct ptx_symbol *s, int64_t plus, unsigned bytes);
void ptx_address(struct ptx_parse *P, const struct ptx_raw *raw, struct ptx_mem *out);
/* Parts of a vector operand, or the operand itself as the only part. NULL names a destination's width: any. */
const struct ptx_vec *ptx_vector(struct ptx_parse *P, const struct ptx_raw *raw, bool destination, char want, bool any);
char ptx_width_letter(enum ptx_type t);

/* ptx_select.c: emits the instruction; false: it is not known. */
bool ptx_select(struct ptx_parse *P, const struct ptx_text_insn *t);
bool ptx_select_memory(struct ptx_parse *P, const struct ptx_text_insn *t);
bool ptx_select_warp(struct ptx_parse *P, const struct ptx_text_insn *t);
bool ptx_select_cvt(struct ptx_parse *P, const struct ptx_text_insn *t);

/* Parts of the opcode: passes part `word`, if it is there and was not passed before. */
bool ptx_part(struct ptx_parse *P, const char *word);
enum ptx_type ptx_part_type(struct ptx_parse *P);      /* the first type that was not passed; T_NONE */
bool ptx_parts_done(struct ptx_parse *P);              /* all were passed */
void ptx_need_operands(struct ptx_parse *P, unsigned least, unsigned most);

#endif
