#include "offline/commands/cli.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* Digits with an optional fraction, nothing else: no sign, exponent, hex, inf. Returns where it stopped, NULL if there
 * is no number. */
static const char *cli_digits(const char *s, double *out)
{
    double v = 0, scale = 1;
    int any = 0;

    for (; *s >= '0' && *s <= '9'; s++, any = 1)
        v = v * 10 + (*s - '0');
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, any = 1)
            v += (*s - '0') * (scale /= 10);
    *out = v;
    return any ? s : NULL;
}

/* K, KB, KiB, B or nothing; case does not matter. Returns the power of 1024, or -1. */
static int cli_unit(const char *s)
{
    static const char letters[] = "kmgtpe";
    const char *at;
    int power = 0;

    if (!*s)
        return 0;
    at = strchr(letters, *s | 0x20);
    if (at) {
        power = (int)(at - letters) + 1;
        s++;
        if (*s == 'i')
            s++, power = *s ? power : -1; /* "Ki" alone is no unit */
    }
    if (power >= 0 && (*s == 'b' || *s == 'B'))
        s++;
    return *s ? -1 : power;
}

int cli_size(const char *text, int64_t whole_bytes, int64_t *bytes)
{
    const char *end;
    char *stop;
    double v;
    int power;

    /* Plain digits are taken exactly: a double would round above 2^53. */
    if (*text >= '0' && *text <= '9') {
        long long exact;

        errno = 0;
        exact = strtoll(text, &stop, 10);
        if (!*stop && !errno) {
            *bytes = exact;
            return 0;
        }
    }
    end = cli_digits(text, &v);
    if (!end)
        return -EINVAL;
    if (*end == '%') {
        if (end[1] || whole_bytes <= 0)
            return -EINVAL;
        v = v / 100 * (double)whole_bytes;
    } else {
        power = cli_unit(end);
        if (power < 0)
            return -EINVAL;
        v = ldexp(v, 10 * power);
    }
    if (!(v < 9.2e18))
        return -EINVAL;
    *bytes = (int64_t)v;
    return 0;
}

int cli_long(const char *text, int64_t min, int64_t max, int64_t *out)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < min || v > max)
        return -EINVAL;
    *out = v;
    return 0;
}

int cli_real(const char *text, double min, double max, double *out)
{
    char *end;
    double v;

    errno = 0;
    v = strtod(text, &end);
    if (errno || end == text || *end || !(v >= min && v <= max))
        return -EINVAL;
    *out = v;
    return 0;
}

int cli_seconds(const char *text, double *out)
{
    static const double AT_ONCE_S = 1e-3;

    *out = 0;
    if (!text)
        return 0;
    if (cli_real(text, 0, 1e9, out))
        return -EINVAL;
    *out = *out < AT_ONCE_S ? AT_ONCE_S : *out;
    return 0;
}

int cli_same_file(const char *out, const char *in)
{
    struct stat a, b;

    return out && in && strcmp(out, "-") && strcmp(in, "-") && !stat(out, &a) && !stat(in, &b) && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

const char *cli_bytes(int64_t bytes, char *buf, size_t len)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    int i = 0;

    while (fabs(v) >= 1024 && i < 6) {
        v /= 1024;
        i++;
    }
    snprintf(buf, len, i ? "%.2f %s" : "%.0f %s", v, unit[i]);
    return buf;
}

/* ---- messages ----------------------------------------------------------------------------------------------------- */

static int cli_shown; /* characters of progress now on the terminal's line */

static void cli_say(const char *fmt, va_list ap)
{
    char line[1024];

    cli_progress_end();
    vsnprintf(line, sizeof(line), fmt, ap);
    fprintf(stderr, "remat: %s\n", line);
}

int cli_bad(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    cli_say(fmt, ap);
    va_end(ap);
    return CLI_BAD;
}

int cli_fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    cli_say(fmt, ap);
    va_end(ap);
    return CLI_FAIL;
}

int cli_infeasible(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    cli_say(fmt, ap);
    va_end(ap);
    return CLI_INFEASIBLE;
}

int cli_is_terminal(void) { return isatty(STDERR_FILENO); }

/* What stands on the terminal's line, and who may write there: the solver's own thread, or the ticker's. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    int running, stop;
    char what[160];
    double most_s;
    struct timespec began, last;
} tick = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static double cli_since(const struct timespec *t)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) * 1e-9;
}

/* With the lock held. */
static void cli_show(void)
{
    char line[240];
    int n;

    if (tick.running && tick.most_s > 0)
        n = snprintf(line, sizeof(line), "%s, %.0f s of %.0f s at most", tick.what, cli_since(&tick.began), tick.most_s);
    else if (tick.running)
        n = snprintf(line, sizeof(line), "%s, %.0f s", tick.what, cli_since(&tick.began));
    else
        n = snprintf(line, sizeof(line), "%s", tick.what);
    n = n < (int)sizeof(line) ? n : (int)sizeof(line) - 1;
    fprintf(stderr, "\r%-*s", cli_shown, line);
    fflush(stderr);
    cli_shown = n > cli_shown ? n : cli_shown;
}

static void *cli_tick(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&tick.lock);
    while (!tick.stop) {
        struct timespec at;

        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec++;
        if (pthread_cond_timedwait(&tick.wake, &tick.lock, &at) == ETIMEDOUT)
            cli_show();
    }
    pthread_mutex_unlock(&tick.lock);
    return NULL;
}

void cli_ticker(const char *what, double most_s)
{
    if (!cli_is_terminal() || tick.running)
        return;
    snprintf(tick.what, sizeof(tick.what), "%s", what);
    tick.most_s = most_s;
    tick.stop = 0;
    clock_gettime(CLOCK_REALTIME, &tick.began);
    tick.running = 1;
    if (pthread_create(&tick.thread, NULL, cli_tick, NULL))
        tick.running = 0; /* no thread: no seconds */
}

void cli_progress(const char *fmt, ...)
{
    va_list ap;

    /* trylock: a child that a solver forked may have been born while the lock was held */
    if (!cli_is_terminal() || pthread_mutex_trylock(&tick.lock))
        return;
    if (cli_since(&tick.last) >= 0.1) {
        clock_gettime(CLOCK_REALTIME, &tick.last);
        va_start(ap, fmt);
        vsnprintf(tick.what, sizeof(tick.what), fmt, ap);
        va_end(ap);
        cli_show();
    }
    pthread_mutex_unlock(&tick.lock);
}

int cli_finish(int rc)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return rc;
    /* the stream remembers that a write failed, not why: one more byte tells */
    if (!errno && write(STDOUT_FILENO, "\n", 1) == 1)
        errno = EIO;
    /* CLI_FAIL: the command has said so itself */
    return rc == CLI_FAIL ? rc : cli_fail("standard output: cannot write: %s", strerror(errno ? errno : EIO));
}

void cli_progress_end(void)
{
    if (tick.running) {
        pthread_mutex_lock(&tick.lock);
        tick.stop = 1;
        pthread_cond_signal(&tick.wake);
        pthread_mutex_unlock(&tick.lock);
        pthread_join(tick.thread, NULL);
        tick.running = 0;
    }
    if (!cli_shown)
        return;
    fprintf(stderr, "\r%*s\r", cli_shown, "");
    fflush(stderr);
    cli_shown = 0;
}

void cli_json(const char *s)
{
    putchar('"');
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            printf("\\u%04x", *s);
        else
            putchar(*s);
    putchar('"');
}
