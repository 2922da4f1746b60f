/* compare.h: rebuilt values are compared with the values that the program had: in rehearsal, and under `--verify always`, all of them with a
 * copy on the host; else in turn by hashes on the device (verify.h).
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_COMPARE_H
#define REMAT_POLICY_COMPARE_H

#include "policy/plan/saved.h"

/* b's value in s is about to go: it is copied to the host, or hashed, if it must be compared. < 0: that failed (memory was short), and the
 * value must not be dropped. */
int compare_set_aside(struct device *d, int32_t b, struct slot *s, unsigned t);
/* Values that op `at` is about to overwrite on stream t, and that a replay will make again, are set aside, or hashed, to compare. */
int compare_set_op_aside(struct device *d, uint32_t at, unsigned t);
/* Op `at`, which comes next on stream t, or a replay of it, is the first to write a buffer that is compared, and perhaps writes a part only. How
 * much may hang on its arguments, or on data; bytes that it leaves alone must be the same each time. So compare_fill_before() fills the buffer. */
bool compare_begins(const struct device *d, uint32_t at);
int compare_fill_before(struct device *d, uint32_t at, unsigned t);
/* Values that replays make are compared on the host in this iteration. */
bool compare_must(struct device *d);
/* The replay of `op` has made version v of w's buffer, in s. Where that value cannot be compared, or differs, the old value comes back. */
int compare_rebuilt(struct device *d, uint32_t op, const struct rec_operand *w, int32_t v, struct slot *s);

#endif
