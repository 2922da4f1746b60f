"""Memory: what PyTorch is told, what happens when there is none, and that the program goes on."""
import io

import torch
from torch.utils.data import DataLoader, TensorDataset

dev = 'cuda'
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total
x = torch.zeros(1 << 20, device=dev)
assert torch.cuda.memory_allocated() >= 4 << 20
try:
    torch.empty(1 << 42, device=dev, dtype=torch.uint8)
    raise SystemExit('4 TiB were allocated')
except torch.cuda.OutOfMemoryError as e:
    assert 'out of memory' in str(e)
assert (x + 1).sum().item() == 1 << 20, 'nothing sticks'

data = TensorDataset(torch.arange(256.).view(64, 4))
got = sum(b.to(dev, non_blocking=True).sum().item() for (b,) in DataLoader(data, batch_size=4, num_workers=2, pin_memory=True))
assert got == 255 * 256 / 2, got

net, file = torch.nn.Linear(16, 16).to(dev), io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
again = torch.load(file, map_location=dev)
assert again['weight'].device.type == 'cuda' and torch.equal(again['weight'], net.weight)

p = torch.cuda.get_device_properties(0)
assert (p.major, p.minor) == (8, 0) and torch.cuda.get_device_name(0) == 'Simulated GPU'
print('ok: memory')
