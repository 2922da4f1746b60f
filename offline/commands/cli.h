/* Command-line odds and ends shared by the commands: sizes, messages, progress. Options: options.h.
 *
 * Threads: the main thread only; cli_progress any.
 * Errors: parse functions return 0 or -EINVAL; commands return the process's exit code:
 * 0 fine, 1 a check said no, output that cannot be written, or an internal failure, 2 bad usage or bad input,
 * 3 a limit that no plan meets.
 */
#ifndef REMAT_OFFLINE_CLI_H
#define REMAT_OFFLINE_CLI_H

#include <stddef.h>
#include <stdint.h>

enum { CLI_OK = 0, CLI_FAIL = 1, CLI_BAD = 2, CLI_INFEASIBLE = 3 };

/* A command's entry point: argv[0] is the command's name. main.c finds `cmd_NAME` for `remat NAME` by weak
 * reference. */
typedef int cli_command(int argc, char **argv);

/* SIZE: digits with an optional fraction and an optional K M G T, KB.. or KiB.. suffix, all binary, no sign:
 * "12G", "1.5GiB", "4096". PCT: "85%", "12.5%". With whole_bytes > 0 a percentage is of that; with 0 a
 * percentage is an error. The result is rounded down and is at least 0. */
int cli_size(const char *text, int64_t whole_bytes, int64_t *bytes);
int cli_long(const char *text, int64_t min, int64_t max, int64_t *out);
/* A time limit: `text` seconds, from 0 up; 0 is the least that solvers know, since their 0 is none. NULL: none, *out 0. */
int cli_seconds(const char *text, double *out);
int cli_real(const char *text, double min, double max, double *out);

/* One line on stderr, "remat: ...". Returns CLI_BAD so that a command can `return cli_bad(...)`. */
int cli_bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));       /* same, returns CLI_FAIL */
int cli_infeasible(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* same, returns CLI_INFEASIBLE */

/* What main returns for a command's rc: 1, after one line, if what it printed could not be written (a full disk). */
int cli_finish(int rc);

/* Progress: one line that rewrites itself, only if stderr is a terminal (cli_is_terminal); at most ten a second.
 * cli_progress_end clears it. Between cli_ticker and cli_progress_end a thread adds the seconds that have passed, so that
 * a solver that says nothing is seen to work; `most_s` 0: no limit to tell. */
int cli_is_terminal(void);
void cli_ticker(const char *what, double most_s);
void cli_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_end(void);

/* Whether an output (NULL: none) is the very file that an input is, by whatever name. */
int cli_same_file(const char *out, const char *in);

/* Print a string of JSON's on standard output, quotes and all. */
void cli_json(const char *s);

/* 1536 -> "1.50 KiB"; buf holds at least 16 bytes; returns buf. */
const char *cli_bytes(int64_t bytes, char *buf, size_t len);

#endif
