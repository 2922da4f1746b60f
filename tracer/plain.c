#include "tracer/plain.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct piece_taker {
    char *to;
    size_t at, room;
    jmp_buf full;
};

/* A symbol of a few hundred bytes can stand for gigabytes of text (each substitution twice the one before), so printing stops when the room is full. The
 * demangler holds only stack memory here, so the jump out of it leaks nothing. */
static void take(const char *text, size_t n, void *ctx)
{
    struct piece_taker *t = ctx;
    size_t fits = t->room - 1 - t->at;
    memcpy(t->to + t->at, text, n < fits ? n : fits);
    t->at += n < fits ? n : fits;
    t->to[t->at] = '\0';
    if (n > fits)
        longjmp(t->full, 1);
}

enum apart { NO_SYMBOL, WHOLE, CUT };

static enum apart take_apart(const char *symbol, struct piece_taker *t)
{
    if (setjmp(t->full))
        return CUT;
    return cplus_demangle_v3_callback(symbol, DMGL_ANSI, take, t) && t->at ? WHOLE : NO_SYMBOL;
}

const char *plain_name(const char *symbol, char *to, size_t room)
{
    struct piece_taker t = {.to = to, .room = room};
    if (room == 0)
        return to;
    to[0] = '\0';
    const int mangled = !strncmp(symbol, "_Z", 2) && strnlen(symbol, PLAIN_SYMBOL_BYTES) < PLAIN_SYMBOL_BYTES;
    enum apart got = mangled ? take_apart(symbol, &t) : NO_SYMBOL;
    if (got == NO_SYMBOL && (size_t)snprintf(to, room, "%s", symbol) >= room)
        got = CUT;
    if (got == CUT && room > 4)
        memcpy(to + room - 4, "...", 4);
    return to;
}
