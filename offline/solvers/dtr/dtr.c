#include "offline/solvers/dtr/dtr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/sim.h"
#include "offline/solvers/anneal/anneal_plan.h"
#include "offline/solvers/solver.h"

enum { DTR_REPLAYS_PER_OP = 40, DTR_DEPTH_MAX = 20000, DTR_DEFAULT_S = 30 };

struct dtr {
    const struct anneal_model *m;
    enum dtr_h h;
    int64_t limit, used;
    double deadline_s;
    double now;            /* compute clock, ns */
    int32_t op;            /* the op being launched */
    uint8_t *resident;     /* [n_cells] */
    uint8_t *evicted;      /* [n_cells] made before, not freed for good, not in memory */
    int32_t *locks;        /* [n_cells] */
    double *touched;       /* [n_cells] clock of the last access */
    double *near_ns;       /* [n_cells] cached cost of the evicted neighbourhood; < 0: unknown */
    int32_t *reader_at, *readers; /* units that read a cell: readers[reader_at[c] .. reader_at[c + 1]) */
    int32_t *seen, stamp;  /* [n_units] */
    int32_t *stack;        /* [n_units] */
    int32_t *expires;      /* [n_units] op from which on the unit may no longer be replayable; INT32_MAX: never */
    int32_t *parent;       /* [n_cells] DTR_EQ: union-find over evicted cells */
    double *class_ns;      /* [n_cells] DTR_EQ: cost of the class, at its root */
    struct anneal_seq *row;
    int64_t replays, max_replays;
};

const char *dtr_name(enum dtr_h h)
{
    static const char *const names[DTR_N_H] = {"h_DTR", "h_DTR_eq", "h_local", "h_MSPS", "h_LRU", "h_size"};
    return h < DTR_N_H ? names[h] : "?";
}

static int row_push(struct anneal_seq *row, int32_t what)
{
    if (row->n == row->cap) {
        const int32_t cap = row->cap ? 2 * row->cap : 1024;
        int32_t *at = realloc(row->at, (size_t)cap * sizeof *at);
        if (!at)
            return -ENOMEM;
        row->at = at;
        row->cap = cap;
    }
    row->at[row->n++] = what;
    return 0;
}

/* ---- neighbourhoods -------------------------------------------------------------------------------------------- */

static void see(struct dtr *d, int32_t u, int32_t *top)
{
    if (d->seen[u] != d->stamp) {
        d->seen[u] = d->stamp;
        d->stack[(*top)++] = u;
    }
}

/* 1: a cell of unit u is evicted, so u is part of neighbourhoods. */
static int unit_is_evicted(const struct dtr *d, int32_t u)
{
    const struct anneal_unit *unit = &d->m->units[u];
    for (int32_t k = 0; k < unit->n_out; k++)
        if (d->evicted[d->m->unit_cells[unit->first_out + k]])
            return 1;
    return 0;
}

static void see_ancestors(struct dtr *d, int32_t u, int32_t *top)
{
    const struct anneal_unit *unit = &d->m->units[u];
    for (int32_t k = 0; k < unit->n_in; k++) {
        const int32_t c = d->m->unit_cells[unit->first_in + k];
        if (d->evicted[c] && d->m->cells[c].unit >= 0)
            see(d, d->m->cells[c].unit, top);
    }
}

static void see_descendants(struct dtr *d, int32_t u, int32_t *top)
{
    const struct anneal_unit *unit = &d->m->units[u];
    for (int32_t k = 0; k < unit->n_out; k++) {
        const int32_t c = d->m->unit_cells[unit->first_out + k];
        for (int32_t i = d->reader_at[c]; i < d->reader_at[c + 1]; i++)
            if (unit_is_evicted(d, d->readers[i]))
                see(d, d->readers[i], top);
    }
}

/* Cost of rebuilding cell c now and, with `both`, the cost that its absence would add to other rebuilds: e*(c) of the paper's
 * section 4.1, found by walking evicted ancestors and, separately, evicted descendants. */
static double neighbourhood(struct dtr *d, int32_t c, int both)
{
    const int32_t own = d->m->cells[c].unit;
    double ns = (double)d->m->units[own].ns;
    for (int down = 0; down <= both; down++) {
        int32_t top = 0;
        d->stamp++;
        see(d, own, &top);
        while (top) {
            const int32_t u = d->stack[--top];
            if (u != own)
                ns += (double)d->m->units[u].ns;
            if (down)
                see_descendants(d, u, &top);
            else
                see_ancestors(d, u, &top);
        }
    }
    return ns;
}

/* Cell c was rebuilt or evicted: forget the cached costs of all cells that reach it through evicted cells. */
static void disturb(struct dtr *d, int32_t c)
{
    int32_t top = 0;
    if (d->m->cells[c].unit < 0)
        return;
    d->stamp++;
    see(d, d->m->cells[c].unit, &top);
    while (top) {
        const int32_t u = d->stack[--top];
        const struct anneal_unit *unit = &d->m->units[u];
        for (int32_t k = 0; k < unit->n_out; k++) {
            const int32_t made = d->m->unit_cells[unit->first_out + k];
            d->near_ns[made] = -1;
            for (int32_t i = d->reader_at[made]; i < d->reader_at[made + 1]; i++) {
                const struct anneal_unit *r = &d->m->units[d->readers[i]];
                for (int32_t j = 0; j < r->n_out; j++)
                    d->near_ns[d->m->unit_cells[r->first_out + j]] = -1;
            }
        }
        for (int32_t k = 0; k < unit->n_in; k++)
            d->near_ns[d->m->unit_cells[unit->first_in + k]] = -1;
        see_ancestors(d, u, &top);
        see_descendants(d, u, &top);
    }
}

static int32_t root(struct dtr *d, int32_t c)
{
    while (d->parent[c] != c)
        c = d->parent[c] = d->parent[d->parent[c]];
    return c;
}

/* DTR_EQ: the sum of the costs of the classes of c's evicted neighbours, each class once; with merge, joins these classes
 * to c's. */
static double classes(struct dtr *d, int32_t c, int merge)
{
    const struct anneal_unit *unit = &d->m->units[d->m->cells[c].unit];
    double ns = 0;
    d->stamp++;
    for (int pass = 0; pass < 2; pass++) {
        const int32_t n = pass ? d->reader_at[c + 1] - d->reader_at[c] : unit->n_in;
        for (int32_t k = 0; k < n; k++) {
            const struct anneal_unit *r = pass ? &d->m->units[d->readers[d->reader_at[c] + k]] : unit;
            const int32_t first = pass ? r->first_out : unit->first_in + k, cells = pass ? r->n_out : 1;
            for (int32_t j = 0; j < cells; j++) {
                const int32_t x = d->m->unit_cells[first + j];
                if (!d->evicted[x] || d->m->cells[x].unit < 0)
                    continue;
                const int32_t top = root(d, x);
                if (d->seen[d->m->cells[top].unit] == d->stamp)
                    continue;
                d->seen[d->m->cells[top].unit] = d->stamp;
                ns += d->class_ns[top];
                if (merge && top != root(d, c)) {
                    d->class_ns[root(d, c)] += d->class_ns[top];
                    d->parent[top] = root(d, c);
                }
            }
        }
    }
    return ns;
}

static double h(struct dtr *d, int32_t c)
{
    const double bytes = (double)d->m->cells[c].bytes, stale = d->now - d->touched[c] + 1;
    const double own = (double)d->m->units[d->m->cells[c].unit].ns;
    switch (d->h) {
    case DTR_FULL:
        if (d->near_ns[c] < 0)
            d->near_ns[c] = neighbourhood(d, c, 1);
        return d->near_ns[c] / (bytes * stale);
    case DTR_EQ:
        return (own + classes(d, c, 0)) / (bytes * stale);
    case DTR_MSPS:
        if (d->near_ns[c] < 0)
            d->near_ns[c] = neighbourhood(d, c, 0);
        return d->near_ns[c] / bytes;
    case DTR_LRU:
        return 1 / stale;
    case DTR_SIZE:
        return 1 / bytes;
    default:
        return own / (bytes * stale);
    }
}

/* ---- eviction and recomputation -------------------------------------------------------------------------------- */

static void evict(struct dtr *d, int32_t c)
{
    d->resident[c] = 0;
    d->evicted[c] = 1;
    d->used -= d->m->cells[c].bytes;
    if (d->h == DTR_EQ) {
        d->parent[c] = c;
        d->class_ns[c] = (double)d->m->units[d->m->cells[c].unit].ns;
        classes(d, c, 1);
    } else {
        disturb(d, c);
    }
}

static void arrive(struct dtr *d, int32_t c)
{
    if (d->resident[c])
        return;
    d->resident[c] = 1;
    d->used += d->m->cells[c].bytes;
    if (!d->evicted[c])
        return;
    d->evicted[c] = 0;
    if (d->h == DTR_EQ) /* the class is not split: only c's cost is taken out */
        d->class_ns[root(d, c)] -= (double)d->m->units[d->m->cells[c].unit].ns;
    else
        disturb(d, c);
}

static int evictable(const struct dtr *d, int32_t c)
{
    const struct anneal_cell *cell = &d->m->cells[c];
    return d->resident[c] && !d->locks[c] && cell->unit >= 0 && d->op > cell->final_op && cell->bytes > 0 &&
           d->expires[cell->unit] > d->op;
}

static int make_room(struct dtr *d, int64_t bytes)
{
    while (d->used + bytes > d->limit) {
        int32_t victim = -1;
        double least = 0;
        for (int32_t c = 0; c < d->m->n_cells; c++)
            if (evictable(d, c)) {
                const double x = h(d, c);
                if (victim < 0 || x < least) {
                    least = x;
                    victim = c;
                }
            }
        if (victim < 0)
            return -ENOSPC;
        evict(d, victim);
    }
    return 0;
}

static int replay(struct dtr *d, int32_t u, int depth)
{
    const struct anneal_model *m = d->m;
    const struct anneal_unit *unit = &m->units[u];
    const int32_t *in = m->unit_cells + unit->first_in, *made = m->unit_cells + unit->first_out;
    int64_t bytes = unit->scratch_bytes;
    int32_t locked = 0;
    int rc = depth > DTR_DEPTH_MAX || ++d->replays > d->max_replays ? -E2BIG : 0;
    if (!rc && d->deadline_s > 0 && d->replays % 64 == 0 && solver_now_s() > d->deadline_s)
        rc = -ETIME;
    if (!rc && (!unit->replayable || unit->until < d->op))
        rc = -ENOSPC;
    for (; !rc && locked < unit->n_in; locked++) {
        if (!d->resident[in[locked]])
            rc = m->cells[in[locked]].unit < 0 ? -ENOSPC : replay(d, m->cells[in[locked]].unit, depth + 1);
        if (rc)
            break;
        d->locks[in[locked]]++;
    }
    for (int32_t k = 0; !rc && k < unit->n_out; k++) {
        d->locks[made[k]]++;
        bytes += d->resident[made[k]] ? 0 : m->cells[made[k]].bytes;
    }
    if (!rc) {
        rc = make_room(d, bytes);
        for (int32_t k = 0; k < unit->n_out; k++)
            d->locks[made[k]]--;
    }
    for (int32_t k = 0; k < locked; k++)
        d->locks[in[k]]--;
    if (rc)
        return rc;
    d->now += (double)unit->ns;
    for (int32_t k = 0; k < unit->n_out; k++) {
        arrive(d, made[k]);
        d->touched[made[k]] = d->now;
    }
    for (int32_t k = 0; k < unit->n_in; k++)
        d->touched[in[k]] = d->now;
    return row_push(d->row, m->g->n_ops + u);
}

static int32_t cell_in(const struct dtr *d, const struct graph_operand *p)
{
    const int32_t val = p->in >= 0 ? p->in : -1;
    const int32_t c = val >= 0 ? d->m->cell_of_val[val] : -1;
    return c >= 0 && d->m->cells[c].tracked ? c : -1;
}

static int32_t cell_out(const struct dtr *d, const struct graph_operand *p)
{
    const int32_t c = p->out >= 0 ? d->m->cell_of_val[p->out] : -1;
    return c >= 0 && d->m->cells[c].tracked ? c : -1;
}

static int launch(struct dtr *d, int32_t o)
{
    const struct graph *g = d->m->g;
    const struct graph_operand *p = graph_operands(g, o);
    const int32_t n = graph_n_operands(&g->ops[o]);
    int32_t done = 0;
    int64_t bytes = 0;
    int rc = 0;
    for (; !rc && done < n; done++) {
        const int32_t c = cell_in(d, &p[done]), made = cell_out(d, &p[done]);
        if (c >= 0 && !d->resident[c])
            rc = d->m->cells[c].unit < 0 ? -ENOSPC : replay(d, d->m->cells[c].unit, 0);
        if (rc)
            break;
        if (c >= 0)
            d->locks[c]++;
        if (made >= 0) {
            d->locks[made]++;
            bytes += made == c || d->resident[made] ? 0 : d->m->cells[made].bytes;
        }
    }
    if (!rc)
        rc = make_room(d, bytes);
    d->now += (double)g->ops[o].ns;
    for (int32_t k = 0; k < done; k++) {
        const int32_t c = cell_in(d, &p[k]), made = cell_out(d, &p[k]);
        if (c >= 0) {
            d->locks[c]--;
            d->touched[c] = d->now;
        }
        if (made >= 0) {
            d->locks[made]--;
            if (!rc)
                arrive(d, made);
            d->touched[made] = d->now;
        }
    }
    return rc ? rc : row_push(d->row, o);
}

/* The program frees buffer b: its last cell is evicted at once if it can be rebuilt; if not, it stays where a replay may read it. */
static void freed(struct dtr *d, int32_t b)
{
    const struct graph_buf *buf = &d->m->g->bufs[b];
    const int32_t c = d->m->cell_of_val[buf->first_val + buf->n_vers - 1];
    if (c < 0 || !d->resident[c] || d->locks[c])
        return;
    if (d->m->cells[c].unit >= 0) {
        evict(d, c);
    } else if (d->reader_at[c] == d->reader_at[c + 1]) {
        d->resident[c] = 0;
        d->used -= d->m->cells[c].bytes;
    }
}

/* A buffer's earlier cell leaves when op o begins its next cell. */
static void supersede(struct dtr *d, int32_t o)
{
    const struct graph_operand *p = graph_operands(d->m->g, o);
    for (int32_t k = 0; k < graph_n_operands(&d->m->g->ops[o]); k++) {
        const int32_t c = cell_out(d, &p[k]);
        if (c > 0 && p[k].role == GRAPH_WRITE && d->m->cells[c - 1].buf == d->m->cells[c].buf && d->resident[c - 1]) {
            d->resident[c - 1] = 0;
            d->used -= d->m->cells[c - 1].bytes;
        }
    }
}

/* Rebuild evicted cells that are used later but cannot be rebuilt once op o has changed their inputs. */
static int save_expiring(struct dtr *d, int32_t o)
{
    int rc = 0;
    for (int32_t c = 0; !rc && c < d->m->n_cells; c++) {
        const struct anneal_cell *cell = &d->m->cells[c];
        if (!d->evicted[c] || d->expires[cell->unit] != o)
            continue;
        if (cell->survives || (cell->n_uses && d->m->uses[cell->first_use + cell->n_uses - 1] >= o))
            rc = replay(d, cell->unit, 0);
    }
    return rc;
}

static int run(struct dtr *d)
{
    const struct graph *g = d->m->g;
    int rc = 0;
    for (int32_t o = 0; !rc && o < g->n_ops; o++) {
        d->op = o;
        for (int32_t k = g->dies_at[o]; k < g->dies_at[o + 1]; k++)
            freed(d, g->die_list[k]);
        rc = save_expiring(d, o);
        supersede(d, o);
        if (!rc)
            rc = launch(d, o);
    }
    d->op = g->n_ops;
    for (int32_t c = 0; !rc && c < d->m->n_cells; c++)
        if (d->m->cells[c].survives && d->evicted[c])
            rc = replay(d, d->m->cells[c].unit, 0);
    return rc;
}

static int setup(struct dtr *d)
{
    const struct anneal_model *m = d->m;
    const size_t nc = (size_t)m->n_cells + 2, nu = (size_t)m->n_units + 1;
    d->resident = calloc(nc, 1);
    d->evicted = calloc(nc, 1);
    d->locks = calloc(nc, sizeof *d->locks);
    d->touched = calloc(nc, sizeof *d->touched);
    d->near_ns = calloc(nc, sizeof *d->near_ns);
    d->reader_at = calloc(nc, sizeof *d->reader_at);
    d->parent = calloc(nc, sizeof *d->parent);
    d->class_ns = calloc(nc, sizeof *d->class_ns);
    d->seen = calloc(nu, sizeof *d->seen);
    d->stack = calloc(nu, sizeof *d->stack);
    d->expires = calloc(nu, sizeof *d->expires);
    int32_t n = 0;
    for (int32_t u = 0; u < m->n_units; u++)
        n += m->units[u].n_in;
    d->readers = calloc((size_t)n + 1, sizeof *d->readers);
    if (!d->resident || !d->evicted || !d->locks || !d->touched || !d->near_ns || !d->reader_at || !d->parent ||
        !d->class_ns || !d->seen || !d->stack || !d->expires || !d->readers)
        return -ENOMEM;
    for (int32_t u = 0; u < m->n_units; u++)
        for (int32_t k = 0; m->units[u].replayable && k < m->units[u].n_in; k++)
            d->reader_at[m->unit_cells[m->units[u].first_in + k] + 1]++;
    for (int32_t c = 0; c < m->n_cells; c++)
        d->reader_at[c + 1] += d->reader_at[c];
    for (int32_t u = 0; u < m->n_units; u++)
        for (int32_t k = 0; m->units[u].replayable && k < m->units[u].n_in; k++) {
            const int32_t c = m->unit_cells[m->units[u].first_in + k];
            d->readers[d->reader_at[c] + d->locks[c]++] = u;
        }
    d->used = m->base_bytes;
    for (int32_t c = 0; c < m->n_cells; c++) {
        d->locks[c] = 0;
        d->near_ns[c] = -1;
        d->resident[c] = m->cells[c].tracked && m->cells[c].start < 0;
        d->used += d->resident[c] ? m->cells[c].bytes : 0;
    }
    /* units are numbered by their first op, so a unit's inputs were made by lower units, except in in-place groups, which
     * the second round settles */
    for (int round = 0; round < 2; round++)
        for (int32_t u = 0; u < m->n_units; u++) {
            int32_t e = m->units[u].until < m->g->n_ops ? m->units[u].until : INT32_MAX;
            for (int32_t k = 0; k < m->units[u].n_in; k++) {
                const int32_t feeder = m->cells[m->unit_cells[m->units[u].first_in + k]].unit;
                if (feeder >= 0 && (round || feeder < u) && d->expires[feeder] < e)
                    e = d->expires[feeder];
            }
            d->expires[u] = e;
        }
    return 0;
}

int dtr_simulate(const struct anneal_model *m, int64_t limit_bytes, enum dtr_h kind, double deadline_s, struct anneal_seq *row)
{
    struct dtr d = {.m = m, .h = kind, .limit = limit_bytes, .deadline_s = deadline_s, .row = row};
    d.max_replays = (int64_t)DTR_REPLAYS_PER_OP * m->g->n_ops + 1000;
    row->n = row->n_stays = 0;
    int rc = setup(&d);
    if (!rc)
        rc = run(&d);
    void *const owned[] = {d.resident, d.evicted, d.locks, d.touched, d.near_ns, d.reader_at, d.readers,
                           d.parent, d.class_ns, d.seen, d.stack, d.expires};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    return rc;
}

/* ---- the solver -------------------------------------------------------------------------------------------------- */

static int solve_dtr(const struct graph *g, const struct solver_opts *opts, struct plan *out, struct solver_report *rep)
{
    const double deadline_s = solver_now_s() + (opts->time_limit_s > 0 ? opts->time_limit_s : DTR_DEFAULT_S);
    struct anneal_model *m = anneal_model_new(g, 0);
    struct anneal *a = m ? anneal_new(m) : NULL;
    struct anneal_seq row = {0};
    struct sim_result r = {0};
    int rc = a ? -ENOSPC : -ENOMEM;
    /* the paper's own h first; where it fails, the next variant that succeeds */
    for (int kind = DTR_FULL; (rc == -ENOSPC || rc == -E2BIG) && kind < DTR_N_H; kind++) {
        rc = dtr_simulate(m, opts->limit_bytes, (enum dtr_h)kind, deadline_s, &row);
        if (rc)
            continue;
        rc = anneal_load(a, &row);
        if (!rc)
            rc = anneal_plan(a, out);
        if (!rc)
            rc = sim_run(g, out, opts->limit_bytes, &r);
        if (!rc && !r.ok)
            rc = -ENOSPC;
        if (!rc)
            snprintf(rep->message, sizeof rep->message, "%s", dtr_name((enum dtr_h)kind));
    }
    if (!rc) {
        snprintf(out->solver, sizeof out->solver, "dtr");
        sim_stamp(g, out, opts->limit_bytes, &r);
        rep->peak_bytes = r.peak_bytes;
        rep->planned_ns = r.ns;
        rep->replays = r.replays;
    } else if (rc == -ENOSPC || rc == -E2BIG) {
        snprintf(rep->message, sizeof rep->message, rc == -E2BIG ? "it thrashed: more than %d replays per op"
                 : "no op's victims were enough", DTR_REPLAYS_PER_OP);
        rc = -ENOSPC;
    }
    anneal_seq_free(&row);
    anneal_free(a);
    anneal_model_free(m);
    return rc;
}

const struct solver solver_dtr = {"dtr", "dynamic tensor rematerialization in simulation, h with evicted neighbourhood",
                                  solve_dtr};
