/* capture.c: see capture.h. */
#include "policy/capture.h"

#include "policy/campaign.h"
#include "policy/engine.h"
#include "policy/engine_here.h"
#include "policy/memory/room.h"
#include "policy/reach.h"
#include "tracer/grow.h"

#include <stdlib.h>

/* A capture, found by the stream that began it: when it ends another device's context may be current, and a destroyed stream takes its capture
 * along. Or, `joined`, a device that came into another device's capture. */
struct capture {
    CUstream stream;
    struct device *d;
    cuuint64_t id; /* the driver's number of the capture; 0: not known */
    bool joined;
};

static void tell_devices(void)
{
    for (unsigned i = 0; i < process.n_dev; i++) {
        bool in = false;
        for (uint32_t k = 0; k < process.n_captures; k++)
            in |= process.captures[k].d == process.dev[i];
        process.dev[i]->capturing = in;
    }
}

static int add(CUstream stream, struct device *d, bool joined)
{
    if (!grow_room(&process.captures, process.n_captures, &process.cap_captures, 8))
        return CUDA_ERROR_OUT_OF_MEMORY;
    process.captures[process.n_captures++] = (struct capture){.stream = stream, .d = d, .joined = joined};
    tell_devices();
    return CUDA_SUCCESS;
}

/* Captures for which goes(c, what) is true go. */
static void remove_where(bool (*goes)(const struct capture *c, const void *what), const void *what)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < process.n_captures; i++)
        if (!goes(&process.captures[i], what))
            process.captures[n++] = process.captures[i];
    process.n_captures = n;
    tell_devices();
}

static bool is_joined_to(const struct capture *c, const void *id) { return c->joined && c->id == *(const cuuint64_t *)id; }
static bool is_joined(const struct capture *c, const void *unused) { return (void)unused, c->joined; }
static bool is_of_device(const struct capture *c, const void *d) { return c->d == d; }

/* The latest capture that this stream began ends, with the devices that came into it. False: the stream began none. */
static bool ends(CUstream stream)
{
    bool others = false;
    for (uint32_t i = process.n_captures; i-- > 0;) {
        if (process.captures[i].stream != stream || process.captures[i].joined)
            continue;
        const cuuint64_t id = process.captures[i].id;
        process.captures[i] = process.captures[--process.n_captures];
        if (id)
            remove_where(is_joined_to, &id);
        for (uint32_t k = 0; k < process.n_captures; k++)
            others |= !process.captures[k].joined;
        if (!others) /* no capture is left to have joined: for drivers that tell no numbers */
            remove_where(is_joined, NULL);
        tell_devices();
        return true;
    }
    return false;
}

void capture_stream_gone(CUstream stream)
{
    while (ends(stream))
        ;
}

void capture_device_ends(const struct device *d) { remove_where(is_of_device, d); }

static cuuint64_t number_of(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id = 0;
    if (!process.drv->cuStreamGetCaptureInfo || process.drv->cuStreamGetCaptureInfo(stream, &status, &id) != CUDA_SUCCESS ||
        status == CU_STREAM_CAPTURE_STATUS_NONE)
        return 0;
    return id;
}

/* Live memory of the device stays where it is from now on, and the device is in a capture. */
static int comes_in(struct device *d, CUstream stream, bool joined)
{
    const int r = reach_all_stays_drv(d, "a stream capture");
    if (!r && !d->capturing) { /* memory that is allocated meanwhile comes from the driver, and no room can be made then */
        struct engine_visit v = engine_visit(d);
        room_give_free(d);
        engine_return(v);
    }
    return r ? r : add(stream, d, joined);
}

int eng_capture_begins(CUstream stream)
{
    engine_lock();
    capture_mode_ours(process.drv); /* captures that no door saw may be under way */
    struct device *d = engine_of_stream(stream);
    const int r = d ? comes_in(d, stream, false) : CUDA_SUCCESS;
    engine_unlock();
    return r;
}

void eng_capture_began(CUstream stream)
{
    engine_lock();
    for (uint32_t i = process.n_captures; i-- > 0;)
        if (process.captures[i].stream == stream && !process.captures[i].joined && !process.captures[i].id) {
            process.captures[i].id = number_of(stream);
            break;
        }
    engine_unlock();
}

void eng_capture_ends(CUstream stream)
{
    engine_lock();
    ends(stream);
    engine_unlock();
}

bool eng_capture_under_way(void) { return __atomic_load_n(&process.n_captures, __ATOMIC_RELAXED) != 0; }

int eng_capture_joins(CUstream stream, CUevent event, bool *joins)
{
    int r = CUDA_SUCCESS;
    *joins = false;
    engine_lock();
    if (process.n_captures && process.drv->cuEventQuery(event) == CUDA_ERROR_CAPTURED_EVENT && !engine_is_captured(stream)) {
        struct device *d = engine_of_stream(stream);
        if (d && !(r = comes_in(d, stream, true)))
            *joins = true;
    }
    engine_unlock();
    return r;
}

void eng_capture_joined(CUstream stream)
{
    engine_lock();
    const cuuint64_t id = number_of(stream);
    for (uint32_t i = process.n_captures; i-- > 0;) {
        struct capture *c = &process.captures[i];
        if (!c->joined || c->stream != stream || c->id)
            continue;
        bool again = !engine_is_captured(stream); /* the driver refused the wait */
        for (uint32_t k = 0; k < process.n_captures && id; k++)
            again |= process.captures[k].d == c->d && process.captures[k].id == id;
        if (again)
            *c = process.captures[--process.n_captures];
        else
            c->id = id;
        break;
    }
    tell_devices();
    engine_unlock();
}
