#include "offline/literature/mincut_inst.h"

#include "offline/solvers/mincut/maxflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 10 * 1000 * 1000, EDGES_MAX = INT32_MAX / 8 };

void mincut_inst_free(struct mincut_inst *g)
{
    free(g->u);
    free(g->v);
    free(g->cap);
    memset(g, 0, sizeof *g);
}

static int read_edges(const struct json_doc *doc, json_t *edges, struct mincut_inst *g, char *err, size_t err_len)
{
    size_t m = json_array_size(edges);
    struct json_step at[3] = { { "edges", 0 }, { NULL, 0 }, { NULL, 0 } };
    if (m > EDGES_MAX)
        return json_fault(doc, at, 1, err, err_len, "has %zu entries, more than %d", m, EDGES_MAX);
    g->n_edges = (int)m;
    g->u = malloc((m + 1) * sizeof *g->u);
    g->v = malloc((m + 1) * sizeof *g->v);
    g->cap = malloc((m + 1) * sizeof *g->cap);
    if (!g->u || !g->v || !g->cap)
        return -ENOMEM;
    for (size_t i = 0; i < m; i++) {
        const json_t *e = json_array_get(edges, i);
        int64_t x[3];
        at[1].index = i;
        if (json_array_size(e) != 3)
            return json_fault(doc, at, 2, err, err_len, "must be [from, to, capacity]");
        for (size_t k = 0; k < 3; k++) {
            at[2].index = k;
            if (json_as_int(json_array_get(e, k), k == 2 ? -1 : 0, k == 2 ? MAXFLOW_INF - 1 : g->n_vertices - 1, &x[k]))
                return k == 2 ? json_fault(doc, at, 3, err, err_len, "must be a capacity, 0 or more, or -1 for infinite")
                              : json_fault(doc, at, 3, err, err_len, "must be a vertex, 0 to %d", g->n_vertices - 1);
        }
        g->u[i] = (int)x[0];
        g->v[i] = (int)x[1];
        g->cap[i] = x[2] == -1 ? MAXFLOW_INF : x[2];
    }
    return 0;
}

int mincut_inst_read(const struct json_doc *doc, struct mincut_inst *g, char *err, size_t err_len)
{
    memset(g, 0, sizeof *g);
    int64_t n = 0, cut = -1;
    json_t *edges = NULL;
    int r = json_get_int(doc, doc->root, NULL, 0, "n", 1, 0, NODES_MAX, &n, err, err_len);
    if (!r)
        r = json_get_int(doc, doc->root, NULL, 0, "cut", 0, 0, INT64_MAX, &cut, err, err_len);
    if (!r)
        r = json_get_array(doc, doc->root, NULL, 0, "edges", 1, &edges, err, err_len);
    if (!r) {
        g->n_vertices = 2 + 2 * (int)n;
        r = read_edges(doc, edges, g, err, err_len);
    }
    g->cut = cut;
    if (r)
        mincut_inst_free(g);
    return r;
}
