#!/usr/bin/env python3
"""An ordinary training script, which knows nothing of remat: a small language model learns this file's own text, letter by letter.

    remat run --limit 50% -- python docs/example/train.py      # on a GPU; --width, --depth and --batch make it as large as the card

Prints the loss of every tenth step, exactly too (as Python's float.hex), and at the end a sum over all parameters: two runs that print the same
computed the same.
"""
import argparse
import hashlib

import torch
from torch import nn
from torch.nn import functional as F


class LanguageModel(nn.Module):
    def __init__(self, letters, width, depth, length):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
                                     for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)
        self.register_buffer("later", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, text):
        x = self.letters(text) + self.places.weight
        for block in self.blocks:
            x = block(x, src_mask=self.later)
        return self.head(self.norm(x))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--batch", type=int, default=96)
    p.add_argument("--length", type=int, default=64)
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--depth", type=int, default=3)
    a = p.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    with open(__file__, "rb") as f:
        text = torch.tensor(list(f.read()))
    model = LanguageModel(256, a.width, a.depth, a.length).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(a.steps):
        start = torch.randint(len(text) - a.length - 1, (a.batch, 1))
        batch = text[start + torch.arange(a.length + 1)].to(device)
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print("step %d  loss %.4f  %s" % (step + 1, loss.item(), loss.item().hex()), flush=True)
    parameters = b"".join(v.detach().cpu().numpy().tobytes() for v in model.parameters())
    print("parameters", hashlib.sha256(parameters).hexdigest()[:16])


if __name__ == "__main__":
    main()
