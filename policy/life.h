/* life.h: remat in the process: from the library's constructor to the end of the process, and in the child of a fork.
 *
 * Threads: as each function says. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_LIFE_H
#define REMAT_POLICY_LIFE_H

#include "policy/driver.h"

#include <stdbool.h>

/* From the library's constructor: what the environment says now binds later. No allocation. */
void eng_loaded(void);
/* From the library's destructor, where nothing has asked for eng_start(): whoever asked for a limit, statistics or a trace is told that no GPU was used,
 * once in a run, by the process that `remat` became; the statistics are written, and say so. Not where a process that it started has written them, or may
 * have used one. */
void eng_unused(void);
/* From the same place, where eng_start() has refused: with --policy off the statistics say that nothing was counted. */
void eng_stood_aside(void);
/* True where the system may have set maxima for this user: then REMAT_DISABLE is eng_start()'s to judge. One system call at most, no
 * lock, no allocation: dlsym asks. */
bool eng_may_hold(void);
/* Before eng_start(), by each thread that is about to call it and without a lock of ours: what has to be asked of the loader (tracer/loader.h). */
void eng_before_start(void);
/* Reads the configuration (environment set by `remat run`, see policy/process/config.h) and keeps `d` (which must outlive the
 * process). Called once by the doors, after cuInit has succeeded for the first time. 0, or a negative errno: then the
 * doors pass everything through. */
int eng_start(const struct drv *d);
/* After it, likewise without a lock: libraries that the configuration asks for are loaded. */
void eng_after_start(void);

/* The process is about to exit (destructor / atexit): writes the statistics, stops helper threads. Idempotent. */
void eng_finish(void);

/* The same before _exit(), which a signal handler may call: the statistics alone, without a lock or an allocation. */
void eng_finish_now(void);

/* In the child of a fork: the child passes everything through; touches no driver state. */
void eng_after_fork_child(void);

#endif
