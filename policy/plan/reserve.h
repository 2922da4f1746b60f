/* reserve.h: the part of the limit that no plan can use, by the rule of tracer/reserve.h.
 *
 * Threads: under the engine's mutex. Errors: none.
 */
#ifndef REMAT_POLICY_PLAN_RESERVE_H
#define REMAT_POLICY_PLAN_RESERVE_H

#include "policy/device.h"

/* Bytes that the process holds beside the buffers that a plan of the sealed record may move, once such a plan is installed. Nothing is allocated. */
uint64_t reserve_of_record_bytes(struct device *d);
/* Pages that install_scratch() will take for the record beside the scratch that exists. */
uint64_t reserve_scratch_pages(struct device *d);

#endif
