/* remat: one table of commands. Each command is a file of its own (offline/cmd_NAME.c, or whatever folder is linked in)
 * found by weak reference, so that a build without it lacks that command and nothing else. */
#include <stdio.h>
#include <string.h>

#include "offline/commands/cli.h"

#ifndef REMAT_VERSION
#define REMAT_VERSION "unknown"
#endif

/* name, usage as --help shows it, what it does */
#define MAIN_COMMANDS(X)                                                                                              \
    X(run, "[--limit SIZE|PCT] [options] -- CMD...", "run a program in less GPU memory")                              \
    X(trace, "-o FILE [--iterations N] -- CMD...", "record what one training iteration does")                         \
    X(plan, "TRACE --limit SIZE|PCT [options]", "compute a schedule that fits a limit")                               \
    X(sweep, "TRACE [options]", "overhead of every solver over a range of limits")                                    \
    X(check, "TRACE PLAN", "re-execute a plan and judge it")                                                          \
    X(report, "TRACE [PLAN...] -o OUT.html", "a page that shows memory over time")                                    \
    X(export, "TRACE --format FORMAT -o OUT", "a trace for other tools")                                              \
    X(solve, "INSTANCE [options]", "solve an instance from the literature")                                           \
    X(status, "[--json]", "who shares this machine's GPUs")                                                           \
    X(doctor, "", "what works on this machine, and what to do about the rest")

#define MAIN_DECLARE(name, usage, what) cli_command cmd_##name __attribute__((weak));
MAIN_COMMANDS(MAIN_DECLARE)

struct main_command {
    const char *name, *usage, *what;
    cli_command *run;
};

#define MAIN_ROW(name, usage, what) {#name, usage, what, cmd_##name},

int main(int argc, char **argv)
{
    const struct main_command table[] = {MAIN_COMMANDS(MAIN_ROW)};
    const char *name = argc > 1 ? argv[1] : "--help";
    size_t i;

    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("remat %s\n", REMAT_VERSION);
        return cli_finish(CLI_OK);
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        printf("remat: train in less GPU memory than the program needs\n\n");
        for (i = 0; i < sizeof(table) / sizeof(*table); i++)
            if (table[i].run)
                printf("  remat %-6s %-40s %s\n", table[i].name, table[i].usage, table[i].what);
        printf("\n  remat COMMAND --help tells a command's options; remat --version the version.\n");
        return cli_finish(argc > 1 ? CLI_OK : CLI_BAD);
    }
    for (i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (!strcmp(name, table[i].name)) {
            if (!table[i].run)
                return cli_bad("%s: this build has no such command", name);
            return cli_finish(table[i].run(argc - 1, argv + 1));
        }
    return cli_bad("no command \"%s\" (remat --help lists them)", name);
}
