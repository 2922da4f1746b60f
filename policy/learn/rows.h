/* rows.h: which bytes of the buffers of a probed iteration nobody has written (blank.h), a row for each.
 *
 * Threads: under the engine's mutex. Its state is device.probe->rows; after probe_init().
 */
#ifndef REMAT_POLICY_ROWS_H
#define REMAT_POLICY_ROWS_H

#include "policy/device.h"
#include "policy/learn/blank.h"

struct blank_row { /* of one buffer that is not wholly defined */
    uint64_t serial;
    bool scattered;  /* in too many pieces to be listed: b means nothing */
    struct blank b;
};

struct rows {
    struct blank_row **row; /* [n] by slot id; NULL */
    uint32_t n;
    uint64_t begin_serial;  /* of the probed iteration */
};

/* What is allocated from now on is new; of what is older every byte is defined. */
void rows_begin(struct device *d);
/* Nothing is new any more, and the rows are freed. */
void rows_end(struct device *d);
/* The row of a buffer that was allocated in the probed iteration, made if need be; NULL: no memory, or it has none. */
struct blank_row *rows_of(struct device *d, const struct slot *s, bool make);
/* The same, also of one that was wholly defined until now. */
struct blank_row *rows_make(struct device *d, const struct slot *s);
/* The slot was allocated in the probed iteration. */
bool rows_is_new(const struct device *d, const struct slot *s);
/* The bytes of the buffer that are defined by now, into out[65]: their number; -1: all of them. */
int rows_defined(struct device *d, const struct slot *s, struct rec_range *out);

#endif
