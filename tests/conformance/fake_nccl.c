/* fake_nccl.c: a library with NCCL's names that allocates scratch memory and copies, through the driver it finds in the
 * process, as the real one does inside its calls. Answers 0 or ncclUnhandledCudaError (1).
 */
#include "preload/abi_extra.h"

#include <dlfcn.h>

#define DRIVER(sym) ((__typeof__(&sym))dlsym(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), #sym))

int ncclAllReduce(const void *send, void *recv, size_t n, int type, int op, ncclComm_t comm, CUstream s)
{
    CUdeviceptr scratch = 0;
    (void)type, (void)op, (void)comm;
    if (DRIVER(cuMemAlloc_v2)(&scratch, n) || DRIVER(cuMemcpyDtoDAsync_v2)(scratch, (CUdeviceptr)send, n, s) ||
        DRIVER(cuMemcpyDtoDAsync_v2)((CUdeviceptr)recv, scratch, n, s) || DRIVER(cuStreamSynchronize)(s) ||
        DRIVER(cuMemFree_v2)(scratch))
        return 1;
    return 0;
}

int ncclGroupEnd(void)
{
    return 0;
}
