/* cmd_doctor.c: `remat doctor`: what works on this machine, one line a finding, or all as one JSON object. Exit status 0 when a
 * program can be run under remat here, 1 when something stands in the way.
 *
 *   ok    fine      note  works, with this in mind      BAD  does not work; what to do
 */
#include "offline/commands/cli.h"
#include "offline/commands/launch.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/commands/self_test.h"
#include "offline/model/beside.h"
#include "offline/solvers/milp/milp.h"
#include "preload/cuda_abi.h"
#include "tracer/machine/alloc_conf.h"
#include "tracer/machine/conf.h"
#include "tracer/machine/dmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef REMAT_VERSION
#define REMAT_VERSION "unknown"
#endif

enum verdict { OK, NOTE, BAD };

static int bad_count;
static json_t *findings; /* NULL: each is printed as it is found */

/* A path need not be valid UTF-8: then what is not ASCII in it becomes a question mark. */
static json_t *text_json(char *text)
{
    json_t *j = json_string(text);
    if (j)
        return j;
    for (char *c = text; *c; c++)
        if (*c & 0x80)
            *c = '?';
    return json_string(text);
}

static void say(enum verdict v, const char *what, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(enum verdict v, const char *what, const char *fmt, ...)
{
    static const char *const word[] = {"ok", "note", "BAD"}, *const key[] = {"ok", "note", "bad"};
    char text[PATH_MAX + 200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (findings)
        json_array_append_new(findings, json_pack("{s:s,s:s,s:o}", "verdict", key[v], "about", what, "finding", text_json(text)));
    else
        printf("%-5s %-11s %s\n", word[v], what, text);
    bad_count += v == BAD;
}

/* ---- the library, the simulator --------------------------------------------------------------------------------------- */

static void check_library(void)
{
    char path[PATH_MAX];
    int rc = beside_find("libremat.so", path, sizeof path);
    if (rc)
        say(BAD, "library", "libremat.so is neither beside this executable nor in ../lib or ../lib/remat: build or install it there");
    else if (strpbrk(path, ": "))
        say(BAD, "library", "%s: the loader cannot preload a path with a space or a colon in it", path);
    else
        say(OK, "library", "%s", path);
}

static void check_solver(void)
{
    int rc = milp_load();
    if (rc)
        say(BAD, "solver", "auto and milp cannot solve integer programs: %s", milp_error(rc));
    else
        say(OK, "solver", "CBC, for integer programs");
}

static int have_simulator(char *path, size_t room)
{
    return beside_find("simgpu/libcuda.so.1", path, room) == 0;
}

static void check_simulator(void)
{
    char path[PATH_MAX];
    if (have_simulator(path, sizeof path))
        say(OK, "simulator", "%s (used with REMAT_SIMGPU=1 where there is no GPU)", path);
    else
        say(NOTE, "simulator", "none beside this executable or in ../lib/remat, as remat[sim] brings one: REMAT_SIMGPU=1 will not work");
}

/* ---- the driver --------------------------------------------------------------------------------------------------------- */

/* What the doors and the engine cannot do without; the oldest driver that has it all is 11.2's. */
static const char *const needed[] = {
    "cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemAllocAsync", "cuMemFreeAsync",
    "cuMemAllocFromPoolAsync",
};

static void check_parameters(void *lib)
{
    if (dlsym(lib, "cuFuncGetParamInfo"))
        say(OK, "parameters", "the driver tells kernel parameter layouts (12.4 or newer)");
    else
        say(NOTE, "parameters", "the driver is older than 12.4: parameter layouts come from the binaries' own sections");
}

static void check_devices(void *lib)
{
    __typeof__(&cuInit) init = (__typeof__(init))dlsym(lib, "cuInit");
    __typeof__(&cuDriverGetVersion) version = (__typeof__(version))dlsym(lib, "cuDriverGetVersion");
    __typeof__(&cuDeviceGetCount) count = (__typeof__(count))dlsym(lib, "cuDeviceGetCount");
    __typeof__(&cuDeviceGetName) name = (__typeof__(name))dlsym(lib, "cuDeviceGetName");
    __typeof__(&cuDeviceTotalMem_v2) total = (__typeof__(total))dlsym(lib, "cuDeviceTotalMem_v2");
    __typeof__(&cuDeviceGetAttribute) attribute = (__typeof__(attribute))dlsym(lib, "cuDeviceGetAttribute");
    int v = 0, n = 0;
    if (!init || !version || !count || !name || !total || !attribute) {
        say(BAD, "driver", "libcuda.so.1 lacks basic entry points: it is no driver of this project's kind");
        return;
    }
    CUresult r = init(0);
    if (r != CUDA_SUCCESS) {
        say(BAD, "driver", "cuInit answers %d: the driver does not work (nvidia-smi tells more)", (int)r);
        return;
    }
    version(&v);
    say(v >= 11020 ? OK : BAD, "driver", "CUDA %d.%d%s", v / 1000, v % 1000 / 10,
        v >= 11020 ? "" : ": stream-ordered memory needs 11.2 or newer");
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (!dlsym(lib, needed[i]))
            say(BAD, "driver", "it has no %s", needed[i]);
    check_parameters(lib);
    if (count(&n) != CUDA_SUCCESS || n == 0) {
        say(BAD, "devices", "the driver sees none (CUDA_VISIBLE_DEVICES?)");
        return;
    }
    for (CUdevice d = 0; d < n; d++) {
        char text[128] = "?";
        size_t bytes = 0;
        int vmm = 0, pools = 0;
        char size[32];
        name(text, sizeof text, d);
        total(&bytes, d);
        attribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, d);
        attribute(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, d);
        say(vmm && pools ? OK : BAD, "device", "%d: %s, %s, virtual memory management %s, memory pools %s", d, text,
            cli_bytes((int64_t)bytes, size, sizeof size), vmm ? "yes" : "NO", pools ? "yes" : "NO");
    }
}

static void check_driver(void)
{
    char path[PATH_MAX];
    int has_gpu = launch_has_gpu(path, sizeof path);
    void *lib = *path ? dlopen(path, RTLD_LAZY) : NULL;
    if (!lib && have_simulator(path, sizeof path)) {
        say(has_gpu ? BAD : NOTE, "driver", "no libcuda.so.1 on this machine%s",
            has_gpu ? ", though there is a device: install the driver's libraries" : "; looking at the simulated one");
        lib = dlopen(path, RTLD_LAZY);
    } else if (lib) {
        say(OK, "driver", "%s", path);
    }
    if (lib)
        check_devices(lib);
    else
        say(BAD, "driver", "no libcuda.so.1: install NVIDIA's driver, or build the simulated GPU and set REMAT_SIMGPU=1");
}

/* ---- limits of the host ---------------------------------------------------------------------------------------------------- */

static long read_number(const char *path)
{
    FILE *f = fopen(path, "r");
    long v = -1;
    if (f) {
        if (fscanf(f, "%ld", &v) != 1)
            v = -1;
        fclose(f);
    }
    return v;
}

static void check_host(void)
{
    struct rlimit lim;
    char size[32];
    long overcommit = read_number("/proc/sys/vm/overcommit_memory");
    if (overcommit == 2)
        say(NOTE, "overcommit", "vm.overcommit_memory is 2: large reservations of address space can fail");
    else
        say(OK, "overcommit", "vm.overcommit_memory is %ld", overcommit);
    if (getrlimit(RLIMIT_AS, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY)
        say(BAD, "ulimit -v", "%s of address space: the driver and remat reserve more; set it to unlimited",
            cli_bytes((int64_t)lim.rlim_cur, size, sizeof size));
    else
        say(OK, "ulimit -v", "unlimited");
    /* The driver pins through its own device file, which this limit does not bind; other drivers of a node may. */
    if (getrlimit(RLIMIT_MEMLOCK, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY)
        say(NOTE, "ulimit -l", "%s: enough for CUDA's pinned memory, not for RDMA over it",
            cli_bytes((int64_t)lim.rlim_cur, size, sizeof size));
    else
        say(OK, "ulimit -l", "unlimited");
}

/* ---- who limits what ------------------------------------------------------------------------------------------------------- */

static void check_maxima_in(const char *path)
{
    struct conf c;
    int rc = conf_read_own(path, &c);
    if (rc)
        say(BAD, "maxima", "%s: cannot be read (%s): its maxima do not hold for you", path, strerror(-rc));
    if (c.n_bad)
        say(BAD, "maxima", "%s (%u such lines; programs leave them out)", c.bad, c.n_bad);
    for (unsigned i = 0; i < c.n_max; i++) {
        char size[32] = "no maximum";
        if (c.max[i].pct > 0)
            snprintf(size, sizeof size, "%g%% of a device", c.max[i].pct);
        else if (c.max[i].bytes)
            cli_bytes((int64_t)c.max[i].bytes, size, sizeof size);
        say(OK, "maxima", "%s for you (%s)", size, c.max[i].from);
    }
    for (unsigned i = 0; i < c.n_total; i++) {
        char size[32] = "no maximum";
        if (c.total[i].pct > 0)
            snprintf(size, sizeof size, "%g%% of a device", c.total[i].pct);
        else if (c.total[i].bytes)
            cli_bytes((int64_t)c.total[i].bytes, size, sizeof size);
        say(OK, "maxima", "%s for all your programs together (%s)", size, c.total[i].from);
    }
    struct stat st;
    if (stat(path, &st) == 0 && (st.st_uid != 0 || (st.st_mode & 022)))
        say(BAD, "maxima", "%s: others than root may write it, and lift what it sets: chown root, chmod 644", path);
    if (!rc && !c.n_bad && !c.n_max && !c.n_total)
        say(OK, "maxima", "%s sets none for you", path);
}

static void check_maxima(void)
{
    const char *also = getenv("REMAT_CONF_ALSO");
    check_maxima_in(REMAT_CONF);
    if (also && *also)
        check_maxima_in(also);
}

static void check_cgroup(void)
{
    char folder[PATH_MAX], path[PATH_MAX + 16], line[256];
    if (dmem_folder(folder, sizeof folder)) {
        say(NOTE, "cgroup", "no unified hierarchy (version 2): the kernel limits no device memory here");
        return;
    }
    if (!dmem_present(folder)) {
        say(NOTE, "cgroup", "%s has no dmem controller (Linux 6.14, and enabled above): limits hold for programs that load the library", folder);
        return;
    }
    static const char *const files[] = {"dmem.max", "dmem.min", "dmem.current"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        FILE *f = fopen(path, "re");
        bool any = false;
        while (f && fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = '\0';
            if (*line) {
                say(OK, "cgroup", "%s: %s", files[i], line);
                any = true;
            }
        }
        if (f)
            fclose(f);
        if (!any && i == 0)
            say(NOTE, "cgroup", "%s names no device: the driver is older than CUDA 13.4's, or has registered none", path);
    }
}

/* ---- PyTorch ------------------------------------------------------------------------------------------------------------------ */

static const char probe[] =
    "import importlib.util as u, sys\n"
    "s = u.find_spec('torch')\n"
    "if s is None: sys.exit(3)\n"
    "import torch\n"
    "b = torch.cuda.get_allocator_backend() if hasattr(torch.cuda, 'get_allocator_backend') else 'native only'\n"
    "print(torch.__version__, torch.version.cuda or 'without CUDA', b)\n";

/* Runs python3 with the settings that `remat run` would give it, in a child: PyTorch decides once a process. */
static void check_pytorch(void)
{
    int fds[2], status = 0;
    char conf[4096], dropped[4096], line[256] = "";
    if (alloc_conf_merge(ALLOC_CONF_ASYNC, getenv("PYTORCH_CUDA_ALLOC_CONF"), conf, sizeof conf, dropped, sizeof dropped) ||
        pipe(fds)) {
        say(NOTE, "pytorch", "not looked at");
        return;
    }
    if (*dropped)
        say(NOTE, "pytorch", "PYTORCH_CUDA_ALLOC_CONF: %s will be left out", dropped);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        if (!freopen("/dev/null", "w", stderr))
            _exit(126);
        close(fds[0]);
        close(fds[1]);
        setenv("PYTORCH_CUDA_ALLOC_CONF", conf, 1);
        setenv("PYTORCH_ALLOC_CONF", conf, 1);
        execlp("python3", "python3", "-c", probe, (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    close(fds[1]);
    size_t used = 0;
    for (ssize_t n; used < sizeof line - 1 && (n = read(fds[0], line + used, sizeof line - 1 - used)) > 0;)
        used += (size_t)n;
    close(fds[0]);
    line[strcspn(line, "\n")] = '\0';
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != 3 && WEXITSTATUS(status) != 127))
        say(NOTE, "pytorch", "python3 -c 'import torch' fails");
    else if (WEXITSTATUS(status) == 127)
        say(NOTE, "pytorch", "no python3 in PATH");
    else if (WEXITSTATUS(status) == 3)
        say(NOTE, "pytorch", "not installed for python3 (a virtual environment?)");
    else if (strstr(line, "cudaMallocAsync"))
        say(OK, "pytorch", "%s", line);
    else
        say(NOTE, "pytorch", "%s: its allocator does not take backend:cudaMallocAsync, tensors will not be managed", line);
}

static void say_self_test(enum self_test_verdict v, const char *finding)
{
    static const enum verdict of[] = {[SELF_TEST_OK] = OK, [SELF_TEST_NOTE] = NOTE, [SELF_TEST_BAD] = BAD};
    say(of[v], "self-test", "%s", finding);
    fflush(stdout); /* each run takes seconds */
}

int cmd_doctor(int argc, char **argv)
{
    int json = 0, self = 0;
    const struct option_bind binds[] = {{"json", &json}, {"self-test", &self}, {0}};
    size_t n;
    int rc = options_parse(argc, argv, binds, NULL, 0, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    findings = json ? json_array() : NULL;
    check_library();
    check_solver();
    check_driver();
    check_simulator();
    check_pytorch();
    check_host();
    check_maxima();
    check_cgroup();
    if (self)
        self_test(say_self_test);
    if (json) {
        json_t *root = json_pack("{s:b,s:s,s:o}", "fit", bad_count == 0, "version", REMAT_VERSION, "findings", findings);
        findings = NULL;
        if (!root)
            return cli_fail("doctor: out of memory");
        json_dumpf(root, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER); /* a failure shows when standard output is closed */
        putchar('\n');
        json_decref(root);
    } else if (bad_count) {
        printf("%d of these stand in the way\n", bad_count);
    }
    return bad_count ? CLI_FAIL : CLI_OK;
}
