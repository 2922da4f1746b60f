/* graph_memory.h: addresses that stream captures have given out. Such addresses belong to a graph, and have memory once the graph is launched. Where a capture is
 * broken off, or its graph never launched, they have none, and the driver refuses the free that a program makes all the same: PyTorch in a destructor, which ends the
 * program. remat lets such a free succeed: there is nothing to give back.
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
