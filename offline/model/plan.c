#include "offline/model/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/json_read.h"
#include "tracer/output.h"

static const char *const plan_names[PLAN_N_KINDS] = {"op", "replay", "drop", "offload", "release", "fetch"};

const char *plan_kind_name(int kind) { return kind >= 0 && kind < PLAN_N_KINDS ? plan_names[kind] : NULL; }

void plan_free(struct plan *p)
{
    free(p->steps);
    free(p->keep);
    memset(p, 0, sizeof(*p));
}

void plan_reset(struct plan *p)
{
    p->n_steps = p->n_keep = 0;
    p->limit_bytes = p->peak_bytes = p->baseline_ns = p->planned_ns = p->bound_ns = 0;
    p->trace[0] = p->solver[0] = 0;
}

void plan_label(struct plan *p, const char *solver)
{
    const size_t n = strlen(solver), most = sizeof(p->solver) - 1;

    snprintf(p->solver, sizeof(p->solver), "%.*s%s", (int)(n > most ? most - 3 : n), solver, n > most ? "..." : "");
}

int plan_push(struct plan *p, enum plan_kind kind, int32_t id)
{
    if (p->n_steps == p->cap_steps) {
        size_t cap = p->cap_steps ? p->cap_steps * 2 : 256;
        struct plan_step *more = realloc(p->steps, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        p->steps = more;
        p->cap_steps = cap;
    }
    p->steps[p->n_steps].kind = kind;
    p->steps[p->n_steps++].id = id;
    return 0;
}

int plan_keep(struct plan *p, int32_t buf)
{
    if (p->n_keep == p->cap_keep) {
        size_t cap = p->cap_keep ? p->cap_keep * 2 : 64;
        int32_t *more = realloc(p->keep, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        p->keep = more;
        p->cap_keep = cap;
    }
    p->keep[p->n_keep++] = buf;
    return 0;
}

static int plan_keep_order(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

void plan_keep_sort(struct plan *p)
{
    size_t i, n = 0;

    if (!p->n_keep)
        return;
    qsort(p->keep, p->n_keep, sizeof(*p->keep), plan_keep_order);
    for (i = 0; i < p->n_keep; i++)
        if (!n || p->keep[n - 1] != p->keep[i])
            p->keep[n++] = p->keep[i];
    p->n_keep = n;
}

int plan_copy(struct plan *dst, const struct plan *src)
{
    size_t i;
    int rc = 0;

    plan_reset(dst);
    for (i = 0; i < src->n_steps && !rc; i++)
        rc = plan_push(dst, (enum plan_kind)src->steps[i].kind, src->steps[i].id);
    for (i = 0; i < src->n_keep && !rc; i++)
        rc = plan_keep(dst, src->keep[i]);
    dst->limit_bytes = src->limit_bytes;
    dst->peak_bytes = src->peak_bytes;
    dst->baseline_ns = src->baseline_ns;
    dst->planned_ns = src->planned_ns;
    dst->bound_ns = src->bound_ns;
    memcpy(dst->trace, src->trace, sizeof(dst->trace));
    memcpy(dst->solver, src->solver, sizeof(dst->solver));
    return rc;
}

static int plan_parse_steps(const struct json_doc *doc, json_t *steps, struct plan *out, char *err, size_t err_len)
{
    struct json_step path[2] = {{"steps", 0}, {NULL, 0}};
    size_t i, n = json_array_size(steps);

    for (i = 0; i < n; i++) {
        json_t *s = json_array_get(steps, i);
        const char *key = NULL;
        const json_t *v = NULL;
        void *it;
        int64_t id;
        int kind;

        path[1].index = i;
        if (!json_is_object(s) || json_object_size(s) != 1)
            return json_fault(doc, path, 2, err, err_len, "a step is an object with one key, such as {\"op\": 0}");
        it = json_object_iter(s);
        key = json_object_iter_key(it);
        v = json_object_iter_value(it);
        for (kind = 0; kind < PLAN_N_KINDS && strcmp(key, plan_names[kind]); kind++)
            ;
        if (kind == PLAN_N_KINDS)
            return json_fault(doc, path, 2, err, err_len,
                              "unknown step \"%.40s\": known are op, replay, drop, offload, release, fetch", key);
        if (json_as_int(v, 0, INT32_MAX, &id)) {
            struct json_step deep[3] = {path[0], path[1], {plan_names[kind], 0}};

            return json_fault(doc, deep, 3, err, err_len, "must be %s's index, a whole number from 0 up",
                              kind <= PLAN_REPLAY ? "an op" : "a buffer");
        }
        if (plan_push(out, (enum plan_kind)kind, (int32_t)id))
            return -ENOMEM;
    }
    return 0;
}

static int plan_parse(const struct json_doc *doc, struct plan *out, char *err, size_t err_len)
{
    json_t *steps = NULL, *keep = NULL;
    const char *format = NULL, *trace = "", *solver = "";
    size_t i;
    int rc;

    if (!json_is_object(doc->root))
        return json_fault(doc, NULL, 0, err, err_len, "a plan is a JSON object");
    if (json_is_object(json_object_get(doc->root, "meta")) && json_is_array(json_object_get(doc->root, "ops")))
        return json_fault(doc, NULL, 0, err, err_len, "is a trace, where a plan (remat plan -o) is wanted");
    if ((rc = json_get_string(doc, doc->root, NULL, 0, "format", 1, &format, err, err_len)))
        return rc;
    if (strcmp(format, "plan-1")) {
        struct json_step at = {"format", 0};

        return json_fault(doc, &at, 1, err, err_len, "is \"%.40s\"; this program reads \"plan-1\"", format);
    }
    if ((rc = json_get_array(doc, doc->root, NULL, 0, "steps", 1, &steps, err, err_len)) ||
        (rc = json_get_array(doc, doc->root, NULL, 0, "keep", 0, &keep, err, err_len)) ||
        (rc = json_get_string(doc, doc->root, NULL, 0, "trace", 0, &trace, err, err_len)) ||
        (rc = json_get_string(doc, doc->root, NULL, 0, "solver", 0, &solver, err, err_len)) ||
        (rc = json_get_int(doc, doc->root, NULL, 0, "limit_bytes", 0, 0, INT64_MAX, &out->limit_bytes, err, err_len)) ||
        (rc = json_get_int(doc, doc->root, NULL, 0, "peak_bytes", 0, 0, INT64_MAX, &out->peak_bytes, err, err_len)) ||
        (rc = json_get_int(doc, doc->root, NULL, 0, "baseline_ns", 0, 0, INT64_MAX, &out->baseline_ns, err, err_len)) ||
        (rc = json_get_int(doc, doc->root, NULL, 0, "planned_ns", 0, 0, INT64_MAX, &out->planned_ns, err, err_len)) ||
        (rc = json_get_int(doc, doc->root, NULL, 0, "bound_ns", 0, 0, INT64_MAX, &out->bound_ns, err, err_len)))
        return rc;
    snprintf(out->trace, sizeof(out->trace), "%s", trace);
    plan_label(out, solver);
    for (i = 0; i < json_array_size(keep); i++) {
        int64_t id;

        if (json_as_int(json_array_get(keep, i), 0, INT32_MAX, &id)) {
            struct json_step at[2] = {{"keep", 0}, {NULL, i}};

            return json_fault(doc, at, 2, err, err_len, "must be a buffer's index, a whole number from 0 up");
        }
        if (plan_keep(out, (int32_t)id))
            return -ENOMEM;
    }
    plan_keep_sort(out);
    return plan_parse_steps(doc, steps, out, err, err_len);
}

static int plan_take(struct json_doc *doc, struct plan *out, char *err, size_t err_len)
{
    int rc;

    memset(out, 0, sizeof(*out));
    rc = plan_parse(doc, out, err, err_len);
    if (rc == -ENOMEM)
        snprintf(err, err_len, "%s: not enough memory", doc->name);
    if (rc)
        plan_free(out);
    json_doc_close(doc);
    return rc;
}

int plan_read(const char *path, struct plan *out, char *err, size_t err_len)
{
    struct json_doc doc;
    int rc;

    memset(out, 0, sizeof(*out));
    rc = json_doc_load(path, &doc, err, err_len);
    return rc ? rc : plan_take(&doc, out, err, err_len);
}

int plan_read_text(const char *name, const char *text, size_t len, struct plan *out, char *err, size_t err_len)
{
    struct json_doc doc;
    int rc;

    memset(out, 0, sizeof(*out));
    rc = json_doc_parse(name, text, len, &doc, err, err_len);
    return rc ? rc : plan_take(&doc, out, err, err_len);
}

/* Solver names and hashes come from our tables or from another plan file: quote what JSON must have quoted. */
static void plan_put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fputc('\\', f);
        if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", *s);
        else
            fputc(*s, f);
    }
    fputc('"', f);
}

static void plan_put(FILE *f, const struct plan *p)
{
    size_t i;

    fputs("{\"format\": \"plan-1\", \"trace\": ", f);
    plan_put_string(f, p->trace);
    fputs(", \"solver\": ", f);
    plan_put_string(f, p->solver);
    fprintf(f, ",\n \"limit_bytes\": %lld, \"peak_bytes\": %lld, \"baseline_ns\": %lld, \"planned_ns\": %lld,",
            (long long)p->limit_bytes, (long long)p->peak_bytes, (long long)p->baseline_ns, (long long)p->planned_ns);
    if (p->bound_ns)
        fprintf(f, " \"bound_ns\": %lld,", (long long)p->bound_ns);
    fputs("\n \"keep\": [", f);
    for (i = 0; i < p->n_keep; i++)
        fprintf(f, "%s%d", i ? ", " : "", p->keep[i]);
    fputs("],\n \"steps\": [", f);
    for (i = 0; i < p->n_steps; i++)
        fprintf(f, "%s{\"%s\":%d}", i ? (i % 8 ? ", " : ",\n  ") : "\n  ", plan_kind_name(p->steps[i].kind), p->steps[i].id);
    fputs("\n ]}\n", f);
}

int plan_write(const struct plan *p, const char *path, char *err, size_t err_len)
{
    struct output o;
    int rc = output_open(&o, path, 0, err, err_len);

    if (rc)
        return rc;
    plan_put(o.f, p);
    return output_commit(&o, err, err_len);
}
