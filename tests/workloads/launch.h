/*
 * One typed launcher per kernel: k_name(parameters of kernels.def) launches it with a thread for every work item
 * on the current stream. Pointers are device addresses (tensor.p). Errors end the program, see tensor.h.
 */
#ifndef WORKLOADS_LAUNCH_H
#define WORKLOADS_LAUNCH_H

#include "tests/workloads/kernel_args.h"
#include "tests/workloads/kernel_types.h"
#include "tests/workloads/tensor.h"

#define KERNEL(name, ...) KERNEL_##name,
enum {
#include "tests/workloads/kernels.def"
    KERNELS
};
#undef KERNEL

#define LAUNCH_ARG(t, n) {&n, sizeof(t)}
#define KERNEL(name, items, flops, bytes, ...) \
    static inline void k_##name(EACH(ARGS_DECLARE, ARGS_COMMA, __VA_ARGS__)) \
    { \
        const dev_arg args[] = {EACH(LAUNCH_ARG, ARGS_COMMA, __VA_ARGS__)}; \
        dev_launch(KERNEL_##name, (items), args, sizeof args / sizeof *args); \
    }
#include "tests/workloads/kernels.def"
#undef KERNEL

#endif
