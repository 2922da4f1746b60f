"""Memory as scripts take it: a setting in the script before the import, by call, a fraction; a batch that is halved until it fits; a history, where there is one."""
import os

os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'max_split_size_mb:128'
import torch
from torch import nn

torch.backends.cudnn.enabled = False
torch.set_num_threads(1)
free, total = torch.cuda.mem_get_info()
assert total == torch.cuda.get_device_properties(0).total_memory, total
torch._C._accelerator_setAllocatorSettings('max_split_size_mb:64')
torch.cuda.set_per_process_memory_fraction(0.9)


def fits(batch):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)).cuda()
    o = torch.optim.AdamW(m.parameters())
    while True:
        try:
            loss = m(torch.ones(batch, 64, device='cuda')).square().mean()
            loss.backward()
            o.step()
            o.zero_grad()
            torch.cuda.synchronize()
            return batch, loss.item().hex()
        except torch.OutOfMemoryError as e:
            assert str(e).startswith('CUDA out of memory. '), str(e)
        loss = None
        o.zero_grad()
        torch.cuda.empty_cache()
        batch //= 2


batch, _ = fits(total >> 10)
assert 0 < batch < total >> 10, batch
print('loss small', fits(256)[1])
asked = os.environ.get('REMAT_ALLOCATOR') == 'each'
try:
    torch.cuda.memory._record_memory_history(max_entries=100)
    torch.ones(1 << 16, device='cuda')
    torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    assert torch.cuda.get_allocator_backend() == 'native'
except RuntimeError as e:
    assert 'cudaMallocAsync' in str(e) and not asked, str(e)
print('ok: retry')
