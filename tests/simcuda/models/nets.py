"""The models of the tests: small, written as scripts write them, with activations that outweigh parameters.

Each net takes (inputs, targets) and gives the loss. Each has `blocks`, what a per-block torch.utils.checkpoint wraps."""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    """A net whose blocks can be checkpointed one by one."""

    checkpointed = False

    def through(self, block, *x):
        if self.checkpointed and self.training:
            return checkpoint(block, *x, use_reentrant=False)
        return block(*x)


# ---- transformers ------------------------------------------------------------------------------------------------

class Attention(nn.Module):
    def __init__(self, width, heads, dropout, causal, fused, length):
        super().__init__()
        self.heads, self.dropout, self.causal, self.fused = heads, dropout, causal, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        if causal and not fused:
            self.register_buffer('later', torch.ones(length, length, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in self.qkv(x).split(c, dim=-1))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=self.dropout if self.training else 0.0)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
            if self.causal:
                scores = scores.masked_fill(self.later[:t, :t], float('-inf'))
            y = F.dropout(scores.softmax(-1), self.dropout, self.training) @ v
        y = y.transpose(1, 2).reshape(b, t, c)
        return F.dropout(self.out(y), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, width, heads, dropout, causal, fused, length):
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout, causal, fused, length)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class GPT(Net):
    def __init__(self, vocabulary=256, width=128, heads=4, depth=3, length=64, dropout=0.0, fused=False, tied=False):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([Block(width, heads, dropout, True, fused, length) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, words, targets):
        x = self.dropout(self.words(words) + self.places(torch.arange(words.shape[1], device=words.device)))
        for b in self.blocks:
            x = self.through(b, x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class BERT(Net):
    def __init__(self, vocabulary=256, width=128, heads=4, depth=3, length=64, dropout=0.0):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width, padding_idx=0), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, 'gelu', batch_first=True)
                                     for _ in range(depth)])
        self.transform, self.head = nn.Linear(width, width), nn.Linear(width, vocabulary)
        self.last_norm = nn.LayerNorm(width)

    def forward(self, words, targets):
        x = self.norm(self.words(words) + self.places.weight[:words.shape[1]])
        padding = words == 0
        for b in self.blocks:
            x = self.through(lambda y, b=b: b(y, src_key_padding_mask=padding), x)
        logits = self.head(self.last_norm(F.gelu(self.transform(x))))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


class ViT(Net):
    def __init__(self, classes=10, width=128, heads=4, depth=3, image=32, patch=4, dropout=0.0):
        super().__init__()
        n = (image // patch) ** 2
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.randn(1, n + 1, width) * 0.02)
        self.blocks = nn.ModuleList([Block(width, heads, dropout, False, True, n + 1) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images, targets):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        for b in self.blocks:
            x = self.through(b, x)
        return F.cross_entropy(self.head(self.norm(x)[:, 0]), targets)


class Llama(Net):
    """LlamaForCausalLM of transformers, from a configuration (nothing is downloaded)."""

    def __init__(self, vocabulary=256, width=128, heads=4, depth=3, length=64):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM
        self.lm = LlamaForCausalLM(LlamaConfig(
            vocab_size=vocabulary, hidden_size=width, intermediate_size=344, num_hidden_layers=depth, num_attention_heads=heads,
            num_key_value_heads=heads // 2, max_position_embeddings=length, use_cache=False))
        self.blocks = self.lm.model.layers

    def forward(self, words, targets):
        if self.checkpointed and not self.lm.is_gradient_checkpointing:
            self.lm.gradient_checkpointing_enable({'use_reentrant': False})
        return self.lm(input_ids=words, labels=targets).loss


# ---- images ------------------------------------------------------------------------------------------------------

class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.norm2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        self.short = nn.Sequential() if stride == 1 and inside == outside else \
            nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


class ResNet18(Net):
    """ResNet-18 as for small images: eight residual blocks of two convolutions, `width` channels at first."""

    def __init__(self, classes=10, width=16):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        widths, strides = [width * k for k in (1, 1, 2, 4, 8)], (1, 2, 2, 2)
        self.blocks = nn.ModuleList()
        for i, s in enumerate(strides):
            self.blocks += [Residual(widths[i], widths[i + 1], s), Residual(widths[i + 1], widths[i + 1], 1)]
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, images, targets):
        x = F.relu(self.norm(self.conv(images)))
        for b in self.blocks:
            x = self.through(b, x)
        return F.cross_entropy(self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)), targets)


class Twice(nn.Sequential):
    def __init__(self, inside, outside):
        super().__init__(nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU(),
                         nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.SiLU())


class UNet(Net):
    """Three levels down and up, with skip connections; predicts the noise in an image."""

    def __init__(self, width=16):
        super().__init__()
        w = width
        self.blocks = nn.ModuleList([Twice(3, w), Twice(w, 2 * w), Twice(2 * w, 4 * w), Twice(4 * w, 2 * w), Twice(2 * w, w)])
        self.up1, self.up2 = nn.ConvTranspose2d(4 * w, 2 * w, 2, stride=2), nn.ConvTranspose2d(2 * w, w, 2, stride=2)
        self.out = nn.Conv2d(w, 3, 1)

    def forward(self, images, targets):
        a = self.through(self.blocks[0], images)
        b = self.through(self.blocks[1], F.max_pool2d(a, 2))
        c = self.through(self.blocks[2], F.max_pool2d(b, 2))
        d = self.through(self.blocks[3], torch.cat([self.up1(c), b], 1))
        e = self.through(self.blocks[4], torch.cat([self.up2(d), a], 1))
        return F.mse_loss(self.out(e), targets)


# ---- the others --------------------------------------------------------------------------------------------------

class LSTM(Net):
    """A language model of LSTM layers, as in the word-level example that everybody starts from."""

    def __init__(self, vocabulary=256, width=256, depth=2, dropout=0.0):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList([nn.LSTM(width, width, batch_first=True) for _ in range(depth)])
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(width, vocabulary)

    def forward(self, words, targets):
        x = self.words(words)
        for b in self.blocks:
            x = self.through(lambda y, b=b: self.dropout(b(y)[0]), x)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class MLP(Net):
    def __init__(self, inputs=256, width=512, depth=6, classes=10):
        super().__init__()
        self.first, self.head = nn.Linear(inputs, width), nn.Linear(width, classes)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth)])

    def forward(self, x, targets):
        x = F.gelu(self.first(x))
        for b in self.blocks:
            x = self.through(b, x)
        return F.cross_entropy(self.head(x), targets)
