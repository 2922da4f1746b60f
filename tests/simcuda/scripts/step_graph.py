"""A whole training step as a graph: forward, backward, optimizer, with three optimizers. And captures that are broken off, by an optimizer that cannot be captured
and by a value that is asked for: the script catches what PyTorch raises and goes on without a graph."""
import sys

import torch
from torch import nn

torch.backends.cudnn.enabled = False
torch.set_num_threads(1)
OPTIMIZERS = {'adamw': lambda p: torch.optim.AdamW(p, capturable=True), 'fused': lambda p: torch.optim.AdamW(p, fused=True, capturable=True),
              'sgd': lambda p: torch.optim.SGD(p, .1, momentum=.9), 'plain': torch.optim.AdamW, 'item': lambda p: torch.optim.SGD(p, .1)}


def train(kind):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True), nn.Linear(32, 50)).cuda()
    o = OPTIMIZERS[kind](m.parameters())
    x = torch.randint(0, 50, (4, 8)).cuda()

    def step(ask=False):
        o.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(m(x).flatten(0, 1), x.flatten())
        loss.backward()
        if ask:
            loss.item()
        o.step()
        return loss

    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(s)
    g, broken, out = torch.cuda.CUDAGraph(), False, []
    try:
        with torch.cuda.graph(g):
            loss = step(kind == 'item')
    except RuntimeError:
        broken, loss = True, None
        del g
    assert broken == (kind in ('plain', 'item')), kind
    for i in range(4):
        if broken:
            loss = step()
        else:
            x.copy_(torch.randint(0, 50, (4, 8)))
            g.replay()
        out.append(loss.item().hex())
    return out


for kind in OPTIMIZERS:
    for at, loss in enumerate(train(kind)):
        print('loss', kind, at, loss)
sys.stdout.flush()
print('ok: step_graph')
