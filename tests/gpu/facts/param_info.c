/* param_info: which call gives a kernel's parameter layout, for which kind of handle?
 *
 * fact_layout takes a u32, a pointer, a 40-byte struct and a u16: offsets 0, 8, 16, 56. The layout is asked of the
 * CUfunction of a module, of the CUkernel of a library, and of that CUkernel's CUfunction. Then the kernel is
 * launched by its CUkernel handle, the way the runtime library does it, and by an `extra` buffer.
 */
#include "tests/gpu/facts/fact.h"

#include <string.h>

enum { PARAMS = 4 };
static const size_t want_offset[PARAMS] = {0, 8, 16, 56}, want_size[PARAMS] = {4, 8, 40, 2};

/* Whether `f` (CUfunction, or CUkernel when `kernel`) answers with the known layout and ends where it should. */
static bool layout_known(void *f, bool kernel)
{
    size_t off = 0, size = 0;
    for (size_t i = 0; i < PARAMS; i++) {
        CUresult rc = kernel ? cuKernelGetParamInfo(f, i, &off, &size) : cuFuncGetParamInfo(f, i, &off, &size);
        if (rc != CUDA_SUCCESS || off != want_offset[i] || size != want_size[i])
            return false;
    }
    CUresult past = kernel ? cuKernelGetParamInfo(f, PARAMS, &off, &size) : cuFuncGetParamInfo(f, PARAMS, &off, &size);
    return past == CUDA_ERROR_INVALID_VALUE;
}

static bool word_arrives(CUdeviceptr out, uint64_t word)
{
    uint64_t got = 0;
    fact_cu(cuCtxSynchronize());
    fact_cu(cuMemcpyDtoH_v2(&got, out, sizeof got));
    return got == word;
}

int main(void)
{
    fact_begin("param_info");
    fact_open();
    CUmodule m = fact_module();
    CUfunction f = fact_kernel(m, "fact_layout"), via;
    CUlibrary lib;
    CUkernel k;
    CUdeviceptr out;
    fact_cu(cuLibraryLoadData(&lib, fact_image(), NULL, NULL, 0, NULL, NULL, 0));
    fact_cu(cuLibraryGetKernel(&k, lib, "fact_layout"));
    fact_cu(cuKernelGetFunction(&via, k));
    fact_cu(cuMemAlloc_v2(&out, 4096));
    bool by_function = layout_known(f, false), by_kernel = layout_known(k, true), by_via = layout_known(via, false);
    fact_bool("function_answers", by_function);
    fact_bool("kernel_answers", by_kernel);
    fact_bool("kernel_function_answers", by_via);

    uint32_t a = 7;
    uint16_t z = 9;
    struct {
        uint64_t w[5];
    } blk = {{1, 0x1122334455667788, 3, 4, 5}};
    fact_cu(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&a, &out, &blk, &z}, NULL));
    bool cast = word_arrives(out, blk.w[1]);
    fact_bool("kernel_handle_launches", cast);

    unsigned char packed[58] = {0};
    size_t packed_bytes = sizeof packed;
    blk.w[1] = 0x99aabbccddeeff00;
    memcpy(packed, &a, 4);
    memcpy(packed + 8, &out, 8);
    memcpy(packed + 16, &blk, 40);
    memcpy(packed + 56, &z, 2);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_bytes,
                     CU_LAUNCH_PARAM_END};
    fact_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    bool by_extra = word_arrives(out, blk.w[1]);
    fact_bool("extra_buffer_launches", by_extra);
    fact_bool("answer", by_function && by_kernel && by_via && cast && by_extra);
    /* asked last: the driver documents nothing for it, and it may end the process */
    fact_bool("kernel_cast_to_function_answers", layout_known(k, false));
    return fact_end();
}
