/* attempt.h: a command run under remat for as long as it takes to record one iteration of it.
 *
 * Threads: the main thread. Errors: 0 or a negative errno; -ECHILD: the command ended by itself without a trace.
 */
#ifndef REMAT_OFFLINE_ATTEMPT_H
#define REMAT_OFFLINE_ATTEMPT_H

enum { ATTEMPT_WAIT_S = 600 }; /* for an iteration, where nobody says how long */

struct attempt {
    char folder[64];   /* of our own, removed by attempt_end() */
    char trace[96];    /* the file in it */
    int status;        /* -ECHILD: of wait(2) */
};

/* Run `command` (NULL-terminated), within `limit` as `remat run --limit` takes it, NULL: as it is, until the trace is there; then the command is
 * told to end, and ended if it does not. What it prints goes to standard error. most_s 0: no time limit, else -ETIME. */
int attempt_run(char *const *command, const char *limit, double most_s, struct attempt *a);
void attempt_end(struct attempt *a);

#endif
