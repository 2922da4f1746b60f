"""A kernel that the catalogue lacks: its launch fails with cudaErrorInvalidDeviceFunction, its name stands on stderr once, and the
program goes on. Run with a catalogue that has none of PyTorch's kernels."""
import torch

x = torch.zeros(4, device='cuda')  # a fill by the driver
for _ in range(3):
    try:
        x.add_(1)
        raise SystemExit('there is no such kernel, but it ran')
    except torch.AcceleratorError as e:
        assert 'invalid device function' in str(e), e
assert torch.equal(x.cpu(), torch.zeros(4)), 'nothing sticks'
print('ok: missing')
