/* device.h: the state of one device, passed to everything below the engine; there is no other state than this struct
 * and what belongs to the process (configuration, log, functions' layouts).
 *
 * Threads: a device is guarded by the engine's mutex (taken where a door is answered, engine_state.h). Nothing here is used outside
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
    uint32_t unmade;    /* live slots that are unmade (unmet.h) */
    uint32_t due;       /* refusals of an allocation still to come, in the place of a launch */
    bool trimmed;       /* since the latest refusal the program has given back memory that its pools had cached */
    unsigned t;         /* the launch's stream */
    pthread_t thread;   /* the thread that made the launch */
    uint64_t bytes, op_count; /* bytes of the allocation that was refused last; device.op_count at that time */
    uint64_t least_bytes;     /* a limit with room for the launch */
    uint32_t n_outputs; /* live outputs of the launch */
    uint64_t latest;    /* serial of the newest output */
    uint32_t n_given;   /* other buffers that the launch was given */
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
    bool barred;  /* could not be set up where a maximum holds: the device allocates nothing */
    bool gone;    /* its context was destroyed: only figures to be told at exit are left */
    bool primary; /* the first device of the process: it records traces */
    CUmemoryPool current_pool; /* pool of allocations that name none; NULL: yet to be asked for */
    CUdevice dev;
    CUcontext ctx;
    enum rt_mode mode;
    enum rt_mode whole_mode; /* mode in which the last whole iteration ran */

    struct memory mem;
    struct reached *reached; /* words in memory that point at managed memory (reach.c) */
    uint32_t n_reached, cap_reached;
    uint64_t learnings;  /* lessons begun so far */
    uint64_t op_count; /* ops of the program so far, but for copies to the host (op_reads_for_host) */

    /* streams */
    CUstream *stream; /* by index, as many as there are rows (memory/stream.h) */
    uint64_t *seq;    /* items queued on each stream */
    bool blocking_streams;        /* the program has blocking streams besides the legacy one, see stream_acts() */
    int forbidden;                /* the driver's code, if a capture forbade a call that the op at hand needs; else 0 */
    int broken;                   /* the driver's code, after it refused to order something; else 0 */
    uint8_t doubt, doubt_met;     /* enum rt_doubt: a check has failed (process/check.h); the doubt that the engine has reacted to */
    uint64_t audited_op;          /* op_count when audit_memory() looked last */

    /* state of single files, each made by its file's _init function */
    struct streams *streams;
    struct hashing *hashing;
    CUmodule code;    /* the device code of hashing.c, NULL: none could be loaded */
    bool code_loaded; /* loading `code` has been tried */
    struct probe *probe;
    struct learn *learn;
    struct campaign *campaign;
    struct planner *planner;
    struct stats_clock *clock;
    struct story *story;
    struct exec *ex;
    struct share *share; /* in a group's budget; NULL: this process is in no group */
    struct verify *verify;
    uint32_t unhashed;   /* ranges that wait to be hashed with one launch (plan/verify.h) */
    struct op_scratch *op_scratch;

    CUdeviceptr read_scratch;    /* memory from which replays read small operands, one replay after another; 0: none */
    uint64_t read_scratch_bytes;
    struct slot *scratch_region; /* slot for large side operands of replays, one replay after another; NULL: none */
    bool ended; /* the device ended with its last context: the next call in another context sets it up anew (engine_here) */
    bool unconfined; /* work has run, or may at any time, that writes memory no operand shows: graphs, kernels of other devices, kernels that
                        find addresses in host memory. Memory of the program's own is pinned for the planner then (learn.c) */
    struct unmet unmet;
    bool refused;            /* the op at hand found no room (ready_refused_drv) */
    bool stays; /* memory stays where it is, and new memory is the driver's (stays.h) */
    bool capturing;
    bool trying;             /* between trial_open() and trial_close(): decoys may be in use */
    uint64_t issue_ns; /* time of the driver's own launch call, if `timing` */
    bool timing;
    struct stats st;
};

/* A driver call of memory management on the device `d`, counted for driver_memory_calls_steady. */
#define MEM_CALL(call) (d->st.mem_calls++, d->drv->call)

/* The mode's name (DESIGN: observe, probe, plan, rehearse, enforce, swap). */
const char *device_mode_name(const struct device *d, enum rt_mode m);
/* Physical memory on the device now: chunks, the program's own, remat's own. */
uint64_t device_physical_bytes(const struct device *d);
/* Why nothing could be ordered: the driver's code. */
static inline int device_failure(const struct device *d) { return d->broken ? d->broken : d->forbidden ? d->forbidden : CUDA_ERROR_UNKNOWN; }
/* The name of a driver's result code. */
const char *device_code_name(struct device *d, int code);

#endif
