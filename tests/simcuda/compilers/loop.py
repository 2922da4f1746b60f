"""What the programs of this folder share: a loop that keeps what it computes and reads it back in reverse, as training does, with kernels of other
people's kinds.

    python numba_programs.py|nvrtc_programs.py NAME [ITERATIONS]

Prints `result I SHA256` for each iteration; the first is checked against numpy."""
import ctypes
import hashlib
import sys

import numpy as np

ROWS, COLUMNS, KEPT, BINS = 640, 512, 10, 64


def np_first(seed):
    i = np.arange(ROWS * COLUMNS, dtype=np.uint32)
    x = (i ^ np.uint32(seed * 2654435761 & 0xffffffff)) * np.uint32(747796405) + np.uint32(2891336453)
    x = ((x >> ((x >> np.uint32(28)) + np.uint32(4))) ^ x) * np.uint32(277803737)
    return (((x >> np.uint32(22)) ^ x) >> np.uint32(8)).astype(np.float32).reshape(ROWS, COLUMNS) / np.float32(1 << 24)


def np_stencil(u):
    o = u.copy()
    o[1:-1, 1:-1] = np.float32(0.25) * ((u[:-2, 1:-1] + u[2:, 1:-1]) + (u[1:-1, :-2] + u[1:-1, 2:]))
    return o


def np_bend(u):
    return np.float32(3.5) * u * (np.float32(1) - u)


def np_sum(u):
    return u.astype(np.float64).sum().reshape(1)


def np_histogram(u):
    return np.bincount((u.reshape(-1) * np.float32(BINS)).astype(np.int64).clip(0, BINS - 1), minlength=BINS)


NUMPY = {'stencil': (np_stencil, np_sum), 'reduction': (np_bend, np_sum), 'histogram': (np_bend, np_histogram)}


def main(programs, fold, to_host):
    """programs[name]: first(seed), after(array), read(array), each of the device; fold(state, array) moves the state on, in place."""
    name, iterations = sys.argv[1], int((sys.argv + ['24'])[2])
    first, after, read = programs[name]
    np_after, np_read = NUMPY[name]
    state = first(1)  # outlives the iterations, as parameters do
    for i in range(iterations):
        kept, got = [after(state)], []
        for _ in range(KEPT - 1):
            kept.append(after(kept[-1]))
        while kept:
            u = kept.pop()
            got.append(read(u))
        fold(state, u)
        del u
        got = [to_host(g) for g in got]
        if i == 0:
            u, want = np_first(1), []
            for _ in range(KEPT):
                u = np_after(u)
                want.append(np_read(u))
            for g, w in zip(got, reversed(want)):
                assert np.allclose(g, w, rtol=1e-4, atol=40 if name == 'histogram' else 0), (name, g, w)
        print('result', i, hashlib.sha256(b''.join(np.ascontiguousarray(g).tobytes() for g in got)).hexdigest(), flush=True)
    print('ok', name, flush=True)
    ctypes.PyDLL(None).exit(0)  # what the interpreter takes apart at its end is no part of the test
