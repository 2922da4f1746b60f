/* address.h: what a word of a launch's arguments points at.
 *
 * Threads: under the engine's mutex.
 */
#ifndef REMAT_POLICY_ADDRESS_H
#define REMAT_POLICY_ADDRESS_H

#include "policy/device.h"

/* The word points into memory that the driver knows and remat does not manage. */
bool address_is_elsewhere(struct device *d, uint64_t word);
/* The word points into memory that the driver knows, or into remat's own. */
bool address_is_known(struct device *d, uint64_t word);
/* The word may be an address that remat gave to the program, or one that the driver knows. Not so in the part of the reservation where nothing has ever lain:
 * a word with an address in that part is something else, a flag beside the rest of a host address, say. */
bool address_may_have_been_had(struct device *d, uint64_t word);

#endif
