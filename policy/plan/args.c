/* Which bytes of a launch's arguments must stay as they were for the recorded iteration to say what the launch does.
 * Where a plan relies on that: launches that may do anything (proof.h, none) are not asked about.
 *
 * Words that point into memory we know, and tensor maps of it, are operands: match() compares the buffers. Words that were proved idle may hold anything.
 * Everything else is compared byte by byte with the iteration before. A byte that is another one now may be a flag, or say how many entries
 * of a list are in use: what the kernel does with it was never measured, in the rehearsal as little as later. So it is measured
 * (proof.h: a trial, or a look); where it does something else than it did, the plan is left.
 *
 * Seeds, step counts and learning rates change in every iteration, and a trial costs several runs. A word that has changed in
 * NUMBER_AFTER iterations in a row, each time with a trial that found what was recorded, is taken for a number. One that stays the same
 * for an iteration begins again, flags do; or is tried once more, where it was taken for a number and most of its bytes have changed.
 * Structs also hold bytes that nobody fills. Where such a word was another one, the trial runs once more with what it held the iteration
 * before; a word that was seen not to matter PADDING_AFTER times is taken for padding. In a struct with many such words, the unused end
 * of a list, once is enough where most bytes are others: what nobody fills there is another in every iteration.
 * A word may hold a number, or padding, beside a flag, and what a flag does may hang on data: one trial says nothing of the next. So a
 * word is free in those bytes only that have changed PADDING_AFTER times themselves, each time with a trial; or where it is a number that
 * grows by the same in every iteration (a random generator's offset), and so it did now.
 * What is taken for a number is tried again whenever the count of its changes is a power of two, from TRIED_AGAIN on; what is taken for padding when
 * the count has doubled since a trial last put the word back, from TRIED_AGAIN on: a struct's twenty words of padding are tried by one launch, not by twenty.
 *
 * Most of what lies in padding are addresses of the host's heap, whose fourth byte is another one now and then only. A word that was such an address
 * HOST_AFTER times in a row, whose three lowest bytes are padding, may have another fourth byte where it is one again, of memory that is mapped.
 * A word that went from the address of one object of the host's to that of another, and was put back, once, and did not matter, may hold the address of
 * any object of the host's from then on: no kernel follows one.
 *
 * Layers repeat: the same kernel comes in the same shape, with the same bytes but for addresses and padding, at many places of an
 * iteration. What the trials at such places say of a word counts together; a place that has tried the word itself needs no more of them
 * than one alone would, one that has not twice as many. A word that made a difference at any of them is tried at each. So is one of
 * which only a byte or two are others at a time. Where trials with decoys at two such places found the word idle, it is idle at the third, of the same
 * bytes, too: PyTorch's elementwise kernels have room for 25 dimensions, and what stale address stands in the unused ones is another at each place.
 *
 * Whole trials are rare (proof.h): they run with what all words that have changed since the one before held before that. A light one,
 * which could not take back what such a mixture does, runs with the bytes of the iteration before. A count or a place that is put back
 * sends the op where it was then: never beside other entries than it stood with (to_put_back, args_may_use_others).
 *
 * Hot path: a comparison of a few spans with memcmp; lists are made and cut at an iteration's first difference only. */
#include "policy/learn/words.h"
#include "policy/op/tensor_map.h"
#include "policy/plan/address.h"
#include "policy/plan/args.h"
#include "policy/plan/cursor.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NUMBER_AFTER = 8, PADDING_AFTER = 3, HOST_AFTER = 8, TRIED_AGAIN = 32, MANY = 8, ALIKE_MOST = 64 /* places asked */,
       IDLE_AT = 2 /* places that vouch for a word */, BOLD_EACH = 4 };

struct span {
    uint32_t at, bytes;
    uint32_t row;  /* of varying ones: iterations in a row in which it changed; of padding all of them */
    uint32_t idle; /* of varying ones: times that it was seen not to matter; MATTERS */
    uint32_t tried; /* of padding: how often it had changed when a trial put it back last, or should have */
    uint32_t lent; /* how many of these were seen at other positions of the same kernel */
    uint8_t lent_bytes; /* bit i: that byte i does not matter is known from there */
    uint8_t changed[8], idle_byte[8]; /* times that byte i has changed; that it was another one where the word was seen not to matter */
    bool host_idle;           /* of varying ones: the word went from one host object's address to another's, and a trial found that neither matters */
    uint64_t mapped;          /* of varying ones: the latest address in it that was asked about, and lay in memory of the host's */
    uint8_t hosts;            /* of varying ones: changes in a row, up to HOST_AFTER, after each of which it was a host address */
    bool spare;               /* one of many idle words of its struct */
    uint32_t steady_for;      /* of varying ones: times in a row that it grew by `step` */
    uint64_t step;
    bool was_other;
    unsigned char was[8]; /* of varying ones, if was_other: what it held before it changed last */
};
static const uint32_t MATTERS = UINT32_MAX;
struct arg_watch { /* of one op */
    struct span *constant, *varying; /* constant: rising; varying: one word each, in the order in which they changed */
    uint32_t n_constant, n_varying, cap_constant, cap_varying, surprises;
    bool unproved;           /* the launch in the iteration before ran unproved (args.h) */
    bool asks_again;         /* what was proved of that launch says nothing of another one (args.h, args_are_covered) */
    bool in_doubt;           /* its idle words may be in use since a look (args.h) */
    bool all_back;           /* the latest trial put back what changed in earlier iterations too (args_before) */
    bool litter_back;        /* the latest trial put back words alone that look like what stacks leave */
    bool bold;               /* the latest trial put back words, too, that may be numbers */
    bool whole_back;         /* the latest trial put back all that differs from the iteration before */
    bool covered;            /* the launch at hand will ask again */
    bool loose, loose_now;   /* the launch in the iteration before, or the one at hand, may have used words that are no operands (args.h) */
    uint32_t alike, n_alike; /* places of the same kernel and shape: exec.alike from there on, this one among them */
};

/* One more entry, of zeros; NULL: no memory. */
static struct span *append(struct span **list, uint32_t *n, uint32_t *cap)
{
    if (!grow_room(list, *n, cap, 4))
        return NULL;
    (*list)[*n] = (struct span){0};
    return &(*list)[(*n)++];
}

static int push(struct span **list, uint32_t *n, uint32_t *cap, uint32_t at, uint32_t bytes)
{
    if (!bytes)
        return 0;
    if (*n && (*list)[*n - 1].at + (*list)[*n - 1].bytes == at) {
        (*list)[*n - 1].bytes += bytes;
        return 0;
    }
    struct span *s = append(list, n, cap);
    if (!s)
        return -ENOMEM;
    s->at = at;
    s->bytes = bytes;
    return 0;
}

/* A word that has changed once. Neighbours stay apart: each has its own count. */
static int add_varying(struct arg_watch *w, uint32_t at, uint32_t bytes)
{
    struct span *s = append(&w->varying, &w->n_varying, &w->cap_varying);
    if (!s)
        return -ENOMEM;
    s->at = at;
    s->bytes = bytes;
    return 0;
}

/* All bytes of all parameters but words that are operands, and what of a word is idle. */
static int watch_op(struct arg_watch *w, const struct record *r, const struct rec_op *o, const struct rt_op *op)
{
    uint32_t k = o->first, end = o->first + o->n, i = o->idle, idle_end = o->idle + o->n_idle;
    for (uint32_t p = 0; p < op_pieces(op); p++) {
        uint32_t to, at = op_piece(op, p, &to);
        while (at < to) {
            while (k < end && r->operands[k].offset < at)
                k++;
            while (i < idle_end && r->idle_words[i] < at)
                i++;
            uint32_t word = to, bytes = 8; /* the next one that is left out */
            if (k < end && r->operands[k].offset < word) {
                word = r->operands[k].offset;
                bytes = r->operands[k].map ? TENSOR_MAP_BYTES : 8;
            }
            if (i < idle_end && rec_idle_word(r->idle_words[i]) <= word) { /* a word that was an operand may be idle */
                word = r->idle_words[i];
                bytes = 8 - word % 8;
            }
            if (push(&w->constant, &w->n_constant, &w->cap_constant, at, word - at))
                return -ENOMEM;
            at = word < to ? word + bytes : to;
        }
    }
    return 0;
}

static int by_signature(const void *a, const void *b, void *ops)
{
    const struct rec_op *o = ops;
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return o[x].sig != o[y].sig ? (o[x].sig < o[y].sig ? -1 : 1) : x < y ? -1 : x > y;
}

static void find_alike(struct device *d)
{
    struct exec *ex = d->ex;
    const uint32_t n = ex->learnt.rec.n_ops;
    for (uint32_t i = 0; i < n; i++)
        ex->now.alike[i] = i;
    qsort_r(ex->now.alike, n, sizeof *ex->now.alike, by_signature, ex->learnt.rec.ops);
    for (uint32_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && ex->learnt.rec.ops[ex->now.alike[j]].sig == ex->learnt.rec.ops[ex->now.alike[i]].sig; j++)
            ex->now.watch[ex->now.alike[j]].alike = i;
        for (uint32_t k = i; k < j; k++)
            ex->now.watch[ex->now.alike[k]].n_alike = j - i;
    }
}

int args_index(struct device *d)
{
    const struct record *r = &d->ex->learnt.rec;
    d->ex->now.watch = calloc(r->n_ops + 1, sizeof *d->ex->now.watch);
    d->ex->now.alike = malloc((r->n_ops + 1) * sizeof *d->ex->now.alike);
    if (!d->ex->now.watch || !d->ex->now.alike)
        return -ENOMEM;
    find_alike(d);
    for (uint32_t i = 0; i < r->n_ops; i++) {
        const struct rt_op *op = &d->ex->learnt.caps[i];
        if (r->ops[i].hold || op->kind != OP_KERNEL || !op->args)
            continue;
        if (watch_op(&d->ex->now.watch[i], r, &r->ops[i], op))
            return -ENOMEM;
    }
    return 0;
}

void args_clear(struct device *d)
{
    for (uint32_t i = 0; d->ex->now.watch && i < d->ex->learnt.rec.n_ops; i++) {
        free(d->ex->now.watch[i].constant);
        free(d->ex->now.watch[i].varying);
    }
    free(d->ex->now.watch);
    free(d->ex->now.alike);
    d->ex->now.watch = NULL;
    d->ex->now.alike = NULL;
}

static bool is_padding(const struct span *v) { return v->spare || (v->idle >= PADDING_AFTER && v->idle != MATTERS); }

/* Bit i: byte i is another one. */
static uint8_t other_bytes(const unsigned char *a, const unsigned char *b, uint32_t n)
{
    uint8_t out = 0;
    for (uint32_t i = 0; i < n; i++)
        out |= (uint8_t)((a[i] != b[i]) << i);
    return out;
}

static void count_bytes(uint8_t times[8], uint8_t which)
{
    for (int i = 0; i < 8; i++)
        times[i] += which >> i & 1 && times[i] < UINT8_MAX;
}

/* Bit i: byte i was counted so often, at least. */
static uint8_t counted(const uint8_t times[8], uint8_t least)
{
    uint8_t out = 0;
    for (int i = 0; i < 8; i++)
        out |= (uint8_t)((times[i] >= least) << i);
    return out;
}

/* In each half of the word that has changed, most bytes have: what a stack holds. Of a flag, a count or a mode the lowest alone would be
 * another one, and what a flag does may hang on data: another place, or a single trial, says nothing of it. */
static bool like_litter(uint8_t other)
{
    enum { MOST = 3 };
    const int low = __builtin_popcount(other & 0x0f), high = __builtin_popcount(other & 0xf0);
    return (!low || low >= MOST) && (!high || high >= MOST);
}

/* It has the upper half of an address on this process's stack, heap, or in its libraries, which no kernel can follow. */
static bool is_like_host(const struct device *d, uint64_t word)
{
    const uint64_t high = word >> 32;
    return high && (high == (uintptr_t)&word >> 32 || high == (uintptr_t)d >> 32 || high == (uintptr_t)&qsort_r >> 32);
}

/* Compared whole: beside a flag, padding may hold the rest of an address. Where the fifth byte of such addresses is as small as flags are
 * (one process of eight), a flag would make it whole: there none is taken for one. */
static bool is_host_address(const struct device *d, const unsigned char *word)
{
    enum { FLAGS = 32 };
    uint64_t w;
    memcpy(&w, word, sizeof w);
    return (w >> 32 & 0xff) >= FLAGS && is_like_host(d, w);
}

/* Whole words that an object of the host's may lie at. */
static bool is_host_object(const struct device *d, const struct span *v, const unsigned char *args)
{
    uint64_t w = 1;
    if (v->bytes == sizeof w)
        memcpy(&w, args + v->at, sizeof w);
    return w % sizeof w == 0 && is_like_host(d, w);
}

/* The word is the address of an object of the host's, in memory that is mapped, or was when it was asked about. */
static bool is_mapped_object(const struct device *d, struct span *v, const unsigned char *args)
{
    unsigned char in;
    uint64_t w;
    if (!is_host_object(d, v, args))
        return false;
    memcpy(&w, args + v->at, sizeof w);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (w != v->mapped && mincore((void *)((uintptr_t)w & ~(page - 1)), page, &in)) /* fails where nothing is mapped */
        return false;
    v->mapped = w;
    return true;
}

/* The word held the address of one object of the host's in the iteration before, and holds that of another one now: an address that the stack, or an
 * object in the place of an earlier one, has left there. The older one is asked about first: it is the one that was asked about an iteration ago. */
static bool is_other_object(const struct device *d, struct span *v, const unsigned char *now, const unsigned char *then)
{
    return is_mapped_object(d, v, then) && is_mapped_object(d, v, now);
}

/* The word was, or is, what stacks hold. Of an address only two bytes of the upper half are not zero; both must be others now, as where it
 * comes after a number. */
static bool is_litter(const struct device *d, const unsigned char *now, const unsigned char *then, uint32_t bytes)
{
    const uint8_t other = other_bytes(now, then, bytes);
    return like_litter(other) || (bytes == 8 && like_litter(other & 0x0f) && (other & 0x30) == 0x30 &&
                                  (is_host_address(d, now) || is_host_address(d, then)));
}

static uint64_t grown_by(const unsigned char *now, const unsigned char *then, uint32_t bytes)
{
    uint64_t a = 0, b = 0;
    memcpy(&a, now, bytes);
    memcpy(&b, then, bytes);
    return a - b;
}

/* The word has changed for the nth time, and is to be tried, whatever is known of it. */
static bool is_tried_again(const struct span *v, uint32_t nth)
{
    return nth >= TRIED_AGAIN && (is_padding(v) && v->tried ? nth / 2 >= v->tried : !(nth & (nth - 1)));
}

/* Only in bytes that have changed before: beside a number, or beside bytes that nobody fills, there may be a flag in the same word. But a
 * number that grows by the same each time comes to a byte that it had not reached. */
static bool free_to_vary(const struct device *d, struct span *v, const struct rt_op *op, const struct rt_op *last)
{
    const unsigned char *now = op->args + v->at, *then = last->args + v->at;
    const uint8_t other = other_bytes(now, then, v->bytes);
    const bool again = is_tried_again(v, v->row + 1);
    const uint8_t least = v->spare && is_litter(d, now, then, v->bytes) ? 1 : PADDING_AFTER;
    uint8_t idle = counted(v->idle_byte, least) | v->lent_bytes;
    if (is_padding(v) && other & ~idle && !(other & 0xf0) && (idle & 7) == 7 && v->hosts >= HOST_AFTER && is_mapped_object(d, v, op->args))
        idle |= 8;
    if (is_padding(v) && !(other & ~idle) && (v->spare || !again))
        return true;
    if (v->host_idle && v->idle != MATTERS && is_other_object(d, v, op->args, last->args))
        return true;
    if (v->row < NUMBER_AFTER || again)
        return false;
    return !(other & ~counted(v->changed, PADDING_AFTER)) || (v->steady_for >= NUMBER_AFTER && grown_by(now, then, v->bytes) == v->step);
}

static bool differs(const struct span *v, const struct rt_op *op, const struct rt_op *last)
{
    return memcmp(op->args + v->at, last->args + v->at, v->bytes) != 0;
}

static bool differs_anywhere(const struct arg_watch *w, const struct rt_op *op, const struct rt_op *last)
{
    for (uint32_t i = 0; i < w->n_varying; i++)
        if (differs(&w->varying[i], op, last))
            return true;
    return false;
}

static uint32_t first_difference(const struct span *s, const unsigned char *now, const unsigned char *then)
{
    uint32_t at = s->at;
    while (now[at] == then[at])
        at++;
    return at;
}

enum args_change args_compare(struct device *d, const struct rt_op *op, uint32_t *offset)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    enum args_change change = ARGS_SAME;
    if (op->kind != OP_KERNEL || !last->args)
        return ARGS_SAME;
    for (uint32_t i = 0; i < w->n_varying; i++) {
        struct span *v = &w->varying[i];
        if (!differs(v, op, last)) {
            v->steady_for = 0;
            v->row = is_padding(v) ? v->row : v->row >= NUMBER_AFTER && like_litter(counted(v->changed, 1)) ? NUMBER_AFTER - 1 : 0;
            v->tried = v->tried < v->row ? v->tried : v->row;
            continue;
        }
        if (change != ARGS_SURPRISE)
            change = free_to_vary(d, v, op, last) ? ARGS_VARIED : ARGS_SURPRISE;
        *offset = first_difference(v, op->args, last->args);
    }
    for (uint32_t i = 0; i < w->n_constant; i++)
        if (memcmp(op->args + w->constant[i].at, last->args + w->constant[i].at, w->constant[i].bytes)) {
            *offset = first_difference(&w->constant[i], op->args, last->args);
            return ARGS_SURPRISE;
        }
    return change;
}

/* Where the word, or the parameter, that this byte is in ends: a word may hold two small parameters, a count and a flag, say, of which one is constant. */
static uint32_t word_end(const struct rt_op *op, uint32_t at)
{
    const uint32_t end = (at & ~7u) + 8;
    const int param = op->func->known && !op->packed ? func_param_at(op->func, at) : -1;
    const uint32_t to = param < 0 ? end : op->func->offset[param] + op->func->size[param];
    return to < end ? to : end;
}

/* Words of `w` that differ leave the constant ones: whole words of structs, whole small parameters. */
static int cut(struct arg_watch *w, const struct rt_op *op, const unsigned char *then)
{
    const unsigned char *now = op->args;
    struct arg_watch out = {0};
    int r = 0;
    for (uint32_t i = 0; i < w->n_constant && !r; i++) {
        struct span s = w->constant[i];
        for (uint32_t at = s.at, next; at < s.at + s.bytes && !r; at = next) {
            next = word_end(op, at);
            if (next > s.at + s.bytes)
                next = s.at + s.bytes;
            if (!memcmp(now + at, then + at, next - at))
                r = push(&out.constant, &out.n_constant, &out.cap_constant, at, next - at);
            else
                r = add_varying(w, at, next - at);
        }
    }
    if (r) {
        free(out.constant);
        return r;
    }
    free(w->constant);
    w->constant = out.constant;
    w->n_constant = out.n_constant;
    w->cap_constant = out.cap_constant;
    return 0;
}

/* ---- places alike ---------------------------------------------------------------------------------------------------- */

static const struct span *varying_at(const struct arg_watch *w, uint32_t at)
{
    for (uint32_t i = 0; i < w->n_varying; i++)
        if (w->varying[i].at == at)
            return &w->varying[i];
    return NULL;
}

/* Bit i: byte i did not matter so often, at least, where it was another one. */
static uint8_t seen_idle(const struct span *v, uint8_t least)
{
    return v && v->idle && v->idle != MATTERS ? counted(v->idle_byte, least) | v->lent_bytes : 0;
}

/* Bit i: byte i of the word is idle there; or belongs to an operand of the recorded op, an address or a tensor map. */
static uint8_t not_watched(const struct record *r, const struct rec_op *o, uint32_t at)
{
    const uint32_t idle = recording_idle_from(r, o, at);
    if (idle < at + 8)
        return (uint8_t)(0xff << idle % 8);
    for (uint32_t k = o->first; k < o->first + o->n && r->operands[k].offset <= at; k++)
        if (at < r->operands[k].offset + (r->operands[k].map ? TENSOR_MAP_BYTES : 8))
            return 0xff;
    return 0;
}

/* The launch at hand and the latest one at place `other` differ in nothing but addresses, and bytes that were seen not to matter at one of the two places.
 * but_idle: words may differ, too, that trials with decoys have found idle at `other` and that the latest launch there cannot have used. */
static bool agree(struct device *d, const struct rt_op *op, uint32_t other, bool but_idle)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct rt_op *last = &d->ex->learnt.caps[other];
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos], *theirs = &d->ex->now.watch[other];
    if (but_idle && (theirs->loose || theirs->in_doubt))
        return false;
    if (theirs->unproved || theirs->asks_again || last->kind != OP_KERNEL || !last->args || last->func != op->func || last->packed || last->arg_bytes != op->arg_bytes)
        return false;
    for (uint32_t p = 0; p < op_pieces(op); p++) {
        uint32_t to, at = op_piece(op, p, &to);
        for (uint32_t next; at < to; at = next) {
            next = (at & ~7u) + 8 < to ? (at & ~7u) + 8 : to;
            uint8_t others = other_bytes(op->args + at, last->args + at, next - at);
            const uint32_t idle = but_idle && at % 8 == 0 ? recording_idle_from(r, &r->ops[other], at) : at + 8;
            others &= (uint8_t)((1u << (idle - at)) - 1);
            const uint8_t least = is_litter(d, op->args + at, last->args + at, next - at) ? 1 : PADDING_AFTER;
            if (others && (others & ~(seen_idle(varying_at(w, at), least) | seen_idle(varying_at(theirs, at), least) |
                                      (not_watched(r, &r->ops[d->ex->now.pos], at) & not_watched(r, &r->ops[other], at)))))
                return false;
        }
    }
    return true;
}

/* Adds what other places have seen of the word, in the bytes that are others now: beside them may be a flag, which none of them can vouch
 * for. False: the word mattered at one of them. */
static bool ask_others(struct device *d, const bool *asked, struct span *v, uint8_t other_now)
{
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    uint32_t times = 0;
    uint32_t bytes[8] = {0};
    for (uint32_t i = 0; i < w->n_alike && i < ALIKE_MOST; i++) {
        const uint32_t other = d->ex->now.alike[w->alike + i];
        const struct span *x = asked[i] ? varying_at(&d->ex->now.watch[other], v->at) : NULL;
        if (!x || x->bytes != v->bytes)
            continue;
        if (x->idle == MATTERS)
            return false;
        times += x->idle - x->lent;
        for (int b = 0; b < 8; b++)
            bytes[b] += x->idle_byte[b];
    }
    const uint32_t own = v->idle - v->lent;
    if (own + times < (own ? PADDING_AFTER : 2 * PADDING_AFTER))
        return true;
    v->lent = own < PADDING_AFTER ? PADDING_AFTER - own : 0;
    v->idle = own + v->lent;
    for (int b = 0; b < 8; b++)
        v->lent_bytes |= (uint8_t)((bytes[b] + v->idle_byte[b] >= (v->idle_byte[b] ? PADDING_AFTER : 2 * PADDING_AFTER)) << b) & other_now;
    return true;
}

/* The first word that is not as it was an iteration ago, and idle at so many places where the kernel has the same bytes: it is idle here too. UINT32_MAX:
 * there is none. */
static uint32_t idle_elsewhere(struct device *d, const struct rt_op *op, const bool *agrees)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    for (uint32_t k = 0; k < w->n_varying; k++) {
        const struct span *v = &w->varying[k];
        const uint32_t word = v->at & ~7u;
        uint32_t times = 0, from = 0;
        if (v->idle == MATTERS || word + 8 > op->arg_bytes || !differs(v, op, &d->ex->learnt.caps[d->ex->now.pos]))
            continue;
        for (uint32_t i = 0; i < w->n_alike && i < ALIKE_MOST; i++) {
            const uint32_t idle = agrees[i] ? recording_idle_from(r, &r->ops[d->ex->now.alike[w->alike + i]], word) : word + 8;
            times += idle < word + 8;
            from = idle < word + 8 && idle > from ? idle : from;
        }
        uint64_t now;
        memcpy(&now, op->args + word, sizeof now);
        const uint32_t part = words_idle_part(word, now);
        from = part > from ? part : from;
        if (times >= IDLE_AT && from < v->at + v->bytes)
            return from;
    }
    return UINT32_MAX;
}

/* Which of the places alike agree(); true: one does, at least. */
static bool who_agrees(struct device *d, const struct rt_op *op, bool but_idle, bool agrees[ALIKE_MOST])
{
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    bool any = false;
    for (uint32_t i = 0; i < w->n_alike && i < ALIKE_MOST; i++) {
        const uint32_t other = d->ex->now.alike[w->alike + i];
        agrees[i] = other != d->ex->now.pos && agree(d, op, other, but_idle);
        any |= agrees[i];
    }
    return any;
}

/* Frees the words that trials with decoys have found idle at other places. True: nothing differs from the iteration before any more. */
static bool free_idle_elsewhere(struct device *d, const struct rt_op *op)
{
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    bool agrees[ALIKE_MOST];
    if (!w->in_doubt && who_agrees(d, op, true, agrees))
        for (uint32_t from; (from = idle_elsewhere(d, op, agrees)) != UINT32_MAX;)
            if (args_free_word(d, from))
                break;
    return !differs_anywhere(w, op, &d->ex->learnt.caps[d->ex->now.pos]);
}

bool args_known_alike(struct device *d, const struct rt_op *op)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    bool agrees[ALIKE_MOST];
    if (w->n_alike < 2 || cut(w, op, last->args))
        return false;
    if (free_idle_elsewhere(d, op))
        return true;
    const bool any = who_agrees(d, op, false, agrees); /* asked after words were freed: a freed word need not agree */
    for (uint32_t i = 0; i < w->n_varying && any; i++) {
        struct span *v = &w->varying[i];
        const uint8_t other = other_bytes(op->args + v->at, last->args + v->at, v->bytes);
        if (!other || free_to_vary(d, v, op, last))
            continue;
        if (v->idle == MATTERS || !is_litter(d, op->args + v->at, last->args + v->at, v->bytes) || !ask_others(d, agrees, v, other) ||
            !free_to_vary(d, v, op, last))
            return false;
    }
    return any;
}

uint32_t args_surprised(struct device *d) { return ++d->ex->now.watch[d->ex->now.pos].surprises; }

void args_doubt_idle(struct device *d, bool doubt) { d->ex->now.watch[d->ex->now.pos].in_doubt = doubt; }

void args_may_use_others(struct device *d, bool may)
{
    d->ex->now.watch[d->ex->now.pos].loose_now = may;
    d->ex->now.watch[d->ex->now.pos].covered = false;
}

void args_are_covered(struct device *d)
{
    struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    w->in_doubt = w->loose_now = w->covered = true;
}

void args_unproved(struct device *d, const struct rt_op *op)
{
    struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    w->unproved = w->in_doubt = true;
    w->loose = false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        w->loose |= !op->operands[i].regular;
}

bool args_ask_again(const struct device *d) { return d->ex->now.watch[d->ex->now.pos].asks_again || args_are_unproved(d, d->ex->now.pos); }

bool args_are_unproved(const struct device *d, uint32_t at) { return d->ex->now.watch[at].unproved; }

bool args_idle_in_doubt(const struct device *d) { return d->ex->now.watch[d->ex->now.pos].in_doubt; }

/* `then` is an address; or the bytes are a part of a word that is an address now, or would be one with them: of what lay there in another iteration,
 * or of anything. Something else lies there now. A trial that writes there destroys it, and nobody sees that. */
static bool puts_address_back(struct device *d, const struct rt_op *op, const struct span *v, const unsigned char *then)
{
    const uint32_t at = v->at & ~7u;
    unsigned char word[8];
    uint64_t now, mixed;
    if (v->bytes == 8) {
        memcpy(&mixed, then, 8);
        return address_is_known(d, mixed);
    }
    if (at + 8 > op->arg_bytes)
        return false;
    memcpy(word, op->args + at, 8);
    memcpy(&now, word, 8);
    memcpy(word + (v->at - at), then, v->bytes);
    memcpy(&mixed, word, 8);
    return address_may_have_been_had(d, now) || address_may_have_been_had(d, mixed);
}

/* A parameter of eight bytes. What has looked like an address may be a number next time: no byte of it is padding. */
static bool is_whole_parameter(const struct rt_op *op, const struct span *v)
{
    const int i = func_param_at(op->func, v->at);
    return i >= 0 && op->func->size[i] == 8;
}

/* Nobody may have filled it: a word of a struct; a parameter of one byte, as a functor without members takes (PyTorch's rsqrt), where its values are
 * larger than those of a flag or a mode; or one of eight bytes that held the host's addresses (what PyTorch's pow takes, and does not use). */
static bool may_be_unfilled(const struct device *d, const struct rt_op *op, struct span *v)
{
    enum { FLAGS = 16 };
    const unsigned char *last = d->ex->learnt.caps[d->ex->now.pos].args;
    const int i = func_param_at(op->func, v->at);
    return i >= 0 && (func_is_struct(op->func, (uint32_t)i) || (op->func->size[i] == 1 && (op->args[v->at] | last[v->at]) >= FLAGS) ||
                      is_other_object(d, v, op->args, last));
}

/* What the op can run with in place of a word that may be padding: what the word held an iteration ago, or before it changed
 * last. NULL: the op must not, or it would be the same. No address is put back, and no part of one. A word that changed in the iteration
 * before too, and was not seen to be idle, is more likely a number: beside it nothing could be told of the others. In every fourth trial it is put back
 * all the same: where all such words are padding (strides of dimensions that a tensor does not have), each would wait for the others for good. */
static const unsigned char *may_put_back(struct device *d, const struct rt_op *op, struct span *v, bool all)
{
    const unsigned char *then = d->ex->learnt.caps[d->ex->now.pos].args + v->at;
    if (v->idle == MATTERS || !may_be_unfilled(d, op, v))
        return NULL;
    if (!memcmp(then, op->args + v->at, v->bytes)) {
        then = v->was;
        if (!all || !v->was_other || !memcmp(then, op->args + v->at, v->bytes))
            return NULL;
    } else if (v->row && !v->idle && !d->ex->now.watch[d->ex->now.pos].bold)
        return NULL;
    return puts_address_back(d, op, v, then) ? NULL : then;
}

/* What may_put_back() says, for the latest trial. A count or a place that is put back alone, or beside another address than it stood with, sends the op
 * where it has never been. So the bytes of the iteration before are put back all together; else, and of older ones, what stacks leave. */
static const unsigned char *to_put_back(struct device *d, const struct rt_op *op, struct span *v)
{
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    const unsigned char *then = may_put_back(d, op, v, w->all_back);
    const bool any = !w->litter_back && differs(v, op, &d->ex->learnt.caps[d->ex->now.pos]);
    uint64_t word;
    if (then && !any && recording_word_is_idle(&d->ex->learnt.rec, &d->ex->learnt.rec.ops[d->ex->now.pos], v->at & ~7u)) {
        memcpy(&word, op->args + (v->at & ~7u), 8);
        if (address_is_known(d, word))
            return NULL; /* a part of an entry, which may have come into use */
    }
    return then && !any && !is_litter(d, op->args + v->at, then, v->bytes) ? NULL : then;
}

/* With the bytes of the iteration before the launch would be that one: all that differ can be put back but for addresses that were no operands,
 * and the operands are at the places in their buffers where they were. */
static bool is_like_before(struct device *d, const struct rt_op *op)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    for (uint32_t i = 0; i < w->n_varying; i++) {
        struct span *v = &w->varying[i];
        if (differs(v, op, last) && !may_put_back(d, op, v, false) && !puts_address_back(d, op, v, last->args + v->at))
            return false;
    }
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct rt_operand *a = &op->operands[i], *before = op_operand_at(last, a->offset);
        if (a->regular && (!before || before->delta != a->delta))
            return false;
    }
    return true;
}

/* It held an address of memory that we do not see, and may have been used: a count that is put back would send the op to what stands
 * there now. */
static bool was_elsewhere(struct device *d, const struct span *v, const unsigned char *then)
{
    uint64_t word;
    if (v->bytes < 8)
        return false;
    memcpy(&word, then + v->at, 8);
    return address_is_elsewhere(d, word);
}

bool args_before(struct device *d, const struct rt_op *op, bool all, unsigned char *out)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    bool any = false;
    w->whole_back = false;
    w->bold = w->surprises % BOLD_EACH == 0;
    if (op->kind != OP_KERNEL || !last->args || w->loose || cut(w, op, last->args))
        return false;
    memcpy(out, op->args, op->arg_bytes);
    bool whole = true;
    w->litter_back = !is_like_before(d, op);
    w->all_back = all;
    for (uint32_t i = 0; i < w->n_varying; i++) {
        struct span *v = &w->varying[i];
        if (differs(v, op, last) && was_elsewhere(d, v, last->args))
            return false;
        const unsigned char *then = to_put_back(d, op, v);
        whole &= then || !differs(v, op, last);
        if (then) {
            memcpy(out + v->at, then, v->bytes);
            any = true;
        }
    }
    w->whole_back = whole;
    return any;
}

bool args_were_all_put_back(const struct device *d) { return d->ex->now.watch[d->ex->now.pos].whole_back; }

/* Words of this struct that are known to be idle, or seen not to matter. */
static uint32_t idle_words_of(const struct device *d, const struct rt_op *op, int param)
{
    const struct record *r = &d->ex->learnt.rec;
    const struct rec_op *o = &r->ops[d->ex->now.pos];
    const struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    uint32_t n = 0;
    for (uint32_t i = o->idle; i < o->idle + o->n_idle; i++)
        n += func_param_at(op->func, r->idle_words[i]) == param;
    for (uint32_t i = 0; i < w->n_varying; i++)
        n += w->varying[i].idle && w->varying[i].idle != MATTERS && func_param_at(op->func, w->varying[i].at) == param;
    return n;
}

void args_accept(struct device *d, const struct rt_op *op, enum args_mattered mattered)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    if (op->kind != OP_KERNEL || !last->args)
        return;
    if (mattered == ARGS_MATTERED && w->bold)
        mattered = ARGS_UNTRIED; /* it was a number, most likely */
    if (cut(w, op, last->args))
        log_once(SAY_DEBUG, "host memory is short: arguments that vary are not remembered");
    uint32_t n = 0; /* of the words that were put back; where they made a difference, one alone is known to */
    for (uint32_t i = 0; i < w->n_varying && mattered == ARGS_MATTERED; i++)
        n += to_put_back(d, op, &w->varying[i]) != NULL;
    for (uint32_t i = 0; i < w->n_varying; i++) {
        struct span *v = &w->varying[i];
        const unsigned char *then = mattered != ARGS_UNTRIED ? to_put_back(d, op, v) : NULL;
        if (differs(v, op, last) && (is_tried_again(v, v->row + 1) || (then && mattered == ARGS_IDLE)))
            v->tried = v->row + 1;
        if (then && mattered == ARGS_IDLE) {
            const uint8_t other = other_bytes(op->args + v->at, then, v->bytes);
            v->host_idle |= then == last->args + v->at && like_litter(other) && other & 0x0f && is_other_object(d, v, op->args, last->args);
            if (!is_whole_parameter(op, v)) {
                v->idle += v->idle < UINT32_MAX - 1;
                count_bytes(v->idle_byte, other);
            }
        } else if (then) {
            v->idle = n == 1 ? MATTERS : 0;
            v->host_idle = false;
            v->lent = 0;
            memset(v->idle_byte, 0, sizeof v->idle_byte);
            v->lent_bytes = 0;
            v->spare = false;
        }
        if (mattered == ARGS_MATTERED)
            v->was_other = false;
        if (!differs(v, op, last))
            continue;
        if (w->surprises && !w->loose) {
            memcpy(v->was, last->args + v->at, v->bytes);
            v->was_other = true;
        }
        count_bytes(v->changed, other_bytes(op->args + v->at, last->args + v->at, v->bytes));
        const uint64_t step = grown_by(op->args + v->at, last->args + v->at, v->bytes);
        v->hosts = !is_host_object(d, v, op->args) ? 0 : v->hosts < HOST_AFTER ? v->hosts + 1 : v->hosts;
        v->steady_for = step == v->step ? v->steady_for + (v->steady_for < NUMBER_AFTER) : 1;
        v->step = step;
        if (v->row < UINT32_MAX - 1)
            v->row++;
    }
    for (uint32_t i = 0; i < w->n_varying && mattered == ARGS_IDLE; i++) {
        struct span *v = &w->varying[i];
        if (v->idle && v->idle != MATTERS && !v->spare && idle_words_of(d, op, func_param_at(op->func, v->at)) >= MANY)
            v->spare = true;
    }
    w->loose = w->loose_now;
    w->asks_again = w->covered;
    w->covered = false;
    w->unproved = false;
}

static int without(struct span **list, uint32_t *n, uint32_t *cap, uint32_t at, uint32_t bytes)
{
    struct span *out = NULL;
    uint32_t m = 0, c = 0;
    int r = 0;
    for (uint32_t i = 0; i < *n && !r; i++) {
        struct span s = (*list)[i];
        uint32_t end = s.at + s.bytes;
        if (s.at >= at + bytes || end <= at) {
            r = push(&out, &m, &c, s.at, s.bytes);
            continue;
        }
        if (s.at < at)
            r = push(&out, &m, &c, s.at, at - s.at);
        if (!r && end > at + bytes)
            r = push(&out, &m, &c, at + bytes, end - at - bytes);
    }
    if (r) {
        free(out);
        return r;
    }
    free(*list);
    *list = out;
    *n = m;
    *cap = c;
    return 0;
}

int args_free_word(struct device *d, uint32_t offset)
{
    struct arg_watch *w = &d->ex->now.watch[d->ex->now.pos];
    const uint32_t word = rec_idle_word(offset), end = word + 8;
    int r = record_more_idle(&d->ex->learnt.rec, d->ex->now.pos, offset);
    if (!r)
        r = without(&w->constant, &w->n_constant, &w->cap_constant, offset, end - offset);
    if (r)
        return r;
    bool watched = offset == word; /* what of the word is to be */
    for (uint32_t i = 0; i < w->n_constant; i++)
        watched |= w->constant[i].at <= word && w->constant[i].at + w->constant[i].bytes > word;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->n_varying; i++)
        if (w->varying[i].at >= end || w->varying[i].at + w->varying[i].bytes <= offset) {
            watched |= w->varying[i].at == word;
            w->varying[kept++] = w->varying[i];
        }
    w->n_varying = kept;
    return watched ? 0 : add_varying(w, word, offset - word);
}
