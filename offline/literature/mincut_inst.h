/* mincut_inst.h: reads `mincut-v1` documents, node-split graphs with a known cut.
 * Threads: none. Errors: 0 or a negative errno, with one line in err. */
#ifndef REMAT_OFFLINE_MINCUT_INST_H
#define REMAT_OFFLINE_MINCUT_INST_H

#include <stddef.h>
#include <stdint.h>

#include "offline/model/json_read.h"

struct mincut_inst {
    int n_vertices, n_edges;
    int *u, *v;      /* n_edges each; vertex 0 is the source, 1 the sink */
    int64_t *cap;    /* n_edges; MAXFLOW_INF where the file says -1 */
    int64_t cut;     /* the minimum cut that the file states; -1: none */
};

/* Checks and copies a parsed document. On success the caller frees with mincut_inst_free; on failure err
 * says what is wrong and where. */
int mincut_inst_read(const struct json_doc *doc, struct mincut_inst *g, char *err, size_t err_len);
void mincut_inst_free(struct mincut_inst *g);

#endif
