/* vmm.h: the program's own memory (cuMemCreate), counted for as long as it is alive.
 *
 * The physical memory behind a cuMemCreate handle lives until the handle's last reference and its last mapping are gone;
 * the handle's number may be reused before that. Memory is therefore known by a serial number of remat's.
 *
 * Threads: any; one lock. Errors: none; see vmm_created().
 */
#ifndef REMAT_PRELOAD_VMM_H
#define REMAT_PRELOAD_VMM_H

#include "preload/door.h"

/* A handle of `bytes` was created on device `dev` (committed here). On exhausted host memory the bytes stay counted for good. */
void vmm_created(CUmemGenericAllocationHandle h, int dev, size_t bytes);
/* cuMemRetainAllocationHandle gave h: one more reference to the memory that is mapped at this address. */
void vmm_retained(CUmemGenericAllocationHandle h, CUdeviceptr at);
void vmm_released(CUmemGenericAllocationHandle h);
void vmm_mapped(CUmemGenericAllocationHandle h, CUdeviceptr at, size_t bytes);
/* Every mapping inside the range ended. */
void vmm_unmapped(CUdeviceptr at, size_t bytes);

#endif
