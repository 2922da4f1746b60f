/* options_parse.h: a command line against its row of the table (options.h).
 *
 * Threads: no shared state. */
#ifndef REMAT_OFFLINE_OPTIONS_PARSE_H
#define REMAT_OFFLINE_OPTIONS_PARSE_H

#include "offline/commands/options.h"

/* Where the value of an option goes: const char * for one with an argument (borrowed from argv), int for a flag (counted). */
struct option_bind {
    const char *name;
    void *to;
};

/* Parse argv[1..] of command argv[0]. `binds` ends with a zeroed row and has every option of the command. "--name VALUE",
 * "--name=VALUE", "-o VALUE", "-oVALUE"; "--" ends the options; "-" is an operand, once at most. Operands are left in
 * operands[0..*n) (borrowed; room for max). 0; 1 if --help was asked (usage printed: exit CLI_OK); -EINVAL. */
int options_parse(int argc, char **argv, const struct option_bind *binds, const char **operands, size_t max, size_t *n);
/* The same for a table row of the caller's (tests). */
int options_parse_as(const struct option_command *c, int argc, char **argv, const struct option_bind *binds, const char **operands,
                     size_t max, size_t *n);

/* The word of `words` ("a|b|c") that a mistyped one was probably meant to be, in `to`; "" if none is near. Returns to. */
const char *options_nearest(const char *typed, const char *words, char *to, size_t room);
/* `; did you mean "x"?`, or "". */
const char *options_hint(const char *typed, const char *words, char *to, size_t room);

#endif
