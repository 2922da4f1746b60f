/* The planner that programs start in the tests: `planner plan TRACE ... -o PLAN`, in the place of `remat plan`.
 *
 * Two things make it quick. Where a running program asks for `best`, the min-cut solver is asked first, for a tenth of the seconds, and `best` only
 * where min-cut finds no plan: of a typical test's time four fifths would be annealing, and its question is what the runtime does with a plan, not
 * how good the plan is. And a question that was asked before (same trace byte for byte, same options, same build of remat) gets the answer that it got then, plan or
 * refusal, from $B/plans. A test whose question is the planning itself runs with harness.run(..., planner=harness.OWN_PLANNER), past this program.
 *
 *   TEST_PLANNER  the remat that plans; default: ../remat beside this program's folder
 */
#include "offline/model/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const double MINCUT_PART = 0.1, BEST_PART = 0.25; /* of the seconds asked for */
enum { PATH = 4096, NO_PLAN = 3 /* exit status of `remat plan`: no plan meets the limit */ };

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "test planner: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The whole file, malloc'ed; NULL: it cannot be read. */
static char *read_all(const char *path, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    char *p = malloc((size_t)st.st_size + 1);
    size_t got = 0;
    while (p && got < (size_t)st.st_size) {
        ssize_t k = read(fd, p + got, (size_t)st.st_size - got);
        if (k <= 0)
            break;
        got += (size_t)k;
    }
    close(fd);
    *n = got;
    return p;
}

/* Whole or not at all: programs that ask the same at the same time each write one of their own. */
static void write_all(const char *path, const char *p, size_t n)
{
    char tmp[PATH + 128];
    if (snprintf(tmp, sizeof tmp, "%s.%ld", path, (long)getpid()) >= (int)sizeof tmp)
        return;
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    bool whole = write(fd, p, n) == (ssize_t)n;
    if (close(fd) || !whole || rename(tmp, path))
        unlink(tmp);
}

/* The hash of the trace, of every word of the question but for its file names, and of the build that answers. */
static void key_of(int argc, char **argv, const char *trace, const char *real, char hex[65])
{
    struct stat st;
    size_t n, at;
    if (stat(real, &st))
        die(real);
    char *text = read_all(trace, &n);
    if (!text)
        die(trace);
    char words[PATH];
    const char *below = getenv("REMAT_PLAN_BELOW"); /* offline/commands/cmd_plan.c */
    at = (size_t)snprintf(words, sizeof words, "%lld.%ld %lld %s", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_size, below ? below : "");
    for (int i = 1; i < argc && at < sizeof words; i++)
        if (argv[i] != trace && strcmp(argv[i - 1], "-o"))
            at += (size_t)snprintf(words + at, sizeof words - at, " %s", argv[i]);
    if (at >= sizeof words)
        at = sizeof words - 1;
    text = realloc(text, n + at);
    if (!text)
        die("memory");
    memcpy(text + n, words, at);
    sha256_hex(text, n + at, hex);
    free(text);
}

struct question {
    int solver, seconds, out; /* where its words stand in argv; 0: it has none */
    const char *asked_seconds;
};

/* The question with another solver and a part of the seconds. */
static int run(const char *real, char **argv, const struct question *q, const char *solver, double part)
{
    int status;
    char seconds[32];
    argv[0] = (char *)real;
    argv[q->solver] = (char *)solver;
    if (q->seconds) {
        snprintf(seconds, sizeof seconds, "%g", atof(q->asked_seconds) * part);
        argv[q->seconds] = seconds;
    }
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the program that asked ends its planner by a signal */
        execv(real, argv);
        die(real);
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            die("wait");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    char real[PATH + 16], dir[PATH + 16], known[PATH + 96], refused[PATH + 96], hex[65];
    ssize_t k = readlink("/proc/self/exe", dir, PATH - 16);
    dir[k > 0 ? k : 0] = 0;
    for (int i = 0; i < 2; i++) /* the folder that this program's is in: $B */
        if (strrchr(dir, '/'))
            *strrchr(dir, '/') = 0;
    const char *given = getenv("TEST_PLANNER"), *trace = argc > 2 ? argv[2] : "";
    if (snprintf(real, sizeof real, "%s%s", given ? given : dir, given ? "" : "/remat") >= (int)sizeof real)
        die("the planner's name is too long");
    struct question q = {0};
    for (int i = 3; i + 1 < argc; i++) {
        q.out = strcmp(argv[i], "-o") ? q.out : i + 1;
        q.solver = strcmp(argv[i], "--solver") ? q.solver : i + 1;
        q.seconds = strcmp(argv[i], "--time-limit") ? q.seconds : i + 1;
    }
    if (argc < 3 || strcmp(argv[1], "plan") || !q.out || !q.solver) {
        fprintf(stderr, "test planner: a program asks for `plan TRACE --solver S .. -o PLAN`, and nothing else\n");
        return 2;
    }
    const char *solver = argv[q.solver], *out = argv[q.out];
    q.asked_seconds = q.seconds ? argv[q.seconds] : NULL;
    strcat(dir, "/plans");
    mkdir(dir, 0755);
    key_of(argc, argv, trace, real, hex);
    if (snprintf(known, sizeof known, "%s/%s.json", dir, hex) >= (int)sizeof known || snprintf(refused, sizeof refused, "%s/%s.none", dir, hex) >= (int)sizeof refused)
        die("the build directory's name is too long");
    size_t n;
    char *p = read_all(known, &n);
    if (p) {
        write_all(out, p, n);
        return access(out, R_OK) ? 1 : 0;
    }
    p = read_all(refused, &n);
    if (p) {
        fwrite(p, 1, n, stderr);
        return NO_PLAN;
    }
    const bool best = !strcmp(solver, "best");
    int rc = best ? run(real, argv, &q, "mincut", MINCUT_PART) : NO_PLAN;
    if (rc == NO_PLAN)
        rc = run(real, argv, &q, solver, best ? BEST_PART : 1);
    if (rc == 0 && (p = read_all(out, &n)))
        write_all(known, p, n);
    else if (rc == NO_PLAN) {
        static const char none[] = "no plan, as the last time this was asked\n";
        write_all(refused, none, sizeof none - 1);
    }
    return rc;
}
