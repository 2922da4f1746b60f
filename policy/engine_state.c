/* engine_state.c: see engine_state.h. */
#include "policy/engine_state.h"

#include "policy/current.h"
#include "policy/memory/space.h"
#include "policy/process/log.h"

struct process process;
pthread_mutex_t engine_mutex = PTHREAD_MUTEX_INITIALIZER;

struct device *engine_holder(CUdeviceptr ptr)
{
    for (unsigned i = 0; i < process.n_dev; i++)
        if (process.dev[i]->ready && !process.dev[i]->gone && mem_in_reservation(process.dev[i], ptr))
            return process.dev[i];
    return NULL;
}

void engine_name_call_site(void)
{
    const unsigned long long others = log_own_writes_begin();
    char *site = call_site_ask();
    log_own_writes_end(others); /* a stack walker tests by write() whether memory is mapped */
    loader_lock(&engine_mutex);
    call_site_name(site);
    loader_unlock(&engine_mutex);
}

bool engine_is_captured(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return process.n_captures && process.drv->cuStreamIsCapturing &&
           (process.drv->cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

struct engine_visit engine_visit(struct device *d)
{
    struct engine_visit v = {NULL, false};
    v.away = current_context(process.drv, &v.before) && v.before != d->ctx && current_set(process.drv, d->ctx);
    return v;
}

void engine_return(struct engine_visit v)
{
    if (v.away)
        current_set(process.drv, v.before);
}
