/* capture_mode.c: see capture_mode.h. */
#include "policy/process/capture_mode.h"

_Thread_local struct capture_mode capture_mode;

void capture_mode_ours(const struct drv *drv)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (capture_mode.ours || !drv->cuThreadExchangeStreamCaptureMode || drv->cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS)
        return;
    capture_mode = (struct capture_mode){true, mode};
}

void capture_mode_programs(const struct drv *drv)
{
    CUstreamCaptureMode mode = capture_mode.programs;
    if (!capture_mode.ours)
        return;
    (void)drv->cuThreadExchangeStreamCaptureMode(&mode);
    capture_mode.ours = false;
}
