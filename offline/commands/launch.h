/* launch.h: `remat run` and `remat trace` in common: settings become environment variables (policy/process/config.h), the library
 * goes in front of LD_PRELOAD, and the command takes this process's place.
 *
 * Threads: the main thread only. Errors: exit codes as env(1) has them, after one line on stderr.
 */
#ifndef REMAT_OFFLINE_LAUNCH_H
#define REMAT_OFFLINE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

enum { LAUNCH_FAILED = 125, LAUNCH_NOT_RUNNABLE = 126, LAUNCH_NOT_FOUND = 127 };

/* As given on the command line; NULL: not given. Borrowed. */
struct launch_settings {
    const char *limit, *policy, *plan, *solver, *trace_out, *host_swap, *verify, *rehearse, *stats, *iterations, *group, *group_limit, *guarantee,
        *allocator;
    int nvtx, quiet, plan_only, no_cache; /* flags */
    bool trace;     /* record only */
    char **command; /* NULL-terminated */
};

/* The index of the first "--" in argv, or argc. Options stand before it, the command behind. */
int launch_split(int argc, char **argv);

/* Checks every setting, prepares the environment and runs the command in this process. Returns only on failure, with the
 * exit code. */
int launch(const struct launch_settings *s);

/* ---- parts of it, for tests and `remat doctor` ------------------------------------------------------------------------ */

/* LD_PRELOAD's value with `lib` once, in front of all but sanitizers' runtimes. 0, or -ENAMETOOLONG. */
int launch_preload(const char *lib, const char *before, char *out, size_t room);

/* True when the machine shows a GPU's device file, or any driver library that is not the simulator: its path is left in
 * `driver`, "" if none. */
bool launch_has_gpu(char *driver, size_t room);

/* One line, "remat[pid]: ...". Returns LAUNCH_FAILED. */
int launch_bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
