/* walk.h: what is in memory while a schedule runs: for the pages and exports that show it.
 *
 * A plan that the simulator has judged is walked step by step; each buffer that takes or gives back memory is one event, and
 * each op or replay one more, between what it allocates and what dies after it: then exactly what the op needs is resident
 * (but for the scratch of a replay's side buffers, which belongs to no buffer).
 *
 * Threads: no shared state. Errors: 0 or -ENOMEM.
 */
#ifndef REMAT_OFFLINE_WALK_H
#define REMAT_OFFLINE_WALK_H

#include "offline/model/graph.h"
#include "offline/model/plan.h"
#include "tracer/plain.h"

enum walk_kind { WALK_ALLOC, WALK_FREE, WALK_RUN };

struct walk_event {
    enum walk_kind kind;
    int32_t buf;  /* WALK_ALLOC, WALK_FREE */
    int32_t op;   /* whose doing it is; -1: the start, or a copy */
    double ns;    /* compute clock */
    size_t step;  /* of the plan; p->n_steps: before the first */
};

typedef void walk_fn(void *ctx, const struct walk_event *e);

/* clock_ns[n_steps]: the compute clock at the end of each step, as sim_profile gives it. */
int walk_plan(const struct graph *g, const struct plan *p, const double *clock_ns, walk_fn *fn, void *ctx);

/* When the copies of a plan run: from_ns[k] to to_ns[k] for each offload and fetch step k, 0 for others; one engine for each
 * direction, in order, a fetch not before the copy out it undoes. */
int walk_copies(const struct graph *g, const struct plan *p, const double *clock_ns, double *from_ns, double *to_ns);

/* What a buffer is for: its kind (kinds.h), but activations that no other op reads are workspaces, as are those that only a run of ops touches
 * which one call of a library launched (split matrix products, reductions in two steps). */
enum walk_use { USE_PARAM, USE_STATE, USE_INPUT, USE_GRAD, USE_ACTIVATION, USE_WORKSPACE, USE_N };
const char *walk_use_name(int use);
/* use[n_bufs]: enum walk_use; phase[n_ops]: enum graph_phase. */
int walk_uses(const struct graph *g, uint8_t *use, uint8_t *phase);

/* A call site is frames, innermost first, separated by " < "; a frame of Python is "path.py:LINE function", any other one a
 * symbol or "library+0xoffset". Splits the next frame off *site: its file ("" if none), line (0) and name, a symbol of C++ as people
 * write it. Returns 0 at the end. */
struct walk_frame {
    char file[512], name[PLAIN_BYTES];
    int line;
};
int walk_frame_next(const char **site, struct walk_frame *out);
/* The whole site with its frames written so, to be freed by the caller; NULL: no memory. */
char *walk_site_plain(const char *site);
/* The end of the file's path: what lies in site-packages from there on, else the folder and the file. */
const char *walk_frame_short(const struct walk_frame *f);
/* A line of PyTorch's own that stands between a module and its caller, in every stack, and tells nothing. */
int walk_frame_is_glue(const struct walk_frame *f);

#endif
