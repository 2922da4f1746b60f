#include "offline/maxflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct arc_in { int u, v; int64_t cap; };   /* as added */
struct arc { int to, rev; int64_t res; };   /* residual; rev indexes the partner */

/* Invariants while solving: res >= 0; for an arc pair the residuals sum to the
 * two capacities; excess[v] >= 0 for all v but the source; label[v] is at most
 * the residual distance to the sink; label == n means "cannot reach it". */
struct maxflow {
    int n, m, room;
    struct arc_in *in;
    unsigned char *side; /* of the original vertices, after a solve */
    int *rep;            /* original vertex -> merged vertex */
};

struct work {
    int n, s, t;
    int *first;          /* n + 1 */
    struct arc *arc;
    int *label, *cur;
    int64_t *excess;
    int *act_next, *act_head; /* active vertices by label, singly linked */
    int *lay_next, *lay_prev, *lay_head; /* all labelled vertices by label */
    int *queue;
    int top_active, top_layer;
    int64_t since_exact, exact_every;
};

struct maxflow *maxflow_new(int n)
{
    if (n <= 0)
        return NULL;
    struct maxflow *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->n = n;
    f->side = calloc((size_t)n, 1);
    f->rep = malloc((size_t)n * sizeof *f->rep);
    if (!f->side || !f->rep) {
        maxflow_free(f);
        return NULL;
    }
    return f;
}

void maxflow_free(struct maxflow *f)
{
    if (!f)
        return;
    free(f->in);
    free(f->side);
    free(f->rep);
    free(f);
}

int maxflow_arc(struct maxflow *f, int u, int v, int64_t cap)
{
    if (u < 0 || u >= f->n || v < 0 || v >= f->n || cap < 0)
        return -EINVAL;
    if (f->m == f->room) {
        if (f->room > INT32_MAX / 8)
            return -ENOMEM;
        int room = f->room ? 2 * f->room : 256;
        struct arc_in *p = realloc(f->in, (size_t)room * sizeof *p);
        if (!p)
            return -ENOMEM;
        f->in = p;
        f->room = room;
    }
    f->in[f->m++] = (struct arc_in){ u, v, cap };
    return 0;
}

int maxflow_set(struct maxflow *f, int a, int64_t cap)
{
    if (a < 0 || a >= f->m || cap < 0)
        return -EINVAL;
    f->in[a].cap = cap;
    return 0;
}

int maxflow_on_source_side(const struct maxflow *f, int v)
{
    return v >= 0 && v < f->n && f->side[v];
}

/* Marks what `from` reaches over infinite arcs, forwards or backwards. */
static int reach_infinite(const struct maxflow *f, int from, int backwards, unsigned char *seen)
{
    int *first = calloc((size_t)f->n + 2, sizeof *first);
    int *adj = malloc(((size_t)f->m + 1) * sizeof *adj);
    int *stack = malloc((size_t)f->n * sizeof *stack);
    int r = -ENOMEM;
    if (!first || !adj || !stack)
        goto out;
    for (int i = 0; i < f->m; i++)
        if (f->in[i].cap == MAXFLOW_INF)
            first[(backwards ? f->in[i].v : f->in[i].u) + 2]++;
    for (int v = 0; v < f->n; v++)
        first[v + 2] += first[v + 1];
    for (int i = 0; i < f->m; i++)
        if (f->in[i].cap == MAXFLOW_INF)
            adj[first[(backwards ? f->in[i].v : f->in[i].u) + 1]++] = backwards ? f->in[i].u : f->in[i].v;
    memset(seen, 0, (size_t)f->n);
    int top = 0;
    stack[top++] = from;
    seen[from] = 1;
    while (top) {
        int v = stack[--top];
        for (int k = first[v]; k < first[v + 1]; k++)
            if (!seen[adj[k]]) {
                seen[adj[k]] = 1;
                stack[top++] = adj[k];
            }
    }
    r = 0;
out:
    free(first);
    free(adj);
    free(stack);
    return r;
}

/* Merged vertices: 0 is the source, 1 the sink. */
static int merge_terminals(struct maxflow *f, int s, int t, int *n_merged)
{
    unsigned char *seen = malloc(2 * (size_t)f->n);
    if (!seen)
        return -ENOMEM;
    unsigned char *to_sink = seen + f->n;
    int r = reach_infinite(f, s, 0, seen);
    if (!r)
        r = reach_infinite(f, t, 1, to_sink);
    int n = 2;
    for (int v = 0; !r && v < f->n; v++) {
        if (seen[v] && to_sink[v])
            r = -ERANGE;
        f->rep[v] = seen[v] ? 0 : to_sink[v] ? 1 : n++;
    }
    free(seen);
    *n_merged = n;
    return r;
}

static int work_alloc(struct work *w, int n, int arcs)
{
    size_t N = (size_t)n;
    memset(w, 0, sizeof *w);
    w->n = n;
    w->first = calloc(N + 2, sizeof *w->first);
    w->arc = malloc((2 * (size_t)arcs + 1) * sizeof *w->arc);
    w->excess = calloc(N, sizeof *w->excess);
    /* label, cur, act_next, lay_next, lay_prev, queue: n each; heads: n + 1 each */
    w->label = malloc((8 * N + 2) * sizeof *w->label);
    if (!w->first || !w->arc || !w->excess || !w->label)
        return -ENOMEM;
    w->cur = w->label + N;
    w->act_next = w->cur + N;
    w->lay_next = w->act_next + N;
    w->lay_prev = w->lay_next + N;
    w->queue = w->lay_prev + N;
    w->act_head = w->queue + N;
    w->lay_head = w->act_head + N + 1;
    return 0;
}

static void work_free(struct work *w)
{
    free(w->first);
    free(w->arc);
    free(w->excess);
    free(w->label);
}

static void work_fill(struct work *w, const struct maxflow *f, int64_t inf)
{
    for (int i = 0; i < f->m; i++) {
        int u = f->rep[f->in[i].u], v = f->rep[f->in[i].v];
        if (u == v || !f->in[i].cap || v == 0 || u == 1)
            continue;
        w->first[u + 2]++;
        w->first[v + 2]++;
    }
    for (int v = 0; v < w->n; v++)
        w->first[v + 2] += w->first[v + 1];
    for (int i = 0; i < f->m; i++) {
        int u = f->rep[f->in[i].u], v = f->rep[f->in[i].v];
        if (u == v || !f->in[i].cap || v == 0 || u == 1)
            continue;
        int a = w->first[u + 1]++, b = w->first[v + 1]++;
        w->arc[a] = (struct arc){ v, b, f->in[i].cap == MAXFLOW_INF ? inf : f->in[i].cap };
        w->arc[b] = (struct arc){ u, a, 0 };
    }
}

static inline void layer_add(struct work *w, int v, int d)
{
    int h = w->lay_head[d];
    w->lay_next[v] = h;
    w->lay_prev[v] = -1;
    if (h >= 0)
        w->lay_prev[h] = v;
    w->lay_head[d] = v;
    if (d > w->top_layer)
        w->top_layer = d;
}

static inline void layer_del(struct work *w, int v, int d)
{
    int p = w->lay_prev[v], q = w->lay_next[v];
    if (p >= 0)
        w->lay_next[p] = q;
    else
        w->lay_head[d] = q;
    if (q >= 0)
        w->lay_prev[q] = p;
}

static inline void activate(struct work *w, int v)
{
    int d = w->label[v];
    w->act_next[v] = w->act_head[d];
    w->act_head[d] = v;
    if (d > w->top_active)
        w->top_active = d;
}

/* Exact labels: distance to the sink over residual arcs. */
static void exact_labels(struct work *w)
{
    int n = w->n, head = 0, tail = 0;
    for (int v = 0; v < n; v++)
        w->label[v] = n;
    for (int d = 0; d <= n; d++)
        w->act_head[d] = w->lay_head[d] = -1;
    w->top_active = w->top_layer = 0;
    w->label[w->t] = 0;
    w->queue[tail++] = w->t;
    while (head < tail) {
        int v = w->queue[head++], d = w->label[v] + 1;
        for (int k = w->first[v]; k < w->first[v + 1]; k++) {
            int u = w->arc[k].to;
            if (w->label[u] == n && u != w->s && w->arc[w->arc[k].rev].res > 0) {
                w->label[u] = d;
                w->cur[u] = w->first[u];
                w->queue[tail++] = u;
                layer_add(w, u, d);
                if (w->excess[u] > 0)
                    activate(w, u);
            }
        }
    }
    w->since_exact = 0;
}

/* No vertex is left at label d: those above it cannot reach the sink. */
static void gap(struct work *w, int d)
{
    for (int k = d + 1; k <= w->top_layer; k++) {
        for (int v = w->lay_head[k]; v >= 0; v = w->lay_next[v])
            w->label[v] = w->n;
        w->lay_head[k] = w->act_head[k] = -1;
    }
    w->top_layer = d - 1;
    if (w->top_active >= d)
        w->top_active = d - 1;
}

static void discharge(struct work *w, int u)
{
    struct arc *arc = w->arc;
    for (;;) {
        int end = w->first[u + 1], d = w->label[u], k;
        for (k = w->cur[u]; k < end; k++) {
            int v = arc[k].to;
            if (arc[k].res <= 0 || w->label[v] + 1 != d)
                continue;
            int64_t x = w->excess[u] < arc[k].res ? w->excess[u] : arc[k].res;
            if (!w->excess[v] && v != w->t)
                activate(w, v);
            arc[k].res -= x;
            arc[arc[k].rev].res += x;
            w->excess[v] += x;
            w->excess[u] -= x;
            if (!w->excess[u]) {
                w->cur[u] = k;
                return;
            }
        }
        int best = w->n, at = w->first[u];
        for (k = w->first[u]; k < end; k++)
            if (arc[k].res > 0 && w->label[arc[k].to] < best) {
                best = w->label[arc[k].to];
                at = k;
            }
        w->since_exact += 12 + end - w->first[u];
        layer_del(w, u, d);
        w->label[u] = best + 1 < w->n ? best + 1 : w->n;
        w->cur[u] = at;
        if (w->lay_head[d] < 0) {
            gap(w, d);
            w->label[u] = w->n;
            return;
        }
        if (w->label[u] == w->n)
            return;
        layer_add(w, u, w->label[u]);
    }
}

static void run(struct work *w)
{
    for (int k = w->first[w->s]; k < w->first[w->s + 1]; k++) {
        struct arc *a = &w->arc[k];
        w->excess[a->to] += a->res;
        w->arc[a->rev].res += a->res;
        a->res = 0;
    }
    exact_labels(w);
    for (;;) {
        while (w->top_active > 0 && w->act_head[w->top_active] < 0)
            w->top_active--;
        if (!w->top_active)
            return;
        int u = w->act_head[w->top_active];
        w->act_head[w->top_active] = w->act_next[u];
        discharge(w, u);
        if (w->since_exact > w->exact_every)
            exact_labels(w);
    }
}

int maxflow_solve(struct maxflow *f, int s, int t, int64_t *value)
{
    if (s < 0 || s >= f->n || t < 0 || t >= f->n || s == t)
        return -EINVAL;
    int64_t sum = 0;
    for (int i = 0; i < f->m; i++)
        if (f->in[i].cap != MAXFLOW_INF && f->in[i].u != f->in[i].v) {
            if (f->in[i].cap >= (INT64_C(1) << 62) - sum)
                return -EOVERFLOW;
            sum += f->in[i].cap;
        }
    int n;
    int r = merge_terminals(f, s, t, &n);
    if (r)
        return r;
    struct work w;
    r = work_alloc(&w, n, f->m);
    if (!r) {
        work_fill(&w, f, sum + 1);
        w.s = 0;
        w.t = 1;
        w.exact_every = 6 * (int64_t)n + w.first[n];
        run(&w);
        *value = w.excess[w.t];
        exact_labels(&w);
        for (int v = 0; v < f->n; v++)
            f->side[v] = w.label[f->rep[v]] == n;
    }
    work_free(&w);
    return r;
}
