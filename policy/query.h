/* query.h: questions about an address of managed memory, answered as they would be without remat.
 *
 * Threads: under engine_lock(). Errors: *res is the driver's code.
 */
#ifndef REMAT_POLICY_QUERY_H
#define REMAT_POLICY_QUERY_H

#include "policy/device.h"

struct slot;

/* 1: answered, the driver's code in *res; 0: the driver is to be asked. */
int query_attribute(struct device *d, void *data, CUpointer_attribute attr, CUdeviceptr ptr, const struct slot *s, CUresult *res);

#endif
