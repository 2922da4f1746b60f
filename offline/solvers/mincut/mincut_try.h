/* mincut_try.h: decisions improved by trying them. Threads and errors: as mincut.h says. */
#ifndef REMAT_OFFLINE_MINCUT_TRY_H
#define REMAT_OFFLINE_MINCUT_TRY_H

#include "offline/solvers/mincut/mincut.h"

struct mincut_try {
    const struct graph *g;
    struct sched *s;
    int64_t limit_bytes;
    uint8_t *best;           /* [n_gaps] decisions of the best plan within the limit */
    struct plan best_plan;
    int found;
    int64_t best_ns, best_peak;
    uint8_t *low;            /* [n_gaps] decisions of the lowest peak seen */
    int64_t low_peak;
    struct plan plan;        /* scratch: the plan of the last trial */
    struct sim_result r;     /* judgement of `plan` */
    struct plan mended;      /* scratch, for mincut_trial: the plan with added orders */
    struct sched_act *acts;  /* [n_ops] */
    int32_t *seen;           /* [n_ops] slot of an op's first replay; -1 */
    int64_t *use;            /* [n_ops] see mincut_profile */
    int64_t *step_use;       /* scratch */
    size_t step_room;
    int64_t trials;
};

/* Realizes and judges decisions. Where an op is replayed twice because an in-place step overwrote its result before a
 * second reader was rebuilt, that reader is ordered along with the first, if that is faster and no higher over the limit.
 * Remembers the decisions if they are the best within the limit, or have the lowest peak. 0 with t->r, or a negative errno;
 * decisions that sched_realize refuses with -EDEADLK or -E2BIG are failed trials, not errors (0, t->r.ok is 0). */
int mincut_trial(struct mincut_try *t, const uint8_t *choice);
/* Fills t->use from the plan of the last trial, which was valid: the most bytes in use at each op and while replaying
 * for it. */
int mincut_profile(struct mincut_try *t);
int mincut_try_init(struct mincut_try *t, const struct graph *g, struct sched *s, int64_t limit_bytes);
void mincut_try_free(struct mincut_try *t);

#endif
