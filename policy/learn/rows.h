/* rows.h: which bytes of a lesson's buffers nobody has written (blank.h), a row for each buffer.
 *
 * Threads: under the engine's mutex. The state is device.probe->rows; after probe_init().
 */
#ifndef REMAT_POLICY_ROWS_H
#define REMAT_POLICY_ROWS_H

#include "policy/device.h"
#include "policy/learn/blank.h"

struct blank_row { /* one buffer that is not wholly defined */
    uint64_t serial;
    bool scattered;  /* the unwritten bytes are in too many pieces to be listed: b means nothing */
    struct blank b;
};

struct rows {
    struct blank_row **row; /* [n] by slot id; NULL: no row yet */
    uint32_t n;
    uint64_t begin_serial;  /* memory.serial when the lesson began: slots with a greater one are new */
};

/* Begins a lesson: slots allocated from here on are new; of older ones every byte is defined. */
void rows_begin(struct device *d);
/* Ends a lesson: no slot is new any more, and the rows are freed. */
void rows_end(struct device *d);
/* The row of a buffer that was allocated in the lesson; `make`: made if need be. NULL: no memory, or the buffer has none: it is wholly defined, or pinned. */
struct blank_row *rows_of(struct device *d, const struct slot *s, bool make);
/* Like rows_of() with `make`, also for a buffer that was wholly defined until now. */
struct blank_row *rows_make(struct device *d, const struct slot *s);
/* True if the slot was allocated in the lesson. */
bool rows_is_new(const struct device *d, const struct slot *s);
/* The ranges of the buffer that are defined by now, into out[BLANK_MAX + 1]: their number; -1: no list: all bytes are defined, the ranges are too many, or the buffer is
 * pinned. */
int rows_defined(struct device *d, const struct slot *s, struct rec_range *out);

#endif
