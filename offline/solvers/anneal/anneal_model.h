/* What may be recomputed, in the form the annealer works on: units and cells.
 *
 * A *cell* is one life of a buffer: a run of versions that begins where the buffer is wholly overwritten (or
 * exists before op 0) and goes on through in-place changes up to the next whole overwrite. Its *final* version
 * is what later ops read.
 *
 * A *unit* is the group of ops that must be replayed together to bring a cell back at its final version (the node
 * grouping of FastSA, "A fast heuristic to optimize time-space tradeoff for large models", NeurIPS 2023, section
 * 4, with in-place chains as the groups): all ops that write one of the cell's versions, and the ops that read a
 * version before the final one. Replayed in program order, a unit consumes its inputs at their final versions
 * (or at versions of things that are always there) and leaves all its cells final, but for inner ones.
 *
 * An *inner* cell of a unit is one that only its own ops use: the workspace of each product in a convolution that is
 * computed image by image, the columns that all of them pass through. A replay of the unit has it from its first op to
 * its last in the unit, and leaves nothing of it.
 *
 * Two consequences the annealer builds on: at any point after its last op a unit may be replayed, whatever else
 * was replayed before, as long as its inputs are kept up to there; and taking a replay out again is always
 * possible, at the price of keeping the earlier copy longer.
 *
 * Threads: immutable after anneal_model_new.
 * Errors: NULL for no memory.
 */
#ifndef REMAT_OFFLINE_ANNEAL_MODEL_H
#define REMAT_OFFLINE_ANNEAL_MODEL_H

#include <stdint.h>

#include "offline/model/graph.h"

struct anneal_cell {
    int64_t bytes;
    int32_t buf;
    int32_t first_ver, last_ver; /* versions of the buffer that belong to it */
    int32_t start;               /* op that makes first_ver; -1: exists before op 0 */
    int32_t final_op;            /* op that makes last_ver, from where on the cell may leave and come back. Of a fixed
                                    cell, which never leaves but to the host: start */
    int32_t first_use, n_uses;   /* ops after final_op that touch it: m->uses[...], rising */
    uint8_t fixed;               /* nothing can rebuild it */
    int32_t unit;                /* unit that rebuilds it; -1: nothing does */
    uint8_t survives;            /* wanted at the end of the iteration */
    uint8_t tracked;             /* 0: always resident (see base_bytes), no schedule changes that */
};

struct anneal_unit {
    int64_t ns;
    int64_t scratch_bytes; /* the most that one of its ops needs of inner cells and side scratch together */
    int32_t first_op, n_ops; /* m->unit_ops, program order */
    int32_t first_in, n_in;  /* m->unit_cells: tracked cells read (at their final version, unless fixed) */
    int32_t first_out, n_out; /* m->unit_cells: cells rebuilt */
    int32_t first_inner, n_inner; /* m->inner */
    int32_t until;           /* it may be replayed only before this op starts (n_ops: no such limit): something it
                                reads is changed there and nothing brings the old contents back */
    uint8_t replayable;
};

/* An inner cell: its buffer may be given back after op m->unit_ops[first_op + last] of the unit. */
struct anneal_inner {
    int32_t cell, last;
};

struct anneal_model {
    const struct graph *g;
    struct anneal_cell *cells;
    struct anneal_unit *units;
    int32_t n_cells, n_units, n_inner;
    int32_t n_long; /* units that are not replayed for their length alone, maybe */
    int32_t *uses;
    int32_t *unit_ops, *unit_cells;
    struct anneal_inner *inner; /* of each unit by rising `last` */
    int32_t *unit_of_op;   /* [n_ops] */
    int32_t *cell_of_val;  /* [n_vals] */
    int64_t base_bytes;    /* the untracked cells */
};

/* A longer unit is not replayed by anneal_model_new: where there are plans without, searches find them sooner. A convolution of a batch
 * image by image is one of two or three ops for each. */
enum { ANNEAL_UNIT_OPS_MAX = 48 };

/* offload: cells that stay resident for good are tracked too, since they may go to the host. */
struct anneal_model *anneal_model_new(const struct graph *g, int offload);
/* The same with units of any length. */
struct anneal_model *anneal_model_new_long(const struct graph *g, int offload);
void anneal_model_free(struct anneal_model *m);

#endif
