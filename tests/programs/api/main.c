/* random_api --seeds SEEDS [--print | --check | --kinds] [--without STEPS]
 *
 * Draws an API-level program from each seed (SEEDS: numbers and ranges, comma-separated: 3,7-12), runs them one after the other in one process, and prints a line for each: the
 * seed, and step:checksum for all that the program read back. Every fifth of the seeds that have nothing of enum kind runs two programs at the same time, in two threads.
 * --print shows the programs instead of running them; --check draws them and says how many steps they have; --kinds says what they have of enum kind (order.h: bits), and whether they are training
 * loops; --without leaves steps
 * out of the last program (numbers and ranges too), and those that would not be race-free without them. */
#include "tests/programs/api/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct program first, other;
static uint64_t first_notes[MAX_STEPS], other_notes[MAX_STEPS];

static int usage(void)
{
    fprintf(stderr, "usage: random_api --seeds A-B,C,... [--print | --check | --kinds] [--without STEPS]\n");
    return 2;
}

/* Takes steps away, and what is not legal any more without them. */
static void leave_out(struct program *p, const char *list)
{
    static bool gone[MAX_STEPS];
    for (const char *at = list; *at;) {
        char *end;
        unsigned long a = strtoul(at, &end, 10), b = *end == '-' ? strtoul(end + 1, &end, 10) : a;
        for (; a <= b && a < MAX_STEPS; a++)
            gone[a] = true;
        if (end == at || (*end && *end != ','))
            exit(usage());
        at = *end ? end + 1 : end;
    }
    static struct order o;
    int n = 0;
    o = p->start;
    for (int i = 0; i < p->n_steps; i++) {
        if (!gone[i] && order_step(&o, &p->step[i]))
            p->step[n++] = p->step[i];
    }
    p->n_steps = n;
}

static void print_notes(const struct program *p, const uint64_t *notes)
{
    for (int i = 0; i < p->n_steps; i++)
        if (notes[i])
            printf(" %d:%016llx", i, (unsigned long long)notes[i]);
}

enum what { RUN, PRINT, CHECK, SAY_KINDS };

/* One seed: drawn, and shown, counted or run. */
static void one(unsigned long long seed, const char *without, enum what what)
{
    bool trains = false;
    const unsigned kinds = draw_kinds_of(seed, &trains);
    const bool two = seed % 5 == 4 && !without && !kinds, print = what == PRINT, check = what == CHECK;
    if (what == SAY_KINDS) {
        printf("%llu %u %d\n", seed, kinds, trains);
        return;
    }
    draw_program(&first, seed, !two, kinds);
    if (without)
        leave_out(&first, without);
    if (two)
        draw_program(&other, seed + (1ull << 40), false, 0);
    if (print) {
        print_program(&first);
        if (two)
            print_program(&other);
    } else if (check) {
        printf("%llu %d\n", seed, first.n_steps + (two ? other.n_steps : 0));
    } else {
        if (two)
            run_both(&first, first_notes, &other, other_notes);
        else
            run_program(&first, first_notes);
        printf("%llu", seed);
        print_notes(&first, first_notes);
        if (two) {
            printf(" |");
            print_notes(&other, other_notes);
        }
        printf("\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    enum what what = RUN;
    const char *without = NULL, *seeds = "";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--print"))
            what = PRINT;
        else if (!strcmp(argv[i], "--check"))
            what = CHECK;
        else if (!strcmp(argv[i], "--kinds"))
            what = SAY_KINDS;
        else if (i + 1 < argc && !strcmp(argv[i], "--without"))
            without = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--seeds"))
            seeds = argv[++i];
        else
            return usage();
    }
    if (!*seeds)
        return usage();
    if (what == RUN)
        run_start();
    for (const char *at = seeds; *at;) {
        char *end;
        unsigned long long a = strtoull(at, &end, 10), b = *end == '-' ? strtoull(end + 1, &end, 10) : a;
        if (end == at || (*end && *end != ',') || b < a)
            return usage();
        for (; a <= b; a++)
            one(a, a == b && !*end ? without : NULL, what);
        at = *end ? end + 1 : end;
    }
    return 0;
}
