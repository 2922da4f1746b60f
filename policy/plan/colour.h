/* colour.h: chunks for the buffers of an iteration: two may have the same chunk where their lives do not overlap.
 *
 * A life is a range of the plan's steps in which a buffer is in memory. A place is an allocation of the iteration, or a twin: a further slot for
 * the same allocation, which the next iteration uses while the buffer of this one is still held (a batch fetched ahead).
 *
 * Pure data. Threads: one owner. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_POLICY_COLOUR_H
#define REMAT_POLICY_COLOUR_H

#include "policy/plan/compiled.h"
#include "tracer/record.h"

enum { PLACES_MOST = 3 /* places of one allocation: its slot, and two twins */ };

struct life { /* a buffer is in memory in [from, to), counted in steps of the plan */
    uint32_t from, to;
    int32_t next; /* next life of the same buffer or place; -1: none */
};

struct colouring {
    struct life *lives;
    uint32_t n_lives, cap_lives, n_steps;
    int32_t *of_buf;     /* [n_bufs] first life of the buffer; -1: none */
    int32_t *of_alloc;   /* [n_places] first life of the place's fixed slot; -1: none */
    int32_t *passing;    /* [n_allocs] buffer of the iteration before at this allocation, which this iteration hands on to the next; -1: none */
    int32_t *partner;    /* [n_allocs] buffer of one of the two iterations before at this allocation, which this iteration frees; -1: none */
    uint64_t *busy;      /* [chunks][words] bitmap over steps: the chunk has a tenant */
    uint64_t *taken;     /* busy before any place has its chunks */
    uint32_t words, n_chunks;
};

/* Makes the tables of *c, and finds the buffers that take turns in one allocation. Freed by colour_end(), also after an error. */
int colour_begin(const struct record *r, struct colouring *c);
void colour_end(struct colouring *c);
/* The buffer partner[k], which this iteration frees, still has its slot when allocation k is made: the new buffer needs another slot. */
bool colour_partner_stays(const struct record *r, const struct colouring *c, uint32_t k);
/* Walks the plan as the simulator does, and fills of_buf (when each buffer has memory) and n_steps. */
int colour_lives(const struct record *r, const struct compiled *p, struct colouring *c);
/* Fills of_alloc: the slot of an allocation has memory while its buffer has it, and in the next iterations while the buffer lives on. Its
 * twins (twin[place]) have the same lives. */
int colour_slot_lives(const struct record *r, const int32_t *twin, struct colouring *c);
/* colour_room() makes n_chunks chunks, free in all steps; the two others take a chunk, in all steps or in the lives from `head` on. */
int colour_room(struct colouring *c, uint32_t n_chunks);
void colour_take_all(struct colouring *c, uint32_t chunk);
void colour_take_lives(struct colouring *c, uint32_t chunk, int32_t head);
/* A chunk for each of the pages[k] pages of place k, into (*home)[k][page]; -1: no chunk was free. *lacking: pages without a chunk; *beyond: how
 * many of these no map could give one. pages[k] 0: the place needs no chunk. *home may be exchanged for another table of the same shape. */
int colour_map(struct colouring *c, const uint32_t *pages, uint32_t n_places, int32_t ***home, uint64_t *lacking, uint64_t *beyond);
/* After colour_map(): every chunk of the map has one tenant at a time. */
bool colour_is_sound(struct colouring *c, const uint32_t *pages, uint32_t n_places, int32_t *const *home);

#endif
