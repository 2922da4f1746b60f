/* plain.h: names of kernels as people write them, for text that people read; files of data keep the symbol.
 *
 * C++ kernels are known to the driver by their mangled symbols (`_ZN2at6native...`). They are taken apart by libiberty's demangler, which
 * is linked in (cp-demangle.c, whose licence puts no condition on programs it is linked into; no other part of libiberty is used). What comes out has no parameters and no return
 * type: the template and its arguments tell kernels apart, and the rest is long.
 *
 * Threads: any; no shared state, nothing allocated; up to half a MiB of stack. Errors: none; what is no mangled name, or is too
 * long or too nested to be taken apart, is handed out as it came.
 */
#ifndef REMAT_TRACER_PLAIN_H
#define REMAT_TRACER_PLAIN_H

#include <stddef.h>

enum {
    PLAIN_SYMBOL_BYTES = 4096, /* longer symbols stay as they are */
    PLAIN_BYTES = 1024,        /* enough for what kernels are called, and for what fits on a page */
};

/* The name to show for `symbol`, cut to fit with "..." at its end. Returns `to`. */
const char *plain_name(const char *symbol, char *to, size_t room);

/* The same where the text only lives as long as the statement. */
#define PLAIN(symbol) plain_name((symbol), (char[PLAIN_BYTES]){0}, PLAIN_BYTES)
/* For a message that says more than the name. */
#define PLAIN_IN_LINE(symbol) plain_name((symbol), (char[PLAIN_BYTES / 4]){0}, PLAIN_BYTES / 4)

#endif
