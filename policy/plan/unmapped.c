#include "policy/plan/unmapped.h"
#include "policy/learn/trial.h"
#include "tracer/plain.h"

int unmapped_look_drv(struct device *d, const char *name, CUstream stream)
{
    /* an op that waits for a later call of the program is looked at after a later op */
    trial_settle(d, true);
    CUresult code = d->drv->cuStreamQuery(stream);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY)
        return CUDA_SUCCESS;
    if (code == CUDA_ERROR_ILLEGAL_ADDRESS)
        log_once(SAY_ERROR, "%s touched memory that is evicted and that none of its arguments shows (or it has a fault of its own: run the "
                 "program with --policy off); remat must not evict here; the program gets CUDA_ERROR_ILLEGAL_ADDRESS from this launch on", PLAIN_IN_LINE(name));
    return code;
}
