/* The annealer's model of a graph: units, which may be replayed, and cells, which replays bring back.
 *
 * A *cell* is one life of a buffer: a run of versions that begins where the buffer is wholly overwritten (or
 * exists before op 0) and goes on through in-place changes up to the next whole overwrite. Later ops read its *final* version.
 *
 * A *unit* is the group of ops that must be replayed together to bring a cell back at its final version (the node
 * grouping of FastSA, "A fast heuristic to optimize time-space tradeoff for large models", NeurIPS 2023, section
 * 4, with in-place chains as the groups): all ops that write one of the cell's versions, and the ops that read a
 * version before the final one. Replayed in program order, a unit consumes its inputs at their final versions
 * (or at versions of things that are always there) and leaves all its cells final, but for inner ones.
 *
 * An *inner* cell of a unit is used by the unit's own ops alone: in a convolution that is computed image by image, the
 * workspace of each product, and the columns that all products pass through. A replay of the unit holds the cell from the
 * first of its ops that uses it to the last, and leaves nothing of it.
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
    int32_t first_ver, last_ver; /* versions of the buffer that belong to the cell */
    int32_t start;               /* op that makes first_ver; -1: exists before op 0 */
    int32_t final_op;            /* op that makes last_ver; after it the cell may leave and come back. For a fixed
                                    cell, which leaves only to the host: start */
    int32_t first_use, n_uses;   /* ops after final_op that touch the cell: m->uses[...], rising */
    uint8_t fixed;               /* nothing can rebuild the cell */
    int32_t unit;                /* unit that rebuilds the cell; -1: none */
    uint8_t survives;            /* wanted at the end of the iteration */
    uint8_t tracked;             /* 0: resident in every schedule (see base_bytes) */
};

struct anneal_unit {
    int64_t ns;
    int64_t scratch_bytes; /* largest need of one of the unit's ops: live inner cells plus side scratch */
    int32_t first_op, n_ops; /* m->unit_ops, program order */
    int32_t first_in, n_in;  /* m->unit_cells: tracked cells read (at their final version, unless fixed) */
    int32_t first_out, n_out; /* m->unit_cells: cells rebuilt */
    int32_t first_inner, n_inner; /* m->inner */
    int32_t until;           /* the unit may be replayed only before this op starts (n_ops: no such limit): the op changes
                                an input of the unit, and nothing brings the old contents back */
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
    int32_t n_long; /* units that are perhaps not replayed for their length alone */
    int32_t *uses;
    int32_t *unit_ops, *unit_cells;
    struct anneal_inner *inner; /* inner cells of each unit, by rising `last` */
    int32_t *unit_of_op;   /* [n_ops] */
    int32_t *cell_of_val;  /* [n_vals] */
    int64_t base_bytes;    /* the untracked cells */
};

/* In models of anneal_model_new longer units are not replayed: where plans without them exist, searches find those sooner. Example of a long
 * unit: a convolution that runs image by image, with two or three ops for each image of the batch. */
enum { ANNEAL_UNIT_OPS_MAX = 48 };

/* offload: cells that stay resident for good are tracked too, since they may go to the host. */
struct anneal_model *anneal_model_new(const struct graph *g, int offload);
/* anneal_model_new with units of any length. */
struct anneal_model *anneal_model_new_long(const struct graph *g, int offload);
void anneal_model_free(struct anneal_model *m);

#endif
