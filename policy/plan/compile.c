/* From a record and a plan file to the tables that plan/ walks: versions, producers, deaths, steps by position. */
#include "policy/plan/compile.h"
#include "policy/plan/elide.h"
#include "policy/plan/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The values that each op makes, side by side: the launch path walks these alone. */
static int list_made(const struct record *r, struct compiled *p)
{
    uint32_t n = 0;
    p->made_at = malloc((r->n_ops + 1) * sizeof *p->made_at);
    p->made = malloc((r->n_operands + 1) * sizeof *p->made);
    if (!p->made_at || !p->made)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        p->made_at[i] = n;
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            if (p->out_ver[k] >= 0)
                p->made[n++] = (struct compiled_value){r->operands[k].buf, p->out_ver[k]};
    }
    p->made_at[r->n_ops] = n;
    return 0;
}

int compile_index(const struct record *r, const struct compiled **out)
{
    const uint32_t n = r->n_ops, nb = r->n_bufs;
    struct compiled *p = calloc(1, sizeof *p);
    *out = p;
    if (!p)
        return -ENOMEM;
    p->in_ver = calloc(r->n_operands + 1, sizeof *p->in_ver);
    p->out_ver = calloc(r->n_operands + 1, sizeof *p->out_ver);
    p->first_val = calloc(nb + 2, sizeof *p->first_val);
    p->die_at = calloc(n + 3, sizeof *p->die_at);
    p->die_list = calloc(nb + 1, sizeof *p->die_list);
    p->last_ref = calloc(nb + 1, sizeof *p->last_ref);
    p->keep = calloc(nb + 1, sizeof *p->keep);
    p->rebuilt = calloc(nb + 1, sizeof *p->rebuilt);
    p->relied = calloc(nb + 1, sizeof *p->relied);
    p->again_until = calloc(n + 1, sizeof *p->again_until);
    p->partial = calloc(nb + 1, sizeof *p->partial);
    int32_t *ver = calloc(nb + 1, sizeof *ver);
    if (!p->in_ver || !p->out_ver || !p->first_val || !p->die_at || !p->die_list || !p->last_ref || !p->keep || !p->rebuilt || !p->relied ||
        !p->again_until || !p->partial || !ver) {
        free(ver);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct rec_op *o = &r->ops[i];
        for (uint32_t k = o->first; k < o->first + o->n; k++) {
            const struct rec_operand *w = &r->operands[k];
            p->in_ver[k] = w->mode == REC_WRITE ? -1 : ver[w->buf];
            p->out_ver[k] = w->mode == REC_READ ? -1 : ver[w->buf] + 1;
        }
        for (uint32_t k = o->first; k < o->first + o->n; k++)
            if (p->out_ver[k] > ver[r->operands[k].buf])
                ver[r->operands[k].buf] = p->out_ver[k];
    }
    int32_t total = 0;
    for (uint32_t b = 0; b < nb; b++) {
        p->first_val[b] = total;
        total += ver[b] + 1;
    }
    p->first_val[nb] = total;
    free(ver);
    p->producer = malloc(((size_t)total + 1) * sizeof *p->producer);
    if (!p->producer)
        return -ENOMEM;
    for (int32_t i = 0; i <= total; i++)
        p->producer[i] = -1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            if (p->out_ver[k] >= 0)
                p->producer[p->first_val[r->operands[k].buf] + p->out_ver[k]] = (int32_t)i;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies >= 0)
            p->die_at[r->bufs[b].dies + 1]++;
    for (uint32_t i = 1; i <= n + 1; i++)
        p->die_at[i] += p->die_at[i - 1];
    uint32_t *fill = calloc(n + 2, sizeof *fill);
    if (!fill)
        return -ENOMEM;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies >= 0)
            p->die_list[p->die_at[r->bufs[b].dies] + fill[r->bufs[b].dies]++] = (int32_t)b;
    free(fill);
    p->used = calloc((size_t)total + 1, sizeof *p->used);
    p->remade = calloc((size_t)total + 1, sizeof *p->remade);
    p->check_turn = malloc((size_t)total + 1);
    if (!p->used || !p->remade || !p->check_turn)
        return -ENOMEM;
    for (uint32_t k = 0; k < r->n_operands; k++)
        if (p->in_ver[k] >= 0)
            p->used[p->first_val[r->operands[k].buf] + p->in_ver[k]] = true;
    for (uint32_t b = 0; b < nb; b++)
        if (r->bufs[b].dies < 0)
            p->used[p->first_val[b + 1] - 1] = true;
    return list_made(r, p);
}

/* Buffers by the position of their last reference. */
static int list_last_refs(const struct record *r, struct compiled *p)
{
    uint32_t n = r->n_ops, nb = r->n_bufs;
    free(p->ref_at);
    free(p->ref_list);
    p->ref_at = calloc(n + 3, sizeof *p->ref_at);
    p->ref_list = calloc(nb + 1, sizeof *p->ref_list);
    uint32_t *fill = calloc(n + 2, sizeof *fill);
    if (!p->ref_at || !p->ref_list || !fill) {
        free(fill);
        return -ENOMEM;
    }
    for (uint32_t b = 0; b < nb; b++)
        p->ref_at[p->last_ref[b] + 1]++;
    for (uint32_t i = 1; i <= n + 1; i++)
        p->ref_at[i] += p->ref_at[i - 1];
    for (uint32_t b = 0; b < nb; b++)
        p->ref_list[p->ref_at[p->last_ref[b]] + fill[p->last_ref[b]]++] = (int32_t)b;
    free(fill);
    return 0;
}

/* q begins as p without its steps, which are then written anew, one by one. */
static int begin_anew(struct plan *q, const struct plan *p)
{
    int err = plan_copy(q, p);
    q->n_steps = 0;
    return err;
}

/* q takes the place of p; on an error p stays and q is freed. */
static int end_anew(struct plan *q, struct plan *p, int err)
{
    plan_free(err ? q : p);
    if (!err)
        *p = *q;
    return err;
}

/* The hold of buffer b among the holds that come next, from op `next` on; -1: none. */
static int32_t hold_ahead(const struct record *r, int32_t next, int32_t b)
{
    for (uint32_t i = (uint32_t)next; i < r->n_ops && r->ops[i].hold; i++)
        if (r->operands[r->ops[i].first].buf == b)
            return (int32_t)i;
    return -1;
}

/* Buffer b leaves the plan's keep list: its memory goes where the program frees it. */
static void forget_keep(struct plan *p, int32_t b)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_keep; i++)
        if (p->keep[i] != b)
            p->keep[n++] = p->keep[i];
    p->n_keep = n;
}

/* A user's plan has no holds: its ops get their numbers here, and holds stand before the op they precede. Such a plan may drop a buffer that
 * the program still holds and that no later step brings back; this drop is left out, so that leaving the plan loses nothing. If the buffer's hold comes
 * next, the hold takes the drop's place: the buffer goes behind the hold, before the steps that follow, as the plan has counted (offline/model/held.h). */
static int adopt(const struct recording *rec, struct plan *p)
{
    const struct record *r = &rec->rec;
    struct plan q = {0};
    int32_t next = 0;
    uint32_t n_seen = 0;
    int err = begin_anew(&q, p);
    bool *back = calloc(r->n_bufs + 1, sizeof *back); /* [n_bufs] a later step brings the buffer back */
    bool *skip = calloc(p->n_steps + 1, sizeof *skip);
    if (!back || !skip)
        err = -ENOMEM;
    for (size_t i = p->n_steps; i-- > 0 && !err;) {
        struct plan_step s = p->steps[i];
        bool op = s.kind == PLAN_OP || s.kind == PLAN_REPLAY;
        if (s.id < 0 || (uint32_t)s.id >= (op ? rec->n_trace_ops : r->n_bufs)) {
            err = -EINVAL;
            break;
        }
        if (op) { /* a buffer that the op overwrites needs no bringing back before the op */
            const struct rec_op *o = &r->ops[rec->op_of_trace[s.id]];
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
            s.id = (int32_t)rec->op_of_trace[s.id];
        else if (s.kind == PLAN_OP) {
            s.id = (int32_t)rec->op_of_trace[s.id];
            for (; next < s.id && !err; next++)
                err = plan_push(&q, PLAN_OP, next);
            next = s.id + 1;
            n_seen++;
        }
        for (const int32_t to = skip[i] ? hold_ahead(r, next, s.id) : -1; next <= to && !err; next++)
            err = plan_push(&q, PLAN_OP, next);
        if (skip[i] && (r->bufs[s.id].dies > next || (r->bufs[s.id].dies == next && q.n_steps && q.steps[q.n_steps - 1].kind == PLAN_OP)))
            forget_keep(&q, s.id); /* no step reads the buffer after its end */
        if (!err && !skip[i])
            err = plan_push(&q, (enum plan_kind)s.kind, s.id);
    }
    if (!err && n_seen != rec->n_trace_ops)
        err = -EINVAL;
    for (; (uint32_t)next < r->n_ops && !err; next++)
        err = plan_push(&q, PLAN_OP, next);
    free(back);
    free(skip);
    return end_anew(&q, p, err);
}

/* A host copy is stale once a kernel has touched the buffer (note_modes()). So a copy that would begin before the last such kernel begins after
 * that kernel, and once more where the plan would take an older copy for good. Steps are walked backwards. */
struct copies {
    bool *after; /* [n_operands] a copy of the operand's buffer begins after its op */
    bool *skip;  /* [n_steps] this offload is left out: its copy begins further on */
    bool *open;  /* [n_bufs] the buffer is released further on, and no copy begins between here and there */
    bool *moved; /* [n_bufs] a copy that would begin here has been put further on */
};

static void end_copies(struct copies *c, int32_t b, bool open)
{
    c->open[b] = open;
    c->moved[b] = false;
}

static void find_copies(const struct recording *rec, const struct plan *p, struct copies *c)
{
    const struct record *r = &rec->rec;
    for (size_t i = p->n_steps; i-- > 0;) {
        const struct plan_step s = p->steps[i];
        const bool is_op = s.kind == PLAN_OP || s.kind == PLAN_REPLAY;
        if (s.id < 0 || (uint32_t)s.id >= (is_op ? r->n_ops : r->n_bufs))
            continue; /* compile_plan() reports the bad id */
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
            else if (s.kind == PLAN_OP && !o->hold && rec->caps[s.id].kind == OP_KERNEL && c->open[b]) {
                c->after[k] = c->moved[b] = true;
                c->open[b] = false;
            }
        }
    }
}

static int copy_after_kernels(const struct recording *rec, struct plan *p)
{
    const struct record *r = &rec->rec;
    struct plan q = {0};
    int err = begin_anew(&q, p);
    struct copies c = {.after = calloc(r->n_operands + 1, 1), .skip = calloc(p->n_steps + 1, 1), .open = calloc(r->n_bufs + 1, 1),
                       .moved = calloc(r->n_bufs + 1, 1)};
    if (!c.after || !c.skip || !c.open || !c.moved)
        err = -ENOMEM;
    if (!err)
        find_copies(rec, p, &c);
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

/* Buffers that outlive iterations and are on the host where one ends, in the order in which the next iteration wants them, into ahead[n_bufs].
 * Returns how many. */
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
            continue; /* compile_plan() reports the bad id */
        if (!is_op) {
            left[s.id] = left[s.id] && s.kind != PLAN_RELEASE; /* released before an op has wanted the buffer: it may stay on the host */
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

/* Buffers that find_left() finds come back behind the first kernel, beside the work that follows (and behind the copies to the device that the
 * program makes for that work): their memory is theirs from the beginning of an iteration (colour_lives()). Otherwise the first op that wants such a
 * buffer would fetch it and wait. */
static int fetch_ahead(const struct recording *rec, struct plan *p)
{
    const struct record *r = &rec->rec;
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
            if (s.kind != PLAN_OP || s.id < 0 || (uint32_t)s.id >= r->n_ops || r->ops[s.id].hold || rec->caps[s.id].kind != OP_KERNEL)
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

static void refer(struct compiled *p, int32_t b, int32_t at)
{
    if (p->last_ref[b] < at)
        p->last_ref[b] = at;
}

/* Makes a plan that was given away as const writable again: the plan is this file's, from calloc() to free(). */
static struct compiled *mine(const struct compiled *p) { return (struct compiled *)(uintptr_t)p; }

void compile_free(const struct compiled *index)
{
    struct compiled *p = mine(index);
    if (!p)
        return;
    plan_free(&p->as_read);
    void *const tables[] = {p->in_ver,  p->out_ver,  p->made_at, p->made,   p->first_val, p->producer, p->die_at,  p->die_list, p->used,   p->step_at,
                            p->steps,   p->elided,   p->ref_at,  p->ref_list, p->last_ref,  p->relied,   p->again_until, p->keep,    p->rebuilt,  p->partial, p->remade,
                            p->check_turn};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        free(tables[i]);
    free(p);
}

void compile_fills(const struct compiled *index, const struct record *r, const int32_t *filled_by)
{
    struct compiled *p = mine(index);
    for (uint32_t i = 0; i < r->n_ops; i++)
        for (uint32_t k = r->ops[i].first; k < r->ops[i].first + r->ops[i].n; k++)
            if (filled_by[k] >= 0 && p->again_until[filled_by[k]] < p->again_until[i])
                p->again_until[filled_by[k]] = p->again_until[i];
}

int compile_plan(const struct compiled *index, const struct recording *rec, const char *path, bool own)
{
    struct compiled *p = mine(index);
    const struct record *r = &rec->rec;
    char err[400];
    plan_free(&p->as_read);
    if (plan_read(path, &p->as_read, err, sizeof err)) {
        log_say(SAY_WARN, "%s", err);
        return -EINVAL;
    }
    if (!own && adopt(rec, &p->as_read)) {
        log_say(SAY_INFO, "%s does not fit the recorded iteration (%u ops, %u buffers): made for another program?", path,
                rec->n_trace_ops, r->n_bufs);
        return -EINVAL;
    }
    if (copy_after_kernels(rec, &p->as_read) || fetch_ahead(rec, &p->as_read))
        return -ENOMEM;
    free(p->step_at);
    free(p->steps);
    free(p->elided);
    p->elided = calloc(p->as_read.n_steps + 1, sizeof *p->elided);
    p->step_at = calloc(r->n_ops + 3, sizeof *p->step_at);
    p->steps = calloc(p->as_read.n_steps + 1, sizeof *p->steps);
    if (!p->step_at || !p->steps || !p->elided)
        return -ENOMEM;
    memset(p->keep, 0, r->n_bufs * sizeof *p->keep);
    memset(p->remade, 0, (size_t)p->first_val[r->n_bufs] * sizeof *p->remade);
    memset(p->rebuilt, 0, r->n_bufs * sizeof *p->rebuilt);
    memset(p->partial, 0, r->n_bufs * sizeof *p->partial);
    for (uint32_t b = 0; b < r->n_bufs; b++)
        p->relied[b] = -1;
    for (uint32_t i = 0; i < r->n_ops; i++)
        p->again_until[i] = -1;
    for (uint32_t b = 0; b < r->n_bufs; b++)
        p->last_ref[b] = r->bufs[b].dies < 0 ? (int32_t)r->n_ops : r->bufs[b].dies;
    uint32_t at = 0, n = 0;
    for (size_t i = 0; i < p->as_read.n_steps; i++) {
        struct plan_step s = p->as_read.steps[i];
        uint32_t bound = s.kind == PLAN_OP || s.kind == PLAN_REPLAY ? r->n_ops : r->n_bufs;
        if (s.id < 0 || (uint32_t)s.id >= bound || (s.kind == PLAN_OP && (uint32_t)s.id != at)) {
            log_say(SAY_INFO, "%s: step %zu does not fit the recorded iteration (%u ops, %u buffers): made for another program?",
                    path, i, r->n_ops, r->n_bufs);
            return -EINVAL;
        }
        if (s.kind == PLAN_OP) {
            p->step_at[++at] = n;
            continue;
        }
        p->steps[n++] = s;
        if (s.kind == PLAN_REPLAY) {
            if ((uint32_t)s.id >= at || r->ops[s.id].why_opaque)
                return -EINVAL;
            p->again_until[s.id] = (int32_t)at;
            for (uint32_t k = r->ops[s.id].first; k < r->ops[s.id].first + r->ops[s.id].n; k++) {
                refer(p, r->operands[k].buf, (int32_t)at);
                p->relied[r->operands[k].buf] = (int32_t)at;
                if (rec_makes(&r->operands[k])) {
                    p->rebuilt[r->operands[k].buf] = true;
                    p->remade[p->first_val[r->operands[k].buf] + p->out_ver[k]] = true;
                    p->partial[r->operands[k].buf] |= r->operands[k].n_defined > 0;
                }
            }
        } else {
            refer(p, s.id, (int32_t)at);
            if (s.kind != PLAN_DROP) /* a dropped value is made again by a later step, or never needed */
                p->relied[s.id] = (int32_t)at;
        }
    }
    p->step_at[r->n_ops + 1] = n;
    if (at != r->n_ops)
        return -EINVAL;
    for (size_t i = 0; i < p->as_read.n_keep; i++)
        if (p->as_read.keep[i] >= 0 && (uint32_t)p->as_read.keep[i] < r->n_bufs)
            p->keep[p->as_read.keep[i]] = true;
    if (elide_replays(r, p) || list_last_refs(r, p))
        return -ENOMEM;
    verify_turns(r, p, p->check_turn);
    return 0;
}
