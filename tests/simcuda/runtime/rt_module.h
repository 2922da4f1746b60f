/*
 * Variables that a program registered, for rt_symbol.c. Any thread; errors as rt.h says.
 */
#ifndef SIMCUDA_RT_MODULE_H
#define SIMCUDA_RT_MODULE_H

#include "tests/simcuda/runtime/rt.h"

/* Address and size on the current device. RT_INVALID_SYMBOL: nobody registered it. */
int rt_variable(const void *host, CUdeviceptr *at, size_t *bytes);

#endif
