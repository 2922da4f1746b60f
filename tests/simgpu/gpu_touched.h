/*
 * What kernels of PTX texts do to the buffers that they are given, byte by byte: SIMGPU_TOUCHED=FILE gets a line for each kernel and each way in which
 * it is launched (grid, sizes of buffers, which parameters share one). FILE may be there already: lines are added.
 *
 *     KERNEL <tab> PARAMETERS BYTES READ STORED <tab> PARAMETERS BYTES READ STORED ...
 *
 * One group for each buffer: which parameters point into it ("0" or "0,3"), its size, how many of its bytes are loaded before this launch has
 * stored them, how many are stored. "1 4096 0 128" is a result of 128 bytes in a buffer of 4,096.
 *
 * Threads: any, not under gpu_lock; what is recorded belongs to the calling thread from begin to end, and to nobody if the kernel faults between. A launch
 * of a graph is not recorded: nobody looks at its buffers while the program launches it.
 */
#ifndef SIMGPU_GPU_TOUCHED_H
#define SIMGPU_GPU_TOUCHED_H

#include "tests/simgpu/ptx/ptx.h"

/* The program launches l, which is to run as `launch` (any address that no other launch has before this one has run): remembers what buffers it has. */
void gpu_touched_launched(const void *launch, const struct ptx_launch *l);
/* It runs. Sets l->touched where it is to be recorded: false, and nothing to end, where it is not. */
bool gpu_touched_begin(const void *launch, struct ptx_launch *l);
void gpu_touched_end(const struct ptx_launch *l);

#endif
