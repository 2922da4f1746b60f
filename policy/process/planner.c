/* planner.c: see planner.h. */
#include "policy/process/planner.h"
#include "policy/process/stats.h"
#include "policy/process/story.h"
#include "tracer/trace_write.h"

#include "policy/process/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const double QUICK_LEAST = 0.2;
static const double AT_ONCE_S = 0.4; /* seconds for a fair plan: swapped iterations, each as long as three planned ones, would run until the good plan comes */

enum {
    FILE_PATH = SCRATCH_PATH + 16,
    SECONDS_MOST = 40,
    SILENT_S = 1,
    LATE_TIMES = 12, /* the planner is late after so many times its seconds; on a busy machine it may take eight times its seconds (solver.h) */
    LATE_MORE_S = 5 /* seconds more, for the planner's work beside solving */
};

struct planner {
    pid_t child; /* 0: no planner runs */
    struct scratch scratch;
    char trace_path[FILE_PATH], plan_path[FILE_PATH];
    enum planner_state state;
    int last_status, tied; /* tied: this process's end of the pipe that ends the child with it; -1: none */
    uint64_t late_ns;      /* the child is killed after this time */
    uint64_t limit_bytes;  /* limit that the latest plan was asked for */
    bool late;             /* the child had not answered by late_ns */
    bool own_late;         /* `remat plan` has ended a solver of the user's own, which had not answered in its time */
};

int planner_init(struct device *d)
{
    d->planner = calloc(1, sizeof *d->planner);
    if (!d->planner)
        return -ENOMEM;
    d->planner->tied = -1;
    return 0;
}

/* True: the user keeps the folder. */
static bool is_kept(void) { return getenv("REMAT_KEEP_PLAN") != NULL; }

int planner_folder(struct device *d)
{
    struct planner *pl = d->planner;
    if (pl->scratch.path[0])
        return 0;
    const unsigned long long others = log_own_writes_begin();
    const int r = scratch_make(&pl->scratch, is_kept());
    log_own_writes_end(others);
    if (r)
        return r;
    snprintf(pl->trace_path, sizeof pl->trace_path, "%s/trace.json", pl->scratch.path);
    snprintf(pl->plan_path, sizeof pl->plan_path, "%s/plan.json", pl->scratch.path);
    return 0;
}

/* The environment without the variables that would pull this library into the child; the caller frees the array. NULL: no memory. */
static char **clean_environment(bool swaps_else)
{
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **e = calloc(n + 5, sizeof *e);
    for (size_t i = 0; e && i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "REMAT_", 6))
            e[k++] = environ[i];
    if (e) {
        e[k++] = "REMAT_DISABLE=1";
        e[k++] = "REMAT_PLAN_COPIES=until-used"; /* copies to the host begin after a buffer's last op, as when a plan is followed: solver.h */
        e[k++] = "REMAT_PLAN_CLOCK=busy"; /* the program may keep every core busy: solver.h */
        if (swaps_else)
            e[k] = "REMAT_PLAN_BELOW=swapping"; /* a plan that takes longer is worse than none: cmd_plan.c */
    }
    return e;
}

static double usual_seconds(const struct device *d, uint32_t n_ops)
{
    double s = 1 + n_ops / 100;
    if (d->cfg->policy != POLICY_PLAN && n_ops < 100) /* the program does not wait for the plan, and may be over soon if its iterations are short */
        s *= QUICK_LEAST + (1 - QUICK_LEAST) * n_ops / 100;
    return s;
}

bool planner_is_slow(const struct device *d, const struct record *rec)
{
    return d->cfg->policy == POLICY_AUTO && !strcmp(d->cfg->solver, "best") && usual_seconds(d, rec->n_ops) > 2 * AT_ONCE_S;
}

int planner_start(struct device *d, const struct record *rec, uint64_t limit_bytes, bool offload, unsigned patience)
{
    if (d->planner->child > 0)
        return -EBUSY;
    if (!d->cfg->remat_bin[0])
        return -ENOENT;
    const unsigned long long others = log_own_writes_begin();
    int r = planner_folder(d);
    if (!r)
        r = record_write(rec, d->planner->trace_path, d->mem.gran);
    log_own_writes_end(others);
    if (r)
        return r;
    unlink(d->planner->plan_path);
    char limit[32], seconds[32];
    const char *solver = d->cfg->policy == POLICY_DTR ? "dtr" : d->cfg->solver[0] ? d->cfg->solver : "best";
    double s = patience == PLANNER_AT_ONCE ? AT_ONCE_S : usual_seconds(d, rec->n_ops) * patience;
    s = s > SECONDS_MOST ? SECONDS_MOST : s;
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)limit_bytes);
    snprintf(seconds, sizeof seconds, "%g", s);
    const char *argv[] = {d->cfg->remat_bin, "plan",    d->planner->trace_path, "--limit",      limit, "--solver", solver,
                    "--time-limit",   seconds,   "-o",       d->planner->plan_path, offload ? "--offload" : "--no-offload", NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none;
    char **env = clean_environment(d->cfg->policy == POLICY_AUTO);
    if (!env)
        return -ENOMEM;
    int tie[2] = {-1, -1};
    if (pipe2(tie, O_CLOEXEC))
        tie[0] = tie[1] = -1;
    posix_spawn_file_actions_init(&fa);
    if (tie[0] >= 0) /* dup2 onto the descriptor itself: clears its close-on-exec flag */
        posix_spawn_file_actions_adddup2(&fa, tie[0], tie[0]);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    char err_path[FILE_PATH];
    snprintf(err_path, sizeof err_path, "%s/plan.err", d->planner->scratch.path);
    posix_spawn_file_actions_addopen(&fa, 2, err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawnattr_init(&at);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
    r = posix_spawn(&d->planner->child, d->cfg->remat_bin, &fa, &at, (char *const *)argv, env);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    free(env);
    if (tie[0] >= 0) {
        /* The end tie[1] closes when this process ends, in whatever way; SIGIO then ends the child, which does not handle that signal. */
        if (!r && (fcntl(tie[0], F_SETOWN, d->planner->child) || fcntl(tie[0], F_SETFL, O_ASYNC)))
            log_say(SAY_DEBUG, "the planner would outlive this process");
        close(tie[0]);
        if (d->planner->tied >= 0)
            close(d->planner->tied);
        d->planner->tied = tie[1];
    }
    if (r) {
        d->planner->child = 0;
        return -r;
    }
    d->planner->state = PLANNER_RUNNING;
    d->planner->late = d->planner->own_late = false;
    d->planner->limit_bytes = limit_bytes;
    d->st.planning_since_ns = stats_now_ns();
    d->planner->late_ns = d->st.planning_since_ns + (uint64_t)((s * LATE_TIMES + LATE_MORE_S) * 1e9);
    return 0;
}

void planner_say_why(struct device *d)
{
    char path[FILE_PATH], line[400] = "";
    snprintf(path, sizeof path, "%s/plan.err", d->planner->scratch.path);
    FILE *f = fopen(path, "re");
    if (f) {
        if (!fgets(line, sizeof line, f))
            line[0] = 0;
        fclose(f);
    }
    line[strcspn(line, "\n")] = 0;
    int status = d->planner->last_status;
    if (d->planner->late)
        story_warns(d, STORY_SWAPPING, "remat plan has not answered in many times its seconds: it was ended; memory is held by swapping");
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 3 && strstr(line, "swapping takes less")) {
        log_say(SAY_INFO, "no plan is followed (%s); memory is held by swapping", line);
        story_is(d, STORY_SWAPPING, "it takes less than any plan that was found");
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 3) { /* infeasible */
        /* `asked` is the limit without the memory that no plan can use */
        const char *at = strstr(line, "floor is ");
        const uint64_t floor = at ? strtoull(at + sizeof "floor is " - 1, NULL, 10) : 0, asked = d->planner->limit_bytes;
        if (floor > asked && asked < d->mem.limit_bytes)
            story_warns(d, STORY_SWAPPING, "no plan meets the limit, and none can below --limit %lluM (%s); memory is held by swapping",
                        (unsigned long long)(floor + d->mem.limit_bytes - asked + (1 << 20) - 1) >> 20, line);
        else
            story_warns(d, STORY_SWAPPING, "no plan meets the limit (%s); memory is held by swapping", line);
    }
    else
        story_warns(d, STORY_SWAPPING, "remat plan failed (status %d: %s); memory is held by swapping", status, line);
}

/* Whether plan.err has `words` in any line: lines of a solver of the user's come before the child's own. */
static bool was_said(const struct planner *pl, const char *words)
{
    char path[FILE_PATH], line[400];
    bool said = false;
    snprintf(path, sizeof path, "%s/plan.err", pl->scratch.path);
    FILE *f = fopen(path, "re");
    while (f && !said && fgets(line, sizeof line, f))
        said = strstr(line, words) != NULL;
    if (f)
        fclose(f);
    return said;
}

bool planner_is_late(const struct device *d) { return d->planner->late || d->planner->own_late; }

enum planner_state planner_poll(struct device *d)
{
    struct planner *pl = d->planner;
    if (pl->state == PLANNER_RUNNING) {
        int status;
        const unsigned long long others = log_own_writes_begin();
        pid_t r = waitpid(pl->child, &status, WNOHANG);
        log_own_writes_end(others); /* the kernel adds a child's written bytes to its parent's when the child is waited for */
        if (!r && stats_now_ns() > pl->late_ns) {
            pl->late = true;
            kill(pl->child, SIGKILL);
            r = waitpid(pl->child, &status, 0);
        }
        if (r == pl->child || (r < 0 && errno != EINTR)) {
            /* the program may have reaped the child (SIGCHLD ignored): then the plan's file tells whether it succeeded */
            bool ok = pl->late ? false : r == pl->child ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : access(pl->plan_path, R_OK) == 0;
            pl->last_status = r == pl->child ? status : 0;
            pl->own_late = !ok && was_said(pl, "it had not answered in"); /* offline/solvers/exec */
            pl->child = 0;
            stats_span_ends(&d->st.planning_since_ns, &d->st.planning_ns);
            if (pl->tied >= 0)
                close(pl->tied);
            pl->tied = -1;
            pl->state = ok ? PLANNER_DONE : PLANNER_FAILED;
        }
    }
    enum planner_state s = pl->state;
    if (s == PLANNER_DONE || s == PLANNER_FAILED)
        pl->state = PLANNER_IDLE;
    return s;
}

void planner_wait(pid_t child, int ms, uint64_t began_ns)
{
    struct timespec ts = {0, 2000000};
    siginfo_t info;
    uint64_t said_s = SILENT_S;
    for (const uint64_t end = stats_now_ns() + (uint64_t)ms * 1000000; stats_now_ns() < end;) {
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid)
            return;
        const uint64_t s = (stats_now_ns() - began_ns) / 1000000000u;
        if (s > said_s)
            log_passing("planning what to drop and make again, %llu s", (unsigned long long)(said_s = s));
        nanosleep(&ts, NULL);
    }
}

pid_t planner_child(const struct device *d) { return d->planner->child; }

const char *planner_path(struct device *d) { return d->planner->plan_path; }

void planner_stop(struct device *d)
{
    if (d->planner->child > 0) {
        kill(d->planner->child, SIGKILL);
        waitpid(d->planner->child, NULL, 0);
        d->planner->child = 0;
        stats_span_ends(&d->st.planning_since_ns, &d->st.planning_ns);
    }
    if (d->planner->tied >= 0)
        close(d->planner->tied);
    d->planner->tied = -1;
    d->planner->state = PLANNER_IDLE;
    scratch_remove(&d->planner->scratch, is_kept());
}
