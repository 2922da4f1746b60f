/* share.c: see share.h. */
#include "policy/share/share.h"

#include "policy/process/limits.h"
#include "policy/process/stats.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MS = 60000,        /* for a neighbour that is alive and owes memory */
    LOOK_MS = 10,           /* between two looks for dead neighbours, which wake no sleeper */
    GRACE_MS = 5,           /* a neighbour that is in the middle of its calls answers by itself */
    CONTENT_OPS = 20000     /* ops without a refusal, after which asks are withdrawn */
};

static uint64_t whole(const struct device *d, uint64_t bytes) { return bytes >> d->mem.shift << d->mem.shift; }

/* ---- joining ------------------------------------------------------------------------------------------------------- */

struct helper {
    const struct ledger_page *page;
    bool (*called)(void);
};

static void *help(void *arg)
{
    struct helper h = *(struct helper *)arg;
    uint32_t seen = atomic_load(&h.page->asked);
    free(arg);
    for (;;) {
        ledger_sleep(h.page, true, seen, 1000);
        uint32_t now = atomic_load(&h.page->asked);
        if (now == seen)
            continue;
        seen = now;
        do
            nanosleep(&(struct timespec){.tv_nsec = GRACE_MS * 1000000l}, NULL);
        while (!h.called());
    }
    return NULL;
}

/* Starts a detached thread with all signals blocked: signals are the program's. */
static int start_helper(const struct ledger_page *page, bool (*called)(void))
{
    struct helper *h = malloc(sizeof *h);
    pthread_attr_t attr;
    pthread_t t;
    sigset_t all, before;
    if (!h || pthread_attr_init(&attr)) {
        free(h);
        return -ENOMEM;
    }
    *h = (struct helper){page, called};
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = -pthread_create(&t, &attr, help, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (r)
        free(h);
    return r;
}

static void device_id(struct device *d, uint8_t id[16])
{
    CUuuid uuid;
    memset(id, 0, 16);
    if ((d->drv->cuDeviceGetUuid_v2 && d->drv->cuDeviceGetUuid_v2(&uuid, d->dev) == CUDA_SUCCESS) ||
        (d->drv->cuDeviceGetUuid && d->drv->cuDeviceGetUuid(&uuid, d->dev) == CUDA_SUCCESS))
        memcpy(id, uuid.bytes, 16);
    else
        id[15] = (uint8_t)(d->dev + 1);
}

static int join(struct share *s, const struct ledger_ask *ask, const char *name, bool (*called)(void), char *err, size_t err_bytes)
{
    struct share_in *in = &s->in[s->n];
    int r = ledger_join(ask, &in->l, err, err_bytes);
    if (r)
        return r;
    in->page = ledger_page(in->l);
    in->name = name;
    in->seen = atomic_load(&in->page->asked);
    s->n++;
    if (start_helper(in->page, called))
        log_say(SAY_WARN, "no thread can be made: memory is given back to group %s at this program's driver calls only", name);
    return 0;
}

static void at_most_theirs(struct device *d)
{
    for (unsigned i = 0; i < d->share->n; i++)
        if (d->mem.limit_bytes > ledger_limit(d->share->in[i].l))
            d->mem.limit_bytes = ledger_limit(d->share->in[i].l);
}

int share_init(struct device *d, bool (*called)(void))
{
    const struct config *c = d->cfg;
    char err[512];
    const uint64_t total = limits_total_bytes(d->mem.device_bytes);
    if (!c->group[0] && !total)
        return 0;
    if (d->share) { /* the device is a member already, and is set up anew */
        at_most_theirs(d);
        return 0;
    }
    struct share *s = d->share = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    struct ledger_ask ask = {.group = c->group,
                             .device_bytes = d->mem.device_bytes,
                             .limit_bytes = c->group_limit_bytes,
                             .limit_pct = c->group_limit_pct,
                             .guarantee = c->guarantee_given ? c->guarantee_bytes : LEDGER_NO_GUARANTEE};
    device_id(d, ask.device);
    struct ledger_ask all = {.group = ".total", .device_bytes = d->mem.device_bytes, .limit_bytes = total, .guarantee = LEDGER_NO_GUARANTEE, .system = true};
    memcpy(all.device, ask.device, sizeof all.device);
    int r = c->group[0] ? join(s, &ask, c->group, called, err, sizeof err) : 0;
    if (!r && total)
        r = join(s, &all, "of all your programs (remat.conf)", called, err, sizeof err);
    if (r) { /* nothing is reserved yet: a ledger that the process did join is left at its end */
        s->n = 0;
        log_say(SAY_ERROR, "%s: this process gets no memory on device %d", err, (int)d->dev);
        return 0;
    }
    at_most_theirs(d);
    return 0;
}

void share_after_fork_child(struct device *d)
{
    for (unsigned i = 0; d->share && i < SHARE_LEDGERS; i++)
        ledger_after_fork_child(d->share->in[i].l);
    d->share = NULL;
}

/* ---- ours ------------------------------------------------------------------------------------------------------------ */

/* A chunk was refused. Where this process is below its entitlement, it asks the neighbours for all of that, once, not for every chunk. */
static void ask_for_ours(struct device *d, struct share_in *in, bool blocked)
{
    uint64_t ours = ledger_entitled(in->l);
    in->short_op = d->op_count;
    if (ours > d->mem.limit_bytes)
        ours = d->mem.limit_bytes;
    ours = whole(d, ours);
    if (ledger_reserved(in->l) + d->mem.gran > ours)
        return;
    in->wanted = ours;
    ledger_want(in->l, ours, blocked);
}

static void content(struct share_in *in)
{
    if (!in->wanted)
        return;
    in->wanted = 0;
    ledger_want(in->l, 0, false);
}

/* Reserves `bytes` more in each ledger or in none. NULL: reserved; else the ledger that is full. */
static struct share_in *cover(struct device *d, uint64_t bytes)
{
    struct share *s = d->share;
    uint64_t need = device_physical_bytes(d) + bytes, have = ledger_reserved(s->in[0].l);
    for (unsigned i = 0; need > have && i < s->n; i++)
        if (ledger_reserve(s->in[i].l, need - have)) {
            for (unsigned k = 0; k < i; k++)
                ledger_release(s->in[k].l, need - have);
            return &s->in[i];
        }
    for (unsigned i = 0; i < s->n; i++) {
        struct share_in *in = &s->in[i];
        if (in->wanted && (ledger_reserved(in->l) >= in->wanted || d->op_count - in->short_op > CONTENT_OPS))
            content(in);
    }
    return NULL;
}

int share_cover(struct device *d, uint64_t bytes)
{
    if (!d->share)
        return 0;
    if (!d->share->n)
        return -ENOMEM;
    struct share_in *full = cover(d, bytes);
    if (full)
        ask_for_ours(d, full, false);
    return full ? -ENOMEM : 0;
}

void share_settle(struct device *d)
{
    struct share *s = d->share;
    for (unsigned i = 0; s && i < s->n; i++) {
        uint64_t there = device_physical_bytes(d), have = ledger_reserved(s->in[i].l);
        if (have > there)
            ledger_release(s->in[i].l, have - there);
    }
}

void share_content(struct device *d)
{
    for (unsigned i = 0; d->share && i < d->share->n; i++)
        content(&d->share->in[i]);
}

int share_wait(struct device *d, uint64_t bytes)
{
    struct share *s = d->share;
    if (!s || !s->n)
        return -ENOMEM;
    uint64_t began = stats_now_ns();
    struct share_in *full;
    for (;;) {
        uint32_t freed[SHARE_LEDGERS] = {0};
        for (unsigned i = 0; i < s->n; i++)
            freed[i] = atomic_load(&s->in[i].page->freed);
        full = cover(d, bytes);
        if (!full || device_physical_bytes(d) + bytes > ledger_entitled(full->l) || stats_now_ns() - began > WAIT_MS * 1000000ull)
            break;
        ask_for_ours(d, full, true);
        ledger_sleep(full->page, false, freed[full - s->in], LOOK_MS);
    }
    for (unsigned i = 0; i < s->n; i++)
        if (s->in[i].wanted)
            ledger_want(s->in[i].l, s->in[i].wanted, false);
    return full ? -ENOMEM : 0;
}

/* ---- theirs ----------------------------------------------------------------------------------------------------------- */

uint64_t share_owed(struct device *d, bool *blocked)
{
    struct share *s = d->share;
    uint64_t most = 0;
    *blocked = false;
    if (!s || !s->n)
        return 0;
    for (unsigned i = 0; i < s->n; i++) {
        bool one = false;
        s->in[i].seen = atomic_load(&s->in[i].page->asked);
        uint64_t owed = ledger_owed(s->in[i].l, &one);
        most = owed > most ? owed : most; /* bytes given back count in both ledgers: the larger debt covers the smaller */
        *blocked |= one;
    }
    s->owes = most != 0;
    return most ? (most + d->mem.gran - 1) >> d->mem.shift << d->mem.shift : 0;
}

/* ---- how much to count on ------------------------------------------------------------------------------------------------ */

uint64_t share_ceiling(struct device *d)
{
    struct share *s = d->share;
    uint64_t least = d->mem.limit_bytes;
    for (unsigned i = 0; s && i < s->n; i++) {
        uint64_t could = ledger_reserved(s->in[i].l) + ledger_available(s->in[i].l);
        least = could < least ? could : least;
    }
    return s && s->n ? whole(d, least) : least;
}

void share_limit_for_plan(struct device *d, uint64_t most_bytes)
{
    d->mem.plan_limit_bytes = d->mem.limit_bytes;
    if (!d->share || !d->share->n)
        return;
    uint64_t ceiling = share_ceiling(d), there = device_physical_bytes(d);
    d->mem.plan_limit_bytes = ceiling < most_bytes ? ceiling : most_bytes > there ? most_bytes : there;
}

void share_say_short(struct device *d)
{
    for (unsigned i = 0; d->share && i < d->share->n; i++) {
        struct ledger *l = d->share->in[i].l;
        log_say(SAY_ERROR, "group %s: of its %s this process has %s, is entitled to %s, and could have %s more now; raise --group-limit or --guarantee",
                d->share->in[i].name, rt_size(ledger_limit(l)).text, rt_size(ledger_reserved(l)).text, rt_size(ledger_entitled(l)).text,
                rt_size(ledger_available(l)).text);
    }
}
