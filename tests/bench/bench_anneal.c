/* bench_anneal: mutations a second of the annealer on an iteration of 1,000 ops, against the plain way of judging a
 * mutation: the same additions and removals of replays on an array of bytes by slot, added to slot by slot and scanned
 * for its maximum. Prints one JSON fragment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "offline/solvers/anneal/anneal_search.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t rng = 1;

static int32_t draw(int32_t n)
{
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return (int32_t)((((rng * 0x2545F4914F6CDD1Dull) >> 32) * (uint64_t)n) >> 32);
}

/* 200 layers, three forward ops (a product, a normalization with statistics on the side, an activation changed in
 * place) and two backward ops each: 1,000 ops. */
static struct graph *iteration(void)
{
    enum { LAYERS = 200, FWD = 3 * LAYERS };
    const int64_t bytes = 8 << 20;
    struct graph_build *b = graph_build_new();
    static int mm[LAYERS], norm[LAYERS], weight[LAYERS];
    const int input = graph_build_buf(b, bytes, -1, -1, GRAPH_INPUT);
    for (int l = 0; l < LAYERS; l++)
        weight[l] = graph_build_buf(b, bytes / 16, -1, -1, GRAPH_PARAM);
    int op = 0;
    for (int l = 0; l < LAYERS; l++) {
        const int back = FWD + 2 * (LAYERS - 1 - l);
        mm[l] = graph_build_buf(b, bytes, op, back + 1, GRAPH_ACTIVATION);
        norm[l] = graph_build_buf(b, bytes, op + 1, back + 2, GRAPH_ACTIVATION);
        graph_build_op(b, "mm", GRAPH_FWD, 300000 + 1000 * (l % 7));
        graph_build_operand(b, op, GRAPH_READ, l ? norm[l - 1] : input);
        graph_build_operand(b, op, GRAPH_READ, weight[l]);
        graph_build_operand(b, op++, GRAPH_WRITE, mm[l]);
        graph_build_op(b, "norm", GRAPH_FWD, 40000);
        graph_build_operand(b, op, GRAPH_READ, mm[l]);
        graph_build_operand(b, op++, GRAPH_WRITE, norm[l]);
        graph_build_op(b, "relu_", GRAPH_FWD, 20000);
        graph_build_operand(b, op++, GRAPH_RMW, norm[l]);
    }
    int up = norm[LAYERS - 1];
    for (int l = LAYERS - 1; l >= 0; l--) {
        const int g1 = graph_build_buf(b, bytes, op, op + 2, GRAPH_ACTIVATION);
        const int g2 = graph_build_buf(b, bytes, op + 1, op + 3 <= 5 * LAYERS ? op + 3 : 5 * LAYERS, GRAPH_ACTIVATION);
        graph_build_op(b, "norm_backward", GRAPH_BWD, 80000);
        if (up != norm[l])
            graph_build_operand(b, op, GRAPH_READ, up);
        graph_build_operand(b, op, GRAPH_READ, norm[l]);
        graph_build_operand(b, op, GRAPH_READ, mm[l]);
        graph_build_operand(b, op++, GRAPH_WRITE, g1);
        graph_build_op(b, "mm_backward", GRAPH_BWD, 600000);
        graph_build_operand(b, op, GRAPH_READ, g1);
        graph_build_operand(b, op, GRAPH_READ, weight[l]);
        if (l)
            graph_build_operand(b, op, GRAPH_READ, norm[l - 1]);
        graph_build_operand(b, op++, GRAPH_WRITE, g2);
        up = g2;
    }
    struct graph *g = NULL;
    struct graph_fault f = {0};
    if (graph_seal(b, &g, &f)) {
        fprintf(stderr, "bench_anneal: %s\n", f.text);
        exit(1);
    }
    graph_build_free(b);
    return g;
}

/* ---- the plain way --------------------------------------------------------------------------------------------- */

struct plain {
    const struct anneal_model *m;
    const struct anneal *a; /* its slots, as they were at the start */
    int32_t *slot, n_slots;
    double *bytes;
    int32_t **ev, *n_ev; /* events by cell, as in struct anneal */
    int32_t *replays, n_replays;
    int64_t replay_ns;
};

static void plain_hold(struct plain *p, int32_t lo, int32_t hi, double x)
{
    for (int32_t s = lo; s <= hi; s++)
        p->bytes[s] += x;
}

static double plain_peak(const struct plain *p)
{
    double max = 0;
    for (int32_t s = 0; s < p->n_slots; s++)
        max = p->bytes[s] > max ? p->bytes[s] : max;
    return max;
}

static void plain_change(struct plain *p, int32_t u, int32_t s, int add)
{
    const struct anneal_unit *unit = &p->m->units[u];
    for (int32_t k = 0; k < unit->n_out + unit->n_in; k++) {
        const int out = k < unit->n_out;
        const int32_t c = p->m->unit_cells[out ? unit->first_out + k : unit->first_in + k - unit->n_out];
        int32_t *ev = p->ev[c], i = p->n_ev[c];
        const double x = (double)p->m->cells[c].bytes;
        while (i > 0 && anneal_ev_slot(ev[i - 1]) > s)
            i--;
        if (!add) {
            memmove(ev + i - 1, ev + i, (size_t)(p->n_ev[c] - i) * sizeof *ev);
            p->n_ev[c]--;
            i--;
        }
        const int used = i < p->n_ev[c] && !anneal_ev_made(ev[i]);
        if (out && used)
            plain_hold(p, anneal_ev_slot(ev[i - 1]) + 1, s - 1, add ? -x : x);
        else if (out)
            plain_hold(p, s, s, add ? x : -x);
        else if (!used)
            plain_hold(p, anneal_ev_slot(ev[i - 1]) + 1, s, add ? x : -x);
        if (add) {
            memmove(ev + i + 1, ev + i, (size_t)(p->n_ev[c] - i) * sizeof *ev);
            ev[i] = anneal_ev(s, out ? ANNEAL_MADE : ANNEAL_USED);
            p->n_ev[c]++;
        }
    }
    p->slot[s] = add ? p->m->g->n_ops + u : ANNEAL_EMPTY;
    p->replay_ns += add ? unit->ns : -unit->ns;
}

static double plain_energy(const struct plain *p, double limit, double lambda)
{
    const double over = plain_peak(p) - limit;
    return (double)p->replay_ns + (over > 0 ? lambda * over : 0);
}

static int64_t plain_run(struct plain *p, double limit, double seconds)
{
    const double lambda = 40.0 * (double)p->m->g->total_ns / (double)p->m->g->baseline_peak_bytes;
    const double start = now_s();
    double e = plain_energy(p, limit, lambda);
    int64_t n = 0;
    for (; n % 64 || now_s() - start < seconds; n++) {
        int32_t u, s, k = -1;
        if (p->n_replays && draw(2)) {
            k = draw(p->n_replays);
            s = p->replays[k];
            u = p->slot[s] - p->m->g->n_ops;
        } else {
            const int32_t c = draw(p->m->n_cells);
            u = p->m->cells[c].unit;
            if (u < 0 || p->n_ev[c] < 2)
                continue;
            s = anneal_ev_slot(p->ev[c][1 + draw(p->n_ev[c] - 1)]) - 1;
            if (p->slot[s] != ANNEAL_EMPTY || !anneal_may_add(p->a, u, s))
                continue;
        }
        plain_change(p, u, s, k < 0);
        const double then = plain_energy(p, limit, lambda);
        if (then > e) {
            plain_change(p, u, s, k >= 0);
            continue;
        }
        e = then;
        if (k < 0)
            p->replays[p->n_replays++] = s;
        else
            p->replays[k] = p->replays[--p->n_replays];
    }
    return n;
}

static double plain_rate(const struct anneal_model *m, double limit, double seconds)
{
    struct anneal *a = anneal_new(m);
    struct plain p = {.m = m, .a = a, .n_slots = a->n_slots};
    p.slot = malloc((size_t)a->n_slots * sizeof *p.slot);
    p.bytes = malloc((size_t)a->n_slots * sizeof *p.bytes);
    p.ev = malloc((size_t)m->n_cells * sizeof *p.ev);
    p.n_ev = malloc((size_t)m->n_cells * sizeof *p.n_ev);
    p.replays = malloc((size_t)a->n_slots * sizeof *p.replays);
    memcpy(p.slot, a->slot, (size_t)a->n_slots * sizeof *p.slot);
    for (int32_t s = 0; s < a->n_slots; s++)
        p.bytes[s] = segtree_at(&a->tree, (uint32_t)s);
    for (int32_t c = 0; c < m->n_cells; c++) {
        p.ev[c] = malloc((size_t)(a->n_slots + 1) * sizeof **p.ev);
        p.n_ev[c] = a->ev[c].n;
        memcpy(p.ev[c], a->ev[c].at, (size_t)a->ev[c].n * sizeof **p.ev);
    }
    const double start = now_s();
    const int64_t n = plain_run(&p, limit, seconds);
    const double rate = (double)n / (now_s() - start);
    for (int32_t c = 0; c < m->n_cells; c++)
        free(p.ev[c]);
    free(p.ev);
    free(p.n_ev);
    free(p.slot);
    free(p.bytes);
    free(p.replays);
    anneal_free(a);
    return rate;
}

int main(void)
{
    const double seconds = 1.0;
    struct graph *g = iteration();
    struct anneal_model *m = anneal_model_new(g, 0);
    const int64_t limit = g->baseline_peak_bytes / 2;
    struct anneal_search *s = anneal_search_new(m, limit, 1, 0);
    const double start = now_s();
    const struct anneal_run run = {.mutations = INT64_C(1) << 40,
                                   .hot_ns = 5e-5 * (double)g->total_ns,
                                   .cold_ns = 5e-5 * (double)g->total_ns,
                                   .deadline_s = start + seconds};
    if (anneal_search_run(s, &run))
        return 1;
    const double rate = (double)s->mutations / (now_s() - start), plain = plain_rate(m, (double)limit, seconds);
    printf("{\"anneal_mutations\": {\"value\": %.0f, \"unit\": \"1/s\", \"baseline\": %.0f, \"ratio\": %.2f}}\n", rate, plain,
           rate / plain);
    anneal_search_free(s);
    anneal_model_free(m);
    graph_free(g);
    return 0;
}
