#include "offline/commands/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void cli_progress(const char *fmt, ...)
{
    static struct timespec last;
    struct timespec now;
    char line[160];
    va_list ap;
    int n;

    if (!cli_is_terminal())
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((double)(now.tv_sec - last.tv_sec) + (double)(now.tv_nsec - last.tv_nsec) * 1e-9 < 0.1)
        return;
    last = now;
    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    n = n < (int)sizeof(line) ? n : (int)sizeof(line) - 1;
    fprintf(stderr, "\r%-*s", cli_shown, line);
    fflush(stderr);
    cli_shown = n > cli_shown ? n : cli_shown;
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
    if (!cli_shown)
        return;
    fprintf(stderr, "\r%*s\r", cli_shown, "");
    fflush(stderr);
    cli_shown = 0;
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

static void cli_usage(const char *usage, const struct cli_option *o)
{
    printf("usage: remat %s\n", usage);
    if (o->name)
        printf("\n");
    for (; o->name; o++) {
        char left[64];
        int n = 0;

        if (o->letter)
            n = snprintf(left, sizeof(left), "-%c, ", o->letter);
        n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        printf("  %-26s%s\n", left, o->help);
    }
}

static const struct cli_option *cli_find(const struct cli_option *o, const char *arg, const char **value)
{
    *value = NULL;
    for (; o->name; o++) {
        size_t n = strlen(o->name);

        if (arg[1] == '-') {
            if (!strncmp(arg + 2, o->name, n) && (!arg[2 + n] || arg[2 + n] == '=')) {
                *value = arg[2 + n] ? arg + 3 + n : NULL;
                return o;
            }
        } else if (o->letter && arg[1] == o->letter && (o->arg || !arg[2])) {
            *value = arg[2] ? arg + 2 : NULL;
            return o;
        }
    }
    return NULL;
}

int cli_parse(int argc, char **argv, const char *usage, const struct cli_option *table, const char **operands, size_t max,
              size_t *n_operands)
{
    const char *value;
    size_t n = 0;
    int i, options = 1, stdin_uses = 0;

    for (i = 1; i < argc; i++) {
        const struct cli_option *o;

        if (!options || argv[i][0] != '-' || !argv[i][1]) {
            if (n == max) {
                cli_bad("%s: unexpected argument \"%s\" (remat %s --help)", argv[0], argv[i], argv[0]);
                return -EINVAL;
            }
            operands[n++] = argv[i];
            stdin_uses += !strcmp(argv[i], "-");
            if (stdin_uses > 1) {
                cli_bad("%s: standard input (-) can be read only once", argv[0]);
                return -EINVAL;
            }
            continue;
        }
        if (!strcmp(argv[i], "--")) {
            options = 0;
            continue;
        }
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            cli_usage(usage, table);
            return 1;
        }
        o = cli_find(table, argv[i], &value);
        if (!o) {
            cli_bad("%s: unknown option \"%s\" (remat %s --help)", argv[0], argv[i], argv[0]);
            return -EINVAL;
        }
        if (!o->arg) {
            if (value) {
                cli_bad("%s: --%s takes no value", argv[0], o->name);
                return -EINVAL;
            }
            ++*(int *)o->to;
            continue;
        }
        if (!value && ++i < argc)
            value = argv[i];
        if (!value) {
            cli_bad("%s: --%s needs %s", argv[0], o->name, o->arg);
            return -EINVAL;
        }
        *(const char **)o->to = value;
    }
    *n_operands = n;
    return 0;
}
