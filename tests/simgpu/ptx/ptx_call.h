/*
 * Calls. A called function's frame lies behind its caller's; where other lanes are there with another function, behind theirs. Lanes that
 * called one function from one frame share its frame, whenever they came.
 */
#ifndef SIMGPU_PTX_CALL_H
#define SIMGPU_PTX_CALL_H

#include "tests/simgpu/ptx/ptx_warp.h"

typedef void add_group_fn(struct warp *w, uint32_t pc, uint32_t base, uint32_t mask, enum group_state state);
/* Lanes m, which are at the call at `pc` in the frame at `base`, begin the function. */
void call_begin(struct warp *w, const struct ptx_insn *in, uint32_t pc, uint32_t base, uint32_t m, add_group_fn *add);
/* Lanes m return from the frame at `base`. */
void call_end(struct warp *w, const struct ptx_insn *in, uint32_t base, uint32_t m, add_group_fn *add);

#endif
