/*
 * PTX through the driver: how modules are read, launched and refused; what lanes, warps and blocks do with each other; what fails, and how it
 * is told. remat's own device code against what stands for it.
 */
#include "tests/simgpu/made_code.h"
#include "tracer/effects/hash.h"
#include "tracer/effects/hash_ptx.h"
#include "tests/unit/ptx_running.h"
#include "tests/unit/triton_sum.h"

/* ---- short forms ----------------------------------------------------------------------------------------------------------------- */

static FILE *stderr_file;
static int stderr_fd;
static void listen_to_stderr(void)
{
    stderr_file = tmpfile();
    stderr_fd = dup(2);
    dup2(fileno(stderr_file), 2);
}
static const char *heard(void)
{
    static char text[4096];
    dup2(stderr_fd, 2);
    rewind(stderr_file);
    text[fread(text, 1, sizeof text - 1, stderr_file)] = '\0';
    fclose(stderr_file);
    return text;
}
#define HEARD(what)                                                          \
    do {                                                                     \
        const char *heard_ = heard();                                        \
        ck_assert_msg(strstr(heard_, what), "said %s", *heard_ ? heard_ : "nothing"); \
    } while (0)

static void fails(const char *text, unsigned threads, CUresult want, const char *says)
{
    start();
    listen_to_stderr();
    CUresult e = run_with(text, 1, threads, 0, 0);
    const char *said = heard();
    ck_assert_msg(e == want, "%s, not %s; said %s", error_name(e), error_name(want), said);
    ck_assert_msg(strstr(said, says), "said %s", *said ? said : "nothing");
    FAILS(cuCtxSynchronize(), want); /* and it stays so */
}
/* ---- modules ------------------------------------------------------------------------------------------------------------------------ */

#define WITH_VARIABLES HEAD                                                                                                               \
    ".global .align 4 .u32 counter = 41;\n.const .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n.global .align 8 .u64 where[2] = {counter, generic(table)+4};\n" \
    ".extern .shared .align 16 .b8 dynamic[];\n"                                                                                          \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n.maxntid 64, 2, 1\n{\n .reg .b32 %r<8>;\n .reg .b64 %x<8>;\n .shared .align 4 .b8 own[100];\n" \
    " .local .align 4 .b8 mine[12];\n ld.param.u64 %x1, [out];\n ld.global.u64 %x2, [where];\n ld.u32 %r1, [%x2];\n add.u32 %r1, %r1, 1;\n st.global.u32 [%x1], %r1;\n" \
    " atom.global.add.u32 %r6, [counter], 1;\n ld.global.u64 %x3, [where+8];\n ld.u8 %r2, [%x3];\n st.global.u32 [%x1+4], %r2;\n ld.const.u16 %r3, [table+2];\n st.global.u32 [%x1+8], %r3;\n" \
    " mov.u32 %r4, dynamic;\n st.global.u32 [%x1+12], %r4;\n mov.u32 %r5, %dynamic_smem_size;\n st.global.u32 [%x1+16], %r5;\n st.shared.u32 [own+96], %r4;\n ret;\n}\n" \
    ".entry second(.param .align 8 .b8 block[24], .param .u8 a, .param .f64 b, .param .u16 c) .reqntid 32 { ret; }\n"

START_TEST(a_module_says_what_its_text_says)
{
    start();
    CUmodule m;
    CUfunction f, second;
    int n;
    OK(cuModuleLoadData(&m, "// a comment first\n" WITH_VARIABLES));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuModuleGetFunction(&second, m, "second"));
    FAILS(cuModuleGetFunction(&f, m, "third"), CUDA_ERROR_NOT_FOUND);
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    ck_assert_int_eq(n, 128);
    OK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    ck_assert_int_eq(n, 100);
    OK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f));
    ck_assert_int_eq(n, 16);
    size_t offset, size, want_offset[] = { 0, 24, 32, 40 }, want_size[] = { 24, 1, 8, 2 };
    for (unsigned i = 0; i < 4; i++) {
        OK(cuFuncGetParamInfo(second, i, &offset, &size));
        ck_assert_uint_eq(offset, want_offset[i]);
        ck_assert_uint_eq(size, want_size[i]);
    }
    char params[48] = { 0 };
    void *all[] = { params, params + 24, params + 32, params + 40 };
    FAILS(cuLaunchKernel(second, 1, 1, 1, 64, 1, 1, 0, NULL, all, NULL), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    FAILS(cuLaunchKernel(second, 1, 1, 1, 16, 2, 1, 0, NULL, all, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuLaunchKernel(second, 1, 1, 1, 32, 1, 1, 0, NULL, all, NULL));
    int blocks;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 40 << 10));
    ck_assert_int_eq(blocks, 3);
    OK(cuModuleUnload(m));
}
END_TEST

START_TEST(variables_begin_as_the_text_says)
{
    start();
    CUmodule m;
    CUfunction f;
    CUdeviceptr out = alloc_words(8), counter;
    size_t bytes;
    OK(cuModuleLoadData(&m, WITH_VARIABLES));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuModuleGetGlobal_v2(&counter, &bytes, m, "counter"));
    ck_assert_uint_eq(bytes, 4);
    ck_assert_uint_eq(read_word(counter), 41);
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 256, NULL, (void *[]){ &out, &out }, NULL));
    ck_assert_uint_eq(read_word(out), 42);
    ck_assert_uint_eq(read_word(out + 4), 5);
    ck_assert_uint_eq(read_word(out + 8), 0x0403);
    ck_assert_uint_eq(read_word(out + 12), 112); /* behind the static, at a multiple of 16 */
    ck_assert_uint_eq(read_word(out + 16), 256);
    ck_assert_uint_eq(read_word(counter), 42);
}
END_TEST

START_TEST(libraries_and_fat_binaries_take_texts)
{
    start();
    static const char text[] = KERNEL(" st.global.u32 [%a], 7;\n");
    struct made_image fat = made_fat((struct made_image){ NULL, 0 }, 1, 80, text, sizeof text, 0);
    CUlibrary l;
    CUkernel k;
    CUmodule m;
    CUfunction f;
    CUdeviceptr out = alloc_words(4);
    OK(cuLibraryLoadData(&l, text, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "k"));
    OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &out, &out }, NULL));
    ck_assert_uint_eq(read_word(out), 7);
    OK(cuMemsetD32_v2(out, 0, 4));
    OK(cuModuleLoadFatBinary(&m, fat.at));
    OK(cuModuleGetFunction(&f, m, "k"));
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &out, &out }, NULL));
    ck_assert_uint_eq(read_word(out), 7);
    free(fat.at);
}
END_TEST

/* As numba does: several texts become one, and what one only names another has. */
START_TEST(texts_are_linked)
{
    static char caller[] = HEAD ".extern .global .align 4 .u32 number;\n.extern .func (.param .b32 r) twice(.param .b32 a);\n"
        ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n .reg .b32 %r<4>;\n .reg .b64 %x<4>;\n ld.param.u64 %x1, [out];\n ld.global.u32 %r1, [number];\n"
        " {\n .param .b32 p;\n .param .b32 q;\n st.param.b32 [p], %r1;\n call.uni (q), twice, (p);\n ld.param.b32 %r2, [q];\n }\n st.global.u32 [%x1], %r2;\n ret;\n}\n";
    static char callee[] = "// of another compiler\n/* and\n another */" HEAD ".visible .global .align 4 .u32 number = 21;\n"
        ".visible .func (.param .b32 r) twice(.param .b32 a)\n{\n .reg .b32 %r<4>;\n ld.param.b32 %r1, [a];\n add.u32 %r1, %r1, %r1;\n st.param.b32 [r], %r1;\n ret;\n}\n";
    start();
    char log[256] = "?";
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)sizeof log }, *made;
    size_t bytes;
    CUlinkState link;
    OK(cuLinkCreate_v2(2, options, values, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, caller, sizeof caller, "caller", 0, NULL, NULL));
    FAILS(cuLinkComplete(link, &made, &bytes), CUDA_ERROR_INVALID_PTX);
    ck_assert_msg(strstr(log, "number") && (size_t)values[1] == strlen(log) + 1, "says %s", log);
    listen_to_stderr();
    CUresult e = cuLinkAddData_v2(link, CU_JIT_INPUT_LIBRARY, (char[]){ "!<arch>" }, 7, "lib.a", 0, NULL, NULL);
    HEARD("lib.a cannot be linked: PTX alone can");
    ck_assert_int_eq(e, CUDA_ERROR_NOT_SUPPORTED);
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, callee, sizeof callee - 1, "callee", 0, NULL, NULL));
    OK(cuLinkComplete(link, &made, &bytes));
    ck_assert_uint_eq(bytes, strlen(made) + 1);
    run(made, 1, 1);
    ck_assert_uint_eq(got[0], 42);
    OK(cuLinkDestroy(link));
    FAILS(cuLinkComplete(link, &made, &bytes), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(a_broken_text_is_told_with_its_line)
{
    static const struct { const char *text, *says; CUresult want; } broken[] = {
        { HEAD ".visible .entry k()\n{\n .reg .b32 %r<2>;\n add.u32 %r0, %r1, %r2;\n}\n", "line 7: register '%r2' is not declared", CUDA_ERROR_INVALID_PTX },
        { HEAD ".visible .entry k()\n{\n .reg .b64 %x<2>;\n add.u32 %x0, %x1, 1;\n}\n", "'%x1' is a .b64 register", CUDA_ERROR_INVALID_PTX },
        { HEAD ".visible .entry k()\n{\n bra there;\n}\n", "label 'there' is not defined", CUDA_ERROR_INVALID_PTX },
        { HEAD ".visible .entry k()\n{\n ret;\n", "'k' has no end", CUDA_ERROR_INVALID_PTX },
        { ".version 8.0\n.target sm_90\n", "the text is for sm_90, this device is sm_80", CUDA_ERROR_INVALID_PTX },
        { ".version 99.0\n.target sm_80\n", "version 99.0 of PTX", CUDA_ERROR_UNSUPPORTED_PTX_VERSION },
        { ".version 8.0\n", "no .target", CUDA_ERROR_INVALID_PTX },
    };
    start();
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char log[256] = "?", info[8] = "?";
        CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
        void *values[] = { log, (void *)sizeof log, info, (void *)sizeof info };
        CUmodule m;
        FAILS(cuModuleLoadDataEx(&m, broken[i].text, 4, options, values), broken[i].want);
        ck_assert_msg(strstr(log, broken[i].says), "says %s", log);
        ck_assert_uint_eq((size_t)values[1], strlen(log) + 1);
        ck_assert_str_eq(info, "");
        listen_to_stderr();
        CUresult e = cuModuleLoadData(&m, broken[i].text);
        HEARD(broken[i].says);
        ck_assert_int_eq(e, broken[i].want);
    }
}
END_TEST

START_TEST(an_unknown_instruction_keeps_its_kernel_from_being_launched)
{
    start();
    static const char text[] = HEAD ".visible .entry good() { ret; }\n.visible .entry bad()\n{\n .reg .b32 %r<4>;\n wgmma.fence.sync.aligned;\n add.rn.u32 %r1, %r2, %r3;\n ret;\n}\n"
                                    ".func inner()\n{\n .reg .b64 %x<2>;\n mov.b64 %x1, 0;\n frob.b64 %x1, [%x0], {%x1};\n ret;\n}\n"
                                    ".visible .entry calls() { call inner, (); ret; }\n";
    listen_to_stderr();
    CUresult e = cuLaunchKernel(of_text(text, "bad"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    HEARD("kernel bad cannot be launched: line 8: wgmma.fence.sync.aligned is not known");
    ck_assert_int_eq(e, CUDA_ERROR_NOT_SUPPORTED);
    listen_to_stderr();
    e = cuLaunchKernel(of_text(text, "calls"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    HEARD("line 16: frob.b64 is not known");
    ck_assert_int_eq(e, CUDA_ERROR_NOT_SUPPORTED);
    OK(cuLaunchKernel(of_text(text, "good"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxSynchronize());
}
END_TEST

/* ---- lanes that part and meet ---------------------------------------------------------------------------------------------------------- */

START_TEST(lanes_part_and_meet_again)
{
    start();
    /* Collatz steps: loops of different lengths, then all lanes vote */
    run(KERNEL(" mov.u32 %r1, %t;\n add.u32 %r1, %r1, 1;\n mov.u32 %r2, 0;\nagain:\n setp.eq.u32 %p1, %r1, 1;\n @%p1 bra done;\n and.b32 %r3, %r1, 1;\n"
               " setp.eq.u32 %p2, %r3, 0;\n @%p2 bra even;\n mad.lo.u32 %r1, %r1, 3, 1;\n bra next;\neven:\n shr.u32 %r1, %r1, 1;\nnext:\n add.u32 %r2, %r2, 1;\n"
               " bra again;\ndone:\n activemask.b32 %r4;\n setp.ne.u32 %p3, %r4, 0xffffffff;\n @%p3 add.u32 %r2, %r2, 1000;\n st.global.u32 [%a], %r2;\n"),
        1, 64);
    for (unsigned t = 0; t < 64; t++) {
        unsigned v = t + 1, n = 0;
        for (; v != 1; n++)
            v = v & 1 ? 3 * v + 1 : v / 2;
        ck_assert_uint_eq(got[t], n);
    }
}
END_TEST

START_TEST(each_lane_jumps_where_its_index_says)
{
    start();
    run(KERNEL(" rem.u32 %r1, %t, 3;\n mov.u32 %r2, 0;\n table: .branchtargets zero, one, two;\n brx.idx %r1, table;\nzero:\n mov.u32 %r2, 100;\n bra out;\n"
               "one:\n mov.u32 %r2, 200;\ntwo:\n add.u32 %r2, %r2, 5;\nout:\n st.global.u32 [%a], %r2;\n"), 1, 32);
    EACH_THREAD(32, t % 3 == 0 ? 100 : t % 3 == 1 ? 205 : 5);
}
END_TEST

/* A factorial that calls itself, in lanes of different depths, and functions by their address. */
START_TEST(calls_have_frames_of_their_own)
{
    start();
    static const char text[] = HEAD
        ".func (.param .b32 r) fact(.param .b32 n)\n{\n .reg .b32 %r<8>;\n .reg .pred %p;\n ld.param.u32 %r1, [n];\n setp.le.u32 %p, %r1, 1;\n @%p bra one;\n sub.u32 %r2, %r1, 1;\n"
        " {\n .param .b32 arg;\n .param .b32 back;\n st.param.b32 [arg], %r2;\n call.uni (back), fact, (arg);\n ld.param.b32 %r3, [back];\n }\n mul.lo.u32 %r4, %r3, %r1;\n"
        " st.param.b32 [r], %r4;\n ret;\none:\n st.param.b32 [r], 1;\n ret;\n}\n"
        ".func (.reg .b32 %o) plus(.reg .b32 %i) { add.u32 %o, %i, 1000; ret; }\n.func (.reg .b32 %o) twice(.reg .b32 %i) { .reg .b64 %w<9>; mul.wide.u32 %w8, %i, 2; cvt.u32.u64 %o, %w8; ret; }\n"
        ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n .reg .b32 %r<8>;\n .reg .b64 %x<8>;\n .reg .pred %p;\n ld.param.u64 %x1, [out];\n mov.u32 %r1, %tid.x;\n mul.wide.u32 %x2, %r1, 4;\n"
        " add.u64 %x1, %x1, %x2;\n rem.u32 %r5, %r1, 10;\n {\n .param .b32 a;\n .param .b32 b;\n st.param.b32 [a], %r5;\n call (b), fact, (a);\n ld.param.b32 %r2, [b];\n }\n"
        " and.b32 %r6, %r1, 1;\n setp.eq.u32 %p, %r6, 0;\n mov.u64 %x3, plus;\n mov.u64 %x4, twice;\n selp.b64 %x3, %x3, %x4, %p;\n proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
        " call (%r3), %x3, (%r2), proto;\n st.global.u32 [%x1], %r3;\n ret;\n}\n";
    run(text, 1, 40);
    for (unsigned t = 0; t < 40; t++) {
        unsigned v = 1;
        for (unsigned k = 2; k <= t % 10; k++)
            v *= k;
        ck_assert_uint_eq(got[t], t & 1 ? 2 * v : v + 1000);
    }
}
END_TEST

/* Half of a warp waits inside of one function while the other half is inside of another, whose registers are of another width. */
START_TEST(functions_that_wait_keep_their_registers)
{
    start();
    static const char text[] = HEAD
        ".func (.reg .b32 %o) narrow(.reg .b32 %i)\n{\n .reg .b32 %r<8>;\n mov.u32 %r0, 77;\n mov.u32 %r1, 77;\n mov.u32 %r2, 77;\n mul.lo.u32 %r7, %i, 3;\n barrier.sync 0;\n add.u32 %o, %r7, 1;\n ret;\n}\n"
        ".func (.reg .b32 %o) wide(.reg .b32 %i)\n{\n .reg .b64 %x<8>;\n mul.wide.u32 %x0, %i, 5;\n mov.b64 %x1, %x0;\n mov.b64 %x2, %x0;\n mov.b64 %x3, %x0;\n mov.b64 %x4, %x0;\n barrier.sync 0;\n"
        " cvt.u32.u64 %o, %x0;\n ret;\n}\n"
        ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n .reg .b32 %r<8>;\n .reg .b64 %x<8>;\n .reg .pred %p;\n ld.param.u64 %x1, [out];\n mov.u32 %r1, %tid.x;\n mul.wide.u32 %x2, %r1, 4;\n"
        " add.u64 %x1, %x1, %x2;\n setp.lt.u32 %p, %r1, 16;\n @%p bra low;\n call (%r2), wide, (%r1);\n bra end;\nlow:\n call (%r2), narrow, (%r1);\nend:\n st.global.u32 [%x1], %r2;\n ret;\n}\n";
    run(text, 1, 32);
    EACH_THREAD(32, t < 16 ? 3 * t + 1 : 5 * t);
}
END_TEST

START_TEST(local_memory_is_each_threads_own)
{
    start();
    run(KERNEL(" .local .align 4 .b8 mine[64];\n mov.u64 %x1, mine;\n cvta.local.u64 %x2, %x1;\n and.b32 %r1, %t, 15;\n mul.wide.u32 %x3, %r1, 4;\n add.u64 %x4, %x2, %x3;\n st.u32 [%x4], %t;\n"
               " add.u64 %x5, %x1, %x3;\n ld.local.u32 %r2, [%x5];\n isspacep.local %p1, %x4;\n selp.u32 %r3, 100, 0, %p1;\n isspacep.shared %p2, %x4;\n @%p2 add.u32 %r3, %r3, 1;\n"
               " add.u32 %r2, %r2, %r3;\n st.global.u32 [%a], %r2;\n"), 1, 64);
    EACH_THREAD(64, t + 100);
}
END_TEST

/* ---- lanes with each other ------------------------------------------------------------------------------------------------------------- */

START_TEST(lanes_exchange_vote_match_and_reduce)
{
    start();
    run(KERNEL(" mul.lo.u32 %r1, %t, 3;\n shfl.sync.down.b32 %r2|%p1, %r1, 1, 31, -1;\n selp.u32 %r3, 0, 0x10000, %p1;\n add.u32 %r2, %r2, %r3;\n"
               " shfl.sync.bfly.b32 %r4, %r1, 8, 31, -1;\n shfl.sync.idx.b32 %r5, %r1, 5, 0x181f, -1;\n shfl.sync.up.b32 %r6, %r1, 2, 0, -1;\n"
               " add.u32 %r2, %r2, %r4;\n add.u32 %r2, %r2, %r5;\n add.u32 %r2, %r2, %r6;\n st.global.u32 [%a], %r2;\n"), 1, 32);
    EACH_THREAD(32, (t == 31 ? 93 + 0x10000 : 3 * (t + 1)) + 3 * (t ^ 8) + 3 * ((t & 0x18) | 5) + 3 * (t < 2 ? t : t - 2));
    run(KERNEL(" setp.lt.u32 %p1, %t, 5;\n vote.sync.ballot.b32 %r1, %p1, -1;\n vote.sync.any.pred %p2, %p1, -1;\n vote.sync.all.pred %p3, %p1, -1;\n vote.sync.uni.pred %p4, !%p2, -1;\n"
               " selp.u32 %r2, 0x100, 0, %p2;\n selp.u32 %r3, 0x200, 0, %p3;\n selp.u32 %r4, 0x400, 0, %p4;\n add.u32 %r1, %r1, %r2;\n add.u32 %r1, %r1, %r3;\n add.u32 %r1, %r1, %r4;\n st.global.u32 [%a], %r1;\n"), 1, 32);
    EACH_THREAD(32, 0x51f);
    run(KERNEL(" and.b32 %r1, %t, 3;\n match.any.sync.b32 %r2, %r1, -1;\n match.all.sync.b32 %r3|%p1, %r1, -1;\n @%p1 mov.u32 %r2, 0;\n add.u32 %r2, %r2, %r3;\n st.global.u32 [%a], %r2;\n"), 1, 32);
    EACH_THREAD(32, 0x11111111u << (t & 3));
    run(KERNEL(" sub.u32 %r1, %t, 7;\n redux.sync.add.u32 %r2, %r1, -1;\n redux.sync.min.s32 %r3, %r1, -1;\n redux.sync.max.u32 %r4, %r1, -1;\n redux.sync.xor.b32 %r5, %r1, -1;\n"
               " add.u32 %r2, %r2, %r3;\n add.u32 %r2, %r2, %r4;\n add.u32 %r2, %r2, %r5;\n st.global.u32 [%a], %r2;\n"), 1, 32);
    unsigned all = 0;
    for (unsigned i = 0; i < 32; i++)
        all ^= i - 7;
    EACH_THREAD(32, 496 - 7 * 32 - 7 - 1 + all);
}
END_TEST

/* Halves of a warp that come to one shuffle on two ways, and to two that name their half alone. */
START_TEST(lanes_wait_for_those_that_are_named)
{
    start();
    run(KERNEL(" setp.lt.u32 %p1, %t, 16;\n mov.u32 %r1, %t;\n @!%p1 bra high;\n shfl.sync.idx.b32 %r2, %r1, 3, 31, 0xffff;\n bra both;\nhigh:\n mov.u32 %r5, 10;\nwaste:\n sub.u32 %r5, %r5, 1;\n"
               " setp.ne.u32 %p2, %r5, 0;\n @%p2 bra waste;\n shfl.sync.idx.b32 %r2, %r1, 19, 31, 0xffff0000;\nboth:\n shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;\n st.global.u32 [%a], %r3;\n"), 1, 32);
    EACH_THREAD(32, t < 16 ? 19 : 3);
}
END_TEST

START_TEST(lanes_that_have_ended_are_not_waited_for)
{
    start();
    run(KERNEL(" setp.ge.u32 %p1, %t, 16;\n @%p1 bra gone;\n shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;\n st.global.u32 [%a], %r2;\n ret;\ngone:\n"), 1, 32);
    EACH_THREAD(32, t < 16 ? t ^ 1 : 0);
}
END_TEST

START_TEST(atomics_of_all_kinds)
{
    start();
    run(KERNEL(" atom.global.add.u32 %r1, [%o], 3;\n red.global.max.s32 [%o+4], %t;\n red.global.or.b32 [%o+8], %t;\n atom.global.inc.u32 %r2, [%o+12], 9;\n"
               " cvt.rn.f32.u32 %f1, %t;\n red.global.add.f32 [%o+16], %f1;\n atom.global.cas.b32 %r3, [%o+20], 0, 77;\n atom.global.exch.b32 %r4, [%o+24], %t;\n"
               " mov.b32 %r5, 0x3c003c00;\n red.global.add.noftz.f16x2 [%o+28], %r5;\n atom.global.dec.u32 %r6, [%o+32], 5;\n"), 2, 64);
    ck_assert_uint_eq(got[0], 384);
    ck_assert_uint_eq(got[1], 63);
    ck_assert_uint_eq(got[2], 63);
    ck_assert_uint_eq(got[3], 128 % 10);
    float sum;
    memcpy(&sum, &got[4], 4);
    ck_assert(sum == 2 * 2016.f);
    ck_assert_uint_eq(got[5], 77);
    ck_assert_uint_eq(got[6], 63);
    ck_assert_uint_eq(got[7], 0x58005800); /* 128 ones */
    ck_assert_uint_eq(got[8], (6 - 128 % 6) % 6);
}
END_TEST

START_TEST(the_carry_goes_from_word_to_word)
{
    start();
    run(KERNEL(" sub.u32 %r1, 0, %t;\n add.cc.u32 %r2, %r1, %t;\n addc.cc.u32 %r3, 0xffffffff, 0;\n addc.u32 %r4, 5, 0;\n sub.cc.u32 %r5, 0, %t;\n subc.u32 %r6, 9, 0;\n"
               " mad.lo.cc.u32 %r7, %r1, 2, %t;\n madc.hi.u32 %r8, %r1, 2, 0;\n shl.b32 %r4, %r4, 4;\n add.u32 %r4, %r4, %r6;\n shl.b32 %r8, %r8, 8;\n add.u32 %r4, %r4, %r8;\n add.u32 %r4, %r4, %r3;\n"
               " bfi.b32 %r9, %t, %r4, 16, 4;\n mov.b32 {%h1, %h2}, %r9;\n mov.b32 %r9, {%h2, %h1};\n st.global.u32 [%a], %r9;\n"), 1, 32);
    for (unsigned t = 0; t < 32; t++) {
        unsigned carry = t != 0, r3 = carry ? 0 : 0xffffffff, r4 = 5 + (carry && 1), r6 = 9 - (t != 0);
        uint64_t product = (uint64_t)(0u - t) * 2;
        unsigned low_carry = ((uint64_t)(uint32_t)product + t) >> 32 != 0, r8 = (uint32_t)(product >> 32) + low_carry;
        unsigned v = (r4 << 4) + r6 + (r8 << 8) + r3, b = (v & ~0xf0000u) | (t & 15) << 16;
        ck_assert_msg(got[t] == (b << 16 | b >> 16), "thread %u: %#x, not %#x", t, got[t], b << 16 | b >> 16);
    }
}
END_TEST

/* ---- shared memory, barriers ------------------------------------------------------------------------------------------------------------ */

#define REVERSE " .shared .align 4 .b8 s[1024];\n mov.u32 %r1, s;\n shl.b32 %r2, %t, 2;\n add.u32 %r3, %r1, %r2;\n st.shared.u32 [%r3], %t;\n bar.sync 0;\n sub.u32 %r4, 255, %t;\n shl.b32 %r4, %r4, 2;\n" \
                " add.u32 %r4, %r4, %r1;\n ld.shared.u32 %r5, [%r4];\n cvta.shared.u64 %x1, %x9;\n st.global.u32 [%a], %r5;\n"
START_TEST(threads_of_a_block_meet_at_barriers)
{
    start();
    run(KERNEL(REVERSE), 4, 256);
    EACH_THREAD(1024, 255 - t % 256);
    run(KERNEL(" setp.lt.u32 %p1, %t, 100;\n bar.red.popc.u32 %r1, 0, %p1;\n bar.red.or.pred %p2, 1, %p1;\n bar.red.and.pred %p3, 2, !%p1;\n selp.u32 %r2, 1000, 0, %p2;\n selp.u32 %r3, 5000, 0, %p3;\n"
               " add.u32 %r1, %r1, %r2;\n add.u32 %r1, %r1, %r3;\n st.global.u32 [%a], %r1;\n"), 1, 256);
    EACH_THREAD(256, 1100);
    /* warps that produce and warps that consume, through barriers with a number of threads */
    run(KERNEL(" .shared .align 4 .b8 s[128];\n mov.u32 %r1, s;\n and.b32 %r3, %t, 31;\n shl.b32 %r3, %r3, 2;\n add.u32 %r1, %r1, %r3;\n setp.ge.u32 %p1, %t, 32;\n @%p1 bra consume;\n"
               " st.shared.u32 [%r1], %t;\n bar.arrive 1, 64;\n bra end;\nconsume:\n bar.sync 1, 64;\n ld.shared.u32 %r2, [%r1];\n st.global.u32 [%a], %r2;\nend:\n"), 1, 64);
    for (unsigned t = 32; t < 64; t++)
        ck_assert_uint_eq(got[t], t - 32);
    /* those that have ended are not waited for */
    run(KERNEL(" setp.ge.u32 %p1, %t, 40;\n @%p1 exit;\n bar.sync 0;\n st.global.u32 [%a], 1;\n"), 1, 96);
    EACH_THREAD(96, t < 40);
}
END_TEST

START_TEST(blocks_wait_for_each_other)
{
    start();
    /* each block adds one and waits until all have: none may be left out while another waits */
    run(KERNEL(" mov.u32 %r1, %nctaid.x;\n red.global.add.u32 [%o+4000], 1;\nwait:\n ld.acquire.gpu.global.u32 %r2, [%o+4000];\n setp.lt.u32 %p1, %r2, %r1;\n @%p1 bra wait;\n st.global.u32 [%a], 1;\n"), 3, 1);
    EACH_THREAD(3, 1);
    /* a lane that waits for another of its warp */
    run(KERNEL(" setp.eq.u32 %p1, %t, 0;\n @!%p1 bra give;\nwait:\n ld.volatile.global.u32 %r2, [%o+4000];\n setp.eq.u32 %p2, %r2, 0;\n @%p2 bra wait;\n bra end;\ngive:\n st.volatile.global.u32 [%o+4000], 1;\nend:\n"
               " st.global.u32 [%a], 1;\n"), 1, 2);
    EACH_THREAD(2, 1);
}
END_TEST

START_TEST(copies_to_shared_memory_are_done_at_once)
{
    start();
    CUdeviceptr in = alloc_words(256);
    uint32_t words[256];
    for (unsigned i = 0; i < 256; i++)
        words[i] = i * 7;
    OK(cuMemcpyHtoD_v2(in, words, sizeof words));
    OK(run_with(KERNEL(" .shared .align 16 .b8 s[1024];\n mov.u32 %r1, s;\n shl.b32 %r2, %t, 4;\n add.u32 %r1, %r1, %r2;\n mul.wide.u32 %x1, %t, 16;\n add.u64 %x1, %x1, %i;\n setp.lt.u32 %p1, %t, 32;\n selp.u32 %r3, 16, 8, %p1;\n"
                       " cp.async.cg.shared.global [%r1], [%x1], 16, %r3;\n cp.async.commit_group;\n cp.async.wait_group 0;\n bar.sync 0;\n ld.shared.v4.u32 {%v1, %v2, %v3, %v4}, [%r1];\n"
                       " add.u32 %v1, %v1, %v2;\n add.u32 %v1, %v1, %v3;\n add.u32 %v1, %v1, %v4;\n st.global.u32 [%a], %v1;\n"), 1, 64, 0, in));
    EACH_THREAD(64, 7 * (t < 32 ? 16 * t + 6 : 8 * t + 1));
}
END_TEST

/* ---- matrices -------------------------------------------------------------------------------------------------------------------------- */

/* d = a b + c with a of 16 x 16 bf16 from shared memory by ldmatrix, b of 16 x 8: small whole numbers, so that every sum is exact. */
START_TEST(matrices_are_multiplied)
{
    start();
    static uint16_t a[16][16], b[8][16]; /* b by columns */
    CUdeviceptr in = alloc_words(192);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++) {
            float x = (float)((i * 3 + k * 5) % 11 - 5), y = (float)((i * 7 + k) % 9 - 4);
            uint32_t u;
            memcpy(&u, &x, 4);
            a[i][k] = (uint16_t)(u >> 16);
            memcpy(&u, &y, 4);
            if (i < 8)
                b[i][k] = (uint16_t)(u >> 16);
        }
    OK(cuMemcpyHtoD_v2(in, a, sizeof a));
    OK(cuMemcpyHtoD_v2(in + sizeof a, b, sizeof b));
    OK(run_with(KERNEL(" .shared .align 16 .b8 s[768];\n mov.u32 %r1, s;\n mov.u32 %r2, %t;\ncopy:\n shl.b32 %r3, %r2, 2;\n add.u32 %r4, %r3, %r1;\n cvt.u64.u32 %x1, %r3;\n add.u64 %x1, %x1, %i;\n ld.global.u32 %r5, [%x1];\n"
                       " st.shared.u32 [%r4], %r5;\n add.u32 %r2, %r2, 32;\n setp.lt.u32 %p1, %r2, 192;\n @%p1 bra copy;\n bar.sync 0;\n"
                       " and.b32 %r6, %t, 15;\n shl.b32 %r6, %r6, 5;\n shr.u32 %r7, %t, 4;\n shl.b32 %r7, %r7, 4;\n add.u32 %r6, %r6, %r7;\n add.u32 %r6, %r6, %r1;\n"
                       " ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%v1, %v2, %v3, %v4}, [%r6];\n"
                       " and.b32 %r8, %t, 7;\n shl.b32 %r8, %r8, 5;\n shr.u32 %r9, %t, 3;\n and.b32 %r9, %r9, 1;\n shl.b32 %r9, %r9, 4;\n add.u32 %r8, %r8, %r9;\n add.u32 %r8, %r8, %r1;\n"
                       " ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%v5, %v6}, [%r8+512];\n mov.f32 %f1, 0f3F800000;\n"
                       " mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f2, %f3, %f4, %f5}, {%v1, %v2, %v3, %v4}, {%v5, %v6}, {%f1, %f1, %f1, %f1};\n"
                       " shl.b32 %r10, %t, 4;\n cvt.u64.u32 %x2, %r10;\n add.u64 %x2, %x2, %o;\n st.global.v4.f32 [%x2], {%f2, %f3, %f4, %f5};\n"), 1, 32, 0, in));
    for (int lane = 0; lane < 32; lane++)
        for (int j = 0; j < 4; j++) {
            int row = lane / 4 + 8 * (j / 2), col = lane % 4 * 2 + j % 2, want = 1;
            for (int k = 0; k < 16; k++)
                want += ((row * 3 + k * 5) % 11 - 5) * ((col * 7 + k) % 9 - 4);
            float v;
            memcpy(&v, &got[lane * 4 + j], 4);
            ck_assert_msg(v == (float)want, "row %d, column %d: %g, not %d", row, col, (double)v, want);
        }
}
END_TEST

/* A kernel of Inductor's with shuffles, shared memory and cache hints, launched as Inductor launches it. */
START_TEST(what_a_compiler_wrote_is_run)
{
    start();
    float rows[16][10], sums[16];
    CUdeviceptr in, out, none = 0;
    OK(cuMemAlloc_v2(&in, sizeof rows));
    OK(cuMemAlloc_v2(&out, sizeof sums));
    for (int i = 0; i < 160; i++)
        rows[i / 10][i % 10] = (float)((i * 37) % 101 - 50);
    OK(cuMemcpyHtoD_v2(in, rows, sizeof rows));
    OK(cuMemsetD32_v2(out, 0xc2f60000, 16)); /* -123 */
    int columns = 10, depth = 16;
    OK(cuLaunchKernel(of_text(triton_sum, "triton_per_fused_sum_1"), 1, 1, 1, 64, 1, 1, 128, NULL,
                      (void *[]){ &in, &out, &columns, &depth, &none, &none }, NULL));
    OK(cuMemcpyDtoH_v2(sums, out, sizeof sums));
    for (int j = 0; j < 16; j++) {
        float want = j < 10 ? 0 : -123;
        for (int i = 0; i < 16 && j < 10; i++)
            want += rows[i][j];
        ck_assert_msg(sums[j] == want, "column %d: %g, not %g", j, (double)sums[j], (double)want);
    }
}
END_TEST

/* ---- faults ------------------------------------------------------------------------------------------------------------------------------ */

/* SIMGPU_TOUCHED: stores of some bytes of a buffer; what is loaded after it was stored is no load; two parameters that share a buffer; a launch
 * like another one is told once. */
START_TEST(what_a_kernel_does_to_its_buffers_is_told)
{
    char path[] = "/tmp/simgpu-touched-XXXXXX", said[256] = "";
    int fd = mkstemp(path);
    setenv("SIMGPU_TOUCHED", path, 1);
    start();
    CUdeviceptr out = alloc_words(64), in = alloc_words(16);
    CUfunction f = of_text(KERNEL(" st.global.u32 [%a], %t;\n ld.u32 %r1, [%a];\n ld.global.u32 %r2, [%i+4];\n red.global.add.u32 [%i+60], %r1;\n"), "k");
    for (int i = 0; i < 3; i++)
        OK(cuLaunchKernel(f, 1, 1, 1, 8, 1, 1, 0, NULL, (void *[]){ &out, i < 2 ? &in : &out }, NULL));
    OK(cuCtxSynchronize());
    ck_assert_int_gt(read(fd, said, sizeof said - 1), 0);
    ck_assert_str_eq(said, "k\t0 256 0 32\t1 64 8 4\nk\t0,1 256 4 36\n");
    unlink(path);
}
END_TEST

START_TEST(memory_that_is_not_mapped)
{
    start();
    FAILS(run_with(KERNEL(" add.u64 %x1, %i, 16;\n ld.global.u32 %r1, [%x1];\n"), 1, 32, 0, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST
START_TEST(an_address_in_a_window_is_no_global_one)
{
    start();
    FAILS(run_with(KERNEL(" .shared .align 4 .b8 s[16];\n mov.u64 %x1, s;\n cvta.shared.u64 %x2, %x1;\n ld.u32 %r2, [%x2];\n ld.global.u32 %r1, [%x2];\n"), 1, 32, 0, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST
START_TEST(beyond_shared_memory)
{
    fails(KERNEL(" .shared .align 4 .b8 s[16];\n mov.u32 %r1, s;\n shl.b32 %r2, %t, 2;\n add.u32 %r1, %r1, %r2;\n st.shared.u32 [%r1], %t;\n"), 5, CUDA_ERROR_ILLEGAL_ADDRESS, "4 bytes at 16 of shared memory, which has 16");
}
END_TEST
START_TEST(beyond_local_memory)
{
    fails(KERNEL(" .local .align 4 .b8 mine[16];\n mov.u64 %x1, mine;\n st.local.u32 [%x1+16], %t;\n"), 1, CUDA_ERROR_ILLEGAL_ADDRESS, "of local memory, which has 16");
}
END_TEST
START_TEST(an_address_that_is_no_multiple)
{
    fails(KERNEL(" add.u64 %a, %a, 2;\n st.global.u32 [%a], %t;\n"), 32, CUDA_ERROR_MISALIGNED_ADDRESS, "is no multiple of 4");
}
END_TEST
START_TEST(a_barrier_that_some_never_reach)
{
    fails(KERNEL(" setp.lt.u32 %p1, %t, 32;\n @%p1 bar.sync 1, 64;\n bar.sync 0;\n"), 64, CUDA_ERROR_LAUNCH_FAILED, "the others never come");
}
END_TEST
START_TEST(a_barrier_at_two_places)
{
    fails(KERNEL(" setp.lt.u32 %p1, %t, 16;\n @%p1 bra one;\n bar.sync 0;\n bra end;\none:\n bar.sync 0;\nend:\n"), 32, CUDA_ERROR_LAUNCH_FAILED, "lanes of one warp are at barrier 0 in line");
}
END_TEST
START_TEST(a_shuffle_that_a_named_lane_never_reaches)
{
    fails(KERNEL(" setp.lt.u32 %p1, %t, 16;\n @!%p1 bra other;\n shfl.sync.idx.b32 %r1, %t, 0, 31, -1;\nother:\n bar.sync 0;\n"), 32, CUDA_ERROR_LAUNCH_FAILED, "never come");
}
END_TEST
START_TEST(a_shuffle_of_a_lane_that_is_not_named)
{
    fails(KERNEL(" shfl.sync.idx.b32 %r1, %t, 0, 31, 0xffff;\n"), 32, CUDA_ERROR_LAUNCH_FAILED, "take part, and name the lanes 0xffff");
}
END_TEST
START_TEST(a_breakpoint_without_a_debugger)
{
    fails(KERNEL(" setp.eq.u32 %p1, %t, 3;\n @%p1 brkpt;\n"), 32, CUDA_ERROR_LAUNCH_FAILED, "kernel k, line 23");
}
END_TEST

START_TEST(a_trap)
{
    fails(KERNEL(" setp.eq.u32 %p1, %t, 3;\n @%p1 trap;\n"), 32, CUDA_ERROR_LAUNCH_FAILED, "kernel k, line 23, trap");
}
END_TEST
START_TEST(calls_without_an_end)
{
    fails(HEAD ".func f() { call f, (); ret; }\n.visible .entry k(.param .u64 o, .param .u64 i) { call f, (); ret; }\n", 1, CUDA_ERROR_LAUNCH_FAILED, "calls too deep");
}
END_TEST

/* A device goes on with another context after a kernel's end in its middle: what it held is used again. */
START_TEST(after_a_fault_the_next_launch_is_whole)
{
    start();
    listen_to_stderr();
    FAILS(run_with(KERNEL(" setp.eq.u32 %p1, %t, 255;\n @%p1 trap;\n bar.sync 0;\n"), 2, 256, 0, 0), CUDA_ERROR_LAUNCH_FAILED);
    heard();
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuCtxPopCurrent_v2(&test_ctx));
    OK(cuDevicePrimaryCtxRetain(&test_ctx, 0));
    OK(cuCtxPushCurrent_v2(test_ctx));
    run(KERNEL(REVERSE), 4, 256);
    EACH_THREAD(1024, 255 - t % 256);
}
END_TEST

/* ---- orders -------------------------------------------------------------------------------------------------------------------------------- */

/* Without a barrier the readers may come before the writers: under SIMGPU_CHAOS they do at some time, else never. */
static bool race_shows(const char *chaos)
{
    if (chaos)
        setenv("SIMGPU_CHAOS", chaos, 1);
    start();
    for (int pass = 0; pass < 20; pass++) {
        run(KERNEL(" .shared .align 4 .b8 s[1024];\n mov.u32 %r1, s;\n shl.b32 %r2, %t, 2;\n add.u32 %r3, %r1, %r2;\n st.shared.u32 [%r3], %t;\n xor.b32 %r4, %r2, 128;\n add.u32 %r4, %r4, %r1;\n"
                   " setp.lt.u32 %p1, %t, 32;\n @%p1 bra end;\n ld.shared.u32 %r5, [%r4];\n st.global.u32 [%a], %r5;\nend:\n"), 1, 64);
        for (unsigned t = 32; t < 64; t++)
            if (got[t] != t - 32)
                return true;
    }
    return false;
}
START_TEST(a_race_shows_under_chaos) { ck_assert(race_shows("3")); }
END_TEST
START_TEST(without_chaos_every_run_is_alike) { ck_assert(!race_shows(NULL)); }
END_TEST

START_TEST(blocks_come_in_any_order_under_chaos)
{
    setenv("SIMGPU_CHAOS", "5", 1);
    start();
    bool in_order = true, seen[64] = { false };
    run(KERNEL(" mov.u32 %r1, %ctaid.x;\n atom.global.add.u32 %r2, [%o+4000], 1;\n shl.b32 %r2, %r2, 2;\n cvt.u64.u32 %x1, %r2;\n add.u64 %x1, %x1, %o;\n st.global.u32 [%x1], %r1;\n"), 64, 1);
    for (unsigned i = 0; i < 64; i++) {
        in_order &= got[i] == i;
        ck_assert(got[i] < 64 && !seen[got[i]]);
        seen[got[i]] = true;
    }
    ck_assert(!in_order);
}
END_TEST

/* ---- remat's own ------------------------------------------------------------------------------------------------------------------------------ */

/* The text that remat loads on devices against the C that stands for it here. */
static void sums(const char *twins, CUdeviceptr table, CUdeviceptr out, const struct hash_row *rows, unsigned n, hash_word *to)
{
    if (twins)
        setenv("SIMGPU_TWINS", twins, 1);
    CUfunction list = of_text(hash_ptx, "remat_hash_list"), few = of_text(hash_ptx, "remat_hash_few");
    hash_word all = 1 << 16;
    OK(cuMemcpyHtoD_v2(table, rows, n * sizeof *rows));
    OK(cuMemsetD8_v2(out, 0, n * 16));
    OK(cuLaunchKernel(list, 3, n - HASH_FEW, 1, 256, 1, 1, 0, NULL, (void *[]){ &table, &all }, NULL));
    struct hash_few last;
    memcpy(&last, rows + n - HASH_FEW, sizeof last);
    OK(cuLaunchKernel(few, 2, HASH_FEW, 1, 256, 1, 1, 0, NULL, (void *[]){ &last, &all }, NULL));
    OK(cuMemcpyDtoH_v2(to, out, n * 16));
}

enum { ROUNDS = 50, ROWS = 200, BYTES = 1 << 16 };
static uint64_t drawn_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 20;
}

/* 10,000 ranges of words that begin and end anywhere: of every length up to 160 bytes, the first round's of any length, the others' short. */
START_TEST(the_hash_is_what_its_text_says)
{
    static unsigned char data[BYTES];
    static struct hash_row rows[ROWS];
    static hash_word ours[ROUNDS][2 * ROWS], texts[2 * ROWS];
    CUdeviceptr at, table, out;
    start();
    OK(cuMemAlloc_v2(&at, BYTES));
    OK(cuMemAlloc_v2(&table, sizeof rows));
    OK(cuMemAlloc_v2(&out, sizeof texts));
    for (int text = 0; text < 2; text++) {
        uint64_t state = 12345;
        for (unsigned round = 0; round < ROUNDS; round++) {
            for (unsigned i = 0; i < BYTES && round % 10 == 0; i++)
                data[i] = (unsigned char)drawn_number(&state);
            if (round % 10 == 0)
                OK(cuMemcpyHtoD_v2(at, data, BYTES));
            for (unsigned i = 0; i < ROWS; i++) {
                hash_word from = drawn_number(&state) % (BYTES / 8) * 8, most = BYTES - from, n = drawn_number(&state);
                n = round == 0 && i >= 150 ? n % BYTES : round == 1 && i <= 160 ? i : n % (i % 8 ? 100 : 4000);
                rows[i] = (struct hash_row){ .ptr = at + from, .bytes = n < most ? n : most, .out = out + 16 * i };
            }
            sums(text ? "" : NULL, table, out, rows, ROWS, text ? texts : ours[round]);
            for (unsigned i = 0; text && i < 2 * ROWS; i++)
                ck_assert_msg(ours[round][i] == texts[i], "round %u, %llu bytes: %#llx, and by the text %#llx", round, (unsigned long long)rows[i / 2].bytes,
                              (unsigned long long)ours[round][i], (unsigned long long)texts[i]);
            ck_assert(texts[2 * ROWS - 1] != 0 || !text || rows[ROWS - 1].bytes == 0);
        }
    }
}
END_TEST

/* Numbers near the ends of spans, and any others: how many of a range may be addresses, by the text and by the C that stands for it. */
START_TEST(what_may_be_an_address_is_what_the_text_says)
{
    static hash_word data[BYTES / 8];
    static struct hash_row rows[ROWS];
    static hash_word found[2][2 * ROWS];
    const struct find_spans spans = { { { 1 << 20, 1 << 16 }, { 0, 0 }, { ~(hash_word)0 - 4095, 4096 }, { 1ull << 46, 12 } } };
    CUdeviceptr at, table, out;
    uint64_t state = 777, expected[ROWS] = { 0 };
    start();
    OK(cuMemAlloc_v2(&at, BYTES));
    OK(cuMemAlloc_v2(&table, sizeof rows));
    OK(cuMemAlloc_v2(&out, sizeof found[0]));
    for (unsigned i = 0; i < BYTES / 8; i++) {
        const unsigned k = (unsigned)drawn_number(&state) % 4;
        data[i] = spans.at[k].low + drawn_number(&state) % (2 * spans.at[k].bytes + 9) - 4;
    }
    OK(cuMemcpyHtoD_v2(at, data, BYTES));
    for (unsigned i = 0; i < ROWS; i++) {
        const hash_word from = drawn_number(&state) % (BYTES / 8), most = BYTES / 8 - from, n = drawn_number(&state) % (i % 8 ? 40 : 4000), words = n < most ? n : most;
        rows[i] = (struct hash_row){ .ptr = at + 8 * from, .bytes = 8 * words + i % 8 * (words < most), .out = out + 16 * i };
        for (hash_word w = from; w < from + words; w++)
            for (unsigned k = 0; k < FIND_SPANS; k++)
                if (data[w] % 4 == 0 && data[w] >= spans.at[k].low && data[w] - spans.at[k].low < spans.at[k].bytes)
                    expected[i]++;
    }
    for (int text = 0; text < 2; text++) {
        hash_word all = 1 << 16;
        if (text)
            setenv("SIMGPU_TWINS", "", 1);
        CUfunction find = of_text(hash_ptx, "remat_find_list");
        OK(cuMemcpyHtoD_v2(table, rows, sizeof rows));
        OK(cuMemsetD8_v2(out, 0, sizeof found[0]));
        OK(cuLaunchKernel(find, 3, ROWS, 1, 256, 1, 1, 0, NULL, (void *[]){ &table, &all, (void *)&spans }, NULL));
        OK(cuMemcpyDtoH_v2(found[text], out, sizeof found[0]));
    }
    uint64_t any = 0;
    for (unsigned i = 0; i < ROWS; i++) {
        any += expected[i];
        ck_assert_msg(found[0][2 * i] == expected[i] && found[1][2 * i] == expected[i], "range %u of %llu bytes: %llu, %llu by the text, %llu expected", i,
                      (unsigned long long)rows[i].bytes, (unsigned long long)found[0][2 * i], (unsigned long long)found[1][2 * i], (unsigned long long)expected[i]);
    }
    ck_assert(any > ROWS);
}
END_TEST

RUN_SUITE("simgpu ptx", a_module_says_what_its_text_says, variables_begin_as_the_text_says, libraries_and_fat_binaries_take_texts, texts_are_linked,
          a_broken_text_is_told_with_its_line, an_unknown_instruction_keeps_its_kernel_from_being_launched, lanes_part_and_meet_again,
          each_lane_jumps_where_its_index_says, calls_have_frames_of_their_own, functions_that_wait_keep_their_registers, local_memory_is_each_threads_own, lanes_exchange_vote_match_and_reduce,
          lanes_wait_for_those_that_are_named, lanes_that_have_ended_are_not_waited_for, atomics_of_all_kinds, the_carry_goes_from_word_to_word, threads_of_a_block_meet_at_barriers,
          blocks_wait_for_each_other, copies_to_shared_memory_are_done_at_once, matrices_are_multiplied, what_a_compiler_wrote_is_run, what_a_kernel_does_to_its_buffers_is_told, memory_that_is_not_mapped,
          an_address_in_a_window_is_no_global_one, beyond_shared_memory, beyond_local_memory, an_address_that_is_no_multiple,
          a_barrier_that_some_never_reach, a_barrier_at_two_places, a_shuffle_that_a_named_lane_never_reaches, a_shuffle_of_a_lane_that_is_not_named,
          a_trap, a_breakpoint_without_a_debugger, calls_without_an_end, after_a_fault_the_next_launch_is_whole, a_race_shows_under_chaos, without_chaos_every_run_is_alike,
          blocks_come_in_any_order_under_chaos, the_hash_is_what_its_text_says, what_may_be_an_address_is_what_the_text_says)
