/* hook_copy.c: one-dimensional copies. */
#include "policy/engine.h"
#include "policy/reach.h"
#include "preload/door.h"

static int htod(CUdeviceptr d, const void *h, size_t n, CUstream s, bool sync)
{
    struct eng_copy c = {.kind = ENG_HTOD, .dst_dev = d, .src_host = h, .bytes = n, .stream = s, .sync = sync};
    return eng_copy(&c);
}

static int dtoh(void *h, CUdeviceptr d, size_t n, CUstream s, bool sync)
{
    struct eng_copy c = {.kind = ENG_DTOH, .dst_host = h, .src_dev = d, .bytes = n, .stream = s, .sync = sync};
    return eng_copy(&c);
}

static int dtod(CUdeviceptr d, CUdeviceptr from, size_t n, CUstream s, bool sync)
{
    struct eng_copy c = {.kind = ENG_DTOD, .dst_dev = d, .src_dev = from, .bytes = n, .stream = s, .sync = sync};
    return eng_copy(&c);
}

static int on_htod(__typeof__(&cuMemcpyHtoD_v2) real, CUstream nul, CUdeviceptr d, const void *h, size_t n)
{
    (void)real;
    return htod(d, h, n, nul, true);
}

static int on_dtoh(__typeof__(&cuMemcpyDtoH_v2) real, CUstream nul, void *h, CUdeviceptr d, size_t n)
{
    (void)real;
    return dtoh(h, d, n, nul, true);
}

static int on_dtod(__typeof__(&cuMemcpyDtoD_v2) real, CUstream nul, CUdeviceptr d, CUdeviceptr from, size_t n)
{
    (void)real;
    return dtod(d, from, n, nul, true);
}

static int on_htod_async(__typeof__(&cuMemcpyHtoDAsync_v2) real, CUstream nul, CUdeviceptr d, const void *h, size_t n,
                         CUstream s)
{
    (void)real;
    return htod(d, h, n, door_stream(s, nul), false);
}

static int on_dtoh_async(__typeof__(&cuMemcpyDtoHAsync_v2) real, CUstream nul, void *h, CUdeviceptr d, size_t n,
                         CUstream s)
{
    (void)real;
    return dtoh(h, d, n, door_stream(s, nul), false);
}

static int on_dtod_async(__typeof__(&cuMemcpyDtoDAsync_v2) real, CUstream nul, CUdeviceptr d, CUdeviceptr from, size_t n,
                         CUstream s)
{
    (void)real;
    return dtod(d, from, n, door_stream(s, nul), false);
}

/* ---- unified addresses: the pointers say which way ---------------------------------------------------------------------- */

/* The kind of copy between two addresses; -1: neither is device memory, the engine has no say. */
static int direction(CUdeviceptr d, CUdeviceptr from)
{
    bool to_device = eng_is_device_pointer(d), from_device = eng_is_device_pointer(from);
    return to_device ? (from_device ? ENG_DTOD : ENG_HTOD) : from_device ? ENG_DTOH : -1;
}

static int unified(int kind, CUdeviceptr d, CUdeviceptr from, size_t n, CUstream s, bool sync)
{
    switch (kind) {
    case ENG_HTOD:
        return htod(d, (const void *)(uintptr_t)from, n, s, sync);
    case ENG_DTOH:
        return dtoh((void *)(uintptr_t)d, from, n, s, sync);
    default:
        return dtod(d, from, n, s, sync);
    }
}

static int on_copy(__typeof__(&cuMemcpy) real, CUstream nul, CUdeviceptr d, CUdeviceptr from, size_t n)
{
    int kind = direction(d, from);
    return kind < 0 ? (int)real(d, from, n) : unified(kind, d, from, n, nul, true);
}

static int on_copy_async(__typeof__(&cuMemcpyAsync) real, CUstream nul, CUdeviceptr d, CUdeviceptr from, size_t n,
                         CUstream s)
{
    int kind = direction(d, from);
    return kind < 0 ? (int)real(d, from, n, s) : unified(kind, d, from, n, door_stream(s, nul), false);
}

/* ---- between contexts, and with arrays on one side --------------------------------------------------------------------------- */

ISSUE5(peer, cuMemcpyPeer, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)
ISSUE6(peer_async, cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)
ISSUE4(dtoa, cuMemcpyDtoA_v2, CUarray, size_t, CUdeviceptr, size_t)
ISSUE4(atod, cuMemcpyAtoD_v2, CUdeviceptr, CUarray, size_t, size_t)

static int on_peer(__typeof__(&cuMemcpyPeer) real, CUstream nul, CUdeviceptr d, CUcontext dc, CUdeviceptr from,
                   CUcontext sc, size_t n)
{
    struct call_peer call = {real, d, dc, from, sc, n};
    struct eng_touch touch[] = {{d, n, ENG_WRITE | ENG_EXACT}, {from, n, ENG_READ | ENG_EXACT}};
    return eng_other("cuMemcpyPeer", nul, touch, n ? 2 : 0, issue_peer, &call);
}

static int on_peer_async(__typeof__(&cuMemcpyPeerAsync) real, CUstream nul, CUdeviceptr d, CUcontext dc, CUdeviceptr from,
                         CUcontext sc, size_t n, CUstream s)
{
    struct call_peer_async call = {real, d, dc, from, sc, n, s};
    struct eng_touch touch[] = {{d, n, ENG_WRITE | ENG_EXACT}, {from, n, ENG_READ | ENG_EXACT}};
    return eng_other("cuMemcpyPeerAsync", door_stream(s, nul), touch, n ? 2 : 0, issue_peer_async, &call);
}

static int on_dtoa(__typeof__(&cuMemcpyDtoA_v2) real, CUstream nul, CUarray a, size_t at, CUdeviceptr from, size_t n)
{
    struct call_dtoa call = {real, a, at, from, n};
    struct eng_touch touch = {from, n, ENG_READ | ENG_EXACT};
    return eng_other("cuMemcpyDtoA", nul, &touch, n ? 1 : 0, issue_dtoa, &call);
}

static int on_atod(__typeof__(&cuMemcpyAtoD_v2) real, CUstream nul, CUdeviceptr d, CUarray a, size_t at, size_t n)
{
    struct call_atod call = {real, d, a, at, n};
    struct eng_touch touch = {d, n, ENG_WRITE | ENG_EXACT};
    return eng_other("cuMemcpyAtoD", nul, &touch, n ? 1 : 0, issue_atod, &call);
}

/* Copies between an array and an address named as host memory: the driver takes device memory there as well. */
ISSUE4(htoa, cuMemcpyHtoA_v2, CUarray, size_t, const void *, size_t)
ISSUE5(htoa_async, cuMemcpyHtoAAsync_v2, CUarray, size_t, const void *, size_t, CUstream)
ISSUE4(atoh, cuMemcpyAtoH_v2, void *, CUarray, size_t, size_t)
ISSUE5(atoh_async, cuMemcpyAtoHAsync_v2, void *, CUarray, size_t, size_t, CUstream)

static struct eng_touch named_host(const void *h, size_t n, unsigned mode) { return (struct eng_touch){(CUdeviceptr)(uintptr_t)h, n, mode | ENG_EXACT}; }

static int on_htoa(__typeof__(&cuMemcpyHtoA_v2) real, CUstream nul, CUarray a, size_t at, const void *h, size_t n)
{
    struct call_htoa call = {real, a, at, h, n};
    struct eng_touch touch = named_host(h, n, ENG_READ);
    eng_before_host_copy(nul, NULL, true);
    return eng_other("cuMemcpyHtoA", nul, &touch, n ? 1 : 0, issue_htoa, &call);
}

static int on_htoa_async(__typeof__(&cuMemcpyHtoAAsync_v2) real, CUstream nul, CUarray a, size_t at, const void *h, size_t n, CUstream s)
{
    struct call_htoa_async call = {real, a, at, h, n, s};
    struct eng_touch touch = named_host(h, n, ENG_READ);
    return eng_other("cuMemcpyHtoAAsync", door_stream(s, nul), &touch, n ? 1 : 0, issue_htoa_async, &call);
}

static int on_atoh(__typeof__(&cuMemcpyAtoH_v2) real, CUstream nul, void *h, CUarray a, size_t at, size_t n)
{
    struct call_atoh call = {real, h, a, at, n};
    struct eng_touch touch = named_host(h, n, ENG_WRITE);
    eng_before_host_copy(nul, NULL, true);
    return eng_other("cuMemcpyAtoH", nul, &touch, n ? 1 : 0, issue_atoh, &call);
}

static int on_atoh_async(__typeof__(&cuMemcpyAtoHAsync_v2) real, CUstream nul, void *h, CUarray a, size_t at, size_t n, CUstream s)
{
    struct call_atoh_async call = {real, h, a, at, n, s};
    struct eng_touch touch = named_host(h, n, ENG_WRITE);
    eng_before_host_copy(door_stream(s, nul), h, false);
    return eng_other("cuMemcpyAtoHAsync", door_stream(s, nul), &touch, n ? 1 : 0, issue_atoh_async, &call);
}

HOOKS_COPY(DOOR_EXPORT)
