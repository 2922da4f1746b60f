/* story.h: what goes on, a line for each change of it: learning, a plan in force, swapping and why, a limit that is not felt.
 *
 * A terminal shows one such line, drawn anew where nothing has been written since, and another at most every two seconds; elsewhere (a log file) a
 * line comes at most every STORY_PAUSE_NS: what has changed meanwhile is told when that time has passed, as it is by then, and not at all where it is again what was told last. Without a
 * limit, and with `--quiet`, none of it is told; warnings are.
 *
 * Threads: under the engine's mutex. Errors: none; without memory nothing is told.
 */
#ifndef REMAT_POLICY_PROCESS_STORY_H
#define REMAT_POLICY_PROCESS_STORY_H

#include "policy/device.h"

#define STORY_PAUSE_NS 10000000000ull
enum { STORY_TEXT = 300 };
/* What is told where memory was short, and the iteration that a lesson recorded has room. */
#define STORY_LEARNT_FITS "the iteration that was learnt fits the limit: what does not at other times is swapped"

enum story_state { STORY_NONE, STORY_FITS, STORY_LEARNING, STORY_PLANNING, STORY_IN_FORCE, STORY_SWAPPING };

/* One device's. Pure but for the clock, which is given. */
struct story {
    enum story_state now, told; /* what holds; what the latest line told */
    uint64_t which, told_which; /* of that state: a plan in force by its price, a reason to swap by its words */
    bool due;                   /* what holds has not been told */
    bool swapped;               /* the latest reason to swap came after a plan was in force */
    char text[STORY_TEXT];      /* of what holds */
    char why[STORY_TEXT];       /* the latest reason to swap; "": there was none */
};

/* What holds from now on; `which` tells two of one state apart (a plan in force by its price), reasons to swap are told apart by their texts. True: another
 * thing holds than before. */
bool story_set(struct story *s, enum story_state now, uint64_t which, const char *text);
/* Whether its line may come at now_ns, pause_ns after the latest at the earliest, where that one of the process came at last_ns (0: none did); then it counts as told. */
bool story_may_tell(struct story *s, uint64_t pause_ns, uint64_t now_ns, uint64_t last_ns);

int story_init(struct device *d);
void story_is_which(struct device *d, enum story_state now, uint64_t which, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define story_is(d, now, ...) story_is_which(d, now, 0, __VA_ARGS__)
/* As story_is(), told when the program goes on: what comes at its end is nothing to tell. */
void story_becomes(struct device *d, enum story_state now, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* As story_is() where something has failed: a warning at once, in the place of the line. */
void story_warns(struct device *d, enum story_state now, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Between two iterations, and now and then where none are known: what was held back is told when its time has come. */
void story_goes_on(struct device *d);

#endif
