/* bench_maxflow: solve time of the largest mincut-v1 instance, against a plain Dinic with a breadth-first
 * level graph and one depth-first path at a time. Prints one JSON fragment; exits 77 without the instances. */
#include "offline/maxflow.h"
#include "offline/mincut_inst.h"

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

int main(void)
{
    const char *shared = getenv("REMAT_SHARED");
    if (!shared || !*shared)
        return 77;
    char path[4096], err[256];
    snprintf(path, sizeof path, "%s/anchors/mincut/mincut_transformer_n5101.json", shared);
    struct mincut_inst g;
    struct json_doc doc;
    if (json_doc_load(path, &doc, err, sizeof err))
        return 77;
    int bad = mincut_inst_read(&doc, &g, err, sizeof err);
    json_doc_close(&doc);
    if (bad) {
        fprintf(stderr, "bench_maxflow: %s\n", err);
        return 1;
    }
    struct maxflow *f = build(&g);
    if (!f)
        return 1;
    double best = 1e30, base = 1e30;
    int64_t cut = -1, ref = -1;
    for (int k = 0; k < 9; k++) {
        double t0 = now_ms();
        if (maxflow_solve(f, 0, 1, &cut))
            return 1;
        double t = now_ms() - t0;
        if (t < best)
            best = t;
    }
    for (int k = 0; k < 3; k++) {
        double t0 = now_ms();
        ref = plain_dinic(&g);
        double t = now_ms() - t0;
        if (t < base)
            base = t;
    }
    maxflow_free(f);
    mincut_inst_free(&g);
    if (cut != ref) {
        fprintf(stderr, "bench_maxflow: cut %lld, plain Dinic %lld\n", (long long)cut, (long long)ref);
        return 1;
    }
    printf("{\"maxflow_n5101\": {\"value\": %.3f, \"unit\": \"ms\", \"baseline\": %.3f, \"ratio\": %.3f}}\n", best, base,
           best / base);
    return 0;
}
