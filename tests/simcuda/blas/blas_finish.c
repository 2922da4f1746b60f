/* The end of a matmul: factors, the matrix added, epilogues, rounding to the type of the result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/blas/blas_abi.h"
#include "tests/simcuda/blas/blas_convert.h"
#include "tests/simcuda/blas/blas_kernels.h"

static void load_double(int type, const void *from, double *to, size_t n)
{
    (void)type;
    memcpy(to, from, n * sizeof *to);
}

static void store_double(int type, const double *from, void *to, size_t n)
{
    (void)type;
    memcpy(to, from, n * sizeof *from);
}

#define REAL float
#define TANH tanhf
#define FINISH blas_finish_f32
#define LOAD blas_widen
#define STORE blas_narrow
#define NAMED(f) f##_f32
#include "tests/simcuda/blas/blas_finish_real.h"

#define REAL double
#define TANH tanh
#define FINISH blas_finish_f64
#define LOAD load_double
#define STORE store_double
#define NAMED(f) f##_f64
#include "tests/simcuda/blas/blas_finish_real.h"
