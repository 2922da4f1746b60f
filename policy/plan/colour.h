/* colour.h: chunks for the buffers of an iteration: two may have the same chunk where their lives do not overlap.
 *
 * A life is the steps of the plan in which a buffer is in memory. A place is an allocation of the iteration, or a twin of it: another slot that
 * the next iteration uses, where the buffer that this one made is still held when the next one is made.
 *
 * Pure data. Threads: one owner. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_POLICY_COLOUR_H
#define REMAT_POLICY_COLOUR_H

#include "policy/plan/compiled.h"
#include "tracer/record.h"

enum { PLACES_MOST = 3 /* of one allocation: its slot, and two twins */ };

struct life { /* a buffer is in memory in [from, to), counted in steps of the plan */
    uint32_t from, to;
    int32_t next; /* more of the same owner */
};

struct colouring {
    struct life *lives;
    uint32_t n_lives, cap_lives, n_steps;
    int32_t *of_buf;     /* [n_bufs] head of its lives, -1 none */
    int32_t *of_alloc;   /* [n_places] head, for fixed slots */
    int32_t *passing;    /* [n_allocs] buffer that the iteration before made there, and this one hands on to the next; -1 none */
    int32_t *partner;    /* [n_allocs] buffer that the iteration before made there, or the one before that, and this one frees; -1 none */
    uint64_t *busy;      /* [chunks][words] bitmap over steps */
    uint64_t *taken;     /* likewise, before any place has its chunks */
    uint32_t words, n_chunks;
};

/* Room for all that follows, and who takes turns with whom. Freed by colour_end(), also after an error. */
int colour_begin(const struct record *r, struct colouring *c);
void colour_end(struct colouring *c);
/* The buffer that the iteration before made at allocation k, and this one frees, has the slot until then: the new one needs another. */
bool colour_partner_stays(const struct record *r, const struct colouring *c, uint32_t k);
/* Walks the plan as the simulator does: when each buffer has memory (of_buf), n_steps. */
int colour_lives(const struct record *r, const struct compiled *p, struct colouring *c);
/* The slot of an allocation has memory while its buffer has, and in the next iterations while the buffer lives on. Its twins, twin[place],
 * likewise (of_alloc). */
int colour_slot_lives(const struct record *r, const int32_t *twin, struct colouring *c);
/* So many chunks, all free in all steps; then some that are taken, in all steps or for some buffer's lives. */
int colour_room(struct colouring *c, uint32_t n_chunks);
void colour_take_all(struct colouring *c, uint32_t chunk);
void colour_take_lives(struct colouring *c, uint32_t chunk, int32_t head);
/* A chunk for each of the pages[k] pages of every place, into (*home)[k][page]; -1 where there is none: *lacking of them, of which *beyond no
 * map could give. pages[k] 0: the place needs none. *home may be exchanged for another table of the same shape. */
int colour_map(struct colouring *c, const uint32_t *pages, uint32_t n_places, int32_t ***home, uint64_t *lacking, uint64_t *beyond);
/* After colour_map(): every chunk of the map has one tenant at a time. */
bool colour_is_sound(struct colouring *c, const uint32_t *pages, uint32_t n_places, int32_t *const *home);

#endif
