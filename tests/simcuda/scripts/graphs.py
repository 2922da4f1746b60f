"""torch.cuda.graph and make_graphed_callables: a captured training step gives what the same step gives eagerly, bit for bit."""
import warnings

import torch
import torch.nn as nn

warnings.simplefilter('ignore')  # about memory that was captured and is freed outside: meant here
dev = 'cuda'


def make():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(dev)
    x, y = torch.randn(32, 64, device=dev), torch.randint(0, 10, (32,), device=dev)
    return net, x, y, torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)


def step(net, x, y, opt):
    opt.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss


parts = make()
eager = [step(*parts).item() for _ in range(8)]

parts = make()
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step(*parts)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step(*parts)
captured = []
for _ in range(5):
    graph.replay()
    captured.append(loss.item())
assert captured == eager[3:], (captured, eager)

# a captured random kernel moves on with each replay; two streams inside one capture
graph, beside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
x = torch.ones(1000, device=dev)
with torch.cuda.graph(graph):
    r = torch.rand(1000, device=dev)
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        p = x * 2
    q = x + r
    torch.cuda.current_stream().wait_stream(beside)
    out = p + q
graph.replay()
first = r.clone()
assert torch.equal(out, 2 * x + (x + first)), 'a fork and a join'
x.fill_(5)
graph.replay()
assert not torch.equal(r, first) and torch.equal(out, 2 * x + (x + r)), 'a replay sees what memory holds then'

net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to(dev)
plain = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to(dev)
plain.load_state_dict(net.state_dict())
graphed = torch.cuda.make_graphed_callables(net, (torch.randn(8, 64, device=dev, requires_grad=True),))
for _ in range(3):
    a = torch.randn(8, 64, device=dev, requires_grad=True)
    b = a.detach().clone().requires_grad_()
    graphed(a).square().mean().backward()
    plain(b).square().mean().backward()
    assert torch.equal(a.grad, b.grad), 'graphed callables'
print('ok: graphs')
