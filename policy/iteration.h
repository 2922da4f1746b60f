/* iteration.h: device.ex: the recorded iteration, which learn/ writes; the plan for it; and where the iteration in progress stands in the plan, which
 * plan/ writes. Made by exec_index() when a record is whole, gone with exec_clear().
 */
#ifndef REMAT_POLICY_ITERATION_H
#define REMAT_POLICY_ITERATION_H

#include "policy/learn/recording.h"
#include "policy/plan/compiled.h"
#include "policy/plan/installed.h"
#include "policy/plan/progress.h"

struct exec {
    struct recording learnt;
    const struct compiled *plan; /* NULL until a record is whole; written by plan/compile.c alone */
    struct installed map;
    struct progress now;
};

#endif
