"""Arithmetic, comparisons, activations: element by element, in many layouts and types."""
import torch
import torch.nn.functional as F
from torch import nn

from harness import BF16, F16, F32, F64, FLOATS, T, row

HALF = (F32, BF16, F16)

# binary, with every way of lying in memory
for name, f in {
    'add': lambda a, b: a + b, 'add_alpha': lambda a, b: torch.add(a, b, alpha=0.3), 'sub': lambda a, b: a - b,
    'rsub': lambda a, b: torch.rsub(a, b, alpha=2), 'mul': lambda a, b: a * b,
    'maximum': torch.maximum, 'minimum': torch.minimum,
}.items():
    row(name, lambda f=f: f, T(33, 47), T(33, 47))
row('div', lambda: lambda a, b: a / b, T(33, 47), T(33, 47, fill='positive'))
row('pow_tensor', lambda: torch.pow, T(9, 17, fill='positive'), T(9, 17), dtypes=HALF)
row('atan2', lambda: torch.atan2, T(9, 17), T(9, 17, fill='positive'), dtypes=(F32, F64))
row('fmod', lambda: lambda a: torch.fmod(a, 0.75), T(9, 17), dtypes=(F32, F64), backward=False)
row('remainder', lambda: lambda a: torch.remainder(a, 0.75), T(9, 17), dtypes=(F32,), backward=False)
row('floor_divide', lambda: lambda a: a // 0.5, T(9, 17), dtypes=(F32,), backward=False)
row('lerp', lambda: lambda a, b: torch.lerp(a, b, 0.3), T(9, 17), T(9, 17), dtypes=HALF)
row('addcmul', lambda: lambda a, b, c: torch.addcmul(a, b, c, value=0.5), T(9, 17), T(9, 17), T(9, 17), dtypes=HALF)
row('addcdiv', lambda: lambda a, b, c: torch.addcdiv(a, b, c, value=0.5), T(9, 17), T(9, 17), T(9, 17, fill='positive'), dtypes=HALF)
row('add_broadcast_row', lambda: lambda a, b: a + b, T(12, 5, 33), T(33))
row('mul_broadcast_middle', lambda: lambda a, b: a * b, T(12, 5, 33), T(12, 1, 33))
row('add_transposed', lambda: lambda a, b: a + b, T(31, 18, lay='transposed'), T(31, 18))
row('mul_sliced', lambda: lambda a, b: a * b, T(13, 9, lay='sliced'), T(13, 9))
row('add_expanded', lambda: lambda a, b: a + b, T(13, 9, lay='expanded'), T(13, 9))
row('add_4d_channels_last', lambda: lambda a, b: a + b, T(2, 8, 5, 6, lay='channels_last'), T(2, 8, 5, 6))
row('add_5d', lambda: lambda a, b: a + b, T(2, 3, 4, 5, 6), T(3, 1, 5, 1))
row('mul_scalar', lambda: lambda a: a * 0.37, T(33, 47))
row('add_scalar', lambda: lambda a: a + 1.5, T(33, 47))
row('rsub_scalar', lambda: lambda a: 1.5 - a, T(33, 47))
row('div_scalar', lambda: lambda a: a / 3.7, T(33, 47))
row('rdiv_scalar', lambda: lambda a: 2.0 / a, T(33, 47, fill='positive'))
row('pow_2', lambda: lambda a: a ** 2, T(33, 47))
row('pow_3', lambda: lambda a: a ** 3, T(33, 47))
row('pow_half', lambda: lambda a: a ** 0.5, T(33, 47, fill='positive'))
row('pow_other', lambda: lambda a: a ** 1.7, T(33, 47, fill='positive'), dtypes=HALF)
row('pow_minus_1', lambda: lambda a: a ** -1, T(33, 47, fill='positive'), dtypes=HALF)
row('scalar_pow', lambda: lambda a: 2.0 ** a, T(33, 47), dtypes=(F32,))
row('add_inplace', lambda: lambda a, b: (a * 1).add_(b), T(33, 47), T(33, 47))
row('mul_inplace_scalar', lambda: lambda a: (a + 0).mul_(0.5), T(33, 47))
row('scalar_tensor_mul', lambda: lambda a: a * torch.tensor(0.25), T(33, 47), dtypes=HALF)
row('zero_size', lambda: lambda a: a + 1, T(0, 5), dtypes=(F32,))
row('one_element', lambda: lambda a: a * 2 + 1, T(1), dtypes=(F32,))
row('large', lambda: lambda a, b: a * b + a, T(300, 1001), T(300, 1001), dtypes=HALF)

# unary
for name, f in {'neg': torch.neg, 'exp': torch.exp, 'sin': torch.sin, 'cos': torch.cos, 'tanh': torch.tanh, 'abs': torch.abs,
                'sigmoid': torch.sigmoid, 'erf': torch.erf, 'square': torch.square}.items():
    row(name, lambda f=f: f, T(33, 47))
for name, f in {'log': torch.log, 'sqrt': torch.sqrt, 'rsqrt': torch.rsqrt, 'log2': torch.log2, 'log10': torch.log10, 'log1p': torch.log1p,
                'reciprocal': torch.reciprocal}.items():
    row(name, lambda f=f: f, T(33, 47, fill='positive'))
for name, f in {'expm1': torch.expm1, 'floor': torch.floor, 'ceil': torch.ceil, 'round': torch.round, 'sign': torch.sign,
                'trunc': torch.trunc, 'frac': torch.frac, 'atan': torch.atan, 'sinh': torch.sinh, 'cosh': torch.cosh,
                'asinh': torch.asinh}.items():
    row(name, lambda f=f: f, T(9, 17), dtypes=(F32,))
row('clamp', lambda: lambda a: a.clamp(-0.5, 0.75), T(33, 47))
row('clamp_min', lambda: lambda a: a.clamp(min=0.125), T(33, 47), dtypes=HALF)
row('clamp_tensor', lambda: lambda a, b: torch.clamp(a, min=b), T(9, 17), T(9, 17, grad=False), dtypes=(F32,))
row('nan_to_num', lambda: lambda a: torch.nan_to_num(a / 0.0, posinf=7.0, neginf=-5.0), T(9, 17), dtypes=(F32,), backward=False)
row('isfinite', lambda: lambda a: torch.isfinite(a / (a > 0)), T(9, 17), dtypes=HALF, backward=False, exact=True)
row('isnan', lambda: torch.isnan, T(9, 17), dtypes=HALF, backward=False)
row('isinf', lambda: torch.isinf, T(9, 17), dtypes=HALF, backward=False)

# comparisons and logic
for name, f in {'eq': torch.eq, 'ne': torch.ne, 'lt': torch.lt, 'le': torch.le, 'gt': torch.gt, 'ge': torch.ge}.items():
    row(name, lambda f=f: f, T(33, 47, fill='ties'), T(33, 47, fill='ties'), dtypes=HALF, backward=False)
    row(name + '_scalar', lambda f=f: lambda a: f(a, 1), T(33, 47, fill='ties'), dtypes=HALF, backward=False)
    row(name + '_int', lambda f=f: lambda a: f(a, 3), T(33, 47, fill='index:7'), dtypes=(F32,), backward=False)
row('logical', lambda: lambda a, b: (a & b, a | b, ~a, a ^ b, torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_not(a)),
    T(33, 47, fill='bool'), T(33, 47, fill='bool'), dtypes=(F32,), backward=False)
row('int_arithmetic', lambda: lambda a, b: (a + b, a * b, a - b, a // (b + 1), a % (b + 1), -a, a.clamp(1, 4), a + 1, a * 2),
    T(33, 47, fill='index:90'), T(33, 47, fill='index:9'), dtypes=(F32,), backward=False)
row('int_bits', lambda: lambda a, b: (a & b, a | b, a ^ b, a << 2, a >> 1), T(33, 47, fill='index:90'), T(33, 47, fill='index:9'),
    dtypes=(F32,), backward=False)
row('int32_arithmetic', lambda: lambda a: (a.int() + 3, a.int() * a.int(), a.int() == 4), T(33, 47, fill='index:90'), dtypes=(F32,), backward=False)
row('where', lambda: torch.where, T(33, 47, fill='bool'), T(33, 47), T(33, 47))
row('where_scalar', lambda: lambda c, a: torch.where(c, a, 0.0), T(33, 47, fill='bool'), T(33, 47))
row('masked_fill', lambda: lambda a, c: a.masked_fill(c, float('-inf')), T(33, 47), T(33, 47, fill='bool'))
row('masked_fill_broadcast', lambda: lambda a, c: a.masked_fill(c, -1e4), T(4, 33, 47), T(33, 47, fill='bool'))

# casts
for a in (F32, F64, F16, BF16):
    row(f'cast_to_{str(a)[6:]}', lambda a=a: lambda x: x.to(a), T(33, 47), exact=True)
row('cast_int', lambda: lambda x: (x * 10).to(torch.int64), T(33, 47, fill='ties'), dtypes=HALF, backward=False)
row('cast_int32', lambda: lambda x: (x * 10).to(torch.int32), T(33, 47, fill='ties'), dtypes=HALF, backward=False)
row('cast_uint8', lambda: lambda x: x.abs().to(torch.uint8), T(33, 47, fill='ties'), dtypes=(F32,), backward=False)
row('cast_bool', lambda: lambda x: x.bool(), T(33, 47, fill='ties'), dtypes=HALF, backward=False)
row('cast_from_bool', lambda: lambda x: (x.float(), x.long(), x.half(), x.bfloat16(), x.int()), T(33, 47, fill='bool'), dtypes=(F32,), backward=False)
row('cast_from_long', lambda: lambda x: (x.float(), x.int(), x.half(), x.bfloat16(), x.double(), x.bool()), T(33, 47, fill='index:90'), dtypes=(F32,), backward=False)
row('cast_transposed', lambda: lambda x: x.to(F32).contiguous(), T(33, 47, lay='transposed'), dtypes=(F64, BF16, F16))

# activations
for name, m in {'relu': nn.ReLU, 'gelu': nn.GELU, 'silu': nn.SiLU, 'elu': nn.ELU, 'leaky_relu': nn.LeakyReLU, 'softplus': nn.Softplus,
                'hardtanh': nn.Hardtanh, 'mish': nn.Mish, 'hardswish': nn.Hardswish, 'log_sigmoid': nn.LogSigmoid, 'relu6': nn.ReLU6,
                'softsign': nn.Softsign, 'selu': nn.SELU, 'celu': nn.CELU, 'hardsigmoid': nn.Hardsigmoid, 'tanh_module': nn.Tanh,
                'softshrink': nn.Softshrink, 'hardshrink': nn.Hardshrink}.items():
    row(name, m, T(33, 47), dtypes=HALF if name in ('relu', 'gelu', 'silu', 'elu', 'leaky_relu', 'softplus', 'mish', 'tanh_module') else (F32,))
row('gelu_tanh', lambda: nn.GELU(approximate='tanh'), T(33, 47), dtypes=HALF)
row('relu_inplace', lambda: lambda a: F.relu_(a + 0), T(33, 47), dtypes=HALF)
row('glu', nn.GLU, T(33, 48), dtypes=HALF)
row('prelu', nn.PReLU, T(4, 6, 7), dtypes=(F32,))
row('swiglu', lambda: lambda a, b: F.silu(a) * b, T(33, 48), T(33, 48), dtypes=HALF)
