/* trace_write.c: see trace_write.h. */
#include "tracer/trace_write.h"
#include "tracer/labels.h"
#include "tracer/output.h"
#include "tracer/record.h"
#include "tracer/reserve.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t shown_bytes(const struct rec_buf *b, uint64_t page)
{
    if (page <= 1)
        return b->bytes;
    if (b->alloc_ord < 0 && !b->dies) /* a buffer of the iteration before, freed before the first op */
        return 0;
    return rec_may_move(b) ? reserve_rounded_bytes(b->bytes, page) : 0;
}

/* Memory in use at each op with nothing evicted, as the simulator counts it. */
static uint64_t *live_profile(const struct record *r, uint64_t page, uint32_t *peak_op)
{
    uint64_t *live = calloc(r->n_ops + 1, sizeof *live);
    if (!live)
        return NULL;
    for (uint32_t b = 0; b < r->n_bufs; b++) {
        const struct rec_buf *buf = &r->bufs[b];
        uint32_t from = buf->born < 0 ? 0 : (uint32_t)buf->born;
        uint32_t to = buf->dies < 0 ? r->n_ops : (uint32_t)buf->dies;
        if (from < to) {
            live[from] += shown_bytes(buf, page);
            live[to] -= shown_bytes(buf, page); /* a difference array: wraps around and back */
        }
    }
    *peak_op = 0;
    for (uint32_t i = 1; i < r->n_ops; i++) {
        live[i] += live[i - 1];
        if (live[i] > live[*peak_op])
            *peak_op = i;
    }
    return live;
}

static json_t *list_of(const struct record *r, const struct rec_op *o, enum rec_mode mode)
{
    json_t *a = json_array();
    for (uint32_t k = 0; a && k < o->n; k++) {
        const struct rec_operand *w = &r->operands[o->first + k];
        bool seen = w->mode != mode;
        for (uint32_t l = 0; l < k && !seen; l++)
            seen = r->operands[o->first + l].buf == w->buf;
        if (!seen)
            json_array_append_new(a, json_integer(w->buf));
    }
    return a;
}

static uint64_t moved_bytes(const struct record *r, const struct rec_op *o)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < o->n; k++) {
        const struct rec_operand *w = &r->operands[o->first + k];
        bool seen = false;
        for (uint32_t l = 0; l < k && !seen; l++)
            seen = r->operands[o->first + l].buf == w->buf;
        if (!seen)
            sum += r->bufs[w->buf].bytes * (w->mode == REC_RMW ? 2 : 1);
    }
    return sum;
}

static json_t *ops_json(const struct record *r, const struct labels *l, bool sites)
{
    json_t *ops = json_array();
    /* compute-bound: far slower a byte than the fastest streaming op of this very iteration */
    double best = 0;
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (r->ops[i].ns > 5000 && moved_bytes(r, &r->ops[i]) / (double)r->ops[i].ns > best)
            best = moved_bytes(r, &r->ops[i]) / (double)r->ops[i].ns;
    for (uint32_t i = 0; ops && i < r->n_ops; i++) {
        const struct rec_op *o = &r->ops[i];
        uint64_t moved = moved_bytes(r, o);
        bool heavy = best > 0 && o->ns > 5000 && o->ns > 4 * (moved / best);
        const char *phase = i < l->first_bwd ? "fwd" : i < l->first_opt ? "bwd" : "opt";
        json_t *j = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:i, s:I, s:b, s:b, s:b}", "id", (int)i, "name",
                              o->name, "phase", phase, "reads", list_of(r, o, REC_READ), "writes",
                              list_of(r, o, REC_WRITE), "rmw", list_of(r, o, REC_RMW), "side", list_of(r, o, REC_SIDE),
                              "ns", (json_int_t)o->ns, "flops", 0, "bytes", (json_int_t)moved, "heavy", (int)heavy,
                              "random", (int)o->random, "opaque", (int)(o->why_opaque != NULL));
        if (j && o->why_opaque)
            json_object_set_new(j, "why_opaque", json_string(o->why_opaque));
        if (j && o->site && sites)
            json_object_set_new(j, "site", json_integer((json_int_t)o->site - 1));
        json_array_append_new(ops, j);
    }
    return ops;
}

static json_t *sites_json(const struct record *r)
{
    json_t *a = json_array();
    for (uint32_t i = 0; a && i < r->n_sites; i++)
        if (json_array_append_new(a, json_string(r->sites[i]))) /* a symbol that is no UTF-8 */
            json_array_append_new(a, json_string("?"));
    return a;
}

static json_t *bufs_json(const struct record *r, uint64_t page, const struct labels *l, uint64_t *persistent)
{
    json_t *bufs = json_array();
    for (uint32_t b = 0; bufs && b < r->n_bufs; b++) {
        const struct rec_buf *x = &r->bufs[b];
        uint64_t bytes = shown_bytes(x, page);
        json_t *j = json_pack("{s:i, s:I, s:i, s:o, s:s}", "id", (int)b, "bytes", (json_int_t)bytes, "born", x->born, "dies",
                              x->dies < 0 ? json_null() : json_integer(x->dies), "kind", labels_kind_name(l->kind[b]));
        if (j && page <= 1 && !rec_may_move(x)) /* the planner sees such a buffer as 0 bytes */
            json_object_set_new(j, "fixed", json_true());
        json_array_append_new(bufs, j);
        if (x->born < 0 && x->dies < 0)
            *persistent += bytes;
    }
    return bufs;
}

int record_write(const struct record *r, const char *path, uint64_t page)
{
    uint32_t peak_op;
    uint64_t *live = live_profile(r, page, &peak_op), persistent = 0, total = 0;
    struct labels labels = {0};
    json_t *root = NULL;
    struct output o;
    int err = -ENOMEM;
    if (!live || labels_of(r, peak_op, &labels))
        goto out;
    for (uint32_t i = 0; i < r->n_ops; i++)
        total += r->ops[i].ns;
    bool with_sites = page <= 1 && r->n_sites; /* the planner has no use for call sites */
    json_t *bufs = bufs_json(r, page, &labels, &persistent), *ops = ops_json(r, &labels, with_sites);
    root = json_pack("{s:{s:s, s:s, s:i, s:s, s:I, s:I, s:I, s:s}, s:o, s:o}", "meta", "format", "opgraph-1", "model",
                     r->model ? r->model : "program", "batch", 0, "cost_model", "measured with events on the device",
                     "peak_bytes", (json_int_t)live[peak_op], "persistent_bytes", (json_int_t)persistent, "total_ns",
                     (json_int_t)total, "source", "remat tracer", "buffers", bufs, "ops", ops);
    if (!root)
        goto out;
    json_t *meta = json_object_get(root, "meta");
    if (r->device)
        json_object_set_new(meta, "device", json_string(r->device));
    if (page > 1)
        json_object_set_new(meta, "granularity_bytes", json_integer((json_int_t)page));
    else if (r->page_bytes) {
        json_object_set_new(meta, "page_bytes", json_integer((json_int_t)r->page_bytes));
        json_object_set_new(meta, "reserve_bytes", json_integer((json_int_t)r->reserve_bytes));
    }
    if (r->host_bytes_per_s)
        json_object_set_new(meta, "host_bytes_per_s", json_integer((json_int_t)r->host_bytes_per_s));
    if (with_sites)
        json_object_set_new(root, "sites", sites_json(r));
    err = output_open(&o, path, page > 1 ? 0 : OUTPUT_RUN | OUTPUT_NO_WAIT, NULL, 0);
    if (!err && json_dumpf(root, o.f, JSON_COMPACT) && !ferror(o.f)) {
        output_abandon(&o);
        err = -ENOMEM;
    } else if (!err) {
        err = output_commit(&o, NULL, 0);
    }
out:
    json_decref(root);
    free(live);
    labels_free(&labels);
    return err;
}
