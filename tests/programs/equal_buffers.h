/* Buffers that are all of one size, and what is done with them; programs that are a table of cases. */
#ifndef PROGRAMS_EQUAL_BUFFERS_H
#define PROGRAMS_EQUAL_BUFFERS_H

#include "tests/programs/program.h"

enum { WORDS = 16384, BYTES = 4 * WORDS };

static CUcontext ctx;
static CUmodule kernels;
static CUfunction f_map;
static uint32_t host[WORDS];

static inline CUstream stream(unsigned flags)
{
    CUstream s;
    MUST(cuStreamCreate(&s, flags));
    return s;
}

static inline CUdeviceptr alloc(CUstream s)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, BYTES, s));
    return p;
}

static inline void fill(CUdeviceptr p, uint32_t v, CUstream s) { MUST(cuMemsetD32Async(p, v, WORDS, s)); }

/* Each word of out is made of the one of in (the kernel "map"). */
static inline void map(CUdeviceptr out, CUdeviceptr in, CUstream s)
{
    uint32_t n = WORDS, k = 1, all = 0xffffffffu;
    MUST(cuLaunchKernel(f_map, 8, 1, 1, 64, 1, 1, 0, s, (void *[]){&out, &in, &n, &k, &all}, NULL));
}

struct test_case {
    const char *name;
    void (*run)(void);
};
#define CASE(f) {#f, f}

static inline void start(void)
{
    ctx = primary_context();
    kernels = load_kernels();
    f_map = kernel(kernels, "map");
}

/* The case that the program's one argument names; an exit code. */
static inline int run_case(const char *program, const struct test_case *cases, size_t n, int argc, char **argv)
{
    for (size_t i = 0; i < n; i++)
        if (argc == 2 && !strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "usage: %s CASE\n", program);
    return 2;
}

#endif
