/* A plan-1 schedule: the steps of one iteration under a memory limit.
 *
 * What: the one header of offline/ that the runtime reads plans through, so it depends on libc alone;
 * plan.c adds jansson. Step meanings and the rules a plan must obey stand with the plan-1 format; the
 * simulator (sim.h) judges them.
 *
 * Threads: no shared state; one plan belongs to one thread at a time.
 * Errors: 0 or a negative errno; readers and writers put one line (file, line, column, JSON path) into err.
 */
#ifndef REMAT_OFFLINE_PLAN_H
#define REMAT_OFFLINE_PLAN_H

#include <stddef.h>
#include <stdint.h>

enum plan_kind { PLAN_OP, PLAN_REPLAY, PLAN_DROP, PLAN_OFFLOAD, PLAN_RELEASE, PLAN_FETCH, PLAN_N_KINDS };

/* "op", "replay", ...: the key of the step in the file. NULL out of range. */
const char *plan_kind_name(int kind);

struct plan_step {
    int32_t kind; /* enum plan_kind */
    int32_t id;   /* op index for PLAN_OP and PLAN_REPLAY, buffer id for the others */
};

enum { PLAN_LABEL = 512 };

struct plan {
    struct plan_step *steps; /* owned */
    size_t n_steps, cap_steps;
    int32_t *keep;           /* owned; buffers that stay when the program frees them, rising, no duplicates */
    size_t n_keep, cap_keep;
    int64_t limit_bytes, peak_bytes;
    int64_t baseline_ns, planned_ns;
    int64_t bound_ns;        /* proved: no plan for the same trace and limit takes less; 0: none is known */
    char trace[65];          /* sha256 of the trace, lower-case hex; "" unknown */
    char solver[PLAN_LABEL]; /* its name as on the command line; a longer one ends in "..." */
};

/* A plan must start zeroed (struct plan p = {0}); plan_free leaves it so again. */
void plan_free(struct plan *p);
/* Empty it but keep the memory, for solvers that build thousands. */
void plan_reset(struct plan *p);
int plan_push(struct plan *p, enum plan_kind kind, int32_t id); /* 0 or -ENOMEM */
int plan_keep(struct plan *p, int32_t buf);                     /* appends; 0 or -ENOMEM; see plan_keep_sort */
void plan_keep_sort(struct plan *p);                            /* puts keep in order and removes duplicates */
void plan_label(struct plan *p, const char *solver);            /* who made it */
int plan_copy(struct plan *dst, const struct plan *src);        /* dst is emptied first; 0 or -ENOMEM */

/* Read a plan-1 file. Checks the format and that every id is a non-negative 32-bit integer; whether ids exist
 * and the schedule is valid only a trace can tell (sim_run). -EINVAL with the place in err; *out stays zeroed. */
int plan_read(const char *path, struct plan *out, char *err, size_t err_len);
int plan_read_text(const char *name, const char *text, size_t len, struct plan *out, char *err, size_t err_len);

/* Write a plan-1 file, as tracer/output.h says: as a whole or not at all; "-" is standard output. */
int plan_write(const struct plan *p, const char *path, char *err, size_t err_len);

#endif
