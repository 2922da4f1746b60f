/* options_man.h: what a man page tells beyond the table of options: examples, exit status, environment, files.
 *
 * Threads: the table is constant.
 */
#ifndef REMAT_OFFLINE_OPTIONS_MAN_H
#define REMAT_OFFLINE_OPTIONS_MAN_H

/* Plain text as in struct option_command's `more`. Examples are lines that begin with two spaces, each a command that tests/system/test_docs.py runs, in the
 * order of the table of commands, in one folder. */
struct options_man {
    const char *command;
    const char *examples, *exits, *environment, *files;
};

/* Never NULL: a command without a row has what holds for all, and no examples. */
const struct options_man *options_man(const char *command);

#endif
