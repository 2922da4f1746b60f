/* log.c: see log.h. */
#include "policy/process/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

static atomic_ullong own_bytes; /* bytes written by remat, to any file */

void log_wrote(size_t bytes) { atomic_fetch_add_explicit(&own_bytes, bytes, memory_order_relaxed); }

static void put(const char *text, size_t n)
{
    log_wrote(n);
    for (size_t done = 0; done < n;) {
        ssize_t w = write(STDERR_FILENO, text + done, n - done);
        if (w > 0)
            done += (size_t)w;
        else if (w < 0 && errno != EINTR)
            break;
    }
}

bool log_on_terminal(void)
{
    return tcgetpgrp(STDERR_FILENO) == getpgrp(); /* tcgetpgrp() gives -1: no terminal, or not this session's */
}

static atomic_uint passing; /* characters of the log_passing() line on the terminal; 0: none */

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
    if (log_on_terminal()) {
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

/* The latest line of log_state(). Other threads may write a line below it at any time. */
static struct {
    _Atomic unsigned long long others; /* others_bytes() when the line was written; ULLONG_MAX: not known */
    _Atomic unsigned rows;             /* terminal rows that the line takes; 0: another line follows it, or stderr is no terminal */
} state;

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
    state.rows = 0; /* the next log_state() line goes below this line */
    errno = saved;
}

/* ---- the story's line -------------------------------------------------------------------------------------------------- */

/* Bytes that this process has written to any file, remat's own left out; ULLONG_MAX: not known. */
static unsigned long long others_bytes(void)
{
    static const char key[] = "\nwchar: ";
    char text[400];
    const int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, key);
    return at ? strtoull(at + sizeof key - 1, NULL, 10) - atomic_load_explicit(&own_bytes, memory_order_relaxed) : -1ull;
}

unsigned long long log_own_writes_begin(void) { return state.rows ? others_bytes() : -1ull; }

void log_own_writes_end(unsigned long long begun)
{
    if (begun != -1ull && state.rows)
        log_wrote((size_t)(others_bytes() - begun));
}

static unsigned rows_of(size_t n)
{
    struct winsize w;
    const size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || !w.ws_col ? 80 : w.ws_col;
    return (unsigned)((n + columns - 1) / columns);
}

bool log_state_is_last(void) { return state.rows && state.others != -1ull && state.others == others_bytes(); }

void log_state(const char *fmt, ...)
{
    char buf[1024];
    int saved = errno, up = 0;
    const bool drawn = log_on_terminal();
    log_passed();
    const unsigned rows = drawn && log_state_is_last() ? state.rows : 0;
    if (rows)
        up = snprintf(buf, sizeof buf, "\033[%uA\r\033[J", rows);
    const int n = up + snprintf(buf + up, sizeof buf - (size_t)up, "remat[%d]: ", (int)getpid());
    va_list ap;
    va_start(ap, fmt);
    const int m = vsnprintf(buf + n, sizeof buf - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t len = (size_t)n + (m > 0 ? (size_t)m : 0);
    len = len < sizeof buf - 1 ? len : sizeof buf - 2;
    buf[len++] = '\n';
    put(buf, len);
    state.rows = drawn ? rows_of(len - (size_t)up - 1) : 0;
    state.others = drawn ? others_bytes() : -1ull;
    errno = saved;
}
