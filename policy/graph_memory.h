/* graph_memory.h: addresses that stream captures have given out. They are a graph's: memory is there once it is launched. Where a capture is broken off, or its graph
 * never launched, there is none, and the driver refuses the free that a program makes all the same: PyTorch in a destructor, which ends the program. Such a
 * free succeeds: there is nothing to give back.
 *
 * Threads: under the engine's mutex. Errors: none; an address for which there is no room is not known, and the driver's answer stands.
 */
#ifndef REMAT_POLICY_GRAPH_MEMORY_H
#define REMAT_POLICY_GRAPH_MEMORY_H

#include "preload/cuda_abi.h"

#include <stdbool.h>

void graph_memory_add(CUdeviceptr ptr);
/* The driver's answer `r` to a free of ptr means that there is nothing to free. */
bool graph_memory_is_none(CUdeviceptr ptr, int r);

#endif
