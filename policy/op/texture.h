/* texture.h: handles of textures and surfaces: 64 bits that a kernel takes in place of an address, and that only the driver can read. The memory behind a handle
 * (an array, or linear memory) is no operand: it is read or (a surface) written unseen. So a launch that may use a handle is never run again: neither as
 * a replay, which might find other content there, nor as a trial, which would add to a surface once more.
 *
 * A launch may use a handle if its arguments hold a known one; any launch may once a texture or surface reference is bound (references are variables of
 * a module), or a handle is copied to memory that remat does not look at (a __constant__ variable).
 *
 * The table belongs to the process. Threads: under the engine's mutex. Errors: where there is no memory for a handle any launch may use it.
 * Cost of a look-up: one load where no known handle hashes like the word.
 */
#ifndef REMAT_POLICY_OP_TEXTURE_H
#define REMAT_POLICY_OP_TEXTURE_H

#include <stdbool.h>
#include <stdint.h>

/* An object with this handle was made, or is gone: several may have the same handle. */
void texture_note(uint64_t handle);
void texture_forget(uint64_t handle);
/* True if any handle is known. */
bool texture_any(void);
bool texture_is(uint64_t word);
/* True if any launch may use a texture. */
bool texture_by_any(void);
void texture_set_by_any(void);

#endif
