/* opgraph-1 files into graphs: types and ranges here, the meaning in graph_seal, and every fault back to its line. */
#include "offline/model/trace_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/graph.h"
#include "offline/model/json_read.h"
#include "offline/model/sha256.h"

struct trace_in {
    const struct json_doc *doc;
    struct graph_build *build;
    char *err;
    size_t err_len;
    int64_t n_bufs, n_ops, n_sites;
};

static int trace_no_memory(const struct trace_in *in)
{
    snprintf(in->err, in->err_len, "%s: not enough memory", in->doc->name);
    return -ENOMEM;
}

/* Index of a string member in a table of names. */
static int trace_name(const struct trace_in *in, const json_t *obj, const struct json_step *path, const char *key,
                      const char *(*name)(int), int *out)
{
    struct json_step deep[3] = {path[0], path[1], {key, 0}};
    const char *s = NULL;
    int rc = json_get_string(in->doc, obj, path, 2, key, 1, &s, in->err, in->err_len), i;

    if (rc)
        return rc;
    for (i = 0; name(i); i++)
        if (!strcmp(s, name(i))) {
            *out = i;
            return 0;
        }
    return json_fault(in->doc, deep, 3, in->err, in->err_len, "unknown %s \"%.40s\"", key, s);
}

static int trace_own_id(const struct trace_in *in, const json_t *obj, const struct json_step *path)
{
    int64_t id = 0;
    int rc = json_get_int(in->doc, obj, path, 2, "id", 1, 0, INT32_MAX, &id, in->err, in->err_len);

    if (!rc && id != (int64_t)path[1].index) {
        struct json_step deep[3] = {path[0], path[1], {"id", 0}};

        return json_fault(in->doc, deep, 3, in->err, in->err_len, "is %lld, but an id is the entry's own index, %zu",
                          (long long)id, path[1].index);
    }
    return rc;
}

static int trace_buffer(const struct trace_in *in, const json_t *o, size_t i)
{
    struct json_step path[2] = {{"buffers", 0}, {NULL, i}};
    int64_t bytes = 0, born = 0, dies = -1;
    int kind = 0, fixed = 0, rc;

    if (!json_is_object(o))
        return json_fault(in->doc, path, 2, in->err, in->err_len, "a buffer is an object");
    if ((rc = trace_own_id(in, o, path)) ||
        (rc = json_get_int(in->doc, o, path, 2, "bytes", 1, 0, (int64_t)1 << 50, &bytes, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, o, path, 2, "born", 1, -1, in->n_ops - 1, &born, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, o, path, 2, "dies", 0, 0, in->n_ops, &dies, in->err, in->err_len)) ||
        (rc = json_get_bool(in->doc, o, path, 2, "fixed", 0, &fixed, in->err, in->err_len)) ||
        (rc = trace_name(in, o, path, "kind", graph_kind_name, &kind)))
        return rc;
    rc = graph_build_buf(in->build, bytes, (int32_t)born, (int32_t)dies, (enum graph_kind)kind);
    if (rc >= 0)
        graph_build_buf_at(in->build, rc)->fixed = (uint8_t)fixed;
    return rc < 0 ? trace_no_memory(in) : 0;
}

static int trace_operands(const struct trace_in *in, const json_t *o, const struct json_step *path, enum graph_role role,
                          const char *key, int need)
{
    json_t *list = NULL;
    size_t i;
    int rc = json_get_array(in->doc, o, path, 2, key, need, &list, in->err, in->err_len);

    for (i = 0; !rc && i < json_array_size(list); i++) {
        int64_t buf;

        if (json_as_int(json_array_get(list, i), 0, in->n_bufs - 1, &buf)) {
            struct json_step deep[4] = {path[0], path[1], {key, 0}, {NULL, i}};

            return json_fault(in->doc, deep, 4, in->err, in->err_len,
                              "op %zu must name a buffer here, a whole number from 0 to %lld", path[1].index,
                              (long long)in->n_bufs - 1);
        }
        if (graph_build_operand(in->build, (int32_t)path[1].index, role, (int32_t)buf))
            return trace_no_memory(in);
    }
    return rc;
}

static int trace_op(const struct trace_in *in, const json_t *o, size_t i)
{
    struct json_step path[2] = {{"ops", 0}, {NULL, i}};
    int64_t ns = 0, flops = 0, bytes = 0, site = -1;
    int phase = 0, heavy = 0, random = 0, opaque = 0, rc;
    const char *name = NULL;
    struct graph_op *op;

    if (!json_is_object(o))
        return json_fault(in->doc, path, 2, in->err, in->err_len, "an op is an object");
    if ((rc = trace_own_id(in, o, path)) ||
        (rc = json_get_string(in->doc, o, path, 2, "name", 1, &name, in->err, in->err_len)) ||
        (rc = trace_name(in, o, path, "phase", graph_phase_name, &phase)) ||
        (rc = json_get_int(in->doc, o, path, 2, "ns", 1, 0, (int64_t)1 << 53, &ns, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, o, path, 2, "flops", 0, 0, INT64_MAX, &flops, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, o, path, 2, "bytes", 0, 0, INT64_MAX, &bytes, in->err, in->err_len)) ||
        (rc = json_get_bool(in->doc, o, path, 2, "heavy", 0, &heavy, in->err, in->err_len)) ||
        (rc = json_get_bool(in->doc, o, path, 2, "random", 0, &random, in->err, in->err_len)) ||
        (rc = json_get_bool(in->doc, o, path, 2, "opaque", 0, &opaque, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, o, path, 2, "site", 0, 0, in->n_sites - 1, &site, in->err, in->err_len)))
        return rc;
    rc = graph_build_op(in->build, name, (enum graph_phase)phase, ns);
    if (rc < 0)
        return trace_no_memory(in);
    op = graph_build_op_at(in->build, rc);
    op->flops = flops;
    op->bytes = bytes;
    op->site = (int32_t)site;
    op->heavy = (uint8_t)heavy;
    op->random = (uint8_t)random;
    op->opaque = (uint8_t)opaque;
    if ((rc = trace_operands(in, o, path, GRAPH_READ, "reads", 1)) ||
        (rc = trace_operands(in, o, path, GRAPH_WRITE, "writes", 1)) ||
        (rc = trace_operands(in, o, path, GRAPH_RMW, "rmw", 1)))
        return rc;
    return trace_operands(in, o, path, GRAPH_SIDE, "side", 0);
}

/* What graph_seal disliked, as a place in the file. */
static int trace_fault(const struct trace_in *in, const struct graph_fault *f, int rc)
{
    struct json_step path[4] = {{f->op >= 0 ? "ops" : "buffers", 0},
                                {NULL, (size_t)(f->op >= 0 ? f->op : f->buf >= 0 ? f->buf : 0)},
                                {f->key, 0},
                                {NULL, (size_t)f->index}};

    if (rc != -EINVAL) {
        snprintf(in->err, in->err_len, "%s: %s", in->doc->name, f->text);
        return rc;
    }
    return json_fault(in->doc, path, f->op < 0 && f->buf < 0 ? 0 : f->role >= 0 ? 4 : f->key ? 3 : 2, in->err, in->err_len,
                      "%s", f->text);
}

static int trace_set_string(char **to, const char *s)
{
    char *copy = strdup(s ? s : "");

    if (!copy)
        return -ENOMEM;
    free(*to);
    *to = copy;
    return 0;
}

static int trace_meta(const struct trace_in *in, const json_t *meta, struct graph *g)
{
    struct json_step path[1] = {{"meta", 0}};
    const char *model = "", *device = "", *source = "";
    int rc;

    g->batch = 0;
    if ((rc = json_get_string(in->doc, meta, path, 1, "model", 0, &model, in->err, in->err_len)) ||
        (rc = json_get_string(in->doc, meta, path, 1, "device", 0, &device, in->err, in->err_len)) ||
        (rc = json_get_string(in->doc, meta, path, 1, "source", 0, &source, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, meta, path, 1, "batch", 0, 0, INT64_MAX, &g->batch, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, meta, path, 1, "granularity_bytes", 0, 0, (int64_t)1 << 40, &g->granularity_bytes, in->err,
                           in->err_len)) ||
        (rc = json_get_int(in->doc, meta, path, 1, "page_bytes", 0, 0, (int64_t)1 << 40, &g->page_bytes, in->err, in->err_len)) ||
        (rc = json_get_int(in->doc, meta, path, 1, "reserve_bytes", 0, 0, (int64_t)1 << 50, &g->reserve_bytes, in->err, in->err_len)) ||
        (rc = json_get_real(in->doc, meta, path, 1, "host_bytes_per_s", 0, 1.0, 1e18, &g->host_bytes_per_s, in->err,
                            in->err_len)))
        return rc;
    if (trace_set_string(&g->model, model) || trace_set_string(&g->device, device) || trace_set_string(&g->source, source))
        return trace_no_memory(in);
    return 0;
}

/* Sites are strings; other shapes (a recorder may add frames) are kept as their JSON text. */
static int trace_sites(const struct trace_in *in, const json_t *sites, struct graph *g)
{
    size_t i, n = json_array_size(sites);

    if (!n)
        return 0;
    g->sites = calloc(n, sizeof(*g->sites));
    if (!g->sites)
        return trace_no_memory(in);
    for (i = 0; i < n; i++) {
        const json_t *s = json_array_get(sites, i);

        g->sites[i] = json_is_string(s) ? strdup(json_string_value(s)) : json_dumps(s, JSON_COMPACT | JSON_ENCODE_ANY);
        if (!g->sites[i])
            return trace_no_memory(in);
        g->n_sites++;
    }
    return 0;
}

static int trace_parse(struct trace_in *in, struct graph **out)
{
    const struct json_doc *doc = in->doc;
    struct json_step meta_path[1] = {{"meta", 0}}, format_path[2] = {{"meta", 0}, {"format", 0}};
    json_t *meta, *bufs = NULL, *ops = NULL, *sites = NULL;
    const char *format = NULL;
    struct graph_fault fault;
    struct graph *g = NULL;
    size_t i;
    int rc;

    if (!json_is_object(doc->root))
        return json_fault(doc, NULL, 0, in->err, in->err_len, "a trace is a JSON object");
    meta = json_object_get(doc->root, "meta");
    format = json_string_value(json_object_get(doc->root, "format"));
    if (!meta && format)
        return json_fault(doc, NULL, 0, in->err, in->err_len, "is \"%.40s\", where a trace (opgraph-1) is wanted", format);
    if (!json_is_object(meta))
        return json_fault(doc, meta_path, 1, in->err, in->err_len, meta ? "must be an object" : "missing");
    if ((rc = json_get_string(doc, meta, meta_path, 1, "format", 1, &format, in->err, in->err_len)))
        return rc;
    if (strcmp(format, "opgraph-1"))
        return json_fault(doc, format_path, 2, in->err, in->err_len, "is \"%.40s\"; this program reads \"opgraph-1\"",
                          format);
    if ((rc = json_get_array(doc, doc->root, NULL, 0, "buffers", 1, &bufs, in->err, in->err_len)) ||
        (rc = json_get_array(doc, doc->root, NULL, 0, "ops", 1, &ops, in->err, in->err_len)) ||
        (rc = json_get_array(doc, doc->root, NULL, 0, "sites", 0, &sites, in->err, in->err_len)))
        return rc;
    in->n_bufs = (int64_t)json_array_size(bufs);
    in->n_ops = (int64_t)json_array_size(ops);
    in->n_sites = sites ? (int64_t)json_array_size(sites) : INT32_MAX;
    for (i = 0; i < json_array_size(bufs); i++)
        if ((rc = trace_buffer(in, json_array_get(bufs, i), i)))
            return rc;
    for (i = 0; i < json_array_size(ops); i++)
        if ((rc = trace_op(in, json_array_get(ops, i), i)))
            return rc;
    rc = graph_seal(in->build, &g, &fault);
    if (rc)
        return trace_fault(in, &fault, rc);
    if ((rc = trace_meta(in, meta, g)) || (rc = trace_sites(in, sites, g))) {
        graph_free(g);
        return rc;
    }
    sha256_hex(doc->text, doc->len, g->sha256);
    *out = g;
    return 0;
}

static int trace_take(struct json_doc *doc, struct graph **out, char *err, size_t err_len)
{
    struct trace_in in = {doc, graph_build_new(), err, err_len, 0, 0, 0};
    int rc = in.build ? trace_parse(&in, out) : trace_no_memory(&in);

    graph_build_free(in.build);
    json_doc_close(doc);
    return rc;
}

int trace_read(const char *path, struct graph **out, char *err, size_t err_len)
{
    struct json_doc doc;
    int rc = json_doc_load(path, &doc, err, err_len);

    return rc ? rc : trace_take(&doc, out, err, err_len);
}

int trace_read_text(const char *name, const char *text, size_t len, struct graph **out, char *err, size_t err_len)
{
    struct json_doc doc;
    int rc = json_doc_parse(name, text, len, &doc, err, err_len);

    return rc ? rc : trace_take(&doc, out, err, err_len);
}
