/* output.h: every file that remat writes for its user: traces, plans, statistics, pages, exports.
 *
 * The contract, in plain words:
 *   - "-", /dev/stdout, /dev/stderr, /dev/fd/N and /proc/self/fd/N are the descriptor that is already open: what stands
 *     in front of it in a log stays there.
 *   - A name that is a regular file, or nothing yet, gets the new content as a whole or not at all: it is written beside
 *     the target and renamed over it. A full disk, a killed process, a failed write leave the old file as it was. The
 *     file may be the one that was read. The permissions of one that is this user's stay (0777 of its mode, no set-user-id bit); any other gets those of a
 *     new file. One that is write-protected is refused.
 *   - Symlinks are followed and kept: what they lead to is replaced. A dangling one gets its target.
 *   - Links and files that another user can have laid in wait are refused: place.h has the rules (-EACCES, and the line says why).
 *   - A folder that takes no new file (but whose file may be written): everything is collected in memory, space is set
 *     aside, then the file is filled in place.
 *   - Anything else (a device, a pipe, a socket) is opened and written to as it is; never removed, never replaced.
 *   - "%p" in a name is the process id, "%r" the rank (the first of RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK and PMI_RANK that
 *     is a number, else 0), "%%" a percent
 *     sign; any other "%" stands for itself. output_open expands them only with OUTPUT_RUN.
 *   - With OUTPUT_RUN a file is never written over by a second process of the same run: the second gets the name with
 *     ".1" appended (".2", ...) and says so in one line on stderr. A process may write over its own file, and
 *     over what an earlier run left. What belongs to this run is told by the file's own time: it changed after
 *     `remat run` began (the variable REMAT_RUN_STARTED, see output_run_mark). Two processes that finish at once are
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
    OUTPUT_NO_WAIT = 2 /* a pipe that nobody reads is an error (-ENXIO), not a wait: for processes about to end */
};
enum { OUTPUT_PATH = PLACE_PATH, OUTPUT_TMP = 32 };

struct output {
    FILE *f; /* write here; NULL once closed */
    /* private */
    char asked[OUTPUT_PATH]; /* the name as expanded: for messages */
    struct place at;         /* where it goes, symlinks followed */
    char tmp[OUTPUT_TMP];    /* in the same folder; "" when there is none */
    int how;
    unsigned flags;
};

/* Begin. On success the caller ends with output_commit or output_abandon, whatever happens to the writing. */
int output_open(struct output *o, const char *name, unsigned flags, char *err, size_t err_len);

/* Everything is written: put it in its place. Fails when any write before it failed; then the old file stands. Closes. */
int output_commit(struct output *o, char *err, size_t err_len);

/* Whether the name is a file, or nothing yet, so that the content is put there as a whole. */
bool output_is_file(const char *name, unsigned flags);

/* Put in its place now, and kept open in *fd: the caller goes on writing to it with pwrite(), and may commit the same name
 * again over it. -ENOTSUP, without a line: no file that can be replaced; nothing is left behind. Closes o. */
int output_commit_open(struct output *o, int *fd, char *err, size_t err_len);

/* Give up: the old file stands, nothing is left behind. Closes. */
void output_abandon(struct output *o);

/* `name` with %p, %r and %% filled in. 0, or -ENAMETOOLONG. */
int output_expand(const char *name, char *to, size_t room);

/* Whether there is a file of that name (%p, %r: this process's) that this run has written. */
bool output_is_of_run(const char *name);

/* The text that says when a run began, for REMAT_RUN_STARTED. Waits until the clock of file times has moved on (10 ms at
 * most), so that files of an earlier run are older than it and files of this run are not. `room` >= 40. */
void output_run_mark(char *to, size_t room);

#endif
