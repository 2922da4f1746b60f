/* device.h: the state of one device, passed to everything below the engine; there is no other state than this struct
 * and what belongs to the process (configuration, log, functions' layouts).
 *
 * Threads: a device is guarded by the engine's mutex (whoever answers a door takes it, state.h). Nothing here is used outside
 * policy/.
 * Errors: 0 or a negative errno below the engine; functions whose name ends in _drv return the driver's code.
 *
 * The invariants of memory are in memory/memory.h. Beside them: a slot LOST is rebuilt before anything reads it (plan/).
 */
#ifndef REMAT_POLICY_DEVICE_H
#define REMAT_POLICY_DEVICE_H

#include "policy/driver.h"
#include "policy/memory/fence.h"
#include "policy/memory/memory.h"
#include "policy/process/config.h"
#include "policy/process/counts.h"
#include "policy/process/log.h"
#include "policy/process/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rt_mode { MODE_OBSERVE, MODE_PROBE, MODE_PLAN, MODE_REHEARSE, MODE_ENFORCE, MODE_STANDBY };

struct slot;
struct func;
struct rt_op;

/* unmet.c: launches that found no room. */
enum { UNMET_GIVEN = 64 };
struct unmet {
    uint32_t unmade;    /* live slots that nobody has made */
    uint32_t due;       /* refusals of an allocation, in the place of a launch */
    bool trimmed;       /* since the last of them the program has given back what its pools had cached */
    unsigned t;         /* the launch's stream */
    pthread_t thread;   /* who launched it */
    uint64_t bytes, op_count; /* of the allocation that was refused last; when that was */
    uint64_t least_bytes;     /* a limit with room for the launch */
    uint32_t n_outputs; /* of the launch, that are live */
    uint64_t latest;    /* serial of the newest of these */
    uint32_t n_given;   /* what else the launch was given */
    struct unmet_given {
        uint32_t id;
        uint64_t serial;
    } given[UNMET_GIVEN];
};

struct device {
    const struct drv *drv;
    const struct config *cfg;
    struct status_device *status; /* NULL: nobody is told */
    bool ready;   /* set up */
    bool barred;  /* could not be set up where a maximum holds: it allocates nothing */
    bool gone;    /* its context was destroyed: only what is told at exit is left */
    bool primary; /* the first device of the process: it records traces */
    CUmemoryPool current_pool; /* of allocations that name none; NULL: to be asked for */
    CUdevice dev;
    CUcontext ctx;
    enum rt_mode mode;
    enum rt_mode whole_mode; /* in which the last whole iteration ran */

    struct memory mem;
    struct reached *reached; /* words in memory that point at managed memory (reach.c) */
    uint32_t n_reached, cap_reached;
    uint64_t learnings;  /* iterations that learning has begun with so far */
    uint64_t op_count; /* ops of the program so far, but for copies to the host (op_reads_for_host) */

    /* streams */
    CUstream *stream; /* by index, as many as there are rows (memory/stream.h) */
    uint64_t *seq;    /* things queued on each */
    bool blocking_streams;        /* the program has some besides the legacy one, see stream_acts() */
    int forbidden;                /* the driver's code, where a capture forbade what the op at hand needs; 0 */
    int broken;                   /* the driver's code, after it refused to order something; 0 */
    uint8_t doubt, doubt_met;     /* enum rt_doubt: a check has failed (process/check.h); what the engine has reacted to so far */
    uint64_t audited_op;          /* op_count when audit_memory() looked last */

    /* each file's own, made by its _init function */
    struct streams *streams;
    struct hashing *hashing;
    CUmodule code;    /* the device code of hashing.c, NULL: none could be loaded */
    bool code_loaded; /* it has been tried */
    struct probe *probe;
    struct learn *learn;
    struct campaign *campaign;
    struct planner *planner;
    struct stats_clock *clock;
    struct story *story;
    struct exec *ex;
    struct share *share; /* of a group's budget; NULL: this process is in none */
    struct verify *verify;
    uint32_t unhashed;   /* ranges that wait to be hashed with one launch (plan/verify.h) */
    struct op_scratch *op_scratch;

    CUdeviceptr read_scratch;    /* where replays read small operands from, one replay after another; 0: none */
    uint64_t read_scratch_bytes;
    struct slot *scratch_region; /* where large side operands of replays go, one replay after another; NULL none */
    bool ended; /* with its last context: whoever calls next in another one finds it set up anew (engine_here) */
    bool unconfined; /* something has run, or may at any time, that writes what no operand shows: graphs, kernels of other devices, kernels that
                        find addresses in host memory. Memory of the program's own is pinned for the planner then (learn.c) */
    struct unmet unmet;
    bool refused;            /* the op at hand found no room (ready_refused_drv) */
    bool stays; /* memory does, and what is allocated is the driver's (stays.h) */
    bool capturing;
    bool trying;             /* between trial_open() and trial_close(): decoys may be in use */
    uint64_t issue_ns; /* of the driver's own launch call, when timing */
    bool timing;
    struct stats st;
};

/* A driver call of memory management on the device `d`, counted for driver_memory_calls_steady. */
#define MEM_CALL(call) (d->st.mem_calls++, d->drv->call)

/* What is going on, in a word (DESIGN: observe, probe, plan, rehearse, enforce, swap). */
const char *device_mode_name(const struct device *d, enum rt_mode m);
/* Physical memory on the device now: chunks, the program's own, remat's own. */
uint64_t device_physical_bytes(const struct device *d);
/* What a driver's result code is called. */
/* Why nothing could be ordered: the driver's code. */
static inline int device_failure(const struct device *d) { return d->broken ? d->broken : d->forbidden ? d->forbidden : CUDA_ERROR_UNKNOWN; }
const char *device_code_name(struct device *d, int code);

#endif
