/* record.h: one iteration as the device saw it: ops, their operands, buffers, allocations.
 *
 * Pure data, no driver. Threads: one owner at a time. Errors: 0 or a negative errno.
 * A record is filled in order (record_op, record_operand, record_alloc, record_free), then sealed: record_seal derives
 * births, merges what was learnt, and makes what the trace format asks of it true.
 */
#ifndef REMAT_TRACER_RECORD_H
#define REMAT_TRACER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an op uses a buffer. */
enum rec_mode {
    REC_READ,
    REC_WRITE, /* wholly overwritten: the old content did not matter */
    REC_RMW,
    REC_SIDE, /* changed in place without influence on the op's other outputs */
    REC_UNKNOWN
};

struct rec_range {
    uint64_t from, to; /* bytes from the start */
};

struct rec_operand {
    int32_t buf;
    uint32_t offset; /* of the pointer in the arguments, bytes */
    uint64_t delta;  /* from the buffer's start, bytes */
    uint64_t map;    /* shape of a tensor map (128 bytes); 0: the operand is a pointer */
    uint8_t mode;
    int32_t n_defined; /* number of ranges (of record.ranges) that are defined once the op has run; -1: the whole buffer, 0: none */
    uint32_t defined;  /* index of the first of these ranges */
};

/* The op uses the buffer's old content; the op leaves a new version of the buffer, for other ops. */
static inline bool rec_takes(const struct rec_operand *w) { return w->mode == REC_READ || w->mode == REC_RMW; }
static inline bool rec_makes(const struct rec_operand *w) { return w->mode == REC_WRITE || w->mode == REC_RMW; }

struct rec_op {
    uint64_t sig;
    char *name;      /* owned */
    uint32_t site;   /* index in record.sites, plus one; 0: unknown */
    const char *why_opaque; /* static text: why the op is not replayed; NULL: it may be */
    uint32_t first, n; /* operands */
    uint64_t ns;
    uint64_t live_bytes; /* managed bytes that the program held at the launch */
    bool hold;           /* a hold, which is no op of the program: see record_insert_holds */
    bool to_host;        /* a copy to the host, which may be missing in another iteration */
    bool random;         /* draws random numbers, going by its name */
    uint32_t idle, n_idle; /* entries of record.idle_words: words whose value makes no difference to this op */
};

struct rec_buf {
    uint64_t bytes;
    uint64_t slot_id, serial; /* of the slot, and of the allocation in it */
    uint64_t birth_op;        /* ops of the program, but for copies to the host, before it was allocated */
    int32_t alloc_ord;        /* index into allocs; -1: older than the iteration */
    int32_t born;             /* op that first writes the buffer; -1: the buffer exists before op 0 */
    int32_t dies;             /* op just before which the buffer is freed; -1: never freed */
    int32_t filled_by;        /* while recording: op whose memset filled a part of the buffer, if no later op has touched the buffer; -1: none */
    bool small, foreign, host_written;
    bool pinned;              /* reached in ways that no argument shows: the buffer stays in memory */
    bool points;              /* the buffer holds addresses that may be followed */
    bool named;               /* the buffer's address is stored where any kernel may read it, and no argument shows that */
    bool moves_on, remains;   /* moves_on: last iteration's buffer in this place was another one, allocated one period earlier; remains: it was this buffer */
    bool handed_on;           /* each iteration has another buffer in this place, which outlives the iteration: a batch fetched ahead, freed when the next batch is there */
};

/* Whether a plan may take the buffer's memory away. */
static inline bool rec_may_move(const struct rec_buf *b) { return !b->small && !b->foreign && !b->pinned; }

struct rec_alloc {
    uint64_t bytes;
    int32_t before_op, buf; /* buf -1: no op touched the allocation */
};

struct record {
    struct rec_op *ops;
    struct rec_operand *operands;
    struct rec_buf *bufs;
    struct rec_alloc *allocs;
    struct rec_range *ranges;
    uint32_t *idle_words; /* offsets in the arguments, rising within an op: from the offset on, its word of eight bytes is idle */
    char **sites;         /* call sites (site.h), each once; owned */
    uint32_t n_ops, n_operands, n_bufs, n_allocs, n_ranges, n_idle_words, n_sites;
    uint32_t cap_ops, cap_operands, cap_bufs, cap_allocs, cap_ranges, cap_idle_words, cap_sites;
    char *model;     /* owned: the program's command line */
    char *device;    /* owned */
    uint64_t host_bytes_per_s; /* 0: unknown */
    uint64_t page_bytes, reserve_bytes; /* for the user's trace (reserve.h); 0: unknown */
    uint64_t period; /* ops of an iteration, but for copies to the host */
};

/* Offset of the argument word that an entry of idle_words lies in. */
static inline uint32_t rec_idle_word(uint32_t entry) { return entry & ~7u; }

void record_clear(struct record *r);
/* Appenders return the new index, or a negative errno. Strings are copied. */
int record_op(struct record *r, uint64_t sig, const char *name, const char *why_opaque, uint64_t live_bytes);
int record_operand(struct record *r, int32_t buf, uint32_t offset, uint64_t delta, enum rec_mode mode); /* adds to the last op */
/* The ranges of the last operand's buffer that are defined after its op (see rec_operand); the whole buffer if this is not called. */
int record_defined(struct record *r, const struct rec_range *ranges, uint32_t n);
int record_idle_word(struct record *r, uint32_t offset); /* adds to the last op */
int record_site(struct record *r, uint32_t op, char *site); /* takes ownership of the string; NULL: unknown */
int record_more_idle(struct record *r, uint32_t op, uint32_t offset); /* adds to any op */
int record_buf(struct record *r, uint64_t bytes, uint64_t slot_id, uint64_t serial, int32_t alloc_ord);
int record_alloc(struct record *r, uint64_t bytes);
void record_free(struct record *r, int32_t buf); /* just before the next op */

/* After the last op: one mode per (op, buffer) (the strongest), births, and these repairs, each of which only makes the
 * trace more careful. A buffer older than the iteration, with another one in its place in each iteration (handed_on), dies with the iteration if not
 * before, since the next iteration uses it in other places. A buffer that was allocated in the iteration, and is read before any op of the iteration wrote
 * it, counts as written by the reading op, which becomes opaque. */
int record_seal(struct record *r);
/* The mode with which op `op` uses buffer `buf` after sealing; REC_UNKNOWN: not used. */
enum rec_mode record_mode(const struct record *r, uint32_t op, int32_t buf);

/* The bytes of the operand's buffer that may be compared after its op, as *n ranges; *whole is room for one.
 * Undefined bytes are never compared: no op wrote them, so they differ from run to run. */
static inline const struct rec_range *record_comparable(const struct record *r, const struct rec_operand *w, uint32_t *n, struct rec_range *whole)
{
    *whole = (struct rec_range){0, r->bufs[w->buf].bytes};
    *n = w->n_defined < 0 ? 1 : (uint32_t)w->n_defined;
    return w->n_defined < 0 ? whole : r->ranges + w->defined;
}

/* The program may hold a buffer for long after its last use, and an iteration that goes another way may still read it. A
 * plan must therefore be able to bring the buffer back until its free: a *hold*, an op of no cost that is never replayed, reads
 * each such buffer just before its death, and before an op that overwrites it wholly. new_index[n_ops before the call], allocated by the caller:
 * new_index[i] becomes the index of op i. After record_seal. 0 or -ENOMEM. */
int record_insert_holds(struct record *r, uint32_t *new_index);

#endif
