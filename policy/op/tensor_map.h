/* tensor_map.h: tensor maps (CUtensorMap): 128 bytes that a kernel takes in place of an address, and that only the driver can read.
 *
 * Each one that the program makes is remembered by its content. Where a launch's arguments hold the same 128 bytes, the memory that
 * the map was made for is an operand like any other (op.c). Two maps of the same shape differ in the place alone: the shape is known
 * by a hash of a map made for one and the same place.
 *
 * The table belongs to the process, as the layouts of functions do: a map is known in whichever device's launch it turns up. It only
 * grows, up to TENSOR_MAPS_MOST; the caller pins what there is no room for.
 *
 * Threads: under the engine's mutex. Errors: a negative errno. Cost of a look-up: two loads where nothing is known to begin with
 * these 16 bytes.
 */
#ifndef REMAT_POLICY_TENSOR_MAP_H
#define REMAT_POLICY_TENSOR_MAP_H

#include "policy/driver.h"

#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_MAP_BYTES = 128, TENSOR_MAPS_MOST = 1 << 16 };

/* 0 (it may have been known); -ENOMEM; -ENOSPC. */
int tensor_map_note(const CUtensorMap *map, CUdeviceptr at, const CUtensorMap *shape);
/* Any were made at all. */
bool tensor_map_any(void);
/* The place that the map in these 128 bytes was made for, 0: it is none that is known; *shape: its shape, never 0. */
CUdeviceptr tensor_map_at(const unsigned char *bytes, uint64_t *shape);

#endif
