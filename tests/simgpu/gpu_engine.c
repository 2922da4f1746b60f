/*
 * An engine of the device's that works on memory past the driver, as a video encoder or a network card does: the libraries of
 * tests/programs/engines/ drive it. Synchronous: it begins when all work of the context is done, and is done when it returns.
 */
#include "tests/simgpu/gpu.h"

CUresult simgpu_engine_fill(CUdeviceptr to, unsigned value, size_t words);

GPU_EXPORT CUresult simgpu_engine_fill(CUdeviceptr to, unsigned value, size_t words)
{
    CUresult r = cuCtxSynchronize();
    if (!r)
        r = cuMemsetD32_v2(to, value, words);
    return r ? r : cuCtxSynchronize();
}
