/* ledger_sums.c: see ledger_sums.h. */
#include "policy/share/ledger_sums.h"

#include <errno.h>
#include <sched.h>

enum { TRIES = 4096 }; /* of a reservation that only announcements of other members stand against: an announcement takes microseconds */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t beyond(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

const struct ledger_page *ledger_page(const struct ledger *l) { return l->page; }
uint64_t ledger_limit(const struct ledger *l) { return atomic_load(&l->page->limit); }
uint64_t ledger_reserved(const struct ledger *l) { return atomic_load(&l->page->rows[l->me].reserved); }
uint64_t ledger_entitled(const struct ledger *l) { return ledger_entitlement(l->page, l->me); }

/* Entitlement of each member that asked for no guarantee, by (3). A row that is joining counts from the moment it has its pid. */
static uint64_t equal_part(const struct ledger_page *p)
{
    uint64_t promised = 0, sharers = 0;
    for (unsigned k = 0, n = atomic_load(&p->n_rows); k < n; k++) {
        uint64_t of = atomic_load(&p->rows[k].guarantee);
        if (!atomic_load(&p->rows[k].pid))
            continue;
        if (of == LEDGER_NO_GUARANTEE)
            sharers++;
        else
            promised += of;
    }
    return beyond(atomic_load(&p->limit), promised) / (sharers ? sharers : 1);
}

static uint64_t entitled(const struct ledger_page *p, unsigned k, uint64_t part)
{
    uint64_t g = atomic_load(&p->rows[k].guarantee);
    return g == LEDGER_NO_GUARANTEE ? part : g;
}

uint64_t ledger_entitlement(const struct ledger_page *p, unsigned i) { return entitled(p, i, equal_part(p)); }

/* Bytes that row k waits for, cut to its entitlement. */
static uint64_t due(const struct ledger_page *p, unsigned k, uint64_t part)
{
    return least(atomic_load(&p->rows[k].wanted), entitled(p, k, part));
}

struct sums {
    uint64_t held;    /* sum of `reserved` of all rows */
    uint64_t asked;   /* sum of `asking` of the other rows */
    uint64_t kept;    /* bytes that other members wait for, beyond the bytes that these members have */
    bool lower;       /* some of `asked` is in a lower row */
};

/* Reads `asking` before `reserved`, see ledger.h. */
static struct sums sum_up(const struct ledger *l)
{
    struct sums s = {0};
    uint64_t part = equal_part(l->page);
    for (unsigned k = 0, n = atomic_load(&l->page->n_rows); k < n; k++) {
        const struct ledger_row *r = &l->page->rows[k];
        uint64_t asking = k == l->me ? 0 : atomic_load(&r->asking), reserved = atomic_load(&r->reserved);
        s.held += reserved;
        s.asked += asking;
        s.lower |= asking && k < l->me;
        if (k != l->me)
            s.kept += beyond(due(l->page, k, part), reserved + asking);
    }
    return s;
}

static void note_peak(struct ledger_page *p, uint64_t held)
{
    uint64_t peak = atomic_load(&p->peak_reserved);
    while (held > peak && !atomic_compare_exchange_weak(&p->peak_reserved, &peak, held))
        ;
}

static int reserve_once(struct ledger *l, uint64_t bytes)
{
    struct ledger_row *me = &l->page->rows[l->me];
    uint64_t limit = ledger_limit(l), mine = atomic_load(&me->reserved);
    bool within = mine + bytes <= ledger_entitled(l);
    int full = 0;
    for (int i = 0; i < TRIES; i++) {
        atomic_store(&me->asking, bytes);
        struct sums s = sum_up(l);
        uint64_t need = s.held + bytes + (within ? 0 : s.kept);
        if (need + s.asked <= limit) {
            atomic_store(&me->reserved, mine + bytes);
            atomic_store(&me->asking, 0);
            note_peak(l->page, s.held + bytes);
            return 0;
        }
        if (need > limit && ++full == 2) /* the first time may be bytes on their way from row to row, seen in both */
            break;
        if (s.lower)
            atomic_store(&me->asking, 0);
        sched_yield();
    }
    atomic_store(&me->asking, 0);
    return -ENOSPC;
}

int ledger_reserve(struct ledger *l, uint64_t bytes)
{
    if (bytes > ledger_limit(l))
        return -ENOSPC;
    int r = reserve_once(l, bytes);
    return r && ledger_reap(l) ? reserve_once(l, bytes) : r;
}

void ledger_release(struct ledger *l, uint64_t bytes)
{
    struct ledger_row *me = &l->page->rows[l->me];
    uint64_t mine = atomic_load(&me->reserved);
    atomic_store(&me->reserved, beyond(mine, bytes));
    ledger_wake(l->page, false);
}

uint64_t ledger_available(struct ledger *l)
{
    for (int again = 0;; again++) {
        struct sums s = sum_up(l);
        uint64_t limit = ledger_limit(l), mine = ledger_reserved(l);
        uint64_t own = least(beyond(ledger_entitled(l), mine), beyond(limit, s.held + s.asked));
        uint64_t any = beyond(limit, s.held + s.asked + s.kept);
        if (again || s.held + s.asked < limit || !ledger_reap(l))
            return own > any ? own : any;
    }
}

void ledger_want(struct ledger *l, uint64_t bytes, bool blocked)
{
    struct ledger_row *me = &l->page->rows[l->me];
    bytes = least(bytes, ledger_entitled(l));
    if (atomic_load(&me->wanted) == bytes && atomic_load(&me->blocked) == blocked)
        return;
    atomic_store(&me->blocked, blocked);
    atomic_store(&me->wanted, bytes);
    if (bytes)
        ledger_wake(l->page, true);
}

uint64_t ledger_owed(struct ledger *l, bool *blocked)
{
    const struct ledger_page *p = l->page;
    for (int again = 0;; again++) {
        uint64_t held = 0, waited = 0, excess = 0, mine = 0, part = equal_part(p);
        *blocked = false;
        for (unsigned k = 0, n = atomic_load(&p->n_rows); k < n; k++) {
            uint64_t reserved = atomic_load(&p->rows[k].reserved), over = beyond(reserved, entitled(p, k, part));
            held += reserved;
            excess += over;
            if (k == l->me)
                mine = over;
            else if (due(p, k, part) > reserved) {
                waited += due(p, k, part) - reserved;
                *blocked |= atomic_load(&p->rows[k].blocked) != 0;
            }
        }
        uint64_t lacking = beyond(waited, beyond(ledger_limit(l), held));
        if (!lacking || !mine)
            return 0;
        if (!again && ledger_reap(l))
            continue;
        return least(mine, (uint64_t)((__uint128_t)lacking * mine / excess) + 1);
    }
}
