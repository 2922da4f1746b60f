"""Small programs drawn from a seed and compiled as one graph, for the kernels that Inductor writes of them: each piece takes a tensor of its own through
pointwise steps, norms, softmaxes, scans or changes of shape to a loss. No piece has a matmul.

    python pieces.py SEED [--pieces N] [--iterations N] [--show]

Prints `loss I HEX` for each iteration, and at the end `checksum SHA256` of all parameters, as train.py does."""
import argparse
import ctypes
import hashlib
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn

# Rows and columns: reductions that fit into a block and others, sizes that no power of two divides, long columns (sums in two launches)
SHAPES = [(96, 1280), (160, 768), (192, 640), (256, 512), (320, 384), (384, 320), (512, 250), (640, 192), (1000, 128), (2048, 48), (40, 3000), (120, 1023)]

# f(x, c): x has rows and columns, c is a number that is drawn
POINTWISE = {
    'gelu': lambda x, c: F.gelu(x), 'gelu_tanh': lambda x, c: F.gelu(x, approximate='tanh'), 'silu': lambda x, c: F.silu(c * x), 'tanh': lambda x, c: x.tanh() + c,
    'softplus': lambda x, c: F.softplus(x), 'elu': lambda x, c: F.elu(x, c), 'hardswish': lambda x, c: F.hardswish(x), 'mish': lambda x, c: F.mish(x),
    'leaky': lambda x, c: F.leaky_relu(x, 0.1 * c), 'gate': lambda x, c: x * x.sigmoid() + c, 'where': lambda x, c: torch.where(x > 0.1, x, c * x),
    'clamp': lambda x, c: x.clamp(-c, c) + 0.1 * x, 'sin': lambda x, c: (c * x).sin(), 'bell': lambda x, c: torch.exp(-c * x * x), 'log': lambda x, c: (x.abs() + c).log(),
    'rsqrt': lambda x, c: (x * x + c).rsqrt() * x, 'atan2': lambda x, c: torch.atan2(x, x.abs() + c), 'erf': lambda x, c: x.erf() + c * x, 'dropout': lambda x, c: F.dropout(x, 0.1 * c),
    'log1p': lambda x, c: torch.log1p(x.abs()) * x.sign(), 'bf16': lambda x, c: x.bfloat16().float() * c, 'f16': lambda x, c: (x.half() * c).float(), 'pow': lambda x, c: (x.abs() + 0.1) ** c,
    'expm1': lambda x, c: torch.expm1(-x.abs()) * c + x, 'cos': lambda x, c: x.cos() * x, 'floor': lambda x, c: x + c * x.floor(), 'roll': lambda x, c: torch.maximum(x, c * x.roll(1, 0)),
}
# f(x, w, c): w is a parameter that is as wide or as high as x, or both
OWN = {
    'scale': lambda x, w, c: x * (c + w), 'shift': lambda x, w, c: x + w.tanh(), 'lerp': lambda x, w, c: torch.lerp(x, w.expand_as(x), 0.3), 'sigmoid_gate': lambda x, w, c: x * torch.sigmoid(w),
    'addcmul': lambda x, w, c: torch.addcmul(x, w, x, value=c), 'divide': lambda x, w, c: x / (w * w + c), 'larger': lambda x, w, c: torch.maximum(x, w) + c,
}
# f(x, d, c): d is the dimension
WHOLE = {
    'softmax': lambda x, d, c: x.softmax(d) * x.shape[d] * c, 'log_softmax': lambda x, d, c: x.log_softmax(d) * 0.1 * c, 'layer_norm': lambda x, d, c: F.layer_norm(x, x.shape[1:]) * c,
    'rms_norm': lambda x, d, c: F.rms_norm(x, x.shape[1:]) * c, 'batch_norm': lambda x, d, c: F.batch_norm(x, None, None, training=True) * c,
    'group_norm': lambda x, d, c: F.group_norm(x, 2 - x.shape[1] % 2) * c, 'standard': lambda x, d, c: (x - x.mean(d, keepdim=True)) / (x.var(d, keepdim=True) + c).sqrt(),
    'unit': lambda x, d, c: F.normalize(x, dim=d) * c * 8, 'minus_max': lambda x, d, c: x - c * x.amax(d, keepdim=True), 'minus_mean': lambda x, d, c: x - c * x.mean(d, keepdim=True),
    'logsumexp': lambda x, d, c: x - c * x.logsumexp(d, keepdim=True), 'cumsum': lambda x, d, c: x.cumsum(1) / x.shape[1] + c * x, 'flip': lambda x, d, c: x + c * x.flip(d),
    'turn': lambda x, d, c: x + (c * x.t()).contiguous().tanh().t(), 'cat': lambda x, d, c: torch.cat([x[x.shape[0] // 2:].tanh(), c * x[:x.shape[0] // 2]]),
    'glu': lambda x, d, c: F.glu(torch.cat([x, x * c], 1), 1), 'pad': lambda x, d, c: F.pad(x, (2, 0))[:, :-2] * c + x, 'pool': lambda x, d, c: x + c * F.avg_pool1d(x[None], 3, 1, 1)[0],
    'attend': lambda x, d, c: x + c * (x.mean(1, keepdim=True).softmax(0) * x).sum(0, keepdim=True), 'both': lambda x, d, c: x / (x.abs().mean() + c),
}
# f(x, t, k, c): t is like x, of numbers from 0 to 1; k is a class for each row
LOSSES = {
    'mse': lambda x, t, k, c: F.mse_loss(x, c * t), 'cross_entropy': lambda x, t, k, c: F.cross_entropy(x, k), 'smoothed': lambda x, t, k, c: F.cross_entropy(x, k, label_smoothing=0.1),
    'bce': lambda x, t, k, c: F.binary_cross_entropy_with_logits(x, t), 'huber': lambda x, t, k, c: F.huber_loss(x, t, delta=c), 'l1': lambda x, t, k, c: F.l1_loss(x.sigmoid(), t),
    'kl': lambda x, t, k, c: F.kl_div(x.log_softmax(-1), t.softmax(-1), reduction='batchmean'), 'logsumexp': lambda x, t, k, c: x.logsumexp(-1).mean(),
    'variance': lambda x, t, k, c: x.var(0).mean() + c * x.mean(), 'cosine': lambda x, t, k, c: (1 - F.cosine_similarity(x, t)).mean(), 'largest': lambda x, t, k, c: x.amax(-1).mean() + (x * x).mean(),
    'hinge': lambda x, t, k, c: F.relu(c - x * (2 * t - 1)).mean(), 'poisson': lambda x, t, k, c: F.poisson_nll_loss(x.clamp(max=3), t), 'picked': lambda x, t, k, c: x.gather(1, k[:, None]).square().mean(),
}


class Piece(nn.Module):
    def __init__(self, rng, gen):
        super().__init__()
        n, m = self.shape = rng.choice(SHAPES)
        self.x = nn.Parameter(torch.randn(n, m, generator=gen))
        self.own, self.steps, self.words = nn.ParameterList(), [], []
        for kind in rng.sample(['point', 'whole', 'own', 'whole', 'point', 'own', 'point'], rng.choice([3, 4, 5])):
            table = {'point': POINTWISE, 'whole': WHOLE, 'own': OWN}[kind]
            name, c, d = rng.choice(list(table)), round(rng.uniform(0.5, 1.5), 2), rng.choice([1, 1, 0])
            if kind == 'own':
                d = len(self.own)
                self.own.append(nn.Parameter(0.1 * torch.randn(rng.choice([(1, m), (n, 1), (n, m)]), generator=gen)))
            self.steps.append((kind, table[name], c, d))
            self.words.append(name)
        loss = rng.choice(list(LOSSES))
        self.loss, self.c = LOSSES[loss], round(rng.uniform(0.5, 1.5), 2)
        self.words.append(loss)
        self.register_buffer('target', torch.rand(n, m, generator=gen))
        self.register_buffer('label', torch.randint(0, m, (n,), generator=gen))

    def forward(self):
        x = self.x
        for kind, f, c, d in self.steps:
            x = f(x, c) if kind == 'point' else f(x, self.own[d], c) if kind == 'own' else f(x, d, c)
        return self.loss(x, self.target, self.label, self.c)


class Pieces(nn.Module):
    def __init__(self, seed, n):
        super().__init__()
        rng, gen = random.Random(seed), torch.Generator().manual_seed(seed)
        self.pieces = nn.ModuleList(Piece(rng, gen) for _ in range(n))

    def forward(self):
        return [p() for p in self.pieces]


def checksum(net):
    h = hashlib.sha256()
    for _, t in sorted(net.state_dict().items()):
        h.update(t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return h.hexdigest()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument('seed', type=int)
    p.add_argument('--pieces', type=int, default=8)
    p.add_argument('--iterations', type=int, default=12)
    p.add_argument('--show', action='store_true')
    a = p.parse_args()
    torch.manual_seed(a.seed)
    torch.set_num_threads(1)
    net = Pieces(a.seed, a.pieces)
    if a.show:
        for piece in net.pieces:
            print(*piece.shape, *piece.words)
        return
    net = net.cuda()
    optimizer, forward = torch.optim.SGD(net.parameters(), lr=0.05), torch.compile(net)
    for i in range(a.iterations):
        optimizer.zero_grad()
        loss = torch.stack(forward()).sum()  # outside: else each loss's kernel is named after all of the pieces, cut off at the same place
        loss.backward()
        optimizer.step()
        print('loss', i, loss.item().hex(), flush=True)
    print('checksum', checksum(net), flush=True)


if __name__ == '__main__':
    main()
    sys.stdout.flush()
    ctypes.PyDLL(None).exit(0)  # C's exit, as in train.py
