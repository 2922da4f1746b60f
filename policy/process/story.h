/* story.h: the device's state in words, a line for each change: learning, a plan in force, swapping and why, a limit that is not felt.
 *
 * A terminal shows one such line. It is redrawn in its place while the process writes nothing else (five times a second at most); after other output a new
 * line comes at most every two seconds. Elsewhere (a log file) a line comes at most every STORY_PAUSE_NS: a change within the pause is told when the pause is
 * over, as the state is by then, and not at all if the state is the one that was told last. Without a limit, and with `--quiet`, only warnings are told.
 *
 * Threads: under the engine's mutex. Errors: none; without memory nothing is told.
 */
#ifndef REMAT_POLICY_PROCESS_STORY_H
#define REMAT_POLICY_PROCESS_STORY_H

#include "policy/device.h"

#define STORY_PAUSE_NS 10000000000ull
enum { STORY_TEXT = 300 };
/* The state's text where memory was short, but the iteration that a lesson recorded fits the limit. */
#define STORY_LEARNT_FITS "the iteration that was learnt fits the limit: what does not at other times is swapped"

enum story_state { STORY_NONE, STORY_FITS, STORY_LEARNING, STORY_PLANNING, STORY_IN_FORCE, STORY_SWAPPING };

/* The story of one device. Pure data: callers pass the time. */
struct story {
    enum story_state now, told; /* the present state; the state in the latest line */
    uint64_t which, told_which; /* tell two states of one kind apart: a plan in force by its price */
    bool due;                   /* the present state has not been told */
    bool swapped;               /* the latest reason to swap came after a plan was in force */
    char text[STORY_TEXT];      /* of the present state */
    char why[STORY_TEXT];       /* the latest reason to swap; "": there was none */
};

/* Sets the present state. `which` tells two states of one kind apart (a plan in force by its price); reasons to swap are told apart by their texts. True: the
 * state has changed. */
bool story_set(struct story *s, enum story_state now, uint64_t which, const char *text);
/* Whether a due line may be written at now_ns: at least pause_ns after last_ns, when the process wrote its latest line (0: none). If true, the state counts as told. */
bool story_may_tell(struct story *s, uint64_t pause_ns, uint64_t now_ns, uint64_t last_ns);

int story_init(struct device *d);
void story_is_which(struct device *d, enum story_state now, uint64_t which, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
#define story_is(d, now, ...) story_is_which(d, now, 0, __VA_ARGS__)
/* As story_is(), but told only when the program goes on: a change at the program's end is not worth a line. */
void story_becomes(struct device *d, enum story_state now, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* As story_is() for a failure: a warning at once takes the place of the line. */
void story_warns(struct device *d, enum story_state now, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Writes a due line once its pause is over. Called between two iterations, and now and then where no iterations are known. */
void story_goes_on(struct device *d);

#endif
