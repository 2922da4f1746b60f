/* conf.c: see conf.h. */
#include "tracer/machine/conf.h"

#include "tracer/loader.h"
#include "tracer/machine/size_text.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANK_USER, RANK_GROUP, RANK_EVERYONE, RANKS, RANK_NOT_ME };
enum { LINE_BYTES = 512, WORDS = 4 };

struct reading {
    const char *path;
    const struct conf_who *who;
    struct conf *out;
    unsigned line;
    int max_rank, limit_rank, total_rank; /* of the rules kept so far */
};

static void bad(struct reading *r, size_t column, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void bad(struct reading *r, size_t column, const char *fmt, ...)
{
    char what[CONF_TEXT];
    va_list ap;
    if (r->out->n_bad++)
        return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(r->out->bad, sizeof r->out->bad, "%.120s:%u:%zu: %s", r->path, r->line, column, what);
}

static bool number(const char *s, unsigned long *out)
{
    char *end;
    errno = 0;
    *out = strtoul(s, &end, 10);
    return *s >= '0' && *s <= '9' && !*end && !errno && *out <= (uid_t)-1;
}

static bool is_user(const struct conf_who *who, const char *name)
{
    unsigned long id;
    return number(name, &id) ? id == who->uid : who->user && !strcmp(who->user, name);
}

/* A name that no group has is nobody's: it may be one of another machine's. */
static bool is_in_group(const struct conf_who *who, const char *name)
{
    unsigned long id;
    if (!number(name, &id)) {
        struct group g, *found = NULL;
        size_t room = 1 << 16;
        char *buf = malloc(room);
        int rc = buf ? getgrnam_r(name, &g, buf, room, &found) : ENOMEM;
        id = found ? g.gr_gid : 0;
        free(buf);
        if (rc || !found)
            return false;
    }
    for (size_t i = 0; i < who->n_groups; i++)
        if (who->groups[i] == id)
            return true;
    return false;
}

static int rank_of(const struct conf_who *who, const char *kind, const char *name)
{
    if (!strcmp(kind, "user"))
        return is_user(who, name) ? RANK_USER : RANK_NOT_ME;
    if (!strcmp(kind, "group"))
        return is_in_group(who, name) ? RANK_GROUP : RANK_NOT_ME;
    return RANK_EVERYONE;
}

static void keep(struct reading *r, char word, int rank, struct conf_rule *rule)
{
    struct conf *c = r->out;
    struct conf_rule *list = word == 'm' ? c->max : word == 'l' ? c->limit : c->total;
    unsigned *n = word == 'm' ? &c->n_max : word == 'l' ? &c->n_limit : &c->n_total;
    int *kept = word == 'm' ? &r->max_rank : word == 'l' ? &r->limit_rank : &r->total_rank;
    if (rank > *kept)
        return;
    if (rank < *kept) {
        *n = 0;
        *kept = rank;
    }
    if (*n == CONF_RULES)
        bad(r, 1, "more than %d rules for one user: leave some out", CONF_RULES);
    else
        list[(*n)++] = *rule;
}

/* Words of a line, separated by blanks; column[i] counts from 1. More than WORDS are counted, not kept. */
static size_t split(char *line, char *word[WORDS], size_t column[WORDS + 1])
{
    size_t n = 0;
    for (char *s = line;; n++) {
        s += strspn(s, " \t\r\n");
        if (!*s || *s == '#')
            return n;
        if (n <= WORDS)
            column[n] = (size_t)(s - line) + 1;
        if (n < WORDS)
            word[n] = s;
        s += strcspn(s, " \t\r\n");
        if (*s)
            *s++ = '\0';
    }
}

static void read_line(struct reading *r, char *line)
{
    char *w[WORDS] = {0};
    size_t at[WORDS + 1] = {1, 1, 1, 1, 1};
    size_t n = split(line, w, at);
    if (!n)
        return;
    if (strcmp(w[0], "max") != 0 && strcmp(w[0], "limit") != 0 && strcmp(w[0], "total") != 0) {
        bad(r, at[0], "'%.40s' is neither max, total nor limit", w[0]);
        return;
    }
    bool named = n > 1 && (!strcmp(w[1], "user") || !strcmp(w[1], "group"));
    if (n < 2 || (!named && strcmp(w[1], "everyone") != 0)) {
        bad(r, n < 2 ? at[0] : at[1], "after %s comes user NAME, group NAME or everyone", w[0]);
        return;
    }
    size_t want = named ? 4 : 3;
    if (n != want) {
        bad(r, n > want ? at[want] : at[n - 1], n < want ? "a size is missing: 12G, 40%% or none" : "nothing comes after the size");
        return;
    }
    const char *size = w[want - 1];
    struct conf_rule rule = {0};
    if (strcmp(size, "none") != 0) {
        int rc = size_text_limit(size, &rule.bytes, &rule.pct);
        if (rc) {
            bad(r, at[want - 1], "'%.40s' is %s: 12G, 40%% or none", size, rc == -ERANGE ? "out of range" : "no size");
            return;
        }
    }
    int rank = rank_of(r->who, w[1], named ? w[2] : "");
    if (rank == RANK_NOT_ME)
        return;
    snprintf(rule.from, sizeof rule.from, "%.100s:%u, %s%s%.30s", r->path, r->line, w[1], named ? " " : "", named ? w[2] : "");
    keep(r, w[0][0], rank, &rule);
}

int conf_read(const char *path, const struct conf_who *who, struct conf *out)
{
    struct reading r = {.path = path, .who = who, .out = out, .max_rank = RANKS, .limit_rank = RANKS, .total_rank = RANKS};
    char line[LINE_BYTES];
    memset(out, 0, sizeof *out);
    FILE *f = fopen(path, "re");
    if (!f)
        return errno == ENOENT ? 0 : -errno;
    while (fgets(line, sizeof line, f)) {
        r.line++;
        if (!strchr(line, '\n') && !feof(f)) {
            bad(&r, sizeof line, "the line is longer than %zu characters", sizeof line - 2);
            for (int c; (c = getc(f)) != EOF && c != '\n';)
                ;
        } else {
            read_line(&r, line);
        }
    }
    int rc = ferror(f) ? -EIO : 0;
    fclose(f);
    return rc;
}

int conf_read_own(const char *path, struct conf *out)
{
    enum { NAME_ROOM = 1 << 14 };
    memset(out, 0, sizeof *out);
    /* nothing is looked up where there is no file */
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return 0;
    (void)loader_asks("the name of a user"); /* libraries that know names are loaded for it */
    int n = getgroups(0, NULL);
    gid_t *groups = malloc(((size_t)(n > 0 ? n : 0) + 2) * sizeof *groups);
    char *buf = malloc(NAME_ROOM);
    int rc = groups && buf ? 0 : -ENOMEM;
    if (!rc) {
        struct passwd p, *found = NULL;
        n = n > 0 ? getgroups(n, groups) : 0;
        n = n > 0 ? n : 0;
        groups[n++] = getgid();
        groups[n++] = getegid();
        if (getpwuid_r(getuid(), &p, buf, NAME_ROOM, &found))
            found = NULL;
        struct conf_who who = {.uid = getuid(), .user = found ? p.pw_name : NULL, .groups = groups, .n_groups = (size_t)n};
        rc = conf_read(path, &who, out);
    }
    free(buf);
    free(groups);
    return rc;
}

static const struct conf_rule *first(const struct conf_rule *rules, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (rules[i].bytes || rules[i].pct > 0)
            return &rules[i];
    return NULL;
}

const struct conf_rule *conf_holds(const struct conf *c)
{
    const struct conf_rule *r = first(c->max, c->n_max);
    return r ? r : first(c->total, c->n_total);
}

const struct conf_rule *conf_least(const struct conf_rule *rules, unsigned n, uint64_t device_bytes, uint64_t *bytes)
{
    const struct conf_rule *least = NULL;
    for (unsigned i = 0; i < n; i++) {
        uint64_t b = rules[i].pct > 0 ? (uint64_t)((double)device_bytes * (rules[i].pct / 100)) : rules[i].bytes;
        if (!b && !(rules[i].pct > 0))
            continue; /* none */
        if (!least || b < *bytes) {
            least = &rules[i];
            *bytes = b;
        }
    }
    return least;
}
