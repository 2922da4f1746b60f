/* Rebuilt values are compared for as long as a plan is in force. */
#include "policy/plan/verify.h"
#include "policy/learn/facts.h"
#include "policy/learn/hashing.h"
#include "policy/memory/arena.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"
#include "tracer/plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Two tables take turns: one is being filled while the other's results travel. A row: the hash before, the hash after. */
enum { TABLES = 2, ROWS = 256, ROW_WORDS = 4, RANGES_MAX = 64 };

enum { OF_INPUT = -1 };
struct check { /* of one value, or (version OF_INPUT) of an input of a replay, before and after the replay: rows first .. first + n */
    int32_t buf, version;
    uint32_t op, first, n;
    bool after;
};

struct table {
    CUdeviceptr at;
    uint64_t *host; /* pinned */
    struct check checks[ROWS];
    uint32_t n_checks, n_rows;
    struct fence users; /* work that fills the table, or copies it */
    CUevent done;       /* the table's results are on the host */
    uint64_t seq;       /* of the results' copy, on STREAM_OUT */
    bool under_way;
};

/* The d->unhashed ranges that wait to be hashed, on stream t. */
struct batch {
    struct hash_range range[HASHING_FEW];
    CUdeviceptr out[HASHING_FEW];
    struct {
        int32_t buf, version; /* the range is hashed only while buffer buf holds this version, in memory */
        uint32_t check;
    } of[HASHING_FEW];
    unsigned t;
    bool first; /* some range must be hashed before the next replay, whatever buffers that replay makes */
};

struct verify {
    struct table table[TABLES];
    struct batch batch;
    uint32_t now; /* the table that is being filled */
    uint32_t n_rows; /* rows that a table has room for: fewer where pages are small */
    uint64_t turn;
    bool usable, open; /* open: an iteration is being checked */
};

static int set_up(struct device *d)
{
    struct verify *v = calloc(1, sizeof *v);
    void *host = NULL;
    if (!v)
        return -ENOMEM;
    d->verify = v;
    if (!mem_pages_are_many(d))
        return -ENOMEM;
    v->n_rows = arena_most_small(d, ROWS, ROW_WORDS * sizeof(uint64_t));
    size_t bytes = v->n_rows * ROW_WORDS * sizeof(uint64_t);
    if (hashing_init(d) || d->drv->cuMemHostAlloc(&host, TABLES * bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS)
        return -ENOMEM;
    d->mem.own[OWN_VERIFY] = (struct own_range){(CUdeviceptr)(uintptr_t)host, TABLES * bytes};
    for (unsigned i = 0; i < TABLES; i++) {
        v->table[i].host = (uint64_t *)host + i * v->n_rows * ROW_WORDS;
        v->table[i].at = arena_scratch(d, bytes);
        if (!v->table[i].at || d->drv->cuEventCreate(&v->table[i].done, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
            return -ENOMEM;
    }
    v->usable = true;
    return 0;
}

void verify_init(struct device *d)
{
    if (!d->verify && d->cfg->verify == VERIFY_SAMPLE && set_up(d))
        log_once(SAY_WARN, "rebuilt values are not compared after rehearsal: this device has no memory or no code for it");
}

/* Cost of hashing a value twice, beside its bytes: two launches, as the bytes that a device hashes meanwhile. */
enum { LAUNCHES_BYTES = 8 << 20 };

/* The values that replays make just before op `at`, and no earlier replay has made, get this turn. Returns the cost of comparing them, in
 * bytes; 0: there are none. */
static uint64_t give_turn(const struct record *r, const struct compiled *p, uint32_t at, int8_t turn, int8_t *turns)
{
    uint64_t cost = 0;
    for (uint32_t i = p->step_at[at]; i < p->step_at[at + 1]; i++) {
        if (p->steps[i].kind != PLAN_REPLAY || p->elided[i])
            continue;
        const struct rec_op *o = &r->ops[p->steps[i].id];
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const struct rec_operand *w = &r->operands[k];
            if (!rec_makes(w) || turns[p->first_val[w->buf] + p->out_ver[k]] >= 0)
                continue;
            turns[p->first_val[w->buf] + p->out_ver[k]] = turn;
            cost += LAUNCHES_BYTES + 2 * r->bufs[w->buf].bytes;
        }
    }
    return cost;
}

void verify_turns(const struct record *r, const struct compiled *p, int8_t *turns)
{
    uint64_t cost[VERIFY_TURNS] = {0};
    memset(turns, -1, (size_t)p->first_val[r->n_bufs] * sizeof *turns);
    for (uint32_t at = 0; at <= r->n_ops; at++) {
        int8_t least = 0;
        for (int8_t i = 1; i < VERIFY_TURNS; i++)
            if (cost[i] < cost[least])
                least = i;
        cost[least] += give_turn(r, p, at, least, turns);
    }
}

static void look(struct device *d, struct table *tb)
{
    for (uint32_t i = 0; i < tb->n_checks; i++) {
        const struct check *c = &tb->checks[i];
        if (!c->after)
            continue;
        bool same = true;
        for (uint32_t r = c->first; r < c->first + c->n; r++)
            same &= hashing_same(&tb->host[r * ROW_WORDS], &tb->host[r * ROW_WORDS + 2]);
        d->st.verify_checked++;
        if (same)
            continue;
        d->st.verify_failed++;
        if (d->status)
            status_store(&d->status->differed, d->st.verify_failed);
        d->ex->now.code = CUDA_ERROR_UNKNOWN;
        if (c->op < d->ex->learnt.rec.n_ops)
            facts_distrust(d, d->ex->learnt.caps[c->op].func);
        const char *name = c->op < d->ex->learnt.rec.n_ops ? PLAIN_IN_LINE(d->ex->learnt.rec.ops[c->op].name) : "?";
        if (c->version == OF_INPUT)
            log_say(SAY_ERROR, "the replay of op %u (%s) changed what it had only read: results can no longer be trusted, the program is "
                    "stopped here. Please report this kernel; --policy swap does without replays", c->op, name);
        else
            log_say(SAY_ERROR, "the replay of op %u (%s) made another value than the program had: results can no longer be trusted, the program is "
                    "stopped here. Please report this kernel; --policy swap does without replays", c->op, name);
    }
    tb->n_checks = tb->n_rows = 0;
    tb->under_way = false;
    tb->users = (struct fence){0}; /* the results' copy came after all users */
    stream_seen(d, STREAM_OUT, tb->seq);
}

int verify_begin(struct device *d, unsigned t)
{
    struct verify *v = d->verify;
    if (!v || !v->usable || d->cfg->verify != VERIFY_SAMPLE)
        return 0;
    struct table *old = &v->table[v->now];
    v->now = (v->now + 1) % TABLES;
    struct table *tb = &v->table[v->now];
    if (tb->under_way) { /* results of two iterations ago: as a rule they have long arrived */
        if (d->drv->cuEventQuery(tb->done) != CUDA_SUCCESS && d->drv->cuEventSynchronize(tb->done) != CUDA_SUCCESS)
            return -EIO;
        look(d, tb);
    }
    if (old->under_way && d->drv->cuEventQuery(old->done) == CUDA_SUCCESS)
        look(d, old);
    v->turn++;
    v->open = true;
    d->unhashed = 0;
    tb->n_checks = tb->n_rows = 0;
    int r = fence_wait(d, t, &tb->users);
    if (r || (r = stream_own(d, t)))
        return r;
    if (d->drv->cuMemsetD8Async(tb->at, 0, v->n_rows * ROW_WORDS * sizeof(uint64_t), d->stream[t]) != CUDA_SUCCESS)
        return -EIO;
    stream_issued(d, t);
    tb->users = (struct fence){0};
    fence_add(d, &tb->users, t);
    return 0;
}

int verify_hash_all(struct device *d)
{
    struct verify *v = d->verify;
    struct batch *q = &v->batch;
    struct table *tb = &v->table[v->now];
    const unsigned t = q->t;
    uint32_t n = 0;
    int r = stream_own(d, t);
    if (!r)
        r = fence_wait(d, t, &tb->users);
    for (uint32_t i = 0; i < d->unhashed && !r; i++) {
        struct slot *s = cursor_slot(d, q->of[i].buf);
        if (!s || s->state != SLOT_RESIDENT || d->ex->now.res[q->of[i].buf] != q->of[i].version) {
            tb->checks[q->of[i].check].after = false; /* memory was short meanwhile, and the value has gone: not compared this time */
            continue;
        }
        if ((r = fence_wait(d, t, &s->ready)) || (r = fence_wait(d, t, &s->users)))
            break;
        q->range[n] = q->range[i];
        q->out[n] = q->out[i];
        q->of[n++] = q->of[i];
    }
    if (!r && n) {
        r = hashing_queue(d, d->stream[t], q->range, q->out, n);
        stream_issued(d, t);
        fence_add(d, &tb->users, t);
        for (uint32_t i = 0; i < n; i++)
            fence_add(d, &cursor_slot(d, q->of[i].buf)->unseen, t);
    }
    d->unhashed = 0;
    q->first = false;
    return r;
}

int verify_replays(struct device *d, uint32_t op)
{
    const struct verify *v = d->verify;
    if (!d->unhashed)
        return 0;
    const struct rec_op *o = &d->ex->learnt.rec.ops[op];
    bool now = v->batch.first;
    for (uint32_t k = o->first; k < o->first + o->n && !now; k++)
        for (uint32_t i = 0; i < d->unhashed && rec_makes(&d->ex->learnt.rec.operands[k]); i++)
            now |= v->batch.of[i].buf == d->ex->learnt.rec.operands[k].buf;
    return now ? verify_flush(d) : 0;
}

/* Adds the given ranges of slot s to those that wait, for the rows of `c`; `half`: 0: the hash before, 2: the hash after. */
static int queue(struct device *d, struct table *tb, struct check *c, const struct rec_range *ranges, uint32_t n, struct slot *s, unsigned t,
                 unsigned half)
{
    struct batch *q = &d->verify->batch;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = (ranges[i].from + 7) & ~7ull; /* words are hashed: a range's first bytes up to a whole word are left out */
        if (from >= ranges[i].to)
            continue;
        int r = d->unhashed == HASHING_FEW || (d->unhashed && q->t != t) ? verify_flush(d) : 0;
        if (r)
            return r;
        q->t = t;
        q->range[d->unhashed] = (struct hash_range){s->va + from, ranges[i].to - from};
        q->out[d->unhashed] = tb->at + ((c->first + i) * ROW_WORDS + half) * sizeof(uint64_t);
        q->of[d->unhashed].buf = c->buf;
        q->of[d->unhashed].version = d->ex->now.res[c->buf];
        q->of[d->unhashed++].check = (uint32_t)(c - tb->checks);
        q->first |= !half;
    }
    return 0;
}

static const struct rec_operand *operand_of(struct device *d, uint32_t op, int32_t b)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[op];
    for (uint32_t k = o->first; k < o->first + o->n; k++)
        if (d->ex->learnt.rec.operands[k].buf == b)
            return &d->ex->learnt.rec.operands[k];
    return NULL;
}

bool verify_has_turn(const struct device *d, int32_t value)
{
    const struct verify *v = d->verify;
    return v && v->open && d->ex->plan->check_turn[value] == (int8_t)(v->turn % VERIFY_TURNS);
}

int verify_before(struct device *d, int32_t b, int32_t version, struct slot *s, unsigned t)
{
    struct verify *v = d->verify;
    int32_t value = d->ex->plan->first_val[b] + version, op = d->ex->plan->producer[value];
    if (!verify_has_turn(d, value) || op < 0)
        return 0;
    struct table *tb = &v->table[v->now];
    for (uint32_t i = 0; i < tb->n_checks; i++)
        if (tb->checks[i].buf == b && tb->checks[i].version == version)
            return 0; /* the value is hashed already */
    const struct rec_operand *w = operand_of(d, (uint32_t)op, b);
    struct rec_range whole;
    uint32_t n = 0;
    const struct rec_range *ranges = w ? record_comparable(&d->ex->learnt.rec, w, &n, &whole) : NULL;
    if (!n || n > RANGES_MAX || tb->n_rows + n > v->n_rows || tb->n_checks == ROWS)
        return 0;
    struct check *c = &tb->checks[tb->n_checks++];
    *c = (struct check){.buf = b, .version = version, .op = (uint32_t)op, .first = tb->n_rows, .n = n};
    tb->n_rows += n;
    return queue(d, tb, c, ranges, n, s, t, 0);
}

int verify_after(struct device *d, uint32_t op, uint32_t k, struct slot *s, unsigned t)
{
    struct verify *v = d->verify;
    const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
    if (!v || !v->open)
        return 0;
    struct table *tb = &v->table[v->now];
    for (uint32_t i = 0; i < tb->n_checks; i++) {
        struct check *c = &tb->checks[i];
        if (c->buf != w->buf || c->version != d->ex->plan->out_ver[k] || c->after || c->op != op)
            continue;
        struct rec_range whole;
        uint32_t n;
        const struct rec_range *ranges = record_comparable(&d->ex->learnt.rec, w, &n, &whole);
        c->after = true;
        return queue(d, tb, c, ranges, c->n < n ? c->n : n, s, t, 2);
    }
    return 0;
}

static int look_at_input(struct device *d, uint32_t op, int32_t b, unsigned t, bool after)
{
    struct verify *v = d->verify;
    struct table *tb = &v->table[v->now];
    struct slot *s = cursor_slot(d, b);
    const struct rec_range whole = {0, s->bytes};
    if (s->kind != SLOT_LARGE)
        return 0;
    for (uint32_t i = 0; i < tb->n_checks; i++) {
        struct check *c = &tb->checks[i];
        if (c->buf != b || c->version != OF_INPUT || c->op != op || c->after)
            continue;
        c->after = after; /* two words that point at one buffer share a check */
        return after ? queue(d, tb, c, &whole, 1, s, t, 2) : 0;
    }
    if (after || tb->n_rows == v->n_rows || tb->n_checks == ROWS)
        return 0;
    struct check *c = &tb->checks[tb->n_checks++];
    *c = (struct check){.buf = b, .version = OF_INPUT, .op = op, .first = tb->n_rows++, .n = 1};
    return queue(d, tb, c, &whole, 1, s, t, 0);
}

int verify_inputs(struct device *d, uint32_t op, unsigned t, bool after)
{
    const struct verify *v = d->verify;
    const struct rec_op *o = &d->ex->learnt.rec.ops[op];
    if (!v || !v->open || op % (VERIFY_INPUT_TURNS / 2) * 2 != v->turn % VERIFY_INPUT_TURNS || d->ex->learnt.caps[op].kind != OP_KERNEL)
        return 0;
    int r = 0;
    for (uint32_t k = o->first; k < o->first + o->n && !r; k++)
        if (d->ex->learnt.rec.operands[k].mode == REC_READ && !d->ex->map.side_scratch[k])
            r = look_at_input(d, op, d->ex->learnt.rec.operands[k].buf, t, after);
    return r;
}

int verify_end(struct device *d)
{
    struct verify *v = d->verify;
    if (!v || !v->open)
        return 0;
    int r = verify_flush(d);
    v->open = false;
    struct table *tb = &v->table[v->now];
    if (r || !tb->n_checks)
        return r;
    r = fence_wait(d, STREAM_OUT, &tb->users);
    if (r)
        return r;
    if (d->drv->cuMemcpyDtoHAsync_v2(tb->host, tb->at, tb->n_rows * ROW_WORDS * sizeof(uint64_t), d->stream[STREAM_OUT]) != CUDA_SUCCESS)
        return -EIO;
    stream_issued_apart(d, STREAM_OUT);
    tb->seq = d->seq[STREAM_OUT];
    fence_add(d, &tb->users, STREAM_OUT);
    if (d->drv->cuEventRecord(tb->done, d->stream[STREAM_OUT]) != CUDA_SUCCESS)
        return -EIO;
    tb->under_way = true;
    return 0;
}

/* The plan goes, or was left: rows half filled mean nothing; results under way belong to a record that will be gone. */
void verify_clear(struct device *d)
{
    struct verify *v = d->verify;
    if (!v)
        return;
    v->open = false;
    d->unhashed = 0;
    for (unsigned i = 0; i < TABLES; i++) {
        struct table *tb = &v->table[i];
        if (tb->under_way && d->drv->cuEventSynchronize(tb->done) == CUDA_SUCCESS)
            look(d, tb);
        tb->under_way = false;
        tb->n_checks = tb->n_rows = 0;
    }
}
