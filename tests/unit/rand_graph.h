/* Random small graphs for property tests: in-place chains, side buffers, opaque ops, early deaths, empty buffers.
 * The same seed gives the same graph. Test programs only. */
#ifndef REMAT_TESTS_RAND_GRAPH_H
#define REMAT_TESTS_RAND_GRAPH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "offline/model/graph.h"

struct rand_state {
    uint64_t x;
};

static inline uint32_t rand_next(struct rand_state *r)
{
    r->x ^= r->x << 13;
    r->x ^= r->x >> 7;
    r->x ^= r->x << 17;
    return (uint32_t)(r->x >> 32);
}

static inline int rand_below(struct rand_state *r, int n) { return n > 0 ? (int)(rand_next(r) % (uint32_t)n) : 0; }

#define RAND_MAX_BUFS 256

struct rand_row {
    int op, role, buf;
};

/* NULL only if the graph it drew is not well-formed, which is a fault of this generator or of graph_seal. */
static inline struct graph *rand_graph(uint64_t seed, int n_ops)
{
    struct rand_state r = {seed * 2654435761u + 88172645463325252ull};
    int64_t bytes[RAND_MAX_BUFS];
    int born[RAND_MAX_BUFS], dies[RAND_MAX_BUFS], last[RAND_MAX_BUFS], alive[RAND_MAX_BUFS], n_bufs = 0, n_alive = 0, i, k;
    struct rand_row *rows = calloc((size_t)n_ops * 12 + 1, sizeof(*rows));
    int n_rows = 0;
    struct graph_build *b = graph_build_new();
    struct graph_fault fault = {0};
    struct graph *g = NULL;

    for (i = 0; i < 1 + rand_below(&r, 4); i++) {
        born[n_bufs] = dies[n_bufs] = last[n_bufs] = -1;
        bytes[n_bufs] = rand_below(&r, 5) ? rand_below(&r, 1000) : 0;
        alive[n_alive++] = n_bufs++;
    }
    for (i = 0; i < n_ops; i++) {
        int used[RAND_MAX_BUFS] = {0}, n_out = 1 + rand_below(&r, 2), n_in = rand_below(&r, 4);

        for (k = 0; k < n_in && n_alive; k++) {
            int at = rand_below(&r, 3) ? n_alive - 1 - rand_below(&r, n_alive < 8 ? n_alive : 8) : rand_below(&r, n_alive);
            int buf = alive[at], what = rand_below(&r, 20);

            if (used[buf])
                continue;
            used[buf] = 1;
            last[buf] = i;
            rows[n_rows++] = (struct rand_row){
                i, what < 14 ? GRAPH_READ : what < 17 ? GRAPH_RMW : what < 18 ? GRAPH_SIDE : GRAPH_WRITE, buf};
        }
        for (k = 0; k < n_out && n_bufs < RAND_MAX_BUFS; k++) {
            born[n_bufs] = last[n_bufs] = i;
            dies[n_bufs] = -1;
            bytes[n_bufs] = rand_below(&r, 6) ? rand_below(&r, 1000) : 0;
            rows[n_rows++] = (struct rand_row){i, GRAPH_WRITE, n_bufs};
            alive[n_alive++] = n_bufs++;
        }
        if (rand_below(&r, 2) && n_alive > 2) {
            int at = rand_below(&r, n_alive);

            dies[alive[at]] = i + 1 + rand_below(&r, 4);
            alive[at] = alive[--n_alive];
        }
    }
    for (i = 0; i < n_bufs; i++) {
        if (dies[i] >= 0 && dies[i] <= last[i])
            dies[i] = last[i] + 1;
        if (dies[i] > n_ops)
            dies[i] = n_ops;
        graph_build_buf(b, bytes[i], born[i], dies[i], GRAPH_ACTIVATION);
    }
    for (i = 0; i < n_ops; i++) {
        int op = graph_build_op(b, "op", i < n_ops / 2 ? GRAPH_FWD : GRAPH_BWD, rand_below(&r, 1000));

        graph_build_op_at(b, op)->opaque = rand_below(&r, 20) == 0;
    }
    for (i = 0; i < n_rows; i++)
        graph_build_operand(b, rows[i].op, (enum graph_role)rows[i].role, rows[i].buf);
    if (graph_seal(b, &g, &fault))
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, fault.text);
    graph_build_free(b);
    free(rows);
    return g;
}

#endif
