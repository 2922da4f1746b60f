/* What the fuzz targets hold: any bytes at all give a result or one line with a place, never a crash; and what a reader
 * accepts, the rest of the program can live with. Shared by the libFuzzer targets and by test_readers_corpus.c. */
#ifndef REMAT_TESTS_FUZZ_READERS_H
#define REMAT_TESTS_FUZZ_READERS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "offline/model/sched.h"
#include "offline/model/sched_fill.h"
#include "offline/model/sched_tighten.h"
#include "offline/model/trace_read.h"
#include "offline/solvers/chain/chain.h"
#include "offline/solvers/chain/chain_solve.h"

static inline void fuzz_require(int truth, const char *what, const char *err)
{
    if (!truth) {
        fprintf(stderr, "broken promise: %s (%s)\n", what, err);
        abort();
    }
}

static inline void fuzz_message(int rc, const char *err)
{
    fuzz_require(rc < 0, "errors are negative", err);
    fuzz_require(err[0] != 0 && !strchr(err, '\n'), "one line of explanation", err);
}

/* Returns 1 if the bytes are a trace. */
static inline int fuzz_trace(const uint8_t *data, size_t len)
{
    char err[512] = "";
    struct graph *g = NULL;
    struct sched *s;
    struct plan p = {0};
    struct sim_result r;
    uint8_t *choice;
    int rc = trace_read_text("fuzz", (const char *)data, len, &g, err, sizeof(err));

    if (rc) {
        fuzz_message(rc, err);
        return 0;
    }
    s = sched_new(g);
    choice = s ? calloc((size_t)s->n_gaps + 1, 1) : NULL;
    if (choice) {
        /* The program as it is must be a good plan, and so must whatever comes of dropping everything. */
        sched_baseline(g, &p);
        sim_run_ws(s->sim, &p, 0, &r);
        fuzz_require(r.ok && r.peak_bytes == g->baseline_peak_bytes, "the baseline is a plan", r.error);
        memset(choice, SCHED_DROP, (size_t)s->n_gaps);
        if (!sched_realize(s, choice, &p, &r)) {
            int64_t ns = r.ns, limit = r.peak_bytes + r.peak_bytes / 8;

            fuzz_require(r.ok && r.peak_bytes >= g->floor_bytes, "realized plans are good, none below the floor", r.error);
            if (limit > 0 && !sched_fill(s, &p, limit, &r))
                fuzz_require(r.ok && r.ns <= ns, "filling keeps a plan good and makes it no slower", r.error);
        }
    }
    free(choice);
    plan_free(&p);
    sched_free(s);
    graph_free(g);
    return 1;
}

/* Returns 1 if the bytes are a plan. What is read is judged on a small graph, which it may fit or not. */
static inline int fuzz_plan(const uint8_t *data, size_t len)
{
    static struct graph *g;
    char err[512] = "";
    struct plan p;
    struct sim_result r;
    struct sched *s;
    int rc;

    if (!g) {
        struct graph_build *b = graph_build_new();
        struct graph_fault f;
        int i;

        graph_build_buf(b, 10, -1, -1, GRAPH_PARAM);
        for (i = 0; i < 4; i++) {
            graph_build_buf(b, 100, i, i < 3 ? i + 2 : -1, GRAPH_ACTIVATION);
            graph_build_op(b, "k", GRAPH_FWD, 1);
            graph_build_operand(b, i, GRAPH_READ, i);
            graph_build_operand(b, i, GRAPH_WRITE, i + 1);
        }
        rc = graph_seal(b, &g, &f);
        graph_build_free(b);
        fuzz_require(rc == 0, "the graph is good", f.text);
    }
    rc = plan_read_text("fuzz", (const char *)data, len, &p, err, sizeof(err));
    if (rc) {
        fuzz_message(rc, err);
        return 0;
    }
    if (!sim_run(g, &p, 0, &r) && r.ok && (s = sched_new(g))) {
        int64_t peak = r.peak_bytes, ns;

        fuzz_require(!sched_tighten(s, &p), "a good plan can be polished", "");
        sim_run_ws(s->sim, &p, 0, &r);
        fuzz_require(r.ok, "a polished plan is good", r.error);
        fuzz_require(r.peak_bytes <= peak, "polishing never raises the peak", "");
        ns = r.ns;
        if (!sched_fill(s, &p, peak, &r))
            fuzz_require(r.ok && r.ns <= ns && r.peak_bytes <= peak, "filling keeps a plan good", r.error);
        sched_free(s);
    }
    plan_free(&p);
    return 1;
}

/* Returns 1 if the bytes are a chain. Small ones are solved, and the schedule replayed. */
static inline int fuzz_chain(const uint8_t *data, size_t len)
{
    char err[512] = "";
    struct json_doc doc;
    struct chain c;
    struct chain_answer a;
    int64_t budget, slots;
    int unit, rc = json_doc_parse("fuzz", (const char *)data, len, &doc, err, sizeof(err));

    if (!rc) {
        rc = chain_read(&doc, &c, &budget, &slots, &unit, err, sizeof(err));
        json_doc_close(&doc);
    }
    if (rc) {
        fuzz_message(rc, err);
        return 0;
    }
    if (c.n <= 12 && !chain_solve(&c, budget, CHAIN_FLOATING, 20, &a)) {
        fuzz_require(a.replayed.peak <= budget, "schedules fit", "");
        chain_schedule_free(&a.schedule);
    }
    chain_free(&c);
    return 1;
}

#endif
