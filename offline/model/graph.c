#include "offline/model/graph.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums of sizes and times stay exact in int64 and times also in a double. */
#define GRAPH_MAX_BYTES ((int64_t)1 << 62)
#define GRAPH_MAX_NS ((int64_t)1 << 53)

const char *graph_phase_name(int phase)
{
    static const char *const names[] = {"fwd", "bwd", "opt"};

    return phase >= 0 && phase < 3 ? names[phase] : NULL;
}

const char *graph_kind_name(int kind)
{
    static const char *const names[] = {"param", "grad", "state", "input", "activation"};

    return kind >= 0 && kind < 5 ? names[kind] : NULL;
}

/* ---- the builder -------------------------------------------------------------------------------------------- */

struct graph_build_operand_row {
    int32_t op, buf, role;
};

struct graph_build {
    struct graph_op *ops;
    struct graph_buf *bufs;
    struct graph_build_operand_row *rows;
    size_t n_ops, cap_ops, n_bufs, cap_bufs, n_rows, cap_rows;
};

struct graph_build *graph_build_new(void) { return calloc(1, sizeof(struct graph_build)); }

void graph_build_free(struct graph_build *b)
{
    size_t i;

    if (!b)
        return;
    for (i = 0; i < b->n_ops; i++)
        free((char *)b->ops[i].name);
    free(b->ops);
    free(b->bufs);
    free(b->rows);
    free(b);
}

static int graph_grow(void **p, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : 64;
    void *q;

    if (n < *cap)
        return 0;
    if (n >= INT32_MAX / 2)
        return -EOVERFLOW;
    q = realloc(*p, more * size);
    if (!q)
        return -ENOMEM;
    *p = q;
    *cap = more;
    return 0;
}

int graph_build_buf(struct graph_build *b, int64_t bytes, int32_t born, int32_t dies, enum graph_kind kind)
{
    struct graph_buf *x;
    int rc = graph_grow((void **)&b->bufs, b->n_bufs, &b->cap_bufs, sizeof(*b->bufs));

    if (rc)
        return rc;
    x = &b->bufs[b->n_bufs];
    memset(x, 0, sizeof(*x));
    x->bytes = bytes;
    x->born = born;
    x->dies = dies;
    x->kind = (uint8_t)kind;
    return (int)b->n_bufs++;
}

int graph_build_op(struct graph_build *b, const char *name, enum graph_phase phase, int64_t ns)
{
    struct graph_op *o;
    int rc = graph_grow((void **)&b->ops, b->n_ops, &b->cap_ops, sizeof(*b->ops));

    if (rc)
        return rc;
    o = &b->ops[b->n_ops];
    memset(o, 0, sizeof(*o));
    o->name = strdup(name);
    if (!o->name)
        return -ENOMEM;
    o->phase = (uint8_t)phase;
    o->ns = ns;
    o->site = -1;
    return (int)b->n_ops++;
}

int graph_build_operand(struct graph_build *b, int32_t op, enum graph_role role, int32_t buf)
{
    struct graph_build_operand_row *r;
    int rc = graph_grow((void **)&b->rows, b->n_rows, &b->cap_rows, sizeof(*b->rows));

    if (rc)
        return rc;
    r = &b->rows[b->n_rows++];
    r->op = op;
    r->buf = buf;
    r->role = role;
    return 0;
}

struct graph_buf *graph_build_buf_at(struct graph_build *b, int32_t buf) { return &b->bufs[buf]; }
struct graph_op *graph_build_op_at(struct graph_build *b, int32_t op) { return &b->ops[op]; }

/* ---- checks --------------------------------------------------------------------------------------------------- */

static int graph_say(struct graph_fault *f, int32_t op, int32_t buf, int role, int32_t index, const char *key,
                     const char *fmt, ...) __attribute__((format(printf, 7, 8)));

static int graph_say(struct graph_fault *f, int32_t op, int32_t buf, int role, int32_t index, const char *key,
                     const char *fmt, ...)
{
    va_list ap;

    f->op = op;
    f->buf = buf;
    f->role = role;
    f->index = index;
    f->key = key;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    return -EINVAL;
}

static int graph_check_sizes(const struct graph *g, struct graph_fault *f)
{
    int64_t bytes = 0, ns = 0;
    int32_t i;

    for (i = 0; i < g->n_bufs; i++) {
        const struct graph_buf *x = &g->bufs[i];

        if (x->bytes < 0)
            return graph_say(f, -1, i, -1, 0, "bytes", "buffer %d has negative size %lld", i, (long long)x->bytes);
        if (x->bytes > GRAPH_MAX_BYTES - bytes)
            return graph_say(f, -1, i, -1, 0, "bytes", "sizes up to buffer %d add up to over 2^62 bytes", i);
        bytes += x->bytes;
        if (x->born < -1 || x->born >= g->n_ops)
            return graph_say(f, -1, i, -1, 0, "born", "buffer %d is born at op %d, but ops are 0 to %d (-1: before)",
                             i, x->born, g->n_ops - 1);
        if (x->dies < -1 || x->dies > g->n_ops)
            return graph_say(f, -1, i, -1, 0, "dies", "buffer %d dies before op %d, but there are %d ops", i,
                             x->dies, g->n_ops);
        if (x->dies >= 0 && x->dies < x->born)
            return graph_say(f, -1, i, -1, 0, "dies", "buffer %d dies before op %d, yet is born at op %d", i,
                             x->dies, x->born);
    }
    for (i = 0; i < g->n_ops; i++) {
        if (g->ops[i].ns < 0)
            return graph_say(f, i, -1, -1, 0, "ns", "op %d takes negative time %lld", i, (long long)g->ops[i].ns);
        if (g->ops[i].ns > GRAPH_MAX_NS - ns)
            return graph_say(f, i, -1, -1, 0, "ns", "times up to op %d add up to over 2^53 ns", i);
        ns += g->ops[i].ns;
    }
    return 0;
}

/* ---- sealing ---------------------------------------------------------------------------------------------------- */

static const char *const graph_role_key[] = {"reads", "rmw", "side", "writes"};

/* Sort the builder's rows into per-op slices reads | rmw | side | writes, each in the order they were added. */
static int graph_lay_operands(struct graph *g, const struct graph_build *b, struct graph_fault *f)
{
    int32_t *fill[4];
    int32_t at = 0, i;
    size_t r;

    g->n_operands = (int32_t)b->n_rows;
    g->operands = calloc(b->n_rows + 1, sizeof(*g->operands));
    fill[0] = calloc(4 * ((size_t)g->n_ops + 1), sizeof(int32_t));
    if (!g->operands || !fill[0]) {
        free(fill[0]);
        return -ENOMEM;
    }
    for (i = 1; i < 4; i++)
        fill[i] = fill[0] + i * (g->n_ops + 1);
    for (r = 0; r < b->n_rows; r++) {
        struct graph_op *o = &g->ops[b->rows[r].op];

        switch (b->rows[r].role) {
        case GRAPH_READ: o->n_reads++; break;
        case GRAPH_RMW: o->n_rmw++; break;
        case GRAPH_SIDE: o->n_side++; break;
        default: o->n_writes++; break;
        }
    }
    for (i = 0; i < g->n_ops; i++) {
        struct graph_op *o = &g->ops[i];

        o->first = at;
        fill[0][i] = at;
        fill[1][i] = fill[0][i] + o->n_reads;
        fill[2][i] = fill[1][i] + o->n_rmw;
        fill[3][i] = fill[2][i] + o->n_side;
        at = fill[3][i] + o->n_writes;
    }
    for (r = 0; r < b->n_rows; r++) {
        const struct graph_build_operand_row *row = &b->rows[r];
        struct graph_op *o = &g->ops[row->op];
        int32_t k = fill[row->role][row->op]++;
        int32_t base[4] = {o->first, o->first + o->n_reads, o->first + o->n_reads + o->n_rmw,
                           o->first + o->n_reads + o->n_rmw + o->n_side};

        if (row->buf < 0 || row->buf >= g->n_bufs) {
            free(fill[0]);
            return graph_say(f, row->op, row->buf, row->role, k - base[row->role], graph_role_key[row->role],
                             "op %d names buffer %d, but buffers are 0 to %d", row->op, row->buf, g->n_bufs - 1);
        }
        g->operands[k].buf = row->buf;
        g->operands[k].role = row->role;
        g->operands[k].in = g->operands[k].out = -1;
        o->work_bytes += g->bufs[row->buf].bytes;
        if (row->role == GRAPH_SIDE)
            o->side_bytes += g->bufs[row->buf].bytes;
    }
    free(fill[0]);
    return 0;
}

/* Index of operand k (absolute) within its own list, for messages. */
static int32_t graph_list_index(const struct graph_op *o, const struct graph_operand *all, int32_t k)
{
    int32_t i = k;

    while (i > o->first && all[i - 1].role == all[k].role)
        i--;
    return k - i;
}

/* Rules about when buffers are used, and how many versions each has. last[] is left at each buffer's last op. */
static int graph_check_order(struct graph *g, int32_t *last, int32_t *n_vers, struct graph_fault *f)
{
    int32_t i, k;

    for (i = 0; i < g->n_bufs; i++) {
        last[i] = -1;
        n_vers[i] = 1;
    }
    for (i = 0; i < g->n_ops; i++) {
        const struct graph_op *o = &g->ops[i];

        for (k = o->first; k < o->first + graph_n_operands(o); k++) {
            const struct graph_operand *u = &g->operands[k];
            const struct graph_buf *b = &g->bufs[u->buf];
            int32_t index = graph_list_index(o, g->operands, k);
            const char *key = graph_role_key[u->role];

            if (last[u->buf] == i)
                return graph_say(f, i, u->buf, u->role, index, key, "op %d names buffer %d twice", i, u->buf);
            if (b->dies >= 0 && b->dies <= i)
                return graph_say(f, i, u->buf, u->role, index, key,
                                 "op %d uses buffer %d, which the program frees before op %d", i, u->buf, b->dies);
            if (b->born > i)
                return graph_say(f, i, u->buf, u->role, index, key,
                                 "op %d uses buffer %d, which is only born at op %d: ops depend on each other in a cycle, "
                                 "or are out of order", i, u->buf, b->born);
            if (b->born >= 0 && last[u->buf] < 0) {
                if (u->role != GRAPH_WRITE)
                    return graph_say(f, i, u->buf, u->role, index, key,
                                     "op %d needs what is in buffer %d, but no op before it wrote the buffer", i, u->buf);
                if (b->born != i)
                    return graph_say(f, -1, u->buf, -1, 0, "born", "buffer %d is born at op %d, but first written by op %d",
                                     u->buf, b->born, i);
            }
            last[u->buf] = i;
            if (u->role != GRAPH_READ)
                n_vers[u->buf]++;
        }
    }
    return 0;
}

/* Give every operand its values and every value its producer and consumers. */
static int graph_lay_values(struct graph *g, const int32_t *n_vers)
{
    int64_t n_vals = 0, n_uses = 0;
    int32_t i, k, v;
    int32_t *cur;

    for (i = 0; i < g->n_bufs; i++) {
        g->bufs[i].first_val = (int32_t)n_vals;
        g->bufs[i].n_vers = n_vers[i];
        n_vals += n_vers[i];
    }
    if (n_vals > INT32_MAX - 2)
        return -EOVERFLOW;
    g->n_vals = (int32_t)n_vals;
    g->vals = calloc((size_t)n_vals + 1, sizeof(*g->vals));
    cur = calloc((size_t)g->n_bufs + 1, sizeof(*cur));
    if (!g->vals || !cur)
        goto no_memory;
    for (i = 0; i < g->n_bufs; i++)
        for (k = 0; k < n_vers[i]; k++) {
            struct graph_val *x = &g->vals[g->bufs[i].first_val + k];

            x->buf = i;
            x->version = k;
            x->producer = -1;
            x->over = g->n_ops;
        }
    for (i = 0; i < g->n_ops; i++)
        for (k = g->ops[i].first; k < g->ops[i].first + graph_n_operands(&g->ops[i]); k++) {
            struct graph_operand *u = &g->operands[k];

            v = g->bufs[u->buf].first_val + cur[u->buf];
            if (u->role != GRAPH_WRITE) {
                u->in = v;
                g->vals[v].n_uses++;
                n_uses++;
            }
            if (u->role != GRAPH_READ) {
                g->vals[v].over = i;
                u->out = v + 1;
                g->vals[v + 1].producer = i;
                cur[u->buf]++;
            }
        }
    g->uses = calloc((size_t)n_uses + 1, sizeof(*g->uses));
    if (!g->uses)
        goto no_memory;
    for (v = 0, k = 0; v < g->n_vals; v++) {
        g->vals[v].first_use = k;
        k += g->vals[v].n_uses;
        g->vals[v].n_uses = 0;
    }
    for (i = 0; i < g->n_ops; i++)
        for (k = g->ops[i].first; k < g->ops[i].first + graph_n_operands(&g->ops[i]); k++)
            if (g->operands[k].in >= 0) {
                struct graph_val *x = &g->vals[g->operands[k].in];

                g->uses[x->first_use + x->n_uses++] = i;
            }
    free(cur);
    return 0;
no_memory:
    free(cur);
    return -ENOMEM;
}

static void graph_time_values(struct graph *g)
{
    int32_t i, v;

    for (i = 0; i < g->n_bufs; i++) {
        struct graph_buf *b = &g->bufs[i];

        b->survives = b->dies < 0 && (b->born < 0 || b->n_vers > 1);
        for (v = b->first_val; v < b->first_val + b->n_vers; v++) {
            struct graph_val *x = &g->vals[v];
            int final = x->version == b->n_vers - 1;

            x->last_use = x->n_uses ? g->uses[x->first_use + x->n_uses - 1] : x->producer;
            x->gone = final ? (b->dies >= 0 ? b->dies : g->n_ops + 1) : x->over;
            if (final && b->survives)
                x->last_use = g->n_ops;
        }
    }
}

/* blocked[b], while walking the ops backwards: the first op from here on that leaves in buffer b a value nothing
 * rebuilds. A replay of an earlier writer of b would destroy it. */
static void graph_time_blocks(struct graph *g, int32_t *blocked)
{
    int32_t i, k, v;

    for (i = 0; i < g->n_bufs; i++)
        blocked[i] = g->n_ops;
    for (i = g->n_ops - 1; i >= 0; i--) {
        const struct graph_op *o = &g->ops[i];
        const struct graph_operand *u = graph_operands(g, i);
        int32_t until = g->n_ops;

        for (k = o->n_reads; k < graph_n_operands(o); k++)
            if (u[k].role != GRAPH_SIDE && blocked[u[k].buf] < until)
                until = blocked[u[k].buf];
        for (k = o->n_reads; k < graph_n_operands(o); k++)
            if (u[k].role != GRAPH_SIDE && g->vals[u[k].out].rebuild_until > until)
                g->vals[u[k].out].rebuild_until = until;
        for (k = o->n_reads; k < graph_n_operands(o); k++)
            if (graph_val_fixed(&g->vals[u[k].out]))
                blocked[u[k].buf] = i;
    }
    /* What a value is rebuilt from may have become unavailable earlier: hand the bounds on. */
    for (i = 0; i < g->n_ops; i++) {
        const struct graph_op *o = &g->ops[i];
        const struct graph_operand *u = graph_operands(g, i);
        int32_t until = g->n_ops;

        for (k = 0; k < o->n_reads + o->n_rmw; k++) {
            v = u[k].in;
            if (!graph_val_fixed(&g->vals[v]) && g->vals[v].rebuild_until < until)
                until = g->vals[v].rebuild_until;
        }
        for (k = o->n_reads; k < graph_n_operands(o); k++)
            if (u[k].role != GRAPH_SIDE && g->vals[u[k].out].rebuild_until > until)
                g->vals[u[k].out].rebuild_until = until;
    }
}

/* rebuild_until, and in optimistic[] an upper bound of it: the last op before which any drop-and-replay schedule at
 * all could rebuild the value, its inputs being held in memory as long as can be. */
static void graph_time_rebuild(struct graph *g, int32_t *optimistic)
{
    int32_t i, k, v;

    for (v = 0; v < g->n_vals; v++)
        g->vals[v].rebuild_until = optimistic[v] = -1;
    for (i = 0; i < g->n_ops; i++) {
        const struct graph_op *o = &g->ops[i];
        const struct graph_operand *u = graph_operands(g, i);
        int32_t all = g->n_ops, most = g->n_ops;

        if (o->opaque)
            continue;
        for (k = 0; k < o->n_reads + o->n_rmw; k++) {
            const struct graph_val *x = &g->vals[u[k].in];
            int32_t a = graph_val_fixed(x) ? x->over : x->rebuild_until;
            /* Rebuilt after the program overwrote it, it can be held to the end. */
            int32_t m = graph_val_fixed(x) || optimistic[u[k].in] <= x->over ? x->over : g->n_ops;

            /* In place the output overwrites the input, so only a rebuilt input can feed a replay: if the input is
             * fixed, no replay of this op can run and all its outputs are fixed too. */
            if (u[k].role == GRAPH_RMW)
                a = x->rebuild_until;
            all = a < all ? a : all;
            most = m < most ? m : most;
        }
        for (k = 0; k < graph_n_operands(o); k++)
            if (u[k].role == GRAPH_RMW || u[k].role == GRAPH_WRITE) {
                g->vals[u[k].out].rebuild_until = all;
                optimistic[u[k].out] = all < 0 ? -1 : most;
            }
    }
}

static int graph_lay_deaths(struct graph *g)
{
    int32_t i;

    g->dies_at = calloc((size_t)g->n_ops + 2, sizeof(*g->dies_at));
    g->die_list = calloc((size_t)g->n_bufs + 1, sizeof(*g->die_list));
    if (!g->dies_at || !g->die_list)
        return -ENOMEM;
    for (i = 0; i < g->n_bufs; i++)
        if (g->bufs[i].dies >= 0)
            g->dies_at[g->bufs[i].dies + 1]++;
    for (i = 0; i <= g->n_ops; i++)
        g->dies_at[i + 1] += g->dies_at[i];
    for (i = 0; i < g->n_bufs; i++)
        if (g->bufs[i].dies >= 0)
            g->die_list[g->dies_at[g->bufs[i].dies]++] = i;
    /* Filling moved every start to its end, which is the next one's start. */
    memmove(g->dies_at + 1, g->dies_at, ((size_t)g->n_ops + 1) * sizeof(*g->dies_at));
    g->dies_at[0] = 0;
    return 0;
}

static int graph_measure(struct graph *g, const int32_t *optimistic)
{
    int64_t used = 0, base;
    int64_t *held = calloc((size_t)g->n_ops + 2, sizeof(*held));
    char *there = calloc((size_t)g->n_bufs + 1, 1);
    int32_t i, k, v;

    g->live_bytes = calloc((size_t)g->n_ops + 1, sizeof(*g->live_bytes));
    if (!held || !there || !g->live_bytes) {
        free(held);
        free(there);
        return -ENOMEM;
    }
    for (i = 0; i < g->n_bufs; i++)
        if (g->bufs[i].born < 0) {
            used += g->bufs[i].bytes;
            there[i] = 1;
            if (g->bufs[i].dies < 0)
                g->persistent_bytes += g->bufs[i].bytes;
        }
    base = g->baseline_peak_bytes = used;
    g->baseline_peak_op = -1;
    for (i = 0; i < g->n_ops; i++) {
        const struct graph_operand *u = graph_operands(g, i);

        for (k = g->dies_at[i]; k < g->dies_at[i + 1]; k++)
            if (there[g->die_list[k]]) {
                used -= g->bufs[g->die_list[k]].bytes;
                there[g->die_list[k]] = 0;
            }
        for (k = 0; k < graph_n_operands(&g->ops[i]); k++)
            if (!there[u[k].buf]) {
                there[u[k].buf] = 1;
                used += g->bufs[u[k].buf].bytes;
            }
        g->live_bytes[i] = used;
        if (used > g->baseline_peak_bytes) {
            g->baseline_peak_bytes = used;
            g->baseline_peak_op = i;
        }
        g->total_ns += g->ops[i].ns;
    }
    /* held: difference array of bytes that must be in memory without being an operand of the op. */
    for (v = 0; v < g->n_vals; v++) {
        const struct graph_val *x = &g->vals[v];
        int64_t bytes = g->bufs[x->buf].bytes;
        int32_t from = x->producer + 1, to = x->last_use < g->n_ops ? x->last_use : g->n_ops - 1;

        if (x->version == 0 && g->bufs[x->buf].born >= 0)
            continue;
        if (!graph_val_fixed(x) && optimistic[v] > from)
            from = optimistic[v];
        if (from > to)
            continue;
        held[from] += bytes;
        held[to + 1] -= bytes;
        for (k = 0; k < x->n_uses; k++)
            if (g->uses[x->first_use + k] >= from) {
                held[g->uses[x->first_use + k]] -= bytes;
                held[g->uses[x->first_use + k] + 1] += bytes;
            }
    }
    g->floor_bytes = g->floor_offload_bytes = base;
    g->floor_op = g->floor_offload_op = -1;
    for (i = 0, used = 0; i < g->n_ops; i++) {
        used += held[i];
        if (used + g->ops[i].work_bytes > g->floor_bytes) {
            g->floor_bytes = used + g->ops[i].work_bytes;
            g->floor_op = i;
        }
        if (g->ops[i].work_bytes > g->floor_offload_bytes) {
            g->floor_offload_bytes = g->ops[i].work_bytes;
            g->floor_offload_op = i;
        }
    }
    free(held);
    free(there);
    return 0;
}

int graph_seal(struct graph_build *b, struct graph **out, struct graph_fault *f)
{
    struct graph *g = calloc(1, sizeof(*g));
    int32_t *tmp = calloc(2 * (b->n_bufs + 1), sizeof(*tmp)), *optimistic = NULL;
    int rc = -ENOMEM;

    memset(f, 0, sizeof(*f));
    f->op = f->buf = f->role = -1;
    if (!g || !tmp)
        goto fail;
    g->n_ops = (int32_t)b->n_ops;
    g->n_bufs = (int32_t)b->n_bufs;
    g->ops = b->ops;
    g->bufs = b->bufs;
    g->host_bytes_per_s = 25e9;
    b->ops = NULL;
    b->bufs = NULL;
    b->n_ops = b->n_bufs = b->cap_ops = b->cap_bufs = 0;
    if (!g->ops)
        g->ops = calloc(1, sizeof(*g->ops));
    if (!g->bufs)
        g->bufs = calloc(1, sizeof(*g->bufs));
    if (!g->ops || !g->bufs)
        goto fail;
    if ((rc = graph_check_sizes(g, f)) || (rc = graph_lay_operands(g, b, f)) || (rc = graph_check_order(g, tmp, tmp + g->n_bufs, f)) ||
        (rc = graph_lay_values(g, tmp + g->n_bufs)) || (rc = graph_lay_deaths(g)))
        goto fail;
    optimistic = calloc((size_t)g->n_vals + 1, sizeof(*optimistic));
    g->model = strdup("");
    g->device = strdup("");
    g->source = strdup("");
    if (!optimistic || !g->model || !g->device || !g->source) {
        rc = -ENOMEM;
        goto fail;
    }
    graph_time_values(g);
    graph_time_rebuild(g, optimistic);
    graph_time_blocks(g, tmp);
    rc = graph_measure(g, optimistic);
    if (rc)
        goto fail;
    free(optimistic);
    free(tmp);
    *out = g;
    return 0;
fail:
    free(optimistic);
    free(tmp);
    graph_free(g);
    if (rc == -ENOMEM)
        snprintf(f->text, sizeof(f->text), "not enough memory");
    else if (rc == -EOVERFLOW)
        snprintf(f->text, sizeof(f->text), "too large: over 2^31 values");
    return rc;
}

int graph_copy_facts(const struct graph *g, struct graph *to)
{
    char **at[] = {&to->model, &to->device, &to->source};
    const char *from[] = {g->model, g->device, g->source};
    to->host_bytes_per_s = g->host_bytes_per_s;
    to->granularity_bytes = g->granularity_bytes;
    to->page_bytes = g->page_bytes;
    to->reserve_bytes = g->reserve_bytes;
    to->batch = g->batch;
    memcpy(to->sha256, g->sha256, sizeof(to->sha256));
    for (int i = 0; i < 3; i++) {
        free(*at[i]);
        if (!(*at[i] = strdup(from[i])))
            return -ENOMEM;
    }
    to->sites = g->n_sites ? calloc((size_t)g->n_sites, sizeof(*to->sites)) : NULL;
    if (g->n_sites && !to->sites)
        return -ENOMEM;
    for (int32_t i = 0; i < g->n_sites; i++, to->n_sites++)
        if (!(to->sites[i] = strdup(g->sites[i])))
            return -ENOMEM;
    return 0;
}

void graph_free(struct graph *g)
{
    int32_t i;

    if (!g)
        return;
    for (i = 0; g->ops && i < g->n_ops; i++)
        free((char *)g->ops[i].name);
    for (i = 0; i < g->n_sites; i++)
        free(g->sites[i]);
    free(g->ops);
    free(g->bufs);
    free(g->vals);
    free(g->operands);
    free(g->uses);
    free(g->dies_at);
    free(g->die_list);
    free(g->live_bytes);
    free(g->model);
    free(g->device);
    free(g->source);
    free(g->sites);
    free(g);
}
