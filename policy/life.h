/* life.h: remat in the process: from the library's constructor to the end of the process, and in the child of a fork.
 *
 * Threads: as each function says. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_LIFE_H
#define REMAT_POLICY_LIFE_H

#include "policy/driver.h"

#include <stdbool.h>

/* From the library's constructor: the limits that the environment sets at this moment bind later. No allocation. */
void eng_loaded(void);
/* From the library's destructor, where eng_start() was never called: a user who asked for a limit, statistics or a trace is told that no GPU was used,
 * once in a run, by the process that `remat` became; the statistics are written, and say so. Not where a child process has written the statistics, or may
 * have used a GPU. */
void eng_unused(void);
/* From the library's destructor, where eng_start() has refused: with --policy off the statistics say that nothing was counted. */
void eng_stood_aside(void);
/* True where the system may have set maxima for this user: then REMAT_DISABLE is eng_start()'s to judge. One system call at most, no
 * lock, no allocation: called from dlsym. */
bool eng_may_hold(void);
/* Before eng_start(), by each thread that is about to call it, and without a lock of remat's: asks the loader what is needed (tracer/loader.h). */
void eng_before_start(void);
/* Reads the configuration (environment set by `remat run`, see policy/process/config.h) and keeps `d` (which must outlive the
 * process). Called once by the doors, after cuInit has succeeded for the first time. 0, or a negative errno: then the
 * doors pass everything through. */
int eng_start(const struct drv *d);
/* After eng_start(), without a lock too: loads libraries that the configuration asks for. */
void eng_after_start(void);

/* The process is about to exit (destructor / atexit): writes the statistics, stops helper threads. Idempotent. */
void eng_finish(void);

/* eng_finish() before _exit(), which a signal handler may call: writes the statistics alone, without a lock or an allocation. */
void eng_finish_now(void);

/* In the child of a fork: the child passes everything through; touches no driver state. */
void eng_after_fork_child(void);

#endif
