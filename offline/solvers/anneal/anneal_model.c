#include "offline/solvers/anneal/anneal_model.h"

#include <stdlib.h>
#include <string.h>

/* Growable list of ints; `bad` remembers a failed allocation so that callers check once. */
struct ints {
    int32_t *at;
    int32_t n, cap;
    int bad;
};

static void ints_push(struct ints *l, int32_t x)
{
    if (l->n == l->cap) {
        const int32_t cap = l->cap ? 2 * l->cap : 256;
        int32_t *at = realloc(l->at, (size_t)cap * sizeof *at);
        if (!at) {
            l->bad = 1;
            return;
        }
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = x;
}

static int32_t find(int32_t *parent, int32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static void join(int32_t *parent, int32_t a, int32_t b)
{
    a = find(parent, a);
    b = find(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

/* Ops after `after` that touch value v, in order; a later version's maker, which also consumes v, counts once. */
static void touches(const struct graph *g, const struct graph_val *v, int32_t after, struct ints *uses)
{
    if (v->producer > after && (!uses->n || uses->at[uses->n - 1] != v->producer))
        ints_push(uses, v->producer);
    for (int32_t k = 0; k < v->n_uses; k++) {
        const int32_t o = g->uses[v->first_use + k];
        if (o > after)
            ints_push(uses, o);
    }
}

/* Build the cells: one per run of versions. A version made by GRAPH_WRITE opens a new cell. */
static int cells_build(struct anneal_model *m, uint8_t *val_written, struct ints *uses)
{
    const struct graph *g = m->g;
    for (int32_t o = 0; o < g->n_ops; o++) {
        const struct graph_operand *p = graph_operands(g, o);
        for (int32_t k = 0; k < graph_n_operands(&g->ops[o]); k++)
            if (p[k].role == GRAPH_WRITE)
                val_written[p[k].out] = 1;
    }
    for (int32_t b = 0; b < g->n_bufs; b++) {
        const struct graph_buf *buf = &g->bufs[b];
        for (int32_t ver = buf->born < 0 ? 0 : 1; ver < buf->n_vers;) {
            struct anneal_cell *c = &m->cells[m->n_cells];
            *c = (struct anneal_cell){.bytes = buf->bytes, .buf = b, .first_ver = ver, .unit = -1, .tracked = 1};
            int32_t v = buf->first_val + ver;
            c->start = g->vals[v].producer;
            m->cell_of_val[v] = m->n_cells;
            while (++ver < buf->n_vers && !val_written[buf->first_val + ver])
                m->cell_of_val[buf->first_val + ver] = m->n_cells;
            c->last_ver = ver - 1;
            c->final_op = g->vals[buf->first_val + c->last_ver].producer;
            c->survives = ver == buf->n_vers && buf->survives;
            for (int32_t k = c->first_ver; k <= c->last_ver; k++)
                c->fixed |= g->vals[buf->first_val + k].producer < 0 || graph_val_fixed(&g->vals[buf->first_val + k]);
            if (c->fixed)
                c->final_op = c->start;
            c->first_use = uses->n;
            for (int32_t k = c->fixed ? c->first_ver : c->last_ver; k <= c->last_ver; k++)
                touches(g, &g->vals[buf->first_val + k], c->final_op, uses);
            c->n_uses = uses->n - c->first_use;
            m->n_cells++;
        }
    }
    return uses->bad ? -1 : 0;
}

/* Join the ops that must be replayed together. Only cells that replays can rebuild tie ops. */
static void group(const struct anneal_model *m, int32_t *parent)
{
    const struct graph *g = m->g;
    for (int32_t c = 0; c < m->n_cells; c++) {
        const struct anneal_cell *cell = &m->cells[c];
        if (cell->fixed)
            continue;
        const int32_t val = g->bufs[cell->buf].first_val;
        for (int32_t ver = cell->first_ver; ver <= cell->last_ver; ver++) {
            const struct graph_val *v = &g->vals[val + ver];
            join(parent, cell->final_op, v->producer);
            for (int32_t k = 0; ver < cell->last_ver && k < v->n_uses; k++)
                join(parent, cell->final_op, g->uses[v->first_use + k]);
        }
    }
}

/* The life of cell c ends where the buffer's next cell begins. */
static int32_t cell_over(const struct anneal_model *m, int32_t c)
{
    const struct anneal_cell *cell = &m->cells[c];
    return c + 1 < m->n_cells && m->cells[c + 1].buf == cell->buf ? m->cells[c + 1].start : m->g->n_ops;
}

/* True if cell c's buffer has several cells, of which it holds one at a time. Such cells are never replayed unless the
 * buffer is a workspace: a cell that is read stays where the program has it. */
static int cell_shares_buffer(const struct anneal_model *m, int32_t c)
{
    return (c > 0 && m->cells[c - 1].buf == m->cells[c].buf) ||
           (c + 1 < m->n_cells && m->cells[c + 1].buf == m->cells[c].buf);
}

/* True if cell c's buffer is a workspace: written over and over and never read. Its contents may be dropped at any time,
 * except the last ones if the buffer survives. */
static int cell_in_workspace(const struct anneal_model *m, int32_t c)
{
    const struct graph_buf *buf = &m->g->bufs[m->cells[c].buf];
    for (int32_t ver = 0; ver < buf->n_vers; ver++)
        if (m->g->vals[buf->first_val + ver].n_uses)
            return 0;
    return 1;
}

/* Whether only unit u's own ops ever use cell c. */
static int cell_is_inner(const struct anneal_model *m, int32_t c, int32_t u)
{
    const struct anneal_cell *cell = &m->cells[c];
    if (cell->fixed || cell->survives || cell_shares_buffer(m, c))
        return 0;
    for (int32_t k = 0; k < cell->n_uses; k++)
        if (m->unit_of_op[m->uses[cell->first_use + k]] != u)
            return 0;
    return 1;
}

/* Scratch memory for the walk over one unit's ops: which cells begin and end with each op. */
struct walk {
    int64_t *born_bytes; /* [n_ops] bytes of inner cells that start at the op; all 0 between units */
    int32_t *last;       /* [n_vals] per cell: index, among the unit's ops, of the last that touches it */
};

/* Move the inner cells from the unit's outputs to m->inner, and compute the unit's scratch_bytes. */
static void unit_sort_out(struct anneal_model *m, int32_t u, struct ints *cells, const struct walk *walk)
{
    const struct graph *g = m->g;
    struct anneal_unit *unit = &m->units[u];
    struct anneal_inner *inner = m->inner + m->n_inner;
    int32_t kept = unit->first_out;
    unit->first_inner = m->n_inner;
    for (int32_t k = 0; k < unit->n_out; k++) {
        const int32_t c = cells->at[unit->first_out + k];
        if (cell_is_inner(m, c, u))
            inner[unit->n_inner++].cell = c;
        else
            cells->at[kept++] = c;
    }
    cells->n = kept;
    unit->n_out = kept - unit->first_out;
    m->n_inner += unit->n_inner;
    for (int32_t k = 0; k < unit->n_inner; k++)
        walk->last[inner[k].cell] = -1;
    for (int32_t i = 0; i < unit->n_ops; i++) {
        const struct graph_operand *p = graph_operands(g, m->unit_ops[unit->first_op + i]);
        for (int32_t k = 0; k < graph_n_operands(&g->ops[m->unit_ops[unit->first_op + i]]); k++) {
            const int32_t c = p[k].out >= 0 ? m->cell_of_val[p[k].out] : m->cell_of_val[p[k].in];
            if (c >= 0)
                walk->last[c] = i;
        }
    }
    /* insertion sort by last op: inner cells are few, or nearly in order already */
    for (int32_t k = 0; k < unit->n_inner; k++) {
        struct anneal_inner x = {.cell = inner[k].cell, .last = walk->last[inner[k].cell]};
        int32_t at = k;
        for (; at && inner[at - 1].last > x.last; at--)
            inner[at] = inner[at - 1];
        inner[at] = x;
    }
    int64_t live = 0;
    for (int32_t k = 0; k < unit->n_inner; k++)
        walk->born_bytes[m->cells[inner[k].cell].start] += m->cells[inner[k].cell].bytes;
    for (int32_t i = 0, k = 0; i < unit->n_ops; i++) {
        const int32_t o = m->unit_ops[unit->first_op + i];
        live += walk->born_bytes[o];
        walk->born_bytes[o] = 0;
        if (live + g->ops[o].side_bytes > unit->scratch_bytes)
            unit->scratch_bytes = live + g->ops[o].side_bytes;
        for (; k < unit->n_inner && inner[k].last == i; k++)
            live -= m->cells[inner[k].cell].bytes;
    }
}

static void unit_fill(struct anneal_model *m, int32_t u, int32_t most_ops, struct ints *cells, int32_t *mark, const struct walk *walk)
{
    const struct graph *g = m->g;
    struct anneal_unit *unit = &m->units[u];
    unit->until = g->n_ops;
    unit->replayable = unit->n_ops <= most_ops;
    m->n_long += !unit->replayable;
    unit->first_out = cells->n;
    for (int32_t i = 0; i < unit->n_ops; i++) {
        const int32_t o = m->unit_ops[unit->first_op + i];
        const struct graph_operand *p = graph_operands(g, o);
        unit->ns += g->ops[o].ns;
        if (g->ops[o].opaque)
            unit->replayable = 0;
        for (int32_t k = 0; k < graph_n_operands(&g->ops[o]); k++) {
            if (p[k].out < 0 || p[k].role == GRAPH_SIDE)
                continue;
            const int32_t c = m->cell_of_val[p[k].out];
            if (m->cells[c].fixed)
                unit->replayable = 0;
            if (cell_shares_buffer(m, c)) {
                const struct graph_buf *buf = &g->bufs[m->cells[c].buf];
                const int32_t last_write = g->vals[buf->first_val + buf->n_vers - 1].producer;
                if (!cell_in_workspace(m, c) || m->cells[c].survives)
                    unit->replayable = 0;
                else if (buf->survives && last_write < unit->until)
                    unit->until = last_write;
            }
            if (mark[c] != 2 * u) {
                mark[c] = 2 * u;
                ints_push(cells, c);
            }
        }
    }
    unit->n_out = cells->n - unit->first_out;
    if (!cells->bad)
        unit_sort_out(m, u, cells, walk);
    if (!unit->n_out)
        unit->replayable = 0; /* a replay would bring no cell back */
    unit->first_in = cells->n;
    for (int32_t i = 0; i < unit->n_ops; i++) {
        const int32_t o = m->unit_ops[unit->first_op + i];
        const struct graph_operand *p = graph_operands(g, o);
        for (int32_t k = 0; k < g->ops[o].n_reads + g->ops[o].n_rmw; k++) {
            const int32_t c = m->cell_of_val[p[k].in], ver = g->vals[p[k].in].version;
            if (mark[c] == 2 * u)
                continue; /* the unit's own cell */
            const struct anneal_cell *cell = &m->cells[c];
            const int32_t over = ver == cell->last_ver ? cell_over(m, c) : g->vals[p[k].in].over;
            if (over < unit->until)
                unit->until = over;
            if (ver != cell->last_ver && !cell->fixed) {
                unit->replayable = 0; /* reads an earlier version of a cell that another unit makes */
            } else if (mark[c] != 2 * u + 1) {
                mark[c] = 2 * u + 1;
                ints_push(cells, c); /* untrack() removes untracked cells again */
            }
        }
    }
    unit->n_in = cells->n - unit->first_in;
}

static int units_build(struct anneal_model *m, int32_t most_ops, int32_t *parent, int32_t *mark, struct ints *cells, const struct walk *walk)
{
    const struct graph *g = m->g;
    int32_t n = 0;
    for (int32_t o = 0; o < g->n_ops; o++) {
        const int32_t root = find(parent, o);
        if (root == o)
            m->unit_of_op[o] = m->n_units++;
        else
            m->unit_of_op[o] = m->unit_of_op[root]; /* a root is the first op of its group */
        m->units[m->unit_of_op[o]].n_ops++;
    }
    for (int32_t u = 0; u < m->n_units; u++) {
        m->units[u].first_op = n;
        n += m->units[u].n_ops;
        m->units[u].n_ops = 0;
    }
    for (int32_t o = 0; o < g->n_ops; o++) {
        struct anneal_unit *unit = &m->units[m->unit_of_op[o]];
        m->unit_ops[unit->first_op + unit->n_ops++] = o;
    }
    for (int32_t c = 0; c < m->n_cells; c++)
        mark[c] = -1;
    for (int32_t u = 0; u < m->n_units; u++) {
        unit_fill(m, u, most_ops, cells, mark, walk);
        if (m->units[u].replayable)
            for (int32_t k = 0; k < m->units[u].n_out; k++)
                m->cells[cells->at[m->units[u].first_out + k]].unit = u;
    }
    return cells->bad ? -1 : 0;
}

/* A cell that nothing rebuilds and that the program keeps from start to end needs no book-keeping. */
static void untrack(struct anneal_model *m, int offload)
{
    for (int32_t c = 0; c < m->n_cells; c++) {
        struct anneal_cell *cell = &m->cells[c];
        if (!offload && cell->fixed && cell->survives && cell->start < 0) {
            cell->tracked = 0;
            m->base_bytes += cell->bytes;
        }
    }
    for (int32_t u = 0; u < m->n_units; u++) {
        struct anneal_unit *unit = &m->units[u];
        int32_t *in = m->unit_cells + unit->first_in, kept = 0;
        for (int32_t k = 0; k < unit->n_in; k++)
            if (m->cells[in[k]].tracked)
                in[kept++] = in[k];
        unit->n_in = kept;
    }
}

static struct anneal_model *model_new(const struct graph *g, int offload, int32_t most_ops)
{
    struct anneal_model *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    const size_t n_vals = (size_t)g->n_vals + 1, n_ops = (size_t)g->n_ops + 1;
    struct ints uses = {0}, cells = {0};
    uint8_t *val_written = calloc(n_vals, 1);
    int32_t *parent = malloc(n_ops * sizeof *parent), *mark = malloc(n_vals * sizeof *mark);
    const struct walk walk = {.born_bytes = calloc(n_ops, sizeof *walk.born_bytes), .last = malloc(n_vals * sizeof *walk.last)};
    m->g = g;
    m->cells = calloc(n_vals, sizeof *m->cells);
    m->units = calloc(n_ops, sizeof *m->units);
    m->unit_of_op = calloc(n_ops, sizeof *m->unit_of_op);
    m->unit_ops = calloc(n_ops, sizeof *m->unit_ops);
    m->cell_of_val = malloc(n_vals * sizeof *m->cell_of_val);
    m->inner = calloc(n_vals, sizeof *m->inner);
    int ok = val_written && parent && mark && walk.born_bytes && walk.last && m->inner && m->cells && m->units && m->unit_of_op && m->unit_ops &&
             m->cell_of_val;
    if (ok) {
        for (int32_t v = 0; v < g->n_vals; v++)
            m->cell_of_val[v] = -1;
        ok = cells_build(m, val_written, &uses) == 0;
    }
    m->uses = uses.at;
    if (ok) {
        for (int32_t o = 0; o < g->n_ops; o++)
            parent[o] = o;
        group(m, parent);
        ok = units_build(m, most_ops, parent, mark, &cells, &walk) == 0;
    }
    m->unit_cells = cells.at;
    if (ok)
        untrack(m, offload);
    free(val_written);
    free(parent);
    free(mark);
    free(walk.born_bytes);
    free(walk.last);
    if (!ok) {
        anneal_model_free(m);
        return NULL;
    }
    return m;
}

struct anneal_model *anneal_model_new(const struct graph *g, int offload) { return model_new(g, offload, ANNEAL_UNIT_OPS_MAX); }

struct anneal_model *anneal_model_new_long(const struct graph *g, int offload) { return model_new(g, offload, INT32_MAX); }

void anneal_model_free(struct anneal_model *m)
{
    if (!m)
        return;
    free(m->cells);
    free(m->units);
    free(m->uses);
    free(m->unit_ops);
    free(m->unit_cells);
    free(m->unit_of_op);
    free(m->cell_of_val);
    free(m->inner);
    free(m);
}
