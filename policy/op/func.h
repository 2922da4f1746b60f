/* func.h: the functions that are launched: the layout of their parameters, whose code they are, what was learnt of them.
 *
 * Threads: under the engine's mutex. Errors: NULL: no memory; *_drv return the driver's code.
 */
#ifndef REMAT_POLICY_OP_FUNC_H
#define REMAT_POLICY_OP_FUNC_H

#include "policy/device.h"

enum { OP_MAX_ARG_BYTES = 32768, OP_MAX_PARAMS = 4096 };

/* A kernel and the layout of its parameters; one for every handle ever launched. */
struct func {
    CUfunction handle;
    uint64_t generation;
    CUmodule module;   /* module of the function; NULL: the function is a library's, or its module unknown */
    CUlibrary library; /* library of the function; NULL: the function is a module's, or its library unknown */
    bool unloaded;     /* the function's code has gone: a later function with this handle is another one, even of the same name */
    char *name;
    uint32_t n_params, arg_bytes;
    uint32_t *offset, *size; /* per parameter, bytes */
    bool is_kernel;          /* the handle is a CUkernel */
    bool known;              /* the driver told the layout */
    struct func_effect *effects; /* learnt per parameter offset (probe.c) */
    uint32_t n_effects, cap_effects;
    uint64_t lasting;        /* identity of code and name, the same in any run; 0: not known */
    bool lasting_asked;
};

/* The layout of a function's parameters, from the driver, remembered. NULL: no memory. */
struct func *func_of(struct device *d, CUfunction f);
/* The parameter that holds the argument byte at `offset`, -1: none, or the layout is unknown. */
int func_param_at(const struct func *f, uint32_t offset);
/* The dynamic shared memory that a launch of f may have, in bytes, as set last. The driver's code; CUDA_ERROR_NOT_SUPPORTED: the driver has no such call. */
int func_shared_most_drv(const struct device *d, const struct func *f, int *bytes);
int func_set_shared_most_drv(const struct device *d, const struct func *f, int bytes);
/* Parameter i is a struct passed by value, as far as its size tells: some of its bytes may be unwritten. */
static inline bool func_is_struct(const struct func *f, uint32_t i) { return f->size[i] > 8; }
void func_note_kernel(CUkernel k);
void func_forget_all(void); /* handles may be reused from now on */
/* The function is of this module, or of this library, whose module is `module`; true where that is not known. */
bool func_is_of(const struct func *f, CUmodule module, CUlibrary library);
/* The code of `module` or `library` is about to go: their functions are marked `unloaded`. */
void func_unload(const struct drv *drv, CUmodule module, CUlibrary library);

#endif
