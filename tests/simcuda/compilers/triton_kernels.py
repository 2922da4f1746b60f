"""Whole kernels as Triton's users write them, compiled for the simulated device, against the same kernels under Triton's own interpreter on the processor
(TRITON_INTERPRET=1) and against PyTorch: reductions, scans, softmax, layer norm, matmul, Philox, atomics, sorting. Random numbers are the same bits.

    REMAT_SIMGPU=1 remat run --policy off -- python triton_kernels.py"""
import os
import subprocess
import sys
import tempfile

import torch
import triton
import triton.language as tl

INTERPRETED = os.environ.get('TRITON_INTERPRET') == '1'
DEV = 'cpu' if INTERPRETED else 'cuda'


@triton.jit
def reduce_k(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r * n + i, i < n, other=0.0)
    m = i < n
    tl.store(o + r * 4, tl.sum(v, 0))
    tl.store(o + r * 4 + 1, tl.max(tl.where(m, v, -float('inf')), 0))
    tl.store(o + r * 4 + 2, tl.min(tl.where(m, v, float('inf')), 0))
    tl.store(o + r * 4 + 3, tl.argmax(tl.where(m, v, -float('inf')), 0).to(tl.float32))


@triton.jit
def scan_k(x, o, p, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.program_id(0) * B + i)
    tl.store(o + tl.program_id(0) * B + i, tl.cumsum(v, 0))
    tl.store(p + tl.program_id(0) * B + i, tl.cumprod(1.0 + v * 0.01, 0, reverse=True))


@triton.jit
def softmax_k(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r * n + i, i < n, other=-float('inf'))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * n + i, v / tl.sum(v, 0), i < n)


@triton.jit
def norm_k(x, w, b, o, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + r * n + i, m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(o + r * n + i, d * rstd * tl.load(w + i, m) + tl.load(b + i, m), m)


@triton.jit
def matmul_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for s in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (k + s)[None, :], (m < M)[:, None], other=0.0)
        y = tl.load(b + (k + s)[:, None] * N + n[None, :], (n < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc, (m < M)[:, None] & (n < N)[None, :])


@triton.jit
def dropout_k(x, o, u, seed, p, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    r = tl.rand(seed, i)
    tl.store(u + i, tl.randint(seed, i), i < n)
    tl.store(o + i, tl.where(r > p, tl.load(x + i, i < n) / (1 - p), 0.0), i < n)


@triton.jit
def histogram_k(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o + (tl.load(x + i, i < n, other=0) & 15), 1, i < n)


@triton.jit
def sort_k(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.sort(tl.load(x + i)))


def outputs():
    """{name: (result, the same by PyTorch or None, most relative difference from either)}"""
    gen = torch.Generator().manual_seed(3)
    draw = lambda *shape: torch.randn(shape, generator=gen)
    to = lambda t: t.to(DEV)
    out = {}
    x = draw(9, 700)
    o = to(torch.zeros(9, 4))
    reduce_k[(9,)](to(x), o, 700, B=1024)
    out['reductions'] = o, torch.stack([x.sum(1), x.amax(1), x.amin(1), x.argmax(1).float()], 1), 1e-4
    x = draw(3, 512)
    o, p = to(torch.zeros(3, 512)), to(torch.zeros(3, 512))
    scan_k[(3,)](to(x), o, p, B=512)
    out['sums so far'] = o, x.cumsum(1), 1e-4
    out['products from the end'] = p, (1 + x * 0.01).flip(1).cumprod(1).flip(1), 1e-4
    x = draw(7, 300)
    o = to(torch.zeros(7, 300))
    softmax_k[(7,)](to(x), o, 300, B=512)
    out['softmax'] = o, x.softmax(1), 1e-5
    w, b, o = draw(300), draw(300), to(torch.zeros(7, 300))
    norm_k[(7,)](to(x), to(w), to(b), o, 300, 1e-5, B=512)
    out['layer norm'] = o, torch.nn.functional.layer_norm(x, (300,), w, b), 1e-4
    for dtype, close in ((torch.float16, 1e-3), (torch.bfloat16, 1e-3), (torch.float32, 2e-2)):
        a, b, c = draw(50, 96).to(dtype), draw(96, 40).to(dtype), to(torch.zeros(50, 40))
        matmul_k[(2, 2)](to(a), to(b), c, 50, 40, 96, BM=32, BN=32, BK=32)
        out[f'matmul {dtype}'] = c, a.double() @ b.double(), close
    x = draw(3000)
    o, u = to(torch.zeros(3000)), to(torch.zeros(3000, dtype=torch.int32))
    dropout_k[(3,)](to(x), o, u, 1234, 0.3, 3000, B=1024)
    out['philox'], out['dropout'] = (u, None, 0), (o, None, 1e-6)
    x, o = torch.randint(0, 1 << 20, (3000,), generator=gen, dtype=torch.int32), to(torch.zeros(16, dtype=torch.int32))
    histogram_k[(6,)](to(x), o, 3000, B=512)
    out['histogram'] = o, torch.bincount(x & 15, minlength=16), 0
    x = draw(256)
    o = to(torch.zeros(256))
    sort_k[(1,)](to(x), o, B=256)
    out['sort'] = o, x.sort().values, 0
    return {k: (got.cpu(), want, close) for k, (got, want, close) in out.items()}


def main():
    got = outputs()
    if INTERPRETED:
        torch.save({k: v[0] for k, v in got.items()}, sys.argv[1])
        return 0
    with tempfile.NamedTemporaryFile() as f:
        subprocess.run([sys.executable, os.path.abspath(__file__), f.name], env=dict(os.environ, TRITON_INTERPRET='1'), check=True)
        interpreted = torch.load(f.name)
    failed = 0
    for name, (mine, torchs, close) in got.items():
        for who, other in (('the interpreter', interpreted[name]), ('PyTorch', torchs)):
            if other is None or (who != 'PyTorch' and 'bfloat16' in name):  # the interpreter's products of bf16 are other numbers than PyTorch's
                continue
            far = ((mine.double() - other.double()).abs() / other.double().abs().clamp(min=1)).max().item()
            failed += not far <= close
            print(f'{"ok  " if far <= close else "FAIL"} {name}: {far:.1e} from {who}')
    print(f'{len(got)} kernels, {failed} other than they should be')
    return 1 if failed else 0


sys.exit(main())
