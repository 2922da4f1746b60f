#include "offline/model/sim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/plain.h"

/* The rules are verify_plan.py's, in its order: the same plan must fail at the same step for the same reason, and the
 * clocks must add up in the same order to be equal to the last bit. */

struct sim_buf {
    int32_t res;     /* resident version; -1 none */
    int32_t cur;     /* the program's current version; -1 once it has freed the buffer */
    int32_t host;    /* version held by the host; -1 none */
    uint8_t keep;    /* stays when the program frees it */
    uint8_t coming;  /* a copy in is under way */
    double host_at;  /* when the copy out is done */
    double coming_at;
};

struct sim_ws {
    const struct graph *g;
    struct sim_buf *b;
    int64_t used;
    double t, out, in; /* clocks: compute, copies out, copies in (ns) */
};

struct sim_ws *sim_ws_new(const struct graph *g)
{
    struct sim_ws *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->g = g;
    w->b = calloc((size_t)g->n_bufs + 1, sizeof(*w->b));
    if (!w->b) {
        free(w);
        return NULL;
    }
    return w;
}

void sim_ws_free(struct sim_ws *w)
{
    if (w)
        free(w->b);
    free(w);
}

/* leaves room for the rest of the message */
#define SIM_NAME(o) plain_name((o)->name, (char[128]){0}, 128)

static void sim_say(struct sim_result *r, int64_t step, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void sim_say(struct sim_result *r, int64_t step, const char *fmt, ...)
{
    va_list ap;
    int n = 0;

    r->ok = 0;
    r->error_step = step;
    if (step >= 0)
        n = snprintf(r->error, sizeof(r->error), "step %lld: ", (long long)step);
    va_start(ap, fmt);
    vsnprintf(r->error + n, sizeof(r->error) - (size_t)n, fmt, ap);
    va_end(ap);
}

static void sim_frees(struct sim_ws *w, int32_t i)
{
    const struct graph *g = w->g;
    int32_t k;

    for (k = g->dies_at[i]; k < g->dies_at[i + 1]; k++) {
        struct sim_buf *b = &w->b[g->die_list[k]];

        b->cur = -1;
        if (b->keep)
            continue;
        if (b->res >= 0) {
            w->used -= g->bufs[g->die_list[k]].bytes;
            b->res = -1;
            b->coming = 0;
        }
        b->host = -1;
    }
}

static double sim_copy_ns(const struct graph *g, int32_t b) { return (double)g->bufs[b].bytes / g->host_bytes_per_s * 1e9; }

static int32_t sim_version(const struct graph *g, int32_t val) { return g->vals[val].version; }

/* One output of op v. Returns 0, or -1 with r filled. */
static int sim_make(struct sim_ws *w, int replay, int32_t v, const struct graph_operand *u, int in_uses, int64_t k,
                    struct sim_result *r)
{
    struct sim_buf *b = &w->b[u->buf];
    int32_t made = sim_version(w->g, u->out);

    if (replay && b->res >= 0 && b->res == b->cur && b->cur != made) {
        sim_say(r, k, "replay %d would overwrite live buffer %d (version %d) with version %d", v, u->buf, b->cur, made);
        return -1;
    }
    if (b->host >= 0 && b->res >= 0 && b->host_at > w->t && b->host != made)
        w->t = b->host_at; /* a copy out still reads it */
    if (b->res < 0)
        w->used += w->g->bufs[u->buf].bytes;
    b->res = made;
    if (!replay)
        b->cur = made;
    if (b->host >= 0 && b->host != b->cur)
        b->host = -1;
    if (!in_uses)
        b->coming = 0;
    return 0;
}

static int sim_exec(struct sim_ws *w, int replay, int32_t v, int64_t k, int64_t *peak, struct sim_result *r)
{
    const struct graph *g = w->g;
    const struct graph_op *o = &g->ops[v];
    const struct graph_operand *u = graph_operands(g, v);
    int32_t n_uses = o->n_reads + o->n_rmw + (replay ? 0 : o->n_side), n = graph_n_operands(o), i;
    const char *what = replay ? "replay" : "op";

    for (i = 0; i < n_uses; i++) {
        const struct sim_buf *b = &w->b[u[i].buf];

        if (b->res < 0) {
            sim_say(r, k, "%s %d %s reads buffer %d, which is not resident", what, v, SIM_NAME(o), u[i].buf);
            return -1;
        }
        if (b->res != sim_version(g, u[i].in)) {
            sim_say(r, k, "%s %d %s needs buffer %d at version %d, resident is %d", what, v, SIM_NAME(o), u[i].buf,
                    sim_version(g, u[i].in), b->res);
            return -1;
        }
    }
    for (i = n - o->n_writes; i < n; i++)
        if (sim_make(w, replay, v, &u[i], 0, k, r))
            return -1;
    for (i = o->n_reads; i < n_uses; i++) /* rmw and, for the op itself, side */
        if (sim_make(w, replay, v, &u[i], 1, k, r))
            return -1;
    if (w->used + (replay ? o->side_bytes : 0) > *peak)
        *peak = w->used + (replay ? o->side_bytes : 0);
    for (i = 0; i < n_uses; i++) {
        struct sim_buf *b = &w->b[u[i].buf];

        if (b->coming && b->coming_at > w->t)
            w->t = b->coming_at;
        b->coming = 0;
    }
    w->t += (double)o->ns;
    return 0;
}

static int sim_move(struct sim_ws *w, int kind, int32_t id, int64_t k, int64_t *peak, struct sim_result *r)
{
    const struct graph *g = w->g;
    struct sim_buf *b = &w->b[id];
    const char *what = plan_kind_name(kind);

    if (kind != PLAN_FETCH && b->res < 0) {
        sim_say(r, k, "%s of buffer %d, which is not resident", what, id);
        return -1;
    }
    switch (kind) {
    case PLAN_DROP:
        if (b->coming && b->coming_at > w->t)
            w->t = b->coming_at;
        b->coming = 0;
        w->used -= g->bufs[id].bytes;
        b->res = -1;
        return 0;
    case PLAN_OFFLOAD:
        if (b->coming) {
            sim_say(r, k, "offload of buffer %d, which is still coming in", id);
            return -1;
        }
        w->out = (w->t > w->out ? w->t : w->out) + sim_copy_ns(g, id);
        b->host = b->res;
        b->host_at = w->out;
        r->offloads++;
        return 0;
    case PLAN_RELEASE:
        if (b->host < 0 || b->host != b->res) {
            sim_say(r, k, "release of buffer %d, which has no host copy of its version", id);
            return -1;
        }
        if (b->host_at > w->t)
            w->t = b->host_at;
        if (b->coming && b->coming_at > w->t)
            w->t = b->coming_at;
        b->coming = 0;
        w->used -= g->bufs[id].bytes;
        b->res = -1;
        return 0;
    default:
        if (b->host < 0) {
            sim_say(r, k, "fetch of buffer %d, which has no host copy", id);
            return -1;
        }
        if (b->res >= 0) {
            sim_say(r, k, "fetch of buffer %d, which is resident", id);
            return -1;
        }
        w->used += g->bufs[id].bytes;
        *peak = w->used > *peak ? w->used : *peak;
        b->res = b->host;
        w->in = w->in > w->t ? w->in : w->t;
        w->in = (w->in > b->host_at ? w->in : b->host_at) + sim_copy_ns(g, id);
        b->coming = 1;
        b->coming_at = w->in;
        return 0;
    }
}

static void sim_start(struct sim_ws *w, const struct plan *p)
{
    const struct graph *g = w->g;
    int32_t i;
    size_t k;

    memset(w->b, 0, (size_t)g->n_bufs * sizeof(*w->b));
    w->used = 0;
    w->t = w->out = w->in = 0;
    for (i = 0; i < g->n_bufs; i++) {
        w->b[i].res = w->b[i].host = -1;
        if (g->bufs[i].born < 0) {
            w->b[i].res = 0;
            w->used += g->bufs[i].bytes;
        }
    }
    for (k = 0; k < p->n_keep; k++)
        if (p->keep[k] >= 0 && p->keep[k] < g->n_bufs)
            w->b[p->keep[k]].keep = 1;
}

static void sim_judge(struct sim_ws *w, const struct plan *p, int64_t limit, struct sim_result *r, int64_t *use, double *clock)
{
    const struct graph *g = w->g;
    int64_t peak, k;
    int32_t next = 0, i;
    double end;

    memset(r, 0, sizeof(*r));
    r->error_step = r->peak_step = -1;
    sim_start(w, p);
    r->peak_bytes = w->used;
    sim_frees(w, 0);
    for (k = 0; k < (int64_t)p->n_steps; k++) {
        int32_t kind = p->steps[k].kind, v = p->steps[k].id;
        int replay = kind == PLAN_REPLAY, bad;

        peak = r->peak_bytes;
        if (kind == PLAN_OP || replay) {
            if (v < 0 || v >= g->n_ops)
                return sim_say(r, k, "no op %d", v);
            if (!replay && v != next)
                return sim_say(r, k, "op %d out of order, expected %d", v, next);
            if (replay && v >= next)
                return sim_say(r, k, "replay of op %d before it ran", v);
            if (replay && g->ops[v].opaque)
                return sim_say(r, k, "op %d may not be replayed", v);
            bad = sim_exec(w, replay, v, k, &peak, r);
        } else if (kind < 0 || kind >= PLAN_N_KINDS) {
            return sim_say(r, k, "unknown step %d", kind);
        } else if (v < 0 || v >= g->n_bufs) {
            return sim_say(r, k, "no buffer %d", v);
        } else {
            bad = sim_move(w, kind, v, k, &peak, r);
        }
        if (peak > r->peak_bytes) {
            r->peak_bytes = peak;
            r->peak_step = k;
        }
        if (bad)
            return;
        if (use)
            use[k] = w->used + (replay ? g->ops[v].side_bytes : 0);
        if (clock)
            clock[k] = w->t;
        r->replays += replay;
        if (kind == PLAN_OP)
            sim_frees(w, ++next);
    }
    if (next != g->n_ops)
        return sim_say(r, -1, "%d of %d ops ran", next, g->n_ops);
    for (i = 0; i < g->n_bufs; i++)
        if (g->bufs[i].survives && w->b[i].res != g->bufs[i].n_vers - 1 && w->b[i].host != g->bufs[i].n_vers - 1)
            return sim_say(r, -1, "buffer %d is not back at its final version at the end", i);
    end = w->t > w->out ? w->t : w->out;
    end = end > w->in ? end : w->in;
    r->ns = (int64_t)end;
    r->overhead = g->total_ns ? (double)r->ns / (double)g->total_ns - 1 : 0;
    r->ok = 1;
    if (limit <= 0)
        limit = p->limit_bytes;
    if (limit > 0 && r->peak_bytes > limit)
        sim_say(r, -1, "peak %lld over limit %lld", (long long)r->peak_bytes, (long long)limit);
}

void sim_run_ws(struct sim_ws *w, const struct plan *p, int64_t limit_bytes, struct sim_result *out)
{
    sim_judge(w, p, limit_bytes, out, NULL, NULL);
}

int sim_profile(const struct graph *g, const struct plan *p, int64_t *use_bytes, double *clock_ns, struct sim_result *out)
{
    struct sim_ws *w = sim_ws_new(g);

    if (!w)
        return -ENOMEM;
    memset(use_bytes, 0, p->n_steps * sizeof(*use_bytes));
    if (clock_ns)
        memset(clock_ns, 0, p->n_steps * sizeof(*clock_ns));
    sim_judge(w, p, 0, out, use_bytes, clock_ns);
    sim_ws_free(w);
    return 0;
}

int sim_run(const struct graph *g, const struct plan *p, int64_t limit_bytes, struct sim_result *out)
{
    struct sim_ws *w = sim_ws_new(g);

    if (!w)
        return -ENOMEM;
    sim_run_ws(w, p, limit_bytes, out);
    sim_ws_free(w);
    return 0;
}

void sim_stamp(const struct graph *g, struct plan *p, int64_t limit_bytes, const struct sim_result *r)
{
    p->limit_bytes = limit_bytes;
    p->peak_bytes = r->peak_bytes;
    p->baseline_ns = g->total_ns;
    p->planned_ns = r->ns;
    memcpy(p->trace, g->sha256, sizeof(p->trace));
}
