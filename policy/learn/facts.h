/* facts.h: what a trial measured, entered into the table of what is known of kernels (tracer/known/), and what that table says of a launch before
 * its trial.
 *
 * The table belongs to the process. Whose code a kernel is, is told by its image where that can be told (op/code.h); else by its handle, and then a kernel of
 * two devices has two rows. Facts of images come from earlier runs and go to later ones (earlier.h).
 *
 * What makes a launch opaque that shows in its arguments (a texture, memory of the host, addresses in memory) is no fact of its code, and looked at each
 * time; nor is what a trial did not come to, for want of time or memory.
 *
 * Threads: under the engine's mutex. Errors: none: without memory for it nothing is known.
 */
#ifndef REMAT_POLICY_FACTS_H
#define REMAT_POLICY_FACTS_H

#include "policy/learn/trial.h"
#include "tracer/known/known.h"

/* Why launches are not replayed, where that is a fact of their code. */
extern const char facts_differs[], facts_updates[];

/* One launch, from before its trial to its end. */
struct facts {
    struct known_kernel *kernel; /* NULL: nothing is asked or entered */
    struct known_code code;
    bool of_image; /* code holds in other runs */
    struct known_launch launch;
    struct known_word *words;  /* [launch.n_words] the op's operands before the trial */
    uint8_t *taken;            /* [launch.n_words] enum known_use: what is known, where state is not KNOWN_NOT */
    uint32_t *touched;         /* [launch.n_words] index into the trial's buffers */
    const char *why;           /* known */
    const struct known_range *left; /* [n_left] known; the table's */
    uint32_t n_left;
    enum known_state state;
    bool freely, but_numbers; /* see known.h */
};

/* A lesson begins; it came to its end, and what was measured in it is known from now on. */
void facts_lesson(void);
void facts_settle(struct device *d);
/* After trial_open(), before the op runs. */
void facts_open(struct facts *x, const struct trial *t);
/* Nothing has to be tried: what the launch does with its operands is known, and no word of it is unanswered. `checked`: an earlier run has tried all
 * launches of this very iteration; then bits that vary freely need no trial either, nor do the numbers of an update
 * over a list, which is not replayed, and counts as changing all that it touches (learn.c): an optimizer's step count. */
bool facts_suffice(const struct facts *x, const struct trial *t, bool checked);
/* The launch, known as it was, has changed the trial's buffer k, which it only reads as far as is known: such launches are unknown from now on. */
void facts_surprise(struct facts *x, const struct trial *t, uint32_t k);
/* The most that one of its words is known to do with the trial's buffer k. */
enum known_use facts_use(const struct facts *x, uint32_t k);
/* What is known to stay unwritten of the trial's buffer k. */
void facts_left(const struct facts *x, uint32_t k, struct blank *left);
/* The trial is over, and was whole, and the rows say what is written now: `why` is what it found. Compares with what was known: a difference is counted (stats), and said. */
void facts_enter(struct facts *x, struct trial *t, const char *why, const uint32_t *idle, uint32_t n_idle, uint64_t ns);
void facts_close(struct facts *x);
/* A replay of the function differed from what the program had: what earlier runs have found of it is believed no more, in later runs either. */
void facts_distrust(struct device *d, const struct func *f);

#endif
