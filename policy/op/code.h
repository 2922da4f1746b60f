/* code.h: the identity of a function's code, which holds in other processes too: a hash of the image that its module or library was loaded from
 * (tracer/known/image.h), and of the kind of device.
 *
 * Code whose variables the program asks for by name has no identity: what its kernels do may depend on what is written to such a variable (a mode in a
 * `__device__` variable), and that may differ between runs.
 *
 * Threads: under the engine's mutex. Errors: without memory, or where an image could not be recognised, code has no identity.
 */
#ifndef REMAT_POLICY_OP_CODE_H
#define REMAT_POLICY_OP_CODE_H

#include "policy/op/func.h"
#include "tracer/known/known.h"

/* A module or library (one of the two is NULL) has been loaded; code NULL: the image is unknown. */
void code_note(CUmodule module, CUlibrary library, const struct known_code *code);
/* The module or library is unloaded, and its handle may be given to another one. */
void code_forget(CUmodule module, CUlibrary library);
/* The program has the address of a variable of the module or library. */
void code_is_named(CUmodule module, CUlibrary library);
/* The identity of f's code, in *code. False: f has none. */
bool code_of(const struct device *d, const struct func *f, struct known_code *code);

#endif
