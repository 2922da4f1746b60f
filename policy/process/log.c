/* log.c: see log.h. */
#include "policy/process/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PASSING = 100 };

int log_threshold = SAY_WARN;
unsigned log_topics;

static int word_is(const char *at, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(at, word, n) == 0;
}

int log_init(const char *spec)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    int rc = 0;
    while (spec && *spec) {
        size_t n = strcspn(spec, ",");
        int known = n == 0;
        for (int i = 0; i < (int)(sizeof levels / sizeof levels[0]); i++)
            if (word_is(spec, n, levels[i])) {
                log_threshold = i;
                known = 1;
            }
        if (word_is(spec, n, "doors")) {
            log_topics |= LOG_TOPIC_DOORS;
            known = 1;
        }
        if (!known)
            rc = -EINVAL;
        spec += n + (spec[n] == ',');
    }
    return rc;
}

static void put(const char *text, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = write(STDERR_FILENO, text + done, n - done);
        if (w > 0)
            done += (size_t)w;
        else if (w < 0 && errno != EINTR)
            break;
    }
}

static atomic_uint passing; /* characters of the line that is there now */

void log_passed(void)
{
    unsigned n = atomic_exchange(&passing, 0);
    char wipe[PASSING + 2];
    if (!n)
        return;
    memset(wipe, ' ', sizeof wipe);
    wipe[0] = wipe[n + 1] = '\r';
    put(wipe, n + 2);
}

void log_passing(const char *fmt, ...)
{
    char text[PASSING + 1];
    int saved = errno;
    va_list ap;
    if (tcgetpgrp(STDERR_FILENO) == getpgrp()) { /* -1: no terminal, or not ours */
        int n = snprintf(text, sizeof text, "\rremat[%d]: ", (int)getpid());
        va_start(ap, fmt);
        int m = vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
        va_end(ap);
        n += m > 0 ? m : 0;
        n = n < PASSING ? n : PASSING;
        log_passed();
        atomic_store(&passing, (unsigned)n - 1);
        put(text, (size_t)n);
    }
    errno = saved;
}

void log_line(unsigned nth, unsigned cap, const char *fmt, ...)
{
    static const char last[] = " (this message is not repeated)";
    char buf[1024];
    int saved = errno;
    int n = snprintf(buf, sizeof buf, "remat[%d]: ", (int)getpid());
    /* room is kept for the closing note and the newline */
    size_t room = sizeof buf - (size_t)n - sizeof last - 1;
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(buf + n, room, fmt, ap);
    va_end(ap);
    if (m < 0)
        m = 0;
    size_t len = (size_t)n + ((size_t)m < room ? (size_t)m : room - 1);
    if (cap > 1 && nth == cap - 1) {
        memcpy(buf + len, last, sizeof last - 1);
        len += sizeof last - 1;
    }
    buf[len++] = '\n';
    log_passed();
    put(buf, len);
    errno = saved;
}
