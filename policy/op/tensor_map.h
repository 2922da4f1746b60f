/* tensor_map.h: tensor maps (CUtensorMap): 128 bytes that a kernel takes in place of an address, and that only the driver can read.
 *
 * Each map that the program makes is remembered by its content. Where a launch's arguments hold the same 128 bytes, the memory that
 * the map was made for is an operand like any other (op.c). Two maps of the same shape differ in the place alone: a shape is told
 * by the hash of its map for one fixed place.
 *
 * The table belongs to the process, as the layouts of functions do: a map is known in whichever device's launch it turns up. It only
 * grows, up to TENSOR_MAPS_MOST; the caller pins the memory of a map that finds no room.
 *
 * Threads: under the engine's mutex. Errors: a negative errno. Cost of a look-up: two loads where no known map begins with
 * these 16 bytes.
 */
#ifndef REMAT_POLICY_TENSOR_MAP_H
#define REMAT_POLICY_TENSOR_MAP_H

#include "policy/driver.h"

#include <stdbool.h>
#include <stdint.h>

enum { TENSOR_MAP_BYTES = 128, TENSOR_MAPS_MOST = 1 << 16 };

/* Remembers `map`, made for the memory at `at`; `shape`: the map for the fixed place. 0, also for a known map; -EINVAL: `at` is 0; -ENOMEM; -ENOSPC. */
int tensor_map_note(const CUtensorMap *map, CUdeviceptr at, const CUtensorMap *shape);
/* True if any map is known. */
bool tensor_map_any(void);
/* The place that the map in these 128 bytes was made for; 0: no known map. *shape: the map's shape, never 0. */
CUdeviceptr tensor_map_at(const unsigned char *bytes, uint64_t *shape);

#endif
