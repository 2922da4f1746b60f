/*
 * The words of a PTX text: names with their dots ("ld.global.L1::no_allocate.v4.b32" is one word), numbers, strings, single characters.
 * Threads: one reader each. Errors: ptx_lex_fail leaves by longjmp to `back`, with the line and the reason in `why`.
 */
#ifndef SIMGPU_PTX_LEX_H
#define SIMGPU_PTX_LEX_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ptx_token { TOK_END, TOK_WORD, TOK_INT, TOK_FLOAT, TOK_STRING, TOK_PUNCT };
enum { PTX_WORD_MOST = 1024 };

struct ptx_lex {
    const char *at, *end;
    uint32_t line;
    /* the word that is next */
    enum ptx_token token;
    char word[PTX_WORD_MOST]; /* TOK_WORD; of TOK_PUNCT the character */
    uint64_t integer;         /* TOK_INT; of TOK_FLOAT the bits where `exact` says how many there are */
    double real;
    unsigned exact;           /* 32: 0f..., 64: 0d..., 0: written in decimals */
    jmp_buf back;
    int error;
    char *why;
    size_t why_bytes;
};

void ptx_lex_begin(struct ptx_lex *l, const char *text, size_t n);
void ptx_lex_next(struct ptx_lex *l);
_Noreturn void ptx_lex_fail(struct ptx_lex *l, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* True, and the word is passed, if it is next. */
bool ptx_lex_take(struct ptx_lex *l, const char *word);
void ptx_lex_need(struct ptx_lex *l, const char *word);
/* Passes all up to the end of the line, or to the brace that closes the one that is next. */
void ptx_lex_skip_line(struct ptx_lex *l);
void ptx_lex_skip_braces(struct ptx_lex *l);
uint64_t ptx_lex_integer(struct ptx_lex *l);

#endif
