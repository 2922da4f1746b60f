/* random_api --seeds A-B [--print | --check] [--without STEPS]
 *
 * Draws an API-level program from each seed, runs them one after the other in one process, and prints a line for each: the
 * seed, and step:checksum for all that the program read back. Every fifth seed runs two programs at the same time, in two threads.
 * --print shows the programs instead of running them; --check draws them and says how many steps they have; --without leaves steps
 * out of a single program (numbers and ranges, comma-separated: 3,7-12) and exits 4 if what remains is not race-free. */
#include "tests/programs/api/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct program first, other;
static uint64_t first_notes[MAX_STEPS], other_notes[MAX_STEPS];

static int usage(void)
{
    fprintf(stderr, "usage: random_api --seeds A-B [--print | --check] [--without STEPS]\n");
    return 2;
}

/* Takes the steps away, keeping numbers of those that stay out of it: a program has its own. False: not race-free any more. */
static bool leave_out(struct program *p, const char *list)
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
        if (gone[i])
            continue;
        if (!order_step(&o, p, &p->step[i]))
            return false;
        p->step[n++] = p->step[i];
    }
    p->n_steps = n;
    return true;
}

static void print_notes(const struct program *p, const uint64_t *notes)
{
    for (int i = 0; i < p->n_steps; i++)
        if (notes[i])
            printf(" %d:%016llx", i, (unsigned long long)notes[i]);
}

int main(int argc, char **argv)
{
    unsigned long long a = 0, b = 0;
    bool print = false, check = false, some = false;
    const char *without = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--print"))
            print = true;
        else if (!strcmp(argv[i], "--check"))
            check = true;
        else if (i + 1 < argc && !strcmp(argv[i], "--without"))
            without = argv[++i];
        else if (i + 1 < argc && !strcmp(argv[i], "--seeds")) {
            int n = sscanf(argv[++i], "%llu-%llu", &a, &b);
            some = n > 0;
            if (n == 1)
                b = a;
        } else
            return usage();
    }
    if (!some || b < a || (without && a != b))
        return usage();
    if (!print && !check)
        run_start();
    for (; a <= b; a++) {
        bool two = a % 5 == 4 && !without;
        draw_program(&first, a, !two);
        if (without && !leave_out(&first, without)) {
            fprintf(stderr, "seed %llu: without these steps the program has a race\n", a);
            return 4;
        }
        if (two)
            draw_program(&other, a + (1ull << 40), false);
        if (print || check) {
            if (print)
                print_program(&first);
            if (print && two)
                print_program(&other);
            if (check)
                printf("%llu %d\n", a, first.n_steps + (two ? other.n_steps : 0));
            continue;
        }
        if (two)
            run_both(&first, first_notes, &other, other_notes);
        else
            run_program(&first, first_notes);
        printf("%llu", a);
        print_notes(&first, first_notes);
        if (two) {
            printf(" |");
            print_notes(&other, other_notes);
        }
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
