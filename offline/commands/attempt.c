#include "offline/commands/attempt.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "offline/solvers/solver.h"

enum { GRACE_MS = 3000, LOOK_MS = 20 };

static void nap(void) { nanosleep(&(struct timespec){0, LOOK_MS * 1000000L}, NULL); }

/* The command's processes: a shell script's would outlive the shell. */
static volatile sig_atomic_t group;

static void interrupted(int sig)
{
    if (group > 0)
        kill(-(pid_t)group, SIGTERM);
    signal(sig, SIG_DFL);
    raise(sig);
}

static _Noreturn void become(char *const *command, const char *limit, const struct attempt *a)
{
    size_t n = 0, k = 0;
    while (command[n])
        n++;
    const char **argv = calloc(n + 10, sizeof *argv);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
    if (!argv || dup2(2, 1) != 1)
        _exit(125);
    argv[k++] = "remat";
    argv[k++] = limit ? "run" : "trace";
    argv[k++] = limit ? "--trace-out" : "-o";
    argv[k++] = a->trace;
    if (limit) {
        argv[k++] = "--limit";
        argv[k++] = limit;
    }
    argv[k++] = "--";
    for (size_t i = 0; i < n; i++)
        argv[k++] = command[i];
    execv("/proc/self/exe", (char *const *)argv);
    _exit(125);
}

static void end_child(pid_t child, int *status)
{
    kill(-child, SIGTERM);
    for (int ms = 0; ms < GRACE_MS; ms += LOOK_MS) {
        if (waitpid(child, status, WNOHANG))
            return;
        nap();
    }
    kill(-child, SIGKILL);
    waitpid(child, status, 0);
}

/* The recorder gives the trace its name once all of it is written. A file of that name without a byte is the command's own look, at its start, whether it can
 * write there: taken for the trace, it ended the command, and `fit` said that the trace was empty. */
static int is_written(const char *trace)
{
    struct stat st;
    return !stat(trace, &st) && st.st_size > 0;
}

int attempt_run(char *const *command, const char *limit, double most_s, struct attempt *a)
{
    const char *tmp = getenv("TMPDIR");
    const double until_s = solver_now_s() + most_s;
    memset(a, 0, sizeof *a);
    snprintf(a->folder, sizeof a->folder, "%s/remat-XXXXXX", tmp && strlen(tmp) < 32 ? tmp : "/tmp");
    if (!mkdtemp(a->folder)) {
        a->folder[0] = 0;
        return -errno;
    }
    snprintf(a->trace, sizeof a->trace, "%s/trace.json", a->folder);
    const pid_t child = fork();
    if (child < 0)
        return -errno;
    if (!child)
        become(command, limit, a);
    setpgid(child, child); /* whoever of the two comes first */
    group = child;
    signal(SIGINT, interrupted);
    signal(SIGTERM, interrupted);
    signal(SIGHUP, interrupted);
    for (;;) {
        const pid_t r = waitpid(child, &a->status, WNOHANG);
        if (r == child || (r < 0 && errno != EINTR))
            return is_written(a->trace) ? 0 : -ECHILD;
        if (is_written(a->trace)) {
            end_child(child, &a->status);
            return 0;
        }
        if (most_s > 0 && solver_now_s() > until_s) {
            end_child(child, &a->status);
            return -ETIME;
        }
        nap();
    }
}

void attempt_end(struct attempt *a)
{
    if (!a->folder[0])
        return;
    unlink(a->trace);
    rmdir(a->folder);
    a->folder[0] = 0;
}
