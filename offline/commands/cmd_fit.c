/* remat fit --limit SIZE --vary 'TEXT {}' -- CMD...: the largest number in the command line with which the program trains under a limit.
 *
 * Two traces, at --from and at twice that, give the floor as a line over the number; where it meets the limit is the answer, which one run under
 * the limit verifies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/commands/attempt.h"
#include "offline/commands/cli.h"
#include "offline/commands/launch.h"
#include "offline/commands/options.h"
#include "offline/commands/options_parse.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/price.h"

enum { WORDS_MOST = 16, WORD = 128, TRIES = 6, DOUBLINGS = 6, NUMBER_MOST = 1 << 24 };

struct fit {
    double wait_s; /* for an iteration; 0: for ever */
    const char *limit_text, *vary, *from_text;
    int json;
    char *const *command;
    int64_t limit, from;
    char words[WORDS_MOST][WORD];
};

/* The command with the words of --vary behind it, each {} in them being the number; NULL after one line. The caller frees it. */
static char **fit_command(struct fit *f, int64_t number)
{
    size_t n = 0, k = 0;
    while (f->command[n])
        n++;
    char **argv = calloc(n + WORDS_MOST + 1, sizeof *argv);
    if (!argv)
        return NULL;
    memcpy(argv, f->command, n * sizeof *argv);
    for (const char *at = f->vary; *(at += strspn(at, " ")) && k < WORDS_MOST; k++) {
        const size_t len = strcspn(at, " ");
        const char *hole = strstr(at, "{}");
        if (hole && hole < at + len)
            snprintf(f->words[k], WORD, "%.*s%lld%.*s", (int)(hole - at), at, (long long)number, (int)(at + len - hole - 2), hole + 2);
        else
            snprintf(f->words[k], WORD, "%.*s", (int)len, at);
        argv[n + k] = f->words[k];
        at += len;
    }
    return argv;
}

static int fit_waited(const struct fit *f, int64_t number)
{
    return cli_fail("fit: no iteration came again at %lld in %g s, and the program was ended: one is known by its repetition; --wait SEC waits longer, --wait 0 for as "
                    "long as it runs", (long long)number, f->wait_s);
}

/* The least limit that any plan of the program with that number meets, and what it takes without one: of the sizes that the program asks for, which
 * grow with the number evenly, where whole pages do not. */
static int fit_measure(struct fit *f, int64_t number, double *floor_bytes, double *native_bytes)
{
    struct attempt run;
    struct as_run as = {0};
    struct graph *g = NULL;
    char err[512], **command = fit_command(f, number);
    if (!command)
        return cli_fail("fit: not enough memory");
    fprintf(stderr, "remat: fit: recording an iteration at %lld\n", (long long)number);
    int rc = attempt_run(command, NULL, f->wait_s, &run);
    free(command);
    if (rc == -ECHILD)
        rc = cli_fail("fit: at %lld the program ended before an iteration was recorded", (long long)number);
    else if (rc == -ETIME)
        rc = fit_waited(f, number);
    else if (rc)
        rc = cli_fail("fit: %s", strerror(-rc));
    else if (trace_read(run.trace, &g, err, sizeof err))
        rc = cli_fail("%s", err);
    else if (as_run_make(g, &as))
        rc = cli_fail("fit: not enough memory");
    else {
        *floor_bytes = (double)(g->floor_offload_bytes + as.reserve_bytes);
        *native_bytes = (double)(g->baseline_peak_bytes + as.reserve_bytes);
    }
    as_run_free(&as);
    graph_free(g);
    attempt_end(&run);
    return rc;
}

/* It learns an iteration and goes on under the limit: 1, with the floor that this iteration has; it does not: 0. */
static int fit_holds(struct fit *f, int64_t number, double *floor_bytes)
{
    struct graph *g = NULL;
    struct as_run as = {0};
    char err[512];
    struct attempt run;
    char limit[32], **command = fit_command(f, number);
    snprintf(limit, sizeof limit, "%lld", (long long)f->limit);
    fprintf(stderr, "remat: fit: trying %lld under the limit\n", (long long)number);
    const int rc = command ? attempt_run(command, limit, f->wait_s, &run) : -ENOMEM;
    free(command);
    if (!rc && !trace_read(run.trace, &g, err, sizeof err) && !as_run_make(g, &as))
        *floor_bytes = (double)(g->floor_offload_bytes + as.reserve_bytes);
    as_run_free(&as);
    graph_free(g);
    if (command)
        attempt_end(&run);
    return !rc;
}

static void fit_say(const struct fit *f, int64_t number, int64_t native, const double floor_bytes[2])
{
    char b[32], word[WORD * 2];
    const char *hole = strstr(f->vary, "{}");
    snprintf(word, sizeof word, "%.*s%lld%s", (int)(hole - f->vary), f->vary, (long long)number, hole + 2);
    if (f->json)
        printf("{\"largest\": %lld, \"native\": %lld, \"limit_bytes\": %lld, \"floor_bytes\": [%.0f, %.0f], \"verified\": true}\n", (long long)number,
               (long long)native, (long long)f->limit, floor_bytes[0], floor_bytes[1]);
    else
        printf("%s trains under %s (tried); without remat the most would be about %lld\n", word, cli_bytes(f->limit, b, sizeof b), (long long)native);
}

/* Where the line through (x, y[0]) and (x + dx, y[1]) meets y = limit. */
static int64_t fit_meets(const struct fit *f, int64_t x, int64_t dx, const double y[2])
{
    const double slope = (y[1] - y[0]) / (double)dx, at = slope > 0 ? (double)x + ((double)f->limit - y[0]) / slope : NUMBER_MOST;
    return at < 0 ? 0 : at > NUMBER_MOST ? NUMBER_MOST : (int64_t)at;
}

static int fit(struct fit *f)
{
    double floor_bytes[2], native_bytes[2];
    int rc = 0;
    for (int k = 0; k < 2 && !rc; k++)
        rc = fit_measure(f, f->from << k, &floor_bytes[k], &native_bytes[k]);
    for (int k = 0; k < DOUBLINGS && !rc && floor_bytes[1] <= floor_bytes[0]; k++) { /* so small that what outlives iterations is all the floor */
        f->from *= 2;
        floor_bytes[0] = floor_bytes[1];
        native_bytes[0] = native_bytes[1];
        rc = fit_measure(f, 2 * f->from, &floor_bytes[1], &native_bytes[1]);
    }
    if (rc)
        return rc;
    const int64_t native = fit_meets(f, f->from, f->from, native_bytes);
    int64_t number = fit_meets(f, f->from, f->from, floor_bytes), held = 0;
    if (number >= NUMBER_MOST)
        return cli_fail("fit: memory does not grow with that number");
    int64_t bad = INT64_MAX; /* the least that did not hold */
    for (int k = 0; k < TRIES && number > held; k++) {
        double line[2] = {floor_bytes[1], floor_bytes[1]};
        if (fit_holds(f, number, &line[1])) {
            held = number;
            const int64_t further = held > 2 * f->from ? fit_meets(f, 2 * f->from, held - 2 * f->from, line) : held;
            if (bad < INT64_MAX || further < held + held / 10 || further >= NUMBER_MOST)
                break;
            number = further; /* small numbers had told too little: tensors that share pages do not grow by pages */
        } else { /* what the floor does not tell: pages in pieces, memory beside tensors; or the line was drawn too far */
            const int64_t good = held ? held : 2 * f->from;
            bad = number;
            number = good < bad ? good + (bad - good) * 2 / 3 : bad - 1 - bad / 10;
            number = number > bad - bad / 10 && bad > 10 ? bad - bad / 10 : number;
        }
    }
    if (held) {
        fit_say(f, held, native, floor_bytes);
        return CLI_OK;
    }
    return cli_infeasible("fit: none found: the floor at %lld is %.0f bytes, the limit %lld", (long long)f->from, floor_bytes[0], (long long)f->limit);
}

int cmd_fit(int argc, char **argv)
{
    struct fit f = {.from_text = "8", .wait_s = ATTEMPT_WAIT_S};
    const char *wait = NULL;
    const struct option_bind binds[] = {{"limit", &f.limit_text}, {"vary", &f.vary}, {"from", &f.from_text}, {"wait", &wait}, {"json", &f.json}, {0}};
    size_t n = 0;
    const int split = launch_split(argc, argv);
    int rc = options_parse(split, argv, binds, NULL, 0, &n);
    if (rc)
        return rc > 0 ? CLI_OK : CLI_BAD;
    f.command = split + 1 < argc ? argv + split + 1 : NULL;
    if (!f.command || !f.limit_text || !f.vary)
        return cli_bad("fit: give --limit, --vary, and -- and a command (remat fit --help)");
    if (!strstr(f.vary, "{}") || strlen(f.vary) >= WORD)
        return cli_bad("fit: --vary \"%.40s\" has no {} where the number goes, or is too long", f.vary);
    if (cli_size(f.limit_text, 0, &f.limit) || f.limit < 1 << 20)
        return cli_bad("fit: --limit \"%s\" is no size of 1 MiB or more, such as 12G", f.limit_text);
    if (wait && cli_real(wait, 0, 1e9, &f.wait_s))
        return cli_bad("fit: --wait \"%s\" is no number of seconds", wait);
    if (cli_long(f.from_text, 1, NUMBER_MOST / 4, &f.from))
        return cli_bad("fit: --from \"%s\" is no whole number from 1 up", f.from_text);
    return fit(&f);
}
