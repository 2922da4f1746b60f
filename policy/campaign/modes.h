/* modes.h: which mode follows which, and how long nothing is learnt after a lesson or plan that came to nothing. The one writer of device.mode, and the state
 * that the files of this room share.
 *
 * Threads: under the engine's mutex. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_CAMPAIGN_MODES_H
#define REMAT_POLICY_CAMPAIGN_MODES_H

#include "policy/campaign/account.h"
#include "policy/device.h"

/* Of earlier_plan.c: the plan to keep for later runs. */
struct earlier_plan {
    uint64_t key[2];
    bool sought; /* an earlier plan has been looked for, for this record; also true where none is to be used */
    char *text;  /* [bytes] the plan taken last, until it is kept; NULL: none to keep */
    size_t bytes;
};

struct campaign {
    int tries;
    uint64_t budget_bytes;
    uint64_t reserved_bytes; /* left out of the budget: memory that something outside a plan has come to hold, and may hold more of */
    uint64_t beside_bytes; /* left out of the budget: memory that any plan's map takes beyond what the planner counts (install.c) */
    struct {                /* the best plan that the planner has given for this record, to fall back on */
        char path[640];     /* "": none */
        int lacking;        /* chunks that the plan's map lacks */
        int64_t planned_ns;
        bool copies;        /* some step copies to the host */
    } best;
    bool first;             /* the plan asked for is one made in a moment, to be followed while a good one is made */
    bool with_copies;       /* recompute alone cannot meet the limit: copies to the host take part */
    unsigned patience;      /* the planner's time, in multiples of its usual seconds */
    bool wait;              /* the planner has just been started */
    bool beside;            /* the best plan so far is in force while a better one is asked for */
    uint64_t boundary_op;   /* device.op_count at which the latest iteration like the recorded one ended, not under a plan, or a plan for it was asked for */
    uint64_t whole_op;      /* device.op_count at which the latest iteration under a plan ended */
    uint64_t looked_op;     /* device.op_count of the latest look at the planner */
    uint64_t paused_op, paused_here_ns, paused_ns, pause_began_ns; /* pauses for the planner's answer: device.op_count of the latest; time paused at that
                                                                      op; of all pauses together; when the latest began */
    uint64_t quiet_until;   /* device.op_count before which nothing is learnt */
    uint64_t quiet_period;  /* ops of the latest iteration of which no plan came */
    uint64_t backoff;       /* iterations of quiet after the next failure; doubles */
    uint64_t left_op;       /* device.op_count when the plan was last left */
    uint32_t left_in_a_row; /* times that the plan was left without one whole iteration in between */
    uint64_t left_ops;      /* ops followed before the plan was left, summed over left_in_a_row */
    uint32_t left_next;     /* how many of left_in_a_row took the plan up right after the recorded iteration's last op: of an evaluation's batches only the first does */
    bool follows_next;      /* the plan was last taken up right after the recorded iteration's last op */
    bool holds_less;        /* the iteration under the plan began with less memory held than the recorded one: gradients are not there yet */
    unsigned less_in_vain;  /* iterations with holds_less that were left, in a row */
    bool lesson_is_near;    /* copies have cost half of what makes a first lesson worth its time; always true where lessons are not weighed */
    bool given_up;          /* a plan has been given up, since it was left too often */
    uint32_t left_untried, left_untried_at; /* times that the plan was left at launch left_untried_at, since no trial could tell what that launch does */
    uint32_t left_with_others; /* times that the plan was left, not at its first op, with few whole iterations in between */
    uint32_t whole_since;      /* whole iterations since the latest departure that left_with_others counts */
    uint32_t untried;       /* plans made anew for this record, since no trial could tell what a launch does, or recorded ops did not come */
    uint32_t outdated;      /* questions to the planner dropped in a row, since the program had moved on from the recorded iteration */
    bool followed;          /* a whole iteration has followed a plan since the last one was recorded */
    uint32_t starts;        /* lessons begun that came to nothing, in a row */
    uint64_t last_sig;      /* signature of the last op outside a plan */
    uint64_t grow_at, grow_wait; /* device.st.iterations from which a plan may be made anew for more memory; iterations between two such plans */
    uint64_t gave_nothing_at;    /* device.op_count at which a neighbour asked and nothing could move */
    uint32_t moves;         /* static maps made anew for this record */
    struct earlier_plan earlier;
    struct account account; /* what learning and plans cost and save */
    bool stopped;           /* see campaign_stop() */
    bool refused_given;     /* --plan names a plan that cannot be followed here */
};

/* A plan that the user has given (--plan) is to be followed, and none is made. */
static inline bool modes_have_given_plan(const struct device *d) { return d->cfg->plan_path[0] && !d->campaign->refused_given; }

int modes_init(struct device *d);
void modes_go(struct device *d, enum rt_mode to);
/* A plan is being followed: it serves allocations and frees too. */
static inline bool modes_follow_plan(const struct device *d) { return d->mode == MODE_REHEARSE || d->mode == MODE_ENFORCE; }
/* A plan is wanted: memory has been short, or --plan names one, and no quiet time runs. */
bool modes_wants_plan(const struct device *d);
/* `--policy plan` asks for plans and nothing else: the program stands still until the planner has answered. */
bool modes_wait_for_plans(const struct device *d);

/* Nothing is learnt for some iterations of `period` ops (modes_quiet(): of the iteration learnt last); for twice as many the next time. */
void modes_quiet_after(struct device *d, uint64_t period);
void modes_quiet(struct device *d);

/* The question to the planner is dropped: the planner ends, and its files go. */
void modes_forget_question(struct device *d);
/* Back to MODE_OBSERVE: the lesson is of no use, or did not come to its end. _again: the search for an iteration begins afresh too. */
void modes_observe(struct device *d);
void modes_observe_again(struct device *d);
/* Forgets the recorded iteration, and the question to the planner about it, in whatever mode. */
void modes_forget_iteration(struct device *d);
/* No plan comes of the lesson: a quiet time, and then learning anew. */
void modes_no_plan(struct device *d);

#endif
