/* options_parse.c: reading a command line by the table of options.h, and saying what was probably meant. */
#include "offline/commands/options_parse.h"
#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_text.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ---- what was meant -------------------------------------------------------------------------------------------------- */

enum { WORD = 40 };

static int least(int a, int b) { return a < b ? a : b; }

/* Letters to insert, remove, replace or swap with their neighbour (Damerau's distance, restricted). */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
    int d[WORD + 1][WORD + 1];
    if (n > WORD || m > WORD)
        return WORD;
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = (int)(i + j);
                continue;
            }
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

const char *options_nearest(const char *typed, const char *words, char *to, size_t room)
{
    const size_t n = strlen(typed);
    int best = 1 + (n > 3) + (n > 6); /* more letters wrong than this: another word */
    *to = '\0';
    for (const char *w = words; w && *w;) {
        const size_t m = strcspn(w, "|");
        /* the beginning of a word is near it, whatever its length */
        const int d = n > 1 && n < m && !strncmp(typed, w, n) ? 1 : distance(typed, n, w, m);
        if (d < best || (d == best && !*to)) {
            best = d;
            snprintf(to, room, "%.*s", (int)m, w);
        }
        w += m + (w[m] == '|');
    }
    return to;
}

const char *options_hint(const char *typed, const char *words, char *to, size_t room)
{
    char word[WORD + 1];
    options_nearest(typed, words, word, sizeof word);
    *to = '\0';
    if (*word)
        snprintf(to, room, "; did you mean \"%s\"?", word);
    return to;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------------- */

static const struct option_row *row_of(const struct option_row *o, const char *arg, const char **value)
{
    *value = NULL;
    for (; o->name; o++) {
        const size_t n = strlen(o->name);
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

static void *place_of(const struct option_bind *b, const char *name)
{
    for (; b->name; b++)
        if (!strcmp(b->name, name))
            return b->to;
    return NULL;
}

static int unknown_option(const struct option_command *c, const char *typed)
{
    char names[1024] = "help", word[WORD + 1], bare[WORD + 1];
    size_t n = strlen(names);
    for (const struct option_row *o = c->rows; o->name && n < sizeof names; o++)
        n += (size_t)snprintf(names + n, sizeof names - n, "|%s", o->name);
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(typed + strspn(typed, "-"), "="), typed + strspn(typed, "-"));
    options_nearest(bare, names, word, sizeof word);
    if (*word)
        cli_bad("%s: unknown option \"%s\"; did you mean \"--%s\"?", c->name, typed, word);
    else
        cli_bad("%s: unknown option \"%s\" (remat %s --help)", c->name, typed, c->name);
    return -EINVAL;
}

static int operand(const struct option_command *c, const char *text, const char **operands, size_t max, size_t *n, int *stdin_uses)
{
    if (*n == max) {
        cli_bad(c->takes_command ? "%s: unexpected argument \"%s\": put -- before the command" : "%s: unexpected argument \"%s\" (remat %s --help)",
                c->name, text, c->name);
        return -EINVAL;
    }
    operands[(*n)++] = text;
    *stdin_uses += !strcmp(text, "-");
    if (*stdin_uses > 1) {
        cli_bad("%s: standard input (-) can be read only once", c->name);
        return -EINVAL;
    }
    return 0;
}

int options_parse_as(const struct option_command *c, int argc, char **argv, const struct option_bind *binds, const char **operands,
                     size_t max, size_t *n_operands)
{
    const char *value;
    size_t n = 0;
    int options = 1, stdin_uses = 0;
    *n_operands = 0;
    for (int i = 1; i < argc; i++) {
        if (!options || argv[i][0] != '-' || !argv[i][1]) {
            if (operand(c, argv[i], operands, max, &n, &stdin_uses))
                return -EINVAL;
            continue;
        }
        if (!strcmp(argv[i], "--")) {
            options = 0;
            continue;
        }
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            options_help(stdout, c);
            return 1;
        }
        const struct option_row *o = row_of(c->rows, argv[i], &value);
        if (!o)
            return unknown_option(c, argv[i]);
        void *to = place_of(binds, o->name);
        assert(to); /* a row of the table that the command does not read */
        if (!o->arg) {
            if (value) {
                cli_bad("%s: --%s takes no value", c->name, o->name);
                return -EINVAL;
            }
            ++*(int *)to;
            continue;
        }
        if (!value && ++i < argc)
            value = argv[i];
        if (!value) {
            cli_bad("%s: --%s needs %s", c->name, o->name, o->arg);
            return -EINVAL;
        }
        *(const char **)to = value;
    }
    *n_operands = n;
    return 0;
}

int options_parse(int argc, char **argv, const struct option_bind *binds, const char **operands, size_t max, size_t *n_operands)
{
    const struct option_command *c = options_find(argv[0]);
    assert(c);
    return options_parse_as(c, argc, argv, binds, operands, max, n_operands);
}
