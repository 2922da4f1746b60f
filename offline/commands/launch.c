/* launch.c: see launch.h. */
#include "offline/commands/launch.h"

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/commands/target.h"
#include "offline/model/beside.h"
#include "offline/model/plan.h"
#include "offline/solvers/solver.h"
#include "policy/share/ledger.h"
#include "tracer/machine/alloc_conf.h"
#include "tracer/machine/size_text.h"
#include "tracer/output.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int launch_bad(const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fprintf(stderr, "remat[%d]: %s\n", (int)getpid(), line);
    return LAUNCH_FAILED;
}

int launch_split(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return i;
    return argc;
}

static int set(const char *name, const char *value)
{
    if (value && setenv(name, value, 1))
        return launch_bad("cannot set %s: %s", name, strerror(errno));
    return 0;
}

/* ---- PyTorch's allocator ------------------------------------------------------------------------------------------------ */

/* What serves the policy, where nobody asked: the program that is left alone, and not recorded, keeps its own. */
static enum alloc_conf allocator(const struct launch_settings *s)
{
    bool left_alone = s->policy && !strcmp(s->policy, "off") && !s->trace_out && !s->trace;
    return s->allocator ? alloc_conf_of(s->allocator) : left_alone ? ALLOC_CONF_NONE : ALLOC_CONF_ASYNC;
}

/* What the user set under one name only counts under both. */
static int set_alloc_conf(enum alloc_conf how)
{
    const char *given[ALLOC_CONF_NAMES];
    char out[ALLOC_CONF_NAMES][4096], dropped[4096];
    if (how == ALLOC_CONF_NONE) /* of a run within a run, too */
        return unsetenv("REMAT_ALLOCATOR") ? launch_bad("cannot set REMAT_ALLOCATOR: %s", strerror(errno)) : 0;
    for (int i = 0; i < ALLOC_CONF_NAMES; i++)
        given[i] = getenv(alloc_conf_names[i]);
    for (int i = 0; i < ALLOC_CONF_NAMES; i++) {
        const char *user = given[i] && *given[i] ? given[i] : given[!i];
        if (alloc_conf_merge(how, user, out[i], sizeof out[i], dropped, sizeof dropped))
            return launch_bad("%s is too long", alloc_conf_names[i]);
        if (*dropped && given[i] && *given[i])
            launch_bad("%s: left out %s, which the %s allocator that remat needs cannot have", alloc_conf_names[i], dropped,
                       how == ALLOC_CONF_EACH ? "uncached" : "stream-ordered");
    }
    for (int i = 0; i < ALLOC_CONF_NAMES; i++)
        if (*out[i] || given[i] ? setenv(alloc_conf_names[i], out[i], 1) : 0)
            return launch_bad("cannot set %s: %s", alloc_conf_names[i], strerror(errno));
    int rc = how == ALLOC_CONF_EACH ? set(ALLOC_CONF_NO_CACHE, "1") : 0;
    return rc ? rc : set("REMAT_ALLOCATOR", how == ALLOC_CONF_EACH ? "each" : "async");
}

/* ---- the library --------------------------------------------------------------------------------------------------------- */

/* A sanitizer's runtime refuses to come second. */
static bool is_sanitizer(const char *s, size_t n)
{
    static const char *const names[] = {"libasan.so", "libtsan.so", "liblsan.so", "libclang_rt."};
    const char *slash = memrchr(s, '/', n), *base = slash ? slash + 1 : s;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((size_t)(s + n - base) >= strlen(names[i]) && memcmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int add_path(char *out, size_t room, const char *s, size_t n)
{
    size_t used = strlen(out);
    if (used + n + 2 > room)
        return -ENAMETOOLONG;
    snprintf(out + used, room - used, "%s%.*s", used ? ":" : "", (int)n, s);
    return 0;
}

/* The entries of `before` that are sanitizers (or are not), added to `out`; `lib` itself is left out. */
static int add_entries(char *out, size_t room, const char *before, const char *lib, bool sanitizers)
{
    int rc = 0;
    while (!rc && before && *before) {
        before += strspn(before, ": "); /* the loader takes both */
        size_t n = strcspn(before, ": ");
        bool is_lib = strlen(lib) == n && memcmp(before, lib, n) == 0;
        if (n && !is_lib && is_sanitizer(before, n) == sanitizers)
            rc = add_path(out, room, before, n);
        before += n;
    }
    return rc;
}

int launch_preload(const char *lib, const char *before, char *out, size_t room)
{
    if (!room)
        return -ENAMETOOLONG;
    *out = '\0';
    int rc = add_entries(out, room, before, lib, true);
    if (!rc)
        rc = add_path(out, room, lib, strlen(lib));
    return rc ? rc : add_entries(out, room, before, lib, false);
}

/* Puts one library in front of LD_PRELOAD. */
static int add_preload(const char *lib)
{
    char value[4 * PATH_MAX];
    if (strpbrk(lib, ": "))
        return launch_bad("%s: the loader cannot preload a path with a space or a colon in it; move remat", lib);
    if (launch_preload(lib, getenv("LD_PRELOAD"), value, sizeof value))
        return launch_bad("LD_PRELOAD is too long");
    if (setenv("LD_PRELOAD", value, 1))
        return launch_bad("cannot set LD_PRELOAD: %s", strerror(errno));
    return 0;
}

static int set_preload(void)
{
    char lib[PATH_MAX], self[PATH_MAX];
    int rc = beside_find("libremat.so", lib, sizeof lib);
    if (rc)
        return launch_bad("libremat.so is neither beside the remat executable nor in ../lib or ../lib/remat (%s)", strerror(-rc));
    rc = add_preload(lib);
    if (!rc && beside_self(self, sizeof self) == 0 && setenv("REMAT_BIN", self, 1))
        rc = launch_bad("cannot set REMAT_BIN: %s", strerror(errno));
    return rc;
}

/* ---- the simulated GPU ---------------------------------------------------------------------------------------------------- */

bool launch_has_gpu(char *driver, size_t room)
{
    *driver = '\0';
    void *h = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    void *init = h ? dlsym(h, "cuInit") : NULL;
    Dl_info info;
    if (init && dladdr(init, &info) && info.dli_fname)
        snprintf(driver, room, "%s", info.dli_fname);
    else if (h)
        snprintf(driver, room, "libcuda.so.1");
    bool simulated = strstr(driver, "/simgpu/") != NULL;
    if (h)
        dlclose(h);
    return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0 || (*driver && !simulated);
}

/* PyTorch finds NVIDIA's runtime, BLAS and profiling interface by DT_RPATH, which goes before LD_LIBRARY_PATH: only a preloaded library of the same
 * SONAME comes first. Whatever is built of the simulated ones is preloaded for every command: a script may start Python, and
 * a program that does not use the runtime never calls into it. */
static int set_simulated_runtime(void)
{
    static const char *const libs[] = {"simcuda/libcublasLt.so.13", "simcuda/libcublas.so.13", "simcuda/libcudart.so.13", "simcuda/libcupti.so.13"};
    char lib[PATH_MAX];
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof libs / sizeof libs[0]; i++)
        if (beside_find(libs[i], lib, sizeof lib) == 0)
            rc = add_preload(lib);
    return rc;
}

static int set_simulator(void)
{
    const char *want = getenv("REMAT_SIMGPU"), *path = getenv("LD_LIBRARY_PATH");
    char lib[PATH_MAX], driver[PATH_MAX];
    if (!want || strcmp(want, "1") != 0 || launch_has_gpu(driver, sizeof driver))
        return 0;
    if (beside_find("simgpu/libcuda.so.1", lib, sizeof lib - 1))
        return launch_bad("REMAT_SIMGPU=1, but no simulated GPU lies beside the remat executable or in ../lib/remat: build it (make), pip install 'remat[sim]' "
                          "or unpack remat-sim");
    *strrchr(lib, '/') = '\0';
    char value[4 * PATH_MAX];
    if ((size_t)snprintf(value, sizeof value, "%s%s%s", lib, path && *path ? ":" : "", path ? path : "") >= sizeof value)
        return launch_bad("LD_LIBRARY_PATH is too long");
    if (setenv("LD_LIBRARY_PATH", value, 1))
        return launch_bad("cannot set LD_LIBRARY_PATH: %s", strerror(errno));
    return set_simulated_runtime();
}

/* ---- settings --------------------------------------------------------------------------------------------------------------- */

static int set_bytes(const char *name, int64_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)bytes);
    return set(name, text);
}

/* A run within a run: what the outer ones allow goes along beside the new limit, and the library holds to the least. */
static int pass_outer_limit(void)
{
    const char *limit = getenv("REMAT_LIMIT"), *more = getenv("REMAT_LIMIT_MAX");
    char all[512];
    if (!getenv("REMAT_RUN_STARTED") || !limit || !*limit)
        return 0;
    bool is_there = more && *more;
    if ((size_t)snprintf(all, sizeof all, "%s%s%s", is_there ? more : "", is_there ? "," : "", limit) >= sizeof all)
        return launch_bad("too many runs within runs: their limits fill %zu characters", sizeof all);
    return set("REMAT_LIMIT_MAX", all);
}

enum { LEAST_LIMIT = 1 << 20, BARE_MOST = 1000 }; /* so small a number without a unit is one whose unit was forgotten */

static int set_limit(const char *text)
{
    int64_t parts;
    int rc = pass_outer_limit();
    if (rc || !text)
        return rc;
    size_t n = strlen(text);
    if (n && text[n - 1] == '%') {
        /* of the device's memory: the library knows it. 10000: steps of a hundredth of a percent */
        if (cli_size(text, 10000, &parts) || parts < 1 || parts > 10000)
            return launch_bad("--limit %s: a percentage of the device's memory lies above 0%% and goes up to 100%%", text);
        return set("REMAT_LIMIT", text);
    }
    if (cli_size(text, 0, &parts))
        return launch_bad("--limit %s is neither a size (12G, 1536MiB, bytes) nor a percentage (50%%)", text);
    if (parts == 0)
        return launch_bad("--limit 0: no program fits; leave --limit out to run without one");
    if (parts <= BARE_MOST && strspn(text, "0123456789") == n)
        return launch_bad(parts <= 100 ? "--limit %s: %s bytes: did you mean %sG, or %s%%? A percentage is of the device's memory" : "--limit %s: %s bytes: did you mean %sG, or %sM?",
                          text, text, text, text);
    if (parts < LEAST_LIMIT)
        return launch_bad("--limit %s: %lld bytes, and no program fits in less than 1 MiB", text, (long long)parts);
    return set_bytes("REMAT_LIMIT", parts);
}

/* Refused now, in one line, rather than inside the program. What only the device can tell, the library says. */
static int set_group(const struct launch_settings *s)
{
    struct ledger_ask ask = {.group = s->group, .guarantee = LEDGER_NO_GUARANTEE};
    int64_t own = 0, alone;
    char err[512];
    if (!s->group)
        return s->group_limit || s->guarantee ? launch_bad("--group-limit and --guarantee go with --group NAME") : 0;
    if (s->policy && !strcmp(s->policy, "off"))
        return launch_bad("--group goes with a policy that keeps a limit, not with off");
    if (s->group_limit && size_text_limit(s->group_limit, &ask.limit_bytes, &ask.limit_pct))
        return launch_bad("--group-limit %s is neither a size (40G, 1536MiB, bytes) nor a percentage of the device's memory (50%%)", s->group_limit);
    if (s->guarantee && cli_size(s->guarantee, 0, &own))
        return launch_bad("--guarantee %s is not a size (12G, 1536MiB, bytes)", s->guarantee);
    if (s->guarantee && s->limit && !cli_size(s->limit, 0, &alone) && alone < own)
        return launch_bad("--guarantee %s is more than --limit %s lets this program have", s->guarantee, s->limit);
    if (s->guarantee && ask.limit_bytes && (uint64_t)own > ask.limit_bytes)
        return launch_bad("--guarantee %s is more than the whole group's --group-limit %s", s->guarantee, s->group_limit);
    if (s->guarantee)
        ask.guarantee = (uint64_t)own;
    if (ledger_may_join(&ask, err, sizeof err))
        return launch_bad("%s", err);
    int rc = set("REMAT_GROUP", s->group);
    if (!rc)
        rc = set("REMAT_GROUP_LIMIT", s->group_limit);
    if (!rc && s->guarantee)
        rc = set_bytes("REMAT_GUARANTEE", own);
    return rc;
}

static int set_host_swap(const char *text)
{
    int64_t bytes;
    if (!text)
        return 0;
    if (cli_size(text, 0, &bytes))
        return launch_bad("--host-swap %s is not a size (12G, 1536MiB, bytes)", text);
    if (bytes == 0)
        return launch_bad("--host-swap 0: the fallback needs some pinned host memory; leave it out for the default");
    return set_bytes("REMAT_HOST_SWAP", bytes);
}

static int set_word(const char *option, const char *name, const char *value, const char *const *words, const char *all)
{
    char hint[128];
    if (!value)
        return 0;
    for (; *words; words++)
        if (strcmp(value, *words) == 0)
            return set(name, value);
    return launch_bad("--%s %s: it takes one of %s%s", option, value, all,
                      options_hint(value, options_values("run", option), hint, sizeof hint));
}

/* Paths are made absolute: the program may change its folder before the library opens them. */
static int absolute(const char *path, char *out, size_t room)
{
    char cwd[PATH_MAX];
    if (*path == '/')
        return (size_t)snprintf(out, room, "%s", path) < room ? 0 : -ENAMETOOLONG;
    if (!getcwd(cwd, sizeof cwd))
        return -errno;
    return (size_t)snprintf(out, room, "%s/%s", cwd, path) < room ? 0 : -ENAMETOOLONG;
}

/* Found out now, not after an hour of training. */
static int set_output(const char *option, const char *name, const char *path)
{
    char full[PATH_MAX], dir[PATH_MAX];
    struct stat st;
    if (!path)
        return 0;
    int rc = *path ? absolute(path, full, sizeof full) : -ENOENT;
    if (rc)
        return launch_bad("--%s '%s': %s", option, path, strerror(-rc));
    snprintf(dir, sizeof dir, "%s", full);
    char *slash = strrchr(dir, '/');
    slash[slash == dir] = '\0';
    if (!strcmp(path, "-"))
        return launch_bad("--%s -: standard output is the program's; give a file, or /dev/fd/3 and the like", option);
    if (strchr(full, '%')) { /* %p and %r are known to each process alone: only the folder can be looked at */
        if (output_expand(full, dir, sizeof dir))
            return launch_bad("--%s %s: the name is too long", option, path);
        if (strchr(dir, '/') && *(strrchr(dir, '/') + 1) == '\0')
            return launch_bad("--%s %s: is a directory", option, path);
        snprintf(dir, sizeof dir, "%s", full);
        *strrchr(dir, '/') = '\0';
        if (!strchr(dir, '%') && access(*dir ? dir : "/", W_OK | X_OK))
            return launch_bad("--%s %s: cannot be written: %s", option, path, strerror(errno));
        return set(name, full);
    }
    if (stat(full, &st) == 0 && S_ISDIR(st.st_mode))
        return launch_bad("--%s %s: is a directory", option, path);
    if (access(full, F_OK) == 0 ? access(full, W_OK) : access(dir, W_OK | X_OK))
        return launch_bad("--%s %s: cannot be written: %s", option, path, strerror(errno));
    const int made = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600); /* in /proc even root makes none */
    if (made < 0 && errno != EEXIST)
        return launch_bad("--%s %s: cannot be written: %s", option, path, strerror(errno));
    if (made >= 0) {
        close(made);
        unlink(full);
    }
    struct place at;
    if (!place_find(full, &at))
        place_close(&at);
    else if (at.why) /* another user's link or file: told now, not when the program is done */
        return launch_bad("--%s %s: cannot be written: %s", option, path, at.why);
    return set(name, full);
}

static int set_plan(const struct launch_settings *s)
{
    char full[PATH_MAX];
    struct stat st;
    if (!s->plan)
        return 0;
    if (s->policy && strcmp(s->policy, "auto") != 0 && strcmp(s->policy, "plan") != 0)
        return launch_bad("--plan goes with --policy plan or auto, not %s", s->policy);
    int rc = absolute(s->plan, full, sizeof full);
    if (rc)
        return launch_bad("--plan %s: %s", s->plan, strerror(-rc));
    if (stat(full, &st) || access(full, R_OK))
        return launch_bad("--plan %s: %s", s->plan, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return launch_bad("--plan %s: not a file", s->plan);
    struct plan p = {0};
    char err[512];
    rc = plan_read(full, &p, err, sizeof err);
    plan_free(&p);
    if (rc)
        return launch_bad("--plan: %s; remat plan TRACE -o FILE makes one", err);
    return set("REMAT_PLAN", full);
}

static int set_solver(const char *name)
{
    char hint[128];
    const char *by_hand = name ? NULL : getenv("REMAT_SOLVER");
    if (by_hand && *by_hand && !solver_known(by_hand))
        return launch_bad("REMAT_SOLVER=%s: no such solver (remat plan --help lists them)%s", by_hand,
                          options_hint(by_hand, options_values("run", "solver"), hint, sizeof hint));
    if (name && !solver_known(name))
        return launch_bad("--solver %s: no such solver (remat plan --help lists them)%s", name,
                          options_hint(name, options_values("run", "solver"), hint, sizeof hint));
    if (name && strlen(name) >= PATH_MAX)
        return launch_bad("--solver: a command of more than %d bytes: put it into a file, and exec:sh FILE", PATH_MAX - 1);
    return set("REMAT_SOLVER", name);
}

static int set_iterations(const char *text)
{
    int64_t n;
    if (text && cli_long(text, 1, 1000000, &n))
        return launch_bad("--iterations %s: it takes a number from 1 to 1000000", text);
    return set("REMAT_ITERATIONS", text);
}

static int set_all(const struct launch_settings *s)
{
    static const char *const policies[] = {"auto", "plan", "dtr", "swap", "off", NULL};
    static const char *const verifies[] = {"off", "sample", "always", NULL};
    static const char *const rehearsals[] = {"mapped", "unmapped", NULL};
    static const char *const allocators[] = {"async", "each", NULL};
    int rc = set_limit(s->limit);
    if (!rc)
        rc = set_group(s);
    if (!rc)
        rc = set_word("policy", "REMAT_POLICY", s->trace ? "off" : s->policy, policies, "auto, plan, dtr, swap, off");
    if (!rc)
        rc = set_word("verify", "REMAT_VERIFY", s->verify, verifies, "off, sample, always");
    if (!rc)
        rc = set_word("rehearse", "REMAT_REHEARSE", s->rehearse, rehearsals, "mapped, unmapped");
    if (!rc)
        rc = set_word("allocator", "REMAT_ALLOCATOR", s->allocator, allocators, "async, each");
    if (!rc && s->nvtx)
        rc = set("REMAT_NVTX", "1");
    if (!rc && s->no_cache)
        rc = set("REMAT_CACHE", "off");
    if (!rc && s->quiet)
        rc = set("REMAT_QUIET", "1");
    if (!rc && s->plan_only)
        rc = s->plan ? set("REMAT_PLAN_ONLY", "1") : launch_bad("--plan-only goes with --plan FILE");
    if (!rc)
        rc = set_host_swap(s->host_swap);
    if (!rc)
        rc = set_plan(s);
    if (!rc)
        rc = set_solver(s->solver);
    if (!rc)
        rc = set_iterations(s->iterations);
    if (!rc)
        rc = set_output(s->trace ? "output" : "trace-out", "REMAT_TRACE_OUT", s->trace_out);
    if (!rc)
        rc = set_output("stats", "REMAT_STATS", s->stats);
    if (!rc)
        rc = set("REMAT_MODE", s->trace ? "trace" : "run");
    if (!rc && !getenv("REMAT_RUN_STARTED")) { /* a run within a run is part of it */
        char mark[64];
        output_run_mark(mark, sizeof mark);
        rc = set("REMAT_RUN_STARTED", mark);
        snprintf(mark, sizeof mark, "%ld", (long)getpid()); /* the command's, too */
        if (!rc)
            rc = set("REMAT_RUN_PID", mark);
    }
    return rc;
}

int launch(const struct launch_settings *s)
{
    int rc = s->command && s->command[0] ? 0 : launch_bad("no command: put it after --, as in remat run --limit 8G -- python x.py");
    if (!rc)
        rc = set_all(s);
    if (!rc)
        rc = set_alloc_conf(allocator(s));
    if (!rc)
        rc = set_simulator();
    if (!rc)
        rc = set_preload();
    if (rc)
        return rc;
    char line[1024];
    if (target_unheld(s->command[0], line, sizeof line))
        launch_bad("%s", line);
    execvp(s->command[0], s->command);
    const int why = errno;
    target_refused(s->command[0], why, line, sizeof line);
    launch_bad("%s", line);
    return why == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_RUNNABLE;
}
