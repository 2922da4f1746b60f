/* run.h: the parts of the runtime that act on ops: plain running, learning, and a plan in force.
 *
 * Threads: under the engine's mutex. Errors: *_drv return the driver's code for the program; others 0 or a negative
 * errno.
 */
#ifndef REMAT_POLICY_RUN_H
#define REMAT_POLICY_RUN_H

#include "offline/model/plan.h"
#include "policy/op/op.h"

/* ---- residency of one op (ready.c) --------------------------------------------------------------------------- */

/* Makes everything the op touches resident and ordered before it. 0; -ENOMEM with the culprit said on stderr; -ENODATA
 * when something is LOST (its index in *lost). */
int ready_op(struct device *d, struct rt_op *op, uint32_t *lost);
FENCE_MUST_USE int ready_slot(struct device *d, struct slot *s, unsigned t);
/* The slot is reached in ways that no argument shows from now on: it is brought into memory, the host waits until anybody may
 * touch it, and it never leaves again. 0; -ENOMEM or another negative errno: then it is not pinned, and the call that asked for
 * it must fail. */
FENCE_MUST_USE int ready_pin(struct device *d, struct slot *s);
/* After the op was issued: who used what. `may_write`: per operand modes are not trusted, all may have been written. */
void ready_done(struct device *d, struct rt_op *op, bool may_write);
/* ready, issue, done. */
int run_plain_drv(struct device *d, struct rt_op *op);

/* ---- the recorded iteration and the plan in force (compile.c, exec.c, steps.c, rebuild.c, install.c) -------------------------------- */

struct saved_value { /* a value set aside on the host */
    int32_t buf, version;
    struct host_block *block;
    struct saved_value *next;
};

struct exec {
    struct record rec;
    struct rt_op *caps;      /* [n_ops] this iteration's calls, as they were made */
    uint32_t n_caps;
    uint32_t *op_of_trace;   /* [n_trace_ops] op here of each op of the trace that users get: holds are not in it */
    uint32_t n_trace_ops;
    uint64_t boundary_live_bytes; /* held by the program when op 0 is launched */

    struct plan plan;
    bool have_plan, installed, proved; /* proved: a whole iteration was rehearsed without a difference */
    uint32_t *step_at;       /* [n_ops + 2] steps before op i are step_at[i] .. step_at[i + 1] */
    struct plan_step *steps; /* without the program's own ops */
    int32_t *in_ver, *out_ver; /* per rec operand; -1 where none */
    int32_t *first_val;      /* [n_bufs + 1] (buf, version) -> index into producer */
    int32_t *producer;       /* op that makes the value; -1: older than the iteration */
    uint32_t *die_at;        /* [n_ops + 2] into die_list */
    int32_t *die_list;
    uint32_t *ref_at;        /* [n_ops + 2] into ref_list: buffers that nothing refers to after the steps before op i */
    int32_t *ref_list;
    int32_t *last_ref;       /* [n_bufs] last position (op index) at which anything refers to it; n_ops: survives */
    bool *keep, *rebuilt;    /* [n_bufs] in the plan's keep list; rebuilt by some replay */
    int32_t *alloc_slot;     /* [n_allocs] fixed slot of each allocation, -1 none */
    int32_t **home;          /* [n_allocs] chunk of each page by the static map, -1 none; NULL for small ones */
    CUdeviceptr *side_scratch; /* [n_operands] where a replay's side operand goes; 0 elsewhere */
    struct fence scratch_users; /* replays that used the scratch */
    int32_t *op_banned;      /* [n_ops] its replay differed in rehearsal */
    uint64_t *varies;        /* [n_ops] bit i: small parameter i is not the same in every iteration */

    /* the iteration in progress */
    uint32_t pos, alloc_k;
    bool ended;              /* the last op has run; the next allocation or op begins another iteration */
    int32_t *bind;           /* [n_bufs] slot id, -1 not yet */
    int32_t *res, *cur;      /* [n_bufs] version in memory or on the host, -1 none; the program's version, -1 freed */
    struct saved_value *saved; /* rehearsal and verification: what rebuilt values must equal */
    uint32_t bans, remaps_before;
    uint64_t swaps_before, mem_calls_before;
    uint64_t verify_turn;
    uint64_t left_op;        /* d->op_count when the plan was last left */
    uint32_t left_at;        /* and at which of its ops */
    uint32_t left_in_a_row;  /* times without one whole iteration in between */
    int code;                /* CUDA result to hand to the program when a value is gone; 0 */
};

/* The slot that stands for buffer b in this iteration; NULL while there is none. */
static inline struct slot *exec_slot(struct device *d, int32_t b) { return d->ex->bind[b] >= 0 ? &d->slots[d->ex->bind[b]] : NULL; }
/* steps.c: the plan's steps before op `at`, and the recorded iteration's frees there. */
int exec_take_steps(struct device *d, uint32_t at, unsigned t);
void exec_die(struct device *d, int32_t b);

/* Derives versions, producers, deaths from the record. */
int exec_index(struct device *d);
/* Takes a plan for the record: checks that it fits, compiles its steps. -EINVAL with a line. `own`: made for our own form
 * of the trace, with holds; else for the trace the user was given (same ops but for the holds). */
int exec_load_plan(struct device *d, const char *path, bool own);
void exec_clear(struct device *d);
/* A new iteration begins with the next op. */
void exec_begin(struct device *d);
/* The program's op: follows the plan, or diverges and runs it plainly. */
int exec_op_drv(struct device *d, struct rt_op *op);
/* The program allocates: its planned slot, or NULL. */
struct slot *exec_alloc(struct device *d, uint64_t bytes);
/* The program frees a slot that the plan knows. True: the plan keeps the memory; do not free it. */
bool exec_free(struct device *d, struct slot *s);
/* Called before every allocation and op: ends the iteration whose last op has run. */
void exec_turn(struct device *d);
/* Leaves the plan: everything the program holds is made readable or swapped, nothing stays LOST. */
void exec_diverge(struct device *d, const char *why, const struct rt_op *op);
/* Out of the plan: does this op begin an iteration that the plan knows? */
bool exec_may_resume(struct device *d, const struct rt_op *op);
/* That op (not yet run) begins an iteration under the plan; what it allocated is bound when it is seen. */
void exec_resume(struct device *d);
/* Runs op `op_index` again on stream t, with the arguments it had in this iteration. -ENODATA: an input is missing. */
int exec_replay(struct device *d, uint32_t op_index, unsigned t);

/* rebuild.c: every value that the program holds is in memory or on the host. 0, or a negative errno: some are gone. */
int rebuild_all(struct device *d, unsigned t);

/* install.c: slots for all allocations, chunks by interval colouring, mapped. The number of chunks that the static map
 * lacks (0: a steady iteration makes no memory call), or a negative errno. */
int install_plan(struct device *d);
/* Pages that had to take another chunk get theirs again. */
void install_repair(struct device *d);
void install_drop(struct device *d);
/* Scratch for the side operands of replays, as the record needs it. 0 or -ENOMEM. */
int install_scratch(struct device *d);

/* saved.c */
int saved_put(struct device *d, int32_t buf, int32_t version, struct slot *s);
struct saved_value *saved_find(struct device *d, int32_t buf, int32_t version);
void saved_clear(struct device *d);
int saved_restore(struct device *d, const struct saved_value *v, struct slot *s);

/* ---- learning (learn.c) ---------------------------------------------------------------------------------------- */

int learn_init(struct device *d);
bool learn_trace_missing(struct device *d); /* a trace was asked for, and no iteration has been recorded */
void learn_alloc(struct device *d, struct slot *s);
void learn_free(struct device *d, struct slot *s);
/* An op in the modes observe, probe, plan and fallback. */
int learn_op_drv(struct device *d, struct rt_op *op);
/* Before every allocation and op. */
void learn_turn(struct device *d);
/* The op (or call) cannot be seen through: learning starts over. */
void learn_reset(struct device *d);

/* ---- the planner (planner.c) ------------------------------------------------------------------------------------- */

int planner_init(struct device *d);
enum planner_state { PLANNER_IDLE, PLANNER_RUNNING, PLANNER_DONE, PLANNER_FAILED };
/* Writes the trace and starts `remat plan` on it for this many bytes. 0 or a negative errno. */
int planner_start(struct device *d, uint64_t limit_bytes, bool offload);
/* Where it stands, waiting at most `wait_ms`. DONE: planner_path() is the plan. */
enum planner_state planner_poll(struct device *d, int wait_ms);
const char *planner_path(struct device *d);
/* After FAILED: one line with the planner's own words. */
void planner_say_why(struct device *d);
void planner_stop(struct device *d);
/* Nothing more is asked of it: its files go. */
void planner_tidy(struct device *d);

#endif
