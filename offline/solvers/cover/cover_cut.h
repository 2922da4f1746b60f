/* cover_cut.h: the ops that must be recomputed because memory is short at one instant, as minimum cuts.
 *
 * Take the instant at which op t runs, in any schedule without copies to the host. Let H be the values in memory then,
 * and P the ops that are replayed at least once after it. Then
 *   (1) a value made before the instant and used by the program after it (or wanted at the end) is in H, or its
 *       producer is in P: the first such use finds the value in memory, because it stayed or was replayed;
 *   (2) for each op in P, each of its inputs is in H, or the input's producer is in P: the same argument for the
 *       first replay of the op;
 *   (3) a value that nothing rebuilds is in H if it is used later, and can be in H only if nothing overwrote it;
 *   (4) op t's own operands are in H, and the bytes of H are within the limit.
 * So the least total time of a set P for which some H fulfils (1) to (4) is a lower bound on what the schedule spends on
 * replays: each op of P runs at least once more. The bound ignores when the replays run and what else is in memory
 * meanwhile, which only makes it lower.
 *
 * Without the limit, finding P is a closure problem. With a price on each byte of H in the limit's place it is a minimum cut,
 *     source -> need(v)       infinite   (1)
 *     need(v) -> redo(p)      price x bytes of v, p its producer; -> sink where nothing rebuilds v: v is in H
 *     redo(p) -> need(u)      infinite   for each input u of p (2)
 *     redo(p) -> sink         time of p: p is in P
 * and, for every price >= 0, minimum cut - price x (limit - bytes of (3), (4)) is a lower bound too (weak duality: the
 * schedule's own H and P are a cut, and what its H weighs is within the limit). The best price is found by the
 * secant rule on the two cuts on either side of the limit, which ends because a cut network has finitely many cuts; the
 * bound then equals that of the linear program. Capacities are integers: times scaled up by COVER_SCALE, prices times
 * bytes rounded down, which keeps the bound on the safe side.
 *
 * The old bound (lower_bound.py) leaves out (2): in a transformer most droppable values are made from
 * values that the program itself frees, which must be kept or remade as well.
 *
 * Threads: a struct cover_cut belongs to one thread. Errors: 0 or a negative errno; NULL: no memory.
 */
#ifndef REMAT_OFFLINE_COVER_CUT_H
#define REMAT_OFFLINE_COVER_CUT_H

#include <stdint.h>

#include "offline/model/graph.h"

enum { COVER_SCALE = 256 };

/* The cheapest H and P at some price: a corner of the curve of replay time over bytes held. */
struct cover_point {
    int64_t held_bytes; /* bytes of the values val[] in H */
    int64_t replay_ns;
    uint8_t *state;     /* owned; [n_vals] enum cover_state */
};
enum cover_state { COVER_UNUSED, COVER_HELD, COVER_REDONE }; /* value not needed; in H; producer in P */

struct cover_cut {
    const struct graph *g;
    int32_t op;            /* the instant */
    int64_t must_bytes;    /* (3) and (4): bytes in memory whatever the schedule */
    int32_t n_vals;        /* values of kind COVER_CHOICE */
    int32_t *val;          /* [n_vals] */
    struct cover_point *points; /* points by falling held_bytes; the first point holds all values needed, the last as few bytes as possible */
    int32_t n_points;
    int8_t *kind;          /* [n_vals of the graph] enum cover_kind */
    struct cover_net *net;
};

/* Whether a value is in H. */
enum cover_kind {
    COVER_UNRELATED = -1, /* not made yet, or not used after the instant */
    COVER_CHOICE,         /* in H or not */
    COVER_THERE,          /* always in H: (3), (4) */
    COVER_GONE            /* never in H */
};

/* Op p may be replayed after the instant: it ran, and no input of it is gone for good. */
int cover_cut_may_redo(const struct cover_cut *c, int32_t p);
/* No replay makes value v again, whatever is in memory: v existed before op 0, or an opaque op or a side operand made it. */
int cover_fixed(const struct graph *g, int32_t v);

struct cover_cut *cover_cut_new(const struct graph *g, int32_t op);
void cover_cut_free(struct cover_cut *c);

/* Result of cover_cut_solve for a limit. */
struct cover_verdict {
    int impossible;  /* proved: no schedule without copies keeps the limit */
    double bound_ns; /* proved: no schedule without copies spends less on replays */
    int32_t point;   /* index of the cheapest point known that is within the limit at this instant; -1 if impossible */
};
/* Adds the points on both sides of the limit to c->points, so indices of points change with every call. 0 or -ENOMEM. */
int cover_cut_solve(struct cover_cut *c, int64_t limit_bytes, struct cover_verdict *v);

#endif
