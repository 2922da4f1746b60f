/*
 * Physical memory and the device's window of addresses.
 *
 * Device memory is a memory file; a piece of it is mapped wherever the driver is told to, so one piece seen
 * at two addresses is truly one. The window is one large inaccessible reservation: an address in it that
 * shows no piece faults. What a process may have is SIMGPU_MEM, counted when it is taken, not when touched.
 *
 * Freed pieces are kept, up to a quarter of SIMGPU_MEM, and given out again with the contents they had, as
 * a GPU does; the lowest offset goes first, so neighbours stay neighbours and their mappings merge. Under
 * SIMGPU_CHAOS every fresh piece is filled with garbage instead.
 *
 * Who may touch device memory: with protection keys only threads between gpu_phys_open and gpu_phys_close,
 * and those they start (SIMGPU_GUARD=0 gives the keys up). Without them everybody may, unless SIMGPU_GUARD=1:
 * the memory is then inaccessible whenever no device work runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/simgpu/gpu.h"

#if defined(__SANITIZE_THREAD__)
#define LARGEST_WINDOW (1ull << 39) /* ThreadSanitizer leaves the program about a TiB of addresses */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LARGEST_WINDOW (1ull << 39)
#endif
#endif
#ifndef LARGEST_WINDOW
#define LARGEST_WINDOW (1ull << 46)
#endif
#define HUGE_BYTES (2ull << 20)

uintptr_t gpu_window_base, gpu_window_bytes;

static int file = -1;
static uint64_t file_end; /* next offset never used */
static int pkey = -1;             /* of the first device; -1: there are none */
static int own[GPU_MAX_DEVICES];  /* of each device's memory */
static int key_of_several;        /* of memory that kernels of more than one device may use */

/* ---- pieces kept for reuse ------------------------------------------------------------------------------ */

static struct bin { /* pieces of one size; offsets form a heap with the lowest on top */
    uint64_t bytes;
    uint64_t *offsets;
    size_t n, room;
    struct bin *next;
} *bins[256];
static uint64_t kept_bytes;

static struct bin *bin_of(uint64_t bytes, bool make)
{
    struct bin **list = &bins[(bytes >> 12) * 0x9E3779B97F4A7C15ull >> 56];
    for (struct bin *b = *list; b; b = b->next)
        if (b->bytes == bytes)
            return b;
    struct bin *b = make ? calloc(1, sizeof *b) : NULL;
    if (b) {
        b->bytes = bytes;
        b->next = *list;
        *list = b;
    }
    return b;
}

static bool bin_put(uint64_t bytes, uint64_t offset)
{
    struct bin *b = bin_of(bytes, true);
    if (!b)
        return false;
    if (b->n == b->room) {
        size_t room = b->room ? b->room * 2 : 8;
        uint64_t *more = realloc(b->offsets, room * sizeof *more);
        if (!more)
            return false;
        b->offsets = more;
        b->room = room;
    }
    size_t i = b->n++;
    for (; i && b->offsets[(i - 1) / 2] > offset; i = (i - 1) / 2)
        b->offsets[i] = b->offsets[(i - 1) / 2];
    b->offsets[i] = offset;
    kept_bytes += bytes;
    return true;
}

static bool bin_take(uint64_t bytes, uint64_t *offset)
{
    struct bin *b = bin_of(bytes, false);
    if (!b || !b->n)
        return false;
    *offset = b->offsets[0];
    uint64_t last = b->offsets[--b->n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= b->n)
            break;
        if (child + 1 < b->n && b->offsets[child + 1] < b->offsets[child])
            child++;
        if (b->offsets[child] >= last)
            break;
        b->offsets[i] = b->offsets[child];
        i = child;
    }
    b->offsets[i] = last;
    kept_bytes -= bytes;
    return true;
}

/* ---- taking and giving back --------------------------------------------------------------------------------- */

CUresult gpu_phys_charge(CUdevice dev, uint64_t bytes)
{
    if (bytes > gpu_cfg.mem_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t room = gpu_phys_room(dev);
    if (bytes > room)
        gpu_pool_give_way(dev, bytes - room);
    if (gpu_stats.physical_bytes[dev] > gpu_cfg.mem_bytes - bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = gpu_shared_charge(dev, bytes);
    if (r)
        return r;
    gpu_stats.physical_bytes[dev] += bytes;
    uint64_t all = 0;
    for (int i = 0; i < gpu_cfg.n_devices; i++)
        all += gpu_stats.physical_bytes[i];
    if (all > gpu_stats.peak_physical_bytes)
        gpu_stats.peak_physical_bytes = all;
    return CUDA_SUCCESS;
}

void gpu_phys_uncharge(CUdevice dev, uint64_t bytes)
{
    gpu_stats.physical_bytes[dev] -= bytes;
    gpu_shared_uncharge(dev, bytes);
}

static void fill_with_garbage(int fd, uint64_t offset, uint64_t bytes)
{
    static uint32_t garbage[16384];
    uint64_t state = gpu_cfg.chaos_seed * 0x9E3779B97F4A7C15ull + offset + 1;
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0] && i * sizeof garbage[0] < bytes; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        garbage[i] = (uint32_t)state;
    }
    for (uint64_t at = 0; at < bytes;) {
        uint64_t n = bytes - at < sizeof garbage ? bytes - at : sizeof garbage;
        ssize_t w = pwrite(fd, garbage, n, (off_t)(offset + at));
        if (w <= 0)
            return;
        at += (uint64_t)w;
    }
}

CUresult gpu_phys_take(CUdevice dev, uint64_t bytes, uint64_t charged, bool exportable, gpu_phys **out)
{
    bytes = gpu_round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    CUresult r = gpu_phys_charge(dev, charged);
    if (r)
        return r;
    gpu_phys *p = calloc(1, sizeof *p);
    if (!p)
        goto no_memory;
    *p = (gpu_phys){ .bytes = bytes, .charged_bytes = charged, .device = dev, .refs = 1, .fd = -1 };
    if (exportable) {
        p->fd = memfd_create("simgpu-shared", MFD_CLOEXEC);
        if (p->fd < 0 || ftruncate(p->fd, (off_t)bytes))
            goto no_memory;
    } else if (!bin_take(bytes, &p->offset)) {
        bool huge = bytes % HUGE_BYTES == 0 || bytes >= 8 * HUGE_BYTES;
        p->offset = huge ? gpu_round_up(file_end, HUGE_BYTES) : file_end;
        file_end = p->offset + bytes;
    }
    if (gpu_cfg.chaos)
        fill_with_garbage(gpu_phys_file(p), p->offset, bytes);
    *out = p;
    return CUDA_SUCCESS;

no_memory:
    gpu_phys_uncharge(dev, charged);
    if (p && p->fd >= 0)
        close(p->fd);
    free(p);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void gpu_phys_unref(gpu_phys *p)
{
    if (--p->refs)
        return;
    gpu_phys_uncharge(p->device, p->charged_bytes);
    if (p->fd >= 0)
        close(p->fd);
    else if (kept_bytes + p->bytes > gpu_cfg.mem_bytes / 4 || !bin_put(p->bytes, p->offset))
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->offset, (off_t)p->bytes);
    free(p);
}

/* ---- SIMGPU_GUARD ------------------------------------------------------------------------------------------- */

typedef struct {
    uintptr_t from, to;
    int prot;
} segment;
static pthread_mutex_t guard_mutex = PTHREAD_MUTEX_INITIALIZER;
static segment *segments; /* what shows memory, in no order */
static size_t n_segments, room_segments;
static unsigned open_count;

static void guard_all(bool open)
{
    for (size_t i = 0; i < n_segments; i++)
        mprotect((void *)segments[i].from, segments[i].to - segments[i].from, open ? segments[i].prot : PROT_NONE);
}

static bool guard_room(void)
{
    if (n_segments + 3 <= room_segments)
        return true;
    size_t room = room_segments ? room_segments * 2 : 64;
    segment *more = realloc(segments, room * sizeof *more);
    if (!more)
        return false;
    segments = more;
    room_segments = room;
    return true;
}

/* Forgets what was said about [from, to). Without memory a rest of a segment is forgotten too: it stays as it is. */
static void guard_cut(uintptr_t from, uintptr_t to)
{
    for (size_t i = 0; i < n_segments;) {
        segment s = segments[i];
        if (s.to <= from || s.from >= to) {
            i++;
            continue;
        }
        segments[i] = segments[--n_segments];
        if (!guard_room())
            continue;
        if (s.from < from)
            segments[n_segments++] = (segment){ s.from, from, s.prot };
        if (s.to > to)
            segments[n_segments++] = (segment){ to, s.to, s.prot };
    }
}

static bool guard_add(uintptr_t from, uintptr_t to, int prot)
{
    if (!guard_room())
        return false;
    segments[n_segments++] = (segment){ from, to, prot };
    return true;
}

static void open_keys(unsigned devices)
{
    pkey_set(key_of_several, devices ? 0 : PKEY_DISABLE_ACCESS);
    for (int i = 0; i < gpu_cfg.n_devices; i++)
        pkey_set(own[i], devices >> i & 1 ? 0 : PKEY_DISABLE_ACCESS);
}

void gpu_phys_open(unsigned devices)
{
    if (pkey >= 0)
        open_keys(devices);
    if (!gpu_cfg.guard || pkey >= 0)
        return;
    pthread_mutex_lock(&guard_mutex);
    if (open_count++ == 0)
        guard_all(true);
    pthread_mutex_unlock(&guard_mutex);
}

void gpu_phys_close(void)
{
    if (pkey >= 0)
        open_keys(0);
    if (!gpu_cfg.guard || pkey >= 0)
        return;
    pthread_mutex_lock(&guard_mutex);
    if (--open_count == 0)
        guard_all(false);
    pthread_mutex_unlock(&guard_mutex);
}

/* ---- mapping ---------------------------------------------------------------------------------------------- */

enum { EVERYBODYS = 0 }; /* the key of all memory that has none of its own */
static int key_of(const gpu_phys *p) { return p->on_host ? EVERYBODYS : p->peers ? key_of_several : own[p->device]; }

int gpu_phys_file(const gpu_phys *p) { return p->fd >= 0 ? p->fd : file; }

void gpu_phys_set_peers(gpu_phys *p, bool any) { p->peers = any; }

void gpu_phys_reopen(CUdeviceptr va, uint64_t bytes, const gpu_phys *p)
{
    if (pkey >= 0)
        pkey_mprotect((void *)(uintptr_t)va, bytes, PROT_READ | PROT_WRITE, key_of(p));
}

CUresult gpu_phys_map(CUdeviceptr va, uint64_t bytes, gpu_phys *p, uint64_t offset, CUmemAccess_flags access)
{
    int prot = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
               : access == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                            : PROT_NONE;
    if (prot == PROT_NONE) {
        gpu_phys_unmap(va, bytes);
        return CUDA_SUCCESS;
    }
    bool guarded = gpu_cfg.guard && pkey < 0 && !p->on_host;
    CUresult r = CUDA_SUCCESS;
    uint64_t at = p->offset + offset;
    if (guarded) {
        pthread_mutex_lock(&guard_mutex);
        guard_cut((uintptr_t)va, (uintptr_t)va + bytes);
        if (!guard_add((uintptr_t)va, (uintptr_t)va + bytes, prot))
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    int first = pkey >= 0 || (guarded && !open_count) ? PROT_NONE : prot;
    void *want = (void *)(uintptr_t)va;
    if (!r && mmap(want, bytes, first, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, gpu_phys_file(p),
                   (off_t)at) == MAP_FAILED)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r && pkey >= 0 && pkey_mprotect(want, bytes, prot, key_of(p)))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r) /* not the program's doing: the host has no room, or a sanitizer does not let it have this address */
        fprintf(stderr, "simgpu: %llu bytes cannot be mapped at %llx (the device's addresses: %llx to %llx): %s\n", (unsigned long long)bytes,
                (unsigned long long)va, (unsigned long long)gpu_window_base, (unsigned long long)(gpu_window_base + gpu_window_bytes), strerror(errno));
    if (!r && bytes >= HUGE_BYTES && va % HUGE_BYTES == at % HUGE_BYTES)
        madvise(want, bytes, MADV_HUGEPAGE); /* a wish: fewer page faults */
    if (guarded) {
        if (r)
            guard_cut((uintptr_t)va, (uintptr_t)va + bytes);
        pthread_mutex_unlock(&guard_mutex);
    }
    return r;
}

void gpu_phys_unmap(CUdeviceptr va, uint64_t bytes)
{
    if (gpu_cfg.guard && pkey < 0) {
        pthread_mutex_lock(&guard_mutex);
        guard_cut((uintptr_t)va, (uintptr_t)va + bytes);
        pthread_mutex_unlock(&guard_mutex);
    }
    void *want = (void *)(uintptr_t)va;
    if (mmap(want, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        mprotect(want, bytes, PROT_NONE); /* out of map areas: at least it faults */
}

/* True if the key really closes memory to this thread and opens it again, as seen by a system call. */
static bool pkey_works(int key)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int ends[2];
    bool works = false;
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        works = pkey_mprotect(p, page, PROT_READ | PROT_WRITE, key) == 0 && pkey_set(key, 0) == 0 &&
                write(ends[1], p, 1) == 1 && pkey_set(key, PKEY_DISABLE_ACCESS) == 0 && write(ends[1], p, 1) == -1;
        close(ends[0]);
        close(ends[1]);
    }
    munmap(p, page);
    return works;
}

CUresult gpu_phys_init(void)
{
    file = memfd_create("simgpu-memory", MFD_CLOEXEC);
    if (file < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    bool sized = false;
    for (int bits = 50; bits >= 40 && !sized; bits--)
        sized = ftruncate(file, (off_t)1 << bits) == 0;
    if (!sized)
        return CUDA_ERROR_OPERATING_SYSTEM;
    for (uint64_t bytes = LARGEST_WINDOW; bytes >= 1ull << 32; bytes /= 2) {
        /* past the sanitizers, which would prepare shadow memory for all of it */
        long p = syscall(SYS_mmap, NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
        if (p == -1 && errno)
            continue;
        uintptr_t base = gpu_round_up((uintptr_t)p, 1ull << 30), aligned = gpu_cfg.align_bytes ? gpu_round_up(base, gpu_cfg.align_bytes) : base;
        base = aligned < (uintptr_t)p + bytes ? aligned : base;
        gpu_window_base = base;
        gpu_window_bytes = (uintptr_t)p + bytes - base;
        if (gpu_cfg.window_bytes && gpu_cfg.window_bytes < gpu_window_bytes)
            gpu_window_bytes = gpu_cfg.window_bytes;
        break;
    }
    if (!gpu_window_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!gpu_cfg.guard_off) {
        pkey = pkey_alloc(0, PKEY_DISABLE_ACCESS);
        if (pkey >= 0 && !pkey_works(pkey)) {
            pkey_free(pkey);
            pkey = -1;
        }
    }
    /* as many keys as there are: without one of its own a device shares the first one's, and less is caught */
    for (int i = 0; i < gpu_cfg.n_devices; i++)
        own[i] = i && pkey >= 0 ? pkey_alloc(0, PKEY_DISABLE_ACCESS) : pkey;
    key_of_several = gpu_cfg.n_devices > 1 && pkey >= 0 ? pkey_alloc(0, PKEY_DISABLE_ACCESS) : pkey;
    for (int i = 0; i < gpu_cfg.n_devices; i++)
        own[i] = own[i] >= 0 ? own[i] : pkey;
    key_of_several = key_of_several >= 0 ? key_of_several : pkey;
    return CUDA_SUCCESS;
}
