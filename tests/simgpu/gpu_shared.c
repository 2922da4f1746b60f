/*
 * SIMGPU_SHARED=FILE: one device memory for several processes. What each has taken is counted in a file that all map; what
 * it holds stays its own, as on a GPU.
 *
 * A process is a row, and holds a record lock on the row's byte as the driver holds an open device: when it ends, however
 * that comes, the kernel drops the lock, and its memory is the device's again for whoever asks next. Byte 0 is locked
 * around every change: no total is kept that a killed process could leave wrong. The high-water mark is that of all living
 * processes together, taken at the moment of each charge.
 *
 * The file's layout, for tests: magic, devices, bytes of each device; then for each device its high-water mark; then rows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simgpu/gpu.h"

#define MAGIC 0x3172687375706773ull /* "sgpushr1" */
enum { ROWS = 256 };

struct row {
    _Atomic int64_t pid; /* 0: nobody's */
    _Atomic uint64_t held[GPU_MAX_DEVICES];
};
static struct page {
    uint64_t magic, n_devices, mem_bytes;
    _Atomic uint64_t peak[GPU_MAX_DEVICES];
    struct row rows[ROWS];
} *page;
static int fd = -1, me;

static int lock_byte(off_t at, short type, int how)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };
    int r;
    while ((r = fcntl(fd, how, &l)) && errno == EINTR)
        ;
    return how == F_GETLK ? !r && l.l_type == F_UNLCK : !r;
}

static void give_back(struct row *r)
{
    for (int d = 0; d < GPU_MAX_DEVICES; d++)
        r->held[d] = 0;
    r->pid = 0;
}

/* With byte 0 held. */
static void take_from_the_dead(void)
{
    for (int i = 0; i < ROWS; i++)
        if (i != me && page->rows[i].pid && lock_byte(1 + i, F_WRLCK, F_GETLK))
            give_back(&page->rows[i]);
}

static uint64_t held_by_all(CUdevice dev)
{
    uint64_t sum = 0;
    for (int i = 0; page && i < ROWS; i++)
        sum += page->rows[i].held[dev];
    return sum;
}

static CUresult refuse(const char *why)
{
    fprintf(stderr, "simgpu: SIMGPU_SHARED=%s: %s\n", gpu_cfg.shared_path, why);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult gpu_shared_init(void)
{
    struct stat st;
    if (!gpu_cfg.shared_path)
        return CUDA_SUCCESS;
    fd = open(gpu_cfg.shared_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || !lock_byte(0, F_WRLCK, F_SETLKW) || fstat(fd, &st))
        return refuse(strerror(errno));
    bool fresh = st.st_size == 0;
    if (fresh && ftruncate(fd, sizeof *page))
        return refuse(strerror(errno));
    if (!fresh && st.st_size != (off_t)sizeof *page)
        return refuse("is no device");
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        page = NULL;
        return refuse(strerror(errno));
    }
    if (!page->magic) { /* new, or its maker was killed on the way */
        page->n_devices = (uint64_t)gpu_cfg.n_devices;
        page->mem_bytes = gpu_cfg.mem_bytes;
        page->magic = MAGIC;
    }
    CUresult r = CUDA_SUCCESS;
    if (page->magic != MAGIC)
        r = refuse("is no device");
    else if (page->n_devices != (uint64_t)gpu_cfg.n_devices || page->mem_bytes != gpu_cfg.mem_bytes)
        r = refuse("is a device with another SIMGPU_MEM or SIMGPU_DEVICES");
    me = -1;
    if (!r)
        take_from_the_dead();
    for (int i = 0; !r && i < ROWS && me < 0; i++)
        if (!page->rows[i].pid && lock_byte(1 + i, F_WRLCK, F_SETLK))
            me = i;
    if (!r && me < 0)
        r = refuse("has too many users");
    if (!r) {
        give_back(&page->rows[me]);
        page->rows[me].pid = getpid();
    }
    lock_byte(0, F_UNLCK, F_SETLK);
    return r;
}

CUresult gpu_shared_charge(CUdevice dev, uint64_t bytes)
{
    if (!page)
        return CUDA_SUCCESS;
    CUresult r = CUDA_SUCCESS;
    if (!lock_byte(0, F_WRLCK, F_SETLKW))
        return CUDA_ERROR_OPERATING_SYSTEM;
    uint64_t all = held_by_all(dev) + bytes;
    if (all > page->mem_bytes || all > page->peak[dev]) { /* what the dead held is not there any more */
        take_from_the_dead();
        all = held_by_all(dev) + bytes;
    }
    if (all > page->mem_bytes)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    else {
        page->rows[me].held[dev] += bytes;
        if (all > page->peak[dev])
            page->peak[dev] = all;
    }
    lock_byte(0, F_UNLCK, F_SETLK);
    return r;
}

void gpu_shared_uncharge(CUdevice dev, uint64_t bytes)
{
    if (!page || !lock_byte(0, F_WRLCK, F_SETLKW))
        return;
    page->rows[me].held[dev] -= bytes;
    lock_byte(0, F_UNLCK, F_SETLK);
}

uint64_t gpu_phys_room(CUdevice dev)
{
    uint64_t used = page ? held_by_all(dev) : gpu_stats.physical_bytes[dev];
    return gpu_cfg.mem_bytes > used ? gpu_cfg.mem_bytes - used : 0;
}

/* For NVML (nvml.c). Before the driver is initialised nothing is taken. */
GPU_EXPORT uint64_t simgpu_memory_room(CUdevice dev);
GPU_EXPORT uint64_t simgpu_memory_room(CUdevice dev)
{
    gpu_lock();
    gpu_shared_look();
    const uint64_t left = gpu_device_known(dev) ? gpu_phys_room(dev) : 0;
    gpu_unlock();
    return left;
}

void gpu_shared_look(void)
{
    if (!page || !lock_byte(0, F_WRLCK, F_SETLKW))
        return;
    take_from_the_dead();
    lock_byte(0, F_UNLCK, F_SETLK);
}
