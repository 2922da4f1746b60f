/* cudart_params: does cuKernelGetParamInfo answer for what the CUDA runtime launches?
 *
 * A program as users compile them: runtime API, cudart linked statically, kernels launched by <<<>>>. Each kernel's
 * handle is asked of the runtime (cudaGetKernel, cudaGetFuncBySymbol), its layout of the driver, and compared with
 * what the compiler laid out. Run under libspy.so, the spy says in addition which handles the runtime really
 * passes to cuLaunchKernel, and whether the layout of those can be asked.
 *
 * Prints one JSON object, as fact.h describes. NVIDIA's headers here: the program stands for other people's.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct List {
    float *ptr[12];
    int count;
};

__global__ void scale(float *x, float by, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] *= by;
}

__global__ void scale_list(List l, float by, long n)
{
    for (int k = 0; k < l.count; k++)
        for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            l.ptr[k][i] *= by;
}

template <typename T> __global__ void add_into(T *dst, const T *a, const T *b, size_t n)
{
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        dst[i] = a[i] + b[i];
}

#define RT(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t e_ = (call);                                                                                       \
        if (e_ != cudaSuccess) {                                                                                       \
            printf("{\"fact\":\"cudart_params\",\"error\":\"%s: %s\",\"ok\":false}\n", #call, cudaGetErrorName(e_));  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef CUresult (*param_info_fn)(void *, size_t, size_t *, size_t *);

/* Parameters that `info` reports for `handle`, or -1 when it refuses the first; *right: sizes are as expected. */
static int layout(param_info_fn info, void *handle, const size_t *want, int n_want, bool *right)
{
    size_t off = 0, size = 0;
    int n = 0;
    *right = true;
    while (n < 64 && info(handle, (size_t)n, &off, &size) == CUDA_SUCCESS) {
        if (n >= n_want || size != want[n])
            *right = false;
        n++;
    }
    if (n != n_want)
        *right = false;
    return n ? n : -1;
}

int main()
{
    const int n = 1 << 20;
    float *x, *y;
    int version = 0;
    RT(cudaRuntimeGetVersion(&version));
    RT(cudaMallocAsync(&x, n * sizeof *x, 0));
    RT(cudaMallocAsync(&y, n * sizeof *y, 0));
    RT(cudaMemsetAsync(x, 0, n * sizeof *x, 0));
    RT(cudaMemsetAsync(y, 0, n * sizeof *y, 0));
    List l = {{x, y}, 2};
    scale<<<64, 256>>>(x, 2.f, n);
    scale_list<<<64, 256>>>(l, 3.f, n);
    add_into<float><<<64, 256>>>(x, x, y, n);
    RT(cudaGetLastError());
    RT(cudaDeviceSynchronize());

    void *lib = dlopen("libcuda.so.1", RTLD_LAZY);
    param_info_fn kernel_info = lib ? (param_info_fn)dlsym(lib, "cuKernelGetParamInfo") : nullptr;
    param_info_fn func_info = lib ? (param_info_fn)dlsym(lib, "cuFuncGetParamInfo") : nullptr;
    if (!kernel_info || !func_info) {
        printf("{\"fact\":\"cudart_params\",\"error\":\"the driver has no parameter-info calls\",\"ok\":false}\n");
        return 1;
    }
    static const size_t want_scale[] = {8, 4, 4}, want_list[] = {sizeof(List), 4, 8}, want_add[] = {8, 8, 8, 8};
    const struct {
        const void *entry;
        const size_t *want;
        int n;
    } rows[] = {{(const void *)scale, want_scale, 3},
                {(const void *)scale_list, want_list, 3},
                {(const void *)add_into<float>, want_add, 4}};
    int by_kernel = 0, by_function = 0, same_handle = 0;
    for (const auto &r : rows) {
        cudaKernel_t k;
        cudaFunction_t f;
        bool right;
        RT(cudaGetKernel(&k, r.entry));
        RT(cudaGetFuncBySymbol(&f, r.entry));
        same_handle += (void *)k == (void *)f;
        by_kernel += layout(kernel_info, k, r.want, r.n, &right) == r.n && right;
        by_function += layout(func_info, f, r.want, r.n, &right) == r.n && right;
    }
    printf("{\"fact\":\"cudart_params\",\"answer\":%s,\"runtime\":%d,\"kernels\":3,\"kernel_info_right\":%d,"
           "\"function_info_right\":%d,\"kernel_is_function\":%d,\"ok\":true}\n",
           by_kernel == 3 ? "true" : "false", version, by_kernel, by_function, same_handle);
    RT(cudaFreeAsync(x, 0));
    RT(cudaFreeAsync(y, 0));
    RT(cudaDeviceSynchronize());
    return 0;
}
