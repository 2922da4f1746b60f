/*
 * The simulated clock. It never looks at real time: an operation gets its place when it is enqueued, so the
 * times follow from the order of the program's calls and are the same under every SIMGPU_CHAOS.
 *
 * One compute engine (kernels, device copies, fills) and one copy engine per direction to the host, or one for both
 * (SIMGPU_COPY_ENGINES). Each does one thing at a time. An operation takes the first gap of its engine that it fits in, not before its stream,
 * the events it waits for and the host's own time allow; so work that was enqueued later may run in front of
 * work that is still waiting, as on hardware with several queues. Only the latest GAPS gaps are remembered.
 */
#include <string.h>

#include "tests/simgpu/gpu_costs.h"

enum { GAPS = 64, ENGINES = 4 };

static struct {
    uint64_t tail; /* busy or gap before, free from here on */
    struct {
        uint64_t from, to;
    } gap[GAPS]; /* ascending, disjoint, before tail */
    unsigned n;
} engines[ENGINES * GPU_MAX_DEVICES]; /* device by device */

static uint64_t busy_ns[ENGINES]; /* of all devices */
static __thread uint64_t host_now_ns;
static __thread bool host_began;
static _Atomic uint64_t host_latest_ns;

static void drop_gap(enum gpu_engine e, unsigned i)
{
    engines[e].n--;
    memmove(&engines[e].gap[i], &engines[e].gap[i + 1], (engines[e].n - i) * sizeof engines[e].gap[0]);
}

static void add_gap(enum gpu_engine e, unsigned i, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    if (engines[e].n == GAPS) {
        if (i == 0)
            return;
        drop_gap(e, 0);
        i--;
    }
    memmove(&engines[e].gap[i + 1], &engines[e].gap[i], (engines[e].n - i) * sizeof engines[e].gap[0]);
    engines[e].gap[i].from = from;
    engines[e].gap[i].to = to;
    engines[e].n++;
}

/* A copy to or from the host takes longer while one in the other direction is under way, where the link moves less than twice as much both ways. The one
   that was placed first keeps its time, so this one bears the loss of both. */
static uint64_t beside_the_other(CUdevice dev, enum gpu_engine kind, uint64_t ready, uint64_t ns)
{
    if (gpu_cfg.host_bytes_per_s_both <= 0 || (kind != GPU_ENGINE_HTOD && kind != GPU_ENGINE_DTOH) || gpu_cfg.n_copy_engines == 1)
        return ns;
    const unsigned mine = (unsigned)kind + (unsigned)dev * ENGINES, others = GPU_ENGINE_HTOD + GPU_ENGINE_DTOH - (unsigned)kind + (unsigned)dev * ENGINES;
    const uint64_t start = ready > engines[mine].tail ? ready : engines[mine].tail, both = engines[others].tail > start ? engines[others].tail - start : 0;
    const double longer = 2 * gpu_cfg.host_bytes_per_s / gpu_cfg.host_bytes_per_s_both - 1;
    return longer > 0 ? ns + (uint64_t)((double)(both < ns ? both : ns) * longer) : ns;
}

uint64_t gpu_clock_place(CUdevice dev, enum gpu_engine e, uint64_t ready, uint64_t ns)
{
    if (e == GPU_ENGINE_NONE || ns == 0)
        return ready + ns;
    if (e == GPU_ENGINE_DTOH && gpu_cfg.n_copy_engines == 1)
        e = GPU_ENGINE_HTOD;
    const enum gpu_engine kind = e;
    e += (unsigned)dev * ENGINES;
    ns = beside_the_other(dev, kind, ready, ns);
    busy_ns[kind] += ns;
    for (unsigned i = 0; i < engines[e].n; i++) {
        uint64_t from = engines[e].gap[i].from, to = engines[e].gap[i].to;
        uint64_t start = from > ready ? from : ready;
        if (start + ns > to)
            continue;
        drop_gap(e, i);
        add_gap(e, i, start + ns, to);
        add_gap(e, i, from, start);
        return start + ns;
    }
    uint64_t start = ready > engines[e].tail ? ready : engines[e].tail;
    add_gap(e, engines[e].n, engines[e].tail, start);
    engines[e].tail = start + ns;
    return start + ns;
}

static uint64_t ns_of(double amount, double per_s)
{
    return (uint64_t)(amount / per_s * 1e9 + 0.5);
}

uint64_t gpu_clock_kernel_ns(uint64_t flops, uint64_t bytes)
{
    uint64_t a = ns_of((double)flops, gpu_cfg.flops_per_s), b = ns_of((double)bytes, gpu_cfg.bytes_per_s);
    return (a > b ? a : b) + gpu_cfg.launch_ns;
}

uint64_t gpu_clock_device_ns(uint64_t bytes)
{
    return ns_of((double)bytes, gpu_cfg.bytes_per_s);
}

uint64_t gpu_clock_host_ns(uint64_t bytes)
{
    return ns_of((double)bytes, gpu_cfg.host_bytes_per_s);
}

uint64_t gpu_clock_host_wall_ns(uint64_t bytes)
{
    return gpu_cfg.host_wall_bytes_per_s > 0 ? ns_of((double)bytes, gpu_cfg.host_wall_bytes_per_s) : 0;
}

void gpu_clock_busy(uint64_t ns[3])
{
    ns[0] = busy_ns[GPU_ENGINE_COMPUTE];
    ns[1] = busy_ns[GPU_ENGINE_HTOD];
    ns[2] = busy_ns[GPU_ENGINE_DTOH];
}

/* A thread begins where the furthest one is: that one, as a rule, has made it. */
static void host_goes_to(uint64_t ns)
{
    host_now_ns = ns;
    uint64_t latest = host_latest_ns;
    while (latest < ns && !atomic_compare_exchange_weak(&host_latest_ns, &latest, ns)) {
    }
}

void gpu_clock_host_works(uint64_t ns)
{
    if (!host_began && host_now_ns < host_latest_ns)
        host_now_ns = host_latest_ns;
    host_began = true;
    host_goes_to(host_now_ns + ns);
}

uint64_t gpu_clock_host_latest(void)
{
    return host_latest_ns;
}

uint64_t gpu_clock_host_now(void)
{
    return host_now_ns;
}

void gpu_clock_host_reached(uint64_t ns)
{
    if (ns <= host_now_ns)
        return;
    gpu_costs_waited(ns - host_now_ns);
    host_goes_to(ns);
}
