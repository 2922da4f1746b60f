/* The graph of one training iteration: ops, buffers, and the values that flow between them.
 *
 * What: an immutable model built once from an opgraph-1 trace (or op by op in memory) and then read by
 * every solver, the simulator and the reports. A *value* is (buffer, version): `writes`, `rmw` and `side`
 * operands make a new version of their buffer, so each op consumes and produces values.
 *
 * Threads: a graph does not change after it was built; any number of threads may read it.
 *
 * Errors: 0, or a negative errno; the text goes to the caller's buffer as one line that names the file,
 * the place (line and column, JSON path) and the op or buffer.
 *
 * Units: *_bytes are bytes, *_ns nanoseconds. Op indices run 0..n_ops-1; where a point in time is meant, op
 * index i stands for "just before op i is launched", and n_ops for "after the last op".
 */
#ifndef REMAT_OFFLINE_GRAPH_H
#define REMAT_OFFLINE_GRAPH_H

#include <stddef.h>
#include <stdint.h>

enum graph_phase { GRAPH_FWD, GRAPH_BWD, GRAPH_OPT };
enum graph_kind { GRAPH_PARAM, GRAPH_GRAD, GRAPH_STATE, GRAPH_INPUT, GRAPH_ACTIVATION };

/* What an op does to one of its operands. */
enum graph_role { GRAPH_READ, GRAPH_RMW, GRAPH_SIDE, GRAPH_WRITE };

struct graph_operand {
    int32_t buf;  /* buffer id */
    int32_t in;   /* value consumed; -1 for GRAPH_WRITE (the old contents do not matter) */
    int32_t out;  /* value produced; -1 for GRAPH_READ */
    int32_t role; /* enum graph_role */
};

/* The operands of op o are g->operands[o->first .. o->first + n), n = n_reads + n_rmw + n_side + n_writes,
 * in that order: reads | rmw | side | writes. Hence
 *   a replay consumes the first n_reads + n_rmw operands, the op itself n_side more;
 *   a replay rebuilds the rmw and the write operands; the op itself changes the side operands too. */
struct graph_op {
    int32_t first;
    int32_t n_reads, n_rmw, n_side, n_writes;
    int64_t ns;
    int64_t flops, bytes;
    int64_t side_bytes; /* sum over side operands: scratch a replay needs */
    int64_t work_bytes; /* sum over all operands: the op's working set */
    const char *name;   /* owned by the graph */
    int32_t site;       /* index into sites; -1 unknown */
    uint8_t phase;      /* enum graph_phase */
    uint8_t heavy, random, opaque;
};

struct graph_buf {
    int64_t bytes;
    int32_t born;      /* op that first writes it; -1: exists before op 0 */
    int32_t dies;      /* the program frees it just before this op, n_ops: after the last; -1: never */
    int32_t first_val; /* value id of version v is first_val + v */
    int32_t n_vers;    /* versions are 0 .. n_vers-1; version 0 of a buffer with born >= 0 holds nothing */
    uint8_t kind;      /* enum graph_kind */
    uint8_t fixed;     /* the run never takes its memory away: as_run.h */
    uint8_t survives;  /* must hold its last version (in memory or on the host) when the iteration ends */
};

/* Values are numbered buffer by buffer, version by version (see graph_buf.first_val).
 * Times obey: producer < use_at[...] (strictly rising) <= over. */
struct graph_val {
    int32_t buf, version;
    int32_t producer;      /* op that made it; -1: existed before op 0, or (born >= 0, version 0) holds nothing */
    int32_t first_use;     /* consumers are g->uses[first_use .. first_use + n_uses), op indices, rising */
    int32_t n_uses;        /* consumers counting `side` operands; the end of the iteration is not counted */
    int32_t last_use;      /* last consumer; the producer if none; -1 if neither. n_ops if it must survive */
    int32_t over;          /* op that makes the buffer's next version; n_ops if none does */
    int32_t gone;          /* min(over, dies): from here the program itself no longer has it; n_ops + 1: survives */
    int32_t rebuild_until; /* replays alone can rebuild it up to (and including) just before this op, as long as
                              values that nothing rebuilds are in memory; a replay that would overwrite a newer
                              value nothing rebuilds does not count. -1: never (see graph_val_fixed) */
};

struct graph {
    int32_t n_ops, n_bufs, n_vals;
    struct graph_op *ops;
    struct graph_buf *bufs;
    struct graph_val *vals;
    struct graph_operand *operands;
    int32_t n_operands;
    int32_t *uses;      /* see graph_val.first_use */
    int32_t *dies_at;   /* buffers freed just before op i: die_list[dies_at[i] .. dies_at[i+1]), i in 0..n_ops */
    int32_t *die_list;
    int64_t *live_bytes; /* [n_ops] memory in use while op i runs when nothing is evicted */

    int64_t total_ns;           /* sum over ops: the time with no eviction */
    int64_t persistent_bytes;   /* buffers that exist before op 0 and are never freed */
    int64_t baseline_peak_bytes; /* peak with no eviction, as the simulator counts it */
    int32_t baseline_peak_op;   /* first op at which it is reached; -1: before op 0 */
    int64_t floor_bytes;        /* no drop-and-replay plan can go lower: the largest working set of one op
                                   with everything that nothing rebuilds resident */
    int32_t floor_op;           /* the op that sets it; -1: what exists before op 0 */
    int64_t floor_offload_bytes; /* the same when buffers may go to the host: the largest working set alone */
    int32_t floor_offload_op;

    double host_bytes_per_s;    /* meta.host_bytes_per_s, 25e9 unless given */
    int64_t granularity_bytes;  /* meta.granularity_bytes; 0: not given */
    int64_t page_bytes, reserve_bytes; /* meta: of the device that ran it, and what no plan can use of a limit (as_run.h); 0: not given */
    char *model, *device, *source; /* owned; "" when absent */
    char **sites;               /* owned; call sites that op.site indexes */
    int32_t n_sites;
    int64_t batch;
    char sha256[65];            /* of the trace file, lower-case hex; "" for graphs built in memory */
};

void graph_free(struct graph *g);

/* Building in memory (trace_read.c, tests): add buffers and ops, then seal. The builder owns nothing of the
 * caller's; names are copied. graph_seal computes all derived fields and checks the whole; on error nothing is
 * left but the builder (graph_build_free). Indices returned are >= 0; negative is errno. */
struct graph_build;
struct graph_build *graph_build_new(void);
void graph_build_free(struct graph_build *b);
int graph_build_buf(struct graph_build *b, int64_t bytes, int32_t born, int32_t dies, enum graph_kind kind);
int graph_build_op(struct graph_build *b, const char *name, enum graph_phase phase, int64_t ns);
int graph_build_operand(struct graph_build *b, int32_t op, enum graph_role role, int32_t buf);
struct graph_buf *graph_build_buf_at(struct graph_build *b, int32_t buf); /* likewise */
struct graph_op *graph_build_op_at(struct graph_build *b, int32_t op); /* to set flags; valid until the next add */

/* What is known of the trace as a whole, of `g` into a sealed graph that was made from it. 0 or -ENOMEM. */
int graph_copy_facts(const struct graph *g, struct graph *to);

/* What graph_seal found wrong, so that a reader can turn it into a place in its file. */
struct graph_fault {
    int32_t op;      /* -1: none */
    int32_t buf;     /* -1: none */
    int32_t role;    /* enum graph_role of the operand at fault, -1: none */
    int32_t index;   /* its index within that list */
    const char *key; /* member of the buffer or op at fault: "born", "dies", ... */
    char text[200];
};
int graph_seal(struct graph_build *b, struct graph **out, struct graph_fault *fault);

/* True if nothing rebuilds the value, ever: it existed before op 0, or comes out of an opaque op, a `side`
 * operand, or an in-place chain that starts at such a value. It is either resident or (offloaded) on the host. */
static inline int graph_val_fixed(const struct graph_val *v) { return v->rebuild_until < 0; }

static inline int64_t graph_val_bytes(const struct graph *g, int32_t val) { return g->bufs[g->vals[val].buf].bytes; }

/* Operand slices. */
static inline const struct graph_operand *graph_operands(const struct graph *g, int32_t op)
{
    return g->operands + g->ops[op].first;
}
static inline int32_t graph_n_operands(const struct graph_op *o) { return o->n_reads + o->n_rmw + o->n_side + o->n_writes; }

const char *graph_phase_name(int phase);
const char *graph_kind_name(int kind);

#endif
