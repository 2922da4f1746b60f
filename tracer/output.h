/* output.h: every file that remat writes for its user: traces, plans, statistics, pages, exports.
 *
 * The contract, in plain words:
 *   - "-", /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N are the descriptor that is already open: text
 *     already in a log there stays.
 *   - A name that is a regular file, or nothing yet, gets the new content as a whole or not at all: it is written beside
 *     the target and renamed over it. A full disk, a killed process, a failed write leave the old file as it was. The
 *     file may be the one that was read. A file of this user's keeps its permissions (0777 of its mode, no set-user-id bit); any other file gets those of a
 *     new file. A write-protected file is refused.
 *   - Symlinks are followed and kept: the file that a link leads to is replaced. A dangling link gets its target.
 *   - Links and files that another user can have laid in wait are refused: place.h has the rules (-EACCES, and the line says why).
 *   - In a folder that takes no new file, a file that may be written is filled in place: the content is collected in memory, and space is set
 *     aside, first.
 *   - Anything else (a device, a pipe, a socket) is opened and written to as it is; never removed, never replaced.
 *   - "%p" in a name is the process id, "%r" the rank (the first of RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK and PMI_RANK that
 *     is a number, else 0), "%%" a percent
 *     sign; any other "%" stands for itself. output_open expands them only with OUTPUT_RUN.
 *   - With OUTPUT_RUN a file is never written over by a second process of the same run: the second gets the name with
 *     ".1" appended (".2", ...) and says so in one line on stderr. A process may write over its own file, and
 *     over files of an earlier run. A file belongs to this run if its change time is after the beginning of
 *     `remat run` (the variable REMAT_RUN_STARTED, see output_run_mark). Two processes that finish at once are
 *     kept apart by a lock on the folder and by creating names only where there are none.
 *
 * Depends on libc alone: the command line tool and the preloaded library both link it.
 * Threads: any; one struct output belongs to one thread at a time.
 * Errors: 0 or a negative errno, with one line in err ("NAME: cannot write: No space left on device").
 */
#ifndef REMAT_TRACER_OUTPUT_H
#define REMAT_TRACER_OUTPUT_H

#include "tracer/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    OUTPUT_RUN = 1,    /* a file of `remat run`: %p and %r, never over another process's file */
    OUTPUT_NO_WAIT = 2 /* a pipe without a reader is an error (-ENXIO), not a wait: for processes about to end */
};
enum { OUTPUT_PATH = PLACE_PATH, OUTPUT_TMP = 32 };

struct output {
    FILE *f; /* write here; NULL once closed */
    /* private */
    char asked[OUTPUT_PATH]; /* the name, expanded: for messages */
    struct place at;         /* the target, symlinks followed */
    char tmp[OUTPUT_TMP];    /* file beside the target, in the same folder; "": none */
    int how;
    unsigned flags;
};

/* Opens `o` for writing. On success the caller ends with output_commit or output_abandon, whatever happens to the writing. */
int output_open(struct output *o, const char *name, unsigned flags, char *err, size_t err_len);

/* Everything is written: puts the content in its place. Fails if any write before it failed; the old file stands then. Closes o. */
int output_commit(struct output *o, char *err, size_t err_len);

/* Whether `name` is a regular file, or nothing yet, so that the content is put there as a whole. */
bool output_is_file(const char *name, unsigned flags);

/* output_commit(), but the file stays open in *fd: the caller goes on writing to it with pwrite(), and may commit the same name
 * again over it. -ENOTSUP, without a line: the target cannot be replaced; nothing is left behind. Closes o. */
int output_commit_open(struct output *o, int *fd, char *err, size_t err_len);

/* Gives up: the old file stands, nothing is left behind. Closes o. */
void output_abandon(struct output *o);

/* `name` with %p, %r and %% filled in. 0, or -ENAMETOOLONG. */
int output_expand(const char *name, char *to, size_t room);

/* Whether this run has written a file of that name (%p, %r: this process's). */
bool output_is_of_run(const char *name);

/* The time when a run began, as text for REMAT_RUN_STARTED. Waits until the clock of file times has moved on (10 ms at
 * most), so that files of an earlier run are older than the mark and files of this run are not. `room` >= 40. */
void output_run_mark(char *to, size_t room);

#endif
