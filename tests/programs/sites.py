#!/usr/bin/env python3
"""A training loop of a few layers that launches kernels of kernels.so through ctypes: a program whose every launch is a line of
Python. `sites.py DIR [ITERATIONS]`, DIR: where kernels.so lies. Prints, for each kind of launch, the line it is on."""
import ctypes
import inspect
import sys

cu = ctypes.CDLL("libcuda.so.1")
WORDS, LAYERS = 65536, 4


def must(r):
    if r:
        sys.exit("driver call failed: %d" % r)


def launch(f, *args):
    boxes = [(ctypes.c_uint64 if isinstance(a, Ptr) else ctypes.c_uint32)(int(a)) for a in args]
    params = (ctypes.c_void_p * len(boxes))(*[ctypes.addressof(b) for b in boxes])
    must(cu.cuLaunchKernel(f, 64, 1, 1, 128, 1, 1, 0, stream, params, None))


class Ptr(int):
    pass


def make():
    p = ctypes.c_uint64()
    must(cu.cuMemAllocAsync(ctypes.byref(p), ctypes.c_size_t(4 * WORDS), stream))
    return Ptr(p.value)


def free(p):
    must(cu.cuMemFreeAsync(ctypes.c_uint64(p), stream))


LINES = {}


def note(what):
    LINES[what] = inspect.currentframe().f_back.f_lineno + 1


class Größe:
    def __init__(self):
        self.weight = make()
        must(cu.cuMemsetD32Async(ctypes.c_uint64(self.weight), 7, ctypes.c_size_t(WORDS), stream))

    def forward(self, x):
        y = make()
        note("forward")
        launch(f_join, y, x, self.weight, WORDS, WORDS, WORDS)
        return y


def train():
    acts = [make()]
    note("input")
    launch(f_map, acts[0], layers[0].weight, WORDS, 1, 0xffffffff)
    for layer in layers:
        acts.append(layer.forward(acts[-1]))
    g = acts.pop()
    while acts:
        a, n = acts.pop(), make()
        note("backward")
        (lambda: launch(f_join, n, g, a,
                        WORDS, WORDS, WORDS))()
        free(g)
        free(a)
        g = n
        launch(f_map, layers[len(acts) - 1].weight, g, WORDS, 5, 0xffffffff)
    free(g)


must(cu.cuInit(0))
dev, ctx, stream, mod = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
must(cu.cuDeviceGet(ctypes.byref(dev), 0))
must(cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), dev))
must(cu.cuCtxSetCurrent(ctx))
must(cu.cuModuleLoad(ctypes.byref(mod), (sys.argv[1] + "/kernels.so").encode()))
must(cu.cuStreamCreate(ctypes.byref(stream), 1))


def kernel(name):
    f = ctypes.c_void_p()
    must(cu.cuModuleGetFunction(ctypes.byref(f), mod, name))
    return f


f_map, f_join = kernel(b"map"), kernel(b"join")
layers = [Größe() for _ in range(LAYERS)]
for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 20):
    train()
must(cu.cuCtxSynchronize())
for what, line in LINES.items():
    print(what, line)
