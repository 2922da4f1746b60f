/*
 * Inside the simulated GPU: the objects behind the driver's handles, and the rules all its files keep.
 *
 * One lock, gpu_lock, guards every field here unless a comment says otherwise; only kernels, copies, fills
 * and host callbacks run outside it. Each stream has a worker thread that executes its queue in order. What
 * an operation must wait for is fixed when it is enqueued, as pairs (stream, sequence number): stream.done
 * passing that number means the awaited work is over. The simulated clock is advanced at the same moment, so
 * it depends on the order of the calls alone (gpu_clock.c).
 *
 * Errors: driver calls and the helpers behind them return CUresult.
 */
#ifndef SIMGPU_GPU_H
#define SIMGPU_GPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/cuda_abi.h"
#include "tests/simgpu/simgpu.h"

/* ---- entry of every driver call ------------------------------------------------------------------------- */

typedef struct gpu_call {
    const char *name;
    struct gpu_call *next; /* list of the calls seen, pushed once, never removed */
    _Atomic uint64_t count;
    uint64_t from, profiled; /* count at the last cuProfilerStart; calls between the starts and stops before it (gpu_stats.c) */
    _Atomic uint64_t host_ns, wait_ns; /* taken so far, and waited in it */
    _Atomic int listed;
    uint64_t ns, ns_per_mib; /* of the host's time (gpu_costs.h); valid once listed, as the next two */
    bool launches;
    int fault; /* index of the row of SIMGPU_FAULTS for this call, -1: none; valid once listed */
} gpu_call;

enum gpu_need {
    GPU_NEED_NOTHING, /* allowed before cuInit */
    GPU_NEED_INIT,    /* cuInit was called; allowed without context and after a sticky error */
    GPU_NEED_OK,      /* cuInit was called; needs no context, but a current one must have no sticky error */
    GPU_NEED_CTX,     /* a context is current and has no sticky error */
};

/* Counts the call and checks what it needs. CUDA_SUCCESS, or what the call must return at once. */
CUresult gpu_enter(gpu_call *call, enum gpu_need need);

#define GPU_EXPORT __attribute__((visibility("default")))
#define GPU_CALL(symbol, need)                                     \
    static gpu_call gpu_call_here = { .name = #symbol };           \
    do {                                                           \
        CUresult entered_ = gpu_enter(&gpu_call_here, (need));     \
        if (entered_ != CUDA_SUCCESS)                              \
            return entered_;                                       \
    } while (0)

/* One call: GPU_API(cuCtxSynchronize, (void), GPU_NEED_CTX, body_expression) */
#define GPU_API(symbol, params, need, expression) \
    GPU_EXPORT CUresult symbol params             \
    {                                             \
        GPU_CALL(symbol, need);                   \
        return (expression);                      \
    }
/* The same call twice: as `symbol` stream 0 is the legacy stream, with the suffix the calling thread's. The
   expression sees that as `per_thread`. */
#define GPU_API_BOTH(symbol, suffix, params, expression) \
    GPU_EXPORT CUresult symbol params                    \
    {                                                    \
        GPU_CALL(symbol, GPU_NEED_CTX);                  \
        const bool per_thread = false;                   \
        (void)per_thread;                                \
        return (expression);                             \
    }                                                    \
    GPU_EXPORT CUresult symbol##suffix params            \
    {                                                    \
        GPU_CALL(symbol##suffix, GPU_NEED_CTX);          \
        const bool per_thread = true;                    \
        (void)per_thread;                                \
        return (expression);                             \
    }

void gpu_lock(void);
void gpu_unlock(void);
extern pthread_mutex_t gpu_mutex;

/* ---- configuration (gpu_config.c): read once by cuInit, constant afterwards -------------------------------- */

typedef struct {
    uint64_t mem_bytes, granularity_bytes;
    uint64_t va_bytes;            /* the largest reservation; 0: as the address space allows */
    uint64_t window_bytes;        /* addresses in all; 0: likewise */
    uint64_t align_bytes;         /* they begin at a multiple of it, if there are so many in a row; 0: at any place */
    double flops_per_s, bytes_per_s, host_bytes_per_s;
    double host_bytes_per_s_both; /* in both directions together; 0: twice as many */
    double host_wall_bytes_per_s; /* copies to and from the host take the wall clock as long; 0: no longer than they do */
    uint64_t launch_ns;
    uint64_t lazy_bytes; /* device memory that a kernel takes when it is first launched */
    int n_devices;                /* SIMGPU_DEVICES; mem_bytes is of each */
    bool costs;                   /* SIMGPU_COSTS: calls take the host's time */
    bool peers;                   /* SIMGPU_PEERS: devices can be given access to each other's memory */
    uint64_t queue;               /* SIMGPU_QUEUE: so many ops of a stream can be queued, and a launch waits for room; 0: any number */
    int n_copy_engines;           /* SIMGPU_COPY_ENGINES: one for each direction to the host, or one for both */
    uint64_t chaos_seed;
    bool chaos, adversary;        /* SIMGPU_CHAOS: either of its forms; =adversary[:SEED] */
    bool guard, guard_off;        /* SIMGPU_GUARD=1, =0 */
    bool no_host_vmm;             /* SIMGPU_HOST_VMM=0: cuMemCreate makes no memory of the host */
    bool pageable;                /* SIMGPU_HMM=1: kernels may follow addresses of the host's ordinary memory */
    const char *stats_path; /* NULL: none */
    const char *shared_path; /* SIMGPU_SHARED; NULL: the device is this process's alone */
} gpu_settings;
extern gpu_settings gpu_cfg;
enum { GPU_MAX_DEVICES = 8 };

/* Reads the environment. On nonsense prints one line and returns CUDA_ERROR_INVALID_VALUE. */
CUresult gpu_config_read(void);
/* Row of SIMGPU_FAULTS that names this call (exactly or without its version suffix), or -1. */
int gpu_config_fault_row(const char *call);
/* `call` is `base`, or a variant of it: cuMemAllocHost_v2 of cuMemAllocHost. */
bool gpu_config_names(const char *base, const char *call);
/* Counts one call against the row; true: this one fails. */
bool gpu_config_fault_hits(int row);

/* ---- statistics (gpu_stats.c) ---------------------------------------------------------------------------- */

typedef struct {
    _Atomic uint64_t kernels, faults;
    uint64_t mappings; /* that there are; under gpu_lock() */
    uint64_t physical_bytes[GPU_MAX_DEVICES];     /* under gpu_lock, as the next two */
    uint64_t peak_physical_bytes;                 /* of all devices together */
    uint64_t device_ns;                           /* under gpu_lock */
} gpu_counters;
extern gpu_counters gpu_stats;
extern _Atomic(gpu_call *) gpu_calls;

void gpu_stats_own(void); /* this process writes them */
void gpu_stats_write(void);
/* The one symbol exported beside the driver's: the simulated runtime calls it in front of _exit. */
void simgpu_write_stats(void);
/* cuProfilerStart, cuProfilerStop: the calls in between are counted apart. */
void gpu_stats_profile(bool on);
/* Writes the file if it is older than 100 ms: a program that leaves by _exit or a signal runs no destructor. */
void gpu_stats_refresh(void);
extern _Atomic int gpu_exiting; /* the process is in exit(): workers start nothing more */

/* ---- handles (gpu_handle.c) -------------------------------------------------------------------------------- */

enum gpu_kind {
    GPU_NO_HANDLE,
    GPU_CTX,
    GPU_STREAM,
    GPU_EVENT,
    GPU_MODULE,
    GPU_LINK,
    GPU_FUNCTION,
    GPU_LIBRARY,
    GPU_KERNEL,
    GPU_POOL,
    GPU_PHYS,
    GPU_ARRAY,
    GPU_GRAPH,
    GPU_GRAPH_NODE,
    GPU_GRAPH_EXEC,
    GPU_USER_OBJECT,
    GPU_GREEN,
    GPU_RESOURCES,
    GPU_SEMAPHORE,
    GPU_EXTERNAL_MEMORY,
    GPU_MIPMAP
};
/* Live handles are registered, so that a stale or invented one is an error code and not a crash. */
CUresult gpu_handle_add(const void *h, enum gpu_kind kind); /* CUDA_ERROR_OUT_OF_MEMORY */
void gpu_handle_drop(const void *h);
enum gpu_kind gpu_handle_kind(const void *h);
/* Calls f for every live handle of a kind; f may drop handles. */
void gpu_handle_each(enum gpu_kind kind, void (*f)(void *h, void *arg), void *arg);

/* ---- contexts, streams, events -------------------------------------------------------------------------- */

struct CUctx_st {
    CUdevice device;
    bool primary;
    atomic_bool alive; /* with `sticky` looked at by every call, without the lock */
    unsigned flags;
    int primary_refs;
    unsigned long long id;
    _Atomic CUresult sticky; /* set once by a fault, then returned by every later call */
    CUstream legacy;
    CUstream streams; /* all of this context, by next_in_ctx */
    size_t limits[16];
    CUfunc_cache cache_config;
    CUsharedconfig shared_config;
    unsigned peers;   /* devices whose memory kernels of this context may use (cuCtxEnablePeerAccess): bits */
    int attached;     /* cuCtxCreate, cuCtxAttach */
    CUcontext of;     /* of a green context: the primary one, whose is all but its streams; NULL: of no green one */
    CUgreenCtx green; /* likewise */
    CUcontext greens, next_green; /* of a primary context: its green ones, ended ones too */
};

typedef struct {
    CUstream stream; /* holds a reference */
    uint64_t seq;
} gpu_dep;

enum gpu_engine { GPU_ENGINE_NONE, GPU_ENGINE_COMPUTE, GPU_ENGINE_HTOD, GPU_ENGINE_DTOH };

typedef struct gpu_op {
    struct gpu_op *next;
    uint64_t seq;
    gpu_dep *deps;
    unsigned n_deps;
    bool touches_memory;            /* runs under the fault guard */
    bool runs_when_failed;          /* executed even after a sticky error */
    bool skipped;                   /* was not executed: the context had failed */
    unsigned reaches;               /* devices whose memory it may use, where that is not its stream's to say (a step of a graph): bits; 0 */
    CUgraphNodeType node_type;      /* what it is in a graph (0, a kernel, unless said otherwise) */
    enum gpu_engine engine;         /* this and the next two: for the adversary alone */
    uint64_t order;                 /* over all streams, by enqueueing */
    uint64_t since_ns;              /* real time of enqueueing */
    void (*exec)(struct gpu_op *);  /* on the worker, unlocked; NULL: nothing to do */
    void (*retire)(struct gpu_op *);/* under gpu_lock, after it ran or was skipped; NULL: free(op) */
} gpu_op;

/* How often an event or a stream was asked whether it is done with nothing enqueued in between. */
typedef struct {
    uint64_t order;
    unsigned times;
} gpu_asked;

/* Nodes of a graph; a set, in no order. */
typedef struct gpu_nodes {
    CUgraphNode *at;
    unsigned n, room;
} gpu_nodes;

struct CUstream_st {
    CUcontext ctx;
    CUstream next_in_ctx;
    unsigned flags;
    int priority;
    unsigned long long id;
    bool is_legacy, is_per_thread;
    bool blocking;  /* ordered with the legacy stream; false for CU_STREAM_NON_BLOCKING and the legacy stream */
    bool closing;   /* destroyed: the worker ends once the queue is empty */
    bool has_worker;
    int refs;       /* handle, worker, events, deps */
    gpu_op *head, *tail;
    uint64_t enqueued, done; /* sequence numbers; done <= enqueued */
    uint64_t end_ns;         /* simulated time at which everything enqueued so far is over */
    uint64_t chaos;          /* state of this stream's random numbers */
    CUstreamAttrValue hints[16]; /* by attribute id */
    struct gpu_capture *capture; /* that it takes part in (gpu_graph.h); NULL: none */
    CUstream capture_next;       /* another stream of it, of whichever device */
    gpu_nodes capture_deps;      /* what its next operation depends on there */
    /* for the adversary alone */
    CUstream next_busy;
    uint64_t demanded, spread; /* up to where the host wants it done; up to where that was said to what comes before */
    uint64_t granted_ns;       /* real time */
    bool is_busy, granted, set_aside;   /* has a queue; its first operation may run, or runs; without keeping others */
    gpu_asked asked;
    pthread_cond_t work;
};

struct CUevent_st {
    CUcontext ctx;
    unsigned flags;
    CUstream stream; /* of the last record, holds a reference; NULL: never recorded */
    uint64_t seq;
    uint64_t ns;     /* simulated time of the last record */
    cuuint64_t capture_id; /* not 0: the last record was in that capture */
    gpu_nodes captured;    /* and stands for these nodes */
    gpu_asked asked;
    struct gpu_event_page *page; /* of an event that two processes have (gpu_outside.c); NULL: this one's alone */
};

/* Events of two processes (gpu_outside.c). Under gpu_lock, but for the first. */
struct gpu_event_page {
    _Atomic uint64_t recorded, done; /* by whichever process: its latest record, and the latest that has passed */
    int pid, fd; /* of the process that showed it */
};
void gpu_event_page_drop(struct gpu_event_page *p);
/* A fresh event with that page, which is the event's then. */
CUresult gpu_event_of_page(struct gpu_event_page *p, CUevent *out);

/* Whose memory, arrays and modules those of this context are. */
static inline CUcontext gpu_ctx_owner(CUcontext ctx) { return ctx->of ? ctx->of : ctx; }
/* gpu_green.c's: a green context that keeps its device's primary one; it has no handle yet. Under gpu_lock. */
CUresult gpu_ctx_green_begin(CUdevice dev, CUgreenCtx green, CUcontext *out);
void gpu_ctx_green_end(CUcontext ctx);
/* The calling thread's current context, NULL: none. */
CUcontext gpu_ctx_current(void);
/* What every call in this context answers first: that it was destroyed, or has failed; CUDA_SUCCESS. Needs no lock: a thread that looks
   which device it is on must not wait for those that launch. */
CUresult gpu_ctx_health(CUcontext ctx);
bool gpu_device_known(CUdevice dev);
void gpu_ctx_fail(CUcontext ctx, CUresult why);

/* Resolves a stream handle: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or one of cuStreamCreate. NULL: invalid
   (the call returns CUDA_ERROR_INVALID_HANDLE). Under gpu_lock. */
CUstream gpu_stream_resolve(CUstream handle, bool per_thread);
CUstream gpu_stream_new(CUcontext ctx, unsigned flags, int priority);
void gpu_stream_ref(CUstream s);
void gpu_stream_unref(CUstream s);
/* Takes the handle away; work already enqueued still runs. */
void gpu_stream_close(CUstream s);
/* Records the stream's state in an event. */
void gpu_event_capture(CUevent e, CUstream s);
/* All that a wait on this stream means: the legacy stream stands for all blocking ones too. */
CUresult gpu_stream_wait_host(CUstream s);
bool gpu_stream_idle(CUstream s);
/* Waits for everything in a context. */
CUresult gpu_ctx_wait_host(CUcontext ctx);

/* ---- execution (gpu_exec.c) -------------------------------------------------------------------------------- */

/* Appends op to s and returns its sequence number. Adds the legacy stream's ordering rules to op->deps and
   places it on the simulated clock for ns on that engine. Takes op. */
uint64_t gpu_exec_enqueue(CUstream s, gpu_op *op, enum gpu_engine engine, uint64_t ns);
/* A zeroed op of the given size (>= sizeof(gpu_op)); NULL: no memory. */
void *gpu_exec_op(size_t bytes);
/* Adds (s, seq) to what op waits for. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpu_exec_depend(gpu_op *op, CUstream s, uint64_t seq);
/* Blocks the calling thread until s has done seq, or its context failed. Drops gpu_lock while it sleeps. */
CUresult gpu_exec_wait(CUstream s, uint64_t seq);
/* There is room for one more op in the stream's queue, after a wait where there was none. */
void gpu_exec_wait_for_room(CUstream s);
/* Waits until nothing of ctx is queued or running, failed or not. */
void gpu_exec_drain(CUcontext ctx);
/* True on a worker inside a kernel or a host callback, where driver calls are forbidden. */
bool gpu_exec_inside(void);
/* On a worker: s stands still until that is met, its context fails or the process exits (gpu_memop.c). */
void gpu_memop_until(CUstream s, bool (*met)(const void *), const void *what);
/* Devices whose memory an operation may use that is enqueued in s: bits. Under gpu_lock, or on the worker of s. */
unsigned gpu_exec_reaches(const gpu_op *op, CUstream s);
/* Wakes whoever waits for s->done or a sticky error. */
void gpu_exec_progress(void);
/* Sleeps until something is done, ns at most. Drops gpu_lock meanwhile. */
void gpu_exec_wait_a_moment(uint64_t ns);
void gpu_exec_stop_for_exit(void);

/* ---- the adversary (gpu_adversary.c): without SIMGPU_CHAOS=adversary these do nothing ------------------------- */

/* Lets the next operation run, if one may. */
void gpu_adversary_choose(void);
/* Called for every operation as it is enqueued, and when it is over and taken off its queue. */
void gpu_adversary_enqueued(CUstream s, gpu_op *op, enum gpu_engine engine);
void gpu_adversary_finished(CUstream s);
/* On the worker of s, which has an operation: returns when that may run. Drops gpu_lock meanwhile. */
void gpu_adversary_await_grant(CUstream s);
/* The operation that runs in s does not end before others run. */
void gpu_adversary_set_aside(CUstream s);
/* The host wants s done up to seq; everything. */
void gpu_adversary_demand(CUstream s, uint64_t seq);
void gpu_adversary_demand_all(void);
bool gpu_adversary_is_demanded(CUstream s); /* what runs in s is */
/* Counts a query that is answered with "not ready"; true: it was asked often enough, demand it. */
bool gpu_adversary_asked(gpu_asked *a);
/* At the entry of a driver call, not under gpu_lock: waits for what has been let go. */
void gpu_adversary_settle(void);

/* ---- simulated clock (gpu_clock.c) -------------------------------------------------------------------------- */

/* Places ns of work that may start at ready_ns on an engine of a device; returns its end. */
uint64_t gpu_clock_place(CUdevice dev, enum gpu_engine engine, uint64_t ready_ns, uint64_t ns);
uint64_t gpu_clock_kernel_ns(uint64_t flops, uint64_t bytes);
uint64_t gpu_clock_device_ns(uint64_t bytes);
uint64_t gpu_clock_host_ns(uint64_t bytes);
uint64_t gpu_clock_host_wall_ns(uint64_t bytes); /* by the clock on the wall; 0: none is asked for */
/* The calling thread's simulated time: it cannot launch before what it has waited for was over. */
uint64_t gpu_clock_host_now(void);
void gpu_clock_host_reached(uint64_t ns);
/* The calling thread has worked so long. */
void gpu_clock_host_works(uint64_t ns);
/* Of the thread that is furthest. */
uint64_t gpu_clock_host_latest(void);
/* So long the engines for computing, copies to the device, and copies to the host have worked, on all devices. */
void gpu_clock_busy(uint64_t ns[3]);

/* ---- physical memory and address space (gpu_phys.c, gpu_range.c) ------------------------------------------- */

struct gpu_phys {
    uint64_t offset, bytes;  /* extent of the memory file */
    uint64_t charged_bytes;  /* counted against SIMGPU_MEM */
    CUdevice device;
    int refs;                /* handle references and mappings */
    int handle_refs;         /* cuMemCreate, retain, import */
    CUmemAllocationProp prop;
    int fd;                  /* a file of its own when it may be exported, else -1 */
    bool peers;              /* kernels of other devices may use it, too */
    bool on_host, managed;   /* the host may use it at its address; it is managed memory */
};
typedef struct gpu_phys gpu_phys;

CUresult gpu_phys_init(void);
/* The descriptor of the file that it is a part of. */
int gpu_phys_file(const gpu_phys *p);
/* Takes physical memory: bytes are rounded up to whole host pages, charged_bytes counted. The result has one
   reference. CUDA_ERROR_OUT_OF_MEMORY when SIMGPU_MEM would be exceeded. */
CUresult gpu_phys_take(CUdevice dev, uint64_t bytes, uint64_t charged_bytes, bool exportable, gpu_phys **out);
void gpu_phys_unref(gpu_phys *p);
/* Counts bytes that have no extent (managed memory). */
CUresult gpu_phys_charge(CUdevice dev, uint64_t bytes);
void gpu_phys_uncharge(CUdevice dev, uint64_t bytes);

/* gpu_shared.c: the device's memory is counted over several processes. Without SIMGPU_SHARED all is granted. */
CUresult gpu_shared_init(void);
CUresult gpu_shared_charge(CUdevice dev, uint64_t bytes);
void gpu_shared_uncharge(CUdevice dev, uint64_t bytes);
void gpu_shared_look(void); /* what ended processes held is free from now on */
/* Bytes that nobody has taken. */
uint64_t gpu_phys_room(CUdevice dev);
/* Makes [va, va + bytes) show p from its byte `offset` on, with the given access; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpu_phys_map(CUdeviceptr va, uint64_t bytes, gpu_phys *p, uint64_t offset, CUmemAccess_flags access);
/* From now on this memory is open to kernels of more devices than its own, or no longer; what shows it is told by gpu_phys_reopen(). */
void gpu_phys_set_peers(gpu_phys *p, bool any);
void gpu_phys_reopen(CUdeviceptr va, uint64_t bytes, const gpu_phys *p);
/* Makes the range fault again. */
void gpu_phys_unmap(CUdeviceptr va, uint64_t bytes);
/* Every device address lies in [base, base + bytes). Constant after gpu_phys_init. */
extern uintptr_t gpu_window_base, gpu_window_bytes;
/* Called around everything a worker does with device memory: opens that of these devices (bits), and what is open to several (SIMGPU_GUARD,
   protection keys; without keys that of all). Copies reach every device: they may go through the host. */
#define GPU_EVERY_DEVICE (~0u)
void gpu_phys_open(unsigned devices);
void gpu_phys_close(void);

enum gpu_range_kind {
    GPU_RANGE_LINEAR,      /* cuMemAlloc, cuMemAllocPitch */
    GPU_RANGE_POOL,        /* stream-ordered */
    GPU_RANGE_POOL_FREE,   /* stream-ordered, freed, kept for reuse: no allocation to any question */
    GPU_RANGE_RESERVATION, /* cuMemAddressReserve */
    GPU_RANGE_MANAGED,     /* cuMemAllocManaged */
    GPU_RANGE_HOST,        /* cuMemAllocHost, cuMemHostAlloc */
    GPU_RANGE_REGISTERED,  /* cuMemHostRegister */
    GPU_RANGE_GRAPH,       /* allocated by a graph (gpu_graph.h) */
    GPU_RANGE_IMPORTED     /* of another process, or another interface (gpu_import.c) */
};

enum gpu_import { GPU_IMPORT_HANDLE, GPU_IMPORT_EXTERNAL, GPU_IMPORT_POOL };

/* Where memory of another process lies: what a handle says. */
struct gpu_shown {
    int pid, fd; /* the file, by the descriptor of its owner */
    CUdevice device;
    unsigned long long id; /* of the allocation, and of no other one of that process */
    uint64_t offset, bytes;
};

typedef struct gpu_mapping { /* one cuMemMap */
    CUdeviceptr va;
    uint64_t bytes, offset;
    gpu_phys *phys;
    CUmemAccess_flags access;
    unsigned long long id;
} gpu_mapping;

typedef struct gpu_range {
    struct gpu_range *left, *right; /* treap by start */
    uint64_t weight;
    CUdeviceptr start;
    uint64_t bytes; /* as the program asked for it */
    uint64_t span;  /* address space it occupies, >= bytes */
    enum gpu_range_kind kind;
    CUcontext ctx;
    CUdevice device; /* whose memory it is */
    unsigned flags; /* of host allocation or registration */
    unsigned long long id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
    int sync_memops;
    gpu_phys *phys;
    enum gpu_import import; /* this and the next two: of an imported one */
    struct gpu_shown shown;
    unsigned opened;        /* how often, by its handle */
    gpu_mapping **slots; /* of a reservation: one pointer per granule, lazily backed */
    uint64_t n_slots, n_mapped;
    CUmemoryPool pool;
    uint64_t charged_bytes; /* of a stream-ordered allocation */
    CUstream order;         /* of a stream-ordered allocation: where it was allocated or freed; a reference */
    uint64_t order_seq;
    bool appeared;          /* the stream has come to the allocation */
    bool free_reached;      /* the stream has come to the free */
    struct gpu_range *older, *newer;       /* freed ones, by age */
    struct gpu_range *same_prev, *same_next; /* freed ones of the same size, the latest first */
} gpu_range;

gpu_range *gpu_range_find(CUdeviceptr p);      /* the range that contains p (in its span), NULL: none */
gpu_range *gpu_range_overlap(CUdeviceptr p, uint64_t bytes); /* first range that overlaps */
gpu_range *gpu_range_next(CUdeviceptr p);      /* first range that starts at or after p */
void gpu_range_insert(gpu_range *r);
void gpu_range_remove(gpu_range *r);
/* A free piece of the device window; 0: none. `hint` is tried first when not 0. */
CUdeviceptr gpu_range_address(uint64_t span, uint64_t alignment, CUdeviceptr hint);
unsigned long long gpu_range_new_id(void);
/* Pinned host memory that covers all of [p, p + bytes), as asynchronous copies want it. */
bool gpu_range_is_pinned(const void *p, uint64_t bytes);
bool gpu_range_is_device(CUdeviceptr p);
/* It is memory of the host, pinned; it is managed memory. */
bool gpu_range_is_host(const gpu_range *r);
bool gpu_range_is_managed(const gpu_range *r);
/* What another process needs to map it. */
struct gpu_shown gpu_range_shown(const gpu_range *r);
/* Maps memory that somebody has shown, for the current context. Not under gpu_lock. CUDA_ERROR_INVALID_VALUE: its owner has gone. */
CUresult gpu_import_range(const struct gpu_shown *shown, enum gpu_import how, CUdeviceptr *out);
gpu_mapping *gpu_range_mapping(const gpu_range *reservation, CUdeviceptr p);

/* Frees what a context owns when it is destroyed. */
/* What an allocation of so many bytes takes of the device's memory. */
uint64_t gpu_charged(uint64_t bytes);
/* cuMemAlloc. Not under gpu_lock. */
CUresult gpu_alloc_linear(CUdeviceptr *out, size_t bytes);
/* Takes a linear or managed allocation away, whose users are done. */
void gpu_alloc_release(gpu_range *r);
void gpu_alloc_free_ctx(CUcontext ctx);
/* An array: rows of row_bytes, `rows` rows a slice, in device memory that begins at va. */
struct CUarray_st {
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUcontext ctx;
    CUdeviceptr va;
    size_t element_bytes, row_bytes, rows, slices;
    CUmipmappedArray of; /* that it is a level of; NULL: of none */
};
/* Levels that lie one behind the other, each an array of its own. */
enum { GPU_MOST_LEVELS = 18 };
struct CUmipmappedArray_st {
    CUcontext ctx;
    CUdeviceptr va;
    unsigned n_levels;
    struct CUarray_st level[GPU_MOST_LEVELS];
};
void gpu_array_free_ctx(CUcontext ctx);
void gpu_pool_free_ctx(CUcontext ctx);
void gpu_module_free_ctx(CUcontext ctx);
/* Frees one stream-ordered allocation now (cuMemFree). */
CUresult gpu_pool_free_now(gpu_range *r);
/* Pools give back so much of what they hold and nobody uses, or all of it. */
void gpu_pool_give_way(CUdevice dev, uint64_t bytes);
void gpu_pool_host_synced(void);
uint64_t gpu_round_up(uint64_t n, uint64_t to);

/* ---- faults (gpu_fault.c) ---------------------------------------------------------------------------------- */

void gpu_fault_install(void);
/* Runs op->exec. CUDA_ERROR_ILLEGAL_ADDRESS: it touched memory that is not mapped; or what gpu_fault_leave was told. */
CUresult gpu_fault_run(gpu_op *op);
/* Inside of op->exec, on its own thread: ends it here. */
_Noreturn void gpu_fault_leave(CUresult why);
/* Names the calling thread so that threads a kernel starts are recognised. */
void gpu_fault_name_thread(void);

/* ---- modules (gpu_module.c) -------------------------------------------------------------------------------- */

struct gpu_code;
struct CUfunc_st {
    const simgpu_kernel *k;
    struct gpu_code *code; /* machine code, bound by name (gpu_code.h); NULL: of a module of our ABI */
    CUmodule module;
    size_t *offsets;     /* n_params */
    size_t param_total;  /* bytes of an `extra` buffer */
    int max_dynamic_shared, carveout;
    int loaded_on; /* device + 1 where its lazy loading took memory; 0: not loaded */
    CUkernel kernel;     /* NULL when the module was not loaded as a library */
};
struct CUkern_st {
    CUlibrary library;
    CUfunction function;
};
/* Bytes of dynamic shared memory that a launch may ask for (gpu_function.c). */
int gpu_function_dynamic_shared(const struct CUfunc_st *f);
/* What a launch may name: a CUfunction, or a CUkernel passed as one. NULL: neither. */
CUfunction gpu_module_function(CUfunction f);

/* Symbols for cuGetProcAddress. */
extern int gpu_driver_version;

#endif
