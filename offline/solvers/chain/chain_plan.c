/* Chain schedules into plans: the model's memory becomes holds, its second forwards become orders to rebuild. */
#include "offline/solvers/chain/chain_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/chain/chain_graph.h"

struct chain_maker {
    const struct chain_graph *cg;
    struct sched *s;
    uint8_t *choice; /* [n_gaps] values the backward reads are dropped after the forward part, unless held */
    uint8_t *has;    /* per stage, bit 0: a on its own, bit 1: abar */
    struct sched_act *acts;
    size_t n_acts, cap_acts;
};

struct chain_maker *chain_maker_new(const struct chain_graph *cg, struct sched *s)
{
    struct chain_maker *m = calloc(1, sizeof(*m));
    int32_t i;

    if (!m)
        return NULL;
    m->cg = cg;
    m->s = s;
    m->choice = calloc((size_t)s->n_gaps + 1, 1);
    m->has = calloc((size_t)cg->c.n + 1, 1);
    if (!m->choice || !m->has) {
        chain_maker_free(m);
        return NULL;
    }
    sched_default(s, m->choice);
    for (i = 0; i < s->n_gaps; i++) {
        const struct sched_gap *gap = &s->gaps[i];

        if (!gap->tail && gap->from < cg->n_forward && gap->to >= cg->n_forward && cg->role[gap->val] != CHAIN_OUTSIDE)
            m->choice[i] = cg->role[gap->val] == CHAIN_CHEAP ? SCHED_DROP : SCHED_SHUN;
    }
    return m;
}

void chain_maker_free(struct chain_maker *m)
{
    if (!m)
        return;
    free(m->choice);
    free(m->has);
    free(m->acts);
    free(m);
}

static int chain_maker_act(struct chain_maker *m, int32_t op, enum sched_order order, const struct chain_list *list)
{
    int32_t k;

    if (m->n_acts + (size_t)list->n > m->cap_acts) {
        size_t cap = m->cap_acts * 2 + (size_t)list->n + 256;
        struct sched_act *more = realloc(m->acts, cap * sizeof(*more));

        if (!more)
            return -ENOMEM;
        m->acts = more;
        m->cap_acts = cap;
    }
    for (k = 0; k < list->n; k++) {
        struct sched_act *a = &m->acts[m->n_acts++];

        a->op = op;
        a->order = (int32_t)order;
        a->val = m->cg->vals[list->at + k];
    }
    return 0;
}

/* Order that stage l runs again, just before op `at`. */
static int chain_maker_again(struct chain_maker *m, int32_t kind, int32_t l, int32_t at)
{
    const struct chain_graph *cg = m->cg;
    const struct chain_list *made = kind == CHAIN_FALL ? &cg->abar[l] : &cg->a[l];
    int rc = chain_maker_act(m, at, SCHED_HOLD, made);

    m->has[l] |= kind == CHAIN_FALL ? 2 : 1;
    if (!rc)
        rc = chain_maker_act(m, at, SCHED_NEED, made);
    if (!rc && kind == CHAIN_FNONE && (m->has[l - 1] & 1)) {
        m->has[l - 1] &= 2;
        rc = chain_maker_act(m, at, SCHED_UNHOLD, &cg->a[l - 1]);
    }
    return rc;
}

static int chain_maker_let_go(struct chain_maker *m, int32_t l, int bits, int32_t at)
{
    int rc = 0;

    if (m->has[l] & bits & 1)
        rc = chain_maker_act(m, at, SCHED_UNHOLD, &m->cg->a[l]);
    if (!rc && (m->has[l] & bits & 2))
        rc = chain_maker_act(m, at, SCHED_UNHOLD, &m->cg->abar[l]);
    m->has[l] &= (uint8_t)~bits;
    return rc;
}

/* Values that the first pass stores are held from the start. */
static int chain_maker_first(struct chain_maker *m)
{
    int32_t l;
    int rc = 0;

    for (l = 1; l <= m->cg->c.n && !rc; l++) {
        if (m->has[l] & 1)
            rc = chain_maker_act(m, 0, SCHED_HOLD, &m->cg->a[l]);
        if (!rc && (m->has[l] & 2))
            rc = chain_maker_act(m, 0, SCHED_HOLD, &m->cg->abar[l]);
    }
    return rc;
}

int chain_graph_realize(struct chain_maker *m, const struct chain_schedule *cs, struct plan *out, struct sim_result *r)
{
    const struct chain_graph *cg = m->cg;
    int32_t n = cg->c.n, done = 0, at = cg->back[n];
    size_t i;
    int rc = 0;

    m->n_acts = 0;
    memset(m->has, 0, (size_t)n + 1);
    for (i = 0; i < cs->n && !rc; i++) {
        int32_t l = cs->steps[i].stage, kind = cs->steps[i].kind;

        if (done < n) {
            /* The first pass: the program runs its own forward ops, nothing is ordered. */
            if (kind == CHAIN_BWD || kind == CHAIN_DROP || l != done + 1)
                return -EINVAL;
            m->has[l] |= kind == CHAIN_FALL ? 2 : 1;
            if (kind == CHAIN_FNONE)
                m->has[l - 1] &= 2;
            if (++done == n)
                rc = chain_maker_first(m);
        } else if (kind == CHAIN_BWD) {
            at = cg->back[l - 1];
            rc = chain_maker_let_go(m, l, 3, at);
        } else if (kind == CHAIN_DROP) {
            rc = chain_maker_let_go(m, l, 1, at);
        } else {
            rc = chain_maker_again(m, kind, l, at);
        }
    }
    return rc ? rc : sched_realize_acts(m->s, m->choice, m->acts, m->n_acts, out, r);
}
