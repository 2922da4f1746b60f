/* exec:CMD, a solver of the user's own: CMD is run by /bin/sh with the trace (opgraph-1) as its standard input, and its standard output is its
 * plan (plan-1). docs/formats.md has the contract. The plan is judged like every plan: solver.h.
 *
 * Input and output are files in memory, so CMD may read and write in any order, as little or as much as it likes, and no process waits for a pipe. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "offline/model/graph_write.h"
#include "offline/solvers/solver.h"

extern char **environ;

enum { VARIABLES = 5, VARIABLE = 64, NO_PLAN = 3, GRACE_S = 5, ANSWER_MOST = 1 << 30 };

/* The environment plus the request's variables (REMAT_LIMIT_BYTES, ..), whose texts lie in `to`. The caller frees the array. NULL: no memory. */
static char **with_question(const struct solver_opts *o, char to[VARIABLES][VARIABLE])
{
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **e = calloc(n + VARIABLES + 1, sizeof *e);
    if (!e)
        return NULL;
    snprintf(to[0], VARIABLE, "REMAT_LIMIT_BYTES=%lld", (long long)o->limit_bytes);
    snprintf(to[1], VARIABLE, "REMAT_TIME_LIMIT_S=%g", o->time_limit_s);
    snprintf(to[2], VARIABLE, "REMAT_SEED=%llu", (unsigned long long)o->seed);
    snprintf(to[3], VARIABLE, "REMAT_OFFLOAD=%d", o->offload != 0);
    snprintf(to[4], VARIABLE, "REMAT_DISABLE=1"); /* CMD may use the GPU, without remat in its process */
    for (size_t i = 0; i < n; i++) {
        size_t v = 0;
        while (v < VARIABLES && strncmp(environ[i], to[v], strcspn(to[v], "=") + 1))
            v++;
        if (v == VARIABLES)
            e[k++] = environ[i];
    }
    for (size_t v = 0; v < VARIABLES; v++)
        e[k++] = to[v];
    return e;
}

static void end_group(int signal)
{
    (void)signal;
    kill(0, SIGKILL);
}

/* The leader of CMD's process group. The kernel signals it when this process is gone (killed, say, by a run that has waited long enough), and it kills
 * every process that CMD has started; CMD's shell alone would leave a pipeline behind. Exits with CMD's status or signal. */
static void lead(pid_t us, const char *cmd, int in, int out, char **env)
{
    int status = 0;
    sigset_t term;
    setpgid(0, 0);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = end_group}, NULL);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const pid_t sh = getppid() == us ? fork() : -1;
    if (!sh) {
        signal(SIGTERM, SIG_DFL);
        if (dup2(in, 0) == 0 && dup2(out, 1) == 1)
            execle("/bin/sh", "sh", "-c", cmd, NULL, env);
        _exit(127);
    }
    while (sh > 0 && waitpid(sh, &status, 0) < 0 && errno == EINTR)
        ;
    if (sh > 0 && WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(sh > 0 ? WEXITSTATUS(status) : 127);
}

/* Start CMD in a process group of its own, which ends with this process. The pid of its leader, or -1. */
static pid_t begin(const char *cmd, int in, int out, char **env)
{
    const pid_t us = getpid(), child = fork();
    if (!child)
        lead(us, cmd, in, out, env);
    return child;
}

/* Time given to CMD: wall time and, with REMAT_PLAN_CLOCK=busy, minus the time that some process waited for a processor, down to an
 * eighth (solver.h). solver_now_s would count the CPU time of this process, which sleeps while CMD works. */
struct given {
    double wall_s, waited_s;
    int busy;
};

/* Seconds since boot in which some process waited for a processor; 0 where the kernel does not tell. */
static double waited_s(void)
{
    unsigned long long us = 0;
    FILE *f = fopen("/proc/pressure/cpu", "re");
    if (f) {
        if (fscanf(f, "some avg10=%*s avg60=%*s avg300=%*s total=%llu", &us) != 1)
            us = 0;
        fclose(f);
    }
    return (double)us * 1e-6;
}

static struct given given_now(void)
{
    const char *clock = getenv("REMAT_PLAN_CLOCK");
    struct given g = {.busy = clock && !strcmp(clock, "busy")};
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    g.wall_s = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    g.waited_s = g.busy ? waited_s() : 0;
    return g;
}

static double given_since(const struct given *began)
{
    enum { SLOWEST = 8 };
    const struct given now = given_now();
    const double wall = now.wall_s - began->wall_s, given = wall - (now.waited_s - began->waited_s);
    return given > wall / SLOWEST ? given : wall / SLOWEST;
}

/* Waits for CMD's leader and gets its wait status. -ETIME: killed after twice its time limit plus GRACE_S for start and end. */
static int end_of(pid_t child, double time_limit_s, int *status)
{
    const struct given began = given_now();
    long pause_ns = 200000;
    for (;;) {
        const pid_t r = waitpid(child, status, WNOHANG);
        if (r == child)
            return 0;
        if (r < 0 && errno != EINTR)
            return -errno;
        if (time_limit_s > 0 && given_since(&began) > 2 * time_limit_s + GRACE_S) {
            kill(-child, SIGKILL);
            kill(child, SIGKILL);
            while (waitpid(child, status, 0) < 0 && errno == EINTR)
                ;
            return -ETIME;
        }
        nanosleep(&(struct timespec){0, pause_ns}, NULL);
        pause_ns += pause_ns < 20000000 ? pause_ns / 4 : 0;
    }
}

/* Read CMD's output from fd as a plan. */
static int answer(const char *name, int fd, struct plan *out, struct solver_report *rep)
{
    struct stat st;
    char *text = fstat(fd, &st) || st.st_size > ANSWER_MOST ? NULL : malloc((size_t)st.st_size + 1);
    size_t n = 0;
    if (!text) {
        snprintf(rep->message, sizeof rep->message, "its plan is over 1 GiB, or memory is short");
        return -ENOMEM;
    }
    while (n < (size_t)st.st_size) {
        const ssize_t k = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n);
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    plan_free(out);
    const int rc = plan_read_text(name, text, n, out, rep->message, sizeof rep->message);
    free(text);
    return rc;
}

static int failed(int status, struct solver_report *rep)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_PLAN)
        return -ENOSPC;
    if (WIFEXITED(status))
        snprintf(rep->message, sizeof rep->message, "it ended with status %d%s", WEXITSTATUS(status),
                 WEXITSTATUS(status) == 127 ? ": there is no such command" : "");
    else
        snprintf(rep->message, sizeof rep->message, "it was ended by signal %d", WTERMSIG(status));
    return -ECHILD;
}

static int ask(const struct graph *g, const struct solver_opts *opts, int in, int to, struct plan *out, struct solver_report *rep)
{
    char texts[VARIABLES][VARIABLE];
    char **env = with_question(opts, texts);
    const int copy = dup(in);
    FILE *f = env && copy >= 0 ? fdopen(copy, "w") : NULL;
    int status = 0;
    if (!f) {
        free(env);
        if (copy >= 0)
            close(copy);
        return -ENOMEM;
    }
    graph_write(f, g);
    const int bad = ferror(f) | fclose(f) | (lseek(in, 0, SEEK_SET) != 0);
    const pid_t child = bad ? -1 : begin(opts->name + strlen(SOLVER_EXEC), in, to, env);
    free(env);
    if (child < 0)
        return bad ? -EIO : -errno;
    int rc = end_of(child, opts->time_limit_s, &status);
    if (rc == -ETIME)
        snprintf(rep->message, sizeof rep->message, "it had not answered in %g s, and was ended", 2 * opts->time_limit_s + GRACE_S);
    if (!rc && status)
        rc = failed(status, rep);
    return rc ? rc : answer(opts->name, to, out, rep);
}

static int exec_solve(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    const int in = memfd_create("remat-trace", MFD_CLOEXEC), to = memfd_create("remat-plan", MFD_CLOEXEC);
    int rc = in < 0 || to < 0 ? -errno : ask(g, opts, in, to, out, rep);
    if (in >= 0)
        close(in);
    if (to >= 0)
        close(to);
    for (size_t i = 0; !rc && !opts->offload && i < out->n_steps; i++)
        if (out->steps[i].kind == PLAN_OFFLOAD) {
            snprintf(rep->message, sizeof rep->message, "step %zu: copies to the host were not allowed (REMAT_OFFLOAD=0)", i);
            rc = -EPROTO;
        }
    return rc;
}

const struct solver solver_exec = {"exec", "a program of your own: exec:CMD", exec_solve};
