#include "offline/solvers/anneal/anneal_pool.h"

#define POOL_GAIN 0.005   /* part of the best plan's time: a smaller gain is not worth waiting for */
#define POOL_PATIENCE 0.5 /* part of the time up to the last gain: the next gain may take this long */
#define POOL_LEAST_S 1    /* seconds added to the time up to the last gain */
#define POOL_RUNS 5       /* runs to end without a gain before the patience counts: a run shows what it found only at its end */
#define POOL_MOST 1.5     /* part of the time up to the last gain after which the searches end however few runs have ended */
#define POOL_NEAR 0.01    /* part of total_ns: a best this near to total_ns ends the searches */

int anneal_pool_init(struct anneal_pool *p, double total_ns, double began_s)
{
    *p = (struct anneal_pool){.total_ns = total_ns, .began_s = began_s};
    return -pthread_mutex_init(&p->lock, NULL);
}

void anneal_pool_free(struct anneal_pool *p)
{
    anneal_seq_free(&p->best);
    pthread_mutex_destroy(&p->lock);
}

int anneal_pool_offer(struct anneal_pool *p, const struct anneal_seq *seq, double ns, double judged_ns, double now_s)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    if (!p->best.n || judged_ns < p->judged_ns) {
        if (!p->best.n || judged_ns < p->gained_ns * (1 - POOL_GAIN)) {
            p->gained_ns = judged_ns;
            p->gained_s = now_s;
            p->barren = 0;
        }
        rc = anneal_seq_copy(&p->best, seq);
        p->best_ns = ns;
        p->judged_ns = judged_ns;
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

int anneal_pool_take(struct anneal_pool *p, struct anneal_seq *seq, double *ns, double *judged_ns)
{
    int rc = 0;
    pthread_mutex_lock(&p->lock);
    if (p->best.n && (!seq->n || p->judged_ns < *judged_ns)) {
        rc = anneal_seq_copy(seq, &p->best);
        if (!rc) {
            *ns = p->best_ns;
            *judged_ns = p->judged_ns;
            rc = 1;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

void anneal_pool_ran(struct anneal_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->barren++;
    pthread_mutex_unlock(&p->lock);
}

int anneal_pool_enough(struct anneal_pool *p, double now_s)
{
    pthread_mutex_lock(&p->lock);
    const double up_to_s = p->gained_s - p->began_s + POOL_LEAST_S, since_s = now_s - p->gained_s;
    const int enough = p->best.n && (p->judged_ns <= (1 + POOL_NEAR) * p->total_ns || since_s >= POOL_MOST * up_to_s ||
                                     (p->barren >= POOL_RUNS && since_s >= POOL_PATIENCE * up_to_s));
    pthread_mutex_unlock(&p->lock);
    return enough;
}
