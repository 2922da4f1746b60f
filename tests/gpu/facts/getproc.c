/* getproc: is the pointer that cuGetProcAddress hands out the one that dlsym finds?
 *
 * Asked for both flag variants (legacy and per-thread default stream), for a list of the calls that matter to a
 * layer between program and driver. "equal" counts names whose pointer is that of the exported symbol of the same
 * variant; "other" lists those that are not, and "other_inside" says how many of them still lie in the driver's
 * library. A hook on the exported symbol alone misses every call made through an "other" pointer.
 */
#include "tests/gpu/facts/fact.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *name;   /* as cuGetProcAddress is asked */
    const char *legacy; /* exported symbol of the legacy-stream variant */
    const char *thread; /* exported symbol of the per-thread variant */
};

static const struct row rows[] = {
    {"cuLaunchKernel", "cuLaunchKernel", "cuLaunchKernel_ptsz"},
    {"cuLaunchKernelEx", "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"},
    {"cuMemAllocAsync", "cuMemAllocAsync", "cuMemAllocAsync_ptsz"},
    {"cuMemFreeAsync", "cuMemFreeAsync", "cuMemFreeAsync_ptsz"},
    {"cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz"},
    {"cuMemcpyAsync", "cuMemcpyAsync", "cuMemcpyAsync_ptsz"},
    {"cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz"},
    {"cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz"},
    {"cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync_v2_ptsz"},
    {"cuMemsetD32Async", "cuMemsetD32Async", "cuMemsetD32Async_ptsz"},
    {"cuStreamWaitEvent", "cuStreamWaitEvent", "cuStreamWaitEvent_ptsz"},
    {"cuStreamSynchronize", "cuStreamSynchronize", "cuStreamSynchronize_ptsz"},
    {"cuEventRecord", "cuEventRecord", "cuEventRecord_ptsz"},
    {"cuMemAlloc", "cuMemAlloc_v2", "cuMemAlloc_v2"},
    {"cuMemFree", "cuMemFree_v2", "cuMemFree_v2"},
    {"cuMemGetInfo", "cuMemGetInfo_v2", "cuMemGetInfo_v2"},
    {"cuMemCreate", "cuMemCreate", "cuMemCreate"},
    {"cuMemMap", "cuMemMap", "cuMemMap"},
    {"cuPointerGetAttribute", "cuPointerGetAttribute", "cuPointerGetAttribute"},
    {"cuModuleGetFunction", "cuModuleGetFunction", "cuModuleGetFunction"},
    {"cuLibraryGetKernel", "cuLibraryGetKernel", "cuLibraryGetKernel"},
    {"cuKernelGetParamInfo", "cuKernelGetParamInfo", "cuKernelGetParamInfo"},
    {"cuTensorMapEncodeTiled", "cuTensorMapEncodeTiled", "cuTensorMapEncodeTiled"},
    {"cuGetProcAddress", "cuGetProcAddress_v2", "cuGetProcAddress_v2"},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

int main(void)
{
    fact_begin("getproc");
    int version = 0;
    fact_cu(cuInit(0));
    fact_cu(cuDriverGetVersion(&version));
    fact_int("driver_version", version);
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!lib)
        fact_refuse("libcuda.so.1 is not loaded");
    Dl_info home, there;
    if (!dladdr(dlsym(lib, "cuInit"), &home))
        fact_refuse("dladdr knows nothing of cuInit");

    int equal = 0, other = 0, inside = 0, missing = 0;
    char names[2048] = "", lost[2048] = "";
    static const cuuint64_t flags[2] = {CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                                        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM};
    for (int i = 0; i < N_ROWS; i++) {
        for (int v = 0; v < 2; v++) {
            const char *sym = v ? rows[i].thread : rows[i].legacy;
            void *exported = dlsym(lib, sym), *got = NULL;
            CUdriverProcAddressQueryResult status;
            CUresult rc = cuGetProcAddress_v2(rows[i].name, &got, version, flags[v], &status);
            if (rc != CUDA_SUCCESS || !got || !exported) {
                missing++;
                snprintf(lost + strlen(lost), sizeof lost - strlen(lost), "%s%s", lost[0] ? " " : "", sym);
            } else if (got == exported) {
                equal++;
            } else {
                other++;
                inside += dladdr(got, &there) && there.dli_fbase == home.dli_fbase;
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? " " : "", sym);
            }
        }
    }
    fact_bool("answer", equal > 0 && other == 0);
    fact_int("asked", 2 * N_ROWS);
    fact_int("equal", equal);
    fact_int("other", other);
    fact_int("other_inside", inside);
    fact_int("missing", missing);
    fact_str("other_names", names);
    fact_str("missing_names", lost);
    return fact_end();
}
