/* texture.h: handles of textures and surfaces: 64 bits that a kernel takes in place of an address, and that only the driver can read. What a handle shows is no
 * operand: an array, or linear memory, that is read or (a surface) written unseen. So a launch that may use one is never run again: neither as a
 * replay, which would find there what is there by then, nor as a trial, which would add to a surface once more.
 *
 * A launch may use one if its arguments hold a handle that is known; any launch may once a texture or surface reference is bound (those are variables of
 * a module), or a handle is copied to where nobody looks (a __constant__ variable).
 *
 * The table belongs to the process. Threads: under the engine's mutex. Errors: where there is no memory for a handle any launch may use it.
 * Cost of a look-up: one load where nothing is known to hash like the word.
 */
#ifndef REMAT_POLICY_OP_TEXTURE_H
#define REMAT_POLICY_OP_TEXTURE_H

#include <stdbool.h>
#include <stdint.h>

/* One more object, or one less, has this handle. */
void texture_note(uint64_t handle);
void texture_forget(uint64_t handle);
/* There are any. */
bool texture_any(void);
bool texture_is(uint64_t word);
/* Any launch may use one. */
bool texture_by_any(void);
void texture_set_by_any(void);

#endif
