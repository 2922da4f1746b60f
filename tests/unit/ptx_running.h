/* What tests of PTX through the driver share: a kernel around a few lines, its launch, and the words that it leaves. */
#ifndef UNIT_PTX_RUNNING_H
#define UNIT_PTX_RUNNING_H

#include "tests/simgpu/testing.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
/* A kernel `k` with a pointer to words; %t is the thread, %a the address of its word in the first pointer's array. */
#define KERNEL(body)                                                                                                                     \
    HEAD ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n .reg .pred %p<8>;\n .reg .b16 %h<8>;\n .reg .b32 %r<32>;\n"            \
         " .reg .b64 %x<32>;\n .reg .b32 %t;\n .reg .b64 %a, %o, %i;\n .reg .f32 %f<16>;\n .reg .b32 %v<16>;\n"                          \
         " ld.param.u64 %o, [out];\n ld.param.u64 %i, [in];\n mov.u32 %r30, %ctaid.x;\n mov.u32 %r31, %ntid.x;\n mov.u32 %t, %tid.x;\n"  \
         " mad.lo.u32 %r30, %r30, %r31, %t;\n mul.wide.u32 %a, %r30, 4;\n add.u64 %a, %a, %o;\n" body " ret;\n}\n"

static inline CUfunction of_text(const char *text, const char *name)
{
    CUmodule m;
    CUfunction f;
    OK(cuModuleLoadData(&m, text));
    OK(cuModuleGetFunction(&f, m, name));
    return f;
}

enum { WORDS = 4096 };
static uint32_t got[WORDS];
/* Runs kernel k of a text, its first n words into got[]; what the synchronisation answers. */
static inline CUresult run_with(const char *text, unsigned blocks, unsigned threads, unsigned shared, CUdeviceptr in)
{
    CUfunction f = of_text(text, "k");
    CUdeviceptr out = alloc_words(WORDS);
    OK(cuMemsetD32_v2(out, 0, WORDS));
    OK(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, NULL, (void *[]){ &out, &in }, NULL));
    CUresult e = cuCtxSynchronize();
    if (!e)
        OK(cuMemcpyDtoH_v2(got, out, sizeof got));
    return e;
}
static inline void run(const char *text, unsigned blocks, unsigned threads) { OK(run_with(text, blocks, threads, 0, 0)); }
#define EACH_THREAD(n, want) for (unsigned t = 0; t < (n); t++) ck_assert_msg(got[t] == (uint32_t)(want), "thread %u: %#x, not %#x", t, got[t], (uint32_t)(want))

#endif
