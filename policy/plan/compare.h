/* compare.h: values that replays make again are compared with what the program had: in rehearsal, and under `--verify always`, all of them with a
 * copy on the host; else in turn by hashes on the device (verify.h).
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_COMPARE_H
#define REMAT_POLICY_COMPARE_H

#include "policy/plan/saved.h"

/* The value may go: it is on the host if it must be compared. What memory was too short to set aside is not dropped. */
int compare_set_aside(struct device *d, int32_t b, struct slot *s, unsigned t);
/* What op `at` is about to overwrite on stream t, and a replay will make again, is set aside, or hashed, to compare. */
int compare_set_op_aside(struct device *d, uint32_t at, unsigned t);
/* Op `at`, which comes next on stream t, or a replay of it, is the first to write a buffer, and perhaps not all of it. How much it writes may hang
 * on its arguments, or on data: what it leaves must be the same each time where it is compared. So what is there before it is made the same. */
bool compare_begins(const struct device *d, uint32_t at);
int compare_fill_before(struct device *d, uint32_t at, unsigned t);
/* What a replay makes is compared on the host in this iteration. */
bool compare_must(struct device *d);
/* The replay of `op` has made version v of w's buffer, in s. Where it cannot be compared, or differs, the old value comes back. */
int compare_rebuilt(struct device *d, uint32_t op, const struct rec_operand *w, int32_t v, struct slot *s);

#endif
