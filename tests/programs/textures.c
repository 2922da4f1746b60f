/* textures CASE: a training loop whose layers read a table of 64 words by the handle of a texture or a surface. Before each layer the table is written
 * anew: with the same numbers until iteration 12, with others for every layer from then on. A forward pass saves an activation a layer, the
 * backward pass uses them in reverse. Prints a checksum every iteration.
 *   address   control: the table is an argument
 *   linear    a texture over a tensor
 *   own       a texture over memory of the program's own
 *   pitched   a texture over rows of a tensor
 *   array     a texture over an array, written from the host
 *   filled    so, written from a tensor
 *   mipmapped a texture over a mipmapped array, of which the first level is written
 *   level     a surface over a level of a mipmapped array, which each layer counts up
 *   surface   a surface over an array, which each layer counts up
 *   struct    the handle in a struct
 *   packed    in a struct in which it is not aligned
 *   list      in memory, where a copy has put it
 *   moved     in memory, to which it was copied on the device
 *   given     in memory, where a kernel has put it
 *   variable  in a variable of the module
 *   renewed   the texture is made anew in every iteration
 *   another   a surface over an array; from iteration 12 on over another array, and the middle layer reads what the first one made
 *   late      a surface, of which there is none before iteration 12
 */
#include "tests/programs/tensors.h"

#include <stddef.h>

enum { LAYERS = 12, WORDS = 32768, TABLE = 64, CHANGE_AT = 12, ITERATIONS = 20, LONG = 8192 };

static const char *what;
static CUstream s;
static CUfunction map, join, f_layer, put, f_sum;
static CUdeviceptr weight[LAYERS], act[LAYERS + 1], more[LAYERS], table, list, sum;
static CUarray array;
static CUmipmappedArray mipmap;
static unsigned long long handle;

static bool is(const char *c) { return !strcmp(what, c); }
static bool is_surface(void) { return is("surface") || is("late") || is("another") || is("level"); }
static bool has_levels(void) { return is("mipmapped") || is("level"); }
static bool in_array(void) { return is("array") || is("filled") || has_levels() || is_surface(); }
static bool in_list(void) { return is("list") || is("moved") || is("given"); }
static CUdeviceptr make(uint32_t words) { return tensor_make(words, NULL, s).p; }

static void make_handle(void)
{
    CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_LINEAR};
    const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
    if (is("mipmapped")) {
        r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        r.res.mipmap.hMipmappedArray = mipmap;
    } else if (in_array()) {
        r.resType = CU_RESOURCE_TYPE_ARRAY;
        r.res.array.hArray = array;
    } else if (is("pitched")) {
        r.resType = CU_RESOURCE_TYPE_PITCH2D;
        r.res.pitch2D.devPtr = table;
        r.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT32;
        r.res.pitch2D.numChannels = 1;
        r.res.pitch2D.width = r.res.pitch2D.height = 8;
        r.res.pitch2D.pitchInBytes = 32;
    } else {
        r.res.linear.devPtr = table;
        r.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
        r.res.linear.numChannels = 1;
        r.res.linear.sizeInBytes = 4 * TABLE;
    }
    if (is_surface())
        MUST(cuSurfObjectCreate(&handle, &r));
    else
        MUST(cuTexObjectCreate(&handle, &r, &how, NULL));
}

static const CUDA_ARRAY3D_DESCRIPTOR a_table = {.Width = TABLE, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST};

static void make_array(void) { MUST(cuArray3DCreate_v2(&array, &a_table)); }

static void make_list(void)
{
    const uint32_t words = is("given") ? TABLE : LONG; /* whoever looks for addresses in memory looks through what is small */
    CUdeviceptr first = make(words);
    list = make(words);
    MUST(cuMemsetD32Async(list, 0, words, s));
    MUST(cuMemsetD32Async(first, 0, words, s));
    if (is("given"))
        LAUNCH(put, s, &list, &handle);
    else
        MUST(cuMemcpyHtoDAsync_v2(is("moved") ? first : list, &handle, sizeof handle, s));
    if (is("moved"))
        MUST(cuMemcpyDtoDAsync_v2(list, first, sizeof handle, s));
    MUST(cuStreamSynchronize(s));
}

static void change(uint32_t value)
{
    uint32_t numbers[TABLE];
    for (uint32_t i = 0; i < TABLE; i++)
        numbers[i] = value + i;
    if (is("filled")) {
        MUST(cuMemcpyHtoDAsync_v2(table, numbers, sizeof numbers, s));
        MUST(cuStreamSynchronize(s));
        MUST(cuMemcpyDtoA_v2(array, 0, table, sizeof numbers));
        MUST(cuCtxSynchronize());
    } else if (in_array())
        MUST(cuMemcpyHtoAAsync_v2(array, 0, numbers, sizeof numbers, s));
    else
        MUST(cuMemcpyHtoDAsync_v2(table, numbers, sizeof numbers, s));
}

static void layer(int i, int iter)
{
    uint32_t n = WORDS, few = TABLE;
    act[i + 1] = make(WORDS);
    if (!is_surface() || i == 0)
        change(iter < CHANGE_AT ? 7 : 100 * (uint32_t)iter + (uint32_t)i);
    if (is("struct")) {
        struct {
            CUdeviceptr out, in;
            uint64_t handle;
            uint32_t n, more;
        } a = {act[i + 1], act[i], handle, n, 0};
        LAUNCH(f_layer, s, &a);
    } else if (is("packed")) {
        struct __attribute__((packed)) {
            uint32_t n;
            uint64_t handle;
        } a = {n, handle};
        LAUNCH(f_layer, s, &act[i + 1], &act[i], &a);
    } else if (in_list())
        LAUNCH(f_layer, s, &act[i + 1], &act[i], &list, &n);
    else if (is("variable"))
        LAUNCH(f_layer, s, &act[i + 1], &act[i], &n);
    else if (is("address"))
        LAUNCH(join, s, &act[i + 1], &act[i], &table, &n, &n, &few);
    else
        LAUNCH(f_layer, s, &act[i + 1], is("another") && iter >= CHANGE_AT && i == LAYERS / 2 ? &act[1] : &act[i], &handle, &n);
}

static uint64_t train(int iter)
{
    uint32_t n = WORDS, k = 1, mask = ~0u;
    if (is("another") && iter == CHANGE_AT)
        make_array();
    if (is("renewed") || ((is("late") || is("another")) && iter == CHANGE_AT))
        make_handle();
    act[0] = make(WORDS);
    LAUNCH(map, s, &act[0], &weight[0], &n, &k, &mask);
    for (int i = 0; i < LAYERS; i++) {
        layer(i, iter);
        if (is("another")) { /* made again of what the layer has made */
            more[i] = make(WORDS);
            LAUNCH(map, s, &more[i], &act[i + 1], &n, &k, &mask);
        }
    }
    CUdeviceptr g = make(WORDS);
    LAUNCH(map, s, &g, &act[LAYERS], &n, &k, &mask);
    for (int i = LAYERS; i >= 0; i--) {
        CUdeviceptr next = make(WORDS);
        LAUNCH(join, s, &next, &g, &act[i], &n, &n, &n);
        if (is("another") && i < LAYERS) {
            LAUNCH(join, s, &next, &next, &more[i], &n, &n, &n);
            MUST(cuMemFreeAsync(more[i], s));
        }
        MUST(cuMemFreeAsync(g, s));
        MUST(cuMemFreeAsync(act[i], s));
        g = next;
        if (i < LAYERS)
            LAUNCH(map, s, &weight[i], &g, &n, &k, &mask);
    }
    const uint64_t h = checksum(f_sum, s, sum, g, WORDS);
    MUST(cuMemFreeAsync(g, s));
    if (is("renewed"))
        MUST(cuTexObjectDestroy(handle));
    return h;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "linear";
    primary_context();
    CUmodule m = load_kernels();
    map = kernel(m, "map"), join = kernel(m, "join"), put = kernel(m, "put"), f_sum = kernel(m, "sum");
    f_layer = kernel(m, is_surface() ? "surface" : is("struct") ? "textured_struct" : is("packed") ? "textured_packed" : is("variable") ? "textured_by_name" : in_list() ? "textured_list" : "textured");
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    sum = make(2);
    if (is("own"))
        MUST(cuMemAlloc_v2(&table, 4 * TABLE));
    else
        table = make(TABLE);
    if (in_array()) {
        const CUDA_ARRAY3D_DESCRIPTOR larger = {.Width = 4 * TABLE, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST};
        if (has_levels()) { /* the third one has the table's size */
            MUST(cuMipmappedArrayCreate(&mipmap, is("level") ? &larger : &a_table, 4));
            MUST(cuMipmappedArrayGetLevel(&array, mipmap, is("level") ? 2 : 0));
        } else
            make_array();
    }
    MUST(cuStreamSynchronize(s));
    if (!is("address") && !is("renewed") && !is("late"))
        make_handle();
    if (in_list())
        make_list();
    if (is("variable")) {
        CUfunction f_variable = kernel(m, "variable");
        CUdeviceptr at = map_own(65536); /* on the device, in memory that the program has not allocated as such */
        LAUNCH(f_variable, s, &at);
        MUST(cuMemcpyHtoDAsync_v2(at, &handle, sizeof handle, s));
    }
    for (int i = 0; i < LAYERS; i++) {
        weight[i] = make(WORDS);
        MUST(cuMemsetD32Async(weight[i], 3 + (unsigned)i, WORDS, s));
    }
    for (int iter = 0; iter < ITERATIONS; iter++)
        printf("iter %d loss %016llx\n", iter, (unsigned long long)train(iter));
    for (int i = 0; i < LAYERS; i++)
        printf("weight %d %016llx\n", i, (unsigned long long)checksum(f_sum, s, sum, weight[i], WORDS));
    return 0;
}
