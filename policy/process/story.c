/* story.c: see story.h. */
#include "policy/process/story.h"

#include "policy/process/stats.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    uint64_t last_ns;   /* time of the latest line of any device; 0: none yet */
    unsigned n_warned;  /* lines of story_warns() */
    bool limit_told;    /* a line has told how many bytes a limit in percent is */
} process_tells;

bool story_set(struct story *s, enum story_state now, uint64_t which, const char *text)
{
    if (s->now == now && s->which == which && (now != STORY_SWAPPING || !strcmp(s->text, text)))
        return false;
    s->now = now;
    s->which = which;
    snprintf(s->text, sizeof s->text, "%s", text);
    if (now == STORY_SWAPPING)
        snprintf(s->why, sizeof s->why, "%s", text);
    s->due = s->told != now || s->told_which != which || now == STORY_SWAPPING;
    return true;
}

bool story_may_tell(struct story *s, uint64_t pause_ns, uint64_t now_ns, uint64_t last_ns)
{
    if (!s->due || (last_ns && now_ns - last_ns < pause_ns))
        return false;
    s->due = false;
    s->told = s->now;
    s->told_which = s->which;
    return true;
}

int story_init(struct device *d)
{
    if (!d->story)
        d->story = calloc(1, sizeof *d->story);
    return d->story ? 0 : -ENOMEM;
}

static bool is_told(const struct device *d)
{
    return !d->cfg->quiet && !d->cfg->trace_mode && log_threshold >= SAY_WARN && d->mem.limit_bytes < d->mem.device_bytes;
}

/* The bytes of a limit given in percent, for the process's first line; "" in later lines. */
static void limit_text(const struct device *d, char to[100])
{
    to[0] = 0;
    if (process_tells.limit_told || !(d->cfg->limit_pct > 0))
        return;
    process_tells.limit_told = true;
    const uint64_t hundredths = (uint64_t)(d->cfg->limit_pct * 100 + 0.5);
    snprintf(to, 100, " (--limit: %llu.%02llu %% of the device's memory is %s)", (unsigned long long)hundredths / 100, (unsigned long long)hundredths % 100,
             rt_size(d->mem.limit_bytes).text);
}

void story_goes_on(struct device *d)
{
    struct story *s = d->story;
    if (!s || !s->due || !is_told(d))
        return;
    const uint64_t now = stats_now_ns();
    const bool back = s->told == STORY_SWAPPING && s->swapped;
    const uint64_t pause = !log_on_terminal() ? STORY_PAUSE_NS : log_state_is_last() ? STORY_PAUSE_NS / 50 : STORY_PAUSE_NS / 5;
    if (!story_may_tell(s, pause, now, process_tells.last_ns))
        return;
    char limit[100], which[24] = "";
    limit_text(d, limit);
    if (!d->primary)
        snprintf(which, sizeof which, "device %d: ", (int)d->dev);
    process_tells.last_ns = now;
    log_state("%s%s%s%s", which, s->now == STORY_SWAPPING ? "swapping: " : s->now == STORY_IN_FORCE && back ? "back: " : "", s->text, limit);
}

static void becomes(struct device *d, enum story_state now, uint64_t which, const char *fmt, va_list ap)
{
    char text[STORY_TEXT];
    if (!d->story)
        return;
    vsnprintf(text, sizeof text, fmt, ap);
    const bool had_plan = d->story->now == STORY_IN_FORCE;
    if (story_set(d->story, now, which, text) && now == STORY_SWAPPING)
        d->story->swapped = had_plan;
}

void story_becomes(struct device *d, enum story_state now, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    becomes(d, now, 0, fmt, ap);
    va_end(ap);
}

void story_is_which(struct device *d, enum story_state now, uint64_t which, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    becomes(d, now, which, fmt, ap);
    va_end(ap);
    story_goes_on(d);
}

void story_warns(struct device *d, enum story_state now, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (log_threshold >= SAY_WARN && process_tells.n_warned < LOG_CAP)
        log_line(process_tells.n_warned++, LOG_CAP, "%s", text);
    if (!d->story)
        return;
    story_set(d->story, now, 0, text);
    d->story->due = false; /* the warning has told the state */
    d->story->told = now;
    d->story->told_which = d->story->which;
    process_tells.last_ns = stats_now_ns();
}
