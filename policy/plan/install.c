/* A plan is installed once: the k-th allocation of the iteration gets a slot of its own, and chunks are assigned to
 * slots by colouring the intervals in which the plan holds them. Everything is mapped now, so that a steady iteration
 * makes no memory-management call. Runs at an iteration boundary; may synchronise. */
#include "policy/plan/install.h"
#include "policy/learn/learn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_MOST = 3 /* of one allocation: its slot, and two twins */ };
/* Turns are counted, not timed: the same plan gets the same map however busy the machine is.
 * Two ways in turn: births blurred by chance, and squeaky wheel optimization (Joslin and Clements, Journal of Artificial Intelligence
 * Research 10, 1999): what was left without a chunk comes earlier the next time. */
enum { COLOUR_TURNS = 400, COLOUR_WORK = 40000000 /* slots times chunks looked at: some tenths of a second */ };

struct life { /* a buffer is in memory in [from, to), counted in steps of the plan */
    uint32_t from, to;
    int32_t next; /* more of the same owner */
};

struct colouring {
    struct life *lives;
    uint32_t n_lives, cap_lives, n_steps;
    int32_t *of_buf;     /* [n_bufs] head of its lives, -1 none */
    int32_t *of_alloc;   /* [n_places] head, for fixed slots */
    int32_t *passing;    /* [n_allocs] buffer that the iteration before made there, and this one hands on to the next; -1 none */
    int32_t *partner;    /* [n_allocs] buffer that the iteration before made there, or the one before that, and this one frees; -1 none */
    uint64_t *busy;      /* [chunks][words] bitmap over steps */
    uint32_t words, n_chunks;
};

/* ---- lives ------------------------------------------------------------------------------------------------------ */

static int add_life(struct colouring *c, int32_t *head, uint32_t from, uint32_t to)
{
    if (from >= to)
        return 0;
    if (c->n_lives == c->cap_lives) {
        uint32_t cap = c->cap_lives ? c->cap_lives * 2 : 256;
        struct life *l = realloc(c->lives, cap * sizeof *l);
        if (!l)
            return -ENOMEM;
        c->lives = l;
        c->cap_lives = cap;
    }
    c->lives[c->n_lives] = (struct life){.from = from, .to = to, .next = *head};
    *head = (int32_t)c->n_lives++;
    return 0;
}

/* Walks the plan as the simulator does and notes when each buffer has memory. */
static int find_lives(struct device *d, struct colouring *c)
{
    const struct record *r = &d->ex->learnt.rec;
    int32_t *since = malloc((r->n_bufs + 1) * sizeof *since); /* step, -1: not in memory */
    int err = since ? 0 : -ENOMEM;
    uint32_t now = 0;
    for (uint32_t b = 0; b < r->n_bufs && !err; b++)
        since[b] = r->bufs[b].alloc_ord < 0 ? 0 : -1;
#define LIFE_ENDS(b)                                                                                                   \
    do {                                                                                                               \
        if (since[b] >= 0 && !err)                                                                                     \
            err = add_life(c, &c->of_buf[b], (uint32_t)since[b], now);                                                 \
        since[b] = -1;                                                                                                 \
    } while (0)
    for (uint32_t at = 0; at <= r->n_ops && !err; at++) {
        for (uint32_t i = d->ex->plan->die_at[at]; i < d->ex->plan->die_at[at + 1]; i++)
            if (!d->ex->plan->keep[d->ex->plan->die_list[i]])
                LIFE_ENDS(d->ex->plan->die_list[i]);
        for (uint32_t i = d->ex->plan->step_at[at]; i <= d->ex->plan->step_at[at + 1] && !err; i++) {
            bool program = i == d->ex->plan->step_at[at + 1];
            if (program && at == r->n_ops)
                break;
            const struct plan_step *s = program ? NULL : &d->ex->plan->steps[i];
            if (program || (s->kind == PLAN_REPLAY && !d->ex->plan->elided[i])) {
                const struct rec_op *o = &r->ops[program ? (int32_t)at : s->id];
                for (uint32_t k = o->first; k < o->first + o->n; k++) {
                    const struct rec_operand *w = &r->operands[k];
                    bool makes = w->mode == REC_WRITE || (w->mode != REC_READ && program) || w->mode == REC_RMW;
                    if (makes && since[w->buf] < 0)
                        since[w->buf] = (int32_t)now;
                }
            } else if (s->kind == PLAN_FETCH && since[s->id] < 0) /* else it was fetched in the iteration before, or, by now, is to be (compile.c) */
                since[s->id] = (int32_t)now;
            else if (s->kind == PLAN_DROP || s->kind == PLAN_RELEASE)
                LIFE_ENDS(s->id);
            now++;
        }
    }
    for (uint32_t b = 0; b < r->n_bufs && !err; b++)
        LIFE_ENDS(b);
#undef LIFE_ENDS
    c->n_steps = now;
    free(since);
    return err;
}

/* ---- colouring ----------------------------------------------------------------------------------------------- */

static bool span_free(const struct colouring *c, uint32_t chunk, uint32_t from, uint32_t to)
{
    const uint64_t *w = c->busy + (size_t)chunk * c->words;
    for (uint32_t i = from / 64; i <= (to - 1) / 64; i++) {
        uint64_t m = ~0ull;
        if (i == from / 64)
            m &= ~0ull << (from % 64);
        if (i == (to - 1) / 64)
            m &= ~0ull >> (63 - (to - 1) % 64);
        if (w[i] & m)
            return false;
    }
    return true;
}

static void span_take(struct colouring *c, uint32_t chunk, uint32_t from, uint32_t to)
{
    uint64_t *w = c->busy + (size_t)chunk * c->words;
    for (uint32_t i = from; i < to; i++)
        w[i / 64] |= 1ull << (i % 64);
}

static bool lives_free(const struct colouring *c, uint32_t chunk, int32_t head)
{
    for (int32_t l = head; l >= 0; l = c->lives[l].next)
        if (!span_free(c, chunk, c->lives[l].from, c->lives[l].to))
            return false;
    return true;
}

static void lives_take(struct colouring *c, uint32_t chunk, int32_t head)
{
    for (int32_t l = head; l >= 0; l = c->lives[l].next)
        span_take(c, chunk, c->lives[l].from, c->lives[l].to);
}

static uint32_t first_birth(const struct colouring *c, int32_t head)
{
    uint32_t f = UINT32_MAX;
    for (int32_t l = head; l >= 0; l = c->lives[l].next)
        if (c->lives[l].from < f)
            f = c->lives[l].from;
    return f;
}

struct order {
    uint32_t alloc;
    int64_t key;
    bool twice; /* more than one life: the hard ones */
};
static int by_key(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->alloc < y->alloc ? -1 : x->alloc > y->alloc;
}

/* Gives every page of every fixed slot a chunk, first fit in the given order. Pages that found none get -1; their number
 * is returned. `home` is filled. */
static uint64_t colour(struct device *d, struct colouring *c, struct order *order, uint32_t n, int32_t **home, const uint64_t *start)
{
    uint64_t lacking = 0;
    memcpy(c->busy, start, (size_t)c->n_chunks * c->words * sizeof *c->busy);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = order[i].alloc, pages = d->slots[d->ex->map.alloc_slot[k]].n_pages, got = 0;
        for (uint32_t ch = 0; ch < c->n_chunks && got < pages; ch++)
            if (lives_free(c, ch, c->of_alloc[k])) {
                lives_take(c, ch, c->of_alloc[k]);
                home[k][got++] = (int32_t)ch;
            }
        for (uint32_t p = got; p < pages; p++)
            home[k][p] = -1;
        lacking += pages - got;
    }
    return lacking;
}

/* The first buffer that is older than the iteration, as large as b, and nobody's partner; that was made where b is, so many iterations before
 * (0: wherever), and is handed on, or freed. */
static int32_t older(const struct record *r, int32_t b, unsigned iterations, bool handed_on, bool *used)
{
    for (uint32_t a = 0; a < r->n_bufs; a++) {
        const struct rec_buf *x = &r->bufs[a];
        if (used[a] || x->alloc_ord >= 0 || x->dies < 0 || x->handed_on != handed_on || x->bytes != r->bufs[b].bytes || x->foreign ||
            (iterations && x->birth_op + iterations * r->period != r->bufs[b].birth_op))
            continue;
        used[a] = true;
        return (int32_t)a;
    }
    return -1;
}

static bool survives(const struct record *r, int32_t b) { return b >= 0 && !r->bufs[b].small && r->bufs[b].dies < 0; }

/* A buffer that outlives the iteration is, in the next one, one that existed before it, and if it is handed on there, in the one after that, too.
 * They are told by when they were made; what is left is paired by size, in order. */
static int pair_survivors(struct device *d, struct colouring *c)
{
    const struct record *r = &d->ex->learnt.rec;
    bool *used = calloc(r->n_bufs + 1, sizeof *used);
    for (uint32_t k = 0; k < r->n_allocs && used; k++) {
        const int32_t b = r->allocs[k].buf;
        c->passing[k] = survives(r, b) ? older(r, b, 1, true, used) : -1;
        c->partner[k] = survives(r, b) ? older(r, b, c->passing[k] >= 0 ? 2 : 1, false, used) : -1;
    }
    for (uint32_t k = 0; k < r->n_allocs && used; k++)
        if (survives(r, r->allocs[k].buf) && c->partner[k] < 0 && c->passing[k] < 0)
            c->partner[k] = older(r, r->allocs[k].buf, 0, false, used);
    free(used);
    return used ? 0 : -ENOMEM;
}

/* The one that is freed has the slot until then: the new one needs another. */
static bool partner_stays(const struct record *r, const struct colouring *c, uint32_t k)
{
    return c->partner[k] >= 0 && r->allocs[k].before_op <= r->bufs[c->partner[k]].dies;
}

/* The slot of an allocation has memory while its buffer has, and in the next iterations while the buffer lives on. Its twins likewise. */
static int lives_of_slots(struct device *d, struct colouring *c)
{
    const struct record *r = &d->ex->learnt.rec;
    int err = 0;
    for (uint32_t k = 0; k < r->n_allocs && !err; k++) {
        int32_t b = r->allocs[k].buf;
        if (b < 0 || r->bufs[b].small)
            continue;
        const int32_t in_turn[] = {b, c->passing[k], c->partner[k]};
        for (uint32_t i = 0; i < sizeof in_turn / sizeof *in_turn; i++)
            for (int32_t l = in_turn[i] < 0 ? -1 : c->of_buf[in_turn[i]]; l >= 0 && !err; l = c->lives[l].next)
                err = add_life(c, &c->of_alloc[k], c->lives[l].from, c->lives[l].to);
        for (int32_t place = d->ex->map.twin[k]; place >= 0; place = d->ex->map.twin[place])
            c->of_alloc[place] = c->of_alloc[k];
    }
    return err;
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

void install_drop(struct device *d)
{
    for (uint32_t k = 0; d->ex->map.alloc_slot && k < d->ex->map.n_places; k++)
        if (d->ex->map.alloc_slot[k] >= 0)
            mem_slot_unfix(d, &d->slots[d->ex->map.alloc_slot[k]]);
    free(d->ex->map.alloc_slot);
    free(d->ex->map.twin);
    d->ex->map.alloc_slot = d->ex->map.twin = NULL;
    for (uint32_t k = 0; d->ex->map.home && k < d->ex->map.n_places; k++)
        free(d->ex->map.home[k]);
    free(d->ex->map.home);
    d->ex->map.home = NULL;
    d->ex->map.n_places = 0;
    d->ex->map.done = false;
}

int install_index(struct device *d)
{
    struct installed *map = &d->ex->map;
    map->side_scratch = calloc(d->ex->learnt.rec.n_operands + 1, sizeof *map->side_scratch);
    map->side_saved = calloc(d->ex->learnt.rec.n_operands + 1, sizeof *map->side_saved);
    return map->side_scratch && map->side_saved ? 0 : -ENOMEM;
}

void install_clear(struct device *d)
{
    free(d->ex->map.side_scratch);
    free(d->ex->map.side_saved);
    d->ex->map.side_scratch = d->ex->map.side_saved = NULL;
}

/* Small allocations share an entry when one is over, for good, before the other begins. */
static int32_t share_small(struct device *d, uint32_t k)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct rec_buf *b = &r->bufs[r->allocs[k].buf];
    for (uint32_t j = 0; j < k; j++) {
        if (d->ex->map.alloc_slot[j] < 0 || !r->bufs[r->allocs[j].buf].small || r->allocs[j].bytes != b->bytes)
            continue;
        int32_t s = d->ex->map.alloc_slot[j];
        if (d->slots[s].over_at < r->allocs[k].before_op)
            return s;
    }
    return -1;
}

/* What small allocations take in arenas, where each entry is over when its buffer is freed: replays that read it keep it longer. */
static int small_entries_bytes(struct device *d, uint64_t *bytes)
{
    const struct record *r = &d->ex->learnt.rec;
    int32_t *over_at = malloc((r->n_allocs + 1) * sizeof *over_at); /* of the entry that this allocation was the first to have */
    *bytes = 0;
    for (uint32_t k = 0; k < r->n_allocs && over_at; k++) {
        const struct rec_buf *b = r->allocs[k].buf < 0 ? NULL : &r->bufs[r->allocs[k].buf];
        over_at[k] = INT32_MAX;
        if (!b || b->pinned || !b->small)
            continue;
        uint32_t j = 0;
        while (j < k && (r->allocs[j].bytes != b->bytes || over_at[j] >= r->allocs[k].before_op))
            j++;
        *bytes += j == k ? mem_small_bytes(b->bytes) : 0;
        over_at[j] = b->dies < 0 ? (int32_t)r->n_ops : b->dies;
    }
    free(over_at);
    return over_at ? 0 : -ENOMEM;
}

static uint64_t arena_pages_more(struct device *d)
{
    uint64_t wanted, free_bytes = mem_arena_free_bytes(d);
    if (small_entries_bytes(d, &wanted) || !wanted)
        return 0;
    return !d->cfg->plan_path[0] + (wanted > free_bytes ? mem_pages(d, wanted - free_bytes) : 0);
}

static int take_large(struct device *d, uint32_t place, uint64_t bytes)
{
    struct slot *s;
    int err = mem_slot_fixed(d, bytes, (int)place, &s);
    if (err)
        return err;
    d->ex->map.alloc_slot[place] = (int32_t)s->id;
    d->ex->map.home[place] = malloc(s->n_pages * sizeof **d->ex->map.home);
    return d->ex->map.home[place] ? 0 : -ENOMEM;
}

static int take_slots(struct device *d, const struct colouring *c)
{
    const struct record *r = &d->ex->learnt.rec;
    d->ex->map.alloc_slot = malloc((PLACES_MOST * r->n_allocs + 1) * sizeof *d->ex->map.alloc_slot);
    d->ex->map.twin = malloc((PLACES_MOST * r->n_allocs + 1) * sizeof *d->ex->map.twin);
    d->ex->map.home = calloc(PLACES_MOST * r->n_allocs + 1, sizeof *d->ex->map.home);
    int err = d->ex->map.alloc_slot && d->ex->map.twin && d->ex->map.home ? 0 : -ENOMEM;
    d->ex->map.n_places = err ? 0 : r->n_allocs;
    for (uint32_t k = 0; k < d->ex->map.n_places; k++)
        d->ex->map.alloc_slot[k] = d->ex->map.twin[k] = -1;
    for (uint32_t k = 0; k < r->n_allocs && !err; k++) {
        int32_t b = r->allocs[k].buf;
        if (b < 0 || r->bufs[b].pinned)
            continue;
        struct slot *s;
        if (r->bufs[b].small) {
            d->ex->map.alloc_slot[k] = share_small(d, k);
            if (d->ex->map.alloc_slot[k] < 0 && !(err = mem_slot_fixed(d, r->allocs[k].bytes, (int)k, &s)))
                d->ex->map.alloc_slot[k] = (int32_t)s->id;
            if (!err)
                d->slots[d->ex->map.alloc_slot[k]].over_at = d->ex->plan->last_ref[b];
            continue;
        }
        const int32_t twins = (c->passing[k] >= 0) + partner_stays(r, c, k);
        uint32_t place = k;
        err = take_large(d, k, r->allocs[k].bytes);
        for (int32_t i = 0; i < twins && !err; i++) {
            const uint32_t more = d->ex->map.n_places++;
            d->ex->map.twin[place] = (int32_t)more;
            d->ex->map.alloc_slot[more] = d->ex->map.twin[more] = -1;
            err = take_large(d, more, r->allocs[k].bytes);
            place = more;
        }
    }
    return err;
}

/* What a kernel was not seen to change it may change another time: words that are counted up for certain data only would count the replay as
 * well. So its small operands are read from copies, in one area that all replays share, one after another; in large ones a replay
 * does again what the launch has done. */
static int read_scratch(struct device *d)
{
    const struct record *r = &d->ex->learnt.rec;
    uint64_t most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < r->n_ops; i++) {
            const uint32_t first = r->ops[i].first;
            uint64_t at = 0;
            for (uint32_t k = first; k < first + r->ops[i].n && !r->ops[i].why_opaque && d->ex->learnt.caps[i].kind == OP_KERNEL; k++) {
                const struct rec_operand *w = &r->operands[k];
                const uint64_t bytes = (r->bufs[w->buf].bytes + 511) & ~511ull;
                uint32_t same = first; /* two words of one buffer stay so */
                while (same < k && r->operands[same].buf != w->buf)
                    same++;
                if (w->mode != REC_READ || w->map || !mem_is_small(d, at + bytes))
                    continue;
                if (pass)
                    d->ex->map.side_scratch[k] = same < k ? d->ex->map.side_scratch[same] : d->read_scratch + at;
                at += same < k ? 0 : bytes;
            }
            most = at > most ? at : most;
        }
        if (pass || most <= d->read_scratch_bytes)
            continue;
        const CUdeviceptr area = mem_scratch(d, most); /* a smaller one before it stays: replays under way may use it */
        if (!area)
            return -ENOMEM;
        d->read_scratch = area;
        d->read_scratch_bytes = most;
    }
    return 0;
}

/* Side operands of replays go to scratch: small ones each to their own, large ones (workspaces) to one region that all
 * replays share, one after another. */
int install_scratch(struct device *d)
{
    struct slot *region = d->scratch_region;
    uint64_t most = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < d->ex->learnt.rec.n_ops; i++) {
            uint64_t at = 0;
            for (uint32_t k = d->ex->learnt.rec.ops[i].first; k < d->ex->learnt.rec.ops[i].first + d->ex->learnt.rec.ops[i].n; k++) {
                const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
                uint64_t bytes = d->ex->learnt.rec.bufs[w->buf].bytes;
                if (w->mode != REC_SIDE || d->ex->learnt.rec.ops[i].why_opaque || d->ex->map.side_scratch[k])
                    continue;
                if (!mem_is_small(d, bytes)) {
                    if (pass)
                        d->ex->map.side_scratch[k] = region->va + at;
                    at += (bytes + 511) & ~511ull;
                } else if (pass && (!(d->ex->map.side_scratch[k] = mem_scratch(d, bytes)) ||
                                    (learn_keeps_side(d, bytes) && !(d->ex->map.side_saved[k] = mem_scratch(d, bytes)))))
                    return -ENOMEM;
            }
            most = at > most ? at : most;
        }
        if (pass || !most || (region && region->bytes >= most))
            continue;
        struct slot *s;
        if (mem_slot_new(d, most, &s))
            return -ENOMEM;
        s->mark = ++d->mark;
        if (mem_back(d, s) || fence_sync(d, &s->ready)) {
            mem_slot_free(d, s);
            return -ENOMEM;
        }
        d->live_bytes -= s->bytes; /* ours, not the program's */
        s->pins = 1;
        s->written = true;
        d->scratch_region = region = s; /* a smaller one before it stays: captured replays may still point there */
    }
    return read_scratch(d);
}

/* ---- mapping ---------------------------------------------------------------------------------------------------- */

void install_repair(struct device *d)
{
    for (uint32_t k = 0; k < d->ex->map.n_places; k++) {
        if (!d->ex->map.home[k])
            continue;
        struct slot *s = &d->slots[d->ex->map.alloc_slot[k]];
        if (s->state == SLOT_RESIDENT)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            if (d->ex->map.home[k][p] >= 0 && s->map[p] != d->ex->map.home[k][p])
                mem_map_page(d, s, p, d->ex->map.home[k][p]);
    }
}

/* What outlives iterations comes in; all else leaves. */
static int settle(struct device *d)
{
    d->drv->cuCtxSynchronize();
    d->mark++;
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
        const struct rec_buf *x = &d->ex->learnt.rec.bufs[b];
        if (x->alloc_ord < 0 && x->dies < 0 && d->slots[x->slot_id].serial == x->serial)
            d->slots[x->slot_id].mark = d->mark;
    }
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct slot *s = &d->slots[i];
        if (s->kind == SLOT_LARGE && s->state == SLOT_RESIDENT && s->mark != d->mark && !s->pins && swap_out(d, s))
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < d->n_slots; i++) {
        struct slot *s = &d->slots[i];
        int r = s->mark == d->mark && s->live && s->state == SLOT_HOST ? swap_in(d, s) : 0;
        if (r)
            return r;
    }
    d->drv->cuCtxSynchronize();
    return 0;
}

/* Persistent buffers hold the chunks they have, whenever the plan has them in memory. Pinned strangers hold theirs always.*/
static void take_persistent(struct device *d, struct colouring *c)
{
    for (uint32_t ch = 0; ch < c->n_chunks; ch++)
        if (d->chunks[ch].owner == CHUNK_ARENA || d->chunks[ch].owner == CHUNK_GONE)
            span_take(c, ch, 0, c->n_steps);
        else if (d->chunks[ch].owner >= 0 && d->slots[d->chunks[ch].owner].mark != d->mark)
            span_take(c, ch, 0, c->n_steps);
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++) {
        const struct rec_buf *x = &d->ex->learnt.rec.bufs[b];
        struct slot *s = &d->slots[x->slot_id];
        if (x->alloc_ord >= 0 || x->dies >= 0 || s->kind != SLOT_LARGE || s->state != SLOT_RESIDENT || s->serial != x->serial)
            continue;
        for (uint32_t p = 0; p < s->n_pages; p++)
            lives_take(c, (uint32_t)s->map[p], c->of_buf[b]);
    }
}

static uint64_t next_random(uint64_t *rng) { return (*rng = *rng * 6364136223846793005ull + 1442695040888963407ull) >> 33; }

/* Orders by birth, blurred by chance; those with several lives come first. */
static int64_t blurred_birth(const struct colouring *c, const struct order *o, unsigned turn, uint64_t *rng)
{
    const uint32_t birth = first_birth(c, c->of_alloc[o->alloc]), blur = c->n_steps >> (turn % 6);
    if (!turn)
        return (int64_t)birth + (o->twice ? 0 : c->n_steps);
    return (int64_t)birth + (int64_t)(next_random(rng) % (blur + 1)) + (o->twice || turn % 2 ? 0 : blur);
}

static bool lacks(const struct device *d, int32_t *const *home, uint32_t alloc) { return home[alloc][d->slots[d->ex->map.alloc_slot[alloc]].n_pages - 1] < 0; }

/* Chunks that any map would lack: what is in memory at the same step, beyond all that there are. */
static int chunks_beyond(struct device *d, const struct colouring *c, const struct order *order, uint32_t n, const uint64_t *start, uint64_t *beyond)
{
    uint32_t *load = calloc(c->n_steps + 1, sizeof *load), *counted_for = calloc(c->n_steps + 1, sizeof *counted_for);
    *beyond = 0;
    for (uint32_t ch = 0; ch < c->n_chunks && load; ch++)
        for (uint32_t i = 0; i < c->n_steps; i++)
            load[i] += start[(size_t)ch * c->words + i / 64] >> (i % 64) & 1;
    for (uint32_t i = 0; i < n && load && counted_for; i++)
        for (int32_t l = c->of_alloc[order[i].alloc]; l >= 0; l = c->lives[l].next)
            for (uint32_t at = c->lives[l].from; at < c->lives[l].to; at++) {
                load[at] += counted_for[at] == i + 1 ? 0 : d->slots[d->ex->map.alloc_slot[order[i].alloc]].n_pages;
                counted_for[at] = i + 1; /* its buffers, in turn, may be there at the same step */
                *beyond = load[at] > c->n_chunks + *beyond ? load[at] - c->n_chunks : *beyond;
            }
    const int err = load && counted_for ? 0 : -ENOMEM;
    free(load);
    free(counted_for);
    return err;
}

static int colour_and_map(struct device *d, struct colouring *c, uint64_t *lacking)
{
    struct order *order = calloc(d->ex->map.n_places + 1, sizeof *order);
    int32_t **other = calloc(d->ex->map.n_places + 1, sizeof *other);
    int64_t *rank = malloc((d->ex->map.n_places + 1) * sizeof *rank); /* in the next squeaky order */
    uint64_t *start = NULL;
    int err = order && other && rank ? 0 : -ENOMEM;
    uint32_t n = 0;
    for (uint32_t k = 0; k < d->ex->map.n_places && !err; k++) {
        if (!d->ex->map.home[k])
            continue;
        int32_t h = c->of_alloc[k];
        order[n++] = (struct order){.alloc = k, .key = first_birth(c, h), .twice = h >= 0 && c->lives[h].next >= 0};
        other[k] = malloc(d->slots[d->ex->map.alloc_slot[k]].n_pages * sizeof **other);
        err = other[k] ? 0 : -ENOMEM;
    }
    if (!err) {
        while (d->n_chunks - d->n_gone < mem_max_chunks(d) && mem_chunk_new(d) >= 0)
            ;
        c->n_chunks = d->n_chunks;
        c->words = c->n_steps / 64 + 1;
        c->busy = calloc((size_t)c->n_chunks * c->words + 1, sizeof *c->busy);
        start = malloc(((size_t)c->n_chunks * c->words + 1) * sizeof *start);
        err = c->busy && start ? 0 : -ENOMEM;
    }
    if (!err) {
        take_persistent(d, c);
        memcpy(start, c->busy, (size_t)c->n_chunks * c->words * sizeof *start);
        qsort(order, n, sizeof *order, by_key);
        *lacking = colour(d, c, order, n, d->ex->map.home, start);
        const uint64_t most = COLOUR_WORK / ((uint64_t)n * c->n_chunks + 1);
        uint64_t rng = 0x9e3779b97f4a7c15ull;
        for (uint32_t i = 0; i < n; i++)
            rank[order[i].alloc] = i;
        for (unsigned turn = 0; *lacking && turn < COLOUR_TURNS && turn <= most; turn++) {
            const bool squeaky = turn % 2;
            for (uint32_t i = 0; i < n; i++)
                order[i].key = squeaky ? rank[order[i].alloc] : blurred_birth(c, &order[i], turn / 2, &rng);
            qsort(order, n, sizeof *order, by_key);
            const uint64_t l = colour(d, c, order, n, other, start);
            for (uint32_t i = 0; i < n && squeaky; i++)
                rank[order[i].alloc] = i - (lacks(d, other, order[i].alloc) ? (int64_t)(next_random(&rng) % (n / 4 + 2)) + 2 : 0);
            if (l < *lacking) {
                *lacking = l;
                int32_t **t = d->ex->map.home;
                d->ex->map.home = other;
                other = t;
            }
        }
        install_repair(d);
        d->ex->map.beyond_chunks = 0;
        if (*lacking)
            err = chunks_beyond(d, c, order, n, start, &d->ex->map.beyond_chunks);
    }
    for (uint32_t k = 0; other && k < d->ex->map.n_places; k++)
        free(other[k]);
    free(other);
    free(order);
    free(rank);
    free(start);
    return err;
}

static int pairs_of(struct device *d, struct colouring *c)
{
    c->passing = malloc((d->ex->learnt.rec.n_allocs + 1) * sizeof *c->passing);
    c->partner = malloc((d->ex->learnt.rec.n_allocs + 1) * sizeof *c->partner);
    return c->passing && c->partner ? pair_survivors(d, c) : -ENOMEM;
}

uint64_t install_pages_beside(struct device *d)
{
    struct colouring c = {0};
    uint64_t pages = arena_pages_more(d);
    const int err = pairs_of(d, &c);
    for (uint32_t k = 0; k < d->ex->learnt.rec.n_allocs && !err; k++)
        if (partner_stays(&d->ex->learnt.rec, &c, k) || (c.passing[k] >= 0 && c.partner[k] >= 0))
            pages += mem_pages(d, d->ex->learnt.rec.allocs[k].bytes);
    free(c.passing);
    free(c.partner);
    return pages;
}

int install_plan(struct device *d)
{
    struct colouring c = {0};
    uint64_t lacking = 0;
    install_drop(d);
    c.of_buf = malloc((d->ex->learnt.rec.n_bufs + 1) * sizeof *c.of_buf);
    c.of_alloc = malloc((PLACES_MOST * d->ex->learnt.rec.n_allocs + 1) * sizeof *c.of_alloc);
    int err = c.of_buf && c.of_alloc ? 0 : -ENOMEM;
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs && !err; b++)
        c.of_buf[b] = -1;
    for (uint32_t k = 0; k < PLACES_MOST * d->ex->learnt.rec.n_allocs && !err; k++)
        c.of_alloc[k] = -1;
    if (!err)
        err = settle(d);
    if (!err)
        err = pairs_of(d, &c);
    if (!err)
        err = take_slots(d, &c);
    if (!err)
        err = settle(d); /* arenas may have grown: who is marked is in memory */
    if (!err)
        err = find_lives(d, &c);
    if (!err)
        err = lives_of_slots(d, &c);
    if (!err)
        err = colour_and_map(d, &c, &lacking);
    free(c.lives);
    free(c.of_buf);
    free(c.of_alloc);
    free(c.passing);
    free(c.partner);
    free(c.busy);
    if (err) {
        install_drop(d);
        return err;
    }
    d->ex->map.done = true;
    d->ex->map.not_in_turn = 0;
    for (uint32_t b = 0; b < d->ex->learnt.rec.n_bufs; b++)
        if (d->ex->learnt.rec.bufs[b].handed_on)
            d->ex->map.not_in_turn = PLACES_MOST;
    d->ex->map.lacks_chunks = lacking > 0;
    return lacking > INT32_MAX ? INT32_MAX : (int)lacking;
}
