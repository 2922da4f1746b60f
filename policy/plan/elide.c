/* A hold asks that a buffer can be brought back until the program frees it, not that it is brought back. Replays whose results only holds
 * would use are run in rehearsal, so that they are proved, and left out from then on; leaving the plan makes their values (rebuild.c). That
 * works only as long as the values can be made: an input of a replay may be freed, or overwritten, between the replay and the last hold that
 * the replay is for. So the iteration is walked through as it will run. Where a value that the program holds could not be made, the replays
 * that make that value are not left out.
 *
 * Addresses cost nothing: the inputs of such values keep their slots for as long as the values may have to be made. */
#include "policy/plan/elide.h"
#include "policy/process/log.h"
#include "tracer/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8 }; /* a round puts back the replays that one walk has shown to be needed; where so many rounds are too few, no replay is left out */

struct use { /* the value must be there before anything is done between op at - 1 and op at */
    uint32_t at;
    int32_t value;
};

struct walk {
    const struct record *r;
    struct compiled *p;
    struct use *uses;
    uint32_t n_uses, cap_uses;
    bool *needed;         /* [values] */
    int32_t *res, *cur;   /* [n_bufs] as in struct progress */
    bool *bound;          /* [n_bufs] the buffer has a slot */
    uint32_t *can, *cannot, look; /* [values] == look: in this look_round() the value can, or cannot, be made */
    int32_t *base, *base_relied; /* [n_bufs] last_ref, relied as they are without elided replays */
    int32_t *base_again;  /* [n_ops] again_until without elided replays */
    int32_t *until;       /* [values] last position at which the value may have to be made; -1: never */
};

/* Marks replays that make no needed value, walking backwards: a value is needed if a real op or a needed replay consumes it, if it is one of `uses`, or
 * if it outlives the iteration. */
static void mark_elided(struct walk *w)
{
    struct compiled *p = w->p;
    const struct record *r = w->r;
    memset(w->needed, 0, ((size_t)p->first_val[r->n_bufs] + 1) * sizeof *w->needed);
#define VALUE(b, v) w->needed[p->first_val[b] + (v)]
    for (uint32_t b = 0; b < r->n_bufs; b++)
        if (r->bufs[b].dies < 0)
            w->needed[p->first_val[b + 1] - 1] = true;
    for (uint32_t at = r->n_ops + 1; at-- > 0;) {
        if (at < r->n_ops && !r->ops[at].hold)
            for (uint32_t k = r->ops[at].first; k < r->ops[at].first + r->ops[at].n; k++)
                if (p->in_ver[k] >= 0)
                    VALUE(r->operands[k].buf, p->in_ver[k]) = true;
        for (uint32_t i = p->step_at[at + 1]; i-- > p->step_at[at];) {
            const struct plan_step *s = &p->steps[i];
            p->elided[i] = false;
            if (s->kind != PLAN_REPLAY)
                continue;
            const struct rec_op *o = &r->ops[s->id];
            bool use = false;
            for (uint32_t k = o->first; k < o->first + o->n; k++)
                if (p->out_ver[k] >= 0 && r->operands[k].mode != REC_SIDE)
                    use |= VALUE(r->operands[k].buf, p->out_ver[k]);
            p->elided[i] = !use;
            for (uint32_t k = o->first; k < o->first + o->n && use; k++)
                if (p->in_ver[k] >= 0 && r->operands[k].mode != REC_SIDE)
                    VALUE(r->operands[k].buf, p->in_ver[k]) = true;
        }
        for (uint32_t i = 0; i < w->n_uses; i++)
            if (w->uses[i].at == at)
                w->needed[w->uses[i].value] = true;
    }
#undef VALUE
}

/* Position `at` refers to buffer b. */
static void refer(struct compiled *p, int32_t b, int32_t at)
{
    if (p->last_ref[b] < at)
        p->last_ref[b] = at;
}

/* Leaving the plan before `until` may begin from b's content. */
static void rely(struct compiled *p, int32_t b, int32_t until)
{
    if (p->relied[b] < until)
        p->relied[b] = until;
}

/* Buffer b, and the buffers that value (b, v) is made of, keep their slots until `until`, and no change to their content goes unseen. */
static void keep_slots(struct walk *w, int32_t b, int32_t v, int32_t until)
{
    struct compiled *p = w->p;
    const int32_t value = p->first_val[b] + v;
    refer(p, b, until);
    rely(p, b, until);
    if (v < 0 || w->until[value] >= until || p->producer[value] < 0 || w->r->ops[p->producer[value]].why_opaque)
        return;
    w->until[value] = until;
    if (p->again_until[p->producer[value]] < until)
        p->again_until[p->producer[value]] = until;
    const struct rec_op *o = &w->r->ops[p->producer[value]];
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *x = &w->r->operands[k];
        if (rec_takes(x))
            keep_slots(w, x->buf, p->in_ver[k], until);
        else
            refer(p, x->buf, until);
    }
}

static void keep_what_elided_ones_need(struct walk *w)
{
    struct compiled *p = w->p;
    const struct record *r = w->r;
    memcpy(p->last_ref, w->base, r->n_bufs * sizeof *p->last_ref);
    memcpy(p->relied, w->base_relied, r->n_bufs * sizeof *p->relied);
    memcpy(p->again_until, w->base_again, r->n_ops * sizeof *p->again_until);
    for (int32_t v = 0; v < p->first_val[r->n_bufs]; v++)
        w->until[v] = -1;
    for (uint32_t i = 0; i < p->step_at[r->n_ops + 1]; i++) {
        const struct rec_op *o = p->elided[i] ? &r->ops[p->steps[i].id] : NULL;
        for (uint32_t k = o ? o->first : 0; o && k < o->first + o->n; k++)
            if (rec_makes(&r->operands[k])) {
                const int32_t b = r->operands[k].buf, dies = r->bufs[b].dies;
                keep_slots(w, b, p->out_ver[k], dies < 0 ? (int32_t)r->n_ops : dies);
            }
    }
}

static bool can_be_made(struct walk *w, int32_t b, int32_t v)
{
    const struct compiled *p = w->p;
    const int32_t value = p->first_val[b] + v;
    if (v < 0 || w->cannot[value] == w->look)
        return false;
    if (w->res[b] == v || w->can[value] == w->look)
        return true;
    w->cannot[value] = w->look; /* nothing is made of itself */
    const int32_t op = p->producer[value];
    if (!w->bound[b] || op < 0 || w->r->ops[op].why_opaque)
        return false;
    const struct rec_op *o = &w->r->ops[op];
    for (uint32_t k = o->first; k < o->first + o->n; k++) {
        const struct rec_operand *x = &w->r->operands[k];
        if (!w->bound[x->buf] || (rec_takes(x) && !can_be_made(w, x->buf, p->in_ver[k])))
            return false;
    }
    w->cannot[value] = 0;
    w->can[value] = w->look;
    return true;
}

/* The program may go another way at `at`: values that it holds and that could not be made then are added to `uses`. < 0: no memory. */
static int look_round(struct walk *w, uint32_t at)
{
    const struct compiled *p = w->p;
    w->look++;
    for (uint32_t b = 0; b < w->r->n_bufs; b++) {
        const struct rec_buf *x = &w->r->bufs[b];
        if (!rec_may_move(x) || w->cur[b] < 0 || w->res[b] == w->cur[b] || can_be_made(w, (int32_t)b, w->cur[b]))
            continue;
        if (!grow_room(&w->uses, w->n_uses, &w->cap_uses, 64))
            return -ENOMEM;
        w->uses[w->n_uses++] = (struct use){at, p->first_val[b] + w->cur[b]};
        w->res[b] = w->cur[b]; /* as it will be once the replay is put back */
    }
    return 0;
}

static void walk_step(struct walk *w, const struct plan_step *s)
{
    const struct compiled *p = w->p;
    const struct record *r = w->r;
    if (s->kind == PLAN_DROP && rec_may_move(&r->bufs[s->id]))
        w->res[s->id] = -1;
    if (s->kind != PLAN_REPLAY)
        return;
    for (uint32_t k = r->ops[s->id].first; k < r->ops[s->id].first + r->ops[s->id].n; k++)
        if (rec_makes(&r->operands[k]))
            w->res[r->operands[k].buf] = p->out_ver[k];
}

/* The iteration as it runs where the replays marked as elided are left out. < 0: no memory. */
static int walk_through(struct walk *w)
{
    const struct compiled *p = w->p;
    const struct record *r = w->r;
    int err = 0;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        w->res[b] = w->cur[b] = r->bufs[b].alloc_ord < 0 ? 0 : -1;
        w->bound[b] = r->bufs[b].alloc_ord < 0;
    }
    for (uint32_t at = 0; at <= r->n_ops && !err; at++) {
        for (uint32_t i = p->die_at[at]; i < p->die_at[at + 1]; i++) { /* a buffer that nothing refers to any more goes as soon as it is freed */
            const int32_t b = p->die_list[i];
            w->cur[b] = -1;
            if (p->last_ref[b] <= (int32_t)at && !p->keep[b] && !p->rebuilt[b]) {
                w->bound[b] = false;
                w->res[b] = -1;
            }
        }
        if (!at || !r->ops[at - 1].hold)
            err = look_round(w, at);
        for (uint32_t i = p->die_at[at]; i < p->die_at[at + 1]; i++)
            if (!p->keep[p->die_list[i]])
                w->res[p->die_list[i]] = -1;
        for (uint32_t i = p->step_at[at]; i < p->step_at[at + 1]; i++)
            if (!p->elided[i])
                walk_step(w, &p->steps[i]);
        for (uint32_t b = 0; b < r->n_bufs; b++)
            if (p->last_ref[b] == (int32_t)at && r->bufs[b].dies >= 0 && w->cur[b] < 0 && r->bufs[b].born < (int32_t)at) {
                w->bound[b] = false;
                w->res[b] = -1;
            }
        if (at == r->n_ops)
            break;
        for (uint32_t k = r->ops[at].first; k < r->ops[at].first + r->ops[at].n; k++)
            w->bound[r->operands[k].buf] = true;
        for (const struct compiled_value *v = p->made + p->made_at[at], *end = p->made + p->made_at[at + 1]; v < end; v++)
            w->res[v->buf] = w->cur[v->buf] = v->version;
    }
    return err;
}

static uint32_t count_elided(const struct walk *w)
{
    const struct compiled *p = w->p;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->step_at[w->r->n_ops + 1]; i++)
        n += p->elided[i];
    return n;
}

static int elide(struct walk *w)
{
    const struct record *r = w->r;
    memcpy(w->base, w->p->last_ref, r->n_bufs * sizeof *w->base);
    memcpy(w->base_relied, w->p->relied, r->n_bufs * sizeof *w->base_relied);
    memcpy(w->base_again, w->p->again_until, r->n_ops * sizeof *w->base_again);
    mark_elided(w);
    const uint32_t first = count_elided(w);
    if (!first)
        return 0;
    uint32_t now = first, before = UINT32_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t uses = w->n_uses;
        keep_what_elided_ones_need(w);
        int err = walk_through(w);
        if (err)
            return err;
        if (w->n_uses > uses && now == before)
            log_say(SAY_DEBUG, "%u values of the plan can be made by nobody, should it be left", w->n_uses - uses);
        if (w->n_uses == uses || now == before) {
            log_say(SAY_DEBUG, "%u of %u replays for holds are left out", now, first);
            return 0;
        }
        before = now;
        mark_elided(w);
        now = count_elided(w);
    }
    memset(w->p->elided, 0, w->p->step_at[r->n_ops + 1] * sizeof *w->p->elided);
    memcpy(w->p->last_ref, w->base, r->n_bufs * sizeof *w->base);
    memcpy(w->p->relied, w->base_relied, r->n_bufs * sizeof *w->base_relied);
    memcpy(w->p->again_until, w->base_again, r->n_ops * sizeof *w->base_again);
    log_say(SAY_DEBUG, "none of %u replays for holds is left out", first);
    return 0;
}

/* The op that makes value (b, v), and the ops that make its inputs, may be run again by leaving the plan before `until`. */
static void may_be_made(struct walk *w, int32_t b, int32_t v, int32_t until)
{
    struct compiled *p = w->p;
    const int32_t value = p->first_val[b] + v, op = v < 0 ? -1 : p->producer[value];
    if (op < 0 || w->until[value] >= until || w->r->ops[op].why_opaque)
        return;
    w->until[value] = until;
    p->again_until[op] = p->again_until[op] < until ? until : p->again_until[op];
    for (uint32_t k = w->r->ops[op].first; k < w->r->ops[op].first + w->r->ops[op].n; k++)
        if (rec_takes(&w->r->operands[k]))
            may_be_made(w, w->r->operands[k].buf, p->in_ver[k], until);
}

/* A value that the plan drops and never makes again (no op reads it before the program overwrites it) is made if the plan is left before that. */
static void find_dropped_for_good(struct walk *w)
{
    struct compiled *p = w->p;
    const struct record *r = w->r;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        w->cur[b] = r->bufs[b].alloc_ord < 0 ? 0 : -1;
    for (int32_t v = 0; v < p->first_val[r->n_bufs]; v++)
        w->until[v] = -1;
    for (uint32_t at = 0; at <= r->n_ops; at++) {
        for (uint32_t i = p->step_at[at]; i < p->step_at[at + 1]; i++) {
            const int32_t b = p->steps[i].id, v = p->steps[i].kind == PLAN_DROP ? w->cur[b] : -1;
            if (v < 0 || p->remade[p->first_val[b] + v])
                continue;
            const int32_t over = p->first_val[b] + v + 1, dies = r->bufs[b].dies;
            const int32_t until = over < p->first_val[b + 1] ? p->producer[over] : dies < 0 ? (int32_t)r->n_ops : dies;
            uint32_t next = at; /* the next op of the program's own, holds passed over */
            while (next < r->n_ops && r->ops[next].hold)
                next++;
            if (until > (int32_t)next)
                may_be_made(w, b, v, until);
        }
        if (at == r->n_ops)
            break;
        for (const struct compiled_value *v = p->made + p->made_at[at], *end = p->made + p->made_at[at + 1]; v < end; v++)
            w->cur[v->buf] = v->version;
    }
}

int elide_replays(const struct record *r, struct compiled *p)
{
    const uint32_t nb = r->n_bufs;
    const size_t values = (size_t)p->first_val[nb] + 1;
    struct walk w = {.r = r, .p = p, .needed = calloc(values, sizeof *w.needed), .res = calloc(nb + 1, sizeof *w.res), .cur = calloc(nb + 1, sizeof *w.cur),
                     .bound = calloc(nb + 1, sizeof *w.bound), .can = calloc(values, sizeof *w.can), .cannot = calloc(values, sizeof *w.cannot),
                     .base = calloc(nb + 1, sizeof *w.base), .base_relied = calloc(nb + 1, sizeof *w.base_relied),
                     .base_again = calloc(r->n_ops + 1, sizeof *w.base_again),
                     .until = calloc(values, sizeof *w.until)};
    int err = w.needed && w.res && w.cur && w.bound && w.can && w.cannot && w.base && w.base_relied && w.base_again && w.until ? elide(&w) : -ENOMEM;
    if (!err)
        find_dropped_for_good(&w);
    free(w.uses);
    free(w.needed);
    free(w.res);
    free(w.cur);
    free(w.bound);
    free(w.can);
    free(w.cannot);
    free(w.base);
    free(w.base_relied);
    free(w.base_again);
    free(w.until);
    return err;
}
