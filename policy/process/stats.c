/* Statistics: counters kept on the way, one JSON object at the end.
 *
 * A process may end without running any of its own code (SIGKILL, SIGTERM, abort, exec), so the object stands in its place
 * from the first work on and is written again while the program runs. That costs less than 1/WORK_SHARE of the host's time,
 * unless writing takes MOST_NS / WORK_SHARE, and launches ask for it rarely (engine.c). At the end it is written once more, as every
 * other file of ours: whole, over what stood there.
 *
 * The text is made here and not by jansson: _exit() may be called in a signal handler, where nothing may be allocated.
 */
#include "policy/device.h"
#include "policy/process/stats.h"
#include "tracer/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RING = 4, TEXT_BYTES = 2048, WORK_SHARE = 256 };
static const uint64_t LEAST_NS = 1000000, MOST_NS = 100000000; /* between two writings */

struct stats_clock {
    struct {
        CUevent event;
        bool used, steady, tried;
    } ring[RING];
    unsigned at;
    uint64_t boundary_ns, wall_ns[RING]; /* of the host, at the latest boundary; of the latest iterations */
};

/* The file while the process runs; there is one for all devices. */
static struct {
    int fd;       /* -1: none */
    bool tried;   /* it cannot be kept: a pipe, a device, a full disk */
    size_t bytes; /* written so far at most: a shorter text is filled up */
    uint64_t next_ns;
} live = {.fd = -1};

int stats_init(struct device *d)
{
    d->clock = calloc(1, sizeof *d->clock);
    return d->clock ? 0 : -ENOMEM;
}

void stats_boundary(struct device *d, unsigned t, bool steady)
{
    /* the boundary two back has long passed: its iteration can be measured without waiting */
    unsigned a = (d->clock->at + 1) % RING, b = (d->clock->at + 2) % RING;
    float ms;
    if (d->clock->ring[a].used && d->clock->ring[b].used && (d->clock->ring[a].steady || d->clock->ring[a].tried) && d->drv->cuEventElapsedTime &&
        d->drv->cuEventElapsedTime(&ms, d->clock->ring[a].event, d->clock->ring[b].event) == CUDA_SUCCESS) {
        bool tried = d->clock->ring[a].tried;
        *(tried ? &d->st.tried_ns_sum : &d->st.iter_ns_sum) += ms * 1e6;
        ++*(tried ? &d->st.tried_ns_count : &d->st.iter_ns_count);
    }
    d->clock->at = (d->clock->at + 1) % RING;
    uint64_t now = stats_now_ns();
    d->clock->wall_ns[d->clock->at] = d->clock->boundary_ns ? now - d->clock->boundary_ns : 0;
    d->clock->boundary_ns = now;
    if (!d->clock->ring[d->clock->at].event && d->drv->cuEventCreate(&d->clock->ring[d->clock->at].event, 0) != CUDA_SUCCESS) {
        d->clock->ring[d->clock->at].used = false;
        return;
    }
    d->clock->ring[d->clock->at].used = d->drv->cuEventRecord(d->clock->ring[d->clock->at].event, d->stream[t]) == CUDA_SUCCESS;
    d->clock->ring[d->clock->at].steady = steady;
    d->clock->ring[d->clock->at].tried = false;
}

uint64_t stats_wall_ns(const struct device *d)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < RING && d->clock; i++)
        most = d->clock->wall_ns[i] > most ? d->clock->wall_ns[i] : most;
    return most;
}

void stats_not_steady(struct device *d) { d->clock->ring[d->clock->at].steady = d->clock->ring[d->clock->at].tried = false; }

void stats_tried(struct device *d)
{
    d->st.launches_tried++;
    d->clock->ring[d->clock->at].tried |= d->clock->ring[d->clock->at].steady;
    d->clock->ring[d->clock->at].steady = false;
}

void stats_steady_from_here(struct device *d)
{
    for (unsigned i = 0; i < RING; i++)
        d->clock->ring[i].used = false;
    d->st.iter_ns_sum = d->st.tried_ns_sum = 0;
    d->st.iter_ns_count = d->st.tried_ns_count = d->st.iterations_steady = 0;
    d->st.hook_ns = d->st.hook_launches = 0;
}

/* One object for all devices together. Returns its length. */
/* The first device's that is in use. */
static const char *mode_name(struct device *const *devs, unsigned n, bool active)
{
    for (unsigned i = 0; i < n; i++)
        if (devs[i]->ready)
            return device_mode_name(devs[i], devs[i]->whole_mode);
    return active ? "observe" : "off";
}

static size_t make_text(struct device *const *devs, unsigned n, bool active, char to[TEXT_BYTES])
{
    struct stats t = {0};
    uint64_t limit_bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct stats *s = &devs[i]->st;
        limit_bytes += devs[i]->mem.limit_bytes;
        for (size_t k = 0; k < STATS_COUNTERS; k++)
            ((uint64_t *)&t)[k] += ((const uint64_t *)s)[k];
        t.iter_ns_sum += s->iter_ns_sum;
        t.tried_ns_sum += s->tried_ns_sum;
    }
    if (!t.iter_ns_count) { /* none without a trial: what there was, rather than nothing */
        t.iter_ns_sum = t.tried_ns_sum;
        t.iter_ns_count = t.tried_ns_count;
    }
    const uint64_t launches = t.hook_launches ? t.hook_launches : 1;
    /* in thousandths: how a fraction is printed is a matter of the program's locale */
    const uint64_t iter = t.iter_ns_count ? (uint64_t)(t.iter_ns_sum * 1000 / (double)t.iter_ns_count) : 0;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"limit_bytes", limit_bytes},
        {"peak_physical_bytes", t.peak_physical_bytes},
        {"native_peak_bytes", t.native_peak_bytes},
        {"iterations", t.iterations},
        {"iterations_enforced", t.iterations_enforced},
        {"launches", t.launches},
        {"replays", t.replays},
        {"evictions", t.evictions},
        {"swaps_out", t.swaps_out},
        {"swaps_in", t.swaps_in},
        {"divergences", t.divergences},
        {"verify_checked", t.verify_checked},
        {"verify_failed", t.verify_failed},
        {"driver_memory_calls_steady", t.mem_calls_enforced},
        {"hook_ns_per_launch", t.hook_ns / launches},
        {"swaps_steady", t.swaps_enforced},
        {"driver_memory_calls", t.mem_calls},
        {"gave_back_bytes", t.gave_back_bytes},
        {"launches_tried", t.launches_tried},
        {"launches_looked_at", t.launches_looked_at},
        {"facts_known", t.facts_known},
        {"facts_like", t.facts_like},
        {"facts_unknown", t.facts_unknown},
        {"facts_taken", t.facts_taken},
        {"facts_contradicted", t.facts_contradicted},
        {"host_peak_bytes", t.host_peak_bytes},
        {"bytes_out", t.bytes_out},
        {"bytes_in", t.bytes_in},
    };
    size_t at = (size_t)snprintf(to, TEXT_BYTES, "{\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        at += (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"%s\": %llu,\n", rows[i].name, (unsigned long long)rows[i].value);
    at += (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"device_ns_per_iteration\": %llu.%03llu,\n  \"learning_s\": %llu.%06llu,\n  \"mode\": \"%s\"\n}\n",
                           (unsigned long long)(iter / 1000), (unsigned long long)(iter % 1000), (unsigned long long)(t.learning_ns / 1000000000),
                           (unsigned long long)(t.learning_ns / 1000 % 1000000), mode_name(devs, n, active));
    return at;
}

/* Into the file that stands in its place; a longer text that it held is blanked. */
static void write_live(char *text, size_t n)
{
    for (; n < live.bytes; n++)
        text[n] = '\n';
    live.bytes = n;
    if (pwrite(live.fd, text, n, 0) != (ssize_t)n && errno != EINTR) { /* a full disk: what stands is what there is room for */
        close(live.fd);
        live.fd = -1;
    }
}

/* Once a process; not a part of stats_keep(), which may be called on a small stack: an output is 16 KiB. */
__attribute__((noinline)) static void begin_live(const struct config *cfg, const char *text, size_t n)
{
    struct output o;
    char why[OUTPUT_PATH + 100];
    live.tried = true;
    if (!output_is_file(cfg->stats, OUTPUT_RUN) || output_open(&o, cfg->stats, OUTPUT_RUN | OUTPUT_NO_WAIT, why, sizeof why))
        return; /* said when it is written at the end */
    fwrite(text, 1, n, o.f); /* a failure shows when it is committed */
    if (!output_commit_open(&o, &live.fd, why, sizeof why))
        live.bytes = n;
}

void stats_keep(const struct config *cfg, struct device *const *devs, unsigned n, bool active)
{
    if (!cfg->stats[0] || (live.tried && live.fd < 0))
        return;
    const uint64_t now = stats_now_ns();
    if (now < live.next_ns)
        return;
    char text[TEXT_BYTES];
    const size_t bytes = make_text(devs, n, active, text);
    if (live.fd < 0)
        begin_live(cfg, text, bytes);
    else
        write_live(text, bytes);
    const uint64_t end = stats_now_ns(), pause = (end - now) * WORK_SHARE;
    live.next_ns = end + (pause < LEAST_NS ? LEAST_NS : pause > MOST_NS ? MOST_NS : pause);
}

void stats_keep_last(struct device *const *devs, unsigned n, bool active)
{
    char text[TEXT_BYTES];
    if (live.fd >= 0)
        write_live(text, make_text(devs, n, active, text));
}

void stats_write(const struct config *cfg, struct device *const *devs, unsigned n, bool active)
{
    if (!cfg->stats[0])
        return;
    struct output o;
    char text[TEXT_BYTES], why[OUTPUT_PATH + 100];
    const size_t bytes = make_text(devs, n, active, text);
    int rc = output_open(&o, cfg->stats, OUTPUT_RUN | OUTPUT_NO_WAIT, why, sizeof why);
    if (!rc) {
        fwrite(text, 1, bytes, o.f); /* a failure shows when it is committed */
        rc = output_commit(&o, why, sizeof why);
    }
    if (rc)
        log_say(SAY_WARN, "%s", why);
    stats_after_fork_child();
}

void stats_after_fork_child(void)
{
    if (live.fd >= 0)
        close(live.fd);
    live.fd = -1;
    live.tried = true;
}
