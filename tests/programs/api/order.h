/* order.h: API-level programs as lists of calls, and what is ordered before what in them.
 *
 * A program is a list of steps in the order in which the host makes them. The rules of order are those of the driver's
 * documentation, kept as vector clocks: clock[s][u] = n says that what is put on stream s next comes after the first n
 * steps of stream u. A step that touches memory is legal if the last writer (and, for a writer, every reader since) comes
 * before it by these clocks. A program whose every step is legal has one result, whatever the device does.
 *
 * Threads: none here; a program is drawn and checked by one. Errors: order_step returns false for an illegal step.
 */
#ifndef PROGRAMS_API_ORDER_H
#define PROGRAMS_API_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_STREAMS = 14, MAX_TENSORS = 400, MAX_EVENTS = 12, MAX_HOSTS = 6, MAX_STEPS = 20000, HOST_WORDS = 10240, OPERANDS = 4 };
enum { MAX_GRAPHS = 3, MAX_TEXTURES = 3, ARRAY_WORDS = 64, LIST_WORDS = 16 };

enum stream_kind { STREAM_NONE, STREAM_FREE, STREAM_BLOCKING, STREAM_LEGACY, STREAM_THREAD, STREAM_SHORT };
/* STREAM_FREE: CU_STREAM_NON_BLOCKING. STREAM_THREAD: CU_STREAM_PER_THREAD of one thread. STREAM_SHORT: like STREAM_FREE,
 * created and destroyed by the program. Each context has a legacy stream, which waits for its own blocking streams alone. */

enum context { CONTEXT_PRIMARY, CONTEXT_GREEN /* of the same device */, CONTEXT_PEER /* of the second device */, CONTEXTS };

/* What a program may have beside streams, events and stream-ordered memory; a program has few of them. */
enum kind {
    KIND_GRAPH = 1 << 0,   /* captured graphs, which write what plain launches read */
    KIND_LIST = 1 << 1,    /* kernels that find addresses in device, pinned or managed memory */
    KIND_MAPPED = 1 << 2,  /* so, of memory that the program maps itself */
    KIND_NAMED = 1 << 3,   /* a variable of the module, and kernels that find an address there */
    KIND_HOST = 1 << 4,    /* managed and pinned memory, which the host reads and writes */
    KIND_HANDLE = 1 << 5,  /* textures, surfaces, arrays, tensor maps */
    KIND_CONTEXT = 1 << 6, /* a green context */
    KIND_PEER = 1 << 7,    /* a second device, which reaches the first one's memory */
    KIND_BATCH = 1 << 8,   /* copies whose sources may be read out of stream order */
    KIND_POOL = 1 << 9,    /* pools that keep what is freed, are trimmed, and serve while a stream is captured */
    KINDS = 10
};

/* Where a tensor lies. */
enum memory {
    MEM_POOL,    /* cuMemAllocAsync */
    MEM_PLAIN,   /* cuMemAlloc */
    MEM_MAPPED,  /* cuMemMap; every device may use it */
    MEM_MANAGED, /* cuMemAllocManaged */
    MEM_PINNED,  /* cuMemHostAlloc, by its address on the device */
    MEM_REMOTE,  /* cuMemAlloc of the second device */
    MEM_NAMED,   /* what the module's variable points at: kernels find it without an argument */
    MEM_ARRAY    /* an array, seen by textures and surfaces alone */
};

enum verb {
    V_ALLOC,      /* t[0] on stream, `value` words; cuMemAllocAsync */
    V_FREE,       /* cuMemFreeAsync */
    V_ALLOC_SYNC, /* the same by cuMemAlloc */
    V_FREE_SYNC,  /* cuMemFree: waits for everything */
    V_MAP,        /* t[0] = f(t[1]) */
    V_JOIN,       /* t[0] = f(t[1], t[2]) */
    V_ADD,        /* t[0] += f(t[1]) */
    V_RELU,       /* t[0] in place */
    V_HALVES,     /* t[0] = f(t[1]), in two launches */
    V_STATS,      /* t[0] = f(t[1]); 64 words of t[2] move */
    V_RANDOM,     /* t[0] = f(value) */
    V_FILL,       /* t[0] = value, asynchronously */
    V_FILL_PART,  /* the middle third of t[0] */
    V_FILL_SYNC,  /* on the legacy stream; does not wait */
    V_COPY,       /* t[0] = t[1], the shorter length */
    V_COPY_SYNC,  /* on the legacy stream; does not wait */
    V_UP,         /* t[0] = host buffer h, pinned, asynchronously */
    V_UP_PAGED,   /* t[0] = words of the stack, asynchronously: read during the call */
    V_UP_SYNC,    /* t[0] = host buffer h; waits */
    V_DOWN,       /* host buffer h = t[1], asynchronously */
    V_DOWN_PAGED, /* words of the stack = t[1]; waits; noted */
    V_DOWN_SYNC,  /* the same on the legacy stream */
    V_HOST_WRITE, /* the host writes buffer h */
    V_HOST_READ,  /* the host reads buffer h; noted */
    V_CALL_READ,  /* a host function on the stream reads buffer h; noted */
    V_CALL_WRITE, /* a host function writes buffer h */
    V_RECORD,     /* event e on stream */
    V_WAIT,       /* stream waits for event e */
    V_DROP_EVENT, /* destroys e; its handle is made anew by the next record */
    V_SYNC_EVENT,
    V_POLL_EVENT, /* asks until it is ready */
    V_SYNC,       /* the stream */
    V_POLL,       /* asks until it is */
    V_SYNC_ALL,   /* the context */
    V_CREATE,     /* a short-lived stream */
    V_DESTROY,    /* it; its work goes on */
    /* A list is a tensor whose first words are an address: of t[2] below, or of nothing that the program may use. */
    V_LIST_UP,    /* t[0] = address of t[1], from the host */
    V_LIST_POKE,  /* so, written by the host itself into managed or pinned memory */
    V_LIST_LAY,   /* so, by a kernel that is given the address */
    V_LIST_COPY,  /* t[0] = t[1], both lists */
    V_FROM_LIST,  /* t[0] = f(t[3], what t[1] points at: t[2]) */
    V_TO_LIST,    /* what t[1] points at: t[2] = f(t[3]) */
    V_FROM_NAMED, /* t[0] = f(t[3], the variable: t[1]) */
    V_POKE,       /* the host writes t[0] */
    V_PEEK,       /* the host reads t[0]; noted */
    V_GRAPH_MAKE, /* graph e, which is what V_GRAPH_RUN says, by `how` */
    V_GRAPH_RUN,  /* t[0] = f(t[1], t[2]), in one launch of graph e */
    V_GRAPH_UP,   /* t[0] = host buffer h, by graph e */
    V_SHOW,       /* texture e, or a surface, shows t[2] from now on */
    V_TEXTURED,   /* t[0] = f(t[1], what texture e shows: t[2]) */
    V_SURFACE,    /* so, by a surface, of which the first word grows */
    V_ARRAY_UP,   /* t[0], an array, from the stack */
    V_TENSOR_MAP, /* t[0] = f(t[1]), both given as tensor maps */
    V_BATCH,      /* t[0] = t[1], at least as long, by a call for many copies; `how` says in which order the source may be read */
    V_BATCH_UP,   /* t[0] = words of the stack, likewise: read during the call */
    V_PEER_COPY,  /* t[0] = t[1], the shorter length, from one context to another */
    V_BESIDE_CAPTURE, /* V_ALLOC while another stream is captured */
    V_TRIM,       /* the pools give back what they keep */
    N_VERBS
};

struct step {
    uint8_t verb, stream, event, host, thread;
    uint8_t how;     /* of V_ALLOC_SYNC: enum memory; of V_BATCH: CUmemcpySrcAccessOrder, 0 a mixture; which one of a few ways */
    uint8_t context; /* current */
    int16_t t[OPERANDS]; /* -1: none */
    uint32_t value;
};

/* Who touched something last: the position of the writer, and the last reader of each stream since. */
struct touched {
    int writer; /* stream; -1 the host, whose calls come after what it did */
    uint32_t at;
    uint32_t read[MAX_STREAMS];
};

struct tensor {
    uint32_t words;
    bool live, filled; /* filled: every word has a known value */
    uint8_t memory;
    int points; /* a list: at that tensor; -1: it is none */
    struct touched touched;
};

struct order {
    enum stream_kind kind[MAX_STREAMS];
    uint8_t thread[MAX_STREAMS]; /* of STREAM_THREAD: whose it is */
    uint8_t context[MAX_STREAMS];
    bool open[MAX_STREAMS];      /* it exists now */
    uint32_t at[MAX_STREAMS], clock[MAX_STREAMS][MAX_STREAMS];
    uint32_t host[MAX_STREAMS];  /* what the host knows to be over */
    struct {
        bool recorded;
        int stream;
        uint32_t clock[MAX_STREAMS];
    } event[MAX_EVENTS];
    struct tensor tensor[MAX_TENSORS];
    struct {
        struct touched touched;
        bool filled;
    } buffer[MAX_HOSTS];
    struct shown {
        bool made; /* and all of it is there */
        uint8_t how, host;
        int16_t t[OPERANDS];
    } graph[MAX_GRAPHS], texture[MAX_TEXTURES];
};

struct program {
    uint64_t seed;
    int n_steps, n_tensors;
    unsigned kinds; /* enum kind */
    bool helper; /* a second thread takes part */
    struct step step[MAX_STEPS];
    struct order start; /* kinds of streams */
};

/* What a verb does with its operands. */
struct verb_row {
    const char *name;
    uint8_t reads, writes; /* masks over t[] */
    bool part;             /* writes a part only: does not make a tensor filled, and leaves one that is */
    uint8_t host_reads, host_writes; /* by the stream: 1 */
    bool on_stream, on_legacy, host_waits;
};
extern const struct verb_row verb_row[N_VERBS];
/* t[1] is read as a list that points at t[2]; t[0] becomes a list. */
static inline bool order_follows(int verb) { return verb == V_FROM_LIST || verb == V_TO_LIST; }
static inline bool order_lays(int verb) { return verb >= V_LIST_UP && verb <= V_LIST_COPY; }

/* Would a step on stream s come after what is asked: the last writer (for_write: and the readers)? */
bool order_covers(const struct order *o, int s, const struct touched *x, bool for_write);
bool order_host_covers(const struct order *o, const struct touched *x, bool for_write);
/* Takes the step, if it is legal. */
bool order_step(struct order *o, const struct step *s);
/* Words that a copy or kernel between two tensors handles. */
static inline uint32_t order_least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* A kernel or copy of this context can use the memory. */
bool order_reaches(enum context c, enum memory m, enum verb v);
/* The context's legacy stream. */
int order_legacy(const struct order *o, int context);

/* draw.c: fills p from its seed. `alone`: it may use a second thread. kinds.c: what of enum kind seeds have, and whether they are training
 * loops; 0: programs of streams, events and stream-ordered memory alone. Stretches of 8 seeds have the same. */
void draw_program(struct program *p, uint64_t seed, bool alone, unsigned kinds);
unsigned draw_kinds_of(uint64_t seed, bool *trains);
/* print.c: the calls, one a line, numbered as --without wants them. */
void print_program(const struct program *p);

/* run.c. A program notes a number at some of its steps: notes[step], 0 elsewhere. An error of the driver ends the process
 * with 3, after one line. */
void run_start(void);
void run_program(const struct program *p, uint64_t *notes);
/* Two at the same time, in two threads. */
void run_both(const struct program *p, uint64_t *p_notes, const struct program *q, uint64_t *q_notes);

#endif
