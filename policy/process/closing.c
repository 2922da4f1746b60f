/* closing.c: see closing.h. Fractions are printed from integers: printf's %f depends on the program's locale, and is not for signal handlers. */
#include "policy/process/closing.h"

#include <stdarg.h>
#include <stdio.h>

struct words {
    char *to;
    size_t at;
};

static __attribute__((format(printf, 2, 3))) void say(struct words *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(w->to + w->at, CLOSING_TEXT - w->at, fmt, ap);
    va_end(ap);
    w->at += n > 0 ? (size_t)n : 0;
    w->at = w->at < CLOSING_TEXT ? w->at : CLOSING_TEXT - 1;
}

/* A share in millionths as a signed percentage with one decimal. */
static void say_percent(struct words *w, int64_t ppm)
{
    const uint64_t tenths = ((uint64_t)(ppm < 0 ? -ppm : ppm) + 500) / 1000;
    say(w, "%c%llu.%llu %%", ppm < 0 && tenths ? '-' : '+', (unsigned long long)tenths / 10, (unsigned long long)tenths % 10);
}

static void say_seconds(struct words *w, uint64_t ns)
{
    const uint64_t tenths = (ns + 50000000) / 100000000;
    say(w, "%llu.%llu s", (unsigned long long)tenths / 10, (unsigned long long)tenths % 10);
}

/* Device time `ps` (1e-12 s): in ms below 10 s, else in s. */
static void say_time(struct words *w, uint64_t ps)
{
    const uint64_t us = (ps + 500000) / 1000000, ms = (us + 500) / 1000;
    if (us < 10000000)
        say(w, "%llu.%03llu ms", (unsigned long long)us / 1000, (unsigned long long)us % 1000);
    else
        say(w, "%llu.%03llu s", (unsigned long long)ms / 1000, (unsigned long long)ms % 1000);
}

static void memory(struct words *w, const struct config *cfg, const struct summary *s)
{
    say(w, "peak %s", rt_size(s->t.peak_physical_bytes).text);
    if (!s->limited)
        say(w, " without a limit");
    else if (cfg->limit_pct > 0) {
        const uint64_t hundredths = (uint64_t)(cfg->limit_pct * 100 + 0.5);
        say(w, " of %s (%llu.%02llu %% of the device's memory)", rt_size(s->limit_bytes).text, (unsigned long long)hundredths / 100, (unsigned long long)hundredths % 100);
    } else
        say(w, " of %s", rt_size(s->limit_bytes).text);
    if (s->pressed || s->t.native_peak_bytes > s->t.peak_physical_bytes)
        say(w, ", natively %s", rt_size(s->t.native_peak_bytes).text);
}

static void iterations(struct words *w, const struct summary *s)
{
    if (s->limited && s->pressed) {
        say(w, "; %llu of %llu iterations by a plan", (unsigned long long)s->t.iterations_enforced, (unsigned long long)s->t.iterations);
        if (s->why_not[0])
            say(w, " (%s)", s->why_not);
    } else if (s->t.iterations)
        say(w, "; %llu iterations%s%s%s", (unsigned long long)s->t.iterations, s->limited ? " (" : "", s->limited ? s->why_not : "", s->limited ? ")" : "");
    else
        say(w, "; no iteration that comes again was recognised");
}

static void time_of_one(struct words *w, const struct summary *s)
{
    if (!s->iteration_ps) {
        say(w, "; how long one takes is not known");
        return;
    }
    say(w, "; ");
    say_time(w, s->iteration_ps);
    if (s->native_is_measured) {
        say(w, " each, as natively (measured)");
        return;
    }
    say(w, " each");
    if (!s->has_overhead) {
        say(w, ", natively not known");
        return;
    }
    say(w, ", ");
    say_percent(w, s->overhead_ppm);
    say(w, " on ");
    say_time(w, s->native_ps);
    say(w, " natively (estimated)");
    if (s->has_bound) {
        say(w, ", proved bound ");
        say_percent(w, s->bound_ppm);
    } else
        say(w, ", no bound known");
}

static void work(struct words *w, const struct summary *s)
{
    if (s->t.lessons_ns || s->t.planning_ns) {
        say(w, "; learning ");
        say_seconds(w, s->t.lessons_ns);
        say(w, ", planning ");
        say_seconds(w, s->t.planning_ns);
    }
    if (s->t.verify_checked)
        say(w, "; %llu values compared, %llu differed", (unsigned long long)s->t.verify_checked, (unsigned long long)s->t.verify_failed);
    else if (s->t.replays)
        say(w, "; no values compared");
    if (s->t.bytes_out || s->t.bytes_in)
        say(w, "; copied %s out, %s in", rt_size(s->t.bytes_out).text, rt_size(s->t.bytes_in).text);
    else if (s->pressed)
        say(w, "; nothing copied");
}

void closing_text(const struct config *cfg, const struct summary *s, char to[CLOSING_TEXT])
{
    struct words w = {.to = to};
    memory(&w, cfg, s);
    iterations(&w, s);
    time_of_one(&w, s);
    work(&w, s);
}

void closing_say(const struct config *cfg, struct device *const *devs, unsigned n)
{
    struct summary s;
    char text[CLOSING_TEXT];
    if (cfg->quiet || cfg->trace_mode || log_threshold < SAY_WARN)
        return;
    summary_make(devs, n, &s);
    if (!s.t.launches && !s.t.peak_physical_bytes)
        return;
    closing_text(cfg, &s, text);
    log_line(0, 1, "%s", text);
}
