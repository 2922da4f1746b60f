#include "offline/report/kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/labels.h"

/* The graph as the record that it was written from, as far as labels look at one. */
static int record_like(const struct graph *g, struct record *r)
{
    static const uint8_t mode[] = {[GRAPH_READ] = REC_READ, [GRAPH_RMW] = REC_RMW, [GRAPH_SIDE] = REC_SIDE, [GRAPH_WRITE] = REC_WRITE};
    memset(r, 0, sizeof *r);
    r->ops = calloc((size_t)g->n_ops + 1, sizeof *r->ops);
    r->bufs = calloc((size_t)g->n_bufs + 1, sizeof *r->bufs);
    r->operands = calloc((size_t)g->n_operands + 1, sizeof *r->operands);
    if (!r->ops || !r->bufs || !r->operands)
        return -ENOMEM;
    r->n_ops = (uint32_t)g->n_ops;
    r->n_bufs = (uint32_t)g->n_bufs;
    r->n_operands = (uint32_t)g->n_operands;
    for (int32_t o = 0; o < g->n_ops; o++) {
        r->ops[o].first = (uint32_t)g->ops[o].first;
        r->ops[o].n = (uint32_t)graph_n_operands(&g->ops[o]);
    }
    for (int32_t k = 0; k < g->n_operands; k++)
        r->operands[k] = (struct rec_operand){.buf = g->operands[k].buf, .mode = mode[g->operands[k].role]};
    for (int32_t b = 0; b < g->n_bufs; b++) {
        const struct graph_buf *x = &g->bufs[b];
        r->bufs[b] = (struct rec_buf){.bytes = (uint64_t)x->bytes, .born = x->born, .dies = x->dies, .host_written = x->kind == GRAPH_INPUT};
    }
    return 0;
}

static int phases_come_once(const struct graph *g)
{
    for (int32_t o = 1; o < g->n_ops; o++)
        if (g->ops[o].phase < g->ops[o - 1].phase)
            return 0;
    return 1;
}

int kinds_find(const struct graph *g, uint8_t *kind, uint8_t *phase)
{
    static const uint8_t of_label[] = {[LABEL_PARAM] = GRAPH_PARAM, [LABEL_GRAD] = GRAPH_GRAD, [LABEL_STATE] = GRAPH_STATE, [LABEL_INPUT] = GRAPH_INPUT,
                                       [LABEL_ACTIVATION] = GRAPH_ACTIVATION};
    struct record r;
    struct labels l = {0};
    int rc = 0;
    for (int32_t b = 0; b < g->n_bufs; b++)
        kind[b] = g->bufs[b].kind;
    for (int32_t o = 0; o < g->n_ops; o++)
        phase[o] = g->ops[o].phase;
    if (strcmp(g->source, "remat tracer"))
        return 0;
    rc = record_like(g, &r);
    if (!rc)
        rc = labels_of(&r, g->baseline_peak_op < 0 ? 0 : (uint32_t)g->baseline_peak_op, &l);
    for (int32_t b = 0; !rc && b < g->n_bufs; b++)
        kind[b] = of_label[l.kind[b]];
    const int once = phases_come_once(g);
    for (int32_t o = 0; !rc && o < g->n_ops && !once; o++)
        phase[o] = (uint32_t)o < l.first_bwd ? GRAPH_FWD : (uint32_t)o < l.first_opt ? GRAPH_BWD : GRAPH_OPT;
    labels_free(&l);
    free(r.ops);
    free(r.bufs);
    free(r.operands);
    return rc;
}
