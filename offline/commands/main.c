/* remat: finds the function of each command of options.h, cmd_NAME.c, by weak reference, so that a build without a file lacks
 * that command and nothing else. */
#include <stdio.h>
#include <string.h>

#include "offline/commands/cli.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/commands/options_text.h"

#ifndef REMAT_VERSION
#define REMAT_VERSION "unknown"
#endif

#define MAIN_COMMANDS(X) X(run) X(trace) X(plan) X(sweep) X(advise) X(fit) X(check) X(report) X(export) X(solve) X(status) X(known) X(doctor)

#define MAIN_DECLARE(name) cli_command cmd_##name __attribute__((weak));
MAIN_COMMANDS(MAIN_DECLARE)
#define MAIN_ROW(name) {#name, cmd_##name},

static int main_generate(int argc, char **argv)
{
    if (argc < 3 || argc > 4 || options_generate(stdout, argv[2], argc > 3 ? argv[3] : NULL))
        return cli_bad("--generate takes man, man COMMAND, bash, zsh or fish");
    return CLI_OK;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        cli_command *run;
    } table[] = {MAIN_COMMANDS(MAIN_ROW)};
    const char *name = argc > 1 ? argv[1] : "--help";
    char words[256], hint[128];

    if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("remat %s\n", REMAT_VERSION);
        return cli_finish(CLI_OK);
    }
    if (!strcmp(name, "help") && argc > 2 && options_find(argv[2])) {
        options_help(stdout, options_find(argv[2]));
        return cli_finish(CLI_OK);
    }
    if (!strcmp(name, "help") && argc > 2)
        return cli_bad("help: no command \"%s\"%s (remat --help lists them)", argv[2],
                       options_hint(argv[2], options_commands(words, sizeof words), hint, sizeof hint));
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        options_overview(stdout);
        return cli_finish(argc > 1 ? CLI_OK : CLI_BAD);
    }
    if (!strcmp(name, "--generate"))
        return cli_finish(main_generate(argc, argv));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(name, table[i].name)) {
            if (!table[i].run)
                return cli_bad("%s: this build has no such command", name);
            return cli_finish(table[i].run(argc - 1, argv + 1));
        }
    if (*name == '-')
        return cli_bad("no option \"%s\"%s (remat --help)", name, options_hint(name, "--help|--version|-V|-h", hint, sizeof hint));
    options_hint(name, options_commands(words, sizeof words), hint, sizeof hint);
    return cli_bad("no command \"%s\"%s (remat --help lists them)", name, hint);
}
