"""Twenty small training programs as people write them, each on the CPU and on the device from the same seed: the losses must agree.

Odd sizes, tensors that are not contiguous, batches of one, packed sequences, masks, grouped and strided convolutions, and the like."""
import copy
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cudnn.enabled = False
torch.set_num_threads(1)
PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


class Net(nn.Module):
    """Modules by keyword, and a forward function."""

    def __init__(self, forward, **parts):
        super().__init__()
        for k, v in parts.items():
            setattr(self, k, v)
        self.f = forward

    def forward(self, *a):
        return self.f(self, *a)


def words(g, *shape, n=50):
    return torch.randint(0, n, shape, generator=g)


@program
def char_rnn(g):
    def f(m, x, y):
        h, _ = m.r(m.e(x))
        return F.cross_entropy(m.o(h).transpose(1, 2), y, ignore_index=0, label_smoothing=0.1)
    m = Net(f, e=nn.Embedding(50, 13, padding_idx=0), r=nn.LSTM(13, 21, num_layers=2, bidirectional=True, batch_first=True), o=nn.Linear(42, 50))
    return m, torch.optim.RMSprop(m.parameters(), lr=1e-3, momentum=0.5, centered=True), lambda: (words(g, 3, 11), words(g, 3, 11))


@program
def packed_gru(g):
    def f(m, x, n, y):
        p = nn.utils.rnn.pack_padded_sequence(m.e(x), n.cpu(), batch_first=True, enforce_sorted=False)
        _, h = m.r(p)
        return F.binary_cross_entropy_with_logits(m.o(h[-1]).squeeze(-1), y, pos_weight=torch.tensor(2.0, device=y.device))
    m = Net(f, e=nn.Embedding(50, 9), r=nn.GRU(9, 17, num_layers=2, batch_first=True), o=nn.Linear(17, 1))
    return m, torch.optim.Adam(m.parameters(), lr=1e-2, amsgrad=True), lambda: (words(g, 5, 12), torch.tensor([12, 3, 7, 1, 9]), (torch.rand(5, generator=g) > 0.5).float())


@program
def mobile_net(g):
    def block(i, o, s):
        return nn.Sequential(nn.Conv2d(i, i, 3, s, 1, groups=i, bias=False), nn.BatchNorm2d(i), nn.ReLU6(), nn.Conv2d(i, o, 1, bias=False),
                             nn.BatchNorm2d(o), nn.Hardswish())
    net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), block(8, 16, 2), block(16, 16, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 7))
    m = Net(lambda m, x, y: F.cross_entropy(m.n(x), y), n=net)
    return m, torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4), lambda: (torch.randn(4, 3, 29, 31, generator=g), words(g, 4, n=7))


@program
def dilated_segmentation(g):
    net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=2, dilation=2), nn.PReLU(12), nn.GroupNorm(3, 12), nn.Conv2d(12, 12, 3, stride=2, padding=1, groups=4),
                        nn.ELU(), nn.ConvTranspose2d(12, 6, 4, 2, 1), nn.InstanceNorm2d(6, affine=True), nn.Upsample(size=(33, 27), mode='bilinear', align_corners=True), nn.Conv2d(6, 5, 1))
    m = Net(lambda m, x, y: F.cross_entropy(m.n(x), y, weight=torch.linspace(0.5, 2, 5, device=x.device)), n=net)
    return m, torch.optim.AdamW(m.parameters(), lr=1e-3), lambda: (torch.randn(2, 3, 32, 26, generator=g), words(g, 2, 33, 27, n=5))


@program
def autoencoder_reflect(g):
    net = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(1, 6, 3, 2), nn.LeakyReLU(0.2), nn.ReplicationPad2d((1, 2, 1, 2)), nn.Conv2d(6, 8, 4, 2), nn.Softplus(),
                        nn.Upsample(scale_factor=2, mode='bicubic'), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2), nn.Tanh())
    m = Net(lambda m, x: F.smooth_l1_loss(m.n(x), x) + 1e-3 * sum(p.abs().sum() for p in m.parameters()), n=net)
    return m, torch.optim.Adagrad(m.parameters(), lr=1e-2), lambda: (torch.randn(3, 1, 28, 28, generator=g),)


@program
def translation(g):
    def f(m, s, t):
        pad, causal = s == 0, nn.Transformer.generate_square_subsequent_mask(t.shape[1] - 1, device=s.device)
        h = m.t(m.e(s), m.e(t[:, :-1]), tgt_mask=causal, src_key_padding_mask=pad, memory_key_padding_mask=pad)
        return F.cross_entropy((h @ m.e.weight.t()).flatten(0, 1), t[:, 1:].flatten())
    t = nn.Transformer(24, 3, 1, 2, 40, dropout=0.0, batch_first=True, norm_first=True, activation='gelu')
    m = Net(f, e=nn.Embedding(50, 24), t=t)

    def data():
        s = words(g, 3, 9)
        s[:, 0] = 1
        s[1:, 6:] = 0
        return s, words(g, 3, 8)
    return m, torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.9, 0.98)), data


@program
def grouped_query_attention(g):
    def f(m, x, y):
        b, t, _ = x.shape
        q, k, v = m.q(x).view(b, t, 4, 8).transpose(1, 2), m.k(x).view(b, t, 2, 8).transpose(1, 2), m.v(x).view(b, t, 2, 8).transpose(1, 2)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return F.mse_loss(m.o(o.transpose(1, 2).reshape(b, t, 32)), y)
    m = Net(f, q=nn.Linear(19, 32), k=nn.Linear(19, 16), v=nn.Linear(19, 16), o=nn.Linear(32, 19))
    return m, torch.optim.NAdam(m.parameters(), lr=1e-2), lambda: (torch.randn(2, 37, 19, generator=g), torch.randn(2, 37, 19, generator=g))


@program
def siamese_triplet(g):
    m = Net(lambda m, a, p, n: F.triplet_margin_loss(m.n(a), m.n(p), m.n(n)) + (1 - F.cosine_similarity(m.n(a), m.n(p))).mean(),
            n=nn.Sequential(nn.Linear(15, 31), nn.SiLU(), nn.LayerNorm(31), nn.Linear(31, 10)))
    return m, torch.optim.SGD(m.parameters(), lr=0.05), lambda: tuple(torch.randn(6, 15, generator=g) for _ in range(3))


@program
def variational(g):
    def f(m, x, eps):
        mu, lv = m.e(x).chunk(2, -1)
        r = m.d(mu + eps * (0.5 * lv).exp())
        return F.binary_cross_entropy(r.sigmoid(), x, reduction='sum') / len(x) - 0.5 * (1 + lv - mu ** 2 - lv.exp()).sum(-1).mean()
    m = Net(f, e=nn.Sequential(nn.Linear(30, 20), nn.ReLU(), nn.Linear(20, 8)), d=nn.Sequential(nn.Linear(4, 20), nn.ReLU(), nn.Linear(20, 30)))
    return m, torch.optim.Adam(m.parameters(), lr=1e-3), lambda: (torch.rand(7, 30, generator=g), torch.randn(7, 4, generator=g))


@program
def speech_ctc(g):
    def f(m, x, t):
        h, _ = m.r(m.c(x).permute(2, 0, 1))
        lp = m.o(h).log_softmax(-1)
        return F.ctc_loss(lp, t, torch.full((x.shape[0],), lp.shape[0]), torch.tensor([5, 4, 3]), zero_infinity=True)
    m = Net(f, c=nn.Sequential(nn.Conv1d(11, 16, 5, 2, 2), nn.BatchNorm1d(16), nn.GELU()), r=nn.GRU(16, 12, bidirectional=True), o=nn.Linear(24, 9))
    return m, torch.optim.Adamax(m.parameters(), lr=1e-2), lambda: (torch.randn(3, 11, 40, generator=g), 1 + words(g, 3, 5, n=8))


@program
def recommender(g):
    m = Net(lambda m, u, i, y: F.huber_loss((m.u(u) * m.b(i)).sum(-1) + m.c(u).squeeze(-1), y), u=nn.Embedding(40, 8, max_norm=2.0),
            b=nn.EmbeddingBag(60, 8, mode='mean', padding_idx=0), c=nn.Embedding(40, 1))
    return m, torch.optim.Adagrad(m.parameters(), lr=0.1), lambda: (words(g, 16, n=40), words(g, 16, 5, n=60), torch.randn(16, generator=g))


@program
def graph_net(g):
    def f(m, x, e, y):
        for layer in (m.a, m.b):
            s = torch.zeros_like(x[:, :1]).expand(-1, layer.in_features).clone().index_add(0, e[1], x[e[0]])
            n = torch.bincount(e[1], minlength=len(x)).clamp(min=1).unsqueeze(1)
            x = layer(s / n).relu()
        pooled = torch.zeros(2, x.shape[1], device=x.device).scatter_reduce(0, (torch.arange(len(x), device=x.device) % 2)[:, None].expand_as(x), x, 'amax', include_self=False)
        return F.nll_loss(m.o(pooled).log_softmax(-1), y)
    m = Net(f, a=nn.Linear(7, 14), b=nn.Linear(14, 14), o=nn.Linear(14, 3))
    return m, torch.optim.Adam(m.parameters(), lr=1e-2), lambda: (torch.randn(20, 7, generator=g), words(g, 2, 60, n=20), words(g, 2, n=3))


@program
def spatial_transformer(g):
    def f(m, x, y):
        grid = F.affine_grid(m.l(x.flatten(1)).view(-1, 2, 3) + torch.eye(2, 3, device=x.device), x.shape, align_corners=False)
        return F.cross_entropy(m.c(F.grid_sample(x, grid, padding_mode='border', align_corners=False)), y)
    m = Net(f, l=nn.Linear(17 * 13, 6), c=nn.Sequential(nn.Conv2d(1, 4, 5, 3), nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(), nn.LazyLinear(4)))
    m.c(torch.zeros(1, 1, 17, 13))
    return m, torch.optim.SGD(m.parameters(), lr=0.01), lambda: (torch.randn(5, 1, 17, 13, generator=g), words(g, 5, n=4))


@program
def rotary_complex(g):
    def f(m, x, y):
        b, t, _ = x.shape
        z = torch.view_as_complex(m.q(x).view(b, t, 6, 2))
        r = torch.polar(torch.ones(t, 6, device=x.device), torch.outer(torch.arange(t, device=x.device).float(), torch.arange(1, 7, device=x.device) / 6))
        return F.l1_loss(m.o(torch.view_as_real(z * r).flatten(2)), y)
    m = Net(f, q=nn.Linear(9, 12), o=nn.Linear(12, 9))
    return m, torch.optim.AdamW(m.parameters(), lr=1e-2, foreach=False), lambda: (torch.randn(2, 5, 9, generator=g), torch.randn(2, 5, 9, generator=g))


@program
def video_3d(g):
    net = nn.Sequential(nn.Conv3d(2, 6, 3, padding=1, stride=(1, 2, 2)), nn.BatchNorm3d(6), nn.ReLU(), nn.MaxPool3d(2), nn.Conv3d(6, 6, 3, padding=1, groups=6), nn.AvgPool3d(2),
                        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(6, 4))
    m = Net(lambda m, x, y: F.cross_entropy(m.n(x), y), n=net)
    return m, torch.optim.SGD(m.parameters(), lr=0.05), lambda: (torch.randn(2, 2, 8, 16, 16, generator=g), words(g, 2, n=4))


@program
def weight_normed_tcn(g):
    wn = nn.utils.parametrizations.weight_norm
    net = nn.Sequential(wn(nn.Conv1d(3, 8, 3, padding=4, dilation=4)), nn.GLU(1), wn(nn.Conv1d(4, 6, 3, padding=1)), nn.Mish(), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(48, 2))
    m = Net(lambda m, x, y: F.mse_loss(m.n(x), y), n=net)
    return m, torch.optim.RMSprop(m.parameters(), lr=1e-3), lambda: (torch.randn(1, 3, 16, generator=g), torch.randn(1, 2, generator=g))


@program
def mixture_of_experts(g):
    def f(m, x, y):
        w, i = m.gate(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for e, net in enumerate(m.experts):
            rows, slot = (i == e).nonzero(as_tuple=True)
            out = out.index_add(0, rows, net(x[rows]) * w[rows, slot].unsqueeze(-1))
        return F.mse_loss(out, y) + 0.01 * m.gate(x).logsumexp(-1).pow(2).mean()
    m = Net(f, gate=nn.Linear(10, 4), experts=nn.ModuleList(nn.Sequential(nn.Linear(10, 14), nn.GELU(), nn.Linear(14, 10)) for _ in range(4)))
    return m, torch.optim.Adam(m.parameters(), lr=1e-2), lambda: (torch.randn(13, 10, generator=g), torch.randn(13, 10, generator=g))


@program
def masked_language(g):
    def f(m, x, y, mask):
        h = m.t(m.e(x) + m.p(torch.arange(x.shape[1], device=x.device)), src_key_padding_mask=x == 0)
        return F.cross_entropy(m.o(h)[mask], y[mask])
    m = Net(f, e=nn.Embedding(50, 20), p=nn.Embedding(16, 20), o=nn.Linear(20, 50),
            t=nn.TransformerEncoder(nn.TransformerEncoderLayer(20, 4, 30, dropout=0.0, batch_first=True), 2))
    return m, torch.optim.AdamW(m.parameters(), lr=1e-3, fused=None), lambda: (1 + words(g, 4, 13, n=49), words(g, 4, 13), torch.rand(4, 13, generator=g) < 0.3)


@program
def policy_gradient(g):
    def f(m, s, a, r):
        logp = torch.distributions.Categorical(logits=m.p(s)).log_prob(a)
        v = m.v(s).squeeze(-1)
        adv = (r.flip(0).cumsum(0).flip(0) - v.detach())
        return -(logp * (adv - adv.mean()) / (adv.std() + 1e-5)).mean() + F.mse_loss(v, r) - 0.01 * torch.distributions.Categorical(logits=m.p(s)).entropy().mean()
    m = Net(f, p=nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3)), v=nn.Linear(6, 1))
    return m, torch.optim.Adam(m.parameters(), lr=1e-2), lambda: (torch.randn(21, 6, generator=g), words(g, 21, n=3), torch.randn(21, generator=g))


@program
def big_softmax(g):
    m = Net(lambda m, x, y: F.cross_entropy(m.o(m.d(x)[::2, 1:].transpose(0, 1)).flatten(0, 1), y), d=nn.Linear(12, 16), o=nn.Linear(16, 5003))
    return m, torch.optim.SGD(m.parameters(), lr=0.5), lambda: (torch.randn(6, 4, 12, generator=g), words(g, 9, n=5003))


@program
def barlow_twins(g):
    def f(m, x, n):
        a, b = m.n(x), m.n(x + n)
        a, b = (a - a.mean(0)) / a.std(0), (b - b.mean(0)) / b.std(0)
        c = a.t() @ b / len(a)
        return (c.diagonal() - 1).pow(2).sum() + 5e-3 * c.flatten()[1:].view(8 - 1, 9)[:, :-1].pow(2).sum()
    m = Net(f, n=nn.Sequential(nn.Linear(14, 18, bias=False), nn.BatchNorm1d(18), nn.ReLU(inplace=True), nn.Linear(18, 8)))
    return m, torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3), lambda: (torch.randn(11, 14, generator=g), torch.randn(11, 14, generator=g))


def losses(f, device, steps=5):
    torch.manual_seed(3)
    model, optimizer, data = f(torch.Generator().manual_seed(4))
    model = model.to(device)
    # the optimizer was made for the parameters where they were
    held = copy.copy(optimizer.defaults)
    optimizer = type(optimizer)(model.parameters(), **{k: v for k, v in held.items() if k not in ('decoupled_weight_decay', 'differentiable')})
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    got = []
    for _ in range(steps):
        batch = [t.to(device) for t in data()]
        optimizer.zero_grad(set_to_none=len(got) % 2 == 0)
        loss = model(*batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        got.append(loss.item())
    return got


def main():
    bad = 0
    for name, f in PROGRAMS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        want = losses(f, 'cpu')
        try:
            got = losses(f, 'cuda')
        except RuntimeError as e:
            print(f'{name}: {str(e).splitlines()[0]}', flush=True)
            bad += 1
            continue
        worst = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(want, got))
        if not worst < 2e-4:
            print(f'{name}: losses differ by {worst:.2g}: {got} on the device, {want} on the CPU', flush=True)
            bad += 1
    if not bad:
        print('ok: strangers')
    sys.stdout.flush()
    os._exit(1 if bad else 0)


main()
