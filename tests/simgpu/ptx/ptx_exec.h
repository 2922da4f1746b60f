/* One warp at a time: runs until it ends, waits, or its slice is over. See ptx_warp.h. */
#ifndef SIMGPU_PTX_EXEC_H
#define SIMGPU_PTX_EXEC_H

#include "tests/simgpu/ptx/ptx_warp.h"

enum warp_stop { WARP_ENDED, WARP_WAITS, WARP_SLICE };
enum warp_stop exec_warp(struct warp *w, uint64_t slice);
/* All lanes that exist begin the kernel. */
void exec_begin(struct warp *w);
/* True while a lane of w could go on. */
bool exec_ready(const struct warp *w);
/* A barrier's threads go on if all are there. Called where threads came or ended. */
void exec_barriers(struct block *b);

#endif
