/* status_table.c: see status_table.h. */
#include "offline/commands/status_table.h"

#include "offline/commands/cli.h"

#include <inttypes.h>
#include <math.h>
#include <sys/ioctl.h>

enum { COLUMNS_LEAST = 80, BEFORE_COMMAND = 68 };

static int columns(void)
{
    struct winsize w;
    return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col > COLUMNS_LEAST ? w.ws_col : COLUMNS_LEAST;
}

/* At most five characters: 640K, 1.5M, 200M, 80G. */
static const char *short_bytes(uint64_t bytes, char to[16])
{
    static const char units[] = "BKMGTP";
    double v = (double)bytes;
    size_t u = 0;
    for (; v >= 999.5 && units[u + 1]; u++)
        v /= 1024;
    snprintf(to, 16, v < 9.95 && u ? "%.1f%c" : "%.0f%c", v, units[u]);
    return to;
}

static const char *short_limit(uint64_t bytes, char to[16]) { return bytes ? short_bytes(bytes, to) : "none"; }

static const char *price_text(double price, char to[24])
{
    if (isnan(price))
        return "-";
    snprintf(to, 24, fabs(price) < 0.0995 ? "%+.1f%%" : price < 99.995 ? "%+.0f%%" : "%+.0e%%", 100 * price);
    return to;
}

/* The first characters of a text in UTF-8, `most` of them, and the end of the line. */
static void put_line(const char *text, int most)
{
    size_t n = 0;
    for (; text[n] && (most > 0 || ((unsigned char)text[n] & 0xC0) == 0x80); n++)
        most -= ((unsigned char)text[n] & 0xC0) != 0x80;
    printf("%.*s\n", (int)n, text);
}

static void narrow_row(const struct job *s, int width)
{
    char limit[16], use[16], host[16], gpu[12] = "-", rate[16] = "-", share[16] = "-", price[24];
    if (s->device >= 0)
        snprintf(gpu, sizeof gpu, "%d", s->device);
    if (s->iterations_per_s > 0)
        snprintf(rate, sizeof rate, s->iterations_per_s < 9.995 ? "%.2f" : s->iterations_per_s < 99999.5 ? "%.0f" : "%.0e", s->iterations_per_s);
    if (s->device_bytes)
        snprintf(share, sizeof share, "%.0f%%", 100 * jobs_share(s));
    printf("%-8.8s %7" PRId64 " %3s %-8s %5s %5s %5s %5s %6s %5s ", s->user, s->pid, gpu, *s->mode ? s->mode : "-", short_limit(s->limit_bytes, limit),
           short_bytes(s->in_use_bytes, use), share, short_bytes(s->host_bytes, host), price_text(s->price, price), rate);
    /* /usr/bin/python train.py: the folders of the program are what can be spared */
    const char *name = s->command, *end = s->command + strcspn(s->command, " ");
    for (const char *c = name; c < end; c++)
        name = *c == '/' ? c + 1 : name;
    put_line(name, width - BEFORE_COMMAND);
}

static void wide_row(const struct job *s)
{
    char limit[32], use[32], peak[32], host[32], gpu[12] = "-", rate[16] = "-", share[16] = "-", price[24];
    if (s->device >= 0)
        snprintf(gpu, sizeof gpu, "%d", s->device);
    if (s->iterations_per_s > 0)
        snprintf(rate, sizeof rate, s->iterations_per_s < 10 ? "%.2f" : "%.1f", s->iterations_per_s);
    if (s->device_bytes)
        snprintf(share, sizeof share, "%.1f%%", 100 * jobs_share(s));
    printf("%-10s %8" PRId64 " %3s %-10s %-8s %11s %11s %6s %11s %11s %7s %10" PRIu64 " %7s  %s\n", s->user, s->pid, gpu, *s->group ? s->group : "-",
           *s->mode ? s->mode : "-", s->limit_bytes ? cli_bytes((int64_t)s->limit_bytes, limit, sizeof limit) : "none",
           cli_bytes((int64_t)s->in_use_bytes, use, sizeof use), share, cli_bytes((int64_t)s->peak_bytes, peak, sizeof peak),
           cli_bytes((int64_t)s->host_bytes, host, sizeof host), price_text(s->price, price), s->iterations, rate, s->command);
}

static void group_line(const struct job_group *g, bool wide)
{
    const struct ledger_view *v = &g->view;
    char limit[16], held[16], peak[16];
    printf(wide ? "group %s of %s: " : "group %.16s of %.8s: ", v->group, g->user);
    printf("%s of %s reserved, %s at most, %u process%s\n", short_bytes(v->reserved, held), short_bytes(v->limit, limit), short_bytes(v->peak_reserved, peak),
           v->n, v->n == 1 ? "" : "es");
}

void status_table(const struct jobs *j, bool wide)
{
    const int width = columns();
    if (!j->n)
        puts("no process runs under remat");
    else if (wide)
        printf("%-10s %8s %3s %-10s %-8s %11s %11s %6s %11s %11s %7s %10s %7s  %s\n", "user", "pid", "gpu", "group", "mode", "limit", "in use", "share", "peak",
               "on the host", "price", "iterations", "it/s", "command");
    else
        printf("%-8s %7s %3s %-8s %5s %5s %5s %5s %6s %5s command\n", "user", "pid", "gpu", "mode", "limit", "use", "share", "host", "price", "it/s");
    for (size_t i = 0; i < j->n; i++)
        if (wide)
            wide_row(&j->list[i]);
        else
            narrow_row(&j->list[i], width);
    for (size_t i = 0; i < j->n_groups; i++)
        group_line(&j->groups[i], wide);
}
