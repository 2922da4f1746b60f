/* log.c: see log.h. */
#include "policy/process/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    for (size_t done = 0; done < len;) {
        ssize_t w = write(STDERR_FILENO, buf + done, len - done);
        if (w > 0)
            done += (size_t)w;
        else if (w < 0 && errno != EINTR)
            break;
    }
    errno = saved;
}
