/* Statistics: counters kept on the way, one JSON object at the end.
 *
 * A process may end without running any of its own code (SIGKILL, SIGTERM, abort, exec), so the object is in its file
 * from the first work on and is written again while the program runs. Rewriting costs less than 1/WORK_SHARE of the host's time,
 * unless one writing takes MOST_NS / WORK_SHARE, and launches ask for it rarely (engine.c). At the end the object is written once more,
 * as every other file of remat's: whole, in place of the old file.
 *
 * The text is made here and not by jansson: _exit() may be called in a signal handler, where nothing may be allocated.
 */
#include "policy/device.h"
#include "policy/process/stats.h"
#include "policy/process/summary.h"
#include "tracer/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RING = 4, TEXT_BYTES = 4096, WORK_SHARE = 256 };
static const uint64_t LEAST_NS = 1000000, MOST_NS = 100000000; /* between two writings */

struct stats_clock {
    struct {
        CUevent event;
        bool used, steady, tried;
    } ring[RING];
    unsigned at;
    uint64_t boundary_ns, wall_ns[RING]; /* the host's clock at the latest boundary; host time of the latest iterations */
};

/* The file while the process runs, one for all devices. */
static struct {
    int fd;       /* -1: not open */
    bool tried;   /* begin_live() has run; with fd -1 the file cannot be kept up to date: a pipe, a device, a full disk */
    size_t bytes; /* the longest text so far: a shorter one is padded to it */
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

/* The mode of the first device that is in use. */
static const char *mode_name(struct device *const *devs, unsigned n, bool active)
{
    for (unsigned i = 0; i < n; i++)
        if (devs[i]->ready)
            return device_mode_name(devs[i], devs[i]->whole_mode);
    return !n ? "unused" : active ? "observe" : "off";
}

/* A text may hold a path: quotes, backslashes and control characters in it are replaced. */
static size_t put_text(char *to, size_t at, const char *name, const char *text)
{
    at += (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"%s\": \"", name);
    for (; *text; text++)
        to[at++] = (char)(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '\'' : *text);
    return at + (size_t)snprintf(to + at, TEXT_BYTES - at, "\",\n");
}

/* The fraction value / one with `digits` digits after the point, printed from integers: printf's %f depends on the program's locale. `known` false: null. */
static size_t put_fraction(char *to, size_t at, const char *name, bool known, int64_t value, int64_t one, int digits)
{
    if (!known)
        return at + (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"%s\": null,\n", name);
    const int64_t v = value < 0 ? -value : value;
    return at + (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"%s\": %s%lld.%0*lld,\n", name, value < 0 ? "-" : "", (long long)(v / one), digits,
                                 (long long)(v % one));
}

/* Writes the summary's JSON object to `to`. Returns its length. */
static size_t put_object(const struct summary *s, const char *mode, char to[TEXT_BYTES])
{
    const struct stats *t = &s->t;
    const uint64_t launches = t->hook_launches ? t->hook_launches : 1;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"limit_bytes", s->limit_bytes},
        {"peak_physical_bytes", t->peak_physical_bytes},
        {"native_peak_bytes", t->native_peak_bytes},
        {"iterations", t->iterations},
        {"iterations_enforced", t->iterations_enforced},
        {"launches", t->launches},
        {"replays", t->replays},
        {"evictions", t->evictions},
        {"swaps_out", t->swaps_out},
        {"swaps_in", t->swaps_in},
        {"divergences", t->divergences},
        {"verify_checked", t->verify_checked},
        {"verify_failed", t->verify_failed},
        {"driver_memory_calls_steady", t->mem_calls_enforced},
        {"hook_ns_per_launch", t->hook_ns / launches},
        {"swaps_steady", t->swaps_enforced},
        {"driver_memory_calls", t->mem_calls},
        {"gave_back_bytes", t->gave_back_bytes},
        {"launches_tried", t->launches_tried},
        {"launches_looked_at", t->launches_looked_at},
        {"facts_known", t->facts_known},
        {"facts_like", t->facts_like},
        {"facts_unknown", t->facts_unknown},
        {"facts_taken", t->facts_taken},
        {"facts_contradicted", t->facts_contradicted},
        {"facts_earlier", t->facts_earlier},
        {"plans_earlier", t->plans_earlier},
        {"plans", t->plans},
        {"bytes_out", t->bytes_out},
        {"bytes_in", t->bytes_in},
        {"host_peak_bytes", t->host_peak_bytes},
    };
    size_t at = (size_t)snprintf(to, TEXT_BYTES, "{\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        at += (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"%s\": %llu,\n", rows[i].name, (unsigned long long)rows[i].value);
    at = put_fraction(to, at, "native_ns_per_iteration", s->native_ps, (int64_t)s->native_ps, 1000, 3);
    if (s->native_ps)
        at = put_text(to, at, "native_is", s->native_is_measured ? "measured" : "estimated");
    else
        at += (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"native_is\": null,\n");
    at = put_fraction(to, at, "overhead", s->has_overhead, s->overhead_ppm, 1000000, 6);
    at = put_fraction(to, at, "bound", s->has_bound, s->bound_ppm, 1000000, 6);
    at = put_fraction(to, at, "learning_s", true, (int64_t)t->lessons_ns, 1000000000, 9);
    at = put_fraction(to, at, "learning_device_s", true, (int64_t)t->learning_ns, 1000000000, 9);
    at = put_fraction(to, at, "planning_s", true, (int64_t)t->planning_ns, 1000000000, 9);
    at = put_fraction(to, at, "first_enforced_s", s->first_enforced_ns, (int64_t)s->first_enforced_ns, 1000000000, 9);
    if (s->why_not[0] && 2 * t->iterations_enforced < t->iterations + !t->iterations)
        at = put_text(to, at, "why_not", s->why_not);
    at = put_fraction(to, at, "device_ns_per_iteration", true, (int64_t)s->iteration_ps, 1000, 3);
    return at + (size_t)snprintf(to + at, TEXT_BYTES - at, "  \"mode\": \"%s\"\n}\n", mode);
}

/* Writes one JSON object for all devices together to `to`. Returns its length. */
static size_t make_text(struct device *const *devs, unsigned n, bool active, char to[TEXT_BYTES])
{
    struct summary s;
    summary_make(devs, n, &s);
    return put_object(&s, mode_name(devs, n, active), to);
}

/* Writes the text to live.fd; the rest of a longer text before it is blanked. */
static void write_live(char *text, size_t n)
{
    for (; n < live.bytes; n++)
        text[n] = '\n';
    live.bytes = n;
    log_wrote(n);
    if (pwrite(live.fd, text, n, 0) != (ssize_t)n && errno != EINTR) { /* a full disk: the file keeps what fitted */
        close(live.fd);
        live.fd = -1;
    }
}

/* Runs once a process; apart from stats_keep(), which may be called on a small stack: a struct output is 16 KiB. */
__attribute__((noinline)) static void begin_live(const struct config *cfg, const char *text, size_t n)
{
    struct output o;
    char why[OUTPUT_PATH + 100];
    live.tried = true;
    if (!output_is_file(cfg->stats, OUTPUT_RUN) || output_open(&o, cfg->stats, OUTPUT_RUN | OUTPUT_NO_WAIT, why, sizeof why))
        return; /* the error is told when the file is written at the end */
    fwrite(text, 1, n, o.f); /* a failure shows in output_commit_open() */
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

static void write_whole(const struct config *cfg, const char *text, size_t bytes)
{
    struct output o;
    char why[OUTPUT_PATH + 100];
    int rc = output_open(&o, cfg->stats, OUTPUT_RUN | OUTPUT_NO_WAIT, why, sizeof why);
    if (!rc) {
        fwrite(text, 1, bytes, o.f); /* a failure shows in output_commit() */
        rc = output_commit(&o, why, sizeof why);
    }
    if (rc)
        log_say(SAY_WARN, "%s", why);
    stats_after_fork_child();
}

void stats_write(const struct config *cfg, struct device *const *devs, unsigned n, bool active)
{
    char text[TEXT_BYTES];
    if (cfg->stats[0])
        write_whole(cfg, text, make_text(devs, n, active, text));
}

void stats_write_nothing(const struct config *cfg, const char *mode, const char *why_not)
{
    struct summary s;
    char text[TEXT_BYTES];
    if (!cfg->stats[0])
        return;
    summary_make(NULL, 0, &s);
    snprintf(s.why_not, sizeof s.why_not, "%s", why_not);
    write_whole(cfg, text, put_object(&s, mode, text));
}

void stats_after_fork_child(void)
{
    if (live.fd >= 0)
        close(live.fd);
    live.fd = -1;
    live.tried = true;
}
