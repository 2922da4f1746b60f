/*
 * The host's time: what each driver call takes of the thread that makes it, what the program's own work takes before a launch, and where a thread waits.
 * SIMGPU_COSTS names the figures; without it calls take nothing, as programs that are only to be right need it.
 *
 * Threads: any; a thread's clock is its own (gpu_clock.c). What is summed up is the process's.
 */
#ifndef SIMGPU_GPU_COSTS_H
#define SIMGPU_GPU_COSTS_H

#include <stdio.h>

#include "tests/simgpu/gpu.h"

/* Reads SIMGPU_COSTS, after gpu_config_read(). On nonsense prints one line and returns CUDA_ERROR_INVALID_VALUE. */
CUresult gpu_costs_read(void);
/* The figures of a call, when it is seen first. */
void gpu_costs_row(gpu_call *call);
/* The calling thread makes this call: its clock goes on by what that takes. */
void gpu_costs_enter(gpu_call *call);
/* The call under way is about so many bytes: where they cost, so much more. */
void gpu_costs_bytes(uint64_t bytes);
/* The thread has waited in the call under way. */
void gpu_costs_waited(uint64_t ns);
/* JSON: members of the object of statistics, each behind a comma. Nothing without SIMGPU_COSTS. */
void gpu_costs_print(FILE *f, gpu_call *const *calls, size_t n);

#endif
