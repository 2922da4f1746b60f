/*
 * Between the simulated driver and the catalogue of kernels in C (abi 1).
 *
 * A real program brings its kernels as machine code in a fat binary. The simulated driver reads from it what can be
 * read without looking at the code: names, parameter offsets and sizes, thread limits. What a kernel does it asks
 * of the catalogue, a shared object that knows kernels by their mangled names:
 * $SIMGPU_CATALOGUE, else ../simcuda/catalogue.so beside libcuda.so.1. It exports one symbol with default visibility,
 * `const struct catalogue_info simcuda_catalogue`, and is opened once, when the first fat binary is loaded.
 *
 * Threads: find() is called once for each kernel, under a lock of the driver, on the thread that first launches it; cost()
 * on the thread that launches, before the launch returns, at times from several threads at once; run() on a thread of the
 * simulated GPU after the launch has returned: one after the other on one stream, at the same time on different streams.
 * None may make a driver call. run() may start threads that have ended when it returns; touching memory that is not
 * mapped ends it there, as simgpu.h says: locks it held stay held, what it allocated is lost.
 *
 * Memory: params[i] points to a copy of parameter i's bytes, as aligned as in the parameter block (whose beginning is
 * aligned to 16); the copy lives until run() returns. Device addresses inside the parameters are valid inside run() and
 * nowhere else: cost() may look at parameters, never at memory that they point to.
 *
 * Errors: find() alone has any, a negative errno as below; it does not print.
 */
#ifndef SIMCUDA_CATALOGUE_H
#define SIMCUDA_CATALOGUE_H

#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/simgpu.h"

#define CATALOGUE_ABI 1u
#define CATALOGUE_SYMBOL "simcuda_catalogue"

/* A kernel of a fat binary, as its metadata tells. Lives as long as the module that it came from. */
struct catalogue_kernel {
    const char *name;           /* mangled; names of anonymous namespaces hold a hash that differs from build to build */
    unsigned n_params;
    const uint32_t *offset;     /* n_params: where each parameter begins in the parameter block */
    const uint32_t *bytes;      /* n_params: its size */
    uint32_t param_bytes;       /* of the whole block */
    uint32_t max_threads;       /* a block, as __launch_bounds__ says; 1024 where it says nothing */
    uint32_t static_shared_bytes;
    uint32_t registers;
    unsigned arch;              /* what the code was compiled for: 80, 90, ... */
    const char *const *beside;  /* n_beside: names of all kernels of its module, itself among them; where versions of a program */
    unsigned n_beside;          /* differ in what one of them does, they may differ in what there is */
};

/* One launch. */
struct catalogue_launch {
    simgpu_dim3 grid, block;
    uint32_t shared_bytes;                 /* dynamic */
    const struct catalogue_kernel *kernel;
    int device;                            /* ordinal of the simulated device */
    unsigned sm_count;                     /* its multiprocessors */
    uint64_t chaos;                        /* 0: none, else a number that differs from launch to launch: what a device leaves
                                              open (the order of atomic additions) shall follow from it */
    int cooperative;                       /* blocks may wait for each other */
};

struct catalogue_binding {
    void (*run)(const struct catalogue_launch *l, void *const *params, const void *row);
    /* Arithmetic and bytes moved. NULL: the launch overhead alone. */
    void (*cost)(const struct catalogue_launch *l, void *const *params, const void *row, uint64_t *flops,
                 uint64_t *bytes);
    const void *row; /* handed to both; the catalogue's own, never freed by the driver */
};

struct catalogue_info {
    unsigned abi; /* CATALOGUE_ABI */
    /* Fills *out and returns 0; else
         -ENOENT  no entry for this template or function
         -ENOSYS  the template is known, this functor or element type of it is not
         -EPROTO  entry found, but the parameters have other sizes than it expects (another version of the program)
         -ENOMEM */
    int (*find)(const struct catalogue_kernel *k, struct catalogue_binding *out);
    /* Writes the demangled name (the mangled one where it cannot be demangled), cut to fit, with its NUL. */
    void (*describe)(const char *mangled, char *out, size_t out_bytes);
};

extern const struct catalogue_info simcuda_catalogue;

#endif
