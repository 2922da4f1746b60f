"""Training loops whose launches keep a plan from being followed unless it learns to do without them.

    python loops.py LOOP [--iterations N] [--device cpu]

Prints `loss I HEX` for each iteration and `checksum SHA256` at the end, as train.py does."""
import argparse
import ctypes
import hashlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

LOOPS = {}


def loop(f):
    LOOPS[f.__name__] = f
    return f


def batch(gen, device, *shape, below=0):
    return (torch.randint(0, below, shape, generator=gen) if below else torch.randn(shape, generator=gen)).to(device)


@loop
def penalty(gen, device, iterations):
    """Two networks with an Adam each, a gradient's norm as a penalty, spectral norm: the optimizers' lists lie where those of the other
    one lay, and what a stack has left in them points into tensors of the iteration, some of them zero."""
    make = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64)).to(device)
    judge = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(64, 256)), nn.LeakyReLU(0.2), nn.Linear(256, 256), nn.Softplus(),
                          nn.Linear(256, 1)).to(device)
    made, judged = (torch.optim.Adam(m.parameters(), 1e-4, (0.0, 0.9)) for m in (make, judge))
    rows = 1536
    for _ in range(iterations):
        for _ in range(2):
            true, false = batch(gen, device, rows, 64), make(batch(gen, device, rows, 32)).detach()
            share = torch.rand(rows, 1, generator=gen).to(device)
            between = (share * true + (1 - share) * false).requires_grad_()
            slope, = torch.autograd.grad(judge(between), between, torch.ones(rows, 1, device=device), create_graph=True)
            loss = judge(false).mean() - judge(true).mean() + 10 * ((slope.norm(2, dim=1) - 1) ** 2).mean()
            judged.zero_grad()
            loss.backward()
            judged.step()
        mean = -judge(make(batch(gen, device, rows, 32))).mean()
        made.zero_grad()
        mean.backward()
        made.step()
        yield loss
        yield mean
    yield from (make, judge)


@loop
def resumed(gen, device, iterations):
    """Half way, model and optimizer are made anew and loaded: every iteration works on other tensors from there on."""
    def anew():
        m = nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 10)).to(device)
        return m, torch.optim.Adam(m.parameters(), lr=1e-3, fused=True)
    m, o = anew()
    for i in range(iterations):
        if i == iterations // 2:
            saved = {k: v.cpu() for k, v in m.state_dict().items()}, o.state_dict()
            del m, o
            m, o = anew()
            m.load_state_dict(saved[0])
            o.load_state_dict(saved[1])
            del saved
        loss = F.cross_entropy(m(batch(gen, device, 6144, 64)), batch(gen, device, 6144, below=10))
        o.zero_grad()
        loss.backward()
        o.step()
        yield loss
    yield m


@loop
def evaluated(gen, device, iterations):
    """An encoder that is evaluated every few steps, where it takes other kernels: nested tensors without the padding."""
    words, out = nn.Embedding(100, 64).to(device), nn.Linear(64, 4).to(device)
    body = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True), 2).to(device)
    o = torch.optim.AdamW([*words.parameters(), *body.parameters(), *out.parameters()], lr=1e-3)

    def answer(x):
        pad = x == 0
        h = body(words(x), src_key_padding_mask=pad).masked_fill(pad.unsqueeze(-1), 0)
        return out(h.sum(1) / (~pad).sum(1, keepdim=True))
    for i in range(iterations):
        x = batch(gen, device, 64, 48, below=99) + 1
        x[:, 40:] = 0
        loss = F.cross_entropy(answer(x), batch(gen, device, 64, below=4))
        o.zero_grad()
        loss.backward()
        o.step()
        yield loss
        if i % 6 == 5:
            body.eval()
            with torch.no_grad():
                yield answer(x[:20]).logsumexp(-1).mean()
            body.train()
    yield from (words, body, out)


@loop
def fetched(gen, device, iterations):
    """A loader that fetches ahead, as people write it: the next batch is copied and made ready on a stream of its own while a step works on this
    one, and the one before is given up when that has been queued."""
    side = torch.cuda.Stream() if device == 'cuda' else None

    def fetch():
        x, y = torch.randn(24, 3, 40, 40, generator=gen), torch.randint(0, 10, (24,), generator=gen)
        if side is None:
            return (x - 0.1) / 1.1, y
        with torch.cuda.stream(side):
            x, y = (t.pin_memory().to(device, non_blocking=True) for t in (x, y))
            return (x - 0.1) / 1.1, y

    def batches():
        after = fetch()
        for _ in range(iterations):
            if side is not None:
                torch.cuda.current_stream().wait_stream(side)
                for t in after:
                    t.record_stream(torch.cuda.current_stream())
            now = after
            after = fetch()
            yield now
    m = nn.Sequential(nn.Conv2d(3, 24, 3, 1, 1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 48, 3, 1, 1), nn.BatchNorm2d(48), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10)).to(device)
    o = torch.optim.SGD(m.parameters(), 0.05, momentum=0.9)
    for x, y in batches():
        loss = F.cross_entropy(m(x), y)
        o.zero_grad()
        loss.backward()
        o.step()
        yield loss
    yield m


class Experts(nn.Module):
    """Each token goes to two of four experts, which have room for so many tokens."""
    def __init__(self, d=48, count=4):
        super().__init__()
        self.gate, self.count = nn.Linear(d, count, bias=False), count
        self.rise, self.fall = nn.Parameter(torch.randn(count, d, 2 * d) * 0.05), nn.Parameter(torch.randn(count, 2 * d, d) * 0.05)

    def forward(self, x):
        n, d = x.shape
        room = n * 2 // self.count * 5 // 4
        share = self.gate(x).softmax(-1)
        weight, expert = share.topk(2, -1)
        weight, expert = weight / weight.sum(-1, keepdim=True), expert.flatten()
        chosen = F.one_hot(expert, self.count)
        place = (chosen.cumsum(0) - 1).gather(1, expert[:, None]).squeeze(1)
        fits = place < room
        slot = torch.where(fits, expert * room + place, torch.full_like(place, self.count * room))
        token = torch.arange(n, device=x.device).repeat_interleave(2)
        sent = x.new_zeros(self.count * room + 1, d).scatter(0, slot[:, None].expand(-1, d), x[token])
        h = torch.bmm(F.gelu(torch.bmm(sent[:-1].view(self.count, room, d), self.rise)), self.fall).view(-1, d)
        h = torch.cat([h, h.new_zeros(1, d)])
        y = torch.zeros_like(x).index_add(0, token, h[slot] * (weight.flatten() * fits)[:, None])
        return y, self.count * (chosen.float().mean(0) * share.mean(0)).sum()


@loop
def experts(gen, device, iterations):
    """A mixture of experts: what stacks leave in the structs of `cat` and `scatter` points at tensors of zeros."""
    words, out = nn.Embedding(100, 48).to(device), nn.Linear(48, 100).to(device)
    norms, layers = (nn.ModuleList(m() for _ in range(4)).to(device) for m in (lambda: nn.RMSNorm(48), Experts))
    o = torch.optim.AdamW([p for m in (words, norms, layers, out) for p in m.parameters()], lr=1e-3, fused=True)
    for _ in range(iterations):
        h, balance = words(batch(gen, device, 64, 32, below=100)).flatten(0, 1), 0
        for norm, layer in zip(norms, layers):
            y, b = layer(norm(h))
            h, balance = h + y, balance + b
        loss = F.cross_entropy(out(h), batch(gen, device, 64 * 32, below=100)) + 0.01 * balance
        o.zero_grad()
        loss.backward()
        o.step()
        yield loss
    yield from (words, norms, layers, out)


@loop
def critics(gen, device, iterations):
    """Two critics with one Adam, an actor that steps every second time, experience in a ring on the device. A critic's last bias has one
    element, the gradient's root of which is at times so large that the optimizer's eps changes nothing there."""
    def net(*widths):
        layers = [x for a, b in zip(widths, widths[1:]) for x in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1]).to(device)
    state, action, rows, room, new = 48, 8, 1024, 16384, 512
    one, two, old_one, old_two = (net(state + action, 256, 256, 1) for _ in range(4))
    old_one.load_state_dict(one.state_dict())
    old_two.load_state_dict(two.state_dict())
    actor, heat = net(state, 256, 256, 2 * action), torch.zeros(1, device=device, requires_grad=True)
    of_both, of_actor, of_heat = (torch.optim.Adam(x, 1e-3) for x in ([*one.parameters(), *two.parameters()], actor.parameters(), [heat]))
    ring = [torch.zeros(room, width, device=device) for width in (state, action, 1, state)]

    def act(s):
        mean, log = actor(s).chunk(2, 1)
        log = log.clamp(-5, 2)
        x = mean + log.exp() * batch(gen, device, *mean.shape)
        a = x.tanh()
        return a, (-.5 * ((x - mean) / log.exp()) ** 2 - log - (1 - a * a + 1e-6).log()).sum(1, keepdim=True)

    now, at = batch(gen, device, new, state), 0
    for i in range(iterations):
        with torch.no_grad():
            a, _ = act(now)
            then = .9 * now + .1 * batch(gen, device, new, state)
            then[:, :action] += a
            for to, x in zip(ring, (now, a, -then.pow(2).mean(1, keepdim=True), then)):
                to[at:at + new] = x
            at, now = (at + new) % room, then
            some = batch(gen, device, rows, below=min(room, new * (i + 1)))
            s, a, reward, then = (x[some] for x in ring)
            next_a, log = act(then)
            x = torch.cat([then, next_a], 1)
            y = reward + .99 * (torch.min(old_one(x), old_two(x)) - heat.exp() * log)
        x = torch.cat([s, a], 1)
        loss = F.mse_loss(one(x), y) + F.mse_loss(two(x), y)
        of_both.zero_grad()
        loss.backward()
        of_both.step()
        if i % 2:
            for p in (*one.parameters(), *two.parameters()):
                p.requires_grad_(False)
            a, log = act(s)
            x = torch.cat([s, a], 1)
            worth = (heat.exp().detach() * log - torch.min(one(x), two(x))).mean()
            of_actor.zero_grad()
            worth.backward()
            of_actor.step()
            of_heat.zero_grad()
            (-(heat * (log.detach() - 8)).mean()).backward()
            of_heat.step()
            for p in (*one.parameters(), *two.parameters()):
                p.requires_grad_(True)
            yield worth
        with torch.no_grad():
            torch._foreach_lerp_([*old_one.parameters(), *old_two.parameters()], [*one.parameters(), *two.parameters()], .02)
        yield loss
    yield from (one, two, old_one, old_two, actor)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('loop', choices=sorted(LOOPS))
    p.add_argument('--iterations', type=int, default=24)
    p.add_argument('--device', default='cuda')
    a = p.parse_args()
    torch.backends.cudnn.enabled = False  # cuDNN's own runtime knows real devices only
    torch.manual_seed(1234)
    torch.set_num_threads(1)
    h, n = hashlib.sha256(), 0
    for x in LOOPS[a.loop](torch.Generator().manual_seed(5), a.device, a.iterations):
        if isinstance(x, torch.Tensor):
            print('loss', n, x.item().hex(), f'{x.item():.6f}', flush=True)
            n += 1
        else:
            for t in x.state_dict().values():
                h.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    print('checksum', h.hexdigest(), flush=True)


if __name__ == '__main__':
    main()
    sys.stdout.flush()
    # C's exit: what is written at the end of a process is written, but the interpreter does not end under the autograd thread
    ctypes.PyDLL(None).exit(0)
