/* answers.h: the program's questions, how much memory there is and what lies at an address, answered as without remat. Doors: see engine.h.
 *
 * Threads: any. Errors: functions of type `int` without *res return the driver's code for the program.
 */
#ifndef REMAT_POLICY_ANSWERS_H
#define REMAT_POLICY_ANSWERS_H

#include "policy/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int eng_mem_info(size_t *free_bytes, size_t *total_bytes);
/* A device's memory as this process may know it. In: total_bytes and free_bytes as the machine says. */
enum { ENG_DEVICE_UNKNOWN = -2 }; /* no context yet: any device, by the limit that was asked for */
struct eng_memory {
    uint64_t total_bytes, free_bytes;
    uint64_t held_bytes; /* out, where is_set_up: bytes held by the program, evicted tensors included */
    bool is_set_up;
};
/* False: the machine's own answer stands. The engine need not be active. */
bool eng_device_memory(int dev, struct eng_memory *m);
/* 1: answered, result code in *res; 0: not managed, ask the driver. */
int eng_address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr, int *res);
int eng_pointer_attribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr, int *res);

#endif
