#include "offline/solvers/mincut/maxflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct arc_in { int u, v; int64_t cap; };   /* an arc as the caller added it */
struct arc { int to, rev; int64_t res; };   /* a residual arc; rev: index of its partner */

/* A vertex that an infinite path joins to a terminal counts as that terminal. */
enum { INNER, SOURCE_LIKE, SINK_LIKE };

/* Invariants while solving: res >= 0; for an arc pair the residuals sum to the two capacities; excess[v] >= 0 for
 * inner v; label[v] is at most the residual distance to a sink-like vertex; label == n means "cannot reach a sink-like vertex". */
struct maxflow {
    int n, m, room;
    struct arc_in *in;
    unsigned char *side;      /* [n] after a solve: 1 on the source's side */
    /* the arcs by vertex, laid when arcs were added since the last solve */
    int laid;                 /* number of arcs laid; -1: none */
    int *first;               /* n + 1 */
    struct arc *arc;
    int *place;               /* added arc -> index in arc */
    unsigned char *role;
    int *label, *cur;
    int64_t *excess;
    int *act_next, *act_head; /* active vertices by label, singly linked */
    int *lay_next, *lay_prev, *lay_head; /* labelled inner vertices by label */
    int *queue;
    int top_active, top_layer;
    int64_t since_exact;
};

struct maxflow *maxflow_new(int n)
{
    if (n <= 0 || n > INT32_MAX / 16)
        return NULL;
    struct maxflow *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    size_t N = (size_t)n;
    f->n = n;
    f->laid = -1;
    f->side = calloc(2 * N, 1);
    f->first = malloc((N + 2) * sizeof *f->first);
    f->excess = malloc(N * sizeof *f->excess);
    /* label, cur, act_next, lay_next, lay_prev, queue: n each; heads: n + 1 each */
    f->label = malloc((8 * N + 2) * sizeof *f->label);
    if (!f->side || !f->first || !f->excess || !f->label) {
        maxflow_free(f);
        return NULL;
    }
    f->role = f->side + N;
    f->cur = f->label + N;
    f->act_next = f->cur + N;
    f->lay_next = f->act_next + N;
    f->lay_prev = f->lay_next + N;
    f->queue = f->lay_prev + N;
    f->act_head = f->queue + N;
    f->lay_head = f->act_head + N + 1;
    return f;
}

void maxflow_free(struct maxflow *f)
{
    if (!f)
        return;
    free(f->in);
    free(f->side);
    free(f->first);
    free(f->arc);
    free(f->place);
    free(f->excess);
    free(f->label);
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

static int lay_arcs(struct maxflow *f)
{
    if (f->laid == f->m)
        return 0;
    f->laid = -1;
    free(f->arc);
    free(f->place);
    f->arc = malloc((2 * (size_t)f->m + 1) * sizeof *f->arc);
    f->place = malloc(((size_t)f->m + 1) * sizeof *f->place);
    if (!f->arc || !f->place)
        return -ENOMEM;
    memset(f->first, 0, ((size_t)f->n + 2) * sizeof *f->first);
    for (int i = 0; i < f->m; i++) {
        f->first[f->in[i].u + 1]++;
        f->first[f->in[i].v + 1]++;
    }
    for (int v = 0; v < f->n; v++)
        f->first[v + 1] += f->first[v];
    /* Each vertex's range is filled from its end, partners first, so that first[] ends up at the ranges' starts: a vertex
     * then tries its own arcs before it sends excess back, which keeps long chains from passing excess to and fro. */
    for (int i = f->m - 1; i >= 0; i--)
        f->place[i] = --f->first[f->in[i].v + 1];
    for (int i = f->m - 1; i >= 0; i--) {
        int b = f->place[i], a = --f->first[f->in[i].u + 1];
        f->arc[a] = (struct arc){ f->in[i].v, b, 0 };
        f->arc[b] = (struct arc){ f->in[i].u, a, 0 };
        f->place[i] = a;
    }
    memmove(f->first, f->first + 1, (size_t)f->n * sizeof *f->first);
    f->first[f->n] = 2 * f->m;
    f->laid = f->m;
    return 0;
}

/* Gives `role` to all vertices that infinite arcs join to `from`, forwards or backwards. -ERANGE: a vertex is joined to both
 * terminals. An arc is infinite while its residual is `inf`; its partner's is 0 or, if both directions are infinite, `inf` too. */
static int spread(struct maxflow *f, int from, int role, int64_t inf)
{
    int top = 0;
    f->queue[top++] = from;
    f->role[from] = (unsigned char)role;
    while (top) {
        int v = f->queue[--top];
        for (int k = f->first[v]; k < f->first[v + 1]; k++) {
            const struct arc *a = &f->arc[k];
            if ((role == SOURCE_LIKE ? a->res : f->arc[a->rev].res) < inf || f->role[a->to] == role)
                continue;
            if (f->role[a->to] != INNER)
                return -ERANGE;
            f->role[a->to] = (unsigned char)role;
            f->queue[top++] = a->to;
        }
    }
    return 0;
}

static inline void layer_add(struct maxflow *f, int v, int d)
{
    int h = f->lay_head[d];
    f->lay_next[v] = h;
    f->lay_prev[v] = -1;
    if (h >= 0)
        f->lay_prev[h] = v;
    f->lay_head[d] = v;
    if (d > f->top_layer)
        f->top_layer = d;
}

static inline void layer_del(struct maxflow *f, int v, int d)
{
    int p = f->lay_prev[v], q = f->lay_next[v];
    if (p >= 0)
        f->lay_next[p] = q;
    else
        f->lay_head[d] = q;
    if (q >= 0)
        f->lay_prev[q] = p;
}

static inline void activate(struct maxflow *f, int v)
{
    int d = f->label[v];
    f->act_next[v] = f->act_head[d];
    f->act_head[d] = v;
    if (d > f->top_active)
        f->top_active = d;
}

/* Exact labels: distance to the sink over residual arcs. */
static void exact_labels(struct maxflow *f)
{
    int n = f->n, head = 0, tail = 0;
    for (int d = 0; d <= n; d++)
        f->act_head[d] = f->lay_head[d] = -1;
    f->top_active = f->top_layer = 0;
    for (int v = 0; v < n; v++) {
        f->label[v] = n;
        if (f->role[v] == SINK_LIKE) {
            f->label[v] = 0;
            f->queue[tail++] = v;
        }
    }
    while (head < tail) {
        int v = f->queue[head++], d = f->label[v] + 1;
        for (int k = f->first[v]; k < f->first[v + 1]; k++) {
            int u = f->arc[k].to;
            if (f->label[u] == n && f->role[u] == INNER && f->arc[f->arc[k].rev].res > 0) {
                f->label[u] = d;
                f->cur[u] = f->first[u];
                f->queue[tail++] = u;
                layer_add(f, u, d);
                if (f->excess[u] > 0)
                    activate(f, u);
            }
        }
    }
    f->since_exact = 0;
}

/* The gap rule: no vertex is left at label d, so the vertices with larger labels cannot reach the sink. */
static void gap(struct maxflow *f, int d)
{
    for (int k = d + 1; k <= f->top_layer; k++) {
        for (int v = f->lay_head[k]; v >= 0; v = f->lay_next[v])
            f->label[v] = f->n;
        f->lay_head[k] = f->act_head[k] = -1;
    }
    f->top_layer = d - 1;
    if (f->top_active >= d)
        f->top_active = d - 1;
}

static void discharge(struct maxflow *f, int u)
{
    struct arc *arc = f->arc;
    for (;;) {
        int end = f->first[u + 1], d = f->label[u], k;
        for (k = f->cur[u]; k < end; k++) {
            int v = arc[k].to;
            if (arc[k].res <= 0 || f->label[v] + 1 != d)
                continue;
            int64_t x = f->excess[u] < arc[k].res ? f->excess[u] : arc[k].res;
            if (!f->excess[v] && f->role[v] == INNER)
                activate(f, v);
            arc[k].res -= x;
            arc[arc[k].rev].res += x;
            f->excess[v] += x;
            f->excess[u] -= x;
            if (!f->excess[u]) {
                f->cur[u] = k;
                return;
            }
        }
        int best = f->n, at = f->first[u];
        for (k = f->first[u]; k < end; k++)
            if (arc[k].res > 0 && f->label[arc[k].to] < best) {
                best = f->label[arc[k].to];
                at = k;
            }
        f->since_exact += 12 + end - f->first[u];
        layer_del(f, u, d);
        f->label[u] = best + 1 < f->n ? best + 1 : f->n;
        f->cur[u] = at;
        if (f->lay_head[d] < 0) {
            gap(f, d);
            f->label[u] = f->n;
            return;
        }
        if (f->label[u] == f->n)
            return;
        layer_add(f, u, f->label[u]);
    }
}

static void run(struct maxflow *f)
{
    int64_t exact_every = 6 * (int64_t)f->n + 2 * (int64_t)f->m;
    memset(f->excess, 0, (size_t)f->n * sizeof *f->excess);
    for (int v = 0; v < f->n; v++)
        for (int k = f->first[v]; f->role[v] == SOURCE_LIKE && k < f->first[v + 1]; k++) {
            struct arc *a = &f->arc[k];
            if (f->role[a->to] == SOURCE_LIKE)
                continue;
            f->excess[a->to] += a->res;
            f->arc[a->rev].res += a->res;
            a->res = 0;
        }
    exact_labels(f);
    for (;;) {
        while (f->top_active > 0 && f->act_head[f->top_active] < 0)
            f->top_active--;
        if (!f->top_active)
            return;
        int u = f->act_head[f->top_active];
        f->act_head[f->top_active] = f->act_next[u];
        discharge(f, u);
        if (f->since_exact > exact_every)
            exact_labels(f);
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
    int r = lay_arcs(f);
    if (r)
        return r;
    const int64_t inf = sum + 1;
    for (int i = 0; i < f->m; i++) {
        struct arc *a = &f->arc[f->place[i]];
        a->res = f->in[i].u == f->in[i].v ? 0 : f->in[i].cap == MAXFLOW_INF ? inf : f->in[i].cap;
        f->arc[a->rev].res = 0;
    }
    memset(f->role, INNER, (size_t)f->n);
    r = spread(f, s, SOURCE_LIKE, inf);
    if (!r)
        r = spread(f, t, SINK_LIKE, inf);
    if (r)
        return r;
    run(f);
    *value = 0;
    for (int v = 0; v < f->n; v++)
        if (f->role[v] == SINK_LIKE)
            *value += f->excess[v];
    exact_labels(f);
    for (int v = 0; v < f->n; v++)
        f->side[v] = f->label[v] == f->n;
    return 0;
}
