/* modes.h: which mode follows which, and how long nothing is learnt after what came to nothing. The one writer of device.mode, and the state
 * that the files of this room share.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_CAMPAIGN_MODES_H
#define REMAT_POLICY_CAMPAIGN_MODES_H

#include "policy/campaign/account.h"
#include "policy/device.h"

/* earlier_plan.c's: the plan that later runs may have. */
struct earlier_plan {
    uint64_t key[2];
    bool sought; /* for this record; also where none is to be */
    char *text;  /* [bytes] of the plan that has been taken last, until it is kept; NULL: there is none to keep */
    size_t bytes;
};

struct campaign {
    int tries;
    uint64_t budget_bytes;
    uint64_t reserved_bytes; /* not to be planned with: what has come to hold memory beside a plan may hold more */
    uint64_t beside_bytes; /* not to be planned with: what any map takes beside what the planner counts (install.c) */
    struct {                /* of the plans that the planner has given for this record, the one to fall back on */
        char path[640];     /* "": none */
        int lacking;        /* chunks that its map lacks */
        int64_t planned_ns;
        bool copies;        /* to the host */
    } best;
    bool first;             /* a plan is asked for that is made in a moment, to be followed while a good one is made */
    bool with_copies;       /* recompute alone cannot meet the limit: copies to the host take part */
    unsigned patience;      /* times the planner's usual seconds */
    bool wait;              /* the planner has just been started */
    bool beside;            /* the best plan so far is in force while a better one is asked for */
    uint64_t boundary_op;   /* device.op_count at which the latest iteration like the recorded one ended, not under a plan, or its plan was asked for */
    uint64_t whole_op;      /* .. at which the latest one under a plan ended */
    uint64_t looked_op;     /* of the latest look at the planner */
    uint64_t paused_op, paused_here_ns, paused_ns, pause_began_ns; /* the latest pause for an answer: at which device.op_count; how long there; of all
                                                                      together; when its latest part began */
    uint64_t quiet_until;   /* device.op_count before which nothing is learnt */
    uint64_t quiet_period;  /* ops of the iteration that came to nothing last */
    uint64_t backoff;       /* iterations of quiet after the next failure; doubles */
    uint64_t left_op;       /* device.op_count when the plan was last left */
    uint32_t left_in_a_row; /* times without one whole iteration in between */
    uint64_t left_ops;      /* ops that were followed before the plan was left, of these times together */
    uint32_t left_next;     /* of these times, those when the plan was followed from right after the recorded iteration's last op: such a batch comes once in a row */
    bool follows_next;      /* it is followed so now */
    bool holds_less;        /* the iteration under the plan was begun with less memory held than the recorded one: gradients are not there yet */
    unsigned less_in_vain;  /* times in a row that such an iteration was left */
    bool lesson_is_near;    /* copies have cost half of what makes a first lesson worth its time; always true where that is not weighed */
    bool given_up;          /* a plan was, since it was left too often */
    uint32_t left_untried, left_untried_at; /* times that the plan was left at this launch, since no trial could tell what it does */
    uint32_t left_with_others; /* times that the plan was left, not at its first op, with few whole iterations in between */
    uint32_t whole_since;      /* whole iterations since the latest of these */
    uint32_t untried;       /* plans made anew for want of a trial, of this record */
    uint32_t outdated;      /* questions dropped in a row since the program has moved on from what was recorded */
    bool followed;          /* a whole iteration has followed a plan since the last one was recorded */
    uint32_t starts;        /* of learning that came to nothing, in a row */
    uint64_t last_sig;      /* of the last op outside a plan */
    uint64_t grow_at, grow_wait; /* device.st.iterations; iterations between two growths */
    uint64_t gave_nothing_at;    /* device.op_count at which a neighbour asked and nothing could move */
    uint32_t moves;         /* static maps made anew for this record */
    struct earlier_plan earlier;
    struct account account; /* what all this costs and saves */
    bool stopped;           /* see campaign_stop() */
    bool refused_given;     /* --plan names one that cannot be followed here */
};

/* A plan that the user has given is to be followed, and none is made. */
static inline bool modes_have_given_plan(const struct device *d) { return d->cfg->plan_path[0] && !d->campaign->refused_given; }

int modes_init(struct device *d);
void modes_go(struct device *d, enum rt_mode to);
/* A plan is being followed: allocations and frees are its. */
static inline bool modes_follow_plan(const struct device *d) { return d->mode == MODE_REHEARSE || d->mode == MODE_ENFORCE; }
/* A plan is worth its while: memory has been short, and no quiet is kept. */
bool modes_wants_plan(const struct device *d);
/* `--policy plan` asks for plans and nothing else: the program stands still until they are there. */
bool modes_wait_for_plans(const struct device *d);

/* Nothing is learnt for some iterations of `period` ops, or of what was learnt last; for twice as many the next time. */
void modes_quiet_after(struct device *d, uint64_t period);
void modes_quiet(struct device *d);

/* Nobody waits any more for what the planner was asked: it ends, and its files go. */
void modes_forget_question(struct device *d);
/* What was learnt is of no use, or was not learnt to its end. _again: the finder looks at what comes from now on alone. */
void modes_observe(struct device *d);
void modes_observe_again(struct device *d);
/* The recorded iteration, and what was asked about it, in whatever mode that is. */
void modes_forget_iteration(struct device *d);
/* No plan comes of what was learnt: quiet, and then it is learnt anew. */
void modes_no_plan(struct device *d);

#endif
