/* The planner is a process of its own, `remat plan`, without the preload: training goes on while it thinks. */
#include "policy/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static pid_t child = -1;
static char dir[64], trace_path[96], plan_path[96];
static enum planner_state state;
static int last_status, tied = -1; /* tied: our end of the pipe that ties the child to us */

/* Processes that were killed while they planned left a folder behind: whoever plans next takes it away. */
static void sweep(void)
{
    static const char *const files[] = {"trace.json", "plan.json", "plan.json.best", "plan.err"};
    DIR *d = opendir("/tmp");
    struct dirent *e;
    while (d && (e = readdir(d))) {
        long pid;
        char path[320];
        struct stat st;
        if (sscanf(e->d_name, "remat-%ld-", &pid) != 1 || pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        snprintf(path, sizeof path, "/tmp/%s", e->d_name);
        if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
            continue;
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            snprintf(path, sizeof path, "/tmp/%s/%s", e->d_name, files[i]);
            unlink(path);
        }
        snprintf(path, sizeof path, "/tmp/%s", e->d_name);
        rmdir(path);
    }
    if (d)
        closedir(d);
}

static void remove_dir(void)
{
    if (!dir[0])
        return;
    char path[96];
    snprintf(path, sizeof path, "%s/plan.err", dir);
    unlink(path);
    if (!getenv("REMAT_KEEP_PLAN")) {
        unlink(trace_path);
        unlink(plan_path);
        rmdir(dir);
    }
    dir[0] = 0;
}

static int make_dir(void)
{
    if (dir[0])
        return 0;
    sweep();
    snprintf(dir, sizeof dir, "/tmp/remat-%ld-XXXXXX", (long)getpid());
    if (!mkdtemp(dir)) {
        dir[0] = 0;
        return -errno;
    }
    snprintf(trace_path, sizeof trace_path, "%s/trace.json", dir);
    snprintf(plan_path, sizeof plan_path, "%s/plan.json", dir);
    return 0;
}

/* The environment without what would pull this library into the child. */
static char **clean_environment(void)
{
    size_t n = 0, k = 0;
    while (environ[n])
        n++;
    char **e = calloc(n + 2, sizeof *e);
    for (size_t i = 0; e && i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "REMAT_", 6))
            e[k++] = environ[i];
    if (e)
        e[k] = "REMAT_DISABLE=1";
    return e;
}

int planner_start(uint64_t limit_bytes, bool offload)
{
    if (child > 0)
        return -EBUSY;
    if (!rt.cfg.remat_bin[0])
        return -ENOENT;
    int r = make_dir();
    if (!r)
        r = record_write(&ex.rec, trace_path, rt.gran);
    if (r)
        return r;
    unlink(plan_path);
    char limit[32], seconds[32], *solver = rt.cfg.policy == POLICY_DTR ? "dtr" : rt.cfg.solver[0] ? rt.cfg.solver : "auto";
    unsigned s = 1 + ex.rec.n_ops / 500;
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)limit_bytes);
    snprintf(seconds, sizeof seconds, "%u", s > 20 ? 20 : s);
    char *argv[] = {rt.cfg.remat_bin, "plan",    trace_path, "--limit",      limit, "--solver", solver,
                    "--time-limit",   seconds,   "-o",       plan_path, offload ? "--offload" : NULL, NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none;
    char **env = clean_environment();
    if (!env)
        return -ENOMEM;
    int tie[2] = {-1, -1};
    if (pipe2(tie, O_CLOEXEC))
        tie[0] = tie[1] = -1;
    posix_spawn_file_actions_init(&fa);
    if (tie[0] >= 0) /* under its own number: without the close-on-exec flag */
        posix_spawn_file_actions_adddup2(&fa, tie[0], tie[0]);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    char err_path[96];
    snprintf(err_path, sizeof err_path, "%s/plan.err", dir);
    posix_spawn_file_actions_addopen(&fa, 2, err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawnattr_init(&at);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
    r = posix_spawn(&child, rt.cfg.remat_bin, &fa, &at, argv, env);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    free(env);
    if (tie[0] >= 0) {
        /* The end we hold closes with us, however we end; SIGIO then ends the child, which does not handle it. */
        if (!r && (fcntl(tie[0], F_SETOWN, child) || fcntl(tie[0], F_SETFL, O_ASYNC)))
            log_say(SAY_DEBUG, "the planner would outlive this process");
        close(tie[0]);
        if (tied >= 0)
            close(tied);
        tied = tie[1];
    }
    if (r) {
        child = -1;
        return -r;
    }
    state = PLANNER_RUNNING;
    return 0;
}

void planner_say_why(void)
{
    char path[96], line[400] = "";
    snprintf(path, sizeof path, "%s/plan.err", dir);
    FILE *f = fopen(path, "re");
    if (f) {
        if (!fgets(line, sizeof line, f))
            line[0] = 0;
        fclose(f);
    }
    line[strcspn(line, "\n")] = 0;
    int status = last_status;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        log_say(SAY_WARN, "no plan meets the limit (%s); memory is held by swapping", line);
    else
        log_say(SAY_WARN, "remat plan failed (status %d: %s); memory is held by swapping", status, line);
}

enum planner_state planner_poll(int wait_ms)
{
    struct timespec ts = {0, 2000000};
    for (int waited = 0; state == PLANNER_RUNNING; waited += 2) {
        int status;
        pid_t r = waitpid(child, &status, WNOHANG);
        if (r == child || (r < 0 && errno != EINTR)) {
            /* the program may have reaped it (SIGCHLD ignored): the file tells */
            bool ok = r == child ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : access(plan_path, R_OK) == 0;
            pid_t child_was = child;
            child = -1;
            if (tied >= 0)
                close(tied);
            tied = -1;
            state = ok ? PLANNER_DONE : PLANNER_FAILED;
            last_status = r == child_was ? status : 0;
            break;
        }
        if (waited >= wait_ms)
            break;
        nanosleep(&ts, NULL);
    }
    enum planner_state s = state;
    if (s == PLANNER_DONE || s == PLANNER_FAILED)
        state = PLANNER_IDLE;
    return s;
}

const char *planner_path(void) { return plan_path; }

void planner_tidy(void)
{
    if (child <= 0)
        remove_dir();
}

void planner_stop(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        child = -1;
    }
    remove_dir();
}
