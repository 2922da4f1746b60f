/* Stand-ins for libraries that work on device memory past the driver, one source for all sonames (programs.mk). They write by an engine of the
 * simulated device that no call of the driver drives. */
#include <stddef.h>
#include <stdint.h>

extern int simgpu_engine_fill(uint64_t to, unsigned value, size_t words);

static int fill(uint64_t to, unsigned value, size_t words) { return simgpu_engine_fill(to, value, words); }

/* NVENC's, OptiX's, the network card's work */
int engine_fill(uint64_t to, unsigned value, size_t words) { return fill(to, value, words); }

#ifdef CUFILE
/* `handle` stands for the value that is in the file */
long cuFileRead(void *handle, void *base, size_t bytes, long file_offset, long offset)
{
    return fill((uint64_t)(uintptr_t)base + (uint64_t)offset, (unsigned)(uintptr_t)handle, bytes / 4) || file_offset ? -1 : (long)bytes;
}
int cuFileUseCount(void) { return 1; }

#endif
#ifdef IBVERBS
/* what is registered */
static struct {
    void *at;
    size_t bytes;
} region;
void *ibv_reg_mr(void *pd, void *at, size_t bytes, int access)
{
    (void)pd, (void)access;
    region.at = at;
    region.bytes = bytes;
    return &region;
}
int network_fill(unsigned value) { return fill((uint64_t)(uintptr_t)region.at, value, region.bytes / 4); }
#endif
#ifdef NCCL
/* a collective that is newer than remat */
int ncclFreshFill(uint64_t to, unsigned value, size_t words) { return fill(to, value, words); }
int pncclFreshFill(uint64_t to, unsigned value, size_t words) { return fill(to, value, words); }
#endif
#ifdef NVCUVID
/* by which a program finds its plugins without asking for a name */
extern void past_doors_register(int (*)(uint64_t, unsigned, size_t)) __attribute__((weak));
__attribute__((constructor)) static void come(void)
{
    if (past_doors_register)
        past_doors_register(engine_fill);
}
#endif
