/*
 * Machine code on the simulated GPU: what is read from fat binaries and cubins, how kernels are found in the catalogue,
 * and what is said of images that cannot be run.
 */
#include <zstd.h>

#include "tests/simgpu/gpu_cubin.h"
#include "tests/simgpu/gpu_fatbin.h"
#include "tests/simgpu/made_code.h"
#include "tests/simgpu/testing.h"

static const uint32_t fill_sizes[] = { 8, 4, 8 }, one_pointer[] = { 8 }, large_sizes[] = { 8, 32752 }, odd_sizes[] = { 1, 12, 8, 2 };
static const uint32_t init_words[] = { 11, 22, 33 };
static const struct made_kernel kernels[] = {
    { "k_fill", 3, fill_sizes, 256, 64, 40, false },
    { "k_fill7", 3, fill_sizes, 0, 0, 24, false },
    { "k_tell", 1, one_pointer, 0, 0, 8, false },
    { "k_large", 2, large_sizes, 0, 0, 8, true },
    { "k_odd", 4, odd_sizes, 0, 0, 8, false },
    { "other", 0, NULL, 0, 0, 8, false },
};
static const struct made_variable variables[] = { { "zeros", 16, NULL }, { "words", 12, init_words } };

static struct made_image cubin(void)
{
    return made_cubin(kernels, sizeof kernels / sizeof kernels[0], variables, 2);
}

static struct made_image packed(unsigned arch)
{
    struct made_image c = cubin();
    unsigned char *z = malloc(ZSTD_compressBound(c.n));
    size_t n = ZSTD_compress(z, ZSTD_compressBound(c.n), c.at, c.n, 1);
    ck_assert(!ZSTD_isError(n));
    struct made_image fat = made_fat((struct made_image){ NULL, 0 }, 2, arch, z, n, c.n);
    free(z);
    free(c.at);
    return fat;
}

static void begin(void)
{
    setenv("SIMGPU_CATALOGUE", built("testcatalogue.so"), 1);
    start();
}

static CUmodule load(void)
{
    struct made_image fat = packed(80);
    CUmodule m;
    OK(cuModuleLoadData(&m, fat.at));
    memset(fat.at, 0xee, fat.n); /* the driver keeps nothing of the image */
    free(fat.at);
    return m;
}

static CUfunction function(CUmodule m, const char *name)
{
    CUfunction f;
    OK(cuModuleGetFunction(&f, m, name));
    return f;
}

/* What the process prints to stderr meanwhile. */
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
    size_t n = fread(text, 1, sizeof text - 1, stderr_file);
    text[n] = '\0';
    fclose(stderr_file);
    return text;
}

START_TEST(kernels_are_bound_by_name)
{
    begin();
    CUmodule m = load();
    CUdeviceptr p = alloc_words(100);
    unsigned value = 5;
    uint64_t n = 100;
    void *params[] = { &p, &value, &n };
    OK(cuLaunchKernel(function(m, "k_fill"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(read_word(p + 4 * 99), 5);
    OK(cuLaunchKernel(function(m, "k_fill7"), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(read_word(p), 12);
    unsigned char block[24]; /* the same as one block of parameters */
    size_t bytes = sizeof block;
    value = 9;
    memcpy(block, &p, 8);
    memcpy(block + 8, &value, 4);
    memcpy(block + 16, &n, 8);
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END };
    OK(cuLaunchKernel(function(m, "k_fill"), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    ck_assert_uint_eq(read_word(p), 9);
}
END_TEST

START_TEST(a_launch_tells_its_kernel)
{
    begin();
    CUmodule m = load();
    CUdeviceptr p = alloc_words(20);
    uint64_t got[7];
    void *params[] = { &p };
    OK(cuLaunchKernel(function(m, "k_tell"), 5, 1, 1, 2, 3, 1, 100, NULL, params, NULL));
    OK(cuMemcpyDtoH_v2(got, p, sizeof got));
    ck_assert_uint_eq(got[0], 5);
    ck_assert_uint_eq(got[1], 3);
    ck_assert_uint_eq(got[2], 100);
    ck_assert_uint_eq(got[3], 0);
    ck_assert_uint_eq(got[4], 108);
    ck_assert_uint_eq(got[5], 1);
    ck_assert_uint_eq(got[6], 0);
}
END_TEST

START_TEST(chaos_differs_from_launch_to_launch)
{
    setenv("SIMGPU_CHAOS", "3", 1);
    begin();
    CUmodule m = load();
    CUdeviceptr p = alloc_words(20);
    uint64_t a[7], b[7];
    void *params[] = { &p };
    OK(cuLaunchKernel(function(m, "k_tell"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH_v2(a, p, sizeof a));
    OK(cuLaunchKernel(function(m, "k_tell"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH_v2(b, p, sizeof b));
    ck_assert(a[3] && b[3] && a[3] != b[3]);
}
END_TEST

START_TEST(blocks_of_32_kilobytes)
{
    begin();
    CUmodule m = load();
    CUdeviceptr p = alloc_words(2);
    static unsigned char block[32752];
    uint64_t want = 0, got;
    for (size_t i = 0; i < sizeof block; i++)
        want += block[i] = (unsigned char)(i * 7);
    void *params[] = { &p, block };
    OK(cuLaunchKernel(function(m, "k_large"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH_v2(&got, p, sizeof got));
    ck_assert_uint_eq(got, want);
}
END_TEST

START_TEST(metadata)
{
    static const size_t want_offset[] = { 0, 8, 16 + 8, 32 };
    begin();
    CUmodule m = load();
    CUfunction f = function(m, "k_fill"), odd = function(m, "k_odd");
    size_t offset, size;
    int value;
    OK(cuFuncGetParamInfo(f, 2, &offset, &size));
    ck_assert_uint_eq(offset, 16);
    ck_assert_uint_eq(size, 8);
    for (size_t i = 0; i < 4; i++) {
        OK(cuFuncGetParamInfo(odd, i, &offset, &size));
        ck_assert_uint_eq(offset, want_offset[i]);
        ck_assert_uint_eq(size, odd_sizes[i]);
    }
    FAILS(cuFuncGetParamInfo(odd, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    ck_assert_int_eq(value, 256);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    ck_assert_int_eq(value, 64);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    ck_assert_int_eq(value, 40);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, odd));
    ck_assert_int_eq(value, 1024);
    unsigned n;
    OK(cuModuleGetFunctionCount(&n, m));
    ck_assert_uint_eq(n, sizeof kernels / sizeof kernels[0]);
    CUdeviceptr p = 0;
    unsigned v = 0;
    uint64_t k = 0;
    void *params[] = { &p, &v, &k };
    FAILS(cuLaunchKernel(f, 1, 1, 1, 512, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}
END_TEST

START_TEST(variables_of_a_module)
{
    begin();
    CUmodule m = load();
    CUdeviceptr p, again;
    size_t bytes;
    uint32_t got[4] = { 1, 1, 1, 1 };
    OK(cuModuleGetGlobal_v2(&p, &bytes, m, "words"));
    ck_assert_uint_eq(bytes, 12);
    OK(cuMemcpyDtoH_v2(got, p, 12));
    ck_assert_mem_eq(got, init_words, 12);
    OK(cuMemsetD32_v2(p, 9, 1));
    OK(cuModuleGetGlobal_v2(&again, NULL, m, "words"));
    ck_assert_uint_eq(again, p);
    ck_assert_uint_eq(read_word(p), 9);
    OK(cuModuleGetGlobal_v2(&p, &bytes, m, "zeros"));
    OK(cuMemcpyDtoH_v2(got, p, 16));
    ck_assert_uint_eq(got[0] | got[1] | got[2] | got[3], 0);
    FAILS(cuModuleGetGlobal_v2(&p, &bytes, m, "none"), CUDA_ERROR_NOT_FOUND);
    FAILS(cuModuleGetGlobal_v2(&p, &bytes, test_module, "words"), CUDA_ERROR_NOT_FOUND);
}
END_TEST

/* A kernel without an entry fails its launch, by name, once; its neighbours run. */
START_TEST(a_missing_kernel_says_its_name)
{
    begin();
    CUmodule m = load();
    CUdeviceptr p = alloc_words(1);
    unsigned char one = 1;
    short two = 2;
    uint64_t n = 1;
    char twelve[12] = { 0 };
    listen_to_stderr();
    CUresult first = cuLaunchKernel(function(m, "k_odd"), 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &one, twelve, &n, &two }, NULL);
    CUresult again = cuLaunchKernel(function(m, "k_odd"), 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &one, twelve, &n, &two }, NULL);
    CUresult other = cuLaunchKernel(function(m, "other"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    const char *text = heard();
    FAILS(first, CUDA_ERROR_NOT_FOUND);
    FAILS(again, CUDA_ERROR_NOT_FOUND);
    FAILS(other, CUDA_ERROR_NOT_FOUND);
    const char *line = strstr(text, "<k_odd>");
    ck_assert_msg(line && !strstr(line + 1, "<k_odd>"), "said %s", text);
    ck_assert_msg(strstr(text, "its template has an entry") && strstr(text, "no entry for this function"), "said %s", text);
    OK(cuMemsetD32_v2(p, 3, 1));
    OK(cuCtxSynchronize()); /* nothing sticks */
}
END_TEST

START_TEST(no_catalogue)
{
    begin();
    setenv("SIMGPU_CATALOGUE", "/nonexistent/catalogue.so", 1);
    CUmodule m = load();
    CUdeviceptr p = alloc_words(20);
    listen_to_stderr();
    CUresult e = cuLaunchKernel(function(m, "k_tell"), 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &p }, NULL);
    const char *text = heard();
    FAILS(e, CUDA_ERROR_NOT_FOUND);
    ck_assert_msg(strstr(text, "/nonexistent/catalogue.so") && strstr(text, "SIMGPU_CATALOGUE"), "said %s", text);
}
END_TEST

/* The best code for compute capability 8.0: the newest that is not newer, of the same major version. */
START_TEST(which_code_is_taken)
{
    begin();
    struct made_image c = cubin(), fat = { NULL, 0 }, more;
    static const char ptx[] = ".version 8.0\n";
    CUmodule m;
    char text[64];
    listen_to_stderr();
    fat = made_fat(fat, 1, 90, ptx, sizeof ptx, 0);
    CUresult only_ptx = cuModuleLoadData(&m, fat.at);
    struct made_image minor = made_fat((struct made_image){ NULL, 0 }, 2, 86, c.at, c.n, 0);
    CUresult newer_minor = cuModuleLoadData(&m, minor.at);
    free(minor.at);
    more = made_fat(fat, 2, 90, c.at, c.n, 0);
    free(fat.at);
    CUresult too_new = cuModuleLoadData(&m, more.at);
    CUresult text_alone = cuModuleLoadDataEx(&m, ptx, 0, NULL, NULL);
    const char *said = heard();
    FAILS(only_ptx, CUDA_ERROR_NO_BINARY_FOR_GPU);
    FAILS(newer_minor, CUDA_ERROR_NO_BINARY_FOR_GPU);
    FAILS(too_new, CUDA_ERROR_NO_BINARY_FOR_GPU);
    FAILS(text_alone, CUDA_ERROR_INVALID_PTX);
    ck_assert_msg(strstr(said, "no machine code for sm_80; it has: PTX for sm_90\n"), "said %s", said);
    ck_assert_msg(strstr(said, "it has: PTX for sm_90, sm_90\n"), "said %s", said);
    ck_assert_msg(strstr(said, "PTX cannot be loaded: line 2: no .target"), "said %s", said);
    fat = made_fat(more, 2, 80, c.at, c.n, 0);
    OK(cuModuleLoadData(&m, fat.at));
    function(m, "k_tell");
    OK(cuModuleUnload(m));
    c.at[offsetof(Elf64_Ehdr, e_flags) + 1] = 90;
    FAILS(cuModuleLoadData(&m, c.at), CUDA_ERROR_NO_BINARY_FOR_GPU);
    c.at[offsetof(Elf64_Ehdr, e_flags) + 1] = 80;
    OK(cuModuleLoadData(&m, c.at)); /* bare */
    function(m, "k_tell");
    void *wrapper[3] = { NULL, fat.at, NULL }; /* as a linker leaves it */
    memcpy(wrapper, (uint32_t[]){ 0x466243b1, 1 }, 8);
    CUlibrary l;
    CUkernel k;
    OK(cuLibraryLoadData(&l, wrapper, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "k_tell"));
    OK(cuLibraryUnload(l));
    snprintf(text, sizeof text, "/tmp/simgpu-code-%d", (int)getpid());
    FILE *f = fopen(text, "wb");
    ck_assert_uint_eq(fwrite(fat.at, 1, fat.n, f), fat.n);
    fclose(f);
    OK(cuModuleLoad(&m, text)); /* from a file */
    unlink(text);
    function(m, "k_tell");
    free(more.at);
    free(fat.at);
    free(c.at);
}
END_TEST

/* Any bytes give an image or a clause that says where it is broken. */
START_TEST(broken_images)
{
    struct made_image fat = packed(80), c = cubin();
    uint64_t seed = 88172645463325252ull;
    unsigned taken = 0;
    for (int i = 0; i < 20000; i++) {
        struct made_image *from = i & 1 ? &c : &fat;
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        size_t n = i % 5 ? from->n : seed % from->n;
        unsigned char *copy = malloc(n + 1);
        memcpy(copy, from->at, n);
        for (int j = 0; n && j < 1 + i % 3; j++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            copy[seed % (i % 7 ? n : n < 200 ? n : 200)] = (unsigned char)(seed >> 40);
        }
        char why[256] = "";
        struct gpu_fatbin_code code = { .bytes = copy, .n_bytes = n };
        int e = i & 1 ? 0 : gpu_fatbin_pick(copy, n, 80, &code, why, sizeof why);
        struct gpu_cubin read;
        if (!e)
            e = gpu_cubin_read(code.bytes, code.n_bytes, &read, why, sizeof why);
        ck_assert_msg(!e || (*why && !strchr(why, '\n')), "error %d says '%s'", e, why);
        if (!e)
            gpu_cubin_free(&read);
        taken += !e;
        free(code.owned);
        free(copy);
    }
    ck_assert_uint_gt(taken, 100); /* the changes do not all hit the head */
    ck_assert_uint_lt(taken, 19000);
    free(fat.at);
    free(c.at);
}
END_TEST

RUN_SUITE("simgpu_code", kernels_are_bound_by_name, a_launch_tells_its_kernel, chaos_differs_from_launch_to_launch,
          blocks_of_32_kilobytes, metadata, variables_of_a_module, a_missing_kernel_says_its_name, no_catalogue,
          which_code_is_taken, broken_images)
