/* draw.h: what the files that draw programs share: the program so far, and steps that are added to it with whatever they need before them.
 *
 * Threads: each draws a program of its own. Errors: a step that is not legal is a fault of the drawing and ends the process.
 */
#ifndef PROGRAMS_API_DRAW_H
#define PROGRAMS_API_DRAW_H

#include "tests/programs/api/order.h"

enum { PAGE_WORDS = 1024, MOST_LIVE = 24 };

/* What no step takes by chance: HOLD_FILLED as what it reads, HOLD_ANY as what it writes or frees. */
enum { HOLD_FILLED = 1, HOLD_ANY = 2 };

extern __thread struct drawing {
    struct program *p;
    struct order o;
    uint64_t rng;
    uint32_t sizes[5], cap_words, round;
    int n_sizes, n_streams;
    unsigned host_percent, foreign_percent; /* how orders are made; frees on a stream that did not use the memory */
    bool in_round, training;                /* a body that is repeated; which keeps what it needs */
    int first_tensor;                       /* of this round */
    unsigned kinds;                         /* enum kind; 0: none */
    bool trains;                            /* the program is a training loop, and little else */
    uint32_t steady;                        /* before this round tables are written with the same numbers; 0: there is no such round */
    bool writes_table;                      /* as steps do now */
    uint8_t hold[MAX_TENSORS];
} d;

uint32_t draw(uint32_t n);
bool chance(unsigned percent);
struct step step(enum verb v, int stream, int a, int b, int c);
int any_stream(void);
/* A live tensor, filled if asked, with at least so many words; -1: none. */
int any_tensor(bool filled, uint32_t least);
uint32_t live_words(void);
int new_tensor(int stream, uint32_t words);
void free_tensor(int t);

void emit(struct step s);
/* With what it needs before it. */
void emit_ready(struct step s);
void emit_event(enum verb v, int stream, int e);
/* The host waits for the last writer (for_write: and the readers). */
void host_needs(const struct touched *x, bool for_write);

#endif
