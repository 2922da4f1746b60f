/* foretold.c: see foretold.h. */
#include "policy/learn/foretold.h"

#include "policy/memory/slot.h"
#include "policy/op/code.h"
#include "policy/process/log.h"
#include "tracer/known/cache.h"
#include "tracer/known/digest.h"

#include <stdlib.h>
#include <string.h>

enum { FAILED_MOST = 4 };

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0xff51afd7ed558ccdull;
    return h ^ h >> 32;
}

/* The kernel's, in any run; 0: its code has no identity. */
static uint64_t lasting_of(struct device *d, struct func *f)
{
    struct known_code code;
    if (f->lasting_asked)
        return f->lasting;
    f->lasting_asked = true;
    if (!code_of(d, f, &code))
        return 0;
    uint64_t all[4] = {code.w[0], code.w[1]}, h[2];
    digest(f->name, strlen(f->name), all + 2);
    digest(all, sizeof all, h);
    return f->lasting = h[0] | 1;
}

/* Words of structs may be left over from other launches. */
static bool is_parameter(const struct rt_op *op, uint32_t offset)
{
    const int p = func_param_at(op->func, offset);
    return p >= 0 && !func_is_struct(op->func, (uint32_t)p) && op->func->offset[p] == offset;
}

uint64_t foretold_signature(struct device *d, const struct rt_op *op)
{
    uint64_t h = op->kind == OP_KERNEL ? lasting_of(d, op->func) : op->sig;
    if (!h)
        return 0;
    if (op->kind == OP_KERNEL) {
        for (int i = 0; i < 3; i++)
            h = mix(h, (uint64_t)op->grid[i] << 32 | op->block[i]);
        h = mix(mix(h, op->shared_bytes), (uint64_t)op->cooperative << 1 | op->textures);
    }
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->kind != OP_KERNEL || is_parameter(op, op->operands[i].offset))
            h = mix(mix(h, op->operands[i].offset), op->operands[i].slot->bytes);
    return h | 1;
}

/* ---- what earlier runs have left ------------------------------------------------------------------------------------- */

static bool is_off(const struct device *d)
{
    const struct config *c = d->cfg;
    return !c->cache_dir[0] || c->plan_path[0] || c->trace_mode || c->trace_out[0] || c->known != FACTS_USE;
}

struct newest {
    uint64_t key[SEQUENCES_MOST][2];
    int64_t used_s[SEQUENCES_MOST];
    int n;
};

static int note_newest(void *arg, enum cache_sort sort, const uint64_t key[2], uint64_t bytes, int64_t used_s)
{
    struct newest *n = arg;
    int at = n->n;
    (void)bytes;
    if (sort != CACHE_ITERATION)
        return 0;
    for (int i = 0; i < n->n && n->n == SEQUENCES_MOST; i++)
        at = at == n->n || n->used_s[i] < n->used_s[at] ? i : at;
    if (n->n == SEQUENCES_MOST && n->used_s[at] >= used_s)
        return 0;
    n->n += at == n->n;
    n->key[at][0] = key[0], n->key[at][1] = key[1];
    n->used_s[at] = used_s;
    return 0;
}

bool foretold_any(struct foretold *f, struct device *d)
{
    struct newest n = {.n = 0};
    if (f->sought)
        return f->all != NULL;
    f->sought = true;
    if (is_off(d) || cache_each(d->cfg->cache_dir, note_newest, &n) || !n.n)
        return false;
    f->all = sequences_new();
    bool any = false;
    for (int i = 0; f->all && i < n.n; i++) {
        unsigned char *bytes;
        size_t size;
        if (cache_get(d->cfg->cache_dir, CACHE_ITERATION, n.key[i], &bytes, &size))
            continue;
        any |= !sequence_add(f->all, bytes, size);
        free(bytes);
    }
    if (any)
        return true;
    sequences_free(f->all);
    f->all = NULL;
    return false;
}

int foretold_feed(struct foretold *f, struct device *d, const struct rt_op *op)
{
    if (!foretold_any(f, d))
        return -1;
    f->latest = foretold_signature(d, op);
    return sequences_feed(f->all, f->latest);
}

void foretold_break(struct foretold *f)
{
    if (f->all)
        sequences_break(f->all);
}

int foretold_guess(const struct foretold *f)
{
    const int which = f->all && f->failed < FAILED_MOST && f->latest ? sequences_may_end(f->all, f->latest) : -1;
    return which < 0 || sequence_about(f->all, which)->needs_past ? -1 : which;
}

bool foretold_is(const struct foretold *f, struct device *d, int which, uint64_t k, const struct rt_op *op)
{
    return sequence_sigs(f->all, which)[k] == foretold_signature(d, op);
}

/* ---- for later runs -------------------------------------------------------------------------------------------------- */

static void put(struct device *d, const uint64_t key[2], const unsigned char *bytes, size_t n)
{
    const unsigned long long others = log_own_writes_begin();
    const int e = cache_put(d->cfg->cache_dir, CACHE_ITERATION, key, bytes, n);
    log_own_writes_end(others);
    if (e)
        log_say(SAY_DEBUG, "the iteration is not kept for later runs: %s", strerror(-e));
}

void foretold_doubt(struct device *d, const uint64_t *sigs, uint64_t ops)
{
    unsigned char *bytes;
    uint64_t key[2];
    size_t n;
    struct sequence_about about;
    digest(sigs, ops * sizeof *sigs, key);
    if (is_off(d) || cache_get(d->cfg->cache_dir, CACHE_ITERATION, key, &bytes, &n))
        return;
    if (n >= sizeof about) {
        memcpy(&about, bytes, sizeof about);
        about.checked = 0;
        memcpy(bytes, &about, sizeof about);
        put(d, key, bytes, n);
    }
    free(bytes);
}

void foretold_keep(struct device *d, struct sequence_about about, const uint64_t *sigs, const uint64_t *irregular)
{
    unsigned char *bytes;
    uint64_t key[2];
    size_t n;
    bool all = !is_off(d) && about.ops && about.ops <= SEQUENCE_OPS_MOST;
    for (uint64_t i = 0; all && i < about.ops; i++)
        all = sigs[i] != 0;
    if (!all || sequence_write(&about, sigs, irregular, &bytes, &n))
        return;
    digest(sigs, about.ops * sizeof *sigs, key);
    put(d, key, bytes, n);
    free(bytes);
}
