/* graph_write.c: see graph_write.h. */
#include "offline/model/graph_write.h"

static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", *s);
        else
            fputc(*s, f);
    fputc('"', f);
}

static void put_member(FILE *f, const char *key, const char *value)
{
    if (!*value)
        return;
    fprintf(f, ", \"%s\": ", key);
    put_string(f, value);
}

/* n operands from u on, as their buffers. */
static void put_list(FILE *f, const char *key, const struct graph_operand *u, int32_t n)
{
    fprintf(f, ", \"%s\": [", key);
    for (int32_t i = 0; i < n; i++)
        fprintf(f, "%s%d", i ? ", " : "", u[i].buf);
    fputc(']', f);
}

static void put_op(FILE *f, const struct graph *g, int32_t i)
{
    const struct graph_op *o = &g->ops[i];
    const struct graph_operand *u = graph_operands(g, i);
    fprintf(f, "%s\n  {\"id\": %d, \"name\": ", i ? "," : "", i);
    put_string(f, o->name);
    fprintf(f, ", \"phase\": \"%s\"", graph_phase_name(o->phase));
    put_list(f, "reads", u, o->n_reads);
    put_list(f, "writes", u + o->n_reads + o->n_rmw + o->n_side, o->n_writes);
    put_list(f, "rmw", u + o->n_reads, o->n_rmw);
    put_list(f, "side", u + o->n_reads + o->n_rmw, o->n_side);
    fprintf(f, ", \"ns\": %lld, \"flops\": %lld, \"bytes\": %lld, \"heavy\": %s, \"random\": %s, \"opaque\": %s", (long long)o->ns, (long long)o->flops,
            (long long)o->bytes, o->heavy ? "true" : "false", o->random ? "true" : "false", o->opaque ? "true" : "false");
    if (o->site >= 0 && o->site < g->n_sites)
        fprintf(f, ", \"site\": %d", o->site);
    fputc('}', f);
}

void graph_write(FILE *f, const struct graph *g)
{
    fputs("{\"meta\": {\"format\": \"opgraph-1\"", f);
    put_member(f, "model", g->model);
    put_member(f, "device", g->device);
    put_member(f, "source", *g->source ? "remat, of a trace" : "");
    fprintf(f, ", \"batch\": %lld, \"peak_bytes\": %lld, \"persistent_bytes\": %lld, \"total_ns\": %lld, \"granularity_bytes\": %lld",
            (long long)g->batch, (long long)g->baseline_peak_bytes, (long long)g->persistent_bytes, (long long)g->total_ns,
            (long long)(g->page_bytes > 1 ? g->page_bytes : g->granularity_bytes));
    fprintf(f, ", \"host_bytes_per_s\": %.17g},\n \"buffers\": [", g->host_bytes_per_s);
    for (int32_t i = 0; i < g->n_bufs; i++) {
        const struct graph_buf *b = &g->bufs[i];
        fprintf(f, "%s\n  {\"id\": %d, \"bytes\": %lld, \"born\": %d, \"dies\": ", i ? "," : "", i, (long long)b->bytes, b->born);
        fprintf(f, b->dies < 0 ? "null" : "%d", b->dies);
        fprintf(f, ", \"kind\": \"%s\"}", graph_kind_name(b->kind));
    }
    fputs("],\n \"ops\": [", f);
    for (int32_t i = 0; i < g->n_ops; i++)
        put_op(f, g, i);
    fputc(']', f);
    for (int32_t i = 0; i < g->n_sites; i++) {
        fputs(i ? ", " : ",\n \"sites\": [", f);
        put_string(f, g->sites[i]);
    }
    fputs(g->n_sites ? "]}\n" : "}\n", f);
}
