/*
 * Streams, events, host functions.
 */
#include "tests/simcuda/runtime/rt.h"

RT_EXPORT int cudaStreamCreateWithFlags(CUstream *stream, unsigned flags)
{
    RT_DO(cuStreamCreate(stream, flags));
}

RT_EXPORT int cudaStreamCreate(CUstream *stream)
{
    return cudaStreamCreateWithFlags(stream, CU_STREAM_DEFAULT);
}

RT_EXPORT int cudaStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    RT_DO(cuStreamCreateWithPriority(stream, flags, priority));
}

RT_EXPORT int cudaStreamDestroy(CUstream stream)
{
    RT_DO(cuStreamDestroy_v2(stream));
}

RT_EXPORT int cudaStreamGetPriority(CUstream stream, int *priority)
{
    RT_DO(cuStreamGetPriority(stream, priority));
}

RT_EXPORT int cudaStreamGetFlags(CUstream stream, unsigned *flags)
{
    RT_DO(cuStreamGetFlags(stream, flags));
}

RT_EXPORT int cudaStreamGetId(CUstream stream, unsigned long long *id)
{
    RT_DO(cuStreamGetId(stream, id));
}

RT_EXPORT int cudaStreamSynchronize(CUstream stream)
{
    RT_DO(cuStreamSynchronize(stream));
}

RT_EXPORT int cudaStreamQuery(CUstream stream)
{
    RT_DO(cuStreamQuery(stream));
}

RT_EXPORT int cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    RT_DO(cuStreamWaitEvent(stream, event, flags));
}

/* A cudaStreamCallback_t differs from the driver's in the name of its second parameter's type alone. */
RT_EXPORT int cudaStreamAddCallback(CUstream stream, void (*f)(CUstream, int, void *), void *arg, unsigned flags)
{
    RT_DO(cuStreamAddCallback(stream, (CUstreamCallback)(void (*)(void))f, arg, flags));
}

RT_EXPORT int cudaLaunchHostFunc(CUstream stream, CUhostFn f, void *arg)
{
    RT_DO(cuLaunchHostFunc(stream, f, arg));
}

RT_EXPORT int cudaEventCreateWithFlags(CUevent *event, unsigned flags)
{
    RT_DO(cuEventCreate(event, flags));
}

RT_EXPORT int cudaEventCreate(CUevent *event)
{
    return cudaEventCreateWithFlags(event, CU_EVENT_DEFAULT);
}

RT_EXPORT int cudaEventDestroy(CUevent event)
{
    RT_DO(cuEventDestroy_v2(event));
}

RT_EXPORT int cudaEventRecord(CUevent event, CUstream stream)
{
    RT_DO(cuEventRecord(event, stream));
}

RT_EXPORT int cudaEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    RT_DO(cuEventRecordWithFlags(event, stream, flags));
}

RT_EXPORT int cudaEventQuery(CUevent event)
{
    RT_DO(cuEventQuery(event));
}

RT_EXPORT int cudaEventSynchronize(CUevent event)
{
    RT_DO(cuEventSynchronize(event));
}

RT_EXPORT int cudaEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    RT_DO(cuEventElapsedTime_v2(ms, start, end));
}
