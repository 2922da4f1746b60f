"""A decoder of GPT-2's small size (12 layers, 768 wide, 50257 words, 1024 positions) in plain PyTorch, AdamW."""
import torch
import torch.nn as nn
import torch.nn.functional as F

import common

args = common.parse(batch=8, description=__doc__)
device = common.start(args)
layers, heads, width, words, length = (2, 4, 64, 211, 32) if args.tiny else (12, 12, 768, 50257, 1024)
drop = 0.1


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, heads, -1).transpose(1, 2) for y in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=drop if self.training else 0.0)
        return self.drop(self.out(y.transpose(1, 2).reshape(b, t, width)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention()
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"),
                                 nn.Linear(4 * width, width), nn.Dropout(drop))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
        self.drop = nn.Dropout(drop)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.token.weight
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, tokens):
        x = self.drop(self.token(tokens) + self.position.weight[:tokens.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


model = Decoder().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)


def make_batch(g):
    return (torch.randint(words, (args.batch, length + 1), generator=g),)


def loss_of(model, tokens):
    logits = model(tokens[:, :-1])
    return F.cross_entropy(logits.reshape(-1, words).float(), tokens[:, 1:].reshape(-1))


common.fit("gpt2", model, model.blocks, optimizer, loss_of, make_batch, args, device)
