#include "tracer/iter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ANCHORS = 1 << 16, MAX_OPS = 1 << 19, MAX_OPERANDS = 1 << 21, MIN_PERIOD = 3, LITTLE_PCT = 20, WALK_PART = 3, DRIFT_PART = 256,
       DRIFT_OPS = 64, SCALARS_BYTES = 2048, TURNS_MOST = 8, OTHER_PART = 4, SWING_PART = 16, TIMES_MOST = 4 };

/* Ops that may differ from the iteration before: none in a period below STRAY_PERIOD, else one in STRAY_PART, STRAY_MOST at most; STRAY_SURE ops in a row that
 * correspond are back on the way. */
enum { STRAY_PERIOD = 64, STRAY_MOST = 24, STRAY_PART = 16, STRAY_SURE = 4 };

struct seen_op {
    uint64_t sig, live_bytes;
    uint64_t back; /* distance to the last op that used one of its buffers in the same way (candidate()); 0: none did */
    uint32_t first, n;
    int from_host;
    int moves; /* 1: uses another place within a buffer than the op a period before; set while a period is being followed */
    int other; /* 1: differs from the op a period before; set while a period is being followed */
    uint64_t apart; /* distance to the earlier op that this op corresponds to; 0: none */
};

struct anchor { /* the last op that had this buffer at this place of this kind of launch */
    uint64_t key;
    uint64_t op_plus_1;
};

struct iter {
    struct seen_op *ops;
    struct iter_operand *operands;
    uint64_t n_ops, cap_ops, n_operands, cap_operands, first_op;
    struct anchor *anchors;
    uint64_t period, run; /* the candidate period, and how many ops in a row correspond under it */
    uint64_t swing;       /* bytes between the least and the most that the program held in the last `period` ops; 0: not looked at */
    uint64_t n_moves;     /* ops with `moves` among the last min(run, period) */
    uint64_t n_others;    /* ops with `other` among the last min(run, period) */
    uint64_t astray;      /* ops fed since the latest op that followed the period; 0: the latest op follows it */
};

struct iter *iter_new(void)
{
    struct iter *it = calloc(1, sizeof *it);
    if (it && !(it->anchors = calloc(ANCHORS, sizeof *it->anchors))) {
        free(it);
        it = NULL;
    }
    return it;
}

void iter_free(struct iter *it)
{
    if (!it)
        return;
    free(it->ops);
    free(it->operands);
    free(it->anchors);
    free(it);
}

void iter_reset(struct iter *it, uint64_t first_op)
{
    it->n_ops = it->n_operands = it->period = it->run = it->n_moves = it->n_others = it->astray = it->swing = 0;
    it->first_op = first_op;
    memset(it->anchors, 0, ANCHORS * sizeof *it->anchors);
}

static void *grown(void *p, uint64_t need, uint64_t *cap, size_t each)
{
    if (need <= *cap)
        return p;
    uint64_t c = *cap ? *cap * 2 : 1024;
    while (c < need)
        c *= 2;
    void *q = realloc(p, c * each);
    if (q)
        *cap = c;
    return q;
}

static int correspond(const struct iter *it, uint64_t early, uint64_t late)
{
    const struct seen_op *a = &it->ops[early], *b = &it->ops[late];
    if (a->sig != b->sig)
        return 0;
    uint32_t i = 0, j = 0;
    while (i < a->n && j < b->n) {
        const struct iter_operand *x = &it->operands[a->first + i], *y = &it->operands[b->first + j];
        if (x->offset < y->offset)
            i++;
        else if (y->offset < x->offset)
            j++;
        else {
            /* the same buffer; or one born since; or one as old as the earlier op's buffer was then (a batch fetched ahead) */
            if (x->serial != y->serial && y->birth_op <= it->first_op + early && y->birth_op != x->birth_op + (late - early))
                return 0;
            i++;
            j++;
        }
    }
    return 1;
}

static uint64_t anchor_key(uint64_t sig, const struct iter_operand *o)
{
    uint64_t k = sig ^ o->serial * 0x9e3779b97f4a7c15ull ^ (uint64_t)o->offset << 48;
    k *= 0xff51afd7ed558ccdull;
    return k ^ k >> 33;
}

/* The distance to the last op that used one of this op's old buffers in the same way: the longest such distance, since a
 * weight may be used more than once an iteration. */
static uint64_t candidate(struct iter *it, uint64_t at)
{
    const struct seen_op *op = &it->ops[at];
    uint64_t best = 0;
    for (uint32_t i = 0; i < op->n; i++) {
        uint64_t key = anchor_key(op->sig, &it->operands[op->first + i]);
        struct anchor *a = &it->anchors[key % ANCHORS];
        if (a->key == key && a->op_plus_1 && at + 1 - a->op_plus_1 > best)
            best = at + 1 - a->op_plus_1;
        a->key = key;
        a->op_plus_1 = at + 1;
    }
    return best;
}

/* How many ops in a row, up to `at`, correspond to the ops p before them; p at most. */
static uint64_t run_before(const struct iter *it, uint64_t at, uint64_t p)
{
    uint64_t run = 0;
    while (run < p && p + run <= at && correspond(it, at - p - run, at - run))
        run++;
    return run;
}

/* The candidate period from op `at` on: the distance to the last op that used a buffer in the same way, or, where a buffer is used so several times an
 * iteration, to an op before that one: if a whole period corresponds under that distance, or no nearer op serves. 0: none. *run: ops in a row, up to `at`, that
 * correspond. */
static uint64_t begin_with(const struct iter *it, uint64_t at, uint64_t *run)
{
    uint64_t best = 0, p = it->ops[at].back;
    *run = 0;
    for (int i = 0; i < TIMES_MOST && p && p <= at; i++) {
        const uint64_t behind = p >= MIN_PERIOD ? run_before(it, at, p) : 0;
        if (behind > *run && (!best || behind == p)) {
            *run = behind;
            best = p;
        }
        if (p >= MIN_PERIOD && behind == p)
            break;
        const uint64_t more = it->ops[at - p].back;
        if (more == it->ops[at].back) /* a full round: farther distances are whole periods more */
            break;
        p = more ? p + more : 0;
    }
    return best;
}

/* Whether op `late` uses a buffer of op `early` at another place within the buffer. */
static int moves(const struct iter *it, uint64_t early, uint64_t late)
{
    const struct seen_op *a = &it->ops[early], *b = &it->ops[late];
    uint32_t i = 0, j = 0;
    while (i < a->n && j < b->n) {
        const struct iter_operand *x = &it->operands[a->first + i], *y = &it->operands[b->first + j];
        if (x->offset == y->offset && x->serial == y->serial && x->delta != y->delta)
            return 1;
        i += x->offset <= y->offset;
        j += y->offset <= x->offset;
    }
    return 0;
}

static uint64_t apart(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

bool iter_holds_as_much(uint64_t then, uint64_t now, uint64_t swing) { return apart(then, now) <= swing / DRIFT_PART; }

/* Bytes between the least and the most that the program held at n ops from `first` on. */
static uint64_t swing_of(const struct iter *it, uint64_t first, uint64_t n)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t k = first; k < first + n; k++) {
        least = it->ops[k].live_bytes < least ? it->ops[k].live_bytes : least;
        most = it->ops[k].live_bytes > most ? it->ops[k].live_bytes : most;
    }
    return most - least;
}

static bool holds_as_much(struct iter *it, uint64_t early, uint64_t late)
{
    const uint64_t then = it->ops[early].live_bytes, now = it->ops[late].live_bytes;
    if (then == now)
        return true;
    /* the steps of a recurrent layer hold more each time, if only by a little; a list of losses grows by some scalars */
    if (it->period < DRIFT_OPS && apart(then, now) > SCALARS_BYTES)
        return false;
    if (!it->swing)
        it->swing = swing_of(it, early, late - early);
    return iter_holds_as_much(then, now, it->swing);
}

/* Op k corresponds to the op p before it. */
static void note_like(struct iter *it, uint64_t k, uint64_t p)
{
    it->ops[k].moves = moves(it, k - p, k);
    it->ops[k].other = 0;
    it->ops[k].apart = p;
}

/* Counts n_moves and n_others afresh over the latest min(run, period) ops. */
static void count_again(struct iter *it, uint64_t at)
{
    const uint64_t n = it->run < it->period ? it->run : it->period;
    it->n_moves = it->n_others = it->swing = 0;
    for (uint64_t k = 0; k < n; k++) {
        it->n_moves += (uint64_t)it->ops[at - k].moves;
        it->n_others += (uint64_t)it->ops[at - k].other;
    }
}

/* Whether `turns` candidate periods together are one period: under that, two of them correspond and hold as much, while under the candidate alone many ops
 * hold other amounts. Called once for each number of turns, since it walks through all of these ops. */
static bool takes_turns(struct iter *it, uint64_t at, uint64_t turns)
{
    const uint64_t p = it->period, whole = turns * p;
    uint64_t other = 0;
    const uint64_t swing = whole < DRIFT_OPS ? 0 : swing_of(it, at + 1 - whole, whole);
    for (uint64_t k = 0; k < whole; k++) {
        if (!iter_holds_as_much(it->ops[at - whole - k].live_bytes, it->ops[at - k].live_bytes, swing) ||
            !correspond(it, at - whole - k, at - k))
            return false;
        other += !iter_holds_as_much(it->ops[at - p - k].live_bytes, it->ops[at - k].live_bytes, swing);
    }
    return other > whole / OTHER_PART;
}

static void take_turns(struct iter *it, uint64_t at, uint64_t turns)
{
    it->period = it->run = turns * it->period;
    for (uint64_t k = 0; k < it->run; k++)
        note_like(it, at - k, it->period);
    count_again(it, at);
}

/* ---- a few other ops ------------------------------------------------------------------------------------------------- */

static uint64_t others_most(uint64_t period)
{
    const uint64_t part = period < STRAY_PERIOD ? 0 : period / STRAY_PART;
    return part < STRAY_MOST ? part : STRAY_MOST;
}

static bool correspond_in_a_row(const struct iter *it, uint64_t at, uint64_t p, uint64_t n)
{
    for (uint64_t k = 0; k < n; k++)
        if (p + k > at || !correspond(it, at - p - k, at - k))
            return false;
    return true;
}

/* The period from here on if the latest STRAY_SURE ops correspond to ops nearly a period before: the distance nearest to the old period; 0: they do not. */
static uint64_t way_back(const struct iter *it, uint64_t at)
{
    for (uint64_t off = 0; off <= STRAY_MOST && it->astray >= STRAY_SURE; off++) {
        if (correspond_in_a_row(it, at, it->period + off, STRAY_SURE))
            return it->period + off;
        if (correspond_in_a_row(it, at, it->period - off, STRAY_SURE))
            return it->period - off;
    }
    return 0;
}

/* Op `at` differs from the op a period before, or comes after such an op. A few different ops (a batch that is mixed in one of two ways) leave the period in force; if an
 * iteration has more of them than the one before, or fewer, the period becomes longer, or shorter. False: too many ops differ. */
static bool goes_astray(struct iter *it, uint64_t at)
{
    if (!others_most(it->period) || (!it->astray && it->run < it->period / 2))
        return false;
    it->astray++;
    it->run++;
    const uint64_t p = way_back(it, at);
    if (p) {
        for (uint64_t k = 0; k < STRAY_SURE; k++)
            note_like(it, at - k, p);
        for (uint64_t k = STRAY_SURE; k < it->astray; k++)
            it->ops[at - k].other = 1;
        it->period = p;
        it->astray = 0;
        count_again(it, at);
    }
    return it->astray <= others_most(it->period) + STRAY_SURE && it->n_others <= others_most(it->period);
}

int64_t iter_feed(struct iter *it, uint64_t sig, const struct iter_operand *operands, uint32_t n, uint64_t live_bytes,
                  int from_host)
{
    if (it->n_ops == MAX_OPS || it->n_operands + n > MAX_OPERANDS)
        iter_reset(it, it->first_op + it->n_ops);
    struct seen_op *ops = grown(it->ops, it->n_ops + 1, &it->cap_ops, sizeof *ops);
    if (!ops)
        return -ENOMEM;
    it->ops = ops;
    struct iter_operand *all = grown(it->operands, it->n_operands + n + 1, &it->cap_operands, sizeof *all);
    if (!all)
        return -ENOMEM;
    it->operands = all;
    uint64_t at = it->n_ops++;
    ops[at] = (struct seen_op){.sig = sig, .live_bytes = live_bytes, .first = (uint32_t)it->n_operands, .n = n, .from_host = from_host};
    if (n)
        memcpy(all + it->n_operands, operands, n * sizeof *all);
    it->n_operands += n;

    ops[at].back = candidate(it, at);
    if (it->period && !it->astray && correspond(it, at - it->period, at)) {
        note_like(it, at, it->period);
        it->n_moves += (uint64_t)ops[at].moves;
        if (it->run++ >= it->period) {
            it->n_moves -= (uint64_t)ops[at - it->period].moves;
            it->n_others -= (uint64_t)ops[at - it->period].other;
        }
    } else if (!it->period || !goes_astray(it, at)) {
        it->astray = 0;
        it->period = begin_with(it, at, &it->run);
        for (uint64_t k = 0; k < it->run; k++)
            note_like(it, at - k, it->period);
        count_again(it, at);
    }
    if (it->astray)
        return 0;
    if (it->period && it->run > it->period && (it->run + it->period) % (2 * it->period) == 0) {
        const uint64_t turns = (it->run + it->period) / (2 * it->period);
        if (turns <= TURNS_MOST && takes_turns(it, at, turns))
            take_turns(it, at, turns);
    }
    if (it->period && it->run >= it->period && it->n_moves * WALK_PART < it->period && holds_as_much(it, at - it->period, at))
        return (int64_t)it->period;
    return 0;
}

uint64_t iter_until_boundary(const struct iter *it, uint64_t p)
{
    const struct seen_op *o = it->ops + (it->n_ops - p); /* o[k]: the op a period before the one that comes after k more ops */
    uint64_t least = 0, most = 0;
    for (uint64_t k = 1; k < p; k++) {
        if (o[k].live_bytes < o[least].live_bytes)
            least = k;
        if (o[k].live_bytes > o[most].live_bytes)
            most = k;
    }
    uint64_t little = o[least].live_bytes + (o[most].live_bytes - o[least].live_bytes) / 100 * LITTLE_PCT;
    uint64_t best = p;
    for (uint64_t k = 0; k < p; k++)
        if (o[k].from_host && !o[(k + p - 1) % p].from_host && o[k].live_bytes <= little &&
            (best == p || o[k].live_bytes < o[best].live_bytes))
            best = k;
    return best < p ? best : least;
}

bool iter_is_settled(const struct iter *it, uint64_t p)
{
    if (it->n_ops < 2 * p || p != it->period || it->run >= (2 * TURNS_MOST - 1) * p)
        return true;
    const uint64_t now = swing_of(it, it->n_ops - p, p), then = swing_of(it, it->n_ops - 2 * p, p);
    return apart(then, now) <= (now > then ? now : then) / SWING_PART;
}

uint64_t iter_has_come(const struct iter *it, uint64_t p) { return p == it->period ? 1 + it->run / p : 0; }

uint64_t iter_candidate(const struct iter *it) { return it->period && it->run >= it->period / 2 ? it->period : 0; }

bool iter_is_astray(const struct iter *it) { return it->astray; }

uint64_t iter_apart(const struct iter *it, uint64_t ago) { return ago && it->n_ops >= ago ? it->ops[it->n_ops - ago].apart : 0; }

bool iter_correspond(const struct iter *it, uint64_t ago, uint64_t apart)
{
    return ago && ago + apart <= it->n_ops && correspond(it, it->n_ops - ago - apart, it->n_ops - ago);
}

bool iter_remembers(const struct iter *it, uint64_t n) { return it->n_ops >= n; }

uint64_t iter_expected_sig(const struct iter *it, uint64_t p, uint64_t ahead)
{
    return it->ops[it->n_ops - p + ahead % p].sig;
}

static const struct iter_operand *operand_at(const struct iter *it, const struct seen_op *o, uint32_t offset)
{
    const struct iter_operand *all = it->operands + o->first;
    uint32_t a = 0, b = o->n;
    while (a < b) {
        const uint32_t m = (a + b) / 2;
        if (all[m].offset < offset)
            a = m + 1;
        else
            b = m;
    }
    return a < o->n && all[a].offset == offset ? &all[a] : NULL;
}

const struct iter_operand *iter_expected_operand(const struct iter *it, uint64_t ago, uint32_t offset, bool *known)
{
    *known = ago && it->n_ops >= ago;
    return *known ? operand_at(it, &it->ops[it->n_ops - ago], offset) : NULL;
}

bool iter_expected_again(const struct iter *it, uint64_t p, uint64_t ahead, uint32_t offset, uint32_t few)
{
    bool known;
    const struct iter_operand *then = iter_expected_operand(it, p, offset, &known);
    if (!known)
        return true;
    for (uint64_t k = 1; then && k <= ahead && k < p; k++) {
        const struct seen_op *o = &it->ops[it->n_ops - p + k];
        const struct iter_operand *later = o->n > few ? operand_at(it, o, offset) : NULL;
        if (later && later->serial == then->serial)
            return true;
    }
    return false;
}
