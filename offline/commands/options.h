/* options.h: the one table of commands and their options. What a command reads, `--help`, the man pages and the shells'
 * completion all come from it.
 *
 * Threads: the table is constant; parsing belongs to the main thread.
 * Errors: 0 or -EINVAL after one line on stderr.
 */
#ifndef REMAT_OFFLINE_OPTIONS_H
#define REMAT_OFFLINE_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

struct option_row {
    const char *name;   /* without dashes */
    char letter;        /* 0: none */
    const char *arg;    /* what it takes, as usage shows it: SIZE|PCT, FILE, ...; NULL: a flag */
    const char *values; /* the words it takes, "a|b|c"; NULL: anything */
    const char *dflt;   /* what holds without it; NULL: nothing to tell */
    const char *help;   /* one line, no full stop */
};

struct option_command {
    const char *name;
    const char *usage; /* behind the name: operands and what is required */
    const char *what;  /* one line, no full stop */
    const struct option_row *rows; /* ends with a zeroed row */
    const char *more;  /* paragraphs below the options: plain text, blank lines between; lines that begin with two
                          spaces stand as they are */
    int takes_command; /* ends with -- CMD... */
};

/* NULL past the end; NULL for an unknown name. */
const struct option_command *options_at(size_t i);
const struct option_command *options_find(const char *name);

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
/* The words that an option takes, as in the table. */
const char *options_values(const char *command, const char *option);
/* All commands as words. */
const char *options_commands(char *to, size_t room);

void options_help(FILE *f, const struct option_command *c);
void options_overview(FILE *f);

/* kind: man (of one command, or of remat itself where command is NULL), bash, zsh, fish. -EINVAL: no such kind or command. */
int options_generate(FILE *f, const char *kind, const char *command);

#endif
