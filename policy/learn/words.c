/* Which of an op's argument words matter to it.
 *
 * Parameters that are structs passed by value carry entries which the program never filled: they hold pointers of calls long past,
 * other pointers in every iteration. Such a word is found by a test: a decoy takes its place, a range of addresses as long as the buffer, with
 * nothing behind it but one page of zeros mapped again and again, and the op runs once more. If every result is the same, the op
 * neither read nor wrote through the word. Danger: the word may be a number of four bytes, beside the upper half of an address that the stack
 * has left there. Any other number could send the op anywhere: so a decoy has the lower half of the address that it stands for, and the bytes
 * of that half that may be numbers are watched on (words_idle_part). Zeros are harmless where the buffer held an index or a count; where the
 * buffer held zeros itself they prove nothing, and the word counts as used.
 *
 * Danger: a kernel that does more with an address than to add what lies in its buffer faults where a decoy is, and a fault ends the
 * program. cuDNN's convolutions for Hopper do: they write tensor maps into the workspace that they share with their operands, and every page
 * of a decoy is the same page. So decoys take the place of three kinds of word alone. The first is a word in a struct that holds a list, many
 * addresses that follow each other. The other two need a launch without clusters of blocks (kernels that use tensor maps have clusters), of
 * which few words lead to the word's buffer: a word that was another address an iteration ago, and a word with many other addresses in its
 * struct. All other words stay operands, which costs memory and nothing else.
 *
 * Words are tested in groups, and a group that matters is tested again in halves. A list has many entries, the same ones in each iteration. An
 * entry is tested only where the answer changes what is kept: where an earlier launch of the iteration used the same buffer through the same
 * word, or where a later launch will (Adam's seven launches over fifty gradients: the last list alone is tested). An entry through which the
 * launch has changed its buffer is in use, and is not tested. A test that finds a word idle says so of this launch at its place in the iteration
 * alone. An op that selects by data may ignore a real operand once and read it another time: so a word that pointed at the same buffer one
 * iteration ago stays an operand.
 *
 * The tail of a list is an exception, since its words would make an op of ten tensors one of hundreds. A word belongs to a tail if it is
 * one of many idle ones in its struct, if a word before it there is in use, and if an earlier launch of the iteration had the same buffer in
 * the same word, and used it: that launch left the word there. A list that a word in memory shuts for the data of this iteration is no tail:
 * no earlier launch had its buffers there, or nothing before the word is in use. A buffer that outlives iterations stays an operand in any
 * case: an update may pass over many of them (parameters that have no gradient yet).
 */
#include "policy/learn/words.h"
#include "policy/learn/learn.h"
#include "policy/learn/pace.h"
#include "policy/memory/decoy.h"
#include "policy/iteration.h"
#include "policy/memory/room.h"
#include "policy/memory/slot.h"
#include "policy/memory/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MOST = 96 /* tests of one op */, WORDS_MOST = 3 /* words of a launch into one buffer */ };

struct word {
    uint32_t operand, param;
    CUdeviceptr decoy; /* stands for the word in a test */
    bool idle;
    bool found_idle; /* by a test, whether or not the word stays an operand */
    bool used;       /* the word by itself is known to matter */
    bool asks;       /* an entry of a list that is to be tested */
};

struct search {
    struct trial *t;
    struct word *w;
    unsigned char *args;
    uint32_t runs;
    bool clean; /* the latest run left every buffer as the program's run did */
    int failed; /* the first error of a run */
};

/* ---- decoys of zeros ------------------------------------------------------------------------------------------------- */

CUdeviceptr words_decoy(struct device *d, CUdeviceptr at, uint64_t bytes)
{
    const CUdeviceptr decoy = room_decoy(d, at, bytes);
    return decoy && !decoy_zero(d, decoy) ? decoy : 0;
}

int words_zeros(struct device *d, CUdeviceptr decoy, uint64_t bytes, uint64_t hash[2])
{
    struct decoy *y = d->mem.decoy;
    uint32_t k = 0;
    if (!decoy)
        return -EIO;
    while (k < DECOY_SIZES && y->zeros[k].bytes != bytes)
        k++;
    if (k == DECOY_SIZES) {
        const struct hash_range range = {decoy, bytes};
        k = y->next_size++ % DECOY_SIZES;
        y->zeros[k].bytes = 0;
        if (decoy_zero(d, decoy) || hashing_now(d, &range, 1, y->zeros[k].hash))
            return -EIO;
        y->zeros[k].bytes = bytes;
    }
    memcpy(hash, y->zeros[k].hash, sizeof y->zeros[k].hash);
    return 0;
}

bool words_decoy_is_written(struct device *d)
{
    const struct hash_range page = {d->mem.decoy ? d->mem.decoy->latest : 0, d->mem.gran};
    uint64_t zeros[2], now[2];
    return !page.ptr || hashing_now(d, &page, 1, now) || words_zeros(d, page.ptr, page.bytes, zeros) || !hashing_same(now, zeros);
}

/* ---- one test ------------------------------------------------------------------------------------------------------- */

/* True if the results are the same with decoys in all the words [from, to) together. */
static bool idle_together(struct search *s, uint32_t from, uint32_t to)
{
    struct trial *t = s->t;
    struct device *d = t->d;
    if (s->failed || s->runs == RUNS_MOST || !pace_left_ns(d)) {
        t->cut = true;
        return false;
    }
    s->runs++;
    memcpy(s->args, t->args ? t->args : t->op->args, t->op->arg_bytes);
    for (uint32_t i = from; i < to; i++) {
        const struct word *w = &s->w[i];
        memcpy(s->args + t->op->operands[w->operand].offset, &w->decoy, sizeof w->decoy);
    }
    s->failed = decoy_zero(d, s->w[from].decoy);
    if (!s->failed)
        s->failed = trial_again(t, s->args, POISON_FIRST);
    s->clean = !s->failed && trial_equal(t);
    return s->clean && !words_decoy_is_written(d); /* a write to the real buffer may have left the bytes that were there, and equal hashes then */
}

/* Finds the idle words of [from, to). `matters`: at least one of them is known to matter. `rough`: up to ROUGH words that matter together are not tested one by one. */
static void search(struct search *s, uint32_t from, uint32_t to, bool matters, bool rough)
{
    enum { ROUGH = 4, ONE_BY_ONE = 8 };
    if (from == to)
        return;
    if (!matters && idle_together(s, from, to)) {
        for (uint32_t i = from; i < to; i++)
            s->w[i].idle = s->w[i].found_idle = true;
        return;
    }
    if (to - from == 1)
        s->w[from].used = !s->t->cut;
    if (to - from == 1 || (rough && to - from <= ROUGH))
        return;
    const uint32_t step = to - from <= ONE_BY_ONE && !rough ? 1 : (to - from + 1) / 2;
    bool all_idle = true;
    for (uint32_t i = from; i < to; i += step) {
        const uint32_t end = i + step < to ? i + step : to;
        search(s, i, end, end == to && all_idle, rough); /* where all parts before are idle, the last part matters */
        for (uint32_t k = i; k < end; k++)
            all_idle &= s->w[k].idle;
    }
}

/* After a rough search of [from, to): tests words beside idle ones, one by one, for as long as these are idle. */
static void search_beside(struct search *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = to; i-- > from;)
        if (!s->w[i].idle && !s->w[i].used && i + 1 < to && s->w[i + 1].idle)
            search(s, i, i + 1, false, false);
    for (uint32_t i = from + 1; i < to; i++)
        if (!s->w[i].idle && !s->w[i].used && s->w[i - 1].idle)
            search(s, i, i + 1, false, false);
}

/* ---- which words ---------------------------------------------------------------------------------------------------- */

static bool is_address_at(const struct device *d, const struct rt_op *op, uint32_t at)
{
    CUdeviceptr p;
    memcpy(&p, op->args + at, sizeof p);
    return mem_in_reservation(d, p);
}

/* Words of a parameter that are addresses in the reservation, live or not: how many in all, and how many at most that follow each other. */
struct addresses {
    uint32_t all, row;
};

static struct addresses addresses_in(const struct device *d, const struct rt_op *op, int param)
{
    const uint32_t begin = op->func->offset[param], end = begin + op->func->size[param];
    struct addresses n = {0};
    uint32_t row = 0;
    for (uint32_t at = (begin + 7) & ~7u; at + 8 <= end; at += 8) {
        row = is_address_at(d, op, at) ? row + 1 : 0;
        n.all += row > 0;
        n.row = row > n.row ? row : n.row;
    }
    return n;
}

/* Many words of the launch lead to the same buffer, as into a workspace. */
static bool shares_its_buffer(const struct rt_op *op, uint32_t k)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        words += op->operands[i].slot == op->operands[k].slot;
    return words > WORDS_MOST;
}

static bool has_clusters(const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            return true;
    return false;
}

/* The struct parameter that has the word at this offset; -1: none. */
static int struct_at(const struct rt_op *op, uint32_t offset)
{
    const int param = func_param_at(op->func, offset);
    return param >= 0 && func_is_struct(op->func, (uint32_t)param) ? param : -1;
}

bool words_may_be_decoy(const struct device *d, const struct rt_op *op, uint32_t offset)
{
    const int param = struct_at(op, offset);
    return param >= 0 && (!has_clusters(op) || addresses_in(d, op, param).row > LEARN_FEW);
}

bool words_operand_may_be_decoy(const struct device *d, const struct rt_op *op, uint32_t k)
{
    const struct rt_operand *w = &op->operands[k];
    const int param = struct_at(op, w->offset);
    if (w->slot->points || w->map || param < 0)
        return false;
    const struct addresses n = addresses_in(d, op, param);
    return n.row > LEARN_FEW || (!has_clusters(op) && (!w->regular || n.all > LEARN_FEW) && !shares_its_buffer(op, k));
}

static bool is_candidate(const struct trial *t, uint32_t k, uint32_t *param)
{
    *param = (uint32_t)func_param_at(t->op->func, t->op->operands[k].offset);
    return words_operand_may_be_decoy(t->d, t->op, k);
}

/* A buffer that held zeros looks like its decoy: its words count as used. */
static int doubt_zeros(struct search *s, uint32_t n)
{
    struct trial *t = s->t;
    for (uint32_t k = 0; k < t->n; k++) {
        uint64_t zeros[2] = {0};
        for (uint32_t i = 0, asked = 0; i < n; i++) {
            const struct rt_operand *w = &t->op->operands[s->w[i].operand];
            if (!s->w[i].idle || w->slot != t->u[k].slot)
                continue;
            if (!asked++ && words_zeros(t->d, s->w[i].decoy - w->delta, w->slot->bytes, zeros))
                return -EIO;
            if (!hashing_same(t->u[k].before, zeros))
                continue;
            s->w[i].idle = false;
            log_say(SAY_DEBUG, "%s: the buffer of argument byte %u holds zeros: no test can tell whether the word is idle", t->op->func->name, w->offset);
        }
    }
    return 0;
}

static void take_out(struct search *s, uint32_t n, uint32_t *idle, uint32_t *n_idle)
{
    struct rt_op *op = s->t->op;
    uint32_t kept = 0, next = 0;
    for (uint32_t k = 0; k < op->n_operands; k++) {
        bool out = false;
        for (next = 0; next < n && !out; next++)
            out = s->w[next].operand == k && s->w[next].idle;
        if (out)
            idle[(*n_idle)++] = words_idle_part(op->operands[k].offset, op->operands[k].slot->va + op->operands[k].delta);
        else
            op->operands[kept++] = op->operands[k];
    }
    op->n_operands = kept;
}

/* The launch has changed the operand's buffer, and has no other word that leads to it. */
static bool changes_through(const struct trial *t, uint32_t operand)
{
    const struct slot *s = t->op->operands[operand].slot;
    uint32_t k = 0, words = 0;
    while (k < t->n && t->u[k].slot != s)
        k++;
    for (uint32_t i = 0; i < t->op->n_operands; i++)
        words += t->op->operands[i].slot == s;
    return k < t->n && t->u[k].changed && words == 1;
}

/* An earlier launch of the iteration used the buffer through the word at the same offset. */
static bool is_left_over(const struct device *d, const struct rt_operand *w)
{
    for (uint32_t i = d->ex->learnt.rec.n_ops; i-- > 0;) {
        const struct rt_op *op = &d->ex->learnt.caps[i];
        const struct rt_operand *then = op->kind == OP_KERNEL && op->arg_bytes > w->offset ? op_operand_at(op, w->offset) : NULL;
        if (then && then->slot == w->slot && then->serial == w->serial && !then->idle && !then->unasked)
            return true;
    }
    return false;
}

/* Moves the entries of the list [from, to) that are to be tested to its front. Returns where these end. */
static uint32_t whom_to_ask(struct search *s, uint32_t from, uint32_t to)
{
    uint32_t end = from;
    for (uint32_t i = from; i < to; i++) {
        struct word w = s->w[i];
        struct rt_operand *o = &s->t->op->operands[w.operand];
        w.used = changes_through(s->t, w.operand);
        w.asks = !w.used && (o->recurs || is_left_over(s->t->d, o));
        o->unasked = !w.used;
        if (w.asks && i > end)
            memmove(&s->w[end + 1], &s->w[end], (i - end) * sizeof w);
        s->w[w.asks ? end : i] = w;
        end += w.asks;
    }
    return end;
}

static bool have_decoys(struct search *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const struct rt_operand *o = &s->t->op->operands[s->w[i].operand];
        s->w[i].decoy = room_decoy(s->t->d, o->slot->va, o->slot->bytes);
        if (!s->w[i].decoy)
            return false;
        s->w[i].decoy += o->delta;
    }
    return true;
}

/* The offset of the first word that is in use, or whose buffer is changed, in the struct of the words [from, to); UINT32_MAX: none. */
static uint32_t first_in_use(const struct search *s, uint32_t from, uint32_t to)
{
    const struct trial *t = s->t;
    uint32_t first = UINT32_MAX;
    for (uint32_t i = from; i < to; i++)
        if (s->w[i].used && t->op->operands[s->w[i].operand].offset < first)
            first = t->op->operands[s->w[i].operand].offset;
    for (uint32_t i = 0; i < t->op->n_operands; i++) {
        const struct rt_operand *w = &t->op->operands[i];
        for (uint32_t k = 0; k < t->n && w->regular && w->offset < first; k++)
            if (t->u[k].changed && t->u[k].slot == w->slot && func_param_at(t->op->func, w->offset) == (int)s->w[from].param)
                first = w->offset;
    }
    return first;
}

/* The entries [end, to) of a list were not tested. Where no word is known to be in use before the first idle one in [from, end), the untested entries before that one are
 * tested, all together. Returns the offset from which on a word is in use; UINT32_MAX: none. */
static uint32_t ask_who_comes_before(struct search *s, uint32_t from, uint32_t end, uint32_t to)
{
    const struct rt_operand *w = s->t->op->operands;
    uint32_t in_use = first_in_use(s, from, to), idle = UINT32_MAX, before = end;
    for (uint32_t i = from; i < end; i++)
        if (s->w[i].idle && w[s->w[i].operand].offset < idle && is_left_over(s->t->d, &w[s->w[i].operand]))
            idle = w[s->w[i].operand].offset;
    while (before < to && w[s->w[before].operand].offset < idle)
        before++;
    if (idle == UINT32_MAX || in_use < idle || before == end)
        return in_use;
    if (!have_decoys(s, end, before)) {
        s->t->cut = true;
        return in_use;
    }
    const bool none = idle_together(s, end, before);
    for (uint32_t i = end; i < before; i++)
        s->w[i].found_idle = none;
    return none || s->t->cut ? in_use : w[s->w[before - 1].operand].offset;
}

/* Leaves `idle` to the tail of the list [from, to) alone: the idle entries after the offset `in_use` that an earlier launch left there. The other entries stay operands, and
 * are marked (`idle`, `unasked`). No entry is taken for granted to be in use: a word in memory may have shut the list for the data of this iteration. */
static void keep_all_but_tails(struct search *s, uint32_t from, uint32_t to, uint32_t in_use)
{
    for (uint32_t i = from; i < to; i++) {
        struct rt_operand *w = &s->t->op->operands[s->w[i].operand];
        w->idle = s->w[i].idle;
        w->unasked = !s->w[i].used && !s->w[i].found_idle;
        s->w[i].idle = s->w[i].idle && in_use < w->offset && is_left_over(s->t->d, w);
    }
}

/* Takes from `use` what is known of the words [from, to). */
static void look_up(struct search *s, uint32_t from, uint32_t to, const uint8_t *use)
{
    for (uint32_t i = from; i < to; i++) {
        s->w[i].idle = s->w[i].found_idle = use[s->w[i].operand] == KNOWN_IDLE;
        s->w[i].used = use[s->w[i].operand] >= KNOWN_READ;
    }
}

static uint32_t list_end(const struct search *s, uint32_t from, uint32_t n)
{
    uint32_t to = from;
    while (to < n && s->w[to].param == s->w[from].param)
        to++;
    return to;
}

/* Finds the tail of the list [from, to), regular words of one struct. */
static void find_tail(struct search *s, uint32_t from, uint32_t to, const uint8_t *use)
{
    uint32_t end = from, idle = 0;
    bool rough = true; /* true: no later list wants to know whether an entry was in use here */
    for (; end < to && s->w[end].asks; end++)
        rough &= !s->t->op->operands[s->w[end].operand].recurs;
    if (use)
        look_up(s, from, to, use);
    else
        search(s, from, end, false, rough);
    if (!use && rough)
        search_beside(s, from, end);
    for (uint32_t i = from; i < to; i++)
        idle += s->w[i].idle;
    for (uint32_t i = from; i < to && idle <= LEARN_FEW; i++)
        s->w[i].idle = false;
    keep_all_but_tails(s, from, to, use ? first_in_use(s, from, to) : ask_who_comes_before(s, from, end, to));
}

/* Notes what tests have shown of the words, for tracer/known. */
static void note_uses(const struct search *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (s->w[i].idle || s->w[i].used)
            s->t->word[s->w[i].operand] = s->w[i].idle ? KNOWN_IDLE : KNOWN_READ;
}

bool words_are_known(const struct trial *t, const uint8_t *use)
{
    uint32_t param;
    for (uint32_t k = 0; k < t->op->n_operands; k++)
        if (use[k] == KNOWN_UNTRIED && !t->op->operands[k].regular && is_candidate(t, k, &param))
            return false;
    return true;
}

int words_try(struct trial *t, const uint8_t *use, uint32_t *idle, uint32_t *n_idle)
{
    struct rt_op *op = t->op;
    struct search s = {.t = t};
    uint32_t n = 0, regular = 0, param;
    for (uint32_t k = 0; k < op->n_operands; k++)
        n += is_candidate(t, k, &param);
    if (!n || op->packed || !op->func->known)
        return 0;
    s.w = calloc(n, sizeof *s.w);
    s.args = malloc(op->arg_bytes + 16);
    int r = s.w && s.args ? 0 : -ENOMEM;
    n = 0;
    for (int pass = 0; pass < (t->planned ? 1 : 2) && !r; pass++) { /* pass 0: words that held another address one iteration ago; pass 1: the rest */
        regular = n;
        for (uint32_t k = 0; k < op->n_operands; k++) {
            if (!is_candidate(t, k, &param) || op->operands[k].regular != (pass == 1) || (pass == 1 && !rows_is_new(t->d, op->operands[k].slot)))
                continue;
            s.w[n++] = (struct word){.operand = k, .param = param};
        }
    }
    if (t->planned)
        regular = n;
    bool asks = regular > 0;
    for (uint32_t i = regular, to, end; i < n && !r; i = to) {
        to = list_end(&s, i, n);
        end = to - i <= LEARN_FEW ? i : use ? to : whom_to_ask(&s, i, to);
        asks |= end > i;
    }
    bool can = !r && asks;
    if (can && !use) {
        can = !trial_save_all(t) && have_decoys(&s, 0, regular);
        for (uint32_t i = regular; i < n && can; i++)
            can = !s.w[i].asks || have_decoys(&s, i, i + 1);
    }
    t->cut |= asks != can;
    if (can) {
        if (use)
            look_up(&s, 0, regular, use);
        else
            search(&s, 0, regular, false, false);
        for (uint32_t i = regular, to; i < n; i = to) {
            to = list_end(&s, i, n);
            if (to - i > LEARN_FEW)
                find_tail(&s, i, to, use);
        }
        r = s.failed ? s.failed : use ? 0 : doubt_zeros(&s, n);
        if (!r && s.runs && !s.clean) { /* puts memory back as the program's run left it */
            r = trial_again(t, NULL, POISON_FIRST);
            if (!r && !trial_equal(t))
                r = -EIO;
        }
        note_uses(&s, n);
    }
    if (!r)
        take_out(&s, n, idle, n_idle);
    free(s.w);
    free(s.args);
    return r;
}
