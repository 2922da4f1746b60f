/* ledger_sums.h: reserving, and what members owe each other: the arithmetic of sharing, by the equations of ledger.h.
 *
 * Threads: the functions of one `struct ledger` are called by one thread at a time (the engine's mutex). Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_SHARE_LEDGER_SUMS_H
#define REMAT_POLICY_SHARE_LEDGER_SUMS_H

#include "policy/share/ledger_rows.h"

/* Reserves `bytes` more. 0, or -ENOSPC: (2) or (4) would not hold. Dead members' shares are taken back first. */
int ledger_reserve(struct ledger *l, uint64_t bytes);
void ledger_release(struct ledger *l, uint64_t bytes);
uint64_t ledger_reserved(const struct ledger *l);
uint64_t ledger_limit(const struct ledger *l);
uint64_t ledger_entitled(const struct ledger *l);
/* Bytes that could be reserved this moment, by (2) and (4). */
uint64_t ledger_available(struct ledger *l);

/* Asks the other members for room, so that this one can hold `bytes` in all, cut to its entitlement; 0: asks no more. `blocked`: it cannot go on without. */
void ledger_want(struct ledger *l, uint64_t bytes, bool blocked);
/* Bytes beyond its entitlement that this member is to give back: its part, in proportion, of the bytes that other members wait for.
 * *blocked: one of these members cannot go on without. */
uint64_t ledger_owed(struct ledger *l, bool *blocked);
const struct ledger_page *ledger_page(const struct ledger *l);
/* Bytes that row i may always come back to: (3). */
uint64_t ledger_entitlement(const struct ledger_page *p, unsigned i);

#endif
