/* options_text.c: the table of options as help, man pages and completion. */
#include "offline/commands/options_text.h"
#include "offline/commands/options.h"
#include "offline/commands/options_man.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#ifndef REMAT_VERSION
#define REMAT_VERSION "unknown"
#endif

static const char tagline[] = "train in less GPU memory than the program needs";

/* ---- help -------------------------------------------------------------------------------------------------------------- */

enum { WIDTH = 100, HELP_AT = 26 };

/* Words of `text` up to its end or the next line break, wrapped; `at` is where the line stands, `indent` where it goes on. */
static const char *wrap(FILE *f, const char *text, size_t at, size_t indent)
{
    int first = 1;
    while (*text && *text != '\n') {
        const size_t n = strcspn(text, " \n");
        if (!first && at + 1 + n > WIDTH) {
            fprintf(f, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', f);
            at++;
        }
        fwrite(text, 1, n, f);
        at += n;
        first = 0;
        text += n;
        text += strspn(text, " ");
    }
    fputc('\n', f);
    return text + (*text == '\n');
}

static void row_text(const struct option_row *o, char *to, size_t room)
{
    char words[256] = "";
    for (size_t i = 0, n = 0; o->values && o->values[i] && n + 3 < sizeof words; i++)
        if (o->values[i] == '|') {
            memcpy(words + n, ", ", 3);
            n += 2;
        } else {
            words[n++] = o->values[i];
            words[n] = '\0';
        }
    snprintf(to, room, "%s%s%s%s%s%s", o->help, *words ? ": " : "", words, o->dflt ? " (default: " : "", o->dflt ? o->dflt : "",
             o->dflt ? ")" : "");
}

void options_help(FILE *f, const struct option_command *c)
{
    char text[512];
    fprintf(f, "usage: remat %s %s\n\n%c%s.\n%s", c->name, c->usage, toupper(c->what[0]), c->what + 1, c->rows->name ? "\n" : "");
    for (const struct option_row *o = c->rows; o->name; o++) {
        char left[64];
        int n = 0;
        if (o->letter)
            n = snprintf(left, sizeof left, "-%c, ", o->letter);
        n += snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        fprintf(f, "  %-*s", HELP_AT - 3, left);
        fputc(' ', f);
        row_text(o, text, sizeof text);
        wrap(f, text, n + 3 > HELP_AT ? (size_t)n + 3 : HELP_AT, HELP_AT);
    }
    if (*c->more)
        fputc('\n', f);
    for (const char *t = c->more; *t;)
        if (!strncmp(t, "  ", 2)) {
            const size_t n = strcspn(t, "\n");
            fprintf(f, "%.*s\n", (int)n, t);
            t += n + (t[n] == '\n');
        } else {
            t = wrap(f, t, 0, 0);
        }
}

void options_overview(FILE *f)
{
    const struct option_command *c;
    fprintf(f, "remat: %s\n\n", tagline);
    for (size_t i = 0; (c = options_at(i)); i++)
        fprintf(f, "  remat %-6s %-42s %s\n", c->name, c->usage, c->what);
    fprintf(f, "\nremat COMMAND --help tells a command's options; remat --version (-V) the version.\n");
}

/* ---- man pages ----------------------------------------------------------------------------------------------------------- */

/* Text as troff shall print it: no escapes, hyphens as they are typed, no line that looks like a request. */
static void roff(FILE *f, const char *s, size_t n)
{
    for (size_t i = 0; i < n && s[i]; i++)
        switch (s[i]) {
        case '\\': fputs("\\e", f); break;
        case '-': fputs("\\-", f); break;
        case '~': fputs("\\(ti", f); break;
        case '^': fputs("\\(ha", f); break;
        case '\'': fputs(i ? "'" : "\\&'", f); break;
        case '.': fputs(i ? "." : "\\&.", f); break;
        default: fputc(s[i], f);
        }
}
static void roff_line(FILE *f, const char *s)
{
    roff(f, s, strlen(s));
    fputc('\n', f);
}

static void man_head(FILE *f, const char *page, const char *what)
{
    fputs(".TH \"", f);
    for (const char *c = page; *c; c++)
        fputc(toupper((unsigned char)*c), f);
    fprintf(f, "\" \"1\" \"\" \"remat " REMAT_VERSION "\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n");
    roff(f, page, strlen(page));
    fputs(" \\- ", f);
    roff_line(f, what);
}

/* In the man page a section of its own. */
static int is_exit_status(const char *t) { return !strncmp(t, "Exit status: ", 13); }

static void man_body(FILE *f, const char *t)
{
    int verbatim = 0;
    while (*t) {
        const size_t n = strcspn(t, "\n");
        if (is_exit_status(t)) {
            t += n + (t[n] == '\n');
            t += *t == '\n';
            continue;
        }
        const int as_is = !strncmp(t, "  ", 2);
        if (as_is != verbatim)
            fputs(as_is ? ".nf\n.RS\n" : ".RE\n.fi\n", f);
        verbatim = as_is;
        if (!n)
            fputs(".PP\n", f);
        else {
            roff(f, t + (as_is ? 2 : 0), n - (as_is ? 2 : 0));
            fputc('\n', f);
        }
        t += n + (t[n] == '\n');
    }
    if (verbatim)
        fputs(".RE\n.fi\n", f);
}

static void man_section(FILE *f, const char *title, const char *text)
{
    if (*text)
        fprintf(f, ".SH \"%s\"\n", title);
    man_body(f, text);
}

static void man_command(FILE *f, const struct option_command *c)
{
    char page[32], text[512];
    snprintf(page, sizeof page, "remat-%s", c->name);
    man_head(f, page, c->what);
    fprintf(f, ".SH SYNOPSIS\n.B remat %s\n", c->name);
    roff_line(f, c->usage);
    fprintf(f, ".SH DESCRIPTION\n%c", toupper(c->what[0]));
    roff(f, c->what + 1, strlen(c->what + 1));
    fputs(".\n", f);
    if (c->rows->name)
        fputs(".SH OPTIONS\n", f);
    for (const struct option_row *o = c->rows; o->name; o++) {
        fputs(".TP\n", f);
        if (o->letter)
            fprintf(f, "\\fB\\-%c\\fR, ", o->letter);
        fputs("\\fB\\-\\-", f);
        roff(f, o->name, strlen(o->name));
        fputs("\\fR", f);
        if (o->arg) {
            fputs(" \\fI", f);
            roff(f, o->arg, strlen(o->arg));
            fputs("\\fR", f);
        }
        fputc('\n', f);
        row_text(o, text, sizeof text);
        roff_line(f, text);
    }
    if (*c->more && !is_exit_status(c->more)) {
        fputs(".SH NOTES\n", f);
        man_body(f, c->more);
    }
    const struct options_man *m = options_man(c->name);
    man_section(f, "EXIT STATUS", m->exits);
    man_section(f, "ENVIRONMENT", m->environment ? m->environment : "None is read.\n");
    man_section(f, "FILES", m->files ? m->files : "Those of the command line; docs/formats.md describes traces and plans. Outputs are whole or not there at all.\n");
    man_section(f, "EXAMPLES", m->examples);
    fputs(".SH \"SEE ALSO\"\n.BR remat (1)\n", f);
}

static void man_overview(FILE *f)
{
    const struct option_command *c;
    man_head(f, "remat", tagline);
    fputs(".SH SYNOPSIS\n.B remat\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH DESCRIPTION\n"
          "Runs an unmodified PyTorch training script in less GPU memory than it needs: what a tensor held is dropped and "
          "computed again, or copied to the host and back, behind unchanged addresses. The numbers computed are the same, bit "
          "for bit.\n.SH COMMANDS\n", f);
    for (size_t i = 0; (c = options_at(i)); i++) {
        fprintf(f, ".TP\n.BR remat\\-%s (1)\n", c->name);
        roff_line(f, c->what);
    }
    fputs(".SH OPTIONS\n.TP\n\\fB\\-\\-help\\fR, \\fB\\-h\\fR\nlist the commands; behind a command, its options\n"
          ".TP\n\\fB\\-\\-version\\fR, \\fB\\-V\\fR\nprint the version\n", f);
}

/* ---- completion ------------------------------------------------------------------------------------------------------------ */

static int is_file(const struct option_row *o)
{
    return o->arg && (!strcmp(o->arg, "FILE") || !strcmp(o->arg, "OUT") || !strcmp(o->arg, "PLAN"));
}

static void put_words(FILE *f, const char *values, char between)
{
    for (; *values; values++)
        fputc(*values == '|' ? between : *values, f);
}

static void bash(FILE *f)
{
    const struct option_command *c;
    char words[256];
    fputs("# bash completion for remat; generated by remat --generate bash\n"
          "_remat() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i options=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '", f);
    put_words(f, options_commands(words, sizeof words), ' ');
    fputs(" --help --version' -- \"$cur\"))\n        return\n    fi\n"
          "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "        if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
          "            if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else compopt -o default; fi\n"
          "            return\n        fi\n    done\n    case $command in\n", f);
    for (size_t i = 0; (c = options_at(i)); i++) {
        fprintf(f, "    %s)\n        case $prev in\n", c->name);
        for (const struct option_row *o = c->rows; o->name; o++) {
            if (!o->arg)
                continue;
            fprintf(f, "        --%s", o->name);
            if (o->letter)
                fprintf(f, "|-%c", o->letter);
            fputs(") ", f);
            if (o->values) {
                fputs("COMPREPLY=($(compgen -W '", f);
                put_words(f, o->values, ' ');
                fputs("' -- \"$cur\")); return ;;\n", f);
            } else {
                fputs(is_file(o) ? "compopt -o default; return ;;\n" : "return ;;\n", f);
            }
        }
        fputs("        esac\n        options='--help", f);
        for (const struct option_row *o = c->rows; o->name; o++)
            fprintf(f, " --%s", o->name);
        fprintf(f, "%s' ;;\n", c->takes_command ? " --" : "");
    }
    fputs("    esac\n"
          "    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
          "    *) compopt -o default ;;\n"
          "    esac\n"
          "}\n"
          "complete -F _remat remat\n", f);
}

/* Text inside single quotes; zsh's _arguments also reads brackets and colons. */
static void quoted(FILE *f, const char *s, int zsh)
{
    for (; *s; s++)
        if (*s == '\'')
            fputs(zsh ? "'\\''" : "\\'", f);
        else if (zsh && strchr("[]:\\", *s))
            fprintf(f, "\\%c", *s);
        else
            fputc(*s, f);
}

static void zsh(FILE *f)
{
    const struct option_command *c;
    fputs("#compdef remat\n# zsh completion for remat; generated by remat --generate zsh\n"
          "_remat() {\n    local -a commands\n    commands=(\n", f);
    for (size_t i = 0; (c = options_at(i)); i++) {
        fprintf(f, "        '%s:", c->name);
        quoted(f, c->what, 1);
        fputs("'\n", f);
    }
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe -t commands 'remat command' commands\n"
          "        _arguments '--help[list the commands]' '--version[print the version]'\n        return\n    fi\n"
          "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in\n", f);
    for (size_t i = 0; (c = options_at(i)); i++) {
        fprintf(f, "    %s)\n        _arguments -s '--help[tell the options]'", c->name);
        for (const struct option_row *o = c->rows; o->name; o++) {
            fputs(" \\\n            ", f);
            if (o->letter)
                fprintf(f, "'(-%c --%s)'{-%c%s,--%s%s}'", o->letter, o->name, o->letter, o->arg ? "+" : "", o->name, o->arg ? "=" : "");
            else
                fprintf(f, "'--%s%s", o->name, o->arg ? "=" : "");
            fputc('[', f);
            quoted(f, o->help, 1);
            fputc(']', f);
            if (o->arg) {
                fputc(':', f);
                quoted(f, o->arg, 1);
                fputc(':', f);
                if (o->values) {
                    fputc('(', f);
                    put_words(f, o->values, ' ');
                    fputc(')', f);
                } else {
                    fputs(is_file(o) ? "_files" : " ", f);
                }
            }
            fputc('\'', f);
        }
        fputs(c->takes_command ? " \\\n            '*::command:_normal'\n        ;;\n" : " \\\n            '*:file:_files'\n        ;;\n", f);
    }
    fputs("    esac\n}\n_remat \"$@\"\n", f);
}

static void fish(FILE *f)
{
    const struct option_command *c;
    char words[256];
    options_commands(words, sizeof words);
    fputs("# fish completion for remat; generated by remat --generate fish\n"
          "set -l commands ", f);
    put_words(f, words, ' ');
    fputs("\ncomplete -c remat -n \"not __fish_seen_subcommand_from $commands\" -f\n"
          "complete -c remat -n \"not __fish_seen_subcommand_from $commands\" -l help -s h -d 'list the commands'\n"
          "complete -c remat -n \"not __fish_seen_subcommand_from $commands\" -l version -s V -d 'print the version'\n", f);
    for (size_t i = 0; (c = options_at(i)); i++) {
        fprintf(f, "complete -c remat -n \"not __fish_seen_subcommand_from $commands\" -a %s -d '", c->name);
        quoted(f, c->what, 0);
        fprintf(f, "'\ncomplete -c remat -n '__fish_seen_subcommand_from %s' -l help -s h -d 'tell the options'\n", c->name);
        for (const struct option_row *o = c->rows; o->name; o++) {
            fprintf(f, "complete -c remat -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
            if (o->letter)
                fprintf(f, " -s %c", o->letter);
            if (o->values) {
                fputs(" -x -a '", f);
                put_words(f, o->values, ' ');
                fputs("'", f);
            } else if (o->arg) {
                fputs(is_file(o) ? " -r" : " -x", f);
            }
            fputs(" -d '", f);
            quoted(f, o->help, 0);
            fputs("'\n", f);
        }
        if (c->takes_command)
            fprintf(f, "complete -c remat -n '__fish_seen_subcommand_from %s; and contains -- -- (commandline -opc)' -x -a "
                    "'(__fish_complete_subcommand --fcs-skip=3)'\n", c->name);
    }
}

int options_generate(FILE *f, const char *kind, const char *command)
{
    const struct option_command *c = command ? options_find(command) : NULL;
    if (command && (!c || strcmp(kind, "man")))
        return -EINVAL;
    if (!strcmp(kind, "man") && c)
        man_command(f, c);
    else if (!strcmp(kind, "man"))
        man_overview(f);
    else if (!strcmp(kind, "bash"))
        bash(f);
    else if (!strcmp(kind, "zsh"))
        zsh(f);
    else if (!strcmp(kind, "fish"))
        fish(f);
    else
        return -EINVAL;
    return 0;
}
