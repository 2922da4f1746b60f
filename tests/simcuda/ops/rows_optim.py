"""Optimizers: a few steps on the device and on the CPU give the same parameters, in each implementation."""
import torch
from torch import nn

from harness import BF16, DEVICE, F32, F64, Difference, check, compare, scenario

SHAPES = ((33, 47), (5,), (128, 300), (1,), (70000,), (3, 4, 5))


def parameters(device, dtype):
    gen = torch.Generator().manual_seed(2)
    return [nn.Parameter(torch.randn(*s, generator=gen, dtype=F64).to(dtype).to(device)) for s in SHAPES]


def steps(make, device, dtype, clip=None, n=4):
    ps = parameters(device, dtype)
    o = make(ps)
    gen = torch.Generator().manual_seed(3)
    for _ in range(n):
        for p in ps:
            p.grad = torch.randn(p.shape, generator=gen, dtype=F64).to(dtype).to(device)
        if clip:
            norm = nn.utils.clip_grad_norm_(ps, clip)
        o.step()
    return ps, o


def optimizer(name, make, clip=None, dtypes=(F32,)):
    for dtype in dtypes:
        def f(dtype=dtype):
            got, o = steps(make, DEVICE, dtype, clip)
            # what is fused or in lists on the device is a plain loop on the CPU
            want, _ = steps(lambda ps: make(ps, plain=True), 'cpu', dtype, clip)
            torch.cuda.synchronize()
            for i, (g, w) in enumerate(zip(got, want)):
                compare(f'parameter {i}', g, w, {F32: 2e-5, F64: 1e-12, BF16: 3e-2}[dtype])
        scenario(f'{name}_{str(dtype)[6:]}')(f)


WAYS = {'for': {'foreach': False}, 'foreach': {'foreach': True}, 'fused': {'fused': True}, 'default': {}}


def ways(name, cls, names, dtypes=(F32,), **how):
    for way in names:
        def make(ps, plain=False, way=way):
            return cls(ps, **how, **({'foreach': False} if plain else WAYS[way]))
        optimizer(f'{name}_{way}', make, dtypes=dtypes)


ALL = ('for', 'foreach', 'fused', 'default')
O = torch.optim
ways('sgd', O.SGD, ALL, lr=0.1, dtypes=(F32, F64))
ways('sgd_momentum', O.SGD, ALL, lr=0.1, momentum=0.9, weight_decay=0.01)
ways('sgd_nesterov', O.SGD, ALL, lr=0.1, momentum=0.9, nesterov=True)
ways('sgd_maximize', O.SGD, ('for', 'foreach'), lr=0.1, momentum=0.9, dampening=0.1, maximize=True)
ways('adam', O.Adam, ALL, lr=0.01)
ways('adam_decay', O.Adam, ALL, lr=0.01, weight_decay=0.1)
ways('adam_amsgrad', O.Adam, ALL, lr=0.01, amsgrad=True)
ways('adamw', O.AdamW, ALL, lr=0.01, dtypes=(F32, F64))
ways('adamw_amsgrad', O.AdamW, ALL, lr=0.01, amsgrad=True)
ways('adamw_bf16', O.AdamW, ALL, lr=0.01, dtypes=(BF16,))
ways('rmsprop', O.RMSprop, ('for', 'foreach', 'default'), lr=0.01)
ways('rmsprop_centered', O.RMSprop, ('for', 'foreach'), lr=0.01, centered=True, momentum=0.9)
ways('adagrad', O.Adagrad, ('for', 'foreach', 'fused', 'default'), lr=0.05)
ways('adamax', O.Adamax, ('for', 'foreach'), lr=0.01)
ways('nadam', O.NAdam, ('for', 'foreach'), lr=0.01)
ways('radam', O.RAdam, ('for', 'foreach'), lr=0.01)
ways('adadelta', O.Adadelta, ('for', 'foreach'), lr=0.5)


@scenario('adam_capturable')
def _():
    got, _ = steps(lambda ps: O.Adam(ps, lr=0.01, capturable=True, foreach=True), DEVICE, F32)
    want, _ = steps(lambda ps: O.Adam(ps, lr=0.01, foreach=False), 'cpu', F32)
    for g, w in zip(got, want):
        compare('parameter', g, w, 2e-5)


for foreach in (True, False):
    @scenario(f'clip_grad_norm_{"foreach" if foreach else "for"}')
    def _(foreach=foreach):
        out = []
        for device in ('cpu', DEVICE):
            ps = parameters(device, F32)
            gen = torch.Generator().manual_seed(3)
            for p in ps:
                p.grad = torch.randn(p.shape, generator=gen, dtype=F64).float().to(device)
            n = nn.utils.clip_grad_norm_(ps, 1.5, foreach=foreach)
            out.append([n] + [p.grad for p in ps])
        for w, g in zip(*out):
            compare('norm or gradient', g, w, 2e-5)


@scenario('clip_grad_value')
def _():
    ps = parameters(DEVICE, F32)
    for p in ps:
        p.grad = p.detach() * 3
    nn.utils.clip_grad_value_(ps, 0.5)
    check(all(p.grad.abs().max().item() <= 0.5 for p in ps), 'a gradient above the bound')


@scenario('ema')
def _():
    out = []
    for device in ('cpu', DEVICE):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(30, 40), nn.BatchNorm1d(40), nn.Linear(40, 3)).to(device)
        avg = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
        for i in range(3):
            with torch.no_grad():
                for p in net.parameters():
                    p.add_(0.1 * (i + 1))
            avg.update_parameters(net)
        out.append(list(avg.module.parameters()))
    for w, g in zip(*out):
        compare('average', g, w, 2e-5)


@scenario('lr_schedule')
def _():
    out = []
    for device in ('cpu', DEVICE):
        ps = parameters(device, F32)
        o = O.SGD(ps, lr=0.1)
        s = O.lr_scheduler.SequentialLR(o, [O.lr_scheduler.LinearLR(o, 0.1, total_iters=2), O.lr_scheduler.CosineAnnealingLR(o, 5)], [2])
        gen = torch.Generator().manual_seed(3)
        for _ in range(5):
            for p in ps:
                p.grad = torch.randn(p.shape, generator=gen).to(device)
            o.step()
            s.step()
        out.append(ps)
    for w, g in zip(*out):
        compare('parameter', g, w, 2e-5)


@scenario('optimizer_state_dict')
def _():
    ps, o = steps(lambda ps: O.AdamW(ps, lr=0.01), DEVICE, F32)
    other = O.AdamW(parameters(DEVICE, F32), lr=0.01)
    other.load_state_dict(o.state_dict())
    a, b = o.state_dict()['state'], other.state_dict()['state']
    for i in a:
        for key in a[i]:
            check(torch.equal(a[i][key].cpu(), b[i][key].cpu()), f'state {key} of {i}')
