/*
 * The table that says how a header lays out the CUDA driver interface: one row per line of abi_rows.def.
 * abi_ours.c fills it from preload/cuda_abi_types.h, abi_nvidia.c from NVIDIA's cuda.h (no rows where that
 * header is missing or older than 13.0). Constant data: any thread.
 */
#ifndef SIMGPU_ABI_ROWS_H
#define SIMGPU_ABI_ROWS_H

#include <stddef.h>

typedef struct {
    const char *what; /* as written in abi_rows.def */
    long long value;  /* a size or offset in bytes, or the value of a constant */
} abi_row;

extern const abi_row abi_rows_ours[];
extern const size_t abi_rows_ours_count;
extern const abi_row abi_rows_nvidia[];
extern const size_t abi_rows_nvidia_count;

#define ABI_SIZE(type) { "sizeof(" #type ")", (long long)sizeof(type) },
#define ABI_OFFSET(type, field) { "offsetof(" #type ", " #field ")", (long long)offsetof(type, field) },
#define ABI_VALUE(constant) { #constant, (long long)(constant) },

#endif
