/* anneal_pool: the best schedule that several searches on one graph have found together, and when they have searched long enough.
 *
 * Each search offers the schedules it finds, and takes the pool's best before it anneals on from the best. A program that stands still while it is planned
 * for pays for every second of planning: so the searches end when the last gain worth the name lies too far back, compared with the time spent before it.
 *
 * Threads: any number of searches, each in its own. The searches' models must be made alike, since rows name units and cells by number.
 * Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_ANNEAL_POOL_H
#define REMAT_OFFLINE_ANNEAL_POOL_H

#include <pthread.h>

#include "offline/solvers/anneal/anneal.h"

struct anneal_pool {
    pthread_mutex_t lock;
    struct anneal_seq best; /* n == 0: none yet */
    double best_ns;     /* cost of best in its search's count: replays, waits, charges */
    double judged_ns;   /* time of best as the simulator judged it */
    double total_ns;    /* lower bound on the time of any plan */
    double began_s;     /* begin of the planning; solver_now_s clock */
    double gained_s, gained_ns; /* time of the last gain worth its wait, and judged_ns at that gain */
    int barren;         /* runs that have ended since gained_s */
};

int anneal_pool_init(struct anneal_pool *p, double total_ns, double began_s);
void anneal_pool_free(struct anneal_pool *p);

int anneal_pool_offer(struct anneal_pool *p, const struct anneal_seq *seq, double ns, double judged_ns, double now_s);
/* If seq is empty or the pool's best better than *judged_ns: copy it into seq, *ns and *judged_ns and return 1, else 0. */
int anneal_pool_take(struct anneal_pool *p, struct anneal_seq *seq, double *ns, double *judged_ns);

/* A search reports the end of a run. */
void anneal_pool_ran(struct anneal_pool *p);

/* 1: more searching is worth less than it costs. Always 0 while there is no plan. */
int anneal_pool_enough(struct anneal_pool *p, double now_s);

#endif
