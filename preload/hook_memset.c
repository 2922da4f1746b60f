/* hook_memset.c: fills. One function answers all; the hooks differ in element size, in shape and in whether the host waits. */
#include "policy/engine.h"
#include "preload/door.h"

static int fill(CUdeviceptr d, size_t pitch, unsigned value, unsigned elem_bytes, size_t w, size_t h, CUstream s, bool sync)
{
    struct eng_memset m = {
        .dst = d,
        .pitch_bytes = pitch,
        .value = value,
        .elem_bytes = elem_bytes,
        .width = w,
        .height = h,
        .stream = s,
        .sync = sync,
    };
    return eng_memset(&m);
}

/* The four calls of one element size: rows and boxes, waited for or not. */
#define FILLS(bits, type)                                                                                              \
    static int on_set##bits(__typeof__(&cuMemsetD##bits##_v2) real, CUstream nul, CUdeviceptr d, type v, size_t n)     \
    {                                                                                                                  \
        (void)real;                                                                                                    \
        return fill(d, 0, v, bits / 8, n, 1, nul, true);                                                               \
    }                                                                                                                  \
    static int on_set##bits##_async(__typeof__(&cuMemsetD##bits##Async) real, CUstream nul, CUdeviceptr d, type v,     \
                                    size_t n, CUstream s)                                                              \
    {                                                                                                                  \
        (void)real;                                                                                                    \
        return fill(d, 0, v, bits / 8, n, 1, door_stream(s, nul), false);                                              \
    }                                                                                                                  \
    static int on_set2d##bits(__typeof__(&cuMemsetD2D##bits##_v2) real, CUstream nul, CUdeviceptr d, size_t pitch,     \
                              type v, size_t w, size_t h)                                                              \
    {                                                                                                                  \
        (void)real;                                                                                                    \
        return fill(d, pitch, v, bits / 8, w, h, nul, true);                                                           \
    }                                                                                                                  \
    static int on_set2d##bits##_async(__typeof__(&cuMemsetD2D##bits##Async) real, CUstream nul, CUdeviceptr d,         \
                                      size_t pitch, type v, size_t w, size_t h, CUstream s)                            \
    {                                                                                                                  \
        (void)real;                                                                                                    \
        return fill(d, pitch, v, bits / 8, w, h, door_stream(s, nul), false);                                          \
    }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)

HOOKS_MEMSET(DOOR_EXPORT)
