"""torch.profiler with a schedule, shapes, memory and the device's activity: there is no CUPTI, so it records the processor. The losses are those without it."""
import torch
from torch.profiler import ProfilerActivity, profile, schedule

torch.backends.cudnn.enabled = False
torch.set_num_threads(1)


def losses(steps, after=lambda: None):
    torch.manual_seed(0)
    m = torch.nn.Sequential(*[x for _ in range(3) for x in (torch.nn.Linear(128, 128), torch.nn.GELU())]).cuda()
    o = torch.optim.AdamW(m.parameters())
    x = torch.randn(256, 128).cuda()
    out = []
    for _ in range(steps):
        loss = m(x).square().mean()
        loss.backward()
        o.step()
        o.zero_grad()
        out.append(loss.item().hex())
        after()
    return out


seen = []
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=2, repeat=2), record_shapes=True,
             profile_memory=True, with_stack=True, on_trace_ready=lambda p: seen.append({e.key for e in p.key_averages()})) as p:
    under = losses(9, p.step)
assert len(seen) == 2 and all('aten::linear' in keys for keys in seen), seen
with profile(activities=[ProfilerActivity.CUDA]):
    assert losses(3) == under[:3]
assert losses(9) == under
for at, loss in enumerate(under):
    print('loss', at, loss)
print('ok: profiler')
