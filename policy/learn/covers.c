#include "policy/learn/covers.h"
#include "policy/learn/pace.h"

#include <errno.h>

enum { FEW = 64 }; /* buffers; who touches more stores over none of them */
static const unsigned char FILLS[] = {0x00, 0xff, 0x7b, 0xfb, 0x80, 0x7f};

bool covers_may_be(const struct trial *t, uint32_t k)
{
    const struct touched *u = &t->u[k];
    return u->changed && !u->blank && !u->row && !u->old_life && u->slot->kind != SLOT_FOREIGN && !u->slot->pins && !u->slot->points && u->slot->bytes > 1;
}

static int from(struct trial *t, const bool *among, enum trial_start start, unsigned char fill)
{
    t->fill = fill;
    for (uint32_t i = 0; i < t->n; i++)
        t->u[i].start = among[i] ? start : START_OLD;
    return trial_again(t, NULL, POISON_FIRST);
}

/* 1: nothing shows what the buffers held. 0: something does; or, with *late, time ended the search. The last run may have left anything. */
static int nothing_shows(struct trial *t, const bool *among, bool *late)
{
    int r = from(t, among, START_OLD_HALF, 0);
    if (!r && trial_equal(t))
        r = from(t, among, START_LEFT_HALF, 0);
    for (unsigned i = 0; i < sizeof FILLS && !r && trial_equal(t); i++) {
        *late = !pace_left_ns(t->d);
        if (*late)
            return 0;
        r = from(t, among, START_FILLED, FILLS[i]);
    }
    return r ? r : trial_equal(t);
}

/* As the program's own run left it. */
static int begin_plainly(struct trial *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        t->u[i].start = START_OLD;
    if (trial_equal(t))
        return 0;
    const int r = trial_again(t, NULL, POISON_FIRST);
    return r ? r : trial_equal(t) ? 0 : -EIO;
}

/* Which of among[] are stored over; the others are taken out. Each by itself, if together they are not: and then those together. */
static int sift(struct trial *t, bool *among, uint32_t n, bool *late)
{
    bool one[FEW], left[FEW];
    uint32_t n_left = 0;
    int r = nothing_shows(t, among, late);
    if (r)
        return r < 0 ? r : 0;
    if ((r = begin_plainly(t)))
        return r;
    for (uint32_t i = 0; i < t->n; i++)
        left[i] = false;
    for (uint32_t i = 0; i < t->n && n > 1 && !*late; i++) {
        if (!among[i])
            continue;
        for (uint32_t k = 0; k < t->n; k++)
            one[k] = k == i;
        if ((r = nothing_shows(t, one, late)) < 0)
            return r;
        left[i] = r > 0;
        n_left += r > 0;
        if ((r = begin_plainly(t)))
            return r;
    }
    r = n_left > 1 && !*late ? nothing_shows(t, left, late) : n_left == 1;
    for (uint32_t i = 0; i < t->n && r >= 0; i++)
        among[i] = left[i] && r > 0 && !*late;
    return r < 0 ? r : 0;
}

static void stores_over(struct trial *t, uint32_t k)
{
    t->u[k].covered = true;
    for (uint32_t i = 0; i < t->op->n_operands; i++)
        if (t->op->operands[i].slot == t->u[k].slot)
            t->op->operands[i].mode = REC_WRITE;
}

int covers_try(struct trial *t)
{
    bool among[FEW];
    uint32_t n = 0;
    if (t->n > FEW)
        return 0;
    for (uint32_t i = 0; i < t->n; i++)
        n += among[i] = covers_may_be(t, i) && t->u[i].saved;
    if (!n)
        return 0;
    if (!pace_left_ns(t->d) || trial_save_all(t)) {
        t->cut = true;
        return 0;
    }
    bool late = false, asked[FEW];
    for (uint32_t i = 0; i < t->n; i++)
        asked[i] = among[i];
    int r = sift(t, among, n, &late);
    if (!r)
        r = begin_plainly(t);
    for (uint32_t i = 0; i < t->n && !r; i++)
        if (among[i] && !late)
            stores_over(t, i);
        else
            t->u[i].depends = asked[i] && !late;
    for (uint32_t i = 0; i < t->n; i++) /* of the runs of whoever mends */
        t->u[i].start = START_OLD;
    t->cut |= late;
    return r;
}

bool covers_said(const struct rt_op *op)
{
    bool any = false;
    for (uint32_t k = 0; k < op->n_operands && !any; k++)
        any = op->operands[k].covers;
    return any;
}

bool covers_still(struct trial *t)
{
    bool among[FEW] = {false}, late = false;
    int r = t->n > FEW ? -E2BIG : 0;
    for (uint32_t i = 0; i < t->n && !r; i++)
        for (uint32_t k = 0; k < t->op->n_operands; k++)
            among[i] |= t->op->operands[k].slot == t->u[i].slot && t->op->operands[k].covers;
    for (uint32_t i = 0; i < t->n && !r; i++)
        r = among[i] && !t->u[i].saved ? -ENOMEM : 0;
    if (!r)
        r = nothing_shows(t, among, &late);
    const bool still = r > 0;
    if (r >= 0)
        r = begin_plainly(t);
    for (uint32_t i = 0; i < t->n; i++)
        t->u[i].start = START_OLD;
    return still && !r;
}
