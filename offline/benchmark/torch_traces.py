#!/usr/bin/env python3
"""torch_traces.py OUT [NAME...]: the traces torch-*.json.xz of the benchmark: training steps of three models at three sizes, from PyTorch's own graphs, without a
GPU and without memory for the tensors (remat.convert.fx). Run it with a Python that has torch 2.x; other versions may split operators another way."""
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
from remat.convert import fx  # noqa: E402


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(self.n1(x)).split(d, 2))
        s = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        x = x + self.out((torch.softmax(s, -1) @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, d, words=50304):
        super().__init__()
        self.token, self.place = nn.Embedding(words, d), nn.Embedding(512, d)
        self.blocks, self.norm, self.head = nn.Sequential(*(Block(d, d // 64) for _ in range(layers))), nn.LayerNorm(d), nn.Linear(d, words, bias=False)

    def forward(self, x, y):
        h = self.token(x) + self.place.weight[:x.shape[1]]
        return F.cross_entropy(self.head(self.norm(self.blocks(h))).flatten(0, 1), y.flatten())


class Basic(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.c2, self.n2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.skip = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 or a != b else nn.Identity()

    def forward(self, x):
        return torch.relu(self.n2(self.c2(torch.relu(self.n1(self.c1(x))))) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, depths):
        super().__init__()
        rows, a = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for k, n in enumerate(depths):
            for i in range(n):
                rows.append(Basic(a, 64 << k, 2 if k and not i else 1))
                a = 64 << k
        self.body, self.head = nn.Sequential(*rows, nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(a, 1000)

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.body(x)), y)


class UNet(nn.Module):
    def __init__(self, w, levels=4):
        super().__init__()
        def two(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, 1, 1), nn.ReLU(), nn.Conv2d(b, b, 3, 1, 1), nn.ReLU())
        self.down = nn.ModuleList(two(3 if not k else w << (k - 1), w << k) for k in range(levels))
        self.up = nn.ModuleList(nn.ConvTranspose2d(w << (k + 1), w << k, 2, 2) for k in reversed(range(levels - 1)))
        self.mix = nn.ModuleList(two(w << (k + 1), w << k) for k in reversed(range(levels - 1)))
        self.head = nn.Conv2d(w, 21, 1)

    def forward(self, x, y):
        kept = []
        for k, d in enumerate(self.down):
            x = d(F.max_pool2d(x, 2) if k else x)
            kept.append(x)
        kept.pop()
        for u, m in zip(self.up, self.mix):
            x = m(torch.cat([u(x), kept.pop()], 1))
        return F.cross_entropy(self.head(x), y)


def images(n, side, classes_of_pixels=False):
    shape = (n, side, side) if classes_of_pixels else (n,)
    return torch.empty(n, 3, side, side), torch.empty(shape, dtype=torch.int64)


def words(n, t):
    return torch.empty((n, t), dtype=torch.int64), torch.empty((n, t), dtype=torch.int64)


MODELS = {"gpt-small": (lambda: Gpt(4, 256), lambda: words(32, 256)), "gpt-medium": (lambda: Gpt(8, 512), lambda: words(32, 256)),
          "gpt-large": (lambda: Gpt(12, 768), lambda: words(16, 512)),
          "resnet-small": (lambda: ResNet((1, 1, 1, 1)), lambda: images(64, 224)), "resnet-medium": (lambda: ResNet((2, 2, 2, 2)), lambda: images(128, 224)),
          "resnet-large": (lambda: ResNet((3, 4, 6, 3)), lambda: images(128, 224)),
          "unet-small": (lambda: UNet(16), lambda: images(16, 256, True)), "unet-medium": (lambda: UNet(32), lambda: images(16, 256, True)),
          "unet-large": (lambda: UNet(64, 5), lambda: images(16, 256, True))}


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(MODELS)
    for name in names:
        with torch.device("meta"):
            model, inputs = MODELS[name][0](), MODELS[name][1]()
        t = fx.from_module(model, inputs, optimizer="adam", name=name)
        t.meta["batch"] = len(inputs[0])
        t.save(os.path.join(out, "torch-%s.json.xz" % name))
        print("%-14s %5d ops, %6.2f GiB, %8.2f ms" % (name, len(t.ops), t.peak_bytes / 2 ** 30, t.total_ns / 1e6), flush=True)


if __name__ == "__main__":
    main()
