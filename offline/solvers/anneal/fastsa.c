#include "offline/solvers/anneal/fastsa.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "offline/solvers/anneal/fastsa_first.h"
#include "offline/solvers/anneal/fsa_move.h"
#include "offline/solvers/solver.h"

enum { LOOK_EVERY = 1024, SPREAD_EVERY = 16384, DOUBLINGS = 4 };
static const double RUN_SHARE = 0.3; /* longest run, as a part of the time allowed */
static const double BEND_LEAST = 1e-4, BEND_MOST = 0.05; /* price of a bend, in parts of the cost without replays */
/* Parts of the time allowed by which a staged schedule must be found at first, then a schedule in any order, and a staged one
 * by straightening it. */
static const double STAGED_SHARE = 0.15, FREE_SHARE = 0.75, STRAIGHT_SHARE = 0.6;

struct fastsa {
    const struct checkmate *c;
    struct fsa_row *row;
    struct fsa_mover mover;
    double deadline_s, start_s;
    double give_up_s;   /* stop at this time if no schedule was found */
    int64_t give_up_moves; /* or once this many moves were made; 0: no limit */
    double ideal;       /* cost of every node once */
    double bend;        /* price of a bend of the row; 0: bends do not count, else the best has none */
    double enough;      /* stop at a schedule that costs no more */
    int64_t moves, moves_max;
    int runs;
    double best_cost;   /* cost of best; INFINITY: none yet */
    int32_t *best, n_best;
};

/* Temperatures in parts of the cost without replays; w in parts of that cost per budget. */
struct recipe {
    int paper;
    double hot, cold, weight, weight_max, sight;
};
static const struct recipe recipes[] = {
    {0, 3e-4, 3e-6, 0.1, 30, 1}, {0, 1e-2, 1e-4, 1, 30, 0.5},   {1, 1e-3, 1e-7, 0, 0, 0.8},
    {0, 1e-3, 1e-5, 0.1, 30, 1}, {0, 1e-3, 1e-5, 0.1, 30, 0.8}, {0, 1e-2, 1e-5, 0.3, 10, 1},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

static inline double energy(const struct fastsa *s, const struct recipe *how, double weight)
{
    const struct fsa_row *r = s->row;
    if (!how->paper)
        return r->cost + weight * r->excess + s->bend * r->bends;
    return r->excess > 0 ? r->cost * (fsa_peak(r) / r->budget) : r->cost;
}

/* 1: the deadline has passed or all moves are made. */
static int over(const struct fastsa *s)
{
    return solver_now_s() >= s->deadline_s || (s->moves_max && s->moves >= s->moves_max);
}

static int stop(const struct fastsa *s)
{
    if (isfinite(s->best_cost))
        return s->best_cost <= s->enough || over(s);
    return over(s) || solver_now_s() >= s->give_up_s || (s->give_up_moves && s->moves >= s->give_up_moves);
}

static int whole(const struct fastsa *s) { return s->row->excess <= 0 && !(s->bend > 0 && s->row->bends); }

static void note_best(struct fastsa *s)
{
    if (!whole(s) || s->row->cost >= s->best_cost)
        return;
    s->best_cost = s->row->cost;
    s->n_best = fsa_save(s->row, s->best);
}

/* One run of `length` moves from the schedule in the row. The run cools by moves, or by the time to until_s if this is short: a
 * run broken off hot would be worth nothing. */
static int run(struct fastsa *s, const struct recipe *how, int64_t length, double until_s)
{
    const double begin_s = solver_now_s();
    struct fsa_row *r = s->row;
    const double unit = s->ideal / r->budget, steps = (double)length / SPREAD_EVERY;
    const double up = exp(12 / steps), down = exp(-7.5 / steps);
    double weight = how->weight * unit, heat = how->hot, now = energy(s, how, weight);
    s->mover.sight = how->sight;
    s->runs++;
    for (int64_t it = 0; it < length; it++, s->moves++) {
        if (it % LOOK_EVERY == 0) {
            if (stop(s))
                return 0;
            const double done = fmax((double)it / (double)length, (solver_now_s() - begin_s) / (until_s - begin_s));
            if (done >= 1)
                return 0;
            heat = s->ideal * how->hot * pow(how->cold / how->hot, done);
        }
        if (it % SPREAD_EVERY == 0 && it) {
            const int rc = fsa_spread(r);
            if (rc)
                return rc;
            weight = fmin(fmax(weight * (r->excess > 0 ? up : down), 0.001 * unit), how->weight_max * unit);
            if (s->bend > 0)
                s->bend = fmin(fmax(s->bend * (r->bends ? up : down), BEND_LEAST * s->ideal), BEND_MOST * s->ideal);
            now = energy(s, how, weight);
        }
        if (!fsa_mutate(&s->mover))
            continue;
        const double then = energy(s, how, weight);
        if (then <= now || fsa_draw(&s->mover) < exp((now - then) / heat)) {
            now = then;
            if (r->cost < s->best_cost && whole(s)) {
                note_best(s);
                if (s->best_cost <= s->enough)
                    return 0;
            }
        } else {
            fsa_undo(&s->mover);
        }
    }
    return 0;
}

/* Moves of the first run. */
static int64_t run_length(const struct fastsa *s) { return 400000 + 7000 * (int64_t)s->c->n; }

/* Runs until the deadline: fresh runs from the given order, and every third run from the best, cooler. */
static int search(struct fastsa *s, const int32_t *start, int32_t n_start)
{
    const int64_t base = run_length(s);
    int rc = 0;
    for (int k = 0, fresh = 0; !rc && !stop(s); k++) {
        const int again = k % 3 == 2 && isfinite(s->best_cost);
        int64_t length = base << (k / 3 / 2 < DOUBLINGS ? k / 3 / 2 : DOUBLINGS);
        struct recipe how = recipes[fresh % N_RECIPES];
        if (again)
            how = (struct recipe){0, k % 2 ? 3e-4 : 1.5e-3, 1e-5, 1, 30, k % 4 < 2 ? 0.8 : 0.3};
        else
            fresh++;
        const double now = solver_now_s(), share = RUN_SHARE * (s->deadline_s - s->start_s);
        double until = s->deadline_s - now < 1.5 * share ? s->deadline_s : now + share;
        if (!isfinite(s->best_cost))
            until = fmin(until, s->give_up_s);
        rc = again ? fsa_load(s->row, s->best, s->n_best) : fsa_load(s->row, start, n_start);
        if (!rc) {
            note_best(s);
            rc = run(s, &how, length, until);
        }
    }
    return rc;
}

static void close_search(struct fastsa *s)
{
    fsa_free(s->row);
    free(s->best);
}

/* The best schedule found becomes the caller's (to free) and is forgotten here: a cost left behind would promise a schedule
 * that is gone. NULL and 0 if none was found. */
static int32_t *take_best(struct fastsa *s, int32_t *n)
{
    int32_t *order = s->best;
    *n = isfinite(s->best_cost) ? s->n_best : 0;
    s->best = NULL;
    s->n_best = 0;
    s->best_cost = INFINITY;
    return order;
}

/* A new row for `cap` items; the best schedule found before is forgotten. */
static int open_row(struct fastsa *s, int32_t cap, enum fsa_freedom freedom)
{
    close_search(s);
    s->row = fsa_new(s->c, cap);
    s->best = malloc((size_t)cap * sizeof *s->best);
    s->n_best = 0;
    s->best_cost = INFINITY;
    s->mover.row = s->row;
    s->mover.freedom = freedom;
    return s->row && s->best ? 0 : -ENOMEM;
}

static int32_t room(int64_t items) { return (int32_t)(items < FSA_ITEMS_MAX ? items : FSA_ITEMS_MAX); }

/* The time at which this part of the time allowed is over. */
static double share_s(const struct fastsa *s, double share) { return s->start_s + share * (s->deadline_s - s->start_s); }

static int found(const struct fastsa *s) { return isfinite(s->best_cost); }

/* Search schedules of Checkmate's stages until the deadline; give up at give_up_s, or after give_up_moves moves (0: no limit),
 * if none is found by then. */
static int search_staged(struct fastsa *s, const int32_t *given, double give_up_s, int64_t give_up_moves)
{
    int rc = open_row(s, room(3 * (int64_t)s->c->n + 64), FSA_STAGES);
    s->give_up_s = give_up_s;
    s->give_up_moves = give_up_moves;
    if (!rc)
        rc = search(s, given, s->c->n);
    s->give_up_s = INFINITY;
    s->give_up_moves = 0;
    return rc;
}

/* Make a schedule whose first computations stand in order, replays anywhere, from one in any order: the first schedule found
 * will do. *n is 0 if none was found. */
static int any_firsts(struct fastsa *s, const int32_t *given, int32_t *order, int32_t cap, int32_t *n)
{
    int32_t n_free = 0;
    *n = 0;
    int rc = open_row(s, room(3 * (int64_t)s->c->n + 64), FSA_FREE);
    s->enough = INFINITY;
    s->give_up_s = share_s(s, FREE_SHARE);
    if (!rc)
        rc = search(s, given, s->c->n);
    s->give_up_s = INFINITY;
    s->enough = s->ideal;
    int32_t *free_order = take_best(s, &n_free);
    if (!rc && n_free)
        rc = fastsa_first(s->c, free_order, n_free, order, cap, n);
    free(free_order);
    return rc == -ENOSPC ? 0 : rc;
}

/* Make a schedule in stages from one whose first computations stand in order, by a rising price on its bends. Ends with the run that finds
 * one, or at give_up_s. */
static int straighten(struct fastsa *s, const int32_t *order, int32_t n, double give_up_s)
{
    static const struct recipe how = {0, 1e-3, 1e-5, 0.3, 30, 0.8};
    int rc = open_row(s, room(n + 2 * (int64_t)s->c->n + 64), FSA_FIRSTS);
    s->give_up_s = give_up_s;
    for (int k = 0; !rc && !found(s) && !stop(s); k++) {
        s->bend = BEND_LEAST * s->ideal * (k % 3 ? 10 : 1);
        rc = fsa_load(s->row, order, n);
        if (!rc)
            rc = run(s, &how, run_length(s) << (k / 3 < DOUBLINGS ? k / 3 : DOUBLINGS), give_up_s);
    }
    s->give_up_s = INFINITY;
    s->bend = 0;
    return rc;
}

/* Search schedules in stages; if none is found soon, make a schedule with first computations in order, so that there is an
 * answer; then try to straighten it into stages; then make the schedule found cheaper. */
static int search_given(struct fastsa *s, const int32_t *given)
{
    const int32_t cap = room(80 * (int64_t)s->c->n + 64);
    int32_t n = 0, *order = NULL;
    int rc = search_staged(s, given, share_s(s, STAGED_SHARE), run_length(s));
    if (rc || found(s) || over(s))
        return rc;
    order = malloc((size_t)cap * sizeof *order);
    rc = order ? any_firsts(s, given, order, cap, &n) : -ENOMEM;
    if (!rc && !over(s))
        rc = n ? straighten(s, order, n, share_s(s, STRAIGHT_SHARE)) : search_staged(s, given, INFINITY, 0);
    if (!rc && n && found(s) && !over(s)) { /* search cheaper staged schedules from the straightened one */
        free(order);
        order = take_best(s, &n);
        rc = open_row(s, room(n + 2 * (int64_t)s->c->n + 64), FSA_STAGES);
        if (!rc)
            rc = search(s, order, n);
    } else if (!rc && n && !found(s)) {
        rc = open_row(s, room(n + 2 * (int64_t)s->c->n + 64), FSA_FIRSTS);
        if (!rc)
            rc = search(s, order, n);
    }
    free(order);
    return rc;
}

static int in_order(const struct checkmate *c, const int32_t *order, int32_t n)
{
    int32_t next = 0;
    for (int32_t k = 0; k < n && order[k] <= next; k++)
        next += order[k] == next;
    return next == c->n;
}

static int answer(const struct fastsa *s, struct fastsa_answer *out)
{
    out->order = malloc((size_t)(s->n_best + 1) * sizeof *out->order);
    if (!out->order)
        return -ENOMEM;
    memcpy(out->order, s->best, (size_t)s->n_best * sizeof *out->order);
    out->n = s->n_best;
    const int rc = checkmate_sequence(s->c, out->order, out->n, &out->cost, &out->peak);
    out->found = !rc && out->peak <= s->c->budget;
    out->staged = checkmate_staged(s->c, out->order, out->n);
    out->in_order = in_order(s->c, out->order, out->n);
    return out->found ? 0 : rc ? rc : -EPROTO;
}

int fastsa_solve(const struct checkmate *c, const struct fastsa_opts *o, struct fastsa_answer *out)
{
    struct fastsa s = {.c = c, .deadline_s = o->deadline_s, .give_up_s = INFINITY, .start_s = solver_now_s(), .moves_max = o->moves};
    int32_t *given = malloc((size_t)c->n * sizeof *given);
    memset(out, 0, sizeof *out);
    s.mover.rng = (o->seed + 1) * 0x9E3779B97F4A7C15ull;
    s.mover.rng = s.mover.rng ? s.mover.rng : 1;
    for (int i = 0; given && i < c->n; i++) {
        given[i] = i;
        s.ideal += (double)c->cost[i];
    }
    s.enough = s.ideal;
    int rc = given ? open_row(&s, room(3 * (int64_t)c->n + 64), FSA_FREE) : -ENOMEM;
    if (!rc && o->reorder)
        rc = search(&s, given, c->n);
    else if (!rc)
        rc = search_given(&s, given);
    if (!rc && found(&s))
        rc = answer(&s, out);
    out->moves = s.moves;
    out->runs = s.runs;
    free(given);
    close_search(&s);
    if (rc)
        fastsa_answer_free(out);
    return rc;
}

void fastsa_answer_free(struct fastsa_answer *a)
{
    free(a->order);
    a->order = NULL;
    a->n = 0;
    a->found = 0;
}
