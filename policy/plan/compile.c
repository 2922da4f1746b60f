/* From a record and a plan file to what exec.c walks: versions, producers, deaths, steps by position. */
#include "policy/plan/compile.h"
#include "policy/plan/args.h"
#include "policy/plan/elide.h"
#include "policy/plan/match.h"
#include "policy/plan/steady.h"
#include "policy/plan/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The values that each op makes, side by side: the launch path walks these alone. */
static int list_made(struct exec *ex)
{
    const struct record *r = &ex->rec;
    uint32_t n = 0;
    ex->made_at = malloc((r->n_ops + 1) * sizeof *ex->made_at);
    ex->made = malloc((r->n_operands + 1) * sizeof *ex->made);
    if (!ex->made_at || !ex->made)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        ex->made_at[i] = n;
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            if (ex->out_ver[k] >= 0)
                ex->made[n++] = (struct exec_value){r->operands[k].buf, ex->out_ver[k]};
    }
    ex->made_at[r->n_ops] = n;
    return 0;
}

int compile_index(struct device *d)
{
    const struct record *r = &d->ex->rec;
    uint32_t n = r->n_ops, nb = r->n_bufs;
    d->ex->in_ver = calloc(r->n_operands + 1, sizeof *d->ex->in_ver);
    d->ex->out_ver = calloc(r->n_operands + 1, sizeof *d->ex->out_ver);
    d->ex->first_val = calloc(nb + 2, sizeof *d->ex->first_val);
    d->ex->die_at = calloc(n + 3, sizeof *d->ex->die_at);
    d->ex->die_list = calloc(nb + 1, sizeof *d->ex->die_list);
    d->ex->last_ref = calloc(nb + 1, sizeof *d->ex->last_ref);
    d->ex->keep = calloc(nb + 1, sizeof *d->ex->keep);
    d->ex->rebuilt = calloc(nb + 1, sizeof *d->ex->rebuilt);
    d->ex->relied = calloc(nb + 1, sizeof *d->ex->relied);
    d->ex->bind = calloc(nb + 1, sizeof *d->ex->bind);
    d->ex->res = calloc(nb + 1, sizeof *d->ex->res);
    d->ex->cur = calloc(nb + 1, sizeof *d->ex->cur);
    d->ex->stays = calloc(nb + 1, sizeof *d->ex->stays);
    d->ex->op_banned = calloc(n + 1, sizeof *d->ex->op_banned);
    d->ex->side_scratch = calloc(r->n_operands + 1, sizeof *d->ex->side_scratch);
    d->ex->side_saved = calloc(r->n_operands + 1, sizeof *d->ex->side_saved);
    d->ex->side_is_saved = calloc(r->n_operands + 1, sizeof *d->ex->side_is_saved);
    d->ex->left_out = calloc(1, sizeof *d->ex->left_out);
    d->ex->replay_args = malloc(OP_MAX_ARG_BYTES);
    d->ex->other_args = malloc(OP_MAX_ARG_BYTES);
    int32_t *ver = calloc(nb + 1, sizeof *ver);
    if (!d->ex->in_ver || !d->ex->stays || !d->ex->out_ver || !d->ex->first_val || !d->ex->die_at || !d->ex->die_list || !d->ex->last_ref || !d->ex->keep || !d->ex->rebuilt ||
        !d->ex->relied || !d->ex->bind || !d->ex->res || !d->ex->cur || !d->ex->op_banned || !d->ex->side_scratch || !d->ex->side_saved ||
        !d->ex->side_is_saved || !d->ex->left_out || !d->ex->replay_args || !d->ex->other_args || !ver) {
        free(ver);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct rec_op *o = &r->ops[i];
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const struct rec_operand *w = &r->operands[k];
            d->ex->in_ver[k] = w->mode == REC_WRITE ? -1 : ver[w->buf];
            d->ex->out_ver[k] = w->mode == REC_READ ? -1 : ver[w->buf] + 1;
        }
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (d->ex->out_ver[k] > ver[r->operands[k].buf])
                ver[r->operands[k].buf] = d->ex->out_ver[k];
    }
    int32_t total = 0;
    for (uint32_t b = 0; b < nb; b++) {
        d->ex->first_val[b] = total;
        total += ver[b] + 1;
    }
    d->ex->first_val[nb] = total;
    free(ver);
    d->ex->producer = malloc(((size_t)total + 1) * sizeof *d->ex->producer);
    if (!d->ex->producer)
        return -ENOMEM;
    for (int32_t i = 0; i <= total; i++)
        d->ex->producer[i] = -1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            if (d->ex->out_ver[k] >= 0)
                d->ex->producer[d->ex->first_val[r->operands[k].buf] + d->ex->out_ver[k]] = (int32_t)i;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies >= 0)
            d->ex->die_at[r->bufs[b].dies + 1]++;
    for (uint32_t i = 1; i <= n + 1; i++)
        d->ex->die_at[i] += d->ex->die_at[i - 1];
    uint32_t *fill = calloc(n + 2, sizeof *fill);
    if (!fill)
        return -ENOMEM;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies >= 0)
            d->ex->die_list[d->ex->die_at[r->bufs[b].dies] + fill[r->bufs[b].dies]++] = (int32_t)b;
    free(fill);
    d->ex->used = calloc((size_t)total + 1, sizeof *d->ex->used);
    d->ex->remade = calloc((size_t)total + 1, sizeof *d->ex->remade);
    d->ex->partial = calloc(nb + 1, sizeof *d->ex->partial);
    if (!d->ex->used || !d->ex->remade || !d->ex->partial)
        return -ENOMEM;
    for (uint32_t k = 0; k < r->n_operands; k++)
        if (d->ex->in_ver[k] >= 0)
            d->ex->used[d->ex->first_val[r->operands[k].buf] + d->ex->in_ver[k]] = true;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies < 0)
            d->ex->used[d->ex->first_val[b + 1] - 1] = true;
    int e = list_made(d->ex);
    return e ? e : args_index(d);
}

/* Buffers by the position of their last reference. */
static int list_last_refs(struct device *d)
{
    uint32_t n = d->ex->rec.n_ops, nb = d->ex->rec.n_bufs;
    free(d->ex->ref_at);
    free(d->ex->ref_list);
    d->ex->ref_at = calloc(n + 3, sizeof *d->ex->ref_at);
    d->ex->ref_list = calloc(nb + 1, sizeof *d->ex->ref_list);
    uint32_t *fill = calloc(n + 2, sizeof *fill);
    if (!d->ex->ref_at || !d->ex->ref_list || !fill) {
        free(fill);
        return -ENOMEM;
    }
    for (uint32_t b = 0; b < nb; b++)
        d->ex->ref_at[d->ex->last_ref[b] + 1]++;
    for (uint32_t i = 1; i <= n + 1; i++)
        d->ex->ref_at[i] += d->ex->ref_at[i - 1];
    for (uint32_t b = 0; b < nb; b++)
        d->ex->ref_list[d->ex->ref_at[d->ex->last_ref[b]] + fill[d->ex->last_ref[b]]++] = (int32_t)b;
    free(fill);
    return 0;
}

/* A plan is written anew, step by step: q has all of p but its steps. */
static int begin_anew(struct plan *q, const struct plan *p)
{
    int err = plan_copy(q, p);
    q->n_steps = 0;
    return err;
}

/* q takes the place of p; where it could not be written, p stays. */
static int end_anew(struct plan *q, struct plan *p, int err)
{
    plan_free(err ? q : p);
    if (!err)
        *p = *q;
    return err;
}

/* A user's plan knows no holds: its ops get their numbers here, holds stand before the op they precede. And it may drop what
 * the program still holds and nothing brings back; such a drop is left out, so that leaving the plan loses nothing. */
static int adopt(struct device *d, struct plan *p)
{
    const struct record *r = &d->ex->rec;
    struct plan q = {0};
    int32_t next = 0;
    uint32_t n_seen = 0;
    int err = begin_anew(&q, p);
    bool *back = calloc(r->n_bufs + 1, sizeof *back); /* a later step brings it back */
    bool *skip = calloc(p->n_steps + 1, sizeof *skip);
    if (!back || !skip)
        err = -ENOMEM;
    for (size_t i = p->n_steps; i-- > 0 && !err;) {
        struct plan_step s = p->steps[i];
        bool op = s.kind == PLAN_OP || s.kind == PLAN_REPLAY;
        if (s.id < 0 || (uint32_t)s.id >= (op ? d->ex->n_trace_ops : r->n_bufs)) {
            err = -EINVAL;
            break;
        }
        if (op) { /* what an op overwrites needs no bringing back before it */
            const struct rec_op *o = &r->ops[d->ex->op_of_trace[s.id]];
            for (uint32_t k = o->first; k < o->first + o->n; k++)
                if (r->operands[k].mode == REC_WRITE || (s.kind == PLAN_REPLAY && r->operands[k].mode == REC_RMW))
                    back[r->operands[k].buf] = true;
        } else if (s.kind == PLAN_DROP) {
            skip[i] = !back[s.id] && !r->bufs[s.id].small;
            back[s.id] = false;
        }
    }
    for (size_t i = 0; i < p->n_steps && !err; i++) {
        struct plan_step s = p->steps[i];
        if (s.kind == PLAN_REPLAY)
            s.id = (int32_t)d->ex->op_of_trace[s.id];
        else if (s.kind == PLAN_OP) {
            s.id = (int32_t)d->ex->op_of_trace[s.id];
            for (; next < s.id && !err; next++)
                err = plan_push(&q, PLAN_OP, next);
            next = s.id + 1;
            n_seen++;
        }
        if (!err && !skip[i])
            err = plan_push(&q, (enum plan_kind)s.kind, s.id);
    }
    if (!err && n_seen != d->ex->n_trace_ops)
        err = -EINVAL;
    for (; (uint32_t)next < r->n_ops && !err; next++)
        err = plan_push(&q, PLAN_OP, next);
    free(back);
    free(skip);
    return end_anew(&q, p, err);
}

/* A copy to the host that begins before the last kernel that touches the buffer is old after it (note_modes): it begins after that one, and
 * once more where the plan would take an older copy for good. Walked backwards. */
struct copies {
    bool *after; /* [n_operands] one begins after the op of this operand */
    bool *skip;  /* [n_steps] this one does not begin here */
    bool *open;  /* [n_bufs] it is released further on, and no copy of what is in it has begun since */
    bool *moved; /* [n_bufs] one that is begun here has been put further on */
};

static void end_copies(struct copies *c, int32_t b, bool open)
{
    c->open[b] = open;
    c->moved[b] = false;
}

static void find_copies(const struct exec *ex, const struct plan *p, struct copies *c)
{
    const struct record *r = &ex->rec;
    for (size_t i = p->n_steps; i-- > 0;) {
        const struct plan_step s = p->steps[i];
        const bool is_op = s.kind == PLAN_OP || s.kind == PLAN_REPLAY;
        if (s.id < 0 || (uint32_t)s.id >= (is_op ? r->n_ops : r->n_bufs))
            continue; /* compile_plan says so */
        if (!is_op) {
            c->skip[i] = s.kind == PLAN_OFFLOAD && c->moved[s.id];
            end_copies(c, s.id, s.kind == PLAN_RELEASE);
            continue;
        }
        const struct rec_op *o = &r->ops[s.id];
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const int32_t b = r->operands[k].buf;
            if (s.kind == PLAN_REPLAY && r->operands[k].mode != REC_READ)
                end_copies(c, b, false);
            else if (s.kind == PLAN_OP && !o->hold && ex->caps[s.id].kind == OP_KERNEL && c->open[b]) {
                c->after[k] = c->moved[b] = true;
                c->open[b] = false;
            }
        }
    }
}

static int copy_after_kernels(struct device *d, struct plan *p)
{
    const struct record *r = &d->ex->rec;
    struct plan q = {0};
    int err = begin_anew(&q, p);
    struct copies c = {.after = calloc(r->n_operands + 1, 1), .skip = calloc(p->n_steps + 1, 1), .open = calloc(r->n_bufs + 1, 1),
                       .moved = calloc(r->n_bufs + 1, 1)};
    if (!c.after || !c.skip || !c.open || !c.moved)
        err = -ENOMEM;
    if (!err)
        find_copies(d->ex, p, &c);
    for (size_t i = 0; i < p->n_steps && !err; i++) {
        const struct plan_step s = p->steps[i];
        if (!c.skip[i])
            err = plan_push(&q, (enum plan_kind)s.kind, s.id);
        if (s.kind != PLAN_OP || s.id < 0 || (uint32_t)s.id >= r->n_ops)
            continue;
        for (uint32_t k = r->ops[s.id].first; k < r->ops[s.id].first + r->ops[s.id].n && !err; k++)
            if (c.after[k])
                err = plan_push(&q, PLAN_OFFLOAD, r->operands[k].buf);
    }
    free(c.after);
    free(c.skip);
    free(c.open);
    free(c.moved);
    return end_anew(&q, p, err);
}

/* What outlives iterations and is on the host where one ends: buffers, in the order in which the next one wants them, into ahead[n_bufs]. */
static uint32_t find_left(const struct record *r, const struct plan *p, bool *left, int32_t *ahead)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct plan_step s = p->steps[i];
        if ((s.kind == PLAN_RELEASE || s.kind == PLAN_FETCH) && s.id >= 0 && (uint32_t)s.id < r->n_bufs)
            left[s.id] = s.kind == PLAN_RELEASE && r->bufs[s.id].alloc_ord < 0 && r->bufs[s.id].dies < 0;
    }
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct plan_step s = p->steps[i];
        const bool is_op = s.kind == PLAN_OP || s.kind == PLAN_REPLAY;
        if (s.id < 0 || (uint32_t)s.id >= (is_op ? r->n_ops : r->n_bufs))
            continue; /* compile_plan says so */
        if (!is_op) {
            left[s.id] = left[s.id] && s.kind != PLAN_RELEASE; /* before anything has wanted it: it may stay there */
            continue;
        }
        for (uint32_t k = r->ops[s.id].first; k < r->ops[s.id].first + r->ops[s.id].n; k++)
            if (left[r->operands[k].buf]) {
                left[r->operands[k].buf] = false;
                ahead[n++] = r->operands[k].buf;
            }
    }
    return n;
}

/* Such a buffer comes back behind the first kernel, beside the work that follows (and behind what the program copies to the device for that):
 * its memory is its own from the beginning of an iteration (find_lives()). The first op that wants it would bring it, else, and wait for it. */
static int fetch_ahead(struct device *d, struct plan *p)
{
    const struct record *r = &d->ex->rec;
    bool *left = calloc(r->n_bufs + 1, sizeof *left);
    int32_t *ahead = calloc(r->n_bufs + 1, sizeof *ahead);
    uint32_t n = left && ahead ? find_left(r, p, left, ahead) : 0;
    int err = left && ahead ? 0 : -ENOMEM;
    struct plan q = {0};
    if (n && !err) {
        err = begin_anew(&q, p);
        for (size_t i = 0; i < p->n_steps && !err; i++) {
            const struct plan_step s = p->steps[i];
            err = plan_push(&q, (enum plan_kind)s.kind, s.id);
            if (s.kind != PLAN_OP || s.id < 0 || (uint32_t)s.id >= r->n_ops || r->ops[s.id].hold || d->ex->caps[s.id].kind != OP_KERNEL)
                continue;
            for (uint32_t k = 0; k < n && !err; k++)
                err = plan_push(&q, PLAN_FETCH, ahead[k]);
            n = 0;
        }
        err = end_anew(&q, p, err);
    }
    free(left);
    free(ahead);
    return err;
}

int compile_plan(struct device *d, const char *path, bool own)
{
    const struct record *r = &d->ex->rec;
    char err[400];
    plan_free(&d->ex->plan);
    if (plan_read(path, &d->ex->plan, err, sizeof err)) {
        log_say(SAY_WARN, "%s", err);
        return -EINVAL;
    }
    if (!own && adopt(d, &d->ex->plan)) {
        log_say(SAY_WARN, "%s does not fit the recorded iteration (%u ops, %u buffers): made for another program?", path,
                d->ex->n_trace_ops, r->n_bufs);
        return -EINVAL;
    }
    if (copy_after_kernels(d, &d->ex->plan) || fetch_ahead(d, &d->ex->plan))
        return -ENOMEM;
    free(d->ex->step_at);
    free(d->ex->steps);
    free(d->ex->elided);
    d->ex->elided = calloc(d->ex->plan.n_steps + 1, sizeof *d->ex->elided);
    d->ex->step_at = calloc(r->n_ops + 3, sizeof *d->ex->step_at);
    d->ex->steps = calloc(d->ex->plan.n_steps + 1, sizeof *d->ex->steps);
    if (!d->ex->step_at || !d->ex->steps || !d->ex->elided)
        return -ENOMEM;
    memset(d->ex->keep, 0, r->n_bufs * sizeof *d->ex->keep);
    memset(d->ex->remade, 0, (size_t)d->ex->first_val[r->n_bufs] * sizeof *d->ex->remade);
    memset(d->ex->rebuilt, 0, r->n_bufs * sizeof *d->ex->rebuilt);
    memset(d->ex->partial, 0, r->n_bufs * sizeof *d->ex->partial);
    for (uint32_t b = 0; b < r->n_bufs; b++)
        d->ex->relied[b] = -1;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        d->ex->last_ref[b] = r->bufs[b].dies < 0 ? (int32_t)r->n_ops : r->bufs[b].dies;
    uint32_t at = 0, n = 0;
    for (size_t i = 0; i < d->ex->plan.n_steps; i++) {
        struct plan_step s = d->ex->plan.steps[i];
        uint32_t bound = s.kind == PLAN_OP || s.kind == PLAN_REPLAY ? r->n_ops : r->n_bufs;
        if (s.id < 0 || (uint32_t)s.id >= bound || (s.kind == PLAN_OP && (uint32_t)s.id != at)) {
            log_say(SAY_WARN, "%s: step %zu does not fit the recorded iteration (%u ops, %u buffers): made for another program?",
                    path, i, r->n_ops, r->n_bufs);
            return -EINVAL;
        }
        if (s.kind == PLAN_OP) {
            d->ex->step_at[++at] = n;
            continue;
        }
        d->ex->steps[n++] = s;
        if (s.kind == PLAN_REPLAY) {
            if ((uint32_t)s.id >= at || r->ops[s.id].why_opaque)
                return -EINVAL;
            for (uint32_t k = r->ops[s.id].first; k < r->ops[s.id].first + r->ops[s.id].n; k++) {
                elide_refer(d, r->operands[k].buf, (int32_t)at);
                d->ex->relied[r->operands[k].buf] = (int32_t)at;
                if (rec_makes(&r->operands[k])) {
                    d->ex->rebuilt[r->operands[k].buf] = true;
                    d->ex->remade[d->ex->first_val[r->operands[k].buf] + d->ex->out_ver[k]] = true;
                    d->ex->partial[r->operands[k].buf] |= r->operands[k].n_defined > 0;
                }
            }
        } else {
            elide_refer(d, s.id, (int32_t)at);
            if (s.kind != PLAN_DROP) /* what is dropped is made again by a later step, or never needed */
                d->ex->relied[s.id] = (int32_t)at;
        }
    }
    d->ex->step_at[r->n_ops + 1] = n;
    if (at != r->n_ops)
        return -EINVAL;
    for (size_t i = 0; i < d->ex->plan.n_keep; i++)
        if (d->ex->plan.keep[i] >= 0 && (uint32_t)d->ex->plan.keep[i] < r->n_bufs)
            d->ex->keep[d->ex->plan.keep[i]] = true;
    if (elide_replays(d) || list_last_refs(d))
        return -ENOMEM;
    if (verify_plan(d) || steady_plan(d))
        return -ENOMEM;
    d->ex->have_plan = true;
    d->ex->proved = false;
    d->ex->unproved_rounds = 0;
    return 0;
}
