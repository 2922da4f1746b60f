/* verify.h: comparing never ends. While a plan is in force, a rebuilt value's device hash, taken just before the value is dropped,
 * is compared with the hash taken after its replay. Everything is queued in the program's own streams; the host looks at the
 * results an iteration later and waits for nothing.
 *
 * A range that begins within a word is compared from its next word on (rehearsal has compared all of it).
 *
 * In turn: of all values that a plan rebuilds, each is compared once in VERIFY_TURNS iterations; those that are rebuilt just before the
 * same op have the same turn. Only bytes that are defined (record_comparable) are hashed. A mismatch after rehearsal cannot be mended,
 * since the value is gone: the program's next call fails, and one line names the kernel.
 *
 * A launch costs more than the hash of a small tensor. So what is told by verify_before(), verify_after() and verify_inputs() waits,
 * HASHING_FEW ranges at most, and goes to the device with one launch. The caller sees to it that nothing of that has changed or gone by
 * then: verify_flush() comes before memory is handed on and before the program's next op, verify_replays() before a replay.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; where the device has no memory or no code for it, nothing is
 * compared and one line says so.
 */
#ifndef REMAT_POLICY_VERIFY_H
#define REMAT_POLICY_VERIFY_H

#include "policy/plan/cursor.h"

enum { VERIFY_TURNS = 16, VERIFY_INPUT_TURNS = 128 };

/* A plan was loaded: takes scratch memory, once (where that fails nothing is compared, and one line says so; not before there is a plan:
 * under the tightest limits swapping needs every page). */
void verify_init(struct device *d);
/* In which of VERIFY_TURNS iterations each value is compared, into turns[first_val[n_bufs]]; -1: never, no replay of the plan makes it. */
void verify_turns(const struct record *r, const struct compiled *p, int8_t *turns);
/* An enforced iteration begins, on stream t; what the ones before left behind is looked at. */
FENCE_MUST_USE int verify_begin(struct device *d, unsigned t);
/* The value (an index into producer) is compared in this iteration. */
bool verify_has_turn(const struct device *d, int32_t value);
/* The value (b, v) in slot s is about to go, in the order of stream t. */
FENCE_MUST_USE int verify_before(struct device *d, int32_t b, int32_t v, struct slot *s, unsigned t);
/* Operand k of a replay of `op` on stream t has just been made again. */
FENCE_MUST_USE int verify_after(struct device *d, uint32_t op, uint32_t k, struct slot *s, unsigned t);
/* What a replay of `op` on stream t only reads as far as is known, before the replay and after it. Of all replays, each is looked at so once
 * in VERIFY_INPUT_TURNS iterations: inputs are larger than outputs, and more. */
FENCE_MUST_USE int verify_inputs(struct device *d, uint32_t op, unsigned t, bool after);
/* Another replay of `op` is about to be queued: what it must not come before, and what it overwrites, is hashed first. */
FENCE_MUST_USE int verify_replays(struct device *d, uint32_t op);
/* verify_flush() where ranges wait; for that alone. */
FENCE_MUST_USE int verify_hash_all(struct device *d);
/* All ranges that wait are queued to be hashed. Nearly always none waits, and there is no call. */
FENCE_MUST_USE static inline int verify_flush(struct device *d) { return d->unhashed ? verify_hash_all(d) : 0; }
/* The iteration has ended: its results are on their way to the host. */
FENCE_MUST_USE int verify_end(struct device *d);
void verify_clear(struct device *d);

#endif
