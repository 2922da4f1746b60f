#include "tests/simgpu/ptx/ptx_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_lex_fail(struct ptx_lex *l, int error, const char *format, ...)
{
    int n = snprintf(l->why, l->why_bytes, "line %u: ", l->line);
    if (n >= 0 && (size_t)n < l->why_bytes) {
        va_list args;
        va_start(args, format);
        vsnprintf(l->why + n, l->why_bytes - (size_t)n, format, args);
        va_end(args);
        for (char *c = l->why + n; *c; c++) /* what is quoted of the text may be anything: one line it stays */
            if (!isprint((unsigned char)*c))
                *c = '?';
    }
    l->error = error;
    longjmp(l->back, 1);
}

static bool begins_word(char c) { return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.'; }
static bool goes_on(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.'; }

static void skip_blanks(struct ptx_lex *l)
{
    while (l->at < l->end) {
        if (*l->at == '\n') {
            l->line++;
            l->at++;
        } else if (isspace((unsigned char)*l->at) || *l->at == '\0') {
            l->at++;
        } else if (*l->at == '/' && l->at + 1 < l->end && l->at[1] == '/') {
            while (l->at < l->end && *l->at != '\n')
                l->at++;
        } else if (*l->at == '/' && l->at + 1 < l->end && l->at[1] == '*') {
            for (l->at += 2; l->at + 1 < l->end && !(*l->at == '*' && l->at[1] == '/'); l->at++)
                l->line += *l->at == '\n';
            l->at += l->at + 1 < l->end ? 2 : 1;
        } else {
            return;
        }
    }
    l->at = l->end;
}

static void read_exact(struct ptx_lex *l, unsigned bits)
{
    l->token = TOK_FLOAT;
    l->exact = bits;
    l->integer = 0;
    l->at += 2;
    for (unsigned i = 0; i < bits / 4; i++, l->at++) {
        if (l->at >= l->end || !isxdigit((unsigned char)*l->at))
            ptx_lex_fail(l, -EINVAL, "a floating-point number has %u digits behind its 0%c", bits / 4, bits == 32 ? 'f' : 'd');
        char c = (char)tolower((unsigned char)*l->at);
        l->integer = l->integer << 4 | (uint64_t)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
    }
    if (bits == 32) {
        uint32_t u = (uint32_t)l->integer;
        float f;
        memcpy(&f, &u, 4);
        l->real = (double)f;
    } else {
        memcpy(&l->real, &l->integer, 8);
    }
}

static void read_number(struct ptx_lex *l)
{
    const char *p = l->at;
    size_t left = (size_t)(l->end - p);
    char second = left > 1 ? (char)tolower((unsigned char)p[1]) : ' ';
    if (*p == '0' && (second == 'f' || second == 'd')) {
        read_exact(l, second == 'f' ? 32 : 64);
        return;
    }
    unsigned base = 10;
    l->token = TOK_INT;
    l->integer = 0;
    if (*p == '0' && (second == 'x' || second == 'b')) {
        base = second == 'x' ? 16 : 2;
        p += 2;
    } else if (*p == '0') {
        base = 8;
    }
    const char *first = p;
    for (; p < l->end && isxdigit((unsigned char)*p); p++) {
        unsigned digit = (unsigned)(isdigit((unsigned char)*p) ? *p - '0' : tolower((unsigned char)*p) - 'a' + 10);
        if (digit >= base)
            break;
        l->integer = l->integer * base + digit;
    }
    if (base != 16 && p < l->end && (*p == '.' || *p == 'e' || *p == 'E')) {
        char text[64], *stop;
        size_t n = (size_t)(l->end - first) < sizeof text - 1 ? (size_t)(l->end - first) : sizeof text - 1;
        memcpy(text, first, n);
        text[n] = '\0';
        l->real = strtod(text, &stop);
        l->token = TOK_FLOAT;
        l->exact = 0;
        p = first + (stop - text);
    } else if (p < l->end && *p == 'U') {
        p++;
    }
    if (p == first || (p < l->end && (isalnum((unsigned char)*p) || *p == '_')))
        ptx_lex_fail(l, -EINVAL, "no number: '%.*s'", (int)((size_t)(l->end - l->at) < 12 ? (size_t)(l->end - l->at) : 12), l->at);
    l->at = p;
}

static void read_string(struct ptx_lex *l)
{
    size_t n = 0;
    for (l->at++; l->at < l->end && *l->at != '"'; l->at++) {
        if (*l->at == '\n')
            ptx_lex_fail(l, -EINVAL, "a string without an end");
        if (n + 1 < sizeof l->word)
            l->word[n++] = *l->at;
    }
    l->word[n] = '\0';
    l->at += l->at < l->end;
    l->token = TOK_STRING;
}

void ptx_lex_next(struct ptx_lex *l)
{
    skip_blanks(l);
    if (l->at >= l->end) {
        l->token = TOK_END;
        strcpy(l->word, "the end");
    } else if (begins_word(*l->at)) {
        size_t n = 0;
        do {
            if (n + 3 >= sizeof l->word)
                ptx_lex_fail(l, -EINVAL, "a name longer than %d characters", PTX_WORD_MOST - 4);
            if (*l->at == ':') /* "::" inside of a word */
                l->word[n++] = *l->at++;
            l->word[n++] = *l->at++;
        } while (l->at < l->end && (goes_on(*l->at) || (*l->at == ':' && l->at + 2 < l->end && l->at[1] == ':' && goes_on(l->at[2]))));
        l->word[n] = '\0';
        l->token = TOK_WORD;
    } else if (isdigit((unsigned char)*l->at)) {
        read_number(l);
    } else if (*l->at == '"') {
        read_string(l);
    } else {
        l->token = TOK_PUNCT;
        l->word[0] = *l->at++;
        l->word[1] = '\0';
    }
}

void ptx_lex_begin(struct ptx_lex *l, const char *text, size_t n)
{
    l->at = text;
    l->end = text + n;
    l->line = 1;
    l->error = 0;
}

bool ptx_lex_take(struct ptx_lex *l, const char *word)
{
    if ((l->token != TOK_WORD && l->token != TOK_PUNCT) || strcmp(l->word, word))
        return false;
    ptx_lex_next(l);
    return true;
}

void ptx_lex_need(struct ptx_lex *l, const char *word)
{
    if (!ptx_lex_take(l, word))
        ptx_lex_fail(l, -EINVAL, "'%s' expected, there is '%s'", word,
                     l->token == TOK_INT || l->token == TOK_FLOAT ? "a number" : l->word);
}

void ptx_lex_skip_line(struct ptx_lex *l)
{
    while (l->at < l->end && *l->at != '\n')
        l->at++;
    ptx_lex_next(l);
}

void ptx_lex_skip_braces(struct ptx_lex *l)
{
    unsigned depth = 0;
    do {
        if (l->token == TOK_END)
            ptx_lex_fail(l, -EINVAL, "a brace is not closed");
        if (l->token == TOK_PUNCT)
            depth += l->word[0] == '{' ? 1u : l->word[0] == '}' ? -1u : 0u;
        ptx_lex_next(l);
    } while (depth);
}

uint64_t ptx_lex_integer(struct ptx_lex *l)
{
    bool minus = ptx_lex_take(l, "-");
    if (l->token != TOK_INT)
        ptx_lex_fail(l, -EINVAL, "a number expected, there is '%s'", l->word);
    uint64_t v = l->integer;
    ptx_lex_next(l);
    return minus ? 0 - v : v;
}
