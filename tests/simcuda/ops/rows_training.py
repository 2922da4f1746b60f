"""What scripts do around their layers: mixed precision, checkpointing, loading data, saving, streams, graphs, processes."""
import io
import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

from harness import BF16, DEVICE, F16, F32, check, compare, scenario


def net():
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def batch(device, n=32):
    gen = torch.Generator().manual_seed(12)
    return torch.randn(n, 40, generator=gen).to(device), torch.randint(0, 10, (n,), generator=gen).to(device)


def train(device, dtype=None, scaler=False, steps=5, clip=None):
    m = net().to(device)
    o = torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9)
    s = torch.amp.GradScaler(device, enabled=scaler, init_scale=1024.0, growth_interval=2)
    losses = []
    for _ in range(steps):
        x, y = batch(device)
        o.zero_grad()
        with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
            loss = F.cross_entropy(m(x), y)
        s.scale(loss).backward()
        if clip:
            s.unscale_(o)
            nn.utils.clip_grad_norm_(m.parameters(), clip)
        s.step(o)
        s.update()
        losses.append(loss.detach().float().cpu())
    return torch.stack(losses), [p.detach().cpu() for p in m.parameters()], s


def training(name, tolerance, **how):
    def f():
        want, wp, _ = train('cpu', steps=how.get('steps', 5))
        got, gp, s = train(DEVICE, **how)
        compare('losses', got, want, tolerance)
        for i, (g, w) in enumerate(zip(gp, wp)):
            compare(f'parameter {i}', g, w, tolerance * 3)
        if how.get('scaler'):
            check(s.get_scale() != 1024.0, 'the scale never grew')
    scenario(name)(f)


training('train_f32', 1e-5)
training('autocast_bf16', 2e-2, dtype=BF16)
training('autocast_f16_scaler', 5e-3, dtype=F16, scaler=True)


@scenario('scaler_skips_overflow')
def _():
    m = net().to(DEVICE)
    o = torch.optim.SGD(m.parameters(), lr=0.05)
    s = torch.amp.GradScaler(DEVICE, init_scale=2.0 ** 30)
    x, y = batch(DEVICE)
    before = [p.detach().clone() for p in m.parameters()]
    with torch.autocast(DEVICE, dtype=F16):
        loss = F.cross_entropy(m(x * 100), y)
    s.scale(loss).backward()
    s.unscale_(o)
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    s.step(o)
    s.update()
    check(s.get_scale() < 2.0 ** 30, 'the scale did not shrink')
    check(all(torch.equal(a, b) for a, b in zip(before, m.parameters())), 'the step was taken all the same')


for reentrant in (False, True):
    @scenario(f'checkpoint_{"reentrant" if reentrant else "plain"}')
    def _(reentrant=reentrant):
        grads = []
        for wrapped in (False, True):
            torch.manual_seed(3)
            m = nn.ModuleList([nn.Sequential(nn.Linear(40, 40), nn.GELU(), nn.Dropout(0.2)) for _ in range(3)]).to(DEVICE)
            x = batch(DEVICE)[0].requires_grad_(True)
            torch.manual_seed(4)
            y = x
            for b in m:
                y = checkpoint(b, y, use_reentrant=reentrant) if wrapped else b(y)
            y.square().sum().backward()
            grads.append([p.grad for p in m.parameters()] + [x.grad])
        check(all(torch.equal(a, b) for a, b in zip(*grads)), 'gradients differ: the mask was not drawn again as it was')


class Numbers(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        return torch.randn(40, generator=gen), i % 10


for workers in (0, 2):
    @scenario(f'dataloader_{workers}_workers_pinned')
    def _(workers=workers):
        seen = 0
        for x, y in DataLoader(Numbers(), batch_size=16, num_workers=workers, pin_memory=True):
            check(x.is_pinned(), 'not pinned')
            d = x.to(DEVICE, non_blocking=True)
            t = y.to(DEVICE, non_blocking=True)
            check(torch.equal(d.cpu(), x) and torch.equal(t.cpu(), y), 'what arrives is not what was sent')
            seen += len(x)
        check(seen == 96, f'{seen} items of 96')


@scenario('save_load')
def _():
    m = net().to(DEVICE)
    o = torch.optim.AdamW(m.parameters())
    x, y = batch(DEVICE)
    F.cross_entropy(m(x), y).backward()
    o.step()
    with tempfile.TemporaryDirectory() as d:
        torch.save({'net': m.state_dict(), 'optimizer': o.state_dict()}, os.path.join(d, 'a.pt'))
        there = torch.load(os.path.join(d, 'a.pt'), map_location=DEVICE)
        here = torch.load(os.path.join(d, 'a.pt'), map_location='cpu')
    for key, value in m.state_dict().items():
        check(there['net'][key].device.type == DEVICE and torch.equal(there['net'][key], value), f'{key} on the device')
        check(torch.equal(here['net'][key], value.cpu()), f'{key} on the CPU')


@scenario('streams_and_events')
def _():
    a, b = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    x = torch.randn(500, 500, device=DEVICE)
    want = (x @ x).sum()
    done = torch.cuda.Event(enable_timing=True)
    began = torch.cuda.Event(enable_timing=True)
    a.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(a):
        began.record()
        y = x @ x
        done.record()
    x.record_stream(a)
    b.wait_event(done)
    with torch.cuda.stream(b):
        z = y.sum()
    y.record_stream(b)
    torch.cuda.current_stream().wait_stream(b)
    check(torch.equal(z, want), 'another result on other streams')
    torch.cuda.synchronize()
    check(done.query() and began.elapsed_time(done) >= 0, 'events')


@scenario('graph')
def _():
    m = net().to(DEVICE)
    x = batch(DEVICE)[0].clone()
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s), torch.no_grad():
        for _ in range(2):
            m(x)
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(g):
        y = m(x)
    for k in range(3):
        new = torch.randn(32, 40, generator=torch.Generator().manual_seed(k)).to(DEVICE)
        x.copy_(new)
        g.replay()
        with torch.no_grad():
            check(torch.equal(y, m(new)), f'replay {k} gives another result')


@scenario('graph_training')
def _():
    m = net().to(DEVICE)
    o = torch.optim.SGD(m.parameters(), lr=0.05)
    x, y = (t.clone() for t in batch(DEVICE))
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    start = [p.detach().clone() for p in m.parameters()]
    with torch.cuda.stream(s):
        for _ in range(3):
            o.zero_grad(set_to_none=True)
            F.cross_entropy(m(x), y).backward()
            o.step()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    o.zero_grad(set_to_none=True)
    with torch.cuda.graph(g):
        loss = F.cross_entropy(m(x), y)
        loss.backward()
        o.step()
    with torch.no_grad():
        for p, q in zip(m.parameters(), start):
            p.copy_(q)
    got = []
    for _ in range(4):
        g.replay()
        got.append(loss.item())
    want = []
    n = net().to(DEVICE)
    p = torch.optim.SGD(n.parameters(), lr=0.05)
    for _ in range(4):
        p.zero_grad()
        l = F.cross_entropy(n(x), y)
        l.backward()
        p.step()
        want.append(l.item())
    check(got == want, f'{got} from the graph, {want} without')


@scenario('make_graphed_callables')
def _():
    m, n = net().to(DEVICE), net().to(DEVICE)
    x, y = batch(DEVICE)
    graphed = torch.cuda.make_graphed_callables(m, (x.clone(),))
    for f, module in ((graphed, m), (n, n)):
        F.cross_entropy(f(x), y).backward()
    for a, b in zip(m.parameters(), n.parameters()):
        compare('gradient', a.grad, b.grad, 1e-6)


@scenario('memory_statistics')
def _():
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device=DEVICE)
    check(torch.cuda.memory_allocated() - before >= 4 << 20, 'memory_allocated does not grow')
    free, total = torch.cuda.mem_get_info()
    check(0 < free <= total, f'free {free} of {total}')
    del x
    torch.cuda.empty_cache()
    check(torch.cuda.memory_allocated() == before, 'memory_allocated does not shrink')


@scenario('out_of_memory')
def _():
    try:
        torch.empty(1 << 46, dtype=torch.uint8, device=DEVICE)
    except torch.OutOfMemoryError:
        x = torch.ones(1000, device=DEVICE)
        check(x.sum().item() == 1000, 'the device is of no use afterwards')
    else:
        check(False, '64 TiB were given')


@scenario('accumulate_gradients')
def _():
    out = []
    for device in ('cpu', DEVICE):
        m = net().to(device)
        x, y = batch(device)
        for i in range(4):
            (F.cross_entropy(m(x[8 * i:8 * i + 8]), y[8 * i:8 * i + 8]) / 4).backward()
        out.append([p.grad for p in m.parameters()])
    for w, g in zip(*out):
        compare('gradient', g, w, 2e-5)


@scenario('double_backward')
def _():
    out = []
    for device in ('cpu', DEVICE):
        m = net().to(device)
        x = batch(device)[0].requires_grad_(True)
        (g,) = torch.autograd.grad(m(x).square().sum(), x, create_graph=True)
        (g.norm(dim=1) - 1).square().mean().backward()
        out.append([p.grad for p in m.parameters() if p.grad is not None])
    for w, g in zip(*out):
        compare('gradient', g, w, 1e-4)


@scenario('hooks_and_no_grad')
def _():
    m = net().to(DEVICE)
    x, y = batch(DEVICE)
    seen = []
    m[0].register_full_backward_hook(lambda mod, gi, go: seen.append(go[0].shape))
    F.cross_entropy(m(x), y).backward()
    with torch.inference_mode():
        m.eval()(x)
    check(seen == [torch.Size([32, 64])], f'hook saw {seen}')


DDP = r"""
import os, sys, torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
rank = int(sys.argv[1])
torch.backends.cudnn.enabled = False
torch.cuda.set_device(rank)
dist.init_process_group('gloo', init_method='file://' + sys.argv[2], rank=rank, world_size=2)
torch.manual_seed(6)
m = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10)).cuda()
ddp = nn.parallel.DistributedDataParallel(m, device_ids=[rank])
o = torch.optim.SGD(ddp.parameters(), lr=0.05)
gen = torch.Generator().manual_seed(12)
x, y = torch.randn(32, 40, generator=gen), torch.randint(0, 10, (32,), generator=gen)
for _ in range(3):
    o.zero_grad()
    F.cross_entropy(ddp(x[16 * rank:16 * rank + 16].cuda()), y[16 * rank:16 * rank + 16].cuda()).backward()
    o.step()
torch.save([p.detach().cpu() for p in m.parameters()], sys.argv[3])
dist.barrier()
sys.stdout.flush()
os._exit(0)
"""


@scenario('ddp_gloo_two_devices')
def _():
    """Two processes, a device each, halves of a batch: the parameters of one process with the whole batch."""
    torch.manual_seed(6)
    m = nn.Sequential(nn.Linear(40, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10))
    o = torch.optim.SGD(m.parameters(), lr=0.05)
    x, y = batch('cpu')
    for _ in range(3):
        o.zero_grad()
        F.cross_entropy(m(x), y).backward()
        o.step()
    with tempfile.TemporaryDirectory() as d:
        env = dict(os.environ, SIMGPU_DEVICES='2', GLOO_SOCKET_IFNAME='lo')
        ps = [subprocess.Popen([sys.executable, '-c', DDP, str(r), os.path.join(d, 'meet'), os.path.join(d, f'{r}.pt')], env=env)
              for r in range(2)]
        try:
            codes = [p.wait(timeout=120) for p in ps]
        finally:
            for p in ps:
                p.kill()
        check(codes == [0, 0], f'the processes ended with {codes}')
        both = [torch.load(os.path.join(d, f'{r}.pt')) for r in range(2)]
    for a, b, w in zip(*both, m.parameters()):
        check(torch.equal(a, b), 'the two processes differ')
        compare('parameter', a, w, 1e-4)
