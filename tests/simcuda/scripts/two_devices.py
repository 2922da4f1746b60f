"""Two simulated devices (SIMGPU_DEVICES=2): in one process, and as DistributedDataParallel over gloo in two."""
import os
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

STEPS = 5


def make():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    g = torch.Generator().manual_seed(1)
    return net, torch.randn(2, 16, 32, generator=g), torch.randn(2, 16, 1, generator=g)


def train(net, x, y, lr=0.1):
    opt = torch.optim.SGD(net.parameters(), lr)
    for _ in range(STEPS):
        loss = nn.functional.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def rank_main(rank):
    torch.cuda.set_device(rank)
    dist.init_process_group('gloo', rank=rank, world_size=2)
    net, x, y = make()
    net = nn.parallel.DistributedDataParallel(net.cuda(rank), device_ids=[rank])
    loss = train(net, x[rank].cuda(rank), y[rank].cuda(rank)).detach().cpu()
    dist.all_reduce(loss)
    if rank == 0:
        reference, x, y = make()
        want = train(reference, x.view(32, 32), y.view(32, 1)).item()
        assert abs(loss.item() / 2 - want) < 1e-5, (loss.item() / 2, want)
    dist.destroy_process_group()


def main():
    assert torch.cuda.device_count() == 2
    a = torch.arange(4., device='cuda:0')
    b = a.to('cuda:1') * 2
    assert b.device.index == 1 and torch.equal((b.to('cuda:0') + a).cpu(), 3 * torch.arange(4.))
    with torch.cuda.device(1):
        c = torch.ones(4, device='cuda')
    assert c.device.index == 1 and not torch.cuda.can_device_access_peer(0, 1)
    env = dict(os.environ, MASTER_ADDR='127.0.0.1', MASTER_PORT=str(20000 + os.getpid() % 20000))
    ranks = [subprocess.Popen([sys.executable, __file__, str(r)], env=env) for r in range(2)]
    assert [p.wait() for p in ranks] == [0, 0]
    print('ok: two_devices')


rank_main(int(sys.argv[1])) if len(sys.argv) > 1 else main()
