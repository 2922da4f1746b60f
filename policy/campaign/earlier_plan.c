/* earlier_plan.c: see earlier_plan.h. */
#include "policy/campaign/earlier_plan.h"

#include "policy/campaign/modes.h"
#include "policy/iteration.h"
#include "policy/learn/learn.h"
#include "tracer/known/cache.h"
#include "tracer/known/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct earlier_plan *of(struct device *d) { return &d->campaign->earlier; }

static bool is_off(const struct device *d) { return !d->cfg->cache_dir[0] || d->cfg->plan_path[0] || d->cfg->trace_mode; }

static void mix(uint64_t key[2], const void *bytes, size_t n)
{
    uint64_t all[4] = {key[0], key[1], 0, 0};
    digest(bytes, n, all + 2);
    digest(all, sizeof all, key);
}

/* Mixes all of a record that a plan is made of and followed by, except the times of ops: places in the record have to mean the same. */
static void mix_record(const struct record *r, uint64_t key[2])
{
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const struct rec_op *o = &r->ops[i];
        const uint64_t op[] = {o->n, o->why_opaque != NULL, o->hold, o->to_host};
        mix(key, o->name, strlen(o->name));
        mix(key, op, sizeof op);
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const struct rec_operand *w = &r->operands[k];
            const uint64_t operand[] = {(uint64_t)w->buf, w->offset, w->delta, w->mode, w->map != 0};
            mix(key, operand, sizeof operand);
        }
    }
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        const uint64_t buf[] = {x->bytes, (uint64_t)x->alloc_ord, (uint64_t)x->born, (uint64_t)x->dies, x->small, x->foreign, x->pinned, x->handed_on};
        mix(key, buf, sizeof buf);
    }
    for (uint32_t a = 0; a < r->n_allocs; a++) {
        const uint64_t alloc[] = {r->allocs[a].bytes, (uint64_t)r->allocs[a].before_op, (uint64_t)r->allocs[a].buf};
        mix(key, alloc, sizeof alloc);
    }
}

void earlier_plan_for_record(struct device *d)
{
    struct earlier_plan *e = of(d);
    const uint64_t asked[] = {d->mem.limit_bytes, d->mem.gran, d->cfg->policy, d->ex->learnt.rec.period};
    free(e->text);
    *e = (struct earlier_plan){.sought = is_off(d)};
    if (is_off(d))
        return;
    mix(e->key, asked, sizeof asked);
    mix(e->key, d->cfg->solver, strlen(d->cfg->solver));
    mix_record(&d->ex->learnt.rec, e->key);
}

void earlier_plan_note(struct device *d, const char *path, int lacking)
{
    struct earlier_plan *e = of(d);
    const int64_t chunks = lacking;
    free(e->text);
    e->text = NULL;
    FILE *f = is_off(d) ? NULL : fopen(path, "re");
    char *text = f ? malloc(CACHE_ENTRY_MOST + 1) : NULL;
    const size_t n = text ? fread(text + sizeof chunks, 1, CACHE_ENTRY_MOST + 1 - sizeof chunks, f) : 0;
    if (f)
        fclose(f);
    if (n && n + sizeof chunks <= CACHE_ENTRY_MOST) {
        memcpy(text, &chunks, sizeof chunks);
        e->text = realloc(text, n + sizeof chunks);
        e->bytes = n + sizeof chunks;
    }
    if (!e->text)
        free(text);
}

void earlier_plan_keep(struct device *d)
{
    struct earlier_plan *e = of(d);
    if (!e->text)
        return;
    const unsigned long long others = log_own_writes_begin();
    const int r = cache_put(d->cfg->cache_dir, CACHE_PLAN, e->key, e->text, e->bytes);
    log_own_writes_end(others);
    if (r)
        log_say(SAY_DEBUG, "the plan is not kept for later runs: %s", strerror(-r));
    else
        learn_keep(d, d->campaign->account.swap_ns, d->campaign->account.swap_ops);
    free(e->text);
    e->text = NULL;
}

bool earlier_plan_find(struct device *d, const char *path, int *lacking)
{
    struct earlier_plan *e = of(d);
    unsigned char *bytes;
    size_t n;
    int64_t chunks;
    if (e->sought)
        return false;
    e->sought = true;
    if (cache_get(d->cfg->cache_dir, CACHE_PLAN, e->key, &bytes, &n))
        return false;
    const unsigned long long others = log_own_writes_begin();
    FILE *f = n > sizeof chunks ? fopen(path, "we") : NULL;
    bool written = f && fwrite(bytes + sizeof chunks, 1, n - sizeof chunks, f) == n - sizeof chunks;
    if (f)
        written = !fclose(f) && written;
    log_own_writes_end(others);
    if (written)
        memcpy(&chunks, bytes, sizeof chunks);
    free(bytes);
    *lacking = written ? (int)chunks : 0;
    return written;
}
