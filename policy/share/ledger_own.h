/* ledger_own.h: what ledger.c and ledger_sums.c share; for nobody else. */
#ifndef REMAT_POLICY_SHARE_LEDGER_OWN_H
#define REMAT_POLICY_SHARE_LEDGER_OWN_H

#include "policy/share/ledger.h"

struct ledger {
    struct ledger_page *page;
    unsigned me; /* row */
    int fd;      /* must stay open: it holds the lock */
    uint64_t pid_ns;
};

/* Frees the shares of the dead. True: there was something to free. */
bool ledger_reap(struct ledger *l);
void ledger_wake(struct ledger_page *p, bool asks);
uint64_t ledger_entitlement(const struct ledger_page *p, unsigned i);

#endif
