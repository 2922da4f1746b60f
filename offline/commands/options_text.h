/* options_text.h: help, man pages and completion, from the table (options.h).
 *
 * Threads: no shared state. */
#ifndef REMAT_OFFLINE_OPTIONS_TEXT_H
#define REMAT_OFFLINE_OPTIONS_TEXT_H

#include "offline/commands/options.h"

void options_help(FILE *f, const struct option_command *c);
void options_overview(FILE *f);

/* kind: man (of one command, or of remat itself where command is NULL), bash, zsh, fish. -EINVAL: no such kind or command. */
int options_generate(FILE *f, const char *kind, const char *command);

#endif
