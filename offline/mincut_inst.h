/* mincut_inst.h: reads `mincut-v1` files, node-split graphs with a known cut.
 * Threads: none. Errors: 0 or a negative errno, with one line in err. */
#ifndef REMAT_OFFLINE_MINCUT_INST_H
#define REMAT_OFFLINE_MINCUT_INST_H

#include <stddef.h>
#include <stdint.h>

struct mincut_inst {
    int n_vertices, n_edges;
    int *u, *v;      /* n_edges each; vertex 0 is the source, 1 the sink */
    int64_t *cap;    /* n_edges; MAXFLOW_INF where the file says -1 */
    int64_t cut;     /* the file's own answer; -1: it gives none */
};

/* Reads and checks a file. On success the caller frees with mincut_inst_free;
 * on failure err (err_bytes long) says what is wrong and where. */
int mincut_inst_read(const char *path, struct mincut_inst *g, char *err, size_t err_bytes);
void mincut_inst_free(struct mincut_inst *g);

#endif
