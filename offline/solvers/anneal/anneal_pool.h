/* anneal_pool: what several searches on one graph know together, and when they have looked long enough.
 *
 * Each search offers what it finds, and takes the pool's best before it anneals on from the best. A program that stands still while it is planned
 * for pays for every second of it: so the searches end when the last gain worth the name lies too far back, compared with the time spent before it.
 *
 * Threads: any number of searches, each in its own. Models must be made alike, since rows speak of their units and cells.
 * Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_ANNEAL_POOL_H
#define REMAT_OFFLINE_ANNEAL_POOL_H

#include <pthread.h>

#include "offline/solvers/anneal/anneal.h"

struct anneal_pool {
    pthread_mutex_t lock;
    struct anneal_seq best; /* n == 0: none yet */
    double best_ns;     /* what it costs as its search counts */
    double judged_ns;   /* what it takes as the simulator has it */
    double total_ns;    /* no plan takes less */
    double began_s;     /* since when somebody waits; solver_now_s clock */
    double gained_s, gained_ns; /* when the best was last so much better than before that it was worth the wait, and what it took then */
    int barren;         /* runs that have ended since */
};

int anneal_pool_init(struct anneal_pool *p, double total_ns, double began_s);
void anneal_pool_free(struct anneal_pool *p);

int anneal_pool_offer(struct anneal_pool *p, const struct anneal_seq *seq, double ns, double judged_ns, double now_s);
/* If the pool has a better one than that, into seq, *ns and *judged_ns: 1, else 0. */
int anneal_pool_take(struct anneal_pool *p, struct anneal_seq *seq, double *ns, double *judged_ns);

/* A search has come to the end of a run. */
void anneal_pool_ran(struct anneal_pool *p);

/* Is more thinking worth less than it costs? Never while there is no plan. */
int anneal_pool_enough(struct anneal_pool *p, double now_s);

#endif
