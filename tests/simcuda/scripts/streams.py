"""Streams, events, pinned memory, host threads: what runs beside what, and in which order."""
import threading

import torch

dev = 'cuda'
side, other = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

a = torch.randn(256, 256, device=dev)
torch.cuda.synchronize()
with torch.cuda.stream(side):
    start.record()
    b = a @ a
    end.record()
other.wait_event(end)
with torch.cuda.stream(other):
    c = b + 1
b.record_stream(other)
torch.cuda.current_stream().wait_stream(other)
assert torch.allclose(c.cpu(), a.cpu() @ a.cpu() + 1, atol=1e-3), 'work ordered by events'
assert start.elapsed_time(end) > 0 and end.query(), 'events take times'

pinned = torch.randn(5000).pin_memory()
there = pinned.to(dev, non_blocking=True)
back = torch.empty(5000).pin_memory()
back.copy_(there, non_blocking=True)
torch.cuda.current_stream().synchronize()
assert pinned.is_pinned() and torch.equal(pinned, back), 'copies of pinned memory'

results = [None] * 4


def work(i):
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.full((100, 100), float(i), device=dev)
        results[i] = (x @ x).sum().item()


threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert results == [i * i * 1e6 for i in range(4)], results

# memory freed in one stream and used in another, again and again
total = torch.zeros((), device=dev)
for i in range(50):
    with torch.cuda.stream(side):
        x = torch.full((1 << 18,), float(i), device=dev)
    torch.cuda.current_stream().wait_stream(side)
    total += x.mean()
    x.record_stream(torch.cuda.current_stream())
    del x
assert total.item() == sum(range(50)), total.item()
print('ok: streams')
