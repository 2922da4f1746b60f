/* verify.h: rebuilt values are compared for as long as a plan is in force: the device hash taken just before a value is dropped, with
 * the hash taken after its replay. Hashes are queued in the program's own streams; the host looks at the results an iteration later and
 * waits for nothing.
 *
 * A range that begins within a word is compared from the next word on (rehearsal has compared the whole range).
 *
 * Values take turns: each value that a plan rebuilds is compared once in VERIFY_TURNS iterations; values that are rebuilt just before the
 * same op have the same turn. Only defined bytes (record_comparable()) are hashed. A mismatch after rehearsal cannot be mended, since the
 * value is gone: the program's next call fails, and one line names the kernel.
 *
 * A launch costs more than the hash of a small tensor. So the ranges that verify_before(), verify_after() and verify_inputs() are given
 * wait, HASHING_FEW at most, and one launch hashes them. The caller sees to it that no waiting range changes or goes before that:
 * verify_flush() comes before memory is handed on and before the program's next op, verify_replays() before a replay.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno; where the device has no memory or no code for it, nothing is
 * compared and one line says so.
 */
#ifndef REMAT_POLICY_VERIFY_H
#define REMAT_POLICY_VERIFY_H

#include "policy/plan/cursor.h"

enum { VERIFY_TURNS = 16, VERIFY_INPUT_TURNS = 128 };

/* Takes scratch memory, once, when a plan has been loaded (not earlier: under the tightest limits swapping needs every page). Where that fails
 * nothing is compared, and one line says so. */
void verify_init(struct device *d);
/* Each value's turn, 0 to VERIFY_TURNS - 1, into turns[first_val[n_bufs]]; -1: the value is never compared, since no replay of the plan makes it. */
void verify_turns(const struct record *r, const struct compiled *p, int8_t *turns);
/* An enforced iteration begins, on stream t; results of earlier iterations are looked at. */
FENCE_MUST_USE int verify_begin(struct device *d, unsigned t);
/* The value (an index into producer) is compared in this iteration. */
bool verify_has_turn(const struct device *d, int32_t value);
/* The value (b, v) in slot s is about to be dropped or overwritten, in the order of stream t. */
FENCE_MUST_USE int verify_before(struct device *d, int32_t b, int32_t v, struct slot *s, unsigned t);
/* Operand k of a replay of `op` on stream t has just been made again. */
FENCE_MUST_USE int verify_after(struct device *d, uint32_t op, uint32_t k, struct slot *s, unsigned t);
/* Inputs that a replay of `op` on stream t only reads, as far as is known, are hashed before the replay and after it (`after`). Each replay has
 * its turn once in VERIFY_INPUT_TURNS iterations: inputs are larger than outputs, and more. */
FENCE_MUST_USE int verify_inputs(struct device *d, uint32_t op, unsigned t, bool after);
/* A replay of `op` is about to be queued: waiting ranges that must be hashed before any replay, or that this one overwrites, are hashed first. */
FENCE_MUST_USE int verify_replays(struct device *d, uint32_t op);
/* Hashes the ranges that wait; for verify_flush() alone. */
FENCE_MUST_USE int verify_hash_all(struct device *d);
/* All ranges that wait are queued to be hashed. Nearly always none waits, and there is no call. */
FENCE_MUST_USE static inline int verify_flush(struct device *d) { return d->unhashed ? verify_hash_all(d) : 0; }
/* The iteration has ended: its results are on their way to the host. */
FENCE_MUST_USE int verify_end(struct device *d);
void verify_clear(struct device *d);

#endif
