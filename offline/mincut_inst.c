#include "offline/mincut_inst.h"

#include "offline/maxflow.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mincut_inst_free(struct mincut_inst *g)
{
    free(g->u);
    free(g->v);
    free(g->cap);
    memset(g, 0, sizeof *g);
}

static int read_edges(const json_t *edges, int n_vertices, struct mincut_inst *g, char *err, size_t err_bytes)
{
    size_t m = json_array_size(edges);
    if (m > INT32_MAX / 8) {
        snprintf(err, err_bytes, "\"edges\" has %zu entries; at most %d are accepted", m, INT32_MAX / 8);
        return -EINVAL;
    }
    g->n_vertices = n_vertices;
    g->n_edges = (int)m;
    g->u = malloc((m + 1) * sizeof *g->u);
    g->v = malloc((m + 1) * sizeof *g->v);
    g->cap = malloc((m + 1) * sizeof *g->cap);
    if (!g->u || !g->v || !g->cap) {
        snprintf(err, err_bytes, "out of memory");
        return -ENOMEM;
    }
    for (size_t i = 0; i < m; i++) {
        const json_t *e = json_array_get(edges, i);
        const json_t *u = json_array_get(e, 0), *v = json_array_get(e, 1), *c = json_array_get(e, 2);
        if (json_array_size(e) != 3 || !json_is_integer(u) || !json_is_integer(v) || !json_is_integer(c)) {
            snprintf(err, err_bytes, "edges[%zu] must be [u, v, capacity], three integers", i);
            return -EINVAL;
        }
        json_int_t a = json_integer_value(u), b = json_integer_value(v), cap = json_integer_value(c);
        if (a < 0 || a >= n_vertices || b < 0 || b >= n_vertices) {
            snprintf(err, err_bytes, "edges[%zu] names a vertex outside 0..%d", i, n_vertices - 1);
            return -EINVAL;
        }
        if (cap < -1 || cap == MAXFLOW_INF) {
            snprintf(err, err_bytes, "edges[%zu] has capacity %lld; 0 or more, or -1 for infinite, is needed", i,
                     (long long)cap);
            return -EINVAL;
        }
        g->u[i] = (int)a;
        g->v[i] = (int)b;
        g->cap[i] = cap == -1 ? MAXFLOW_INF : cap;
    }
    return 0;
}

int mincut_inst_read(const char *path, struct mincut_inst *g, char *err, size_t err_bytes)
{
    memset(g, 0, sizeof *g);
    json_error_t je;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &je);
    if (!root) {
        snprintf(err, err_bytes, "line %d column %d: %s", je.line, je.column, je.text);
        return -EINVAL;
    }
    int r = -EINVAL;
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *n = json_object_get(root, "n"), *edges = json_object_get(root, "edges");
    const json_t *cut = json_object_get(root, "cut");
    if (!format || strcmp(format, "mincut-v1"))
        snprintf(err, err_bytes, "\"format\" must be \"mincut-v1\"");
    else if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) > 100000000)
        snprintf(err, err_bytes, "\"n\" must be the number of nodes, 0 to 100000000");
    else if (!json_is_array(edges))
        snprintf(err, err_bytes, "\"edges\" must be an array of [u, v, capacity]");
    else if (cut && !json_is_integer(cut))
        snprintf(err, err_bytes, "\"cut\" must be an integer");
    else
        r = read_edges(edges, 2 + 2 * (int)json_integer_value(n), g, err, err_bytes);
    g->cut = cut && !r ? json_integer_value(cut) : -1;
    json_decref(root);
    if (r)
        mincut_inst_free(g);
    return r;
}
