/* milp_stages: Checkmate's frontier-advancing program (Jain et al. 2020, section 4) over versions of buffers.
 *
 * Stage t is the replays just before op t, and op t itself: slots 0..t in program order, slot i < t a replay of
 * op i (column R[t][i]), slot t the op. Each value with a bit has a presence column for every stretch of a stage between
 * two slots that touch the value, in place of the paper's S and FREE: presence may fall anywhere and rises only
 * where an op makes the value. Only R needs to be integral: a value that is read must be wholly present, and so, going
 * back along its stretches, wholly made by its replay.
 */
#include "offline/solvers/milp/milp_stages.h"
#include "offline/solvers/milp/milp.h"
#include "offline/solvers/milp/milp_model.h"

#include "offline/model/sim.h"
#include "offline/solvers/solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALE 1000.0 /* units of memory in the program: the limit is 1000 units */

struct slot {
    int32_t op, t;
    int r;             /* column R[t][op]; -1: the program's own op */
    int first;         /* cols[first ..): n presence columns while the slot runs, then n after it */
};

struct stages {
    const struct milp_model *m;
    struct milp *p;
    double unit;       /* units per byte */
    double room;
    struct slot *slot;
    int n_slots, slot_room;
    int *cols;         /* 2 * n presence columns per slot; -1: absent */
    int cur[MILP_VALUES_MAX];
    int max_cols;
};

static int open_slot(struct stages *s, int32_t t, int32_t op, int r)
{
    if (s->n_slots == s->slot_room) {
        int room = s->slot_room ? 2 * s->slot_room : 256;
        struct slot *a = realloc(s->slot, (size_t)room * sizeof *a);
        if (!a)
            return -ENOMEM;
        s->slot = a;
        int *b = realloc(s->cols, (size_t)room * 2 * (size_t)(s->m->n + 1) * sizeof *b);
        if (!b)
            return -ENOMEM;
        s->cols = b;
        s->slot_room = room;
    }
    s->slot[s->n_slots] = (struct slot){ op, t, r, s->n_slots * 2 * s->m->n };
    s->n_slots++;
    return 0;
}

/* Begin a new stretch of v, in which v is at most as present as in the last. */
static int follow(struct stages *s, int v)
{
    int c = milp_col(s->p, 0, 1, 0, 0);
    if (c < 0)
        return c;
    milp_row(s->p, -MILP_NONE, 0);
    milp_term(s->p, c, 1);
    milp_term(s->p, s->cur[v], -1);
    return s->cur[v] = c;
}

/* Add one slot. later: values that a later slot of the stage, or a later stage, may want. */
static int add_slot(struct stages *s, int32_t t, int32_t i, milp_set later)
{
    const struct milp_model *m = s->m;
    const struct milp_op *o = &m->op[i];
    int own = i == t, r = -1;
    milp_set in = o->in | (own ? o->side_in : 0), out = o->out | (own ? o->side_out : 0);
    milp_set gone = (o->gone | (own ? o->side_gone : 0)) & ~out;
    if (!own) {
        for (milp_set x = in; x; x &= x - 1)
            if (s->cur[milp_first(x)] < 0)
                return 0; /* an input cannot be in memory */
        r = milp_col(s->p, 0, 1, (double)o->ns, 1);
    }
    int e = open_slot(s, t, i, r);
    if (e || (!own && r < 0))
        return e ? e : r;
    int *during = s->cols + s->slot[s->n_slots - 1].first, *after = during + m->n;
    for (milp_set x = in; x; x &= x - 1) {
        int v = milp_first(x);
        if (s->cur[v] < 0)
            return -ENOSPC; /* the op cannot run at all */
        if (own) {
            milp_row(s->p, 1, MILP_NONE);
            milp_term(s->p, s->cur[v], 1);
        } else {
            milp_row(s->p, -MILP_NONE, 0);
            milp_term(s->p, r, 1);
            milp_term(s->p, s->cur[v], -1);
        }
    }
    for (milp_set x = gone & ~in; x && !own; x &= x - 1) /* a replay needs its buffers free of other versions */
        if (s->cur[milp_first(x)] >= 0) {
            milp_row(s->p, -MILP_NONE, 1);
            milp_term(s->p, r, 1);
            milp_term(s->p, s->cur[milp_first(x)], 1);
        }
    memcpy(during, s->cur, (size_t)m->n * sizeof *during);
    double made = own ? 0 : (double)o->side_bytes * s->unit, base = 0;
    int alone = (out & (out - 1)) == 0;
    for (milp_set x = out; x; x &= x - 1) {
        int v = milp_first(x), was = s->cur[v];
        if (own) {
            base += (double)m->bytes[v] * s->unit;
            during[v] = -1;
            s->cur[v] = later & milp_bit(v) ? milp_col(s->p, 0, 1, 0, 0) : -1;
            continue;
        }
        int d = milp_col(s->p, 0, 1, 0, 0);
        milp_row(s->p, 0, MILP_NONE); /* present while it is made */
        milp_term(s->p, d, 1);
        milp_term(s->p, r, -1);
        milp_row(s->p, -MILP_NONE, 0); /* present only if made here or present before */
        milp_term(s->p, d, 1);
        milp_term(s->p, r, -1);
        if (was >= 0)
            milp_term(s->p, was, -1);
        during[v] = s->cur[v] = d;
        if (!alone && later & milp_bit(v))
            follow(s, v);
    }
    milp_row(s->p, -MILP_NONE, s->room - base);
    if (!own && made > 0)
        milp_term(s->p, r, made);
    for (int v = 0; v < m->n; v++) {
        if (during[v] < 0 || (own && gone & milp_bit(v)))
            continue; /* base counts the op's own outputs, which take the place of versions they overwrite */
        milp_term(s->p, during[v], (double)m->bytes[v] * s->unit);
        if (!own && gone & in & milp_bit(v))
            milp_term(s->p, r, -(double)m->bytes[v] * s->unit); /* changed in place */
    }
    for (int v = 0; v < m->n; v++) {
        milp_set b = milp_bit(v);
        if (s->cur[v] < 0)
            continue;
        if (!(later & b) || (own && gone & b)) {
            s->cur[v] = -1;
        } else if (in & b) {
            int was = s->cur[v];
            follow(s, v);
            if (gone & b) {
                milp_row(s->p, -MILP_NONE, 0);
                milp_term(s->p, s->cur[v], 1);
                milp_term(s->p, was, -1);
                milp_term(s->p, r, 1);
            }
        }
    }
    memcpy(after, s->cur, (size_t)m->n * sizeof *after);
    return milp_n_cols(s->p) > s->max_cols ? -E2BIG : 0;
}

static int add_stage(struct stages *s, int32_t t)
{
    const struct milp_model *m = s->m;
    milp_set *later = calloc((size_t)t + 2, sizeof *later);
    if (!later)
        return -ENOMEM;
    /* later[i]: values wanted after slot i of this stage */
    later[t] = t < m->n_ops ? m->useful[t + 1] : m->wanted[t];
    milp_set want = t < m->n_ops ? m->op[t].in | m->op[t].side_in | later[t] : later[t];
    for (int32_t i = t - 1; i >= 0; i--) {
        later[i] = want;
        if (m->op[i].until >= t && m->op[i].out & ~m->fixed & want)
            want |= m->op[i].in;
    }
    for (int v = 0; v < m->n; v++) {
        if (s->cur[v] >= 0 && want & milp_bit(v))
            follow(s, v);
        else
            s->cur[v] = -1;
    }
    int e = 0;
    for (int32_t i = 0; i < t && !e; i++)
        if (m->op[i].until >= t && m->op[i].out & ~m->fixed & later[i])
            e = add_slot(s, t, i, later[i]);
    if (!e && t < m->n_ops)
        e = add_slot(s, t, t, later[t]);
    for (milp_set x = t == m->n_ops ? m->wanted[t] : 0; x && !e; x &= x - 1) {
        if (s->cur[milp_first(x)] < 0) {
            e = -ENOSPC;
        } else {
            milp_row(s->p, 1, MILP_NONE);
            milp_term(s->p, s->cur[milp_first(x)], 1);
        }
    }
    free(later);
    return e;
}

static milp_set present(const struct stages *s, const int *cols, const double *x)
{
    milp_set p = 0;
    for (int v = 0; v < s->m->n; v++)
        if (cols[v] >= 0 && x[cols[v]] > 0.999)
            p |= milp_bit(v);
    return p;
}

static int take(const struct stages *s, const double *x, struct plan *out, int64_t *replay_ns)
{
    struct milp_move *moves = malloc(((size_t)s->n_slots + 1) * sizeof *moves);
    int64_t n = 0;
    if (!moves)
        return -ENOMEM;
    *replay_ns = 0;
    for (int k = 0; k < s->n_slots; k++) {
        const struct slot *q = &s->slot[k];
        if (q->r >= 0 && x[q->r] < 0.5)
            continue;
        const int *cols = s->cols + q->first;
        moves[n++] = (struct milp_move){ q->op, q->r >= 0, present(s, cols, x), present(s, cols + s->m->n, x) };
        if (q->r >= 0)
            *replay_ns += s->m->op[q->op].ns;
    }
    int e = milp_emit(s->m, moves, n, out);
    free(moves);
    return e;
}

int milp_stages(const struct milp_model *m, int64_t limit_bytes, int64_t cutoff_ns, double until_s, int max_cols,
                struct plan *out, struct milp_found *f)
{
    struct stages s = { .m = m, .p = milp_new(), .max_cols = max_cols };
    struct milp_result r = { 0 };
    memset(f, 0, sizeof *f);
    if (!s.p)
        return -ENOMEM;
    s.unit = SCALE / (double)limit_bytes;
    s.room = (double)(limit_bytes - m->always_bytes) * s.unit;
    for (int v = 0; v < m->n; v++)
        s.cur[v] = m->start & milp_bit(v) ? milp_col(s.p, 0, 1, 0, 0) : -1;
    int e = s.room < 0 || m->start_bytes > limit_bytes ? -ENOSPC : 0;
    for (int32_t t = 0; t <= m->n_ops && !e; t++)
        e = add_stage(&s, t);
    if (e == -ENOSPC) {
        f->proved_infeasible = 1;
        e = 0;
        goto out;
    }
    double left = until_s - solver_now_s();
    if (!e && left <= 0)
        e = -ETIME;
    if (!e) {
        struct milp_opts o = { .time_limit_s = left, .cutoff = cutoff_ns > 0 ? (double)cutoff_ns : 0 };
        e = milp_solve(s.p, &o, &r);
    }
    if (!e && r.x) {
        struct sim_result judged;
        e = take(&s, r.x, out, &f->replay_ns);
        if (!e)
            e = sim_run(m->g, out, limit_bytes, &judged);
        f->found = !e && judged.ok;
    }
    if (!e) {
        f->bound_ns = r.status == MILP_INFEASIBLE ? (double)cutoff_ns : fmax(0, r.bound);
        f->proved_optimal = f->found && r.status == MILP_OPTIMAL;
        f->proved_infeasible = r.status == MILP_INFEASIBLE && cutoff_ns <= 0;
        f->states = milp_n_cols(s.p);
        if (!f->found && !f->proved_infeasible && r.status == MILP_UNKNOWN)
            e = -ETIME;
    }
out:
    milp_result_free(&r);
    milp_free(s.p);
    free(s.slot);
    free(s.cols);
    return e;
}
