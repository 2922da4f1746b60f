/* plain.h: names of kernels as people write them, for text that people read; files of data keep the symbol.
 *
 * The driver knows C++ kernels by their mangled symbols (`_ZN2at6native...`). Libiberty's demangler, which is linked in, takes these apart
 * (cp-demangle.c, whose licence puts no condition on programs it is linked into; no other part of libiberty is used). The names have no parameters and
 * no return type: the template and its arguments tell kernels apart, and the rest is long.
 *
 * Threads: any; no shared state, nothing allocated; up to half a MiB of stack. Errors: none; a symbol that is no mangled name, or is too
 * long or too nested to be taken apart, is handed out as it came.
 */
#ifndef REMAT_TRACER_PLAIN_H
#define REMAT_TRACER_PLAIN_H

#include <stddef.h>

enum {
    PLAIN_SYMBOL_BYTES = 4096, /* longer symbols stay as they are */
    PLAIN_BYTES = 1024,        /* enough for kernels' names, and as much as fits on a page */
};

/* The name to show for `symbol`, cut to fit with "..." at its end. Returns `to`. */
const char *plain_name(const char *symbol, char *to, size_t room);

/* plain_name() in a buffer that lives as long as the enclosing block. */
#define PLAIN(symbol) plain_name((symbol), (char[PLAIN_BYTES]){0}, PLAIN_BYTES)
/* PLAIN() cut shorter, for a message that says more than the name. */
#define PLAIN_IN_LINE(symbol) plain_name((symbol), (char[PLAIN_BYTES / 4]){0}, PLAIN_BYTES / 4)

#endif
