/* nvml_limits.h: the memory limits that NVML knows of a cgroup (drv.nvml_limits, policy/driver.h), asked of NVML where it is installed.
 *
 * Threads: any, with the door shut. Errors: -ENOENT: no NVML; -ENOSYS: this NVML knows of no limits, or of none for this device.
 */
#ifndef REMAT_PRELOAD_NVML_LIMITS_H
#define REMAT_PRELOAD_NVML_LIMITS_H

#include <stdint.h>

int nvml_limits(const char *pci, const char *cgroup, uint64_t *soft_bytes, uint64_t *hard_bytes, uint64_t *used_bytes);

#endif
