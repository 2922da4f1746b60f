/* cmd_status.c: `remat status`: which processes run under remat now. Reads the pages of policy/process/status.h; a page whose owner
 * has ended (the kernel holds no lock on it any more) is removed.
 */
#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "policy/process/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>

struct seen {
    int64_t pid, started_unix_s;
    uint64_t limit_bytes, in_use_bytes, peak_bytes, iterations, swapped_bytes;
    char mode[9];
    char command[sizeof ((struct status_page *)0)->command];
};

/* 1: a living process's page, in *out. 0: not one (a stale one is removed). */
static int read_page(int dir, const char *name, struct seen *out)
{
    int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st, now;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct status_page page;
    int alive = 0;
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fcntl(fd, F_GETLK, &lock) == 0) {
        alive = lock.l_type != F_UNLCK;
        /* Unless a new process of that number has put its own page there meanwhile. */
        if (!alive && fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == st.st_ino)
            unlinkat(dir, name, 0);
    }
    /* A page still being written has no magic yet; a foreign file never has. */
    alive = alive && pread(fd, &page, sizeof page, 0) == (ssize_t)sizeof page && page.magic == STATUS_MAGIC;
    close(fd);
    if (!alive)
        return 0;
    *out = (struct seen){
        .pid = page.pid,
        .started_unix_s = page.started_unix_s,
        .limit_bytes = page.limit_bytes,
        .in_use_bytes = page.in_use_bytes,
        .peak_bytes = page.peak_bytes,
        .iterations = page.iterations,
        .swapped_bytes = page.swapped_bytes,
    };
    uint64_t mode = page.mode_text;
    memcpy(out->mode, &mode, sizeof mode);
    memcpy(out->command, page.command, sizeof out->command);
    out->command[sizeof out->command - 1] = '\0';
    return 1;
}

static int by_pid(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* All living pages of one folder, added to *list. 0 or -ENOMEM; a folder that is not there adds nothing. */
static int read_folder(const char *path, struct seen **list, size_t *n)
{
    DIR *d = opendir(path);
    if (!d)
        return 0;
    int rc = 0;
    for (struct dirent *e; !rc && (e = readdir(d));) {
        /* ".<pid>" is a page on its way to its name, or what a process killed in that moment left */
        const char *digits = e->d_name[0] == '.' ? e->d_name + 1 : e->d_name;
        struct seen one;
        if (!*digits || digits[strspn(digits, "0123456789")] || !read_page(dirfd(d), e->d_name, &one))
            continue;
        struct seen *more = realloc(*list, (*n + 1) * sizeof **list);
        if (more) {
            *list = more;
            more[(*n)++] = one;
        } else {
            rc = -ENOMEM;
        }
    }
    closedir(d);
    return rc;
}

static const char *limit_text(uint64_t bytes, char *buf, size_t len)
{
    return bytes ? cli_bytes((int64_t)bytes, buf, len) : "none";
}

static void print_table(const struct seen *list, size_t n)
{
    if (!n) {
        puts("no process runs under remat");
        return;
    }
    printf("%8s %-9s %12s %12s %12s %12s %10s  %s\n", "pid", "mode", "limit", "in use", "peak", "on the host", "iterations",
           "command");
    for (size_t i = 0; i < n; i++) {
        const struct seen *s = &list[i];
        char limit[32], use[32], peak[32], host[32];
        printf("%8" PRId64 " %-9s %12s %12s %12s %12s %10" PRIu64 "  %.60s\n", s->pid, s->mode,
               limit_text(s->limit_bytes, limit, sizeof limit), cli_bytes((int64_t)s->in_use_bytes, use, sizeof use),
               cli_bytes((int64_t)s->peak_bytes, peak, sizeof peak),
               cli_bytes((int64_t)s->swapped_bytes, host, sizeof host), s->iterations, s->command);
    }
}

/* One object: {"processes": [...]}. A command line need not be valid UTF-8: then its bytes stand for themselves. */
static int print_json(const struct seen *list, size_t n)
{
    json_t *all = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct seen *s = &list[i];
        json_t *command = json_string(s->command);
        char latin[2 * sizeof s->command];
        if (!command) {
            char *to = latin;
            for (const unsigned char *c = (const unsigned char *)s->command; *c; c++) {
                if (*c >= 0x80)
                    *to++ = (char)(0xC0 | *c >> 6);
                *to++ = (char)(*c >= 0x80 ? 0x80 | (*c & 0x3F) : *c);
            }
            *to = '\0';
            command = json_string(latin);
        }
        json_array_append_new(
            all, json_pack("{s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "pid", (json_int_t)s->pid, "mode", s->mode,
                           "limit_bytes", (json_int_t)s->limit_bytes, "in_use_bytes", (json_int_t)s->in_use_bytes,
                           "peak_bytes", (json_int_t)s->peak_bytes, "swapped_bytes", (json_int_t)s->swapped_bytes,
                           "iterations", (json_int_t)s->iterations, "started_unix_s", (json_int_t)s->started_unix_s,
                           "command", command));
    }
    json_t *root = json_pack("{s:o}", "processes", all);
    int rc = root ? json_dumpf(root, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : -1;
    json_decref(root);
    putchar('\n');
    return rc ? cli_fail("status: out of memory") : CLI_OK;
}

int cmd_status(int argc, char **argv)
{
    int json = 0;
    const struct option_bind binds[] = {{"json", &json}, {0}};
    size_t n_operands, n = 0;
    struct seen *list = NULL;
    char dir[PATH_MAX];
    int rc = options_parse(argc, argv, binds, NULL, 0, &n_operands);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    for (int i = 0; !rc && status_dir(i, dir, sizeof dir); i++)
        rc = read_folder(dir, &list, &n);
    if (!rc) {
        if (n)
            qsort(list, n, sizeof *list, by_pid);
        if (json)
            rc = print_json(list, n);
        else
            print_table(list, n);
    } else {
        rc = cli_fail("status: out of memory");
    }
    free(list);
    return rc;
}
