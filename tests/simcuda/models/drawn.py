"""A training script drawn from a seed: layers, losses, optimizers and habits as scripts have them, put together at random.

    python drawn.py SEED [--iterations N] [--show]

Prints `loss I HEX` for each loss that it reads, and at the end `checksum SHA256` of all parameters, buffers and what else it kept,
as train.py does. The same seed is the same script, on any device, natively or under remat."""
import argparse
import contextlib
import ctypes
import hashlib
import math
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

PARTS = {'tokens': [], 'images': [], 'rows': []}


def part(*kinds, atomics=False):
    """A module that keeps the kind and the shape of what goes through it; made by (rng, width)."""
    def add(c):
        c.atomics = atomics
        for k in kinds:
            PARTS[k].append(c)
        return c
    return add


def activation(rng):
    return rng.choice([nn.ReLU, lambda: nn.ReLU(inplace=True), nn.GELU, lambda: nn.GELU(approximate='tanh'), nn.SiLU, nn.Tanh, nn.ELU, nn.Mish,
                       lambda: nn.LeakyReLU(0.1, inplace=True), nn.Hardswish, nn.Softplus, nn.Sigmoid])()


# ---- parts of any kind with the channels last ----------------------------------------------------------------------

@part('tokens', 'rows')
class FeedForward(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        k = rng.choice([1, 2, 4])
        self.norm = rng.choice([lambda: nn.LayerNorm(width), lambda: nn.RMSNorm(width), nn.Identity])()
        self.a, self.act, self.b = nn.Linear(width, k * width, bias=rng.random() < 0.7), activation(rng), nn.Linear(k * width, width)
        self.drop = nn.Dropout(rng.choice([0.0, 0.0, 0.1]), inplace=rng.random() < 0.3)

    def forward(self, x):
        return x + self.drop(self.b(self.act(self.a(self.norm(x)))))


@part('tokens', 'rows')
class Gated(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.two, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(2 * width, width, bias=False)
        self.in_place = rng.random() < 0.5

    def forward(self, x):
        a, b = self.two(x).chunk(2, -1)
        y = F.silu(a)
        y = y.mul_(b) if self.in_place and not torch.is_grad_enabled() else y * b
        return x + self.down(y)


class Scale(torch.autograd.Function):
    """A function of a script's own: saves what it wants for the backward pass."""

    @staticmethod
    def forward(ctx, x, s):
        mask = x > 0
        y = torch.where(mask, x * s, x * 0.3)
        ctx.save_for_backward(mask, x, s)
        return y

    @staticmethod
    def backward(ctx, g):
        mask, x, s = ctx.saved_tensors
        return torch.where(mask, g * s, g * 0.3), (g * x * mask).sum((0,) if x.dim() == 2 else (0, 1))


@part('tokens', 'rows')
class OwnFunction(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.s, self.l = nn.Parameter(torch.ones(width)), nn.Linear(width, width)

    def forward(self, x):
        return Scale.apply(self.l(x), self.s)


@part('tokens', 'rows')
class Ranked(nn.Module):
    """Keeps the largest entries of each row, in order."""

    def __init__(self, rng, width):
        super().__init__()
        self.k, self.a, self.b = max(2, width // rng.choice([2, 4])), nn.Linear(width, width), None
        self.b = nn.Linear(self.k, width)
        self.sort = rng.random() < 0.5

    def forward(self, x):
        y = self.a(x)
        y = y.sort(-1, descending=True).values[..., :self.k] if self.sort else y.topk(self.k, -1).values
        return x + self.b(y)


@part('tokens', 'rows')
class InPlace(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.l, self.c = nn.Linear(width, width), rng.choice([0.5, 0.9])

    def forward(self, x):
        y = self.l(x)
        y = y.clamp(-3, 3)
        y.mul_(self.c).add_(x, alpha=0.5)
        z = torch.empty_like(y)
        z[..., ::2] = y[..., ::2]
        z[..., 1::2] = y[..., 1::2].tanh()
        return z


@part('tokens', 'rows')
class Noise(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.l, self.how = nn.Linear(width, width), rng.choice(['randn', 'rand', 'bernoulli', 'new'])

    def forward(self, x):
        y = self.l(x)
        if self.how == 'randn':
            return y + 0.1 * torch.randn_like(y)
        if self.how == 'rand':
            return y * (0.9 + 0.2 * torch.rand(y.shape, device=y.device, dtype=y.dtype))
        if self.how == 'bernoulli':
            return y * torch.bernoulli(torch.full_like(y, 0.9))
        return y + y.new_empty(y.shape).normal_(0, 0.1)


@part('tokens', 'rows')
class Remembers(nn.Module):
    """Keeps statistics in buffers, changed in place in every forward pass."""

    def __init__(self, rng, width):
        super().__init__()
        self.register_buffer('mean', torch.zeros(width))
        self.register_buffer('seen', torch.zeros((), dtype=torch.long))
        self.l = nn.Linear(width, width)

    def forward(self, x):
        y = self.l(x)
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(y.detach().flatten(0, -2).mean(0).float(), 0.1)
                self.seen += 1
        return x + y - self.mean.to(y.dtype)


@part('tokens', 'rows')
class Experts(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.gate, self.experts = nn.Linear(width, 3), nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        w = self.gate(x).softmax(-1)
        return x + torch.stack([e(x) for e in self.experts], -1).mul(w.unsqueeze(-2)).sum(-1)


@part('tokens', 'rows', atomics=True)
class Routed(nn.Module):
    """Each row to one of the experts: shapes that data decide."""

    def __init__(self, rng, width):
        super().__init__()
        self.gate, self.experts = nn.Linear(width, 2), nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        w, i = self.gate(flat).softmax(-1).max(-1)
        out = torch.zeros_like(flat)
        for e, net in enumerate(self.experts):
            rows = (i == e).nonzero().squeeze(-1)
            out = out.index_add(0, rows, (net(flat[rows]) * w[rows].unsqueeze(-1)).to(out.dtype))
        return x + out.view_as(x)


@part('tokens', 'rows')
class SideStream(nn.Module):
    """Half of its work on a stream of its own."""

    def __init__(self, rng, width):
        super().__init__()
        self.a, self.b, self.record = nn.Linear(width, width), nn.Linear(width, width), rng.random() < 0.5
        self.stream = None

    def forward(self, x):
        if x.device.type != 'cuda':
            return x + self.a(x) + self.b(x).tanh()
        if self.stream is None:
            self.stream = torch.cuda.Stream()
        here = torch.cuda.current_stream()
        self.stream.wait_stream(here)
        with torch.cuda.stream(self.stream):
            y = self.b(x).tanh()
        if self.record:
            x.record_stream(self.stream)
        z = self.a(x)
        here.wait_stream(self.stream)
        if self.record:
            y.record_stream(here)
        return x + z + y


@part('tokens', 'rows')
class Checkpointed(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.inner, self.reentrant = FeedForward(rng, width), rng.random() < 0.3

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=self.reentrant) if self.training else self.inner(x)


@part('tokens', 'rows')
class FullPrecision(nn.Module):
    """A part that autocast leaves alone."""

    def __init__(self, rng, width):
        super().__init__()
        self.l = nn.Linear(width, width)

    def forward(self, x):
        with torch.autocast(x.device.type, enabled=False):
            return x + self.l(x.float()).softmax(-1).to(x.dtype)


# ---- tokens -------------------------------------------------------------------------------------------------------

def heads_of(rng, width):
    return rng.choice([h for h in (1, 2, 4) if width % h == 0 and (width // h) % 8 == 0])


@part('tokens')
class Attention(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.h, self.how, self.p = heads_of(rng, width), rng.choice(['math', 'sdpa', 'causal', 'mask', 'einsum']), rng.choice([0.0, 0.1])
        self.qkv, self.o, self.norm = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.h, c // self.h).permute(2, 0, 3, 1, 4).unbind(0)
        p = self.p if self.training else 0.0
        if self.how in ('math', 'einsum'):
            s = torch.einsum('bhtd,bhsd->bhts', q, k) if self.how == 'einsum' else q @ k.transpose(-2, -1)
            s = (s / math.sqrt(c // self.h)).masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), float('-inf'))
            y = F.dropout(s.softmax(-1), p) @ v
        elif self.how == 'mask':
            m = torch.linspace(0, 1, t, device=x.device, dtype=q.dtype).expand(b, 1, t, t)
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=m, dropout_p=p)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.how == 'causal', dropout_p=p)
        return x + self.o(y.transpose(1, 2).reshape(b, t, c))


@part('tokens')
class Encoder(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.l = nn.TransformerEncoderLayer(width, heads_of(rng, width), 2 * width, rng.choice([0.0, 0.1]), rng.choice(['relu', 'gelu']), batch_first=True,
                                            norm_first=rng.random() < 0.5)
        self.mask = rng.random() < 0.5

    def forward(self, x):
        pad = torch.zeros(x.shape[:2], dtype=torch.bool, device=x.device)
        pad[:, -2:] = True
        return self.l(x, src_key_padding_mask=pad if self.mask else None)


@part('tokens')
class Recurrent(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.r, self.two = rng.choice([nn.LSTM, nn.GRU])(width, width // 2, batch_first=True, bidirectional=True), rng.random() < 0.3
        self.l = nn.Linear(width, width)

    def forward(self, x):
        return x + self.l(self.r(x)[0])


@part('tokens')
class TokenConv(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.c, self.act = nn.Conv1d(width, width, 3, padding=1, groups=rng.choice([1, width])), activation(rng)

    def forward(self, x):
        return x + self.act(self.c(x.transpose(1, 2)).transpose(1, 2))


@part('tokens')
class Running(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.l, self.how = nn.Linear(width, width), rng.choice(['cumsum', 'roll', 'flip', 'gather', 'where'])

    def forward(self, x):
        y = self.l(x)
        if self.how == 'cumsum':
            return x + y.cumsum(1) / x.shape[1]
        if self.how == 'roll':
            return x + y.roll(1, 1)
        if self.how == 'flip':
            return x + y.flip(1)
        if self.how == 'where':
            return torch.where(y > 0, x, y)
        order = y.detach().float().mean(-1).argsort(1)
        return x + y.gather(1, order.unsqueeze(-1).expand_as(y))


# ---- images -------------------------------------------------------------------------------------------------------

def norm2d(rng, width):
    return rng.choice([lambda: nn.BatchNorm2d(width), lambda: nn.GroupNorm(4, width), lambda: nn.InstanceNorm2d(width, affine=True), nn.Identity])()


@part('images')
class ConvBlock(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.c = nn.Conv2d(width, width, 3, padding=1, bias=rng.random() < 0.5, groups=rng.choice([1, 1, 2, width]))
        self.n, self.act, self.res = norm2d(rng, width), activation(rng), rng.random() < 0.5

    def forward(self, x):
        y = self.act(self.n(self.c(x)))
        return x + y if self.res else y


@part('images')
class Bottleneck(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.s = nn.Sequential(nn.Conv2d(width, 2 * width, 1, bias=False), norm2d(rng, 2 * width), activation(rng), nn.Conv2d(2 * width, width, 1))

    def forward(self, x):
        return x + self.s(x)


@part('images')
class DownUp(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.down = rng.choice([lambda: nn.MaxPool2d(2), lambda: nn.AvgPool2d(2), lambda: nn.Conv2d(width, width, 2, 2)])()
        self.mid = ConvBlock(rng, width)
        self.up = rng.choice([lambda: nn.ConvTranspose2d(width, width, 2, 2), lambda: nn.Upsample(scale_factor=2, mode='nearest')])()
        self.out = nn.Conv2d(2 * width, width, 1)

    def forward(self, x):
        return self.out(torch.cat([x, self.up(self.mid(self.down(x)))], 1))


@part('images')
class Squeeze(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(width, width // 2), nn.Linear(width // 2, width), nn.Dropout2d(rng.choice([0.0, 0.1]))

    def forward(self, x):
        w = self.b(self.a(x.mean((2, 3))).relu()).sigmoid()
        return self.drop(x * w[:, :, None, None])


@part('images')
class ChannelsLast(nn.Module):
    def __init__(self, rng, width):
        super().__init__()
        self.n, self.l = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.l(self.n(x.permute(0, 2, 3, 1))).permute(0, 3, 1, 2)


# ---- nets ---------------------------------------------------------------------------------------------------------

class Drawn(nn.Module):
    """An entry, a few parts, a head. `kind` says what goes through the parts."""

    def __init__(self, rng, atomics):
        super().__init__()
        self.kind = rng.choice(['tokens', 'tokens', 'images', 'rows'])
        self.width = rng.choice([32, 48, 64, 96]) if self.kind != 'images' else rng.choice([8, 16, 24])
        self.classes = rng.choice([7, 10, 33])
        if self.kind == 'tokens':
            self.length = rng.choice([12, 17, 24, 32])
            self.words, self.places = nn.Embedding(64, self.width, padding_idx=rng.choice([None, 0])), nn.Embedding(self.length, self.width)
        elif self.kind == 'images':
            self.size = rng.choice([16, 24])
            self.conv = nn.Conv2d(3, self.width, 3, padding=1)
        else:
            self.inputs = rng.choice([20, 40])
            self.first = nn.Linear(self.inputs, self.width)
        choice = [c for c in PARTS[self.kind] if atomics or not c.atomics]
        self.parts = nn.ModuleList(rng.choice(choice)(rng, self.width) for _ in range(rng.randint(3, 8)))
        self.tied = self.kind == 'tokens' and rng.random() < 0.3
        self.head = nn.Linear(self.width, 64 if self.tied else self.classes)
        if self.tied:
            self.head.weight = self.words.weight
        self.norm = nn.LayerNorm(self.width) if rng.random() < 0.5 else nn.Identity()
        self.loss = rng.choice(['cross', 'cross', 'smooth', 'mse', 'nll'])
        # activations of some 1 MiB each
        cell = {'tokens': lambda: self.length * self.width, 'images': lambda: self.width * self.size ** 2, 'rows': lambda: self.width}[self.kind]()
        self.batch = max(4, min(2048, rng.choice([150000, 250000, 400000]) // cell))
        self.accumulated = rng.random() < 0.2 and self.kind == 'tokens'

    def data(self, n, gen):
        if self.kind == 'tokens':
            x = torch.randint(0, 64, (n, self.length), generator=gen)
        elif self.kind == 'images':
            x = torch.randn(n, 3, self.size, self.size, generator=gen)
        else:
            x = torch.randn(n, self.inputs, generator=gen)
        shape = (n, self.length) if self.kind == 'tokens' else (n,)
        return x, torch.randint(0, self.head.out_features, shape, generator=gen)

    def forward(self, x, y):
        if self.kind == 'tokens':
            x = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        else:
            x = self.conv(x) if self.kind == 'images' else self.first(x)
        for p in self.parts:
            x = p(x)
        if self.kind == 'images':
            x = x.mean((2, 3))
        z = self.head(self.norm(x)).flatten(0, -2)
        y = y.flatten()
        if self.loss == 'cross':
            return F.cross_entropy(z, y)
        if self.loss == 'smooth':
            return F.cross_entropy(z, y, label_smoothing=0.1)
        if self.loss == 'nll':
            return F.nll_loss(z.log_softmax(-1), y)
        return F.mse_loss(z, F.one_hot(y, z.shape[1]).to(z.dtype))


OPTIMIZERS = [
    ('sgd', lambda p: torch.optim.SGD(p, lr=0.02)),
    ('momentum', lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-4, nesterov=True)),
    ('adam', lambda p: torch.optim.Adam(p, lr=1e-3)),
    ('adam-amsgrad', lambda p: torch.optim.Adam(p, lr=1e-3, amsgrad=True)),
    ('adamw-for', lambda p: torch.optim.AdamW(p, lr=1e-3, foreach=False)),
    ('adamw-fused', lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True)),
    ('rmsprop', lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5)),
    ('adagrad', lambda p: torch.optim.Adagrad(p, lr=1e-2)),
    ('adamax', lambda p: torch.optim.Adamax(p, lr=1e-3)),
]


class Habits:
    """How the loop around the net is written."""

    def __init__(self, rng):
        often = lambda p: rng.random() < p
        self.optimizer = rng.choice(OPTIMIZERS)
        self.half = rng.choice([None, None, torch.bfloat16, torch.float16])
        self.accumulate = rng.choice([1, 1, 1, 2, 3])
        self.clip = rng.choice([None, None, 'norm', 'value'])
        self.to_none = often(0.7)
        self.schedule = often(0.4)
        self.read_every = rng.choice([1, 1, 3, 6])
        self.pinned = often(0.3)
        self.average = often(0.2)
        self.evaluate_every = rng.choice([None, None, None, 4, 7])
        self.short_batch_every = rng.choice([None, None, None, None, 5])
        self.empty_cache_every = rng.choice([None] * 6 + [6])
        self.save_every = rng.choice([None] * 5 + [8])
        self.metrics = often(0.4)
        self.penalty = often(0.08)
        self.hooks = often(0.2)
        self.groups = often(0.2)
        self.keep = often(0.15)
        self.skip_every = rng.choice([None] * 8 + [9])
        self.freeze_from = rng.choice([None] * 8 + [10])

    def __str__(self):
        return ' '.join(f'{k}={v[0] if isinstance(v, tuple) else v}' for k, v in vars(self).items() if v not in (None, False))


def digest(tensors):
    h = hashlib.sha256()
    for t in tensors:
        h.update(t.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return h.hexdigest()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('seed', type=int)
    p.add_argument('--iterations', type=int, default=28)
    p.add_argument('--device', default='cuda')
    p.add_argument('--atomics', action='store_true', help='also what adds in an order that the device chooses')
    p.add_argument('--show', action='store_true', help='say what was drawn')
    a = p.parse_args()
    rng = random.Random(a.seed)
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    torch.backends.cudnn.enabled = False
    net, how, dev = Drawn(rng, a.atomics).to(a.device), Habits(rng), a.device
    if a.show:
        print(net, f'\nbatch {net.batch}', how)
    optimizer = how.optimizer[1](net.parameters() if not how.groups else [
        {'params': [p for p in net.parameters() if p.dim() > 1]}, {'params': [p for p in net.parameters() if p.dim() <= 1], 'weight_decay': 0.0}])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, a.iterations) if how.schedule else None
    scaler = torch.amp.GradScaler(dev, enabled=how.half is torch.float16)
    average = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)) if how.average else None
    gen = torch.Generator().manual_seed(a.seed + 1)
    total = torch.zeros((), device=dev)
    best = torch.full((), float('inf'), device=dev)
    norms, kept = [], []
    if how.hooks:
        for part_ in net.parts:
            part_.register_full_backward_hook(lambda m, gi, go: norms.append(go[0].detach().float().norm()) if len(norms) < 200 else None)
    cast = lambda: torch.autocast(dev, dtype=how.half) if how.half else contextlib.nullcontext()

    def batch(n):
        x, y = net.data(n, gen)
        if how.pinned and dev == 'cuda':
            x, y = x.pin_memory(), y.pin_memory()
        return x.to(dev, non_blocking=how.pinned), y.to(dev, non_blocking=how.pinned)

    every = lambda i, n: n is not None and i % n == n - 1
    for i in range(a.iterations):
        if how.freeze_from == i:
            for q in net.parts[0].parameters():
                q.requires_grad_(False)
        optimizer.zero_grad(set_to_none=how.to_none)
        for _ in range(how.accumulate):
            x, y = batch(net.batch // 2 if every(i, how.short_batch_every) else net.batch)
            with cast():
                loss = net(x, y) / how.accumulate
                if how.penalty and how.half is None and net.kind == 'rows':
                    w = net.first.weight
                    g, = torch.autograd.grad(loss, w, create_graph=True)
                    loss = loss + 0.1 * g.pow(2).sum()
            scaler.scale(loss).backward()
        if how.keep:
            kept = [*kept[-1:], loss.detach(), *(q.grad.detach().clone() for q in list(net.parameters())[:1] if q.grad is not None)]
        if how.clip:
            scaler.unscale_(optimizer)
            if how.clip == 'norm':
                total += nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            else:
                nn.utils.clip_grad_value_(net.parameters(), 0.1)
        if not every(i, how.skip_every):
            scaler.step(optimizer)
            scaler.update()
        if schedule:
            schedule.step()
        if average:
            average.update_parameters(net)
        if how.metrics:
            total += loss.detach()
            best = torch.minimum(best, loss.detach())
        if every(i, how.read_every):
            print('loss', i, loss.item().hex(), flush=True)
        if every(i, how.evaluate_every):
            net.eval()
            with torch.no_grad(), cast():
                print('loss', i, net(*batch(net.batch)).item().hex(), 'evaluated', flush=True)
            net.train()
        if every(i, how.empty_cache_every):
            torch.cuda.empty_cache() if dev == 'cuda' else None
        if every(i, how.save_every):
            print('loss', i, digest(net.state_dict().values()), 'saved', flush=True)
    if dev == 'cuda':
        torch.cuda.synchronize()
    states = [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
    hold = [t for t in [*net.parameters(), *states, *(q.grad for q in net.parameters() if q.grad is not None)] if t.dim()]
    print('held', sum(t.numel() * t.element_size() for t in hold))
    print('habits', how)
    print('checksum', digest([*net.state_dict().values(), *states, total, best, *norms, *kept, *(average.state_dict().values() if average else [])]), flush=True)


main()
sys.stdout.flush()
ctypes.PyDLL(None).exit(0)
