#include "policy/learn/again.h"
#include "policy/learn/probe.h"
#include "policy/learn/probing.h"
#include "policy/learn/words.h"
#include "policy/memory/aside.h"
#include "policy/memory/slot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Puts memory back as it was before the op, or -EIO. Hashes must prove it: a run with other arguments may have spoilt even the contents set aside. */
static int undo(struct trial *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (!hashing_same(t->u[i].now, t->u[i].before) && aside_back(t->d, &t->u[i].old, t->u[i].slot))
            return -EIO;
    if (trial_settle_copies(t) || trial_hash(t))
        return -EIO;
    for (uint32_t i = 0; i < t->n; i++)
        if (!hashing_same(t->u[i].now, t->u[i].before))
            return -EIO;
    return 0;
}

/* Takes idle words out of the operands: the argument bytes that changed did not matter, so the words that were idle still are. */
static void drop_idle(struct rt_op *op)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!op->operands[i].idle)
            op->operands[kept++] = op->operands[i];
    op->n_operands = kept;
}

/* Runs the op with the arguments again->other; afterwards memory is as the program's own run left it. -EAGAIN, -EIO: memory is not. */
static int try_other(struct trial *t, struct again *again)
{
    unsigned char *args = malloc(t->op->arg_bytes + 16);
    if (!args)
        return -ENOMEM;
    memcpy(args, again->other, t->op->arg_bytes);
    for (uint32_t i = 0; i < again->n_hidden; i++)
        if (!memcmp(args + again->hidden[i] + 4, t->op->args + again->hidden[i] + 4, 4)) /* a decoy's lower half is that of the address, so the upper half alone is copied */
            memcpy(args + again->hidden[i] + 4, t->args + again->hidden[i] + 4, 4);
    int r = trial_again(t, args, POISON_FIRST);
    again->other_is_same = !r && trial_equal(t);
    free(args);
    if (again->other_is_same)
        return 0;
    if (!r)
        r = trial_again(t, NULL, POISON_FIRST);
    return r ? trial_mend(t) : trial_equal(t) ? 0 : -EAGAIN;
}

/* Copies the op's arguments into args, with decoys for the words again->hidden, and makes these t->args. -ENOENT: the driver knows no range for such a word. */
static int hide(struct trial *t, const struct again *again, unsigned char *args)
{
    struct device *d = t->d;
    uint64_t range[2];
    memcpy(args, t->op->args, t->op->arg_bytes);
    for (uint32_t i = 0; i < again->n_hidden; i++) {
        CUdeviceptr p;
        memcpy(&p, t->op->args + again->hidden[i], 8);
        if (d->drv->cuPointerGetAttribute(&range[0], CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p) != CUDA_SUCCESS ||
            d->drv->cuPointerGetAttribute(&range[1], CU_POINTER_ATTRIBUTE_RANGE_SIZE, p) != CUDA_SUCCESS || p < range[0])
            return -ENOENT;
        const CUdeviceptr decoy = words_decoy(d, range[0], range[1]);
        if (!decoy)
            return -ENOMEM;
        p = decoy + (p - range[0]);
        memcpy(args + again->hidden[i], &p, 8);
    }
    t->args = args;
    return 0;
}

/* Waits until the program's own run has ended: its effects cannot be told before, or taken back. */
static int settle_at_last(struct device *d)
{
    enum { PATIENT = 60 };
    int r = -ETIMEDOUT;
    for (int i = 0; i < PATIENT && r == -ETIMEDOUT; i++)
        r = trial_settle(d, true);
    return r;
}

bool probe_may_change(const struct rt_op *op, const struct slot *s)
{
    for (uint32_t k = 0; k < op->n_operands; k++)
        if (op->operands[k].slot == s && op->operands[k].regular && op->operands[k].mode != REC_READ && op->operands[k].mode != REC_UNKNOWN)
            return true;
    return false;
}

/* The launch overwrites the buffer wholly, and has it in recorded operands alone: no run depends on its old content, and nobody misses that. */
static bool is_made(const struct rt_op *op, const struct slot *s)
{
    for (uint32_t k = 0; k < op->n_operands; k++)
        if (op->operands[k].slot == s && !(op->operands[k].regular && op->operands[k].mode == REC_WRITE))
            return false;
    return true;
}

static bool is_touched(const struct rt_op *op, const struct slot *s, bool regular)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].slot == s && op->operands[i].regular == regular)
            return true;
    return false;
}

/* A light trial's second run may have other arguments, or decoys, only where all that they make it change can be put back: a flag among the arguments may do something now
 * that it did not do an iteration ago, and so may one that stands where a decoy's address differs from the word. So buffers of recorded operands that the launch is not known
 * to change are set aside, too. Where there is no room: -ENOMEM if there are decoys, since these there must be; else the other arguments are given up (again->other NULL). */
static int set_aside_for_other(struct trial *t, struct again *again)
{
    for (uint32_t i = 0; i < t->n && (again->other || t->args); i++) {
        struct touched *u = &t->u[i];
        if (!u->spared || u->made || !is_touched(t->op, u->slot, true))
            continue;
        const int r = trial_save(t, u, t->args ? pace_left_ns(t->d) : 0);
        if (r && t->args)
            return r;
        if (r)
            again->other = NULL;
    }
    return 0;
}

static int set_aside(struct trial *t, struct again *again)
{
    for (uint32_t i = 0; i < t->n && again->light; i++) {
        t->u[i].made = is_made(t->op, t->u[i].slot);
        t->u[i].spared = t->u[i].made || !probe_may_change(t->op, t->u[i].slot);
    }
    int r = trial_save_all(t);
    return !r && again->light ? set_aside_for_other(t, again) : r;
}

/* Puts decoys in the words that are not the recorded operands, for all runs but the program's own (t->args). -ENODATA: a buffer of such a word holds zeros, as a decoy does,
 * and nothing could be told; or a decoy there would be a danger (words.c). */
static int hide_irregular(struct trial *t)
{
    const struct rt_op *op = t->op;
    uint64_t zeros[2];
    bool any = false;
    unsigned char *args = t->hidden_args = malloc(op->arg_bytes + 16);
    if (!args)
        return -ENOMEM;
    memcpy(args, op->args, op->arg_bytes);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct rt_operand *w = &op->operands[i];
        if (w->regular)
            continue;
        if (!words_operand_may_be_decoy(t->d, op, i))
            return -ENODATA;
        CUdeviceptr p = words_decoy(t->d, w->slot->va, w->slot->bytes);
        if (!p)
            return -ENOMEM;
        p += w->delta;
        memcpy(args + w->offset, &p, sizeof p);
        any = true;
    }
    for (uint32_t i = 0; i < t->n && any; i++) {
        const struct slot *s = t->u[i].slot;
        if (is_touched(op, s, false) &&
            (words_zeros(t->d, words_decoy(t->d, s->va, s->bytes), s->bytes, zeros) || hashing_same(zeros, t->u[i].before)))
            return -ENODATA;
    }
    if (any)
        t->args = args;
    return 0;
}

/* The latest run has changed a buffer that the program's own run left alone and that was not set aside. */
static bool is_spoilt(const struct trial *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (t->u[i].spared && !t->u[i].made && !t->u[i].saved && !hashing_same(t->u[i].now, t->u[i].before))
            return true;
    return false;
}

/* Runs the launch once more, with other arguments or decoys: it must leave the same content. -ECANCELED: it does not, and may need the buffers behind the words with decoys;
 * memory is as its own run, or an equal one, left it. -EIO: memory could not be put back. */
static int light_drv(struct trial *t, bool known, struct again *again)
{
    if (!known)
        return -ECANCELED;
    int r = 0;
    unsigned char *other = again->other ? malloc(t->op->arg_bytes + 16) : NULL;
    if (!other)
        again->other = NULL; /* without memory `other` is not tried */
    if (other) {
        memcpy(other, again->other, t->op->arg_bytes);
        for (uint32_t i = 0; i < t->op->n_operands && t->args; i++)
            if (!t->op->operands[i].regular) /* the lower half is that of the address, or was put back; the upper half is the decoy's */
                memcpy(other + t->op->operands[i].offset + 4, t->args + t->op->operands[i].offset + 4, 4);
        r = trial_again(t, other, POISON_FIRST);
        free(other);
        if (!r && is_spoilt(t))
            return -EIO;
        again->other_is_same = !r && trial_equal(t);
    }
    if (!r && !again->other_is_same) {
        r = trial_again(t, NULL, POISON_FIRST);
        if (!r && is_spoilt(t))
            return -EIO;
    }
    const bool decoys = t->args != NULL, same = !r && trial_equal(t) && !(decoys && words_decoy_is_written(t->d));
    t->args = NULL;
    if (same)
        drop_idle(t->op);
    else if (!r && decoys)
        r = trial_again(t, NULL, POISON_FIRST);
    return r && trial_mend(t) ? -EIO : same ? 0 : -ECANCELED;
}

/* The word may be in use, and it does not matter: the launch has read the same buffer by a word that was recorded, and has not changed it. A replay of the launch puts the
 * buffer's content at the same address first, for the recorded word's sake. */
static bool is_covered(const struct trial *t, const struct rt_operand *w)
{
    if (w->map || w->slot->points || !is_touched(t->op, w->slot, true) || probe_may_change(t->op, w->slot))
        return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->u[i].slot == w->slot && t->u[i].changed)
            return false;
    return true;
}

/* True if every word that is not a recorded operand is idle, or covered. Idle words are taken out of the operands, and told in again->idle. */
static bool others_are_harmless(struct trial *t, struct again *again)
{
    struct rt_op *op = t->op;
    uint32_t irregular = 0, left = 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        irregular += !op->operands[i].regular;
    if (!irregular)
        return true;
    if (words_try(t, NULL, again->idle, &again->n_idle))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const bool covered = !op->operands[i].regular && is_covered(t, &op->operands[i]);
        again->covered |= covered;
        left += !op->operands[i].regular && !covered;
    }
    if (left)
        log_say(SAY_DEBUG, "%s: %u words are to be idle, %u were found to be", op->func->name, irregular, again->n_idle);
    return !left;
}

static int again_drv(struct trial *t, struct again *again, int *code)
{
    struct device *d = t->d;
    struct rt_op *op = t->op;
    /* a buffer that nothing has used since it was hashed keeps that hash: if somebody has changed it all the same, a difference is found, and the plan is left: too careful,
     * never wrong */
    for (uint32_t i = 0; i < t->n && again->light; i++) {
        t->u[i].skipped = trial_is_known(t->u[i].slot);
        memcpy(t->u[i].now, t->u[i].slot->looked_hash, sizeof t->u[i].now);
    }
    if (trial_hash_before(t))
        return -EAGAIN;
    if ((again->light && hide_irregular(t)) || set_aside(t, again) || trial_settle_copies(t)) {
        log_say(SAY_DEBUG, "%s: no room to set aside what it touches", op->func->name);
        return -EAGAIN;
    }
    *code = op_issue_drv(d, op);
    if (*code != CUDA_SUCCESS || settle_at_last(d) || trial_hash(t))
        return *code != CUDA_SUCCESS ? 0 : -EIO;
    bool known = true;
    for (uint32_t i = 0; i < t->n; i++) {
        memcpy(t->u[i].after, t->u[i].now, sizeof t->u[i].after);
        t->u[i].changed = !hashing_same(t->u[i].before, t->u[i].after);
        known &= !t->u[i].changed || probe_may_change(op, t->u[i].slot);
    }
    if (!known)
        log_say(SAY_DEBUG, "%s changes what it did not change before", op->func->name);
    if (again->light)
        return light_drv(t, known, again);
    if (known && (again->repeats || again->other || again->n_hidden)) {
        int r = trial_again(t, NULL, POISON_FIRST);
        bool must = again->repeats || again->n_hidden;
        bool repeats = !r && trial_equal(t) && !(t->args && words_decoy_is_written(d)); /* where the launch need not repeat, any run of it is as good as another */
        known = r ? !must && !trial_mend(t) : repeats || !must;
        if (!known)
            log_say(SAY_DEBUG, "%s does not repeat with these arguments", op->func->name);
        if (repeats && again->other)
            known = !try_other(t, again);
        again->other = repeats ? again->other : NULL;
    }
    if (known && again->other_is_same && !again->doubt)
        drop_idle(op);
    known = known && others_are_harmless(t, again);
    return known || undo(t) ? (known ? 0 : -EIO) : -EAGAIN;
}

int probe_again_drv(struct device *d, struct rt_op *op, struct again *again, int *code)
{
    struct trial t;
    again->idle = d->probe->idle;
    again->n_idle = 0;
    const char *once = probe_runs_once(op, probe_reaches_elsewhere(d, op, again->hidden, again->n_hidden));
    if (once) {
        log_say(SAY_DEBUG, "%s %s: it does not run as a trial", op->func->name, once);
        return -EAGAIN;
    }
    if (trial_settle(d, true) || trial_open(d, op, &t))
        return -EAGAIN;
    pace_unbounded(d, true); /* a single op may take as long as it needs */
    t.planned = true;
    unsigned char *args = again->n_hidden ? malloc(op->arg_bytes + 16) : NULL;
    int r = again->n_hidden && (!args || hide(&t, again, args)) ? -EAGAIN : again_drv(&t, again, code);
    pace_unbounded(d, false);
    free(args);
    for (uint32_t i = 0; i < t.n; i++) { /* the caller sets looked_tick, after the op's uses are noted (proof_close) */
        t.u[i].slot->looked_tick = 0;
        memcpy(t.u[i].slot->looked_hash, t.u[i].now, sizeof t.u[i].now);
    }
    trial_close(&t);
    aside_clear(d, true);
    if (r == -EIO) {
        log_say(SAY_ERROR, "what a launch had changed could not be put back: the program is stopped here");
        *code = CUDA_ERROR_UNKNOWN;
        r = 0;
    }
    return r;
}
