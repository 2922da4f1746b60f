"""CUDA C++ compiled by NVRTC to PTX, memory of the driver's pool, by NVIDIA's own Python (cuda.core): a stencil with a tile in shared memory, a
reduction by shuffles, a histogram with atomics. See loop.py."""
import ctypes
import os
import sys

for folder in sys.path:  # that of the driver's version, before cuda.core finds another (PyTorch's)
    library = os.path.join(folder, 'nvidia', 'cu13', 'lib', 'libnvrtc.so.13')
    if os.path.exists(library):
        ctypes.CDLL(library)
        break

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

from loop import BINS, COLUMNS, ROWS, main

N, BLOCK = ROWS * COLUMNS, 256
SOURCE = r'''
__device__ float bent(float v) { return 3.5f * v * (1.0f - v); }

extern "C" __global__ void first(float *o, unsigned seed, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = (i ^ seed * 2654435761u) * 747796405u + 2891336453u;
    x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
    if (i < n)
        o[i] = (float)(((x >> 22) ^ x) >> 8) / (float)(1 << 24);
}

extern "C" __global__ void bend(const float4 *u, float4 *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 v = u[i];
        o[i] = make_float4(bent(v.x), bent(v.y), bent(v.z), bent(v.w));
    }
}

extern "C" __global__ void fold(const float *u, float *o, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        o[i] = 0.5f * (o[i] + u[i]);
}

extern "C" __global__ void zero(unsigned long long *o) { o[threadIdx.x] = 0; }

extern "C" __global__ void stencil(const float *u, float *o, int rows, int columns)
{
    __shared__ float tile[10][34];
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    for (int y = threadIdx.y; y < 10; y += 8)
        for (int x = threadIdx.x; x < 34; x += 32) {
            int r = min(max((int)blockIdx.y * 8 + y - 1, 0), rows - 1), c = min(max((int)blockIdx.x * 32 + x - 1, 0), columns - 1);
            tile[y][x] = u[r * columns + c];
        }
    __syncthreads();
    int y = threadIdx.y + 1, x = threadIdx.x + 1;
    bool inside = i > 0 && j > 0 && i < rows - 1 && j < columns - 1;
    o[i * columns + j] = inside ? 0.25f * ((tile[y - 1][x] + tile[y + 1][x]) + (tile[y][x - 1] + tile[y][x + 1])) : tile[y][x];
}

template <typename T> __device__ T of_block(T v)
{
    __shared__ T warps[32];
    for (int far = 16; far; far /= 2)
        v += __shfl_down_sync(0xffffffff, v, far);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : T(0);
    if (threadIdx.x < 32)
        for (int far = 16; far; far /= 2)
            v += __shfl_down_sync(0xffffffff, v, far);
    return v;
}

extern "C" __global__ void total(const float *u, double *o, int n)
{
    double v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        v += u[i];
    v = of_block(v);
    if (threadIdx.x == 0)
        o[blockIdx.x] = v;
}

extern "C" __global__ void histogram(const float *u, unsigned long long *o, int n)
{
    __shared__ unsigned mine[64];
    if (threadIdx.x < 64)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[min(max((int)(u[i] * 64.0f), 0), 63)], 1u);
    __syncthreads();
    if (threadIdx.x < 64)
        atomicAdd(&o[threadIdx.x], (unsigned long long)mine[threadIdx.x]);
}
'''

device = Device()
device.set_current()
stream = device.create_stream()
code = Program(SOURCE, 'c++', ProgramOptions(std='c++17', arch='sm_80')).compile('ptx')
kernels = {k: code.get_kernel(k) for k in ('first', 'bend', 'stencil', 'total', 'histogram', 'fold', 'zero')}


def run(name, grid, block, *args):
    launch(stream, LaunchConfig(grid=grid, block=block), kernels[name], *args)


def made(name, grid, block, inputs, *rest):
    o = device.allocate(4 * N, stream=stream)
    run(name, grid, block, *inputs, o, *rest)
    return o


def first(seed):
    return made('first', N // BLOCK, BLOCK, (), np.uint32(seed), np.int32(N))


def bend(u):
    return made('bend', N // 4 // BLOCK, BLOCK, (u,), np.int32(N))


def stencil(u):
    return made('stencil', (COLUMNS // 32, ROWS // 8), (32, 8), (u,), np.int32(ROWS), np.int32(COLUMNS))


def total(u):
    o = device.allocate(8 * 32, stream=stream)
    run('total', 32, BLOCK, u, o, np.int32(N))
    return o, np.float64


def histogram(u):
    o = device.allocate(8 * BINS, stream=stream)
    run('zero', 1, BINS, o)
    run('histogram', 32, BLOCK, u, o, np.int32(N))
    return o, np.uint64


def to_host(what):
    o, kind = what
    out = np.empty(o.size // 8, kind)
    stream.sync()
    error, = driver.cuMemcpyDtoH(out.ctypes.data, int(o.handle), o.size)
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return out.sum().reshape(1) if kind is np.float64 else out


main({'stencil': (first, stencil, total), 'reduction': (first, bend, total), 'histogram': (first, bend, histogram)},
     lambda state, u: run('fold', N // BLOCK, BLOCK, u, state, np.int32(N)), to_host)
