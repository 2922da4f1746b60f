/* self_test.c: see self_test.h. */
#include "offline/commands/self_test.h"

#include "offline/commands/cli.h"
#include "offline/commands/launch.h"
#include "offline/model/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_S = 60, LIMIT_PERCENT = 60, ARGUMENTS = 24 };

static const char torch_program[] =
    "import hashlib, torch\n"
    "torch.manual_seed(0)\n"
    "torch.use_deterministic_algorithms(True)\n"
    "blocks = [m for _ in range(8) for m in (torch.nn.Linear(512, 512), torch.nn.SiLU())]\n"
    "net = torch.nn.Sequential(*blocks).cuda()\n"
    "optim = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)\n"
    "x, y = torch.randn(4096, 512).cuda(), torch.randn(4096, 512).cuda()\n"
    "for _ in range(24):\n"
    "    optim.zero_grad()\n"
    "    loss = (net(x) - y).square().mean()\n"
    "    loss.backward()\n"
    "    optim.step()\n"
    "    print(loss.item().hex())\n"
    "print(hashlib.sha256(b''.join(p.detach().cpu().numpy().tobytes() for p in net.parameters())).hexdigest())\n";

struct place {
    char folder[64], remat[PATH_MAX], mlp[PATH_MAX];
    const char *what; /* the program, for people */
    bool simulated;
    int64_t until_ms;
    self_test_say *say;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell(const struct place *at, enum self_test_verdict v, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void tell(const struct place *at, enum self_test_verdict v, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    at->say(v, text);
}

static void path_in(const struct place *at, const char *run, const char *end, char to[PATH_MAX]) { snprintf(to, PATH_MAX, "%s/%s%s", at->folder, run, end); }

/* ---- one run ------------------------------------------------------------------------------------------------------------- */

static void redirect(const char *path, int fd)
{
    const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (to < 0 || dup2(to, fd) < 0)
        _exit(LAUNCH_FAILED);
}

static _Noreturn void become(const struct place *at, const char *run, const char *const options[])
{
    char out[PATH_MAX], err[PATH_MAX], stats[PATH_MAX];
    const char *argv[ARGUMENTS] = {at->remat, "run", "--quiet", "--stats", stats};
    size_t n = 5;
    path_in(at, run, ".out", out);
    path_in(at, run, ".err", err);
    path_in(at, run, ".json", stats);
    while (*options)
        argv[n++] = *options++;
    argv[n++] = "--";
    if (*at->mlp) {
        const char *const program[] = {at->mlp, "--iters", "24", "--batch", "4096", "--layers", "12", "--print-loss", "--checksum"};
        memcpy(argv + n, program, sizeof program);
    } else {
        const char *const program[] = {"python3", "-c", torch_program};
        memcpy(argv + n, program, sizeof program);
    }
    setpgid(0, 0);
    redirect(out, STDOUT_FILENO);
    redirect(err, STDERR_FILENO);
    setenv("XDG_CACHE_HOME", at->folder, 1); /* what is learnt here stays here */
    unsetenv("REMAT_CACHE");
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
    if (at->simulated)
        setenv("REMAT_SIMGPU", "1", 1);
    execv(at->remat, (char *const *)argv);
    _exit(LAUNCH_FAILED);
}

/* The last line of a file, for a message. */
static void last_line(const char *path, char *to, size_t room)
{
    char line[300];
    FILE *f = fopen(path, "re");
    snprintf(to, room, "it says nothing");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line)
            snprintf(to, room, "%s", line);
    }
    if (f)
        fclose(f);
}

/* 0: the program ended well. -ETIME: the minute is over. -EIO: it failed, which is told. */
static int run_one(const struct place *at, const char *run, const char *const options[])
{
    int status = 0;
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        become(at, run, options);
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        const struct timespec pause = {0, 20000000};
        if (now_ms() > at->until_ms) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -ETIME;
        }
        nanosleep(&pause, NULL);
    }
    if (pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    char err[PATH_MAX], why[300];
    path_in(at, run, ".err", err);
    last_line(err, why, sizeof why);
    tell(at, SELF_TEST_BAD, "%s: %s fails: %s", run, at->what, why);
    return -EIO;
}

static int64_t figure(const struct place *at, const char *run, const char *name)
{
    char path[PATH_MAX];
    path_in(at, run, ".json", path);
    json_t *root = json_load_file(path, 0, NULL);
    const int64_t v = json_integer_value(json_object_get(root, name));
    json_decref(root);
    return v;
}

static bool is_same_output(const struct place *at, const char *a, const char *b)
{
    char one[PATH_MAX], two[PATH_MAX];
    path_in(at, a, ".out", one);
    path_in(at, b, ".out", two);
    FILE *f = fopen(one, "re"), *g = fopen(two, "re");
    bool same = f && g;
    for (int c = 0; same && c != EOF;) {
        c = getc(f);
        same = c == getc(g);
    }
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    return same;
}

/* ---- the runs ------------------------------------------------------------------------------------------------------------- */

/* The program within its limit, in one way; false: the minute is over. */
static bool within(const struct place *at, const char *run, const char *policy, int64_t limit_bytes)
{
    char limit[32], peak_text[32], limit_text[32];
    snprintf(limit, sizeof limit, "%lld", (long long)limit_bytes);
    const char *const options[] = {"--limit", limit, "--policy", policy, NULL};
    const int rc = run_one(at, run, options);
    if (rc == -ETIME)
        return false;
    if (rc)
        return true;
    const int64_t peak = figure(at, run, "peak_physical_bytes"), planned = figure(at, run, "iterations_enforced");
    cli_bytes(peak, peak_text, sizeof peak_text);
    cli_bytes(limit_bytes, limit_text, sizeof limit_text);
    if (!is_same_output(at, "natively", run))
        tell(at, SELF_TEST_BAD, "%s: losses or parameters are not the native ones: report it, with `remat doctor` and the model of this GPU", run);
    else if (peak > limit_bytes)
        tell(at, SELF_TEST_BAD, "%s: %s of %s: the limit was passed", run, peak_text, limit_text);
    else if (!strcmp(policy, "plan") && !planned)
        tell(at, SELF_TEST_BAD, "%s: no iteration ran by a plan", run);
    else
        tell(at, SELF_TEST_OK, "%s: the same losses and parameters in %s of %s; %lld tensors copied out, %lld kernels run again, %lld of %lld iterations by a plan", run,
             peak_text, limit_text, (long long)figure(at, run, "swaps_out"), (long long)figure(at, run, "replays"), (long long)planned,
             (long long)figure(at, run, "iterations"));
    return true;
}

static void all_runs(const struct place *at)
{
    static const char *const off[] = {"--policy", "off", NULL}, *const none[] = {NULL};
    const int64_t began = now_ms();
    char size[32];
    int rc = run_one(at, "natively", off);
    if (!rc)
        rc = run_one(at, "watched", none);
    if (!rc && !is_same_output(at, "natively", "watched"))
        tell(at, SELF_TEST_BAD, "watched: losses or parameters are not the native ones: the program itself may not be repeatable on this GPU");
    if (!rc) {
        const int64_t peak = figure(at, "watched", "native_peak_bytes"), limit = peak * LIMIT_PERCENT / 100;
        if (peak <= 0) {
            tell(at, SELF_TEST_BAD, "watched: none of the memory of %s was seen: it drops the library, or uses no GPU", at->what);
            return;
        }
        tell(at, SELF_TEST_OK, "natively: %s, 24 steps, %s", at->what, cli_bytes(peak, size, sizeof size));
        rc = within(at, "swapping", "swap", limit) && within(at, "by a plan", "plan", limit) ? 0 : -ETIME;
    }
    if (rc == -ETIME)
        tell(at, SELF_TEST_NOTE, "stopped after a minute: the lines before this one are what was tried");
    else if (!rc)
        tell(at, SELF_TEST_OK, "it took %lld s", (long long)(now_ms() - began + 500) / 1000);
}

static int unlink_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path), 0;
}

void self_test(self_test_say *say)
{
    struct place at = {.until_ms = now_ms() + MOST_S * 1000, .say = say, .what = "a model of PyTorch's"};
    const char *tmp = getenv("TMPDIR");
    char driver[PATH_MAX];
    snprintf(at.folder, sizeof at.folder, "%s/remat-self-test-XXXXXX", tmp && *tmp && strlen(tmp) < 32 ? tmp : "/tmp");
    if (beside_self(at.remat, sizeof at.remat) || !mkdtemp(at.folder)) {
        tell(&at, SELF_TEST_BAD, "%s: %s", at.folder, strerror(errno));
        return;
    }
    at.simulated = !launch_has_gpu(driver, sizeof driver);
    if (beside_find("workloads/mlp", at.mlp, sizeof at.mlp))
        *at.mlp = '\0';
    else
        at.what = at.simulated ? "workloads/mlp on the simulated GPU" : "workloads/mlp";
    all_runs(&at);
    nftw(at.folder, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
}
