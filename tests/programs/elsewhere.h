/* Memory that others reach as well: the host, at the device's address; a process beside the program, forked before the driver is initialised: one of
 * the two shows it, the other one opens it. What MUST(call) is says whoever includes this. */
#ifndef PROGRAMS_ELSEWHERE_H
#define PROGRAMS_ELSEWHERE_H

#include "preload/cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Memory of a pool on the host, or of managed memory, which the host and kernels of the first device reach at one address. It is there when this returns. */
static inline CUdeviceptr host_pool_memory(bool managed, size_t bytes, CUstream s)
{
    const CUmemPoolProps props = {.allocType = managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = managed ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST}};
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;
    CUdeviceptr p;
    MUST(cuMemPoolCreate(&pool, &props));
    MUST(cuMemPoolSetAccess(pool, &access, 1));
    MUST(cuMemAllocFromPoolAsync(&p, bytes, pool, s));
    MUST(cuStreamSynchronize(s));
    return p;
}

/* What is said of memory: one of the two. */
struct shown {
    CUipcMemHandle handle;
    CUmemPoolPtrExportData data; /* of a pool whose descriptor comes along */
    bool in_pool;
};

static inline void another_tells(int to, const void *what, size_t bytes, int fd)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.room = {0}};
    struct iovec v = {(void *)(uintptr_t)what, bytes};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = fd >= 0 ? control.room : NULL, .msg_controllen = fd >= 0 ? sizeof control.room : 0};
    if (fd >= 0) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    if (sendmsg(to, &m, 0) != (ssize_t)bytes)
        _exit(4);
}

/* The descriptor that came along; -1: none. Ends this process if the other one has gone. */
static inline int another_told(int from, void *what, size_t bytes)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.room = {0}};
    struct iovec v = {what, bytes};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    int fd = -1;
    if (recvmsg(from, &m, 0) != (ssize_t)bytes)
        _exit(0);
    if (CMSG_FIRSTHDR(&m))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

static inline CUmemPoolProps shared_pool(void)
{
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
}

/* Memory that another process may open: of cuMemAlloc, or of a pool. It is there, full of fives, when this returns. */
static inline CUdeviceptr another_shows(int to, bool in_pool, size_t bytes)
{
    struct shown say = {.in_pool = in_pool};
    CUdeviceptr p;
    int fd = -1;
    if (in_pool) {
        const CUmemPoolProps props = shared_pool();
        CUmemoryPool pool;
        MUST(cuMemPoolCreate(&pool, &props));
        MUST(cuMemAllocFromPoolAsync(&p, bytes, pool, 0));
        MUST(cuStreamSynchronize(0));
        MUST(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        MUST(cuMemPoolExportPointer(&say.data, p));
    } else {
        MUST(cuMemAlloc_v2(&p, bytes));
        MUST(cuIpcGetMemHandle(&say.handle, p));
    }
    MUST(cuMemsetD32_v2(p, 5, bytes / 4));
    MUST(cuCtxSynchronize());
    another_tells(to, &say, sizeof say, fd);
    return p;
}

static inline CUdeviceptr another_opens(const struct shown *said, int fd)
{
    CUdeviceptr p;
    if (said->in_pool) {
        CUmemoryPool pool;
        MUST(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
        MUST(cuMemPoolImportPointer(&p, pool, (CUmemPoolPtrExportData *)(uintptr_t)&said->data));
    } else
        MUST(cuIpcOpenMemHandle_v2(&p, said->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    return p;
}

/* The socket to the other process. That one shows memory and keeps it; or (`writes`) it opens what it is shown, and fills so many words of it with
 * each number that it is told, and answers then. It ends with this one. */
static inline int another_process(bool writes, bool in_pool, size_t bytes, size_t words)
{
    int ends[2];
    struct shown said;
    CUcontext ctx;
    uint32_t value;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        exit(3);
    if (fork()) {
        close(ends[1]);
        return ends[0];
    }
    close(ends[0]);
    unsetenv("SIMGPU_STATS");
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&ctx, 0));
    MUST(cuCtxSetCurrent(ctx));
    if (!writes) {
        another_shows(ends[1], in_pool, bytes);
        another_told(ends[1], &value, sizeof value);
        _exit(0);
    }
    const int fd = another_told(ends[1], &said, sizeof said);
    const CUdeviceptr p = another_opens(&said, fd);
    for (;;) {
        another_told(ends[1], &value, sizeof value);
        MUST(cuMemsetD32_v2(p, value, words));
        MUST(cuCtxSynchronize());
        another_tells(ends[1], &value, sizeof value, -1);
    }
}

#endif
