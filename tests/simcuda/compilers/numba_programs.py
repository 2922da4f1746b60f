"""numba.cuda: a stencil, a reduction in shared memory, a histogram with atomics. See loop.py."""
import os
import sys

# NVIDIA's own linker makes machine code: without it numba links by the driver (cuLinkAddData), which takes PTX
sys.modules['cuda.bindings._internal.nvjitlink'] = sys.modules['cuda.bindings.nvjitlink'] = None
os.environ['NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS'] = '0'

import numpy as np
from numba import cuda, float32, float64, int32, uint32

from loop import BINS, COLUMNS, ROWS, main

N, BLOCK = ROWS * COLUMNS, 256


@cuda.jit
def first_kernel(seed, o):
    i = cuda.grid(1)
    if i < o.size:
        x = uint32((uint32(i) ^ uint32(seed * uint32(2654435761))) * uint32(747796405) + uint32(2891336453))
        x = uint32((uint32(x >> uint32(uint32(x >> uint32(28)) + uint32(4))) ^ x) * uint32(277803737))
        x = uint32((uint32(x >> uint32(22)) ^ x) >> uint32(8))
        o[i // o.shape[1], i % o.shape[1]] = float32(x) / float32(1 << 24)


@cuda.jit
def stencil_kernel(u, o):
    j, i = cuda.grid(2)
    if i < u.shape[0] and j < u.shape[1]:
        if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
            o[i, j] = float32(0.25) * ((u[i - 1, j] + u[i + 1, j]) + (u[i, j - 1] + u[i, j + 1]))
        else:
            o[i, j] = u[i, j]


@cuda.jit
def bend_kernel(u, o):
    for i in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        v = u[i // u.shape[1], i % u.shape[1]]
        o[i // u.shape[1], i % u.shape[1]] = float32(3.5) * v * (float32(1) - v)


@cuda.jit
def fold_kernel(u, o):
    for i in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        o[i // u.shape[1], i % u.shape[1]] = float32(0.5) * (o[i // u.shape[1], i % u.shape[1]] + u[i // u.shape[1], i % u.shape[1]])


@cuda.jit
def sum_kernel(u, o):
    part = cuda.shared.array(256, float64)
    t, s = cuda.threadIdx.x, 0.0
    for i in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        s += u[i // u.shape[1], i % u.shape[1]]
    part[t] = s
    cuda.syncthreads()
    half = 128
    while half:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        o[cuda.blockIdx.x] = part[0]


@cuda.jit
def histogram_kernel(u, o):
    mine = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    if t < 64:
        mine[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        b = int32(u[i // u.shape[1], i % u.shape[1]] * float32(64))
        cuda.atomic.add(mine, 63 if b > 63 else b, 1)
    cuda.syncthreads()
    if t < 64:
        cuda.atomic.add(o, t, mine[t])


def made(kernel, *args):
    o = cuda.device_array((ROWS, COLUMNS), np.float32)
    kernel[(N + BLOCK - 1) // BLOCK, BLOCK](*args, o)
    return o


def first(seed):
    return made(first_kernel, np.uint32(seed))


def stencil(u):
    o = cuda.device_array_like(u)
    stencil_kernel[(COLUMNS // 32, ROWS // 8), (32, 8)](u, o)
    return o


def total(u):
    parts = cuda.device_array(32, np.float64)
    sum_kernel[32, BLOCK](u, parts)
    return parts


def histogram(u):
    o = cuda.to_device(np.zeros(BINS, np.int64))
    histogram_kernel[32, BLOCK](u, o)
    return o


def to_host(o):
    o = o.copy_to_host()
    return o.sum().reshape(1) if o.dtype == np.float64 else o


main({'stencil': (first, stencil, total), 'reduction': (first, lambda u: made(bend_kernel, u), total),
      'histogram': (first, lambda u: made(bend_kernel, u), histogram)},
     lambda state, u: fold_kernel[256, BLOCK](u, state), to_host)
