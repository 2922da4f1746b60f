#include "offline/model/as_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/graph.h"
#include "offline/model/held.h"
#include "tracer/reserve.h"

enum {
    UNIT_BYTES = 512,    /* small tensors take whole units of a shared page, and a byte past their end */
    PAGE_BYTES = 2 << 20, /* of a device that the trace does not tell: every NVIDIA GPU so far */
    LARGE_BYTES = 1 << 30 /* less no GPU need be trained on: a simulated one, whose pages may be smaller */
};

static int64_t paged(int64_t bytes, int64_t page) { return (int64_t)reserve_rounded_bytes((uint64_t)bytes, (uint64_t)page); }
static int64_t entry_of(int64_t bytes) { return (bytes / UNIT_BYTES + 1) * UNIT_BYTES; }
static int is_small(const struct graph *g, int32_t b, int64_t page) { return g->bufs[b].bytes < page / 2; }

/* Small tensors share an entry of a page where one is over before the other begins (policy/plan/install.c). An op makes what it is the first
 * to touch, so a walk over the ops meets every birth and death in order. */
static int small_bytes(const struct graph *g, int64_t page, int64_t *bytes)
{
    int32_t *entry_over = malloc(((size_t)g->n_bufs + 1) * sizeof *entry_over), n = 0; /* op before which the entry is free again */
    int64_t *entry_bytes = malloc(((size_t)g->n_bufs + 1) * sizeof *entry_bytes);
    *bytes = 0;
    for (int32_t born = -1; entry_over && entry_bytes && born < g->n_ops; born++)
        for (int32_t k = born < 0 ? 0 : g->ops[born].first; k < (born < 0 ? g->n_bufs : g->ops[born].first + graph_n_operands(&g->ops[born])); k++) {
            const int32_t b = born < 0 ? k : g->operands[k].buf;
            if (g->bufs[b].born != born || !g->bufs[b].bytes || !is_small(g, b, page))
                continue;
            int32_t e = 0;
            while (e < n && (entry_bytes[e] != g->bufs[b].bytes || entry_over[e] > born))
                e++;
            if (e == n) {
                *bytes += entry_of(g->bufs[b].bytes);
                entry_bytes[n++] = g->bufs[b].bytes;
            }
            entry_over[e] = g->bufs[b].dies < 0 ? INT32_MAX : g->bufs[b].dies;
        }
    const int none = !entry_over || !entry_bytes;
    free(entry_over);
    free(entry_bytes);
    return none ? -ENOMEM : 0;
}

/* The most that buffers which no plan may move take at once; packed: small ones are counted by small_bytes(), and not here. */
static int fixed_bytes(const struct graph *g, int64_t page, int packed, int64_t *bytes)
{
    int64_t *more = calloc((size_t)g->n_ops + 2, sizeof *more), now = 0; /* than before op i - 1 */
    *bytes = 0;
    if (!more)
        return -ENOMEM;
    for (int32_t b = 0; b < g->n_bufs; b++) {
        const struct graph_buf *x = &g->bufs[b];
        if (!x->fixed || (packed && is_small(g, b, page)))
            continue;
        more[x->born + 1] += paged(x->bytes, page);
        if (x->dies >= 0)
            more[x->dies + 1] -= paged(x->bytes, page);
    }
    for (int32_t i = 0; i < g->n_ops + 2; i++) {
        now += more[i];
        *bytes = now > *bytes ? now : *bytes;
    }
    free(more);
    return 0;
}

/* Running statistics of large size share one region, those of small size have each their own; small inputs of replays are copied to one area. */
static int64_t scratch_bytes(const struct graph *g, int64_t page)
{
    int64_t region = 0, own = 0, area = 0;
    for (int32_t i = 0; i < g->n_ops; i++) {
        int64_t large = 0, copies = 0;
        for (int32_t k = g->ops[i].first; k < g->ops[i].first + graph_n_operands(&g->ops[i]) && !g->ops[i].opaque; k++) {
            const int64_t bytes = g->bufs[g->operands[k].buf].bytes;
            const int small = is_small(g, g->operands[k].buf, page);
            if (g->operands[k].role == GRAPH_SIDE)
                *(small ? &own : &large) += entry_of(bytes);
            else if (g->operands[k].role == GRAPH_READ && small)
                copies += entry_of(bytes);
        }
        region = large > region ? large : region;
        area = copies > area ? copies : area;
    }
    return paged(region, page) + own + area;
}

int as_run_make(const struct graph *exact, struct as_run *out)
{
    memset(out, 0, sizeof *out);
    const int told = exact->page_bytes > 1, recorded = told || exact->granularity_bytes > 1 || (!strcmp(exact->source, "remat tracer") && exact->baseline_peak_bytes >= LARGE_BYTES);
    const int64_t page = told ? exact->page_bytes : exact->granularity_bytes > 1 ? exact->granularity_bytes : recorded ? PAGE_BYTES : 0;
    int64_t small = 0, fixed = 0, *bytes = malloc(((size_t)exact->n_bufs + 1) * sizeof *bytes);
    if (!bytes)
        return -ENOMEM;
    out->page_bytes = page;
    out->is_limits = exact->granularity_bytes <= 1;
    out->estimated = !told && recorded && out->is_limits;
    for (int32_t b = 0; b < exact->n_bufs; b++) {
        const int none = exact->bufs[b].fixed || (out->estimated && is_small(exact, b, page));
        bytes[b] = none ? 0 : paged(exact->bufs[b].bytes, page);
    }
    int rc = out->estimated ? small_bytes(exact, page, &small) : 0;
    if (!rc && !told && out->is_limits)
        rc = fixed_bytes(exact, page, out->estimated, &fixed);
    if (!rc)
        rc = held_graph(exact, bytes, recorded && out->is_limits, &out->g, &out->op_of); /* a run's own planner is told the holds */
    free(bytes);
    out->reserve_bytes = told ? exact->reserve_bytes : fixed;
    if (out->estimated) /* a page more than small tensors fill, since some live longer in a plan; one of decoys */
        out->reserve_bytes += paged(small, page) + paged(scratch_bytes(exact, page), page) + 2 * page;
    return rc;
}

void as_run_free(struct as_run *a)
{
    graph_free(a->g);
    free(a->op_of);
    memset(a, 0, sizeof *a);
}

int as_run_plan(const struct as_run *a, const struct graph *exact, struct plan *p)
{
    return a->g->n_ops == exact->n_ops ? 0 : held_plan(exact, a->g, a->op_of, p);
}

int32_t as_run_op(const struct as_run *a, int32_t op) { return op < 0 ? op : a->op_of[op] < 0 ? -1 - a->op_of[op] : a->op_of[op]; }

int64_t as_run_room(const struct as_run *a, int64_t limit_bytes)
{
    const int64_t left = (int64_t)reserve_budget_bytes((uint64_t)limit_bytes, (uint64_t)a->reserve_bytes);
    return a->page_bytes ? left / a->page_bytes * a->page_bytes : left;
}

int64_t as_run_limit(const struct as_run *a, int64_t room_bytes)
{
    return (int64_t)reserve_limit_bytes((uint64_t)paged(room_bytes, a->page_bytes), (uint64_t)a->reserve_bytes);
}
