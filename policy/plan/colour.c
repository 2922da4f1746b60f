/* Chunks by interval colouring: lives in steps of the plan, first fit in many orders. */
#include "policy/plan/colour.h"
#include "policy/memory/pinned.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Turns are counted, not timed: the same plan gets the same map however busy the machine is.
 * Two kinds of order alternate: births blurred by chance, and squeaky wheel optimization (Joslin and Clements, Journal of Artificial Intelligence
 * Research 10, 1999): a place left without a chunk comes earlier the next time. */
enum { COLOUR_TURNS = 400, COLOUR_WORK = 40000000 /* slots times chunks looked at: some tenths of a second */ };

static int add_life(struct colouring *c, int32_t *head, uint32_t from, uint32_t to)
{
    if (from >= to)
        return 0;
    if (!grow_room(&c->lives, c->n_lives, &c->cap_lives, 256))
        return -ENOMEM;
    c->lives[c->n_lives] = (struct life){.from = from, .to = to, .next = *head};
    *head = (int32_t)c->n_lives++;
    return 0;
}

/* Walks the plan as the simulator does and notes when each buffer has memory. */
int colour_lives(const struct record *r, const struct compiled *p, struct colouring *c)
{
    int32_t *since = malloc((r->n_bufs + 1) * sizeof *since); /* [n_bufs] step since which the buffer is in memory; -1: it is not */
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
        for (uint32_t i = p->die_at[at]; i < p->die_at[at + 1]; i++)
            if (!p->keep[p->die_list[i]])
                LIFE_ENDS(p->die_list[i]);
        for (uint32_t i = p->step_at[at]; i <= p->step_at[at + 1] && !err; i++) {
            bool program = i == p->step_at[at + 1];
            if (program && at == r->n_ops)
                break;
            const struct plan_step *s = program ? NULL : &p->steps[i];
            if (program || (s->kind == PLAN_REPLAY && !p->elided[i])) {
                const struct rec_op *o = &r->ops[program ? (int32_t)at : s->id];
                for (uint32_t k = o->first; k < o->first + o->n; k++) {
                    const struct rec_operand *w = &r->operands[k];
                    bool makes = w->mode == REC_WRITE || (w->mode != REC_READ && program) || w->mode == REC_RMW;
                    if (makes && since[w->buf] < 0)
                        since[w->buf] = (int32_t)now;
                }
            } else if (s->kind == PLAN_FETCH && since[s->id] < 0) /* else it has memory from step 0: fetched in the iteration before, or ahead in this one (compile.c) */
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

static bool lives_free(const struct colouring *c, uint32_t chunk, int32_t head)
{
    for (int32_t l = head; l >= 0; l = c->lives[l].next)
        if (!span_free(c, chunk, c->lives[l].from, c->lives[l].to))
            return false;
    return true;
}

static void span_take(struct colouring *c, uint32_t chunk, uint32_t from, uint32_t to)
{
    uint64_t *w = c->busy + (size_t)chunk * c->words;
    for (uint32_t i = from; i < to; i++)
        w[i / 64] |= 1ull << (i % 64);
}

void colour_take_lives(struct colouring *c, uint32_t chunk, int32_t head)
{
    for (int32_t l = head; l >= 0; l = c->lives[l].next)
        span_take(c, chunk, c->lives[l].from, c->lives[l].to);
}

void colour_take_all(struct colouring *c, uint32_t chunk) { span_take(c, chunk, 0, c->n_steps); }

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
    bool twice; /* the place has more than one life: hard to fit */
};
static int by_key(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->alloc < y->alloc ? -1 : x->alloc > y->alloc;
}

/* Gives every page of every fixed slot a chunk in `home`, first fit in the given order. Pages without a chunk get -1;
 * returns their number. */
static uint64_t first_fit(struct colouring *c, const struct order *order, uint32_t n, const uint32_t *n_pages, int32_t **home, const uint64_t *start)
{
    uint64_t lacking = 0;
    memcpy(c->busy, start, (size_t)c->n_chunks * c->words * sizeof *c->busy);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = order[i].alloc, pages = n_pages[k], got = 0;
        for (uint32_t ch = 0; ch < c->n_chunks && got < pages; ch++)
            if (lives_free(c, ch, c->of_alloc[k])) {
                colour_take_lives(c, ch, c->of_alloc[k]);
                home[k][got++] = (int32_t)ch;
            }
        for (uint32_t p = got; p < pages; p++)
            home[k][p] = -1;
        lacking += pages - got;
    }
    return lacking;
}

/* The first buffer older than the iteration that is as large as b, not in `used` yet, was made at b's place so many iterations before (0: at any
 * place), and is handed on, or else freed. Marks it in `used`; -1: none. */
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

/* Pairs each buffer that outlives the iteration with the older buffer whose part it has in the next iteration, and, if handed on there, with the
 * one whose part it has in the iteration after that. Pairs are told by when buffers were made; the rest is paired by size, in order. */
static int pair_survivors(const struct record *r, struct colouring *c)
{
    c->passing = malloc((r->n_allocs + 1) * sizeof *c->passing);
    c->partner = malloc((r->n_allocs + 1) * sizeof *c->partner);
    if (!c->passing || !c->partner)
        return -ENOMEM;
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

bool colour_partner_stays(const struct record *r, const struct colouring *c, uint32_t k)
{
    return c->partner[k] >= 0 && r->allocs[k].before_op <= r->bufs[c->partner[k]].dies;
}

int colour_slot_lives(const struct record *r, const int32_t *twin, struct colouring *c)
{
    int err = 0;
    for (uint32_t k = 0; k < r->n_allocs && !err; k++) {
        int32_t b = r->allocs[k].buf;
        if (b < 0 || r->bufs[b].small)
            continue;
        const int32_t in_turn[] = {b, c->passing[k], c->partner[k]};
        for (uint32_t i = 0; i < sizeof in_turn / sizeof *in_turn; i++)
            for (int32_t l = in_turn[i] < 0 ? -1 : c->of_buf[in_turn[i]]; l >= 0 && !err; l = c->lives[l].next)
                err = add_life(c, &c->of_alloc[k], c->lives[l].from, c->lives[l].to);
        for (int32_t place = twin[k]; place >= 0; place = twin[place])
            c->of_alloc[place] = c->of_alloc[k];
    }
    return err;
}

static uint64_t next_random(uint64_t *rng) { return (*rng = *rng * 6364136223846793005ull + 1442695040888963407ull) >> 33; }

/* Key that orders by birth, blurred by chance; places with several lives come first. */
static int64_t blurred_birth(const struct colouring *c, const struct order *o, unsigned turn, uint64_t *rng)
{
    const uint32_t birth = first_birth(c, c->of_alloc[o->alloc]), blur = c->n_steps >> (turn % 6);
    if (!turn)
        return (int64_t)birth + (o->twice ? 0 : c->n_steps);
    return (int64_t)birth + (int64_t)(next_random(rng) % (blur + 1)) + (o->twice || turn % 2 ? 0 : blur);
}

static bool lacks(const uint32_t *pages, int32_t *const *home, uint32_t alloc) { return home[alloc][pages[alloc] - 1] < 0; }

/* Chunks that any map would lack: the most that are needed at one step, less all that there are. */
static int chunks_beyond(const struct colouring *c, const uint32_t *pages, const struct order *order, uint32_t n, const uint64_t *start, uint64_t *beyond)
{
    uint32_t *load = calloc(c->n_steps + 1, sizeof *load), *counted_for = calloc(c->n_steps + 1, sizeof *counted_for);
    *beyond = 0;
    for (uint32_t ch = 0; ch < c->n_chunks && load; ch++)
        for (uint32_t i = 0; i < c->n_steps; i++)
            load[i] += start[(size_t)ch * c->words + i / 64] >> (i % 64) & 1;
    for (uint32_t i = 0; i < n && load && counted_for; i++)
        for (int32_t l = c->of_alloc[order[i].alloc]; l >= 0; l = c->lives[l].next)
            for (uint32_t at = c->lives[l].from; at < c->lives[l].to; at++) {
                load[at] += counted_for[at] == i + 1 ? 0 : pages[order[i].alloc];
                counted_for[at] = i + 1; /* buffers that take turns in a slot may both be in memory at one step, which counts once */
                *beyond = load[at] > c->n_chunks + *beyond ? load[at] - c->n_chunks : *beyond;
            }
    const int err = load && counted_for ? 0 : -ENOMEM;
    free(load);
    free(counted_for);
    return err;
}

int colour_begin(const struct record *r, struct colouring *c)
{
    *c = (struct colouring){.of_buf = malloc((r->n_bufs + 1) * sizeof *c->of_buf),
                            .of_alloc = malloc((PLACES_MOST * r->n_allocs + 1) * sizeof *c->of_alloc)};
    if (!c->of_buf || !c->of_alloc)
        return -ENOMEM;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        c->of_buf[b] = -1;
    for (uint32_t k = 0; k < PLACES_MOST * r->n_allocs; k++)
        c->of_alloc[k] = -1;
    return pair_survivors(r, c);
}

int colour_room(struct colouring *c, uint32_t n_chunks)
{
    c->n_chunks = n_chunks;
    c->words = c->n_steps / 64 + 1;
    c->busy = calloc((size_t)c->n_chunks * c->words + 1, sizeof *c->busy);
    c->taken = malloc(((size_t)c->n_chunks * c->words + 1) * sizeof *c->taken);
    return c->busy && c->taken ? 0 : -ENOMEM;
}

/* Looks for better maps than *home, in other orders, until no page lacks a chunk or all turns are taken. */
static void search(struct colouring *c, struct order *order, uint32_t n, const uint32_t *pages, const uint64_t *start, int64_t *rank, int32_t ***home,
                   int32_t ***other, uint64_t *lacking)
{
    const uint64_t most = COLOUR_WORK / ((uint64_t)n * c->n_chunks + 1);
    uint64_t rng = 0x9e3779b97f4a7c15ull;
    for (uint32_t i = 0; i < n; i++)
        rank[order[i].alloc] = i;
    for (unsigned turn = 0; *lacking && turn < COLOUR_TURNS && turn <= most; turn++) {
        const bool squeaky = turn % 2;
        for (uint32_t i = 0; i < n; i++)
            order[i].key = squeaky ? rank[order[i].alloc] : blurred_birth(c, &order[i], turn / 2, &rng);
        qsort(order, n, sizeof *order, by_key);
        const uint64_t l = first_fit(c, order, n, pages, *other, start);
        for (uint32_t i = 0; i < n && squeaky; i++)
            rank[order[i].alloc] = i - (lacks(pages, *other, order[i].alloc) ? (int64_t)(next_random(&rng) % (n / 4 + 2)) + 2 : 0);
        if (l < *lacking) {
            *lacking = l;
            int32_t **t = *home;
            *home = *other;
            *other = t;
        }
    }
}

int colour_map(struct colouring *c, const uint32_t *pages, uint32_t n_places, int32_t ***home, uint64_t *lacking, uint64_t *beyond)
{
    struct order *order = calloc(n_places + 1, sizeof *order);
    int32_t **other = calloc(n_places + 1, sizeof *other);
    int64_t *rank = malloc((n_places + 1) * sizeof *rank); /* [n_places] each place's rank in the next squeaky order */
    uint64_t *const start = c->taken;
    int err = order && other && rank ? 0 : -ENOMEM;
    uint32_t n = 0;
    *lacking = *beyond = 0;
    for (uint32_t k = 0; k < n_places && !err; k++) {
        if (!pages[k])
            continue;
        const int32_t h = c->of_alloc[k];
        order[n++] = (struct order){.alloc = k, .key = first_birth(c, h), .twice = h >= 0 && c->lives[h].next >= 0};
        other[k] = malloc(pages[k] * sizeof **other);
        err = other[k] ? 0 : -ENOMEM;
    }
    if (!err) {
        memcpy(start, c->busy, (size_t)c->n_chunks * c->words * sizeof *start);
        qsort(order, n, sizeof *order, by_key);
        *lacking = first_fit(c, order, n, pages, *home, start);
        search(c, order, n, pages, start, rank, home, &other, lacking);
        if (*lacking)
            err = chunks_beyond(c, pages, order, n, start, beyond);
    }
    for (uint32_t k = 0; other && k < n_places; k++)
        free(other[k]);
    free(other);
    free(order);
    free(rank);
    return err;
}

bool colour_is_sound(struct colouring *c, const uint32_t *pages, uint32_t n_places, int32_t *const *home)
{
    memcpy(c->busy, c->taken, (size_t)c->n_chunks * c->words * sizeof *c->busy);
    for (uint32_t k = 0; k < n_places; k++)
        for (uint32_t p = 0; p < pages[k]; p++) {
            const int32_t ch = home[k][p];
            if (ch < 0)
                continue;
            if ((uint32_t)ch >= c->n_chunks || !lives_free(c, (uint32_t)ch, c->of_alloc[k]))
                return false;
            colour_take_lives(c, (uint32_t)ch, c->of_alloc[k]);
        }
    return true;
}

void colour_end(struct colouring *c)
{
    free(c->lives);
    free(c->of_buf);
    free(c->of_alloc);
    free(c->passing);
    free(c->partner);
    free(c->busy);
    free(c->taken);
    *c = (struct colouring){0};
}
