#include "policy/plan/proof.h"
#include "policy/learn/again.h"
#include "policy/learn/probe.h"
#include "policy/learn/words.h"
#include "policy/memory/foreign.h"
#include "policy/memory/slot.h"
#include "policy/plan/address.h"
#include "policy/plan/rebuild.h"
#include "policy/process/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- a trial ------------------------------------------------------------------------------------------------------- */

/* Words of structs that are known to be idle, or were null in the iteration before, and point now at memory that we do not see: their
 * offsets. An entry that the program fills may be among them: the trial has to tell. */
enum { HIDDEN_MOST = 256 };
struct hidden {
    uint32_t offset[HIDDEN_MOST], n;
};

static void find_hidden(struct device *d, const struct rt_op *op, const struct rec_op *o, struct hidden *out)
{
    const struct rt_op *last = &d->ex->learnt.caps[d->ex->now.pos];
    for (uint32_t i = 0; i < op_pieces(op) && op->func->known && !op->packed && last->args; i++) {
        uint32_t to, at = op_piece(op, i, &to);
        for (at = (at + 7) & ~7u; func_is_struct(op->func, i) && at + 8 <= to && out->n < HIDDEN_MOST; at += 8) {
            uint64_t now, then;
            memcpy(&now, op->args + at, 8);
            memcpy(&then, last->args + at, 8);
            if ((!then || recording_word_is_idle(&d->ex->learnt.rec, o, at)) && !foreign_lookup(d, now) && address_is_elsewhere(d, now) &&
                words_may_be_decoy(d, op, at))
                out->offset[out->n++] = at;
        }
    }
}

/* Another word of the launch stands for the recorded buffer b. */
static bool stands_elsewhere(struct device *d, const struct rt_op *op, int32_t b)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].regular && d->ex->now.bind[b] == (int32_t)op->operands[i].slot->id)
            return true;
    return false;
}

/* The words that were recorded and hold no address now: nothing that the driver knows lies there, so they are idle, but for what may be
 * numbers (words_idle_part). A null pointer may mean something: the trial has to say that the op does what it did, without a buffer that
 * it only read, or has by another word. */
static bool less_is_harmless(struct device *d, const struct rt_op *op, const struct rec_op *o)
{
    uint32_t i = 0;
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *w = &d->ex->learnt.rec.operands[k];
        while (i < op->n_operands && op->operands[i].offset < w->offset)
            i++;
        if ((i < op->n_operands && op->operands[i].offset == w->offset) || recording_word_is_idle(&d->ex->learnt.rec, o, w->offset))
            continue;
        uint64_t word;
        memcpy(&word, op->args + w->offset, 8);
        if (!word && !w->map && (w->mode == REC_READ || stands_elsewhere(d, op, w->buf)))
            continue;
        const struct slot *s = cursor_slot(d, w->buf);
        const uint32_t part = s ? words_idle_part(w->offset, s->va + w->delta) : w->offset + 4;
        if (w->map || !word || address_is_elsewhere(d, word) || args_free_word(d, part)) {
            log_say(SAY_DEBUG, "%s: the recorded address at argument byte %u is %s now", op->func->name, w->offset,
                    word ? "one that we do not see" : "null");
            return false;
        }
    }
    return true;
}

static void free_words(struct device *d, const struct rec_op *o, const uint32_t *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!recording_word_is_idle(&d->ex->learnt.rec, o, rec_idle_word(at[i])) && args_free_word(d, at[i]))
            return; /* they are found again */
}

static void count_trial(struct device *d)
{
    args_may_use_others(d, false);
    d->ex->now.tried++;
    stats_tried(d);
}

static enum args_mattered what_mattered(const struct again *again)
{
    return !again->other ? ARGS_UNTRIED : again->other_is_same ? ARGS_IDLE : ARGS_MATTERED;
}

/* 0; -EAGAIN: it was not run; -ECANCELED: it has run, and done something else. `known`: it has exactly the recorded operands. Then its
 * second run may have the bytes of the iteration before: a launch that has been, and has changed nothing but what was recorded. */
static int light_drv(struct device *d, struct rt_op *op, const struct rec_op *o, bool known, enum args_mattered *mattered, int *code)
{
    struct again again = {.light = true};
    if (!less_is_harmless(d, op, o))
        return -EAGAIN;
    if (known && args_before(d, op, false, d->ex->now.other_args))
        again.other = d->ex->now.other_args;
    int r = probe_again_drv(d, op, &again, code);
    if (!r) {
        *mattered = what_mattered(&again);
        count_trial(d);
    }
    return r;
}

/* Runs the launch as a trial: its effects must be the recorded ones, and the words that point elsewhere idle. Then these may hold
 * anything from now on. 0; -EAGAIN: it was not run, or what it did was undone. */
static int trial_drv(struct device *d, struct rt_op *op, bool whole, const struct hidden *hidden, enum args_mattered *mattered, int *code)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[d->ex->now.pos];
    struct again again = {.repeats = !o->why_opaque, .hidden = hidden->offset, .n_hidden = hidden->n, .doubt = args_idle_in_doubt(d)};
    if (!less_is_harmless(d, op, o))
        return -EAGAIN;
    if (whole && args_before(d, op, true, d->ex->now.other_args))
        again.other = d->ex->now.other_args;
    again.doubt |= !args_were_all_put_back(d); /* a count that was not put back may have brought an idle word into use */
    if (probe_again_drv(d, op, &again, code))
        return -EAGAIN;
    *mattered = what_mattered(&again);
    free_words(d, o, again.idle, again.n_idle);
    for (uint32_t i = 0; i < hidden->n; i++) {
        uint64_t word;
        memcpy(&word, op->args + hidden->offset[i], 8);
        const uint32_t part = words_idle_part(hidden->offset[i], word);
        free_words(d, o, &part, 1);
    }
    args_doubt_idle(d, false);
    count_trial(d);
    if (again.covered)
        args_are_covered(d);
    log_say(SAY_DEBUG, "%s does what it did: %u words of its arguments are idle%s", op->func->name, again.n_idle,
            *mattered == ARGS_IDLE ? ", and so is what changed" : "");
    return 0;
}

/* ---- a look -------------------------------------------------------------------------------------------------------- */

/* Whole trials of what needs none come at powers of two. What may be repeated has them at its first surprises too: its structs are small,
 * and what is padding in them is known soon. */
enum { TRIED_FIRST = 2 };

static bool is_trials_turn(uint32_t nth, bool look)
{
    if (!look && nth <= TRIED_FIRST)
        return true;
    return nth > 1 && !(nth & (nth - 1));
}

/* What the program holds and, for a look, the op is not known to change. What the program has freed may hold anything: natively
 * another's data may be there by now. False: too many. */
static bool watch(struct device *d, const struct rt_op *op, struct proof *p, bool look)
{
    const uint64_t walk = ++d->mem.walk, number = ++d->mem.op_at_hand;
    const uint32_t most = look ? hashing_around_most(d) : WATCHED_MAX;
    for (uint32_t i = 0; i < op->n_operands && most; i++) {
        struct slot *s = op->operands[i].slot;
        if (s->visited_in == walk || !s->live || (look ? probe_may_change(op, s) : s->state == SLOT_LOST))
            continue;
        if (p->n_watched == most)
            return false;
        s->visited_in = walk;
        s->needed_by = number;
        p->watched[p->n_watched++] = s;
    }
    return most > 0;
}

/* Every buffer that the launch could corrupt is unused by the replays that leaving would run. */
static bool may_be_left_after(struct device *d, const struct rt_op *op)
{
    uint8_t *source = rebuild_sources(d, d->ex->now.pos);
    bool may = source != NULL;
    for (uint32_t i = 0; i < op->n_operands && may; i++) {
        const struct slot *s = op->operands[i].slot;
        may = probe_may_change(op, s) || s->plan_buf < 0 || !source[s->plan_buf];
        may &= op->operands[i].regular || s->state != SLOT_LOST || !s->live;
    }
    free(source);
    return may;
}

/* Every operand is the recorded one, or in a word that was idle so far. */
static bool all_regular_or_idle(const struct rt_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!op->operands[i].regular && !op->operands[i].idle)
            return false;
    return true;
}

/* Those of unknown content first. Their number. */
static unsigned unknown_first(struct proof *p)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->n_watched; i++)
        if (!trial_is_known(p->watched[i])) {
            struct slot *s = p->watched[i];
            p->watched[i] = p->watched[n];
            p->watched[n++] = s;
        }
    return n;
}

static enum proof_says look_drv(struct device *d, struct rt_op *op, struct proof *p, int *code)
{
    struct hash_range ranges[WATCHED_MAX];
    uint64_t before[2 * WATCHED_MAX], after[2 * WATCHED_MAX];
    unsigned n_before = unknown_first(p), n = p->n_watched;
    for (unsigned i = 0; i < n; i++) {
        ranges[i] = (struct hash_range){p->watched[i]->va, p->watched[i]->bytes};
        memcpy(before + 2 * i, p->watched[i]->looked_hash, sizeof p->watched[i]->looked_hash);
    }
    if (trial_settle(d, true) || hashing_before(d, op->stream, ranges, n_before, n))
        return PROOF_NOT_RUN;
    *code = op_issue_drv(d, op);
    int r = hashing_after(d, op->stream);
    stream_issued(d, op->t);
    d->st.launches_looked_at++;
    /* One that waits for a later call cannot be looked at any longer; nothing of it has to be undone. */
    if (r || trial_settle(d, true) || hashing_around(d, before, after) || memcmp(before, after, n * 2 * sizeof *before))
        return *code == CUDA_SUCCESS ? PROOF_OTHER : PROOF_HOLDS;
    for (unsigned i = 0; i < n; i++)
        memcpy(p->watched[i]->looked_hash, after + 2 * i, sizeof p->watched[i]->looked_hash);
    args_doubt_idle(d, true);
    bool others = false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        others |= !op->operands[i].regular;
    args_may_use_others(d, others);
    return PROOF_HOLDS;
}

/* ---- none ---------------------------------------------------------------------------------------------------------- */

/* What the program holds of the operand's buffer is in it, and no step from here on begins from that or makes it again: neither do those
 * that leaving the plan would take (what is evicted then some later step makes again). */
static bool nobody_relies_on(struct device *d, const struct rt_operand *w)
{
    const struct slot *s = w->slot;
    const int32_t b = s->plan_buf;
    if (s->state == SLOT_LOST || s->points || w->map || (!w->regular && s->state != SLOT_RESIDENT))
        return false;
    if (b < 0)
        return true;
    return !rebuild_owed(d, b) && d->ex->plan->relied[b] <= (int32_t)d->ex->now.pos;
}

/* No step replays the op either: its own buffers would be relied on. */
bool proof_is_needless(struct device *d, const struct rt_op *op, const struct reading *x)
{
    bool none = op->kind == OP_KERNEL && op->func->known && !op->packed && !x->absent;
    for (uint32_t i = 0; i < op->n_operands && none; i++)
        none = nobody_relies_on(d, &op->operands[i]);
    return none && op->n_operands;
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

void proof_open(struct device *d, struct rt_op *op, const struct reading *x, struct proof *p)
{
    const struct rec_op *o = &d->ex->learnt.rec.ops[d->ex->now.pos];
    p->whole = x->whole;
    if (!x->absent && may_be_left_after(d, op)) {
        p->may_look = o->why_opaque && watch(d, op, p, true);
        p->may_be_light = !o->why_opaque && all_regular_or_idle(op);
        if (p->may_be_light)
            (void)watch(d, op, p, false);
    }
    for (uint32_t i = 0; i < op->n_operands && p->n_lent < LENT_MAX; i++) {
        struct slot *s = op->operands[i].slot;
        if (!op->operands[i].regular && s->state == SLOT_LOST) {
            s->state = SLOT_EMPTY;
            p->lent[p->n_lent++] = s;
        }
    }
}

/* With nothing but zeros behind it no test could tell whether a word is idle (words.c). */
static int fill_lent(struct device *d, const struct proof *p, const struct rt_op *op)
{
    enum { ANYTHING = 0x3c };
    for (unsigned i = 0; i < p->n_lent; i++)
        if (d->drv->cuMemsetD8Async(p->lent[i]->va, ANYTHING, p->lent[i]->bytes, op->stream) != CUDA_SUCCESS)
            return -EIO;
    return 0;
}

static enum proof_says run_drv(struct device *d, struct rt_op *op, struct proof *p, enum args_mattered *mattered, int *code)
{
    *mattered = ARGS_UNTRIED;
    if (fill_lent(d, p, op))
        return PROOF_NOT_RUN;
    const struct rec_op *o = &d->ex->learnt.rec.ops[d->ex->now.pos];
    struct hidden hidden = {0};
    bool turn = is_trials_turn(args_surprised(d), p->may_look);
    if (turn || !p->may_look) /* a look does not ask for them */
        find_hidden(d, op, o, &hidden);
    bool light = p->may_be_light && !hidden.n; /* which has no decoys for them */
    bool whole = turn || !(p->may_look || light);
    if (whole && !trial_drv(d, op, p->whole, &hidden, mattered, code))
        return PROOF_HOLDS;
    if (light) {
        int r = light_drv(d, op, o, p->whole, mattered, code);
        if (r != -EAGAIN)
            return r ? PROOF_OTHER : PROOF_HOLDS;
        return !whole && !trial_drv(d, op, p->whole, &hidden, mattered, code) ? PROOF_HOLDS : PROOF_NOT_RUN;
    }
    return p->may_look ? look_drv(d, op, p, code) : PROOF_NOT_RUN;
}

enum proof_says proof_run_drv(struct device *d, struct rt_op *op, struct proof *p, enum args_mattered *mattered, int *code)
{
    enum proof_says says = run_drv(d, op, p, mattered, code);
    p->looked = says == PROOF_HOLDS && *code == CUDA_SUCCESS;
    return says;
}

void proof_close(struct device *d, struct proof *p)
{
    for (unsigned i = 0; i < p->n_watched && p->looked; i++)
        p->watched[i]->looked_tick = p->watched[i]->use_tick; /* its hash is that of what it holds now */
    while (p->n_lent)
        slot_unback(d, p->lent[--p->n_lent], SLOT_LOST);
}
