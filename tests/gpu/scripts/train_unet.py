"""A U-Net (five levels, 64 to 1024 channels) for segmentation of synthetic 256x256 images, SGD with momentum."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import common

args = common.parse(batch=16, description=__doc__)
device = common.start(args)
side, classes, base = (32, 3, 8) if args.tiny else (256, 21, 64)


def double_conv(c_in, c_out):
    layers = []
    for c in (c_in, c_out):
        layers += [nn.Conv2d(c, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        width = [base << i for i in range(5)]
        self.down = nn.ModuleList(double_conv(c_in, c_out) for c_in, c_out in zip([3] + width, width))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, stride=2) for c in reversed(width[:-1]))
        self.merge = nn.ModuleList(double_conv(2 * c, c) for c in reversed(width[:-1]))
        self.head = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        kept = []
        for i, level in enumerate(self.down):
            x = level(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([kept.pop(), up(x)], dim=1))
        return self.head(x)


model = UNet().to(device)
blocks = list(model.down) + list(model.merge)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def make_batch(g):
    return (torch.randn(args.batch, 3, side, side, generator=g),
            torch.randint(classes, (args.batch, side, side), generator=g))


def loss_of(model, images, labels):
    # one row a pixel: the two-dimensional loss has no deterministic CUDA kernel
    scores = model(images).permute(0, 2, 3, 1).reshape(-1, classes)
    return F.cross_entropy(scores.float(), labels.reshape(-1))


common.fit("unet", model, blocks, optimizer, loss_of, make_batch, args, device)
