/*
 * Settings of the simulated GPU, from the environment. The defaults are an A100 in round numbers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/gpu.h"

gpu_settings gpu_cfg = {
    .mem_bytes = 8ull << 30,
    .granularity_bytes = 2ull << 20,
    .flops_per_s = 90e12,
    .bytes_per_s = 1.4e12,
    .host_bytes_per_s = 25e9,
    .launch_ns = 3000,
    .n_devices = 1,
    .n_copy_engines = 2,
};

enum { MAX_FAULT_ROWS = 32 };
static struct {
    char call[64];
    uint64_t nth;
    _Atomic uint64_t seen;
} fault_rows[MAX_FAULT_ROWS];
static int n_fault_rows;
static char stats_path[4096], shared_path[4096];

static CUresult refuse(const char *name, const char *value, const char *want)
{
    fprintf(stderr, "simgpu: %s=%s: %s\n", name, value, want);
    return CUDA_ERROR_INVALID_VALUE;
}

/* Bytes with an optional K, M, G or T, with or without iB or B; all binary. */
static CUresult read_size(const char *name, uint64_t *out)
{
    const char *v = getenv(name);
    if (!v || !*v)
        return CUDA_SUCCESS;
    char *end;
    errno = 0;
    double n = strtod(v, &end);
    double unit = 1;
    static const char units[] = "KMGT";
    const char *u = *end ? strchr(units, *end & ~32) : NULL;
    if (u) {
        for (const char *k = units; k <= u; k++)
            unit *= 1024;
        end++;
        if (*end == 'i')
            end++;
        if (*end == 'B' || *end == 'b')
            end++;
    }
    if (end == v || *end || errno || !(n > 0) || n * unit > 9e18)
        return refuse(name, v, "want a size such as 512M, 8G or 1073741824");
    *out = (uint64_t)(n * unit);
    return CUDA_SUCCESS;
}

static CUresult read_number(const char *name, double *out, bool may_be_zero)
{
    const char *v = getenv(name);
    if (!v || !*v)
        return CUDA_SUCCESS;
    char *end;
    double n = strtod(v, &end);
    if (end == v || *end || !(n > 0 || (may_be_zero && n == 0)) || n > 1e30)
        return refuse(name, v, "want a positive number such as 90e12");
    *out = n;
    return CUDA_SUCCESS;
}

static CUresult read_faults(void)
{
    const char *v = getenv("SIMGPU_FAULTS");
    n_fault_rows = 0;
    if (!v)
        return CUDA_SUCCESS;
    for (const char *p = v; *p;) {
        const char *colon = strchr(p, ':');
        char *end = NULL;
        uint64_t nth = colon ? strtoull(colon + 1, &end, 10) : 0;
        if (!colon || colon == p || (size_t)(colon - p) >= sizeof fault_rows[0].call || !nth ||
            (*end && *end != ',') || n_fault_rows == MAX_FAULT_ROWS)
            return refuse("SIMGPU_FAULTS", v, "want call:n[,call:n], n counting from 1, 32 rows at most");
        memcpy(fault_rows[n_fault_rows].call, p, (size_t)(colon - p));
        fault_rows[n_fault_rows].call[colon - p] = 0;
        fault_rows[n_fault_rows].nth = nth;
        fault_rows[n_fault_rows].seen = 0;
        n_fault_rows++;
        p = *end ? end + 1 : end;
    }
    return CUDA_SUCCESS;
}

CUresult gpu_config_read(void)
{
    double queue = 0, launch = (double)gpu_cfg.launch_ns, devices = 1, copy_engines = gpu_cfg.n_copy_engines, peers = 0;
    CUresult r;
    if ((r = read_size("SIMGPU_MEM", &gpu_cfg.mem_bytes)) ||
        (r = read_size("SIMGPU_GRANULARITY", &gpu_cfg.granularity_bytes)) ||
        (r = read_size("SIMGPU_VA", &gpu_cfg.va_bytes)) ||
        (r = read_size("SIMGPU_WINDOW", &gpu_cfg.window_bytes)) ||
        (r = read_size("SIMGPU_ALIGN", &gpu_cfg.align_bytes)) ||
        (r = read_size("SIMGPU_LAZY", &gpu_cfg.lazy_bytes)) ||
        (r = read_number("SIMGPU_FLOPS", &gpu_cfg.flops_per_s, false)) ||
        (r = read_number("SIMGPU_BW", &gpu_cfg.bytes_per_s, false)) ||
        (r = read_number("SIMGPU_HOST_BW", &gpu_cfg.host_bytes_per_s, false)) ||
        (r = read_number("SIMGPU_HOST_WALL_BW", &gpu_cfg.host_wall_bytes_per_s, false)) ||
        (r = read_number("SIMGPU_LAUNCH_NS", &launch, true)) ||
        (r = read_number("SIMGPU_QUEUE", &queue, false)) ||
        (r = read_number("SIMGPU_COPY_ENGINES", &copy_engines, false)) ||
        (r = read_number("SIMGPU_PEERS", &peers, true)) ||
        (r = read_number("SIMGPU_DEVICES", &devices, false)) || (r = read_faults()))
        return r;
    gpu_cfg.launch_ns = (uint64_t)launch;
    if (devices < 1 || devices > GPU_MAX_DEVICES || devices != (int)devices)
        return refuse("SIMGPU_DEVICES", getenv("SIMGPU_DEVICES"), "want a number from 1 to 8");
    gpu_cfg.n_devices = (int)devices;
    if (peers != 0 && peers != 1)
        return refuse("SIMGPU_PEERS", getenv("SIMGPU_PEERS"), "want 0 or 1");
    gpu_cfg.peers = peers == 1;
    if (copy_engines != 1 && copy_engines != 2)
        return refuse("SIMGPU_COPY_ENGINES", getenv("SIMGPU_COPY_ENGINES"), "want 1 or 2");
    gpu_cfg.queue = (uint64_t)queue;
    gpu_cfg.n_copy_engines = (int)copy_engines;
    uint64_t g = gpu_cfg.granularity_bytes;
    if ((g & (g - 1)) || g < (uint64_t)sysconf(_SC_PAGESIZE) || g > (1ull << 30))
        return refuse("SIMGPU_GRANULARITY", getenv("SIMGPU_GRANULARITY"),
                      "want a power of two from the page size to 1G");
    if (gpu_cfg.align_bytes & (gpu_cfg.align_bytes - 1))
        return refuse("SIMGPU_ALIGN", getenv("SIMGPU_ALIGN"), "want a power of two such as 1T");
    const char *chaos = getenv("SIMGPU_CHAOS");
    if (chaos && *chaos) {
        static const char word[] = "adversary";
        char *end;
        gpu_cfg.adversary = !strncmp(chaos, word, sizeof word - 1);
        const char *seed = gpu_cfg.adversary ? chaos + sizeof word - 1 : chaos;
        bool none = gpu_cfg.adversary && !*seed;
        if (gpu_cfg.adversary && *seed == ':')
            seed++;
        gpu_cfg.chaos_seed = strtoull(seed, &end, 0);
        if (!none && (*end || *seed < '0' || *seed > '9' || (gpu_cfg.adversary && seed[-1] != ':')))
            return refuse("SIMGPU_CHAOS", chaos, "want a number, the seed, or adversary, or adversary:SEED");
        gpu_cfg.chaos = true;
    }
    const char *guard = getenv("SIMGPU_GUARD");
    gpu_cfg.guard_off = guard && !strcmp(guard, "0");
    gpu_cfg.guard = guard && *guard && !gpu_cfg.guard_off;
    const char *host_vmm = getenv("SIMGPU_HOST_VMM");
    gpu_cfg.no_host_vmm = host_vmm && !strcmp(host_vmm, "0");
    const char *hmm = getenv("SIMGPU_HMM");
    gpu_cfg.pageable = hmm && !strcmp(hmm, "1");
    const char *shared = getenv("SIMGPU_SHARED");
    if (shared && *shared) {
        if (*shared != '/' || strlen(shared) >= sizeof shared_path)
            return refuse("SIMGPU_SHARED", shared, "want a path that begins with /");
        gpu_cfg.shared_path = strcpy(shared_path, shared);
    }
    const char *stats = getenv("SIMGPU_STATS");
    if (stats && *stats) {
        /* the program may change its directory before it ends */
        char here[2048] = "";
        if (*stats != '/' && !getcwd(here, sizeof here))
            return refuse("SIMGPU_STATS", stats, "the current directory has no name");
        int n = snprintf(stats_path, sizeof stats_path, "%s%s%s", here, *here ? "/" : "", stats);
        if (n < 0 || (size_t)n >= sizeof stats_path)
            return refuse("SIMGPU_STATS", stats, "the path is too long");
        gpu_cfg.stats_path = stats_path;
    }
    return CUDA_SUCCESS;
}

bool gpu_config_names(const char *base, const char *call)
{
    size_t n = strlen(base);
    if (strncmp(base, call, n))
        return false;
    const char *rest = call + n;
    while (*rest) {
        if (!strncmp(rest, "_ptsz", 5) || !strncmp(rest, "_ptds", 5))
            rest += 5;
        else if (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '0' && rest[2] <= '9')
            rest += 3;
        else
            return false;
    }
    return true;
}

int gpu_config_fault_row(const char *call)
{
    for (int i = 0; i < n_fault_rows; i++)
        if (gpu_config_names(fault_rows[i].call, call))
            return i;
    return -1;
}

bool gpu_config_fault_hits(int row)
{
    bool hit = false;
    /* several rows may name one call: cuMemAlloc:3,cuMemAlloc:5 */
    for (int i = 0; i < n_fault_rows; i++)
        if (!strcmp(fault_rows[i].call, fault_rows[row].call))
            hit |= ++fault_rows[i].seen == fault_rows[i].nth;
    return hit;
}
