/* bench_maxflow: solve time of the largest mincut-v1 instance, against a plain Dinic with a breadth-first
 * level graph and one depth-first path at a time. Prints one JSON fragment; exits 77 without the instances. */
#include "offline/solvers/mincut/maxflow.h"
#include "offline/literature/mincut_inst.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct dinic {
    int n, *head, *next, *to, *level, *it, *queue;
    int64_t *res;
};

static int64_t dinic_push(struct dinic *d, int u, int64_t limit)
{
    if (u == 1)
        return limit;
    for (int *a = &d->it[u]; *a >= 0; *a = d->next[*a]) {
        int v = d->to[*a];
        if (d->res[*a] > 0 && d->level[v] == d->level[u] + 1) {
            int64_t x = dinic_push(d, v, limit < d->res[*a] ? limit : d->res[*a]);
            if (x) {
                d->res[*a] -= x;
                d->res[*a ^ 1] += x;
                return x;
            }
        }
    }
    return 0;
}

static int64_t plain_dinic(const struct mincut_inst *g)
{
    size_t n = (size_t)g->n_vertices, m = (size_t)g->n_edges;
    struct dinic d = { .n = g->n_vertices };
    d.head = malloc(n * sizeof(int));
    d.level = malloc(n * sizeof(int));
    d.it = malloc(n * sizeof(int));
    d.queue = malloc(n * sizeof(int));
    d.next = malloc(2 * m * sizeof(int));
    d.to = malloc(2 * m * sizeof(int));
    d.res = malloc(2 * m * sizeof(int64_t));
    if (!d.head || !d.level || !d.it || !d.queue || !d.next || !d.to || !d.res)
        abort();
    for (size_t v = 0; v < n; v++)
        d.head[v] = -1;
    for (size_t i = 0; i < m; i++)
        for (int k = 0; k < 2; k++) {
            int a = (int)(2 * i) + k, from = k ? g->v[i] : g->u[i];
            d.to[a] = k ? g->u[i] : g->v[i];
            d.res[a] = k ? 0 : g->cap[i] == MAXFLOW_INF ? INT64_MAX / 4 : g->cap[i];
            d.next[a] = d.head[from];
            d.head[from] = a;
        }
    int64_t flow = 0;
    for (;;) {
        int h = 0, t = 0;
        for (size_t v = 0; v < n; v++)
            d.level[v] = -1;
        d.level[0] = 0;
        d.queue[t++] = 0;
        while (h < t) {
            int u = d.queue[h++];
            for (int a = d.head[u]; a >= 0; a = d.next[a])
                if (d.res[a] > 0 && d.level[d.to[a]] < 0) {
                    d.level[d.to[a]] = d.level[u] + 1;
                    d.queue[t++] = d.to[a];
                }
        }
        if (d.level[1] < 0)
            break;
        memcpy(d.it, d.head, n * sizeof(int));
        for (int64_t x; (x = dinic_push(&d, 0, INT64_MAX / 4)) > 0;)
            flow += x;
    }
    free(d.head);
    free(d.level);
    free(d.it);
    free(d.queue);
    free(d.next);
    free(d.to);
    free(d.res);
    return flow;
}

static struct maxflow *build(const struct mincut_inst *g)
{
    struct maxflow *f = maxflow_new(g->n_vertices);
    for (int i = 0; f && i < g->n_edges; i++)
        if (maxflow_arc(f, g->u[i], g->v[i], g->cap[i])) {
            maxflow_free(f);
            return NULL;
        }
    return f;
}

/* A residual stream: a chain of `layers` nodes, each of which also feeds the backward pass through a cheap arc, so that
 * every augmenting path has another length. */
static int skip_chain(struct mincut_inst *g, int layers)
{
    uint64_t rng = 5;
    size_t room = 3 * (size_t)layers + 2;
    memset(g, 0, sizeof *g);
    g->n_vertices = 2 + 2 * layers;
    g->u = malloc(room * sizeof *g->u);
    g->v = malloc(room * sizeof *g->v);
    g->cap = malloc(room * sizeof *g->cap);
    if (!g->u || !g->v || !g->cap)
        return -1;
#define EDGE(a, b, c) (g->u[g->n_edges] = (a), g->v[g->n_edges] = (b), g->cap[g->n_edges++] = (c))
    EDGE(0, 2, MAXFLOW_INF);
    for (int i = 0; i < layers; i++) {
        int in = 2 + 2 * i;
        rng = rng * 6364136223846793005ULL + 1442695040888963407ULL;
        EDGE(in, in + 1, 100 * layers + (int64_t)(rng >> 40) % 1000);
        if (i + 1 < layers)
            EDGE(in + 1, in + 2, MAXFLOW_INF);
        EDGE(in + 1, 1, 1 + (int64_t)(rng >> 33) % 50);
    }
#undef EDGE
    return 0;
}

/* Best time of each on g, in ms; 1 if they disagree. */
static int measure(const struct mincut_inst *g, int runs, double *ours, double *plain)
{
    struct maxflow *f = build(g);
    int64_t cut = -1, ref = -1;
    *ours = *plain = 1e30;
    for (int k = 0; f && k < 3 * runs; k++) {
        double t0 = now_ms();
        if (maxflow_solve(f, 0, 1, &cut))
            break;
        double t = now_ms() - t0;
        *ours = t < *ours ? t : *ours;
    }
    maxflow_free(f);
    for (int k = 0; k < runs; k++) {
        double t0 = now_ms();
        ref = plain_dinic(g);
        double t = now_ms() - t0;
        *plain = t < *plain ? t : *plain;
    }
    if (cut != ref)
        fprintf(stderr, "bench_maxflow: cut %lld, plain Dinic %lld\n", (long long)cut, (long long)ref);
    return cut != ref;
}

int main(void)
{
    const char *shared = getenv("REMAT_SHARED");
    if (!shared || !*shared)
        return 77;
    char path[4096], err[256];
    snprintf(path, sizeof path, "%s/anchors/mincut/mincut_transformer_n5101.json", shared);
    struct mincut_inst g;
    struct json_doc doc;
    double ours, plain, chain_ours, chain_plain;
    if (json_doc_load(path, &doc, err, sizeof err))
        return 77;
    int bad = mincut_inst_read(&doc, &g, err, sizeof err);
    json_doc_close(&doc);
    if (bad) {
        fprintf(stderr, "bench_maxflow: %s\n", err);
        return 1;
    }
    bad = measure(&g, 5, &ours, &plain);
    mincut_inst_free(&g);
    if (!bad)
        bad = skip_chain(&g, 3000) || measure(&g, 1, &chain_ours, &chain_plain);
    mincut_inst_free(&g);
    if (bad)
        return 1;
    printf("{\"maxflow_n5101\": {\"value\": %.3f, \"unit\": \"ms\", \"baseline\": %.3f, \"ratio\": %.3f}, "
           "\"maxflow_skip_chain\": {\"value\": %.3f, \"unit\": \"ms\", \"baseline\": %.3f, \"ratio\": %.5f}}\n",
           ours, plain, ours / plain, chain_ours, chain_plain, chain_ours / chain_plain);
    return 0;
}
