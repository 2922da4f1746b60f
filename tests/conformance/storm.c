/* storm.c: several threads meet the doors at the same moment: the first cuInit, the first lookups, then allocations, copies
 * and frees on streams of their own. Prints one line; for ThreadSanitizer and for plain luck.
 *
 *   storm LIBCUDA
 */
#include "preload/cuda_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 50, N = 4096 };
static void *lib;
static pthread_barrier_t gate;

#define SYM(sym) ((__typeof__(&sym))dlsym(lib, #sym))

/* NULL, or the call that failed. */
static void *run(void *arg)
{
    CUcontext ctx;
    CUdevice dev;
    CUstream s;
    CUdriverProcAddressQueryResult status;
    void *alloc = NULL;
    unsigned char out[N], in[N];
    memset(out, (int)(size_t)arg, N);
    pthread_barrier_wait(&gate);
    if (SYM(cuInit)(0))
        return "cuInit";
    if (SYM(cuDeviceGet)(&dev, 0) || SYM(cuDevicePrimaryCtxRetain)(&ctx, dev) || SYM(cuCtxSetCurrent)(ctx))
        return "the context";
    if (SYM(cuGetProcAddress_v2)("cuMemAllocAsync", &alloc, 12000, 0, &status) || !alloc)
        return "cuGetProcAddress_v2";
    if (SYM(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING))
        return "cuStreamCreate";
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr p, q;
        if (((__typeof__(&cuMemAllocAsync))alloc)(&p, N, s) || SYM(cuMemAlloc_v2)(&q, N))
            return "allocating";
        if (SYM(cuMemcpyHtoDAsync_v2)(p, out, N, s) || SYM(cuMemcpyDtoDAsync_v2)(q, p, N, s) ||
            SYM(cuMemcpyDtoHAsync_v2)(in, q, N, s) || SYM(cuStreamSynchronize)(s))
            return "copying";
        if (memcmp(in, out, N) != 0)
            return "the data";
        if (SYM(cuMemFreeAsync)(p, s) || SYM(cuMemFree_v2)(q))
            return "freeing";
    }
    return SYM(cuStreamDestroy_v2)(s) || SYM(cuDevicePrimaryCtxRelease_v2)(dev) ? "the end" : NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[THREADS];
    int failed = 0;
    lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!lib)
        return 77;
    pthread_barrier_init(&gate, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, run, (void *)(i + 1)))
            return 77;
    for (int i = 0; i < THREADS; i++) {
        void *what = NULL;
        pthread_join(t[i], &what);
        if (what)
            printf("thread %d: %s failed\n", i, (char *)what);
        failed |= what != NULL;
    }
    printf("storm: %d threads, %d rounds each, %s\n", THREADS, ROUNDS, failed ? "failed" : "fine");
    return failed;
}
