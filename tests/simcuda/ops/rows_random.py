"""Random numbers: dropout, initialisation, sampling. The device's generator is not the CPU's, so these rows look at what must
hold of any: moments, repeatability from a seed, masks that forward and backward agree on."""
import math

import torch
import torch.nn.attention
import torch.nn.functional as F
from torch import nn

from harness import BF16, DEVICE, F16, F32, F64, FLOATS, check, scenario


def moments(x, mean, std, what):
    x = x.double().cpu()
    n = x.numel()
    check(bool(x.isfinite().all()), f'{what}: not finite')
    check(abs(x.mean().item() - mean) < 6 * std / math.sqrt(n) + 1e-3, f'{what}: mean {x.mean().item():.4f}, not {mean}')
    check(abs(x.std().item() - std) < 0.05 * std, f'{what}: deviation {x.std().item():.4f}, not {std}')


def repeatable(make, what):
    torch.manual_seed(3)
    a, b = make(), make()
    torch.manual_seed(3)
    c = make()
    check(torch.equal(a, c), f'{what}: the same seed gives other numbers')
    check(not torch.equal(a, b), f'{what}: two draws are the same')


def sampler(name, make, mean, std, dtypes=FLOATS):
    for dtype in dtypes:
        def f(dtype=dtype):
            moments(make(dtype), mean, std, name)
            repeatable(lambda: make(dtype), name)
        scenario(f'{name}_{str(dtype)[6:]}')(f)


sampler('randn', lambda d: torch.randn(300, 401, device=DEVICE, dtype=d), 0, 1)
sampler('rand', lambda d: torch.rand(300, 401, device=DEVICE, dtype=d), 0.5, math.sqrt(1 / 12))
sampler('uniform_', lambda d: torch.empty(300, 401, device=DEVICE, dtype=d).uniform_(-2, 4), 1, 6 / math.sqrt(12))
sampler('normal_', lambda d: torch.empty(300, 401, device=DEVICE, dtype=d).normal_(2, 0.5), 2, 0.5)
sampler('bernoulli_', lambda d: torch.empty(300, 401, device=DEVICE, dtype=d).bernoulli_(0.3), 0.3, math.sqrt(0.21), (F32, BF16))
sampler('bernoulli', lambda d: torch.bernoulli(torch.full((300, 401), 0.3, device=DEVICE, dtype=d)), 0.3, math.sqrt(0.21), (F32, F64))
sampler('bernoulli_strided', lambda d: torch.bernoulli(torch.full((401, 300), 0.3, device=DEVICE, dtype=d).t()), 0.3, math.sqrt(0.21), (F32,))
sampler('bernoulli_by_float', lambda d: torch.empty(300, 401, device=DEVICE, dtype=d).bernoulli_(torch.full((300, 401), 0.3)), 0.3, math.sqrt(0.21), FLOATS)
sampler('exponential_', lambda d: torch.empty(300, 401, device=DEVICE, dtype=d).exponential_(2.0), 0.5, 0.5, (F32,))
sampler('trunc_normal_', lambda d: nn.init.trunc_normal_(torch.empty(300, 401, device=DEVICE, dtype=d), std=0.02), 0, 0.02, (F32,))
sampler('rand_odd', lambda d: torch.rand(100003, device=DEVICE, dtype=d), 0.5, math.sqrt(1 / 12), (F32,))
sampler('randn_strided', lambda d: torch.empty(401, 300, device=DEVICE, dtype=d).t().normal_(), 0, 1, (F32,))


@scenario('randint')
def _():
    x = torch.randint(3, 17, (300, 400), device=DEVICE)
    check(int(x.min()) == 3 and int(x.max()) == 16, 'range')
    repeatable(lambda: torch.randint(3, 17, (300, 400), device=DEVICE), 'randint')


@scenario('randperm')
def _():
    for n in (7, 300, 40000):
        x = torch.randperm(n, device=DEVICE)
        check(torch.equal(x.sort()[0].cpu(), torch.arange(n)), f'not a permutation of {n}')


@scenario('multinomial')
def _():
    p = torch.tensor([0.1, 0.0, 0.6, 0.3], device=DEVICE)
    x = torch.multinomial(p.expand(2000, 4), 1).flatten()
    counts = torch.stack([(x == i).sum() for i in range(4)]).cpu()
    check(int(counts[1]) == 0 and abs(int(counts[2]) - 1200) < 150, f'counts {counts.tolist()}')


def dropout_row(name, shape, p, dtype, make):
    def f():
        torch.manual_seed(9)
        x = torch.randn(*shape, device=DEVICE, dtype=dtype).abs() + 1
        x.requires_grad_(True)
        layer = make(p)
        y = layer(x)
        kept = y != 0
        rate = kept.double().mean().item()
        # a channel that is dropped goes as a whole: fewer draws than elements
        draws = x.numel() if isinstance(layer, nn.Dropout) else shape[0] * shape[1]
        check(abs(rate - (1 - p)) < 6 * math.sqrt(p * (1 - p) / draws), f'kept {rate:.3f} of p {p}')
        want = torch.where(kept, x.detach() / (1 - p), torch.zeros_like(x))
        check(torch.allclose(y.float(), want.float(), rtol=2e-2 if dtype in (BF16, F16) else 1e-5), 'values that stay are not scaled')
        g = torch.randn_like(y)
        (dx,) = torch.autograd.grad(y, x, g)
        want = torch.where(kept, g / (1 - p), torch.zeros_like(g))
        check(torch.allclose(dx.float(), want.float(), rtol=2e-2 if dtype in (BF16, F16) else 1e-5), 'backward has another mask')
        torch.manual_seed(21)
        a = make(p)(x)
        torch.manual_seed(21)
        check(torch.equal(a, make(p)(x)), 'the same seed gives another mask')
        check(torch.equal(make(p).eval()(x), x), 'eval() is not the identity')
    scenario(f'{name}_{str(dtype)[6:]}')(f)


for dtype in (F32, BF16, F16):
    dropout_row('dropout', (64, 501), 0.1, dtype, nn.Dropout)
dropout_row('dropout_small', (7, 11), 0.5, F32, nn.Dropout)
dropout_row('dropout_large', (500, 1024), 0.3, F32, nn.Dropout)
dropout_row('dropout2d', (40, 30, 5, 6), 0.3, F32, nn.Dropout2d)


@scenario('dropout_strided')
def _():
    x = torch.ones(300, 200, device=DEVICE).t()[:, ::2]
    y = F.dropout(x, 0.25)
    check(abs((y != 0).double().mean().item() - 0.75) < 0.02, 'rate')


def sdpa_dropout(dtype, backend):
    """What attention drops is hidden inside: with one-hot values the result is the dropped probabilities."""
    torch.manual_seed(4)
    q = torch.randn(2, 4, 64, 32, device=DEVICE, dtype=dtype, requires_grad=True)
    k = torch.randn(2, 4, 64, 32, device=DEVICE, dtype=dtype, requires_grad=True)
    v = torch.randn(2, 4, 64, 32, device=DEVICE, dtype=dtype, requires_grad=True)

    def run():
        with torch.nn.attention.sdpa_kernel(backend):
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.2, is_causal=True)
        return (y, *torch.autograd.grad(y.float().sum(), (q, k, v)))
    torch.manual_seed(8)
    a = run()
    torch.manual_seed(8)
    b = run()
    c = run()
    check(all(torch.equal(x, y) for x, y in zip(a, b)), 'the same seed gives another mask')
    check(not torch.equal(a[0], c[0]), 'two draws are the same')
    with torch.nn.attention.sdpa_kernel(backend):
        plain = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    mean = torch.zeros_like(plain, dtype=F32)
    with torch.no_grad():
        for _ in range(60):
            with torch.nn.attention.sdpa_kernel(backend):
                mean += F.scaled_dot_product_attention(q, k, v, dropout_p=0.2, is_causal=True).float()
    off = (mean / 60 - plain.float()).abs().mean().item()
    check(off < 0.1 * plain.float().abs().max().item(), f'the mean over masks is off by {off:.3f}')


B = torch.nn.attention.SDPBackend
for dtype, backend, name in ((F32, B.EFFICIENT_ATTENTION, 'efficient'), (BF16, B.EFFICIENT_ATTENTION, 'efficient_bf16'),
                             (BF16, B.FLASH_ATTENTION, 'flash'), (F32, B.MATH, 'math')):
    scenario(f'sdpa_dropout_{name}')(lambda dtype=dtype, backend=backend: sdpa_dropout(dtype, backend))


@scenario('init_on_device')
def _():
    with torch.device(DEVICE):
        m = nn.Sequential(nn.Linear(300, 200), nn.Conv2d(3, 64, 7), nn.Embedding(500, 64), nn.LayerNorm(64), nn.BatchNorm1d(8))
    bound = 1 / math.sqrt(300)
    w = m[0].weight
    check(w.device.type == DEVICE and w.abs().max().item() <= bound and w.abs().max().item() > 0.95 * bound, 'Linear')
    moments(m[2].weight, 0, 1, 'Embedding')
    for init in (nn.init.xavier_uniform_, nn.init.xavier_normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_):
        init(m[0].weight)
        check(bool(m[0].weight.isfinite().all()) and m[0].weight.std().item() > 0.01, init.__name__)


@scenario('generator_state')
def _():
    g = torch.Generator(device=DEVICE).manual_seed(77)
    a = torch.rand(1000, device=DEVICE, generator=g)
    state = g.get_state()
    b = torch.rand(1000, device=DEVICE, generator=g)
    g.set_state(state)
    check(torch.equal(b, torch.rand(1000, device=DEVICE, generator=g)), 'state does not bring the same numbers back')
    check(torch.equal(a, torch.rand(1000, device=DEVICE, generator=g.manual_seed(77))), 'seed does not')
