"""Rows of the operator test: what runs on the device is compared with CPU PyTorch.

A row is made with row() (a function or module with tensor inputs, forward and backward), or with scenario() (a function that
checks something for itself and raises). Rows are kept in the order in which they were made.

The reference is CPU PyTorch in float64 on inputs rounded to the tested type; tolerances are relative to the greatest
magnitude of the reference, by type. Integer and boolean results must be equal.
"""
import dataclasses
import os
import sys
import tempfile
from typing import Callable, Optional

import torch

DEVICE = 'cuda'
F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
FLOATS = (F32, F64, F16, BF16)
TOLERANCE = {F64: 1e-11, F32: 2e-5, F16: 4e-3, BF16: 3e-2}


@dataclasses.dataclass
class Row:
    name: str
    run: Callable  # run(dtype), raises on a difference
    dtype: Optional[torch.dtype]


ROWS: list[Row] = []


class Difference(Exception):
    """A result that is not what the CPU says."""


# ---- inputs ----------------------------------------------------------------------------------------------------

class T:
    """A tensor input: shape, how it lies in memory, and what is in it.

    lay: 'dense', 'transposed' (the last two dimensions), 'sliced' (every second element of a larger tensor), 'expanded' (a
    broadcast dimension 0), 'channels_last'. fill: 'normal', 'positive', 'unit' (0..1), 'index:N' (integers below N), 'bool',
    'ties' (few different values).
    """

    def __init__(self, *shape, lay='dense', fill='normal', grad=True, scale=1.0):
        self.shape, self.lay, self.fill, self.scale = shape, lay, fill, scale
        self.grad = grad and not fill.startswith('index') and fill != 'bool'

    def values(self, gen, shape):
        if self.fill.startswith('index:'):
            return torch.randint(0, int(self.fill[6:]), shape, generator=gen)
        if self.fill == 'bool':
            return torch.rand(shape, generator=gen) < 0.4
        if self.fill == 'ties':
            return torch.randint(-3, 4, shape, generator=gen).double()
        x = torch.randn(shape, generator=gen, dtype=F64)
        if self.fill == 'positive':
            x = x.abs() + 0.1
        if self.fill == 'unit':
            x = x.sigmoid()
        return x * self.scale

    def make(self, gen, dtype):
        """(base, view): base is stored; view(base) is what the operator gets."""
        shape = list(self.shape)
        view = lambda b: b
        if self.lay == 'transposed':
            shape[-1], shape[-2] = shape[-2], shape[-1]
            view = lambda b: b.transpose(-1, -2)
        elif self.lay == 'sliced':
            shape = [2 * s for s in shape]
            view = lambda b: b[tuple(slice(None, None, 2) for _ in b.shape)]
        elif self.lay == 'expanded':
            shape[0] = 1
            view = lambda b: b.expand(self.shape)
        base = self.values(gen, shape)
        if base.is_floating_point():
            base = base.to(dtype)
        if self.lay == 'channels_last':
            base = base.contiguous(memory_format=torch.channels_last)
        return base, view


# ---- comparing ---------------------------------------------------------------------------------------------------

def tensors(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (tuple, list)):
        return [t for r in result for t in tensors(r)]
    if isinstance(result, dict):
        return [t for r in result.values() for t in tensors(r)]
    return []


def compare(what, got, want, tolerance):
    if tuple(got.shape) != tuple(want.shape):
        raise Difference(f'{what}: shape {tuple(got.shape)}, the CPU has {tuple(want.shape)}')
    got, want = got.detach().cpu(), want.detach().cpu()
    if got.is_complex() or want.is_complex():
        got, want = torch.view_as_real(got.resolve_conj()), torch.view_as_real(want.detach().resolve_conj())
    if not want.is_floating_point():
        if not torch.equal(got.to(want.dtype), want):
            n = int((got.to(want.dtype) != want).sum())
            raise Difference(f'{what}: {n} of {want.numel()} elements differ')
        return
    got, want = got.to(F64), want.detach().to(F64)
    same = (got == want) | (got.isnan() & want.isnan())
    finite = want[want.isfinite()]
    scale = finite.abs().max().item() if finite.numel() else 0.0
    error = torch.where(same, torch.zeros_like(got), (got - want).abs())
    worst = error.max().item() if error.numel() else 0.0
    if not worst <= tolerance * max(scale, 1e-6):
        at = int(error.nan_to_num(nan=float('inf')).flatten().argmax())
        raise Difference(f'{what}: off by {worst:.3g} of {scale:.3g} (allowed {tolerance:.1g}); '
                         f'got {got.flatten()[at]:.6g}, the CPU has {want.flatten()[at]:.6g} at {at}')


def run_once(make, specs, made, device, dtype, backward, double):
    """Outputs, and gradients of the inputs and of the module's parameters."""
    fn = make()
    params = []
    if isinstance(fn, torch.nn.Module):
        fn = fn.to(dtype)  # rounded as on the device, then widened
        if double:
            fn = fn.double()
        fn = fn.to(device)
        params = [p for p in fn.parameters() if p.requires_grad]
    leaves, args = [], []
    for spec, (base, view) in zip(specs, made):
        b = base.double() if double and base.is_floating_point() else base
        b = b.to(device)
        if spec.grad and backward:
            b = b.detach().requires_grad_(True)
            leaves.append(b)
        args.append(view(b))
    outs = tensors(fn(*args))
    grads = []
    if backward:
        wanted = [o for o in outs if o.requires_grad]
        gen = torch.Generator().manual_seed(99)
        seeds = []
        for o in wanted:
            g = torch.randn(o.shape, generator=gen, dtype=F64).to(dtype if o.is_floating_point() else o.dtype)
            seeds.append(g.to(o.dtype).to(device))
        grads = torch.autograd.grad(wanted, leaves + params, seeds, allow_unused=True) if wanted and leaves + params else []
    return outs, [g for g in grads if g is not None]


def row(name, make, *specs, dtypes=FLOATS, backward=True, slack=1.0, exact=False):
    """make() gives the function (or a module, made anew and seeded for each run). slack multiplies the tolerance."""
    def run(dtype):
        gen = torch.Generator().manual_seed(7)
        made = [s.make(gen, dtype) for s in specs]

        def seeded():
            torch.manual_seed(11)
            return make()
        want, want_grads = run_once(seeded, specs, made, 'cpu', dtype, backward, double=not exact)
        got, got_grads = run_once(seeded, specs, made, DEVICE, dtype, backward, double=False)
        torch.cuda.synchronize()
        if len(got) != len(want) or len(got_grads) != len(want_grads):
            raise Difference(f'{len(got)} results and {len(got_grads)} gradients, the CPU has {len(want)} and {len(want_grads)}')
        tolerance = TOLERANCE[dtype] * slack
        for i, (g, w) in enumerate(zip(got, want)):
            compare(f'result {i}', g, w, tolerance)
        for i, (g, w) in enumerate(zip(got_grads, want_grads)):
            compare(f'gradient {i}', g, w, tolerance * 2)
    for dtype in dtypes:
        ROWS.append(Row(name, run, dtype))


def scenario(name):
    """@scenario('name') def f(): ... raises when something is not as it shall be."""
    def keep(f):
        ROWS.append(Row(name, lambda dtype: f(), None))
        return f
    return keep


def check(ok, what):
    if not ok:
        raise Difference(what)


# ---- running -----------------------------------------------------------------------------------------------------

class Stderr:
    """What the simulated device says on file descriptor 2 while a row runs."""

    def __enter__(self):
        sys.stderr.flush()
        self.file = tempfile.TemporaryFile()
        self.saved = os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *exc):
        sys.stderr.flush()
        os.dup2(self.saved, 2)
        os.close(self.saved)
        self.file.seek(0)
        self.text = self.file.read().decode(errors='replace')
        self.file.close()


def missing_kernel(text):
    """The kernel that the device says it lacks, if it does."""
    for line in text.splitlines():
        if 'cannot be launched' in line:
            return line.split('): ', 1)[-1].strip()
    return None


def short(kernel, most=260):
    """A kernel's name without its parameter list."""
    depth, end = 0, len(kernel)
    for i, c in enumerate(kernel):
        depth += (c == '<') - (c == '>')
        if c == '(' and depth == 0 and not kernel.startswith('(anonymous namespace)', i):
            end = i
            break
    name = kernel[:end].removeprefix('void ').replace('at::native::', '').replace('(anonymous namespace)::', '')
    return name if len(name) <= most else name[:most] + '...'


def type_name(dtype):
    return str(dtype).replace('torch.', '') if dtype else '-'


def run_row(r):
    """None, or why the row fails; and the kernel that the device lacks, where that is the reason."""
    reason = None
    try:
        with Stderr() as err:
            r.run(r.dtype)
    except Exception as e:  # a row may fail in any way; the test names it and goes on
        reason = f'{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ""}'
    kernel = missing_kernel(err.text)
    if reason and kernel:
        reason = f'no kernel {short(kernel)}'
    return reason, kernel
