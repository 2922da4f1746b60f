/* share.c: see share.h. */
#include "policy/share/share.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_MS = 60000,        /* for a neighbour that is alive and owes us something */
    LOOK_MS = 10,           /* between two looks for the dead, who wake nobody */
    GRACE_MS = 5,           /* a neighbour that is in the middle of its calls answers by itself */
    CONTENT_OPS = 20000     /* ops without a refusal, after which nothing is asked for any more */
};

static uint64_t whole(const struct device *d, uint64_t bytes) { return bytes >> d->shift << d->shift; }

/* ---- joining ------------------------------------------------------------------------------------------------------- */

struct helper {
    const struct ledger_page *page;
    void (*called)(void);
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
        nanosleep(&(struct timespec){.tv_nsec = GRACE_MS * 1000000l}, NULL);
        h.called();
    }
    return NULL;
}

/* Detached, and with all signals blocked: they are the program's. */
static int start_helper(const struct ledger_page *page, void (*called)(void))
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

int share_init(struct device *d, void (*called)(void))
{
    const struct config *c = d->cfg;
    char err[512];
    if (!c->group[0])
        return 0;
    struct share *s = d->share = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    struct ledger_ask ask = {.group = c->group,
                             .device_bytes = d->device_bytes,
                             .limit_bytes = c->group_limit_bytes,
                             .limit_pct = c->group_limit_pct,
                             .guarantee = c->guarantee_given ? c->guarantee_bytes : LEDGER_NO_GUARANTEE};
    device_id(d, ask.device);
    if (ledger_join(&ask, &s->l, err, sizeof err)) {
        log_say(SAY_ERROR, "%s: this process gets no memory on device %d", err, (int)d->dev);
        return 0;
    }
    s->page = ledger_page(s->l);
    s->seen = atomic_load(&s->page->asked);
    if (d->limit_bytes > ledger_limit(s->l))
        d->limit_bytes = ledger_limit(s->l);
    if (start_helper(s->page, called))
        log_say(SAY_WARN, "no thread can be made: memory is given back to group %s at this program's driver calls only", c->group);
    return 0;
}

void share_after_fork_child(struct device *d)
{
    if (d->share)
        ledger_after_fork_child(d->share->l);
    d->share = NULL;
}

/* ---- ours ------------------------------------------------------------------------------------------------------------ */

/* Below what we are entitled to, and refused: the neighbours are asked for all of it, once, not for every chunk. */
static void ask_for_ours(struct device *d, bool blocked)
{
    struct share *s = d->share;
    uint64_t ours = ledger_entitled(s->l);
    s->short_op = d->op_count;
    if (ours > d->limit_bytes)
        ours = d->limit_bytes;
    ours = whole(d, ours);
    if (ledger_reserved(s->l) + d->gran > ours)
        return;
    s->wanted = ours;
    ledger_want(s->l, ours, blocked);
}

int share_cover(struct device *d, uint64_t bytes)
{
    struct share *s = d->share;
    if (!s)
        return 0;
    if (!s->l)
        return -ENOMEM;
    uint64_t need = mem_physical_bytes(d) + bytes, have = ledger_reserved(s->l);
    if (need <= have || !ledger_reserve(s->l, need - have)) {
        if (s->wanted && (ledger_reserved(s->l) >= s->wanted || d->op_count - s->short_op > CONTENT_OPS))
            share_content(d);
        return 0;
    }
    ask_for_ours(d, false);
    return -ENOMEM;
}

void share_settle(struct device *d)
{
    if (!d->share || !d->share->l)
        return;
    uint64_t there = mem_physical_bytes(d), have = ledger_reserved(d->share->l);
    if (have > there)
        ledger_release(d->share->l, have - there);
}

void share_content(struct device *d)
{
    struct share *s = d->share;
    if (!s || !s->l || !s->wanted)
        return;
    s->wanted = 0;
    ledger_want(s->l, 0, false);
}

int share_wait(struct device *d, uint64_t bytes)
{
    struct share *s = d->share;
    if (!s || !s->l)
        return -ENOMEM;
    uint64_t began = stats_now_ns();
    int r;
    for (;;) {
        uint32_t freed = atomic_load(&s->page->freed);
        r = share_cover(d, bytes);
        if (!r || mem_physical_bytes(d) + bytes > ledger_entitled(s->l) || stats_now_ns() - began > WAIT_MS * 1000000ull)
            break;
        ask_for_ours(d, true);
        ledger_sleep(s->page, false, freed, LOOK_MS);
    }
    if (s->wanted)
        ledger_want(s->l, s->wanted, false);
    return r;
}

/* ---- theirs ----------------------------------------------------------------------------------------------------------- */

uint64_t share_owed(struct device *d, bool *blocked)
{
    struct share *s = d->share;
    *blocked = false;
    if (!s || !s->l)
        return 0;
    s->seen = atomic_load(&s->page->asked);
    uint64_t owed = ledger_owed(s->l, blocked);
    s->owes = owed != 0;
    return owed ? (owed + d->gran - 1) >> d->shift << d->shift : 0;
}

/* ---- how much to count on ------------------------------------------------------------------------------------------------ */

uint64_t share_ceiling(struct device *d)
{
    struct share *s = d->share;
    if (!s || !s->l)
        return d->limit_bytes;
    uint64_t could = ledger_reserved(s->l) + ledger_available(s->l);
    return whole(d, could < d->limit_bytes ? could : d->limit_bytes);
}

void share_limit_for_plan(struct device *d, uint64_t most_bytes)
{
    d->plan_limit_bytes = d->limit_bytes;
    if (!d->share || !d->share->l)
        return;
    uint64_t ceiling = share_ceiling(d), there = mem_physical_bytes(d);
    d->plan_limit_bytes = ceiling < most_bytes ? ceiling : most_bytes > there ? most_bytes : there;
}

void share_say_short(struct device *d)
{
    struct ledger *l = d->share ? d->share->l : NULL;
    if (l)
        log_say(SAY_ERROR, "group %s: of its %s this process has %s, is entitled to %s, and could have %s more now; raise "
                "--group-limit or --guarantee", d->cfg->group, rt_size(ledger_limit(l)).text, rt_size(ledger_reserved(l)).text, rt_size(ledger_entitled(l)).text,
                rt_size(ledger_available(l)).text);
}
