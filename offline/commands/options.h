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

/* The words that an option takes, as in the table. */
const char *options_values(const char *command, const char *option);
/* All commands as words. */
const char *options_commands(char *to, size_t room);

#endif
