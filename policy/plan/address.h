/* address.h: what a word of a launch's arguments points at.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_ADDRESS_H
#define REMAT_POLICY_ADDRESS_H

#include "policy/device.h"

/* Memory that the driver knows and we do not see lies there. */
bool address_is_elsewhere(struct device *d, uint64_t word);
/* That, or memory of ours. */
bool address_is_known(struct device *d, uint64_t word);
/* The program may have had it of us, or the driver knows it. In the part of our reservation where nothing has ever lain there are none: a word with
 * an address there is something else, a flag beside what an address of the process has left, say. */
bool address_may_have_been_had(struct device *d, uint64_t word);

#endif
