/* Using up the room a plan leaves: values that a plan drops and replays are kept instead wherever they fit. */
#include "offline/model/sched_fill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sched.h"
#include "offline/model/sched_tighten.h"

/* Longest in-place chain that is kept as a whole: a write and so many minus one updates of the same buffer. */
#define FILL_CHAIN 4

/* What happened last to a buffer, as the walk goes on. */
struct fill_buf {
    int32_t res;      /* value in it; -1 none */
    int32_t made_at;  /* the step that put it there; -1: before the first */
    int32_t lost_made; /* made_at of what was lost */
    int32_t lost;     /* value it held last, if nothing else came since; -1 */
    int32_t lost_at;  /* step after which it was gone */
    int32_t drop;     /* the PLAN_DROP step that gave it up; -1: the program freed it */
    int32_t chain[FILL_CHAIN]; /* replays that have been rebuilding `lost` in place since, from its first version on */
    int32_t n_chain;  /* -1: somebody else read a version on the way, or more than FILL_CHAIN steps */
    uint8_t dead;     /* the program has freed it */
    uint8_t lost_dead; /* ... already when the value was given up */
    uint8_t keep;
};

/* A replay that would not be needed if its outputs had stayed. Its outputs are outs[at .. at + n): those that would have
 * to stay, and those it makes for nobody, whose drops go with it (from: the replay itself). */
struct fill_out {
    int32_t buf, from, drop;
    int32_t made; /* the step that made what would stay; -1: it was there before the first, or does not stay */
    int32_t chain[FILL_CHAIN], n_chain; /* replays that go as well */
    uint8_t keep; /* the program frees the buffer in between */
};

struct fill_option {
    int32_t step, at, n;
    int32_t spills;  /* it also makes values for nobody, which will not be there without it */
    double worth; /* ns saved per byte held */
};

struct fill {
    struct sched *s;
    const struct plan *p;
    struct fill_buf *bufs;
    struct fill_option *options;
    struct fill_out *outs;
    int32_t n_options, n_outs;
    int64_t *use;    /* [n_steps] */
    uint8_t *remove; /* [n_steps] 1: goes; 2: a replay that goes and spills */
    uint8_t *pinned; /* [n_steps] replays that make what a chosen option keeps */
};

static void fill_free(struct fill *f)
{
    free(f->bufs);
    free(f->options);
    free(f->outs);
    free(f->use);
    free(f->remove);
    free(f->pinned);
}

static int fill_alloc(struct fill *f)
{
    const struct graph *g = f->s->g;
    size_t n = f->p->n_steps, outs = 1, i;

    for (i = 0; i < n; i++)
        if (f->p->steps[i].kind == PLAN_REPLAY)
            outs += (size_t)graph_n_operands(&g->ops[f->p->steps[i].id]);
    f->bufs = calloc((size_t)g->n_bufs + 1, sizeof(*f->bufs));
    f->options = calloc(n + 1, sizeof(*f->options));
    f->outs = calloc(outs, sizeof(*f->outs));
    f->use = calloc(n + 1, sizeof(*f->use));
    f->remove = calloc(n + 1, 1);
    f->pinned = calloc(n + 1, 1);
    return f->bufs && f->options && f->outs && f->use && f->remove && f->pinned ? 0 : -ENOMEM;
}

static void fill_lose(struct fill_buf *b, int32_t step, int32_t drop)
{
    b->lost = b->res;
    b->lost_at = step;
    b->lost_made = b->made_at;
    b->drop = drop;
    b->lost_dead = b->dead;
    b->n_chain = 0;
    b->res = -1;
}

static void fill_frees(struct fill *f, int32_t i, int32_t step)
{
    const struct graph *g = f->s->g;
    int32_t k;

    for (k = g->dies_at[i]; k < g->dies_at[i + 1]; k++) {
        struct fill_buf *b = &f->bufs[g->die_list[k]];

        if (!b->keep && b->res >= 0)
            fill_lose(b, step, -1);
        b->dead = 1;
    }
}

/* Polished plans drop what a replay makes for nobody right after it: that step, or -1. */
static int32_t fill_dropped_next(const struct plan *p, size_t step, int32_t buf)
{
    for (step++; step < p->n_steps && p->steps[step].kind == PLAN_DROP; step++)
        if (p->steps[step].id == buf)
            return (int32_t)step;
    return -1;
}

/* The replay at `step` begins or continues an in-place chain that rebuilds what the buffer of operand k lost, and does
 * nothing else: what it makes besides is there already. */
static int fill_links(const struct fill *f, const struct graph_op *o, const struct graph_operand *u, int32_t k, size_t step)
{
    const struct fill_buf *b = &f->bufs[u[k].buf];
    int32_t i;

    if (b->lost < 0 || u[k].out >= b->lost || b->n_chain < 0 || b->n_chain == FILL_CHAIN - 1)
        return 0;
    if (u[k].role == GRAPH_WRITE ? b->res >= 0 || b->n_chain : b->n_chain == 0)
        return 0;
    for (i = o->n_reads; i < graph_n_operands(o); i++)
        if (i != k && u[i].role != GRAPH_SIDE && (u[i].role == GRAPH_RMW || f->bufs[u[i].buf].res != u[i].out))
            return 0;
    return fill_dropped_next(f->p, step, u[k].buf) < 0;
}

/* Note the replay at `step` if all it brings back was merely given up, and nothing else came into those buffers since but
 * the steps of its own in-place chain. */
static void fill_note(struct fill *f, size_t step)
{
    const struct graph *g = f->s->g;
    const struct graph_op *o = &g->ops[f->p->steps[step].id];
    const struct graph_operand *u = graph_operands(g, f->p->steps[step].id);
    struct fill_option *opt = &f->options[f->n_options];
    int64_t bytes = 1, ns = o->ns;
    int32_t k, n = graph_n_operands(o), i, wanted = 0;

    opt->at = f->n_outs;
    opt->n = opt->spills = 0;
    for (k = o->n_reads; k < n; k++) {
        const struct fill_buf *b = &f->bufs[u[k].buf];
        struct fill_out *out = &f->outs[f->n_outs + opt->n];
        int32_t dropped;

        if (u[k].role == GRAPH_SIDE || (u[k].role == GRAPH_WRITE && b->res == u[k].out))
            continue;
        memset(out, 0, sizeof(*out));
        out->buf = u[k].buf;
        dropped = fill_dropped_next(f->p, step, u[k].buf);
        opt->n++;
        if (dropped >= 0 && u[k].role == GRAPH_WRITE && b->res < 0) {
            out->from = (int32_t)step;
            out->drop = dropped;
            out->made = -1;
            opt->spills = 1;
            continue;
        }
        if (b->lost != u[k].out || b->n_chain < 0 || (b->res >= 0 && b->n_chain == 0))
            return;
        out->from = b->lost_at;
        out->made = b->lost_made;
        out->drop = b->drop;
        out->keep = b->drop < 0 || (b->dead && !b->lost_dead);
        out->n_chain = b->n_chain;
        memcpy(out->chain, b->chain, sizeof(out->chain));
        for (i = 0; i < b->n_chain; i++)
            ns += g->ops[f->p->steps[b->chain[i]].id].ns;
        bytes += g->bufs[u[k].buf].bytes;
        wanted = 1;
    }
    if (!wanted)
        return;
    opt->step = (int32_t)step;
    opt->worth = (double)ns / (double)bytes;
    f->n_outs += opt->n;
    f->n_options++;
}

/* What an op or replay does to the buffers' histories. */
static void fill_exec(struct fill *f, size_t step, int replay, int32_t op)
{
    const struct graph_op *o = &f->s->g->ops[op];
    const struct graph_operand *u = graph_operands(f->s->g, op);
    int32_t k, link = -1;

    for (k = o->n_reads; k < graph_n_operands(o) && replay && link < 0; k++)
        if (u[k].role != GRAPH_SIDE && fill_links(f, o, u, k, step))
            link = k;
    for (k = 0; k < o->n_reads; k++)
        if (f->bufs[u[k].buf].n_chain > 0 && f->bufs[u[k].buf].res != f->bufs[u[k].buf].lost)
            f->bufs[u[k].buf].n_chain = -1;
    for (k = o->n_reads; k < graph_n_operands(o); k++) {
        struct fill_buf *b = &f->bufs[u[k].buf];

        if (replay && u[k].role == GRAPH_SIDE)
            continue;
        if (k == link) {
            b->chain[b->n_chain++] = (int32_t)step;
        } else {
            b->lost = -1;
            b->n_chain = 0;
        }
        b->res = u[k].out;
        b->made_at = (int32_t)step;
    }
}

static void fill_walk(struct fill *f)
{
    const struct graph *g = f->s->g;
    const struct plan *p = f->p;
    int32_t b, next = 0;
    size_t i;

    for (b = 0; b < g->n_bufs; b++) {
        f->bufs[b].res = g->bufs[b].born < 0 ? g->bufs[b].first_val : -1;
        f->bufs[b].lost = f->bufs[b].made_at = -1;
    }
    for (i = 0; i < p->n_keep; i++)
        if (p->keep[i] >= 0 && p->keep[i] < g->n_bufs) /* the simulator lets others pass */
            f->bufs[p->keep[i]].keep = 1;
    fill_frees(f, 0, -1);
    for (i = 0; i < p->n_steps; i++) {
        int32_t kind = p->steps[i].kind, id = p->steps[i].id;

        if (kind == PLAN_OP || kind == PLAN_REPLAY) {
            if (kind == PLAN_REPLAY)
                fill_note(f, i);
            fill_exec(f, i, kind == PLAN_REPLAY, id);
            if (kind == PLAN_OP)
                fill_frees(f, ++next, (int32_t)i);
        } else if (kind == PLAN_DROP) {
            fill_lose(&f->bufs[id], (int32_t)i, (int32_t)i);
        } else if (kind == PLAN_RELEASE) {
            f->bufs[id].res = f->bufs[id].lost = -1;
        } else if (kind == PLAN_FETCH) {
            f->bufs[id].res = -2; /* whatever it is: not for us */
            f->bufs[id].lost = -1;
        }
    }
}

static int fill_by_worth(const void *x, const void *y)
{
    const struct fill_option *a = x, *b = y;

    if (a->worth != b->worth)
        return a->worth > b->worth ? -1 : 1;
    return (a->step > b->step) - (a->step < b->step);
}

/* What one option keeps may not be what another's replay spills: taken away, it would not be made at all. The next round
 * sees the plan as it then is. */
static int fill_free_to_take(const struct fill *f, const struct fill_option *opt)
{
    int32_t k, j, clash = opt->spills && f->pinned[opt->step];

    for (k = opt->at; k < opt->at + opt->n; k++) {
        clash |= f->outs[k].made >= 0 && f->remove[f->outs[k].made] == 2;
        for (j = 0; j < f->outs[k].n_chain; j++)
            clash |= f->pinned[f->outs[k].chain[j]];
    }
    return !clash;
}

/* Put the bytes of the option's outputs over the steps they would stay; take them away again if they do not fit. */
static int fill_place(struct fill *f, const struct fill_option *opt, int64_t limit)
{
    int32_t k, i;
    int fits = 1;

    for (k = opt->at; k < opt->at + opt->n; k++)
        for (i = f->outs[k].from + 1; i <= opt->step; i++) {
            f->use[i] += i < opt->step ? f->s->g->bufs[f->outs[k].buf].bytes : 0;
            fits &= f->use[i] <= limit;
        }
    if (!fits)
        for (k = opt->at; k < opt->at + opt->n; k++)
            for (i = f->outs[k].from + 1; i < opt->step; i++)
                f->use[i] -= f->s->g->bufs[f->outs[k].buf].bytes;
    return fits;
}

/* The plan without the chosen replays and the drops that made them necessary. */
static int fill_rewrite(struct fill *f, struct plan *to)
{
    const struct plan *p = f->p;
    size_t i;
    int rc = 0;

    plan_reset(to);
    for (i = 0; i < p->n_steps && !rc; i++)
        if (!f->remove[i])
            rc = plan_push(to, (enum plan_kind)p->steps[i].kind, p->steps[i].id);
    for (i = 0; i < (size_t)f->s->g->n_bufs && !rc; i++)
        if (f->bufs[i].keep)
            rc = plan_keep(to, (int32_t)i);
    return rc;
}

/* One round. Returns the number of replays taken out of *to, or an error. */
static int fill_round(struct sched *s, const struct plan *p, int64_t limit, struct plan *to)
{
    struct fill f = {.s = s, .p = p};
    struct sim_result r;
    int32_t i, k, taken = 0;
    int rc = fill_alloc(&f);

    if (!rc)
        rc = sim_profile(s->g, p, f.use, NULL, &r);
    if (!rc && !r.ok && r.error_step >= 0)
        rc = -EINVAL;
    if (rc)
        goto done;
    fill_walk(&f);
    qsort(f.options, (size_t)f.n_options, sizeof(*f.options), fill_by_worth);
    for (i = 0; i < f.n_options; i++) {
        const struct fill_option *opt = &f.options[i];

        if (!fill_free_to_take(&f, opt) || !fill_place(&f, opt, limit))
            continue;
        f.remove[opt->step] = opt->spills ? 2 : 1;
        for (k = opt->at; k < opt->at + opt->n; k++) {
            int32_t j;

            if (f.outs[k].made >= 0)
                f.pinned[f.outs[k].made] = 1;
            if (f.outs[k].drop >= 0)
                f.remove[f.outs[k].drop] = 1;
            for (j = 0; j < f.outs[k].n_chain; j++)
                f.remove[f.outs[k].chain[j]] = 1;
            if (f.outs[k].keep)
                f.bufs[f.outs[k].buf].keep = 1;
        }
        taken++;
    }
    rc = taken ? fill_rewrite(&f, to) : 0;
done:
    fill_free(&f);
    return rc ? rc : taken;
}

int sched_fill(struct sched *s, struct plan *p, int64_t limit_bytes, struct sim_result *r)
{
    struct plan next = {0};
    struct sim_result now;
    int rc;

    sim_run_ws(s->sim, p, limit_bytes, r);
    while (r->ok && r->replays && (rc = fill_round(s, p, limit_bytes, &next)) > 0) {
        rc = sched_tighten(s, &next);
        if (rc == -EINVAL)
            break;
        if (rc) {
            plan_free(&next);
            return rc;
        }
        sim_run_ws(s->sim, &next, limit_bytes, &now);
        if (!now.ok || now.ns >= r->ns)
            break;
        *r = now;
        {
            struct plan swap = *p;

            *p = next;
            next = swap;
            p->limit_bytes = swap.limit_bytes;
            memcpy(p->solver, swap.solver, sizeof(p->solver));
            memcpy(p->trace, swap.trace, sizeof(p->trace));
        }
    }
    plan_free(&next);
    return 0;
}
