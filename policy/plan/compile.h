/* compile.h: makes a struct compiled of a record and a plan.
 *
 * Pure data, but for reading the plan's file and for log lines. Threads: one owner. Errors: 0 or a negative errno.
 */
#ifndef REMAT_POLICY_COMPILE_H
#define REMAT_POLICY_COMPILE_H

#include "policy/learn/recording.h"
#include "policy/plan/compiled.h"

/* Versions, producers, deaths of a sealed record, into *out, which compile_free() frees, also after an error. 0 or -ENOMEM. */
int compile_index(const struct record *r, const struct compiled **out);
/* Reads a plan for the record, checks that it fits, and compiles its steps into `index`. -EINVAL, mostly with a log line, or -ENOMEM: the
 * plan's tables mean nothing afterwards. `own`: the plan is for our own form of the trace, with holds; else for the trace the user was given,
 * which has the same ops but no holds. */
int compile_plan(const struct compiled *index, const struct recording *rec, const char *path, bool own);
/* A memset that fills a part of a side operand right before its op (filled_by[n_operands], installed.h) is run again wherever the op is: its
 * compiled.again_until is raised to the op's. */
void compile_fills(const struct compiled *index, const struct record *r, const int32_t *filled_by);
void compile_free(const struct compiled *index);

#endif
