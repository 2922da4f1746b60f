/* cuBLAS: what is imported and not there. Arguments are not looked at, so one shape of function serves for all. */
#include "tests/simcuda/blas/blas_driver.h"

#define REFUSED(name)                                                                                                  \
    cublasStatus_t name(void);                                                                                         \
    cublasStatus_t name(void)                                                                                          \
    {                                                                                                                  \
        return blas_refuse(#name);                                                                                     \
    }
#include "tests/simcuda/blas/blas_refused.def"
