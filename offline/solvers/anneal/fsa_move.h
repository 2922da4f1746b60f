/* fsa_move: the changes annealing tries on a row (fsa_row.h), and taking them back.
 *
 * FastSA's moves are: compute a node in an empty slot, take a replay away, move an op to an empty slot. Two additions:
 * a replay whose inputs are not in memory may bring replays of them along, in turn (one move builds a whole
 * chain, which single steps would have to climb to); and replays are proposed where memory is short: before a reader,
 * of a value that is held over an item above the budget.
 *
 * What may move is the order's freedom:
 *   FSA_FREE    any op to any place (FastSA)
 *   FSA_FIRSTS  first computations stay in the given order; replays stand anywhere
 *   FSA_STAGES  and between two first computations replays stand in rising order, each once: the schedules that
 *               Checkmate's R and S (section 4.2 of its paper) can express; MOCCASIN searches the same set
 *
 * Threads: one. Errors: none; a move that cannot be made is not made.
 */
#ifndef REMAT_OFFLINE_FSA_MOVE_H
#define REMAT_OFFLINE_FSA_MOVE_H

#include "offline/solvers/anneal/fsa_row.h"

enum fsa_freedom { FSA_FREE, FSA_FIRSTS, FSA_STAGES };
enum { FSA_JOURNAL = 512 };

struct fsa_mover {
    struct fsa_row *row; /* borrowed */
    enum fsa_freedom freedom;
    uint64_t rng;       /* not 0 */
    double sight;       /* share of proposed replays that must relieve an item above the budget; the rest must relieve an item
                           that would be above the budget with the value's size more; < 0: propose everywhere */
    int32_t n_journal;
    struct {
        int32_t added, node, slot;
    } journal[FSA_JOURNAL];
};

/* Make one random change. 1: changed (the caller keeps the change or calls fsa_undo); 0: nothing changed. */
int fsa_mutate(struct fsa_mover *m);
void fsa_undo(struct fsa_mover *m);

double fsa_draw(struct fsa_mover *m);                  /* [0, 1) */
int32_t fsa_draw_below(struct fsa_mover *m, int32_t n); /* 0 .. n - 1 */

#endif
